/* fault_workloads_matrices.c: workloads of linear algebra. */
#include "fault_workloads.h"

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
    ad_tensor l = OP(ad_cholesky(a)), x = OP(ad_solve_triangular(l, b, 0));
    x = OP(ad_solve_triangular(l, x, AD_TRANSPOSED));
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
    x = OP(ad_solve_triangular(l, x, 0));
    x = OP(ad_sum(x));
    DO(ad_create_graph(x, (ad_tensor){0}, 1, &a, &g));
    fault_read_value(g, 9, out);
    g = OP(ad_sum(g));
    DO(ad_backward(g));
    fault_read_gradient(a, 9, out);
}

/* All results of the decompositions of a; what is tall or wide is a part of a. */
static ad_tensor decomposed(ad_tensor a)
{
    ad_tensor part = OP(ad_slice(a, 1, 0, 2, 1)), r = {0}, s = {0}, vh = {0}, v = {0};
    ad_tensor x = OP(ad_qr(part, &r)), y = OP(ad_matmul(x, r));
    x = OP(ad_lstsq(part, a));
    y = OP(ad_matmul(y, x));
    part = OP(ad_slice(a, 0, 1, 3, 1));
    x = OP(ad_svd(part, &s, &vh));
    x = OP(ad_mul(x, s));
    x = OP(ad_matmul(x, vh));
    y = OP(ad_matmul(x, y));
    x = OP(ad_eigh(a, &v));
    x = OP(ad_mul(v, x));
    y = OP(ad_matmul(y, x));
    x = OP(ad_qr(part, &r));
    x = OP(ad_matmul(x, r));
    x = OP(ad_mul(x, y));
    y = OP(ad_scale(a, 0.25));
    y = OP(ad_expm(y));
    y = OP(ad_slice(y, 0, 1, 3, 1));
    x = OP(ad_mul(x, y));
    return OP(ad_sum(x));
}

void fault_decompositions(ad_tape tape, struct fault_results *out)
{
    ad_tensor a = matrix(tape), x = decomposed(a);
    DO(ad_backward(x));
    fault_read_value(x, 1, out);
    fault_read_gradient(a, 9, out);
}

void fault_second_of_decompositions(ad_tape tape, struct fault_results *out)
{
    ad_tensor a = matrix(tape), x = decomposed(a), g = {0};
    DO(ad_create_graph(x, (ad_tensor){0}, 1, &a, &g));
    fault_read_value(g, 9, out);
    g = OP(ad_sum(g));
    DO(ad_backward(g));
    fault_read_gradient(a, 9, out);
}
