/* tape_history.c: what was live when: a log of changes by class, and the tape's live bytes.
 *
 * Both are bounded. A full log is merged: of two moments the one with more live bytes stays, and
 * what changed in the other is part of the next. Full points are merged by pairs, which keeps the
 * most and the least. There are two logs: one is written, and the other has the stretch with the
 * tape's peak, if that is over.
 */
#include "tape_account.h"
#include "tape_residual.h"
#include "tape_trace.h"

#include <string.h>

enum {
    MOST_CHANGES = TAPE_CHANGE_CHUNK * TAPE_CHANGE_CHUNKS,
    MOST_MOMENTS = TAPE_MOMENT_CHUNK * TAPE_MOMENT_CHUNKS,
    LEAST_MERGED = 16, /* moments that a log is not merged below */
};

/* Who reads what a rewriting has stored also sees that it has begun. */
#define SET(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

/* Between these, who reads from another thread reads again. */
static void begin_rewrite(struct tape_residuals *r)
{
    __atomic_fetch_add(&r->sequence, 1, __ATOMIC_ACQ_REL);
}

static void end_rewrite(struct tape_residuals *r)
{
    __atomic_fetch_add(&r->sequence, 1, __ATOMIC_ACQ_REL);
}

static void *log_chunk(const struct tape *t, size_t n)
{
    void *p = t->memory->resize(NULL, n, t->memory->payload);
    if (p)
        memset(p, 0, n);
    return p;
}

/* ---- the log ---- */

static void history_put_change(struct tape_log *log, uint32_t i, const struct tape_change *from)
{
    tape_history_put(tape_change_at(log, i), from->ticks, from->delta, from->class_, from->flags);
}

/* Net changes by class that no moment of the merged log has yet. */
struct pending {
    int64_t *delta;   /* [n_classes] */
    uint32_t *class_; /* those that may not be 0 */
    uint32_t n;
};

static void log_gather(struct pending *p, struct tape_log *log, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct tape_change *c = tape_change_at(log, i);
        if (p->delta[c->class_] == 0)
            p->class_[p->n++] = c->class_;
        p->delta[c->class_] += c->delta;
        if (p->delta[c->class_] == 0) { /* listed once only */
            uint32_t k = p->n - 1;
            while (p->class_[k] != c->class_)
                k--;
            p->class_[k] = p->class_[--p->n];
        }
    }
}

/* Writes what is pending as one moment, like the change that ends it. Returns the log's new end. */
static uint32_t log_emit(struct pending *p, struct tape_log *log, uint32_t at,
                         const struct tape_change *like)
{
    struct tape_change c = {.ticks = like->ticks,
                            .flags = like->flags & ~(uint32_t)TAPE_CHANGE_ENDS};
    for (uint32_t k = 0; k < p->n; k++) {
        c.class_ = p->class_[k];
        c.delta = p->delta[c.class_];
        p->delta[c.class_] = 0;
        if (k + 1 == p->n)
            c.flags |= TAPE_CHANGE_ENDS;
        history_put_change(log, at++, &c);
    }
    p->n = 0;
    return at;
}

/* The end of the moment that begins at i: behind its last change. */
static uint32_t moment_end(const struct tape_log *log, uint32_t i)
{
    while (i < log->n && !(tape_change_at(log, i)->flags & TAPE_CHANGE_ENDS))
        i++;
    return i < log->n ? i + 1 : i;
}

static int64_t moment_delta(const struct tape_log *log, uint32_t from, uint32_t to)
{
    int64_t delta = 0;
    for (; from < to; from++)
        delta += tape_change_at(log, from)->delta;
    return delta;
}

/* Makes one moment of `width`, in place: what is written never overtakes what was read, since each
 * class that is written was read before. Returns the number of moments. */
static uint32_t merge_log_moments(struct tape_log *log, struct pending *p, uint32_t width)
{
    uint32_t out = 0, moments = 0;
    for (uint32_t i = 0, end; i < log->n; moments++, i = end) {
        uint32_t stays = i;
        int64_t live = 0, most = 0;
        end = i;
        for (uint32_t k = 0; k < width && end < log->n; k++) {
            const uint32_t next = moment_end(log, end);
            live += moment_delta(log, end, next);
            if (k == 0 || live > most) {
                most = live;
                stays = next;
            }
            end = next;
        }
        const struct tape_change like = *tape_change_at(log, stays - 1);
        log_gather(p, log, i, stays);
        out = log_emit(p, log, out, &like);
        log_gather(p, log, stays, end);
    }
    if (p->n > 0) {
        const struct tape_change last = {.ticks = tape_change_at(log, log->n - 1)->ticks,
                                         .flags = tape_change_at(log, log->n - 1)->flags};
        out = log_emit(p, log, out, &last);
        moments++;
    }
    SET(log->n, out);
    SET(log->merged, log->merged * width);
    return moments;
}

static uint32_t count_moments(const struct tape_log *log)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < log->n; i++)
        n += tape_change_at(log, i)->flags & TAPE_CHANGE_ENDS;
    return n;
}

/* Makes room for half as many changes again, or says that the log ends here. */
static void log_merge(struct tape *t, struct tape_log *log)
{
    struct tape_residuals *r = &t->residual->shared;
    const size_t n = r->n_classes;
    void *scratch = log_chunk(t, n * (sizeof(int64_t) + sizeof(uint32_t)));
    if (!scratch) {
        SET(log->truncated, true);
        return;
    }
    struct pending p = {.delta = scratch};
    p.class_ = (uint32_t *)(void *)(p.delta + n);
    begin_rewrite(r);
    /* Half of what was needed the last time is done at once: each pass goes through the log. */
    uint32_t moments = count_moments(log), width = t->residual->merged / 2, merged = 1;
    while (width > 2 && moments / width < 2 * LEAST_MERGED)
        width /= 2;
    for (; log->n > MOST_CHANGES / 2 && moments > LEAST_MERGED; width = 2) {
        width = width < 2 ? 2 : width;
        moments = merge_log_moments(log, &p, width);
        merged *= width;
    }
    t->residual->merged = merged;
    if (log->n > MOST_CHANGES / 4 * 3)
        SET(log->truncated, true);
    end_rewrite(r);
    t->memory->release(scratch, t->memory->payload);
}

/* Room for one more change, where a chunk begins. False: the log has ended. */
static bool log_has_room(struct tape *t, struct tape_log *log)
{
    if (log->n == MOST_CHANGES)
        log_merge(t, log);
    if (log->truncated)
        return false;
    const uint32_t k = log->n / TAPE_CHANGE_CHUNK;
    if (!log->chunk[k])
        log->chunk[k] = log_chunk(t, TAPE_CHANGE_CHUNK * sizeof(struct tape_change));
    if (!log->chunk[k])
        SET(log->truncated, true);
    return !log->truncated;
}

bool tape_history_begin_chunk(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    struct tape_log *log = &s->shared.log[s->shared.current];
    if ((log->n % TAPE_CHANGE_CHUNK == 0 || log->truncated) && !log_has_room(t, log))
        return false;
    s->next = tape_change_at(log, log->n);
    s->room = TAPE_CHANGE_CHUNK - log->n % TAPE_CHANGE_CHUNK;
    s->n_changes = &log->n;
    return true;
}

static inline void log_append(struct tape *t, struct tape_log *log, const struct tape_change *c)
{
    /* Within a chunk there is room. */
    if (__builtin_expect(log->n % TAPE_CHANGE_CHUNK == 0 || log->truncated, 0) &&
        !log_has_room(t, log))
        return;
    history_put_change(log, log->n, c);
    __atomic_store_n(&log->n, log->n + 1, __ATOMIC_RELEASE);
}

static void log_empty(struct tape_log *log)
{
    SET(log->n, 0);
    SET(log->merged, 1);
    SET(log->truncated, false);
    SET(log->n_trace, 0);
    SET(log->trace_flags, 0);
}

/* The current log begins anew with what is live. */
static void begin_log(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    struct tape_residuals *r = &s->shared;
    struct tape_log *log = &r->log[r->current];
    log_empty(log);
    struct tape_change c = {.ticks = t->ticks};
    for (uint32_t i = 0; i < r->n_classes; i++) {
        c.class_ = i;
        c.delta = (int64_t)tape_class_at(r, i)->live_bytes;
        if (c.delta > 0 && log->n < MOST_CHANGES)
            log_append(t, log, &c);
        else if (c.delta > 0)
            SET(log->truncated, true);
    }
    if (log->n > 0)
        SET(tape_change_at(log, log->n - 1)->flags, TAPE_CHANGE_ENDS);
    s->room = 0;
    s->base = s->most = t->ledger.live_bytes;
    s->first_record = t->ledger.live_bytes > 0 ? t->n_records : 0; /* a reset counts them later */
    s->first_value = t->ledger.live_bytes > 0 ? t->n_values : 1;
    s->n_used = s->n_put_off = s->put_off_words = 0;
}

void tape_history_dropped(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    if (!t->hook || !s)
        return;
    const uint64_t live = t->ledger.live_bytes;
    if (live > s->base && live - s->base > (s->most - s->base) / 2) {
        tape_trace_rewound(t);
        return;
    }
    struct tape_residuals *r = &s->shared;
    if (r->peak_inside && live > 0)
        tape_trace_ends(t);
    begin_rewrite(r);
    if (r->peak_inside) {
        SET(r->current, r->current ^ 1);
        SET(r->peak_inside, 0);
    }
    begin_log(t);
    end_rewrite(r);
}

/* ---- the tape's live bytes ---- */

static void put_moment(struct tape_moment *to, const struct tape_moment *from)
{
    SET(to->ticks, from->ticks);
    SET(to->most_bytes, from->most_bytes);
    SET(to->least_bytes, from->least_bytes);
    SET(to->backward, from->backward);
}

static struct tape_moment moments_both(const struct tape_moment *a, const struct tape_moment *b)
{
    struct tape_moment m = b->most_bytes > a->most_bytes ? *b : *a;
    m.least_bytes = a->least_bytes < b->least_bytes ? a->least_bytes : b->least_bytes;
    return m;
}

static void log_halve(struct tape_residual_state *s)
{
    struct tape_residuals *r = &s->shared;
    const uint32_t n = r->n_moments;
    const uint64_t whole = tape_moment_at(r, n - 1)->ticks - tape_moment_at(r, 0)->ticks;
    begin_rewrite(r);
    for (uint32_t i = 0; i < n; i += 2) {
        const struct tape_moment *a = tape_moment_at(r, i);
        const struct tape_moment m = i + 1 < n ? moments_both(a, tape_moment_at(r, i + 1)) : *a;
        put_moment(tape_moment_at(r, i / 2), &m);
    }
    SET(r->n_moments, (n + 1) / 2);
    end_rewrite(r);
    s->span = whole / ((n + 1) / 2) + 1;
}

/* The moment under way is over. Without memory for it, it is left out. */
static void close_moment(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    struct tape_residuals *r = &s->shared;
    if (r->n_moments == MOST_MOMENTS)
        log_halve(s);
    const uint32_t k = r->n_moments / TAPE_MOMENT_CHUNK;
    if (!r->moment[k])
        r->moment[k] = log_chunk(t, TAPE_MOMENT_CHUNK * sizeof(struct tape_moment));
    if (!r->moment[k])
        return;
    put_moment(tape_moment_at(r, r->n_moments), &r->now);
    __atomic_store_n(&r->n_moments, r->n_moments + 1, __ATOMIC_RELEASE);
}

void tape_history_moment(struct tape *t)
{
    struct tape_residual_state *s = t->residual;
    struct tape_residuals *r = &s->shared;
    const uint64_t live = t->ledger.live_bytes;
    const bool over = r->open && t->ticks - s->begun > s->span, first = over || !r->open;
    SET(r->now_version, r->now_version + 1);
    if (over)
        close_moment(t);
    if (first || live > r->now.most_bytes)
        tape_history_most(r, live, t->ticks, s->cause == TAPE_BY_SWEEP);
    if (first || live < r->now.least_bytes)
        SET(r->now.least_bytes, live);
    if (first) {
        s->begun = t->ticks;
        SET(r->open, 1);
    }
    SET(r->now_version, r->now_version + 1);
}

void tape_history_peak(struct tape *t)
{
    struct tape_residuals *r = &t->residual->shared;
    if (!r->peak_inside)
        tape_trace_settle(t);
    SET(r->peak_ticks, t->ticks);
    SET(r->peak_inside, 1);
}

void tape_history_clear(struct tape_residual_state *s)
{
    struct tape_residuals *r = &s->shared;
    begin_rewrite(r);
    log_empty(&r->log[0]);
    log_empty(&r->log[1]);
    SET(r->current, 0);
    SET(r->peak_inside, 0);
    SET(r->n_moments, 0);
    SET(r->open, 0);
    SET(r->peak_ticks, 0);
    end_rewrite(r);
    s->base = s->most = s->span = 0;
    s->merged = s->room = 0;
    s->first_record = s->n_put_off = s->put_off_words = s->n_used = 0;
    s->first_value = 1;
}

void tape_history_close(struct tape *t, struct tape_residual_state *s)
{
    for (int k = 0; k < 2; k++) {
        struct tape_log *log = &s->shared.log[k];
        for (uint32_t i = 0; i < TAPE_CHANGE_CHUNKS && log->chunk[i]; i++)
            t->memory->release(log->chunk[i], t->memory->payload);
        for (uint32_t i = 0; i < TAPE_TRACE_CHUNKS && log->trace[i]; i++)
            t->memory->release(log->trace[i], t->memory->payload);
    }
    if (s->put_off)
        t->memory->release(s->put_off, t->memory->payload);
    for (uint32_t i = 0; i < TAPE_MOMENT_CHUNKS && s->shared.moment[i]; i++)
        t->memory->release(s->shared.moment[i], t->memory->payload);
}
