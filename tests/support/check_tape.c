/* check_tape.c: one op on the tape, its operands made of leaves. */
#include "check_tape.h"
#include "check_quietly.h"

#include "kernel_ops.h"
#include "sample_raise.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct tape_site check_site = {0, 1};

/* Small numbers of blocks: everything that a recording borrows. */
static struct block {
    struct block *next;
    max_align_t data[];
} * blocks;

void *check_memory(size_t bytes)
{
    struct block *b = malloc(sizeof *b + bytes + 1);
    ck_assert_msg(b, "no memory");
    b->next = blocks;
    blocks = b;
    return b->data;
}

static void forget(void)
{
    while (blocks) {
        struct block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

static struct tape *shared;

static void finish(void)
{
    tape_destroy(shared);
    forget();
}

struct tape *check_tape(void)
{
    if (!shared) {
        shared = tape_create(&(struct tape_options){.reserve_bytes = (uint64_t)1 << 32});
        ck_assert_msg(shared, "no memory");
        atexit(finish);
    }
    return shared;
}

/* ---- cases ---- */

struct check_case check_case_of(const struct kernel_op *op, const struct kernel_sample *sample,
                                int dtype, int number)
{
    struct check_case c = {.op = op,
                           .n_leaves = sample->n_in,
                           .n_in = sample->n_in,
                           .n_attr = sample->n_attr,
                           .whole = sample->switches,
                           .sample = number,
                           .aim = "as sampled"};
    memcpy(c.attr, sample->attr, sizeof c.attr);
    memcpy(c.diagonal, sample->diagonal, sizeof c.diagonal);
    for (int i = 0; i < c.n_in; i++) {
        struct check_leaf *leaf = &c.leaf[i];
        *leaf = (struct check_leaf){.dtype = sample->dtype[i] == KERNEL_I64 ? KERNEL_I64 : dtype,
                                    .rank = sample->rank[i],
                                    .low = sample->low[i],
                                    .high = sample->high[i],
                                    .active = sample->dtype[i] != KERNEL_I64 &&
                                              !(sample->switches >> i & 1)};
        memcpy(leaf->shape, sample->shape[i], sizeof leaf->shape);
        c.in[i].leaf = i;
    }
    return c;
}

int64_t check_leaf_size(const struct check_leaf *leaf)
{
    int64_t n = 1;
    for (int axis = 0; axis < leaf->rank; axis++)
        n *= leaf->shape[axis];
    return n;
}

int64_t check_x_size(const struct check_case *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n_leaves; i++)
        n += check_leaf_size(&c->leaf[i]);
    return n;
}

/* ---- numbers ---- */

static uint64_t next_word(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double next_unit(uint64_t *state)
{
    return (double)(next_word(state) >> 11) * 0x1p-53;
}

void check_random(uint64_t seed, int64_t n, double *out)
{
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++)
        out[i] = (double)(float)(2 * next_unit(&state) - 1);
}

/* One element in each of n equal parts of the domain, away from the parts' borders, shuffled; each
 * at the nearest point below of the lattice of leaf `place` of `places`. */
static void draw_floats(uint64_t *state, const struct check_leaf *leaf, int place, int places,
                        int64_t n, double *out)
{
    const double part = (leaf->high - leaf->low) / (double)n, apart = 4 * CHECK_REACH;
    for (int64_t i = 0; i < n; i++) {
        double v = leaf->low + part * ((double)i + 0.3 + 0.4 * next_unit(state));
        v = (floor(v / (apart * places)) * places + place + 0.5) * apart;
        int64_t k = (int64_t)(next_word(state) % (uint64_t)(i + 1));
        out[i] = out[k];
        out[k] = (double)(float)v;
    }
}

void check_draw(const struct check_case *c, double *x)
{
    uint64_t state = 20240229;
    for (int i = 0; i < c->n_leaves; i++) {
        const struct check_leaf *leaf = &c->leaf[i];
        int64_t n = check_leaf_size(leaf);
        if (leaf->dtype != KERNEL_I64 && !(c->whole >> i & 1)) {
            draw_floats(&state, leaf, i, c->n_leaves, n, x);
            sample_raise(c->diagonal[i], leaf->rank, leaf->shape, x);
        } else {
            for (int64_t k = 0; k < n; k++)
                x[k] = floor(leaf->low + (leaf->high - leaf->low) * next_unit(&state));
        }
        x += n;
    }
}

static void *converted(int dtype, int64_t n, const double *from)
{
    void *to = check_memory((size_t)n * kernel_dtype_bytes(dtype));
    for (int64_t i = 0; i < n; i++) {
        if (dtype == KERNEL_F32)
            ((float *)to)[i] = (float)from[i];
        else if (dtype == KERNEL_F64)
            ((double *)to)[i] = from[i];
        else
            ((int64_t *)to)[i] = (int64_t)from[i];
    }
    return to;
}

static void widened(int dtype, int64_t n, const void *from, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtype == KERNEL_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

/* ---- recordings ---- */

static void succeed(const struct kernel_op *op, enum tape_status status)
{
    ck_assert_msg(status == TAPE_OK, "%s: %s", op->name, check_tape()->error.message);
}

uint32_t check_apply(const struct kernel_op *op, int n_in, const uint32_t *in)
{
    uint32_t out[KERNEL_MAX_OUT];
    const int64_t all[] = {0}; /* of a reduction: keepdim */
    succeed(op, tape_apply(check_tape(), op, n_in, in, op->n_attrs ? 1 : 0, all, check_site, out));
    return out[0];
}

uint32_t check_cast(uint32_t value, int dtype)
{
    uint32_t out;
    const int64_t attr[] = {dtype};
    succeed(&kernel_op_cast,
            tape_apply(check_tape(), &kernel_op_cast, 1, &value, 1, attr, check_site, &out));
    return out;
}

static uint32_t operand(const struct check_operand *in, uint32_t leaf)
{
    const struct kernel_op *op = NULL;
    const struct kernel_array *a = &check_tape()->entries[leaf].array;
    int64_t attr[KERNEL_MAX_RANK] = {kernel_attr_word(1)};
    int n_attr = 0;
    if (in->form == CHECK_PLAIN) {
        return leaf;
    } else if (in->form == CHECK_MIDDLE) {
        op = &kernel_op_scale;
        n_attr = 1;
    } else if (in->form == CHECK_TRANSPOSED) {
        op = &kernel_op_transpose;
    } else {
        op = &kernel_op_broadcast_to;
        memcpy(attr, a->shape, a->rank * sizeof *attr);
        attr[0] = in->stretch;
        n_attr = a->rank;
    }
    uint32_t out;
    succeed(op, tape_apply(check_tape(), op, 1, &leaf, n_attr, attr, check_site, &out));
    return out;
}

void check_run_operands(const struct check_case *c, const double *x, struct check_run *run)
{
    struct tape *t = check_tape();
    tape_reset(t);
    forget();
    for (int i = 0; i < c->n_leaves; i++) {
        const struct check_leaf *leaf = &c->leaf[i];
        int64_t n = check_leaf_size(leaf);
        succeed(c->op,
                tape_borrow(t, leaf->dtype, leaf->rank, leaf->shape, converted(leaf->dtype, n, x),
                            leaf->active, check_site, &run->leaf[i]));
        x += n;
    }
    for (int i = 0; i < c->n_in; i++) {
        /* Operands that are made alike are one value. */
        int same = 0;
        while (same < i && (c->in[same].leaf != c->in[i].leaf || c->in[same].form != c->in[i].form))
            same++;
        run->in[i] = same < i ? run->in[same] : operand(&c->in[i], run->leaf[c->in[i].leaf]);
    }
}

void check_run_op(const struct check_case *c, struct check_run *run)
{
    succeed(c->op, tape_apply(check_tape(), c->op, c->n_in, run->in, c->n_attr, c->attr, check_site,
                              run->out));
}

void check_run(const struct check_case *c, const double *x, struct check_run *run)
{
    check_run_operands(c, x, run);
    check_run_op(c, run);
}

int64_t check_y_size(const struct check_case *c, const struct check_run *run)
{
    int64_t n = 0;
    for (int o = 0; o < c->op->n_out; o++) {
        const struct kernel_array *a = &check_tape()->entries[run->out[o]].array;
        n += a->dtype == KERNEL_I64 ? 0 : a->size;
    }
    return n;
}

void check_read(uint32_t value, double *out)
{
    const struct kernel_array *a = &check_tape()->entries[value].array;
    void *buffer = malloc((size_t)a->size * kernel_dtype_bytes(a->dtype) + 1);
    ck_assert_msg(buffer, "no memory");
    tape_read(check_tape(), value, buffer);
    widened(a->dtype, a->size, buffer, out);
    free(buffer);
}

uint32_t check_like(uint32_t value, const double *elements, bool leaf)
{
    const struct kernel_array a = check_tape()->entries[value].array;
    uint32_t out;
    enum tape_status status =
        tape_borrow(check_tape(), a.dtype, a.rank, a.shape, converted(a.dtype, a.size, elements),
                    leaf, check_site, &out);
    ck_assert_msg(status == TAPE_OK, "%s", check_tape()->error.message);
    return out;
}

void check_values(const struct check_case *c, const struct check_run *run, double *y)
{
    for (int o = 0; o < c->op->n_out; o++) {
        const struct kernel_array *a = &check_tape()->entries[run->out[o]].array;
        if (a->dtype == KERNEL_I64)
            continue;
        check_read(run->out[o], y);
        y += a->size;
    }
}

void check_forward(const struct check_case *c, const double *x, double *y)
{
    struct check_case still = *c;
    struct check_run run;
    for (int i = 0; i < c->n_leaves; i++)
        still.leaf[i].active = false;
    check_run(&still, x, &run);
    check_values(&still, &run, y);
}

void check_gradients(const struct check_case *c, const struct check_run *run, double *g)
{
    const struct tape *t = check_tape();
    for (int i = 0; i < c->n_leaves; i++) {
        int64_t n = check_leaf_size(&c->leaf[i]);
        const void *gradient = c->leaf[i].active ? tape_gradient(t, run->leaf[i]) : NULL;
        for (int64_t k = 0; k < n; k++)
            g[k] = 0;
        if (gradient)
            widened(c->leaf[i].dtype, n, gradient, g);
        g += n;
    }
}

void check_sweep(const struct check_case *c, const struct check_run *run, const double *u,
                 double *g)
{
    struct tape *t = check_tape();
    for (int o = 0; o < c->op->n_out; o++) {
        const struct kernel_array *a = &t->entries[run->out[o]].array;
        if (a->dtype == KERNEL_I64)
            continue;
        if (t->entries[run->out[o]].flags & TAPE_NEEDS_GRADIENT)
            succeed(c->op,
                    tape_sweep(t, run->out[o], check_like(run->out[o], u, false), check_site));
        u += t->entries[run->out[o]].array.size;
    }
    check_gradients(c, run, g);
}

void check_poison(void)
{
    struct tape *t = check_tape();
    bool *saved = calloc(t->n_values, sizeof *saved); /* by the value that owns the buffer */
    ck_assert_msg(saved, "no memory");
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        for (int i = 0; i < r->n_in; i++)
            if (i < KERNEL_MAX_IN && (r->op->saves_in >> i & 1))
                saved[t->entries[tape_record_in(r)[i]].root] = true;
        for (int o = 0; o < r->n_out; o++)
            if (r->op->saves_out >> o & 1)
                saved[t->entries[tape_record_out(r)[o]].root] = true;
    }
    for (uint32_t v = 1; v < t->n_values; v++) {
        const struct kernel_array *a = &t->entries[v].array;
        if (t->entries[v].root != v || saved[v])
            continue;
        for (int64_t k = 0; k < a->size; k++) {
            if (a->dtype == KERNEL_F32)
                ((float *)a->data)[k] = NAN;
            else if (a->dtype == KERNEL_F64)
                ((double *)a->data)[k] = (double)NAN;
            else
                ((int64_t *)a->data)[k] = INT64_MIN;
        }
    }
    free(saved);
}

void check_pullback(const struct check_case *c, const double *x, const double *u, double *g)
{
    struct check_run run;
    check_run(c, x, &run);
    check_poison();
    check_sweep(c, &run, u, g);
}

/* ---- observation ---- */

static uint64_t ticks;

static uint64_t count_ticks(void)
{
    return ++ticks;
}

static void drop(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    (void)ledger;
    (void) final;
    hook->due = UINT64_MAX;
}

void check_observe(bool on)
{
    static struct tape_hook hook = {
        .abi = TAPE_HOOK_ABI, .clock = count_ticks, .due = UINT64_MAX, .flush = drop};
    if (on)
        ck_assert(tape_observe_begin(&hook));
    else
        tape_observe_end();
}
