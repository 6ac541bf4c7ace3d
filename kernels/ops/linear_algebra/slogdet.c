/* ops/linear_algebra/slogdet.c: signs and logarithms of determinants.
 *
 * May include: lu.h, kernel_ops.h. The LU decomposition stays on the tape as two hidden
 * outputs.
 */
#include "kernel_ops.h"
#include "lu.h"

static const char *const names[] = {"a"};
static const char *const results[] = {"logabsdet"};

static void find(int dtype, int64_t n, const void *lu, const void *exchanges, double *numbers)
{
    numbers[0] = lu_sign(dtype, n, lu, exchanges, &numbers[1]);
}

static const struct lu_numbers family = {.find = find, .flops = 20 /* a logarithm */};

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[2], exchanges = rule->out[3];
    if (rule->adjoint[1] != NULL)
        lu_pullback_scaled_inverse(rule, lu, exchanges, rule->adjoint[1]);
    lu_pullback(rule, lu, exchanges, rule->adjoint[2]);
}

KERNEL_OP(slogdet) = {
    .name = "slogdet",
    .in_names = names,
    .n_in = 1,
    .n_out = 4,
    .n_results = 2,
    .result_names = results,
    .saves_out = 12,
    .family = &family,
    .shape = lu_numbers_shape,
    .forward = lu_numbers_forward,
    .pullback = pullback,
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
