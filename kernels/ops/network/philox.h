/* philox.h: random words by counter: Philox 4x32 with 10 rounds.
 *
 * Internal to kernels/. A block of four words is a function of key and counter alone, so that
 * whoever knows both makes the same words again, in any order. Source: Salmon, Moraes, Dror &
 * Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011, doi 10.1145/2063384.2063405.
 */
#ifndef PHILOX_H
#define PHILOX_H

#include <stdint.h>

enum { PHILOX_BLOCKS = 64 };

/* Four words of one key and one counter. */
void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);

/* The words of PHILOX_BLOCKS counters from `first` on, whose upper half is 0: words 4 i to 4 i + 3
 * are those of first + i. */
void philox_words(uint64_t seed, uint64_t first, uint32_t words[4 * PHILOX_BLOCKS]);

#endif
