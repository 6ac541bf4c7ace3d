/* fault_workloads_shape.c: workloads of the ops that move elements, scan them, order them and take
 * them by index.
 */
#include "fault_workloads.h"

/* The operands are transposed, so that copies are made of them. */
void fault_scans(ad_tape tape, struct fault_results *out)
{
    ad_tensor g = {0}, x = fault_leaf(tape, 4, 5), turned = OP(ad_transpose(x));
    ad_tensor h = OP(ad_cumsum(turned, 0, 0));
    h = OP(ad_cumsum(h, 1, AD_REVERSE));
    ad_tensor k = OP(ad_cumprod(turned, 1));
    h = OP(ad_mul(h, k));
    k = OP(ad_std_axes(x, SHAPE(0), 1, 1, AD_KEEPDIM));
    k = OP(ad_transpose(k));
    h = OP(ad_mul(h, k));
    h = OP(ad_sum(h));
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    fault_read_value(g, 20, out);
    fault_sweep(g, x, 20, out);
}

void fault_moved_elements(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 4);
    ad_tensor h = OP(ad_flip_axes(x, SHAPE(0), 1));
    h = OP(ad_roll(h, 1, 2));
    h = OP(ad_pad(h, SHAPE(1, 0, 0, 0), 4, 0.5));
    h = OP(ad_tril(h, 1));
    ad_tensor k = OP(ad_triu(h, -1));
    h = OP(ad_mul(h, k));
    k = OP(ad_diagonal(h, 1));
    ad_tensor matrix = OP(ad_diag(k, 1));
    h = OP(ad_mul(h, matrix));
    k = OP(ad_trace(h));
    h = OP(ad_mul(h, k));
    fault_sweep(h, x, 12, out);
}

void fault_repeated(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 2, 3);
    ad_tensor h = OP(ad_kron(x, x));
    ad_tensor k = OP(ad_repeat(x, SHAPE(2, 3), 2));
    h = OP(ad_mul(h, k));
    k = OP(ad_repeat_interleave(x, 0, 2));
    k = OP(ad_repeat(k, SHAPE(2, 1, 3), 3));
    h = OP(ad_mul(h, k));
    fault_sweep(h, x, 6, out);
}

void fault_ordered(ad_tape tape, struct fault_results *out)
{
    ad_tensor places = {0}, g = {0}, x = fault_leaf(tape, 4, 5), turned = OP(ad_transpose(x));
    ad_tensor h = OP(ad_sort(turned, 0, AD_DESCENDING, &places));
    h = OP(ad_gather(h, places, 0));
    ad_tensor k = OP(ad_topk(h, 1, 2, AD_SMALLEST, NULL));
    places = OP(ad_argmax(turned, 0, 0));
    h = OP(ad_index_select(k, places, 0));
    places = OP(ad_argmin(turned, 1, 0));
    k = OP(ad_index_select(x, places, 0));
    h = OP(ad_transpose(h));
    k = OP(ad_slice(k, 1, 0, 4, 1));
    k = OP(ad_slice(k, 0, 0, 2, 1));
    h = OP(ad_mul(h, k));
    h = OP(ad_sum(h));
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    fault_read_value(g, 20, out);
    fault_sweep(g, x, 20, out);
}

void fault_indexed(ad_tape tape, struct fault_results *out)
{
    static const double mask[5] = {1, 0, 0, 1, 0};
    static const int64_t rows[20] = {3, 0, 3, 1, 3};
    ad_tensor x = fault_leaf(tape, 4, 5), turned = OP(ad_transpose(x));
    ad_tensor indices = OP(ad_constant(tape, AD_I64, 2, SHAPE(5, 4), rows));
    ad_tensor h = OP(ad_scatter_add(turned, indices, 0, 4));
    ad_tensor column = OP(ad_constant(tape, AD_F64, 2, SHAPE(5, 1), mask));
    ad_tensor k = OP(ad_masked_select(turned, column, 8));
    k = OP(ad_reshape(k, SHAPE(2, 1, 4), 3));
    h = OP(ad_mul(h, k));
    k = OP(ad_masked_fill(turned, column, 0.5));
    k = OP(ad_slice(k, 0, 0, 4, 1));
    h = OP(ad_mul(h, k));
    fault_sweep(h, x, 20, out);
}
