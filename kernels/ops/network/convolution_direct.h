/* convolution_direct.h: a convolution without windows side by side.
 *
 * Internal to kernels/. The rows of one image that a strip of results needs are copied with zeros
 * around them, and tiles of results are computed from the copy in registers.
 */
#ifndef CONVOLUTION_DIRECT_H
#define CONVOLUTION_DIRECT_H

#include "convolution.h"

/* Bytes of workspace for one of the three products, 0 where it is not computed so. */
size_t convolution_direct_space(const struct convolution *all, enum convolution_array result);

/* Computes it, operands as in convolution_family. False: not done, since the processor has no such
 * loops, or the zeros around an image would meet weights that are not finite. */
bool convolution_direct(const struct convolution *all, enum convolution_array result,
                        const void *first, const void *second, void *out, bool accumulate,
                        void *space);

#endif
