/* tape_real_checkpoint.c: see tape_real_checkpoint.h.
 *
 * Adjoints of what is recorded again lie behind all others and are added to those of older scalars
 * as any statement's are, so that no bit of a gradient depends on the checkpoint.
 */
#include "tape_real_checkpoint.h"

#include "tape_adjoints.h"
#include "tape_checkpoint.h"
#include "tape_guard.h"
#include "tape_now.h"
#include "tape_poison.h"
#include "tape_preaccumulate.h"
#include "tape_record_watch.h"
#include "tape_scope.h"
#include "tape_sweep.h"

#include <string.h>

/* What the record has for attributes; what the function was given lies behind them. */
struct __attribute__((may_alias)) checkpoint {
    struct tape_real_function function;
    uint64_t signature; /* of the results */
    uint32_t first;     /* index of the first of them */
    uint32_t n_in, n_out;
};

/* Inputs, or results, of one: the size of its record fits into 32 bits. */
enum { MOST = 1 << 27 };

static struct checkpoint *real_checkpoint_of(struct tape_record *r)
{
    return (struct checkpoint *)(void *)tape_record_attr(r);
}

static struct tape_real *given_of(struct tape_record *r)
{
    return (struct tape_real *)(void *)tape_record_in(r);
}

/* ---- forward ---- */

enum tape_status tape_real_given_check(struct tape *t, const char *what, int64_t n_in,
                                       const struct tape_real *in, int64_t n_out,
                                       struct tape_site site, bool *active)
{
    if (n_in > MOST || n_out > MOST)
        return tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: %lld numbers in and %lld out, at most %d",
                         what, (long long)n_in, (long long)n_out, MOST);
    if (tape_statement_check(t, what, "in", n_in, in, site, active) != TAPE_OK)
        return t->error.code;
    *active = *active && !t->no_grad;
    if (*active && t->sections->n > 0)
        return tape_section_refuse(t, what, site);
    if (*active && !tape_call_takes_scalars(t))
        return tape_call_refuse_scalars(t, what, site);
    return TAPE_OK;
}

bool tape_real_results_check(struct tape *t, const char *what, int64_t n,
                             const struct tape_real *out, bool first, uint64_t *signature,
                             struct tape_site site)
{
    *signature = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &out[i].value, sizeof bits);
        *signature = tape_hash_mix(*signature, bits);
        if (out[i].index == 0 && out[i].tag == TAPE_NOT_SET)
            tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: its function has not set out[%lld]", what,
                      (long long)i);
        else if (tape_poison_fail(t, out[i].index, out[i].tag))
            return false;
        else if ((out[i].index || out[i].tag) && !tape_statement_holds(t, out[i].index, out[i].tag))
            tape_fail(t, TAPE_ERROR_HANDLE, site,
                      "%s: out[%lld] of its function is no value of this tape: it was dropped, "
                      "never set, or is another's",
                      what, (long long)i);
        else if (out[i].index && first)
            tape_fail(t, TAPE_ERROR_STATE, site,
                      "%s: out[%lld] of its function is a variable that it was not given", what,
                      (long long)i);
        else
            continue;
        return false;
    }
    return true;
}

/* The function may write to out[] while it reads in[], and they may be one array: it is given a
 * copy; of constants, if it is to record nothing. NULL: no memory. */
static struct tape_real *given_copy(struct tape *t, int64_t n, const struct tape_real *in,
                                    bool constant)
{
    struct tape_real *to =
        t->memory->resize(NULL, ((size_t)n + 1) * sizeof *to, t->memory->payload);
    for (int64_t i = 0; i < n && to; i++)
        to[i] = constant ? (struct tape_real){in[i].value, 0, 0} : in[i];
    return to;
}

/* Calls the function where nothing depends on a variable: nothing is kept. */
static bool function_run_plain(struct tape *t, const struct tape_real_function *f, int64_t n_in,
                               const struct tape_real *in, int64_t n_out, struct tape_real *out,
                               struct tape_site site)
{
    uint64_t signature;
    struct tape_real *given = given_copy(t, n_in, in, false);
    const bool done = given && f->run(t, f, n_in, given, n_out, out, site) &&
                      tape_real_results_check(t, tape_real_checkpoint_kind.op.name, n_out, out,
                                              false, &signature, site);
    if (given)
        t->memory->release(given, t->memory->payload);
    return done;
}

/* Calls the function for the record of this row, with constants. */
static bool function_run_dry(struct tape *t, const struct tape_real_function *f, int64_t n_in,
                             const struct tape_real *in, int64_t n_out, struct tape_real *out,
                             uint64_t *signature, uint32_t row)
{
    struct tape_call call;
    const struct tape_site site = tape_row_site(t, row);
    const struct tape_path_root root = {site.pc, tape_row(t, row)->path}, *outer = t->root;
    struct tape_real *given = given_copy(t, n_in, in, true);
    bool done = given && tape_call_begin(t, &call, 0, NULL, true);
    if (done) {
        call.of_scalars = true;
        t->root = &root;
        done = f->run(t, f, n_in, given, n_out, out, site) &&
               tape_real_results_check(t, tape_real_checkpoint_kind.op.name, n_out, out, true,
                                       signature, site);
        t->root = outer;
        tape_call_drop(t, &call);
        tape_call_end(t, &call);
    }
    if (given)
        t->memory->release(given, t->memory->payload);
    return done;
}

static struct tape_record *real_checkpoint_record(struct tape *t,
                                                  const struct tape_real_function *f, int64_t n_in,
                                                  const struct tape_real *in, int64_t n_out,
                                                  uint32_t row)
{
    struct tape_record *r =
        tape_record_append(t, &tape_real_checkpoint_kind, 0, 0, sizeof(struct checkpoint),
                           (size_t)n_in * sizeof *in, row);
    if (!r)
        return NULL;
    *real_checkpoint_of(r) =
        (struct checkpoint){.function = *f, .n_in = (uint32_t)n_in, .n_out = (uint32_t)n_out};
    if (n_in > 0)
        memcpy(given_of(r), in, (size_t)n_in * sizeof *in);
    return r;
}

/* Takes the last record off again. */
static void record_take_off(struct tape *t, struct tape_record *r, const struct tape_point *point)
{
    tape_account_drop_record(t, r);
    t->last_record = r->previous;
    t->n_records--;
    tape_point_undo(t, *point);
}

enum tape_status tape_real_checkpoint(struct tape *t, const struct tape_real_function *f,
                                      int64_t n_in, const struct tape_real *in, int64_t n_out,
                                      struct tape_real *out, struct tape_site site)
{
    const char *what = tape_real_checkpoint_kind.op.name;
    bool active = false;
    tape_observed(t);
    tape_settle(t);
    enum tape_status status = tape_real_given_check(t, what, n_in, in, n_out, site, &active);
    if (status != TAPE_OK)
        return status;
    if (!active) {
        if (!function_run_plain(t, f, n_in, in, n_out, out, site) && t->error.code == TAPE_OK)
            tape_fail_memory(t, site, what);
        return t->error.code;
    }
    const uint64_t start = tape_account_start(t);
    const uint32_t row = tape_account_row(t, site, what);
    if (n_out > (int64_t)tape_statement_left(t))
        return tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: %lld, and %u indices are left", what,
                         (long long)n_out, (unsigned)tape_statement_left(t));
    const struct tape_point point = tape_point_take(t);
    struct tape_record *r = real_checkpoint_record(t, f, n_in, in, n_out, row);
    if (!r)
        return tape_fail_memory(t, site, what);
    struct checkpoint *c = real_checkpoint_of(r);
    tape_account_ran(t, row, start, NULL, 0);
    uint64_t signature = 0;
    const bool done = function_run_dry(t, f, n_in, given_of(r), n_out, out, &signature, row);
    const uint64_t again = tape_account_start(t);
    if (done && n_out > 0) {
        c->signature = signature;
        c->first = tape_statement_results(t, c->n_out);
        const uint32_t tag = (uint32_t)(t->statements->rest.result >> 32);
        for (uint32_t i = 0; i < c->n_out; i++)
            out[i] = (struct tape_real){out[i].value, c->first + i, tag};
        if (t->hook)
            tape_scope_records++;
    } else {
        record_take_off(t, r, &point);
        r = NULL;
    }
    if (!done && t->error.code == TAPE_OK)
        tape_fail_memory(t, site, what);
    tape_account_ran(t, row, again, r, 1);
    if (r)
        tape_watch_numbers(t, what, site, c->first, c->n_out, out[0].value);
    return done ? TAPE_OK : t->error.code;
}

/* ---- backward ---- */

static bool results_seeded(const struct tape *t, const struct checkpoint *c)
{
    const struct tape_statements *s = t->statements;
    const double *y = s->adjoint + (size_t)c->first * s->width;
    for (size_t i = 0; i < (size_t)c->n_out * s->width; i++)
        if (y[i] != 0)
            return true;
    return false;
}

/* Runs the function of a record again, recording; result[n_out]. */
static bool real_checkpoint_rerun(struct tape *t, struct tape_record *r, struct tape_real *result,
                                  uint64_t *stamp)
{
    const struct checkpoint *c = real_checkpoint_of(r);
    const struct tape_site site = tape_row_site(t, r->row);
    struct tape_again again;
    uint64_t signature = 0;
    TAPE_DOING(t, TAPE_PHASE_RECOMPUTE, site, tape_real_checkpoint_kind.op.name);
    tape_now_path(t, r->row);
    tape_again_begin(t, r, &again, stamp);
    bool done = c->function.run(t, &c->function, c->n_in, given_of(r), c->n_out, result, site);
    tape_settle(t);
    tape_again_end(t, r, &again);
    done = done && tape_real_results_check(t, tape_real_checkpoint_kind.op.name, c->n_out, result,
                                           false, &signature, site);
    if (done && signature != c->signature) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "%s: its function did not do the same again: other results; the call is",
                  tape_real_checkpoint_kind.op.name);
        done = false;
    }
    return done;
}

/* The adjoints of the record's results are those of the function's. */
static void real_adjoints_hand_over(struct tape *t, const struct checkpoint *c,
                                    const struct tape_real *result)
{
    const size_t width = t->statements->width;
    const double *from = t->statements->adjoint + c->first * width;
    for (size_t i = 0; i < c->n_out; i++)
        for (size_t k = 0; k < width && result[i].index; k++)
            t->statements->adjoint[result[i].index * width + k] += from[i * width + k];
}

bool tape_real_again_begin(struct tape *t, struct tape_real_again *a)
{
    struct tape_statements *s = t->statements;
    if (!tape_statement_reserve_tags(t, s->n_tags + 2) ||
        !tape_call_begin(t, &a->call, 0, NULL, false))
        return false;
    a->call.of_scalars = true;
    a->n_tags = s->n_tags;
    a->tag = (uint32_t)(s->rest.result >> 32);
    a->next = tape_statement_next(t);
    a->newest = s->tags[a->n_tags - 1];
    tape_statement_tag_begin(t);
    return true;
}

void tape_real_again_drop(struct tape *t, struct tape_real_again *a)
{
    tape_call_drop(t, &a->call);
    t->statements->tags[a->n_tags - 1] = a->newest;
    tape_statement_tag_end(t, a->n_tags, a->tag);
}

static bool real_checkpoint_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    const struct checkpoint *c = real_checkpoint_of(r);
    struct tape_real_again again;
    if (!results_seeded(t, c))
        return true;
    struct tape_real *result =
        t->memory->resize(NULL, c->n_out * sizeof *result, t->memory->payload);
    if (!result || !tape_real_again_begin(t, &again)) {
        if (result)
            t->memory->release(result, t->memory->payload);
        return false;
    }
    const bool same = real_checkpoint_rerun(t, r, result, stamp);
    tape_call_end(t, &again.call);
    bool done = same && tape_adjoints_grow(t, again.next);
    if (done) {
        real_adjoints_hand_over(t, c, result);
        done = tape_sweep_behind(t, again.call.from.last_record, stamp);
    }
    tape_real_again_drop(t, &again);
    t->memory->release(result, t->memory->payload);
    return done;
}

/* ---- the kind ---- */

static bool real_checkpoint_reach(struct tape *t, struct tape_record *r, enum tape_flag wants,
                                  uint32_t *reads)
{
    const struct checkpoint *c = real_checkpoint_of(r);
    uint8_t *const reached = t->statements->reached;
    (void)wants, (void)reads;
    if (!reached || !memchr(reached + c->first, 1, c->n_out))
        return false;
    for (uint32_t i = 0; i < c->n_in; i++)
        reached[given_of(r)[i].index] = 1;
    return false;
}

const struct record_kind tape_real_checkpoint_kind = {.op = {.name = "real_checkpoint"},
                                                      .sweep = real_checkpoint_sweep,
                                                      .seeded = tape_adjoints_seeded,
                                                      .reach = real_checkpoint_reach};
