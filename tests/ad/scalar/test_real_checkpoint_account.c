/* test_real_checkpoint_account.c: checkpoints of scalars in a profile: recomputation as a third
 * phase, bytes on the lines of the statements while they are there, sums that add up.
 *
 * The clock gives the number of its reading.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"
#include "statement_bytes.h"

#include <check.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 300, STATEMENT_BYTES = STATEMENT(1, 0) };

static ad_real leaf;

static void setup(void)
{
    tape = observe_tape();
}

/* N statements of one line. */
static void chain(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                  void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    (void)payload;
    out[0] = in[0];
    for (int i = 0; i < N; i++)
        ad_set(&out[0], ad_real_sin(out[0]));
}

static void two_chains(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                       void *payload)
{
    ad_real_checkpoint(on, chain, payload, n_in, in, n_out, out);
    ad_real_checkpoint(on, chain, payload, n_in, out, n_out, out);
}

static ad_real record(ad_real_checkpoint_function *f, int times)
{
    ad_real y = leaf = ad_real_leaf(tape, 0.5);
    for (int i = 0; i < times; i++)
        ck_assert_int_eq(ad_real_checkpoint(tape, f, NULL, 1, &y, 1, &y), AD_OK);
    return y;
}

static uint64_t sum_of_calls(const struct tape_ledger *l, const char *op, bool again)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(l, i);
        if (strcmp(row->op, op) == 0)
            n += again ? row->recompute_calls : row->calls;
    }
    return n;
}

/* Of all sites: a function that is inlined has one for each of its calls. */
static uint64_t sum_of_ticks(const struct tape_ledger *l, const char *op, bool again)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(l, i);
        if (strcmp(row->op, op) == 0)
            n += again ? row->recompute_ticks : row->forward_ticks;
    }
    return n;
}

/* Of all sites of statements: a compiler may have moved the call that begins a run elsewhere. The
 * ledger's peak is in peak_bytes. */
static struct tape_row sum_of_statements(const struct tape_ledger *l)
{
    struct tape_row sum = {0};
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(l, i);
        if (strcmp(row->op, "statement") != 0)
            continue;
        sum.calls += row->calls;
        sum.recompute_calls += row->recompute_calls;
        sum.record_bytes += row->record_bytes;
        sum.live_bytes += row->live_bytes;
        sum.peak_bytes += tape_row_at_peak(l, row);
    }
    return sum;
}

TEST(recomputation_is_on_the_lines_of_the_statements)
{
    observe_begin(UINT64_MAX);
    const ad_real y = record(chain, 2);
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(sum_of_calls(l, "real_checkpoint", false), 2);
    ck_assert_uint_eq(sum_of_calls(l, "statement", false), 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    for (unsigned k = 1; k <= 3; k++) {
        const uint64_t before = observe_ticks;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        const uint64_t read = observe_ticks - before;
        l = observe_ledger();
        const struct tape_row s = sum_of_statements(l), *c = observe_row(l, "real_checkpoint");
        ck_assert_uint_eq(s.calls, 0);
        ck_assert_uint_eq(s.recompute_calls, 2 * k * N);
        ck_assert_uint_ge(s.record_bytes, 2 * k * N * STATEMENT_BYTES);
        ck_assert_uint_eq(s.live_bytes, 0);
        ck_assert_uint_eq(c->calls, 2);
        ck_assert_uint_eq(c->recompute_calls, 2 * k);
        ck_assert_uint_eq(c->backward_calls, 2 * k);
        ck_assert_uint_gt(c->recompute_ticks, 0);
        ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks, k * (read - 1));
        observe_check_sums(l);
        observe_check_live(l, tape);
    }
    /* At the peak one chain was there. */
    const uint64_t held = sum_of_statements(l).peak_bytes;
    ck_assert_uint_ge(held, N * STATEMENT_BYTES);
    ck_assert_uint_lt(held, 2 * N * STATEMENT_BYTES);
    tape_observe_end();
}

TEST(checkpoints_within_checkpoints_are_recomputed_with_them)
{
    observe_begin(UINT64_MAX);
    const ad_real y = record(two_chains, 2);
    const uint64_t before = observe_ticks;
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const uint64_t read = observe_ticks - before;
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(sum_of_calls(l, "statement", true), 4 * N);
    /* By the sweep those of each call, and by the outer ones the inner ones. */
    ck_assert_uint_eq(sum_of_calls(l, "real_checkpoint", false), 2);
    ck_assert_uint_eq(sum_of_calls(l, "real_checkpoint", true), 2 + 4 + 4);
    ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks, read - 1);
    observe_check_sums(l);
    observe_check_pairs();
    observe_check_live(l, tape);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    l = observe_ledger();
    observe_check_sums(l);
    ck_assert_uint_eq(l->live_bytes, 0);
    tape_observe_end();
}

static int64_t last = -1; /* the step that says so, where a loop does not know */

static bool chain_step(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                       ad_real *out, void *payload)
{
    chain(on, n_in, in, n_out, out, payload);
    return i != last;
}

/* Six steps with two states. A sweep records five of them; the last was recorded at once. Where it
 * is not known which is the last, none is. */
TEST_EACH(a_loop_has_what_sweeps_record_on_the_lines_of_its_steps, 3)
{
    enum { STEPS = 6 };
    const bool until = _i == 1;
    const ad_checkpoint_budget budget = {.states = 2, .directory = _i == 2 ? "." : NULL};
    last = until ? STEPS - 1 : -1;
    observe_begin(UINT64_MAX);
    ad_real y = leaf = ad_real_leaf(tape, 0.5);
    ck_assert_int_eq(ad_real_checkpoint_loop(tape, until ? AD_UNTIL_LAST : STEPS, chain_step, NULL,
                                             1, &y, 1, &y, &budget),
                     AD_OK);
    const struct tape_ledger *l = observe_ledger();
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_uint_eq(sum_of_calls(l, "real_checkpoint_loop", false), 1);
    /* One stretch of steps, one state that is stored, and what is before and behind all steps. */
    const uint64_t stretches = sum_of_ticks(l, "real_checkpoint_loop", false);
    if (!until)
        ck_assert_uint_eq(stretches, _i == 2 ? 5 : 4);
    for (unsigned k = 1; k <= 3; k++) {
        const uint64_t before = observe_ticks, known = l->recompute_ticks + l->backward_ticks;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        const uint64_t read = observe_ticks - before;
        l = observe_ledger();
        const struct tape_row s = sum_of_statements(l), *c = observe_row(l, "real_checkpoint_loop");
        ck_assert_uint_eq(s.calls, until ? 0 : N);
        ck_assert_uint_eq(s.recompute_calls, (until ? STEPS : STEPS - 1) * k * N);
        ck_assert_uint_lt(s.live_bytes, 2 * N * STATEMENT_BYTES);
        ck_assert_uint_eq(c->calls, 1);
        ck_assert_uint_eq(c->backward_calls, k);
        ck_assert_uint_gt(c->recompute_ticks, 0);
        ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks - known, read - 1);
        observe_check_sums(l);
        observe_check_live(l, tape);
    }
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    l = observe_ledger();
    observe_check_sums(l);
    ck_assert_uint_eq(l->live_bytes, 0);
    tape_observe_end();
}

enum { LONG = 1000 };

static bool long_step(ad_tape on, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                      ad_real *out, void *payload)
{
    observe_ticks += LONG;
    return chain_step(on, i, n_in, in, n_out, out, payload);
}

static void long_loop(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                      void *payload)
{
    ad_real_checkpoint_loop(on, 6, long_step, payload, n_in, in, n_out, out,
                            &(ad_checkpoint_budget){.states = 2});
}

/* Five of six steps leave no record that could have their time; within a checkpoint all are
 * computed again by its sweep. */
TEST(steps_that_are_not_recorded_are_forward_time_of_the_loops_line)
{
    for (int within = 0; within < 2; within++) {
        enum { STEPS = 6 };
        observe_begin(UINT64_MAX);
        ad_real y = leaf = ad_real_leaf(tape, 0.5);
        if (within)
            ck_assert_int_eq(ad_real_checkpoint(tape, long_loop, NULL, 1, &y, 1, &y), AD_OK);
        else
            long_loop(tape, 1, &y, 1, &y, NULL);
        const struct tape_ledger *l = observe_ledger();
        if (!within) {
            const uint64_t forward = sum_of_ticks(l, "real_checkpoint_loop", false);
            ck_assert_uint_ge(forward, (STEPS - 1) * LONG);
            ck_assert_uint_lt(forward, STEPS * LONG);
        }
        const uint64_t before = observe_ticks;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        const uint64_t read = observe_ticks - before;
        l = observe_ledger();
        ck_assert_uint_gt(sum_of_ticks(l, "real_checkpoint_loop", true), (STEPS - 1) * LONG);
        ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks, read - 1);
        observe_check_sums(l);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        tape_observe_end();
    }
}

/* With bytes the first step is recorded once more, and dropped. */
TEST(a_loop_of_bytes_keeps_the_sums)
{
    observe_begin(UINT64_MAX);
    ad_real y = leaf = ad_real_leaf(tape, 0.5);
    ck_assert_int_eq(ad_real_checkpoint_loop(tape, 20, chain_step, NULL, 1, &y, 1, &y, NULL),
                     AD_OK);
    const struct tape_ledger *l = observe_ledger();
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_uint_eq(sum_of_statements(l).calls, 2 * N);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    tape_observe_end();
}

static int call, at;
static bool begins;

static void observed_within(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out,
                            ad_real *out, void *payload)
{
    chain(on, n_in, in, n_out, out, payload);
    if (++call == at && begins)
        observe_begin(UINT64_MAX);
    else if (call == at)
        tape_observe_end();
    chain(on, n_in, out, n_out, out, payload);
}

TEST(a_profile_may_begin_and_end_within_the_function)
{
    double plain = 0;
    for (int k = 0; k < 5; k++) {
        call = 0;
        at = k == 0 ? -1 : (k + 1) / 2; /* the first call, the call in the sweep */
        begins = k % 2;
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        if (k > 0 && !begins)
            observe_begin(UINT64_MAX);
        const ad_real y = record(observed_within, 1);
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_int_eq(call, 2);
        const double g = ad_real_gradient(tape, leaf);
        plain = k ? plain : g;
        ck_assert_double_eq(g, plain);
        if (!begins)
            continue;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        const struct tape_ledger *l = observe_ledger();
        observe_check_sums(l);
        observe_check_live(l, tape);
        ck_assert_uint_gt(l->recompute_ticks, 0);
        tape_observe_end();
    }
}

static void fails_later(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                        void *payload)
{
    chain(on, n_in, in, n_out, out, payload);
    if (call++ == 1)
        ad_set(&out[0], ad_real_mul(out[0], 2));
}

TEST(a_sweep_that_fails_in_the_function_keeps_the_sums)
{
    observe_begin(UINT64_MAX);
    call = 0;
    const ad_real y = record(fails_later, 1);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_ERROR_STATE);
    ad_tape_clear_error(tape);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    tape_observe_end();
}

RUN_TESTS(setup, teardown_fine)
