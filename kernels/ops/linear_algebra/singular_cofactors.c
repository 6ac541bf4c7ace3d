/* ops/linear_algebra/singular_cofactors.c: the gradient of a determinant, put right where the
 * matrix is singular.
 *
 * det a a^-T is the matrix of cofactors, which exists where a^-1 does not. With a P = l u of lu.h
 * it is det P times cof(l) u^-T P^T. l is decomposed once more, with complete pivoting: then only
 * the last pivot is 0 if the rank is n-1, and the one before is 0 as well, as are all cofactors, if
 * it is less. Serves the pullback of det.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lu.h"
#include "op_rules.h"

#include <math.h>

/* clang-format off */
#define COFACTORS_SAMPLE(rank_x, extents_x, rank_p, extents_p, extents_g)                          \
    {.n_in = 4, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},                         \
     .rank = {rank_x, (rank_x) - 2, rank_x, rank_p},                                               \
     .shape = {{KERNEL_EXTENTS extents_x}, {KERNEL_EXTENTS extents_g},                             \
               {KERNEL_EXTENTS extents_x}, {KERNEL_EXTENTS extents_p}},                            \
     .low = {-1, -1, 0.5, 0}, .high = {1, 1, 2, 3}, .switches = 8, .n_attr = 1, .attr = {0}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    COFACTORS_SAMPLE(2, (3, 3), 1, (3), (0)), COFACTORS_SAMPLE(2, (1, 1), 1, (1), (0)),
    COFACTORS_SAMPLE(3, (4, 3, 3), 2, (4, 3), (4)), COFACTORS_SAMPLE(2, (0, 0), 1, (0), (0))};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0];
    for (int i = 0; i < 4; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (matrix_require(call, 0, true) != 0)
        return -1;
    if (call->in[1]->rank != x->rank - 2 || call->in[2]->rank != x->rank ||
        call->in[3]->rank != x->rank - 1)
        return kernel_refuse_operands(
            call, ", ", "x [...,n,n], g [...], lu [...,n,n] and exchanges [...,n] are wanted");
    return kernel_shape_same(call, out);
}

/* Which rows were exchanged, l, the result and u, all in double. */
static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int64_t n = x->shape[x->rank - 1];
    return matrix_bytes(KERNEL_F64, n) + 3 * matrix_bytes(KERNEL_F64, n * n);
}

static void rows_swap(int64_t n, double *a, int64_t i, int64_t j)
{
    for (int64_t k = 0; i != j && k < n; k++) {
        const double kept = a[i * n + k];
        a[i * n + k] = a[j * n + k];
        a[j * n + k] = kept;
    }
}

static void columns_swap(int64_t n, double *a, int64_t i, int64_t j)
{
    for (int64_t k = 0; i != j && k < n; k++) {
        const double kept = a[k * n + i];
        a[k * n + i] = a[k * n + j];
        a[k * n + j] = kept;
    }
}

/* Where the element of greatest magnitude is, from row and column k on. */
static int64_t greatest_from(int64_t n, const double *a, int64_t k)
{
    int64_t at = k * n + k;
    for (int64_t i = k; i < n; i++)
        for (int64_t j = k; j < n; j++)
            if (fabs(a[i * n + j]) > fabs(a[at]))
                at = i * n + j;
    return at;
}

/* y = cof(l) y, where l is overwritten by its decomposition: rows and columns exchanged it is the
 * product of a unit lower triangle and an upper one. */
static void cofactors_times(int64_t n, double *l, double *row_of, double *y)
{
    double product = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = greatest_from(n, l, k), row = at / n, column = at % n;
        product *= (row != k) != (column != k) ? -1 : 1;
        row_of[k] = (double)row;
        rows_swap(n, l, k, row);
        columns_swap(n, l, k, column);
        rows_swap(n, y, k, column);
        const double pivot = l[k * n + k];
        if (k < n - 1)
            product *= pivot;
        for (int64_t i = k + 1; pivot != 0 && i < n; i++) {
            const double factor = l[i * n + k] /= pivot;
            for (int64_t j = k + 1; j < n; j++)
                l[i * n + j] -= factor * l[k * n + j];
        }
    }
    if (product == 0) { /* a rank below n-1 */
        for (int64_t i = 0; i < n * n; i++)
            y[i] = 0;
        return;
    }
    const double last = l[n * n - 1];
    /* The cofactors of the upper triangle: the last row has no factor `last`, the others have. */
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < n; c++) {
            double sum = y[i * n + c];
            for (int64_t j = 0; j < i; j++)
                sum -= l[j * n + i] * y[j * n + c];
            y[i * n + c] = i < n - 1 ? sum / l[i * n + i] : sum;
        }
    for (int64_t i = 0; i < n * n; i++)
        y[i] *= i < n * (n - 1) ? product * last : product;
    for (int64_t i = n - 2; i >= 0; i--)
        for (int64_t c = 0; c < n; c++)
            for (int64_t j = i + 1; j < n; j++)
                y[i * n + c] -= l[j * n + i] * y[j * n + c];
    for (int64_t k = n - 1; k >= 0; k--)
        rows_swap(n, y, k, (int64_t)row_of[k]);
}

static bool is_singular(int dtype, int64_t n, const struct gemm_matrix *lu)
{
    for (int64_t i = 0; i < n; i++)
        if (kernel_load(dtype, lu->data, i * (lu->row_stride + lu->column_stride)) == 0)
            return true;
    return false;
}

/* out = g times the cofactors of a. */
static void cofactors(int dtype, int64_t n, const struct gemm_matrix *lu,
                      const struct gemm_matrix *exchanges, double g, void *out, char *space)
{
    double *const row_of = (void *)space;
    double *const l = (void *)(space + matrix_bytes(KERNEL_F64, n));
    double *const y = (void *)((char *)l + matrix_bytes(KERNEL_F64, n * n));
    double *const u = (void *)((char *)y + matrix_bytes(KERNEL_F64, n * n));
    double sign = 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double x =
                kernel_load(dtype, lu->data, i * lu->row_stride + j * lu->column_stride);
            l[i * n + j] = j <= i ? x : 0;
            u[i * n + j] = x;
            y[i * n + j] = i == j;
        }
    for (int64_t i = 0; i < n; i++) {
        const int64_t other =
            (int64_t)kernel_load(dtype, exchanges->data, i * exchanges->row_stride);
        sign *= other != i ? -1 : 1;
        rows_swap(n, y, i, other);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            for (int64_t c = 0; c < n; c++)
                y[i * n + c] -= u[j * n + i] * y[j * n + c];
    cofactors_times(n, l, row_of, y);
    for (int64_t i = 0; i < n * n; i++)
        kernel_store(dtype, out, i, g * sign * y[i]);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], g = call->in[1], lu = call->in[2], exchanges = call->in[3];
    struct kernel_array *y = call->out[0];
    const int64_t n = x->shape[x->rank - 1];
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, x, 2), to = matrix_walk_add(&walk, y, 2);
    const int seed = matrix_walk_add(&walk, g, 0), at_lu = matrix_walk_add(&walk, lu, 2);
    const int list = matrix_walk_add(&walk, exchanges, 1);
    do {
        const struct gemm_matrix matrix = matrix_at(x, walk.data[from]);
        const struct gemm_matrix factors = matrix_at(lu, walk.data[at_lu]);
        const struct gemm_matrix row = {walk.data[list], n, 1,
                                        exchanges->strides[exchanges->rank - 1], 1};
        if (!is_singular(x->dtype, n, &factors))
            matrix_pack(x->dtype, &matrix, walk.data[to]);
        else if (call->attr[0])
            matrix_fill(x->dtype, n * n, walk.data[to], (double)NAN);
        else
            cofactors(x->dtype, n, &factors, &row, kernel_load(x->dtype, walk.data[seed], 0),
                      walk.data[to], call->workspace);
    } while (matrix_walk_next(&walk));
    return 0;
}

/* Where the matrix is singular a second derivative is not known: NaN. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1], rule->in[2], rule->in[3]};
    const int64_t unknown[] = {1};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_singular_cofactors, 4, in, 1, unknown);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(singular_cofactors) = {
    .name = "singular_cofactors",
    KERNEL_IN("x", "g", "lu", "exchanges"),
    KERNEL_ATTRS({"unknown", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 4,
    .reads_for = {4},
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Matrices x, but where the matrix with this LU decomposition is singular g times its "
             "cofactors, or NaN where `unknown`.",
    .shapes = "x [...,n,n], g [...], lu [...,n,n], exchanges [...,n] -> [...,n,n]",
    .formula = "y = x, or g cof(a) where a pivot is 0",
    .derivative = "x' += y', or NaN where a pivot is 0; none to the others",
};
