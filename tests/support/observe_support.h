/* observe_support.h: for tests of the account: an observer that counts the clock's readings and
 * notes every flush, and what must add up in a ledger.
 *
 * One thread and one observer at a time.
 */
#ifndef OBSERVE_SUPPORT_H
#define OBSERVE_SUPPORT_H

#include "tape.h"

#include <tapescope/ad.h>

enum { OBSERVE_LOG = 4096 };

/* Readings of the clock, and the flushes since observe_begin() or observe_ledger(). */
extern uint64_t observe_ticks;
extern struct observe_flush {
    const struct tape_ledger *ledger;
    uint64_t live_bytes; /* of the ledger then */
    bool final;
} observe_flushed[OBSERVE_LOG];
extern int observe_n_flushed;

/* The single events since then, of all threads; the first OBSERVE_LOG are kept. */
extern struct tape_event observe_event[OBSERVE_LOG];
extern int observe_n_events;

/* What the observer was told at its begin. */
extern const struct tape_scopes *observe_scopes;

extern struct tape_hook observe_hook;

/* Begins an observation whose first flush is due at that reading of the clock. */
void observe_begin(uint64_t due);

/* A new small tape. */
ad_tape observe_tape(void);

/* The ledger of the one tape that is observed. */
const struct tape_ledger *observe_ledger(void);

/* The row of an op that is called on one line only. */
const struct tape_row *observe_row(const struct tape_ledger *ledger, const char *op);

/* The rows add up to the ledger's own counters, and events of ops to the time of its calls. */
void observe_check_sums(const struct tape_ledger *ledger);

/* Of all events: before each pullback there was the op whose record it has. Not asked of ops that
 * took no time, as runs of statements. The tape is alive. */
void observe_check_pairs(void);

/* What is live in the ledger, but for room that no statement has filled, is what the tape says. */
void observe_check_live(const struct tape_ledger *ledger, ad_tape tape);

#endif
