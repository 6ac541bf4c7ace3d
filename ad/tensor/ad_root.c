/* ad_root.c: results of equations: an op by ad_custom whose functions evaluate the residual on a
 * tape of their own, and record it on the user's for second derivatives.
 *
 * What an op needs later lies in its own bytes: a struct root_head, then dF/dy [n,n].
 *
 * The inner tape is not observed: what it takes is time of the op's line, like any op's.
 */
#include "ad_internal.h"
#include "plain_format.h"

#include "kernel_ops.h"
#include "tape_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ROOT_MOST = 1 << 15,
    NEWTON_STEPS = 50,
    FIXED_STEPS = 1000,
    /* At once, where these seeds have as few elements: beyond they gain nothing (decision 087). */
    ROOT_SEEDS = 16,
    ROOT_TOGETHER = 1 << 17
};

struct root_head {
    ad_residual *residual;
    void *payload;
    ad_solver *solver;
    ad_root_report *report; /* NULL once the call is over */
    double tolerance;
    int64_t most;
    struct tape_site site;
    uint32_t slot; /* of the user's tape */
    bool fixed;    /* y = g(y, x) instead of F(y, x) = 0 */
    bool needed;   /* dF/dy will be */
};

/* 64-byte aligned, as the own bytes are. */
enum { ROOT_HEAD = (sizeof(struct root_head) + 63) / 64 * 64 };

static double *root_matrix(void *own)
{
    return (double *)(void *)((char *)own + ROOT_HEAD);
}

static const struct tape_site nowhere; /* messages end with the line of the call */

/* ---- the tape that residuals are evaluated on ---- */

struct root_inner {
    const struct root_head *head;
    const ad_custom_call *call;
    struct tape *t;
    ad_tape tape;
    int n; /* of x */
    uint32_t x[TAPE_MAX_IN];
    int64_t size;  /* of y */
    double *value; /* [size] of the residual */
};

static ad_status inner_failed(const struct root_inner *q)
{
    if (q->t->error.code == TAPE_OK)
        return AD_ERROR_MEMORY;
    memcpy(q->call->message, q->t->error.message, AD_CUSTOM_MESSAGE - 1); /* it may be longer */
    return (ad_status)q->t->error.code;
}

static ad_status inner_begin(struct root_inner *q, const ad_custom_call *call)
{
    const struct root_head *head = call->own;
    *q = (struct root_inner){
        .head = head, .call = call, .n = call->n_in - 1, .size = call->out[0].size};
    const ad_status status = ad_within_create(ad_slots[head->slot].tape, &q->tape);
    if (status != AD_OK)
        return status;
    q->t = ad_slots[q->tape.slot].tape;
    const uint64_t bytes = (uint64_t)q->size * sizeof(double);
    q->value = tape_arena_buffer(&q->t->arena, bytes);
    return q->value ? AD_OK : AD_ERROR_MEMORY;
}

static void inner_end(const struct root_inner *q)
{
    if (!q->tape.slot)
        return;
    ad_real_forget(q->t);
    ad_slot_give(q->tape.slot);
    tape_destroy(q->t);
}

static bool inner_give(const struct root_inner *q, const ad_custom_array *a, enum tape_given given,
                       uint32_t *value)
{
    return tape_borrow(q->t, (int)a->dtype, a->rank, a->shape, a->data, given, nowhere, value) ==
           TAPE_OK;
}

/* ---- the residual, on whichever tape ---- */

/* F at values of t, checked against y; 0: t's error says why not. */
static uint32_t residual_at(struct tape *t, ad_tape tape, const struct root_head *head, uint32_t y,
                            int n, const uint32_t *x, struct tape_site site)
{
    ad_tensor of[TAPE_MAX_IN];
    char got[96], wanted[96];
    const char *what = head->fixed ? "g" : "the residual";
    for (int i = 0; i < n; i++)
        of[i] = ad_handle_of(t, tape.slot, tape.generation, x[i]);
    const ad_tensor result =
        head->residual(tape, ad_handle_of(t, tape.slot, tape.generation, y), n, of, head->payload);
    uint32_t r = t->error.code == TAPE_OK ? ad_value_on(t, result, site, "%s", what) : 0;
    if (!r)
        return 0;
    const struct kernel_array *a = &t->entries[r].array, *b = &t->entries[y].array;
    const bool shaped = head->fixed
                            ? a->rank == b->rank && memcmp(a->shape, b->shape, b->rank * 8) == 0
                            : a->size == b->size;
    if (a->dtype != KERNEL_F64 || !shaped) {
        tape_fail(t, shaped ? TAPE_ERROR_DTYPE : TAPE_ERROR_SHAPE, site, "%s is %s, y is %s", what,
                  kernel_describe(a, got, sizeof got), kernel_describe(b, wanted, sizeof wanted));
        return 0;
    }
    const uint32_t both[2] = {y, r};
    if (head->fixed && tape_apply(t, &kernel_op_sub, 2, both, 0, NULL, site, &r) != TAPE_OK)
        return 0;
    return r;
}

/* ---- forward ---- */

/* Rows of dF/dy, by sweeps of the residual r from as many seeds at once as it takes. */
static ad_status root_jacobian(struct root_inner *q, uint32_t r, uint32_t y, double *matrix)
{
    struct tape *t = q->t;
    struct tape_value *v = &t->entries[y];
    const int64_t size = q->size;
    if (!(t->entries[r].flags & TAPE_NEEDS_GRADIENT)) {
        (void)snprintf(q->call->message, AD_CUSTOM_MESSAGE, "the residual does not depend on y");
        return AD_ERROR_VALUE;
    }
    const int64_t width =
        tape_sweep_takes_seeds(t) && size * ROOT_SEEDS <= ROOT_TOGETHER ? ROOT_SEEDS : 1;
    const uint64_t bytes = (uint64_t)(width * size) * sizeof(double);
    double *unit = tape_arena_buffer(&t->arena, bytes);
    double *rows = tape_arena_buffer(&t->arena, bytes);
    if (!unit || !rows)
        return AD_ERROR_MEMORY;
    memset(unit, 0, bytes);
    void *const own = v->adjoint;
    v->adjoint = rows;
    enum tape_status status = TAPE_OK;
    for (int64_t i = 0; i < size && status == TAPE_OK; i += width) {
        const int64_t n = size - i < width ? size - i : width;
        tape_zero_gradients(t);
        for (int64_t k = 0; k < n; k++)
            unit[k * size + i + k] = 1;
        status = tape_sweep_seeds(t, r, (uint32_t)n, unit, i > 0, nowhere);
        for (int64_t k = 0; k < n; k++)
            unit[k * size + i + k] = 0;
        double *of = matrix + i * size;
        if (tape_has_adjoint(t, v))
            memcpy(of, rows, (size_t)(n * size) * sizeof *of);
        else
            memset(of, 0, (size_t)(n * size) * sizeof *of);
    }
    v->adjoint = own;
    return status == TAPE_OK ? AD_OK : inner_failed(q);
}

/* x with A x = b, or A^T x = b, as a value; 0: the inner tape's error says why not. */
static uint32_t inner_solve(const struct root_inner *q, const double *matrix, bool transposed,
                            const double *b)
{
    const int64_t shape[2] = {q->size, q->size};
    uint32_t in[2], out[KERNEL_MAX_OUT];
    struct tape *t = q->t;
    if (tape_borrow(t, KERNEL_F64, 2, shape, matrix, TAPE_GIVEN_CONSTANT, nowhere, &in[0]) !=
            TAPE_OK ||
        tape_borrow(t, KERNEL_F64, 1, shape, b, TAPE_GIVEN_CONSTANT, nowhere, &in[1]) != TAPE_OK ||
        (transposed &&
         tape_apply(t, &kernel_op_transpose, 1, in, 0, NULL, nowhere, in) != TAPE_OK) ||
        tape_apply(t, &kernel_op_solve, 2, in, 0, NULL, nowhere, out) != TAPE_OK)
        return 0;
    return out[0];
}

/* One look at the residual of y, and a step if it is too large. */
static ad_status root_step(struct root_inner *q, double *y, int64_t step, bool *done)
{
    const struct root_head *head = q->head;
    uint32_t at, r;
    ad_custom_array a = q->call->out[0];
    double *matrix = root_matrix(q->call->own);
    a.data = y;
    if (!inner_give(q, &a, TAPE_GIVEN_LEAF, &at) ||
        !(r = residual_at(q->t, q->tape, head, at, q->n, q->x, nowhere)))
        return inner_failed(q);
    tape_read(q->t, r, q->value);
    double most = 0;
    for (int64_t i = 0; i < q->size; i++)
        most = fabs(q->value[i]) <= most ? most : fabs(q->value[i]);
    if (head->report)
        *head->report = (ad_root_report){(int)step, most};
    *done = most <= head->tolerance;
    if (!*done && (!isfinite(most) || head->solver || step >= head->most)) {
        (void)plain_format(q->call->message, AD_CUSTOM_MESSAGE,
                           "the residual is %g after %s%lld step%s, the tolerance is %g",
                           isnan(most) ? fabs(most) : most, head->solver ? "the solver and " : "",
                           (long long)step, step == 1 ? "" : "s", head->tolerance);
        return AD_ERROR_VALUE;
    }
    if (!*done && head->fixed) {
        for (int64_t i = 0; i < q->size; i++)
            y[i] -= q->value[i];
        return AD_OK;
    }
    ad_status status = *done && !head->needed ? AD_OK : root_jacobian(q, r, at, matrix);
    if (status != AD_OK || *done)
        return status;
    const uint32_t d = inner_solve(q, matrix, false, q->value);
    if (!d)
        return inner_failed(q);
    tape_read(q->t, d, q->value);
    for (int64_t i = 0; i < q->size; i++)
        y[i] -= q->value[i];
    return AD_OK;
}

static ad_status root_find(struct root_inner *q)
{
    const ad_custom_call *c = q->call;
    for (int i = 0; i < q->n; i++)
        if (!inner_give(q, &c->in[i + 1], TAPE_GIVEN_CONSTANT, &q->x[i]))
            return inner_failed(q);
    const struct tape_mark mark = tape_mark_here(q->t);
    ad_status status = AD_OK;
    bool done = false;
    for (int64_t step = 0; status == AD_OK && !done; step++) {
        status = root_step(q, c->out[0].data, step, &done);
        tape_drop_behind(q->t, &mark);
    }
    return status;
}

static ad_status root_forward(ad_custom_call *c, void *payload)
{
    struct root_head *head = c->own;
    struct root_inner q;
    (void)payload;
    if (c->in[0].size > 0)
        memcpy(c->out[0].data, c->in[0].data, (size_t)c->in[0].size * sizeof(double));
    ad_status status = AD_OK;
    if (head->solver)
        status = head->solver(&c->out[0], c->n_in - 1, c->in + 1, head->payload);
    if (status != AD_OK) {
        (void)snprintf(c->message, AD_CUSTOM_MESSAGE, "the solver: %s", ad_status_text(status));
        return status;
    }
    status = inner_begin(&q, c);
    if (status == AD_OK)
        status = root_find(&q);
    inner_end(&q);
    head->report = NULL;
    return status;
}

static ad_status root_shape(ad_custom_call *c, void *payload)
{
    const uint64_t n = (uint64_t)c->in[0].size;
    (void)payload;
    if (c->in[0].dtype != AD_F64) {
        (void)snprintf(c->message, AD_CUSTOM_MESSAGE, "the guess is not f64");
        return AD_ERROR_DTYPE;
    }
    if (n > ROOT_MOST) {
        (void)snprintf(c->message, AD_CUSTOM_MESSAGE,
                       "y has %llu elements, at most %d are possible", (unsigned long long)n,
                       ROOT_MOST);
        return AD_ERROR_LIMIT;
    }
    c->own_bytes = ROOT_HEAD + (size_t)(n * n) * sizeof(double);
    return AD_OK;
}

/* ---- backward ---- */

/* x' -= (dF/dx)^T l, where (dF/dy)^T l = y'. */
static ad_status root_pull(struct root_inner *q)
{
    const ad_custom_call *c = q->call;
    struct tape *t = q->t;
    uint32_t y, r, l;
    for (int i = 0; i < q->n; i++) {
        void *adjoint = c->in_adjoint[i + 1].data;
        if (!inner_give(q, &c->in[i + 1], adjoint ? TAPE_GIVEN_LEAF : TAPE_GIVEN_CONSTANT,
                        &q->x[i]) ||
            (adjoint && tape_gradient_buffer(t, q->x[i], adjoint, nowhere) != TAPE_OK))
            return inner_failed(q);
    }
    if (!inner_give(q, &c->out[0], TAPE_GIVEN_CONSTANT, &y) ||
        !(r = residual_at(t, q->tape, q->head, y, q->n, q->x, nowhere)))
        return inner_failed(q);
    if (!(t->entries[r].flags & TAPE_NEEDS_GRADIENT))
        return AD_OK;
    const struct kernel_array *a = &t->entries[r].array;
    if (!(l = inner_solve(q, root_matrix(c->own), true, c->out_adjoint[0].data)) ||
        tape_apply(t, &kernel_op_neg, 1, &l, 0, NULL, nowhere, &l) != TAPE_OK ||
        tape_apply(t, &kernel_op_reshape, 1, &l, a->rank, a->shape, nowhere, &l) != TAPE_OK ||
        tape_sweep(t, r, l, nowhere) != TAPE_OK)
        return inner_failed(q);
    return AD_OK;
}

static ad_status root_pullback(ad_custom_call *c, void *payload)
{
    struct root_inner q;
    (void)payload;
    ad_status status = inner_begin(&q, c);
    if (status == AD_OK)
        status = root_pull(&q);
    inner_end(&q);
    return status;
}

/* ---- the derivative recorded ---- */

struct root_graph {
    struct tape *t;
    ad_tape tape;
    const struct root_head *head;
    int n;
    uint32_t y, r;
    uint32_t x[TAPE_MAX_IN]; /* copies of what is no constant: y does not depend on them */
};

static bool graph_op(const struct root_graph *g, const struct kernel_op *op, int n_in,
                     const uint32_t *in, int n_attr, const int64_t *attr, uint32_t *result)
{
    uint32_t out[KERNEL_MAX_OUT];
    if (tape_apply(g->t, op, n_in, in, n_attr, attr, g->head->site, out) != TAPE_OK)
        return false;
    *result = out[0];
    return true;
}

/* parts[n] along axis 0, as many at a time as an op takes. */
static bool graph_join(const struct root_graph *g, uint32_t *part, int64_t n, uint32_t *result)
{
    const int64_t axis = 0;
    while (n > 1) {
        int64_t left = 0;
        for (int64_t i = 0; i < n; i += TAPE_MAX_IN) {
            const int taken = n - i < TAPE_MAX_IN ? (int)(n - i) : TAPE_MAX_IN;
            if (taken == 1)
                part[left++] = part[i];
            else if (!graph_op(g, &kernel_op_concat, taken, part + i, 1, &axis, &part[left++]))
                return false;
        }
        n = left;
    }
    *result = part[0];
    return true;
}

/* dF/dy as a value [size,size]. part: room for size. */
static bool graph_matrix(const struct root_graph *g, uint32_t *part, uint32_t *matrix)
{
    struct tape *t = g->t;
    const int64_t size = t->entries[g->y].array.size, row[2] = {1, size};
    for (int64_t i = 0; i < size; i++) {
        uint32_t seed, d;
        if (tape_zeros(t, g->r, g->head->site, &seed) != TAPE_OK)
            return false;
        ((double *)t->entries[seed].array.data)[i] = 1;
        if (tape_graph_within(t, g->r, seed, 1, &g->y, g->head->site, &d) != TAPE_OK ||
            !graph_op(g, &kernel_op_reshape, 1, &d, 2, row, &part[i]))
            return false;
    }
    return graph_join(g, part, size, matrix);
}

/* The adjoints of x by ops, of constants 0; part: room for the elements of y. */
static bool graph_pull(struct root_graph *g, uint32_t adjoint, uint32_t *part, uint32_t *gradient)
{
    const int64_t size = g->t->entries[g->y].array.size;
    const struct kernel_array *r = &g->t->entries[g->r].array;
    uint32_t in[2], l, by[TAPE_MAX_IN], got[TAPE_MAX_IN];
    int n = 0;
    for (int i = 0; i < g->n; i++)
        if (g->t->entries[g->x[i]].flags & TAPE_NEEDS_GRADIENT)
            by[n++] = g->x[i];
    if (!graph_matrix(g, part, &in[0]) ||
        !graph_op(g, &kernel_op_transpose, 1, in, 0, NULL, &in[0]) ||
        !graph_op(g, &kernel_op_reshape, 1, &adjoint, 1, &size, &in[1]) ||
        !graph_op(g, &kernel_op_solve, 2, in, 0, NULL, &l) ||
        !graph_op(g, &kernel_op_neg, 1, &l, 0, NULL, &l) ||
        !graph_op(g, &kernel_op_reshape, 1, &l, r->rank, r->shape, &l) ||
        tape_graph_within(g->t, g->r, l, n, by, g->head->site, got) != TAPE_OK)
        return false;
    for (int i = g->n; i-- > 0;)
        if (n > 0 && g->x[i] == by[n - 1])
            gradient[i] = got[--n];
    return true;
}

static ad_status root_graph(ad_custom_graph_call *c, void *payload)
{
    const struct root_head *head = c->own;
    struct root_graph g = {
        .t = ad_slots[c->tape.slot].tape, .tape = c->tape, .head = head, .n = c->n_in - 1};
    uint32_t gradient[TAPE_MAX_IN] = {0};
    struct tape *t = g.t;
    (void)payload;
    const int64_t size = t->entries[c->out[0].value].array.size;
    bool done = size > 0;
    g.y = c->out[0].value;
    for (int i = 0; i < g.n && done; i++) {
        g.x[i] = c->in[i + 1].value;
        if (t->entries[g.x[i]].flags & TAPE_NEEDS_GRADIENT)
            done = graph_op(&g, &kernel_op_copy, 1, &g.x[i], 0, NULL, &g.x[i]);
    }
    done = done && (g.r = residual_at(t, c->tape, head, g.y, g.n, g.x, head->site)) != 0;
    if (done) {
        uint32_t *part = t->memory->resize(NULL, (size_t)size * sizeof *part, t->memory->payload);
        if (!part)
            return AD_ERROR_MEMORY;
        done = graph_pull(&g, c->out_adjoint[0].value, part, gradient);
        t->memory->release(part, t->memory->payload);
    }
    for (int i = 0; i < g.n && done; i++)
        if (gradient[i])
            c->in_adjoint[i + 1] = ad_handle_of(t, c->tape.slot, c->tape.generation, gradient[i]);
    return (ad_status)t->error.code;
}

/* ---- the calls ---- */

static ad_tensor root_call(ad_tape tape, bool fixed, ad_residual *residual, void *payload,
                           ad_tensor guess, int n, const ad_tensor *x,
                           const ad_root_options *options, struct tape_site site)
{
    const char *name = fixed ? "fixed_point" : "root";
    static const ad_root_options defaults;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, name, site);
    ad_tensor in[TAPE_MAX_IN], y = {tape.slot, tape.generation, 0, 0};
    if (!t)
        return (ad_tensor){0, 0, 0, 0};
    if (t->error.code != TAPE_OK)
        return y;
    options = options ? options : &defaults;
    if (options->report)
        *options->report = (ad_root_report){0, (double)NAN};
    if (!residual || (n > 0 && !x) || n < 0 || n > TAPE_MAX_IN - 1 || !(options->tolerance >= 0) ||
        options->most < 0) {
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", name,
                  !residual                      ? "the function is a null pointer"
                  : n < 0 || n > TAPE_MAX_IN - 1 ? "from 0 to 63 tensors x are possible"
                  : n > 0 && !x                  ? "x is a null pointer"
                  : !(options->tolerance >= 0)   ? "the tolerance is negative or no number"
                                                 : "the number of steps is negative");
        return y;
    }
    const uint32_t from = ad_value_on(t, guess, site, "%s: the guess", name);
    const struct tape_mark before = tape_mark_here(t);
    uint32_t alias;
    if (!from || tape_detach(t, from, site, &alias) != TAPE_OK)
        return y;
    bool needed = false;
    in[0] = ad_handle_of(t, tape.slot, tape.generation, alias);
    for (int i = 0; i < n; i++) {
        in[i + 1] = x[i];
        const uint32_t v = ad_value_live(t, x[i]);
        needed = needed || (v && (t->entries[v].flags & TAPE_NEEDS_GRADIENT));
    }
    /* All its bytes are set, so that two calls that do the same have the same. */
    union {
        struct root_head head;
        char bytes[ROOT_HEAD];
    } own;
    memset(&own, 0, sizeof own);
    own.head.residual = residual;
    own.head.payload = payload;
    own.head.solver = options->solver;
    own.head.report = options->report;
    own.head.tolerance = options->tolerance > 0 ? options->tolerance : 1e-10;
    own.head.most = options->most > 0 ? options->most : fixed ? FIXED_STEPS : NEWTON_STEPS;
    own.head.site = site;
    own.head.slot = tape.slot;
    own.head.fixed = fixed;
    own.head.needed = needed && !t->no_grad;
    const ad_custom_rule rule = {.name = name,
                                 .shape = root_shape,
                                 .forward = root_forward,
                                 .pullback = root_pullback,
                                 .graph = root_graph,
                                 .saves = AD_SAVES_OPERANDS | AD_SAVES_RESULTS,
                                 .own_bytes = sizeof own,
                                 .own = &own};
    if (ad_custom_run(tape, &rule, NULL, n + 1, in, 1, &y, site) != AD_OK)
        tape_drop_behind(t, &before);
    return y;
}

ad_tensor ad_root_site(ad_tape tape, ad_residual *residual, void *payload, ad_tensor guess, int n,
                       const ad_tensor *x, const ad_root_options *options, unsigned ad_line_)
{
    return root_call(tape, false, residual, payload, guess, n, x, options, AD_HERE);
}

ad_tensor ad_fixed_point_site(ad_tape tape, ad_residual *g, void *payload, ad_tensor guess, int n,
                              const ad_tensor *x, const ad_root_options *options, unsigned ad_line_)
{
    return root_call(tape, true, g, payload, guess, n, x, options, AD_HERE);
}
