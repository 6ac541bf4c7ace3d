/* test_replay_ops.c: every op's replay is a new recording, its values and gradients bit for bit. */
#include "check_tape.h"

#include "kernel_ops.h"
#include "run_cases.h"
#include "tape_replay.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_X = 4096, MOST_Y = 4096 };

static double x[MOST_X], other[MOST_X], u[MOST_Y], swept[2][MOST_X];
static int64_t values[2][MOST_Y];

static void succeed(const struct check_case *c, enum tape_status status)
{
    ck_assert_msg(status == TAPE_OK, "%s sample %d: %s", c->op->name, c->sample,
                  check_tape()->error.message);
}

/* The bits of all outputs, also of integers. How many words. */
static int64_t read_all(const struct check_case *c, const struct check_run *run, int64_t *to)
{
    int64_t n = 0;
    for (int o = 0; o < c->op->n_out; o++) {
        const struct kernel_array *a = &check_tape()->entries[run->out[o]].array;
        ck_assert_int_le(n + a->size, MOST_Y);
        memset(to + n, 0, (size_t)a->size * sizeof *to);
        tape_read(check_tape(), run->out[o], to + n);
        n += a->size;
    }
    return n;
}

/* middle: operands are computed from the leaves. */
static void operands_make(const struct check_case *c, struct check_run *run, bool middle)
{
    const int64_t twice = kernel_attr_word(1);
    for (int i = 0; i < c->n_in && middle; i++)
        if (c->leaf[i].dtype != KERNEL_I64)
            succeed(c, tape_apply(check_tape(), &kernel_op_scale, 1, &run->leaf[i], 1, &twice,
                                  check_site, &run->in[i]));
}

/* What the leaves' arrays hold becomes x. */
static void leaves_write(const struct check_case *c, const struct check_run *run,
                         const double *from)
{
    for (int i = 0; i < c->n_leaves; i++) {
        const struct kernel_array *a = &check_tape()->entries[run->leaf[i]].array;
        for (int64_t k = 0; k < a->size; k++, from++)
            if (a->dtype == KERNEL_F32)
                ((float *)a->data)[k] = (float)*from;
            else if (a->dtype == KERNEL_F64)
                ((double *)a->data)[k] = *from;
    }
}

/* Recorded at `other`, swept, and replayed at x; or recorded at x. Values and gradients of `k`. */
static int64_t evaluate(const struct check_case *c, bool middle, int k)
{
    struct tape *t = check_tape();
    struct check_run run;
    check_run_operands(c, k == 0 ? other : x, &run);
    if (k == 0)
        succeed(c, tape_replay_begin(t, check_site));
    operands_make(c, &run, middle);
    check_run_op(c, &run);
    if (k == 0) {
        succeed(c, tape_replay_end(t, check_site));
        check_sweep(c, &run, u, swept[k]);
        leaves_write(c, &run, x);
        succeed(c, tape_replay_ready(t, tape_replay_op, check_site));
        succeed(c, tape_replay(t, check_site));
        tape_zero_gradients(t);
    }
    const int64_t n = read_all(c, &run, values[k]);
    check_sweep(c, &run, u, swept[k]);
    return n;
}

/* How many of `other` are not x. */
static int64_t numbers_draw(const struct check_case *c)
{
    int64_t n = check_x_size(c), moved = 0;
    check_draw(c, x);
    check_random(11, MOST_Y, u);
    check_random(22, MOST_X, other);
    double *to = other;
    const double *from = x;
    for (int i = 0; i < c->n_leaves; i++)
        for (int64_t k = 0; k < check_leaf_size(&c->leaf[i]); k++, to++, from++) {
            *to = c->leaf[i].active ? *from + *to * CHECK_REACH : *from;
            moved += *to != *from;
        }
    ck_assert_int_le(n, MOST_X);
    return moved;
}

static void check_op(const struct kernel_op *op, int dtype, bool middle)
{
    struct kernel_sample sample;
    for (int k = 0; op->sample(k, &sample); k++) {
        const struct check_case c = check_case_of(op, &sample, dtype, k);
        if (check_x_size(&c) > MOST_X)
            continue;
        numbers_draw(&c);
        const int64_t n = evaluate(&c, middle, 0);
        ck_assert_int_eq(evaluate(&c, middle, 1), n);
        ck_assert_msg(memcmp(values[0], values[1], (size_t)n * sizeof *values[0]) == 0,
                      "%s %s sample %d: other values", op->name, kernel_dtype_name(dtype), k);
        ck_assert_msg(memcmp(swept[0], swept[1], (size_t)check_x_size(&c) * sizeof *swept[0]) == 0,
                      "%s %s sample %d: other gradients", op->name, kernel_dtype_name(dtype), k);
    }
}

static void check_ops(int dtype, bool middle)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int i = 0; i < n; i++)
        if (!ops[i]->draws)
            check_op(ops[i], dtype, middle);
}

TEST(a_replay_of_leaves_is_a_new_recording)
{
    check_ops(KERNEL_F64, false);
    check_ops(KERNEL_F32, false);
}

TEST(a_replay_of_intermediates_is_a_new_recording)
{
    check_ops(KERNEL_F64, true);
}

TEST(a_replay_is_the_same_while_it_is_observed)
{
    check_observe(true);
    check_ops(KERNEL_F64, true);
    check_observe(false);
}

TEST(what_draws_is_refused)
{
    int n, drawn = 0;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int i = 0; i < n; i++) {
        struct kernel_sample sample;
        struct check_run run;
        if (!ops[i]->draws)
            continue;
        drawn++;
        ck_assert(ops[i]->sample(0, &sample));
        const struct check_case c = check_case_of(ops[i], &sample, KERNEL_F64, 0);
        check_draw(&c, x);
        check_run_operands(&c, x, &run);
        succeed(&c, tape_replay_begin(check_tape(), check_site));
        check_run_op(&c, &run);
        ck_assert_int_eq(tape_replay_end(check_tape(), check_site), TAPE_ERROR_STATE);
        ck_assert_ptr_nonnull(strstr(check_tape()->error.message, "dropout at line 1 draws"));
        tape_reset(check_tape());
    }
    ck_assert_int_eq(drawn, 1);
}

RUN_TESTS(NULL, NULL)
