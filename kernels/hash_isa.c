/* hash_isa.c: the loop of hash.h for one instruction set.
 *
 * Compiled once for each instruction set. All sums of a stripe are in registers; vectors are no
 * wider than the machine's.
 */
#include "hash.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if defined(__AVX512F__)
enum { WIDTH = 8 };
#elif defined(__AVX2__)
enum { WIDTH = 4 };
#else
enum { WIDTH = 2 };
#endif
enum { VECTORS = KERNEL_HASH_LANES / WIDTH };
typedef uint64_t words __attribute__((vector_size(WIDTH * 8), aligned(4), may_alias));

void JOIN(kernel_hash_, KERNEL_ISA)(const void *data, uint64_t stripes, uint64_t *lane)
{
    const words *at = data;
    words sum[VECTORS];
    for (int k = 0; k < VECTORS; k++)
        sum[k] = ((const words *)(const void *)lane)[k];
    for (; stripes > 0; stripes--, at += VECTORS)
        for (int k = 0; k < VECTORS; k++) {
            sum[k] ^= at[k];
            sum[k] += sum[k] << 7;
            sum[k] ^= sum[k] >> 31;
        }
    for (int k = 0; k < VECTORS; k++)
        ((words *)(void *)lane)[k] = sum[k];
}
