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
/* They hold the gradients that the sweeps have given. */
void ad_outputs_take(const struct ad_isolation *s, const struct ad_outputs *o);
/* A gradient of so many bytes; NULL: zeros. */
void ad_gradient_copy(void *to, const void *gradient, uint64_t bytes);
/* After a failure: NaN, where it is known what x[i] is. */
void ad_outputs_spoil(int n, const ad_tensor *x, const struct ad_outputs *o);
/* `count` elements of x[0]'s dtype, likewise, where that is known. */
void ad_spoil_like(int n, const ad_tensor *x, void *buffer, int64_t count);

/* Finds the tape and begins the isolation of x[n]; a pointer that is no function is an error. */
ad_status ad_derivative_begin(struct ad_isolation *s, ad_function *function);

/* The result y is of floats and depends on x. scalar: it has size 1, too. */
ad_status ad_result_check(const struct ad_isolation *s, uint32_t y, bool scalar);

/* The same, and the leaves and y have one dtype. */
ad_status ad_result_check_one_dtype(const struct ad_isolation *s, uint32_t y, bool scalar);

/* Elements of all leaves. */
int64_t ad_variables(const struct ad_isolation *s);

/* Room for the indices g[n] of values, until the isolation ends; NULL: the tape's error says that
 * there is none. */
uint32_t *ad_gradients_get(struct ad_isolation *s);
/* The same, of the leaves themselves. */
uint32_t *ad_leaves_get(struct ad_isolation *s);

/* Records the gradients of y by the leaves as values g[n]. seed: a value, or 0 for ones. */
ad_status ad_record_gradients(struct ad_isolation *s, uint32_t y, uint32_t seed, uint32_t *g);

/* The same with a seed that is a variable, [shape of y], and the only one from then on: as g[] is
 * linear in it, a sweep from g[i] with v leaves J_i v as the seed's gradient. */
ad_status ad_record_transposed(struct ad_isolation *s, uint32_t y, uint32_t *seed, uint32_t *g);

/* What a value needs no gradient of depends on no variable. */
static inline bool ad_depends(const struct ad_isolation *s, uint32_t value)
{
    return (s->t->entries[value].flags & TAPE_NEEDS_GRADIENT) != 0;
}

#endif
