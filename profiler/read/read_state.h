/* read_state.h: what the reader knows while packets come in.
 *
 * Private to profiler/read. Invariant: after every packet the profile is a valid one; a packet
 * that cannot be applied changes nothing that would make it invalid.
 */
#ifndef PROFILER_READ_STATE_H
#define PROFILER_READ_STATE_H

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"
#include "profile.pb-c.h"
#include "read.h"

/* A tape while it is read; the profile's array is made of these at the end. */
struct read_tape_state {
    struct read_tape tape;
    struct base_table rows; /* by index in the file, if that is not their place, as it mostly is */
    size_t room;
    struct base_table residuals; /* likewise */
    size_t room_residuals, room_moments;
};

struct read_state {
    struct read_profile *profile;
    struct read_tape_state *tape;
    size_t n_tapes, room_tapes, room_mappings, room_paths, room_ops;
    struct base_table tapes;
    struct base_table ops;    /* by hash of the name */
    struct base_table scopes; /* by number in the file; n_scopes is the profile's */
    struct base_table expectations;
    struct base_table patterns; /* by id in the file */
    uint64_t bad_patterns;
    size_t room_scopes, room_expectations, room_patterns;
    size_t room_symbols, room_messages, room_message_calls, room_meetings;
    read_event_fn *each_event; /* NULL: events are counted alone */
    read_part_fn *each_part;   /* NULL: likewise */
    void *payload;
    struct read_blocks *blocks;         /* memory of the message that is unpacked */
    size_t n_final;                     /* tapes that the next packet of tape 0 replaces */
    struct base_table samples, threads; /* by index in the file */
    size_t room_samples, room_threads;
    bool samples_have_times; /* in the file: it is a merged one, or of an older version */
    bool brief;              /* what bytes are for and when, and paths, are passed over */
    bool has_header;
    bool only_header; /* what comes behind it is not read */
    uint64_t n_clocks;
    uint64_t first_ticks, first_ns, last_ticks, last_ns; /* clock packets */
    uint64_t last_ledger_ticks;
};

enum read_status { READ_OK, READ_BAD };

/* Unpacks the payload of a frame, in memory of a multiple of its size, and applies it. */
enum read_status read_apply_bytes(struct read_state *state, const uint8_t *data, size_t n);
/* Applies one packet. */
enum read_status read_apply(struct read_state *state, const Tapescope__Packet *packet);
/* Applies the rows and counters of one tape. */
void read_apply_ledger(struct read_state *state, const Tapescope__Ledger *ledger);
/* Applies a tape's classes of residuals, or what was live. */
enum read_status read_apply_residuals(struct read_state *state,
                                      const Tapescope__Residuals *residuals);
enum read_status read_apply_moments(struct read_state *state, const Tapescope__Timeline *timeline);
/* Finds the rows that the classes name, and orders the moments. */
void read_finish_residuals(struct read_tape_state *tape);
/* The place of the tape's row with this index in the file, or -1. */
int64_t read_row_place(const struct read_tape_state *tape, uint32_t index);
/* The tape of this number, made if it is new. */
struct read_tape_state *read_find_tape(struct read_state *state, uint64_t number);
/* Applies nodes and expectations. */
void read_apply_scopes(struct read_state *state, const Tapescope__Scopes *scopes);
/* Applies messages between ranks. */
enum read_status read_apply_messages(struct read_state *state, const Tapescope__Messages *messages);
void read_free_messages(struct read_profile *profile);
/* Applies patterns of sparse derivatives. */
void read_apply_patterns(struct read_state *state, const Tapescope__Patterns *patterns);
void read_free_patterns(struct read_profile *profile);
/* From a number in the file to a place plus 1; 0: there is none. */
uint32_t read_scope_place(const struct read_state *state, uint32_t number);
/* Hands on the events of a packet. */
enum read_status read_apply_timeline(struct read_state *state, const Tapescope__Timeline *timeline);
/* From the numbers in the file to places, in rows and expectations. */
void read_place_scopes(struct read_state *state);
/* Applies what a packed profile knows of its sites; then sorts it. */
void read_apply_symbols(struct read_state *state, const Tapescope__Symbols *symbols);
void read_finish_symbols(struct read_profile *profile);
void read_free_symbols(struct read_profile *profile);
void read_apply_paths(struct read_state *state, const Tapescope__Paths *paths);
/* Makes the index of the numbers by which events name paths. */
void read_number_paths(struct read_profile *profile);
enum read_status read_apply_samples(struct read_state *state, const Tapescope__Samples *samples);
void read_apply_threads(struct read_state *state, const Tapescope__Threads *threads);
void read_samples_free(struct read_profile *profile);
/* Divides each thread's time among its samples, equally; threads: places by index. Counts are
 * bounded. Again when samples or threads have changed. */
void read_weigh_samples(struct read_profile *profile, const struct base_table *threads);
/* The profile's one copy of an op's name. */
const char *read_intern_op(struct read_state *state, const char *name);
/* Calibrates the clock, drops tapes that tape 0 stands for, names the keepers. */
void read_finish(struct read_state *state);
/* The parts of that: clock and duration; a tape's times without what observing added to them; and
 * those of its statements, estimated. */
void read_calibrate(struct read_state *state);
void read_take_off_overhead(struct read_profile *profile, struct read_tape *tape);
void read_estimate(const struct read_profile *profile, struct read_tape *tape);
/* Cuts numbers that no program could have counted, see READ_MOST. */
void read_bound(struct read_profile *profile);
/* All but the profile. */
void read_state_free(struct read_state *state);
void read_tape_state_free(struct read_tape_state *tape);

#endif
