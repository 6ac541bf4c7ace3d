/* ops/linear_algebra/gap_quotient.c: the symmetric or antisymmetric part of a matrix, divided by
 * differences or sums of given values: what adjoints of eigenvectors and singular vectors are made
 * of.
 *
 * If the divisor is within rounding of 0 the quotient would be arbitrary. It is NaN then, or 0
 * where the dividend is 0.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <float.h>
#include <math.h>

/* clang-format off */
#define GAP_SAMPLE(rank_m, extents_m, rank_w, extents_w, sums, symmetric)                          \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_m, rank_w},                       \
     .shape = {{KERNEL_EXTENTS extents_m}, {KERNEL_EXTENTS extents_w}},                            \
     .low = {-1, 0.5}, .high = {1, 1.5}, .diagonal = {0, 2}, .n_attr = 2, .attr = {sums, symmetric}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GAP_SAMPLE(2, (3, 3), 1, (3), 0, 0),       GAP_SAMPLE(2, (3, 3), 1, (3), 0, 1),
    GAP_SAMPLE(2, (3, 3), 1, (3), 1, 0),       GAP_SAMPLE(2, (3, 3), 1, (3), 1, 1),
    GAP_SAMPLE(3, (2, 2, 2), 2, (2, 2), 0, 0), GAP_SAMPLE(2, (1, 1), 1, (1), 0, 0),
    GAP_SAMPLE(2, (0, 0), 1, (0), 0, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref m = call->in[0], w = call->in[1];
    if (matrix_require(call, 0, true) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    bool fits = w->rank == m->rank - 1;
    for (int axis = 0; fits && axis < w->rank; axis++)
        fits = w->shape[axis] == m->shape[axis];
    if (!fits)
        return kernel_refuse_operands(call, ", ", "m [...,n,n] and w [...,n] are wanted");
    return kernel_shape_same(call, out);
}

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref m = call->in[0];
    const int64_t n = m->shape[m->rank - 1];
    return matrix_bytes(m->dtype, n * n);
}

static double quotient(double a, double b, double divisor, double sign, double least)
{
    if (!(fabs(divisor) <= least))
        return (a + sign * b) / 2 / divisor;
    return a == 0 && b == 0 ? 0 : (double)NAN;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref m = call->in[0], w = call->in[1];
    struct kernel_array *y = call->out[0];
    const bool sums = call->attr[0] != 0;
    const double sign = call->attr[1] != 0 ? 1 : -1;
    const int dtype = m->dtype;
    const int64_t n = m->shape[m->rank - 1], stride = w->strides[w->rank - 1];
    void *const dense = call->workspace;
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int at_m = matrix_walk_add(&walk, m, 2), at_w = matrix_walk_add(&walk, w, 1);
    const int at_y = matrix_walk_add(&walk, y, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(m, walk.data[at_m]);
        const void *const values = walk.data[at_w];
        double most = 0;
        for (int64_t i = 0; i < n; i++)
            most = matrix_greater(most, fabs(kernel_load(dtype, values, i * stride)));
        const double least =
            (double)n * most * (dtype == KERNEL_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
        matrix_pack(dtype, &matrix, dense);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const double wi = kernel_load(dtype, values, i * stride);
                const double wj = kernel_load(dtype, values, j * stride);
                const double a = kernel_load(dtype, dense, i * n + j);
                const double b = kernel_load(dtype, dense, j * n + i);
                double q = 0;
                if (i != j || (sums && sign > 0))
                    q = quotient(a, b, sums ? wj + wi : wj - wi, sign, least);
                kernel_store(dtype, walk.data[at_y], i * n + j, q);
            }
    } while (matrix_walk_next(&walk));
    return 0;
}

/* Sum over the last axis but one, or over the last one: [...,n]. */
static kernel_ref sum_over(struct kernel_rule *rule, kernel_ref x, int64_t axis)
{
    const int64_t attr[] = {0, axis};
    return kernel_emit(rule, &kernel_op_sum, 1, &x, 2, attr);
}

static void pullback(struct kernel_rule *rule)
{
    const bool sums = rule->attr[0] != 0;
    const int64_t back[] = {sums, sums ? rule->attr[1] : !rule->attr[1]};
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref p = kernel_emit(rule, &kernel_op_gap_quotient, 2, in, 2, back);
    kernel_accumulate_value(rule, 0, p);
    if (!kernel_needs(rule, 1))
        return;
    const kernel_ref h = kernel_emit2(rule, &kernel_op_mul, rule->out[0], p);
    const kernel_ref rows = sum_over(rule, h, -1), columns = sum_over(rule, h, -2);
    const kernel_ref minus_columns = kernel_emit1(rule, &kernel_op_neg, columns);
    kernel_accumulate_value(rule, 1, minus_columns);
    kernel_accumulate_value(rule, 1, sums ? kernel_emit1(rule, &kernel_op_neg, rows) : rows);
}

KERNEL_OP(gap_quotient) = {
    .name = "gap_quotient",
    KERNEL_IN("m", "w"),
    KERNEL_ATTRS({"sums", KERNEL_ATTR_FLAG}, {"symmetric", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 2,
    .saves_out = 1,
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 7,
    .workspace = workspace,
    .sample = sample,
    .brief = "Symmetric or antisymmetric part of a matrix over differences or sums of values.",
    .shapes = "m [...,n,n], w [...,n] -> [...,n,n]",
    .formula =
        "y_ij = (m_ij + s m_ji) / (2 (w_j - w_i)), or / (2 (w_j + w_i)) where sums; s = 1 if "
        "symmetric, else -1; 0 for i = j unless sums and symmetric",
    .derivative = "m' += p, the same function of y' (with the other s unless sums); with h = y p, "
                  "w_k' += sum_j h_kj - sum_i h_ik, or minus both where sums",
    .edges = "where the divisor is at most n epsilon max |w|: 0 if m_ij and m_ji are 0, else NaN",
};
