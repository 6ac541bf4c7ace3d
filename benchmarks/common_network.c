/* common_network.c: the ops of common_network.h on a tape of ours. */
#include "common_network.h"

#include "common_inputs.h"

#include <string.h>

enum { SEED = 9, ROWS = 256, CLASSES = 1000, TABLE = 4096, LOOKED_UP = 2048 };
static const double eps = 1e-5;

/* The seed, a constant of the result's shape. */
static ad_status seeded(struct workload *w, int rank, const int64_t *shape)
{
    w->seed = input_tensor(w, false, rank, shape, 0, 1, SEED);
    w->seeded = true;
    return ad_tape_status(w->tape);
}

/* ---- convolutions ---- */

enum { IMAGE_IS_PARAMETER = 1, WEIGHTS_ARE_PARAMETER = 2 };

static ad_status conv_inputs(struct workload *w, int parameters)
{
    const int64_t c = w->spec->width, n = c == 16 ? 16 : 1;
    const int64_t image[] = {n, c, 32, 32}, weights[] = {c, c, 3, 3};
    const double scale = c == 16 ? 1.0 / 12 : 1.0 / 24;
    w->constant[0] = input_tensor(w, parameters & IMAGE_IS_PARAMETER, 4, image, 0, 1, 0);
    w->constant[1] = input_tensor(w, parameters & WEIGHTS_ARE_PARAMETER, 4, weights, 0, scale, 1);
    return seeded(w, 4, image);
}

static ad_status conv_create(struct workload *w)
{
    return conv_inputs(w, IMAGE_IS_PARAMETER | WEIGHTS_ARE_PARAMETER);
}

static ad_status conv_x_create(struct workload *w)
{
    return conv_inputs(w, IMAGE_IS_PARAMETER);
}

static ad_status conv_w_create(struct workload *w)
{
    return conv_inputs(w, WEIGHTS_ARE_PARAMETER);
}

static ad_tensor conv_forward(const struct workload *w)
{
    return ad_conv2d(w->constant[0], w->constant[1],
                     &(ad_conv2d_options){.padding_h = 1, .padding_w = 1});
}

/* ---- pooling: the width of the case is that of its result ---- */

static ad_status pool_create(struct workload *w)
{
    const int64_t width = w->spec->width;
    input_rounded(w, 4, (int64_t[]){16, 16, 64, 64}, 1024);
    return seeded(w, 4, (int64_t[]){16, 16, width, width});
}

static ad_tensor maxpool2_forward(const struct workload *w)
{
    return ad_max_pool2d(w->parameter[0], 2, 2, NULL);
}

static ad_tensor maxpool3_forward(const struct workload *w)
{
    return ad_max_pool2d(
        w->parameter[0], 3, 3,
        &(ad_max_pool2d_options){.stride_h = 2, .stride_w = 2, .padding_h = 1, .padding_w = 1});
}

static ad_tensor avgpool2_forward(const struct workload *w)
{
    return ad_avg_pool2d(w->parameter[0], 2, 2, NULL);
}

static ad_tensor avgpool3_forward(const struct workload *w)
{
    return ad_avg_pool2d(
        w->parameter[0], 3, 3,
        &(ad_avg_pool2d_options){.stride_h = 1, .stride_w = 1, .padding_h = 1, .padding_w = 1});
}

/* ---- norms: the width of the case is that of its weights ---- */

static ad_status norm_inputs(struct workload *w, int rank, const int64_t *shape, bool bias)
{
    input_tensor(w, true, rank, shape, 0, 1, 0);
    input_tensor(w, true, 1, &w->spec->width, 1, 0.5, 1);
    if (bias)
        input_tensor(w, true, 1, &w->spec->width, 0, 1, 2);
    return seeded(w, rank, shape);
}

static ad_status batchnorm_create(struct workload *w)
{
    return norm_inputs(w, 4, (int64_t[]){32, w->spec->width, 16, 16}, true);
}

static ad_status layernorm_create(struct workload *w)
{
    return norm_inputs(w, 2, (int64_t[]){ROWS, w->spec->width}, true);
}

static ad_status rmsnorm_create(struct workload *w)
{
    return norm_inputs(w, 2, (int64_t[]){ROWS, w->spec->width}, false);
}

static ad_tensor batchnorm_forward(const struct workload *w)
{
    ad_tensor mean, var;
    return ad_batch_norm(w->parameter[0], w->parameter[1], w->parameter[2], eps, &mean, &var);
}

static ad_tensor layernorm_forward(const struct workload *w)
{
    return ad_layer_norm(w->parameter[0], w->parameter[1], w->parameter[2], eps);
}

static ad_tensor rmsnorm_forward(const struct workload *w)
{
    return ad_rms_norm(w->parameter[0], w->parameter[1], eps);
}

/* ---- rows ---- */

static ad_status softmax_create(struct workload *w)
{
    const int64_t shape[] = {ROWS, w->spec->width};
    input_tensor(w, true, 2, shape, 0, 1, 0);
    return seeded(w, 2, shape);
}

static ad_tensor softmax_forward(const struct workload *w)
{
    return ad_softmax(w->parameter[0], 1);
}

static ad_status rowsums_create(struct workload *w)
{
    const int64_t shape[] = {1024, w->spec->width};
    input_tensor(w, true, 2, shape, 0, 1, 0);
    return seeded(w, 1, shape);
}

static ad_tensor rowsums_forward(const struct workload *w)
{
    return ad_sum_axes(w->parameter[0], (int64_t[]){1}, 1, 0);
}

/* `n` labels or indices, (7 r^power + 3) mod `extent`. */
static void numbers(struct workload *w, int64_t n, bool squared, int64_t extent)
{
    int64_t *number = input_array(w, (size_t)n * sizeof *number);
    for (int64_t r = 0; number && r < n; ++r)
        number[r] = (7 * r * (squared ? r : 1) + 3) % extent;
    w->constant[0] = ad_constant(w->tape, AD_I64, 1, &n, number);
}

static ad_status celoss_create(struct workload *w)
{
    input_tensor(w, true, 2, (int64_t[]){ROWS, CLASSES}, 0, 1, 0);
    numbers(w, ROWS, false, CLASSES);
    return ad_tape_status(w->tape);
}

static ad_tensor celoss_forward(const struct workload *w)
{
    return ad_softmax_cross_entropy(w->parameter[0], w->constant[0]);
}

static ad_status embedding_create(struct workload *w)
{
    input_tensor(w, true, 2, (int64_t[]){TABLE, w->spec->width}, 0, 1, 0);
    numbers(w, LOOKED_UP, true, TABLE);
    return seeded(w, 2, (int64_t[]){LOOKED_UP, w->spec->width});
}

static ad_tensor embedding_forward(const struct workload *w)
{
    return ad_embedding(w->parameter[0], w->constant[0]);
}

/* ---- attention ---- */

static ad_status attention_create(struct workload *w)
{
    const int64_t shape[] = {8, ROWS, w->spec->width};
    for (int k = 0; k < 3; ++k)
        input_tensor(w, true, 3, shape, 0, 1, k);
    return seeded(w, 3, shape);
}

static ad_tensor attnkeep_forward(const struct workload *w)
{
    return ad_attention(w->parameter[0], w->parameter[1], w->parameter[2], 0.125, AD_KEEP_WEIGHTS);
}

static ad_tensor attnstrip_forward(const struct workload *w)
{
    return ad_attention(w->parameter[0], w->parameter[1], w->parameter[2], 0.125, 0);
}

/* ---- all ---- */

const struct workload_case network_cases[] = {
    {"conv16", 16, 15175.24169663632, conv_forward, conv_create},
    {"conv16_x", 16, -72.16645258731009, conv_forward, conv_x_create},
    {"conv16_w", 16, 5634.8841037439097, conv_forward, conv_w_create},
    {"conv64", 64, 1577.7536732738856, conv_forward, conv_create},
    {"conv64_x", 64, 205.4289047718197, conv_forward, conv_x_create},
    {"conv64_w", 64, 1462.6101873280802, conv_forward, conv_w_create},
    {"maxpool2", 32, 212.368096508311, maxpool2_forward, pool_create},
    {"maxpool3", 32, -83.670253168344743, maxpool3_forward, pool_create},
    {"avgpool2", 32, 14.481878942002009, avgpool2_forward, pool_create},
    {"avgpool3", 64, 4.6026186209149547, avgpool3_forward, pool_create},
    {"batchnorm", 64, 5943.3601859505707, batchnorm_forward, batchnorm_create},
    {"layernorm", 512, 446.16200792919471, layernorm_forward, layernorm_create},
    {"rmsnorm", 512, 423.92566215409477, rmsnorm_forward, rmsnorm_create},
    {"softmax", CLASSES, -0.0089102878860838567, softmax_forward, softmax_create},
    {"rowsums", 512, 28.453082747574094, rowsums_forward, rowsums_create},
    {"celoss", CLASSES, 0.024335078523470492, celoss_forward, celoss_create},
    {"embedding", 128, 339.31219936294417, embedding_forward, embedding_create},
    {"attnkeep", 64, 16.2869868163564, attnkeep_forward, attention_create},
    {"attnstrip", 64, 16.2869868163564, attnstrip_forward, attention_create},
    {0},
};

const struct workload_case *network_find(const char *name)
{
    for (const struct workload_case *c = network_cases; c->name; ++c)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
