/* ops/reduce/off_diagonal.c: one copy of the elements along the axes for each of them, in which
 * that element is a constant.
 *
 * Serves the second derivative of products.
 */
#include "kernel_ops.h"
#include "op_rules.h"
#include "product_axes.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {AXES_SAMPLE(2, (3, 5), -1, 1, 2, 0, 1),
                                               AXES_SAMPLE(2, (3, 2), -1, 1, 1, 0),
                                               AXES_SAMPLE(3, (2, 3, 2), -1, 1, 3, 0, 0, -1),
                                               AXES_SAMPLE(0, (0), -1, 1, 1, 0),
                                               AXES_SAMPLE(1, (1), -1, 1, 1, 0),
                                               AXES_SAMPLE(1, (9), -1, 1, 2, 0, 0),
                                               AXES_SAMPLE(2, (3, 0), -1, 1, 2, 0, 1)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    unsigned axes;
    if (kernel_require_float(call, 0) != 0 || kernel_axes(call, 1, &axes) != 0)
        return -1;
    if (x->rank == KERNEL_MAX_RANK)
        return kernel_refuse_operands(call, "", "at most %d axes", KERNEL_MAX_RANK - 1);
    kernel_shape_begin(out, x->dtype, x->rank + 1);
    for (int axis = 0; axis < x->rank; axis++)
        out->extent[axis] = x->shape[axis];
    out->extent[x->rank] = kernel_axes_count(x, axes);
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    const double c = kernel_attr_real(call->attr[0]);
    /* Rows of the output in the order of x's elements, and columns in that of one product's. */
    struct product_walk outer[2], inner, row;
    unsigned axes;
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    if (y->size == 0)
        return 0;
    product_walk_begin(&outer[0], x->rank, x->shape, x->strides, ~axes);
    product_walk_begin(&inner, x->rank, x->shape, x->strides, axes);
    product_walk_begin(&outer[1], x->rank, x->shape, y->strides, ~axes);
    product_walk_begin(&row, x->rank, x->shape, y->strides, axes);
    do {
        int64_t i = 0;
        do {
            int64_t k = 0;
            do {
                const double v = product_load(x->dtype, x->data, outer[0].offset + inner.offset);
                product_store(y->dtype, y->data, outer[1].offset + row.offset + k, k == i ? c : v);
                k++;
            } while (product_walk_next(&inner));
            i++;
        } while (product_walk_next(&row));
        (void)product_walk_next(&outer[0]);
    } while (product_walk_next(&outer[1]));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    int64_t axes[KERNEL_MAX_ATTR];
    for (int i = 1; i < rule->n_attr; i++)
        axes[i - 1] = rule->attr[i] < 0 ? rule->attr[i] + rule->in[0]->rank : rule->attr[i];
    kernel_accumulate_value(
        rule, 0, kernel_emit(rule, &kernel_op_off_diagonal_sum, 1, &g, rule->n_attr - 1, axes));
}

KERNEL_OP(off_diagonal) = {
    .name = "off_diagonal",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"c", KERNEL_ATTR_REAL}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .hidden = true,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .sample = sample,
    .brief = "Rows that repeat the elements along axes, with a constant on the diagonal.",
    .shapes = "x [...] of n elements along the axes -> [...,n]",
    .formula = "y_ik = x_k, c where k = i",
    .derivative = "x_k' += sum of y_ik' over i other than k",
};
