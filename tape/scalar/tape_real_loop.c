/* tape_real_loop.c: see tape_real_loop.h.
 *
 * Steps are called with constants wherever they are not recorded. A unit that a sweep records
 * begins with variables of its own for the state, whose adjoints are those of the results of the
 * unit before; the first one begins with the variables that the loop was given. So each adjoint is
 * the same sum in the same order as without the loop.
 */
#include "tape_real_loop.h"

#include "tape_adjoints.h"
#include "tape_checkpoint.h"
#include "tape_guard.h"
#include "tape_now.h"
#include "tape_real_checkpoint.h"
#include "tape_record_watch.h"
#include "tape_scope.h"
#include "tape_spill.h"
#include "tape_sweep.h"

#include <math.h>
#include <string.h>

static const char loop_name[] = "real_checkpoint_loop";

/* What the record has for attributes. Behind them lie what the first step was given, the states,
 * and what is known of them. */
struct __attribute__((may_alias)) real_loop {
    struct tape_real_step step;
    struct tape_schedule schedule;
    uint64_t signature; /* of the state behind the steps that are swept */
    uint32_t first;     /* index of the first of its numbers */
    uint32_t file;      /* of the states in the first slots; 0: none */
    uint32_t n_in, n_out;
};

static struct real_loop *loop_of(struct tape_record *r)
{
    return (struct real_loop *)(void *)tape_record_attr(r);
}

static struct tape_real *loop_given(struct tape_record *r)
{
    return (struct tape_real *)(void *)tape_record_in(r);
}

/* In memory, the slots of the file are none. */
static double *loop_state(struct tape_record *r, uint32_t slot)
{
    const struct real_loop *l = loop_of(r);
    return (double *)(void *)(loop_given(r) + l->n_in) +
           (size_t)(slot - l->schedule.n_disk) * l->n_out;
}

/* ---- steps ---- */

struct real_loop_job {
    struct tape_real_steps steps; /* first */
    struct tape *t;
    const struct tape_real_step *step;
    const struct tape_real *in; /* of the first step */
    struct tape_record *record; /* NULL: none yet */
    double *state;              /* [n_out]: at hand */
    double *adjoint;            /* [n_out][width]: of the state behind it, in sweeps */
    uint64_t behind;            /* signature of that state */
    uint64_t *stamp;            /* of the sweep; NULL: there is none */
    struct tape_site site;
    uint32_t row;
    int no_grad; /* as it was before a step */
};

static bool job_begin(struct real_loop_job *j, size_t width)
{
    struct tape *t = j->t;
    const size_t n_in = (size_t)j->steps.n_in, n_out = (size_t)j->steps.n_out;
    struct tape_real *given = t->memory->resize(
        NULL, (n_in + n_out) * sizeof *given + (n_out + n_out * width + 1) * sizeof *j->state,
        t->memory->payload);
    if (!given)
        return false;
    j->steps.given = given;
    j->steps.result = given + n_in;
    j->state = (double *)(void *)(given + n_in + n_out);
    j->adjoint = j->state + n_out;
    return true;
}

static void job_end(struct real_loop_job *j)
{
    if (j->steps.given)
        j->t->memory->release(j->steps.given, j->t->memory->payload);
}

static bool step_check(struct real_loop_job *j, bool constant)
{
    uint64_t signature;
    return tape_real_results_check(j->t, loop_name, j->steps.n_out, j->steps.result, constant,
                                   &signature, j->site);
}

/* no_grad is that of before the loop, which steps that follow want as well. */
static bool step_leaves_no_grad(struct real_loop_job *j, int64_t i)
{
    if (j->t->no_grad == j->no_grad)
        return true;
    tape_fail(j->t, TAPE_ERROR_STATE, j->site,
              "%s: step %lld has begun or ended a no_grad; the call is", loop_name, (long long)i);
    return false;
}

/* Constants come from constants. */
static bool step_passed_constants(struct tape_real_steps *steps, int64_t i)
{
    struct real_loop_job *j = (struct real_loop_job *)(void *)steps;
    uint32_t other = 0;
    for (int64_t k = 0; k < steps->n_out; k++)
        other |= steps->result[k].index | steps->result[k].tag;
    if (other && !step_check(j, true))
        return false;
    for (int64_t k = 0; k < steps->n_out; k++)
        steps->given[k] = (struct tape_real){steps->result[k].value, 0, 0};
    return step_leaves_no_grad(j, i);
}

/* Of others the next step's statements tell whether they may be operands. */
static bool step_passed(struct tape_real_steps *steps, int64_t i)
{
    struct real_loop_job *j = (struct real_loop_job *)(void *)steps;
    for (int64_t k = 0; k < steps->n_out; k++)
        if (steps->result[k].tag == TAPE_NOT_SET)
            return step_check(j, false);
    if (i + 1 < steps->to)
        memcpy(steps->given, steps->result, (size_t)steps->n_out * sizeof *steps->given);
    return step_leaves_no_grad(j, i);
}

/* The steps from `from` up to `to`, from steps.given. */
static bool loop_call(struct real_loop_job *j, int64_t from, int64_t to, bool constants)
{
    j->steps.from = from;
    j->steps.to = to;
    j->steps.ended = false;
    j->steps.passed = constants ? step_passed_constants : step_passed;
    j->no_grad = j->t->no_grad;
    if (!j->step->run(j->t, j->step, &j->steps, j->site))
        return false;
    if (j->steps.to < TAPE_MOST_STEPS)
        return true;
    tape_fail(j->t, TAPE_ERROR_LIMIT, j->site, "%s: no step has said that it is the last: %lld",
              loop_name, (long long)TAPE_MOST_STEPS);
    return false;
}

/* Steps that are given constants, from the state at hand. */
static bool loop_compute(struct real_loop_job *j, int64_t from, int64_t to)
{
    const int64_t n_out = j->steps.n_out;
    struct tape_real *const given = j->steps.given;
    for (int64_t k = 0; k < j->steps.n_in; k++)
        given[k] = (struct tape_real){k < n_out ? j->state[k] : j->in[k].value, 0, 0};
    if (!loop_call(j, from, to, true))
        return false;
    for (int64_t k = 0; k < n_out; k++)
        j->state[k] = given[k].value;
    return true;
}

/* The same as part of a sweep. */
static bool loop_compute_again(struct real_loop_job *j, int64_t from, int64_t to)
{
    struct tape *t = j->t;
    struct tape_again again;
    TAPE_DOING(t, TAPE_PHASE_RECOMPUTE, j->site, loop_name);
    tape_now_path(t, j->row);
    tape_again_begin(t, j->record, &again, j->stamp);
    const bool done = loop_compute(j, from, to);
    tape_again_end(t, j->record, &again);
    return done;
}

/* The same as part of the call, whose line has their time: they leave no record that could. */
static bool loop_compute_first(struct real_loop_job *j, int64_t from, int64_t to)
{
    struct tape *t = j->t;
    uint64_t stamp = tape_clock(t);
    const bool within = t->activity == TAPE_PHASE_RECOMPUTE; /* which chains all times */
    const enum tape_phase before = t->activity;
    if (!within)
        tape_activity_begin(t, TAPE_PHASE_NONE, &stamp);
    const bool done = loop_compute(j, from, to);
    tape_account_ran(t, j->row, 0, NULL, 0);
    if (!within)
        tape_activity_begin(t, before, NULL);
    return done;
}

static bool loop_advance(void *of, int64_t from, int64_t to)
{
    struct real_loop_job *j = of;
    struct tape_call call;
    if (!tape_call_begin(j->t, &call, 0, NULL, true))
        return false;
    call.of_scalars = true;
    const bool done = j->stamp ? loop_compute_again(j, from, to) : loop_compute_first(j, from, to);
    tape_call_drop(j->t, &call);
    tape_call_end(j->t, &call);
    if (j->steps.ended)
        loop_of(j->record)->schedule.steps = j->steps.to;
    return done;
}

static bool loop_load(void *of, const struct tape_stored *from)
{
    struct real_loop_job *j = of;
    const struct real_loop *l = loop_of(j->record);
    const size_t bytes = l->n_out * sizeof *j->state;
    for (int64_t k = 0; k < j->steps.n_out && !from; k++)
        j->state[k] = j->in[k].value;
    if (from && from->slot < l->schedule.n_disk)
        return tape_spill_read(j->t, l->file, j->state, bytes, from->slot * bytes, loop_name,
                               j->site);
    if (from)
        memcpy(j->state, loop_state(j->record, from->slot), bytes);
    return true;
}

static bool loop_store(void *of, const struct tape_stored *to)
{
    struct real_loop_job *j = of;
    const struct real_loop *l = loop_of(j->record);
    const size_t bytes = l->n_out * sizeof *j->state;
    if (to->slot >= l->schedule.n_disk) {
        memcpy(loop_state(j->record, to->slot), j->state, bytes);
        return true;
    }
    const uint64_t start = tape_account_start(j->t);
    const bool done =
        tape_spill_write(j->t, l->file, j->state, bytes, to->slot * bytes, loop_name, j->site);
    if (!j->stamp)
        tape_account_ran(j->t, j->row, start, NULL, 0);
    return done;
}

static uint64_t state_signature(const struct real_loop_job *j)
{
    uint64_t signature = (uint64_t)j->steps.n_out;
    for (int64_t k = 0; k < j->steps.n_out; k++) {
        uint64_t bits;
        memcpy(&bits, &j->state[k], sizeof bits);
        signature = tape_hash_mix(signature, bits);
    }
    return signature;
}

/* ---- forward ---- */

/* The loop without a record: where nothing is to be swept. */
static bool loop_run_plain(struct real_loop_job *j, int64_t n, struct tape_real *out)
{
    const size_t bytes = (size_t)j->steps.n_out * sizeof *out;
    memcpy(j->steps.given, j->in, (size_t)j->steps.n_in * sizeof *j->in);
    if (n != 0 && !(loop_call(j, 0, n == TAPE_UNTIL_LAST ? TAPE_MOST_STEPS : n, false) &&
                    step_check(j, false)))
        return false;
    memcpy(out, n != 0 ? j->steps.result : j->steps.given, bytes);
    return true;
}

/* Records the first step to see how much it takes, with the adjoints of one seed. */
static bool loop_measure(struct real_loop_job *j, uint64_t *bytes)
{
    struct tape *t = j->t;
    struct tape_real_again again;
    uint64_t n, before, after;
    if (!tape_real_again_begin(t, &again))
        return false;
    const char *const top = t->arena.record_top;
    tape_statement_count(t, &n, &before);
    memcpy(j->steps.given, j->in, (size_t)j->steps.n_in * sizeof *j->steps.given);
    const bool done = loop_call(j, 0, 1, false);
    tape_statement_count(t, &n, &after);
    /* The newest block has room for up to a quarter of what is there. */
    const uint64_t statements = after - before;
    *bytes = statements + statements / 4 + (uint64_t)(t->arena.record_top - top) +
             (tape_statement_next(t) - again.next) * sizeof(double) + 1;
    tape_call_end(t, &again.call);
    tape_real_again_drop(t, &again);
    return done;
}

/* Chooses how many states are stored. */
static bool loop_plan(struct real_loop_job *j, struct tape_plan *plan, int64_t n)
{
    const uint64_t state = (uint64_t)j->steps.n_out * sizeof *j->state + sizeof(struct tape_stored);
    uint64_t step = 1;
    /* The record's size has 32 bits, which what was given takes less than half of. */
    plan->most = (uint32_t)((UINT32_MAX / 4) / state);
    if (plan->states == 0 && !loop_measure(j, &step))
        return false;
    if (tape_plan_choose(plan, n, state, step))
        return true;
    tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
              "%s: %llu bytes are too few: one step records %llu", loop_name,
              (unsigned long long)plan->bytes, (unsigned long long)step);
    return false;
}

static bool loop_record(struct real_loop_job *j, const struct tape_plan *plan, int64_t n)
{
    struct tape *t = j->t;
    const size_t given = (size_t)j->steps.n_in * sizeof *j->in,
                 states = (size_t)(plan->n_slots - plan->n_disk) * (size_t)j->steps.n_out *
                          sizeof *j->state;
    const uint32_t file =
        plan->n_disk > 0 ? tape_spill_make(t, plan->directory, loop_name, j->site) : 0;
    if (plan->n_disk > 0 && file == 0)
        return false;
    struct tape_record *r =
        tape_record_append(t, &tape_real_loop_kind, 0, 0, (sizeof(struct real_loop) + 7) / 8 * 8,
                           given + states + plan->n_slots * sizeof(struct tape_stored), j->row);
    if (!r)
        return false;
    *loop_of(r) = (struct real_loop){.step = *j->step,
                                     .schedule = tape_schedule_of(plan, n),
                                     .file = file,
                                     .n_in = (uint32_t)j->steps.n_in,
                                     .n_out = (uint32_t)j->steps.n_out};
    memcpy(loop_given(r), j->in, given);
    loop_of(r)->schedule.stored =
        (struct tape_stored *)(void *)loop_state(r, loop_of(r)->schedule.n_slots);
    tape_schedule_begin(&loop_of(r)->schedule);
    j->record = r;
    return true;
}

static const struct tape_schedule_verbs loop_verbs;

/* All steps but the last, as a record; `given` is then what the last is given. All steps where the
 * last one is not known before; `given` begins with its results. */
static bool loop_record_steps(struct real_loop_job *j, struct tape_plan *plan, int64_t n)
{
    struct tape *t = j->t;
    if (!loop_plan(j, plan, n) || !loop_record(j, plan, n))
        return false;
    struct real_loop *l = loop_of(j->record);
    loop_load(j, NULL);
    if (!tape_schedule_forward(&l->schedule, &loop_verbs, j))
        return false;
    if (n == TAPE_UNTIL_LAST)
        l->step.n = l->schedule.steps;
    l->signature = state_signature(j);
    l->first = tape_statement_results(t, l->n_out);
    const uint32_t tag = (uint32_t)(t->statements->rest.result >> 32);
    for (uint32_t k = 0; k < l->n_out; k++)
        j->steps.given[k] = (struct tape_real){j->state[k], l->first + k, tag};
    for (int64_t k = l->n_out; k < j->steps.n_in; k++)
        j->steps.given[k] = j->in[k];
    return true;
}

/* The whole loop, in a call. */
static bool loop_make(struct real_loop_job *j, struct tape_plan *plan, int64_t n)
{
    memcpy(j->steps.given, j->in, (size_t)j->steps.n_in * sizeof *j->steps.given);
    if ((n > 1 || n == TAPE_UNTIL_LAST) && !loop_record_steps(j, plan, n))
        return false;
    if (n == TAPE_UNTIL_LAST) {
        memcpy(j->steps.result, j->steps.given, (size_t)j->steps.n_out * sizeof *j->steps.result);
        return true;
    }
    return loop_call(j, n - 1, n, false) && step_check(j, false);
}

static enum tape_status loop_fail(struct real_loop_job *j)
{
    return j->t->error.code ? j->t->error.code : tape_fail_memory(j->t, j->site, loop_name);
}

static enum tape_status loop_run(struct real_loop_job *j, struct tape_plan *plan, int64_t n,
                                 struct tape_real *out)
{
    struct tape *t = j->t;
    struct tape_call call;
    const uint64_t start = tape_account_start(t);
    j->row = tape_account_row(t, j->site, loop_name);
    if (j->steps.n_out > (int64_t)tape_statement_left(t))
        return tape_fail(t, TAPE_ERROR_LIMIT, j->site, "%s: %lld, and %u indices are left",
                         loop_name, (long long)j->steps.n_out, (unsigned)tape_statement_left(t));
    if (!tape_call_begin(t, &call, 0, NULL, false))
        return loop_fail(j);
    call.of_scalars = true;
    tape_account_ran(t, j->row, start, NULL, 0);
    const struct tape_path_root root = {j->site.pc, tape_row(t, j->row)->path}, *outer = t->root;
    t->root = &root;
    const bool done = loop_make(j, plan, n);
    t->root = outer;
    const uint64_t again = tape_account_start(t);
    if (done) {
        memcpy(out, j->steps.result, (size_t)j->steps.n_out * sizeof *out);
        tape_call_keep(t, &call);
    } else {
        tape_call_drop(t, &call);
    }
    tape_call_end(t, &call);
    if (done && j->record && t->hook)
        tape_scope_records++;
    tape_account_ran(t, j->row, again, done ? j->record : NULL, 1);
    if (done && j->record)
        tape_watch_numbers(t, loop_name, j->site, loop_of(j->record)->first,
                           loop_of(j->record)->n_out, (double)NAN);
    return done ? TAPE_OK : loop_fail(j);
}

enum tape_status tape_real_loop(struct tape *t, const struct tape_real_step *f,
                                struct tape_plan *plan, int64_t n_in, const struct tape_real *in,
                                int64_t n_out, struct tape_real *out, struct tape_site site)
{
    struct real_loop_job j = {
        .steps = {.n_in = n_in, .n_out = n_out}, .t = t, .step = f, .in = in, .site = site};
    const int64_t n = f->n;
    bool active = false;
    tape_observed(t);
    tape_settle(t);
    enum tape_status status = tape_real_given_check(t, loop_name, n_in, in, n_out, site, &active);
    if (status != TAPE_OK)
        return status;
    if (!job_begin(&j, 0))
        return loop_fail(&j);
    if (active && n != 0 && n_out > 0)
        status = loop_run(&j, plan, n, out);
    else if (!loop_run_plain(&j, n, out))
        status = loop_fail(&j);
    job_end(&j);
    return status;
}

/* ---- backward ---- */

static bool loop_is_seeded(const struct tape *t, const struct real_loop *l)
{
    const struct tape_statements *s = t->statements;
    const double *y = s->adjoint + (size_t)l->first * s->width;
    for (size_t i = 0; i < (size_t)l->n_out * s->width; i++)
        if (y[i] != 0)
            return true;
    return false;
}

/* Records steps from the state at hand, which is variables from index *first on. */
static bool loop_record_again(struct real_loop_job *j, int64_t from, int64_t to, uint32_t *first)
{
    struct tape *t = j->t;
    struct tape_again again;
    uint64_t signature = 0;
    if (from > 0 && j->steps.n_out > (int64_t)tape_statement_left(t)) {
        tape_fail(t, TAPE_ERROR_LIMIT, j->site, "%s: %lld, and %u indices are left", loop_name,
                  (long long)j->steps.n_out, (unsigned)tape_statement_left(t));
        return false;
    }
    memcpy(j->steps.given, j->in, (size_t)j->steps.n_in * sizeof *j->steps.given);
    *first = from > 0 ? tape_statement_results(t, (uint32_t)j->steps.n_out) : 0;
    const uint32_t tag = (uint32_t)(t->statements->rest.result >> 32);
    for (uint32_t k = 0; k < j->steps.n_out && from > 0; k++)
        j->steps.given[k] = (struct tape_real){j->state[k], *first + k, tag};
    TAPE_DOING(t, TAPE_PHASE_RECOMPUTE, j->site, loop_name);
    tape_now_path(t, j->row);
    tape_again_begin(t, j->record, &again, j->stamp);
    bool done = loop_call(j, from, to, false);
    tape_again_end(t, j->record, &again);
    done = done && tape_real_results_check(t, loop_name, j->steps.n_out, j->steps.result, false,
                                           &signature, j->site);
    if (done && signature != j->behind) {
        tape_fail(t, TAPE_ERROR_STATE, j->site,
                  "%s: its step did not do the same again: other results of step %lld; the call is",
                  loop_name, (long long)to - 1);
        done = false;
    }
    return done;
}

/* The adjoints of the state behind are those of the results. */
static void loop_hand_over(struct real_loop_job *j)
{
    struct tape_statements *s = j->t->statements;
    const size_t width = s->width;
    for (size_t i = 0; i < (size_t)j->steps.n_out; i++)
        for (size_t k = 0; k < width && j->steps.result[i].index; k++)
            s->adjoint[j->steps.result[i].index * width + k] += j->adjoint[i * width + k];
}

static bool loop_sweep_unit(void *of, int64_t from, int64_t to)
{
    struct real_loop_job *j = of;
    struct tape *t = j->t;
    struct tape_real_again again;
    uint32_t first = 0;
    if (!tape_real_again_begin(t, &again))
        return false;
    const bool same = loop_record_again(j, from, to, &first);
    tape_call_end(t, &again.call);
    bool done = same && tape_adjoints_grow(t, again.next);
    if (done) {
        loop_hand_over(j);
        done = tape_sweep_behind(t, again.call.from.last_record, j->stamp);
    }
    if (done && from > 0) {
        const size_t width = t->statements->width;
        memcpy(j->adjoint, t->statements->adjoint + first * width,
               (size_t)j->steps.n_out * width * sizeof *j->adjoint);
        j->behind = state_signature(j);
    }
    tape_real_again_drop(t, &again);
    return done;
}

static const struct tape_schedule_verbs loop_verbs = {
    .load = loop_load, .store = loop_store, .advance = loop_advance, .sweep = loop_sweep_unit};

static bool loop_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    struct real_loop *l = loop_of(r);
    const struct tape_statements *s = t->statements;
    struct real_loop_job j = {.steps = {.n_in = l->n_in, .n_out = l->n_out},
                              .t = t,
                              .step = &l->step,
                              .in = loop_given(r),
                              .record = r,
                              .behind = l->signature,
                              .stamp = stamp,
                              .site = tape_row_site(t, r->row),
                              .row = r->row};
    if (!loop_is_seeded(t, l))
        return true;
    if (!job_begin(&j, s->width))
        return false;
    memcpy(j.adjoint, s->adjoint + (size_t)l->first * s->width,
           (size_t)l->n_out * s->width * sizeof *j.adjoint);
    const bool done = tape_schedule_backward(&l->schedule, &loop_verbs, &j);
    job_end(&j);
    return done;
}

/* ---- the kind ---- */

static bool loop_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads)
{
    const struct real_loop *l = loop_of(r);
    uint8_t *const reached = t->statements->reached;
    (void)wants, (void)reads;
    if (!reached || !memchr(reached + l->first, 1, l->n_out))
        return false;
    for (uint32_t i = 0; i < l->n_in; i++)
        reached[loop_given(r)[i].index] = 1;
    return false;
}

const struct record_kind tape_real_loop_kind = {.op = {.name = loop_name},
                                                .sweep = loop_sweep,
                                                .seeded = tape_adjoints_seeded,
                                                .reach = loop_reach};
