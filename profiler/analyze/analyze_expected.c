/* analyze_expected.c: what the source expects, held against what was measured.
 *
 * Of a scope the forward time is all between its begin and end but sweeps; of a function, what its
 * lines have within ops.
 */
#include "analyze.h"

#include "analyze_places.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

static bool expected_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int expected_compare_text(const char *a, const char *b)
{
    return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

static int expected_compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* 0: one line of the source that expects one thing. Without a file the address tells them apart. */
static int expected_compare_lines(const struct analyze_expected_cost *a,
                                  const struct analyze_expected_cost *b)
{
    int order = expected_compare_text(a->file, b->file);
    if (order == 0)
        order = a->file ? expected_compare_u64(a->line, b->line)
                        : expected_compare_u64(a->stated->pc, b->stated->pc);
    if (order == 0)
        order = expected_compare_text(a->function, b->function);
    if (order == 0)
        order = expected_compare_u64(a->scope, b->scope);
    if (order == 0)
        order = (int)a->stated->kind - (int)b->stated->kind;
    if (order == 0)
        order = a->stated->bound < b->stated->bound ? -1 : a->stated->bound > b->stated->bound;
    return order;
}

static int expected_compare_places(const void *x, const void *y)
{
    const struct analyze_expected_cost *a = x, *b = y;
    return a->stated < b->stated ? -1 : a->stated > b->stated;
}

static int expected_compare_entries(const void *x, const void *y)
{
    const int order = expected_compare_lines(x, y);
    return order ? order : expected_compare_places(x, y);
}

/* A compiler that unrolls a loop makes several calls of one line. */
static void expected_merge_lines(struct analyze_expected_costs *costs)
{
    size_t kept = 0;
    if (costs->n == 0)
        return;
    qsort(costs->expected, costs->n, sizeof *costs->expected, expected_compare_entries);
    for (size_t i = 1; i < costs->n; i++) {
        if (expected_compare_lines(&costs->expected[kept], &costs->expected[i]) == 0)
            costs->expected[kept].times += costs->expected[i].times;
        else
            costs->expected[++kept] = costs->expected[i];
    }
    costs->n = kept + 1;
    qsort(costs->expected, costs->n, sizeof *costs->expected, expected_compare_places);
}

/* The lines of the function that the expectation stands in. */
static struct analyze_cost cost_of_function(const struct analyze_result *analysis,
                                            const struct analyze_expected_cost *place)
{
    struct analyze_cost cost = {0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (!line->own && line->function && expected_same_text(line->function, place->function) &&
            expected_same_text(line->file, place->file))
            analyze_cost_add(&cost, &line->cost);
    }
    return cost;
}

static void expected_measure(struct analyze_expected_cost *e, const struct read_profile *profile,
                             const struct analyze_cost *cost, uint64_t forward_ns)
{
    const double times = (double)e->times;
    if (e->stated->kind == READ_EXPECT_TAPE_BYTES) {
        e->known = times > 0 && read_profile_has_bytes(profile);
        e->measured = e->known ? (double)analyze_cost_tape_bytes(cost) / times : 0;
    } else {
        e->known = forward_ns > 0;
        e->measured = e->known ? (double)cost->backward_ns / (double)forward_ns : 0;
    }
    e->holds = !e->known || e->measured <= e->stated->bound;
}

void analyze_expected_costs_make(struct analyze_expected_costs *costs,
                                 const struct analyze_result *analysis)
{
    const struct read_profile *profile = analysis->profile;
    *costs = (struct analyze_expected_costs){
        .expected = base_calloc(profile->n_expectations + 1, sizeof *costs->expected)};
    analyze_scope_costs_make(&costs->scopes, profile, false);
    for (size_t i = 0; i < profile->n_expectations; i++) {
        const struct read_expectation *stated = &profile->expectation[i];
        const struct symbols_place place = analyze_place(analysis, stated->pc, stated->line);
        costs->expected[costs->n++] = (struct analyze_expected_cost){
            .stated = stated,
            .times = stated->times,
            .file = place.file,
            .function = place.function,
            .line = place.line,
            .scope = stated->scope ? costs->scopes.place[stated->scope - 1] + 1 : 0};
    }
    expected_merge_lines(costs);
    for (size_t i = 0; i < costs->n; i++) {
        struct analyze_expected_cost *e = &costs->expected[i];
        if (e->scope) {
            const struct analyze_scope_cost *scope = &costs->scopes.scope[e->scope - 1];
            expected_measure(e, profile, &scope->cost, scope->forward_ns);
        } else {
            const struct analyze_cost cost = cost_of_function(analysis, e);
            expected_measure(e, profile, &cost, cost.forward_ns);
        }
        costs->n_failed += !e->holds;
    }
}

void analyze_expected_costs_free(struct analyze_expected_costs *costs)
{
    analyze_scope_costs_free(&costs->scopes);
    free(costs->expected);
    *costs = (struct analyze_expected_costs){0};
}
