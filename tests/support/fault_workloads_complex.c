/* fault_workloads_complex.c: workloads of complex numbers, and of products by equations. */
#include "fault_workloads.h"

static ad_tensor leaf(ad_tape tape, int64_t rows, int64_t columns)
{
    return OP(ad_leaf(tape, AD_F64, 3, SHAPE(rows, columns, 2), fault_data));
}

/* Of strided operands; then the second derivative. */
void fault_complex(ad_tape tape, struct fault_results *out)
{
    ad_tensor g[2] = {{0}, {0}}, x[2] = {leaf(tape, 2, 3), leaf(tape, 2, 2)};
    ad_tensor h = OP(ad_permute(x[0], SHAPE(1, 0, 2), 3));
    h = OP(ad_complex_matmul(h, x[1]));
    ad_tensor k = OP(ad_slice(h, 0, 0, 1, 1));
    h = OP(ad_complex_mul(h, k));
    k = OP(ad_complex_conj(h));
    h = OP(ad_complex_exp(k));
    k = OP(ad_complex_log(k));
    h = OP(ad_complex_div(h, k));
    k = OP(ad_complex_angle(h));
    h = OP(ad_complex_abs(h));
    h = OP(ad_mul(h, k));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(x[0], 12, out);
    DO(ad_create_graph(h, (ad_tensor){0}, 2, x, g));
    h = OP(ad_sum(g[0]));
    DO(ad_backward(h));
    fault_read_gradient(x[1], 8, out);
}

/* Diagonals, sums, products of both kinds, and what is undone of them. */
void fault_einsum(ad_tape tape, struct fault_results *out)
{
    ad_tensor g = {0}, x = OP(ad_leaf(tape, AD_F64, 3, SHAPE(3, 3, 4), fault_data));
    ad_tensor w = OP(ad_leaf(tape, AD_F64, 2, SHAPE(4, 3), fault_data));
    const ad_tensor in[] = {x, w, x, w};
    ad_tensor h = OP(ad_einsum("iij,jk,klm,mi->il", in, 4));
    const ad_tensor pair[] = {h, w};
    h = OP(ad_einsum("...,ji->ij...", pair, 2));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(x, 36, out);
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    h = OP(ad_sum(g));
    DO(ad_backward(h));
    fault_read_gradient(w, 12, out);
}
