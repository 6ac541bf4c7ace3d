/* ops/reduce/prod.c: product over axes.
 *
 * The pullback never divides, so zeros among the factors are no exception.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"
#include "product_axes.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {REDUCTION_SAMPLES(-1.5, 1.5),
                                               AXES_SAMPLE(2, (3, 0), -1, 1, 2, 0, 1),
                                               AXES_SAMPLE(1, (33), 0.8, 1.25, 1, 0)};
KERNEL_SAMPLES(samples)

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct product_walk outer, inner;
    unsigned axes;
    if (kernel_axes(call, 1, &axes) != 0)
        return -1;
    product_walk_begin(&outer, x->rank, x->shape, x->strides, ~axes);
    product_walk_begin(&inner, x->rank, x->shape, x->strides, axes);
    for (int64_t i = 0; i < y->size; i++) {
        struct scaled_product product = product_one;
        for (int64_t k = 0; k < inner.count; k++) {
            const double factor = kernel_load(x->dtype, x->data, outer.offset + inner.offset);
            product = product_times(product, product_of(factor));
            (void)product_walk_next(&inner);
        }
        kernel_store(y->dtype, y->data, i, product_value(product));
        (void)product_walk_next(&outer);
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref others = kernel_emit(rule, &kernel_op_product_of_others, 1, rule->in,
                                          rule->n_attr - 1, rule->attr + 1);
    const kernel_ref in[] = {others, kernel_emit_kept(rule, rule->adjoint[0])};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
}

KERNEL_OP(prod) = {
    .name = "prod",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"keepdim", KERNEL_ATTR_FLAG}, {"axes", KERNEL_ATTR_AXES}),
    .n_out = 1,
    .saves_in = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_reduction_shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Product over axes.",
    .shapes = "x [...] -> x without the axes, or with extents of 1 there",
    .formula = "y = product over the axes of x",
    .derivative = "x' += y' times the product of the other factors",
    .edges =
        "the product of nothing is 1; right where factors are 0, and no partial product "
        "overflows or vanishes; NaN where 0 meets inf; a second derivative takes memory by the "
        "square of the number of factors, and x of at most 7 axes",
};
