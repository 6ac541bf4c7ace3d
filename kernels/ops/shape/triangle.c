/* triangle.c: triangles of matrices.
 *
 * May include: triangle.h, moves.h, op_rules.h, reduction_samples.h.
 */
#include "triangle.h"
#include "moves.h"
#include "op_rules.h"
#include "reduction_samples.h"

#include <string.h>

bool kernel_triangle_sample(int k, struct kernel_sample *sample)
{
    static const struct kernel_sample samples[] = {
        AXES_SAMPLE(2, (4, 4), -1, 1, 1, 0),    AXES_SAMPLE(2, (3, 5), -1, 1, 1, 1),
        AXES_SAMPLE(2, (5, 3), -1, 1, 1, -2),   AXES_SAMPLE(3, (2, 3, 3), -1, 1, 1, -1),
        AXES_SAMPLE(2, (2, 3), -1, 1, 1, 3),    AXES_SAMPLE(2, (2, 3), -1, 1, 1, -2),
        AXES_SAMPLE(2, (3, 0), -1, 1, 1, 0),    AXES_SAMPLE(2, (1, 1), -1, 1, 1, 0),
        AXES_SAMPLE(3, (0, 2, 2), -1, 1, 1, 0), AXES_SAMPLE(2, (2, 3), -1, 1, 1, INT64_MIN),
    };
    return kernel_sample_from(samples, (int)(sizeof samples / sizeof *samples), k, sample);
}

int kernel_triangle_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (x->rank < 2)
        return kernel_refuse_operands(call, "", "a matrix [...,m,n] is wanted");
    kernel_shape_begin(out, x->dtype, x->rank);
    out->same_as = 0;
    return 0;
}

/* Columns of row i that come before the first one above the diagonal: 0 to n. */
static int64_t columns_below(int64_t i, int64_t n, int64_t diagonal)
{
    if (diagonal >= n)
        return n;
    if (diagonal < -i)
        return 0;
    return i + diagonal + 1 < n ? i + diagonal + 1 : n;
}

int kernel_triangle_copy(const struct kernel_call *call, bool upper)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    const int rank = x->rank, dtype = x->dtype;
    const int64_t m = x->shape[rank - 2], n = x->shape[rank - 1];
    const int64_t row = x->strides[rank - 2], column = x->strides[rank - 1];
    /* Above the diagonal of number `cut` all is beyond, or before, the triangle. */
    const int64_t cut = call->attr[0] - (upper && call->attr[0] > INT64_MIN ? 1 : 0);
    int64_t index[KERNEL_MAX_RANK] = {0}, from = 0;
    for (int64_t at = 0; at < y->size; at += m * n) {
        for (int64_t i = 0; i < m; i++) {
            const int64_t below = columns_below(i, n, cut), first = upper ? below : 0;
            const int64_t count = upper ? n - below : below, rest = upper ? 0 : below;
            char *const to = kernel_move_at(y->data, dtype, at + i * n);
            struct kernel_move move = {0};
            kernel_move_axis(&move, count, 1, column);
            kernel_move_run(&move, dtype, kernel_move_at(to, dtype, first),
                            kernel_move_at(x->data, dtype, from + i * row + first * column));
            memset(kernel_move_at(to, dtype, rest), 0,
                   (size_t)(n - count) * kernel_dtype_bytes(dtype));
        }
        for (int axis = rank - 3; axis >= 0; axis--) {
            from += x->strides[axis];
            if (++index[axis] < x->shape[axis])
                break;
            from -= index[axis] * x->strides[axis];
            index[axis] = 0;
        }
    }
    return 0;
}

void kernel_triangle_pullback(struct kernel_rule *rule)
{
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0))
        kernel_accumulate(rule, 0, rule->op, 1, &rule->adjoint[0], 1, rule->attr);
}

struct kernel_cost kernel_triangle_cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.bytes = kernel_moved_bytes(call)};
}
