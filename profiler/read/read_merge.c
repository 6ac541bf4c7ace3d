/* read_merge.c: see read_merge.h.
 *
 * The reader has read each profile; one after the other is added to the sum, which the writer then
 * writes as any other. Invariant: every counter of the sum is the sum of the parts' counters. Times
 * are rounded to ns as running sums, so that nothing is lost between.
 *
 * Lines marked NOLINT look at elements that a table has named, so the array is there; the analyser
 * cannot know.
 */
#include "read_merge.h"
#include "base_number.h"

#include "base_array.h"
#include "base_memory.h"
#include "base_strings.h"
#include "base_table.h"
#include "read_pack.h"
#include "read_writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* A profile, and what its own numbers are in the sum. */
struct read_merge_part {
    const struct read_profile *profile;
    size_t *mapping_of;
    uint32_t *path_of;  /* ids, by place */
    uint32_t *scope_of; /* places plus 1, by place */
};

struct read_merge {
    struct read_merge_part *part;
    const struct read_symbol *const *symbol; /* of each */
    const size_t *n_symbols;
    size_t n;
    bool keeps;  /* each profile beside the sum */
    char *error; /* why not, if it is not for the writer to say; `room` bytes */
    size_t room;
    struct read_profile sum;
    struct read_tape tape;        /* of the sum: its only one */
    const struct read_tape *peak; /* of all tapes the one with the greatest */
    struct base_table paths, scopes, expectations, patterns, rows, classes, threads, samples,
        symbols;
    size_t room_mappings, room_paths, room_scopes, room_expectations, room_patterns, room_rows,
        room_classes, room_changes, room_moments, room_threads, room_samples, room_symbols;
    uint32_t *which; /* of the sum's threads: the how-manieth of its name in a process */
    size_t room_which;
    double period_ns, fired; /* of all timers: sums */
    uint64_t least_period, most_period;
};

static uint64_t merge_time(const struct read_merge *merge, const struct read_merge_part *part,
                           uint64_t ticks)
{
    const struct read_profile *profile = part->profile;
    return profile->start_unix_ns - merge->sum.start_unix_ns + read_profile_since(profile, ticks);
}

/* ---- modules: the addresses of the sum ----
 *
 * No two mappings of the sum overlap; each has the bytes of its file that it had in its process, so
 * that an address keeps its place in the module. */

static bool same_module(const struct read_mapping *a, const struct read_mapping *b)
{
    if (a->build_id_bytes > 0 && b->build_id_bytes > 0)
        return a->build_id_bytes == b->build_id_bytes &&
               memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
    return a->path && b->path && strcmp(a->path, b->path) == 0;
}

static const struct read_mapping *program_of(const struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_mappings; i++)
        if (strcmp(profile->mapping[i].path, profile->program) == 0)
            return &profile->mapping[i];
    return NULL;
}

bool read_may_merge(const struct read_profile *a, const struct read_profile *b)
{
    const struct read_mapping *x = program_of(a), *y = program_of(b);
    return x && y ? same_module(x, y) : strcmp(a->program, b->program) == 0;
}

static bool is_free(const struct read_profile *sum, const struct read_mapping *mapping)
{
    for (size_t i = 0; i < sum->n_mappings; i++)
        if (mapping->start < sum->mapping[i].end && sum->mapping[i].start < mapping->end)
            return false;
    return true;
}

/* The mapping of the sum that stands for one of a part, made if need be: where its addresses are
 * taken, behind all others. */
static size_t merge_counterpart(struct read_merge *merge, const struct read_mapping *mapping)
{
    struct read_profile *sum = &merge->sum;
    uint64_t end = 0;
    for (size_t i = 0; i < sum->n_mappings; i++) {
        const struct read_mapping *known = &sum->mapping[i];
        if (same_module(known, mapping) &&
            known->start - known->bias == mapping->start - mapping->bias &&
            known->end - known->bias == mapping->end - mapping->bias)
            return i;
        end = base_greater(end, known->end);
    }
    const bool fits = is_free(sum, mapping);
    BASE_ARRAY_GROW(sum->mapping, sum->n_mappings, &merge->room_mappings);
    struct read_mapping *made = &sum->mapping[sum->n_mappings];
    *made = *mapping;
    if (!fits) {
        const uint64_t shift = (end + PAGE) / PAGE * PAGE - mapping->start / PAGE * PAGE;
        made->start += shift;
        made->end += shift;
        made->bias += shift;
    }
    return sum->n_mappings++;
}

static void add_modules(struct read_merge *merge, struct read_merge_part *part)
{
    const struct read_profile *profile = part->profile;
    part->mapping_of = base_calloc(profile->n_mappings, sizeof *part->mapping_of);
    for (size_t i = 0; i < profile->n_mappings; i++)
        part->mapping_of[i] = merge_counterpart(merge, &profile->mapping[i]);
}

static uint64_t merge_move(const struct read_merge *merge, const struct read_merge_part *part,
                           uint64_t pc)
{
    const struct read_profile *profile = part->profile;
    for (size_t i = profile->n_mappings; pc != 0 && i-- > 0;) {
        const struct read_mapping *from = &profile->mapping[i];
        if (pc - 1 >= from->start && pc - 1 < from->end) /* of several, the last counts */
            return pc - from->bias + merge->sum.mapping[part->mapping_of[i]].bias;
    }
    return pc;
}

/* ---- call paths: one prefix tree ----
 *
 * A path of the sum has the same frames as each that it stands for, and no other path has them; a
 * parent comes before its children. The id of path i is i + 1. */

static uint32_t add_path(struct read_merge *merge, uint32_t parent, uint64_t pc)
{
    struct read_profile *sum = &merge->sum;
    const uint64_t key = base_hash(base_hash(0, parent), pc);
    size_t walk;
    for (int64_t at = base_table_first(&merge->paths, key, &walk); at >= 0;
         at = base_table_next(&merge->paths, key, &walk))
        if (sum->call_path[at].parent == parent && sum->call_path[at].pc == pc) // NOLINT
            return sum->call_path[at].id;
    const uint32_t id = (uint32_t)sum->n_call_paths + 1;
    BASE_ARRAY_GROW(sum->call_path, sum->n_call_paths, &merge->room_paths);
    base_table_add(&merge->paths, key, sum->n_call_paths);
    sum->call_path[sum->n_call_paths++] =
        (struct read_path){.pc = pc, .parent = parent, .id = id, .number = id};
    return id;
}

static uint32_t merge_path(const struct read_merge_part *part, uint32_t id)
{
    const size_t place = id ? read_profile_path(part->profile, id) : SIZE_MAX;
    return place == SIZE_MAX ? 0 : part->path_of[place];
}

static void add_paths(struct read_merge *merge, struct read_merge_part *part)
{
    const struct read_profile *profile = part->profile;
    merge->sum.paths_refused = read_add(merge->sum.paths_refused, profile->paths_refused);
    part->path_of = base_calloc(profile->n_call_paths, sizeof *part->path_of);
    for (size_t i = 0; i < profile->n_call_paths; i++) {
        const struct read_path *from = &profile->call_path[i];
        part->path_of[i] =
            add_path(merge, merge_path(part, from->parent), merge_move(merge, part, from->pc));
    }
}

/* ---- scopes: one forest ----
 *
 * Scopes are one if their names with their keys, the scopes that they stand in and the numbers of
 * their threads are: threads of two processes share a number as do those of one that did not live
 * at one time. */

/* In ns, but for what is no time. */
static struct read_scope in_ns(const struct read_profile *profile, const struct read_scope *from)
{
    struct read_scope to = *from;
    to.ticks = read_profile_ns(profile, from->ticks);
    to.sweep_ticks = read_profile_ns(profile, from->sweep_ticks);
    to.overhead_ticks = read_profile_ns(profile, from->overhead_ticks);
    return to;
}

static uint32_t merge_scope(const struct read_merge_part *part, uint32_t scope)
{
    return scope ? part->scope_of[scope - 1] : 0;
}

static uint32_t merge_add_scope(struct read_merge *merge, const struct read_merge_part *part,
                                const struct read_scope *from)
{
    struct read_profile *sum = &merge->sum;
    struct read_scope made = in_ns(part->profile, from);
    made.parent = merge_scope(part, from->parent);
    const uint64_t key = base_hash(base_hash(base_hash_text(made.name), made.parent), made.thread);
    size_t walk;
    for (int64_t at = base_table_first(&merge->scopes, key, &walk); at >= 0;
         at = base_table_next(&merge->scopes, key, &walk)) {
        struct read_scope *to = &sum->scope[at];
        if (to->parent != made.parent || to->thread != made.thread || // NOLINT
            strcmp(to->name, made.name) != 0)
            continue;
#define X(name) to->name = read_add(to->name, made.name);
        READ_SCOPE_COUNTERS(X)
#undef X
        return (uint32_t)at + 1;
    }
    BASE_ARRAY_GROW(sum->scope, sum->n_scopes, &merge->room_scopes);
    base_table_add(&merge->scopes, key, sum->n_scopes);
    sum->scope[sum->n_scopes] = made;
    return (uint32_t)++sum->n_scopes;
}

/* What the reader took off a row's time was in its scope's time as well. */
static void add_overhead(struct read_merge *merge, const struct read_merge_part *part)
{
    const struct read_profile *profile = part->profile;
    for (size_t j = 0; j < profile->n_tapes; j++) {
        for (size_t k = 0; k < profile->tape[j].n_rows; k++) {
            const struct read_row *row = &profile->tape[j].row[k];
            const uint64_t calls = read_row_timed_calls(row);
            if (row->scope == 0 || calls == 0)
                continue;
            const uint64_t ticks = read_whole((double)calls * profile->forward_overhead);
            struct read_scope *to = &merge->sum.scope[merge_scope(part, row->scope) - 1];
            to->overhead_ticks = read_add(to->overhead_ticks, read_profile_ns(profile, ticks));
        }
    }
}

static bool same_expectation(const struct read_expectation *a, const struct read_expectation *b)
{
    return a->kind == b->kind && // NOLINT
           a->pc == b->pc && a->line == b->line && a->scope == b->scope &&
           (a->bound == b->bound || (isnan(a->bound) && isnan(b->bound)));
}

static void add_expectation(struct read_merge *merge, const struct read_merge_part *part,
                            const struct read_expectation *from)
{
    struct read_profile *sum = &merge->sum;
    struct read_expectation made = *from;
    made.pc = merge_move(merge, part, from->pc);
    made.scope = merge_scope(part, from->scope);
    const uint64_t key = base_hash(base_hash(made.kind, made.pc), made.scope);
    size_t walk;
    for (int64_t at = base_table_first(&merge->expectations, key, &walk); at >= 0;
         at = base_table_next(&merge->expectations, key, &walk)) {
        struct read_expectation *to = &sum->expectation[at];
        if (!same_expectation(to, &made))
            continue;
        to->times = read_add(to->times, made.times);
        return;
    }
    BASE_ARRAY_GROW(sum->expectation, sum->n_expectations, &merge->room_expectations);
    base_table_add(&merge->expectations, key, sum->n_expectations);
    sum->expectation[sum->n_expectations++] = made;
}

/* Of several runs' patterns of a line, the last one given is kept. The sum borrows its picture. */
static void add_pattern(struct read_merge *merge, const struct read_merge_part *part,
                        const struct read_pattern *from)
{
    struct read_profile *sum = &merge->sum;
    struct read_pattern made = *from;
    made.pc = merge_move(merge, part, from->pc);
    const uint64_t key = base_hash(base_hash(made.kind, made.pc), made.line);
    size_t walk;
    for (int64_t at = base_table_first(&merge->patterns, key, &walk); at >= 0;
         at = base_table_next(&merge->patterns, key, &walk)) {
        struct read_pattern *to = &sum->pattern[at];
        if (to->kind != made.kind || to->pc != made.pc || // NOLINT
            to->line != made.line)
            continue;
        made.calls = read_add(made.calls, to->calls);
        *to = made;
        return;
    }
    BASE_ARRAY_GROW(sum->pattern, sum->n_patterns, &merge->room_patterns);
    base_table_add(&merge->patterns, key, sum->n_patterns);
    sum->pattern[sum->n_patterns++] = made;
}

/* Steps are those of every process: from the first to the last that any has measured. */
static void add_steps(struct read_profile *sum, const struct read_profile *profile)
{
    if (!profile->has_steps)
        return;
    if (!sum->has_steps || profile->first_step < sum->first_step)
        sum->first_step = profile->first_step;
    if (!sum->has_steps || profile->last_step > sum->last_step)
        sum->last_step = profile->last_step;
    sum->seen_steps = base_greater(sum->seen_steps, profile->seen_steps);
    sum->steps_by_call |= profile->steps_by_call;
    sum->has_steps = true;
}

static void add_scopes(struct read_merge *merge, struct read_merge_part *part)
{
    const struct read_profile *profile = part->profile;
    merge->sum.lost_scopes = read_add(merge->sum.lost_scopes, profile->lost_scopes);
    part->scope_of = base_calloc(profile->n_scopes, sizeof *part->scope_of);
    for (size_t i = 0; i < profile->n_scopes; i++)
        part->scope_of[i] = merge_add_scope(merge, part, &profile->scope[i]);
    for (size_t i = 0; i < profile->n_expectations; i++)
        add_expectation(merge, part, &profile->expectation[i]);
    for (size_t i = 0; i < profile->n_patterns; i++)
        add_pattern(merge, part, &profile->pattern[i]);
    merge->sum.patterns_left_out =
        read_add(merge->sum.patterns_left_out, profile->patterns_left_out);
    if (profile->forward_overhead > 0)
        add_overhead(merge, part);
    add_steps(&merge->sum, profile);
}

/* ---- rows: those of all tapes as of one ---- */

/* A sum of ticks, and what that is in ns. */
struct running {
    uint64_t ticks, ns;
};

/* The difference in ns that one more term makes. */
static uint64_t next_ns(const struct read_profile *profile, struct running *sum, uint64_t more)
{
    const uint64_t before = sum->ns;
    sum->ticks += more;
    sum->ns = read_profile_ns(profile, sum->ticks);
    return sum->ns - before;
}

/* Forward, backward and recomputation, the estimated parts of the first two, the steady part, and
 * the two of the disk. */
enum { TIMES = 8 };

static const char *merge_shape_of(const struct read_row *row)
{
    return row->shape ? row->shape : "";
}

static bool same_row(const struct read_row *a, const struct read_row *b)
{
    return a->pc == b->pc && a->line == b->line && a->path == b->path && a->scope == b->scope &&
           strcmp(a->op, b->op) == 0 && strcmp(merge_shape_of(a), merge_shape_of(b)) == 0;
}

static uint64_t hash_row(const struct read_row *row)
{
    uint64_t h = base_hash(base_hash(0, row->pc), row->line);
    h = base_hash(base_hash(h, row->path), row->scope);
    return base_hash(base_hash(h, base_hash_text(row->op)), base_hash_text(merge_shape_of(row)));
}

/* The place of the row in the sum. In the order of the tapes: that in which a line's ops are
 * named. */
static uint32_t merge_add_row(struct read_merge *merge, const struct read_row *row,
                              uint64_t thread_of_tape)
{
    struct read_tape *tape = &merge->tape;
    const uint64_t thread = row->thread ? row->thread : thread_of_tape;
    const uint64_t key = hash_row(row);
    size_t walk;
    for (int64_t at = base_table_first(&merge->rows, key, &walk); at >= 0;
         at = base_table_next(&merge->rows, key, &walk)) {
        struct read_row *to = &tape->row[at];
        if (!same_row(to, row))
            continue;
#define X(name) to->name = read_add(to->name, row->name);
        ROW_COUNTERS(X)
#undef X
        to->kept_others |= row->kept_others;
        to->thread = to->thread == thread ? thread : 0;
        return (uint32_t)at;
    }
    BASE_ARRAY_GROW(tape->row, tape->n_rows, &merge->room_rows);
    base_table_add(&merge->rows, key, tape->n_rows);
    tape->row[tape->n_rows] = *row;
    tape->row[tape->n_rows].index = (uint32_t)tape->n_rows;
    tape->row[tape->n_rows].kept_by_index = 0;
    tape->row[tape->n_rows].thread = thread;
    return (uint32_t)tape->n_rows++;
}

/* Names the keepers: the first that any of a row's sources has; if others have others, so it says.
 * row_of: of the tape's rows, in the sum. */
static void merge_name_keepers(struct read_merge *merge, const struct read_tape *tape,
                               const uint32_t *row_of)
{
    struct base_table places = {0}; /* by index in the file */
    for (size_t i = 0; i < tape->n_rows; i++)
        base_table_add(&places, tape->row[i].index, i);
    for (size_t i = 0; i < tape->n_rows; i++) {
        struct read_row *row = &merge->tape.row[row_of[i]];
        if (tape->row[i].kept_by_index == 0)
            continue;
        const int64_t keeper = base_table_find(&places, tape->row[i].kept_by_index - 1);
        const uint32_t index = keeper >= 0 ? row_of[keeper] + 1 : 0;
        if (row->kept_by_index == 0)
            row->kept_by_index = index;
        else if (index != 0 && index != row->kept_by_index)
            row->kept_others = true;
    }
    base_table_free(&places);
}

static void merge_add_rows(struct read_merge *merge, const struct read_merge_part *part,
                           const struct read_tape *tape, struct running *time, uint32_t *row_of)
{
    const struct read_profile *profile = part->profile;
    for (size_t i = 0; i < tape->n_rows; i++) {
        struct read_row row = tape->row[i];
        row.pc = merge_move(merge, part, row.pc);
        row.path = merge_path(part, row.path);
        row.scope = merge_scope(part, row.scope);
        row.forward_ticks = next_ns(profile, &time[0], row.forward_ticks);
        row.backward_ticks = next_ns(profile, &time[1], row.backward_ticks);
        row.recompute_ticks = next_ns(profile, &time[2], row.recompute_ticks);
        row.estimated_forward_ticks = next_ns(profile, &time[3], row.estimated_forward_ticks);
        row.estimated_backward_ticks = next_ns(profile, &time[4], row.estimated_backward_ticks);
        row.steady_backward_ticks = next_ns(profile, &time[5], row.steady_backward_ticks);
        if (tape != merge->peak)
            row.peak_bytes = 0;
        row_of[i] = merge_add_row(merge, &row, tape->thread);
    }
}

static void add_counters(struct read_tape *sum, const struct read_profile *profile,
                         const struct read_tape *tape, bool at_peak, struct running *time)
{
    sum->forward_ticks += next_ns(profile, &time[0], tape->forward_ticks);
    sum->backward_ticks += next_ns(profile, &time[1], tape->backward_ticks);
    sum->recompute_ticks += next_ns(profile, &time[2], tape->recompute_ticks);
    sum->handed_out_bytes = read_add(sum->handed_out_bytes, tape->handed_out_bytes);
    sum->live_bytes = read_add(sum->live_bytes, tape->live_bytes);
    sum->sweeps = read_add(sum->sweeps, tape->sweeps);
    sum->records = read_add(sum->records, tape->records);
    sum->tapes = read_add(sum->tapes, tape->tapes);
    sum->disk_bytes = read_add(sum->disk_bytes, tape->disk_bytes);
    sum->spilled_bytes = read_add(sum->spilled_bytes, tape->spilled_bytes);
    sum->disk_write_ticks += next_ns(profile, &time[6], tape->disk_write_ticks);
    sum->disk_read_ticks += next_ns(profile, &time[7], tape->disk_read_ticks);
    sum->memory_peak_bytes = base_greater(sum->memory_peak_bytes, tape->memory_peak_bytes);
    sum->reserved_bytes = base_greater(sum->reserved_bytes, tape->reserved_bytes);
    sum->touched_bytes = base_greater(sum->touched_bytes, tape->touched_bytes);
    if (at_peak) {
        sum->peak_bytes = tape->peak_bytes;
        sum->peak_count = tape->peak_count;
    }
}

/* Finds the tape of all profiles whose peak is the greatest. */
static void find_peak(struct read_merge *merge)
{
    for (size_t i = 0; i < merge->n; i++)
        for (size_t j = 0; j < merge->part[i].profile->n_tapes; j++) {
            const struct read_tape *tape = &merge->part[i].profile->tape[j];
            if (!merge->peak || tape->peak_bytes > merge->peak->peak_bytes)
                merge->peak = tape;
        }
}

/* ---- what the rows' bytes are for, and how many were live when ----
 *
 * Classes of one producer add up to its row, as they do in each profile. Change by change is known
 * what the tape with the greatest peak had; live bytes over time are all tapes', of which a reader
 * takes the greatest at each time. */

static uint32_t row_in_sum(const uint32_t *row_of, uint32_t row)
{
    return row ? row_of[row - 1] + 1 : 0;
}

static void add_class_counters(struct read_residual *to, const struct read_residual *from)
{
    read_residual_add(&to->counts, &from->counts);
    to->byte_ticks += from->byte_ticks;
    to->shared |= from->shared;
    to->released_others |= from->released_others;
    if (to->released_by == 0)
        to->released_by = from->released_by;
    else if (from->released_by != 0 && from->released_by != to->released_by)
        to->released_others = true;
}

/* The place in the sum of a class of the tape. */
static uint32_t add_class(struct read_merge *merge, const struct read_merge_part *part,
                          const struct read_residual *from, const uint32_t *row_of, bool at_peak)
{
    struct read_tape *tape = &merge->tape;
    struct read_residual made = *from;
    made.index = (uint32_t)tape->n_residuals;
    made.producer = row_in_sum(row_of, from->producer);
    made.consumer = row_in_sum(row_of, from->consumer);
    made.released_by = row_in_sum(row_of, from->released_by);
    made.first_ticks = merge_time(merge, part, from->first_ticks);
    made.last_ticks = from->last_ticks ? merge_time(merge, part, from->last_ticks) : 0;
    made.byte_ticks = from->byte_ticks / part->profile->ticks_per_ns;
    if (!at_peak)
        made.peak_bytes = 0;
    /* Most values are saved for their own op: producer ^ consumer is 0 for all of these. */
    const uint64_t key =
        base_hash(base_hash(base_hash(0, made.producer), made.consumer), made.kind);
    size_t walk;
    for (int64_t at = base_table_first(&merge->classes, key, &walk); at >= 0;
         at = base_table_next(&merge->classes, key, &walk)) {
        struct read_residual *to = &tape->residual[at];
        if (to->producer != made.producer || to->consumer != made.consumer || to->kind != made.kind)
            continue;
        add_class_counters(to, &made);
        return (uint32_t)at;
    }
    BASE_ARRAY_GROW(tape->residual, tape->n_residuals, &merge->room_classes);
    base_table_add(&merge->classes, key, tape->n_residuals);
    tape->residual[tape->n_residuals] = made;
    return (uint32_t)tape->n_residuals++;
}

static void add_changes(struct read_merge *merge, const struct read_merge_part *part,
                        const struct read_tape *from, const uint32_t *class_of)
{
    struct read_tape *tape = &merge->tape;
    for (size_t i = 0; i < from->n_changes; i++) {
        BASE_ARRAY_GROW(tape->change, tape->n_changes, &merge->room_changes);
        struct read_change *to = &tape->change[tape->n_changes++];
        *to = from->change[i];
        to->ticks = merge_time(merge, part, to->ticks);
        to->residual = class_of[to->residual];
    }
    free(tape->trace); /* the same profile may be given twice */
    tape->trace = base_calloc(from->n_trace + 1, sizeof *tape->trace);
    if (from->n_trace > 0)
        memcpy(tape->trace, from->trace, from->n_trace * sizeof *from->trace);
    for (size_t i = 0; i < from->n_trace; i += tape->trace[i] >> TRACE_KIND_BITS)
        tape->trace[i + 1] =
            tape->trace[i + 1] < from->n_residuals ? class_of[tape->trace[i + 1]] : 0;
    tape->n_trace = from->n_trace;
    tape->trace_is_cut = from->trace_is_cut;
    tape->trace_hides = from->trace_hides;
    tape->trace_has_uses = from->trace_has_uses;
    tape->merged = from->merged;
    tape->stretch_is_truncated = from->stretch_is_truncated;
    tape->peak_ticks = from->peak_ticks ? merge_time(merge, part, from->peak_ticks) : 0;
}

static void add_residuals(struct read_merge *merge, const struct read_merge_part *part,
                          const struct read_tape *from, const uint32_t *row_of)
{
    struct read_tape *tape = &merge->tape;
    const bool at_peak = from == merge->peak;
    uint32_t *class_of = base_calloc(from->n_residuals, sizeof *class_of);
    for (size_t i = 0; i < from->n_residuals; i++)
        class_of[i] = add_class(merge, part, &from->residual[i], row_of, at_peak);
    for (size_t i = 0; i < from->n_moments; i++) {
        BASE_ARRAY_GROW(tape->moment, tape->n_moments, &merge->room_moments);
        struct read_moment *to = &tape->moment[tape->n_moments++];
        *to = from->moment[i];
        to->ticks = merge_time(merge, part, to->ticks);
    }
    if (at_peak)
        add_changes(merge, part, from, class_of);
    free(class_of);
}

static int merge_compare_moments(const void *x, const void *y)
{
    const struct read_moment *a = x, *b = y;
    return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

static void add_tapes(struct read_merge *merge, const struct read_merge_part *part)
{
    const struct read_profile *profile = part->profile;
    struct running of_rows[TIMES] = {{0}}, of_tapes[TIMES] = {{0}};
    for (size_t i = 0; i < profile->n_tapes; i++) {
        const struct read_tape *tape = &profile->tape[i];
        uint32_t *row_of = base_calloc(tape->n_rows, sizeof *row_of);
        merge_add_rows(merge, part, tape, of_rows, row_of);
        add_counters(&merge->tape, profile, tape, tape == merge->peak, of_tapes);
        merge_name_keepers(merge, tape, row_of);
        add_residuals(merge, part, tape, row_of);
        free(row_of);
    }
}

/* ---- samples, and the threads that they are of ----
 *
 * The threads of two processes are one if they have the same name and are the same of that name, in
 * the order of their profile: the second worker of each. Samples are one if they say the same of
 * one thread. */

static int compare_indices(const void *x, const void *y)
{
    const struct read_thread *a = *(const struct read_thread *const *)x;
    const struct read_thread *b = *(const struct read_thread *const *)y;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Its place in the sum. */
static size_t add_thread(struct read_merge *merge, const struct read_thread *from, uint32_t which)
{
    struct read_profile *sum = &merge->sum;
    const uint64_t key = base_hash(base_hash_text(from->name), which);
    size_t walk;
    for (int64_t at = base_table_first(&merge->threads, key, &walk); at >= 0;
         at = base_table_next(&merge->threads, key, &walk)) {
        struct read_thread *to = &sum->thread[at];
        if (merge->which[at] != which || strcmp(to->name, from->name) != 0) // NOLINT
            continue;
        if (to->tid != from->tid)
            to->tid = 0;
#define X(name) to->name = read_add(to->name, from->name);
        THREAD_COUNTERS(X)
#undef X
        return (size_t)at;
    }
    BASE_ARRAY_GROW(sum->thread, sum->n_threads, &merge->room_threads);
    BASE_ARRAY_GROW(merge->which, sum->n_threads, &merge->room_which);
    base_table_add(&merge->threads, key, sum->n_threads);
    merge->which[sum->n_threads] = which;
    sum->thread[sum->n_threads] = *from;
    sum->thread[sum->n_threads].index = (uint32_t)sum->n_threads;
    return sum->n_threads++;
}

/* thread_of: from the part's indices to places in the sum. */
static void add_threads(struct read_merge *merge, const struct read_merge_part *part,
                        struct base_table *thread_of)
{
    const struct read_profile *profile = part->profile;
    struct base_strings names = {0};
    uint32_t *count = base_calloc(profile->n_threads, sizeof *count); /* of each name */
    const struct read_thread **list = base_calloc(profile->n_threads, sizeof *list);
    for (size_t i = 0; i < profile->n_threads; i++)
        list[i] = &profile->thread[i];
    qsort(list, profile->n_threads, sizeof *list, compare_indices);
    for (size_t i = 0; i < profile->n_threads; i++) {
        const uint32_t which = count[base_strings_add(&names, list[i]->name)]++;
        base_table_add(thread_of, list[i]->index, add_thread(merge, list[i], which));
    }
    merge->sum.process_cpu_ns = read_add(merge->sum.process_cpu_ns, profile->process_cpu_ns);
    base_strings_free(&names);
    free(count);
    free(list);
}

static bool same_sample(const struct read_sample *a, const struct read_sample *b)
{
    return a->thread == b->thread && a->phase == b->phase && a->pc == b->pc && a->line == b->line &&
           a->path == b->path && a->shared == b->shared && a->waiting == b->waiting &&
           a->n_stack == b->n_stack && strcmp(a->op, b->op) == 0 &&
           (a->n_stack == 0 || memcmp(a->stack, b->stack, a->n_stack * sizeof *a->stack) == 0);
}

static uint64_t hash_sample(const struct read_sample *sample)
{
    uint64_t h = base_hash(sample->thread, sample->phase | sample->waiting << 8);
    h = base_hash(h, sample->pc);
    h = base_hash(base_hash(base_hash(h, sample->line), sample->path), base_hash_text(sample->op));
    for (size_t i = 0; i < sample->n_stack; i++)
        h = base_hash(h, sample->stack[i]);
    return h;
}

/* The interrupted address is no return address: what is looked up is one byte further. */
static uint64_t *move_stack(const struct read_merge *merge, const struct read_merge_part *part,
                            const struct read_sample *from)
{
    uint64_t *to = base_calloc(from->n_stack, sizeof *to);
    for (size_t i = 0; i < from->n_stack; i++)
        to[i] = i == 0 ? merge_move(merge, part, from->stack[0] + 1) - 1
                       : merge_move(merge, part, from->stack[i]);
    return to;
}

static void merge_add_sample(struct read_merge *merge, const struct read_merge_part *part,
                             const struct read_sample *from, const struct base_table *thread_of)
{
    struct read_profile *sum = &merge->sum;
    struct read_sample made = *from;
    const int64_t thread = base_table_find(thread_of, from->thread);
    made.thread = thread >= 0 ? (uint32_t)thread : UINT32_MAX; /* the file lacks it */
    made.pc = merge_move(merge, part, from->pc);
    made.path = merge_path(part, from->path);
    made.stack = move_stack(merge, part, from);
    const uint64_t key = hash_sample(&made);
    size_t walk;
    for (int64_t at = base_table_first(&merge->samples, key, &walk); at >= 0;
         at = base_table_next(&merge->samples, key, &walk)) {
        struct read_sample *to = &sum->sample[at];
        if (!same_sample(to, &made))
            continue;
#define X(name) to->name = read_add(to->name, from->name);
        SAMPLE_COUNTERS(X)
        SAMPLE_TIMES(X)
#undef X
        free(made.stack);
        return;
    }
    BASE_ARRAY_GROW(sum->sample, sum->n_samples, &merge->room_samples);
    base_table_add(&merge->samples, key, sum->n_samples);
    sum->sample[sum->n_samples++] = made;
}

static void merge_add_samples(struct read_merge *merge, const struct read_merge_part *part)
{
    const struct read_profile *profile = part->profile;
    const uint64_t period = profile->sample_period_ns;
    struct base_table thread_of = {0};
    merge->sum.is_sampled |= profile->is_sampled || profile->n_samples > 0;
    add_threads(merge, part, &thread_of);
    for (size_t i = 0; i < profile->n_samples; i++)
        merge_add_sample(merge, part, &profile->sample[i], &thread_of);
    base_table_free(&thread_of);
    if (period == 0)
        return;
    merge->least_period = period < merge->least_period ? period : merge->least_period;
    merge->most_period = base_greater(merge->most_period, period);
    for (size_t i = 0; i < profile->n_threads; i++) {
        merge->period_ns += (double)period * (double)profile->thread[i].fired;
        merge->fired += (double)profile->thread[i].fired;
    }
}

/* Between samples, on average: one time where all profiles have the same. */
static uint64_t period_of(const struct read_merge *merge)
{
    const uint64_t least = merge->least_period, most = merge->most_period;
    if (least >= most || !(merge->fired > 0))
        return most;
    const double ns = merge->period_ns / merge->fired;
    return ns < (double)least ? least : ns < (double)most ? (uint64_t)(ns + 0.5) : most;
}

/* ---- symbols: those of the first profile that has an address ---- */

static bool has_symbols(const struct read_merge *merge, const struct read_symbol *site,
                        uint64_t key)
{
    size_t walk;
    for (int64_t at = base_table_first(&merge->symbols, key, &walk); at >= 0;
         at = base_table_next(&merge->symbols, key, &walk))
        if (merge->sum.symbol[at].pc == site->pc && // NOLINT
            merge->sum.symbol[at].line == site->line)
            return true;
    return false;
}

/* The symbols of an address follow each other. */
static void add_symbols(struct read_merge *merge, const struct read_merge_part *part,
                        const struct read_symbol *from, size_t n)
{
    struct read_profile *sum = &merge->sum;
    bool taken = false;
    for (size_t i = 0; i < n; i++) {
        struct read_symbol made = from[i];
        made.pc = merge_move(merge, part, made.pc);
        if (i == 0 || from[i].pc != from[i - 1].pc || from[i].line != from[i - 1].line) {
            const uint64_t key = base_hash(base_hash(0, made.pc), made.line);
            taken = !has_symbols(merge, &made, key);
            if (taken)
                base_table_add(&merge->symbols, key, sum->n_symbols);
        }
        if (!taken)
            continue;
        BASE_ARRAY_GROW(sum->symbol, sum->n_symbols, &merge->room_symbols);
        sum->symbol[sum->n_symbols++] = made;
    }
}

/* ---- the whole ---- */

/* What the first profile says of all. */
static void merge_begin(struct read_merge *merge)
{
    const struct read_profile *first = merge->part[0].profile;
    merge->least_period = UINT64_MAX;
    merge->sum = (struct read_profile){.library_version = first->library_version,
                                       .program = first->program,
                                       .argument = first->argument,
                                       .n_arguments = first->n_arguments,
                                       .working_directory = first->working_directory,
                                       .clock = (char *)"monotonic",
                                       .collector = (char *)"tapescope merge",
                                       .options = first->options,
                                       .end_reason = (char *)"merge",
                                       .pid = first->pid,
                                       .start_unix_ns = first->start_unix_ns};
    for (size_t i = 1; i < merge->n; i++)
        if (merge->part[i].profile->start_unix_ns < merge->sum.start_unix_ns)
            merge->sum.start_unix_ns = merge->part[i].profile->start_unix_ns;
    find_peak(merge);
}

/* From the first start to the last end of all. Overhead has been taken off the rows. */
static void add_whole(struct read_profile *sum, const struct read_profile *profile)
{
    sum->runs = read_add(sum->runs, profile->runs);
    sum->ranks += profile->ranked ? 1 : profile->ranks;
    sum->end_unix_ns = base_greater(sum->end_unix_ns, profile->end_unix_ns);
    sum->duration_ns = base_greater(sum->duration_ns, profile->start_unix_ns - sum->start_unix_ns +
                                                          profile->duration_ns);
    sum->overhead_ticks =
        read_add(sum->overhead_ticks, read_profile_ns(profile, profile->overhead_ticks));
}

static void merge_add_part(struct read_merge *merge, struct read_merge_part *part)
{
    add_whole(&merge->sum, part->profile);
    add_modules(merge, part);
    add_paths(merge, part);
    add_scopes(merge, part);
    add_tapes(merge, part);
    merge_add_samples(merge, part);
}

static void merge_end(struct read_merge *merge)
{
    struct read_tape *tape = &merge->tape;
    if (tape->n_moments > 0)
        qsort(tape->moment, tape->n_moments, sizeof *tape->moment, merge_compare_moments);
    merge->sum.tape = tape;
    merge->sum.n_tapes = 1;
    merge->sum.sample_period_ns = period_of(merge);
}

/* ---- events: of all profiles, one profile after the other ----
 *
 * They are read once more and written as they come, so that their number takes no memory. Processes
 * are numbered, and their tapes: what two of them call tape 1 are two tapes of the sum. */

enum { MOST_EVENTS = 2048, MOST_SITES = 256 };

/* A packet under way, and what is known of the profile that is read. */
struct events {
    const struct read_merge *merge;
    struct read_writer *writer;
    const struct read_merge_part *part;
    uint64_t n_read;
    uint64_t tapes, most_tape;        /* before this profile, and so far */
    uint32_t processes, most_process; /* likewise */
    uint64_t last_start, last_record;
    size_t n, n_sites;
    uint32_t site_of[MOST_EVENTS];
    int64_t record[MOST_EVENTS], start[MOST_EVENTS];
    uint64_t ticks[MOST_EVENTS];
    Tapescope__EventSite site[MOST_SITES], *sites[MOST_SITES];
};

static void merge_events_put_packet(struct events *events, uint64_t left_out)
{
    Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
    timeline.n_site = events->n_sites;
    timeline.site = events->sites;
    timeline.n_event_site = timeline.n_event_record = timeline.n_event_start =
        timeline.n_event_ticks = events->n;
    timeline.event_site = events->site_of;
    timeline.event_record = events->record;
    timeline.event_start = events->start;
    timeline.event_ticks = events->ticks;
    timeline.left_out = left_out;
    read_writer_put_packet(events->writer, TAPESCOPE__PACKET__KIND_TIMELINE, &timeline);
    for (size_t i = 0; i < events->n_sites; i++)
        free(events->site[i].op);
    events->n = events->n_sites = 0;
    events->last_start = events->last_record = 0;
}

static bool merge_events_same_site(const Tapescope__EventSite *a, const Tapescope__EventSite *b)
{
    return a->pc == b->pc && a->kind == b->kind && a->line == b->line && a->scope == b->scope &&
           a->tape == b->tape && a->thread == b->thread && a->process == b->process &&
           a->path == b->path && a->again == b->again && a->part == b->part &&
           strcmp(a->op, b->op) == 0;
}

/* The place of the event's site in the packet; a packet that has no room for it is written. */
static uint32_t merge_events_place_of(struct events *events, const Tapescope__EventSite *site)
{
    for (size_t i = events->n_sites; i-- > 0;)
        if (merge_events_same_site(&events->site[i], site))
            return (uint32_t)i;
    if (events->n_sites == MOST_SITES)
        merge_events_put_packet(events, 0);
    Tapescope__EventSite *to = events->sites[events->n_sites] = &events->site[events->n_sites];
    *to = *site;
    to->op = base_strdup(site->op); /* the event's own is gone after the call */
    return (uint32_t)events->n_sites++;
}

static void merge_events_take(void *payload, const struct read_profile *profile,
                              const struct read_event *event)
{
    struct events *events = payload;
    const struct read_merge *merge = events->merge;
    const struct read_merge_part *part = events->part;
    const struct read_profile *whole = part->profile;
    (void)profile; /* it is not read to its end: times are known by the first reading */
    if (events->n_read++ >= whole->n_events || events->writer->error != 0)
        return;
    Tapescope__EventSite site = TAPESCOPE__EVENT_SITE__INIT;
    site.kind = event->kind;
    site.thread = event->thread;
    site.tape = event->tape ? events->tapes + event->tape : 0;
    site.process = events->processes + (event->process ? event->process : 1);
    site.pc = merge_move(merge, part, event->pc);
    site.line = event->line;
    site.op = (char *)event->op;
    const size_t path = read_profile_path_numbered(whole, event->path);
    site.path = path == SIZE_MAX ? 0 : merge_path(part, whole->call_path[path].id);
    site.again = event->again;
    site.part = event->part;
    site.scope = event->scope <= whole->n_scopes ? merge_scope(part, event->scope) : 0;
    events->most_tape = site.tape > events->most_tape ? site.tape : events->most_tape;
    if (site.process > events->most_process)
        events->most_process = site.process;
    const uint32_t place = merge_events_place_of(events, &site);
    const uint64_t start = merge_time(merge, part, event->start_ticks);
    events->site_of[events->n] = place;
    events->record[events->n] = (int64_t)(event->record - events->last_record);
    events->start[events->n] = (int64_t)(start - events->last_start);
    events->ticks[events->n] = merge_time(merge, part, read_event_end(event)) - start;
    events->last_record = event->record;
    events->last_start = start;
    if (++events->n == MOST_EVENTS)
        merge_events_put_packet(events, 0);
}

/* False: the writer's error says why, or the merge's. */
static bool take_profile(struct events *events, const struct read_merge_part *part)
{
    const struct read_profile *known = part->profile;
    events->part = part;
    events->n_read = 0;
    struct read_profile *again =
        read_profile_events(read_profile_stored(known), merge_events_take, events,
                            events->merge->error, events->merge->room);
    const bool ok = again && events->n_read >= known->n_events;
    if (again && !ok)
        snprintf(events->merge->error, events->merge->room, "%s: it has changed meanwhile",
                 known->path);
    read_profile_free(again);
    if (!ok && events->writer->error == 0)
        events->writer->error = EIO;
    events->tapes = events->most_tape;
    return events->writer->error == 0;
}

static void merge_put_events(const struct read_merge *merge, struct read_writer *writer)
{
    uint64_t all = 0, left_out = 0;
    for (size_t i = 0; i < merge->n; i++) {
        all += merge->part[i].profile->n_events;
        left_out = read_add(left_out, merge->part[i].profile->events_left_out);
    }
    if ((all == 0 && left_out == 0) || writer->error != 0)
        return;
    struct events *events = base_calloc(1, sizeof *events);
    events->merge = merge;
    events->writer = writer;
    for (size_t i = 0; i < merge->n; i++) {
        if (merge->part[i].profile->n_events > 0 && !take_profile(events, &merge->part[i]))
            break;
        const uint32_t next = events->processes + 1; /* one without events has a number as well */
        events->processes = events->most_process > next ? events->most_process : next;
    }
    merge_events_put_packet(events, left_out);
    free(events);
}

/* ---- the sum ---- */

static void merge_put_part(const struct read_merge *merge, struct read_writer *writer, size_t i)
{
    const char *from = read_profile_stored(merge->part[i].profile);
    const int why = read_pack_part(writer, (uint32_t)i, from, merge->symbol[i], // NOLINT
                                   merge->n_symbols[i]);
    if (why != 0 && writer->error == 0) {
        snprintf(merge->error, merge->room, "%s: %s", merge->part[i].profile->path, strerror(why));
        writer->error = why;
    }
}

static int write_sum(const struct read_merge *merge, const char *to)
{
    struct read_writer writer;
    read_writer_open(&writer, to);
    read_writer_put_profile(&writer, &merge->sum);
    merge_put_events(merge, &writer);
    for (size_t i = 0; merge->keeps && i < merge->n && writer.error == 0; i++)
        merge_put_part(merge, &writer, i);
    read_writer_put_end(&writer, &merge->sum);
    return read_writer_close(&writer);
}

static void merge_close_all(struct read_merge *merge)
{
    struct read_profile *sum = &merge->sum;
    struct base_table *const tables[] = {&merge->paths,    &merge->scopes,  &merge->expectations,
                                         &merge->patterns, &merge->rows,    &merge->classes,
                                         &merge->threads,  &merge->samples, &merge->symbols};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        base_table_free(tables[i]);
    for (size_t i = 0; i < sum->n_samples; i++)
        free(sum->sample[i].stack);
    for (size_t i = 0; i < merge->n; i++) {
        free(merge->part[i].mapping_of);
        free(merge->part[i].path_of);
        free(merge->part[i].scope_of);
    }
    void *const arrays[] = {merge->part,          merge->which,       merge->tape.row,
                            merge->tape.change,   merge->tape.moment, merge->tape.trace,
                            merge->tape.residual, sum->mapping,       sum->call_path,
                            sum->scope,           sum->expectation,   sum->pattern,
                            sum->thread,          sum->sample,        sum->symbol};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

static int merge_all(struct read_merge merge, const char *to,
                     const struct read_profile *const *profile)
{
    const size_t n = merge.n, room = merge.room;
    char *error = merge.error;
    merge.part = base_calloc(n, sizeof *merge.part);
    error[0] = '\0';
    for (size_t i = 0; i < n; i++)
        merge.part[i].profile = profile[i];
    merge_begin(&merge);
    for (size_t i = 0; i < n; i++) {
        merge_add_part(&merge, &merge.part[i]);
        add_symbols(&merge, &merge.part[i], merge.symbol[i], merge.n_symbols[i]);
    }
    merge_end(&merge);
    const int why = write_sum(&merge, to);
    merge_close_all(&merge);
    if (why != 0 && error[0] == '\0')
        snprintf(error, room, "cannot write %s: %s", to, strerror(why));
    return why != 0 ? -1 : 0;
}

int read_merge(const char *to, const struct read_profile *const *profile,
               const struct read_symbol *const *symbol, const size_t *n_symbols, size_t n,
               char *error, size_t room)
{
    return merge_all(
        (struct read_merge){
            .symbol = symbol, .n_symbols = n_symbols, .n = n, .error = error, .room = room},
        to, profile);
}

int read_merge_ranks(const char *to, const struct read_profile *const *profile,
                     const struct read_symbol *const *symbol, const size_t *n_symbols, size_t n,
                     char *error, size_t room)
{
    return merge_all((struct read_merge){.symbol = symbol,
                                         .n_symbols = n_symbols,
                                         .n = n,
                                         .keeps = true,
                                         .error = error,
                                         .room = room},
                     to, profile);
}
