/* profile_seeds.h: ten small profiles made in memory, for tests that damage profiles.
 *
 * Uses no test framework, so that the fuzzer's programs can use it. Invariant: the same number
 * gives the same bytes; every seed is valid up to its last byte, those below
 * PROFILE_SEEDS_COMPLETE also have an end.
 */
#ifndef PROFILE_SEEDS_H
#define PROFILE_SEEDS_H

#include "profile_maker.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PROFILE_SEEDS = 10,
    PROFILE_SEEDS_COMPLETE = 8,
    PROFILE_SEED_BYTES = 2048,
};

/* Makes seed number 0 to PROFILE_SEEDS - 1. */
void profile_seed_make(unsigned number, struct maker_bytes *seed);

/* Walks the frames of n bytes and gives each the checksum of its payload; a last frame that says
 * more than there is gets the length of what there is. Writes the magic too. */
void profile_seed_repair(uint8_t *data, size_t n);

#endif
