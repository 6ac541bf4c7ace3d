/* ad_derivative.h: what the functions of ad_functional.h share: their results and their buffers. */
#ifndef AD_DERIVATIVE_H
#define AD_DERIVATIVE_H

#include "ad_isolation.h"

/* One buffer a leaf x[i], of `rows` times its elements. */
struct ad_outputs {
    const char *name; /* of the parameter */
    void *const *buffer;
    const int64_t *count;
};

/* The buffers have room for so many rows. */
ad_status ad_outputs_check(const struct ad_isolation *s, const struct ad_outputs *o, int64_t rows);
/* Row `row` of each is the gradient that the sweeps have given. */
void ad_outputs_take(const struct ad_isolation *s, const struct ad_outputs *o, int64_t row);
/* After a failure: NaN, where it is known what x[i] is. */
void ad_outputs_spoil(int n, const ad_tensor *x, const struct ad_outputs *o);
/* n elements of a dtype at `buffer` (NULL: none), likewise. */
void ad_spoil(int dtype, void *buffer, int64_t n);

/* A pointer that is no function is the tape's error. */
ad_status ad_function_check(const struct ad_isolation *s, ad_function *function);

/* The result y is of floats and depends on x. scalar: it has size 1, too. */
ad_status ad_result_check(const struct ad_isolation *s, uint32_t y, bool scalar);

#endif
