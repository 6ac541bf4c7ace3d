/* tape_observer.c: see tape_observer.h. */
#include "tape_observer.h"

#include "tape_kind.h"
#include "tape_residual.h"
#include "tape_scope.h"
#include "tape_sweep.h"
#include "tape_trace.h"

/* ---- tapes ---- */

enum tape_release_cause tape_observer_cause(struct tape *t, enum tape_release_cause cause)
{
    tape_account_settle(t);
    return tape_residual_cause(t, cause);
}

void tape_observer_rewinds(struct tape *t, uint32_t n_records)
{
    tape_trace_rewinds(t, n_records);
}

void tape_observer_dropped(struct tape *t)
{
    tape_history_dropped(t);
}

void tape_observer_read(struct tape *t, struct tape_record *r)
{
    if (t->hook)
        tape_residual_read(t, r);
}

/* Who takes samples alone has no account, and no hook of the tape's. */
void tape_observer_pattern(struct tape *t, const struct tape_pattern *pattern)
{
    uint32_t session;
    (void)tape_observed(t);
    struct tape_hook *hook = __atomic_load_n(&tape_hook_now, __ATOMIC_ACQUIRE);
    if (hook != NULL && hook->pattern != NULL && !t->unlisted && tape_session_of(hook, &session))
        hook->pattern(hook, pattern);
}

/* ---- ops ---- */

static inline void op_charge(struct tape *t, const struct kernel_call *call,
                             const struct tape_op_watch *op, const struct tape_record *record)
{
    const uint32_t timed = tape_timed_row(t, op->row);
    struct tape_row *r = tape_row(t, timed);
    const struct kernel_cost cost = kernel_cost_of(call);
    const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
    TAPE_ADD(*(again ? &r->recompute_flops : &r->forward_flops), cost.flops);
    TAPE_ADD(*(again ? &r->recompute_moved : &r->forward_moved), cost.bytes);
    if (timed != op->row)
        tape_account_called(t, op->row);
    const uint64_t start = tape_account_until(t, r, op->start, op->end, timed == op->row);
    tape_account_event(t, TAPE_EVENT_FORWARD, op->row, record, start, op->end, false);
}

void tape_op_end(struct tape *t, const struct kernel_call *call, const struct tape_op_watch *op,
                 struct tape_record *record)
{
    if (!record)
        tape_trace_operands(t, (uint32_t)call->n_in, op->in);
    tape_account_op(t, op->first_out, call->n_out, op->last_guard, record);
    if (record) {
        TAPE_ADD(t->ledger.records, 1);
        tape_scope_records++;
    }
    op_charge(t, call, op, record);
    if (t->stamp && t->hook->apart)
        tape_account_own(t, t->stamp);
}

void tape_op_again(struct tape *t, const struct kernel_call *call, const struct tape_record *r)
{
    op_charge(t, call, &(struct tape_op_watch){.row = r->row, .end = t->hook->clock()}, r);
    if (t->hook->apart)
        tape_account_own(t, t->stamp);
}

/* ---- derivatives that are recorded ---- */

void tape_graph_begins(struct tape *t, struct tape_site site, const char *what,
                       struct tape_graph_watch *watch)
{
    tape_observed(t);
    *watch = (struct tape_graph_watch){.before = t->activity, .outer = t->stamp};
    t->graph_row = t->hook || t->now ? tape_now_own(t, site, what) : TAPE_ROW_OTHER;
    watch->stamp = tape_clock(t);
    tape_activity_begin(t, TAPE_PHASE_FORWARD, &watch->stamp);
}

void tape_graph_ends(struct tape *t, const struct tape_graph_watch *watch)
{
    tape_account_ran(t, t->graph_row, 0, NULL, 1);
    tape_activity_begin(t, watch->before, watch->outer);
}

/* ---- sweeps ---- */

enum tape_phase tape_sweep_begins(struct tape *t, struct tape_site site)
{
    t->swept_from = site.pc;
    tape_observed(t);
    tape_trace_sweep(t);
    tape_residual_cause(t, TAPE_BY_SWEEP);
    return tape_activity_begin(t, TAPE_PHASE_BACKWARD, NULL);
}

void tape_sweep_leaves(struct tape *t, enum tape_phase before)
{
    tape_activity_begin(t, before, NULL);
    tape_residual_cause(t, TAPE_BY_CALL);
}

/* Charges the time since *stamp to a row; stamps are chained, so that nothing is left out. */
static inline void sweep_charge_row(struct tape *t, struct tape_row *row, uint64_t *stamp)
{
    const uint64_t now = tape_clock(t), ticks = now - *stamp;
    TAPE_ADD(row->backward_ticks, ticks);
    TAPE_ADD(t->ledger.backward_ticks, ticks);
    *stamp = now;
}

/* One more pullback of the row, and how long it took. */
static void row_pullback(struct tape_row *row, uint64_t ticks)
{
    if (row->backward_calls == 0 || ticks < row->shortest)
        row->shortest = ticks;
    const uint64_t calls = row->backward_calls + 1;
    __atomic_store_n(&row->backward_calls, calls, __ATOMIC_RELAXED);
    __atomic_store_n(&row->steady_backward_ticks, row->shortest * calls, __ATOMIC_RELAXED);
}

void tape_sweep_charge_row(struct tape *t, uint32_t row, uint64_t *stamp)
{
    const uint64_t start = *stamp;
    if (!t->hook)
        return;
    sweep_charge_row(t, tape_row(t, row), stamp);
    row_pullback(tape_row(t, row), *stamp - start);
}

void tape_sweep_charge(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    uint64_t start = *stamp;
    const struct record_kind *kind = tape_record_kind(r);
    if (kind->charge_sweep) {
        *stamp = tape_clock(t);
        TAPE_ADD(t->ledger.backward_ticks, *stamp - start);
        start = kind->charge_sweep(t, r, *stamp - start);
    } else {
        struct tape_row *row = tape_row(t, r->row);
        sweep_charge_row(t, row, stamp);
        row_pullback(row, *stamp - start);
    }
    tape_account_event(t, TAPE_EVENT_BACKWARD, r->row, r, start, *stamp, false);
    /* Counted one by one, each would need a second reading of the clock. */
    if (kind == &tape_op_kind && !tape_account_due(t->hook, *stamp) && tape_account_wait(t, r))
        return;
    if (!t->charges_wait || !kind->is_run)
        tape_account_settle(t);
    tape_residual_read(t, r);
    if (t->hook->apart)
        tape_account_own(t, stamp);
    if (tape_account_due(t->hook, *stamp)) {
        tape_account_flush(t, t->hook, *stamp);
        *stamp = t->hook && t->hook->apart ? t->ticks : *stamp;
    }
}

void tape_sweep_own(struct tape *t, struct tape_sweep *s)
{
    if (t->hook)
        sweep_charge_row(t, tape_row(t, s->own), &s->stamp);
}

void tape_sweep_ends(struct tape *t, struct tape_sweep *s)
{
    if (!t->hook)
        return;
    sweep_charge_row(t, tape_row(t, s->own), &s->stamp);
    tape_scope_swept(s->stamp - s->begun - (t->own_ticks - s->own_ticks));
    tape_account_event(t, TAPE_EVENT_SWEEP, s->own, NULL, s->begun, s->stamp, false);
    if (t->hook->apart && t->n_bookings > 0) {
        tape_account_settle(t);
        tape_account_own(t, &s->stamp);
    }
    TAPE_ADD(tape_row(t, s->own)->calls, 1);
    TAPE_ADD(tape_row(t, s->own)->backward_calls, 1);
    TAPE_ADD(t->ledger.sweeps, s->grows_gradients ? 1 : s->sweeps);
}
