/* test_real_loop.c: loops of checkpoints over scalars: gradients, how often steps are computed, and
 * memory.
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

#include "loop_checks.h"

enum { STATE = 3, ALL = STATE + 4 };

/* The Lorenz system; behind its state the size of a step and its parameters. */
static const double start[ALL] = {1, 0.5, 2, 0.0005, 10, 28, 8.0 / 3};
static ad_real x[ALL];

static long calls;
static bool until;            /* the loop does not know how many steps it has */
static int64_t last;          /* the step that says so */
static const char *directory; /* of its states; NULL: they are in memory */
static uint64_t disk_bytes;

static void setup(void)
{
    until = false;
    last = -1;
    directory = NULL;
    disk_bytes = 0;
    tape_begin(NULL);
    ck_assert_int_eq(ad_real_leaves(tape, ALL, start, x), AD_OK);
}

static void slope(const ad_real *u, const ad_real *p, ad_real *k)
{
    ad_set(&k[0], ad_real_mul(p[1], ad_real_sub(u[1], u[0])));
    ad_set(&k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(p[2], u[2])), u[1]));
    ad_set(&k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(p[3], u[2])));
}

/* A step of the classic Runge-Kutta method; every fifth one is twice as large. */
static bool step(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                 ad_real *out, void *payload)
{
    static const double part[4] = {0.5, 0.5, 1, 0}, weight[4] = {1, 2, 2, 1};
    const double scale = i % 5 == 0 ? 2 : 1;
    ad_real k[STATE], at[STATE];
    (void)on, (void)payload;
    if (n_in != ALL || n_out != STATE)
        ck_abort();
    calls++;
    memcpy(at, in, sizeof at);
    memcpy(out, in, sizeof at);
    for (int stage = 0; stage < 4; stage++) {
        slope(at, in + STATE, k);
        for (int d = 0; d < STATE; d++) {
            ad_set(
                &out[d],
                ad_real_add(out[d],
                            ad_real_mul(ad_real_mul(scale * weight[stage] / 6, in[STATE]), k[d])));
            ad_set(
                &at[d],
                ad_real_add(in[d], ad_real_mul(ad_real_mul(scale * part[stage], in[STATE]), k[d])));
        }
    }
    return i != last;
}

static void without(int64_t n, ad_real *u)
{
    memcpy(u, x, sizeof x);
    for (int64_t i = 0; i < n; i++) {
        ad_real next[STATE];
        step(tape, i, ALL, u, STATE, next, NULL);
        memcpy(u, next, sizeof next);
    }
}

static void within(int64_t n, uint64_t bytes, int64_t states, ad_real *u)
{
    const ad_checkpoint_budget budget = {
        .bytes = bytes, .states = states, .directory = directory, .disk_bytes = disk_bytes};
    memcpy(u, x, sizeof x);
    last = until ? n - 1 : -1;
    check_ok(ad_real_checkpoint_loop(tape, until ? AD_UNTIL_LAST : n, step, NULL, ALL, u, STATE, u,
                                     &budget));
}

struct result {
    double value[STATE], gradient[ALL], jacobian[STATE * ALL];
};

/* Twice, with the results of the second time: what the first has changed in the states is seen. */
static void derive(const ad_real *u, struct result *r)
{
    ad_real y;
    ad_set(&y, ad_real_add(ad_real_mul(x[4], ad_real_square(u[0])), ad_real_mul(u[1], u[2])));
    for (int i = 0; i < STATE; i++)
        r->value[i] = ad_real_value(u[i]);
    for (int k = 0; k < 2; k++) {
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_real_backward(tape, y));
        check_ok(ad_real_gradients(tape, ALL, x, r->gradient));
        check_ok(ad_real_jacobian(tape, STATE, u, ALL, x, r->jacobian));
    }
}

TEST(values_and_gradients_are_those_without_it)
{
    static const int64_t n[] = {0, 1, 2, 3, 7, 40};
    static const struct {
        uint64_t bytes;
        int64_t states;
    } ways[] = {{0, 0},   {0, 1},    {0, 2},     {0, 3},      {0, 5},
                {0, 100}, {6000, 0}, {20000, 0}, {1000000, 0}};
    const ad_mark mark = ad_tape_mark(tape);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
        struct result plain, got;
        ad_real u[ALL];
        without(n[k], u);
        derive(u, &plain);
        check_ok(ad_tape_rewind(tape, mark));
        for (size_t way = 0; way < 6 * sizeof ways / sizeof *ways; way++) {
            until = way % 2;
            if (until && n[k] == 0)
                continue;
            directory = way / 2 % 3 ? "." : NULL;
            disk_bytes = way / 2 % 3 == 2 ? 50 : 0; /* of two states */
            within(n[k], ways[way / 6].bytes, ways[way / 6].states, u);
            derive(u, &got);
            ck_assert_msg(memcmp(&got, &plain, sizeof got) == 0,
                          "%d steps, %d bytes, %d states, %d on disk", (int)n[k],
                          (int)ways[way / 6].bytes, (int)ways[way / 6].states, (int)disk_bytes);
            check_ok(ad_tape_rewind(tape, mark));
        }
    }
}

/* The published optimum by trying each first part. */
enum { MOST = 60, MOST_STATES = 6 };

static int64_t tried(int n, int c)
{
    static int64_t known[MOST + 1][MOST_STATES + 1];
    if (n == 1)
        return 0;
    if (c == 1)
        return (int64_t)n * (n - 1) / 2;
    if (known[n][c] == 0) {
        known[n][c] = INT64_MAX;
        for (int m = 1; m < n; m++) {
            const int64_t t = m + tried(m, c) + tried(n - m, c - 1);
            known[n][c] = t < known[n][c] ? t : known[n][c];
        }
    }
    return known[n][c];
}

TEST(steps_are_computed_again_as_often_as_is_optimal)
{
    static const struct {
        int n, c;
    } pair[] = {{1, 1},  {2, 1},  {9, 1},  {40, 1},  {2, 2},    {3, 2},     {10, 2},
                {41, 2}, {60, 2}, {10, 3}, {20, 3},  {21, 3},   {56, 4},    {60, 5},
                {59, 6}, {84, 6}, {85, 6}, {200, 8}, {300, 20}, {301, 300}, {500, 23}};
    const ad_mark mark = ad_tape_mark(tape);
    for (size_t k = 0; k < sizeof pair / sizeof *pair; k++) {
        const int n = pair[k].n, c = pair[k].c;
        ad_real u[ALL];
        if (n <= MOST && c <= MOST_STATES)
            ck_assert_int_eq(optimum(n, c), tried(n, c));
        calls = 0;
        within(n, 0, c, u);
        ck_assert_int_eq(calls, n);
        check_ok(ad_real_backward(tape, u[0]));
        ck_assert_msg(calls - n == optimum(n, c), "%d steps, %d states: %ld again, %ld are optimal",
                      n, c, calls - n, (long)optimum(n, c));
        /* Results that no adjoint comes to are not computed again. */
        calls = 0;
        check_ok(ad_real_backward(tape, x[0]));
        ck_assert_int_eq(calls, 0);
        /* The states that the first sweep has used are computed once more. */
        check_ok(ad_real_backward(tape, u[0]));
        if (n > 1)
            ck_assert_int_eq(calls, optimum(n - 1, c < n - 1 ? c : n - 1) + n - 1);
        check_ok(ad_tape_rewind(tape, mark));
    }
}

/* That a step is the last is known behind it. */
TEST(steps_of_unknown_number_are_computed_hardly_more_often)
{
    static const int n[] = {1, 2, 9, 20, 44, 64, 100, 300}, c[] = {1, 3, 8, 20};
    const ad_mark mark = ad_tape_mark(tape);
    until = true;
    for (int k = 0; k < 8; k++)
        for (int m = 0; m < 4; m++) {
            const int64_t r = repetitions(n[k] + 1, c[m]), least = optimum(n[k] + 1, c[m]);
            ad_real u[ALL];
            calls = 0;
            within(n[k], 0, c[m], u);
            ck_assert_int_eq(calls, n[k]);
            check_ok(ad_real_backward(tape, u[0]));
            ck_assert_int_ge(calls - n[k], least);
            if (r <= 2 || c[m] == 1)
                ck_assert_int_eq(calls - n[k], least);
            ck_assert_int_le(calls - n[k], r * n[k]);
            check_ok(ad_tape_rewind(tape, mark));
        }
}

static uint64_t peak_of(int64_t n, bool loop, uint64_t bytes, int64_t states, struct result *r)
{
    ad_real u[ALL], y;
    const ad_mark mark = ad_tape_mark(tape);
    check_ok(ad_tape_reset_peak(tape));
    const uint64_t before = stats().live_bytes;
    if (loop)
        within(n, bytes, states, u);
    else
        without(n, u);
    ad_set(&y, ad_real_add(ad_real_square(u[0]), ad_real_mul(u[1], u[2])));
    check_ok(ad_tape_zero_gradients(tape));
    check_ok(ad_real_backward(tape, y));
    check_ok(ad_real_gradients(tape, ALL, x, r->gradient));
    const uint64_t peak = stats().peak_bytes - before;
    check_ok(ad_tape_rewind(tape, mark));
    return peak;
}

TEST(ten_thousand_steps_take_a_fiftieth_of_their_tape)
{
    struct result plain = {0}, r[3] = {0};
    const uint64_t all = peak_of(10000, false, 0, 0, &plain);
    calls = 0;
    const uint64_t chosen = peak_of(10000, true, 0, 0, &r[0]);
    ck_assert_uint_lt(chosen, all / 50);
    /* Each step once more, but for those that a sweep comes to at once. */
    ck_assert_int_le(calls, 2 * 10000 + 1);
    /* More bytes spare computations of steps before what is recorded at once. */
    calls = 0;
    const uint64_t given = peak_of(10000, true, all / 60, 0, &r[1]);
    ck_assert_uint_lt(given, all / 50);
    ck_assert_int_le(calls, 2 * 10000 + 1);
    const uint64_t few = peak_of(10000, true, 12000, 0, &r[2]);
    ck_assert_uint_lt(few, chosen);
    for (int k = 0; k < 3; k++)
        ck_assert_mem_eq(r[k].gradient, plain.gradient, sizeof plain.gradient);
    /* Of unknown number each is computed at most twice again, besides being recorded. */
    until = true;
    calls = 0;
    ck_assert_uint_lt(peak_of(10000, true, 0, 0, &r[0]), all / 50);
    ck_assert_int_le(calls, 3 * 10000 + 1);
    ck_assert_mem_eq(r[0].gradient, plain.gradient, sizeof plain.gradient);
    /* With a file, in as many bytes of memory as a few steps take. */
    directory = ".";
    for (int k = 0; k < 2; k++) {
        until = k;
        calls = 0;
        ck_assert_uint_lt(peak_of(10000, true, 48000, 0, &r[k]), all / 150);
        ck_assert_int_le(calls, (2 + k) * 10000 + 1);
        ck_assert_mem_eq(r[k].gradient, plain.gradient, sizeof plain.gradient);
    }
}

/* A block of statements is there beside the states, and what the loop was given. */
TEST(bytes_are_not_exceeded)
{
    enum { BESIDE = 24 << 10 };
    struct result r;
    for (uint64_t bytes = 8000; bytes <= 512000; bytes *= 2)
        for (int k = 0; k < 2; k++) {
            until = k;
            ck_assert_uint_le(peak_of(2000, true, bytes, 0, &r), bytes + BESIDE);
        }
}

/* ---- what else ---- */

TEST(without_variables_it_is_a_loop)
{
    ad_real u[ALL], v[ALL];
    for (int i = 0; i < ALL; i++)
        u[i] = ad_real_of(start[i]);
    const ad_stats before = stats();
    calls = 0;
    check_ok(ad_real_checkpoint_loop(tape, 7, step, NULL, ALL, u, STATE, u, NULL));
    ck_assert_int_eq(calls, 7);
    check_ok(ad_tape_no_grad_begin(tape));
    check_ok(ad_real_checkpoint_loop(tape, 7, step, NULL, ALL, x, STATE, v, NULL));
    check_ok(ad_tape_no_grad_end(tape));
    ck_assert_uint_eq(v[0].index, 0);
    ck_assert_double_eq(v[0].value, u[0].value);
    last = 6;
    calls = 0;
    for (int i = 0; i < ALL; i++)
        u[i] = ad_real_of(start[i]);
    check_ok(ad_real_checkpoint_loop(tape, AD_UNTIL_LAST, step, NULL, ALL, u, STATE, u, NULL));
    ck_assert_int_eq(calls, 7);
    ck_assert_double_eq(v[0].value, u[0].value);
    const ad_stats after = stats();
    ck_assert_mem_eq(&after, &before, sizeof after);
}

/* Ends by a number that it reads: where the state hardly changes any more. */
static bool settle(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                   ad_real *out, void *payload)
{
    int64_t *const steps = payload;
    (void)on, (void)n_in, (void)n_out;
    ad_set(&out[0], ad_real_cos(ad_real_mul(in[0], in[1])));
    if (fabs(ad_real_value(out[0]) - ad_real_value(in[0])) > 1e-12)
        return true;
    *steps = i + 1;
    return false;
}

TEST(a_loop_ends_when_it_has_converged)
{
    double g[2][2];
    int64_t steps[2] = {0, 0};
    for (int loop = 0; loop < 2; loop++) {
        ad_real u[2] = {x[0], x[1]};
        if (loop)
            check_ok(ad_real_checkpoint_loop(tape, AD_UNTIL_LAST, settle, &steps[1], 2, u, 1, u,
                                             &(ad_checkpoint_budget){.states = 3}));
        for (int64_t i = 0; !loop && steps[0] == 0; i++) {
            ad_real to;
            settle(tape, i, 2, u, 1, &to, &steps[0]);
            u[0] = to;
        }
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_real_backward(tape, u[0]));
        check_ok(ad_real_gradients(tape, 2, x, g[loop]));
    }
    ck_assert_int_gt(steps[0], 10);
    ck_assert_int_eq(steps[0], steps[1]);
    ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
}

/* Loops within checkpoints within a loop; u[1] is the sum of what u[0] was. */
static bool outer(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                  ad_real *out, void *payload);

static bool inner(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                  ad_real *out, void *payload)
{
    (void)on, (void)n_in, (void)n_out, (void)payload;
    ad_set(&out[0], ad_real_sin(ad_real_add(ad_real_mul(in[0], in[2]), 0.25 * (double)i)));
    ad_set(&out[1], ad_real_add(in[1], in[0]));
    return i != last;
}

static void part(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                 void *payload)
{
    if (payload)
        ad_real_checkpoint_loop(on, until ? AD_UNTIL_LAST : 9, inner, NULL, n_in, in, n_out, out,
                                &(ad_checkpoint_budget){.states = 2});
    for (int64_t i = 0; i < 9 && !payload; i++) {
        ad_real next[2], all[3];
        memcpy(all, i ? out : in, sizeof next);
        all[2] = in[2];
        inner(on, i, 3, all, 2, next, NULL);
        memcpy(out, next, sizeof next);
    }
}

static bool outer(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                  ad_real *out, void *payload)
{
    (void)i;
    if (payload)
        ad_real_checkpoint(on, part, payload, n_in, in, n_out, out);
    else
        part(on, n_in, in, n_out, out, NULL);
    return true;
}

TEST(loops_and_checkpoints_may_be_in_it)
{
    double gradient[3][3], jacobian[3][6];
    for (int loop = 0; loop < 3; loop++) {
        until = loop == 2;
        last = until ? 8 : -1;
        const ad_mark mark = ad_tape_mark(tape);
        ad_real u[3], y;
        memcpy(u, x, sizeof u);
        if (loop)
            check_ok(ad_real_checkpoint_loop(tape, 11, outer, &calls, 3, u, 2, u,
                                             &(ad_checkpoint_budget){.states = 3}));
        for (int i = 0; i < 11 && !loop; i++) {
            ad_real next[2];
            outer(tape, i, 3, u, 2, next, NULL);
            memcpy(u, next, sizeof next);
        }
        ad_set(&y, ad_real_mul(u[0], ad_real_exp(u[1])));
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_real_backward(tape, y));
        check_ok(ad_real_gradients(tape, 3, x, gradient[loop]));
        check_ok(ad_real_jacobian(tape, 2, u, 3, x, jacobian[loop]));
        check_ok(ad_tape_rewind(tape, mark));
    }
    ck_assert_mem_eq(gradient[0], gradient[1], sizeof gradient[0]);
    ck_assert_mem_eq(jacobian[0], jacobian[1], sizeof jacobian[0]);
    ck_assert_mem_eq(gradient[0], gradient[2], sizeof gradient[0]);
    ck_assert_mem_eq(jacobian[0], jacobian[2], sizeof jacobian[0]);
}

TEST(tensors_give_and_take_its_numbers)
{
    static const int64_t shape[1] = {ALL}, rows[1] = {STATE};
    double gradient[2][ALL];
    for (int loop = 0; loop < 2; loop++) {
        ad_real u[ALL];
        ad_tensor leaf = ad_leaf(tape, AD_F64, 1, shape, start);
        check_ok(ad_reals_of_tensor(ad_tanh(leaf), ALL, u));
        if (loop)
            check_ok(ad_real_checkpoint_loop(tape, 5, step, NULL, ALL, u, STATE, u, NULL));
        for (int i = 0; i < 5 && !loop; i++) {
            ad_real next[STATE];
            step(tape, i, ALL, u, STATE, next, NULL);
            memcpy(u, next, sizeof next);
        }
        check_ok(ad_backward(ad_sum(ad_square(ad_tensor_of_reals(tape, 1, rows, u)))));
        check_ok(ad_gradient(leaf, gradient[loop], ALL));
    }
    ck_assert_mem_eq(gradient[0], gradient[1], sizeof gradient[0]);
}

RUN_TESTS(setup, teardown_fine)
