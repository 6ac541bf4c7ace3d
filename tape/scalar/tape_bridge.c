/* tape_bridge.c: see tape_bridge.h.
 *
 * Values are copied once in each direction, whatever their strides.
 */
#include "tape_bridge.h"

#include "tape_adjoints.h"
#include "tape_call.h"
#include "tape_fork.h"
#include "tape_inplace.h"
#include "tape_now.h"
#include "tape_poison.h"
#include "tape_reach.h"
#include "tape_record_watch.h"
#include "tape_replay.h"
#include "tape_sweep.h"
#include "tape_value.h"

#include <string.h>

/* Elements of one tensor: the size of its record fits into 32 bits. */
enum { GATHER_MOST = 1 << 29 };

static uint32_t *gather_indices(struct tape_record *r)
{
    return tape_record_out(r) + r->n_out;
}

static void bridge_account(struct tape *t, uint32_t row, int64_t n, size_t bytes, uint64_t start)
{
    if (!t->hook)
        return;
    const uint64_t now = tape_clock(t);
    struct tape_row *r = tape_row(t, row);
    const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
    TAPE_ADD(*(again ? &r->recompute_moved : &r->forward_moved), (uint64_t)n * bytes);
    start = tape_account_until(t, r, start, now, 1);
    tape_account_event(t, TAPE_EVENT_FORWARD, row, tape_record_at(t, t->last_record), start, now,
                       false);
}

/* ---- from a tensor ---- */

/* n elements that lie `stride` apart; index 0: constants, else of the first. */
#define COPY(name, type)                                                                           \
    static void name(const void *data, int64_t n, int64_t stride, uint32_t index, uint32_t tag,    \
                     struct tape_real *y)                                                          \
    {                                                                                              \
        const type *x = data;                                                                      \
        const uint32_t step = index != 0;                                                          \
        for (int64_t i = 0; i < n; i++, index += step)                                             \
            y[i] = (struct tape_real){(double)x[i * stride], index, tag};                          \
    }
COPY(copy_f32, float)
COPY(copy_f64, double)
COPY(copy_i64, int64_t)

static void elements_copy(const struct kernel_array *a, uint32_t index, uint32_t tag,
                          struct tape_real *y)
{
    void (*const copy_row)(const void *, int64_t, int64_t, uint32_t, uint32_t, struct tape_real *) =
        a->dtype == KERNEL_F32   ? copy_f32
        : a->dtype == KERNEL_F64 ? copy_f64
                                 : copy_i64;
    if (a->contiguous || a->size == 0) {
        copy_row(a->data, a->size, 1, index, tag, y);
        return;
    }
    const int last = a->rank - 1; /* what is not contiguous has axes */
    const int64_t n = a->shape[last];
    int64_t place[KERNEL_MAX_RANK] = {0};
    for (int64_t done = 0; done < a->size; done += n) {
        int64_t at = 0;
        for (int d = 0; d < last; d++)
            at += place[d] * a->strides[d];
        copy_row((const char *)a->data + at * (int64_t)kernel_dtype_bytes(a->dtype), n,
                 a->strides[last], index ? index + (uint32_t)done : 0, tag, y + done);
        for (int d = last - 1; d >= 0 && ++place[d] == a->shape[d]; d--)
            place[d] = 0;
    }
}

static void bridge_constants(const struct tape *t, uint32_t x, struct tape_real *y)
{
    elements_copy(&t->entries[x].array, 0, 0, y);
}

enum tape_status tape_bridge_reals(struct tape *t, uint32_t x, struct tape_real *y,
                                   struct tape_site site)
{
    struct tape_statements *s = t->statements;
    const char *what = tape_elements_kind.op.name;
    tape_observed(t);
    if (t->calls.innermost && t->calls.innermost->of_scalars) {
        bridge_constants(t, x, y);
        return tape_call_refuse(t, what, site);
    }
    TAPE_DOING(t, tape_phase_forward(t), site, what);
    const uint64_t start = tape_account_start(t);
    tape_settle(t);
    const struct tape_value *v = &t->entries[x];
    const int64_t n = v->array.size;
    const uint32_t row = tape_account_row(t, site, what), left = tape_statement_left(t);
    tape_now_path(t, row);
    uint32_t first = 0, tag = 0;
    if ((v->flags & TAPE_NEEDS_GRADIENT) && !t->no_grad && n > 0) {
        struct tape_record *r = NULL;
        enum tape_status status = TAPE_OK;
        if (t->calls.innermost)
            status = tape_call_refuse(t, what, site);
        else if (n > (int64_t)left)
            status = tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: %lld, and %u indices are left", what,
                               (long long)n, (unsigned)left);
        else if (!(r = tape_record_of_kind(t, &tape_elements_kind, sizeof(struct tape_leaves), 0,
                                           row)))
            status = tape_fail_memory(t, site, what);
        if (!r) {
            bridge_constants(t, x, y);
            return status;
        }
        first = tape_statement_results(t, (uint32_t)n);
        tag = (uint32_t)(s->rest.result >> 32);
        *tape_leaves_of(r) = (struct tape_leaves){first, (uint32_t)n};
        tape_record_in(r)[0] = x;
        s->n_elements++;
    }
    if (!tape_call_reads(t, x)) {
        bridge_constants(t, x, y);
        return tape_fail_memory(t, site, what);
    }
    tape_replay_reads(t, x, what, site);
    elements_copy(&v->array, first, tag, y);
    bridge_account(t, row, n, kernel_dtype_bytes(v->array.dtype) + sizeof *y, start);
    if (first)
        tape_watch_numbers(t, what, site, first, (uint32_t)n, y[0].value);
    return TAPE_OK;
}

/* Whether any of n adjoints is other than zero. */
static bool adjoints_any(const double *adjoint, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (adjoint[i] != 0)
            return true;
    return false;
}

/* Elements, or leaves: to the value that is the record's operand, unless it needs no gradient or
 * nothing but zeros has come. */
static bool elements_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    (void)stamp;
    if (t->reading)
        return true;
    const struct tape_leaves *x = tape_leaves_of(r);
    struct tape_value *v = &t->entries[tape_record_in(r)[0]];
    const double *from = t->statements->adjoint + x->first;
    if (!(v->flags & TAPE_NEEDS_GRADIENT) || !adjoints_any(from, x->n))
        return true;
    bool fresh;
    if (!tape_adjoint_buffer(t, v, &fresh))
        return false;
    if (v->array.dtype == KERNEL_F64)
        tape_add_into(v, v->adjoint, from, fresh);
    else
        for (uint32_t i = 0; i < x->n; i++)
            ((float *)v->adjoint)[i] = (float)from[i] + (fresh ? 0 : ((float *)v->adjoint)[i]);
    tape_adjoint_set(t, v);
    return true;
}

/* ---- to a tensor ---- */

/* Whether shape and elements are fit; *size, and *active if there is a variable among them. */
static enum tape_status gather_check(struct tape *t, int rank, const int64_t *shape,
                                     const struct tape_real *x, struct tape_site site,
                                     int64_t *size, bool *active)
{
    const char *what = tape_gather_kind.op.name;
    if (tape_extents_check(t, what, rank, shape, site) != TAPE_OK)
        return t->error.code;
    int64_t stride[KERNEL_MAX_RANK];
    const int64_t n = *size = kernel_strides(rank, shape, sizeof(double), stride);
    if (n < 0)
        return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: the size of the shape overflows", what);
    if (n > GATHER_MOST)
        return tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: %lld elements, at most %d", what,
                         (long long)n, GATHER_MOST);
    if (n > 0 && !x)
        return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: x is a null pointer", what);
    return tape_statement_check(t, what, "x", n, x, site, active);
}

enum tape_status tape_bridge_tensor(struct tape *t, int rank, const int64_t *shape,
                                    const struct tape_real *x, struct tape_site site, uint32_t *out)
{
    const char *what = tape_gather_kind.op.name;
    tape_observed(t);
    TAPE_DOING(t, tape_phase_forward(t), site, what);
    const uint64_t start = tape_account_start(t);
    int64_t n = 0;
    bool active = false;
    tape_settle(t);
    const enum tape_status status = gather_check(t, rank, shape, x, site, &n, &active);
    if (status != TAPE_OK)
        return status;
    active = active && !t->no_grad;
    if (t->calls.innermost && (active || t->calls.innermost->of_scalars))
        return tape_call_refuse(t, what, site);
    if (active && t->fork->base)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "%s: a fork records statements alone; join it, and make the tensor on its "
                         "parent",
                         what);
    const struct tape_point point = tape_point_take(t);
    const uint32_t row = tape_account_row(t, site, what);
    tape_now_path(t, row);
    struct kernel_shape like = {
        .dtype = KERNEL_F64, .rank = (uint8_t)rank, .same_as = -1, .view_of = -1};
    if (rank > 0)
        memcpy(like.extent, shape, (size_t)rank * sizeof *shape);
    struct tape_value *v = tape_value_make(t, &like, NULL, row);
    struct tape_record *r = NULL;
    if (v && active)
        r = tape_record_of_kind(t, &tape_gather_kind, 0, (size_t)n * sizeof(uint32_t), row);
    if (!v || (active && !r)) {
        tape_point_undo(t, point);
        return tape_fail_memory(t, site, what);
    }
    double *data = v->array.data;
    *out = tape_value_index(t, v);
    if (r) {
        uint32_t *index = gather_indices(r);
        for (int64_t i = 0; i < n; i++) {
            data[i] = x[i].value;
            index[i] = x[i].index;
        }
        tape_record_out(r)[0] = *out;
        v->flags |= TAPE_NEEDS_GRADIENT;
        t->statements->n_gathers++;
    } else {
        for (int64_t i = 0; i < n; i++)
            data[i] = x[i].value;
    }
    tape_call_constant(t, v);
    tape_account_value(t, v);
    bridge_account(t, row, n, sizeof *x + sizeof *data, start);
    if (r)
        tape_watch_record(t, r, 1, site);
    return TAPE_OK;
}

/* A tensor of scalars: to them. */
static bool gather_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    (void)stamp;
    const struct tape_value *v = &t->entries[tape_record_out(r)[0]];
    const double *from = v->adjoint;
    const uint32_t *index = gather_indices(r);
    double *to = t->statements->adjoint; /* that of index 0, the constants', is nobody's */
    for (int64_t i = 0; i < v->array.size; i++)
        to[index[i]] += from[i];
    return true;
}

/* ---- sweeps that leave gradients alone ---- */

void tape_bridge_detach_retained(struct tape *t)
{
    for (uint32_t i = 1; i < t->n_values; i++) {
        uint32_t *flags = &t->entries[i].flags;
        if ((*flags & TAPE_LEAF) && (*flags & TAPE_NEEDS_GRADIENT))
            *flags = (*flags & ~(uint32_t)TAPE_NEEDS_GRADIENT) | TAPE_DETACHED;
        if (*flags & TAPE_RETAIN)
            *flags = (*flags & ~(uint32_t)TAPE_RETAIN) | TAPE_UNRETAINED;
    }
}

void tape_bridge_attach_retained(struct tape *t)
{
    for (uint32_t i = 1; i < t->n_values; i++) {
        uint32_t *flags = &t->entries[i].flags;
        if (*flags & TAPE_DETACHED)
            *flags = (*flags & ~(uint32_t)TAPE_DETACHED) | TAPE_NEEDS_GRADIENT;
        if (*flags & TAPE_UNRETAINED)
            *flags = (*flags & ~(uint32_t)TAPE_UNRETAINED) | TAPE_RETAIN;
    }
}

/* ---- which records a sweep comes to ---- */

bool tape_bridge_reach_begin(struct tape *t)
{
    struct tape_statements *s = t->statements;
    s->reached = NULL;
    /* Only from the elements of a tensor does a walk over scalars come to anything. */
    const int64_t n_roots = t->verified ? t->verified->n_roots : 0;
    if (s->n_elements == 0 || (s->n_gathers == 0 && n_roots == 0))
        return true;
    const size_t n = tape_statement_next(t);
    s->reached = t->memory->resize(NULL, n, t->memory->payload);
    if (!s->reached) {
        t->arena.refused = n;
        return false;
    }
    memset(s->reached, 0, n);
    for (int64_t i = 0; i < n_roots; i++)
        s->reached[t->verified->root[i]] = 1;
    return true;
}

void tape_bridge_reach_end(struct tape *t)
{
    if (t->statements->reached)
        t->memory->release(t->statements->reached, t->memory->payload);
    t->statements->reached = NULL;
}

static bool elements_reach(struct tape *t, struct tape_record *r, enum tape_flag wants,
                           uint32_t *reads)
{
    const uint8_t *of = t->statements->reached;
    const struct tape_leaves *x = tape_leaves_of(r);
    struct tape_value *v = &t->entries[tape_record_in(r)[0]];
    (void)reads;
    const bool reached = of && memchr(of + x->first, 1, x->n);
    if (reached && (v->flags & (uint32_t)wants))
        v->flags |= TAPE_REACHED;
    return reached;
}

static bool gather_reach(struct tape *t, struct tape_record *r, enum tape_flag wants,
                         uint32_t *reads)
{
    uint8_t *of = t->statements->reached;
    const uint32_t *index = gather_indices(r);
    const int64_t n = t->entries[tape_record_out(r)[0]].array.size;
    const bool reached = tape_reach_output(t, r);
    (void)wants, (void)reads;
    for (int64_t i = 0; i < n && reached && of; i++)
        of[index[i]] = 1;
    return reached;
}

/* ---- the kinds ---- */

const struct record_kind tape_leaves_kind = {.op = {.name = "leaves", .n_in = 1},
                                             .sweep = elements_sweep,
                                             .seeded = tape_adjoints_seeded,
                                             .reach = elements_reach};
const struct record_kind tape_elements_kind = {.op = {.name = "reals_of_tensor", .n_in = 1},
                                               .sweep = elements_sweep,
                                               .seeded = tape_adjoints_seeded,
                                               .reach = elements_reach,
                                               .gives_scalars = true};
const struct record_kind tape_gather_kind = {
    .op = {.name = "tensor_of_reals", .n_out = 1}, .sweep = gather_sweep, .reach = gather_reach};
