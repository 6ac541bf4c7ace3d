/* tape_inplace.c: pullbacks in place: kernels write or add straight into adjoint buffers.
 *
 * A first contribution overwrites a fresh buffer (beta = 0), later ones add (beta = 1);
 * contributions to a broadcast operand are summed by the kernel. Where the first contribution is
 * an output's own adjoint or a temporary, that buffer is handed over instead of copied; only at the
 * end of the pullback, since the rule may still read it.
 */
#include "tape_inplace.h"

#include "kernel_ops.h"
#include "kernel_wide.h"
#include "tape_teller.h"

#include <string.h>

enum { MAX_TEMPORARIES = 112 };

struct temporary {
    struct kernel_array array;
    struct kernel_shape shape; /* holds the array's extents and strides */
    bool owns;
};

/* Who takes over a buffer at the end of the pullback. */
struct handover {
    struct tape_value *value;
    int output, temporary; /* whose buffer it is: an output's adjoint or, output < 0, a temporary */
};

struct context {
    struct kernel_rule rule; /* first: the rule is the context */
    struct tape *t;
    struct tape_record *record;
    struct kernel_array adjoint[KERNEL_MAX_OUT];
    int64_t stride[KERNEL_MAX_OUT][KERNEL_MAX_RANK];
    int n_temporaries, n_handovers;
    bool failed;
    struct handover handover[KERNEL_MAX_IN];
    struct temporary temporary[MAX_TEMPORARIES];
};

void *tape_adjoint_buffer(struct tape *t, struct tape_value *v, bool *fresh)
{
    *fresh = !tape_has_adjoint(t, v);
    if (!v->adjoint) {
        const uint64_t n = tape_adjoint_bytes(t, v);
        v->adjoint = tape_arena_buffer(&t->arena, n);
        if (v->adjoint)
            tape_account_buffer(t, v->row, n);
    }
    return v->adjoint;
}

void tape_adjoint_free(struct tape *t, struct tape_value *v)
{
    if ((v->flags & TAPE_LEAF) || !v->adjoint)
        return;
    if (v->adjoint == t->lent) {
        v->adjoint = NULL;
        return;
    }
    const uint64_t n = tape_adjoint_bytes(t, v);
    tape_arena_free(&t->arena, v->adjoint, n);
    tape_account_free(t, v->row, n);
    v->adjoint = NULL;
}

/* Not 0, also where the arrays are empty: other results of an op may not be. */
static uint32_t seed_stride_of(const struct kernel_array *a)
{
    return a->size > 0 ? (uint32_t)a->size : 1;
}

/* An array over a value's adjoint; `stride` is used where the value itself is not row-major. */
static struct kernel_array adjoint_array(const struct tape *t, const struct tape_value *v,
                                         int64_t *stride)
{
    struct kernel_array a = v->array;
    a.data = v->adjoint;
    a.seed_stride = t->n_seeds > 1 ? seed_stride_of(&a) : 0;
    if (!a.contiguous) {
        kernel_strides(a.rank, a.shape, 1, stride);
        a.strides = stride;
        a.contiguous = true;
    }
    return a;
}

static void inplace_account_cost(struct context *c, const struct kernel_call *call)
{
    if (!c->t->hook)
        return;
    struct tape_row *row = tape_row(c->t, c->record->row);
    struct kernel_cost cost = kernel_cost_of(call);
    TAPE_ADD(row->backward_flops, cost.flops);
    TAPE_ADD(row->backward_moved, cost.bytes);
}

/* A rule that emits what its own op refuses is a defect of the rule: said, not swallowed. */
static void inplace_fail(struct context *c, const struct kernel_call *call)
{
    c->failed = true;
    tape_fail(c->t, TAPE_ERROR_STATE, tape_row_site(c->t, c->record->row), "pullback of %s: %s",
              c->record->op->name, call->error);
}

static void inplace_compute(struct context *c, struct kernel_call *call)
{
    if (kernel_run(call) != 0)
        inplace_fail(c, call);
    inplace_account_cost(c, call);
}

/* to[bytes] = from, or zeros where from is NULL. */
static void inplace_move(struct context *c, void *to, const void *from, uint64_t bytes)
{
    struct tape_teller *teller = c->t->teller;
    if (teller)
        teller->move(teller, to, from, bytes, c->record->row);
    else if (from)
        memcpy(to, from, bytes);
    else
        memset(to, 0, bytes);
}

static void inplace_run_one(struct context *c, struct kernel_call *call)
{
    size_t n = call->op->workspace ? kernel_workspace(call) : 0;
    call->workspace = KERNEL_NO_WORKSPACE;
    if (n > 0) {
        call->workspace = tape_arena_buffer(&c->t->arena, n);
        if (!call->workspace) {
            c->failed = true;
            return;
        }
        tape_account_buffer(c->t, c->record->row, n);
    }
    if (c->t->teller)
        c->t->teller->call(c->t->teller, call, c->record->row);
    else
        inplace_compute(c, call);
    if (n > 0) {
        tape_arena_free(&c->t->arena, call->workspace, n);
        tape_account_free(c->t, c->record->row, n);
    }
}

/* ---- several seeds ---- */

/* The array of the next seed. */
static void seed_step(struct kernel_array *a)
{
    if (a->size > 0)
        a->data = kernel_behind(a->data, a->seed_stride * (int64_t)kernel_dtype_bytes(a->dtype));
}

static void inplace_run_each(struct context *c, const struct kernel_call *call)
{
    struct kernel_array in[TAPE_MAX_IN], out[KERNEL_MAX_OUT], *to[KERNEL_MAX_OUT];
    kernel_ref from[TAPE_MAX_IN];
    for (int i = 0; i < call->n_in; i++) {
        in[i] = *call->in[i];
        from[i] = &in[i];
    }
    for (int o = 0; o < call->n_out; o++) {
        out[o] = *call->out[o];
        to[o] = &out[o];
    }
    struct kernel_call one = *call;
    one.in = from;
    one.out = to;
    for (uint32_t k = 0; k < c->t->n_seeds && !c->failed; k++) {
        inplace_run_one(c, &one);
        for (int i = 0; i < call->n_in; i++)
            seed_step(&in[i]);
        for (int o = 0; o < call->n_out; o++)
            seed_step(&out[o]);
    }
}

static void inplace_run(struct context *c, struct kernel_call *call)
{
    struct kernel_wide wide;
    if (call->out[0]->seed_stride == 0)
        inplace_run_one(c, call);
    else if (kernel_wide_make(&wide, call, c->t->n_seeds))
        inplace_run_one(c, &wide.call);
    else
        inplace_run_each(c, call);
}

/* Whether what an op makes of these differs from seed to seed: at least one does. */
static bool any_seeded(int n_in, const kernel_ref *in)
{
    for (int i = 0; i < n_in; i++)
        if (in[i]->seed_stride != 0)
            return true;
    return false;
}

/* ---- temporaries ---- */

static uint64_t temporary_bytes(const struct context *c, const struct kernel_array *a)
{
    const uint64_t one = (uint64_t)a->size * kernel_dtype_bytes(a->dtype);
    return a->seed_stride != 0 ? c->t->n_seeds * one : one;
}

/* Shapes a temporary as output 0 of the call; a buffer unless it is a view. NULL: failed. */
static struct temporary *temporary_make(struct context *c, const struct kernel_call *call,
                                        const struct kernel_shape *shape)
{
    if (c->n_temporaries == MAX_TEMPORARIES) {
        c->failed = true;
        return NULL;
    }
    const bool seeded = any_seeded(call->n_in, call->in);
    struct temporary *p = &c->temporary[c->n_temporaries];
    p->shape = *shape;
    p->owns = false;
    if (shape->same_as >= 0) {
        p->shape.rank = call->in[shape->same_as]->rank;
        memcpy(p->shape.extent, call->in[shape->same_as]->shape, p->shape.rank * sizeof(int64_t));
    }
    size_t elem = kernel_dtype_bytes(shape->dtype);
    int64_t stride[KERNEL_MAX_RANK];
    p->array = (struct kernel_array){.shape = p->shape.extent,
                                     .strides = p->shape.stride,
                                     .dtype = shape->dtype,
                                     .rank = p->shape.rank,
                                     .contiguous = true};
    p->array.size = kernel_strides(p->shape.rank, p->shape.extent, elem, stride);
    if (shape->view_of >= 0) {
        p->array.data =
            kernel_behind(call->in[shape->view_of]->data, shape->offset * (int64_t)elem);
        p->array.seed_stride = call->in[shape->view_of]->seed_stride;
        for (int d = 0; d < p->shape.rank; d++)
            if (p->shape.extent[d] != 1 && stride[d] != p->shape.stride[d])
                p->array.contiguous = false;
    } else {
        memcpy(p->shape.stride, stride, sizeof stride);
        if (seeded && p->array.size > UINT32_MAX) { /* more than seeds are counted in */
            c->failed = true;
            return NULL;
        }
        p->array.seed_stride = seeded ? seed_stride_of(&p->array) : 0;
        p->array.data = tape_arena_buffer(&c->t->arena, temporary_bytes(c, &p->array));
        if (!p->array.data) {
            c->failed = true;
            return NULL;
        }
        tape_account_buffer(c->t, c->record->row, temporary_bytes(c, &p->array));
        p->owns = true;
    }
    c->n_temporaries++;
    return p;
}

/* The newest one. */
static void temporary_free(struct context *c)
{
    struct temporary *p = &c->temporary[--c->n_temporaries];
    uint64_t n = temporary_bytes(c, &p->array);
    if (p->owns) {
        tape_arena_free(&c->t->arena, p->array.data, n);
        tape_account_free(c->t, c->record->row, n);
    }
}

static bool any_missing(struct context *c, int n_in, const kernel_ref *in)
{
    for (int i = 0; i < n_in; i++)
        if (!in[i])
            return true;
    return c->failed;
}

/* The leaf whose adjoint output o of an op may be written to, for the first time; NULL: none. */
static struct tape_value *inplace_leaf(struct context *c, int o, const struct kernel_call *call,
                                       const struct kernel_shape *shape)
{
    if (!kernel_needs(&c->rule, o) || c->t->n_seeds > 1)
        return NULL;
    const uint32_t *operand = tape_record_in(c->record);
    struct tape_value *v = &c->t->entries[operand[o]];
    for (int i = 0; i < o; i++)
        if (operand[i] == operand[o])
            return NULL;
    const kernel_ref like = shape->same_as >= 0 ? call->in[shape->same_as] : NULL;
    const int rank = like ? like->rank : shape->rank;
    const int64_t *extent = like ? like->shape : shape->extent;
    const bool fits = (v->flags & TAPE_LEAF) && !tape_has_adjoint(c->t, v) &&
                      v->array.rank == rank &&
                      memcmp(v->array.shape, extent, (size_t)rank * sizeof *extent) == 0;
    return fits ? v : NULL;
}

/* The results of an op in temporaries; or, where `leaves` is given, in the adjoints of leaves that
 * they are the first contribution to. */
static void inplace_results(struct context *c, const struct kernel_op *op, int n_in,
                            const kernel_ref *in, int n_attr, const int64_t *attr,
                            kernel_ref *results, struct tape_value **leaves)
{
    for (int o = 0; o < op->n_out; o++)
        results[o] = NULL;
    if (any_missing(c, n_in, in))
        return;
    char error[KERNEL_ERROR_BYTES];
    struct kernel_shape shape[KERNEL_MAX_OUT];
    struct kernel_array *out[KERNEL_MAX_OUT], target[KERNEL_MAX_OUT];
    int64_t stride[KERNEL_MAX_OUT][KERNEL_MAX_RANK];
    struct kernel_call call = {.op = op,
                               .in = in,
                               .out = out,
                               .attr = attr,
                               .n_in = n_in,
                               .n_out = op->n_out,
                               .n_attr = n_attr,
                               .error = error};
    if (kernel_infer(&call, shape) != 0) {
        inplace_fail(c, &call);
        return;
    }
    for (int o = 0; o < op->n_out; o++) {
        struct tape_value *leaf = leaves ? inplace_leaf(c, o, &call, &shape[o]) : NULL;
        struct temporary *p = leaf ? NULL : temporary_make(c, &call, &shape[o]);
        bool fresh;
        if (leaf && !tape_adjoint_buffer(c->t, leaf, &fresh))
            c->failed = true;
        if (c->failed)
            return;
        if (leaf)
            target[o] = adjoint_array(c->t, leaf, stride[o]);
        out[o] = leaf ? &target[o] : &p->array;
        if (leaves)
            leaves[o] = leaf;
    }
    if (shape->view_of < 0)
        inplace_run(c, &call);
    for (int o = 0; o < op->n_out; o++)
        results[o] = leaves && leaves[o] ? NULL : out[o];
}

static void inplace_emit(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                         const kernel_ref *in, int n_attr, const int64_t *attr, kernel_ref *results)
{
    inplace_results((struct context *)(void *)rule, op, n_in, in, n_attr, attr, results, NULL);
}

static void inplace_accumulate_all(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                                   const kernel_ref *in, int n_attr, const int64_t *attr)
{
    struct context *c = (struct context *)(void *)rule;
    kernel_ref results[KERNEL_MAX_OUT] = {NULL};
    struct tape_value *leaves[KERNEL_MAX_OUT] = {NULL};
    inplace_results(c, op, n_in, in, n_attr, attr, results, leaves);
    for (int o = 0; o < op->n_out && !c->failed; o++)
        if (leaves[o])
            tape_adjoint_set(c->t, leaves[o]);
    for (int o = 0; o < op->n_out; o++)
        if (results[o])
            kernel_accumulate(rule, o, &kernel_op_copy, 1, &results[o], 0, NULL);
}

/* Whose whole content `array` is, row-major: an output's adjoint or a temporary that has no
 * handover yet. False: neither. */
static bool handover_source(const struct context *c, kernel_ref array, struct handover *handover)
{
    *handover = (struct handover){NULL, -1, -1};
    if (!array->contiguous || (c->t->n_seeds > 1 && array->seed_stride != array->size))
        return false;
    for (int o = 0; o < c->rule.n_out && handover->output < 0; o++)
        if (c->rule.adjoint[o] && array->data == c->adjoint[o].data && array->data != c->t->lent &&
            array->size == c->adjoint[o].size)
            handover->output = o;
    for (int i = 0; i < c->n_temporaries && handover->output < 0 && handover->temporary < 0; i++) {
        const struct temporary *p = &c->temporary[i];
        if (p->owns && array->data == p->array.data && array->size == p->array.size)
            handover->temporary = i;
    }
    for (int h = 0; h < c->n_handovers; h++)
        if (c->handover[h].output == handover->output &&
            c->handover[h].temporary == handover->temporary)
            return false;
    return c->n_handovers < KERNEL_MAX_IN && (handover->output >= 0 || handover->temporary >= 0);
}

static const struct kernel_array *handover_array(const struct context *c,
                                                 const struct handover *handover)
{
    return handover->output >= 0 ? &c->adjoint[handover->output]
                                 : &c->temporary[handover->temporary].array;
}

/* If v is to be handed a buffer, it gets a copy after all: another contribution to it has come. */
static void handover_copy(struct context *c, struct tape_value *v)
{
    for (int h = 0; h < c->n_handovers; h++) {
        if (c->handover[h].value != v)
            continue;
        const void *data = handover_array(c, &c->handover[h])->data;
        bool fresh;
        c->handover[h] = c->handover[--c->n_handovers];
        if (tape_adjoint_buffer(c->t, v, &fresh))
            inplace_move(c, v->adjoint, data, tape_adjoint_bytes(c->t, v));
        else
            c->failed = true;
        return;
    }
}

static void inplace_accumulate(struct kernel_rule *rule, int input, const struct kernel_op *op,
                               int n_in, const kernel_ref *in, int n_attr, const int64_t *attr)
{
    struct context *c = (struct context *)(void *)rule;
    struct tape *t = c->t;
    if (any_missing(c, n_in, in))
        return;
    struct tape_value *v = &t->entries[tape_record_in(c->record)[input]];
    struct handover handover;
    if (c->n_handovers > 0)
        handover_copy(c, v);
    if (op == &kernel_op_copy && !tape_has_adjoint(t, v) && !(v->flags & TAPE_LEAF) &&
        in[0]->size == v->array.size && handover_source(c, in[0], &handover)) {
        /* Equal sizes with unequal extents (reshaped, or an axis of length 1) keep their order. */
        handover.value = v;
        c->handover[c->n_handovers++] = handover;
        return;
    }
    bool fresh;
    if (!tape_adjoint_buffer(t, v, &fresh)) {
        c->failed = true;
        return;
    }
    int64_t stride[KERNEL_MAX_RANK];
    struct kernel_array target = adjoint_array(t, v, stride);
    struct kernel_array *out[1] = {&target};
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call call = {.op = op,
                               .in = in,
                               .out = out,
                               .attr = attr,
                               .n_in = n_in,
                               .n_out = 1,
                               .n_attr = n_attr,
                               .error = error,
                               .accumulate = !fresh};
    bool direct = op->elementwise;
    for (int i = 0; i < n_in && direct; i++)
        direct = kernel_same_extents(in[i], &target);
    if (!direct) {
        struct kernel_shape shape[KERNEL_MAX_OUT];
        if (kernel_infer(&call, shape) != 0) {
            inplace_fail(c, &call);
            return;
        }
        const struct kernel_array *like = shape->same_as >= 0 ? in[shape->same_as] : NULL;
        int rank = like ? like->rank : shape->rank;
        const int64_t *extent = like ? like->shape : shape->extent;
        bool same = rank == target.rank &&
                    memcmp(extent, target.shape, (size_t)rank * sizeof(int64_t)) == 0;
        direct = (same && shape->view_of < 0 && op->n_out == 1 && (fresh || op->accumulates)) ||
                 op->elementwise;
        if (!same && fresh && target.size) {
            inplace_move(c, target.data, NULL, tape_adjoint_bytes(t, v));
            call.accumulate = true;
        }
        if (!direct) {
            int from = c->n_temporaries;
            kernel_ref result[KERNEL_MAX_OUT] = {NULL};
            inplace_emit(rule, op, n_in, in, n_attr, attr, result);
            if (result[0]) {
                struct kernel_call add = {.op = &kernel_op_copy,
                                          .in = result,
                                          .out = out,
                                          .n_in = 1,
                                          .n_out = 1,
                                          .error = error,
                                          .accumulate = call.accumulate};
                inplace_run(c, &add);
            }
            while (c->n_temporaries > from)
                temporary_free(c);
            tape_adjoint_set(t, v);
            return;
        }
    }
    inplace_run(c, &call);
    tape_adjoint_set(t, v);
}

/* The buffer becomes the value's adjoint; the account moves it to the value's line. */
static void handover_complete(struct context *c, const struct handover *handover)
{
    struct tape_value *v = handover->value;
    uint32_t row = c->record->row;
    v->adjoint = handover_array(c, handover)->data;
    if (handover->output >= 0) {
        struct tape_value *from = &c->t->entries[tape_record_out(c->record)[handover->output]];
        from->adjoint = NULL;
        row = from->row;
    } else {
        c->temporary[handover->temporary].owns = false;
    }
    if (c->t->hook && v->row != row) {
        tape_account_free(c->t, row, tape_adjoint_bytes(c->t, v));
        tape_account_buffer(c->t, v->row, tape_adjoint_bytes(c->t, v));
    }
}

static const struct kernel_rule_class in_place = {false, inplace_emit, inplace_accumulate,
                                                  inplace_accumulate_all};

bool tape_inplace_pullback(struct tape *t, struct tape_record *r)
{
    struct context c;
    kernel_ref in[TAPE_MAX_IN], out[KERNEL_MAX_OUT], adjoint[KERNEL_MAX_OUT];
    uint64_t needs = 0;
    const uint32_t *operand = tape_record_in(r), *output = operand + r->n_in;
    for (int i = 0; i < r->n_in; i++) {
        const struct tape_value *v = &t->entries[operand[i]];
        in[i] = &v->array;
        needs |= (uint64_t)((v->flags & TAPE_NEEDS_GRADIENT) != 0) << i;
    }
    for (int o = 0; o < r->n_out; o++) {
        const struct tape_value *v = &t->entries[output[o]];
        out[o] = &v->array;
        adjoint[o] = NULL;
        if (v->adjoint) {
            c.adjoint[o] = adjoint_array(t, v, c.stride[o]);
            adjoint[o] = &c.adjoint[o];
        }
    }
    c.rule = (struct kernel_rule){.class_ = &in_place,
                                  .op = r->op,
                                  .in = in,
                                  .out = out,
                                  .adjoint = adjoint,
                                  .attr = tape_record_attr(r),
                                  .n_in = r->n_in,
                                  .n_out = r->n_out,
                                  .n_attr = r->n_attr,
                                  .needs = needs};
    c.t = t;
    c.record = r;
    c.n_handovers = 0;
    c.n_temporaries = 0;
    c.failed = false;
    r->op->pullback(&c.rule);
    for (int h = 0; h < c.n_handovers && !c.failed; h++)
        handover_complete(&c, &c.handover[h]);
    while (c.n_temporaries > 0)
        temporary_free(&c);
    return !c.failed;
}
