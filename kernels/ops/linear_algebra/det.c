/* ops/linear_algebra/det.c: determinants.
 *
 * May include: lu.h, op_rules.h, kernel_ops.h. The LU decomposition stays on the tape as two hidden
 * outputs.
 */
#include "kernel_ops.h"
#include "lu.h"
#include "op_rules.h"

static const char *const names[] = {"a"};

static void find(int dtype, int64_t n, const void *lu, const void *exchanges, double *numbers)
{
    numbers[0] = lu_determinant(dtype, n, lu, exchanges);
}

static const struct lu_numbers family = {.find = find, .flops = 1};

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref lu = rule->out[1], exchanges = rule->out[2];
    if (rule->adjoint[0] != NULL)
        lu_pullback_scaled_inverse(
            rule, lu, exchanges,
            kernel_emit2(rule, &kernel_op_mul, rule->adjoint[0], rule->out[0]));
    lu_pullback(rule, lu, exchanges, rule->adjoint[1]);
}

KERNEL_OP(det) = {
    .name = "det",
    .in_names = names,
    .n_in = 1,
    .n_out = 3,
    .saves_out = 7,
    .family = &family,
    .shape = lu_numbers_shape,
    .forward = lu_numbers_forward,
    .pullback = pullback,
    .cost = lu_numbers_cost,
    .workspace = lu_numbers_workspace,
    .sample = lu_numbers_sample,
    .brief = "Determinant of square matrices; for large ones slogdet, which does not overflow.",
    .shapes = "a [...,n,n] -> [...]",
    .formula = "y = det a",
    .derivative = "a' += y' y a^-T",
    .edges = "1 for n = 0; no intermediate product overflows or vanishes; of a singular matrix 0, "
             "or nearly so by rounding, and where it is exactly 0 the gradient is NaN; NaN if an "
             "element is NaN or infinite",
    .source = "Giles (2008), Collected matrix derivative results for forward and reverse mode "
              "algorithmic differentiation, doi:10.1007/978-3-540-68942-3_4",
};
