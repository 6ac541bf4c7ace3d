/* common_models.c: a recurrent network, attention, and a Gaussian process, as a user of the library
 * would write them for speed.
 */
#include "common_models.h"

#include "common_inputs.h"

#include <math.h>

enum { LSTM_STEPS = 100, LSTM_BATCH = 16, LSTM_GATES = 4 };
enum { ATTN_LENGTH = 256, ATTN_WEIGHTS = 4 };
enum { GP_INPUTS = 4 };
static const double two_pi = 6.283185307179586476925;

/* ---- a recurrent network ---- */

/* The inputs of all steps are one array, so that one product serves them all. */
ad_status lstm_create(struct workload *w)
{
    const int64_t h = w->spec->width, step = LSTM_BATCH * h;
    const double scale = 1.0 / sqrt((double)h);
    const size_t element = w->dtype == AD_F32 ? sizeof(float) : sizeof(double);
    void *x = input_array(w, (size_t)(LSTM_STEPS * step) * element);
    for (int t = 0; t < LSTM_STEPS; ++t)
        input_fill(w, x, t * step, step, 0.0, 1.0, LSTM_STEPS + t);
    w->constant[0] = ad_constant(w->tape, w->dtype, 3, (int64_t[]){LSTM_STEPS, LSTM_BATCH, h}, x);
    for (int k = 1; k <= 2; ++k)
        input_tensor(w, true, 2, (int64_t[]){h, LSTM_GATES * h}, 0.0, scale, k);
    input_tensor(w, true, 1, (int64_t[]){LSTM_GATES * h}, 0.0, 0.1, 3);
    w->constant[1] = ad_constant(w->tape, w->dtype, 2, (int64_t[]){LSTM_BATCH, h},
                                 input_array(w, (size_t)step * element));
    return ad_tape_status(w->tape);
}

ad_tensor lstm_forward(const struct workload *w)
{
    ad_tensor wx = w->parameter[0], wh = w->parameter[1], b = w->parameter[2];
    ad_tensor from_inputs = ad_linear(w->constant[0], wx, b);
    ad_tensor h = w->constant[1], c = w->constant[1];
    for (int t = 0; t < LSTM_STEPS; ++t) {
        ad_tensor z = ad_linear(h, wh, ad_select(from_inputs, 0, t));
        h = ad_lstm_cell(z, c, &c);
    }
    return ad_mean(ad_square(h));
}

/* ---- attention ---- */

ad_status attn_create(struct workload *w)
{
    const int64_t d = w->spec->width;
    input_tensor(w, true, 2, (int64_t[]){ATTN_LENGTH, d}, 0.0, 1.0, 0);
    for (int k = 1; k <= ATTN_WEIGHTS; ++k)
        input_tensor(w, true, 2, (int64_t[]){d, d}, 0.0, 0.125, k);
    return ad_tape_status(w->tape);
}

ad_tensor attn_forward(const struct workload *w)
{
    ad_tensor x = w->parameter[0];
    ad_tensor q = ad_matmul(x, w->parameter[1]), k = ad_matmul(x, w->parameter[2]);
    ad_tensor v = ad_matmul(x, w->parameter[3]);
    ad_tensor y = ad_matmul(ad_attention(q, k, v, 0.125, AD_KEEP_WEIGHTS), w->parameter[4]);
    return ad_mean(ad_square(y));
}

/* ---- a Gaussian process ---- */

ad_status gp_create(struct workload *w)
{
    const int64_t n = w->spec->width;
    w->constant[0] = input_tensor(w, false, 2, (int64_t[]){n, GP_INPUTS}, 0.0, 1.0, 0);
    w->constant[1] = input_tensor(w, false, 1, &n, 0.0, 1.0, 1);
    input_tensor(w, true, 1, (int64_t[]){GP_INPUTS}, 0.0, 0.1, 2);
    input_vector(w, true, 1, 0.0);
    input_vector(w, true, 1, -1.0);
    return ad_tape_status(w->tape);
}

/* The exponent 2 lsf - |u_i - u_j|^2 / 2 is u_i u_j - |u_j|^2 / 2 + (2 lsf - |u_i|^2 / 2), an
 * affine map of rows and a column added. */
ad_tensor gp_forward(const struct workload *w)
{
    const int64_t n = w->spec->width, last = 1;
    ad_tensor scale = ad_scale(w->parameter[1], 2), noise = ad_exp(ad_scale(w->parameter[2], 2));
    ad_tensor u = ad_mul(w->constant[0], ad_exp(ad_neg(w->parameter[0])));
    ad_tensor half = ad_scale(ad_sum_axes(ad_square(u), &last, 1, 0), -0.5);
    ad_tensor column = ad_reshape(ad_add(half, scale), (int64_t[]){n, 1}, 2);
    ad_tensor k = ad_exp(ad_add(ad_linear(u, ad_transpose(u), half), column));
    k = ad_add(k, ad_diag(ad_broadcast_to(noise, &n, 1), 0));
    ad_tensor l = ad_cholesky(k), y = w->constant[1];
    ad_tensor a = ad_solve_triangular(l, y, 0);
    ad_tensor fit = ad_scale(ad_sum(ad_square(a)), 0.5);
    ad_tensor loss = ad_add(fit, ad_sum(ad_log(ad_diagonal(l, 0))));
    return ad_offset(loss, 0.5 * (double)n * log(two_pi));
}
