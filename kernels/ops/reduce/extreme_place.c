/* ops/reduce/extreme_place.c: argmax and argmin, places of extremes along an axis.
 *
 * Along the last axis the value is found first, in lanes that are independent of each other, and
 * then its place; along another axis whole rows are compared with the best so far.
 */
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "reduction_samples.h"

enum { LANES = 16 };

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (3, 5), -1, 1, 2, 1, 0), AXES_SAMPLE(2, (3, 5), -1, 1, 2, 0, 1),
    AXES_SAMPLE(3, (2, 3, 4), -1, 1, 2, -2, 0), AXES_SAMPLE(1, (37), -1, 1, 2, 0, 0),
    AXES_SAMPLE(2, (0, 3), -1, 1, 2, 1, 0)};
KERNEL_SAMPLES(samples)

/* What argmax and argmin differ in. */
struct extreme {
    const char *what;
    bool least;
};

static const struct extreme maximum = {"maximum", false}, minimum = {"minimum", true};

static const struct extreme *extreme_of(const struct kernel_call *call)
{
    return call->op->family;
}

static int extreme_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    if (x->shape[axis] == 0)
        return kernel_refuse_operands(call, "", "axis %d is empty and has no %s", axis,
                                      extreme_of(call)->what);
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            out->extent[rank++] = x->shape[i];
        else if (call->attr[1])
            out->extent[rank++] = 1;
    }
    kernel_shape_begin(out, KERNEL_I64, rank);
    return 0;
}

/* The best number of each line beside the axis, and x if it has gaps. */
static size_t extreme_workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    return kernel_move_space(x) + sizeof(double) * (size_t)kernel_around_axis(x, axis).inner;
}

/* BEYOND is > or <. A comparison with NaN is false, so a lane keeps its number; `alien` keeps the
 * NaN. */
#define EXTREME(TYPE, NAME, BEYOND)                                                                \
    static int64_t line_##NAME(int64_t n, const TYPE *x)                                           \
    {                                                                                              \
        TYPE lane[LANES], alien[LANES], best = x[0], none = 0;                                     \
        int64_t i = 0;                                                                             \
        for (int k = 0; k < LANES; k++) {                                                          \
            lane[k] = best;                                                                        \
            alien[k] = 0;                                                                          \
        }                                                                                          \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++) {                                                      \
                const TYPE v = x[i + k];                                                           \
                lane[k] = v BEYOND lane[k] ? v : lane[k];                                          \
                alien[k] = v == v ? alien[k] : v;                                                  \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            best = x[i] BEYOND best ? x[i] : best;                                                 \
            none = x[i] == x[i] ? none : x[i];                                                     \
        }                                                                                          \
        for (int k = 0; k < LANES; k++) {                                                          \
            best = lane[k] BEYOND best ? lane[k] : best;                                           \
            none = alien[k] == alien[k] ? none : alien[k];                                         \
        }                                                                                          \
        const bool any = none != none;                                                             \
        for (i = 0; any ? x[i] == x[i] : x[i] != best; i++)                                        \
            continue;                                                                              \
        return i;                                                                                  \
    }                                                                                              \
    static void rows_##NAME(int64_t n, int64_t inner, const TYPE *x, int64_t *place, TYPE *best)   \
    {                                                                                              \
        for (int64_t k = 0; k < inner; k++) {                                                      \
            best[k] = x[k];                                                                        \
            place[k] = 0;                                                                          \
        }                                                                                          \
        for (int64_t i = 1; i < n; i++) {                                                          \
            x += inner;                                                                            \
            for (int64_t k = 0; k < inner; k++) {                                                  \
                const bool first_alien = x[k] != x[k] && best[k] == best[k];                       \
                const bool better = x[k] BEYOND best[k] || first_alien;                            \
                best[k] = better ? x[k] : best[k];                                                 \
                place[k] = better ? i : place[k];                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void run_##NAME(const struct kernel_around *around, const void *in, int64_t *place,     \
                           void *best)                                                             \
    {                                                                                              \
        const TYPE *x = in;                                                                        \
        for (int64_t o = 0; o < around->outer; o++) {                                              \
            if (around->inner == 1)                                                                \
                place[o] = line_##NAME(around->extent, x);                                         \
            else                                                                                   \
                rows_##NAME(around->extent, around->inner, x, place + o * around->inner, best);    \
            x += around->extent * around->inner;                                                   \
        }                                                                                          \
    }
EXTREME(float, max_f32, >)
EXTREME(float, min_f32, <)
EXTREME(double, max_f64, >)
EXTREME(double, min_f64, <)

static int extreme_forward(const struct kernel_call *call)
{
    const bool least = extreme_of(call)->least;
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    const struct kernel_around around = kernel_around_axis(x, axis);
    const void *const data = kernel_move_dense(x, call->workspace);
    void *const best = (char *)call->workspace + kernel_move_space(x);
    int64_t *const place = call->out[0]->data;
    if (x->size == 0)
        return 0;
    if (x->dtype == KERNEL_F32)
        (least ? run_min_f32 : run_max_f32)(&around, data, place, best);
    else
        (least ? run_min_f64 : run_max_f64)(&around, data, place, best);
    return 0;
}

KERNEL_OP(argmax) = {
    .name = "argmax",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"keepdim", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .constant = true,
    .family = &maximum,
    .shape = extreme_shape,
    .forward = extreme_forward,
    .pullback = kernel_pullback_none,
    .flops_per_element = 1,
    .workspace = extreme_workspace,
    .sample = sample,
    .brief = "Place of the maximum along an axis, as i64.",
    .shapes = "x [...,n,...] -> i64, x without the axis, or with an extent of 1 there",
    .formula = "y = the first i with x_i the greatest",
    .derivative = "0: constant, no gradient flows",
    .edges = "the first of equal maxima; NaN counts as the maximum, so it is the first NaN where "
             "there is one; an empty axis is refused",
};

KERNEL_OP(argmin) = {
    .name = "argmin",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"axis", KERNEL_ATTR_INT}, {"keepdim", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .constant = true,
    .family = &minimum,
    .shape = extreme_shape,
    .forward = extreme_forward,
    .pullback = kernel_pullback_none,
    .flops_per_element = 1,
    .workspace = extreme_workspace,
    .sample = sample,
    .brief = "Place of the minimum along an axis, as i64.",
    .shapes = "x [...,n,...] -> i64, x without the axis, or with an extent of 1 there",
    .formula = "y = the first i with x_i the least",
    .derivative = "0: constant, no gradient flows",
    .edges = "the first of equal minima; NaN counts as the minimum, so it is the first NaN where "
             "there is one; an empty axis is refused",
};
