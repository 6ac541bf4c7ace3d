/* ops/linear_algebra/logdet.c: logarithms of positive determinants.
 *
 * May include: lu.h, matrix_samples.h, op_rules.h, kernel_ops.h. The LU decomposition stays on the
 * tape as two hidden outputs.
 */
#include "kernel_ops.h"
#include "lu.h"
#include "matrix_samples.h"
#include "op_rules.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"a"};

static const struct kernel_sample samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 2),   MATRIX_SAMPLE(2, (5, 5), 2),    MATRIX_SAMPLE(2, (1, 1), 2),
    MATRIX_SAMPLE(2, (4, 4), -2),  MATRIX_SAMPLE(3, (2, 3, 3), 2), MATRIX_SAMPLE(2, (0, 0), 0),
    MATRIX_SAMPLE(3, (0, 2, 2), 0)};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref a = call->in[0];
    if (matrix_require(call, 0, true) != 0)
        return -1;
    for (int o = 0; o < 1; o++) {
        kernel_shape_begin(&out[o], a->dtype, a->rank - 2);
        memcpy(out[o].extent, a->shape, sizeof *a->shape * (size_t)(a->rank - 2));
    }
    lu_shapes(call, 1, out);
    return 0;
}

static size_t workspace(const struct kernel_call *call)
{
    return lu_workspace(call->in[0]->shape[call->in[0]->rank - 1]);
}

static int forward(const struct kernel_call *call)
{
    struct kernel_array *const y = call->out[0];
    const kernel_ref lu = call->out[1], exchanges = call->out[1 + 1];
    const int64_t n = lu->shape[lu->rank - 1];
    const int dtype = lu->dtype;
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    (void)lu_factor_all(call, 1, false);
    matrix_walk_begin(&walk, y, 0);
    const int to = matrix_walk_add(&walk, y, 0);
    const int at_lu = matrix_walk_add(&walk, lu, 2), list = matrix_walk_add(&walk, exchanges, 1);
    do {
        double log;
        const double sign = lu_sign(dtype, n, walk.data[at_lu], walk.data[list], &log);
        matrix_store(dtype, walk.data[to], 0, sign >= 0 ? log : (double)NAN);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[1], exchanges = rule->out[1 + 1];
    if (rule->adjoint[0] != NULL)
        lu_pullback_scaled_inverse(rule, lu, exchanges, rule->adjoint[0]);
    lu_pullback(rule, lu, exchanges, rule->adjoint[1]);
}

static struct kernel_cost cost(const struct kernel_call *call)
{
    const uint64_t n = (uint64_t)call->in[0]->shape[call->in[0]->rank - 1];
    return (struct kernel_cost){.flops = (uint64_t)matrix_count(call->in[0]) *
                                         (2 * n * n * n / 3 + 20 * n),
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(logdet) = {
    .name = "logdet",
    .in_names = names,
    .n_in = 1,
    .n_out = 1 + 2,
    .saves_out = 6,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = workspace,
    .sample = sample,
    .brief = "Logarithm of the determinant of square matrices.",
    .shapes = "a [...,n,n] -> [...]",
    .formula = "y = ln det a",
    .derivative = "a' += y' a^-T",
    .edges = "0 for n = 0; -inf of a singular matrix, whose gradient is not finite; NaN where the "
             "determinant is negative, with the gradient of ln |det a|; NaN if an element is NaN "
             "or infinite",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
