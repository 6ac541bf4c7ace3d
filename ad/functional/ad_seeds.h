/* ad_seeds.h: the sweeps that a matrix of derivatives is made of, several seeds at once where the
 * recording takes them (tape_sweep_seeds), else one by one.
 */
#ifndef AD_SEEDS_H
#define AD_SEEDS_H

#include "ad_isolation.h"

enum {
    AD_SEEDS_MOST = 16, /* of one sweep */
    /* What the largest adjoint may take with all its seeds: beyond, where one is as large as a
     * cache, several at once gain nothing (docs/decisions/087). */
    AD_SEEDS_BYTES = 1 << 20
};

struct ad_seeds {
    struct ad_isolation *s;
    uint32_t y;           /* where sweeps begin */
    int n;                /* leaves that receive gradients, [n] */
    const uint32_t *leaf; /* their values */
    void **own, **wide;   /* their buffers: the tape's or the isolation's, and of all seeds */
    char *seed;           /* [width] arrays of y's shape and dtype; the caller sets them */
    uint32_t width;       /* how many there are */
    uint32_t together;    /* width, or 1: how many are swept at once */
    uint32_t lane;        /* whose gradients are taken */
    bool again;           /* a sweep has been */
};

/* Is told of each seed in turn: its number, and ad_seeds_gradient gives what it has led to. */
typedef void ad_seeds_take(const struct ad_seeds *w, int64_t number, void *of);

/* Begins sweeps from y that give gradients of leaf[n], `most` seeds in all. After an error there is
 * nothing to end. Errors: AD_ERROR_MEMORY. */
ad_status ad_seeds_begin(struct ad_seeds *w, struct ad_isolation *s, uint32_t y, int n,
                         const uint32_t *leaf, int64_t most);
/* Element `element` of a seed is `number`. */
void ad_seeds_set(const struct ad_seeds *w, uint32_t seed, int64_t element, float number);
/* Sweeps from the first n seeds, which are number `first` and on. */
ad_status ad_seeds_run(struct ad_seeds *w, uint32_t n, int64_t first, ad_seeds_take *take,
                       void *of);
/* The same from every element of y alone, in order; seeds are zeros before. */
ad_status ad_seeds_units(struct ad_seeds *w, ad_seeds_take *take, void *of);
void ad_seeds_end(struct ad_seeds *w);

/* The gradient of leaf[i], or NULL: zeros. */
const void *ad_seeds_gradient(const struct ad_seeds *w, int i);

#endif
