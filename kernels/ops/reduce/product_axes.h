/* product_axes.h: products over chosen axes that neither overflow nor vanish on the way, and the
 * walk over the elements that such a product is of.
 *
 * Internal to kernels/.
 */
#ifndef PRODUCT_AXES_H
#define PRODUCT_AXES_H

#include "op_rules.h"

/* The number mantissa * 2^exponent; the mantissa is 0, not finite, or in [0.5, 1) by size. */
struct scaled_product {
    double mantissa;
    int64_t exponent;
};

static const struct scaled_product product_one = {0.5, 1};

struct scaled_product product_of(double x);
struct scaled_product product_times(struct scaled_product a, struct scaled_product b);
double product_value(struct scaled_product a);

/* Walks the axes of an array that are in the mask, in row-major order. */
struct product_walk {
    int rank;
    int64_t extent[KERNEL_MAX_RANK], stride[KERNEL_MAX_RANK], index[KERNEL_MAX_RANK];
    int64_t offset; /* elements */
    int64_t count;
};

void product_walk_begin(struct product_walk *walk, int rank, const int64_t *shape,
                        const int64_t *strides, unsigned axes);

/* Moves on; false after the last one, and the walk is then at its beginning again. */
bool product_walk_next(struct product_walk *walk);

#endif
