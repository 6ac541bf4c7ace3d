/* merge_state.h: what is known while profiles become one.
 *
 * May include: merge.h, writer.h. Private to profiler/format.
 * Invariant: each part (modules, rows, paths, samples ...) is opened with room for all that the
 * profiles have of it, so that nothing grows later; strings are borrowed from the profiles.
 */
#ifndef PROFILER_FORMAT_MERGE_STATE_H
#define PROFILER_FORMAT_MERGE_STATE_H

#include "merge.h"
#include "writer.h"

/* Places of equal things: a hash table that never grows. */
struct merge_set {
    uint32_t *slot; /* place plus 1; 0: free */
    size_t n_slots;
};

/* Whether the thing at `place` is what is looked for. */
typedef bool merge_same_fn(const void *payload, uint32_t place, const void *key);

/* A row on its way into the sum. */
struct merge_row {
    struct prof_row row; /* its pc, path and so on are the sum's, its times ns */
    size_t tape;         /* among all tapes */
    uint32_t index;      /* in the file */
    uint32_t merged;     /* its place in the sum */
};

struct merge {
    const struct prof_profile *const *profile;
    size_t n;
    uint64_t start_unix_ns; /* the earliest */
    char *error;            /* why not, if it is not for the writer to say; `room` bytes */
    size_t room;

    struct prof_mapping *mapping;
    size_t n_mappings, *mapping_of, *first_mapping; /* mapping_of: of all profiles, its place */

    struct merge_row *source, *sum;
    size_t n_sources, n_sums;
    size_t *first_row; /* of all tapes, in row_of */
    uint32_t *row_of;  /* of all tapes' rows: place in the sum */
    struct prof_tape tape;
    const struct prof_tape
        *peak; /* of all tapes the one with the greatest; its number among them */
    size_t peak_number;

    struct prof_scope *scope; /* names are borrowed */
    uint32_t *scope_of;       /* of all profiles' scopes: place plus 1 */
    size_t n_scopes, *first_scope;
    struct prof_expectation *expectation;
    size_t n_expectations;

    struct prof_residual *residual; /* rows are places plus 1 */
    struct prof_change *change;     /* of the tape with the greatest peak */
    struct prof_moment *moment;
    size_t n_residuals, n_changes, n_moments;
    uint64_t peak_ticks;

    struct prof_path *path; /* the number of path i is i + 1 */
    uint32_t *path_of;      /* of all profiles' paths: number */
    size_t n_paths, *first_path;
    struct merge_set paths;

    struct prof_thread *thread; /* their names are borrowed */
    size_t n_threads;
    struct merge_thread *thread_of; /* of all profiles' threads */
    size_t n_thread_of;
    struct prof_sample *sample;
    size_t n_samples;
    uint64_t *stack; /* of all samples */

    struct prof_symbol *symbol;
    size_t n_symbols;
};

bool merge_set_open(struct merge_set *set, size_t most);
/* Where the thing is: its place plus 1, or 0 where it belongs. */
uint32_t *merge_set_find(const struct merge_set *set, uint64_t hash, merge_same_fn *same,
                         const void *payload, const void *key);
/* h, changed by x or by a text. */
uint64_t merge_mix(uint64_t h, uint64_t x);
uint64_t merge_mix_text(uint64_t h, const char *text);

/* Modules: the addresses of the sum. */
bool merge_open_modules(struct merge *merge);
/* The return address pc of profile i as one of the sum. */
uint64_t merge_move(const struct merge *merge, size_t i, uint64_t pc);

/* Call paths as one prefix tree. */
bool merge_open_paths(struct merge *merge);
/* The number of profile i's path in the sum; 0: it has none of this number. */
uint32_t merge_path(const struct merge *merge, size_t i, uint32_t id);
void merge_put_paths(const struct merge *merge, struct writer *writer);

/* A profile's time in the sum: ns since the earliest start. */
uint64_t merge_time(const struct merge *merge, size_t i, uint64_t ticks);

/* Scopes by name and parent, what the source expects of them, and the steps. */
bool merge_open_scopes(struct merge *merge);
/* The place plus 1 of profile i's scope, which is a place plus 1 itself; 0: none. */
uint32_t merge_scope(const struct merge *merge, size_t i, uint32_t scope);
void merge_put_scopes(const struct merge *merge, struct writer *writer);

/* Rows of all tapes, and the tapes' counters. */
bool merge_open_rows(struct merge *merge);
void merge_put_rows(const struct merge *merge, struct writer *writer);

/* What the rows' bytes are for, and live bytes over time. */
bool merge_open_residuals(struct merge *merge);
void merge_put_residuals(const struct merge *merge, struct writer *writer);

/* Threads that were sampled, and samples. */
bool merge_open_samples(struct merge *merge);
void merge_put_samples(const struct merge *merge, struct writer *writer);

/* Single events, which are read once more. */
void merge_put_events(const struct merge *merge, struct writer *writer);

#endif
