/* tape_bridge.c: see tape_bridge.h.
 *
 * May include: tape_bridge.h, tape_call.h, tape_fork.h, tape_inplace.h, tape_now.h,
 * tape_real_checkpoint.h, tape_segment.h, tape_value.h. Values are copied once in each direction,
 * whatever their strides.
 */
#include "tape_bridge.h"

#include "tape_call.h"
#include "tape_fork.h"
#include "tape_inplace.h"
#include "tape_now.h"
#include "tape_real_checkpoint.h"
#include "tape_segment.h"
#include "tape_value.h"

#include <string.h>

const struct kernel_op tape_elements_op = {.name = "reals_of_tensor", .n_in = 1};
const struct kernel_op tape_gather_op = {.name = "tensor_of_reals", .n_out = 1};

/* Elements of one tensor: the size of its record fits into 32 bits. */
enum { GATHER_MOST = 1 << 29 };

static uint32_t *gathered(struct tape_record *r)
{
    return tape_record_out(r) + r->n_out;
}

static void account(struct tape *t, uint32_t row, int64_t n, size_t bytes, uint64_t start)
{
    if (!t->hook)
        return;
    const uint64_t now = tape_clock(t);
    struct tape_row *r = tape_row(t, row);
    const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
    TAPE_ADD(*(again ? &r->recompute_moved : &r->forward_moved), (uint64_t)n * bytes);
    start = tape_account_until(t, row, start, now, 1);
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

static void copy(const struct kernel_array *a, uint32_t index, uint32_t tag, struct tape_real *y)
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

void tape_bridge_constants(const struct tape *t, uint32_t x, struct tape_real *y)
{
    copy(&t->entries[x].array, 0, 0, y);
}

enum tape_status tape_bridge_reals(struct tape *t, uint32_t x, struct tape_real *y,
                                   struct tape_site site)
{
    struct tape_statements *s = &t->statements;
    const char *what = tape_elements_op.name;
    tape_observed(t);
    if (t->calls.innermost && t->calls.innermost->of_scalars) {
        tape_bridge_constants(t, x, y);
        return tape_call_refuse(t, what, site);
    }
    TAPE_DOING(t, tape_phase_forward(t), site, what);
    const uint64_t start = tape_account_start(t);
    tape_statement_settle(t);
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
        else if (!(r = tape_statement_record(t, &tape_elements_op, sizeof(struct tape_leaves), 0,
                                             row)))
            status = tape_fail_memory(t, site, what);
        if (!r) {
            tape_bridge_constants(t, x, y);
            return status;
        }
        first = tape_statement_results(t, (uint32_t)n);
        tag = (uint32_t)(s->rest.result >> 32);
        *tape_leaves_of(r) = (struct tape_leaves){first, (uint32_t)n};
        tape_record_in(r)[0] = x;
        s->n_elements++;
    }
    if (!tape_call_reads(t, x)) {
        tape_bridge_constants(t, x, y);
        return tape_fail_memory(t, site, what);
    }
    copy(&v->array, first, tag, y);
    account(t, row, n, kernel_dtype_bytes(v->array.dtype) + sizeof *y, start);
    return TAPE_OK;
}

/* Whether any of n adjoints is other than zero. */
static bool any(const double *adjoint, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (adjoint[i] != 0)
            return true;
    return false;
}

bool tape_bridge_to_value(struct tape *t, struct tape_record *r)
{
    const struct tape_leaves *x = tape_leaves_of(r);
    struct tape_value *v = &t->entries[tape_record_in(r)[0]];
    const double *from = t->statements.adjoint + x->first;
    if (!(v->flags & TAPE_NEEDS_GRADIENT) || !any(from, x->n))
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
static enum tape_status check(struct tape *t, int rank, const int64_t *shape,
                              const struct tape_real *x, struct tape_site site, int64_t *size,
                              bool *active)
{
    const char *what = tape_gather_op.name;
    if (rank < 0 || rank > KERNEL_MAX_RANK)
        return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: rank %d is not in 0…%d", what, rank,
                         KERNEL_MAX_RANK);
    if (rank > 0 && !shape)
        return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: shape is a null pointer", what);
    for (int d = 0; d < rank; d++)
        if (shape[d] < 0)
            return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: extent %d is negative: %lld", what, d,
                             (long long)shape[d]);
    int64_t stride[KERNEL_MAX_RANK];
    const int64_t n = *size = kernel_strides(rank, shape, sizeof(double), stride);
    if (n < 0)
        return tape_fail(t, TAPE_ERROR_SHAPE, site, "%s: the size of the shape overflows", what);
    if (n > GATHER_MOST)
        return tape_fail(t, TAPE_ERROR_LIMIT, site, "%s: %lld elements, at most %d", what,
                         (long long)n, GATHER_MOST);
    if (n > 0 && !x)
        return tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: x is a null pointer", what);
    uint32_t tag = 0, from = 1, end = 0; /* those of most elements are the same */
    for (int64_t i = 0; i < n; i++) {
        if (!x[i].index)
            continue;
        *active = true;
        if (x[i].tag != tag && !tape_statement_tagged(t, tag = x[i].tag, &from, &end))
            end = 0;
        if (x[i].index < from || x[i].index >= end)
            return tape_fail(
                t, TAPE_ERROR_HANDLE, site,
                "%s: x[%lld] is no value of this tape: it was dropped, never set, or is another's",
                what, (long long)i);
    }
    return TAPE_OK;
}

enum tape_status tape_bridge_tensor(struct tape *t, int rank, const int64_t *shape,
                                    const struct tape_real *x, struct tape_site site, uint32_t *out)
{
    const char *what = tape_gather_op.name;
    tape_observed(t);
    TAPE_DOING(t, tape_phase_forward(t), site, what);
    const uint64_t start = tape_account_start(t);
    int64_t n = 0;
    bool active = false;
    tape_statement_settle(t);
    const enum tape_status status = check(t, rank, shape, x, site, &n, &active);
    if (status != TAPE_OK)
        return status;
    active = active && !t->no_grad;
    if (t->calls.innermost && (active || t->calls.innermost->of_scalars))
        return tape_call_refuse(t, what, site);
    if (active && t->fork.base)
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
        r = tape_statement_record(t, &tape_gather_op, 0, (size_t)n * sizeof(uint32_t), row);
    if (!v || (active && !r)) {
        tape_point_undo(t, point);
        return tape_fail_memory(t, site, what);
    }
    double *data = v->array.data;
    *out = tape_value_index(t, v);
    if (r) {
        uint32_t *index = gathered(r);
        for (int64_t i = 0; i < n; i++) {
            data[i] = x[i].value;
            index[i] = x[i].index;
        }
        tape_record_out(r)[0] = *out;
        v->flags |= TAPE_NEEDS_GRADIENT;
        t->statements.n_gathers++;
    } else {
        for (int64_t i = 0; i < n; i++)
            data[i] = x[i].value;
    }
    tape_call_constant(t, v);
    tape_account_value(t, v);
    account(t, row, n, sizeof *x + sizeof *data, start);
    return TAPE_OK;
}

void tape_bridge_to_scalars(struct tape *t, struct tape_record *r)
{
    const struct tape_value *v = &t->entries[tape_record_out(r)[0]];
    const double *from = v->adjoint;
    const uint32_t *index = gathered(r);
    double *to = t->statements.adjoint; /* that of index 0, the constants', is nobody's */
    for (int64_t i = 0; i < v->array.size; i++)
        to[index[i]] += from[i];
}

/* ---- sweeps that leave gradients alone ---- */

void tape_bridge_hush(struct tape *t)
{
    for (uint32_t i = 1; i < t->n_values; i++) {
        uint32_t *flags = &t->entries[i].flags;
        if ((*flags & TAPE_LEAF) && (*flags & TAPE_NEEDS_GRADIENT))
            *flags = (*flags & ~(uint32_t)TAPE_NEEDS_GRADIENT) | TAPE_HUSHED;
        if (*flags & TAPE_RETAIN)
            *flags = (*flags & ~(uint32_t)TAPE_RETAIN) | TAPE_UNKEPT;
    }
}

void tape_bridge_unhush(struct tape *t)
{
    for (uint32_t i = 1; i < t->n_values; i++) {
        uint32_t *flags = &t->entries[i].flags;
        if (*flags & TAPE_HUSHED)
            *flags = (*flags & ~(uint32_t)TAPE_HUSHED) | TAPE_NEEDS_GRADIENT;
        if (*flags & TAPE_UNKEPT)
            *flags = (*flags & ~(uint32_t)TAPE_UNKEPT) | TAPE_RETAIN;
    }
}

/* ---- which records a sweep comes to ---- */

bool tape_bridge_reach_begin(struct tape *t)
{
    struct tape_statements *s = &t->statements;
    s->reached = NULL;
    /* Only from the elements of a tensor does a walk over scalars come to anything. */
    if (s->n_elements == 0 || (s->n_gathers == 0 && s->n_roots == 0))
        return true;
    const size_t n = tape_statement_next(t);
    s->reached = t->memory->resize(NULL, n, t->memory->payload);
    if (!s->reached) {
        t->arena.refused = n;
        return false;
    }
    memset(s->reached, 0, n);
    for (int64_t i = 0; i < s->n_roots; i++)
        s->reached[s->root[i]] = 1;
    return true;
}

static void reach_statements(const struct tape_run *run, uint8_t *reached)
{
    size_t result = (size_t)run->first + run->n;
    for (const uint32_t *w = run->word_end; w < run->word_begin; w += w[0] + 2)
        if (reached[--result])
            for (uint32_t k = 0; k < w[0]; k++)
                reached[w[2 + k]] = 1;
}

/* A segment's results depend on all of its operands. */
static void reach_segment(const struct tape_segment *s, uint8_t *reached)
{
    const struct tape_segment_in *in = tape_segment_in(s), *end = in + tape_segment_n_in(s);
    const uint32_t *index = (const uint32_t *)(const void *)end;
    if (!memchr(reached + s->first, 1, s->m))
        return;
    for (; in < end; in++) {
        if (in->first == TAPE_INDICES_FOLLOW)
            for (uint32_t i = 0; i < in->n; i++)
                reached[*index++] = 1;
        else if (in->first != TAPE_NO_INDICES)
            memset(reached + in->first, 1, in->n);
    }
}

static void reach_run(const struct tape_run *run, uint8_t *reached)
{
    struct tape_run_part part = tape_run_last(run);
    do {
        reach_statements(&part.statements, reached);
        if (part.segment)
            reach_segment(part.segment, reached);
    } while (tape_run_previous(run, &part));
}

/* What a fork gave depends on any of the parent's values, from the first that it names to the
 * last. */
static void reach_join(const struct tape_join *join, uint8_t *reached)
{
    const struct tape_fork *f = &join->child->fork;
    tape_fork_look(join->child);
    if (f->low <= f->high && memchr(reached + join->first, 1, join->n))
        memset(reached + f->low, 1, f->high - f->low + 1);
}

bool tape_bridge_reach(struct tape *t, struct tape_record *r, bool reached, enum tape_flag wants)
{
    uint8_t *of = t->statements.reached;
    if (!of)
        return reached;
    if (r->op == &tape_statement_op) {
        reach_run(tape_run_of(r), of);
    } else if (r->op == &tape_join_op) {
        reach_join(tape_join_of(r), of);
    } else if (r->op == &tape_real_checkpoint_op) {
        tape_real_checkpoint_reach(r, of);
    } else if (r->n_out > 0) {
        const uint32_t *index = gathered(r);
        const int64_t n = t->entries[tape_record_out(r)[0]].array.size;
        for (int64_t i = 0; i < n && reached; i++)
            of[index[i]] = 1;
    } else {
        const struct tape_leaves *x = tape_leaves_of(r);
        struct tape_value *v = &t->entries[tape_record_in(r)[0]];
        reached = memchr(of + x->first, 1, x->n) != NULL;
        if (reached && (v->flags & (uint32_t)wants))
            v->flags |= TAPE_REACHED;
    }
    return reached;
}

void tape_bridge_reach_end(struct tape *t)
{
    if (t->statements.reached)
        t->memory->release(t->statements.reached, t->memory->payload);
    t->statements.reached = NULL;
}
