/* profile_seeds.c: see profile_seeds.h.
 *
 * Between them the seeds have every kind of packet, and tapes that live, died, or were merged.
 */
#include "profile_seeds.h"

#include "profile_frame.h"
#include "profile_seed_packets.h"

#include <math.h>
#include <string.h>

static void put_body(unsigned number, struct profile_seed *seed)
{
    switch (number) {
    case 0: /* a program that used no tape */
        seed_put_header(seed, "tsc", 0);
        break;
    case 1: /* one tape, calibrated */
        seed_put_header(seed, "tsc", 1);
        seed_put_modules(seed, 1);
        seed_put_overhead(seed, 2.5, 3);
        seed_put_clock(seed, 1000, 500);
        seed_put_scopes(seed, 1, 5);
        seed_put_tape(seed, 1, 0, 3, 2);
        seed_put_residuals(seed, 1, 0, 2);
        seed_put_scopes(seed, 3, 4);
        seed_put_symbols(seed);
        seed_put_events(seed, 8, 5);
        seed_put_clock(seed, 2000, 900);
        break;
    case 2: /* two tapes over three modules */
        seed_put_header(seed, "monotonic", 3);
        seed_put_modules(seed, 3);
        seed_put_overhead(seed, (double)NAN, -1e300);
        seed_put_clock(seed, 5, 5);
        seed_put_paths(seed, 0);
        seed_put_tape(seed, 1, 0, 5, 1);
        seed_put_tape(seed, 2, 1, 4, 1000);
        seed_put_paths(seed, 2);
        seed_put_events(seed, 6, 4);
        break;
    case 3: /* later packets of a row replace earlier ones */
        seed_put_header(seed, "step:1000", 2);
        seed_put_tape(seed, 1, 0, 2, 1);
        seed_put_tape(seed, 1, 1, 2, 2);
        seed_put_tape(seed, 1, 0, 3, 3);
        seed_put_threads(seed, 1);
        seed_put_samples(seed, 0, 1, 0);
        seed_put_samples(seed, 3, 2, 3);
        break;
    case 4: /* a tape that died and was merged, one that lives */
        seed_put_header(seed, "tsc", 1);
        seed_put_clock(seed, 1, 1);
        seed_put_tape(seed, 1, 0, 2, 4);
        seed_put_tape(seed, 2, 0, 2, 1);
        seed_put_residuals(seed, 2, 0, 1);
        seed_put_final(seed, 1);
        seed_put_tape(seed, 0, 0, 2, 6);
        seed_put_residuals(seed, 0, 0, 3);
        break;
    case 5: /* the greatest numbers that fit without the sums running over */
        seed_put_header(seed, "tsc", 1);
        seed_put_clock(seed, 1, 1);
        seed_put_tape(seed, UINT64_MAX, UINT32_MAX - 2, 2, UINT64_MAX / 4096);
        seed_put_residuals(seed, UINT64_MAX, UINT32_MAX - 2, UINT64_MAX / 4096);
        seed_put_clock(seed, UINT64_MAX, UINT64_MAX);
        break;
    case 6: /* packets that a later version may write, modules again */
        seed_put_header(seed, "tsc", 0);
        seed_put_unknown(seed);
        seed_put_modules(seed, 1);
        seed_put_modules(seed, 2);
        seed_put_tape(seed, 7, 0, 8, 3);
        seed_put_unknown(seed);
        break;
    case 7: /* many short-lived tapes */
        seed_put_header(seed, "monotonic", 1);
        for (uint64_t tape = 1; tape <= 5; tape++) {
            seed_put_tape(seed, tape, 0, 1, tape);
            seed_put_final(seed, tape);
        }
        seed_put_tape(seed, 0, 0, 1, 9);
        break;
    case 8: /* no end: killed between a tape's last packet and its merge */
        seed_put_header(seed, "tsc", 1);
        seed_put_modules(seed, 1);
        seed_put_tape(seed, 1, 0, 3, 2);
        seed_put_final(seed, 1);
        break;
    default: /* no end: killed at work, the clock read once */
        seed_put_header(seed, "tsc", 1);
        seed_put_paths(seed, UINT32_MAX - 8);
        seed_put_clock(seed, 1000, 500);
        seed_put_scopes(seed, 0, 3);
        seed_put_events(seed, 3, 1);
        seed_put_tape(seed, 0, 0, 2, 2);
        seed_put_tape(seed, 3, 0, 4, 1);
        seed_put_threads(seed, 1);
        seed_put_samples(seed, UINT32_MAX - 4, 1, 0);
        break;
    }
    if (number < PROFILE_SEEDS_COMPLETE)
        seed_put_end(seed);
}

void profile_seed_make(unsigned number, struct profile_seed *seed)
{
    memset(seed, 0, sizeof *seed);
    put_body(number, seed);
}

void profile_seed_repair(uint8_t *data, size_t n)
{
    if (n < PROFILE_MAGIC_BYTES)
        return;
    memcpy(data, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
    for (size_t at = PROFILE_MAGIC_BYTES; n - at > PROFILE_FRAME_BYTES;) {
        uint32_t length, crc;
        size_t left = n - at - PROFILE_FRAME_BYTES;
        if (!profile_frame_get(data + at, &length, &crc) || length > left)
            length = left < PROFILE_MAX_PAYLOAD ? (uint32_t)left : PROFILE_MAX_PAYLOAD;
        profile_frame_put(data + at, data + at + PROFILE_FRAME_BYTES, length);
        at += PROFILE_FRAME_BYTES + length;
    }
}
