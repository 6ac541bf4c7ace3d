/* analyze_messages.h: what the ranks of a program waited for in its messages, as their logs say
 * when they are laid side by side; and the clocks of ranks, by which they are.
 *
 * A wait is what a call took before its partners had come to theirs: no call of MPI can end
 * earlier. The rest of its time is transfer.
 */
#ifndef PROFILER_ANALYZE_MESSAGES_H
#define PROFILER_ANALYZE_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- clocks ---- */

/* Rank 0's clock was at `theirs` when this rank's was at `own`, by a message there and back that
 * took `width`: the error is at most half of that. In ns. */
struct analyze_meeting {
    int64_t own, theirs, width;
};

/* rank 0's time = own + offset_ns + drift (own - at_ns) */
struct analyze_offset {
    bool known, drift_known; /* a drift takes two meetings, at the start and at the end */
    int64_t at_ns, offset_ns, error_ns;
    double drift;
};

/* Of meetings ordered by time; of those at one moment the narrowest counts. */
struct analyze_offset analyze_offset_of(const struct analyze_meeting *meeting, size_t n);
int64_t analyze_offset_apply(const struct analyze_offset *offset, int64_t own_ns);

/* ---- waiting ---- */

enum analyze_message_kind {
    MESSAGE_ALL,       /* each rank waits for all: allreduce, alltoall, barrier, ... */
    MESSAGE_FROM_ROOT, /* all wait for the root: bcast, scatter */
    MESSAGE_TO_ROOT,   /* the root waits for all: reduce, gather */
    MESSAGE_SEND,      /* a send, a receive, or both, that ends with the call */
    MESSAGE_BEGIN,     /* a send or receive that a MESSAGE_END of the same serial ends */
    MESSAGE_END
};

/* One call. Ranks are those of the whole program. */
struct analyze_message {
    enum analyze_message_kind kind;
    bool backward;   /* in a sweep */
    uint64_t comm;   /* the same on all of its ranks, and no other's */
    uint64_t number; /* collective: among those of comm; others: the serial of BEGIN and END */
    uint32_t ranks;  /* collective: of comm */
    int32_t root;
    int32_t to, to_tag, from, from_tag; /* to, from: -1: none */
    int64_t start_ns, end_ns;           /* on rank 0's clock */
    /* What is worked out. Not measured: a partner's call is in no log. */
    bool measured;
    int64_t waiting_ns;
    /* Arrows, numbered from 1: a call has those from `sends` on, n_sends of them, to others. Each
     * ends at the call that has its number as `gets`: there what was sent has come, or a
     * collective call has waited for this one to begin. */
    uint32_t sends, n_sends, gets;
};

/* What one rank logged, in the order of its calls. */
struct analyze_log {
    int32_t rank;
    struct analyze_message *message;
    size_t n;
    bool cut; /* the end is missing: there was no room */
};

/* Works out what each call waited, which send met which receive, and which call of a collective
 * one the others have waited for: the last that began. */
void analyze_waiting(struct analyze_log *log, size_t n_logs);

#endif
