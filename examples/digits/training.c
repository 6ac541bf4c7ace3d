/* training.c: random numbers, parameters, and Adam. See training.h. */
#include "training.h"

#include <math.h>
#include <stdlib.h>

/* splitmix64 (Steele, Lea and Flood 2014, doi 10.1145/2660193.2660195). */
uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [-1, 1). */
static float random_float(uint64_t *state)
{
    return (float)(random_bits(state) >> 40) * 0x1p-23f - 1.0f;
}

void shuffle(int64_t *order, int64_t count, uint64_t *state)
{
    for (int64_t i = count - 1; i > 0; --i) {
        int64_t j = (int64_t)(random_bits(state) % (uint64_t)(i + 1));
        int64_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}

/* One array for the values and for all that belongs to them. */
bool parameter_init(struct parameter *p, ad_tape tape, int rank, const int64_t *shape, float bound,
                    uint64_t *seed)
{
    p->size = rank == 2 ? shape[0] * shape[1] : shape[0];
    size_t n = (size_t)p->size;
    p->value = calloc(4 * n, sizeof *p->value);
    if (!p->value)
        return false;
    p->gradient = p->value + n;
    p->mean = p->gradient + n;
    p->square = p->mean + n;
    for (size_t i = 0; i < n; ++i)
        p->value[i] = bound * random_float(seed);
    p->leaf = ad_leaf(tape, AD_F32, rank, shape, p->value);
    return true;
}

void parameter_free(struct parameter *p)
{
    free(p->value);
    *p = (struct parameter){0};
}

/* Kingma and Ba 2015, algorithm 1 (arXiv 1412.6980). */
static void adam(struct parameter *p, int step)
{
    const float rate = 2e-3f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    float rate_at_step = rate / (1.0f - powf(beta1, (float)step));
    float square_scale = 1.0f / (1.0f - powf(beta2, (float)step));
    for (int64_t i = 0; i < p->size; ++i) {
        float g = p->gradient[i];
        p->mean[i] = beta1 * p->mean[i] + (1.0f - beta1) * g;
        p->square[i] = beta2 * p->square[i] + (1.0f - beta2) * g * g;
        p->value[i] -= rate_at_step * p->mean[i] / (sqrtf(p->square[i] * square_scale) + epsilon);
    }
}

ad_status parameter_step(struct parameter *p, int step)
{
    ad_status status = ad_gradient(p->leaf, p->gradient, p->size);
    if (status == AD_OK)
        adam(p, step);
    return status;
}
