/* softmax_rows.h: softmax of dense rows and its adjoint, row by row while a row lies in cache.
 *
 * Internal to kernels/.
 */
#ifndef SOFTMAX_ROWS_H
#define SOFTMAX_ROWS_H

#include "kernel.h"

/* out = softmax of the rows of `x`, where g is NULL; else x (g - the row's sum of g x), the adjoint
 * for results x. All are dense, of out's extents; rows lie along its last axis. `flops`: of an
 * element, as the op's table has it. */
void softmax_rows_run(const struct kernel_array *out, const void *x, const void *g, int flops);

#endif
