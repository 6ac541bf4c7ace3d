/* collect.h: what the collector's files share; the collector persists a tape's account in a
 * profile.
 *
 * It runs inside the user's process, as a module of its own.
 *
 * Invariants: nothing here ends or signals the process, and a failure never reaches the tape; all
 * state but the clock is guarded by the collector's mutex; whatever was written stays a readable
 * prefix. Functions that return `const char *` return NULL, or the reason of the failure in static
 * storage.
 */
#ifndef COLLECT_H
#define COLLECT_H

#include "profile_frame.h"
#include "tape_hook.h"
#include "tape_residuals.h"

#include <stddef.h>
#include <sys/types.h>

#define COLLECT_NO_MEMORY "Cannot allocate memory"

/* collect_fork.c */

/* A collector that is open. */
struct collect_open {
    struct collect_open *next;
    void (*forget)(
        struct collect_open *open); /* in the child of a fork, where it is the parent's */
};

void collect_open_add(struct collect_open *open);
/* It stays reachable: another thread may have taken up its hook just before. */
void collect_open_remove(struct collect_open *open);

/* collect_clock.c */

/* One moment on both clocks. */
struct collect_stamp {
    uint64_t ticks;
    uint64_t monotonic_ns;
};

struct collect_clock {
    uint64_t (*read)(void); /* what the tape calls */
    uint64_t (*peek)(void); /* the same time, for our own use: does not advance a step clock */
    char name[32];          /* as in the profile's header: "tsc", "monotonic" or "step:N" */
    double ticks_per_ns;
    struct collect_stamp start;
};

/* Chooses the clock (environment TAPESCOPE_CLOCK, see collect_clock.c) and calibrates it (0.2
 * ms). */
const char *collect_clock_open(struct collect_clock *clock);
struct collect_stamp collect_clock_stamp(const struct collect_clock *clock);
uint64_t collect_clock_ticks(const struct collect_clock *clock, uint64_t ns);
double collect_clock_ns(const struct collect_clock *clock, uint64_t ticks);
/* Refines ticks_per_ns by what has passed since the start. */
void collect_clock_refine(struct collect_clock *clock, const struct collect_stamp *now);

/* collect_overhead.c */

/* Ticks that observing adds to each interval that it measures; negative: takes off. */
struct collect_overhead {
    double forward_ticks, backward_ticks;
};

/* Takes some 0.7 ms where the clock runs by itself and times are exact; else there is none. */
void collect_overhead_measure(struct collect_overhead *overhead, const struct collect_clock *clock,
                              const struct tape_collect_options *options);

/* collect_modules.c */

struct collect_module {
    char *path;
    uint8_t build_id[64];
    uint32_t n_build_id;
    uint64_t start, end, bias;
};

/* Executable mappings, those that are gone included unless another took their place. The first
 * one is the program's. */
struct collect_modules {
    struct collect_module *module;
    size_t n, capacity;
    unsigned long long adds, subs; /* the loader's counters when this was read */
    bool changed;                  /* since it was last written */
};

/* Reads the mappings anew if libraries came or went. After a failure the old list stays. */
const char *collect_modules_refresh(struct collect_modules *modules);
void collect_modules_free(struct collect_modules *modules);
/* What finds a program counter (tape_collect_options.locate), as the helper thread may call it. */
typedef uintptr_t collect_locate(uint32_t low, uintptr_t near);
collect_locate *collect_modules_locate(collect_locate *tape_locate);
/* Around fork(), in the order of pthread_atfork(). */
void collect_modules_before_fork(void);
void collect_modules_after_fork(void);

/* collect_ledger.c */

/* The state of a row as last read. peak_bytes: here what the row held at the tape's peak. */
struct collect_row {
    uintptr_t pc;
    const char *op;
    const char *shape; /* NULL: any; equal shapes are one pointer */
    uint64_t thread;   /* of the destroyed tapes whose it is; 0: of a tape that lives, or several */
    uint32_t line;
    uint32_t path;
    uint32_t kept_by;
    uint32_t kept_others;
    uint32_t changed; /* since it was last written */
    uint32_t scope;
#define X(name) uint64_t name;
    ROW_COUNTERS(X)
#undef X
};

/* collect_residuals.c */

/* A class as last read. peak_bytes: what it held at the tape's peak. */
struct collect_class {
    uint32_t producer, consumer, kind, shared, released_by, released_others;
    uint32_t changed; /* since it was last written */
    double byte_ticks;
#define X(name) uint64_t name;
    CLASS_COUNTERS(X)
#undef X
};

/* What the bytes of a tape are for, and what was live when. */
struct collect_residuals {
    struct collect_class *class_;
    uint32_t n, capacity;
    struct tape_change *change; /* of the stretch with the peak */
    uint32_t n_changes, changes_capacity, merged;
    bool truncated;
    uint32_t *trace; /* of the same stretch, in the words of trace.h */
    uint32_t n_trace, trace_capacity, trace_flags;
    bool stretch_changed;  /* since it was last written */
    uint64_t stretch_peak; /* the tape's peak when it was */
    struct tape_moment *moment;
    uint32_t n_moments, moments_capacity;
    uint64_t written_ticks; /* moments up to here are in the file */
    uint64_t peak_ticks;
    uint32_t *scratch; /* tape 0: of a merge */
    uint32_t scratch_capacity;
};

struct collect_ledger;

/* Reads what the ledger has of it, which its owner may be changing; without residuals there are
 * none. What changes while it is read, again and again, is left as it was. False: no memory. */
bool collect_residuals_read(struct collect_ledger *to, const struct tape_ledger *from,
                            uint64_t ticks);
/* Adds a destroyed tape's to tape 0's. place: from the tape's rows to those. */
bool collect_residuals_merge(struct collect_ledger *to, const struct collect_ledger *from,
                             const uint32_t *place, bool has_peak);
void collect_residuals_free(struct collect_residuals *residuals);

/* The state of a tape as last read; tape 0: of all destroyed tapes. */
struct collect_ledger {
    uint64_t tape;
    uint64_t thread;
    uint64_t tapes; /* tape 0: how many were merged */
    uint64_t ticks; /* when this state was taken */
    uint64_t round; /* of flushes, in which it was last written */
    bool changed;   /* any of it, since it was last written */
    bool written;   /* ever */
    uint32_t n_rows, capacity;
    struct collect_row *row;
    struct collect_residuals residuals;
#define X(name) uint64_t name;
    TAPE_COUNTERS(X)
#undef X
};

/* Reads the state of a tape that its owner may be changing. False: no memory; `to` is as it was. */
bool collect_ledger_read(struct collect_ledger *to, const struct tape_ledger *from, uint64_t ticks);
bool collect_ledger_reserve(struct collect_ledger *ledger, uint32_t n_rows);
void collect_ledger_free(struct collect_ledger *ledger);

/* The states of the tapes that live, ordered by number. */
struct collect_tapes {
    struct collect_ledger **tape;
    size_t n, capacity;
};

/* The tape's state or NULL. */
struct collect_ledger *collect_tapes_find(const struct collect_tapes *tapes, uint64_t tape);
/* A new empty state for a tape that has none. NULL: no memory. */
struct collect_ledger *collect_tapes_add(struct collect_tapes *tapes, uint64_t tape);
void collect_tapes_remove(struct collect_tapes *tapes, struct collect_ledger *ledger);
void collect_tapes_free(struct collect_tapes *tapes);

/* collect_retired.c */

/* Threads whose destroyed tapes are told apart; those of all others are together. */
enum { COLLECT_RETIRED_THREADS = 64 };

/* All destroyed tapes, merged as profile.proto says of tape 0. */
struct collect_retired {
    struct collect_ledger ledger;
    uint64_t thread[COLLECT_RETIRED_THREADS];
    uint32_t n_threads;
    uint32_t *slot; /* hash table: index of a row, plus 1 */
    uint32_t n_slots;
    uint32_t *place; /* while merging: from the tape's rows to ours */
    uint32_t n_places;
};

/* Merges a destroyed tape. False: no memory; nothing is merged. */
bool collect_retired_merge(struct collect_retired *retired, const struct collect_ledger *tape);
void collect_retired_free(struct collect_retired *retired);

/* collect_scopes.c */

/* What of the process's scopes is in the file. */
struct collect_scopes {
    const struct tape_scopes *from; /* NULL: the observation has not begun */
    struct collect_scope {
        bool written;
#define X(name) uint64_t name;
        SCOPE_COUNTERS(X)
#undef X
    } * scope;
    uint32_t n, capacity; /* nodes that are in the file, with 0 */
    uint64_t expected;    /* sum of their times that is in the file */
    uint64_t lost, seen_steps;
};

struct collect_buffer;

/* There are nodes that the file does not know. */
bool collect_scopes_are_new(const struct collect_scopes *scopes);
/* Nodes that are new or changed since the last packet, or `all` of them, which changes no mark; no
 * packet where there are none. False: no memory; the buffer is as it was. */
bool collect_put_scopes(struct collect_buffer *out, struct collect_scopes *scopes, bool all);
void collect_scopes_free(struct collect_scopes *scopes);

/* collect_patterns.c */

enum { COLLECT_PATTERNS = 64, COLLECT_PATTERN_CELLS = 64 }; /* sites; cells of a side */

/* The newest pattern of each site, with a picture as profile.proto says. */
struct collect_patterns {
    struct collect_pattern *pattern[COLLECT_PATTERNS];
    uint32_t n;
    uint64_t left_out;
    bool changed; /* since they were last written */
    bool written; /* any in this file, of this observation or one before */
    bool again;   /* the observation began again after some were written */
};

/* Where there is no room it counts as left out. */
void collect_patterns_take(struct collect_patterns *patterns, const struct tape_pattern *from);
/* What there was is void. */
void collect_patterns_clear(struct collect_patterns *patterns);
/* As collect_put_scopes. */
bool collect_put_patterns(struct collect_buffer *out, struct collect_patterns *patterns, bool all);
void collect_patterns_free(struct collect_patterns *patterns);

/* collect_messages.c */

enum { COLLECT_MESSAGE_BYTES = 16 << 20 }; /* of all packets of messages */

struct collect_messages;

/* NULL: no memory. */
struct collect_messages *collect_messages_open(uint64_t most_bytes);
/* It stays where it is, and takes nothing more. NULL: nothing happens. */
void collect_messages_close(struct collect_messages *messages);
/* What there was is void. */
void collect_messages_clear(struct collect_messages *messages);
/* Any thread. Where there is no room they count as left out. */
void collect_messages_take(struct collect_messages *messages, const struct tape_message *message);
void collect_messages_meet(struct collect_messages *messages, const struct tape_meeting *meeting);
/* Packets that are full since the last call, or `all` that there is. False: no memory. */
bool collect_put_messages(struct collect_buffer *out, struct collect_messages *messages, bool all);

/* collect_path_map.c */

/* The call paths that a file has, which are those of its rows, under numbers of the file's own:
 * ascending from 1, each behind its parent. */
struct collect_path_map {
    uint32_t *id;                     /* by the process' number; 0: the file has no such path */
    uint32_t *listed;                 /* the process' number of path i + 1 of the file */
    uint32_t n, n_room;               /* paths of the file */
    uint32_t room;                    /* of id */
    uint32_t written;                 /* of n: in the buffer */
    uint64_t refused, refused_before; /* as last written; before the file began */
};

/* Gives numbers to a path and to all outwards. False: no memory. */
bool collect_path_map_add(struct collect_path_map *map, uint32_t path);
/* The file's number of a path that was added; 0 of 0. */
uint32_t collect_path_map_id(const struct collect_path_map *map, uint32_t path);
void collect_path_map_free(struct collect_path_map *map);

/* collect_write.c: appends frames to a buffer. False: no memory, or a frame beyond the format's
 * limit; the buffer is then as it was. */

struct collect_buffer {
    uint8_t *data;
    size_t n, capacity;
};

bool collect_put_bytes(struct collect_buffer *out, const void *data, size_t n);
bool collect_put_packet(struct collect_buffer *out, int kind, void *message);
/* The magic and the header. Arguments that the system does not show are left out. */
bool collect_put_head(struct collect_buffer *out, const char *library_version, const char *program,
                      const char *clock, const char *options);
bool collect_put_modules(struct collect_buffer *out, const struct collect_modules *modules);
/* Nothing where there is none. */
bool collect_put_overhead(struct collect_buffer *out, const struct collect_overhead *overhead);
bool collect_put_clock(struct collect_buffer *out, const struct collect_stamp *stamp);
/* The call paths of the rows that collect_put_ledger would write, if the file lacks them, and how
 * many were refused. Must go before. */
bool collect_put_paths(struct collect_buffer *out, struct collect_path_map *map,
                       const struct collect_ledger *ledger, bool all);
/* Rows that changed since the last packet, or `all`; the marks of change stay. */
bool collect_put_ledger(struct collect_buffer *out, const struct collect_ledger *ledger,
                        const struct collect_path_map *paths, bool all);
/* Classes that changed since the last packet, or `all`, and the moments since; the stretch with the
 * peak if this is the `last` packet, or if the peak is much greater than in the one before. What
 * has been written is marked as such unless `all`. scratch: kept from call to call. */
bool collect_put_residuals(struct collect_buffer *out, struct collect_buffer *scratch,
                           struct collect_ledger *ledger, bool all, bool last);
/* "This tape is destroyed; tape 0 has what it held." */
bool collect_put_final(struct collect_buffer *out, const struct collect_ledger *ledger);
bool collect_put_end(struct collect_buffer *out, uint64_t ticks, const char *reason);
/* Forgets all tapes; those that are in the file are taken back there. (In collect_retired.c.) */
bool collect_drop_all(struct collect_buffer *out, struct collect_tapes *tapes,
                      struct collect_retired *retired, struct collect_path_map *paths);

/* A number below n at random, n < 2^32: the upper half of what xorshift64 (Marsaglia 2003,
 * doi:10.18637/jss.v008.i14) gives. *state is not 0. Safe in a signal handler. */
static inline uint64_t collect_random(uint64_t *state, uint64_t n)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return (x >> 32) * n >> 32;
}

/* Nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME. */
uint64_t collect_time_monotonic(void);
uint64_t collect_time_unix(void);

/* collect_file.c */

struct collect_file {
    int fd; /* -1: closed */
    bool regular;
    dev_t device;
    ino_t inode;
    off_t size; /* whole frames only */
};

/* Creates or empties the file. The writer holds a lock on it: two programs that were given the
 * same path do not mix their packets. */
const char *collect_file_open(struct collect_file *file, const char *path);
/* Appends all of it by one write if the system takes it, or nothing: what a failure left is cut
 * off. */
const char *collect_file_write(struct collect_file *file, const void *data, size_t n);
const char *collect_file_close(struct collect_file *file);
/* Appends what a file of the system's (/proc) holds, about `most` bytes of it. Returns 0 or an
 * error number; the buffer is then as it was. */
int collect_file_read(struct collect_buffer *to, const char *path, size_t most);
/* The text of an error number. */
const char *collect_reason(int error);
/* A file of these bytes, whole or with the reason why not. */
const char *collect_file_put(const char *path, const struct collect_buffer *data);
/* A message of `path` and `reason`, in this order in the format, like collect_warn. */
void collect_say(bool (*log)(int level, const char *message), const char *path, const char *format,
                 const char *reason) __attribute__((format(printf, 3, 0)));
/* That the profile ends: to `log` (see tape_collector), or as a line on standard error. */
void collect_warn(bool (*log)(int level, const char *message), const char *path,
                  const char *reason);

/* collect_events.c: single events, packed as they come. They have locks of their own, so that a
 * thread that tells of one never waits for the file. */

struct collect_events;

/* NULL: no memory. most_bytes: of the file, for all events together. */
struct collect_events *collect_events_open(uint64_t most_bytes);
/* Takes no more of them. The struct itself stays, for threads that are late; free() ends it. */
void collect_events_close(struct collect_events *events);
void collect_events_take(struct collect_events *events, const struct tape_event *event);
/* What there was is void. */
void collect_events_clear(struct collect_events *events);
/* Appends the packets that are full, or `all` that there is. False: no memory; what was not
 * appended counts as left out. */
bool collect_put_events(struct collect_buffer *out, struct collect_events *events, bool all);

/* collect_signal.c: a signal asks for a snapshot. */

/* The signal sets `due` to 0 from now on, so that the next op calls the collector. Returns NULL, or
 * why not: the program handles the signal itself. */
const char *collect_signal_watch(int number, uint64_t *due);
/* It has come since this was last asked, for this `due`. */
bool collect_signal_taken(const uint64_t *due);
/* `due` is written no more. The signal stays ours and does nothing: its default would end the
 * program. */
void collect_signal_forget(const uint64_t *due);

#endif
