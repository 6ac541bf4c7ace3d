/* plain_below.h: the random numbers of the programs that print programs of plain C: the same for a
 * seed on every machine. */
#ifndef PLAIN_BELOW_H
#define PLAIN_BELOW_H

#include <stdint.h>

static uint64_t state; /* the seed */

/* Below n; splitmix64, S. Vigna. */
static unsigned below(unsigned n)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (unsigned)((z ^ z >> 31) % n);
}

#endif
