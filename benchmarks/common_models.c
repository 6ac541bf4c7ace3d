/* common_models.c: a recurrent network, attention, and a Gaussian process, as a user of the library
 * would write them for speed.
 *
 * May include: common_inputs.h, common_models.h, the public header.
 */
#include "common_models.h"

#include "common_inputs.h"

#include <math.h>

enum { LSTM_STEPS = 100, LSTM_BATCH = 16, LSTM_GATES = 4 };
enum { ATTN_LENGTH = 256, ATTN_WEIGHTS = 4 };

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
    return ad_status_of(w->tape);
}

ad_tensor lstm_forward(const struct workload *w)
{
    ad_tensor wx = w->parameter[0], wh = w->parameter[1], b = w->parameter[2];
    ad_tensor from_inputs = ad_linear(w->constant[0], wx, b);
    ad_tensor h = w->constant[1], c = w->constant[1];
    for (int t = 0; t < LSTM_STEPS; ++t) {
        ad_tensor z = ad_add(ad_matmul(h, wh), ad_select(from_inputs, 0, t));
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
    return ad_status_of(w->tape);
}

ad_tensor attn_forward(const struct workload *w)
{
    ad_tensor x = w->parameter[0];
    ad_tensor q = ad_matmul(x, w->parameter[1]), k = ad_matmul(x, w->parameter[2]);
    ad_tensor v = ad_matmul(x, w->parameter[3]);
    ad_tensor p = ad_softmax(ad_scale(ad_matmul(q, ad_transpose(k)), 0.125), 1);
    ad_tensor y = ad_matmul(ad_matmul(p, v), w->parameter[4]);
    return ad_mean(ad_square(y));
}
