/* fault_workloads_matrices.c: workloads of linear algebra.
 *
 * May include: fault_workloads.h.
 */
#include "fault_workloads.h"

#define SHAPE(...) FAULT_SHAPE(__VA_ARGS__)
#define OP(call) FAULT_OP(call)
#define DO(call) FAULT_DO(call)

/* Positive definite, with eigenvalues far apart. */
static const double raised[9] = {4, 0.5, -0.25, 0.5, 7, 0.75, -0.25, 0.75, 11};

static ad_tensor matrix(ad_tape tape)
{
    return OP(ad_leaf(tape, AD_F64, 2, SHAPE(3, 3), raised));
}

static ad_tensor right_side(ad_tape tape)
{
    return OP(ad_leaf(tape, AD_F64, 2, SHAPE(3, 2), fault_data));
}

void fault_linear_systems(ad_tape tape, struct fault_results *out)
{
    ad_tensor a = matrix(tape), b = right_side(tape), log = {0};
    ad_tensor l = OP(ad_cholesky(a)), x = OP(ad_solve_triangular(l, b, false, false, false));
    x = OP(ad_solve_triangular(l, x, false, true, false));
    ad_tensor y = OP(ad_solve(a, b));
    x = OP(ad_mul(x, y));
    y = OP(ad_inverse(a));
    x = OP(ad_matmul(y, x));
    x = OP(ad_sum(x));
    y = OP(ad_det(a));
    x = OP(ad_add(x, y));
    y = OP(ad_slogdet(a, &log));
    x = OP(ad_mul(x, y));
    x = OP(ad_add(x, log));
    y = OP(ad_logdet(a));
    x = OP(ad_mul(x, y));
    DO(ad_backward(x));
    fault_read_value(x, 1, out);
    fault_read_gradient(a, 9, out);
    fault_read_gradient(b, 6, out);
}

void fault_second_of_linear_systems(ad_tape tape, struct fault_results *out)
{
    ad_tensor a = matrix(tape), b = right_side(tape), g = {0};
    ad_tensor l = OP(ad_cholesky(a)), x = OP(ad_solve(a, b));
    x = OP(ad_solve_triangular(l, x, false, false, false));
    x = OP(ad_sum(x));
    DO(ad_create_graph(x, (ad_tensor){0}, 1, &a, &g));
    fault_read_value(g, 9, out);
    g = OP(ad_sum(g));
    DO(ad_backward(g));
    fault_read_gradient(a, 9, out);
}
