/* ops/shape/triangle.c: tril and triu, the elements of matrices on one side of a diagonal.
 *
 * Each is its own adjoint.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "moves.h"
#include "op_rules.h"
#include "reduction_samples.h"

#include <string.h>

static const struct kernel_sample samples[] = {
    AXES_SAMPLE(2, (4, 4), -1, 1, 1, 0),    AXES_SAMPLE(2, (3, 5), -1, 1, 1, 1),
    AXES_SAMPLE(2, (5, 3), -1, 1, 1, -2),   AXES_SAMPLE(3, (2, 3, 3), -1, 1, 1, -1),
    AXES_SAMPLE(2, (2, 3), -1, 1, 1, 3),    AXES_SAMPLE(2, (2, 3), -1, 1, 1, -2),
    AXES_SAMPLE(2, (3, 0), -1, 1, 1, 0),    AXES_SAMPLE(2, (1, 1), -1, 1, 1, 0),
    AXES_SAMPLE(3, (0, 2, 2), -1, 1, 1, 0), AXES_SAMPLE(2, (2, 3), -1, 1, 1, INT64_MIN),
};
KERNEL_SAMPLES(samples)

static int triangle_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    if (x->rank < 2)
        return kernel_refuse_operands(call, "", "a matrix [...,m,n] is wanted");
    return kernel_shape_same(call, out);
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

static const bool lower = false, upper = true;

/* Output 0 = x on the diagonal and below it, or above it, and 0 elsewhere. */
static int triangle_forward(const struct kernel_call *call)
{
    const bool is_upper = *(const bool *)call->op->family;
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    const int rank = x->rank, dtype = x->dtype;
    const int64_t m = x->shape[rank - 2], n = x->shape[rank - 1];
    const int64_t row = x->strides[rank - 2], column = x->strides[rank - 1];
    /* The triangle ends, or begins, at the diagonal of number `cut`. */
    const int64_t cut = call->attr[0] - (is_upper && call->attr[0] > INT64_MIN ? 1 : 0);
    int64_t index[KERNEL_MAX_RANK] = {0}, from = 0;
    for (int64_t at = 0; at < y->size; at += m * n) {
        for (int64_t i = 0; i < m; i++) {
            const int64_t below = columns_below(i, n, cut), first = is_upper ? below : 0;
            const int64_t count = is_upper ? n - below : below, rest = is_upper ? 0 : below;
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

KERNEL_OP(tril) = {
    .name = "tril",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"diagonal", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = triangle_shape,
    .family = &lower,
    .forward = triangle_forward,
    .pullback = kernel_pullback_self,
    .sample = sample,
    .brief = "Matrices with 0 but on and below a diagonal.",
    .shapes = "x [...,m,n] -> [...,m,n]",
    .formula = "y_ij = x_ij where j <= i + diagonal, else 0",
    .derivative = "x'_ij += y'_ij where j <= i + diagonal",
    .edges =
        "diagonal 0 is the main one, positive ones lie above it, and it may lie outside of the "
        "matrix; what is left out does not matter, be it NaN",
};

KERNEL_OP(triu) = {
    .name = "triu",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"diagonal", KERNEL_ATTR_INT}),
    .n_out = 1,
    .any_dtype = true,
    .depends = kernel_depends_moves,
    .shape = triangle_shape,
    .family = &upper,
    .forward = triangle_forward,
    .pullback = kernel_pullback_self,
    .sample = sample,
    .brief = "Matrices with 0 but on and above a diagonal.",
    .shapes = "x [...,m,n] -> [...,m,n]",
    .formula = "y_ij = x_ij where j >= i + diagonal, else 0",
    .derivative = "x'_ij += y'_ij where j >= i + diagonal",
    .edges =
        "diagonal 0 is the main one, positive ones lie above it, and it may lie outside of the "
        "matrix; what is left out does not matter, be it NaN",
};
