/* tape_class.h: the counters of one class of residuals; inline, since every change of every buffer
 * comes here.
 *
 * t->residual is set in all but those that say so.
 */
#ifndef TAPE_CLASS_H
#define TAPE_CLASS_H

#include "tape_residual.h"

#include <stddef.h>

#define TAPE_CLASS_SET(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

static inline void tape_class_set_byte_ticks(struct tape_class *c, double n)
{
    __atomic_store(&c->byte_ticks, &n, __ATOMIC_RELAXED);
}

/* Adds bytes times ticks. */
static inline void tape_class_add_byte_ticks(struct tape_class *c, double n)
{
    tape_class_set_byte_ticks(c, c->byte_ticks + n);
}

/* Clocks of two threads may differ: forks are swept by others. */
static inline double tape_class_since(const struct tape *t, uint64_t ticks)
{
    return t->ticks > ticks ? (double)(int64_t)(t->ticks - ticks) : 0;
}

/* Up to now the class was as it is. */
static inline void tape_class_settle(const struct tape *t, struct tape_class *c)
{
    if (c->changed_ticks == t->ticks)
        return;
    if (c->live_bytes > 0)
        tape_class_add_byte_ticks(c, (double)(int64_t)c->live_bytes *
                                         tape_class_since(t, c->changed_ticks));
    TAPE_CLASS_SET(c->changed_ticks, t->ticks);
}

static inline struct tape_class *tape_class_change(struct tape *t, uint32_t class_, uint64_t delta)
{
    struct tape_class *c = tape_class_at(&t->residual->shared, class_);
    if (c->peak_stamp != t->ledger.peak_count) {
        TAPE_CLASS_SET(c->peak_bytes, c->live_bytes);
        TAPE_CLASS_SET(c->peak_stamp, t->ledger.peak_count);
    }
    tape_class_settle(t, c);
    TAPE_ADD(c->live_bytes, delta);
    tape_history_class(t, class_, delta);
    return c;
}

/* n bytes are handed out for it, `count` times. */
static inline struct tape_class *tape_class_take(struct tape *t, uint32_t class_, unsigned count,
                                                 uint64_t n)
{
    struct tape_class *c = tape_class_change(t, class_, n);
    if (c->bytes == 0)
        TAPE_CLASS_SET(c->first_ticks, t->ticks);
    TAPE_ADD(c->count, count);
    TAPE_ADD(c->bytes, n);
    return c;
}

/* n bytes are given back. */
static inline struct tape_class *tape_class_give(struct tape *t, uint32_t class_,
                                                 enum tape_release_cause cause, uint64_t n)
{
    struct tape_class *c = tape_class_change(t, class_, 0 - n);
    TAPE_CLASS_SET(c->last_ticks, t->ticks);
    _Static_assert(offsetof(struct tape_class, by_destroy) - offsetof(struct tape_class, by_call) ==
                       TAPE_BY_DESTROY * sizeof(uint64_t),
                   "causes stand in their order");
    uint64_t *by = (uint64_t *)(void *)((char *)c + offsetof(struct tape_class, by_call));
    TAPE_ADD(by[cause], n);
    return c;
}

/* ---- these do nothing without t->residual ---- */

/* n bytes more are handed out for a class, or less: its live bytes change. Called before the row's
 * and the ledger's do. */
static inline void tape_residual_charge(struct tape *t, uint32_t class_, uint64_t n)
{
    if (!t->residual)
        return;
    struct tape_class *c = tape_class_at(&t->residual->shared, class_);
    if (c->bytes == 0)
        TAPE_CLASS_SET(c->first_ticks, t->ticks);
    TAPE_ADD(c->count, 1);
    TAPE_ADD(c->bytes, n);
}

static inline void tape_residual_take(struct tape *t, uint32_t class_, uint64_t n)
{
    if (t->residual && n > 0)
        tape_class_take(t, class_, 1, n);
}

static inline void tape_residual_give(struct tape *t, uint32_t class_, uint64_t n)
{
    if (t->residual && n > 0)
        tape_class_give(t, class_, t->residual->cause, n);
}

/* The same without an effect on bytes and causes: room of blocks that is not handed out, and bytes
 * that another line takes over. */
static inline void tape_residual_shift(struct tape *t, uint32_t class_, uint64_t delta)
{
    if (t->residual)
        tape_class_change(t, class_, delta);
}

#endif
