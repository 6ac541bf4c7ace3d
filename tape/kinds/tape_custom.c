/* tape_custom.c: see tape_custom.h. */
#include "tape_custom.h"

#include "tape_call.h"
#include "tape_disk.h"
#include "tape_due.h"
#include "tape_guard.h"
#include "tape_inplace.h"
#include "tape_nonfinite.h"
#include "tape_observer.h"
#include "tape_reach.h"
#include "tape_record.h"
#include "tape_record_watch.h"
#include "tape_release.h"

#include <string.h>

static struct tape_custom *custom_of(struct tape_record *r)
{
    return (struct tape_custom *)(void *)tape_record_attr(r);
}

static bool custom_always(struct tape_record *r)
{
    return custom_of(r)->saves & TAPE_SWEPT_ALWAYS;
}

static bool custom_waits(struct tape_record *r)
{
    return custom_of(r)->saves & TAPE_SWEPT_COMPLETE;
}

static void *custom_own(const struct tape *t, struct tape_record *r)
{
    const struct tape_custom *c = custom_of(r);
    return c->own_bytes > 0 ? t->entries[tape_record_out(r)[c->n_results]].array.data : NULL;
}

/* ---- forward ---- */

struct custom_job {
    struct tape *t;
    const struct tape_custom *c;
    int n_in;
    const uint32_t *in;
    struct tape_custom_own own;
    struct tape_site site;
    struct kernel_op op; /* as observers know it */
    kernel_ref operand[TAPE_MAX_IN];
    struct kernel_array *output[TAPE_CUSTOM_MAX_OUT + 1];
    struct kernel_shape shape[TAPE_CUSTOM_MAX_OUT + 1];
};

/* Of n bytes and their number. */
static size_t custom_own_room(size_t n)
{
    return (n + 7) / 8 * 8 + sizeof(uint64_t);
}

/* The user's function, and what is looked for in its numbers. */
static bool custom_compute(struct custom_job *j, uint32_t first_out)
{
    struct tape *t = j->t;
    struct kernel_array in[TAPE_MAX_IN], out[TAPE_CUSTOM_MAX_OUT];
    const int n_out = (int)j->c->n_results;
    struct tape_custom_call call = {.n_in = j->n_in, .n_out = n_out, .in = in, .out = out};
    for (int i = 0; i < j->n_in; i++)
        in[i] = *j->operand[i];
    for (int o = 0; o < n_out; o++)
        out[o] = *j->output[o];
    call.own = j->c->own_bytes > 0 ? j->output[n_out]->data : NULL;
    if (call.own && j->own.n > 0)
        memcpy(call.own, j->own.bytes, j->own.n);
    if (t->nonfinite && tape_nonfinite_operands(t, j->c->name, j->n_in, j->in, j->site) != TAPE_OK)
        return false;
    if (!tape_disk_need_values(t, j->c->name, j->n_in, j->in, j->site) ||
        !j->c->face->forward(t, j->c, &call, j->site))
        return false;
    return !t->nonfinite ||
           tape_nonfinite_results(t, &j->op, j->n_in, j->in, first_out, j->site) == TAPE_OK;
}

static bool custom_outputs(struct custom_job *j, uint32_t row)
{
    for (int o = 0; o < j->op.n_out; o++) {
        struct tape_value *v = tape_value_make(j->t, &j->shape[o], NULL, row);
        if (!v)
            return false;
        j->output[o] = &v->array;
    }
    return true;
}

/* The record, behind guards of the arrays that the pullback reads. What is replayed ends with the
 * bytes that the call's own began with, and how many they are. */
static struct tape_record *custom_record(struct custom_job *j, uint32_t first_out, uint32_t row,
                                         bool active)
{
    struct tape *t = j->t;
    const bool again = t->replays == TAPE_REPLAYS_RECORDED;
    for (int i = 0; i < j->n_in && active && j->c->saves & TAPE_SAVES_OPERANDS; i++)
        if (!tape_guard_whole(t, j->in[i], row))
            return NULL;
    struct tape_record *r =
        tape_record_push(t, &tape_custom_kind, (uint16_t)j->n_in, (uint8_t)j->op.n_out,
                         sizeof *j->c, again ? custom_own_room(j->own.n) : 0, row);
    if (!r)
        return NULL;
    if (again) {
        const uint64_t n = j->own.n;
        memcpy((char *)r + r->bytes - sizeof n, &n, sizeof n);
        if (n > 0)
            memcpy((char *)r + r->bytes - custom_own_room(n), j->own.bytes, n);
    }
    *custom_of(r) = *j->c;
    t->dues->any = t->dues->any || custom_waits(r);
    memcpy(tape_record_in(r), j->in, (size_t)j->n_in * sizeof *j->in);
    for (int o = 0; o < j->op.n_out; o++)
        tape_record_out(r)[o] = first_out + (uint32_t)o;
    return r;
}

static bool custom_is_active(const struct custom_job *j)
{
    bool active = j->c->saves & TAPE_SWEPT_ALWAYS;
    for (int i = 0; i < j->n_in; i++)
        active = active || (j->t->entries[j->in[i]].flags & TAPE_NEEDS_GRADIENT);
    return active && !j->t->no_grad;
}

/* The call belongs to what a checkpoint's function does. */
static bool custom_call_note(struct custom_job *j)
{
    int64_t word[sizeof *j->c / sizeof(int64_t)];
    memcpy(word, j->c, sizeof word);
    return tape_call_op(j->t, &tape_custom_kind.op, j->n_in, j->in,
                        (int)(sizeof word / sizeof *word), word);
}

static enum tape_status custom_run(struct custom_job *j, uint32_t *out)
{
    struct tape *t = j->t;
    struct tape_hook *hook = t->hook;
    const uint64_t start = hook ? tape_account_entered(t, j->site, j->c->name) : 0;
    const struct kernel_call call = {
        .op = &j->op, .in = j->operand, .out = j->output, .n_in = j->n_in, .n_out = j->op.n_out};
    tape_settle(t);
    const struct tape_point point = tape_point_take(t);
    const uint32_t row = tape_op_begin(t, hook, &call, j->shape, j->site), first_out = t->n_values;
    const bool active = custom_is_active(j);
    struct tape_record *record = NULL;
    bool done = custom_outputs(j, row) && custom_compute(j, first_out) &&
                (!t->calls.innermost || custom_call_note(j));
    if (done && (active || t->replays == TAPE_REPLAYS_RECORDED) && !t->calls.dry)
        done = (record = custom_record(j, first_out, row, active)) != NULL;
    if (!done) {
        tape_point_undo(t, point);
        return t->error.code != TAPE_OK ? t->error.code : tape_fail_memory(t, j->site, j->c->name);
    }
    const uint64_t end = hook ? hook->clock() : 0;
    uint32_t all[TAPE_CUSTOM_MAX_OUT + 1];
    for (int o = 0; o < j->op.n_out; o++) {
        all[o] = first_out + (uint32_t)o;
        if (active && t->entries[all[o]].array.dtype != KERNEL_I64 &&
            !(j->c->saves & TAPE_SWEPT_COMPLETE))
            t->entries[all[o]].flags |= TAPE_NEEDS_GRADIENT;
    }
    if (hook)
        tape_op_end(t, &call,
                    &(struct tape_op_watch){first_out, point.last_guard, row, start, end, j->in},
                    record);
    memcpy(out, all, j->c->n_results * sizeof *out);
    if (!record)
        tape_release_hidden(t, &j->op, all);
    else
        tape_watch_record(t, record, j->op.n_results, j->site);
    return TAPE_OK;
}

enum tape_status tape_custom(struct tape *t, const struct tape_custom *c, int n_in,
                             const uint32_t *in, const struct kernel_shape *shape,
                             struct tape_custom_own own, struct tape_site site, uint32_t *out)
{
    struct custom_job j = {.t = t, .c = c, .n_in = n_in, .in = in, .own = own, .site = site};
    const int n_out = (int)c->n_results, more = c->own_bytes > 0;
    j.op = (struct kernel_op){
        .name = c->name, .n_in = n_in, .n_out = n_out + more, .n_results = n_out};
    memcpy(j.shape, shape, (size_t)n_out * sizeof *shape);
    if (more)
        j.shape[n_out] = (struct kernel_shape){
            .extent = {(int64_t)(c->own_bytes + sizeof(int64_t) - 1) / (int64_t)sizeof(int64_t)},
            .dtype = KERNEL_I64,
            .rank = 1,
            .same_as = -1,
            .view_of = -1};
    for (int i = 0; i < n_in; i++)
        j.operand[i] = &t->entries[in[i]].array;
    if (t->calls.innermost && c->saves & TAPE_SWEPT_ALWAYS)
        return tape_call_refuse(t, c->name, site);
    tape_observed(t);
    if (t->activity == TAPE_PHASE_FORWARD) /* ad_create_graph has said what is done */
        return custom_run(&j, out);
    TAPE_DOING(t, tape_phase_forward(t), site, c->name);
    return custom_run(&j, out);
}

/* ---- forward again ---- */

static enum tape_status custom_replay(struct tape *t, struct tape_record *r)
{
    const struct tape_custom *c = custom_of(r);
    const int n_results = (int)c->n_results;
    uint64_t n;
    memcpy(&n, (char *)r + r->bytes - sizeof n, sizeof n);
    struct custom_job j = {
        .t = t,
        .c = c,
        .n_in = r->n_in,
        .in = tape_record_in(r),
        .own = {(char *)r + r->bytes - custom_own_room(n), n},
        .site = tape_row_site(t, r->row),
        .op = {.name = c->name, .n_in = r->n_in, .n_out = r->n_out, .n_results = n_results}};
    const struct kernel_call call = {
        .op = &j.op, .in = j.operand, .out = j.output, .n_in = r->n_in, .n_out = r->n_out};
    for (int i = 0; i < r->n_in; i++)
        j.operand[i] = &t->entries[j.in[i]].array;
    for (int o = 0; o < n_results; o++)
        j.output[o] = &t->entries[tape_record_out(r)[o]].array;
    if (c->own_bytes > 0)
        j.output[n_results] = &t->entries[tape_record_out(r)[n_results]].array;
    if (!custom_compute(&j, tape_record_out(r)[0]))
        return t->error.code != TAPE_OK ? t->error.code : tape_fail_memory(t, j.site, c->name);
    if (t->hook)
        tape_op_again(t, &call, r);
    return TAPE_OK;
}

static const char *custom_fixed(struct tape_record *r)
{
    if (custom_always(r))
        return "is swept always: something outside the tape depends on it";
    return custom_of(r)->face->replays ? NULL : "is no op: it cannot be computed again";
}

/* ---- backward ---- */

/* The array of a value whose buffer the op has kept or not. */
static struct kernel_array custom_array(const struct tape_value *v, bool kept)
{
    struct kernel_array a = v->array;
    if (!kept)
        a.data = NULL;
    return a;
}

/* The adjoint of an operand, to be added to. False: no memory. */
static bool custom_adjoint(struct tape *t, struct tape_value *v, bool zeroed,
                           struct kernel_array *a, bool *fresh)
{
    *fresh = false;
    *a = custom_array(v, false);
    if (!(v->flags & TAPE_NEEDS_GRADIENT))
        return true;
    a->data = tape_adjoint_buffer(t, v, fresh);
    if (!a->data)
        return false;
    if (*fresh && zeroed)
        memset(a->data, 0, tape_value_bytes(v));
    tape_adjoint_set(t, v); /* so that a second operand that is the same value adds */
    return true;
}

/* Bytes of the buffers that a pullback has, its own left out. */
static uint64_t custom_moved(const struct tape_custom_call *call)
{
    uint64_t n = 0;
    for (int k = 0; k < 2 * (call->n_in + call->n_out); k++) {
        const int i = k / 2;
        const struct kernel_array *a =
            i < call->n_in
                ? (k % 2 ? &call->in[i] : &call->in_adjoint[i])
                : (k % 2 ? &call->out[i - call->n_in] : &call->out_adjoint[i - call->n_in]);
        n += a->data ? (uint64_t)a->size * kernel_dtype_bytes(a->dtype) : 0;
    }
    return n;
}

static bool custom_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    struct kernel_array in[TAPE_MAX_IN], in_adjoint[TAPE_MAX_IN], out[TAPE_CUSTOM_MAX_OUT],
        out_adjoint[TAPE_CUSTOM_MAX_OUT];
    const struct tape_custom *c = custom_of(r);
    bool in_fresh[TAPE_MAX_IN];
    struct tape_custom_call call = {.n_in = r->n_in,
                                    .n_out = (int)c->n_results,
                                    .in = in,
                                    .out = out,
                                    .in_adjoint = in_adjoint,
                                    .out_adjoint = out_adjoint,
                                    .in_fresh = in_fresh,
                                    .own = custom_own(t, r)};
    (void)stamp;
    if (t->reading && custom_always(r)) { /* a Jacobian of numbers, which come from no tensor */
        tape_fail(t, TAPE_ERROR_STATE, tape_row_site(t, r->row),
                  "real_jacobian: %s is swept always, by sweeps alone; it was called", c->name);
        return false;
    }
    if (t->entries[tape_record_out(r)[0]].flags & TAPE_SPENT) { /* a sweep from numbers has come */
        tape_fail(t, TAPE_ERROR_STATE, tape_row_site(t, r->row),
                  "backward: a sweep that releases has passed %s already; it was called", c->name);
        return false;
    }
    for (int o = 0; o < call.n_out; o++) {
        const struct tape_value *v = &t->entries[tape_record_out(r)[o]];
        out[o] = custom_array(v, c->saves & TAPE_SAVES_RESULTS);
        out_adjoint[o] = custom_array(v, false);
        out_adjoint[o].data = v->adjoint;
    }
    for (int i = 0; i < r->n_in; i++) {
        struct tape_value *v = &t->entries[tape_record_in(r)[i]];
        in[i] = custom_array(v, c->saves & TAPE_SAVES_OPERANDS);
        if (!custom_adjoint(t, v, !(c->saves & TAPE_WRITES_FRESH), &in_adjoint[i], &in_fresh[i]))
            return false;
    }
    if (t->hook)
        TAPE_ADD(tape_row(t, r->row)->backward_moved, custom_moved(&call));
    return c->face->pullback(t, c, &call, tape_row_site(t, r->row)) &&
           (call.held == 0 || !custom_waits(r) || tape_due_hold(t, r->row, call.held));
}

/* ---- the derivative recorded ---- */

static bool custom_graph(struct tape *t, struct tape_record *r, const uint32_t *adjoint,
                         uint64_t needs, uint32_t *term)
{
    static const uint32_t none[TAPE_MAX_IN];
    const struct tape_custom *c = custom_of(r);
    const struct tape_site site = tape_row_site(t, r->row);
    struct tape_custom_graph g = {.n_in = r->n_in,
                                  .n_out = (int)c->n_results,
                                  .operand = tape_record_in(r),
                                  .in = c->saves & TAPE_SAVES_OPERANDS ? tape_record_in(r) : none,
                                  .out = c->saves & TAPE_SAVES_RESULTS ? tape_record_out(r) : none,
                                  .out_adjoint = adjoint,
                                  .in_adjoint = term,
                                  .own = custom_own(t, r)};
    if (custom_always(r)) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "create_graph: %s is swept always, by sweeps alone; it was called", c->name);
        return false;
    }
    if (!c->graph) {
        tape_fail(t, TAPE_ERROR_STATE, site,
                  "create_graph: %s has a pullback but no rule for the derivative of that "
                  "(`graph`); it was called",
                  c->name);
        return false;
    }
    struct tape_call call;
    if (!tape_call_begin(t, &call, 0, NULL, false))
        return false;
    call.runs = "custom op's graph function";
    tape_release_wake(t, r->n_in, tape_record_in(r), true);
    tape_release_wake(t, r->n_out, tape_record_out(r), true);
    const struct tape_path_root root = {t->swept_from, tape_row(t, r->row)->path}, *outer = t->root;
    t->root = &root;
    const bool done = c->face->graph(t, c, &g, site);
    t->root = outer;
    tape_release_wake(t, r->n_in, tape_record_in(r), false);
    tape_release_wake(t, r->n_out, tape_record_out(r), false);
    if (done)
        tape_call_keep(t, &call);
    else
        tape_call_drop(t, &call);
    tape_call_end(t, &call);
    for (int i = 0; i < r->n_in; i++)
        if (!(needs >> i & 1))
            term[i] = 0;
    return done;
}

/* ---- the kind ---- */

static bool custom_reach(struct tape *t, struct tape_record *r, enum tape_flag wants,
                         uint32_t *reads)
{
    uint64_t needs;
    if (custom_always(r))
        for (int o = 0; o < r->n_out; o++)
            t->entries[tape_record_out(r)[o]].flags |= TAPE_REACHED;
    if (!tape_reach_operands(t, r, wants, &needs))
        return false;
    *reads = needs && custom_of(r)->saves & TAPE_SAVES_OPERANDS ? UINT32_MAX : 0;
    return true;
}

static uint32_t custom_touches(const struct tape *t, struct tape_record *r)
{
    (void)t;
    return custom_of(r)->saves & TAPE_SAVES_OPERANDS ? UINT32_MAX : 0;
}

static uint64_t custom_saves_out(struct tape_record *r)
{
    const struct tape_custom *c = custom_of(r);
    const uint64_t results = c->saves & TAPE_SAVES_RESULTS ? UINT64_MAX >> (64 - c->n_results) : 0;
    return results | (c->own_bytes > 0 ? (uint64_t)1 << c->n_results : 0);
}

static const char *custom_name(struct tape_record *r)
{
    return custom_of(r)->name;
}

static enum tape_status custom_apply(struct tape *t, struct tape_record *r, const uint32_t *in,
                                     uint32_t *out)
{
    const struct tape_custom c = *custom_of(r);
    struct kernel_shape shape[TAPE_CUSTOM_MAX_OUT];
    for (uint32_t o = 0; o < c.n_results; o++) {
        const struct kernel_array *a = &t->entries[tape_record_out(r)[o]].array;
        shape[o] =
            (struct kernel_shape){.dtype = a->dtype, .rank = a->rank, .same_as = -1, .view_of = -1};
        memcpy(shape[o].extent, a->shape, a->rank * sizeof(int64_t));
    }
    const struct tape_custom_own own = {custom_own(t, r), c.own_bytes};
    return tape_custom(t, &c, r->n_in, in, shape, own, tape_row_site(t, r->row), out);
}

const struct record_kind tape_custom_kind = {.op = {.name = "custom"},
                                             .sweep = custom_sweep,
                                             .always = custom_always,
                                             .waits = custom_waits,
                                             .reach = custom_reach,
                                             .touches = custom_touches,
                                             .saves_out = custom_saves_out,
                                             .name = custom_name,
                                             .graph = custom_graph,
                                             .apply = custom_apply,
                                             .replay = custom_replay,
                                             .fixed = custom_fixed};
