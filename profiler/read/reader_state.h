/* reader_state.h: what the reader knows while packets come in.
 *
 * Private to profiler/read. Invariant: after every packet the profile is a valid one; a packet
 * that cannot be applied changes nothing that would make it invalid.
 */
#ifndef PROFILER_FORMAT_READER_STATE_H
#define PROFILER_FORMAT_READER_STATE_H

#include "base_array.h"
#include "base_memory.h"
#include "base_table.h"
#include "profile.pb-c.h"
#include "reader.h"

/* A tape while it is read; the profile's array is made of these at the end. */
struct reader_tape {
    struct prof_tape tape;
    struct base_table rows; /* by index in the file */
    size_t room;
    struct base_table residuals; /* by index in the file */
    size_t room_residuals, room_moments;
};

struct reader_state {
    struct prof_profile *profile;
    struct reader_tape *tape;
    size_t n_tapes, room_tapes, room_mappings, room_paths, room_ops;
    struct base_table tapes;
    struct base_table ops;    /* by hash of the name */
    struct base_table scopes; /* by number in the file; n_scopes is the profile's */
    struct base_table expectations;
    size_t room_scopes, room_expectations;
    size_t room_symbols;
    prof_event_fn *each_event; /* NULL: events are counted alone */
    void *payload;
    size_t n_final;                     /* tapes that the next packet of tape 0 replaces */
    struct base_table samples, threads; /* by index in the file */
    size_t room_samples, room_threads;
    bool brief; /* what bytes are for and when, and paths, are passed over */
    bool has_header;
    uint64_t n_clocks;
    uint64_t first_ticks, first_ns, last_ticks, last_ns; /* clock packets */
    uint64_t last_ledger_ticks;
};

enum reader_status { READER_OK, READER_BAD };

/* Unpacks the payload of a frame, in memory of a multiple of its size, and applies it. */
enum reader_status reader_apply_bytes(struct reader_state *state, const uint8_t *data, size_t n);
/* Applies one packet. */
enum reader_status reader_apply(struct reader_state *state, const Tapescope__Packet *packet);
/* Applies the rows and counters of one tape. */
void reader_apply_ledger(struct reader_state *state, const Tapescope__Ledger *ledger);
/* Applies a tape's classes of residuals, or what was live. */
enum reader_status reader_apply_residuals(struct reader_state *state,
                                          const Tapescope__Residuals *residuals);
enum reader_status reader_apply_moments(struct reader_state *state,
                                        const Tapescope__Timeline *timeline);
/* Finds the rows that the classes name, and orders the moments. */
void reader_finish_residuals(struct reader_tape *tape);
/* The tape of this number, made if it is new. */
struct reader_tape *reader_find_tape(struct reader_state *state, uint64_t number);
/* Applies nodes and expectations. */
void reader_apply_scopes(struct reader_state *state, const Tapescope__Scopes *scopes);
/* From a number in the file to a place plus 1; 0: there is none. */
uint32_t reader_scope_place(const struct reader_state *state, uint32_t number);
/* Hands on the events of a packet. */
enum reader_status reader_apply_timeline(struct reader_state *state,
                                         const Tapescope__Timeline *timeline);
/* From the numbers in the file to places, in rows and expectations. */
void reader_place_scopes(struct reader_state *state);
/* Applies what a packed profile knows of its sites; then sorts it. */
void reader_apply_symbols(struct reader_state *state, const Tapescope__Symbols *symbols);
void reader_finish_symbols(struct prof_profile *profile);
void reader_free_symbols(struct prof_profile *profile);
void reader_apply_paths(struct reader_state *state, const Tapescope__Paths *paths);
/* Makes the index of the numbers by which events name paths. */
void reader_number_paths(struct prof_profile *profile);
enum reader_status reader_apply_samples(struct reader_state *state,
                                        const Tapescope__Samples *samples);
void reader_apply_threads(struct reader_state *state, const Tapescope__Threads *threads);
void reader_samples_free(struct prof_profile *profile);
/* The profile's one copy of an op's name. */
const char *reader_intern_op(struct reader_state *state, const char *name);
/* Calibrates the clock, drops tapes that tape 0 stands for, names the keepers. */
void reader_finish(struct reader_state *state);
/* The parts of that: clock and duration; what observing added, of a tape. */
void reader_calibrate(struct reader_state *state);
void reader_take_off_overhead(struct prof_profile *profile, struct prof_tape *tape);
/* Cuts numbers that no program could have counted, see PROF_MOST. */
void reader_bound(struct prof_profile *profile);
/* All but the profile. */
void reader_state_free(struct reader_state *state);
void reader_tape_free(struct reader_tape *tape);

#endif
