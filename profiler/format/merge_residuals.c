/* merge_residuals.c: what the bytes of all tapes are for, and how many were live when.
 *
 * May include: merge_state.h.
 * Invariant: classes of one producer add up to its row, as they do in each profile. Change by
 * change is known what the tape with the greatest peak had; live bytes over time are all tapes', of
 * which a reader takes the greatest at each time.
 */
#include "merge_state.h"

#include <errno.h>
#include <stdlib.h>

enum { CLASSES_IN_PACKET = 4096, MOMENTS_IN_PACKET = 1 << 14 };

/* Classes while they are joined. */
struct join {
    struct merge *merge;
    struct merge_set set;
    uint32_t *of; /* of the tape under way: place in the sum */
};

static bool same_class(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    const struct prof_residual *a = &merge->residual[place], *b = key;
    return a->producer == b->producer && a->consumer == b->consumer && a->kind == b->kind;
}

static uint32_t row_in_sum(const struct merge *merge, size_t tape, uint32_t row)
{
    return row ? merge->row_of[merge->first_row[tape] + row - 1] + 1 : 0;
}

static void add_counters(struct prof_residual *to, const struct prof_residual *from)
{
    prof_residual_add(&to->counts, &from->counts);
    to->byte_ticks += from->byte_ticks;
    to->shared |= from->shared;
    to->released_others |= from->released_others;
    if (to->released_by == 0)
        to->released_by = from->released_by;
    else if (from->released_by != 0 && from->released_by != to->released_by)
        to->released_others = true;
}

/* The place in the sum of a class of the tape: the tape-th of all, of profile i. */
static uint32_t add_class(struct join *join, size_t i, size_t tape, bool at_peak,
                          const struct prof_residual *from)
{
    struct merge *merge = join->merge;
    struct prof_residual made = *from;
    made.producer = row_in_sum(merge, tape, from->producer);
    made.consumer = row_in_sum(merge, tape, from->consumer);
    made.released_by = row_in_sum(merge, tape, from->released_by);
    made.first_ticks = merge_time(merge, i, from->first_ticks);
    made.last_ticks = from->last_ticks ? merge_time(merge, i, from->last_ticks) : 0;
    made.byte_ticks = from->byte_ticks / merge->profile[i]->ticks_per_ns;
    if (!at_peak)
        made.peak_bytes = 0;
    const uint64_t hash = merge_mix(merge_mix(made.producer, made.consumer), made.kind);
    uint32_t *slot = merge_set_find(&join->set, hash, same_class, merge, &made);
    if (*slot == 0) {
        merge->residual[merge->n_residuals] = made;
        *slot = (uint32_t)++merge->n_residuals;
    } else {
        add_counters(&merge->residual[*slot - 1], &made);
    }
    return *slot - 1;
}

static void take_changes(struct join *join, size_t i, const struct prof_tape *tape)
{
    struct merge *merge = join->merge;
    for (size_t j = 0; j < tape->n_changes; j++) {
        struct prof_change *to = &merge->change[merge->n_changes++];
        *to = tape->change[j];
        to->ticks = merge_time(merge, i, to->ticks);
        to->residual = join->of[to->residual];
    }
}

static void take_moments(struct merge *merge, size_t i, const struct prof_tape *tape)
{
    for (size_t j = 0; j < tape->n_moments; j++) {
        struct prof_moment *to = &merge->moment[merge->n_moments++];
        *to = tape->moment[j];
        to->ticks = merge_time(merge, i, to->ticks);
    }
}

static void take_all(struct join *join)
{
    struct merge *merge = join->merge;
    size_t number = 0;
    for (size_t i = 0; i < merge->n; i++) {
        for (size_t j = 0; j < merge->profile[i]->n_tapes; j++, number++) {
            const struct prof_tape *tape = &merge->profile[i]->tape[j];
            const bool at_peak = number == merge->peak_number;
            for (size_t k = 0; k < tape->n_residuals; k++)
                join->of[k] = add_class(join, i, number, at_peak, &tape->residual[k]);
            take_moments(merge, i, tape);
            if (at_peak) {
                take_changes(join, i, tape);
                merge->peak_ticks = tape->peak_ticks ? merge_time(merge, i, tape->peak_ticks) : 0;
            }
        }
    }
}

static int compare_moments(const void *x, const void *y)
{
    const struct prof_moment *a = x, *b = y;
    return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

bool merge_open_residuals(struct merge *merge)
{
    size_t all = 0, most = 0, moments = 0;
    for (size_t i = 0; i < merge->n; i++) {
        for (size_t j = 0; j < merge->profile[i]->n_tapes; j++) {
            const struct prof_tape *tape = &merge->profile[i]->tape[j];
            all += tape->n_residuals;
            most = tape->n_residuals > most ? tape->n_residuals : most;
            moments += tape->n_moments;
        }
    }
    struct join join = {.merge = merge, .of = calloc(most + 1, sizeof *join.of)};
    const size_t changes = merge->peak ? merge->peak->n_changes : 0;
    merge->residual = calloc(all + 1, sizeof *merge->residual);
    merge->change = calloc(changes + 1, sizeof *merge->change);
    merge->moment = calloc(moments + 1, sizeof *merge->moment);
    const bool ok = merge_set_open(&join.set, all) && join.of && merge->residual && merge->change &&
                    merge->moment;
    if (ok) {
        take_all(&join);
        qsort(merge->moment, merge->n_moments, sizeof *merge->moment, compare_moments);
    }
    free(join.of);
    free(join.set.slot);
    return ok;
}

static void fill_class(Tapescope__ResidualClass *to, const struct prof_residual *from, size_t place)
{
    tapescope__residual_class__init(to);
    to->index = (uint32_t)place;
    to->producer = from->producer ? from->producer - 1 : UINT32_MAX; /* which no row is */
    to->consumer = from->consumer;
    to->released_by = from->released_by;
    to->kind = from->kind;
    to->shared = from->shared;
    to->released_others = from->released_others;
    to->byte_ticks = from->byte_ticks;
#define X(name) to->name = from->name;
    PROF_RESIDUAL_COUNTERS(X)
#undef X
}

/* The columns of the changes; false: no memory. */
static bool fill_stretch(Tapescope__Stretch *to, const struct merge *merge)
{
    const size_t n = merge->n_changes;
    to->part = calloc(n + 1, sizeof *to->part);
    to->delta = calloc(n + 1, sizeof *to->delta);
    to->ticks = calloc(n + 1, sizeof *to->ticks);
    to->flags = calloc(n + 1, sizeof *to->flags);
    if (!to->part || !to->delta || !to->ticks || !to->flags)
        return false;
    to->n_part = to->n_delta = to->n_ticks = to->n_flags = n;
    to->merged = merge->peak->merged;
    to->truncated = merge->peak->stretch_is_truncated;
    for (size_t i = 0; i < n; i++) {
        const struct prof_change *change = &merge->change[i];
        to->part[i] = change->residual;
        to->delta[i] = change->delta;
        to->ticks[i] = change->ticks - (i > 0 ? merge->change[i - 1].ticks : 0);
        to->flags[i] = (change->ends ? 1 : 0) | (change->backward ? 2 : 0);
    }
    return true;
}

static void put_stretch(const struct merge *merge, struct writer *writer)
{
    Tapescope__Stretch stretch = TAPESCOPE__STRETCH__INIT;
    Tapescope__Residuals residuals = TAPESCOPE__RESIDUALS__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    if (fill_stretch(&stretch, merge)) {
        residuals.stretch = &stretch;
        packet.kind_case = TAPESCOPE__PACKET__KIND_RESIDUALS;
        packet.residuals = &residuals;
        writer_put_packet(writer, &packet);
    } else if (writer->error == 0) {
        writer->error = ENOMEM;
    }
    free(stretch.part);
    free(stretch.delta);
    free(stretch.ticks);
    free(stretch.flags);
}

static void put_classes(const struct merge *merge, struct writer *writer)
{
    Tapescope__ResidualClass *made = calloc(CLASSES_IN_PACKET, sizeof *made);
    Tapescope__ResidualClass **list = calloc(CLASSES_IN_PACKET, sizeof(Tapescope__ResidualClass *));
    if ((!made || !list) && writer->error == 0)
        writer->error = ENOMEM;
    for (size_t i = 0; writer->error == 0 && i < merge->n_residuals;) {
        Tapescope__Residuals residuals = TAPESCOPE__RESIDUALS__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        for (; i < merge->n_residuals && residuals.n_part < CLASSES_IN_PACKET; i++) {
            list[residuals.n_part] = &made[residuals.n_part];
            fill_class(&made[residuals.n_part++], &merge->residual[i], i);
        }
        residuals.part = list;
        packet.kind_case = TAPESCOPE__PACKET__KIND_RESIDUALS;
        packet.residuals = &residuals;
        writer_put_packet(writer, &packet);
    }
    free(made);
    free(list);
}

/* Columns of a packet of live bytes. */
struct columns {
    uint64_t ticks[MOMENTS_IN_PACKET], most[MOMENTS_IN_PACKET], least[MOMENTS_IN_PACKET];
    uint32_t phase[MOMENTS_IN_PACKET];
};

static void put_moments(const struct merge *merge, struct writer *writer, struct columns *columns)
{
    for (size_t i = 0; writer->error == 0 && i < merge->n_moments;) {
        Tapescope__Timeline timeline = TAPESCOPE__TIMELINE__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        size_t n = 0;
        for (; i < merge->n_moments && n < MOMENTS_IN_PACKET; i++, n++) {
            const struct prof_moment *moment = &merge->moment[i];
            columns->ticks[n] = moment->ticks - (n > 0 ? merge->moment[i - 1].ticks : 0);
            columns->most[n] = moment->most_bytes;
            columns->least[n] = moment->least_bytes;
            columns->phase[n] = moment->backward;
        }
        timeline.n_ticks = timeline.n_most_bytes = timeline.n_least_bytes = timeline.n_phase = n;
        timeline.ticks = columns->ticks;
        timeline.most_bytes = columns->most;
        timeline.least_bytes = columns->least;
        timeline.phase = columns->phase;
        timeline.peak_ticks = merge->peak_ticks;
        packet.kind_case = TAPESCOPE__PACKET__KIND_TIMELINE;
        packet.timeline = &timeline;
        writer_put_packet(writer, &packet);
    }
}

void merge_put_residuals(const struct merge *merge, struct writer *writer)
{
    put_classes(merge, writer);
    if (merge->n_changes > 0)
        put_stretch(merge, writer);
    if (merge->n_moments == 0)
        return;
    struct columns *columns = calloc(1, sizeof *columns);
    if (columns)
        put_moments(merge, writer, columns);
    else if (writer->error == 0)
        writer->error = ENOMEM;
    free(columns);
}
