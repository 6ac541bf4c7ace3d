/* collect.h: what the collector's files share; the collector persists a tape's account in a
 * profile.
 *
 * May include: tape_hook.h, tape_residuals.h, profile_frame.h. It runs inside the user's process,
 * as a module of its own.
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

#define PROF_NO_MEMORY "Cannot allocate memory"

/* collect_fork.c */

/* A collector that is open. */
struct prof_open {
    struct prof_open *next;
    void (*forget)(struct prof_open *open); /* in the child of a fork, where it is the parent's */
};

void prof_open_add(struct prof_open *open);
/* It stays reachable: another thread may have taken up its hook just before. */
void prof_open_remove(struct prof_open *open);

/* collect_clock.c */

/* One moment on both clocks. */
struct prof_stamp {
    uint64_t ticks;
    uint64_t monotonic_ns;
};

struct prof_clock {
    uint64_t (*read)(void); /* what the tape calls */
    uint64_t (*peek)(void); /* the same time, for our own use: does not advance a step clock */
    char name[32];          /* as in the profile's header: "tsc", "monotonic" or "step:N" */
    double ticks_per_ns;
    struct prof_stamp start;
};

/* Chooses the clock (environment TAPESCOPE_CLOCK, see collect_clock.c) and calibrates it (0.2
 * ms). */
const char *prof_clock_open(struct prof_clock *clock);
struct prof_stamp prof_clock_stamp(const struct prof_clock *clock);
uint64_t prof_clock_ticks(const struct prof_clock *clock, uint64_t ns);
double prof_clock_ns(const struct prof_clock *clock, uint64_t ticks);
/* Refines ticks_per_ns by what has passed since the start. */
void prof_clock_refine(struct prof_clock *clock, const struct prof_stamp *now);

/* collect_overhead.c */

/* Ticks that observing adds to each interval that it measures. */
struct prof_overhead {
    double forward_ticks, backward_ticks;
};

/* Takes some 0.1 ms. */
void prof_overhead_measure(struct prof_overhead *overhead, const struct prof_clock *clock);

/* collect_modules.c */

struct prof_module {
    char *path;
    uint8_t build_id[64];
    uint32_t n_build_id;
    uint64_t start, end, bias;
};

/* Executable mappings, those that are gone included unless another took their place. The first
 * one is the program's. */
struct prof_modules {
    struct prof_module *module;
    size_t n, capacity;
    unsigned long long adds, subs; /* the loader's counters when this was read */
    bool changed;                  /* since it was last written */
};

/* Reads the mappings anew if libraries came or went. After a failure the old list stays. */
const char *prof_modules_refresh(struct prof_modules *modules);
void prof_modules_free(struct prof_modules *modules);
/* What finds a program counter (tape_collect_options.locate), as the helper thread may call it. */
typedef uintptr_t prof_locate(uint32_t low, uintptr_t near);
prof_locate *prof_modules_locate(prof_locate *tape_locate);
/* Around fork(), in the order of pthread_atfork(). */
void prof_modules_before_fork(void);
void prof_modules_after_fork(void);

/* collect_ledger.c */

/* The state of a row as last read. held_bytes: here what the row held at the tape's peak. */
struct prof_row {
    uintptr_t pc;
    const char *op;
    const char *shape; /* NULL: any; equal shapes are one pointer */
    uint32_t line;
    uint32_t path;
    uint32_t kept_by;
    uint32_t kept_others;
    uint32_t changed; /* since it was last written */
    uint32_t scope;
#define X(name) uint64_t name;
    TAPE_ROW_COUNTERS(X)
#undef X
};

/* collect_residuals.c */

/* A class as last read. held_bytes: what it held at the tape's peak. */
struct prof_class {
    uint32_t producer, consumer, kind, shared, released_by, released_others;
    uint32_t changed; /* since it was last written */
    double byte_ticks;
#define X(name) uint64_t name;
    TAPE_CLASS_COUNTERS(X)
#undef X
};

/* What the bytes of a tape are for, and what was live when. */
struct prof_residuals {
    struct prof_class *class_;
    uint32_t n, capacity;
    struct tape_change *change; /* of the stretch with the peak */
    uint32_t n_changes, changes_capacity, merged;
    bool truncated;
    bool stretch_changed;  /* since it was last written */
    uint64_t stretch_peak; /* the tape's peak when it was */
    struct tape_moment *moment;
    uint32_t n_moments, moments_capacity;
    uint64_t written_ticks; /* moments up to here are in the file */
    uint64_t peak_ticks;
    uint32_t *scratch; /* tape 0: of a merge */
    uint32_t scratch_capacity;
};

struct prof_ledger;

/* Reads what the ledger has of it, which its owner may be changing; without residuals there are
 * none. What changes while it is read, again and again, is left as it was. False: no memory. */
bool prof_residuals_read(struct prof_ledger *to, const struct tape_ledger *from, uint64_t ticks);
/* Adds a destroyed tape's to tape 0's. place: from the tape's rows to those. */
bool prof_residuals_merge(struct prof_ledger *to, const struct prof_ledger *from,
                          const uint32_t *place, bool has_peak);
void prof_residuals_free(struct prof_residuals *residuals);

/* The state of a tape as last read; tape 0: of all destroyed tapes. */
struct prof_ledger {
    uint64_t tape;
    uint64_t thread;
    uint64_t tapes; /* tape 0: how many were merged */
    uint64_t ticks; /* when this state was taken */
    uint64_t round; /* of flushes, in which it was last written */
    bool changed;   /* any of it, since it was last written */
    bool written;   /* ever */
    uint32_t n_rows, capacity;
    struct prof_row *row;
    struct prof_residuals residuals;
#define X(name) uint64_t name;
    TAPE_LEDGER_COUNTERS(X)
#undef X
};

/* Reads the state of a tape that its owner may be changing. False: no memory; `to` is as it was. */
bool prof_ledger_read(struct prof_ledger *to, const struct tape_ledger *from, uint64_t ticks);
bool prof_ledger_reserve(struct prof_ledger *ledger, uint32_t n_rows);
void prof_ledger_free(struct prof_ledger *ledger);

/* The states of the tapes that live, ordered by number. */
struct prof_tapes {
    struct prof_ledger **tape;
    size_t n, capacity;
};

/* The tape's state or NULL. */
struct prof_ledger *prof_tapes_find(const struct prof_tapes *tapes, uint64_t tape);
/* A new empty state for a tape that has none. NULL: no memory. */
struct prof_ledger *prof_tapes_add(struct prof_tapes *tapes, uint64_t tape);
void prof_tapes_remove(struct prof_tapes *tapes, struct prof_ledger *ledger);
void prof_tapes_free(struct prof_tapes *tapes);

/* collect_retired.c */

/* All destroyed tapes, merged as profile.proto says of tape 0. */
struct prof_retired {
    struct prof_ledger ledger;
    uint32_t *slot; /* hash table: index of a row, plus 1 */
    uint32_t n_slots;
    uint32_t *place; /* while merging: from the tape's rows to ours */
    uint32_t n_places;
};

/* Merges a destroyed tape. False: no memory; nothing is merged. */
bool prof_retired_merge(struct prof_retired *retired, const struct prof_ledger *tape);
void prof_retired_free(struct prof_retired *retired);

/* collect_scopes.c */

/* What of the process's scopes is in the file. */
struct prof_scopes {
    const struct tape_scopes *from; /* NULL: the observation has not begun */
    struct prof_scope {
        bool written;
#define X(name) uint64_t name;
        TAPE_SCOPE_COUNTERS(X)
#undef X
    } * scope;
    uint32_t n, capacity; /* nodes that are in the file, with 0 */
    uint64_t expected;    /* sum of their times that is in the file */
    uint64_t lost, seen_steps;
};

struct prof_buffer;

/* There are nodes that the file does not know. */
bool prof_scopes_are_new(const struct prof_scopes *scopes);
/* Nodes that are new or changed since the last packet, or `all` of them, which changes no mark; no
 * packet where there are none. False: no memory; the buffer is as it was. */
bool prof_put_scopes(struct prof_buffer *out, struct prof_scopes *scopes, bool all);
void prof_scopes_free(struct prof_scopes *scopes);

/* collect_path_map.c */

/* The call paths that a file has, which are those of its rows, under numbers of the file's own:
 * ascending from 1, each behind its parent. */
struct prof_path_map {
    uint32_t *id;                     /* by the process' number; 0: the file has no such path */
    uint32_t *listed;                 /* the process' number of path i + 1 of the file */
    uint32_t n, n_room;               /* paths of the file */
    uint32_t room;                    /* of id */
    uint32_t written;                 /* of n: in the buffer */
    uint64_t refused, refused_before; /* as last written; before the file began */
};

/* Gives numbers to a path and to all outwards. False: no memory. */
bool prof_path_map_add(struct prof_path_map *map, uint32_t path);
/* The file's number of a path that was added; 0 of 0. */
uint32_t prof_path_map_id(const struct prof_path_map *map, uint32_t path);
void prof_path_map_free(struct prof_path_map *map);

/* collect_write.c: appends frames to a buffer. False: no memory, or a frame beyond the format's
 * limit; the buffer is then as it was. */

struct prof_buffer {
    uint8_t *data;
    size_t n, capacity;
};

bool prof_put_bytes(struct prof_buffer *out, const void *data, size_t n);
struct Tapescope__Packet;
bool prof_put_packet(struct prof_buffer *out, const struct Tapescope__Packet *packet);
/* The magic and the header. Arguments that the system does not show are left out. */
bool prof_put_head(struct prof_buffer *out, const char *library_version, const char *program,
                   const char *clock, const char *options);
bool prof_put_modules(struct prof_buffer *out, const struct prof_modules *modules);
/* Nothing where there is none. */
bool prof_put_overhead(struct prof_buffer *out, const struct prof_overhead *overhead);
bool prof_put_clock(struct prof_buffer *out, const struct prof_stamp *stamp);
/* The call paths of the rows that prof_put_ledger would write, if the file lacks them, and how many
 * were refused. Must go before. */
bool prof_put_paths(struct prof_buffer *out, struct prof_path_map *map,
                    const struct prof_ledger *ledger, bool all);
/* Call paths that were added to the map since the last packet. */
bool prof_put_new_paths(struct prof_buffer *out, struct prof_path_map *map);
/* Rows that changed since the last packet, or `all`; the marks of change stay. */
bool prof_put_ledger(struct prof_buffer *out, const struct prof_ledger *ledger,
                     const struct prof_path_map *paths, bool all);
/* Classes that changed since the last packet, or `all`, and the moments since; the stretch with the
 * peak if this is the `last` packet, or if the peak is much greater than in the one before. What
 * has been written is marked as such unless `all`. scratch: kept from call to call. */
bool prof_put_residuals(struct prof_buffer *out, struct prof_buffer *scratch,
                        struct prof_ledger *ledger, bool all, bool last);
/* "This tape is destroyed; tape 0 has what it held." */
bool prof_put_final(struct prof_buffer *out, const struct prof_ledger *ledger);
bool prof_put_end(struct prof_buffer *out, uint64_t ticks, const char *reason);
/* Forgets all tapes; those that are in the file are taken back there. (In collect_retired.c.) */
bool prof_drop_all(struct prof_buffer *out, struct prof_tapes *tapes, struct prof_retired *retired,
                   struct prof_path_map *paths);

/* Nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME. */
uint64_t prof_time_monotonic(void);
uint64_t prof_time_unix(void);

/* collect_file.c */

struct prof_file {
    int fd; /* -1: closed */
    bool regular;
    dev_t device;
    ino_t inode;
    off_t size; /* whole frames only */
};

/* Creates or empties the file. The writer holds a lock on it: two programs that were given the
 * same path do not mix their packets. */
const char *prof_file_open(struct prof_file *file, const char *path);
/* Appends all of it by one write if the system takes it, or nothing: what a failure left is cut
 * off. */
const char *prof_file_write(struct prof_file *file, const void *data, size_t n);
const char *prof_file_close(struct prof_file *file);
/* Appends what a file of the system's (/proc) holds, about `most` bytes of it. Returns 0 or an
 * error number; the buffer is then as it was. */
int prof_file_read(struct prof_buffer *to, const char *path, size_t most);
/* The text of an error number. */
const char *prof_reason(int error);
/* A file of these bytes, whole or with the reason why not. */
const char *prof_file_put(const char *path, const struct prof_buffer *data);
/* A message of `path` and `reason`, in this order in the format, like prof_warn. */
void prof_say(bool (*log)(int level, const char *message), const char *path, const char *format,
              const char *reason) __attribute__((format(printf, 3, 0)));
/* That the profile ends: to `log` (see tape_collector), or as a line on standard error. */
void prof_warn(bool (*log)(int level, const char *message), const char *path, const char *reason);

/* collect_events.c: single events, packed as they come. They have locks of their own, so that a
 * thread that tells of one never waits for the file. */

struct prof_events;

/* NULL: no memory. most_bytes: of the file, for all events together. */
struct prof_events *prof_events_open(uint64_t most_bytes);
/* Takes no more of them. The struct itself stays, for threads that are late; free() ends it. */
void prof_events_close(struct prof_events *events);
void prof_events_take(struct prof_events *events, const struct tape_event *event);
/* What there was is void. */
void prof_events_clear(struct prof_events *events);
/* Appends the packets that are full, or `all` that there is. False: no memory; what was not
 * appended counts as left out. */
bool prof_put_events(struct prof_buffer *out, struct prof_events *events, bool all);

/* collect_signal.c: a signal asks for a snapshot. */

/* The signal sets `due` to 0 from now on, so that the next op calls the collector. Returns NULL, or
 * why not: the program handles the signal itself. */
const char *prof_signal_watch(int number, uint64_t *due);
/* It has come since this was last asked, for this `due`. */
bool prof_signal_taken(const uint64_t *due);
/* `due` is written no more. The signal stays ours and does nothing: its default would end the
 * program. */
void prof_signal_forget(const uint64_t *due);

#endif
