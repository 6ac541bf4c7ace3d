/* ad_kernel.h: the library's kernels, called without a tape. What files call that ad_tensor_write_c
 * (ad_tensor_program.h) has written; include it beside nothing else.
 *
 * A call is an op by its name, the layouts of its arrays, and its attributes. Ops are those of
 * ad_ops.h and the ones that their derivatives are made of; ad_tensor_write_c says which, so there
 * is no list of them here. A kernel computes on the caller's memory, and allocates nothing.
 *
 * Versions: AD_KERNELS_VERSION grows when an op of that name takes something else, or its
 * attributes mean something else. A file keeps the number that it was written with, and calls
 * ad_kernels_ready with it, which refuses another one: then the program is to be written again.
 *
 * Threads: any, at the same time, on memory of their own.
 */
#ifndef TAPESCOPE_AD_KERNEL_H
#define TAPESCOPE_AD_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include <tapescope/ad_site.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AD_KERNELS_VERSION = 2, AD_KERNEL_RANK = 8 };

/* How the elements of an array lie. */
typedef struct ad_kernel_array {
    int64_t size;                                           /* elements */
    int64_t dense;                                          /* 1: row-major, without gaps */
    int dtype, rank;                                        /* an ad_dtype; axes */
    int64_t shape[AD_KERNEL_RANK], strides[AD_KERNEL_RANK]; /* strides in elements */
} ad_kernel_array;

typedef struct ad_kernel_call {
    const char *op;
    int at; /* where the table of ops had it; only speed depends on it */
    int n_out, n_in, n_attr;
    int adds;                            /* result 0 is added to what is there */
    size_t workspace;                    /* bytes */
    const ad_kernel_array *const *array; /* [n_out + n_in] results, then operands */
    const int64_t *attr;                 /* [n_attr] */
} ad_kernel_call;

/* NULL, or why kernels cannot be called: `version` is not AD_KERNELS_VERSION of this library, or
 * OpenBLAS has no memory for its buffers. Static storage. Before the first call in a process it
 * lets OpenBLAS take these buffers; later it costs a comparison. */
AD_API const char *ad_kernels_ready(int version);

/* Runs it. out[n_out], in[n_in]: where the arrays are; workspace: aligned to 64 bytes, NULL where
 * there is none. 0, or -1, after which results are undefined and the thread's error is
 * AD_ERROR_VALUE (an op refuses the numbers: ad_tape_message((ad_tape){0}) says which and why) or
 * AD_ERROR_ARGUMENT (the library has no such op, or one of other operands). ad_kernels_ready has
 * said NULL. Layouts and attributes are believed: wrong ones lead beyond the arrays. */
AD_API int ad_kernel_run(const ad_kernel_call *call, void *const *out, const void *const *in,
                         void *workspace);

#ifdef __cplusplus
}
#endif

#endif
