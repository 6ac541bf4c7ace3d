/* read_merge_state.h: what is known while profiles become one.
 *
 * Private to profiler/read. Invariant: the sum is a profile whose clock counts ns from the earliest
 * start of all; its strings are borrowed from the profiles.
 */
#ifndef PROFILER_READ_MERGE_STATE_H
#define PROFILER_READ_MERGE_STATE_H

#include "base_table.h"
#include "read_merge.h"
#include "read_writer.h"

/* A profile, and what its own numbers are in the sum. */
struct read_merge_part {
    const struct read_profile *profile;
    size_t *mapping_of;
    uint32_t *path_of;  /* ids, by place */
    uint32_t *scope_of; /* places plus 1, by place */
};

struct read_merge {
    struct read_merge_part *part;
    size_t n;
    char *error; /* why not, if it is not for the writer to say; `room` bytes */
    size_t room;
    struct read_profile sum;
    struct read_tape tape;        /* of the sum: its only one */
    const struct read_tape *peak; /* of all tapes the one with the greatest */
    struct base_table paths, scopes, expectations, rows, classes, threads, samples, symbols;
    size_t room_mappings, room_paths, room_scopes, room_expectations, room_rows, room_classes,
        room_changes, room_moments, room_threads, room_samples, room_symbols;
    uint32_t *which; /* of the sum's threads: the how-manieth of its name in a process */
    size_t room_which;
    double period_ns, fired; /* of all timers: sums */
    uint64_t least_period, most_period;
};

/* The return address pc of a part as one of the sum. */
uint64_t read_merge_move(const struct read_merge *merge, const struct read_merge_part *part,
                         uint64_t pc);
/* The id of a part's path in the sum; 0: it has none of this id. */
uint32_t read_merge_path(const struct read_merge_part *part, uint32_t id);
/* The place plus 1 of a part's scope, which is a place plus 1 itself; 0: none. */
uint32_t read_merge_scope(const struct read_merge_part *part, uint32_t scope);
/* A part's time in the sum. */
uint64_t read_merge_time(const struct read_merge *merge, const struct read_merge_part *part,
                         uint64_t ticks);

/* Single events, which are read once more. */
void read_merge_put_events(const struct read_merge *merge, struct read_writer *writer);

#endif
