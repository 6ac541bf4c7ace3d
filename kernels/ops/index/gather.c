/* ops/index/gather.c: elements by an array of indices along an axis.
 *
 * All indices are looked at before any element moves.
 */
#include "along_axis.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x", "indices"};

/* clang-format off */
#define GATHER_SAMPLE(r, n, m, most, axis)                                                         \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, r},                                 \
     .shape = {{KERNEL_EXTENTS n}, {KERNEL_EXTENTS m}},                                            \
     .low = {-1, 0}, .high = {1, most}, .n_attr = 1, .attr = {axis}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GATHER_SAMPLE(2, (3, 4), (3, 5), 4, 1),
    GATHER_SAMPLE(2, (4, 3), (2, 3), 4, 0),
    GATHER_SAMPLE(3, (2, 3, 2), (2, 4, 2), 3, -2),
    GATHER_SAMPLE(1, (5), (9), 5, 0),
    GATHER_SAMPLE(2, (3, 4), (3, 0), 4, 1),
    GATHER_SAMPLE(2, (0, 4), (0, 2), 4, 1),
    GATHER_SAMPLE(1, (0), (0), 1, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const int axis = kernel_along_shape(call, true);
    if (axis < 0)
        return axis;
    kernel_shape_begin(out, call->in[0]->dtype, call->in[0]->rank);
    out->same_as = 1;
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_axis(call->attr[0], x->rank);
    if (kernel_along_check(call, x->shape[axis]) != 0)
        return -1;
    kernel_along_take(call->out[0], x, call->in[1], axis);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    kernel_along_pullback(rule, &kernel_op_scatter_add, rule->in[1]);
}

KERNEL_OP(gather) = {
    .name = "gather",
    .in_names = names,
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .n_in = 2,
    .n_out = 1,
    .saves_in = 2,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .depends_reads = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_take,
    .sample = sample,
    .brief = "Elements along an axis by an array of indices, one for each element of the result.",
    .shapes = "x [...,n,...], indices i64 [...,m,...], equal beside the axis -> [...,m,...]",
    .formula = "y[...,i,...] = x[...,indices[...,i,...],...]",
    .derivative = "x'[...,indices[...,i,...],...] += y'[...,i,...]",
    .edges = "an index outside 0..n-1 is an error that names it and its position in row-major "
             "order; a negative axis counts from the end",
};
