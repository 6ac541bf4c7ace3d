/* convolution.h: the three products that a convolution and its adjoints are.
 *
 * Internal to kernels/. With x [n,c,h,w], weights [o,c/groups,kh,kw] and y [n,o,oh,ow]: each of
 * the three is linear in the other two. The windows of one image, or of as many rows of its output
 * as fit into some memory, are laid side by side (im2col), and BLAS multiplies, unless
 * convolution_direct.h has loops for it.
 */
#ifndef CONVOLUTION_H
#define CONVOLUTION_H

#include "kernel_depends.h"
#include "op_rules.h"

/* The attributes stride, padding and dilation of height and width, and groups. */
enum { CONVOLUTION_ATTRIBUTES = 7 };
/* clang-format off */
#define CONVOLUTION_ATTRIBUTE_NAMES                                                                \
    {"stride_h", KERNEL_ATTR_OPTION_ONE}, {"stride_w", KERNEL_ATTR_OPTION_ONE},                    \
    {"padding_h", KERNEL_ATTR_OPTION}, {"padding_w", KERNEL_ATTR_OPTION},                          \
    {"dilation_h", KERNEL_ATTR_OPTION_ONE}, {"dilation_w", KERNEL_ATTR_OPTION_ONE},                \
    {"groups", KERNEL_ATTR_OPTION_ONE}

/* A sample: rank and extents of the operands, the number of attributes, and these. */
#define CONVOLUTION_SAMPLE(r, extents, other_extents, n, ...)                                      \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {r, r},                                 \
     .shape = {{KERNEL_EXTENTS extents}, {KERNEL_EXTENTS other_extents}},                          \
     .low = {-1, -1}, .high = {1, 1}, .n_attr = n, .attr = {__VA_ARGS__}}
/* clang-format on */

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

/* Which of the three arrays. */
enum convolution_array { CONVOLUTION_X, CONVOLUTION_W, CONVOLUTION_Y };

/* What the ops differ in: y is computed from x and w, x from y and w, w from x and y, operands in
 * this order. */
struct convolution_family {
    enum convolution_array result;
    int rank;           /* 4, or 3 with one spatial axis, the width */
    const char *wanted; /* what the operands are, for people */
    int (*make)(const struct kernel_call *call, struct convolution *all);
};

/* Functions of the ops. */
int convolution_shape(const struct kernel_call *call, struct kernel_shape *out);
int convolution_forward(const struct kernel_call *call);
size_t convolution_workspace(const struct kernel_call *call);
/* By windows and groups of channels; all on all where the result is the weights. */
void convolution_depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d);
/* Multiplications and additions, every operand moved once. */
struct kernel_cost convolution_cost(const struct kernel_call *call);

/* The attributes with two more behind them. */
void convolution_extend(const int64_t *attr, const int64_t more[2],
                        int64_t extended[CONVOLUTION_ATTRIBUTES + 2]);
/* conv_transpose2d's attributes that lead from y [n,o,oh,ow] to an x of this height and width. */
void convolution_extend_to(const int64_t *attr, kernel_ref x, kernel_ref y, kernel_ref weights,
                           int64_t extended[CONVOLUTION_ATTRIBUTES + 2]);

/* Extents of an operand of one spatial axis as if it had a first one of extent 1. */
static inline void convolution_widen(kernel_ref a, int64_t shape[4])
{
    shape[0] = a->shape[0];
    shape[1] = a->shape[1];
    shape[2] = 1;
    shape[3] = a->shape[2];
}

#endif
