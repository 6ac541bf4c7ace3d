/* test_real_fork.c: forks that threads record on, joined and swept into one gradient.
 *
 * Threads count what goes wrong; the test's own thread asserts.
 */
#include <tapescope/ad_real.h>

#include "check_quietly.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 7, MOST = 8, DATA = 400, LARGE = 60000 };

static ad_real x[N];
static const double start[N] = {0.5, -0.25, 0.75, 1.5, 0.125, -1.0, 2.0};

static void setup(void)
{
    tape_begin(NULL);
    ck_assert_int_eq(ad_real_leaves(tape, N, start, x), AD_OK);
}

/* A sum over data [from, to) of a model of N parameters, with constants and copies. */
static ad_real model(const ad_real *p, int from, int to)
{
    ad_real sum = ad_real_of(0.0), r;
    for (int i = from; i < to; i++) {
        const double d = i * 0.01;
        ad_set(&r, ad_real_add(ad_real_mul(p[0], ad_real_sin(ad_real_mul(p[1], d))),
                               ad_real_mul(p[2], p[i % N])));
        if (i % 3 == 0)
            ad_set(&r, ad_real_add(r, ad_real_tanh(ad_real_mul(p[5], p[6]))));
        ad_set(&sum, ad_real_add(sum, ad_real_square(ad_real_sub(r, d))));
    }
    return sum;
}

struct worker {
    pthread_t thread;
    ad_tape fork;
    const ad_real *p;
    int from, to, wrong;
    ad_real y;
};

static void *work(void *payload)
{
    struct worker *w = payload;
    w->wrong += ad_tape_record_begin(w->fork) != AD_OK;
    w->y = model(w->p, w->from, w->to);
    w->wrong += ad_tape_record_end(w->fork) != AD_OK;
    return NULL;
}

/* n forks by n threads over the data; the sum of their results on the tape. */
static ad_real forked(int n, int data, ad_real *p)
{
    struct worker w[MOST] = {{.wrong = 0}};
    ad_tape fork[MOST];
    ad_real sum = ad_real_of(0.0);
    check_ok(ad_tape_fork(tape, n, fork));
    for (int k = 0; k < n; k++) {
        w[k].fork = fork[k];
        w[k].p = p;
        w[k].from = data * k / n;
        w[k].to = data * (k + 1) / n;
        ck_assert_int_eq(pthread_create(&w[k].thread, NULL, work, &w[k]), 0);
    }
    for (int k = 0; k < n; k++) {
        ck_assert_int_eq(pthread_join(w[k].thread, NULL), 0);
        ck_assert_int_eq(w[k].wrong, 0);
    }
    for (int k = 0; k < n; k++)
        check_ok(ad_tape_join(tape, fork[k], 1, &w[k].y));
    for (int k = 0; k < n; k++)
        ad_set(&sum, ad_real_add(sum, w[k].y));
    return sum;
}

static void sweep(ad_real y, double *g)
{
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    check_ok(ad_real_backward(tape, y));
    check_ok(ad_real_gradients(tape, N, x, g));
}

static void check_close(const double *g, const double *right, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_NEAR(g[i], right[i], 1e-12 * (1 + fabs(right[i])));
}

TEST(the_gradient_over_any_number_of_forks_is_that_of_one_tape)
{
    double g[N], right[N];
    const ad_real serial = model(x, 0, DATA);
    sweep(serial, right);
    for (int n = 1; n <= MOST; n++) {
        const ad_real y = forked(n, DATA, x);
        CHECK_NEAR(y.value, serial.value, 1e-12 * serial.value);
        sweep(y, g);
        check_close(g, right, N);
        sweep(serial, g); /* what is on the tape besides is as it was */
        ck_assert_mem_eq(g, right, sizeof g);
    }
}

TEST(no_bit_depends_on_the_number_of_threads_that_sweep)
{
    double g[N], first[N];
    ad_real p[N];
    /* Parameters that the sweep must go on from, far apart. */
    for (int i = 0; i < N; i++) {
        ad_set(&p[i], ad_real_mul(x[i], 1.5));
        for (int k = 0; k < 50000; k++)
            ad_set(&p[i], ad_real_add(p[i], 1e-9));
    }
    const ad_real y = forked(MOST, LARGE, p);
    static const int threads[] = {1, 2, 4, 1, 3};
    for (int k = 0; k < 5; k++) {
        ck_assert_int_eq(ad_set_threads(threads[k]), AD_OK);
        sweep(y, k ? g : first);
        if (k)
            ck_assert_mem_eq(g, first, sizeof g);
    }
    /* Nor on how fast the threads record. */
    const ad_real again = forked(MOST, LARGE, p);
    sweep(again, g);
    ck_assert_mem_eq(g, first, sizeof g);
    ck_assert(again.value == y.value);
    ck_assert_int_eq(ad_set_threads(1), AD_OK);
}

TEST(a_jacobian_through_joins_is_that_of_one_tape)
{
    enum { ROWS = 9 };
    ad_real y[ROWS], z[ROWS];
    ad_tape fork[ROWS];
    double jacobian[ROWS * N], right[ROWS * N];
    check_ok(ad_tape_fork(tape, ROWS, fork));
    for (int i = 0; i < ROWS; i++) {
        z[i] = model(x, i, 2 * i + 1);
        check_ok(ad_tape_record_begin(fork[i]));
        y[i] = model(x, i, 2 * i + 1);
        check_ok(ad_tape_record_end(fork[i]));
    }
    for (int i = 0; i < ROWS; i++)
        check_ok(ad_tape_join(tape, fork[i], 1, &y[i]));
    for (int m = 1; m <= ROWS; m++) {
        check_ok(ad_real_jacobian(tape, m, z, N, x, right));
        check_ok(ad_real_jacobian(tape, m, y, N, x, jacobian));
        check_close(jacobian, right, m * N);
    }
}

/* Several results of one fork: one twice, a constant, a value of the parent, and one unused. */
TEST(results_of_every_kind_are_joined_in_place)
{
    ad_tape fork;
    ad_real square, y[6], sum = ad_real_of(0.0);
    double g[N];
    ad_set(&square, ad_real_square(x[0]));
    check_ok(ad_tape_fork(tape, 1, &fork));
    check_ok(ad_tape_record_begin(fork));
    ad_set(&y[0], ad_real_mul(square, x[1]));
    y[1] = y[0];
    y[2] = ad_real_of(3.0);
    y[3] = square;
    ad_set(&y[4], ad_real_mul(y[0], y[0]));
    ad_set(&y[5], ad_real_log(x[2]));
    check_ok(ad_tape_record_end(fork));
    check_ok(ad_tape_join(tape, fork, 6, y));
    ck_assert_uint_eq(y[2].index, 0);
    ck_assert_uint_eq(y[3].index, square.index);
    ck_assert_uint_ne(y[0].index, y[1].index);
    for (int i = 0; i < 5; i++)
        ad_set(&sum, ad_real_add(sum, ad_real_mul(y[i], i + 1.0)));
    sweep(sum, g);
    /* 3 a b + 9 + 4 a + 5 (a b)^2 with a = x0^2, b = x1 */
    const double a = start[0] * start[0], b = start[1];
    const double right[N] = {(3 * b + 4 + 10 * a * b * b) * 2 * start[0], 3 * a + 10 * a * a * b};
    CHECK_NEAR(sum.value, 3 * a * b + 9 + 4 * a + 5 * a * b * a * b, 1e-15);
    check_close(g, right, N);
}

/* B is forked before A is joined, C after, and C goes on from A's result: C may not be swept
 * beside A, though nothing stands between them. */
TEST(what_is_forked_after_a_join_may_go_on_from_its_results)
{
    ad_tape a, b, c;
    ad_real u, v, w, sum;
    double g[N];
    check_ok(ad_tape_fork(tape, 1, &a));
    check_ok(ad_tape_fork(tape, 1, &b));
    check_ok(ad_tape_record_begin(a));
    ad_set(&u, ad_real_exp(x[0]));
    check_ok(ad_tape_record_end(a));
    check_ok(ad_tape_record_begin(b));
    ad_set(&v, ad_real_mul(x[0], x[1]));
    check_ok(ad_tape_record_end(b));
    check_ok(ad_tape_join(tape, a, 1, &u));
    check_ok(ad_tape_fork(tape, 1, &c));
    check_ok(ad_tape_record_begin(c));
    ad_set(&w, ad_real_sin(ad_real_mul(u, x[2])));
    check_ok(ad_tape_record_end(c));
    check_ok(ad_tape_join(tape, c, 1, &w));
    check_ok(ad_tape_join(tape, b, 1, &v));
    ad_set(&sum, ad_real_add(ad_real_mul(v, w), u));
    sweep(sum, g);
    const double eu = exp(start[0]), cosine = cos(eu * start[2]), sine = sin(eu * start[2]);
    const double dv = sine, dw = start[0] * start[1], du = 1 + dw * cosine * start[2];
    const double right[N] = {du * eu + dv * start[1], dv * start[0], dw * cosine * eu};
    check_close(g, right, N);
}

static ad_real nested(ad_tape parent, const ad_real *p, int from, int to, int depth)
{
    ad_tape fork[2];
    ad_real y[2], own, sum;
    const int middle = (from + to) / 2;
    if (depth == 0)
        return model(p, from, to);
    ad_set(&own, ad_real_mul(p[3], p[4]));
    ad_real q[N];
    memcpy(q, p, sizeof q);
    q[3] = own;
    check_ok(ad_tape_fork(parent, 2, fork));
    for (int k = 0; k < 2; k++) {
        check_ok(ad_tape_record_begin(fork[k]));
        y[k] = nested(fork[k], q, k ? middle : from, k ? to : middle, depth - 1);
        check_ok(ad_tape_record_end(fork[k]));
        ad_set(&own, ad_real_sin(own)); /* the parent is recorded on meanwhile */
    }
    for (int k = 0; k < 2; k++)
        check_ok(ad_tape_join(parent, fork[k], 1, &y[k]));
    ad_set(&sum, ad_real_add(ad_real_mul(y[0], y[1]), own));
    return sum;
}

/* The same on one tape. */
static ad_real flat(const ad_real *p, int from, int to, int depth)
{
    ad_real y[2], own, sum, q[N];
    const int middle = (from + to) / 2;
    if (depth == 0)
        return model(p, from, to);
    ad_set(&own, ad_real_mul(p[3], p[4]));
    memcpy(q, p, sizeof q);
    q[3] = own;
    for (int k = 0; k < 2; k++) {
        y[k] = flat(q, k ? middle : from, k ? to : middle, depth - 1);
        ad_set(&own, ad_real_sin(own));
    }
    ad_set(&sum, ad_real_add(ad_real_mul(y[0], y[1]), own));
    return sum;
}

TEST(forks_may_be_forked_in_their_turn)
{
    double g[N], right[N], jacobian[2 * N];
    ad_real y = nested(tape, x, 0, 24, 3), z = flat(x, 0, 24, 3);
    ck_assert(y.value == z.value);
    sweep(z, right);
    sweep(y, g);
    check_close(g, right, N);
    ad_real both[2] = {y, z};
    check_ok(ad_real_jacobian(tape, 2, both, N, x, jacobian));
    check_close(jacobian, jacobian + N, N);
    check_close(jacobian, right, N);
}

TEST(a_result_whose_adjoint_is_zero_is_passed_over)
{
    ad_tape fork[2];
    ad_real bad, good, sum;
    double g[N];
    ad_real zero;
    ad_set(&zero, ad_real_mul(x[0], 0.0));
    check_ok(ad_tape_fork(tape, 2, fork));
    check_ok(ad_tape_record_begin(fork[0]));
    ad_set(&bad, ad_real_sqrt(zero)); /* infinite derivative */
    check_ok(ad_tape_record_end(fork[0]));
    check_ok(ad_tape_record_begin(fork[1]));
    ad_set(&good, ad_real_square(x[1]));
    check_ok(ad_tape_record_end(fork[1]));
    check_ok(ad_tape_join(tape, fork[0], 1, &bad));
    check_ok(ad_tape_join(tape, fork[1], 1, &good));
    ad_set(&sum, ad_real_add(ad_real_mul(bad, 0.0), good));
    sweep(sum, g);
    const double right[N] = {0, 2 * start[1]};
    check_close(g, right, N);
}

TEST(under_no_grad_forks_and_joins_give_constants)
{
    ad_tape fork[2];
    ad_real y[2];
    check_ok(ad_tape_no_grad_begin(tape));
    check_ok(ad_tape_fork(tape, 1, fork));
    check_ok(ad_tape_no_grad_end(tape));
    check_ok(ad_tape_record_begin(fork[0]));
    y[0] = model(x, 0, 3);
    check_ok(ad_tape_reset(fork[0]));
    y[0] = model(x, 0, 3);
    check_ok(ad_tape_record_end(fork[0]));
    ck_assert_uint_eq(y[0].index, 0);
    check_ok(ad_tape_join(tape, fork[0], 1, &y[0]));
    check_ok(ad_tape_fork(tape, 1, &fork[1]));
    check_ok(ad_tape_record_begin(fork[1]));
    y[1] = model(x, 0, 3);
    check_ok(ad_tape_record_end(fork[1]));
    ck_assert_uint_ne(y[1].index, 0);
    check_ok(ad_tape_no_grad_begin(tape));
    check_ok(ad_tape_join(tape, fork[1], 1, &y[1]));
    check_ok(ad_tape_no_grad_end(tape));
    ck_assert_uint_eq(y[1].index, 0);
    ck_assert(y[0].value == y[1].value);
}

TEST(a_fork_is_marked_rewound_and_reset_by_its_thread)
{
    ad_tape fork;
    ad_real y, z;
    double g[N], right[N];
    check_ok(ad_tape_fork(tape, 1, &fork));
    check_ok(ad_tape_record_begin(fork));
    model(x, 0, 1000);
    check_ok(ad_tape_reset(fork));
    y = model(x, 0, 3);
    const ad_mark mark = ad_tape_mark(fork);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ad_tape_rewind(fork, mark), AD_OK);
        ad_set(&z, ad_real_add(y, ad_real_mul(model(x, 0, 500 * i + 1), 2.0)));
    }
    check_ok(ad_tape_record_end(fork));
    check_ok(ad_tape_join(tape, fork, 1, &z));
    sweep(z, g);
    ad_set(&y, ad_real_add(model(x, 0, 3), ad_real_mul(model(x, 0, 1001), 2.0)));
    sweep(y, right);
    check_close(g, right, N);
}

RUN_TESTS(setup, teardown_fine)
