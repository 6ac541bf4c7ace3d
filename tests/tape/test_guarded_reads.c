/* test_guarded_reads.c: what no guard watches is read by no pullback, for every op of the op table.
 *
 * All samples of all ops, with every subset of the operands active: the array of an operand is
 * overwritten between two sweeps.
 */
#include "check_gradient.h"
#include "run_cases.h"
#include "tape_guard.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Of the op's samples with these operands active. */
static struct seen {
    const struct kernel_op *op;
    unsigned subset;
    unsigned watched, mattered; /* operands: guarded, and their content found to matter */
} now;
static int unwatched, refused;

static uint32_t first_float(const struct check_case *c, const struct check_run *run)
{
    for (int o = 0; o < c->op->n_out; o++)
        if (check_tape()->entries[run->out[o]].flags & TAPE_NEEDS_GRADIENT)
            return run->out[o];
    return 0;
}

/* Gradients of a further sweep from zero. */
static void sweep_again(const struct check_case *c, const struct check_run *run, const double *u,
                        double *g)
{
    tape_zero_gradients(check_tape());
    check_sweep(c, run, u, g);
}

/* Sweeps with the guards out of force, from the first float output: do all gradients stay? */
static bool reads(const struct check_case *c, const struct check_run *run, const double *u,
                  const double *want, double *g)
{
    struct tape *t = check_tape();
    uint32_t guards = t->last_guard;
    t->last_guard = TAPE_NO_GUARD;
    sweep_again(c, run, u, g);
    t->last_guard = guards;
    return memcmp(g, want, (size_t)check_x_size(c) * sizeof *g) != 0;
}

/* Zeros, and what is out of most domains on both sides. */
static void overwrite(double *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = k % 3 == 0 ? 0 : k % 3 == 1 ? 2 * x[k] + 5 : -7 - x[k];
}

static void check_operand(const struct check_case *c, const struct check_run *run, int i,
                          const double *u, const double *want, double *g)
{
    struct tape *t = check_tape();
    const struct kernel_array *a = &t->entries[run->leaf[i]].array;
    size_t bytes = (size_t)a->size * kernel_dtype_bytes(a->dtype);
    if (a->size == 0)
        return;
    char *kept = check_memory(bytes), *data = a->data;
    memcpy(kept, data, bytes);
    ck_assert(!tape_guard_changed(t, run->leaf[i]));
    if (a->dtype == KERNEL_I64) /* an index that is valid where the first was */
        memset(data, 0, bytes);
    else
        overwrite(a->data, a->size);
    if (memcmp(kept, data, bytes) == 0)
        return;
    if (!tape_guard_changed(t, run->leaf[i])) {
        unwatched++;
        sweep_again(c, run, u, g);
        ck_assert_msg(memcmp(g, want, (size_t)check_x_size(c) * sizeof *g) == 0,
                      "%s, sample %d, active %#x: operand %d is read and has no guard", c->op->name,
                      c->sample, now.subset, i + 1);
    } else {
        now.watched |= 1U << i;
        if (first_float(c, run)) {
            refused++;
            uint32_t seed = check_like(first_float(c, run), u, false);
            ck_assert_int_eq(tape_sweep(t, first_float(c, run), seed, check_site),
                             TAPE_ERROR_STATE);
            t->error.code = TAPE_OK;
        }
        if (reads(c, run, u, want, g))
            now.mattered |= 1U << i;
    }
    memcpy(data, kept, bytes);
}

static void check_subset(const struct check_case *c)
{
    struct check_run run;
    double *x = calloc((size_t)check_x_size(c) + 1, sizeof *x);
    double *want = calloc((size_t)check_x_size(c) + 1, sizeof *want);
    double *g = calloc((size_t)check_x_size(c) + 1, sizeof *g);
    ck_assert(x && want && g);
    check_draw(c, x);
    check_run(c, x, &run);
    int64_t n_y = check_y_size(c, &run);
    double *u = calloc((size_t)n_y + 1, sizeof *u);
    ck_assert_ptr_nonnull(u);
    check_random(1, n_y, u);
    if (first_float(c, &run)) {
        sweep_again(c, &run, u, want);
        for (int i = 0; i < c->n_leaves; i++)
            check_operand(c, &run, i, u, want, g);
    }
    free(x);
    free(want);
    free(g);
    free(u);
}

static bool check_op(const struct kernel_op *op, unsigned subset)
{
    struct kernel_sample sample;
    now = (struct seen){.op = op, .subset = subset};
    for (int s = 0; op->sample(s, &sample); s++) {
        struct check_case c = check_case_of(op, &sample, KERNEL_F64, s);
        if (c.n_in > KERNEL_MAX_IN)
            continue;
        bool any = false;
        for (int i = 0; i < c.n_in; i++) {
            c.leaf[i].active = c.leaf[i].active && (subset >> i & 1) != 0;
            any = any || c.leaf[i].active;
        }
        if (any)
            check_subset(&c);
    }
    return now.watched == now.mattered;
}

TEST(an_array_that_a_pullback_reads_has_a_guard_and_no_other_has)
{
    int n_ops;
    const struct kernel_op *const *ops = kernel_ops(&n_ops);
    check_tape()->whole_bytes = UINT64_MAX;
    for (int k = 0; k < n_ops; k++)
        for (unsigned subset = 1; subset < 1U << KERNEL_MAX_IN; subset++)
            if (!ops[k]->constant && !check_op(ops[k], subset))
                ck_abort_msg("%s, active %#x: operands %#x are guarded, only %#x matter",
                             now.op->name, subset, now.watched, now.mattered);
    ck_assert_int_gt(unwatched, 500);
    ck_assert_int_gt(refused, 500);
}

RUN_TESTS(NULL, NULL)
