/* philox.c: Philox 4x32-10, one block, or many side by side in loops that become vector code. */
#include "philox.h"

enum { ROUNDS = 10 };

static const uint32_t factor0 = 0xD2511F53, factor1 = 0xCD9E8D57;
static const uint32_t step0 = 0x9E3779B9, step1 = 0xBB67AE85;

/* One round on n counters, word by word. */
static inline __attribute__((always_inline)) void
round_all(int n, uint32_t key0, uint32_t key1, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    for (int i = 0; i < n; i++) {
        const uint64_t p = (uint64_t)factor0 * a[i], q = (uint64_t)factor1 * c[i];
        a[i] = (uint32_t)(q >> 32) ^ b[i] ^ key0;
        b[i] = (uint32_t)q;
        c[i] = (uint32_t)(p >> 32) ^ d[i] ^ key1;
        d[i] = (uint32_t)p;
    }
}

void philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4])
{
    for (int k = 0; k < 4; k++)
        words[k] = counter[k];
    for (uint32_t r = 0; r < ROUNDS; r++)
        round_all(1, key[0] + r * step0, key[1] + r * step1, &words[0], &words[1], &words[2],
                  &words[3]);
}

void philox_words(uint64_t seed, uint64_t first, uint32_t words[4 * PHILOX_BLOCKS])
{
    uint32_t w[4][PHILOX_BLOCKS];
    for (uint64_t i = 0; i < PHILOX_BLOCKS; i++) {
        w[0][i] = (uint32_t)(first + i);
        w[1][i] = (uint32_t)((first + i) >> 32);
        w[2][i] = w[3][i] = 0;
    }
    for (uint32_t r = 0; r < ROUNDS; r++)
        round_all(PHILOX_BLOCKS, (uint32_t)seed + r * step0, (uint32_t)(seed >> 32) + r * step1,
                  w[0], w[1], w[2], w[3]);
    for (int i = 0; i < PHILOX_BLOCKS; i++)
        for (int k = 0; k < 4; k++)
            words[4 * i + k] = w[k][i];
}
