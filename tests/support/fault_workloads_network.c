/* fault_workloads_network.c: workloads of the ops of networks. */
#include "fault_workloads.h"

static ad_tensor leaf(ad_tape tape, int rank, const int64_t *shape)
{
    return OP(ad_leaf(tape, AD_F64, rank, shape, fault_data));
}

/* Records the gradient of the sum of y in x, reads it, sweeps from its sum, and reads that. */
static void sweep_twice(ad_tensor y, ad_tensor x, int n, struct fault_results *out)
{
    ad_tensor g = {0};
    y = OP(ad_sum(y));
    DO(ad_create_graph(y, (ad_tensor){0}, 1, &x, &g));
    fault_read_value(g, n, out);
    g = OP(ad_square(g));
    g = OP(ad_sum(g));
    y = OP(ad_add(y, g));
    DO(ad_backward(y));
    fault_read_gradient(x, n, out);
}

void fault_losses(ad_tape tape, struct fault_results *out)
{
    static const int64_t classes[3] = {2, 0, 3};
    ad_tensor x = leaf(tape, 2, SHAPE(3, 4)), target = OP(ad_scale(x, 0.25));
    ad_tensor labels = OP(ad_constant(tape, AD_I64, 1, SHAPE(3), classes));
    ad_tensor p = OP(ad_sigmoid(x));
    ad_tensor h = OP(ad_mse_loss(x, target)), k = OP(ad_huber_loss(x, target, 0.5));
    h = OP(ad_add(h, k));
    k = OP(ad_binary_cross_entropy(p, target));
    h = OP(ad_add(h, k));
    k = OP(ad_binary_cross_entropy_with_logits(x, target));
    h = OP(ad_add(h, k));
    k = OP(ad_log_softmax(x, 1));
    k = OP(ad_nll_loss(k, labels));
    h = OP(ad_add(h, k));
    sweep_twice(h, x, 12, out);
}

void fault_normalized(ad_tape tape, struct fault_results *out)
{
    ad_tensor m = {0}, v = {0}, x = leaf(tape, 2, SHAPE(4, 3)), w = leaf(tape, 1, SHAPE(3));
    ad_tensor turned = OP(ad_transpose(x)), rows = leaf(tape, 1, SHAPE(4));
    ad_tensor h = OP(ad_layer_norm(x, w, w, 0.5)), k = OP(ad_rms_norm(turned, rows, 0.5));
    k = OP(ad_transpose(k));
    h = OP(ad_mul(h, k));
    k = OP(ad_batch_norm(x, w, w, 0.5, &m, &v));
    h = OP(ad_mul(h, k));
    m = OP(ad_add(m, v));
    h = OP(ad_add(h, m));
    sweep_twice(h, x, 12, out);
    fault_read_gradient(w, 3, out);
    fault_read_gradient(rows, 4, out);
}

void fault_embedded(ad_tape tape, struct fault_results *out)
{
    static const int64_t words[6] = {3, 0, 3, 1, 3, 2};
    ad_tensor w = leaf(tape, 2, SHAPE(4, 3));
    ad_tensor indices = OP(ad_constant(tape, AD_I64, 2, SHAPE(2, 3), words));
    ad_tensor view = OP(ad_permute(indices, SHAPE(1, 0), 2));
    ad_tensor h = OP(ad_embedding(w, indices)), k = OP(ad_embedding(w, view));
    h = OP(ad_reshape(h, SHAPE(3, 2, 3), 3));
    h = OP(ad_mul(h, k));
    h = OP(ad_permute(h, SHAPE(2, 0, 1), 3));
    h = OP(ad_dropout(h, 0.5, 42));
    sweep_twice(h, w, 12, out);
}

void fault_convolved(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = leaf(tape, 4, SHAPE(1, 2, 4, 3)), w = leaf(tape, 4, SHAPE(2, 2, 2, 2));
    ad_tensor line = leaf(tape, 3, SHAPE(2, 2, 2)), view = OP(ad_permute(x, SHAPE(0, 1, 3, 2), 4));
    ad_tensor h = OP(ad_conv2d(x, w, &(ad_conv2d_options){.padding_h = 1}));
    ad_tensor k = OP(ad_conv_transpose2d(view, w, NULL));
    h = OP(ad_sum(h));
    k = OP(ad_mul(k, h));
    k = OP(ad_reshape(k, SHAPE(2, 2, 10), 3));
    k = OP(ad_conv1d(k, line, &(ad_conv1d_options){.stride = 2, .padding = 1}));
    sweep_twice(k, x, 24, out);
    fault_read_gradient(w, 16, out);
    fault_read_gradient(line, 8, out);
}

void fault_pooled(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = leaf(tape, 3, SHAPE(2, 4, 6)), square = OP(ad_square(x));
    ad_tensor view = OP(ad_permute(square, SHAPE(0, 2, 1), 3));
    ad_tensor h = OP(ad_max_pool2d(view, 2, 2, NULL));
    ad_tensor k = OP(ad_avg_pool2d(view, 2, 2, NULL));
    h = OP(ad_mul(h, k));
    k = OP(ad_max_pool1d(h, 2, &(ad_max_pool1d_options){.stride = 1, .padding = 1}));
    h = OP(ad_avg_pool1d(
        h, 2, &(ad_avg_pool1d_options){.stride = 1, .padding = 1, .flags = AD_SKIP_PADDING}));
    h = OP(ad_mul(h, k));
    sweep_twice(h, x, 48, out);
}

void fault_forms(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = leaf(tape, 2, SHAPE(3, 4)), rows = leaf(tape, 2, SHAPE(2, 3));
    ad_tensor w = leaf(tape, 3, SHAPE(2, 4, 2)), view = OP(ad_transpose(rows));
    ad_tensor h = OP(ad_bilinear(x, view, w));
    sweep_twice(h, x, 12, out);
    fault_read_gradient(rows, 6, out);
    fault_read_gradient(w, 16, out);
}
