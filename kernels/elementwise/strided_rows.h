/* strided_rows.h: elements that lie apart, or one that stands for many, into dense blocks and back.
 *
 * Internal to kernels/. Elements have four or eight bytes.
 */
#ifndef STRIDED_ROWS_H
#define STRIDED_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* n elements of `block` become the one at `from`. */
static inline void strided_spread(int64_t n, size_t elem, void *block, const void *from)
{
    if (elem == sizeof(float)) {
        const float x = *(const float *)from;
        float *b = block;
        for (int64_t i = 0; i < n; i++)
            b[i] = x;
    } else {
        const double x = *(const double *)from;
        double *b = block;
        for (int64_t i = 0; i < n; i++)
            b[i] = x;
    }
}

/* Elements `stride` apart into a dense block, and back. */
static inline void strided_gather(int64_t n, size_t elem, void *block, const void *from,
                                  int64_t stride)
{
    if (elem == sizeof(float)) {
        const float *x = from;
        float *b = block;
        for (int64_t i = 0; i < n; i++)
            b[i] = x[i * stride];
    } else {
        const double *x = from;
        double *b = block;
        for (int64_t i = 0; i < n; i++)
            b[i] = x[i * stride];
    }
}

static inline void strided_scatter(int64_t n, size_t elem, void *to, int64_t stride,
                                   const void *block)
{
    if (elem == sizeof(float)) {
        const float *b = block;
        float *x = to;
        for (int64_t i = 0; i < n; i++)
            x[i * stride] = b[i];
    } else {
        const double *b = block;
        double *x = to;
        for (int64_t i = 0; i < n; i++)
            x[i * stride] = b[i];
    }
}

#endif
