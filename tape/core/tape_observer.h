/* tape_observer.h: what happens on a tape, told to whoever observes it: ops and sweeps. The bytes
 * that it takes and gives back are told by tape_account.h.
 *
 * Nothing is done where nobody looks (t->hook is NULL).
 */
#ifndef TAPE_OBSERVER_H
#define TAPE_OBSERVER_H

#include "tape_account.h"
#include "tape_now.h"
#include "tape_residuals.h"

struct tape_sweep;

/* ---- tapes ---- */

/* A tape begins: it and its thread are numbered, and it is listed. And it ends: it is off the list,
 * and its rows are flushed a last time. */
void tape_observer_add(struct tape *t);
void tape_observer_remove(struct tape *t);

/* What is given back from now on is because of `cause`. Returns what it was before. */
enum tape_release_cause tape_observer_cause(struct tape *t, enum tape_release_cause cause);
/* A rewind to so many records begins; a reset or rewind has ended. */
void tape_observer_rewinds(struct tape *t, uint32_t n_records);
void tape_observer_dropped(struct tape *t);

/* A call has found a pattern of a sparse derivative. */
void tape_observer_pattern(struct tape *t, const struct tape_pattern *pattern);

/* ---- rows by shape: where hook->shapes is set, and of results that outgrow their operands ---- */

/* tape_account_row of an op with such a result and such operands. */
uint32_t tape_shape_row(struct tape *t, struct tape_site site, const char *op,
                        const struct kernel_shape *out, int n_in, const kernel_ref *in);
/* The same of a value without operands. extent: [rank]. */
uint32_t tape_shape_row_of(struct tape *t, struct tape_site site, const char *op, int dtype,
                           int rank, const int64_t *extent);

/* Whether an elementwise op makes a grid of two operands that have as many elements, but not as
 * many dimensions: [n,n] of [n,1] and [n]. That may be a mistake, so every profile tells it. */
bool tape_shape_outgrows(const struct kernel_call *call, const struct kernel_shape *out);

/* ---- ops ---- */

/* What the end of an op needs to know of its begin. start, end: of its time; in: its operands. */
struct tape_op_watch {
    uint32_t first_out, last_guard, row;
    uint64_t start, end;
    const uint32_t *in;
};

/* An op begins, whose outputs have these shapes: the row that it is charged to. */
static inline uint32_t tape_op_begin(struct tape *t, const struct tape_hook *hook,
                                     const struct kernel_call *call,
                                     const struct kernel_shape *shape, struct tape_site site)
{
    const char *name = call->op->name;
    const uint32_t path = t->path;
    uint32_t row = hook ? t->entered.row : tape_account_row(t, site, name);
    if (row == TAPE_ROW_NONE || (hook && call->op->elementwise && call->n_in > 1 &&
                                 shape->same_as < 0 && tape_shape_outgrows(call, shape))) {
        t->path = t->entered.path;
        row = tape_shape_row(t, site, name, shape, call->n_in, call->in);
        t->path = path;
    }
    tape_now_path(t, tape_timed_row(t, row));
    return row;
}

/* It has ended well: its outputs, its record (NULL: none), cost and time. t->hook is set. */
void tape_op_end(struct tape *t, const struct kernel_call *call, const struct tape_op_watch *op,
                 struct tape_record *record);

/* The op of a record has run again, in a call whose times are chained. t->hook is set. */
void tape_op_again(struct tape *t, const struct kernel_call *call, const struct tape_record *r);

/* ---- derivatives that are recorded ---- */

struct tape_graph_watch {
    enum tape_phase before;
    uint64_t *outer; /* stamp */
    uint64_t stamp;
};

/* From the begin of ad_create_graph to its end one observer, or none, sees all of it. The time and
 * cost of the ops that it records are the call's, and so is what it takes itself; their calls and
 * bytes are theirs. */
void tape_graph_begins(struct tape *t, struct tape_site site, const char *what,
                       struct tape_graph_watch *watch);
void tape_graph_ends(struct tape *t, const struct tape_graph_watch *watch);

/* ---- sweeps ---- */

/* From the begin of a sweep to its end one observer, or none, sees all of it. The first returns
 * what the tape did before, for the second. */
enum tape_phase tape_sweep_begins(struct tape *t, struct tape_site site);
void tape_sweep_leaves(struct tape *t, enum tape_phase before);

/* The time since s->stamp is the sweep's own; and so is the rest of it, as it ends. */
void tape_sweep_own(struct tape *t, struct tape_sweep *s);
void tape_sweep_ends(struct tape *t, struct tape_sweep *s);

/* The time since *stamp was that of a row, as a pullback of its op is. */
void tape_sweep_charge_row(struct tape *t, uint32_t row, uint64_t *stamp);

/* The pullback of r has run, or has been recorded. */
void tape_observer_read(struct tape *t, struct tape_record *r);
/* Of tape_sweep_passed, where somebody looks. */
void tape_sweep_charge(struct tape *t, struct tape_record *r, uint64_t *stamp);

/* The sweep has passed a record, whose pullback took the time since *stamp. */
static inline void tape_sweep_passed(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    if (__builtin_expect(t->hook != NULL, 0))
        tape_sweep_charge(t, r, stamp);
}

#endif
