/* ops/index/scatter_add.c: sums of elements by an array of indices along an axis.
 *
 * The adjoint of gather. Elements with equal indices are added in their order, so results are
 * reproducible.
 */
#include "along_axis.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"x", "indices"};

/* clang-format off */
#define SCATTER_SAMPLE(r, n, axis, extent)                                                         \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {r, r},                                 \
     .shape = {{KERNEL_EXTENTS n}, {KERNEL_EXTENTS n}},                                            \
     .low = {-1, 0}, .high = {1, extent}, .n_attr = 2, .attr = {axis, extent}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    SCATTER_SAMPLE(2, (3, 4), 1, 3),     SCATTER_SAMPLE(2, (4, 3), 0, 5),
    SCATTER_SAMPLE(3, (2, 3, 2), -2, 2), SCATTER_SAMPLE(1, (9), 0, 4),
    SCATTER_SAMPLE(2, (3, 0), 1, 2),     SCATTER_SAMPLE(2, (0, 2), 1, 3),
    SCATTER_SAMPLE(1, (0), 0, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    const int axis = kernel_along_shape(call, false);
    if (axis < 0)
        return axis;
    if (call->attr[1] < 0)
        return kernel_refuse_operands(call, ", ", "extent %lld is negative",
                                      (long long)call->attr[1]);
    kernel_shape_begin(out, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++)
        out->extent[i] = i == axis ? call->attr[1] : x->shape[i];
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_axis(call->attr[0], x->rank);
    if (kernel_along_check(call, call->attr[1]) != 0)
        return -1;
    if (!call->accumulate)
        kernel_fill(call->out[0], 0);
    kernel_along_add(call->out[0], x, call->in[1], axis);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    kernel_accumulate(rule, 0, &kernel_op_gather, 2, in, 1, rule->attr);
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    (void)o;
    kernel_depends_sums(call, i, &kernel_op_gather, 1, call->attr, d);
}

KERNEL_OP(scatter_add) = {
    .name = "scatter_add",
    .in_names = names,
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"extent", KERNEL_ATTR_INT}),
    .n_in = 2,
    .n_out = 1,
    .accumulates = true,
    .saves_in = 2,
    .depends = depends,
    .depends_reads = 2,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = kernel_cost_add,
    .sample = sample,
    .brief = "Zeros, with the elements of x added along an axis at their indices.",
    .shapes = "x [...,m,...], indices i64 [...,m,...] -> [...,extent,...]",
    .formula = "y[...,j,...] = sum of x[...,i,...] over the i with indices[...,i,...] = j",
    .derivative = "x'[...,i,...] += y'[...,indices[...,i,...],...]",
    .edges = "the sum of no element is 0; an index outside 0..extent-1 is an error that names it "
             "and its position in row-major order; a negative axis counts from the end",
};
