/* tape_account_time.c: the time of calls, and when the rows are written; buffers that change their
 * value.
 */
#include "tape_account.h"
#include "tape_residual.h"

void tape_account_flush(struct tape *t, struct tape_hook *hook, uint64_t now)
{
    if (tape_account_due(hook, now) && tape_account_counts(t))
        hook->flush(hook, &t->ledger, false);
}

void tape_account_ran(struct tape *t, uint32_t row, uint64_t start,
                      const struct tape_record *record, unsigned calls)
{
    if (!t->hook)
        return;
    const uint64_t now = t->hook->clock();
    start = tape_account_until(t, row, start, now, calls);
    tape_account_event(t, TAPE_EVENT_FORWARD, row, record, start, now, calls == 0);
}

uint64_t tape_account_until(struct tape *t, uint32_t row, uint64_t start, uint64_t now,
                            unsigned calls)
{
    struct tape_row *r = tape_row(t, row);
    t->ticks = now;
    if (t->activity == TAPE_PHASE_RECOMPUTE)
        start = *t->stamp;
    if (t->activity == TAPE_PHASE_RECOMPUTE) {
        TAPE_ADD(r->recompute_calls, calls);
        TAPE_ADD(r->recompute_ticks, now - start);
        TAPE_ADD(t->ledger.recompute_ticks, now - start);
        *t->stamp = now;
    } else {
        TAPE_ADD(r->calls, calls);
        TAPE_ADD(r->forward_ticks, now - start);
        TAPE_ADD(t->ledger.forward_ticks, now - start);
    }
    tape_account_flush(t, t->hook, now);
    return start;
}

void tape_account_called(struct tape *t, uint32_t row)
{
    if (!t->hook)
        return;
    if (t->activity == TAPE_PHASE_RECOMPUTE)
        TAPE_ADD(tape_row(t, row)->recompute_calls, 1);
    else
        TAPE_ADD(tape_row(t, row)->calls, 1);
}

void tape_account_adopt(struct tape *t, const struct tape_value *v, struct tape_age age)
{
    if (t->hook)
        tape_residual_value_adopted(t, v, age);
}

struct tape_age tape_account_hand_over(struct tape *t, const struct tape_value *v)
{
    return t->hook ? tape_residual_value_left(t, v) : (struct tape_age){0, 0};
}
