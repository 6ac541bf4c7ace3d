/* ops/shape/broadcast_to.c: repeats an array along new axes and along axes of extent 1.
 *
 * Always a view, with strides of 0.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(1, (4), -1, 1, 2, 3, 4),       AXES_SAMPLE(0, (0), -1, 1, 2, 2, 3),
    AXES_SAMPLE(2, (3, 1), -1, 1, 3, 2, 3, 5), AXES_SAMPLE(1, (1), -1, 1, 1, 0),
    AXES_SAMPLE(2, (0, 3), -1, 1, 3, 2, 0, 3),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    const int rank = call->n_attr;
    int64_t dense[KERNEL_MAX_RANK];
    char wanted[192];
    if (rank > KERNEL_MAX_RANK || rank < x->rank)
        return kernel_refuse_operands(call, "", "%d axes do not become the %d of %s", x->rank, rank,
                                      kernel_describe_wanted(call, wanted, sizeof wanted));
    kernel_shape_begin(out, x->dtype, rank);
    out->view_of = 0;
    for (int axis = 0; axis < rank; axis++) {
        const int from = axis - (rank - x->rank);
        const int64_t extent = from < 0 ? 1 : x->shape[from];
        out->extent[axis] = call->attr[axis];
        if (extent != 1 && extent != call->attr[axis])
            return kernel_refuse_operands(call, "", "extent %lld does not become %lld of %s",
                                          (long long)extent, (long long)call->attr[axis],
                                          kernel_describe_wanted(call, wanted, sizeof wanted));
        out->stride[axis] = from < 0 || extent == 1 ? 0 : x->strides[from];
    }
    if (kernel_strides(rank, out->extent, kernel_dtype_bytes(x->dtype), dense) < 0)
        return kernel_refuse_operands(call, "",
                                      "an extent of %s is negative, or the size overflows",
                                      kernel_describe_wanted(call, wanted, sizeof wanted));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL)
        kernel_accumulate_value(rule, 0, rule->adjoint[0]);
}

KERNEL_OP(broadcast_to) = {
    .name = "broadcast_to",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"shape", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = kernel_forward_view,
    .pullback = pullback,
    .cost = kernel_cost_view,
    .sample = sample,
    .brief = "Repetition along new axes and axes of extent 1, as a view.",
    .shapes = "x [...] -> shape",
    .formula = "y = x, broadcast",
    .derivative = "x' += y' summed over the repeated axes",
};
