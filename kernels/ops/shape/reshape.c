/* ops/shape/reshape.c: the same elements in row-major order under another shape.
 *
 * A view where the operand is contiguous, else a copy.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 4), -1, 1, 3, 2, 2, 3), AXES_SAMPLE(2, (3, 4), -1, 1, 2, 6, -1),
    AXES_SAMPLE(0, (0), -1, 1, 2, 1, 1),       AXES_SAMPLE(1, (1), -1, 1, 0, 0),
    AXES_SAMPLE(2, (0, 4), -1, 1, 2, 3, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    int open = -1;
    int64_t known = 1;
    bool overflow = false;
    char wanted[192];
    if (call->n_attr > KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "at most %d axes", KERNEL_MAX_RANK);
    kernel_shape_begin(out, x->dtype, call->n_attr);
    for (int axis = 0; axis < call->n_attr; axis++) {
        const int64_t extent = call->attr[axis];
        out->extent[axis] = extent;
        if (extent == -1 && open < 0)
            open = axis;
        else if (extent < 0)
            return kernel_refuse_operands(call, "", "extent %lld of axis %d of %s is negative",
                                          (long long)extent, axis,
                                          kernel_describe_wanted(call, wanted, sizeof wanted));
        else
            overflow = __builtin_mul_overflow(known, extent, &known) || overflow;
    }
    if (open >= 0 && known > 0 && !overflow) {
        out->extent[open] = x->size / known;
        known *= out->extent[open];
    }
    if (overflow || known != x->size || (open >= 0 && out->extent[open] < 0))
        return kernel_refuse_operands(call, "", "%lld elements do not fill the new shape %s",
                                      (long long)x->size,
                                      kernel_describe_wanted(call, wanted, sizeof wanted));
    if (!x->contiguous)
        return 0;
    out->view_of = 0;
    (void)kernel_strides(out->rank, out->extent, kernel_dtype_bytes(x->dtype), out->stride);
    return 0;
}

/* Only where the operand is not contiguous: its elements in order, whatever the output's shape. */
static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_view view;
    if (x->dtype == KERNEL_I64) {
        int64_t *to = call->out[0]->data, index[KERNEL_MAX_RANK] = {0}, offset = 0;
        for (int64_t i = 0; i < x->size; i++) {
            to[i] = ((const int64_t *)x->data)[offset];
            for (int axis = x->rank - 1; axis >= 0; axis--) {
                offset += x->strides[axis];
                if (++index[axis] < x->shape[axis])
                    break;
                offset -= index[axis] * x->strides[axis];
                index[axis] = 0;
            }
        }
        return 0;
    }
    kernel_view_dense(&view, call->out[0]->data, x->dtype, x->rank, x->shape);
    kernel_elementwise(LOOP_copy, &view.array, 1, &x, NULL, false);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate_value(
            rule, 0,
            kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], x->rank, x->shape));
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.bytes = call->in[0]->contiguous ? 0 : kernel_moved_bytes(call)};
}

KERNEL_OP(reshape) = {
    .name = "reshape",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"shape", KERNEL_ATTR_SHAPE}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .sample = sample,
    .brief = "The same elements under another shape; one extent may be -1.",
    .shapes = "x [...] -> shape",
    .formula = "elements keep their row-major order",
    .derivative = "x' += y' in the shape of x",
};
