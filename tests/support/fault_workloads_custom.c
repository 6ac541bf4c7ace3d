/* fault_workloads_custom.c: a workload of ops of the user's own: with bytes of their own, on views,
 * swept, within a checkpoint, differentiated twice, and checked.
 */
#include "fault_workloads.h"

#include <math.h>

enum { SIZE = 12 };

static ad_status product(ad_custom_call *c, void *payload)
{
    (void)payload;
    const double *a = c->in[0].data, *b = c->in[1].data;
    double *y = c->out[0].data, *sine = c->own;
    for (int64_t i = 0; i < c->in[0].size; i++)
        y[i] = (sine[i] = sin(a[i])) * b[i];
    return AD_OK;
}

static ad_status product_pullback(ad_custom_call *c, void *payload)
{
    (void)payload;
    const double *a = c->in[0].data, *b = c->in[1].data, *g = c->out_adjoint[0].data;
    const double *sine = c->own;
    double *da = c->in_adjoint[0].data, *db = c->in_adjoint[1].data;
    for (int64_t i = 0; i < c->in[0].size; i++) {
        if (da)
            da[i] += cos(a[i]) * b[i] * g[i];
        if (db)
            db[i] += sine[i] * g[i];
    }
    return AD_OK;
}

static ad_status product_graph(ad_custom_graph_call *c, void *payload)
{
    (void)payload;
    c->in_adjoint[0] = ad_mul(c->out_adjoint[0], ad_mul(ad_cos(c->in[0]), c->in[1]));
    c->in_adjoint[1] = ad_mul(c->out_adjoint[0], ad_sin(c->in[0]));
    return AD_OK;
}

static const ad_custom_rule rule = {.name = "sine_product",
                                    .forward = product,
                                    .pullback = product_pullback,
                                    .graph = product_graph,
                                    .saves = AD_SAVES_OPERANDS,
                                    .own_bytes = SIZE * sizeof(double)};

static void part(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    (void)payload;
    ad_custom(tape, &rule, NULL, n_in, in, n_out, out);
}

void fault_custom(ad_tape tape, struct fault_results *out)
{
    const ad_tensor x = fault_leaf(tape, 3, 4), z = fault_leaf(tape, 4, 3), ones = {0, 0, 0, 0};
    ad_tensor in[2] = {x, OP(ad_transpose(z))}, g[2], y;
    DO(ad_custom(tape, &rule, NULL, 2, in, 1, &y));
    in[0] = OP(ad_tanh(y));
    DO(ad_checkpoint(tape, part, NULL, 2, in, 1, &y));
    const ad_tensor loss = OP(ad_sum(y));
    DO(ad_backward(loss));
    const ad_tensor by[2] = {x, z};
    DO(ad_create_graph(loss, ones, 2, by, g));
    const ad_tensor square = OP(ad_square(g[0]));
    const ad_tensor second = OP(ad_sum(square));
    DO(ad_backward(second));
    fault_read_gradient(x, SIZE, out);
    fault_read_gradient(z, SIZE, out);
    fault_read_value(loss, 1, out);
}

void fault_checked_custom(ad_tape tape, struct fault_results *out)
{
    const ad_tensor x[2] = {OP(ad_leaf_copy(tape, AD_F64, 1, SHAPE(2), fault_data)),
                            OP(ad_leaf_copy(tape, AD_F64, 1, SHAPE(2), fault_data + 2))};
    DO(ad_check_custom(tape, &rule, NULL, 2, x, 1, 1e-6, NULL));
    fault_sweep(OP(ad_mul(x[0], x[1])), x[0], 2, out);
}

static ad_status halve(const ad_custom_array *adjoint, void *payload)
{
    (void)payload;
    for (int64_t i = 0; i < adjoint->size; i++)
        ((double *)adjoint->data)[i] /= 2;
    return AD_OK;
}

void fault_listened(ad_tape tape, struct fault_results *out)
{
    const ad_tensor x = fault_leaf(tape, 3, 4), h = OP(ad_tanh(x)), y = OP(ad_sum(h));
    DO(ad_on_adjoint(h, halve, NULL));
    DO(ad_backward(y));
    DO(ad_on_adjoint(x, halve, NULL));
    DO(ad_backward(y)); /* puts aside what x has */
    fault_read_gradient(x, SIZE, out);
}

static ad_tensor squares(ad_tape tape, ad_tensor y, int n, const ad_tensor *x, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    return ad_sub(ad_mul(y, y), x[0]);
}

static ad_tensor halves(ad_tape tape, ad_tensor y, int n, const ad_tensor *x, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    return ad_scale(ad_add(y, x[0]), 0.25);
}

void fault_roots(ad_tape tape, struct fault_results *out)
{
    static const double begin[2] = {1, 1};
    const ad_tensor ones = {0, 0, 0, 0}, leaf = fault_leaf(tape, 1, 2);
    const ad_tensor guess = OP(ad_constant(tape, AD_F64, 2, SHAPE(1, 2), begin));
    const ad_tensor x = OP(ad_exp(leaf));
    ad_tensor g;
    const ad_tensor root = OP(ad_root(tape, squares, NULL, guess, 1, &x, NULL));
    const ad_root_options near = {.tolerance = 1e-3};
    const ad_tensor y = OP(ad_fixed_point(tape, halves, NULL, guess, 1, &root, &near));
    const ad_tensor loss = OP(ad_sum(y));
    DO(ad_backward(loss));
    DO(ad_create_graph(loss, ones, 1, &leaf, &g));
    fault_sweep(g, leaf, 2, out);
}
