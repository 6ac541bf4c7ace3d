/* dense_copy.h: float operands as dense row-major data, copied into workspace where they are not.
 *
 * Internal to kernels/.
 */
#ifndef DENSE_COPY_H
#define DENSE_COPY_H

#include "kernel.h"

/* Bytes of a dense copy of the array, rounded up so that another one may lie behind it. */
size_t dense_copy_bytes(kernel_ref x);

/* Bytes of workspace that dense_copy() takes: none where x is contiguous. */
size_t dense_copy_space(kernel_ref x);

/* x's elements in row-major order: its own, or a copy at *space, which is moved on. */
void *dense_copy(kernel_ref x, char **space);

#endif
