/* common_gemm.c: the products of a perceptron of three layers, forward and backward, by cblas. */
#include "common_gemm.h"

#include "common_own.h"
#include "common_rounds.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, BATCH = 64, MAX_SAMPLES = 1 << 16 };

static size_t element_bytes(const struct gemm_peer *peer)
{
    return peer->workload->dtype == AD_F32 ? sizeof(float) : sizeof(double);
}

/* Numbers about 0.01: what is multiplied neither grows nor vanishes. */
static void fill(const struct gemm_peer *peer, void *array, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        double value = 0.01 + 1e-5 * (double)(i % 101);
        if (peer->workload->dtype == AD_F32)
            ((float *)array)[i] = (float)value;
        else
            ((double *)array)[i] = value;
    }
}

bool gemm_peer_create(struct gemm_peer *peer, const struct workload *workload)
{
    *peer = (struct gemm_peer){.workload = workload};
    if (strncmp(workload->spec->name, "mlp", 3) != 0)
        return false;
    const int64_t w = workload->spec->width;
    const int64_t weights = LAYERS * w * w, layers = (LAYERS + 1) * BATCH * w;
    peer->weight = malloc(2 * (size_t)weights * element_bytes(peer));
    peer->layer = malloc(2 * (size_t)layers * element_bytes(peer));
    if (!peer->weight || !peer->layer) {
        gemm_peer_destroy(peer);
        return own_complain(workload, "no memory for bare products");
    }
    fill(peer, peer->weight, 2 * weights);
    fill(peer, peer->layer, 2 * layers);
    return true;
}

void gemm_peer_destroy(struct gemm_peer *peer)
{
    free(peer->weight);
    free(peer->layer);
    peer->weight = peer->layer = NULL;
}

static void product(const struct gemm_peer *peer, CBLAS_TRANSPOSE flip_a, CBLAS_TRANSPOSE flip_b,
                    int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c)
{
    const int rows = (int)m, columns = (int)n, depth = (int)k;
    const int la = flip_a == CblasTrans ? rows : depth, lb = flip_b == CblasTrans ? depth : columns;
    if (peer->workload->dtype == AD_F32)
        cblas_sgemm(CblasRowMajor, flip_a, flip_b, rows, columns, depth, 1, a, la, b, lb, 0, c,
                    columns);
    else
        cblas_dgemm(CblasRowMajor, flip_a, flip_b, rows, columns, depth, 1, a, la, b, lb, 0, c,
                    columns);
}

/* The inputs of the first layer are constant: they have no adjoint. */
static void step(const struct gemm_peer *peer)
{
    const int64_t w = peer->workload->spec->width;
    const size_t bytes = element_bytes(peer), square = (size_t)(w * w) * bytes;
    const size_t layer = (size_t)(BATCH * w) * bytes;
    char *weight = peer->weight, *weight_adjoint = weight + LAYERS * square;
    char *h = peer->layer, *adjoint = h + (LAYERS + 1) * layer;
    for (size_t k = 0; k < LAYERS; ++k)
        product(peer, CblasNoTrans, CblasNoTrans, BATCH, w, w, h + k * layer, weight + k * square,
                h + (k + 1) * layer);
    for (size_t k = LAYERS; k-- > 0;) {
        const char *g = adjoint + (k + 1) * layer;
        product(peer, CblasTrans, CblasNoTrans, w, w, BATCH, h + k * layer, g,
                weight_adjoint + k * square);
        if (k > 0)
            product(peer, CblasNoTrans, CblasTrans, BATCH, w, w, g, weight + k * square,
                    adjoint + k * layer);
    }
}

bool gemm_peer_round(void *context, double seconds, double *result)
{
    static double sample[MAX_SAMPLES];
    const struct gemm_peer *peer = context;
    const double end = rounds_now() + 1e9 * seconds;
    size_t n = 0;
    double start;
    do {
        start = rounds_now();
        step(peer);
        sample[n++ % MAX_SAMPLES] = rounds_now() - start;
    } while (start < end);
    const double median = rounds_median(sample, n < MAX_SAMPLES ? n : MAX_SAMPLES);
    for (int m = 0; m < STEP_METRICS; ++m)
        result[m] = median;
    return true;
}
