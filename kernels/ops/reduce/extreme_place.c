/* extreme_place.c: places of maxima and minima along an axis.
 *
 * May include: extreme_place.h, moves.h, op_rules.h, part.h, reduction_samples.h. Along the last
 * axis the value is found first, in lanes that are independent of each other, and then its place;
 * along another axis whole rows are compared with the best so far.
 */
#include "extreme_place.h"
#include "moves.h"
#include "op_rules.h"
#include "part.h"
#include "reduction_samples.h"

enum { LANES = 16 };

bool kernel_extreme_sample(int k, struct kernel_sample *sample)
{
    static const struct kernel_sample samples[] = {
        AXES_SAMPLE(2, (3, 5), -1, 1, 2, 1, 0), AXES_SAMPLE(2, (3, 5), -1, 1, 2, 0, 1),
        AXES_SAMPLE(3, (2, 3, 4), -1, 1, 2, -2, 0), AXES_SAMPLE(1, (37), -1, 1, 2, 0, 0),
        AXES_SAMPLE(2, (0, 3), -1, 1, 2, 1, 0)};
    return kernel_sample_from(samples, (int)(sizeof samples / sizeof *samples), k, sample);
}

int kernel_extreme_shape(const struct kernel_call *call, const char *what, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    if (axis < 0)
        return -1;
    if (x->shape[axis] == 0)
        return kernel_refuse_operands(call, "", "axis %d is empty and has no %s", axis, what);
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
size_t kernel_extreme_workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    return kernel_move_space(x) + sizeof(double) * (size_t)kernel_around_axis(x, axis).inner;
}

/* BEYOND is > or <. A NaN is beyond nothing, so that a lane keeps its number, and in `alien` it
 * stays. */
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

int kernel_extreme_place(const struct kernel_call *call, bool least)
{
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

struct kernel_cost kernel_extreme_cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = (uint64_t)call->in[0]->size,
                                .bytes = kernel_moved_bytes(call)};
}
