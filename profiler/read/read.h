/* read.h: a native profile, read from a file into its final state.
 *
 * Invariant: any bytes are safe to read; memory is bounded by a multiple of the file's size. What
 * was written before a truncation or a damaged packet is used, and `warning` says so.
 */
#ifndef PROFILER_READ_H
#define PROFILER_READ_H

#include "counters.def"
#include "events.def"
#include "phases.def"
#include "trace.h"
#include "waiting.def"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* counters.def says what each counter is. */
#define READ_SCOPE_COUNTERS(X) SCOPE_COUNTERS(X) X(overhead_ticks)

/* The most that any of these counters is in sum, over all rows, tapes, scopes, samples or threads
 * of a profile that was read; a file that says more is forged, and what is beyond is left out. Also
 * of forward, backward and recomputed, of records, values and adjoints, a sum is within 64 bits;
 * and where times are twice as long (read_take_off_overhead). */
#define READ_MOST (UINT64_C(1) << 61)

/* The sum of what several profiles say, which none of them bounds; 2^64 - 1 is the most. */
static inline uint64_t read_add(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* One site and op of one tape. Strings belong to the profile. */
struct read_row {
    uint64_t pc;         /* return address; 0: a row of the tape's own */
    const char *op;      /* never NULL */
    const char *kept_by; /* op of the row whose pullback needs the values; NULL: none, or unknown */
    const char *shape;   /* of result and operands; NULL: any, or several */
    bool kept_others;
    uint32_t line;   /* of the call; 0: unknown */
    uint32_t path;   /* id of a call path; 0: none */
    uint64_t thread; /* of destroyed tapes; 0: that of the tape, unknown, or several */
    uint32_t index, kept_by_index; /* as in the file; kept_by_index is the row plus 1, 0: none */
    uint32_t scope;                /* place in the profile's scopes plus 1, 0: none */
    double byte_ticks;             /* of the residual classes that it is the producer of */
    bool untimed;                  /* it ran forward, and nothing says how long */
#define X(name) uint64_t name;
    ROW_COUNTERS(X)
#undef X
};

/* The division of a run's time by its statements' bytes is trusted as much as so many looks at each
 * line; see read_estimate.c. */
enum { READ_MODEL_LOOKS = 4 };

/* A time that a model gives a line, which was found in so many looks and expected in so many. */
static inline double read_corrected(double model, double found, double expected)
{
    const double of_model = READ_MODEL_LOOKS;
    return model * (found + of_model) / (expected + of_model);
}

/* Calls whose times were each read off the clock. Statements' are estimates. */
static inline uint64_t read_row_timed_calls(const struct read_row *row)
{
    return row->forward_ticks > row->estimated_forward_ticks ? row->calls : 0;
}

struct read_residual_counts {
#define X(name) uint64_t name;
    CLASS_COUNTERS(X)
#undef X
};

/* The counters as members of a struct, by their names and together as `counts`. */
#define READ_RESIDUAL_MEMBER(name) uint64_t name;
#define READ_RESIDUAL_MEMBERS                                                                      \
    union {                                                                                        \
        struct read_residual_counts counts;                                                        \
        struct {                                                                                   \
            CLASS_COUNTERS(READ_RESIDUAL_MEMBER)                                                   \
        };                                                                                         \
    }

/* Adds what two classes have as that of both. */
void read_residual_add(struct read_residual_counts *to, const struct read_residual_counts *from);

enum read_residual_kind {
    READ_SAVED,
    READ_VALUE,
    READ_RECORD,
    READ_ADJOINT,
    READ_DISK, /* of any of the others, in the tape's file */
    READ_RESIDUAL_KINDS
};

/* Bytes of one line for one purpose. Rows are places in the tape's array of rows, plus 1; 0: none,
 * or unknown. */
struct read_residual {
    uint32_t index; /* as in the file */
    uint32_t producer, consumer, released_by;
    enum read_residual_kind kind;
    bool shared, released_others;
    double byte_ticks;
    READ_RESIDUAL_MEMBERS;
};

/* Live bytes of one class change; residual: its place in the tape's array. */
struct read_change {
    uint64_t ticks;
    int64_t delta;
    uint32_t residual;
    bool ends, backward;
};

/* Live bytes about a moment. */
struct read_moment {
    uint64_t ticks, most_bytes, least_bytes;
    bool backward;
};

/* A tape in its last known state; tape 0 stands for all that were destroyed. */
struct read_tape {
    uint64_t tape, thread;
    uint64_t tapes; /* how many this stands for */
    bool final;     /* destroyed, and tape 0 does not hold it yet */
    struct read_row *row;
    size_t n_rows;
    struct read_residual *residual;
    size_t n_residuals;
    struct read_change *change; /* of the stretch with the peak, from nothing on */
    size_t n_changes;
    uint32_t merged; /* most changes that a moment stands for */
    bool stretch_is_truncated;
    uint32_t *trace; /* words of trace.h: whole entries, of known kinds and classes, whose class is
                      * a place in the tape's array */
    size_t n_trace;
    bool trace_is_cut, trace_hides; /* without the rest; without what checkpoints' functions did */
    bool trace_has_uses;            /* each use of a value is in it */
    struct read_moment *moment;     /* ordered by time */
    size_t n_moments;
    uint64_t peak_ticks; /* 0: unknown */
#define X(name) uint64_t name;
    TAPE_COUNTERS(X)
#undef X
};

/* A named part of the program; counters are its own, without those of the scopes within it. */
struct read_scope {
    uint32_t parent; /* place in the profile's scopes plus 1, less than its own; 0: none */
    uint64_t thread;
    char *name; /* with its keys and values: "layer index=3" */
#define X(name) uint64_t name;
    READ_SCOPE_COUNTERS(X)
#undef X
};

/* What a line of the source says that its scope, or its function, costs at most. */
enum read_expected { READ_EXPECT_RATIO, READ_EXPECT_TAPE_BYTES };
struct read_expectation {
    enum read_expected kind;
    uint64_t pc;
    uint32_t line;  /* of the call; 0: unknown */
    uint32_t scope; /* place in the profile's scopes plus 1, 0: its function */
    double bound;
    uint64_t times; /* that the line was passed */
};

/* The newest pattern of a sparse derivative that a line has found. Its picture has a side of at
 * most READ_PATTERN_CELLS; see Pattern in profile.proto. */
enum { READ_PATTERN_CELLS = 64 };
enum read_pattern_kind { READ_PATTERN_JACOBIAN, READ_PATTERN_HESSIAN, READ_PATTERN_KINDS };
struct read_pattern {
    enum read_pattern_kind kind;
    uint64_t pc;
    uint32_t line; /* of the call; 0: unknown */
    bool coloured; /* colours is known: sweeps that the values take */
    uint64_t rows, columns, values, colours;
    uint64_t calls;         /* of this site that found a pattern */
    uint32_t height, width; /* of the picture */
    uint64_t *cell;         /* [height, width]: values in each; their sum is `values` */
};

/* Messages between the ranks of a program, in the order of their ends: profile.proto says what the
 * members are. `kind` is an enum analyze_message_kind. */
enum { READ_MESSAGE_KINDS = 6 };
#define READ_MOST_OF_MESSAGE (UINT64_C(1) << 40)
struct read_message_call {
    uint32_t kind, line, ranks;
    bool backward;
    uint64_t pc, comm;
    const char *op;
    int32_t root, to, from, to_tag, from_tag;
};
struct read_message {
    size_t call; /* place in the profile's message calls */
    uint64_t number, start, ticks, bytes;
};
struct read_meeting {
    uint64_t own, theirs, width; /* ticks of this rank, of rank 0, of rank 0 */
};

/* A call path: that of its parent and one frame more. */
struct read_path {
    uint64_t pc; /* return address; 0: stands for frames that are left out */
    uint32_t id;
    uint32_t parent; /* id, smaller than this one's; 0: the frame is the outermost */
    uint32_t number; /* by which events name it; 0: they do not */
};

/* Something that has ended, once; events.def says what each kind is. */
#define READ_EVENT_ROW(X, NAME, number, ...) READ_EVENT_##NAME = number,
enum read_event_kind { EVENT_LIST(READ_EVENT_ROW, ) READ_EVENT_KINDS };
#undef READ_EVENT_ROW
struct read_event {
    enum read_event_kind kind;
    uint32_t line;    /* of the call; 0: unknown */
    uint32_t scope;   /* that it is or stood in: place in the profile's scopes plus 1, 0: none */
    uint32_t process; /* of a merged profile: number from 1; 0: there is one */
    uint64_t thread, tape;
    uint64_t pc;    /* 0: a scope */
    const char *op; /* "" for a scope */
    uint32_t path;  /* number of its call path, see read_profile_path_numbered; 0: unknown */
    bool again;     /* an op that ran again for a checkpoint: its time is recomputation */
    bool part;      /* a stretch of a call that has another event, which stands for the call */
    uint64_t
        record; /* place of the op's record on its tape, plus 1; 0: none. A pullback's op is the
                      * newest with its place on its tape. */
    uint64_t start_ticks, ticks;
};

/* An executable mapping of the program. */
struct read_mapping {
    char *path;
    uint8_t *build_id;
    size_t build_id_bytes;
    uint64_t start, end, bias;
};

/* What threads were found at when they were interrupted; see Sample in profile.proto. */
#define READ_PHASE_ROW(X, NAME, name, number, ...) READ_PHASE_##NAME = number,
enum read_phase { READ_PHASE_NONE, PHASE_LIST(READ_PHASE_ROW, ) READ_PHASES };
#undef READ_PHASE_ROW
#define X(NAME) READ_WAITING_##NAME,
enum read_waiting { WAITING_LIST(X) };
#undef X
struct read_sample {
    uint32_t thread; /* index of a thread, which the file may lack */
    enum read_phase phase;
    uint64_t pc;    /* return address of the row, within ops */
    const char *op; /* never NULL */
    uint32_t line, path;
    bool shared;
    enum read_waiting waiting;
    uint64_t *stack; /* outside of ops: the interrupted address, then return addresses */
    size_t n_stack;
#define X(name) uint64_t name;
    SAMPLE_COUNTERS(X)
    SAMPLE_TIMES(X)
#undef X
};

/* A thread that was sampled; fired = recorded + partial + lost + outside. */
struct read_thread {
    uint32_t index;
    uint64_t tid; /* 0: several */
    char *name;
#define X(name) uint64_t name;
    THREAD_COUNTERS(X)
#undef X
};

/* Where a site is, from a packed profile. Strings belong to the profile; NULL: unknown. */
struct read_symbol {
    uint64_t pc;
    uint32_t line;  /* of the row, not of the source */
    uint32_t depth; /* 0: the innermost function; others that the one before is inlined into */
    bool outermost; /* the function that has the code; older profiles do not say */
    bool wrapped;   /* see symbols_place in symbols.h */
    char *function, *file, *module;
    uint32_t source_line, function_line;
    uint64_t offset;
};

struct read_profile {
    char *path; /* of the profile itself */
    char *library_version, *program, *working_directory, *clock, *collector;
    char *options; /* of the recording, "": all are defaults */
    char **argument;
    size_t n_arguments;
    uint64_t pid;
    bool ranked;          /* it is of rank `rank` of `ranks`, which may be 0: unknown */
    uint32_t rank, ranks; /* of a sum of ranks: their number */
    char *stored;         /* where its bytes lie, if not at `path` */
    uint64_t runs;        /* that a sum is of; 1: it is none */
    uint64_t start_unix_ns, end_unix_ns; /* the end is 0 where the profile is not complete */
    uint64_t start_ticks;                /* the first reading of the clock */
    uint64_t duration_ns;                /* from the first to the last time in the file */
    double ticks_per_ns;
    double forward_overhead, backward_overhead; /* ticks that observing added, a call; or < 0 */
    uint64_t overhead_ticks;    /* taken off the times of rows and of their tapes, in all */
    bool clock_is_uncalibrated; /* two readings of the clock were not there to compare */
    struct read_tape *tape;
    size_t n_tapes;
    struct read_mapping *mapping; /* in the order of the file */
    size_t n_mappings;
    struct read_path *call_path; /* by ascending id */
    size_t n_call_paths;
    uint32_t *path_by_number; /* places of those that have one, by ascending number */
    size_t n_path_numbers;
    uint64_t paths_refused; /* calls that lack callers, because the collector had no room */
    char **op;              /* names that rows point to */
    size_t n_ops;
    struct read_scope *scope; /* parents come before what is in them */
    size_t n_scopes;
    uint64_t lost_scopes; /* begun without room, counted as what they were in */
    struct read_expectation *expectation;
    size_t n_expectations;
    struct read_pattern *pattern;
    size_t n_patterns;
    struct read_message_call *message_call;
    size_t n_message_calls;
    struct read_message *message;
    size_t n_messages;
    uint64_t messages_left_out; /* after the last, beyond the limit in bytes */
    struct read_meeting *meeting;
    size_t n_meetings;
    size_t n_parts; /* profiles of ranks that this sum keeps: see read_profile_parts() */
    uint64_t patterns_left_out; /* calls that found one for which there was no room */
    uint64_t n_events;          /* of the timeline */
    uint64_t events_left_out;   /* beyond its limit in bytes */
    bool has_steps; /* some steps of the program were measured: first_step to last_step of those */
    bool steps_by_call;
    uint64_t first_step, last_step, seen_steps;
    bool without_times; /* ops ran, and none was timed */
    bool is_sampled;    /* samples were taken, if none perhaps */
    struct read_sample *sample;
    size_t n_samples;
    struct read_thread *thread;
    size_t n_threads;
    uint64_t sample_period_ns, process_cpu_ns;
    struct read_symbol *symbol; /* by pc, line and depth */
    size_t n_symbols;
    char **symbol_text; /* their strings, each once */
    size_t n_symbol_texts;
    uint64_t n_packets;
    bool complete;
    char *end_reason; /* "" where it is not complete */
    char *warning;    /* one line, or NULL */
};

/* Reads the profile at path. Returns it, or NULL with one clear line in `error` (n bytes). The
 * caller frees it with read_profile_free. Any thread. */
struct read_profile *read_profile(const char *path, char *error, size_t n);

/* How much of the file was read that read_profile() is at, in percent; -1: it is at none, or of no
 * known length. May be called by handlers of signals. */
int read_percent(void);

/* The same of its first packet alone: the program, its rank, when it began. */
struct read_profile *read_profile_header(const char *path, char *error, size_t n);

/* The same from an open stream, read up to its end; name is what messages call it. Compressed
 * profiles (RFC 1952) are read as others. */
struct read_profile *read_profile_stream(FILE *stream, const char *name, char *error, size_t n);

/* The file to read again. */
static inline const char *read_profile_stored(const struct read_profile *profile)
{
    return profile->stored ? profile->stored : profile->path;
}

/* The place of a call path in profile->call_path, or SIZE_MAX: there is none with this id. */
size_t read_profile_path(const struct read_profile *profile, uint32_t id);

/* The same of the path that events name by this number, in a profile that was read to its end. */
size_t read_profile_path_numbered(const struct read_profile *profile, uint32_t number);

/* Reads the profile as read_profile() does, with each event of the timeline in the order of
 * the file, which is that of their ends within a thread. profile: as far as it has been read;
 * event: valid during the call alone. */
typedef void read_event_fn(void *payload, const struct read_profile *profile,
                           const struct read_event *event);
struct read_profile *read_profile_events(const char *path, read_event_fn *each, void *payload,
                                         char *error, size_t n);
struct read_profile *read_profile_events_stream(FILE *stream, const char *name, read_event_fn *each,
                                                void *payload, char *error, size_t n);

/* Reads a sum of ranks once more, with the bytes of the profiles that it keeps: pieces of each in
 * their order, one profile after the other. data: valid during the call alone. */
typedef void read_part_fn(void *payload, uint32_t place, const uint8_t *data, size_t n);
struct read_profile *read_profile_parts(const char *path, read_part_fn *each, void *payload,
                                        char *error, size_t n);

/* When the event ended. */
static inline uint64_t read_event_end(const struct read_event *event)
{
    return read_add(event->start_ticks, event->ticks);
}

/* Ticks as nanoseconds, rounded to the nearest; at most READ_MOST. */
uint64_t read_profile_ns(const struct read_profile *profile, uint64_t ticks);
/* The same of a reading of the clock: since the profile began. */
uint64_t read_profile_since(const struct read_profile *profile, uint64_t ticks);

/* The nearest whole number; 2^63 of what is larger, which a forged file may say, and 0 of what is
 * less than 0 or no number. */
uint64_t read_whole(double x);

/* Whether bytes were counted: samples come without them unless they were asked for. */
bool read_profile_has_bytes(const struct read_profile *profile);

/* What the profile itself knows of a site and the functions that it is inlined into, or NULL. */
const struct read_symbol *read_profile_symbol(const struct read_profile *profile, uint64_t pc,
                                              uint32_t line, uint32_t depth);

void read_profile_free(struct read_profile *profile);

#endif
