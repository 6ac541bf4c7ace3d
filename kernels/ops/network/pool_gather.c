/* ops/network/pool_gather.c: elements by their numbers in planes; and elements added at their
 * numbers, the adjoint, also that of the maxima of windows.
 */
#include "dense.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "threads.h"

#include <string.h>

/* clang-format off */
#define GATHER_SAMPLE(rank_, x_extents, extents, size, axes)                                       \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {rank_, rank_},                         \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS extents}},                              \
     .low = {-1, 0}, .high = {1, size},                                                            \
     .n_attr = 1, .attr = {axes}}
/* clang-format on */
static const struct kernel_sample pool_gather_samples[] = {
    GATHER_SAMPLE(3, (2, 3, 4), (2, 2, 3), 12, 2),
    GATHER_SAMPLE(2, (3, 5), (3, 4), 5, 1),
    GATHER_SAMPLE(2, (1, 1), (1, 1), 1, 2),
    GATHER_SAMPLE(3, (0, 2, 2), (0, 2, 2), 4, 2),
};
KERNEL_SAMPLES_OF(pool_gather)

static int pool_gather_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], at = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "numbers") != 0)
        return KERNEL_REFUSED_DTYPE;
    bool fits = x->rank == at->rank && x->rank >= call->attr[0];
    for (int axis = 0; axis < x->rank - call->attr[0] && fits; axis++)
        fits = x->shape[axis] == at->shape[axis];
    if (!fits)
        return kernel_refuse_operands(call, ", ", "x and at differ in the last %lld axes alone",
                                      (long long)call->attr[0]);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int axis = 0; axis < x->rank; axis++)
        out->extent[axis] = at->shape[axis];
    return 0;
}

/* Planes of an image [size], of which `count` elements are taken, or to which they are added. */
struct planes {
    const void *from;
    const int64_t *at;
    void *to;
    int64_t planes, size, count;
    int dtype;
    bool accumulate;
};

static int parts_of_planes(const struct planes *all)
{
    const uint64_t elements = (uint64_t)(all->planes * (all->size + all->count));
    const uint64_t bytes = elements * kernel_dtype_bytes(all->dtype);
    const int parts = threads_parts(threads_ns(bytes, 2, 8));
    return parts < all->planes ? parts : (int)all->planes;
}

static void gather_part(void *of, int part, int parts)
{
    const struct planes *all = of;
    const int64_t end = all->planes * (part + 1) / parts, first = all->planes * part / parts;
    for (int64_t p = first, i = first * all->count; p < end; p++)
        for (int64_t k = 0; k < all->count; k++, i++) {
            if (all->dtype == KERNEL_F32)
                ((float *)all->to)[i] = ((const float *)all->from)[p * all->size + all->at[i]];
            else
                ((double *)all->to)[i] = ((const double *)all->from)[p * all->size + all->at[i]];
        }
}

static void scatter_part(void *of, int part, int parts)
{
    const struct planes *all = of;
    const size_t bytes = (size_t)all->size * kernel_dtype_bytes(all->dtype);
    const int64_t end = all->planes * (part + 1) / parts, first = all->planes * part / parts;
    for (int64_t p = first, i = first * all->count; p < end; p++) {
        if (!all->accumulate)
            memset((char *)all->to + (size_t)p * bytes, 0, bytes);
        for (int64_t k = 0; k < all->count; k++, i++) {
            if (all->dtype == KERNEL_F32)
                ((float *)all->to)[p * all->size + all->at[i]] += ((const float *)all->from)[i];
            else
                ((double *)all->to)[p * all->size + all->at[i]] += ((const double *)all->from)[i];
        }
    }
}

static int pool_gather_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    char *space = call->workspace;
    int64_t planes = 1;
    for (int axis = 0; axis < x->rank - call->attr[0]; axis++)
        planes *= x->shape[axis];
    struct planes all = {.to = y->data, .planes = planes, .dtype = y->dtype};
    all.from = dense_data(x, &space);
    all.at = dense_data(call->in[1], &space);
    all.size = planes > 0 ? x->size / planes : 0;
    all.count = planes > 0 ? y->size / planes : 0;
    threads_run(parts_of_planes(&all), gather_part, &all);
    return 0;
}

static void pool_gather_pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], in[] = {rule->adjoint[0], rule->in[1]};
    const int axes = (int)rule->attr[0];
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_pool_scatter, 2, in, axes, x->shape + x->rank - axes);
}

KERNEL_OP(pool_gather) = {
    .name = "pool_gather",
    KERNEL_IN("x", "at"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_INT}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 2,
    .depends = kernel_depends_moves,
    .depends_reads = 2,
    .shape = pool_gather_shape,
    .forward = pool_gather_forward,
    .pullback = pool_gather_pullback,
    .cost = kernel_cost_take,
    .workspace = dense_workspace,
    .sample = pool_gather_sample,
    .brief = "Elements by their numbers in planes, which are the last axes.",
    .shapes = "x [...,p...], at i64 [...,q...] -> [...,q...]",
    .formula = "y[...,i] = x[...,at[...,i]]",
    .derivative = "x'[...,k] += sum of y'[...,i] over the i with at[...,i] = k",
    .edges = "numbers are those that a pooling has found",
};

/* clang-format off */
#define SCATTER_SAMPLE(rank_, extents, size, count, ...)                                           \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {rank_, rank_},                         \
     .shape = {{KERNEL_EXTENTS extents}, {KERNEL_EXTENTS extents}},                                \
     .low = {-1, 0}, .high = {1, size},                                                            \
     .n_attr = count, .attr = {__VA_ARGS__}}
/* clang-format on */
static const struct kernel_sample pool_scatter_samples[] = {
    SCATTER_SAMPLE(3, (2, 2, 3), 12, 2, 3, 4),
    SCATTER_SAMPLE(2, (3, 4), 5, 1, 5),
    SCATTER_SAMPLE(2, (1, 1), 1, 2, 1, 1),
    SCATTER_SAMPLE(3, (0, 2, 2), 4, 2, 2, 2),
};
KERNEL_SAMPLES_OF(pool_scatter)

static int pool_scatter_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref g = call->in[0], at = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (kernel_require_i64(call, 1, "numbers") != 0)
        return KERNEL_REFUSED_DTYPE;
    if (g->rank < call->n_attr || !kernel_same_extents(g, at))
        return kernel_refuse_operands(call, ", ", "g and at must have one shape");
    kernel_shape_begin(out, g->dtype, g->rank);
    for (int axis = 0; axis < g->rank; axis++)
        out->extent[axis] = g->shape[axis];
    for (int k = 0; k < call->n_attr; k++)
        out->extent[g->rank - call->n_attr + k] = call->attr[k];
    return 0;
}

static int pool_scatter_forward(const struct kernel_call *call)
{
    struct kernel_array *y = call->out[0];
    char *space = call->workspace;
    int64_t size = 1;
    for (int k = 0; k < call->n_attr; k++)
        size *= call->attr[k];
    struct planes all = {.to = y->data, .dtype = y->dtype, .accumulate = call->accumulate};
    all.from = dense_data(call->in[0], &space);
    all.at = dense_data(call->in[1], &space);
    all.size = size;
    all.planes = size > 0 ? y->size / size : 0;
    all.count = all.planes > 0 ? call->in[0]->size / all.planes : 0;
    threads_run(parts_of_planes(&all), scatter_part, &all);
    return 0;
}

static void pool_scatter_pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    const int64_t axes = rule->n_attr;
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_pool_gather, 2, in, 1, &axes);
}

static void pool_scatter_depends(const struct kernel_call *call, int o, int i,
                                 struct kernel_depends *d)
{
    const int64_t axes = call->n_attr;
    (void)o;
    kernel_depends_sums(call, i, &kernel_op_pool_gather, 1, &axes, d);
}

KERNEL_OP(pool_scatter) = {
    .name = "pool_scatter",
    KERNEL_IN("g", "at"),
    KERNEL_ATTRS({"extents", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .saves_in = 2,
    .depends = pool_scatter_depends,
    .depends_reads = 2,
    .shape = pool_scatter_shape,
    .forward = pool_scatter_forward,
    .pullback = pool_scatter_pullback,
    .cost = kernel_cost_add,
    .workspace = dense_workspace,
    .sample = pool_scatter_sample,
    .brief = "Elements added at their numbers in planes of these extents.",
    .shapes = "g [...,p...], at i64 [...,p...] -> [...,extents]",
    .formula = "y[...,k] = sum of g[...,i] over the i with at[...,i] = k, k a number in the plane",
    .derivative = "g'[...,i] += y'[...,at[...,i]]",
    .edges = "numbers are those that a pooling has found",
};
