/* test_real_checkpoint.c: checkpoints of scalars: gradients, memory, and what a function may do.
 *
 * What is compared is compared bit for bit.
 */
#include <tapescope/ad_real.h>
#include <tapescope/ad_real_tensor.h>

#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { STATE = 3, STEPS = 64, ROWS = 5, ALL = STATE + 1 };

static const double start[ALL] = {1.0, 0.5, 2.0, 0.01}; /* the last: the size of a step */
static ad_real x[ALL];

static void setup(void)
{
    tape_begin(NULL);
    ck_assert_int_eq(ad_real_leaves(tape, ALL, start, x), AD_OK);
}

/* ---- steps of the Lorenz system, u[0...2], by midpoints of the size u[3] ---- */

static void slope(const ad_real *u, ad_real *k)
{
    ad_set(&k[0], ad_real_mul(10, ad_real_sub(u[1], u[0])));
    ad_set(&k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(28, u[2])), u[1]));
    ad_set(&k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(8.0 / 3, u[2])));
}

static void step(ad_real *u)
{
    ad_real k[STATE], middle[STATE];
    slope(u, k);
    for (int i = 0; i < STATE; i++)
        ad_set(&middle[i], ad_real_add(u[i], ad_real_mul(ad_real_mul(0.5, u[STATE]), k[i])));
    slope(middle, k);
    for (int i = 0; i < STATE; i++)
        ad_set(&u[i], ad_real_add(u[i], ad_real_mul(u[STATE], k[i])));
}

struct plan {
    int steps, calls;
    const struct plan *half; /* two of these instead of steps */
    struct plan *count;
};

static void steps(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    const struct plan *p = payload;
    ad_real u[ALL];
    ck_assert_int_eq(n_in, ALL);
    ck_assert_int_eq(n_out, STATE);
    p->count->calls++;
    memcpy(u, in, sizeof u);
    if (p->half) {
        ad_real_checkpoint(on, steps, (void *)(uintptr_t)p->half, ALL, u, STATE, u);
        ad_real_checkpoint(on, steps, (void *)(uintptr_t)p->half, ALL, u, STATE, u);
    }
    for (int i = 0; i < p->steps && !p->half; i++)
        step(u);
    memcpy(out, u, STATE * sizeof *u);
}

enum { DEPTHS = 8 };

/* n steps in segments of so many (0: without checkpoints), the results in u. */
static void integrate(struct plan *p, int n, int of, ad_real *u)
{
    memcpy(u, x, sizeof x);
    for (int i = 0; i < n; i += of ? of : 1) {
        if (of)
            check_ok(ad_real_checkpoint(tape, steps, p, ALL, u, STATE, u));
        else
            step(u);
    }
}

/* Fused loops of so many steps, which are halved so often. */
static void plan(struct plan *p, int of, int depth)
{
    for (int k = 0; k <= depth; k++)
        p[k] = (struct plan){.steps = of >> k, .half = k < depth ? &p[k + 1] : NULL, .count = p};
}

struct result {
    double value[STATE], gradient[ALL], jacobian[STATE * ALL];
};

static void derive(struct plan *p, int of, struct result *r)
{
    ad_real u[ALL], y;
    integrate(p, STEPS, of, u);
    ad_set(&y, ad_real_add(ad_real_square(u[0]), ad_real_mul(u[1], u[2])));
    for (int i = 0; i < STATE; i++)
        r->value[i] = ad_real_value(u[i]);
    check_ok(ad_tape_zero_gradients(tape));
    check_ok(ad_real_backward(tape, y));
    check_ok(ad_real_gradients(tape, ALL, x, r->gradient));
    check_ok(ad_real_jacobian(tape, STATE, u, ALL, x, r->jacobian));
}

TEST(values_and_gradients_are_those_without_checkpoints)
{
    static const struct {
        int of, depth;
    } ways[] = {{STEPS, 0}, {1, 0}, {8, 0}, {16, 2}, {STEPS, 6}};
    struct plan none = {.count = &none}, p[DEPTHS];
    struct result plain, got;
    const ad_mark mark = ad_tape_mark(tape);
    derive(&none, 0, &plain);
    check_ok(ad_tape_rewind(tape, mark));
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        plan(p, ways[k].of, ways[k].depth);
        derive(p, ways[k].of, &got);
        ck_assert_msg(memcmp(&got, &plain, sizeof got) == 0, "segments of %d, halved %d times",
                      ways[k].of, ways[k].depth);
        check_ok(ad_tape_rewind(tape, mark));
    }
}

TEST(each_segment_is_called_once_and_once_in_each_sweep)
{
    struct plan p[DEPTHS];
    ad_real u[ALL];
    plan(p, 8, 0);
    integrate(p, STEPS, 8, u);
    ck_assert_int_eq(p[0].calls, STEPS / 8);
    ck_assert_uint_eq(stats().statements, 0);
    for (int k = 1; k <= 3; k++) {
        const ad_stats before = stats();
        check_ok(ad_real_backward(tape, u[k - 1]));
        ck_assert_int_eq(p[0].calls, (k + 1) * STEPS / 8);
        ad_stats after = stats();
        after.peak_bytes = before.peak_bytes;
        ck_assert_mem_eq(&after, &before, sizeof after);
    }
    /* Results that no adjoint comes to are not computed again. */
    check_ok(ad_real_backward(tape, x[0]));
    ck_assert_int_eq(p[0].calls, 4 * STEPS / 8);
}

static uint64_t peak_of(int n, int of, int depth)
{
    struct plan p[DEPTHS];
    ad_real u[ALL];
    const ad_mark mark = ad_tape_mark(tape);
    plan(p, of, depth);
    check_ok(ad_tape_reset_peak(tape));
    const uint64_t before = stats().live_bytes;
    integrate(p, n, of, u);
    check_ok(ad_real_backward(tape, u[0]));
    const uint64_t peak = stats().peak_bytes - before;
    check_ok(ad_tape_rewind(tape, mark));
    return peak;
}

/* A step's statements take 500 bytes and more, its indices 100; blocks grow by steps, so that
 * bounds are wide. */
TEST(memory_grows_by_the_square_root)
{
    const uint64_t plain = peak_of(1 << 12, 0, 0), plain_4 = peak_of(1 << 14, 0, 0);
    ck_assert_uint_gt(plain_4, plain * 3);
    const uint64_t root = peak_of(1 << 12, 1 << 6, 0), root_4 = peak_of(1 << 14, 1 << 7, 0);
    ck_assert_uint_lt(root, plain / 16);
    ck_assert_uint_lt(root_4, root * 5 / 2);
    ck_assert_uint_lt(root_4, plain_4 / 32);
    /* By halves it is the logarithm: blocks and the record of each level. */
    const uint64_t halves = peak_of(1 << 6, 1 << 6, 6);
    ck_assert_uint_lt(halves, peak_of(1 << 6, 0, 0) / 2);
}

/* ---- what else may be in it ---- */

static void mixed(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    const double *w = payload;
    ad_real y = in[0], unused;
    const ad_mark mark = ad_tape_mark(on);
    ad_set(&unused, ad_real_exp(in[1]));
    ck_assert_int_eq(ad_tape_rewind(on, mark), AD_OK);
    ad_set(&y, ad_real_add(ad_real_dot(n_in, in, w), ad_real_sum_of_squares(n_in, in)));
    ck_assert_int_eq(ad_tape_record_begin(on), AD_OK);
    ad_set(&out[1], ad_real_mul(y, ad_real_dot(n_in, in, in)));
    ck_assert_int_eq(ad_tape_record_end(on), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_begin(on), AD_OK);
    ad_set(&unused, ad_real_mul(in[0], in[0]));
    ck_assert_int_eq(ad_tape_no_grad_end(on), AD_OK);
    ad_set(&out[0], ad_real_mul(y, ad_real_value(unused)));
    if (n_out > 2) {
        out[2] = in[1];
        out[3] = out[0];
        out[4] = ad_real_of(2.5);
    }
}

static const double weights[ALL] = {0.5, -1.5, 0.25, 2};

TEST(fused_loops_marks_constants_and_operands_may_be_in_it)
{
    double jacobian[2][ROWS * ALL], value[2][ROWS];
    ad_real y[ROWS], after;
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        const ad_mark mark = ad_tape_mark(tape);
        if (checkpoint)
            check_ok(ad_real_checkpoint(tape, mixed, (void *)(uintptr_t)weights, ALL, x, ROWS, y));
        else
            mixed(tape, ALL, x, ROWS, y, (void *)(uintptr_t)weights);
        ad_set(&after, ad_real_mul(y[0], ad_real_add(y[2], ad_real_mul(y[3], y[4]))));
        for (int again = 0; again < 2; again++) {
            check_ok(ad_tape_zero_gradients(tape));
            check_ok(ad_real_backward(tape, after));
            check_ok(ad_real_jacobian(tape, ROWS, y, ALL, x, jacobian[checkpoint]));
        }
        for (int i = 0; i < ROWS; i++)
            value[checkpoint][i] = ad_real_value(y[i]);
        ad_real behind; /* what is recorded behind a sweep has a name of its own */
        ad_set(&behind, ad_real_mul(after, y[1]));
        check_ok(ad_real_backward(tape, behind));
        check_ok(ad_tape_rewind(tape, mark));
    }
    ck_assert_mem_eq(value[0], value[1], sizeof value[0]);
    ck_assert_mem_eq(jacobian[0], jacobian[1], sizeof jacobian[0]);
}

TEST(without_variables_it_is_a_call)
{
    struct plan p[1];
    ad_real u[ALL];
    plan(p, 2, 0);
    for (int i = 0; i < ALL; i++)
        u[i] = ad_real_of(start[i]);
    const ad_stats before = stats();
    check_ok(ad_real_checkpoint(tape, steps, p, ALL, u, STATE, u));
    ck_assert_int_eq(p[0].calls, 1);
    memcpy(u, x, sizeof u);
    check_ok(ad_tape_no_grad_begin(tape));
    check_ok(ad_real_checkpoint(tape, steps, p, ALL, u, STATE, u));
    check_ok(ad_tape_no_grad_end(tape));
    ck_assert_int_eq(p[0].calls, 2);
    ck_assert_uint_eq(u[0].index, 0);
    check_ok(ad_real_checkpoint(tape, steps, p, ALL, x, STATE, u));
    ck_assert_uint_ne(u[0].index, 0);
    ck_assert_uint_eq(stats().records, before.records + 1);
}

TEST(a_sweep_may_come_under_no_grad_or_while_another_tape_is_recorded_on)
{
    struct plan p[1];
    double plain[ALL], got[ALL];
    ad_real u[ALL], z;
    ad_tape other;
    plan(p, 4, 0);
    integrate(p, 8, 4, u);
    check_ok(ad_real_backward(tape, u[0]));
    check_ok(ad_real_gradients(tape, ALL, x, plain));
    check_ok(ad_tape_no_grad_begin(tape));
    check_ok(ad_tape_zero_gradients(tape));
    check_ok(ad_real_backward(tape, u[0]));
    check_ok(ad_real_gradients(tape, ALL, x, got));
    ck_assert_mem_eq(got, plain, sizeof got);
    check_ok(ad_tape_no_grad_end(tape));
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(other), AD_OK);
    ad_real o = ad_real_leaf(other, 2);
    ad_set(&z, ad_real_mul(o, o));
    check_ok(ad_tape_zero_gradients(tape));
    check_ok(ad_real_backward(tape, u[0]));
    check_ok(ad_real_gradients(tape, ALL, x, got));
    ck_assert_mem_eq(got, plain, sizeof got);
    ad_set(&z, ad_real_mul(z, o)); /* goes on where it was */
    ck_assert_int_eq(ad_real_backward(other, z), AD_OK);
    ck_assert_double_eq(ad_real_gradient(other, o), 12);
    ck_assert_int_eq(ad_tape_record_end(other), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(tape), AD_OK); /* and without any */
    check_ok(ad_tape_zero_gradients(tape));
    check_ok(ad_real_backward(tape, u[0]));
    check_ok(ad_real_gradients(tape, ALL, x, got));
    ck_assert_mem_eq(got, plain, sizeof got);
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
}

TEST(with_forks_beside_it_and_swept_before_they_are_joined)
{
    double gradient[2][ALL];
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        const ad_mark mark = ad_tape_mark(tape);
        struct plan none = {.count = &none}, p[1];
        ad_tape fork[2];
        ad_real u[ALL], y[2], sum;
        plan(p, 4, 0);
        integrate(checkpoint ? p : &none, 8, checkpoint ? 4 : 0, u);
        check_ok(ad_tape_fork(tape, 2, fork));
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(ad_tape_record_begin(fork[k]), AD_OK);
            ad_set(&y[k], ad_real_mul(u[k], ad_real_sin(u[2])));
            ck_assert_int_eq(ad_tape_record_end(fork[k]), AD_OK);
        }
        check_ok(ad_real_backward(tape, u[0])); /* the forks stay what they are */
        for (int k = 0; k < 2; k++)
            check_ok(ad_tape_join(tape, fork[k], 1, &y[k]));
        memcpy(&u[0], &y[0], sizeof *u);
        if (checkpoint)
            check_ok(ad_real_checkpoint(tape, steps, p, ALL, u, STATE, u));
        else
            for (int i = 0; i < 4; i++)
                step(u);
        ad_set(&sum, ad_real_add(u[0], ad_real_mul(y[0], y[1])));
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_real_backward(tape, sum));
        check_ok(ad_real_gradients(tape, ALL, x, gradient[checkpoint]));
        check_ok(ad_tape_rewind(tape, mark));
    }
    ck_assert_mem_eq(gradient[0], gradient[1], sizeof gradient[0]);
}

/* With a trap each statement asks for its room, and is looked at. */
TEST(a_trap_looks_at_what_is_computed_again)
{
    struct plan none = {.count = &none}, p[DEPTHS];
    struct result plain, got;
    const ad_mark mark = ad_tape_mark(tape);
    derive(&none, 0, &plain);
    check_ok(ad_tape_rewind(tape, mark));
    check_ok(ad_tape_trap(tape, AD_TRAP_ALL));
    plan(p, 16, 2);
    derive(p, 16, &got);
    ck_assert_mem_eq(&got, &plain, sizeof got);
    check_ok(ad_tape_trap(tape, 0));
}

/* ---- between tensors ---- */

TEST(tensors_give_and_take_its_numbers)
{
    static const int64_t shape[1] = {ALL}, rows[1] = {STATE};
    double gradient[2][ALL];
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        struct plan p[1];
        ad_real u[ALL];
        plan(p, 4, 0);
        ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, start);
        check_ok(ad_reals_of_tensor(ad_tanh(leaf), ALL, u));
        for (int i = 0; i < 3; i++) {
            if (checkpoint)
                check_ok(ad_real_checkpoint(tape, steps, p, ALL, u, STATE, u));
            else
                steps(tape, ALL, u, STATE, u, p);
        }
        ad_tensor y = ad_sum(ad_square(ad_tensor_of_reals(tape, 1, rows, u)));
        check_ok(ad_backward(y));
        ck_assert_int_eq(p[0].calls, checkpoint ? 6 : 3);
        check_ok(ad_gradient(leaf, gradient[checkpoint], ALL));
    }
    ck_assert_mem_eq(gradient[0], gradient[1], sizeof gradient[0]);
}

/* The array behind the tensor is compared, as for statements. */
TEST(a_changed_array_is_told_through_it)
{
    static const int64_t shape[1] = {ALL};
    double data[ALL];
    struct plan p[1];
    ad_real u[ALL];
    memcpy(data, start, sizeof data);
    plan(p, 2, 0);
    ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, data);
    check_ok(ad_reals_of_tensor(ad_square(leaf), ALL, u));
    check_ok(ad_real_checkpoint(tape, steps, p, ALL, u, STATE, u));
    data[1] = 7;
    ck_assert_int_eq(ad_real_backward(tape, u[0]), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    data[1] = start[1];
    check_ok(ad_real_backward(tape, u[0]));
}

RUN_TESTS(setup, teardown_fine)
