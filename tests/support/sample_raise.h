/* sample_raise.h: the diagonals of drawn matrices, raised so that they are far from singular and
 * their eigenvalues far apart.
 */
#ifndef SAMPLE_RAISE_H
#define SAMPLE_RAISE_H

#include <stdint.h>

/* Adds (k + 1) `by` to element (k, k) of each matrix in the last two axes of x, or to element k of
 * a vector. */
static inline void sample_raise(double by, int rank, const int64_t *shape, double *x)
{
    if (by == 0)
        return;
    if (rank == 1)
        for (int64_t k = 0; k < shape[0]; k++)
            x[k] = (double)(float)(x[k] + (double)(k + 1) * by);
    if (rank < 2)
        return;
    const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
    int64_t matrices = 1;
    for (int axis = 0; axis < rank - 2; axis++)
        matrices *= shape[axis];
    for (int64_t i = 0; i < matrices; i++)
        for (int64_t k = 0; k < rows && k < columns; k++) {
            double *const element = &x[i * rows * columns + k * columns + k];
            *element = (double)(float)(*element + (double)(k + 1) * by);
        }
}

#endif
