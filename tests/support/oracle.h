/* oracle.h: tensors made of doubles, and what ops make of them as doubles, for comparisons with
 * plain loops.
 *
 * One tape at a time; the arrays that its leaves borrow are kept until oracle_end(). Any failure
 * that is not asked for fails the test.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <tapescope/ad.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

/* How a tensor of given elements is made. */
enum oracle_layout {
    ORACLE_DENSE,
    ORACLE_TRANSPOSED, /* a view with the last two axes exchanged */
    ORACLE_SLICED,     /* every second element of the last axis of a larger one */
    ORACLE_LAYOUTS
};

void oracle_begin(ad_dtype dtype);
void oracle_end(void);
ad_tape oracle_tape(void);

/* n numbers in [low, high), the same for the same seed; all are exact in f32. */
void oracle_draw(unsigned seed, int64_t n, double low, double high, double *out);

/* A leaf, or a view of one, with these elements in the tape's dtype. */
ad_tensor oracle_tensor(enum oracle_layout layout, int rank, const int64_t *shape,
                        const double *elements);
ad_tensor oracle_leaf(int rank, const int64_t *shape, const double *elements);

/* The elements of a tensor, or of its gradient, which are as many as x has. */
void oracle_value(ad_tensor x, double *out);
void oracle_gradient(ad_tensor x, double *out);

/* The sweep from y with a seed of these elements. */
void oracle_sweep(ad_tensor y, const double *seed);

/* |got - want| <= tolerance (1 + |want|); NaN equals NaN, and infinities themselves. */
void oracle_close(const char *what, int64_t n, const double *got, const double *want,
                  double tolerance);

/* y failed with this status and a message that holds the text; the tape is cleared. */
void oracle_refused(ad_tensor y, ad_status status, const char *text);

#endif
