/* collect_write_residuals.c: classes, the stretch with the peak, and what was live, as packets. */
#include "collect.h"
#include "profile.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* The file has all of TAPE_CLASS_COUNTERS, but for held_bytes, which it calls peak_bytes. */
#define FILE_COUNTERS(X)                                                                           \
    X(count)                                                                                       \
    X(bytes)                                                                                       \
    X(live_bytes)                                                                                  \
    X(largest_bytes)                                                                               \
    X(read_bytes)                                                                                  \
    X(read_live_bytes)                                                                             \
    X(first_ticks)                                                                                 \
    X(last_ticks)                                                                                  \
    X(by_call)                                                                                     \
    X(by_sweep)                                                                                    \
    X(by_frame)                                                                                    \
    X(by_rewind)                                                                                   \
    X(by_reset)                                                                                    \
    X(by_destroy)
#define X(name) +1
_Static_assert(FILE_COUNTERS(X) + 1 == 0 TAPE_CLASS_COUNTERS(X), "a counter is not in the file");
#undef X

static void fill_class(Tapescope__ResidualClass *to, const struct collect_class *from,
                       uint32_t index)
{
    tapescope__residual_class__init(to);
    to->index = index;
    to->producer = from->producer;
    to->consumer = from->consumer;
    to->kind = from->kind;
    to->shared = from->shared != 0;
    to->released_by = from->released_by;
    to->released_others = from->released_others != 0;
#define X(name) to->name = from->name;
    FILE_COUNTERS(X)
#undef X
    to->peak_bytes = from->held_bytes;
    to->byte_ticks = from->byte_ticks;
}

/* Room for n bytes, which the next call takes again, or NULL. */
static void *scratch_of(struct collect_buffer *scratch, size_t n)
{
    if (n <= scratch->capacity)
        return scratch->data;
    uint8_t *data = realloc(scratch->data, 2 * n);
    if (data == NULL)
        return NULL;
    scratch->data = data;
    scratch->capacity = 2 * n;
    return data;
}

enum {
    CHANGE_BYTES = 24,
    MOMENT_BYTES = 28
}; /* of the columns, whose elements are 8 bytes first */

static void fill_stretch(Tapescope__Stretch *to, const struct collect_residuals *r, void *columns)
{
    const size_t n = r->n_changes;
    tapescope__stretch__init(to);
    to->ticks = columns;
    to->delta = (int64_t *)(void *)(to->ticks + n);
    to->part = (uint32_t *)(void *)(to->delta + n);
    to->flags = to->part + n;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tape_change *c = &r->change[i];
        to->ticks[i] = c->ticks > before ? c->ticks - before : 0;
        before += to->ticks[i];
        to->delta[i] = c->delta;
        to->part[i] = c->class_;
        to->flags[i] = c->flags;
    }
    to->n_ticks = to->n_delta = to->n_part = to->n_flags = n;
    to->merged = r->merged;
    to->truncated = r->truncated;
}

/* At the end those that are live count as changed: time has passed. */
static bool is_wanted(const struct collect_class *c, bool all, bool last)
{
    return all || c->changed || (last && c->live_bytes > 0);
}

static bool put_classes(struct collect_buffer *out, struct collect_buffer *scratch,
                        const struct collect_ledger *ledger, bool all, bool last, bool with_stretch)
{
    const struct collect_residuals *r = &ledger->residuals;
    const size_t columns = with_stretch ? (size_t)r->n_changes * CHANGE_BYTES : 0;
    Tapescope__ResidualClass *class_ =
        scratch_of(scratch, r->n * (sizeof *class_ + sizeof(void *)) + columns);
    if (class_ == NULL)
        return false;
    Tapescope__ResidualClass **list = (Tapescope__ResidualClass **)(void *)(class_ + r->n);
    Tapescope__Residuals message = TAPESCOPE__RESIDUALS__INIT;
    Tapescope__Stretch stretch;
    message.tape = ledger->tape;
    message.part = list;
    for (uint32_t i = 0; i < r->n; i++) {
        if (!is_wanted(&r->class_[i], all, last))
            continue;
        fill_class(&class_[message.n_part], &r->class_[i], i);
        list[message.n_part] = &class_[message.n_part];
        message.n_part++;
    }
    if (with_stretch) {
        fill_stretch(&stretch, r, list + r->n);
        message.stretch = &stretch;
    }
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_RESIDUALS;
    packet.residuals = &message;
    return collect_put_packet(out, &packet);
}

static bool put_moments(struct collect_buffer *out, struct collect_buffer *scratch,
                        const struct collect_ledger *ledger, uint64_t after)
{
    const struct collect_residuals *r = &ledger->residuals;
    const size_t n = r->n_moments;
    Tapescope__Timeline message = TAPESCOPE__TIMELINE__INIT;
    message.ticks = scratch_of(scratch, n * MOMENT_BYTES);
    if (message.ticks == NULL)
        return n == 0;
    message.tape = ledger->tape;
    message.peak_ticks = r->peak_ticks;
    message.most_bytes = message.ticks + n;
    message.least_bytes = message.most_bytes + n;
    message.phase = (uint32_t *)(void *)(message.least_bytes + n);
    size_t k = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tape_moment *m = &r->moment[i];
        if (m->ticks < after)
            continue;
        message.ticks[k] = m->ticks > before ? m->ticks - before : 0;
        before += message.ticks[k];
        message.most_bytes[k] = m->most_bytes;
        message.least_bytes[k] = m->least_bytes;
        message.phase[k++] = m->backward != 0;
    }
    message.n_ticks = message.n_most_bytes = message.n_least_bytes = message.n_phase = k;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    packet.kind_case = TAPESCOPE__PACKET__KIND_TIMELINE;
    packet.timeline = &message;
    return k == 0 || collect_put_packet(out, &packet);
}

/* A stretch is long: of a peak that keeps rising only every eighth more is written. */
static bool is_worth_it(const struct collect_ledger *ledger)
{
    const struct collect_residuals *r = &ledger->residuals;
    return r->stretch_changed && ledger->peak_bytes - r->stretch_peak / 8 > r->stretch_peak;
}

bool collect_put_residuals(struct collect_buffer *out, struct collect_buffer *scratch,
                           struct collect_ledger *ledger, bool all, bool last)
{
    struct collect_residuals *r = &ledger->residuals;
    if (r->n == 0)
        return true;
    const bool with_stretch = all || (last && r->stretch_changed) || is_worth_it(ledger);
    /* Tapes that were destroyed since may have lived before the last packet of tape 0. */
    const bool again = all || (last && ledger->tape == 0);
    if (!put_classes(out, scratch, ledger, all, last, with_stretch) ||
        !put_moments(out, scratch, ledger, again ? 0 : r->written_ticks))
        return false;
    if (all)
        return true;
    for (uint32_t i = 0; i < r->n; i++)
        r->class_[i].changed = 0;
    if (with_stretch) {
        r->stretch_changed = false;
        r->stretch_peak = ledger->peak_bytes;
    }
    if (r->n_moments > 0)
        r->written_ticks = r->moment[r->n_moments - 1].ticks + 1;
    return true;
}
