/* check_gradient.c: pullbacks against differences, and against themselves. */
#include "check_gradient.h"
#include "check_quietly.h"

#include "kernel_ops.h"
#include "sanitizers.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED_U = 101, SEED_V = 202, SEED_W = 303 };

char check_message[1024];

static double *numbers(int64_t n)
{
    double *p = calloc((size_t)n + 1, sizeof *p);
    ck_assert_msg(p, "no memory");
    return p;
}

/* ---- cases ---- */

void check_demand(bool passed)
{
    ck_assert_msg(passed, "%s", check_message);
}

void check_samples(int dtype, enum check_form form, const char *aim, check_fn *check)
{
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    for (int k = 0; k < n_ops; k++) {
        struct kernel_sample sample;
        for (int s = 0; !ops[k]->constant && ops[k]->sample(s, &sample); s++) {
            struct check_case c = check_case_of(ops[k], &sample, dtype, s);
            c.aim = aim;
            for (int i = 0; i < c.n_in; i++)
                if (c.leaf[i].active)
                    c.in[i].form = form;
            check_demand(check(&c));
        }
    }
}

bool check_alias(const struct check_case *c, struct check_case *same)
{
    const struct check_leaf *a = &c->leaf[0], *b = &c->leaf[1];
    *same = *c;
    same->in[1] = c->in[0];
    same->leaf[1].active = false;
    same->leaf[0].low = fmax(a->low, b->low);
    same->leaf[0].high = fmin(a->high, b->high);
    return c->n_in > 1 && a->active && b->active && a->rank == b->rank &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

/* ---- messages ---- */

/* "mul f64 sample 3, a [3,4] middle, b [4]: subset of operands" */
static void describe(const struct check_case *c, char *to, size_t size)
{
    static const char *const form[CHECK_FORMS] = {"", " as an intermediate", " transposed",
                                                  " stretched"};
    int n = snprintf(to, size, "%s %s", c->op->name, kernel_dtype_name(c->leaf[0].dtype));
    if (c->sample >= 0)
        n += snprintf(to + n, size - (size_t)n, " sample %d", c->sample);
    for (int i = 0; i < c->n_in; i++) {
        const struct check_leaf *leaf = &c->leaf[c->in[i].leaf];
        n += snprintf(to + n, size - (size_t)n, ", %s%s [", leaf->active ? "" : "constant ",
                      kernel_in_name(c->op, i));
        for (int axis = 0; axis < leaf->rank; axis++)
            n += snprintf(to + n, size - (size_t)n, axis ? ",%lld" : "%lld",
                          (long long)leaf->shape[axis]);
        n += snprintf(to + n, size - (size_t)n, "]%s", form[c->in[i].form]);
    }
    snprintf(to + n, size - (size_t)n, " (%s)", c->aim);
}

/* The operand that element `at` of x is of, and its place there. */
static const char *place(const struct check_case *c, int64_t *at)
{
    int leaf = 0;
    while (leaf < c->n_leaves - 1 && *at >= check_leaf_size(&c->leaf[leaf]))
        *at -= check_leaf_size(&c->leaf[leaf++]);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].leaf == leaf)
            return kernel_in_name(c->op, i);
    return "no operand";
}

static bool failed(const struct check_case *c, const char *what, int64_t y_at, int64_t x_at,
                   double got, double want)
{
    char text[512], output[48] = "";
    describe(c, text, sizeof text);
    if (y_at >= 0)
        snprintf(output, sizeof output, " of output element %lld", (long long)y_at);
    const char *operand = place(c, &x_at);
    snprintf(check_message, sizeof check_message,
             "%s: gradient%s in operand %s, element %lld: %.17g, but %s %.17g", text, output,
             operand, (long long)x_at, got, what, want);
    return false;
}

bool check_close(const struct check_case *c, const char *what, int64_t y_at, const double *got,
                 const double *want, double tolerance)
{
    int64_t n = check_x_size(c);
    for (int64_t k = 0; k < n; k++)
        if (!(fabs(got[k] - want[k]) <= tolerance * (1 + fabs(want[k]))))
            return failed(c, what, y_at, k, got[k], want[k]);
    return true;
}

/* ---- differences ---- */

void check_difference(check_function *f, const struct check_case *c, const double *x,
                      const double *payload, const double *along, int64_t n_y, double *dy)
{
    static const double step[4] = {-1, -0.5, 0.5, 1}, weight[4] = {1, -8, 8, -1};
    int64_t n = check_x_size(c);
    double *at = numbers(n), *y = numbers(n_y);
    for (int64_t j = 0; j < n_y; j++)
        dy[j] = 0;
    for (int s = 0; s < 4; s++) {
        for (int64_t k = 0; k < n; k++)
            at[k] = x[k] + step[s] * CHECK_REACH * along[k];
        f(c, at, payload, y);
        for (int64_t j = 0; j < n_y; j++)
            dy[j] += weight[s] / (6 * CHECK_REACH) * y[j];
    }
    free(at);
    free(y);
}

static void forward(const struct check_case *c, const double *x, const double *payload, double *y)
{
    (void)payload;
    check_forward(c, x, y);
}

/* Zero for the elements of x that have no gradient. */
static void mask_active(const struct check_case *c, double *v)
{
    for (int i = 0; i < c->n_leaves; i++) {
        int64_t n = check_leaf_size(&c->leaf[i]);
        for (int64_t k = 0; k < n && !c->leaf[i].active; k++)
            v[k] = 0;
        v += n;
    }
}

/* x, and the number of results. */
static double *begin(const struct check_case *c, int64_t *n_x, int64_t *n_y)
{
    struct check_run run;
    *n_x = check_x_size(c);
    double *x = numbers(*n_x);
    check_draw(c, x);
    check_run(c, x, &run);
    *n_y = check_y_size(c, &run);
    return x;
}

bool check_jacobian(const struct check_case *c)
{
    int64_t n_x, n_y;
    double *x = begin(c, &n_x, &n_y);
    double *want = numbers(n_x * n_y), *dy = numbers(n_y), *unit = numbers(n_x + n_y);
    double *active = numbers(n_x), *g = numbers(n_x);
    for (int64_t k = 0; k < n_x; k++)
        active[k] = 1;
    mask_active(c, active);
    for (int64_t k = 0; k < n_x; k++) {
        if (active[k] == 0)
            continue;
        unit[k] = 1;
        check_difference(forward, c, x, NULL, unit, n_y, dy);
        unit[k] = 0;
        for (int64_t j = 0; j < n_y; j++)
            want[j * n_x + k] = dy[j];
    }
    bool good = true;
    for (int64_t j = 0; j < n_y && good; j++) {
        unit[j] = 1;
        check_pullback(c, x, unit, g);
        unit[j] = 0;
        good = check_close(c, "differences give", j, g, &want[j * n_x], 1e-8);
    }
    if (n_y == 0) { /* of nothing: the gradient is zero */
        check_pullback(c, x, unit, g);
        good = check_close(c, "of no output it is", -1, g, unit, 0);
    }
    free(x);
    free(want);
    free(dy);
    free(unit);
    free(active);
    free(g);
    return good;
}

bool check_rows(const struct check_case *c)
{
    return sanitizers_step(2) > 1 ? check_direction(c) : check_jacobian(c);
}

bool check_direction(const struct check_case *c)
{
    int64_t n_x, n_y;
    double *x = begin(c, &n_x, &n_y);
    double *u = numbers(n_y), *dy = numbers(n_y), *v = numbers(n_x), *g = numbers(n_x);
    check_random(SEED_U, n_y, u);
    check_random(SEED_V, n_x, v);
    mask_active(c, v);
    check_pullback(c, x, u, g);
    check_difference(forward, c, x, NULL, v, n_y, dy);
    double forwards = 0, backwards = 0, size = 1;
    for (int64_t j = 0; j < n_y; j++) {
        forwards += u[j] * dy[j];
        size += fabs(u[j] * dy[j]);
    }
    for (int64_t k = 0; k < n_x; k++) {
        backwards += g[k] * v[k];
        size += fabs(g[k] * v[k]);
    }
    bool good = n_x == 0 || fabs(forwards - backwards) <= 1e-9 * size;
    if (!good) {
        describe(c, check_message, sizeof check_message - 200);
        size_t n = strlen(check_message);
        snprintf(check_message + n, sizeof check_message - n,
                 ": <J^T u, v> is %.17g, but <u, J v> by differences %.17g", backwards, forwards);
    }
    free(x);
    free(u);
    free(dy);
    free(v);
    free(g);
    return good;
}

bool check_narrow(const struct check_case *c)
{
    int64_t n_x, n_y;
    struct check_case wide = *c;
    double *x = begin(c, &n_x, &n_y);
    double *u = numbers(n_y), *g = numbers(n_x), *want = numbers(n_x);
    for (int i = 0; i < c->n_leaves; i++)
        if (c->leaf[i].dtype == KERNEL_F32)
            wide.leaf[i].dtype = KERNEL_F64;
    check_random(SEED_U, n_y, u);
    check_pullback(c, x, u, g);
    check_pullback(&wide, x, u, want);
    bool good = check_close(c, "f64 gives", -1, g, want, 4e-6);
    free(x);
    free(u);
    free(g);
    free(want);
    return good;
}

/* <value, weights> as a recorded scalar. */
static uint32_t inner(uint32_t value, const double *weights)
{
    uint32_t product[2] = {value, check_like(value, weights, false)};
    product[0] = check_apply(&kernel_op_mul, 2, product);
    return check_apply(&kernel_op_sum, 1, product);
}

static uint32_t plus(uint32_t a, uint32_t b)
{
    return a ? check_apply(&kernel_op_add, 2, (uint32_t[]){a, b}) : b;
}

static bool needs(uint32_t value)
{
    return (check_tape()->entries[value].flags & TAPE_NEEDS_GRADIENT) != 0;
}

static uint32_t hold_operands(const struct check_case *c, const struct check_run *run,
                              const double *two)
{
    uint32_t sum = 0;
    for (int i = 0; i < c->n_in; i++)
        if (needs(run->in[i]))
            sum = plus(sum, inner(run->in[i], two));
    return sum;
}

/* Records one scalar of the outputs, weighted by u, and of the operands, by 2; sweeps from it. */
static void sweep_held(const struct check_case *c, const double *x, const double *u,
                       const double *two, bool held_first, double *g)
{
    struct check_run run;
    uint32_t held = 0, own = 0;
    check_run_operands(c, x, &run);
    if (held_first)
        held = hold_operands(c, &run, two);
    check_run_op(c, &run);
    for (int o = 0; o < c->op->n_out; o++) {
        if (needs(run.out[o]))
            own = plus(own, inner(run.out[o], u));
        u += check_tape()->entries[run.out[o]].array.size;
    }
    if (!held_first)
        held = hold_operands(c, &run, two);
    if (own && held && check_tape()->entries[own].array.dtype != c->leaf[0].dtype)
        own = check_cast(own, c->leaf[0].dtype); /* of an op that changes it */
    uint32_t all = own && held ? plus(own, held) : own + held;
    if (all) {
        check_poison();
        enum tape_status status = tape_sweep(check_tape(), all, 0, check_site);
        ck_assert_msg(status == TAPE_OK, "%s", check_tape()->error.message);
    }
    check_gradients(c, &run, g);
}

static bool check_user_buffers(const struct check_case *c, const double *x, const double *u,
                               const double *want)
{
    struct check_run run;
    int64_t n = check_x_size(c), at = 0;
    double *g = numbers(n), *plain = numbers(n);
    check_run(c, x, &run);
    for (int i = 0; i < c->n_leaves; i++) {
        const struct kernel_array *a = &check_tape()->entries[run.leaf[i]].array;
        if (!c->leaf[i].active)
            continue;
        char *buffer = check_memory((size_t)a->size * kernel_dtype_bytes(a->dtype));
        for (int64_t k = 0; k < a->size; k++) {
            if (a->dtype == KERNEL_F32)
                ((float *)(void *)buffer)[k] = 0.5F;
            else
                ((double *)(void *)buffer)[k] = 0.5;
        }
        ck_assert_msg(tape_gradient_buffer(check_tape(), run.leaf[i], buffer, check_site) ==
                          TAPE_OK,
                      "%s", check_tape()->error.message);
    }
    check_poison();
    check_sweep(c, &run, u, g);
    for (int i = 0; i < c->n_leaves; i++)
        for (int64_t k = 0; k < check_leaf_size(&c->leaf[i]); k++, at++)
            plain[at] = want[at] + (c->leaf[i].active ? 0.5 : 0);
    bool good = check_close(c, "0.5 in the user's buffer and the gradient are", -1, g, plain,
                            c->leaf[0].dtype == KERNEL_F32 ? 4e-6 : 1e-13);
    free(g);
    free(plain);
    return good;
}

bool check_held(const struct check_case *c)
{
    int64_t n_x, n_y, at = 0;
    double *x = begin(c, &n_x, &n_y);
    double *u = numbers(n_y), *g = numbers(n_x), *plain = numbers(n_x), *want = numbers(n_x);
    double *two = numbers(n_x + 1), tolerance = c->leaf[0].dtype == KERNEL_F32 ? 4e-6 : 1e-13;
    check_random(SEED_W, n_y, u);
    check_pullback(c, x, u, plain);
    for (int64_t k = 0; k < n_x; k++)
        two[k] = 2;
    for (int i = 0; i < c->n_leaves; i++) {
        int uses = 0;
        for (int k = 0; k < c->n_in && c->leaf[i].active; k++)
            uses += c->in[k].leaf == i;
        for (int64_t k = 0; k < check_leaf_size(&c->leaf[i]); k++, at++)
            want[at] = plain[at] + 2 * uses;
    }
    bool good = true;
    for (int held_first = 0; held_first < 2 && good; held_first++) {
        sweep_held(c, x, u, two, held_first, g);
        good = check_close(c,
                           held_first ? "with a second use before the op it is"
                                      : "with a second use behind the op it is",
                           -1, g, want, tolerance);
    }
    good = good && check_user_buffers(c, x, u, plain);
    free(x);
    free(u);
    free(g);
    free(plain);
    free(want);
    free(two);
    return good;
}

bool check_stretched(const struct check_case *c, int i)
{
    struct check_case view = *c;
    struct check_leaf *leaf = &view.leaf[c->in[i].leaf];
    int64_t n_x, n_y, before = 0;
    view.in[i] = (struct check_operand){c->in[i].leaf, CHECK_STRETCHED, leaf->shape[0]};
    leaf->shape[0] = 1;
    for (int k = 0; k < c->in[i].leaf; k++)
        before += check_leaf_size(&c->leaf[k]);
    double *x = begin(&view, &n_x, &n_y);
    int64_t row = check_leaf_size(leaf), rows = view.in[i].stretch, all = check_x_size(c);
    double *dense = numbers(all), *u = numbers(n_y), *full = numbers(all);
    double *g = numbers(n_x), *want = numbers(n_x);
    check_random(SEED_U, n_y, u);
    check_pullback(&view, x, u, g);
    memcpy(dense, x, (size_t)before * sizeof *x);
    for (int64_t r = 0; r < rows; r++)
        memcpy(dense + before + r * row, x + before, (size_t)row * sizeof *x);
    memcpy(dense + before + rows * row, x + before + row, (size_t)(n_x - before - row) * sizeof *x);
    check_pullback(c, dense, u, full);
    memcpy(want, full, (size_t)before * sizeof *x);
    for (int64_t k = 0; k < rows * row; k++)
        want[before + k % row] += full[before + k];
    memcpy(want + before + row, full + before + rows * row,
           (size_t)(n_x - before - row) * sizeof *x);
    bool good = check_close(&view, "from a dense operand it is", -1, g, want, 1e-13);
    free(x);
    free(dense);
    free(u);
    free(full);
    free(g);
    free(want);
    return good;
}

bool check_observed(const struct check_case *c)
{
    int64_t n_x, n_y;
    double *x = begin(c, &n_x, &n_y);
    double *u = numbers(n_y), *g = numbers(n_x), *want = numbers(n_x);
    check_random(SEED_U, n_y, u);
    check_pullback(c, x, u, want);
    check_observe(true);
    check_pullback(c, x, u, g);
    check_observe(false);
    bool good = true;
    for (int64_t k = 0; k < n_x && good; k++)
        if (memcmp(&g[k], &want[k], sizeof *g) != 0)
            good = failed(c, "unobserved it is", -1, k, g[k], want[k]);
    free(x);
    free(u);
    free(g);
    free(want);
    return good;
}

bool check_constant(const struct check_case *c)
{
    int64_t n_x, n_y;
    double *x = begin(c, &n_x, &n_y), *u = numbers(n_y), *g = numbers(n_x), *zero = numbers(n_x);
    struct check_run run;
    check_run(c, x, &run);
    uint32_t records = check_tape()->n_records;
    bool good = records == 0 && !needs(run.out[0]);
    if (!good) {
        describe(c, check_message, sizeof check_message - 200);
        size_t n = strlen(check_message);
        snprintf(check_message + n, sizeof check_message - n, ": a constant op was recorded");
    }
    check_random(SEED_U, n_y, u);
    check_sweep(c, &run, u, g);
    good = good && check_close(c, "of a constant op it is", -1, g, zero, 0);
    free(x);
    free(u);
    free(g);
    free(zero);
    return good;
}

void check_large(const struct check_large *large)
{
    struct kernel_sample sample = {.n_in = large->n_in, .n_attr = large->n_attr};
    memcpy(sample.attr, large->attr, sizeof large->attr);
    for (int i = 0; i < sample.n_in; i++) {
        sample.dtype[i] = KERNEL_F64;
        sample.rank[i] = (uint8_t)large->rank;
        memcpy(sample.shape[i], large->shape[i], sizeof large->shape[i]);
        sample.low[i] = -1;
        sample.high[i] = 1;
    }
    struct check_case c = check_case_of(large->op, &sample, KERNEL_F64, -1);
    c.aim = "large";
    check_demand(check_direction(&c));
    check_demand(check_held(&c));
    c = check_case_of(large->op, &sample, KERNEL_F32, -1);
    c.aim = "large";
    check_demand(check_narrow(&c));
}
