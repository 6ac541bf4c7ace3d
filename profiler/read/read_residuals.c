/* read_residuals.c: what a tape's bytes are for, and what was live when.
 *
 * See read_state.h for the invariant. Until the end, rows are named as in the file, since a
 * packet may name rows that come later. A class whose producer is in no packet stays, with no row.
 */
#include "base_number.h"
#include "read_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More than this many moments are merged by pairs: no screen shows more. */
enum { MOST_MOMENTS = 1 << 14 };

/* What was never made has no first time. */
static uint64_t first_of(const struct read_residual_counts *a, const struct read_residual_counts *b)
{
    if (a->bytes == 0 || b->bytes == 0)
        return a->bytes == 0 ? b->first_ticks : a->first_ticks;
    return a->first_ticks < b->first_ticks ? a->first_ticks : b->first_ticks;
}

void read_residual_add(struct read_residual_counts *to, const struct read_residual_counts *from)
{
    const uint64_t first = first_of(to, from),
                   last = base_greater(to->last_ticks, from->last_ticks);
    const uint64_t largest = base_greater(to->largest_bytes, from->largest_bytes);
#define X(name) to->name = read_add(to->name, from->name);
    CLASS_COUNTERS(X)
#undef X
    to->first_ticks = first;
    to->last_ticks = last;
    to->largest_bytes = largest;
}

/* What is no number of bytes and ticks counts as none; a product of two of 64 bits is the most. */
static double finite_or_none(double n)
{
    const double most = 0x1p128;
    return !isfinite(n) || !(n > 0) ? 0 : n < most ? n : most;
}

static int64_t residual_place(const struct read_tape_state *tape, uint32_t index)
{
    const struct read_tape *t = &tape->tape;
    if (index < t->n_residuals && t->residual[index].index == index)
        return index;
    return base_table_find(&tape->residuals, index);
}

static void apply_class(struct read_tape_state *tape, const Tapescope__ResidualClass *from)
{
    int64_t at = residual_place(tape, from->index);
    if (at < 0) {
        BASE_ARRAY_GROW(tape->tape.residual, tape->tape.n_residuals, &tape->room_residuals);
        at = (int64_t)tape->tape.n_residuals++;
        if (at != (int64_t)from->index)
            base_table_add(&tape->residuals, from->index, (size_t)at);
    }
    tape->tape.residual[at] = (struct read_residual){
        .index = from->index,
        .producer = from->producer,
        .consumer = from->consumer,
        .released_by = from->released_by,
        .kind = from->kind < READ_RESIDUAL_KINDS ? (enum read_residual_kind)from->kind : READ_VALUE,
        .shared = from->shared,
        .released_others = from->released_others,
        .byte_ticks = finite_or_none(from->byte_ticks),
#define X(name) .name = from->name,
        CLASS_COUNTERS(X)
#undef X
    };
}

/* Columns of different lengths are damage. */
static enum read_status apply_stretch(struct read_tape_state *tape, const Tapescope__Stretch *from)
{
    const size_t n = from->n_part;
    if (from->n_delta != n || from->n_ticks != n || from->n_flags != n)
        return READ_BAD;
    struct read_change *change = base_calloc(n + 1, sizeof *change);
    uint64_t ticks = 0;
    for (size_t i = 0; i < n; i++) {
        ticks += from->ticks[i];
        change[i] = (struct read_change){.ticks = ticks,
                                         .delta = from->delta[i],
                                         .residual = from->part[i],
                                         .ends = from->flags[i] & 1,
                                         .backward = from->flags[i] & 2};
    }
    free(tape->tape.trace);
    tape->tape.trace = base_calloc(from->n_trace + 1, sizeof *tape->tape.trace);
    if (from->n_trace > 0)
        memcpy(tape->tape.trace, from->trace, from->n_trace * sizeof *from->trace);
    tape->tape.n_trace = from->n_trace;
    tape->tape.trace_is_cut = from->trace_cut;
    tape->tape.trace_hides = from->trace_hides;
    tape->tape.trace_has_uses = from->trace_uses;
    free(tape->tape.change);
    tape->tape.change = change;
    tape->tape.n_changes = n;
    tape->tape.merged = from->merged;
    tape->tape.stretch_is_truncated = from->truncated;
    return READ_OK;
}

enum read_status read_apply_residuals(struct read_state *state,
                                      const Tapescope__Residuals *residuals)
{
    struct read_tape_state *tape = read_find_tape(state, residuals->tape);
    for (size_t i = 0; i < residuals->n_part; i++)
        apply_class(tape, residuals->part[i]);
    return residuals->stretch ? apply_stretch(tape, residuals->stretch) : READ_OK;
}

static struct read_moment moment_both(const struct read_moment *a, const struct read_moment *b)
{
    struct read_moment m = b->most_bytes > a->most_bytes ? *b : *a;
    m.least_bytes = a->least_bytes < b->least_bytes ? a->least_bytes : b->least_bytes;
    return m;
}

static void residuals_halve(struct read_tape *tape)
{
    const size_t n = tape->n_moments;
    for (size_t i = 0; i + 1 < n; i += 2)
        tape->moment[i / 2] = moment_both(&tape->moment[i], &tape->moment[i + 1]);
    if (n % 2)
        tape->moment[n / 2] = tape->moment[n - 1];
    tape->n_moments = (n + 1) / 2;
}

enum read_status read_apply_moments(struct read_state *state, const Tapescope__Timeline *timeline)
{
    const size_t n = timeline->n_ticks;
    if (timeline->n_most_bytes != n || timeline->n_least_bytes != n || timeline->n_phase != n)
        return READ_BAD;
    if (n == 0) /* single events alone */
        return READ_OK;
    struct read_tape_state *tape = read_find_tape(state, timeline->tape);
    uint64_t ticks = 0;
    for (size_t i = 0; i < n; i++) {
        if (tape->tape.n_moments == MOST_MOMENTS)
            residuals_halve(&tape->tape);
        BASE_ARRAY_GROW(tape->tape.moment, tape->tape.n_moments, &tape->room_moments);
        ticks += timeline->ticks[i];
        tape->tape.moment[tape->tape.n_moments++] =
            (struct read_moment){.ticks = ticks,
                                 .most_bytes = timeline->most_bytes[i],
                                 .least_bytes = timeline->least_bytes[i],
                                 .backward = timeline->phase[i] == 1};
    }
    tape->tape.peak_ticks = timeline->peak_ticks;
    return READ_OK;
}

static int residuals_compare_moments(const void *x, const void *y)
{
    const struct read_moment *a = x, *b = y;
    return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* The place of the row with this index, plus 1, or 0. */
static uint32_t row_at(const struct read_tape_state *tape, uint32_t index)
{
    return (uint32_t)(read_row_place(tape, index) + 1);
}

/* The least words of an entry of each kind. */
static uint32_t trace_least(uint32_t kind)
{
    static const uint8_t more[TRACE_KINDS] = {
        [TRACE_VALUE] = 6,     [TRACE_RECORD] = 3,     [TRACE_BYTES] = 1,
        [TRACE_RELEASE] = 1,   [TRACE_REWIND] = 1,     [TRACE_SWEEP] = 0,
        [TRACE_STATEMENT] = 2, [TRACE_FUSED_LOOP] = 3, [TRACE_USE] = 1};
    return kind < TRACE_KINDS ? (uint32_t)TRACE_ENTRY_LEAST + more[kind] : UINT32_MAX;
}

/* Of a class that is in no packet there is no entry; behind what is no entry there is nothing. */
static void finish_trace(struct read_tape_state *tape)
{
    struct read_tape *t = &tape->tape;
    size_t kept = 0;
    for (size_t i = 0; i < t->n_trace;) {
        const uint32_t kind = t->trace[i] & ((1u << TRACE_KIND_BITS) - 1);
        const uint32_t n = t->trace[i] >> TRACE_KIND_BITS;
        if (n < trace_least(kind) || n > t->n_trace - i)
            break;
        const int64_t at = residual_place(tape, t->trace[i + 1]);
        const bool of_none = kind == TRACE_REWIND || kind == TRACE_SWEEP || kind == TRACE_USE;
        const bool sound = (at >= 0 || of_none) &&
                           (kind != TRACE_RECORD || t->trace[i + 3] <= n - 5) &&
                           (kind != TRACE_FUSED_LOOP || (n - 5) % 2 == 0);
        if (sound) {
            memmove(&t->trace[kept], &t->trace[i], n * sizeof *t->trace);
            t->trace[kept + 1] = of_none ? 0 : (uint32_t)at;
            kept += n;
        }
        i += n;
    }
    t->trace_is_cut |= kept < t->n_trace;
    t->n_trace = kept;
}

void read_finish_residuals(struct read_tape_state *tape)
{
    struct read_tape *t = &tape->tape;
    for (size_t i = 0; i < t->n_residuals; i++) {
        struct read_residual *r = &t->residual[i];
        r->producer = row_at(tape, r->producer);
        r->consumer = r->consumer ? row_at(tape, r->consumer - 1) : 0;
        r->released_by = r->released_by ? row_at(tape, r->released_by - 1) : 0;
        if (r->producer > 0)
            t->row[r->producer - 1].byte_ticks += r->byte_ticks;
    }
    /* Changes of classes that are in no packet are none. */
    size_t kept = 0;
    for (size_t i = 0; i < t->n_changes; i++) {
        const int64_t at = residual_place(tape, t->change[i].residual);
        if (at < 0)
            continue;
        t->change[kept] = t->change[i];
        t->change[kept++].residual = (uint32_t)at;
    }
    t->n_changes = kept;
    finish_trace(tape);
    if (t->n_moments > 1)
        qsort(t->moment, t->n_moments, sizeof *t->moment, residuals_compare_moments);
}
