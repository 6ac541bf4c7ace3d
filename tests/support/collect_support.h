/* collect_support.h: for tests of the collector: loads it, feeds it ledgers made by hand, reads its
 * file.
 *
 * The collector is loaded as the module that it is. Times are a step clock's, 1 ms at each
 * reading, unless a test sets TAPESCOPE_CLOCK otherwise.
 */
#ifndef COLLECT_SUPPORT_H
#define COLLECT_SUPPORT_H

#include "profile.pb-c.h"
#include "tape_hook.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define MS UINT64_C(1000000) /* in ns */

enum { MOST_PACKETS = 4096 };

/* A folder of the test's own, two paths in it, and the last error text. */
extern char collect_folder[], collect_path[PATH_MAX], collect_other_path[PATH_MAX];
extern char collect_error[512];
extern struct tape_collector *collect;
extern const struct tape_collect_options *collect_options; /* of the next; NULL: the defaults */

/* A profile as read back. */
extern struct collect_profile {
    Tapescope__Packet *packet[MOST_PACKETS];
    size_t n, bytes;
} collect_profile;

extern struct tape_row collect_rows[4][TAPE_ROW_CHUNK];
extern struct tape_ledger collect_tapes[4];

void collect_setup(void);
void collect_teardown(void);

struct tape_collector *collect_try_open(const char *to);
/* Opens collect on collect_path, and closes it. */
void collect_start(void);
void collect_stop(void);
void collect_flush(const struct tape_ledger *ledger, bool final);
/* Reads the clock until a flush is due. */
void collect_wait_until_due(void);

/* Reads a profile; every frame must be whole and every packet valid. */
void collect_read(const char *from);
bool collect_is_ledger(size_t i, uint64_t tape);
size_t collect_count_ledgers(uint64_t tape);
const Tapescope__Ledger *collect_nth_ledger(uint64_t tape, size_t n);
/* Of the last packet, if it is an end; else "none". */
const char *collect_end_reason(void);

/* Tape t + 1 with rows "matmul" at 0x1000 and "tanh" at 0x2000: 1, 2, ... times `unit`. */
struct tape_ledger *collect_make_tape(unsigned t, uint64_t unit);

#endif
