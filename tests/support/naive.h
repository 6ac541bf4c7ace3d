/* naive.h: tensors beside plain arrays, for the tests of ops that move elements.
 *
 * The elements of a scene's x are 0, 1, 2, ...; so whatever ops have moved, an element's value
 * says which element of x it is, and a gradient can be told from values.
 */
#ifndef NAIVE_H
#define NAIVE_H

#include <tapescope/ad.h>

enum { NAIVE_MOST = 4096, NAIVE_RANK = 8 };

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

/* In a plain array: the number v, which is no element of x. */
#define NAIVE_OTHER(v) (-1.0 - (v))

/* A plain row-major array. */
struct naive {
    int rank;
    int64_t shape[NAIVE_RANK];
    double at[NAIVE_MOST];
};

/* The tape and x, a leaf of floats or a constant of i64. */
struct scene {
    ad_tape tape;
    ad_dtype dtype;
    ad_tensor x;
    struct naive plain; /* x */
    char data[NAIVE_MOST * 8];
};

/* Makes an array of 0, 1, 2, ... and the scene with x over it; and ends the scene. */
void scene_begin(struct scene *s, ad_dtype dtype, int rank, const int64_t *shape);
void scene_end(struct scene *s);

int64_t naive_size(const struct naive *a);
/* Moves the index on in row-major order; false after the last one. */
bool naive_next(const struct naive *a, int64_t *index);
double naive_get(const struct naive *a, const int64_t *index);

/* What ops make of arrays, by plain loops. Axes and positions are not negative. */
struct naive naive_permuted(const struct naive *a, const int64_t *axes);
struct naive naive_sliced(const struct naive *a, int axis, int64_t start, int64_t stop,
                          int64_t step);
struct naive naive_selected(const struct naive *a, int axis, int64_t k);
struct naive naive_concatenated(const struct naive *a, int n, int axis);
struct naive naive_stacked(const struct naive *a, int n, int axis);

/* y has the array's extents and elements; and its gradient in x, for a seed of unequal numbers, is
 * what the elements say: x'[y_i] += seed_i. */
void naive_expect(const struct scene *s, ad_tensor y, const struct naive *want);

/* y failed with this error, which the scene's tape keeps; the tape is cleared, and usable. */
void naive_refused(const struct scene *s, ad_tensor y, ad_status status, const char *text);

#endif
