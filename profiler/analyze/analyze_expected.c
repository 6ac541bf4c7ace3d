/* analyze_expected.c: what the source expects, held against what was measured.
 *
 * May include: analyze.h, profiler/symbols. Of a scope the forward time is all between its begin
 * and end but sweeps; of a function, what its lines have within ops.
 */
#include "analyze.h"

#include "symbols.h"

#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The lines of the function that the place is in. */
static struct prof_cost cost_of_function(const struct prof_analysis *analysis,
                                         const struct prof_place *place)
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

static void measure(struct prof_expected_cost *e, const struct prof_cost *cost, uint64_t forward_ns)
{
    const double times = (double)e->stated->times;
    if (e->stated->kind == PROF_EXPECT_TAPE_BYTES) {
        e->known = times > 0;
        e->measured = e->known ? (double)prof_cost_tape_bytes(cost) / times : 0;
    } else {
        e->known = forward_ns > 0;
        e->measured = e->known ? (double)cost->backward_ns / (double)forward_ns : 0;
    }
    e->holds = !e->known || e->measured <= e->stated->bound;
}

int prof_expected_costs_make(struct prof_expected_costs *costs,
                             const struct prof_analysis *analysis)
{
    const struct prof_profile *profile = analysis->profile;
    *costs = (struct prof_expected_costs){
        .expected = calloc(profile->n_expectations + 1, sizeof *costs->expected)};
    if (!costs->expected || prof_scope_costs_make(&costs->scopes, profile, false) != 0)
        return -1;
    for (size_t i = 0; i < profile->n_expectations; i++) {
        const struct prof_expectation *stated = &profile->expectation[i];
        struct prof_place place = {0};
        prof_symbols_resolve(analysis->symbols, stated->pc, stated->line, &place);
        struct prof_expected_cost *e = &costs->expected[costs->n++];
        *e = (struct prof_expected_cost){
            .stated = stated, .file = place.file, .function = place.function, .line = place.line};
        if (stated->scope) {
            e->scope = costs->scopes.place[stated->scope - 1] + 1;
            const struct prof_scope_cost *scope = &costs->scopes.scope[e->scope - 1];
            measure(e, &scope->cost, scope->forward_ns);
        } else {
            const struct prof_cost cost = cost_of_function(analysis, &place);
            measure(e, &cost, cost.forward_ns);
        }
        costs->n_failed += !e->holds;
    }
    return prof_symbols_no_memory(analysis->symbols) ? -1 : 0;
}

void prof_expected_costs_free(struct prof_expected_costs *costs)
{
    prof_scope_costs_free(&costs->scopes);
    free(costs->expected);
    *costs = (struct prof_expected_costs){0};
}
