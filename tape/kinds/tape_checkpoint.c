/* tape_checkpoint.c: see tape_checkpoint.h.
 *
 * The first call is dry: its ops tell which of its values need a gradient, but leave no records.
 * Results are values of their own afterwards, whatever the function returned: a buffer that is a
 * result whole changes hands, anything else (a view, an operand) is copied.
 */
#include "tape_checkpoint.h"

#include "tape_guard.h"
#include "tape_inplace.h"
#include "tape_now.h"
#include "tape_reach.h"
#include "tape_record_watch.h"
#include "tape_release.h"
#include "tape_scope.h"
#include "tape_sweep.h"

#include <string.h>

static const char checkpoint_name[] = "checkpoint";

/* What the record has for attributes. Its operands are the inputs, then what else was read. */
struct __attribute__((may_alias)) checkpoint {
    struct tape_function function;
    uint64_t signature;
    uint32_t n_ops;
    int32_t n_in;
};

static struct checkpoint *checkpoint_of(struct tape_record *r)
{
    return (struct checkpoint *)(void *)tape_record_attr(r);
}

/* ---- forward ---- */

/* A result on its way from behind the call to the value that it becomes. */
struct checkpoint_result {
    struct kernel_shape shape;
    void *data;
    uint32_t row;
    bool active; /* it needs a gradient */
    struct tape_age age;
};

struct job {
    struct tape *t;
    int n_in, n_out;
    const uint32_t *in;
    uint32_t row;
    struct tape_site site;
    struct tape_call call;
    struct tape_record *record; /* NULL: none was made */
    int n_kept;
    struct checkpoint_result result[TAPE_MAX_IN];
};

/* The buffer of a value of the call's that it fills whole, row-major, and that is nobody's yet. */
static struct tape_value *value_whole_buffer(const struct job *j, const struct tape_value *v)
{
    struct tape_value *root = &j->t->entries[v->root];
    const bool whole = v->root >= j->call.from.n_values &&
                       (root->flags & (TAPE_OWNS_DATA | TAPE_ON_DISK)) == TAPE_OWNS_DATA &&
                       v->array.contiguous && v->array.data == root->array.data &&
                       tape_value_bytes(v) == tape_value_bytes(root);
    return whole ? root : NULL;
}

static bool result_keep(struct job *j, uint32_t x)
{
    struct tape *t = j->t;
    const struct tape_value *v = &t->entries[x];
    struct checkpoint_result *r = &j->result[j->n_kept];
    const uint64_t n = tape_value_bytes(v);
    *r = (struct checkpoint_result){
        .shape = {.dtype = v->array.dtype, .rank = v->array.rank, .same_as = -1, .view_of = -1},
        .row = x < j->call.from.n_values ? j->row : v->row,
        .active = (v->flags & TAPE_NEEDS_GRADIENT) != 0,
        .age = {t->ticks, (uint32_t)t->ledger.peak_count}};
    memcpy(r->shape.extent, v->array.shape, v->array.rank * sizeof(int64_t));
    struct tape_value *root = value_whole_buffer(j, v);
    if (root) {
        r->data = root->array.data;
        r->row = root->row;
        root->flags &= ~(uint32_t)TAPE_OWNS_DATA;
        r->age = tape_account_hand_over(t, root);
    } else {
        r->data = tape_arena_buffer(&t->arena, n);
        if (!r->data)
            return false;
        tape_account_copy(t, r->row, n);
        tape_read(t, x, r->data);
    }
    j->n_kept++;
    return true;
}

static uint64_t result_bytes(const struct checkpoint_result *r)
{
    uint64_t n = kernel_dtype_bytes(r->shape.dtype);
    for (int d = 0; d < r->shape.rank; d++)
        n *= (uint64_t)r->shape.extent[d];
    return n;
}

/* Gives back what was kept. */
static void results_drop(struct job *j)
{
    for (; j->n_kept > 0; j->n_kept--) {
        const struct checkpoint_result *r = &j->result[j->n_kept - 1];
        tape_arena_free(&j->t->arena, r->data, result_bytes(r));
        tape_account_drop_copy(j->t, r->row, result_bytes(r));
    }
}

struct tape_record *tape_checkpoint_append(struct tape *t, const struct record_kind *kind,
                                           size_t size, const struct tape_call *call, uint32_t n_in,
                                           const uint32_t *in, int n_out, uint32_t first_out,
                                           uint32_t row)
{
    uint32_t n_read;
    const uint32_t *read = tape_call_read(t, call, &n_read);
    if (n_in + n_read > UINT16_MAX) {
        tape_fail(t, TAPE_ERROR_LIMIT, tape_row_site(t, row),
                  "%s: its function reads %u tensors from before it, at most %d are possible",
                  kind->op.name, n_in + n_read, UINT16_MAX);
        return NULL;
    }
    for (uint32_t k = 0; k < n_in + n_read; k++)
        if (!tape_guard_whole(t, k < n_in ? in[k] : read[k - n_in], row))
            return NULL;
    struct tape_record *r =
        tape_record_append(t, kind, (uint16_t)(n_in + n_read), (uint8_t)n_out, size, 0, row);
    if (!r)
        return NULL;
    if (n_in > 0)
        memcpy(tape_record_in(r), in, n_in * sizeof *in);
    if (n_read > 0)
        memcpy(tape_record_in(r) + n_in, read, n_read * sizeof *read);
    for (int o = 0; o < n_out; o++)
        tape_record_out(r)[o] = first_out + (uint32_t)o;
    return r;
}

void tape_checkpoint_appended(struct tape *t, struct tape_record *r, uint32_t last_guard)
{
    tape_account_guards(t, last_guard);
    tape_account_kept(t, r);
    if (t->hook)
        tape_scope_records++;
}

static struct tape_record *checkpoint_record(struct job *j, const struct tape_function *f,
                                             uint32_t first_out)
{
    struct tape_record *r =
        tape_checkpoint_append(j->t, &tape_checkpoint_kind, sizeof(struct checkpoint), &j->call,
                               (uint32_t)j->n_in, j->in, j->n_out, first_out, j->row);
    if (r)
        *checkpoint_of(r) = (struct checkpoint){.function = *f,
                                                .signature = j->call.signature,
                                                .n_ops = j->call.n_ops,
                                                .n_in = j->n_in};
    return r;
}

/* The results become values, and a record if a sweep may come to one of them. */
static bool results_publish(struct job *j, const struct tape_function *f, uint32_t *out)
{
    struct tape *t = j->t;
    const struct tape_point point = tape_point_take(t);
    const uint32_t first = t->n_values;
    bool active = false, made = true;
    for (int o = 0; o < j->n_out && made; o++) {
        struct checkpoint_result *r = &j->result[o];
        made = tape_value_over(t, &r->shape, r->data, r->row) != NULL;
        active = active || r->active;
    }
    active = active && !t->no_grad;
    if (made && active && !j->call.dry)
        made = (j->record = checkpoint_record(j, f, first)) != NULL;
    if (!made) {
        tape_point_undo(t, point);
        return false;
    }
    for (int o = 0; o < j->n_out; o++) {
        struct tape_value *v = &t->entries[first + (uint32_t)o];
        tape_account_value(t, v);
        tape_account_adopt(t, v, j->result[o].age);
        v->flags |= TAPE_OWNS_DATA | (j->result[o].active && active ? TAPE_NEEDS_GRADIENT : 0u);
        out[o] = first + (uint32_t)o;
    }
    if (j->record)
        tape_checkpoint_appended(t, j->record, point.last_guard);
    return true;
}

enum tape_status tape_checkpoint(struct tape *t, const struct tape_function *f, int n_in,
                                 const uint32_t *in, int n_out, uint32_t *out,
                                 struct tape_site site)
{
    struct job j = {.t = t, .n_in = n_in, .n_out = n_out, .in = in, .site = site};
    tape_observed(t);
    uint64_t start = tape_account_start(t);
    j.row = tape_account_row(t, site, checkpoint_name);
    if (!tape_call_begin(t, &j.call, n_in, in, true))
        return tape_fail_memory(t, site, checkpoint_name);
    tape_account_ran(t, j.row, start, NULL, 0);
    const struct tape_path_root root = {site.pc, tape_row(t, j.row)->path}, *outer = t->root;
    t->root = &root;
    bool done = f->run(t, f, n_in, in, n_out, out, site);
    t->root = outer;
    start = tape_account_start(t);
    if (done)
        tape_call_results(t, n_out, out);
    for (int o = 0; o < n_out && done; o++)
        done = result_keep(&j, out[o]);
    tape_call_drop(t, &j.call);
    done = done && results_publish(&j, f, out);
    if (!done) {
        results_drop(&j);
        memset(out, 0, (size_t)n_out * sizeof *out);
        if (t->error.code == TAPE_OK)
            tape_fail_memory(t, site, checkpoint_name);
    }
    tape_call_end(t, &j.call);
    tape_account_ran(t, j.row, start, j.record, 1);
    if (j.record)
        tape_watch_record(t, j.record, n_out, site);
    return done ? TAPE_OK : t->error.code;
}

/* ---- backward ---- */

/* The function did what it had done, to the same values. */
static bool checkpoint_verify(struct tape *t, struct tape_record *r, const struct tape_call *call)
{
    const struct checkpoint *c = checkpoint_of(r);
    if (call->signature == c->signature && call->n_ops == c->n_ops)
        return true;
    tape_fail(
        t, TAPE_ERROR_STATE, tape_row_site(t, r->row),
        "checkpoint: its function did not do the same again: %u ops in the sweep, %u before%s; "
        "the call is",
        call->n_ops, c->n_ops,
        call->n_ops == c->n_ops ? ", on other operands, attributes or constants" : "");
    return false;
}

/* The adjoints of the record's outputs become those of the function's results. */
static bool adjoints_hand_over(struct tape *t, struct tape_record *r, const uint32_t *result)
{
    for (int o = 0; o < r->n_out; o++) {
        struct tape_value *v = &t->entries[tape_record_out(r)[o]], *to = &t->entries[result[o]];
        const uint64_t n = tape_value_bytes(v);
        bool fresh;
        if (!v->adjoint || !(to->flags & TAPE_NEEDS_GRADIENT))
            continue;
        if (!to->adjoint && !(to->flags & TAPE_LEAF)) {
            to->adjoint = v->adjoint;
            v->adjoint = NULL;
            if (to->row != v->row) {
                tape_account_free(t, v->row, n);
                tape_account_buffer(t, to->row, n);
            }
            continue;
        }
        if (!tape_adjoint_buffer(t, to, &fresh))
            return false;
        tape_add_into(to, to->adjoint, v->adjoint, fresh);
        tape_adjoint_set(t, to);
    }
    return true;
}

void tape_again_begin(struct tape *t, const struct tape_record *r, struct tape_again *a,
                      uint64_t *stamp)
{
    const struct tape_row *row = tape_row(t, r->row);
    *a = (struct tape_again){.root = {t->swept_from, row->path},
                             .outer = t->root,
                             .stamp = t->stamp,
                             .before = tape_activity_begin(t, TAPE_PHASE_RECOMPUTE, stamp),
                             .scope = t->hook ? tape_scope_again_begin(row->scope) : 0};
    t->root = &a->root;
    t->no_grad = 0; /* as it was; the call's end restores what is */
}

void tape_again_end(struct tape *t, const struct tape_record *r, const struct tape_again *a)
{
    t->root = a->outer;
    if (t->hook)
        tape_scope_again_end(a->scope);
    tape_account_ran(t, r->row, 0, NULL, 1);
    tape_activity_begin(t, a->before, a->stamp);
}

/* Runs the function of a record again, recording. */
static bool checkpoint_rerun(struct tape *t, struct tape_record *r, uint32_t *result,
                             uint64_t *stamp)
{
    const struct checkpoint *c = checkpoint_of(r);
    struct tape_again again;
    TAPE_DOING(t, TAPE_PHASE_RECOMPUTE, tape_row_site(t, r->row), checkpoint_name);
    tape_now_path(t, r->row);
    tape_again_begin(t, r, &again, stamp);
    const bool done = c->function.run(t, &c->function, c->n_in, tape_record_in(r), r->n_out, result,
                                      tape_row_site(t, r->row));
    tape_again_end(t, r, &again);
    if (done)
        tape_call_results(t, r->n_out, result);
    return done;
}

static bool checkpoint_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    uint32_t result[TAPE_MAX_IN];
    struct tape_call call;
    tape_release_wake(t, r->n_in, tape_record_in(r), true);
    const bool begun = tape_call_begin(t, &call, checkpoint_of(r)->n_in, tape_record_in(r), false);
    const bool same =
        begun && checkpoint_rerun(t, r, result, stamp) && checkpoint_verify(t, r, &call);
    tape_release_wake(t, r->n_in, tape_record_in(r), false);
    if (!begun)
        return false;
    tape_call_end(t, &call);
    const bool handed = same && adjoints_hand_over(t, r, result);
    const bool done = handed && tape_sweep_behind(t, call.from.last_record, stamp);
    for (int o = 0; o < r->n_out && same && !handed; o++)
        if (result[o] >= call.from.n_values)
            tape_adjoint_free(t, &t->entries[result[o]]);
    tape_call_drop(t, &call);
    return done;
}

static bool checkpoint_again(struct tape *t, struct tape_record *r, uint32_t *result)
{
    struct tape_call call;
    const uint64_t charged = tape_scope_charged; /* to sweeps: this is none */
    tape_release_wake(t, r->n_in, tape_record_in(r), true);
    const bool begun = tape_call_begin(t, &call, checkpoint_of(r)->n_in, tape_record_in(r), false);
    const bool same =
        begun && checkpoint_rerun(t, r, result, t->stamp) && checkpoint_verify(t, r, &call);
    tape_release_wake(t, r->n_in, tape_record_in(r), false);
    tape_scope_charged = charged;
    if (!begun)
        return false;
    if (same)
        tape_call_keep(t, &call);
    else
        tape_call_drop(t, &call);
    tape_call_end(t, &call);
    return same;
}

/* ---- the kind ---- */

bool tape_checkpoint_reach(struct tape *t, struct tape_record *r, enum tape_flag wants,
                           uint32_t *reads)
{
    uint64_t needs;
    if (!tape_reach_operands(t, r, wants, &needs))
        return false;
    *reads = needs ? UINT32_MAX : 0;
    return true;
}

uint32_t tape_checkpoint_touches(const struct tape *t, struct tape_record *r)
{
    (void)t, (void)r;
    return UINT32_MAX;
}

const struct record_kind tape_checkpoint_kind = {.op = {.name = checkpoint_name},
                                                 .sweep = checkpoint_sweep,
                                                 .reach = tape_checkpoint_reach,
                                                 .touches = tape_checkpoint_touches,
                                                 .again = checkpoint_again};
