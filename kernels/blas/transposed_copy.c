/* transposed_copy.c: squares of 8 x 8 elements, so that every cache line that is touched is used
 * whole while it is there.
 */
#include "transposed_copy.h"

enum { SIDE = 8 };

/* Words of the elements' sizes, so that every bit of a NaN is kept. */
typedef uint32_t __attribute__((may_alias)) word_4;
typedef uint64_t __attribute__((may_alias)) word_8;

#define TRANSPOSE(name, word)                                                                      \
    static void name(int64_t rows, int64_t columns, const word *from, int64_t from_stride,         \
                     word *to, int64_t to_stride)                                                  \
    {                                                                                              \
        int64_t r = 0;                                                                             \
        for (; r + SIDE <= rows; r += SIDE) {                                                      \
            int64_t c = 0;                                                                         \
            for (; c + SIDE <= columns; c += SIDE)                                                 \
                for (int i = 0; i < SIDE; i++)                                                     \
                    for (int j = 0; j < SIDE; j++)                                                 \
                        to[(r + i) * to_stride + c + j] = from[(c + j) * from_stride + r + i];     \
            for (; c < columns; c++)                                                               \
                for (int i = 0; i < SIDE; i++)                                                     \
                    to[(r + i) * to_stride + c] = from[c * from_stride + r + i];                   \
        }                                                                                          \
        for (; r < rows; r++)                                                                      \
            for (int64_t c = 0; c < columns; c++)                                                  \
                to[r * to_stride + c] = from[c * from_stride + r];                                 \
    }

TRANSPOSE(transpose_4, word_4)
TRANSPOSE(transpose_8, word_8)

void kernel_transpose(size_t elem, int64_t rows, int64_t columns, const void *from,
                      int64_t from_stride, void *to, int64_t to_stride)
{
    if (elem == sizeof(word_4))
        transpose_4(rows, columns, from, from_stride, to, to_stride);
    else
        transpose_8(rows, columns, from, from_stride, to, to_stride);
}
