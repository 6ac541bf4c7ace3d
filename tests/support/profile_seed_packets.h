/* profile_seed_packets.h: the packets that profile_seeds.c makes its profiles of.
 *
 * Each function appends one packet, or says that there is no room.
 */
#ifndef PROFILE_SEED_PACKETS_H
#define PROFILE_SEED_PACKETS_H

#include "profile.pb-c.h"
#include "profile_seeds.h"

void seed_put_packet(struct profile_seed *seed, const Tapescope__Packet *packet);

void seed_put_clock(struct profile_seed *seed, uint64_t ticks, uint64_t ns);
void seed_put_end(struct profile_seed *seed);
void seed_put_events(struct profile_seed *seed, size_t n, uint32_t n_sites);
void seed_put_final(struct profile_seed *seed, uint64_t tape);
void seed_put_header(struct profile_seed *seed, const char *clock, size_t n_arguments);
void seed_put_modules(struct profile_seed *seed, size_t n);
void seed_put_overhead(struct profile_seed *seed, double forward, double backward);
void seed_put_paths(struct profile_seed *seed, uint32_t first);
void seed_put_residuals(struct profile_seed *seed, uint64_t tape, uint32_t first, uint64_t unit);
/* With threads in the packet, if `all` is not 0. */
void seed_put_samples(struct profile_seed *seed, uint32_t first, uint64_t unit, uint64_t all);
void seed_put_scopes(struct profile_seed *seed, uint32_t first, size_t n);
void seed_put_symbols(struct profile_seed *seed);
void seed_put_tape(struct profile_seed *seed, uint64_t tape, uint32_t first, size_t n,
                   uint64_t unit);
void seed_put_threads(struct profile_seed *seed, uint64_t unit);
void seed_put_unknown(struct profile_seed *seed);

#endif
