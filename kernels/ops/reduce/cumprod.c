/* ops/reduce/cumprod.c: products of all elements up to each along an axis.
 *
 * The pullback never divides, so zeros among the factors are no exception.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "reduction_samples.h"

static const struct kernel_sample samples[] = {ONE_AXIS_SAMPLES(-1.5, 1.5),
                                               AXES_SAMPLE(2, (0, 3), -1, 1, 1, 1)};
KERNEL_SAMPLES(samples)

/* A running product for each element beside the axis, and x if it has gaps. */
static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    return kernel_move_space(x) + sizeof(double) * (size_t)kernel_around_axis(x, axis).inner;
}

/* n rows of `inner` products side by side, all kept in double precision. */
#define PRODUCTS(TYPE)                                                                             \
    static void run_##TYPE(int64_t n, int64_t inner, void *out, const void *in, double *product)   \
    {                                                                                              \
        TYPE *y = out;                                                                             \
        const TYPE *x = in;                                                                        \
        if (inner == 1) {                                                                          \
            double running = 1;                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                running *= (double)x[i];                                                           \
                y[i] = (TYPE)running;                                                              \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t k = 0; k < inner; k++)                                                        \
            product[k] = 1;                                                                        \
        for (int64_t i = 0; i < n; i++, x += inner, y += inner)                                    \
            for (int64_t k = 0; k < inner; k++) {                                                  \
                product[k] *= (double)x[k];                                                        \
                y[k] = (TYPE)product[k];                                                           \
            }                                                                                      \
    }
PRODUCTS(float)
PRODUCTS(double)

static int forward(const struct kernel_call *call)
{
    struct kernel_array *const y = call->out[0];
    const int axis = kernel_part_axis(call, call->attr[0], y->rank), dtype = y->dtype;
    const struct kernel_around around = kernel_around_axis(y, axis);
    char *const space = call->workspace;
    const void *const x = kernel_move_dense(call->in[0], space);
    double *const product = (void *)(space + kernel_move_space(call->in[0]));
    for (int64_t o = 0; o < around.outer && y->size > 0; o++) {
        const int64_t at = o * around.extent * around.inner;
        (dtype == KERNEL_F32 ? run_float : run_double)(around.extent, around.inner,
                                                       kernel_move_at(y->data, dtype, at),
                                                       kernel_move_at(x, dtype, at), product);
    }
    return 0;
}

/* With s_i = y'_i + x_(i+1) s_(i+1), what y' says of the product without the factors up to i, x_i'
 * is s_i times the product of the factors before it, which is y_(i-1). */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref x = rule->in[0], y = rule->out[0];
    if (rule->adjoint[0] == NULL || !kernel_needs(rule, 0))
        return;
    const int64_t axis = kernel_axis(rule->attr[0], x->rank);
    const int64_t n = x->shape[axis], back[] = {axis, 1}, part[] = {axis, 0, n > 0 ? n - 1 : 0, 1};
    int64_t widths[1 + 2 * KERNEL_MAX_RANK] = {kernel_attr_word(1)};
    widths[1 + 2 * axis] = n > 0 ? 1 : 0;
    const kernel_ref in[] = {x, rule->adjoint[0]};
    const kernel_ref behind = kernel_emit(rule, &kernel_op_linear_scan, 2, in, 2, back);
    const kernel_ref all_but_last = kernel_emit(rule, &kernel_op_slice, 1, &y, 4, part);
    const kernel_ref before =
        kernel_emit(rule, &kernel_op_pad, 1, &all_but_last, 1 + 2 * x->rank, widths);
    const kernel_ref product[] = {before, behind};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, product, 0, NULL);
}

KERNEL_OP(cumprod) = {
    .name = "cumprod",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}),
    .n_out = 1,
    .saves_in = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_part_shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .workspace = workspace,
    .sample = sample,
    .brief = "Products of the elements up to each along an axis.",
    .shapes = "x [...,n,...] -> [...,n,...]",
    .formula = "y_i = product of x_j over j <= i",
    .derivative = "x'_j += sum over i >= j of y'_i times the product of the other factors of y_i",
    .edges = "a negative axis counts from the end; the gradient is right where factors are 0; what "
             "has overflowed or vanished stays so; NaN where 0 meets inf",
};
