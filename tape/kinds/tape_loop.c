/* tape_loop.c: see tape_loop.h.
 *
 * A unit of several steps is as many calls behind each other, which are swept and dropped from the
 * last one on. The first step is given the loop's own operands, each other one copies of a state,
 * whose adjoints become those of the results before: so each adjoint is the same sum in the same
 * order as without the loop.
 */
#include "tape_loop.h"

#include "tape_checkpoint.h"
#include "tape_guard.h"
#include "tape_inplace.h"
#include "tape_now.h"
#include "tape_record_watch.h"
#include "tape_release.h"
#include "tape_scope.h"
#include "tape_spill.h"
#include "tape_sweep.h"

#include <string.h>

static const char loop_op[] = "checkpoint_loop";

/* About what the record of an op takes. */
enum { RECORD_BYTES = 128 };

/* What the record has for attributes. */
struct __attribute__((may_alias)) tensor_loop {
    struct tape_loop_step step;
    struct tape_schedule schedule; /* `stored` lies at the begin of the first operand */
    uint32_t file;                 /* of the states in the first slots; 0: none */
    uint64_t signature;            /* of all steps that are swept */
    uint64_t n_ops;                /* that they ran */
    int32_t n_in, n_out;
};

static struct tensor_loop *tensor_loop_of(struct tape_record *r)
{
    return (struct tensor_loop *)(void *)tape_record_attr(r);
}

struct tensor_loop_job {
    struct tape *t;
    const struct tape_loop_step *step;
    struct tape_schedule *schedule;
    struct tape_record *record; /* in sweeps */
    int n_in, n_out;
    const uint32_t *in;   /* of the first step */
    uint32_t row, states; /* states: the value in which they are stored, */
    uint32_t file;        /* and the file; 0: none */
    int64_t at;           /* the step of the state at hand, */
    char *state;          /* which is this, one tensor behind the other, 8-byte aligned, */
    uint64_t active;      /* and whose tensors need a gradient by these bits */
    uint64_t state_bytes; /* of both: where it is stored, the bits are the last of them */
    uint64_t step_bytes;  /* that the first step has made */
    uint64_t signature, n_ops;
    bool ended;      /* the last of TAPE_UNTIL_LAST steps was computed */
    uint64_t *stamp; /* of the sweep; NULL: there is none */
    struct tape_site site;
    struct tape_call *call;     /* [unit] */
    uint32_t *given, *result;   /* [unit][n_in], [unit][n_out] */
    void *adjoint[TAPE_MAX_IN]; /* of the state behind; NULL: none */
    uint32_t adjoint_row[TAPE_MAX_IN];
};

static uint64_t tensor_bytes(const struct tensor_loop_job *j, int k)
{
    return (tape_value_bytes(&j->t->entries[j->in[k]]) + 7) / 8 * 8;
}

/* ---- memory ---- */

static bool tensor_job_begin(struct tensor_loop_job *j, int64_t unit)
{
    struct tape *t = j->t;
    j->state_bytes = sizeof j->active;
    for (int k = 0; k < j->n_out; k++)
        j->state_bytes += tensor_bytes(j, k);
    const size_t calls = (size_t)unit * sizeof *j->call,
                 given = (size_t)unit * (size_t)j->n_in * sizeof *j->given,
                 result = (size_t)unit * (size_t)j->n_out * sizeof *j->result;
    j->call = t->memory->resize(NULL, calls + given + result + 1, t->memory->payload);
    j->state = j->call ? tape_arena_buffer(&t->arena, j->state_bytes) : NULL;
    if (j->call && !j->state)
        t->memory->release(j->call, t->memory->payload);
    if (!j->state)
        return false;
    tape_account_copy(t, j->row, j->state_bytes);
    j->given = (uint32_t *)(void *)((char *)j->call + calls);
    j->result = (uint32_t *)(void *)((char *)j->given + given);
    return true;
}

static void tensor_job_end(struct tensor_loop_job *j)
{
    struct tape *t = j->t;
    for (int k = 0; k < j->n_out; k++)
        if (j->adjoint[k]) {
            const uint64_t n = tape_value_bytes(&t->entries[j->in[k]]);
            tape_arena_free(&t->arena, j->adjoint[k], n);
            tape_account_free(t, j->adjoint_row[k], n);
        }
    tape_arena_free(&t->arena, j->state, j->state_bytes);
    tape_account_drop_copy(t, j->row, j->state_bytes);
    t->memory->release(j->call, t->memory->payload);
}

/* ---- states ---- */

/* Of the tensor k of the state, a new value. NULL: no memory. */
static struct tape_value *state_value(struct tensor_loop_job *j, int k, const void *data)
{
    struct tape *t = j->t;
    const struct kernel_array *a = &t->entries[j->in[k]].array;
    struct kernel_shape shape = {.dtype = a->dtype, .rank = a->rank, .same_as = -1, .view_of = -1};
    memcpy(shape.extent, a->shape, a->rank * sizeof(int64_t));
    const struct tape_point point = tape_point_take(t);
    struct tape_value *v = tape_value_make(t, &shape, NULL, j->row);
    if (!v) {
        tape_point_undo(t, point);
        return NULL;
    }
    if (tape_value_bytes(v) > 0)
        memcpy(v->array.data, data, tape_value_bytes(v));
    if (j->active >> k & 1)
        v->flags |= TAPE_NEEDS_GRADIENT;
    tape_account_value(t, v);
    return v;
}

/* in[n_in] of a step: values of the state at hand, and the loop's own operands. */
static bool step_given(struct tensor_loop_job *j, int64_t i, uint32_t *in)
{
    const char *from = j->state;
    memcpy(in, j->in, (size_t)j->n_in * sizeof *in);
    for (int k = 0; k < j->n_out && i > 0; k++) {
        const struct tape_value *v = state_value(j, k, from);
        if (!v)
            return false;
        in[k] = tape_value_index(j->t, v);
        from += tensor_bytes(j, k);
    }
    return true;
}

static bool same_shape(const struct kernel_array *a, const struct kernel_array *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

static bool results_fit(struct tensor_loop_job *j, int64_t i, const uint32_t *out)
{
    const struct tape_value *entries = j->t->entries;
    int k = 0;
    while (k < j->n_out && same_shape(&entries[out[k]].array, &entries[j->in[k]].array))
        k++;
    if (k == j->n_out)
        return true;
    tape_fail(j->t, TAPE_ERROR_SHAPE, j->site,
              "%s: out[%d] of step %lld has another shape or type than in[%d]; the call is",
              loop_op, k, (long long)i, k);
    return false;
}

/* The results of step i are the state at hand. */
static bool state_take(struct tensor_loop_job *j, int64_t i, const uint32_t *out)
{
    struct tape *t = j->t;
    char *to = j->state;
    if (!results_fit(j, i, out))
        return false;
    j->active = 0;
    for (int k = 0; k < j->n_out; k++) {
        const struct tape_value *v = &t->entries[out[k]];
        tape_read(t, out[k], to);
        to += tensor_bytes(j, k);
        j->active |= (uint64_t)((v->flags & TAPE_NEEDS_GRADIENT) != 0) << k;
    }
    j->at = i + 1;
    return true;
}

/* In memory, the slots of the file are none. */
static char *states_slot(struct tensor_loop_job *j, uint32_t slot)
{
    char *base = j->t->entries[j->states].array.data;
    return base + j->schedule->n_slots * sizeof(struct tape_stored) +
           (slot - j->schedule->n_disk) * j->state_bytes;
}

static bool tensor_loop_load(void *of, const struct tape_stored *from)
{
    struct tensor_loop_job *j = of;
    j->at = 0;
    if (!from)
        return true;
    if (from->slot >= j->schedule->n_disk)
        memcpy(j->state, states_slot(j, from->slot), j->state_bytes);
    else if (!tape_spill_read(j->t, j->file, j->state, j->state_bytes, from->slot * j->state_bytes,
                              loop_op, j->site))
        return false;
    memcpy(&j->active, j->state + j->state_bytes - sizeof j->active, sizeof j->active);
    j->at = from->unit * j->schedule->unit;
    return true;
}

static bool tensor_loop_store(void *of, const struct tape_stored *to)
{
    struct tensor_loop_job *j = of;
    memcpy(j->state + j->state_bytes - sizeof j->active, &j->active, sizeof j->active);
    if (to->slot >= j->schedule->n_disk) {
        memcpy(states_slot(j, to->slot), j->state, j->state_bytes);
        return true;
    }
    const uint64_t start = tape_account_start(j->t);
    const bool done = tape_spill_write(j->t, j->file, j->state, j->state_bytes,
                                       to->slot * j->state_bytes, loop_op, j->site);
    if (!j->stamp)
        tape_account_ran(j->t, j->row, start, NULL, 0);
    return done;
}

/* ---- steps ---- */

/* What a frame or a sweep has released is there for the steps, or is no more. */
static void operands_awake(struct tensor_loop_job *j, bool awake)
{
    if (j->record)
        tape_release_wake(j->t, j->record->n_in, tape_record_in(j->record), awake);
}

/* Runs step i in a call that has begun. */
static bool step_run(struct tensor_loop_job *j, int64_t i, uint32_t *in, uint32_t *out)
{
    struct tape *t = j->t;
    const int no_grad = t->no_grad;
    if (!step_given(j, i, in) ||
        !j->step->run(t, j->step, i, j->n_in, in, j->n_out, out, &j->ended, j->site))
        return false;
    tape_call_results(t, j->n_out, out);
    if (t->no_grad == no_grad)
        return true;
    tape_fail(t, TAPE_ERROR_STATE, j->site,
              "%s: step %lld has begun or ended a no_grad; the call is", loop_op, (long long)i);
    return false;
}

/* The same in a sweep, in which it is recomputation. */
static bool step_run_again(struct tensor_loop_job *j, int64_t i, uint32_t *in, uint32_t *out)
{
    struct tape *t = j->t;
    struct tape_again again;
    TAPE_DOING(t, TAPE_PHASE_RECOMPUTE, j->site, loop_op);
    tape_now_path(t, j->row);
    tape_again_begin(t, j->record, &again, j->stamp);
    const bool done = step_run(j, i, in, out);
    tape_again_end(t, j->record, &again);
    return done;
}

/* One step in a call of its own, which the caller drops; its results are the state at hand. */
static bool step_call(struct tensor_loop_job *j, int64_t i, bool dry, struct tape_call *call,
                      uint32_t *in, uint32_t *out, bool *begun)
{
    struct tape *t = j->t;
    const uint64_t live = t->arena.live;
    operands_awake(j, true);
    *begun = tape_call_begin(t, call, j->n_in, j->in, dry);
    bool done = *begun && (j->stamp ? step_run_again(j, i, in, out) : step_run(j, i, in, out));
    operands_awake(j, false);
    /* Recorded, it has its records besides, and further steps copies of a state. */
    if (done && i == 0)
        j->step_bytes = t->arena.live - live + call->n_ops * RECORD_BYTES + j->state_bytes;
    return done && state_take(j, i, out);
}

static bool tensor_loop_advance(void *of, int64_t from, int64_t to)
{
    struct tensor_loop_job *j = of;
    (void)from; /* the first step may have been computed */
    bool done = true;
    for (int64_t i = j->at; i < to && done && !j->ended; i++) {
        struct tape_call call;
        bool begun;
        done = step_call(j, i, true, &call, j->given, j->result, &begun);
        if (!begun)
            return false;
        if (!j->stamp) {
            j->signature += tape_hash_mix((uint64_t)i, call.signature);
            j->n_ops += call.n_ops;
        }
        tape_call_drop(j->t, &call);
        tape_call_end(j->t, &call);
    }
    if (j->ended)
        j->schedule->steps = j->at;
    return done;
}

static bool tensor_loop_sweep_unit(void *of, int64_t from, int64_t to);

static const struct tape_schedule_verbs tensor_loop_verbs = {.load = tensor_loop_load,
                                                             .store = tensor_loop_store,
                                                             .advance = tensor_loop_advance,
                                                             .sweep = tensor_loop_sweep_unit};

/* ---- forward ---- */

/* The value for stored states, of the schedule's slots. */
static bool states_make(struct tensor_loop_job *j)
{
    struct tape *t = j->t;
    const struct tape_schedule *s = j->schedule;
    const uint64_t bytes = s->n_slots * sizeof(struct tape_stored) +
                           (uint64_t)(s->n_slots - s->n_disk) * j->state_bytes;
    const struct kernel_shape shape = {.dtype = KERNEL_F64,
                                       .rank = 1,
                                       .extent = {(int64_t)(bytes / sizeof(double))},
                                       .same_as = -1,
                                       .view_of = -1};
    const struct tape_point point = tape_point_take(t);
    struct tape_value *v = tape_value_make(t, &shape, NULL, j->row);
    if (!v) {
        tape_point_undo(t, point);
        return false;
    }
    tape_account_value(t, v);
    j->states = tape_value_index(t, v);
    j->schedule->stored = v->array.data;
    tape_schedule_begin(j->schedule);
    return true;
}

/* Chooses how many states are stored, by what the first step has taken. */
static bool tensor_loop_plan(struct tensor_loop_job *j, struct tape_plan *plan, bool recorded)
{
    plan->most = recorded ? TAPE_MOST_STATES : 0;
    if (!recorded)
        *plan = (struct tape_plan){.states = 1};
    if (!tape_plan_choose(plan, j->step->n, j->state_bytes + sizeof(struct tape_stored),
                          j->step_bytes + 1)) {
        tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
                  "%s: %llu bytes are too few: one step takes %llu", loop_op,
                  (unsigned long long)plan->bytes, (unsigned long long)j->step_bytes);
        return false;
    }
    *j->schedule = tape_schedule_of(plan, j->step->n);
    if (plan->n_disk == 0)
        return true;
    j->file = tape_spill_make(j->t, plan->directory, loop_op, j->site);
    return j->file != 0;
}

static struct tape_record *tensor_loop_record(struct tensor_loop_job *j,
                                              const struct tape_call *outer, uint32_t first_out)
{
    uint32_t own[1 + TAPE_MAX_IN] = {j->states};
    struct tape_loop_step known = *j->step;
    if (known.n == TAPE_UNTIL_LAST)
        known.n = j->schedule->steps;
    memcpy(own + 1, j->in, (size_t)j->n_in * sizeof *own);
    struct tape_record *r =
        tape_checkpoint_append(j->t, &tape_loop_kind, sizeof(struct tensor_loop), outer,
                               1 + (uint32_t)j->n_in, own, j->n_out, first_out, j->row);
    if (r)
        *tensor_loop_of(r) = (struct tensor_loop){.step = known,
                                                  .schedule = *j->schedule,
                                                  .file = j->file,
                                                  .signature = j->signature,
                                                  .n_ops = j->n_ops,
                                                  .n_in = j->n_in,
                                                  .n_out = j->n_out};
    return r;
}

/* All steps but the last, or where that is not known before all; `given`: what the one behind them
 * is given, values that are the record's results. */
static bool tensor_loop_steps(struct tensor_loop_job *j, struct tape_plan *plan,
                              const struct tape_call *outer, struct tape_record **record)
{
    struct tape *t = j->t;
    const bool recorded = t->no_grad == 0 && !outer->dry;
    if (!tensor_loop_advance(j, 0, 1) || !tensor_loop_plan(j, plan, recorded) || !states_make(j) ||
        !tape_schedule_forward(j->schedule, &tensor_loop_verbs, j))
        return false;
    if (j->step->n == TAPE_UNTIL_LAST && !j->ended) {
        tape_fail(t, TAPE_ERROR_LIMIT, j->site, "%s: no step has said that it is the last: %lld",
                  loop_op, (long long)TAPE_MOST_STEPS);
        return false;
    }
    if (t->no_grad)
        j->active = 0;
    const uint32_t first = t->n_values, last_guard = t->last_guard;
    if (!step_given(j, j->schedule->steps, j->given))
        return false;
    if (j->file && j->active == 0)
        tape_spill_close(t);
    if (!recorded || j->active == 0)
        return true;
    *record = tensor_loop_record(j, outer, first);
    if (!*record)
        return false;
    tape_checkpoint_appended(t, *record, last_guard);
    return true;
}

static bool tensor_loop_make(struct tensor_loop_job *j, struct tape_plan *plan,
                             const struct tape_call *outer, uint32_t *out,
                             struct tape_record **record)
{
    struct tape *t = j->t;
    const bool until = j->step->n == TAPE_UNTIL_LAST;
    const int64_t last = until ? 0 : j->step->n - 1;
    bool said;
    memcpy(j->given, j->in, (size_t)j->n_in * sizeof *j->in);
    if ((until || last > 0) && !tensor_loop_steps(j, plan, outer, record))
        return false;
    if (until) {
        memcpy(out, j->given, (size_t)j->n_out * sizeof *out);
        return true;
    }
    const int no_grad = t->no_grad;
    if (!j->step->run(t, j->step, last, j->n_in, j->given, j->n_out, out, &said, j->site))
        return false;
    if (t->no_grad != no_grad) {
        tape_fail(t, TAPE_ERROR_STATE, j->site,
                  "%s: step %lld has begun or ended a no_grad; the call is", loop_op,
                  (long long)last);
        return false;
    }
    return results_fit(j, last, out);
}

static enum tape_status tensor_loop_fail(struct tape *t, struct tape_site site)
{
    return t->error.code ? t->error.code : tape_fail_memory(t, site, loop_op);
}

enum tape_status tape_loop(struct tape *t, const struct tape_loop_step *f, struct tape_plan *plan,
                           int n_in, const uint32_t *in, int n_out, uint32_t *out,
                           struct tape_site site)
{
    struct tape_schedule schedule = {.unit = 1};
    struct tape_record *record = NULL;
    struct tape_call outer;
    tape_observed(t);
    if (f->n == 0) {
        memcpy(out, in, (size_t)n_out * sizeof *out);
        return TAPE_OK;
    }
    const uint64_t start = tape_account_start(t);
    struct tensor_loop_job j = {.t = t,
                                .step = f,
                                .schedule = &schedule,
                                .n_in = n_in,
                                .n_out = n_out,
                                .in = in,
                                .site = site,
                                .row = tape_account_row(t, site, loop_op)};
    if (!tensor_job_begin(&j, 1))
        return tensor_loop_fail(t, site);
    if (!tape_call_begin(t, &outer, n_in, in, t->calls.dry)) {
        tensor_job_end(&j);
        return tensor_loop_fail(t, site);
    }
    tape_account_ran(t, j.row, start, NULL, 0);
    const struct tape_path_root root = {site.pc, tape_row(t, j.row)->path}, *before = t->root;
    t->root = &root;
    const bool done = tensor_loop_make(&j, plan, &outer, out, &record);
    t->root = before;
    const uint64_t again = tape_account_start(t);
    if (done)
        tape_call_keep(t, &outer);
    else
        tape_call_drop(t, &outer);
    tape_call_end(t, &outer);
    tensor_job_end(&j);
    tape_account_ran(t, j.row, again, done ? record : NULL, 1);
    if (done && record)
        tape_watch_record(t, record, n_out, site);
    return done ? TAPE_OK : tensor_loop_fail(t, site);
}

/* ---- backward ---- */

/* The adjoint of the state's tensor k behind a step becomes that of the step's result. */
static bool adjoint_hand(struct tensor_loop_job *j, int k, uint32_t result)
{
    struct tape *t = j->t;
    struct tape_value *to = &t->entries[result];
    const uint64_t n = tape_value_bytes(to);
    bool fresh;
    if (!j->adjoint[k] || !(to->flags & TAPE_NEEDS_GRADIENT))
        return true;
    if (!to->adjoint && !(to->flags & TAPE_LEAF)) {
        to->adjoint = j->adjoint[k];
        j->adjoint[k] = NULL;
        if (to->row != j->adjoint_row[k]) {
            tape_account_free(t, j->adjoint_row[k], n);
            tape_account_buffer(t, to->row, n);
        }
        return true;
    }
    if (!tape_adjoint_buffer(t, to, &fresh))
        return false;
    tape_add_into(to, to->adjoint, j->adjoint[k], fresh);
    tape_adjoint_set(t, to);
    return true;
}

static void adjoint_take(struct tensor_loop_job *j, int k, struct tape_value *from)
{
    struct tape *t = j->t;
    if (j->adjoint[k]) {
        tape_arena_free(&t->arena, j->adjoint[k], tape_value_bytes(from));
        tape_account_free(t, j->adjoint_row[k], tape_value_bytes(from));
    }
    j->adjoint[k] = from->adjoint;
    j->adjoint_row[k] = from->row;
    from->adjoint = NULL;
}

/* Sweeps a step that was recorded, or not if `done` is false, and drops it. */
static bool step_sweep(struct tensor_loop_job *j, int64_t i, struct tape_call *call,
                       const uint32_t *given, const uint32_t *result, bool done)
{
    struct tape *t = j->t;
    bool handed = done;
    for (int k = 0; k < j->n_out && handed; k++)
        handed = adjoint_hand(j, k, result[k]);
    const bool swept = handed && tape_sweep_behind(t, call->from.last_record, j->stamp);
    for (int k = 0; k < j->n_out && done && !handed; k++)
        if (result[k] >= call->from.n_values)
            tape_adjoint_free(t, &t->entries[result[k]]);
    /* Of the first step these are older values, which have their adjoints. */
    for (int k = 0; k < j->n_out && done && i > 0; k++)
        adjoint_take(j, k, &t->entries[given[k]]);
    tape_call_drop(t, call);
    return swept;
}

static bool tensor_loop_sweep_unit(void *of, int64_t from, int64_t to)
{
    struct tensor_loop_job *j = of;
    bool done = true, begun = true;
    int64_t n = 0;
    for (int64_t i = from; i < to && done; i++) {
        uint32_t *in = j->given + n * j->n_in, *out = j->result + n * j->n_out;
        done = step_call(j, i, false, &j->call[n], in, out, &begun);
        if (!begun)
            break;
        j->signature += tape_hash_mix((uint64_t)i, j->call[n].signature);
        j->n_ops += j->call[n].n_ops;
        tape_call_end(j->t, &j->call[n]);
        n++;
        if (!done)
            tape_call_drop(j->t, &j->call[--n]);
    }
    while (n-- > 0)
        done = step_sweep(j, from + n, &j->call[n], j->given + n * j->n_in,
                          j->result + n * j->n_out, done);
    return done;
}

static bool tensor_loop_verify(struct tensor_loop_job *j)
{
    const struct tensor_loop *l = tensor_loop_of(j->record);
    if (j->signature == l->signature && j->n_ops == l->n_ops)
        return true;
    tape_fail(j->t, TAPE_ERROR_STATE, j->site,
              "%s: its step did not do the same again: %llu ops in the sweep, %llu before%s; the "
              "call is",
              loop_op, (unsigned long long)j->n_ops, (unsigned long long)l->n_ops,
              j->n_ops == l->n_ops ? ", on other operands, attributes or constants" : "");
    return false;
}

static bool tensor_loop_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    struct tensor_loop *l = tensor_loop_of(r);
    struct tensor_loop_job j = {.t = t,
                                .step = &l->step,
                                .schedule = &l->schedule,
                                .record = r,
                                .n_in = l->n_in,
                                .n_out = l->n_out,
                                .in = tape_record_in(r) + 1,
                                .states = tape_record_in(r)[0],
                                .file = l->file,
                                .row = r->row,
                                .stamp = stamp,
                                .site = tape_row_site(t, r->row)};
    if (!tensor_job_begin(&j, l->schedule.unit))
        return false;
    for (int k = 0; k < l->n_out; k++)
        adjoint_take(&j, k, &t->entries[tape_record_out(r)[k]]);
    const bool done =
        tape_schedule_backward(&l->schedule, &tensor_loop_verbs, &j) && tensor_loop_verify(&j);
    tensor_job_end(&j);
    return done;
}

/* The steps behind each other, for good. */
static bool tensor_loop_again(struct tape *t, struct tape_record *r, uint32_t *result)
{
    const struct tensor_loop *l = tensor_loop_of(r);
    struct tape_call call;
    struct tape_again again;
    uint32_t in[TAPE_MAX_IN];
    const struct tape_site site = tape_row_site(t, r->row);
    const uint64_t charged = tape_scope_charged; /* to sweeps: this is none */
    memcpy(in, tape_record_in(r) + 1, (size_t)l->n_in * sizeof *in);
    tape_release_wake(t, r->n_in, tape_record_in(r), true);
    const bool begun = tape_call_begin(t, &call, l->n_in, in, false);
    bool done = begun;
    if (begun) {
        TAPE_DOING(t, TAPE_PHASE_RECOMPUTE, site, loop_op);
        tape_now_path(t, r->row);
        tape_again_begin(t, r, &again, t->stamp);
        for (int64_t i = 0; i < l->schedule.steps && done; i++) {
            bool last;
            done = l->step.run(t, &l->step, i, l->n_in, in, l->n_out, result, &last, site);
            if (done)
                memcpy(in, result, (size_t)l->n_out * sizeof *in);
        }
        tape_again_end(t, r, &again);
    }
    tape_release_wake(t, r->n_in, tape_record_in(r), false);
    tape_scope_charged = charged;
    if (!begun)
        return false;
    if (done && call.n_ops != l->n_ops) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "%s: its step did not do the same again: %u ops, %llu before; the call is",
                  loop_op, call.n_ops, (unsigned long long)l->n_ops);
        done = false;
    }
    if (done)
        tape_call_keep(t, &call);
    else
        tape_call_drop(t, &call);
    tape_call_end(t, &call);
    return done;
}

/* ---- the kind ---- */

const struct record_kind tape_loop_kind = {.op = {.name = loop_op},
                                           .sweep = tensor_loop_sweep,
                                           .reach = tape_checkpoint_reach,
                                           .touches = tape_checkpoint_touches,
                                           .again = tensor_loop_again};
