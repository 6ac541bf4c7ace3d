/* product_axes.c: products with an exponent of their own, and the walk over some axes. */
#include "product_axes.h"

#include <math.h>

struct scaled_product product_of(double x)
{
    int exponent = 0;
    const double mantissa = frexp(x, &exponent);
    return (struct scaled_product){mantissa, isfinite(x) ? exponent : 0};
}

struct scaled_product product_times(struct scaled_product a, struct scaled_product b)
{
    struct scaled_product c = product_of(a.mantissa * b.mantissa);
    c.exponent += a.exponent + b.exponent;
    return c;
}

double product_value(struct scaled_product a)
{
    enum { BEYOND = 4000 };
    const int64_t e = a.exponent;
    return ldexp(a.mantissa, e > BEYOND ? BEYOND : e < -BEYOND ? -BEYOND : (int)e);
}

void product_walk_begin(struct product_walk *walk, int rank, const int64_t *shape,
                        const int64_t *strides, unsigned axes)
{
    *walk = (struct product_walk){.count = 1};
    for (int axis = 0; axis < rank; axis++) {
        if (!(axes >> axis & 1))
            continue;
        walk->extent[walk->rank] = shape[axis];
        walk->stride[walk->rank++] = strides[axis];
        walk->count *= shape[axis];
    }
}

bool product_walk_next(struct product_walk *walk)
{
    for (int axis = walk->rank - 1; axis >= 0; axis--) {
        walk->offset += walk->stride[axis];
        if (++walk->index[axis] < walk->extent[axis])
            return true;
        walk->offset -= walk->index[axis] * walk->stride[axis];
        walk->index[axis] = 0;
    }
    return false;
}
