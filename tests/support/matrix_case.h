/* matrix_case.h: tensors of matrices for the tests of linear algebra, read back as doubles.
 *
 * One tape at a time, made by matrix_begin; what a tensor borrows lasts until matrix_end.
 */
#ifndef MATRIX_CASE_H
#define MATRIX_CASE_H

#include <stdbool.h>
#include <tapescope/ad.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

/* How a tensor lies: row-major, as a transposed view, or with gaps between rows and columns. */
enum matrix_layout { MATRIX_DENSE, MATRIX_TURNED, MATRIX_GAPPED, MATRIX_LAYOUTS };

void matrix_begin(ad_dtype dtype);
void matrix_end(void);
ad_tape matrix_tape(void);
/* Machine epsilon of the tape's dtype. */
double matrix_epsilon(void);

/* A leaf of these elements (rounded to the dtype). */
ad_tensor matrix_leaf(int rank, const int64_t *shape, const double *elements);
/* The same elements as a leaf and a view of it. Two axes. */
ad_tensor matrix_laid(enum matrix_layout layout, int64_t rows, int64_t columns,
                      const double *elements);

/* Elements and gradients as doubles; the test fails if the tape refuses. */
void matrix_read(ad_tensor x, double *to);
void matrix_gradient(ad_tensor x, double *to);

/* Sweeps from sum(weights * y). */
void matrix_sweep(ad_tensor y, const double *weights);

/* Numbers in [-1, 1] from a fixed seed, which f32 can hold. */
void matrix_random(int64_t n, double *to);
/* The same, with `raise` (k + 1) added to the diagonal. */
void matrix_random_raised(int64_t n, double raise, double *to);

/* The tape refused with this code and a text that holds `text`; the error is cleared. */
void matrix_refused(ad_status status, const char *text);

#endif
