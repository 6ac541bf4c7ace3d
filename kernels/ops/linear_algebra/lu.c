/* lu.c: the LU decomposition that several ops keep for their pullbacks, and its adjoint. */
#include "lu.h"
#include "kernel_ops.h"
#include "lapack.h"
#include "matrix_rules.h"
#include "matrix_samples.h"
#include "op_rules.h"
#include "product_axes.h"

#include <math.h>
#include <string.h>

size_t lu_workspace(int64_t n)
{
    return dense_rounded((size_t)n * sizeof(int));
}

/* lu and exchanges of a. A matrix that has NaN or infinity gives NaN. Above 0: the pivot that is 0,
 * counted from 1; the decomposition is complete all the same. */
static int lu_factor(int dtype, const struct gemm_matrix *a, void *lu, void *exchanges,
                     void *workspace)
{
    const int64_t n = a->rows;
    int *const pivot = workspace;
    if (n == 0)
        return 0;
    matrix_pack(dtype, a, lu);
    const bool finite = matrix_finite(dtype, n * n, lu);
    const int info = finite ? lapack_lu(dtype, (int)n, lu, pivot) : 0;
    if (!finite)
        matrix_fill(dtype, n * n, lu, (double)NAN);
    for (int64_t i = 0; i < n; i++)
        kernel_store(dtype, exchanges, i, finite ? (double)pivot[i] - 1 : (double)i);
    return info;
}

void lu_exchange_rows(int dtype, int64_t n, const void *exchanges, bool backwards, int64_t k,
                      void *x)
{
    const int64_t bytes = k * (int64_t)kernel_dtype_bytes(dtype);
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = backwards ? n - 1 - step : step;
        const double other = kernel_load(dtype, exchanges, i);
        if (!(other >= 0 && other < (double)n) || (int64_t)other == i)
            continue;
        char *a = (char *)x + i * bytes, *b = (char *)x + (int64_t)other * bytes;
        char kept[256];
        for (int64_t at = 0, part; at < bytes; at += part) {
            part = bytes - at < (int64_t)sizeof kept ? bytes - at : (int64_t)sizeof kept;
            memcpy(kept, a + at, (size_t)part);
            memcpy(a + at, b + at, (size_t)part);
            memcpy(b + at, kept, (size_t)part);
        }
    }
}

void lu_solve(int dtype, int64_t n, const void *lu, const void *exchanges, int64_t k, void *x)
{
    const struct lapack_triangle l = {lu, (int)n, (int)n, false, false, false};
    const struct lapack_triangle u = {lu, (int)n, (int)n, true, false, true};
    lapack_solve_triangular(dtype, &l, false, (int)k, x, (int)k);
    lapack_solve_triangular(dtype, &u, false, (int)k, x, (int)k);
    lu_exchange_rows(dtype, n, exchanges, true, k, x);
}

/* -1 where the exchange is one, else 1. */
static double exchange_sign(int dtype, const void *exchanges, int64_t i)
{
    return kernel_load(dtype, exchanges, i) != (double)i ? -1 : 1;
}

double lu_determinant(int dtype, int64_t n, const void *lu, const void *exchanges)
{
    struct scaled_product product = product_one;
    for (int64_t i = 0; i < n; i++) {
        const double pivot = kernel_load(dtype, lu, i * n + i);
        product = product_times(product, product_of(exchange_sign(dtype, exchanges, i) * pivot));
    }
    return product_value(product);
}

double lu_sign(int dtype, int64_t n, const void *lu, const void *exchanges, double *log_abs)
{
    double sign = 1, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double pivot = kernel_load(dtype, lu, i * n + i);
        sum += log(fabs(pivot));
        sign *= exchange_sign(dtype, exchanges, i) * (pivot < 0 ? -1 : pivot > 0 ? 1 : pivot);
    }
    *log_abs = sign == 0 ? -(double)INFINITY : sum;
    return sign == 0 ? 0 : sign;
}

int lu_factor_all(const struct kernel_call *call, int at, bool refuse)
{
    const kernel_ref a = call->in[0];
    struct kernel_array *lu = call->out[at], *exchanges = call->out[at + 1];
    struct matrix_walk walk;
    if (lu->size == 0)
        return 0;
    matrix_walk_begin(&walk, lu, 2);
    const int from = matrix_walk_add(&walk, a, 2), to = matrix_walk_add(&walk, lu, 2);
    const int pivots = matrix_walk_add(&walk, exchanges, 1);
    do {
        const struct gemm_matrix matrix = matrix_at(a, walk.data[from]);
        const int info =
            lu_factor(a->dtype, &matrix, walk.data[to], walk.data[pivots], call->workspace);
        if (info > 0 && refuse)
            return kernel_refuse_operands(call, ", ",
                                          "%sa is singular: pivot %d of its LU "
                                          "decomposition is 0",
                                          matrix_place_of(&walk).text, info);
    } while (matrix_walk_next(&walk));
    return 0;
}

void lu_shapes(const struct kernel_call *call, int at, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0];
    kernel_shape_begin(&out[at], a->dtype, a->rank);
    out[at].same_as = 0;
    kernel_shape_begin(&out[at + 1], a->dtype, a->rank - 1);
    memcpy(out[at + 1].extent, a->shape, sizeof *a->shape * (size_t)(a->rank - 1));
}

int lu_numbers_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0];
    const int results = call->op->n_out - 2;
    if (matrix_require(call, 0, true) != 0)
        return -1;
    for (int o = 0; o < results; o++) {
        kernel_shape_begin(&out[o], a->dtype, a->rank - 2);
        memcpy(out[o].extent, a->shape, sizeof *a->shape * (size_t)(a->rank - 2));
    }
    lu_shapes(call, results, out);
    return 0;
}

size_t lu_numbers_workspace(const struct kernel_call *call)
{
    return lu_workspace(call->in[0]->shape[call->in[0]->rank - 1]);
}

int lu_numbers_forward(const struct kernel_call *call)
{
    const struct lu_numbers *const family = call->op->family;
    const int results = call->op->n_out - 2;
    const kernel_ref lu = call->out[results], exchanges = call->out[results + 1];
    const int64_t n = lu->shape[lu->rank - 1];
    struct matrix_walk walk;
    if (call->out[0]->size == 0)
        return 0;
    (void)lu_factor_all(call, results, false);
    matrix_walk_begin(&walk, call->out[0], 0);
    for (int o = 0; o < results; o++)
        (void)matrix_walk_add(&walk, call->out[o], 0);
    const int at_lu = matrix_walk_add(&walk, lu, 2), list = matrix_walk_add(&walk, exchanges, 1);
    do {
        double numbers[KERNEL_MAX_OUT];
        family->find(lu->dtype, n, walk.data[at_lu], walk.data[list], numbers);
        for (int o = 0; o < results; o++)
            kernel_store(lu->dtype, walk.data[o], 0, numbers[o]);
    } while (matrix_walk_next(&walk));
    return 0;
}

struct kernel_cost lu_numbers_cost(const struct kernel_call *call)
{
    const struct lu_numbers *const family = call->op->family;
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    const uint64_t each = 2 * n * n * n / 3 + family->flops * n;
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) * each,
                                .bytes = kernel_moved_bytes(call)};
}

bool lu_numbers_sample(int k, struct kernel_sample *sample)
{
    static const struct kernel_sample samples[] = {
        MATRIX_SAMPLE(2, (3, 3), 2),   MATRIX_SAMPLE(2, (5, 5), 2),    MATRIX_SAMPLE(2, (1, 1), 2),
        MATRIX_SAMPLE(2, (4, 4), -2),  MATRIX_SAMPLE(3, (2, 3, 3), 2), MATRIX_SAMPLE(2, (0, 0), 0),
        MATRIX_SAMPLE(3, (0, 2, 2), 0)};
    return kernel_sample_from(samples, (int)(sizeof samples / sizeof *samples), k, sample);
}

static kernel_ref exchange_rows(struct kernel_rule *rule, kernel_ref x, kernel_ref exchanges,
                                bool backwards)
{
    const kernel_ref in[] = {x, exchanges};
    const int64_t attr[] = {backwards};
    return kernel_emit(rule, &kernel_op_exchange_rows, 2, in, 1, attr);
}

kernel_ref lu_emit_solve_transposed(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges,
                                    kernel_ref b)
{
    b = exchange_rows(rule, b, exchanges, false);
    b = matrix_emit_solve_triangular(rule, lu, b, true, true, true);
    return matrix_emit_solve_triangular(rule, lu, b, false, true, false);
}

/* With l, u as stored: da P = dl u + l du, so dl = l low(q), du = up(q) u with q = l^-1 da P u^-1,
 * low with and up without the diagonal. Hence the adjoint of q is z = low(l^T g_l) + up(g_u u^T),
 * and that of a is l^-T z u^-T P^T. */
void lu_pullback(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges, kernel_ref g)
{
    if (g == NULL || !kernel_needs(rule, 0))
        return;
    const kernel_ref l = matrix_emit_weighed(rule, lu, 1, 1, 0);
    const kernel_ref u = matrix_emit_weighed(rule, lu, 0, 0, 1); /* less the ones */
    const kernel_ref g_l = matrix_emit_weighed(rule, g, 1, 1, 0);
    const kernel_ref g_u = matrix_emit_weighed(rule, g, 0, 0, 1);
    const kernel_ref low = matrix_emit_weighed(rule, matrix_emit_tn(rule, l, g_l), 1, 1, 0);
    const kernel_ref through_u =
        kernel_emit2(rule, &kernel_op_add, matrix_emit_nt(rule, g_u, u), g_u);
    const kernel_ref z =
        kernel_emit2(rule, &kernel_op_add, low, matrix_emit_weighed(rule, through_u, 0, 0, 1));
    kernel_ref x = matrix_emit_solve_triangular(rule, lu, z, false, true, false);
    x = kernel_emit1(rule, &kernel_op_transpose, x);
    x = matrix_emit_solve_triangular(rule, lu, x, true, false, true);
    x = exchange_rows(rule, x, exchanges, true);
    kernel_accumulate_value(rule, 0, kernel_emit1(rule, &kernel_op_transpose, x));
}

kernel_ref lu_emit_scaled_inverse(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges,
                                  kernel_ref g)
{
    int64_t shape[KERNEL_MAX_RANK];
    if (g == NULL)
        return NULL;
    memcpy(shape, g->shape, sizeof *shape * g->rank);
    shape[g->rank] = 1;
    kernel_ref x = kernel_emit_shape(rule, &kernel_op_reshape, g, g->rank + 1, shape);
    x = kernel_emit_shape(rule, &kernel_op_broadcast_to, x, exchanges->rank, exchanges->shape);
    x = kernel_emit1(rule, &kernel_op_diagonal_matrix, x);
    return lu_emit_solve_transposed(rule, lu, exchanges, x);
}

void lu_pullback_scaled_inverse(struct kernel_rule *rule, kernel_ref lu, kernel_ref exchanges,
                                kernel_ref g)
{
    if (g != NULL && kernel_needs(rule, 0))
        kernel_accumulate_value(rule, 0, lu_emit_scaled_inverse(rule, lu, exchanges, g));
}
