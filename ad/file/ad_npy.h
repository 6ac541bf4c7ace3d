/* ad_npy.h: one array in NumPy's .npy format (numpy.lib.format): written in version 1.0, read in
 * 1.0 to 3.0.
 */
#ifndef AD_NPY_H
#define AD_NPY_H

#include "ad_zip.h"
#include "kernel.h"

/* An array: of a tensor or of the user's to be written, of scratch memory when read. */
struct ad_npy_array {
    int dtype, rank;
    int64_t shape[KERNEL_MAX_RANK], size;
    const void *data; /* row-major */
};

/* What stands before the elements, a multiple of 64 bytes: into text, its length. */
enum { AD_NPY_HEADER = 320 };
size_t ad_npy_header(const struct ad_npy_array *a, char text[AD_NPY_HEADER]);

/* What the header of a file says. */
struct ad_npy {
    const struct npy_format *format;
    bool swapped, fortran;
    struct ad_npy_array array; /* what it becomes, without data */
};

/* Reads the header; the elements are next, and as many as the member's length says. False: the
 * fault. */
bool ad_npy_read_header(struct ad_zip_stream *s, struct ad_npy *h);
/* Reads the elements as those of dtype into data [size], row-major. dtype: the array's, or
 * KERNEL_F64 for KERNEL_F32. */
bool ad_npy_read_elements(struct ad_zip_stream *s, const struct ad_npy *h, int dtype, void *data);

#endif
