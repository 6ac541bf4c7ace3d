/* training.c: random numbers and parameters. See training.h. */
#include "training.h"

#include "optimisers.h"

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

ad_status parameter_step(struct parameter *p, int step)
{
    ad_status status = ad_gradient(p->leaf, p->gradient, p->size);
    if (status == AD_OK)
        adam_step(p->size, 2e-3f, step, p->gradient, p->mean, p->square, p->value);
    return status;
}
