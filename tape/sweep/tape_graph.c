/* tape_graph.c: the rule context that records: derivatives as ops on the tape.
 *
 * The records present at the start are swept; what the pullbacks emit is appended behind them,
 * charged to the line of the op whose pullback it is; its time, to that of the call. Only records
 * that lead from x to y are visited. The function of a checkpoint among them is called again,
 * recording for good, and what it has recorded is swept in the same way.
 *
 * In place, the adjoint of a slice is added to its range alone. Recorded, each would be an array as
 * large as what was sliced; so ranges wait until that adjoint is asked for, and are then laid
 * beside each other.
 */
#include "kernel_ops.h"
#include "tape_kind.h"
#include "tape_nonfinite.h"
#include "tape_observer.h"
#include "tape_part.h"
#include "tape_reach.h"
#include "tape_release.h"
#include "tape_sweep.h"
#include "tape_value.h"
#include "tape_verify.h"

#include <stdlib.h>
#include <string.h>

/* Values that were there when the derivatives were asked for, or that a checkpoint's function has
 * made again, and records of one or the other, the last one first. */
struct graph_part {
    struct graph_part *outer;
    uint32_t first, n_values, n_records;
    uint32_t *adjoint; /* of each value: the value that is its adjoint so far, 0: none */
    uint32_t *range;   /* of each value: the newest that waits for it, plus 1; 0: none */
    uint32_t *record;  /* behind these, in one piece of memory */
};

/* A term of an adjoint: `part` in [start, end) of one axis, else zeros. */
struct graph_range {
    int64_t axis, start, end;
    uint32_t part, next; /* of the same value, plus 1; 0: none */
    struct tape_record *record;
};

const char tape_graph_op[] = "create_graph";

struct graph {
    struct kernel_rule rule; /* first: the rule is the context */
    struct tape *t;
    struct tape_record *record;
    struct graph_part *part; /* the innermost */
    struct graph_range *range, *sorted;
    uint32_t n_ranges, ranges_size, sorted_size;
    bool failed;
};

/* A record's operands and outputs are of its own part or of one around it. */
static uint32_t *adjoint_of(const struct graph *g, uint32_t value)
{
    const struct graph_part *p = g->part;
    while (value < p->first)
        p = p->outer;
    return &p->adjoint[value - p->first];
}

static uint32_t *ranges_of(const struct graph *g, uint32_t value)
{
    const struct graph_part *p = g->part;
    while (value < p->first)
        p = p->outer;
    return &p->range[value - p->first];
}

/* The values from `first` on, and the records up to `end`. False: out of memory. */
static bool graph_part_begin(struct graph *g, struct graph_part *p, uint32_t first, uint32_t end)
{
    struct tape *t = g->t;
    *p = (struct graph_part){.outer = g->part, .first = first, .n_values = t->n_values - first};
    for (uint32_t at = t->last_record; at != end; at = tape_record_at(t, at)->previous)
        p->n_records++;
    const size_t bytes = (2 * (size_t)p->n_values + p->n_records) * sizeof(uint32_t);
    p->adjoint = t->memory->resize(NULL, bytes > 0 ? bytes : 1, t->memory->payload);
    if (!p->adjoint) {
        t->arena.refused = bytes;
        return false;
    }
    memset(p->adjoint, 0, bytes);
    p->range = p->adjoint + p->n_values;
    p->record = p->range + p->n_values;
    uint32_t n = 0;
    for (uint32_t at = t->last_record; at != end; at = tape_record_at(t, at)->previous)
        p->record[n++] = at;
    g->part = p;
    return true;
}

static void graph_part_end(struct graph *g)
{
    struct graph_part *p = g->part;
    g->part = p->outer;
    g->t->memory->release(p->adjoint, g->t->memory->payload);
}

static kernel_ref ref_of(const struct tape *t, uint32_t value)
{
    return value ? &t->entries[value].array : NULL;
}

static uint32_t graph_value_of(const struct tape *t, kernel_ref ref)
{
    return tape_value_index(t, (const struct tape_value *)(const void *)ref);
}

static void graph_emit(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                       const kernel_ref *in, int n_attr, const int64_t *attr, kernel_ref *results)
{
    struct graph *g = (struct graph *)(void *)rule;
    uint32_t operand[TAPE_MAX_IN], out[KERNEL_MAX_OUT];
    for (int o = 0; o < op->n_out; o++)
        results[o] = NULL;
    for (int i = 0; i < n_in; i++) {
        if (!in[i])
            return;
        operand[i] = graph_value_of(g->t, in[i]);
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
static void graph_add(struct graph *g, uint32_t value, kernel_ref term)
{
    kernel_ref sum = ref_of(g->t, *adjoint_of(g, value));
    if (sum)
        sum = kernel_emit(&g->rule, &kernel_op_add, 2, (kernel_ref[]){sum, term}, 0, NULL);
    else
        sum = term;
    if (sum)
        *adjoint_of(g, value) = graph_value_of(g->t, sum);
}

/* ---- ranges ---- */

/* adjoint[value] += part in a range, later. */
static void range_note(struct graph *g, uint32_t value, kernel_ref part, const int64_t *attr)
{
    struct tape *t = g->t;
    struct graph_range *range =
        tape_array_reserve(t->memory, g->range, g->n_ranges + 1, &g->ranges_size, sizeof *range);
    if (!range) {
        t->arena.refused = sizeof *range;
        g->failed = true;
        return;
    }
    g->range = range;
    uint32_t *newest = ranges_of(g, value);
    range[g->n_ranges] = (struct graph_range){.axis = attr[0],
                                              .start = attr[1],
                                              .end = attr[1] + part->shape[attr[0]],
                                              .part = graph_value_of(t, part),
                                              .next = *newest,
                                              .record = g->record};
    *newest = ++g->n_ranges;
}

static int range_compare(const void *left, const void *right)
{
    const struct graph_range *a = left, *b = right;
    if (a->axis != b->axis)
        return a->axis < b->axis ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->part < b->part ? -1 : a->part > b->part; /* as they came */
}

/* Those that wait for a value, by where they begin. How many; UINT32_MAX: no memory. */
static uint32_t ranges_sort(struct graph *g, uint32_t value)
{
    uint32_t n = 0;
    for (uint32_t at = *ranges_of(g, value); at != 0; at = g->range[at - 1].next)
        n++;
    struct graph_range *sorted =
        tape_array_reserve(g->t->memory, g->sorted, n, &g->sorted_size, sizeof *sorted);
    if (!sorted) {
        g->t->arena.refused = n * sizeof *sorted;
        return UINT32_MAX;
    }
    g->sorted = sorted;
    n = 0;
    for (uint32_t at = *ranges_of(g, value); at != 0; at = g->range[at - 1].next)
        sorted[n++] = g->range[at - 1];
    *ranges_of(g, value) = 0;
    qsort(sorted, n, sizeof *sorted, range_compare);
    return n;
}

/* adjoint[value] += n ranges, each of which begins where the one before ends. */
static void ranges_add(struct graph *g, uint32_t value, struct graph_range *range, uint32_t n)
{
    const int64_t axis = range->axis, start = range->start, end = range[n - 1].end;
    kernel_ref part[TAPE_MAX_IN];
    while (n > 1) {
        uint32_t to = 0;
        for (uint32_t k = 0; k < n; to++) {
            int m = 0;
            for (; m < TAPE_MAX_IN && k < n; m++, k++)
                part[m] = ref_of(g->t, range[k].part);
            kernel_ref laid = kernel_emit(&g->rule, &kernel_op_concat, m, part, 1, &axis);
            if (!laid)
                return;
            range[to].part = graph_value_of(g->t, laid);
        }
        n = to;
    }
    kernel_ref term = ref_of(g->t, range->part);
    const int64_t whole = g->t->entries[value].array.shape[axis];
    if (start > 0 || end < whole)
        term = kernel_emit(&g->rule, &kernel_op_slice_add, 1, &term, 4,
                           (int64_t[]){axis, start, 1, whole});
    if (term)
        graph_add(g, value, term);
}

/* The adjoint of a value, with all that waits for it; 0: none. */
static uint32_t graph_adjoint(struct graph *g, uint32_t value)
{
    if (__builtin_expect(*ranges_of(g, value) == 0, 1))
        return *adjoint_of(g, value);
    struct tape_record *record = g->record;
    const uint32_t n = ranges_sort(g, value);
    if (n == UINT32_MAX)
        g->failed = true;
    for (uint32_t from = 0, to; from < n && !g->failed; from = to) {
        struct graph_range *first = &g->sorted[from];
        for (to = from + 1; to < n; to++)
            if (g->sorted[to].axis != first->axis || g->sorted[to].start != g->sorted[to - 1].end)
                break;
        g->record = first->record; /* the line is that of a slice */
        ranges_add(g, value, first, to - from);
    }
    g->record = record;
    return g->failed ? 0 : *adjoint_of(g, value);
}

/* ---- pullbacks ---- */

static void graph_accumulate(struct kernel_rule *rule, int input, const struct kernel_op *op,
                             int n_in, const kernel_ref *in, int n_attr, const int64_t *attr)
{
    struct graph *g = (struct graph *)(void *)rule;
    uint32_t value = tape_record_in(g->record)[input];
    kernel_ref v = ref_of(g->t, value);
    if (op == &kernel_op_slice_add && attr[2] == 1 && in[0]) {
        range_note(g, value, in[0], attr);
        return;
    }
    /* The identity needs no record. */
    kernel_ref term = op == &kernel_op_copy ? in[0] : kernel_emit(rule, op, n_in, in, n_attr, attr);
    if (!term)
        return;
    if (term->rank != v->rank || memcmp(term->shape, v->shape, v->rank * sizeof(int64_t)) != 0)
        term = kernel_emit(rule, &kernel_op_sum_to, 1, &term, v->rank, v->shape);
    if (term)
        graph_add(g, value, term);
}

static const struct kernel_rule_class recorded = {true, graph_emit, graph_accumulate, NULL};

static void graph_pullback_again(struct graph *g, struct tape_record *r);

/* The record's kind records the derivative. */
static void graph_pullback_of_kind(struct graph *g, struct tape_record *r)
{
    uint32_t adjoint[TAPE_MAX_IN], term[TAPE_MAX_IN] = {0};
    struct tape *t = g->t;
    uint64_t needs = 0;
    bool any = false;
    for (int i = 0; i < r->n_in; i++)
        needs |= (uint64_t)((t->entries[tape_record_in(r)[i]].flags & TAPE_STARTS) != 0) << i;
    for (int o = 0; o < r->n_out; o++) {
        adjoint[o] = graph_adjoint(g, tape_record_out(r)[o]);
        any = any || adjoint[o];
    }
    if (g->failed || !(any || tape_record_always(r)) || !needs)
        return;
    g->record = r;
    g->failed = !tape_record_kind(r)->graph(t, r, adjoint, needs, term);
    for (int i = 0; i < r->n_in && !g->failed; i++)
        if (term[i])
            graph_add(g, tape_record_in(r)[i], ref_of(t, term[i]));
    tape_observer_read(t, r);
}

static void graph_pullback(struct graph *g, struct tape_record *r)
{
    if (tape_record_kind(r)->again) {
        graph_pullback_again(g, r);
        return;
    }
    if (tape_record_kind(r)->graph) {
        graph_pullback_of_kind(g, r);
        return;
    }
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
        adjoint[o] = ref_of(t, graph_adjoint(g, tape_record_out(r)[o]));
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
    tape_observer_read(g->t, r);
}

/* Flags every value that the part's records make of flagged ones. */
static void flag_dependents(struct tape *t, const struct graph_part *p)
{
    for (uint32_t k = p->n_records; k-- > 0;) {
        struct tape_record *r = tape_record_at(t, p->record[k]);
        bool depends = false;
        for (int i = 0; i < r->n_in; i++)
            depends = depends || (t->entries[tape_record_in(r)[i]].flags & TAPE_STARTS);
        for (int o = 0; o < r->n_out && depends; o++)
            if (t->entries[tape_record_out(r)[o]].flags & TAPE_NEEDS_GRADIENT)
                t->entries[tape_record_out(r)[o]].flags |= TAPE_STARTS;
    }
}

/* What the results of a call have for adjoints goes to those of the same function, called
 * once more, whose records stay. */
static void graph_pullback_again(struct graph *g, struct tape_record *r)
{
    struct tape *t = g->t;
    uint32_t result[TAPE_MAX_IN];
    bool any = false, depends = false;
    for (int o = 0; o < r->n_out; o++)
        any = graph_adjoint(g, tape_record_out(r)[o]) || any;
    for (int i = 0; i < r->n_in; i++)
        depends = depends || (t->entries[tape_record_in(r)[i]].flags & TAPE_STARTS);
    if (g->failed || !any || !depends)
        return;
    const uint32_t first = t->n_values, end = t->last_record;
    struct graph_part part;
    if (!tape_record_kind(r)->again(t, r, result) || !graph_part_begin(g, &part, first, end)) {
        g->failed = true;
        return;
    }
    flag_dependents(t, &part);
    g->record = r;
    for (int o = 0; o < r->n_out; o++) {
        const uint32_t adjoint = *adjoint_of(g, tape_record_out(r)[o]);
        if (adjoint && (t->entries[result[o]].flags & TAPE_STARTS))
            graph_add(g, result[o], ref_of(t, adjoint));
    }
    for (uint32_t k = 0; k < part.n_records && !g->failed; k++)
        graph_pullback(g, tape_record_at(t, part.record[k]));
    graph_part_end(g);
    tape_observer_read(t, r);
}

static enum tape_status graph_make(struct tape *t, uint32_t y, uint32_t seed, int n,
                                   const uint32_t *x, struct tape_site site, uint32_t *gradient)
{
    struct graph g = {.t = t};
    enum tape_status status = TAPE_OK;
    t->swept_from = site.pc;
    struct graph_part whole;
    if (!graph_part_begin(&g, &whole, 0, UINT32_MAX))
        return tape_fail_memory(t, site, tape_graph_op);
    for (uint32_t i = 1; i < t->n_values; i++)
        t->entries[i].flags &= ~(uint32_t)TAPE_STARTS;
    for (int i = 0; i < n; i++)
        t->entries[x[i]].flags |= TAPE_STARTS;
    flag_dependents(t, &whole);
    const struct tape_mark before = tape_mark_here(t);

    status = tape_release_verify(t, y, TAPE_STARTS, tape_graph_op, site);
    if (status == TAPE_OK && t->nonfinite)
        status = tape_nonfinite_begin(t, seed, tape_graph_op, site);
    if (status == TAPE_OK)
        status = tape_guard_verify(t, y, TAPE_STARTS, tape_graph_op, site);
    if (status == TAPE_OK)
        TAPE_PARTS_STATUS(status, graph_refuse, t, y, site);
    if (status == TAPE_OK && !seed)
        status = tape_ones(t, y, site, &seed);
    whole.adjoint[y] = seed;
    for (uint32_t k = 0; k < whole.n_records && status == TAPE_OK && !g.failed; k++)
        graph_pullback(&g, tape_record_at(t, whole.record[k]));
    for (int i = 0; i < n && status == TAPE_OK && !g.failed; i++) {
        gradient[i] = graph_adjoint(&g, x[i]);
        if (!gradient[i] && !g.failed)
            status = tape_zeros(t, x[i], site, &gradient[i]);
    }
    graph_part_end(&g);
    if (g.range)
        t->memory->release(g.range, t->memory->payload);
    if (g.sorted)
        t->memory->release(g.sorted, t->memory->payload);
    if (g.failed)
        status = t->error.code ? t->error.code : tape_fail_memory(t, site, tape_graph_op);
    if (status != TAPE_OK)
        tape_drop_behind(t, &before);
    return status;
}

enum tape_status tape_graph(struct tape *t, uint32_t y, uint32_t seed, int n, const uint32_t *x,
                            struct tape_site site, uint32_t *gradient)
{
    struct tape_graph_watch watch;
    enum tape_status status = TAPE_OK;
    TAPE_PARTS_STATUS(status, sweep_refuse, t, tape_graph_op, site);
    if (status != TAPE_OK)
        return status;
    tape_settle(t);
    tape_graph_begins(t, site, tape_graph_op, &watch);
    TAPE_DOING(t, TAPE_PHASE_FORWARD, site, tape_graph_op);
    tape_now_path(t, t->graph_row);
    status = graph_make(t, y, seed, n, x, site, gradient);
    tape_graph_ends(t, &watch);
    return status;
}

bool tape_graph_only(struct tape *t, uint32_t x, uint32_t end)
{
    struct graph g = {.t = t};
    struct graph_part part;
    if (!graph_part_begin(&g, &part, x, end))
        return false;
    for (uint32_t i = 1; i < t->n_values; i++)
        t->entries[i].flags &= ~(uint32_t)TAPE_STARTS;
    t->entries[x].flags |= TAPE_STARTS;
    flag_dependents(t, &part);
    for (uint32_t i = 1; i < t->n_values; i++)
        if (!(t->entries[i].flags & TAPE_STARTS))
            t->entries[i].flags &= ~(uint32_t)TAPE_NEEDS_GRADIENT;
    graph_part_end(&g);
    return true;
}

enum tape_status tape_graph_within(struct tape *t, uint32_t y, uint32_t seed, int n,
                                   const uint32_t *x, struct tape_site site, uint32_t *gradient)
{
    /* The scratch of the derivative that is under way. */
    const uint32_t n_values = t->n_values;
    const uintptr_t swept_from = t->swept_from;
    bool *starts = t->memory->resize(NULL, n_values * sizeof *starts, t->memory->payload);
    if (!starts) {
        t->arena.refused = n_values;
        return tape_fail_memory(t, site, tape_graph_op);
    }
    for (uint32_t i = 0; i < n_values; i++)
        starts[i] = t->entries[i].flags & TAPE_STARTS;
    tape_settle(t);
    const enum tape_status status = graph_make(t, y, seed, n, x, site, gradient);
    for (uint32_t i = 0; i < t->n_values; i++) {
        uint32_t *flags = &t->entries[i].flags;
        *flags = (*flags & ~(uint32_t)TAPE_STARTS) |
                 (i < n_values && starts[i] ? (uint32_t)TAPE_STARTS : 0);
    }
    t->swept_from = swept_from;
    t->memory->release(starts, t->memory->payload);
    return status;
}
