/* ops/linear_algebra/logdet.c: logarithms of positive determinants.
 *
 * May include: lu.h, kernel_ops.h. The LU decomposition stays on the tape as two hidden
 * outputs.
 */
#include "kernel_ops.h"
#include "lu.h"

#include <math.h>

static const char *const names[] = {"a"};

static void find(int dtype, int64_t n, const void *lu, const void *exchanges, double *numbers)
{
    const double sign = lu_sign(dtype, n, lu, exchanges, &numbers[0]);
    if (!(sign >= 0))
        numbers[0] = (double)NAN;
}

static const struct lu_numbers family = {.find = find, .flops = 20 /* a logarithm */};

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[1], exchanges = rule->out[2];
    if (rule->adjoint[0] != NULL)
        lu_pullback_scaled_inverse(rule, lu, exchanges, rule->adjoint[0]);
    lu_pullback(rule, lu, exchanges, rule->adjoint[1]);
}

KERNEL_OP(logdet) = {
    .name = "logdet",
    .in_names = names,
    .n_in = 1,
    .n_out = 3,
    .saves_out = 6,
    .family = &family,
    .shape = lu_numbers_shape,
    .forward = lu_numbers_forward,
    .pullback = pullback,
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
