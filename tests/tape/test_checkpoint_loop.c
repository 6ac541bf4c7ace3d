/* test_checkpoint_loop.c: loops of checkpoints over tensors: gradients, memory, recomputation, and
 * steps that fail or do otherwise.
 *
 * What is compared is compared bit for bit.
 */
#include <tapescope/ad.h>

#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "loop_checks.h"

enum { BATCH = 4, UNITS = 6, SIZE = BATCH * UNITS };

static double state[SIZE], weight[UNITS * UNITS], input[UNITS];
static ad_tensor h0, w, b;

static void leaves(void)
{
    for (int i = 0; i < SIZE; i++)
        state[i] = (i * 37 % 19 - 9) / 16.0;
    for (int i = 0; i < UNITS * UNITS; i++)
        weight[i] = (i * 23 % 17 - 8) / 12.0;
    for (int i = 0; i < UNITS; i++)
        input[i] = (i - 2) / 8.0;
    h0 = ad_leaf(tape, AD_F64, 2, (int64_t[]){BATCH, UNITS}, state);
    w = ad_leaf(tape, AD_F64, 2, (int64_t[]){UNITS, UNITS}, weight);
    b = ad_leaf(tape, AD_F64, 1, (int64_t[]){UNITS}, input);
}

static const char *otherwise = "";
static int64_t at, last; /* the step that does otherwise; that says that it is the last */
static int calls, from, seen;
static bool until;            /* the loop does not know how many steps it has */
static const char *directory; /* of its states; NULL: they are in memory */
static uint64_t disk_bytes;

static void setup(void)
{
    otherwise = "";
    last = -1;
    until = false;
    directory = NULL;
    disk_bytes = 0;
    tape_begin(NULL);
    leaves();
}

static bool is(const char *name)
{
    return strcmp(otherwise, name) == 0 && seen >= from;
}

/* h, c -> tanh(h w + b + i/64), c + h: the weight is read, the bias given, and c is constant at
 * first. */
static bool cell(ad_tape on, int64_t i, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    const ad_tensor *of = payload;
    if (n_in != 3 || n_out != 2)
        ck_abort();
    calls++;
    seen += i == at;
    const bool here = i == at;
    ad_tensor z = ad_add(ad_matmul(in[0], *of), in[2]);
    if (here && is("another op"))
        z = ad_exp(z);
    if (here && is("another number"))
        z = ad_scale(z, 1 + 1e-15);
    if (here && is("a leaf"))
        z = ad_leaf(on, AD_F64, 2, (int64_t[]){BATCH, UNITS}, state);
    if (here && is("a sweep"))
        (void)!ad_backward(ad_sum(z));
    if (here && is("an op that fails"))
        z = ad_matmul(z, z);
    if (here && is("no_grad"))
        ad_tape_no_grad_begin(on);
    out[0] = ad_tanh(ad_add(z, ad_scalar_f64(on, (double)i / 64)));
    out[1] = here && is("another shape") ? ad_sum(z) : ad_add(in[1], in[0]);
    if (here && is("no result"))
        out[1] = (ad_tensor){0, 0, 0, 0};
    return i != last && !(here && is("the end"));
}

static ad_tensor zeros(void)
{
    static const double zero[SIZE];
    return ad_constant(tape, AD_F64, 2, (int64_t[]){BATCH, UNITS}, zero);
}

static void without(int64_t n, ad_tensor *y)
{
    y[0] = h0;
    y[1] = zeros();
    for (int64_t i = 0; i < n; i++) {
        const ad_tensor in[3] = {y[0], y[1], b};
        cell(tape, i, 3, in, 2, y, &w);
    }
}

static ad_status loop_of(int64_t n, uint64_t bytes, int64_t states, const ad_tensor *in,
                         ad_tensor *y)
{
    const ad_checkpoint_budget budget = {
        .bytes = bytes, .states = states, .directory = directory, .disk_bytes = disk_bytes};
    last = until ? n - 1 : -1;
    return ad_checkpoint_loop(tape, until ? AD_UNTIL_LAST : n, cell, &w, 3, in, 2, y, &budget);
}

static ad_status within(int64_t n, uint64_t bytes, int64_t states, ad_tensor *y)
{
    const ad_tensor in[3] = {h0, zeros(), b};
    return loop_of(n, bytes, states, in, y);
}

struct result {
    double value[2][SIZE], of_state[SIZE], of_weight[UNITS * UNITS], of_bias[UNITS];
};

static void derive(const ad_tensor *y, struct result *r)
{
    for (int k = 0; k < 2; k++)
        check_ok(ad_value(y[k], r->value[k], SIZE));
    ad_tensor loss = ad_sum(ad_add(ad_mul(y[0], y[1]), ad_matmul(y[0], w)));
    for (int k = 0; k < 2; k++) {
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_backward(loss));
    }
    check_ok(ad_gradient(h0, r->of_state, SIZE));
    check_ok(ad_gradient(w, r->of_weight, UNITS * UNITS));
    check_ok(ad_gradient(b, r->of_bias, UNITS));
}

TEST(values_and_gradients_are_those_without_it)
{
    static const int64_t n[] = {0, 1, 2, 3, 8, 30};
    static const struct {
        uint64_t bytes;
        int64_t states;
    } ways[] = {{0, 0}, {0, 1}, {0, 2}, {0, 4}, {0, 50}, {8000, 0}, {100000, 0}};
    const ad_mark mark = ad_tape_mark(tape);
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
        static struct result plain, got;
        ad_tensor y[2];
        memset(&plain, 0, sizeof plain);
        memset(&got, 0, sizeof got);
        without(n[k], y);
        derive(y, &plain);
        check_ok(ad_tape_rewind(tape, mark));
        for (size_t way = 0; way < 6 * sizeof ways / sizeof *ways; way++) {
            until = way % 2;
            if (until && n[k] == 0)
                continue;
            directory = way / 2 % 3 ? "." : NULL;
            disk_bytes = way / 2 % 3 == 2 ? 1000 : 0; /* of two states */
            check_ok(within(n[k], ways[way / 6].bytes, ways[way / 6].states, y));
            derive(y, &got);
            ck_assert_msg(memcmp(&got, &plain, sizeof got) == 0,
                          "%d steps, %d bytes, %d states, %d on disk", (int)n[k],
                          (int)ways[way / 6].bytes, (int)ways[way / 6].states, (int)disk_bytes);
            check_ok(ad_tape_rewind(tape, mark));
        }
    }
}

TEST(steps_are_computed_again_as_often_as_is_optimal)
{
    static const int n[] = {1, 2, 9, 20, 21, 57}, c[] = {1, 2, 3, 5};
    const ad_mark mark = ad_tape_mark(tape);
    for (int k = 0; k < 6; k++)
        for (int m = 0; m < 4; m++) {
            ad_tensor y[2];
            calls = 0;
            check_ok(within(n[k], 0, c[m], y));
            ck_assert_int_eq(calls, n[k]);
            check_ok(ad_backward(ad_sum(y[0])));
            ck_assert_int_eq(calls - n[k], optimum(n[k], c[m]));
            check_ok(ad_tape_rewind(tape, mark));
            /* That a step is the last is known behind it. */
            until = true;
            calls = 0;
            check_ok(within(n[k], 0, c[m], y));
            ck_assert_int_eq(calls, n[k]);
            check_ok(ad_backward(ad_sum(y[0])));
            if (repetitions(n[k] + 1, c[m]) <= 2 || c[m] == 1)
                ck_assert_int_eq(calls - n[k], optimum(n[k] + 1, c[m]));
            else
                ck_assert_int_le(calls - n[k], repetitions(n[k] + 1, c[m]) * n[k]);
            check_ok(ad_tape_rewind(tape, mark));
            until = false;
        }
}

static uint64_t peak_of(int64_t n, bool loop, uint64_t bytes)
{
    ad_tensor y[2];
    const ad_mark mark = ad_tape_mark(tape);
    check_ok(ad_tape_reset_peak(tape));
    const uint64_t before = stats().live_bytes;
    if (loop)
        check_ok(within(n, bytes, 0, y));
    else
        without(n, y);
    check_ok(ad_backward(ad_sum(ad_mul(y[0], y[1]))));
    const uint64_t peak = stats().peak_bytes - before;
    check_ok(ad_tape_rewind(tape, mark));
    return peak;
}

TEST(memory_is_as_little_as_is_said)
{
    const uint64_t all = peak_of(1000, false, 0);
    ck_assert_uint_lt(peak_of(1000, true, 0), all / 10);
    ck_assert_uint_lt(peak_of(4000, true, 0), all / 5);
    for (uint64_t bytes = 16000; bytes < 300000; bytes *= 2)
        for (int k = 0; k < 2; k++) {
            until = k;
            ck_assert_uint_lt(peak_of(1000, true, bytes), bytes + 16000);
        }
    directory = ".";
    for (int k = 0; k < 2; k++) {
        until = k;
        calls = 0;
        ck_assert_uint_lt(peak_of(1000, true, 40000), all / 20);
        ck_assert_int_le(calls, 2 * 1000 + 1); /* each once more: all states are stored */
    }
    directory = NULL;
    ck_assert_uint_lt(peak_of(1000, true, 0), all / 4);
    ck_assert_uint_lt(peak_of(4000, true, 0), all / 4);
}

/* Ends by a number that it reads: where the state hardly changes any more. */
static bool settle(ad_tape on, int64_t i, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                   void *payload)
{
    (void)on, (void)n_in, (void)n_out;
    int64_t *const steps = payload;
    out[0] = ad_tanh(ad_add(ad_scale(in[0], 0.5), in[1]));
    if (ad_item(ad_max(ad_abs(ad_sub(out[0], in[0])))) > 1e-10)
        return true;
    *steps = i + 1;
    return false;
}

TEST(a_loop_ends_when_it_has_converged)
{
    double g[2][UNITS];
    int64_t steps[2] = {0, 0};
    for (int loop = 0; loop < 2; loop++) {
        ad_tensor y[2] = {ad_mul(b, b), b};
        if (loop)
            check_ok(ad_checkpoint_loop(tape, AD_UNTIL_LAST, settle, &steps[1], 2, y, 1, y,
                                        &(ad_checkpoint_budget){.states = 3}));
        for (int64_t i = 0; !loop && steps[0] == 0; i++) {
            ad_tensor next;
            settle(tape, i, 2, y, 1, &next, &steps[0]);
            y[0] = next;
        }
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_backward(ad_sum(y[0])));
        check_ok(ad_gradient(b, g[loop], UNITS));
    }
    ck_assert_int_gt(steps[0], 20);
    ck_assert_int_eq(steps[0], steps[1]);
    ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
}

/* ---- what else ---- */

TEST(second_derivatives_are_those_without_it)
{
    double second[3][SIZE];
    const ad_mark mark = ad_tape_mark(tape);
    for (int loop = 0; loop < 3; loop++) {
        ad_tensor y[2], g;
        until = loop == 2;
        if (loop)
            check_ok(within(5, 0, 2, y));
        else
            without(5, y);
        const ad_tensor ones = {0, 0, 0, 0};
        check_ok(ad_create_graph(ad_sum(ad_mul(y[0], y[1])), ones, 1, &h0, &g));
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_backward(ad_sum(ad_square(g))));
        check_ok(ad_gradient(h0, second[loop], SIZE));
        check_ok(ad_tape_rewind(tape, mark));
    }
    for (int i = 0; i < SIZE; i++)
        for (int loop = 1; loop < 3; loop++)
            ck_assert_double_eq_tol(second[0][i], second[loop][i], 1e-12);
}

static void part(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    ad_checkpoint_loop(on, last == 6 ? AD_UNTIL_LAST : 7, cell, payload, n_in, in, n_out, out,
                       &(ad_checkpoint_budget){.states = 2});
}

static bool part_step(ad_tape on, int64_t i, int n_in, const ad_tensor *in, int n_out,
                      ad_tensor *out, void *payload)
{
    if (i % 2)
        part(on, n_in, in, n_out, out, payload);
    else
        ad_checkpoint(on, part, payload, n_in, in, n_out, out);
    return true;
}

TEST(loops_and_checkpoints_may_be_in_it_and_frames_around_it)
{
    static struct result plain, got;
    ad_tensor y[2];
    const ad_mark mark = ad_tape_mark(tape);
    ad_tensor of = ad_tanh(w), given = ad_tanh(b);
    y[0] = h0;
    y[1] = zeros();
    for (int k = 0; k < 5; k++)
        for (int64_t i = 0; i < 7; i++) {
            const ad_tensor in[3] = {y[0], y[1], given};
            cell(tape, i, 3, in, 2, y, &of);
        }
    derive(y, &plain);
    check_ok(ad_tape_rewind(tape, mark));
    for (int k = 0; k < 6; k++) {
        const ad_frame frame = ad_frame_begin(tape);
        last = k < 3 ? -1 : 6;
        of = ad_tanh(w); /* the frame's end releases it, and what is given */
        const ad_tensor in[3] = {h0, zeros(), ad_tanh(b)};
        check_ok(ad_checkpoint_loop(tape, 5, part_step, &of, 3, in, 2, y,
                                    k % 3 ? &(ad_checkpoint_budget){.states = k % 3} : NULL));
        check_ok(ad_frame_end(frame, y, 2));
        derive(y, &got);
        ck_assert_mem_eq(&got, &plain, sizeof got);
        check_ok(ad_tape_rewind(tape, mark));
    }
}

TEST(no_grad_and_a_releasing_sweep)
{
    static struct result plain;
    double g[SIZE];
    ad_tensor y[2];
    without(9, y);
    derive(y, &plain);
    for (int k = 0; k < 2; k++) {
        until = k;
        check_ok(ad_tape_no_grad_begin(tape));
        const ad_stats before = stats();
        check_ok(within(9, 0, 2, y));
        ck_assert_uint_eq(stats().records, before.records);
        check_ok(ad_tape_no_grad_end(tape));
        check_ok(within(9, 0, 2, y));
        check_ok(ad_tape_zero_gradients(tape));
        check_ok(ad_backward_release(ad_sum(ad_add(ad_mul(y[0], y[1]), ad_matmul(y[0], w)))));
        check_ok(ad_gradient(h0, g, SIZE));
        ck_assert_mem_eq(g, plain.of_state, sizeof g);
    }
}

/* ---- errors ---- */

static const struct {
    const char *what;
    ad_status status;
    const char *words;
} wrong[] = {
    {"a leaf", AD_ERROR_STATE, "not while a checkpoint's function runs"},
    {"a sweep", AD_ERROR_STATE, "backward: not while a checkpoint's"},
    {"an op that fails", AD_ERROR_SHAPE, "matmul"},
    {"another shape", AD_ERROR_SHAPE, "checkpoint_loop: out[1] of step 4 has another shape"},
    {"no result", AD_ERROR_HANDLE, "checkpoint_loop: out[1] of step 4"},
    {"no_grad", AD_ERROR_STATE, "checkpoint_loop: step 4 has begun or ended a no_grad"},
    {"the end", AD_ERROR_STATE, "checkpoint_loop: step 4 of 9 says that it is the last"},
    {"another op", AD_ERROR_STATE, "did not do the same again"},
    {"another number", AD_ERROR_STATE, "did not do the same again"},
};
enum { WRONG = sizeof wrong / sizeof *wrong, ONLY_AGAIN = 2, ENDS = WRONG - 3 };

TEST(a_step_that_fails_leaves_the_tape_as_it_was)
{
    at = 4;
    for (int k = 0; k < 2 * WRONG; k++) {
        const int kind = k / 2;
        until = k % 2;
        /* In the first call; recorded in a sweep; on the way to another step. */
        for (from = 1; from <= 3; from++) {
            const ad_mark mark = ad_tape_mark(tape);
            double g[2][SIZE];
            ad_tensor y[2];
            if (from == 1 && (kind >= WRONG - ONLY_AGAIN || (until && kind == ENDS)))
                continue;
            otherwise = wrong[kind].what;
            seen = 0;
            const ad_tensor given[3] = {h0, zeros(), b};
            const ad_stats begun = stats_but_peak();
            const ad_status status = loop_of(9, 0, 1, given, y);
            if (from == 1) {
                ck_assert_msg(status == wrong[kind].status, "%s", wrong[kind].what);
                check_error_in(tape, wrong[kind].status, wrong[kind].words,
                               "test_checkpoint_loop.c:");
                check_same(begun);
            } else {
                check_ok(status);
                ad_tensor loss = ad_sum(y[0]);
                const ad_stats before = stats_but_peak();
                for (int again = 0; again < 2; again++) {
                    ck_assert_msg(ad_backward(loss) == wrong[kind].status, "%s", wrong[kind].what);
                    check_error_in(tape, wrong[kind].status, wrong[kind].words,
                                   "test_checkpoint_loop.c:");
                    check_same(before);
                }
                otherwise = "";
                check_ok(ad_tape_zero_gradients(tape));
                check_ok(ad_backward(loss));
                check_ok(ad_gradient(h0, g[0], SIZE));
                without(9, y);
                check_ok(ad_tape_zero_gradients(tape));
                check_ok(ad_backward(ad_sum(y[0])));
                check_ok(ad_gradient(h0, g[1], SIZE));
                ck_assert_mem_eq(g[0], g[1], sizeof g[0]);
            }
            otherwise = "";
            check_ok(ad_tape_rewind(tape, mark));
        }
    }
}

TEST(a_changed_array_is_told)
{
    ad_tensor y[2];
    check_ok(within(6, 0, 2, y));
    weight[3] += 1;
    ck_assert_int_eq(ad_backward(ad_sum(y[0])), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    weight[3] -= 1;
    check_ok(ad_backward(ad_sum(y[0])));
}

TEST(arguments_that_cannot_be_are_refused)
{
    const ad_tensor in[3] = {h0, h0, b};
    const ad_checkpoint_budget negative = {.states = -1}, one = {.bytes = 1};
    ad_tensor y[3];
#define REFUSED(n, step, n_in, in, n_out, out, budget, status, words)                              \
    do {                                                                                           \
        ck_assert_int_eq(ad_checkpoint_loop(tape, n, step, &w, n_in, in, n_out, out, budget),      \
                         status);                                                                  \
        check_error_in(tape, status, words, "test_checkpoint_loop.c:");                            \
    } while (0)
    REFUSED(9, NULL, 3, in, 2, y, NULL, AD_ERROR_ARGUMENT, "checkpoint_loop: function is a null");
    REFUSED(9, cell, 3, NULL, 2, y, NULL, AD_ERROR_ARGUMENT, "checkpoint_loop: in is a null");
    REFUSED(9, cell, 3, in, 2, NULL, NULL, AD_ERROR_ARGUMENT, "checkpoint_loop: out is a null");
    REFUSED(9, cell, 2, in, 3, y, NULL, AD_ERROR_ARGUMENT, "a state of 3 tensors, of 2 that");
    REFUSED(-1, cell, 3, in, 2, y, NULL, AD_ERROR_ARGUMENT, "checkpoint_loop: n is negative");
    REFUSED(9, cell, 3, in, 2, y, &negative, AD_ERROR_ARGUMENT, "states is negative");
    REFUSED(9, cell, 3, in, 2, y, &one, AD_ERROR_ARGUMENT, "1 bytes are too few: one step takes");
    REFUSED(INT64_MAX, cell, 3, in, 2, y, NULL, AD_ERROR_LIMIT, "steps, at most");
    REFUSED(9, cell, 65, in, 2, y, NULL, AD_ERROR_ARGUMENT, "65 tensors in and 2 out");
    ck_assert_int_eq(ad_checkpoint_loop((ad_tape){0, 0}, 9, cell, &w, 3, in, 2, y, NULL),
                     AD_ERROR_HANDLE);
    ad_tape_clear_error((ad_tape){0, 0});
}

/* ---- the account ---- */

TEST_EACH(recomputation_is_on_the_lines_of_the_steps, 3)
{
    enum { N = 6 };
    ad_tensor y[2];
    until = _i == 1;
    directory = _i == 2 ? "." : NULL;
    teardown();
    tape = observe_tape();
    leaves();
    observe_begin(UINT64_MAX);
    check_ok(within(N, 0, 2, y));
    ad_tensor loss = ad_sum(y[0]);
    const struct tape_ledger *l = observe_ledger();
    observe_check_sums(l);
    ck_assert_uint_eq(observe_row(l, "tanh")->calls, N);
    ck_assert_uint_eq(observe_row(l, "tanh")->recompute_calls, 0);
    const uint64_t before = observe_ticks, known = l->recompute_ticks + l->backward_ticks;
    check_ok(ad_backward(loss));
    const uint64_t read = observe_ticks - before;
    l = observe_ledger();
    const struct tape_row *op = observe_row(l, "tanh"), *c = observe_row(l, "checkpoint_loop");
    ck_assert_uint_eq(op->calls, N);
    ck_assert_int_eq((int64_t)op->recompute_calls, optimum(until ? N + 1 : N, 2));
    ck_assert_uint_eq(op->backward_calls, N);
    ck_assert_uint_gt(op->recompute_ticks, 0);
    ck_assert_uint_eq(c->calls, 1);
    ck_assert_uint_eq(c->backward_calls, 1);
    ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks - known, read - 1);
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    l = observe_ledger();
    observe_check_sums(l);
    ck_assert_uint_eq(l->live_bytes, 0);
    tape_observe_end();
}

RUN_TESTS(setup, teardown_fine)
