/* ops/reduce/product_of_others.c: for each element the product of the others along axes.
 *
 * Each is the product of those before it times the product of those behind it, so nothing is
 * divided.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "product_axes.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {AXES_SAMPLE(2, (3, 5), -1.5, 1.5, 1, 1),
                                               AXES_SAMPLE(2, (3, 2), -1.5, 1.5, 0, 0),
                                               AXES_SAMPLE(3, (2, 3, 2), -1.5, 1.5, 2, 0, -1),
                                               AXES_SAMPLE(0, (0), -1, 1, 0, 0),
                                               AXES_SAMPLE(1, (1), -1, 1, 0, 0),
                                               AXES_SAMPLE(1, (7), -1.5, 1.5, 1, 0),
                                               AXES_SAMPLE(2, (3, 0), -1, 1, 1, 1)};
KERNEL_SAMPLES(samples)

/* A factor's place, and the product of those before it. */
struct factor_place {
    int64_t offset;
    struct scaled_product before;
};

static size_t workspace(const struct kernel_call *call)
{
    unsigned axes = 0;
    (void)kernel_axes(call, 0, &axes);
    return (size_t)kernel_axes_count(call->in[0], axes) * sizeof(struct factor_place);
}

static int forward(const struct kernel_call *call)
{
    struct kernel_array *y = call->out[0];
    struct product_walk outer, inner;
    struct factor_place *place = call->workspace;
    unsigned axes;
    if (kernel_axes(call, 0, &axes) != 0)
        return -1;
    if (y->size == 0)
        return 0;
    kernel_elementwise(LOOP_copy, y, 1, call->in, 0, false);
    product_walk_begin(&outer, y->rank, y->shape, y->strides, ~axes);
    product_walk_begin(&inner, y->rank, y->shape, y->strides, axes);
    do {
        struct scaled_product before = product_one, behind = product_one;
        for (int64_t k = 0; k < inner.count; k++) {
            place[k] = (struct factor_place){outer.offset + inner.offset, before};
            const double factor = kernel_load(y->dtype, y->data, place[k].offset);
            before = product_times(before, product_of(factor));
            (void)product_walk_next(&inner);
        }
        for (int64_t k = inner.count - 1; k >= 0; k--) {
            const double factor = kernel_load(y->dtype, y->data, place[k].offset);
            kernel_store(y->dtype, y->data, place[k].offset,
                         product_value(product_times(place[k].before, behind)));
            behind = product_times(behind, product_of(factor));
        }
    } while (product_walk_next(&outer));
    return 0;
}

/* Row i of a matrix has the factors with 1 in place of the i-th, and its product is y_i: so the
 * derivative of y is made of products of others again, along the matrix's rows. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    int64_t attr[KERNEL_MAX_ATTR] = {kernel_attr_word(1)}, column[KERNEL_MAX_RANK + 1];
    for (int i = 0; i < rule->n_attr; i++)
        attr[1 + i] = kernel_axis(rule->attr[i], x->rank);
    for (int axis = 0; axis < x->rank; axis++)
        column[axis] = x->shape[axis];
    column[x->rank] = 1;
    const kernel_ref matrix =
        kernel_emit(rule, &kernel_op_off_diagonal, 1, &x, 1 + rule->n_attr, attr);
    if (matrix == NULL)
        return;
    const int64_t last = x->rank;
    const kernel_ref others = kernel_emit(rule, &kernel_op_product_of_others, 1, &matrix, 1, &last);
    const kernel_ref g =
        kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], x->rank + 1, column);
    const kernel_ref share = kernel_emit2(rule, &kernel_op_mul, others, g);
    kernel_accumulate_value(
        rule, 0, kernel_emit(rule, &kernel_op_off_diagonal_sum, 1, &share, rule->n_attr, attr + 1));
}

KERNEL_OP(product_of_others) = {
    .name = "product_of_others",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_shape_axes,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 3,
    .workspace = workspace,
    .sample = sample,
    .brief = "For each element the product of the others along the axes.",
    .shapes = "x [...] -> [...]",
    .formula = "y_i = product of x_j over j other than i",
    .derivative = "x_j' += sum over i other than j of y_i' product of x_k over k other than i, j",
};
