/* collect_state.h: the collector itself, for the files that make it up.
 *
 * All functions are called with the mutex held.
 */
#ifndef COLLECT_STATE_H
#define COLLECT_STATE_H

#include "collect.h"

#include "collect_paths.h"
#include "collect_sampler.h"
#include "collect_watch.h"

#include <pthread.h>

/* Between rounds: see collect_rounds.c; and the unit of the option `interval`. */
enum { FIRST_INTERVAL_NS = 1000000, INTERVAL_UNIT_NS = 1000000 };

struct collector {
    struct tape_collector base; /* first: hook and collector have one address */
    struct collect_open open;
    pid_t pid; /* 0 in a child process */
    char *path;
    enum collect_unwinder unwinder;
    unsigned depth;                     /* of call paths */
    uintptr_t library_from, library_to; /* its code; 0: not known */
    uint32_t paths_seen;                /* how many there were when the modules were read; atomic */
    pthread_mutex_t mutex;              /* guards all that follows */
    bool closed;
    struct collect_file file;
    const char *failed; /* why the file ends early */
    bool closing;       /* what is written now is the last of it */
    bool lost;          /* what a call said was not kept, so no snapshot can be whole */
    struct collect_clock clock;
    struct collect_overhead overhead;
    struct collect_modules modules;
    struct collect_path_map paths;
    struct collect_tapes tapes;
    struct collect_retired retired;
    struct collect_scopes scopes;
    struct collect_patterns patterns;
    struct collect_events *events; /* NULL: they are not wanted */
    struct collect_messages *messages;
    struct collect_ledger dying;   /* state of a tape that never had a packet */
    struct collect_buffer head;    /* magic and header, for snapshots */
    struct collect_buffer out;     /* frames of the call under way: they go out by one write */
    struct collect_buffer scratch; /* while a packet is made */
    uint64_t round;                /* number of the round, from 1 */
    bool round_open;
    uint64_t window_end;
    unsigned new_tapes; /* of this round */
    uint64_t interval_ns, most_interval_ns;
    struct collect_sampler sampler;
    struct collect_watch watch;
    int signal; /* that asks for a snapshot; 0: none does */
    unsigned n_answered;
};

/* collect_rounds.c */

/* The file ends here: says so once. */
void collect_fail(struct collector *c, const char *reason);
/* Writes the call's frames. */
void collect_send_frames(struct collector *c);
/* Each appends what is new since it was last written, unless the file has ended. */
void collect_write_clock(struct collector *c);
void collect_write_scopes(struct collector *c);
void collect_write_patterns(struct collector *c);
void collect_write_ledger(struct collector *c, struct collect_ledger *ledger);
void collect_write_retired(struct collector *c);
void collect_write_events(struct collector *c, bool all);
void collect_write_messages(struct collector *c, bool all);
void collect_write_samples(struct collector *c);
void collect_round_begin(struct collector *c, uint64_t now);
void collect_round_end(struct collector *c, uint64_t now);
/* What a tape says: that it lives, or its last. */
void collect_round_keep(struct collector *c, const struct tape_ledger *from, uint64_t now,
                        bool in_round);
void collect_round_retire(struct collector *c, const struct tape_ledger *from, uint64_t now);

#endif
