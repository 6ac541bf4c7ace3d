/* profile_maker.h: profiles made packet by packet, for tests of the reader.
 *
 * Uses no test framework, so that the fuzzer's programs can use it. What does not fit ends the
 * test.
 */
#ifndef PROFILE_MAKER_H
#define PROFILE_MAKER_H

#include "profile.pb-c.h"
#include "read.h"

#include <stddef.h>
#include <stdint.h>

/* A profile under construction; it begins as zeros. */
enum { MAKER_BYTES = 1 << 17, MAKER_FRAMES = 64 };
struct maker_bytes {
    uint8_t data[MAKER_BYTES];
    size_t n;
    size_t frame[MAKER_FRAMES + 1]; /* where frames begin, and where the last one ends */
    size_t n_frames;
};

enum { MAKER_MAX_ROWS = 8 };

struct maker_ledger {
    Tapescope__Ledger ledger;
    Tapescope__Row row[MAKER_MAX_ROWS], *list[MAKER_MAX_ROWS];
};

void maker_put(struct maker_bytes *bytes, const void *data, size_t n);
void maker_put_frame(struct maker_bytes *bytes, const void *payload, size_t n);
void maker_put_packet(struct maker_bytes *bytes, Tapescope__Packet__KindCase kind, void *message);
void maker_put_header(struct maker_bytes *bytes, const char *clock, uint32_t version);
void maker_put_clock(struct maker_bytes *bytes, uint64_t ticks, uint64_t ns);
void maker_put_overhead(struct maker_bytes *bytes, double forward, double backward);
void maker_put_modules(struct maker_bytes *bytes);
/* One of 4 KiB. */
void maker_put_module(struct maker_bytes *bytes, const char *path, uint64_t start, uint64_t bias);
/* Two places: one known through and through, one of which only the function is. */
void maker_put_symbols(struct maker_bytes *bytes, uint64_t known_pc, uint32_t known_line,
                       uint64_t other_pc);
void maker_put_end(struct maker_bytes *bytes);
struct maker_ledger *maker_new_ledger(uint64_t tape);
Tapescope__Row *maker_add_row(struct maker_ledger *made, uint32_t index, uint64_t pc,
                              const char *op);
void maker_put_ledger(struct maker_bytes *bytes, struct maker_ledger *made);

/* Ends the profile and reads it, which must succeed; the bytes are zeros then. */
struct read_profile *maker_read(struct maker_bytes *bytes);

#endif
