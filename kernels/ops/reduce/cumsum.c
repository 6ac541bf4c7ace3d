/* ops/reduce/cumsum.c: sums of all elements up to each along an axis.
 *
 * In f64 what each addition rounds off is summed beside (Knuth's TwoSum, see Ogita, Rump and
 * Oishi, SIAM J. Sci. Comput. 26 (2005), 1955-1988), off the critical path.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "reduction_samples.h"

#include <float.h>
#include <math.h>

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 5), -1, 1, 2, 1, 0),     AXES_SAMPLE(2, (3, 5), -1, 1, 2, 0, 0),
    AXES_SAMPLE(3, (2, 3, 4), -1, 1, 2, -2, 0), AXES_SAMPLE(3, (2, 3, 4), -1, 1, 2, 1, 1),
    AXES_SAMPLE(1, (9), -1, 1, 2, -1, 1),       AXES_SAMPLE(1, (1), -1, 1, 2, 0, 0),
    AXES_SAMPLE(2, (3, 0), -1, 1, 2, 1, 0),     AXES_SAMPLE(2, (0, 3), -1, 1, 2, 1, 1)};
KERNEL_SAMPLES(samples)

/* Two numbers for each element beside the axis where that is not the last, and x if it has gaps. */
static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    const struct kernel_around around = kernel_around_axis(x, axis);
    return kernel_move_space(x) + 2 * sizeof(double) * (size_t)around.inner;
}

/* n sums that begin at *y and go on by step, up or down. */
static void line_f32(int64_t n, float *y, const float *x, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i * step];
        y[i * step] = (float)sum;
    }
}

/* The sum of sum and *lost is the exact one but for rounding of *lost. */
static inline double add_exactly(double sum, double x, double *lost)
{
    const double next = sum + x, back = next - sum;
    *lost += (sum - (next - back)) + (x - back);
    return next;
}

/* Once a sum is not finite it stays so, and `lost` is NaN. */
static inline double rounded(double sum, double lost)
{
    return fabs(sum) <= DBL_MAX ? sum + lost : sum;
}

static void line_f64(int64_t n, double *y, const double *x, int64_t step)
{
    double sum = 0, lost = 0;
    for (int64_t i = 0; i < n; i++) {
        sum = add_exactly(sum, x[i * step], &lost);
        y[i * step] = rounded(sum, lost);
    }
}

/* n rows of `inner` sums side by side. */
static void rows_f32(int64_t n, int64_t inner, float *y, const float *x, int64_t step, double *sum)
{
    for (int64_t k = 0; k < inner; k++)
        sum[k] = 0;
    for (int64_t i = 0; i < n; i++, y += step, x += step)
        for (int64_t k = 0; k < inner; k++) {
            sum[k] += (double)x[k];
            y[k] = (float)sum[k];
        }
}

static void rows_f64(int64_t n, int64_t inner, double *restrict y, const double *restrict x,
                     int64_t step, double *restrict sum, double *restrict lost)
{
    for (int64_t k = 0; k < inner; k++)
        sum[k] = lost[k] = 0;
    for (int64_t i = 0; i < n; i++, y += step, x += step)
        for (int64_t k = 0; k < inner; k++) {
            sum[k] = add_exactly(sum[k], x[k], &lost[k]);
            y[k] = rounded(sum[k], lost[k]);
        }
}

static int forward(const struct kernel_call *call)
{
    struct kernel_array *const y = call->out[0];
    const int axis = kernel_part_axis(call, call->attr[0], y->rank), dtype = y->dtype;
    const struct kernel_around around = kernel_around_axis(y, axis);
    const int64_t n = around.extent, inner = around.inner;
    const int64_t step = call->attr[1] ? -inner : inner,
                  begin = call->attr[1] ? (n - 1) * inner : 0;
    char *const space = call->workspace;
    const void *const x = kernel_move_dense(call->in[0], space);
    double *const sum = (void *)(space + kernel_move_space(call->in[0]));
    for (int64_t o = 0; o < around.outer && y->size > 0; o++) {
        const int64_t at = o * n * inner + begin;
        void *const to = kernel_move_at(y->data, dtype, at);
        const void *const from = kernel_move_at(x, dtype, at);
        if (inner == 1 && dtype == KERNEL_F32)
            line_f32(n, to, from, step);
        else if (inner == 1)
            line_f64(n, to, from, step);
        else if (dtype == KERNEL_F32)
            rows_f32(n, inner, to, from, step, sum);
        else
            rows_f64(n, inner, to, from, step, sum, sum + inner);
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const int64_t attr[] = {rule->attr[0], !rule->attr[1]};
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate(rule, 0, &kernel_op_cumsum, 1, &rule->adjoint[0], 2, attr);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const unsigned each = call->out[0]->dtype == KERNEL_F32 ? 1 : 8;
    return (struct kernel_cost){.flops = each * (uint64_t)call->out[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(cumsum) = {
    .name = "cumsum",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"reverse", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .depends = kernel_depends_axes,
    .shape = kernel_part_shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Sums of the elements up to each along an axis, or from each on if reversed.",
    .shapes = "x [...,n,...] -> [...,n,...]",
    .formula = "y_i = sum of x_j over j <= i; reversed: over j >= i",
    .derivative = "x'_j += sum of y'_i over i >= j; reversed: over i <= j",
    .edges = "a negative axis counts from the end; what follows inf or NaN is inf or NaN; the "
             "rounding error does not grow with the number of terms",
    .source = "Ogita, Rump & Oishi (2005), doi:10.1137/030601818, Algorithm 4.1",
};
