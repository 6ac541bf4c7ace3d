/* collect_residuals.c: what the bytes of the tapes are for, and what was live when, as last read.
 *
 * The tape's owner may be writing: see tape_residuals.h. Classes are read as rows are. The log and
 * the moments are read again while they change, and left out if they never hold still.
 */
#include "collect.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 64, MOST_MOMENTS = 4096 };

#define LOAD(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)

/* An array with room for n elements of `size` bytes, or NULL. */
static void *residuals_reserve(void *array, uint32_t *capacity, uint32_t n, size_t size)
{
    if (n <= *capacity && array)
        return array;
    uint32_t room = *capacity < 8 ? 8 : 2 * *capacity;
    if (room < n)
        room = n;
    void *bigger = realloc(array, room * size);
    if (bigger)
        *capacity = room;
    return bigger;
}

static bool reserve_classes(struct collect_residuals *r, uint32_t n)
{
    if (!r->class_)
        r->n = 0;
    struct collect_class *class_ = residuals_reserve(r->class_, &r->capacity, n, sizeof *class_);
    if (!class_)
        return false;
    r->class_ = class_;
    if (n > r->n)
        memset(class_ + r->n, 0, (n - r->n) * sizeof *class_);
    return true;
}

static bool reserve_changes(struct collect_residuals *r, uint32_t n)
{
    void *change = residuals_reserve(r->change, &r->changes_capacity, n, sizeof *r->change);
    r->change = change ? change : r->change;
    return change != NULL;
}

static bool reserve_trace(struct collect_residuals *r, uint32_t n)
{
    void *trace = residuals_reserve(r->trace, &r->trace_capacity, n, sizeof *r->trace);
    r->trace = trace ? trace : r->trace;
    return trace != NULL;
}

static bool reserve_moments(struct collect_residuals *r, uint32_t n)
{
    void *moment = residuals_reserve(r->moment, &r->moments_capacity, n, sizeof *r->moment);
    r->moment = moment ? moment : r->moment;
    return moment != NULL;
}

/* Bytes times ticks up to now: the class keeps them up to its last change. */
static double byte_ticks_at(const struct tape_class *from, uint64_t live, uint64_t ticks)
{
    double sum;
    __atomic_load(&from->byte_ticks, &sum, __ATOMIC_RELAXED);
    const uint64_t changed = LOAD(from->changed_ticks);
    return ticks > changed ? sum + (double)live * (double)(ticks - changed) : sum;
}

/* Returns whether the class differs from what was known of it. */
static bool read_class(struct collect_class *to, const struct tape_class *from, uint64_t ticks,
                       uint64_t peaks)
{
    struct collect_class now = {.producer = LOAD(from->producer),
                                .consumer = LOAD(from->consumer),
                                .kind = LOAD(from->kind),
                                .shared = LOAD(from->shared),
                                .released_by = LOAD(from->released_by),
                                .released_others = LOAD(from->released_others),
                                .changed = to->changed,
#define X(name) .name = LOAD(from->name),
                                CLASS_COUNTERS(X)
#undef X
    };
    now.byte_ticks = byte_ticks_at(from, now.live_bytes, ticks);
    if (LOAD(from->peak_stamp) != peaks)
        now.peak_bytes = now.live_bytes;
    bool same = now.shared == to->shared && now.released_by == to->released_by &&
                now.released_others == to->released_others;
#define X(name) same = same && now.name == to->name;
    CLASS_COUNTERS(X)
#undef X
    /* That time passes is no change: a packet of every class a second would say no more. */
    if (!same)
        now.changed = 1;
    *to = now;
    return !same;
}

/* Copies the stretch with the peak. */
static void copy_log(struct collect_residuals *to, const struct tape_log *log, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct tape_change *c = tape_change_at(log, i);
        to->change[i] = (struct tape_change){.ticks = LOAD(c->ticks),
                                             .delta = LOAD(c->delta),
                                             .class_ = LOAD(c->class_),
                                             .flags = LOAD(c->flags)};
    }
    to->n_changes = n;
    to->merged = LOAD(log->merged);
    to->truncated = LOAD(log->truncated);
    for (uint32_t i = 0; i < to->n_trace; i++)
        to->trace[i] = LOAD(*tape_trace_at(log, i));
    to->trace_flags = LOAD(log->trace_flags);
    to->stretch_changed = true;
}

static bool read_log(struct collect_residuals *to, struct tape_residuals *from, bool *changed)
{
    for (int i = 0; i < TRIES; i++) {
        const uint32_t sequence = LOAD(from->sequence);
        if (sequence & 1)
            continue;
        const uint32_t current = LOAD(from->current) & 1;
        const uint32_t which = LOAD(from->peak_inside) ? current : current ^ 1;
        const struct tape_log *log = &from->log[which];
        const uint32_t n = LOAD(log->n), words = LOAD(log->n_trace);
        const bool known = n == to->n_changes && words == to->n_trace &&
                           to->peak_ticks == LOAD(from->peak_ticks) &&
                           LOAD(log->merged) == to->merged;
        if (!known && (n > TAPE_CHANGE_CHUNK * TAPE_CHANGE_CHUNKS || words > TRACE_MOST ||
                       !reserve_changes(to, n) || !reserve_trace(to, words)))
            return false;
        if (!known) {
            to->n_trace = words;
            copy_log(to, log, n);
        }
        if (LOAD(from->sequence) == sequence) {
            *changed |= !known;
            return true;
        }
    }
    to->n_changes = to->n_trace = 0; /* it was cut in the midst of a change */
    return true;
}

static struct tape_moment load_moment(const struct tape_moment *m)
{
    return (struct tape_moment){.ticks = LOAD(m->ticks),
                                .most_bytes = LOAD(m->most_bytes),
                                .least_bytes = LOAD(m->least_bytes),
                                .backward = LOAD(m->backward)};
}

/* Copies the moments from *n on that are over. */
static bool copy_moments(struct collect_residuals *to, struct tape_residuals *from, uint32_t *n)
{
    const uint32_t end = LOAD(from->n_moments);
    if (end > MOST_MOMENTS || !reserve_moments(to, end + 1))
        return false;
    for (; *n < end; (*n)++)
        to->moment[*n] = load_moment(tape_moment_at(from, *n));
    to->n_moments = *n;
    return true;
}

/* Appends the moment under way, and before it what is over since. One that does not hold still is
 * left out: it is no moment yet. */
static bool read_open(struct collect_residuals *to, struct tape_residuals *from, uint32_t n)
{
    for (int i = 0; i < TRIES; i++) {
        const uint32_t version = LOAD(from->now_version);
        if (!copy_moments(to, from, &n))
            return false;
        const bool open = LOAD(from->open);
        if (open)
            to->moment[n] = load_moment(&from->now);
        if (version % 2 == 0 && LOAD(from->now_version) == version) {
            to->n_moments += open;
            return true;
        }
    }
    return true;
}

static bool read_moments(struct collect_residuals *to, struct tape_residuals *from)
{
    for (int i = 0; i < TRIES; i++) {
        const uint32_t sequence = LOAD(from->sequence);
        uint32_t n = 0;
        if (sequence & 1)
            continue;
        if (!copy_moments(to, from, &n) || !read_open(to, from, n))
            return false;
        if (LOAD(from->sequence) == sequence)
            return true;
    }
    to->n_moments = 0;
    return true;
}

bool collect_residuals_read(struct collect_ledger *ledger, const struct tape_ledger *from,
                            uint64_t ticks)
{
    struct collect_residuals *to = &ledger->residuals;
    struct tape_residuals *r = LOAD(from->residuals);
    if (ledger->tape != from->tape) /* one state serves all tapes that die young */
        to->n = to->n_changes = to->n_trace = to->n_moments = 0;
    if (!r)
        return true;
    const uint32_t n = LOAD(r->n_classes);
    if (n > TAPE_CLASS_CHUNK * TAPE_CLASS_CHUNKS || !reserve_classes(to, n))
        return false;
    to->n = n;
    const uint64_t peaks = LOAD(from->peak_count);
    bool changed = false;
    for (uint32_t i = 0; i < n; i++)
        changed |= read_class(&to->class_[i], tape_class_at(r, i), ticks, peaks);
    if (!read_log(to, r, &changed) || !read_moments(to, r))
        return false;
    to->peak_ticks = LOAD(r->peak_ticks);
    ledger->changed |= changed;
    return true;
}

/* ---- destroyed tapes ---- */

/* The classes of tape 0 by producer: index plus 1 of the first and of the next one. */
struct chains {
    uint32_t *first; /* [rows of tape 0] */
    uint32_t *next;  /* [classes] */
};

static void residuals_chain(struct chains *chains, const struct collect_residuals *r,
                            uint32_t n_rows, uint32_t *scratch)
{
    memset(scratch, 0, n_rows * sizeof *scratch);
    chains->first = scratch;
    chains->next = scratch + n_rows;
    for (uint32_t i = 0; i < r->n; i++) {
        chains->next[i] = chains->first[r->class_[i].producer];
        chains->first[r->class_[i].producer] = i + 1;
    }
}

/* The place of a class among those of tape 0; one that is new gets the next. */
static uint32_t residuals_place_of(struct collect_residuals *to, struct chains *chains,
                                   const struct collect_class *like)
{
    uint32_t *first = &chains->first[like->producer];
    for (uint32_t i = *first; i > 0; i = chains->next[i - 1])
        if (to->class_[i - 1].consumer == like->consumer && to->class_[i - 1].kind == like->kind)
            return i - 1;
    chains->next[to->n] = *first;
    *first = to->n + 1;
    to->class_[to->n] = (struct collect_class){.producer = like->producer,
                                               .consumer = like->consumer,
                                               .kind = like->kind,
                                               .first_ticks = UINT64_MAX};
    return to->n++;
}

static uint64_t residuals_greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void merge_class(struct collect_class *to, const struct collect_class *from, bool has_peak)
{
    const struct collect_class before = *to;
#define X(name) to->name += from->name;
    CLASS_COUNTERS(X)
#undef X
    to->byte_ticks += from->byte_ticks;
    to->peak_bytes = before.peak_bytes + (has_peak ? from->peak_bytes : 0);
    to->live_bytes = to->read_live_bytes = 0;
    to->largest_bytes = residuals_greater(before.largest_bytes, from->largest_bytes);
    to->last_ticks = residuals_greater(before.last_ticks, from->last_ticks);
    to->first_ticks = from->bytes > 0 && from->first_ticks < before.first_ticks
                          ? from->first_ticks
                          : before.first_ticks;
    to->shared |= from->shared;
    to->released_others |= from->released_others || (before.released_by && from->released_by &&
                                                     before.released_by != from->released_by);
    to->released_by = before.released_by ? before.released_by : from->released_by;
    to->changed = 1;
}

static struct tape_moment residuals_both(const struct tape_moment *a, const struct tape_moment *b)
{
    struct tape_moment m = b->most_bytes > a->most_bytes ? *b : *a;
    m.least_bytes = a->least_bytes < b->least_bytes ? a->least_bytes : b->least_bytes;
    return m;
}

static int compare_moments(const void *x, const void *y)
{
    const struct tape_moment *a = x, *b = y;
    return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* Adds the moments of another tape, and merges neighbours when there are too many. */
static bool merge_moments(struct collect_residuals *to, const struct collect_residuals *from)
{
    if (from->n_moments == 0)
        return true;
    const uint64_t last = to->n_moments > 0 ? to->moment[to->n_moments - 1].ticks : 0;
    const bool later = from->moment[0].ticks >= last;
    if (!reserve_moments(to, to->n_moments + from->n_moments))
        return false;
    memcpy(to->moment + to->n_moments, from->moment, from->n_moments * sizeof *from->moment);
    to->n_moments += from->n_moments;
    if (!later)
        qsort(to->moment, to->n_moments, sizeof *to->moment, compare_moments);
    while (to->n_moments > MOST_MOMENTS) {
        for (uint32_t i = 0; i + 1 < to->n_moments; i += 2)
            to->moment[i / 2] = residuals_both(&to->moment[i], &to->moment[i + 1]);
        if (to->n_moments % 2)
            to->moment[to->n_moments / 2] = to->moment[to->n_moments - 1];
        to->n_moments = (to->n_moments + 1) / 2;
    }
    return true;
}

/* Takes over the stretch with the greatest peak; map: from the tape's classes to ours. */
static void take_stretch(struct collect_residuals *to, const struct collect_residuals *from,
                         const uint32_t *map)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < from->n_changes; i++) {
        struct tape_change c = from->change[i];
        c.class_ = c.class_ < from->n ? map[c.class_] : 0;
        to->change[n++] = c;
    }
    to->n_changes = n;
    to->merged = from->merged;
    to->truncated = from->truncated;
    if (from->n_trace > 0)
        memcpy(to->trace, from->trace, from->n_trace * sizeof *to->trace);
    for (uint32_t i = 0; i < from->n_trace; i += to->trace[i] >> TRACE_KIND_BITS)
        to->trace[i + 1] = to->trace[i + 1] < from->n ? map[to->trace[i + 1]] : 0;
    to->n_trace = from->n_trace;
    to->trace_flags = from->trace_flags;
    to->peak_ticks = from->peak_ticks;
    to->stretch_changed = true;
}

static struct collect_class residuals_renamed(const struct collect_class *c, const uint32_t *place,
                                              uint32_t n_rows)
{
    struct collect_class at = *c;
    at.producer = c->producer < n_rows ? place[c->producer] : 0;
    at.consumer = c->consumer && c->consumer <= n_rows ? place[c->consumer - 1] + 1 : 0;
    at.released_by = c->released_by && c->released_by <= n_rows ? place[c->released_by - 1] + 1 : 0;
    return at;
}

bool collect_residuals_merge(struct collect_ledger *to_ledger,
                             const struct collect_ledger *from_ledger, const uint32_t *place,
                             bool has_peak)
{
    struct collect_residuals *to = &to_ledger->residuals;
    const struct collect_residuals *from = &from_ledger->residuals;
    if (from->n == 0)
        return true;
    const uint32_t n_rows = to_ledger->n_rows;
    uint32_t *scratch = residuals_reserve(to->scratch, &to->scratch_capacity,
                                          n_rows + to->n + 2 * from->n, sizeof *scratch);
    if (!scratch)
        return false;
    to->scratch = scratch;
    if (!reserve_classes(to, to->n + from->n) ||
        (has_peak && !(reserve_changes(to, from->n_changes) && reserve_trace(to, from->n_trace))) ||
        !merge_moments(to, from))
        return false;
    struct chains chains;
    residuals_chain(&chains, to, n_rows, scratch);
    uint32_t *map = chains.next + to->n + from->n;
    for (uint32_t i = 0; has_peak && i < to->n; i++) {
        to->class_[i].changed |= to->class_[i].peak_bytes != 0;
        to->class_[i].peak_bytes = 0;
    }
    for (uint32_t i = 0; i < from->n; i++) {
        const struct collect_class c =
            residuals_renamed(&from->class_[i], place, from_ledger->n_rows);
        map[i] = residuals_place_of(to, &chains, &c);
        merge_class(&to->class_[map[i]], &c, has_peak);
    }
    if (has_peak)
        take_stretch(to, from, map);
    return true;
}

void collect_residuals_free(struct collect_residuals *residuals)
{
    free(residuals->class_);
    free(residuals->change);
    free(residuals->trace);
    free(residuals->moment);
    free(residuals->scratch);
    *residuals = (struct collect_residuals){0};
}
