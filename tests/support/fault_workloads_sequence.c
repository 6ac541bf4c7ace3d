/* fault_workloads_sequence.c: workloads of the ops on sequences. */
#include "fault_workloads.h"

/* Two steps, the first of a strided operand; then the gradient's gradient. */
void fault_recurrence(ad_tape tape, struct fault_results *out)
{
    ad_tensor g[2] = {{0}, {0}}, x[2] = {fault_leaf(tape, 8, 2), fault_leaf(tape, 2, 2)},
              cell = {0};
    ad_tensor z = OP(ad_transpose(x[0]));
    ad_tensor h = OP(ad_lstm_cell(z, x[1], &cell));
    ad_tensor w = fault_leaf(tape, 2, 8);
    z = OP(ad_matmul(h, w));
    h = OP(ad_lstm_cell(z, cell, NULL));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(w, 16, out);
    DO(ad_create_graph(h, (ad_tensor){0}, 2, x, g));
    h = OP(ad_sum(g[0]));
    DO(ad_backward(h));
    fault_read_gradient(x[0], 16, out);
    fault_read_gradient(x[1], 4, out);
}

/* The rows' sums kept alone, and the weights kept, of strided operands; then the second
 * derivative. */
void fault_attention(ad_tape tape, struct fault_results *out)
{
    ad_tensor g[3] = {{0}, {0}, {0}},
              x[3] = {fault_leaf(tape, 2, 3), fault_leaf(tape, 4, 2), fault_leaf(tape, 4, 3)};
    ad_tensor q = OP(ad_transpose(x[0]));
    ad_tensor h = OP(ad_attention(q, x[1], x[2], 0, AD_CAUSAL));
    ad_tensor k = OP(ad_attention(q, x[1], x[2], 0.5, AD_KEEP_WEIGHTS));
    h = OP(ad_mul(h, k));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(x[0], 6, out);
    DO(ad_create_graph(h, (ad_tensor){0}, 3, x, g));
    h = OP(ad_sum(g[1]));
    DO(ad_backward(h));
    fault_read_gradient(x[1], 8, out);
    fault_read_gradient(x[2], 12, out);
}
