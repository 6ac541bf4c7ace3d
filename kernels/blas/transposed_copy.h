/* transposed_copy.h: a matrix copied with rows and columns exchanged.
 *
 * Internal to kernels/.
 */
#ifndef TRANSPOSED_COPY_H
#define TRANSPOSED_COPY_H

#include <stddef.h>
#include <stdint.h>

/* to[r * to_stride + c] = from[c * from_stride + r] for r < rows, c < columns: elements of `elem`
 * bytes, 4 or 8; strides in elements. The two may not overlap. */
void kernel_transpose(size_t elem, int64_t rows, int64_t columns, const void *from,
                      int64_t from_stride, void *to, int64_t to_stride);

#endif
