/* ops/linear_algebra/determinants.c: det, logdet and slogdet.
 *
 * The LU decomposition stays on the tape as two hidden outputs.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lu.h"
#include "op_rules.h"

#include <math.h>

static void det_find(int dtype, int64_t n, const void *lu, const void *exchanges, double *numbers)
{
    numbers[0] = lu_determinant(dtype, n, lu, exchanges);
}

static const struct lu_numbers det_family = {.find = det_find, .flops = 1};

static void det_pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[1], exchanges = rule->out[2];
    if (rule->adjoint[0] != NULL && kernel_needs(rule, 0)) {
        const kernel_ref g = rule->adjoint[0];
        const kernel_ref scaled = kernel_emit2(rule, &kernel_op_mul, g, rule->out[0]);
        const kernel_ref in[] = {lu_emit_scaled_inverse(rule, lu, exchanges, scaled), g, lu,
                                 exchanges};
        const int64_t known[] = {0};
        kernel_accumulate(rule, 0, &kernel_op_singular_cofactors, 4, in, 1, known);
    }
    lu_pullback(rule, lu, exchanges, rule->adjoint[1]);
}

KERNEL_OP(det) = {
    .name = "det",
    KERNEL_IN("a"),
    .n_out = 3,
    .saves_out = 7,
    .family = &det_family,
    .depends = kernel_depends_matrices,
    .shape = lu_numbers_shape,
    .forward = lu_numbers_forward,
    .pullback = det_pullback,
    .cost = lu_numbers_cost,
    .workspace = lu_numbers_workspace,
    .sample = lu_numbers_sample,
    .brief = "Determinant of square matrices; for large ones slogdet, which does not overflow.",
    .shapes = "a [...,n,n] -> [...]",
    .formula = "y = det a",
    .derivative = "a' += y' y a^-T, the cofactors where a is singular",
    .edges = "1 for n = 0; no intermediate product overflows or vanishes; of a singular matrix 0, "
             "or nearly so by rounding, and where a pivot is exactly 0 the second derivative is "
             "NaN; NaN if an element is NaN or infinite",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};

static void logdet_find(int dtype, int64_t n, const void *lu, const void *exchanges,
                        double *numbers)
{
    const double sign = lu_sign(dtype, n, lu, exchanges, &numbers[0]);
    if (!(sign >= 0))
        numbers[0] = (double)NAN;
}

static const struct lu_numbers logdet_family = {.find = logdet_find, .flops = 20 /* a logarithm */};

static void logdet_pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[1], exchanges = rule->out[2];
    if (rule->adjoint[0] != NULL)
        lu_pullback_scaled_inverse(rule, lu, exchanges, rule->adjoint[0]);
    lu_pullback(rule, lu, exchanges, rule->adjoint[1]);
}

KERNEL_OP(logdet) = {
    .name = "logdet",
    KERNEL_IN("a"),
    .n_out = 3,
    .saves_out = 6,
    .family = &logdet_family,
    .depends = kernel_depends_matrices,
    .shape = lu_numbers_shape,
    .forward = lu_numbers_forward,
    .pullback = logdet_pullback,
    .cost = lu_numbers_cost,
    .workspace = lu_numbers_workspace,
    .sample = lu_numbers_sample,
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

static const char *const slogdet_results[] = {"logabsdet"};

static void slogdet_find(int dtype, int64_t n, const void *lu, const void *exchanges,
                         double *numbers)
{
    numbers[0] = lu_sign(dtype, n, lu, exchanges, &numbers[1]);
}

static const struct lu_numbers slogdet_family = {.find = slogdet_find,
                                                 .flops = 20 /* a logarithm */};

static void slogdet_pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[2], exchanges = rule->out[3];
    if (rule->adjoint[1] != NULL)
        lu_pullback_scaled_inverse(rule, lu, exchanges, rule->adjoint[1]);
    lu_pullback(rule, lu, exchanges, rule->adjoint[2]);
}

KERNEL_OP(slogdet) = {
    .name = "slogdet",
    KERNEL_IN("a"),
    .n_out = 4,
    .n_results = 2,
    .result_names = slogdet_results,
    .saves_out = 12,
    .family = &slogdet_family,
    .depends = kernel_depends_matrices,
    .shape = lu_numbers_shape,
    .forward = lu_numbers_forward,
    .pullback = slogdet_pullback,
    .cost = lu_numbers_cost,
    .workspace = lu_numbers_workspace,
    .sample = lu_numbers_sample,
    .brief = "Sign, and logarithm of the absolute value, of the determinant of square matrices.",
    .shapes = "a [...,n,n] -> sign [...], logabsdet [...]",
    .formula = "det a = sign e^logabsdet",
    .derivative = "a' += logabsdet' a^-T; the sign is constant",
    .edges = "1 and 0 for n = 0; 0 and -inf of a singular matrix, whose gradient is not finite; "
             "NaN and NaN if an element is NaN or infinite",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
