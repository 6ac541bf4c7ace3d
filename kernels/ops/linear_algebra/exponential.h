/* exponential.h: exponentials of matrices and their Frechet derivatives.
 *
 * Internal to kernels/.
 */
#ifndef EXPONENTIAL_H
#define EXPONENTIAL_H

#include "kernel.h"

/* Bytes of workspace for matrices [n,n]. */
size_t exponential_workspace(int dtype, int64_t n, bool derivative);

/* y [n,n] = e^a, and, unless e is NULL, z = the derivative of that in the direction e. All are
 * row-major and apart. What is not finite gives NaN. */
void exponential_run(int dtype, int64_t n, const void *a, const void *e, void *y, void *z,
                     void *workspace);

#endif
