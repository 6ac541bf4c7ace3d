/* profile_seeds.h: ten small profiles made in memory, for tests that damage profiles.
 *
 * Uses no test framework, so that the fuzzer's programs can use it. Invariant: the same number
 * gives the same bytes; every seed is valid up to its last byte, those below
 * PROFILE_SEEDS_COMPLETE also have an end.
 */
#ifndef PROFILE_SEEDS_H
#define PROFILE_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROFILE_SEEDS = 10,
    PROFILE_SEEDS_COMPLETE = 8,
    PROFILE_SEED_BYTES = 2048,
    PROFILE_SEED_FRAMES = 24,
};

struct profile_seed {
    uint8_t data[PROFILE_SEED_BYTES];
    size_t n;
    size_t frame[PROFILE_SEED_FRAMES + 1]; /* where frames begin, and where the last one ends */
    size_t n_frames;
    bool overflow; /* it did not fit: the seed is not usable */
};

/* Makes seed number 0 to PROFILE_SEEDS - 1. */
void profile_seed_make(unsigned number, struct profile_seed *seed);

/* Walks the frames of n bytes and gives each the checksum of its payload; a last frame that says
 * more than there is gets the length of what there is. Writes the magic too. */
void profile_seed_repair(uint8_t *data, size_t n);

#endif
