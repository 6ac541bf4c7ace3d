/* fault_workloads_shape.c: workloads of the ops that move elements, scan them, order them and take
 * them by index.
 *
 * May include: fault_workloads.h.
 */
#include "fault_workloads.h"

#define SHAPE(...) FAULT_SHAPE(__VA_ARGS__)
#define OP(call) FAULT_OP(call)
#define DO(call) FAULT_DO(call)

static ad_tensor leaf(ad_tape tape, int64_t rows, int64_t columns)
{
    return OP(ad_leaf(tape, AD_F64, 2, SHAPE(rows, columns), fault_data));
}

/* Sweeps from the sum of y, and reads the gradient of x [n]. */
static void sweep(ad_tensor y, ad_tensor x, int n, struct fault_results *out)
{
    y = OP(ad_sum(y));
    DO(ad_backward(y));
    fault_read_gradient(x, n, out);
}

/* The operands are transposed, so that copies are made of them. */
void fault_scans(ad_tape tape, struct fault_results *out)
{
    ad_tensor g = {0}, x = leaf(tape, 4, 5), turned = OP(ad_transpose(x));
    ad_tensor h = OP(ad_cumsum(turned, 0, false));
    h = OP(ad_cumsum(h, 1, true));
    ad_tensor k = OP(ad_cumprod(turned, 1));
    h = OP(ad_mul(h, k));
    k = OP(ad_std_axes(x, SHAPE(0), 1, true, 1));
    k = OP(ad_transpose(k));
    h = OP(ad_mul(h, k));
    h = OP(ad_sum(h));
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    fault_read_value(g, 20, out);
    sweep(g, x, 20, out);
}

void fault_moved_elements(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = leaf(tape, 3, 4);
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
    sweep(h, x, 12, out);
}

void fault_repeated(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = leaf(tape, 2, 3);
    ad_tensor h = OP(ad_kron(x, x));
    ad_tensor k = OP(ad_repeat(x, SHAPE(2, 3), 2));
    h = OP(ad_mul(h, k));
    k = OP(ad_repeat_interleave(x, 0, 2));
    k = OP(ad_repeat(k, SHAPE(2, 1, 3), 3));
    h = OP(ad_mul(h, k));
    sweep(h, x, 6, out);
}
