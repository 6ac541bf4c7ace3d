/* common_workloads.c: the table of the measured computations, the chains and perceptrons among
 * them, and the checksum.
 */
#include "common_workloads.h"

#include "common_inputs.h"
#include "common_models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_ROUNDS = 333, MLP_BATCH = 64, MLP_LAYERS = 3 };

/* ---- chains ---- */

static ad_status chain_inputs(struct workload *w, bool parameters)
{
    const int64_t *shape = &w->spec->width;
    w->constant[0] = input_tensor(w, true, 1, shape, 0.0, 0.5, 0);
    w->constant[1] = input_tensor(w, parameters, 1, shape, 0.0, 0.01, 1);
    w->constant[2] = input_tensor(w, parameters, 1, shape, 1.0, 0.01, 2);
    return ad_tape_status(w->tape);
}

static ad_status chain_create(struct workload *w)
{
    return chain_inputs(w, false);
}

static ad_status chainp_create(struct workload *w)
{
    return chain_inputs(w, true);
}

static ad_tensor chain_forward(const struct workload *w)
{
    ad_tensor x = w->constant[0], c = w->constant[1], d = w->constant[2];
    for (int k = 0; k < CHAIN_ROUNDS; ++k) {
        x = ad_add(x, c);
        x = ad_mul(x, d);
        x = ad_tanh(x);
    }
    x = ad_add(x, c);
    return ad_sum(x);
}

/* ---- perceptrons ---- */

static ad_status mlp_create(struct workload *w)
{
    int64_t width = w->spec->width, batch = MLP_BATCH;
    double scale = 1.0 / sqrt((double)width);
    w->constant[0] = input_tensor(w, false, 2, (int64_t[]){batch, width}, 0.0, 1.0, 0);
    for (int k = 1; k <= MLP_LAYERS; ++k) {
        input_tensor(w, true, 2, (int64_t[]){width, width}, 0.0, scale, k);
        input_tensor(w, true, 1, &width, 0.0, 0.1, k + MLP_LAYERS);
    }
    int64_t *labels = input_array(w, MLP_BATCH * sizeof *labels);
    for (int64_t r = 0; labels && r < batch; ++r)
        labels[r] = (7 * r + 3) % width;
    w->constant[1] = ad_constant(w->tape, AD_I64, 1, &batch, labels);
    return ad_tape_status(w->tape);
}

static ad_tensor mlp_forward(const struct workload *w)
{
    const ad_tensor *p = w->parameter;
    ad_tensor h = ad_tanh(ad_linear(w->constant[0], p[0], p[1]));
    h = ad_tanh(ad_linear(h, p[2], p[3]));
    ad_tensor z = ad_linear(h, p[4], p[5]);
    return ad_softmax_cross_entropy(z, w->constant[1]);
}

/* ---- all ---- */

const struct workload_case workload_cases[] = {
    {"chain1", 1, 1.7671712168787519e-13, chain_forward, chain_create},
    {"chain64", 64, -0.0034701157240799049, chain_forward, chain_create},
    {"chainp1", 1, 4.5116997426621384, chain_forward, chainp_create},
    {"chainp64", 64, -36.480207279757592, chain_forward, chainp_create},
    {"mlp32", 32, 0.45982911883590974, mlp_forward, mlp_create},
    {"mlp128", 128, 0.030311921051277844, mlp_forward, mlp_create},
    {"mlp512", 512, 0.23925787679427682, mlp_forward, mlp_create},
    {"mlp1024", 1024, -0.70756859864884612, mlp_forward, mlp_create},
    {"lstm", 128, 0.0056438950624852734, lstm_forward, lstm_create},
    {"attn", 64, 6.3873340460611096e-05, attn_forward, attn_create},
    {"gp512", 512, 494.71732276122538, gp_forward, gp_create},
    {0},
};

const struct workload_case *workload_find(const char *name)
{
    for (const struct workload_case *c = workload_cases; c->name; ++c)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

ad_status workload_create(struct workload *workload, const struct workload_case *spec,
                          ad_dtype dtype)
{
    *workload = (struct workload){.spec = spec, .dtype = dtype};
    ad_status status = ad_tape_create(&workload->tape, NULL);
    if (status == AD_OK)
        status = spec->create(workload);
    if (status == AD_OK) {
        workload->mark = ad_tape_mark(workload->tape);
        status = ad_tape_status(workload->tape);
    }
    return status;
}

ad_tensor workload_forward(const struct workload *workload)
{
    return workload->spec->forward(workload);
}

ad_status workload_backward(const struct workload *workload, ad_tensor result)
{
    return workload->seeded ? ad_backward_seed(result, workload->seed) : ad_backward(result);
}

double workload_gradient_sum(const struct workload *workload)
{
    double sum = 0.0;
    for (int k = 0; k < workload->n_parameters; ++k) {
        int64_t n = ad_size(workload->parameter[k]);
        void *gradient = n > 0 ? malloc((size_t)n * sizeof(double)) : NULL;
        if (!gradient || ad_gradient(workload->parameter[k], gradient, n) != AD_OK) {
            free(gradient);
            return NAN;
        }
        for (int64_t i = 0; i < n; ++i) {
            double g = workload->dtype == AD_F32 ? (double)((float *)gradient)[i]
                                                 : ((double *)gradient)[i];
            sum += g * cos(0.73 * (double)i + k);
        }
        free(gradient);
    }
    return sum;
}

void workload_destroy(struct workload *workload)
{
    if (workload->tape.generation != 0)
        ad_tape_destroy(workload->tape);
    for (int k = 0; k < workload->n_arrays; ++k)
        free(workload->array[k]);
    *workload = (struct workload){0};
}
