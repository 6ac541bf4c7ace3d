/* hash.h: a hash of an array at the speed of memory, to find that it was changed.
 *
 * Each of KERNEL_HASH_LANES sums takes every 16th word, and each step of a sum is one to one: a
 * change of one word is always seen, until the sums are mixed to 64 bits. It is the same for every
 * instruction set, and no hash for anything that leaves the process.
 */
#ifndef KERNEL_HASH_H
#define KERNEL_HASH_H

#include <stdint.h>

enum { KERNEL_HASH_LANES = 16, KERNEL_HASH_STRIPE = KERNEL_HASH_LANES * 8 };

/* Updates lane[KERNEL_HASH_LANES] by so many stripes of bytes, of any alignment of 4. */
typedef void kernel_hash_function(const void *data, uint64_t stripes, uint64_t *lane);

/* For the instruction set that the kernels use. */
kernel_hash_function *kernel_hash_get(void);

extern kernel_hash_function kernel_hash_portable, kernel_hash_avx2, kernel_hash_avx512;

#endif
