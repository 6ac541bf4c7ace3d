/* ops/reduce/off_diagonal.c: one copy of the elements along the axes for each of them, in which
 * that element is a constant; and sums of columns without the diagonal, the adjoint.
 *
 * Serve the second derivative of products. The axes of off_diagonal_sum are those of the result.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "product_axes.h"
#include "reduction_samples.h"

static const struct kernel_sample off_diagonal_samples[] = {
    AXES_SAMPLE(2, (3, 5), -1, 1, 2, 0, 1),
    AXES_SAMPLE(2, (3, 2), -1, 1, 1, 0),
    AXES_SAMPLE(3, (2, 3, 2), -1, 1, 3, 0, 0, -1),
    AXES_SAMPLE(0, (0), -1, 1, 1, 0),
    AXES_SAMPLE(1, (1), -1, 1, 1, 0),
    AXES_SAMPLE(1, (9), -1, 1, 2, 0, 0),
    AXES_SAMPLE(2, (3, 0), -1, 1, 2, 0, 1)};
KERNEL_SAMPLES_OF(off_diagonal)

static int off_diagonal_shape(const struct kernel_call *call, struct kernel_shape *out)
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

static int off_diagonal_forward(const struct kernel_call *call)
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
                const double v = kernel_load(x->dtype, x->data, outer[0].offset + inner.offset);
                kernel_store(y->dtype, y->data, outer[1].offset + row.offset + k, k == i ? c : v);
                k++;
            } while (product_walk_next(&inner));
            i++;
        } while (product_walk_next(&row));
        (void)product_walk_next(&outer[0]);
    } while (product_walk_next(&outer[1]));
    return 0;
}

static void off_diagonal_pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    int64_t axes[KERNEL_MAX_ATTR];
    for (int i = 1; i < rule->n_attr; i++)
        axes[i - 1] = kernel_axis(rule->attr[i], rule->in[0]->rank);
    kernel_accumulate_value(
        rule, 0, kernel_emit(rule, &kernel_op_off_diagonal_sum, 1, &g, rule->n_attr - 1, axes));
}

KERNEL_OP(off_diagonal) = {
    .name = "off_diagonal",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"c", KERNEL_ATTR_REAL}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .hidden = true,
    .shape = off_diagonal_shape,
    .forward = off_diagonal_forward,
    .pullback = off_diagonal_pullback,
    .sample = off_diagonal_sample,
    .brief = "Rows that repeat the elements along axes, with a constant on the diagonal.",
    .shapes = "x [...] of n elements along the axes -> [...,n]",
    .formula = "y_ik = x_k, c where k = i",
    .derivative = "x_k' += sum of y_ik' over i other than k",
};

static const struct kernel_sample off_diagonal_sum_samples[] = {
    AXES_SAMPLE(3, (3, 5, 5), -1, 1, 1, 1),       AXES_SAMPLE(3, (3, 2, 6), -1, 1, 0, 0),
    AXES_SAMPLE(4, (2, 3, 2, 4), -1, 1, 2, 0, 2), AXES_SAMPLE(1, (1), -1, 1, 0, 0),
    AXES_SAMPLE(2, (9, 9), -1, 1, 1, 0),          AXES_SAMPLE(3, (3, 0, 0), -1, 1, 1, 1)};
KERNEL_SAMPLES_OF(off_diagonal_sum)

/* The axes of the result; none are all but the operand's last one. */
static int axes_of(const struct kernel_call *call, unsigned *axes)
{
    if (kernel_axes(call, 0, axes) != 0)
        return -1;
    *axes &= (1U << (call->in[0]->rank - 1)) - 1;
    return 0;
}

static int off_diagonal_sum_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    unsigned axes;
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (x->rank < 1)
        return kernel_refuse_operands(call, "", "an axis of columns is wanted");
    if (axes_of(call, &axes) != 0)
        return -1;
    if (kernel_axes_count(x, axes) != x->shape[x->rank - 1])
        return kernel_refuse_operands(call, "", "%lld rows, and %lld columns",
                                      (long long)kernel_axes_count(x, axes),
                                      (long long)x->shape[x->rank - 1]);
    kernel_shape_begin(out, x->dtype, x->rank - 1);
    for (int axis = 0; axis < x->rank - 1; axis++)
        out->extent[axis] = x->shape[axis];
    return 0;
}

static int off_diagonal_sum_forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct product_walk outer[2], row, column;
    unsigned axes;
    if (axes_of(call, &axes) != 0)
        return -1;
    if (y->size == 0)
        return 0;
    const int64_t stride = x->strides[x->rank - 1];
    product_walk_begin(&outer[0], y->rank, y->shape, x->strides, ~axes);
    product_walk_begin(&row, y->rank, y->shape, x->strides, axes);
    product_walk_begin(&outer[1], y->rank, y->shape, y->strides, ~axes);
    product_walk_begin(&column, y->rank, y->shape, y->strides, axes);
    do {
        int64_t k = 0;
        do {
            double sum = 0;
            int64_t i = 0;
            do {
                if (i != k)
                    sum +=
                        kernel_load(x->dtype, x->data, outer[0].offset + row.offset + k * stride);
                i++;
            } while (product_walk_next(&row));
            kernel_store(y->dtype, y->data, outer[1].offset + column.offset, sum);
            k++;
        } while (product_walk_next(&column));
        (void)product_walk_next(&outer[0]);
    } while (product_walk_next(&outer[1]));
    return 0;
}

static void off_diagonal_sum_pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const int rank = rule->in[0]->rank;
    int64_t attr[KERNEL_MAX_ATTR] = {kernel_attr_word(0)};
    for (int i = 0; i < rule->n_attr; i++)
        attr[1 + i] = kernel_axis(rule->attr[i], rank);
    kernel_accumulate_value(
        rule, 0, kernel_emit(rule, &kernel_op_off_diagonal, 1, &g, 1 + rule->n_attr, attr));
}

KERNEL_OP(off_diagonal_sum) = {
    .name = "off_diagonal_sum",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .hidden = true,
    .shape = off_diagonal_sum_shape,
    .forward = off_diagonal_sum_forward,
    .pullback = off_diagonal_sum_pullback,
    .flops_per_element = 1,
    .sample = off_diagonal_sum_sample,
    .brief = "Sums of columns without the diagonal.",
    .shapes = "x [...,n] with n elements along the axes -> [...]",
    .formula = "y_k = sum of x_ik over i other than k",
    .derivative = "x_ik' += y_k' where i is not k",
};
