/* convolution.h: the three products that a convolution and its adjoints are.
 *
 * May include: kernel.h. Internal to kernels/. With x [n,c,h,w], weights [o,c/groups,kh,kw] and y
 * [n,o,oh,ow]: each of the three is linear in the other two. The windows of one image, or of as
 * many rows of its output as fit into some memory, are laid side by side (im2col), and BLAS
 * multiplies.
 */
#ifndef CONVOLUTION_H
#define CONVOLUTION_H

#include "kernel.h"

/* The attributes stride, padding and dilation of height and width, and groups. */
enum { CONVOLUTION_ATTRIBUTES = 7 };

struct convolution {
    int dtype;
    int64_t n, c, o, groups;
    int64_t image[2], kernel[2], result[2]; /* height and width */
    int64_t stride[2], padding[2], dilation[2];
    int64_t strip; /* rows of y at a time */
    bool in_place; /* the windows are x itself */
};

/* From the extents of x and of the weights. Returns 0, or -1 with call->error. */
int convolution_make(const struct kernel_call *call, int dtype, const int64_t x[4],
                     const int64_t weights[4], const int64_t *attr, struct convolution *all);

/* The extent of x from that of y, `beyond` elements more than the least; not checked. */
int64_t convolution_image(int64_t result, int64_t kernel, int64_t stride, int64_t padding,
                          int64_t dilation, int64_t beyond);

/* Bytes of workspace of any of the three. */
size_t convolution_space(const struct convolution *all);

/* y = conv(x, w), x = its adjoint (y, w), w = its adjoint (x, y), or += with accumulate. All arrays
 * are row-major. */
void convolution_forward(const struct convolution *all, const void *x, const void *w, void *y,
                         bool accumulate, void *space);
void convolution_to_image(const struct convolution *all, const void *y, const void *w, void *x,
                          bool accumulate, void *space);
void convolution_to_weights(const struct convolution *all, const void *x, const void *y, void *w,
                            bool accumulate, void *space);

/* Multiplications and additions, every operand moved once. */
struct kernel_cost convolution_cost(const struct kernel_call *call, const struct convolution *all);

/* Extents of an operand of one spatial axis as if it had a first one of extent 1. */
static inline void convolution_widen(kernel_ref a, int64_t shape[4])
{
    shape[0] = a->shape[0];
    shape[1] = a->shape[1];
    shape[2] = 1;
    shape[3] = a->shape[2];
}

#endif
