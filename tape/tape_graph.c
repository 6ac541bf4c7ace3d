/* tape_graph.c: the rule context that records: derivatives as ops on the tape.
 *
 * May include: tape_bridge.h, tape_checkpoint.h, tape_guard.h, tape_preaccumulate.h, tape_reach.h,
 * tape_release.h, tape_trap.h, kernel_ops.h (add, copy, sum_to).
 *
 * The records present at the start are swept; what the pullbacks emit is appended behind them,
 * charged to the line of the op whose pullback it is. Only records that lead from x to y are
 * visited.
 */
#include "tape_guard.h"

#include "kernel_ops.h"
#include "tape_bridge.h"
#include "tape_checkpoint.h"
#include "tape_preaccumulate.h"
#include "tape_reach.h"
#include "tape_release.h"
#include "tape_residual.h"
#include "tape_trap.h"

#include <string.h>

struct graph {
    struct kernel_rule rule; /* first: the rule is the context */
    struct tape *t;
    struct tape_record *record;
    uint32_t *adjoint; /* by value index: the value that is its adjoint so far, 0: none */
    bool failed;
};

static kernel_ref ref_of(const struct tape *t, uint32_t value)
{
    return value ? &t->entries[value].array : NULL;
}

static uint32_t value_of(const struct tape *t, kernel_ref ref)
{
    return tape_value_index(t, (const struct tape_value *)(const void *)ref);
}

static void emit(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                 const kernel_ref *in, int n_attr, const int64_t *attr, kernel_ref *results)
{
    struct graph *g = (struct graph *)(void *)rule;
    uint32_t operand[KERNEL_MAX_IN], out[KERNEL_MAX_OUT];
    for (int o = 0; o < op->n_out; o++)
        results[o] = NULL;
    for (int i = 0; i < n_in; i++) {
        if (!in[i])
            return;
        operand[i] = value_of(g->t, in[i]);
    }
    if (g->failed)
        return;
    tape_path_begin(g->t, g->record->row);
    g->failed = tape_apply(g->t, op, n_in, operand, n_attr, attr,
                           tape_row_site(g->t, g->record->row), out) != TAPE_OK;
    tape_path_end(g->t);
    if (g->failed)
        return;
    for (int o = 0; o < op->n_out; o++)
        results[o] = ref_of(g->t, out[o]);
}

/* adjoint[value] += term. */
static void add(struct graph *g, uint32_t value, kernel_ref term)
{
    kernel_ref sum = ref_of(g->t, g->adjoint[value]);
    if (sum)
        sum = kernel_emit(&g->rule, &kernel_op_add, 2, (kernel_ref[]){sum, term}, 0, NULL);
    else
        sum = term;
    if (sum)
        g->adjoint[value] = value_of(g->t, sum);
}

static void accumulate(struct kernel_rule *rule, int input, const struct kernel_op *op, int n_in,
                       const kernel_ref *in, int n_attr, const int64_t *attr)
{
    struct graph *g = (struct graph *)(void *)rule;
    uint32_t value = tape_record_in(g->record)[input];
    kernel_ref v = ref_of(g->t, value);
    /* The identity needs no record. */
    kernel_ref term = op == &kernel_op_copy ? in[0] : kernel_emit(rule, op, n_in, in, n_attr, attr);
    if (!term)
        return;
    if (term->rank != v->rank || memcmp(term->shape, v->shape, v->rank * sizeof(int64_t)) != 0)
        term = kernel_emit(rule, &kernel_op_sum_to, 1, &term, v->rank, v->shape);
    if (term)
        add(g, value, term);
}

static const struct kernel_rule_class recorded = {true, emit, accumulate};

static void pullback(struct graph *g, struct tape_record *r)
{
    if (r->op == &tape_checkpoint_op) /* none that matters: see verify_checkpoints */
        return;
    kernel_ref in[TAPE_MAX_IN], out[KERNEL_MAX_OUT], adjoint[KERNEL_MAX_OUT];
    const struct tape *t = g->t;
    uint64_t needs = 0;
    bool any = false;
    for (int i = 0; i < r->n_in; i++) {
        uint32_t value = tape_record_in(r)[i];
        in[i] = ref_of(t, value);
        needs |= (uint64_t)((t->entries[value].flags & TAPE_STARTS) != 0) << i;
    }
    for (int o = 0; o < r->n_out; o++) {
        out[o] = ref_of(t, tape_record_out(r)[o]);
        adjoint[o] = ref_of(t, g->adjoint[tape_record_out(r)[o]]);
        any = any || adjoint[o];
    }
    if (!any || !needs)
        return;
    g->record = r;
    g->rule = (struct kernel_rule){.class_ = &recorded,
                                   .op = r->op,
                                   .in = in,
                                   .out = out,
                                   .adjoint = adjoint,
                                   .attr = tape_record_attr(r),
                                   .n_in = r->n_in,
                                   .n_out = r->n_out,
                                   .n_attr = r->n_attr,
                                   .needs = needs};
    r->op->pullback(&g->rule);
    if (t->hook)
        tape_residual_read(g->t, r);
}

/* Flags every value that depends on x. Records are linked backwards only: list[n] has them all. */
static void flag_dependents(struct tape *t, int n_x, const uint32_t *x, const uint32_t *list,
                            uint32_t n)
{
    for (uint32_t i = 1; i < t->n_values; i++)
        t->entries[i].flags &= ~(uint32_t)TAPE_STARTS;
    for (int i = 0; i < n_x; i++)
        t->entries[x[i]].flags |= TAPE_STARTS;
    for (uint32_t k = n; k-- > 0;) {
        struct tape_record *r = tape_record_at(t, list[k]);
        bool depends = false;
        for (int i = 0; i < r->n_in; i++)
            depends = depends || (t->entries[tape_record_in(r)[i]].flags & TAPE_STARTS);
        for (int o = 0; o < r->n_out && depends; o++)
            if (t->entries[tape_record_out(r)[o]].flags & TAPE_NEEDS_GRADIENT)
                t->entries[tape_record_out(r)[o]].flags |= TAPE_STARTS;
    }
}

/* The statements through which y depends on what is flagged have no pullbacks that could be
 * recorded. */
static enum tape_status verify_statements(struct tape *t, uint32_t y, struct tape_site site)
{
    if (!tape_bridge_crosses(t))
        return TAPE_OK;
    if (!tape_reach_begin(t, y))
        return tape_fail_memory(t, site, "create_graph");
    enum tape_status status = TAPE_OK;
    unsigned reads;
    for (uint32_t at = t->last_record; at != tape_bridge_oldest(t) && status == TAPE_OK;) {
        struct tape_record *r = tape_record_at(t, at);
        char made[160];
        if (tape_reach(t, r, TAPE_NEEDS_GRADIENT, &reads) && r->op == &tape_elements_op &&
            (t->entries[tape_record_in(r)[0]].flags & TAPE_STARTS)) {
            t->describe(tape_row_site(t, r->row), made, sizeof made);
            status = tape_fail(t, TAPE_ERROR_STATE, site,
                               "create_graph: y depends on x through statements over ad_real, from "
                               "%s at %s; they have first derivatives alone, so use ad_backward, "
                               "or ops instead of statements; the call is",
                               r->op->name, made);
        }
        at = r->previous;
    }
    tape_reach_end(t);
    return status;
}

/* Nor has a checkpoint. */
static enum tape_status verify_checkpoints(struct tape *t, uint32_t y, struct tape_site site)
{
    struct tape_record *found = NULL;
    if (!tape_reach_begin(t, y))
        return tape_fail_memory(t, site, "create_graph");
    for (uint32_t at = t->last_record; at != UINT32_MAX && !found;) {
        struct tape_record *r = tape_record_at(t, at);
        uint32_t reads;
        if (tape_reach(t, r, TAPE_STARTS, &reads) && r->op == &tape_checkpoint_op && reads)
            found = r;
        at = r->previous;
    }
    tape_reach_end(t);
    if (!found)
        return TAPE_OK;
    char made[160];
    t->describe(tape_row_site(t, found->row), made, sizeof made);
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "create_graph: y depends on x through the checkpoint at %s, which has first "
                     "derivatives alone, so use ad_backward, or call its function without one; "
                     "the call is",
                     made);
}

enum tape_status tape_graph(struct tape *t, uint32_t y, uint32_t seed, int n, const uint32_t *x,
                            struct tape_site site, uint32_t *gradient)
{
    struct graph g = {.t = t};
    if (t->sections.n > 0)
        return tape_section_refuse(t, "create_graph", site);
    tape_statement_settle(t);
    uint32_t n_values = t->n_values, n_records = 0;
    size_t bytes = ((size_t)n_values + t->n_records) * sizeof(uint32_t);
    g.adjoint = t->memory->resize(NULL, bytes, t->memory->payload);
    if (!g.adjoint) {
        t->arena.refused = bytes;
        return tape_fail_memory(t, site, "create_graph");
    }
    memset(g.adjoint, 0, bytes);
    uint32_t *list = g.adjoint + n_values;
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous)
        list[n_records++] = at;
    flag_dependents(t, n, x, list, n_records);
    const struct tape_mark before = tape_mark_here(t);

    enum tape_status status = tape_release_verify(t, y, TAPE_STARTS, "create_graph", site);
    if (status == TAPE_OK && t->trap)
        status = tape_trap_begin(t, seed, "create_graph", site);
    if (status == TAPE_OK)
        status = tape_guard_verify(t, y, TAPE_STARTS, "create_graph", site);
    if (status == TAPE_OK)
        status = verify_statements(t, y, site);
    if (status == TAPE_OK && t->calls.made)
        status = verify_checkpoints(t, y, site);
    if (status == TAPE_OK && !seed)
        status = tape_ones(t, y, site, &seed);
    g.adjoint[y] = seed;
    for (uint32_t k = 0; k < n_records && status == TAPE_OK && !g.failed; k++)
        pullback(&g, tape_record_at(t, list[k]));
    for (int i = 0; i < n && status == TAPE_OK && !g.failed; i++) {
        gradient[i] = g.adjoint[x[i]];
        if (!gradient[i])
            status = tape_zeros(t, x[i], site, &gradient[i]);
    }
    t->memory->release(g.adjoint, t->memory->payload);
    if (g.failed)
        status = t->error.code ? t->error.code : tape_fail_memory(t, site, "create_graph");
    if (status != TAPE_OK)
        tape_drop_behind(t, &before);
    return status;
}
