/* analyze_merge.c: see analyze_merge.h. */
#include "analyze_merge.h"

#include "base_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Unknown names come last. */
static int merge_compare_text(const char *a, const char *b)
{
    if (a == b)
        return 0;
    if (!a || !b)
        return a ? -1 : 1;
    return strcmp(a, b);
}

static int merge_compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static const char *first_op(const struct analyze_line *line)
{
    return line->ops.n > 0 ? line->ops.name[0] : NULL;
}

static int compare_files(const struct analyze_line *a, const struct analyze_line *b)
{
    int order = a->own - b->own;
    if (order == 0)
        order = merge_compare_text(a->file, b->file);
    if (order == 0 && !a->file)
        order = merge_compare_text(a->module, b->module);
    return order;
}

static int compare_by_op(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    return merge_compare_text(first_op(a), first_op(b));
}

/* The tape's own rows stay apart by op, as in the views below: they have no place. */
static int compare_by_file(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    int order = compare_files(a, b);
    return order == 0 && a->own ? compare_by_op(a, b) : order;
}

static int compare_by_module(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    int order = a->own - b->own;
    if (order == 0)
        order = a->own ? compare_by_op(a, b) : merge_compare_text(a->module, b->module);
    return order;
}

static int compare_by_function(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    int order = compare_files(a, b);
    if (order == 0)
        order = a->own ? compare_by_op(a, b) : merge_compare_text(a->function, b->function);
    if (order == 0 && !a->function && !a->own)
        order = merge_compare_u64(a->offset, b->offset);
    return order;
}

static int compare_by_line(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    int order = compare_files(a, b);
    if (order == 0 && a->own)
        return compare_by_op(a, b);
    if (order == 0)
        order = merge_compare_u64(a->line, b->line);
    if (order == 0)
        order = merge_compare_text(a->function, b->function);
    /* Without a file the line alone tells sites apart, and without that the address. */
    if (order == 0 && !a->file && a->line == 0)
        order = merge_compare_u64(a->offset, b->offset);
    return order;
}

static int compare_by_line_and_op(const void *x, const void *y)
{
    int order = compare_by_line(x, y);
    return order ? order : compare_by_op(x, y);
}

static int compare_by_line_op_and_shape(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    int order = compare_by_line_and_op(x, y);
    return order ? order : merge_compare_text(a->shape, b->shape);
}

static int compare_by_shape(const void *x, const void *y)
{
    const struct analyze_line *a = x, *b = y;
    int order = compare_by_op(x, y);
    return order ? order : merge_compare_text(a->shape, b->shape);
}

void analyze_names_add(struct analyze_names *a, const struct analyze_names *b)
{
    a->more |= b->more;
    for (unsigned i = 0; i < b->n; i++) {
        unsigned j = 0;
        while (j < a->n && strcmp(a->name[j], b->name[i]) != 0)
            j++;
        if (j < a->n)
            continue;
        if (a->n < ANALYZE_NAMES)
            a->name[a->n++] = b->name[i];
        else
            a->more = true;
    }
}

/* Each view's order. */
static int (*const compare[])(const void *, const void *) = {
    [ANALYZE_BY_LINE_AND_OP] = compare_by_line_and_op,
    [ANALYZE_BY_LINE_OP_AND_SHAPE] = compare_by_line_op_and_shape,
    [ANALYZE_BY_LINE] = compare_by_line,
    [ANALYZE_BY_FUNCTION] = compare_by_function,
    [ANALYZE_BY_OP] = compare_by_op,
    [ANALYZE_BY_FILE] = compare_by_file,
    [ANALYZE_BY_MODULE] = compare_by_module,
    [ANALYZE_BY_SHAPE] = compare_by_shape,
};

int analyze_compare(const struct analyze_line *a, const struct analyze_line *b, enum analyze_by by)
{
    return compare[by](a, b);
}

size_t analyze_merge(struct analyze_line *line, size_t n, enum analyze_by by)
{
    if (n == 0)
        return 0;
    qsort(line, n, sizeof *line, compare[by]);
    size_t kept = 0;
    for (size_t i = 1; i < n; i++) {
        struct analyze_line *last = &line[kept];
        if (compare[by](last, &line[i]) != 0) {
            line[++kept] = line[i];
            continue;
        }
        analyze_cost_add(&last->cost, &line[i].cost);
        analyze_names_add(&last->ops, &line[i].ops);
        analyze_names_add(&last->kept_by, &line[i].kept_by);
        if (last->shape != line[i].shape)
            last->shape = NULL;
        if (last->function_line == 0)
            last->function_line = line[i].function_line;
    }
    return kept + 1;
}

bool analyze_is_unlined(const struct analyze_line *line)
{
    return !line->own && !line->file && line->ops.n > 0;
}

void analyze_cost_add(struct analyze_cost *a, const struct analyze_cost *b)
{
#define X(name) a->name += b->name;
    ANALYZE_COST_MEMBERS(X)
#undef X
    a->byte_ns += b->byte_ns;
}

struct analyze_cost analyze_row_cost(const struct read_profile *profile, const struct read_row *row,
                                     bool peak)
{
    struct analyze_cost cost = {
#define X(name) .name = row->name,
        ROW_COUNTERS(X)
#undef X
            .untimed_calls = row->untimed ? row->calls : 0,
        .byte_ns = row->byte_ticks / profile->ticks_per_ns,
    };
    if (!peak)
        cost.peak_bytes = 0;
    return cost;
}

/* n looks have a standard error of sqrt(n). */
static double looks_error(uint64_t ns, double looks)
{
    return looks > 0 ? (double)ns / sqrt(looks) : 0;
}

double analyze_cost_forward_error(const struct analyze_cost *cost)
{
    return looks_error(cost->estimated_forward_ns, (double)cost->forward_looks);
}

double analyze_cost_backward_error(const struct analyze_cost *cost)
{
    return looks_error(cost->estimated_backward_ns,
                       (double)cost->backward_looks + READ_MODEL_LOOKS);
}

bool analyze_cost_is_estimate(const struct analyze_cost *cost)
{
    return cost->estimated_forward_ns > 0 || cost->estimated_backward_ns > 0;
}

bool analyze_cost_is_untimed(const struct analyze_cost *cost)
{
    return cost->untimed_calls > 0 && cost->forward_ns == 0;
}

bool analyze_cost_is_nothing(const struct analyze_cost *cost)
{
    uint64_t any = 0;
#define X(name) any |= cost->name;
    ANALYZE_COST_MEMBERS(X)
#undef X
    return any == 0;
}

struct analyze_cost analyze_total(const struct analyze_result *analysis)
{
    struct analyze_cost cost = analysis->sum;
    cost.forward_ns = analysis->total.forward_ns;
    cost.backward_ns = analysis->total.backward_ns;
    cost.recompute_ns = analysis->total.recompute_ns;
    cost.record_bytes = analysis->total.handed_out_bytes;
    cost.value_bytes = cost.adjoint_bytes = 0;
    cost.peak_bytes = analysis->total.peak_bytes;
    return cost;
}

uint64_t analyze_cost_tape_bytes(const struct analyze_cost *cost)
{
    return cost->record_bytes + cost->value_bytes + cost->adjoint_bytes;
}

uint64_t analyze_cost_waiting_other_ns(const struct analyze_cost *cost)
{
    return cost->waiting_ns - cost->waiting_io_ns - cost->waiting_lock_ns;
}

struct analyze_line *analyze_group(const struct analyze_result *analysis, enum analyze_by by,
                                   size_t *n)
{
    struct analyze_line *line = base_calloc(analysis->n_lines + 1, sizeof *line);
    if (analysis->n_lines > 0)
        memcpy(line, analysis->line, analysis->n_lines * sizeof *line);
    *n = analyze_merge(line, analysis->n_lines, by);
    return line;
}

void analyze_round_times(struct analyze_times *times, const struct read_profile *profile,
                         struct analyze_cost *cost)
{
    const uint64_t ticks[ANALYZE_TIMES] = {
        cost->forward_ticks,           cost->backward_ticks,           cost->recompute_ticks,
        cost->estimated_forward_ticks, cost->estimated_backward_ticks, cost->steady_backward_ticks};
    uint64_t *const ns[ANALYZE_TIMES] = {
        &cost->forward_ns,           &cost->backward_ns,           &cost->recompute_ns,
        &cost->estimated_forward_ns, &cost->estimated_backward_ns, &cost->steady_backward_ns};
    for (int k = 0; k < ANALYZE_TIMES; k++) {
        times->ticks[k] += ticks[k];
        const uint64_t now = read_profile_ns(profile, times->ticks[k]);
        *ns[k] += now - times->ns[k];
        times->ns[k] = now;
    }
}
