/* ops/complex/complex_div.c: quotients of complex numbers. */
#include "complex_pairs.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <float.h>
#include <math.h>

static const struct kernel_sample samples[] = {COMPLEX_SAMPLES2(0.4, 2)};
KERNEL_SAMPLES(samples)

/* Beyond LIMIT, or below its reciprocal, a squared length or a product may leave the range. */
#define LIMIT_32 0x1p50F
#define LIMIT_64 0x1p400

/* Whether a part is so far from 1, or is not finite; and whether one of n is. */
#define PARTS(type, suffix, abs)                                                                   \
    static int part_is_far_##suffix(type x)                                                        \
    {                                                                                              \
        const type m = abs(x);                                                                     \
        return (m != 0) & !((m < LIMIT_##suffix) & (m > 1 / LIMIT_##suffix));                      \
    }                                                                                              \
    static int parts_are_far_##suffix(int64_t n, const type *x)                                    \
    {                                                                                              \
        int far = 0;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            far |= part_is_far_##suffix(x[i]);                                                     \
        return far;                                                                                \
    }
PARTS(float, 32, fabsf)
PARTS(double, 64, fabs)

static bool part_is_far(const struct complex_block *b, double x)
{
    return (b->dtype == KERNEL_F32 ? part_is_far_32((float)x) : part_is_far_64(x)) != 0;
}

static bool block_is_far(const struct complex_block *b)
{
    const void *const rows[] = {b->re[0], b->im[0], b->re[1], b->im[1]};
    int far = 0;
    for (int k = 0; k < 4; k++)
        far |= b->dtype == KERNEL_F32 ? parts_are_far_32(b->n, rows[k])
                                      : parts_are_far_64(b->n, rows[k]);
    return far != 0;
}

/* (x + y r) t, where r = d / c and t = 1 / (c + d r), also if y r or r itself vanishes. */
static double smith_part(double x, double y, double c, double d, double r, double t)
{
    if (r == 0)
        return (x + d * (y / c)) * t;
    return y * r != 0 ? (x + y * r) * t : x * t + y * t * r;
}

/* q = a / b for finite numbers and b != 0: Smith's quotient, scaled against overflow and underflow
 * (Baudin and Smith, A robust complex division in Scilab (2012), arXiv:1210.4539). */
static void smith_divide(const double a[2], const double b[2], double q[2])
{
    static const double up = 0x1p107, small = 0x1p-968, big = DBL_MAX / 2;
    const double most_a = fmax(fabs(a[0]), fabs(a[1])), most_b = fmax(fabs(b[0]), fabs(b[1]));
    const double by_a = most_a >= big ? 0.5 : most_a <= small ? up : 1;
    const double by_b = most_b >= big ? 0.5 : most_b <= small ? up : 1;
    const bool turned = fabs(b[1]) > fabs(b[0]);
    const double x = a[turned] * by_a, y = a[!turned] * by_a;
    const double c = b[turned] * by_b, d = b[!turned] * by_b;
    const double r = d / c, t = 1 / (c + d * r);
    const double scale = by_b / by_a;
    q[0] = smith_part(x, y, c, d, r, t) * scale;
    q[1] = smith_part(y, -x, c, d, r, t) * (turned ? -scale : scale);
}

/* By the unit u = b / |b|: a conj(u) / |b|. */
static void block_divide(const struct complex_block *b)
{
    void *const length = b->spare[0], *const re = b->spare[1];
    complex_loop(b, LOOP_hypot, length, b->re[1], b->im[1]);
    complex_loop(b, LOOP_div, b->re[1], b->re[1], length);
    complex_loop(b, LOOP_div, b->im[1], b->im[1], length);
    complex_loop(b, LOOP_mul, re, b->re[0], b->re[1]);
    complex_loop(b, LOOP_mul, b->re[1], b->im[0], b->re[1]);
    complex_loop(b, LOOP_mul, b->im[0], b->im[0], b->im[1]);
    complex_loop(b, LOOP_mul, b->im[1], b->re[0], b->im[1]);
    complex_loop(b, LOOP_add, b->re[0], re, b->im[0]);
    complex_loop(b, LOOP_sub, b->im[0], b->re[1], b->im[1]);
    complex_loop(b, LOOP_div, b->re[0], b->re[0], length);
    complex_loop(b, LOOP_div, b->im[0], b->im[0], length);
}

static void block(const struct complex_block *b)
{
    const int64_t n = b->n;
    double a[2][COMPLEX_BLOCK][2];
    if (!block_is_far(b)) {
        block_divide(b);
        return;
    }
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < n; i++) {
            a[k][i][0] = kernel_load(b->dtype, b->re[k], i);
            a[k][i][1] = kernel_load(b->dtype, b->im[k], i);
        }
    block_divide(b);
    for (int64_t i = 0; i < n; i++) {
        double q[2];
        bool far = false, finite = true;
        for (int k = 0; k < 4; k++) {
            const double x = a[k / 2][i][k % 2];
            far = far || part_is_far(b, x);
            finite = finite && isfinite(x);
        }
        if (!far || !finite || (a[1][i][0] == 0 && a[1][i][1] == 0))
            continue;
        smith_divide(a[0][i], a[1][i], q);
        kernel_store(b->dtype, b->re[0], i, q[0]);
        kernel_store(b->dtype, b->im[0], i, q[1]);
    }
}

static int forward(const struct kernel_call *call)
{
    complex_map(call, block);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref g = rule->adjoint[0];
    if (g == NULL)
        return;
    const kernel_ref in[] = {g, kernel_emit1(rule, &kernel_op_complex_conj, rule->in[1])};
    if (!kernel_needs(rule, 1)) {
        kernel_accumulate(rule, 0, &kernel_op_complex_div, 2, in, 0, NULL);
        return;
    }
    const kernel_ref share = kernel_emit(rule, &kernel_op_complex_div, 2, in, 0, NULL);
    kernel_accumulate_value(rule, 0, share);
    const kernel_ref product = kernel_emit2(rule, &kernel_op_complex_mul_conj, share, rule->out[0]);
    kernel_accumulate(rule, 1, &kernel_op_neg, 1, &product, 0, NULL);
}

KERNEL_OP(complex_div) = {
    .name = "complex_div",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .saves_in = 2,
    .saves_out = 1,
    .depends = kernel_depends_rows,
    .shape = complex_shape_both,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 16,
    .workspace = complex_workspace,
    .sample = sample,
    .brief = "Quotient of complex numbers, pairs along the last axis.",
    .shapes = "a [...,2], b [...,2] -> [...,2], leading axes broadcast",
    .formula = "y = a / b",
    .derivative = "a' += y' / conj(b), b' -= y' conj(y) / conj(b)",
    .edges = "NaN where b is 0 or has an infinite part; finite operands neither overflow nor "
             "underflow on the way to a quotient that is representable",
    .source = "Baudin & Smith (2012), arXiv:1210.4539",
};
