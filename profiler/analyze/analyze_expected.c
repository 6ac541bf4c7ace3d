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

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int compare_text(const char *a, const char *b)
{
    return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* 0: one line of the source that expects one thing. Without a file the address tells them apart. */
static int compare_lines(const struct prof_expected_cost *a, const struct prof_expected_cost *b)
{
    int order = compare_text(a->file, b->file);
    if (order == 0)
        order = a->file ? compare_u64(a->line, b->line) : compare_u64(a->stated->pc, b->stated->pc);
    if (order == 0)
        order = compare_text(a->function, b->function);
    if (order == 0)
        order = compare_u64(a->scope, b->scope);
    if (order == 0)
        order = (int)a->stated->kind - (int)b->stated->kind;
    if (order == 0)
        order = a->stated->bound < b->stated->bound ? -1 : a->stated->bound > b->stated->bound;
    return order;
}

static int compare_places(const void *x, const void *y)
{
    const struct prof_expected_cost *a = x, *b = y;
    return a->stated < b->stated ? -1 : a->stated > b->stated;
}

static int compare_entries(const void *x, const void *y)
{
    const int order = compare_lines(x, y);
    return order ? order : compare_places(x, y);
}

/* A compiler that unrolls a loop makes several calls of one line. */
static void merge_lines(struct prof_expected_costs *costs)
{
    size_t kept = 0;
    if (costs->n == 0)
        return;
    qsort(costs->expected, costs->n, sizeof *costs->expected, compare_entries);
    for (size_t i = 1; i < costs->n; i++) {
        if (compare_lines(&costs->expected[kept], &costs->expected[i]) == 0)
            costs->expected[kept].times += costs->expected[i].times;
        else
            costs->expected[++kept] = costs->expected[i];
    }
    costs->n = kept + 1;
    qsort(costs->expected, costs->n, sizeof *costs->expected, compare_places);
}

/* The lines of the function that the expectation stands in. */
static struct prof_cost cost_of_function(const struct prof_analysis *analysis,
                                         const struct prof_expected_cost *place)
{
    struct prof_cost cost = {0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct prof_line *line = &analysis->line[i];
        if (!line->own && line->function && same_text(line->function, place->function) &&
            same_text(line->file, place->file))
            prof_cost_add(&cost, &line->cost);
    }
    return cost;
}

static void measure(struct prof_expected_cost *e, const struct read_profile *profile,
                    const struct prof_cost *cost, uint64_t forward_ns)
{
    const double times = (double)e->times;
    if (e->stated->kind == READ_EXPECT_TAPE_BYTES) {
        e->known = times > 0 && read_profile_has_bytes(profile);
        e->measured = e->known ? (double)prof_cost_tape_bytes(cost) / times : 0;
    } else {
        e->known = forward_ns > 0;
        e->measured = e->known ? (double)cost->backward_ns / (double)forward_ns : 0;
    }
    e->holds = !e->known || e->measured <= e->stated->bound;
}

void prof_expected_costs_make(struct prof_expected_costs *costs,
                              const struct prof_analysis *analysis)
{
    const struct read_profile *profile = analysis->profile;
    *costs = (struct prof_expected_costs){
        .expected = base_calloc(profile->n_expectations + 1, sizeof *costs->expected)};
    prof_scope_costs_make(&costs->scopes, profile, false);
    for (size_t i = 0; i < profile->n_expectations; i++) {
        const struct read_expectation *stated = &profile->expectation[i];
        const struct symbols_place place = analyze_place(analysis, stated->pc, stated->line);
        costs->expected[costs->n++] = (struct prof_expected_cost){
            .stated = stated,
            .times = stated->times,
            .file = place.file,
            .function = place.function,
            .line = place.line,
            .scope = stated->scope ? costs->scopes.place[stated->scope - 1] + 1 : 0};
    }
    merge_lines(costs);
    for (size_t i = 0; i < costs->n; i++) {
        struct prof_expected_cost *e = &costs->expected[i];
        if (e->scope) {
            const struct prof_scope_cost *scope = &costs->scopes.scope[e->scope - 1];
            measure(e, profile, &scope->cost, scope->forward_ns);
        } else {
            const struct prof_cost cost = cost_of_function(analysis, e);
            measure(e, profile, &cost, cost.forward_ns);
        }
        costs->n_failed += !e->holds;
    }
}

void prof_expected_costs_free(struct prof_expected_costs *costs)
{
    prof_scope_costs_free(&costs->scopes);
    free(costs->expected);
    *costs = (struct prof_expected_costs){0};
}
