/* ops/reduce/linear_scan.c: the recurrence h_i = b_i + a_i h_(i-1) along an axis, and its
 * transpose.
 *
 * Let A have a_i in row i and column i - 1. Then h = (1 - A)^-1 b. The reversed op gives (1 - A)^-T
 * b, that is h_i = b_i + a_(i+1) h_(i+1). So each is the pullback of the other in b.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"

/* clang-format off */
#define SCAN_SAMPLE(r, n, ...)                                                                     \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {r, r},                                 \
     .shape = {{KERNEL_EXTENTS n}, {KERNEL_EXTENTS n}},                                            \
     .low = {-1.5, -1}, .high = {1.5, 1}, .n_attr = 2, .attr = {__VA_ARGS__}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    SCAN_SAMPLE(2, (3, 5), 1, 0), SCAN_SAMPLE(2, (3, 5), 0, 1), SCAN_SAMPLE(3, (2, 3, 2), 1, 0),
    SCAN_SAMPLE(1, (6), -1, 1),   SCAN_SAMPLE(1, (1), 0, 0),    SCAN_SAMPLE(2, (3, 0), 1, 0),
    SCAN_SAMPLE(2, (0, 3), 1, 1), SCAN_SAMPLE(1, (2), 0, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0], b = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0 ||
        kernel_part_axis(call, call->attr[0], a->rank) < 0)
        return -1;
    if (!kernel_same_extents(a, b))
        return kernel_refuse_operands(call, " and ", "the shapes differ");
    kernel_shape_begin(out, b->dtype, b->rank);
    out->same_as = 1;
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    return kernel_move_space(call->in[0]) + kernel_move_space(call->in[1]);
}

/* Rows of `inner` recurrences side by side; row i takes the factor at a, `step` apart. */
#define SCAN_RUN(TYPE)                                                                             \
    static void run_##TYPE(int64_t n, int64_t inner, void *out, const void *factor,                \
                           const void *term, int64_t step)                                         \
    {                                                                                              \
        TYPE *h = out;                                                                             \
        const TYPE *a = factor, *b = term;                                                         \
        if (inner == 1) {                                                                          \
            TYPE last = h[0] = b[0];                                                               \
            for (int64_t i = 1; i < n; i++)                                                        \
                h[i * step] = last = b[i * step] + a[i * step] * last;                             \
            return;                                                                                \
        }                                                                                          \
        for (int64_t k = 0; k < inner; k++)                                                        \
            h[k] = b[k];                                                                           \
        for (int64_t i = 1; i < n; i++) {                                                          \
            a += step, b += step, h += step;                                                       \
            for (int64_t k = 0; k < inner; k++)                                                    \
                h[k] = b[k] + a[k] * h[k - step];                                                  \
        }                                                                                          \
    }
SCAN_RUN(float)
SCAN_RUN(double)

static int forward(const struct kernel_call *call)
{
    struct kernel_array *const y = call->out[0];
    const int axis = kernel_part_axis(call, call->attr[0], y->rank), dtype = y->dtype;
    const struct kernel_around around = kernel_around_axis(y, axis);
    const int64_t n = around.extent, inner = around.inner;
    const bool reverse = call->attr[1] != 0;
    char *const space = call->workspace;
    const void *const a = kernel_move_dense(call->in[0], space);
    const void *const b = kernel_move_dense(
        call->in[1], kernel_behind(space, (int64_t)kernel_move_space(call->in[0])));
    for (int64_t o = 0; o < around.outer && y->size > 0; o++) {
        const int64_t at = o * n * inner + (reverse ? (n - 1) * inner : 0);
        const int64_t factor = at + (reverse && n > 1 ? inner : 0);
        (dtype == KERNEL_F32 ? run_float : run_double)(
            n, inner, kernel_move_at(y->data, dtype, at), kernel_move_at(a, dtype, factor),
            kernel_move_at(b, dtype, at), reverse ? -inner : inner);
    }
    return 0;
}

/* x moved on by one along the axis, with 0 at the beginning. */
static kernel_ref moved_on(struct kernel_rule *rule, kernel_ref x, int64_t axis)
{
    if (x == NULL)
        return NULL;
    const int64_t n = x->shape[axis], cut = n > 0 ? n - 1 : 0, begin = n > 0 ? 1 : 0;
    const int64_t part[] = {axis, 0, cut, 1}, whole[] = {axis, begin, 1, n};
    const kernel_ref all_but_last = kernel_emit(rule, &kernel_op_slice, 1, &x, 4, part);
    return kernel_emit(rule, &kernel_op_slice_add, 1, &all_but_last, 4, whole);
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref a = rule->in[0], h = rule->out[0];
    if (rule->adjoint[0] == NULL)
        return;
    const int64_t axis = kernel_axis(rule->attr[0], a->rank);
    const bool reverse = rule->attr[1] != 0;
    const int64_t back[] = {axis, !reverse};
    const kernel_ref in[] = {a, rule->adjoint[0]};
    const kernel_ref term = kernel_emit(rule, &kernel_op_linear_scan, 2, in, 2, back);
    kernel_accumulate_value(rule, 1, term);
    if (!kernel_needs(rule, 0))
        return;
    const kernel_ref product[] = {reverse ? moved_on(rule, term, axis) : term,
                                  reverse ? h : moved_on(rule, h, axis)};
    kernel_accumulate(rule, 0, &kernel_op_mul, 2, product, 0, NULL);
}

KERNEL_OP(linear_scan) = {
    .name = "linear_scan",
    KERNEL_IN("a", "b"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"reverse", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 1,
    .saves_out = 1,
    .depends = kernel_depends_axes,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 2,
    .workspace = workspace,
    .sample = sample,
    .brief = "Linear recurrence along an axis; reversed it is the transposed one.",
    .shapes = "a [...,n,...], b [...,n,...] -> [...,n,...]",
    .formula = "y_i = b_i + a_i y_(i-1), y_0 = b_0; reversed: y_i = b_i + a_(i+1) y_(i+1)",
    .derivative = "b' += r, the reversed recurrence of y'; a'_i += r_i y_(i-1)",
};
