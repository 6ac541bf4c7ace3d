/* lstm_real.c: the network of long short-term memory over ad_real.
 *
 * Invariant: as in real.h.
 */
#include "lstm.h"
#include "real.h"

static size_t room(const struct problem *problem)
{
    const struct lstm *m = problem->input;
    return (2 * (size_t)m->l + 1) * (size_t)m->b;
}

#define SIGMOID(z) ad_real_reciprocal(ad_real_add(1.0, ad_real_exp(ad_real_neg(z))))
#define AFFINE(a, w, bias) ad_real_add(ad_real_mul(a, w), bias)

static void layer(int b, const ad_real *w, ad_real *h, ad_real *cell, ad_real *v)
{
    const ad_real *bias = w + 4 * b;
    for (int j = 0; j < b; ++j) {
        ad_real f = ad_real_of(SIGMOID(AFFINE(v[j], w[j], bias[j])));
        ad_real i = ad_real_of(SIGMOID(AFFINE(h[j], w[b + j], bias[b + j])));
        ad_real o = ad_real_of(SIGMOID(AFFINE(v[j], w[2 * b + j], bias[2 * b + j])));
        ad_real g = ad_real_of(ad_real_tanh(AFFINE(h[j], w[3 * b + j], bias[3 * b + j])));
        ad_set(&cell[j], ad_real_add(ad_real_mul(cell[j], f), ad_real_mul(i, g)));
        ad_set(&h[j], ad_real_mul(o, ad_real_tanh(cell[j])));
        v[j] = h[j];
    }
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    const struct lstm *m = problem->input;
    const int b = m->b;
    const ad_real *w_in = x + 8 * m->l * b, *w_out = w_in + b, *b_out = w_out + b;
    ad_real *state = work, *v = state + 2 * m->l * b, loss = {0};
    for (int j = 0; j < 2 * m->l * b; ++j)
        state[j] = (ad_real){m->state[j], 0, 0};
    for (int t = 0; t + 1 < m->c; ++t) {
        const double *now = m->sequence + (size_t)t * (size_t)b, *next = now + b;
        for (int j = 0; j < b; ++j)
            ad_set(&v[j], ad_real_mul(now[j], w_in[j]));
        for (int l = 0; l < m->l; ++l)
            layer(b, x + 8 * l * b, state + 2 * l * b, state + (2 * l + 1) * b, v);
        ad_real sum = {2.0, 0, 0}, log_sum;
        for (int j = 0; j < b; ++j) {
            ad_set(&v[j], AFFINE(v[j], w_out[j], b_out[j]));
            ad_set(&sum, ad_real_add(sum, ad_real_exp(v[j])));
        }
        ad_set(&log_sum, ad_real_log(sum));
        for (int j = 0; j < b; ++j)
            ad_set(&loss, ad_real_sub(loss, ad_real_mul(next[j], ad_real_sub(v[j], log_sum))));
    }
    ad_set(out, ad_real_div(loss, (double)(b * (m->c - 1))));
}

const struct real_objective real_lstm = {room, value};
