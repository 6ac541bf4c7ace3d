/* test_checkpoint_account.c: checkpoints in a profile: recomputation as a third phase, bytes on
 * their lines, sums that add up.
 *
 * The clock gives the number of its reading.
 */
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, BYTES = N * sizeof(double) };

static const int64_t shape[1] = {N};
static double data[N];

/* Each op is called on one line of one function. */
__attribute__((noinline)) static ad_tensor do_exp(ad_tensor h)
{
    return ad_exp(h);
}

__attribute__((noinline)) static ad_tensor do_square(ad_tensor h)
{
    return ad_square(h);
}

__attribute__((noinline)) static ad_tensor do_constant(ad_tape tape)
{
    return ad_scalar_f64(tape, 0.5);
}

__attribute__((noinline)) static ad_tensor do_mul(ad_tensor a, ad_tensor b)
{
    return ad_mul(a, b);
}

static void block(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    (void)n_in;
    (void)n_out;
    (void)payload;
    ad_frame frame = ad_frame_begin(tape);
    out[0] = do_mul(do_square(do_exp(in[0])), do_constant(tape));
    ad_frame_end(frame, out, 1);
}

static void two_blocks(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                       void *payload)
{
    ad_tensor half = do_mul(in[0], do_constant(tape));
    ad_checkpoint(tape, block, payload, n_in, &half, n_out, out);
    ad_checkpoint(tape, block, payload, n_in, out, n_out, out);
}

__attribute__((noinline)) static ad_tensor checkpoint(ad_tape tape, ad_checkpoint_function *f,
                                                      ad_tensor h)
{
    ad_checkpoint(tape, f, NULL, 1, &h, 1, &h);
    return h;
}

__attribute__((noinline)) static ad_status sweep(ad_tensor y)
{
    return ad_backward(y);
}

__attribute__((noinline)) static ad_tensor do_sum(ad_tensor h)
{
    return ad_sum(h);
}

static ad_tape tape;
static ad_tensor x;

static void setup(void)
{
    for (int i = 0; i < N; i++)
        data[i] = (i * 5 % N - 7.5) / 20;
    tape = observe_tape();
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static uint64_t sum_of(const struct tape_ledger *l)
{
    return l->forward_ticks + l->backward_ticks + l->recompute_ticks;
}

TEST(recomputation_is_counted_on_the_lines_of_the_function)
{
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor h = checkpoint(tape, block, x), y = do_sum(checkpoint(tape, block, h));
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *e = observe_row(l, "exp"), *c = observe_row(l, "checkpoint");
    ck_assert_uint_eq(l->recompute_ticks, 0);
    ck_assert_uint_eq(e->calls, 2);
    ck_assert_uint_eq(e->forward_ticks, 2);
    ck_assert_uint_eq(c->calls, 2);
    ck_assert_uint_eq(c->forward_ticks, 2 * 2); /* before and behind the function */
    ck_assert_uint_eq(l->forward_ticks, 2 * (2 + 3) + 1);
    const uint64_t flops = e->forward_flops, moved = e->forward_moved;
    ck_assert_uint_eq(e->recompute_flops, 0);
    for (unsigned k = 1; k <= 3; k++) {
        const uint64_t before = observe_ticks;
        ck_assert_int_eq(sweep(y), AD_OK);
        const uint64_t read = observe_ticks - before;
        l = observe_ledger();
        ck_assert_uint_eq(e->calls, 2);
        ck_assert_uint_eq(e->recompute_calls, 2 * k);
        ck_assert_uint_eq(e->recompute_ticks, 2 * k);
        ck_assert_uint_eq(e->backward_calls, 2 * k);
        ck_assert_uint_eq(e->backward_ticks, 2 * k);
        ck_assert_uint_eq(observe_row(l, "scalar")->recompute_calls, 2 * k);
        ck_assert_uint_eq(observe_row(l, "scalar")->calls, 2);
        ck_assert_uint_eq(observe_row(l, "frame_end")->recompute_calls, 2 * k);
        ck_assert_uint_eq(c->recompute_calls, 2 * k);
        ck_assert_uint_eq(c->recompute_ticks, 2 * k); /* behind the last op */
        ck_assert_uint_eq(c->backward_calls, 2 * k);
        ck_assert_uint_gt(flops, 0);
        ck_assert_uint_eq(e->forward_flops, flops);
        ck_assert_uint_eq(e->forward_moved, moved);
        ck_assert_uint_eq(e->recompute_flops, k * flops); /* once a call, as the first time */
        ck_assert_uint_eq(e->recompute_moved, k * moved);
        /* Every reading of the sweep's but the first ends a stretch. */
        ck_assert_uint_eq(l->recompute_ticks, k * 2 * (3 + 1));
        ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks, k * (read - 1));
        ck_assert_uint_eq(l->sweeps, k);
        observe_check_sums(l);
        observe_check_live(l, tape);
    }
    tape_observe_end();
}

TEST(checkpoints_within_checkpoints_are_recomputed_with_them)
{
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = do_sum(checkpoint(tape, two_blocks, x));
    const uint64_t before = observe_ticks;
    const struct tape_ledger *l = observe_ledger();
    const uint64_t forward = l->forward_ticks;
    ck_assert_int_eq(sweep(y), AD_OK);
    const uint64_t read = observe_ticks - before;
    l = observe_ledger();
    const struct tape_row *e = observe_row(l, "exp");
    ck_assert_uint_eq(e->calls, 2);
    ck_assert_uint_eq(e->recompute_calls, 4); /* by the outer one, and by each inner one */
    ck_assert_uint_eq(e->backward_calls, 2);
    ck_assert_uint_eq(l->forward_ticks, forward);
    observe_check_pairs();
    ck_assert_uint_eq(l->recompute_ticks + l->backward_ticks, read - 1);
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
}

TEST(bytes_are_charged_to_the_lines_that_hand_them_out_each_time)
{
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = checkpoint(tape, block, x);
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *e = observe_row(l, "exp"), *m = observe_row(l, "mul");
    ck_assert_uint_eq(e->value_bytes, BYTES);
    ck_assert_uint_eq(e->live_bytes, 0);
    ck_assert_uint_eq(e->kept_bytes, 0);
    /* The result is the product's: its buffer, entry and shape. */
    ck_assert_uint_eq(m->value_bytes, BYTES);
    ck_assert_uint_eq(m->live_bytes, BYTES + 72 + 16);
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_int_eq(sweep(do_sum(y)), AD_OK);
    l = observe_ledger();
    ck_assert_uint_eq(e->value_bytes, 2 * BYTES);
    ck_assert_uint_eq(e->kept_bytes, BYTES);
    ck_assert_uint_eq(e->live_bytes, 0);
    ck_assert_uint_eq(m->live_bytes, BYTES + 72 + 16);
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    l = observe_ledger();
    ck_assert_uint_eq(l->live_bytes, 0);
    observe_check_sums(l);
    tape_observe_end();
}

/* An observation that begins or ends within the function, by its call's number. */
static int call, at;
static bool begins;

static void observed_within(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                            void *payload)
{
    ad_tensor h = do_exp(in[0]);
    if (++call == at && begins)
        observe_begin(UINT64_MAX);
    else if (call == at)
        tape_observe_end();
    block(on, n_in, &h, n_out, out, payload);
}

TEST(a_profile_may_begin_and_end_within_the_function)
{
    double plain[N], got[N];
    for (int k = 0; k < 5; k++) {
        call = 0;
        at = k == 0 ? -1 : (k + 1) / 2; /* the first call, the call in the sweep */
        begins = k % 2;
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        if (k > 0 && !begins)
            observe_begin(UINT64_MAX);
        x = ad_leaf(tape, AD_F64, 1, shape, data);
        ad_tensor y = do_sum(checkpoint(tape, observed_within, x));
        ck_assert_int_eq(sweep(y), AD_OK);
        ck_assert_int_eq(call, 2);
        ck_assert_int_eq(ad_gradient(x, k ? got : plain, N), AD_OK);
        if (k)
            ck_assert_mem_eq(got, plain, sizeof got);
        if (!begins)
            continue;
        ck_assert_int_eq(sweep(y), AD_OK);
        const struct tape_ledger *l = observe_ledger();
        observe_check_sums(l);
        observe_check_live(l, tape);
        ck_assert_uint_eq(observe_row(l, "exp")->recompute_calls, k == 1 ? 2 * 2 : 2);
        ck_assert_uint_gt(sum_of(l), 0);
        tape_observe_end();
    }
}

/* What the thread publishes for samples, and what it was in each call of the function. */
static const struct tape_now *published;
static uint32_t phase_of[2];
static const char *op_of[2];

static void note_thread(struct tape_hook *hook, const struct tape_now *now)
{
    (void)hook;
    published = now;
}

static void published_within(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                             void *payload)
{
    ck_assert_ptr_nonnull(published);
    ck_assert_int_lt(call, 2);
    phase_of[call] = published->doing.phase;
    op_of[call++] = published->doing.op;
    block(on, n_in, in, n_out, out, payload);
}

TEST(samples_within_the_function_are_recomputation_in_a_sweep)
{
    call = 0;
    published = NULL;
    observe_hook.thread = note_thread;
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = do_sum(checkpoint(tape, published_within, x));
    ck_assert_uint_eq(published->doing.phase, TAPE_PHASE_NONE);
    ck_assert_int_eq(sweep(y), AD_OK);
    ck_assert_uint_eq(published->doing.phase, TAPE_PHASE_NONE);
    ck_assert_int_eq(call, 2);
    ck_assert_uint_eq(phase_of[0], TAPE_PHASE_NONE); /* the user's code, as anywhere */
    ck_assert_uint_eq(phase_of[1], TAPE_PHASE_RECOMPUTE);
    ck_assert_ptr_null(op_of[0]);
    ck_assert_str_eq(op_of[1], "checkpoint");
    tape_observe_end();
    observe_hook.thread = NULL;
}

TEST(a_sweep_that_fails_in_the_function_keeps_the_sums)
{
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    call = 0;
    at = -1;
    ad_tensor h = checkpoint(tape, block, x), y = do_sum(h);
    ck_assert_int_eq(ad_tape_trap(tape, AD_TRAP_ALL), AD_OK);
    const double kept = data[3];
    data[3] = 1e308; /* the guard is told of it first */
    ck_assert_int_eq(sweep(y), AD_ERROR_STATE);
    data[3] = kept;
    ad_tape_clear_error(tape);
    observe_check_sums(observe_ledger());
    observe_check_live(observe_ledger(), tape);
    ck_assert_int_eq(sweep(y), AD_OK);
    observe_check_sums(observe_ledger());
    tape_observe_end();
}

TEST(a_recorded_derivative_recomputes_for_good)
{
    const ad_tensor ones = {0, 0, 0, 0};
    ad_tensor g;
    observe_begin(UINT64_MAX);
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = do_sum(checkpoint(tape, two_blocks, x));
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *e = observe_row(l, "exp");
    const uint64_t flops = e->forward_flops / 2;
    ck_assert_int_eq(ad_create_graph(y, ones, 1, &x, &g), AD_OK);
    l = observe_ledger();
    ck_assert_uint_eq(e->calls, 2);
    ck_assert_uint_eq(e->recompute_calls, 2 + 2); /* by the outer one, and by each inner one */
    ck_assert_uint_eq(e->recompute_flops, 4 * flops);
    ck_assert_uint_eq(e->backward_calls, 0);
    ck_assert_uint_ge(e->live_bytes, 2 * BYTES);
    ck_assert_uint_gt(l->recompute_ticks, 0);
    ck_assert_uint_eq(l->backward_ticks, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    ck_assert_int_eq(sweep(do_sum(g)), AD_OK);
    l = observe_ledger();
    /* Those that stay are swept; so is the outer one, whose own result y was made of. */
    ck_assert_uint_ge(e->backward_calls, 2);
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
}

/* Number of the only node of that name. */
static uint32_t node(const char *name)
{
    uint32_t found = 0;
    for (uint32_t i = observe_scopes->n; i-- > 1;) {
        if (strcmp(tape_scopes_at(observe_scopes, i)->name, name) != 0)
            continue;
        ck_assert_msg(found == 0, "two scopes %s", name);
        found = i;
    }
    ck_assert_msg(found != 0, "no scope %s", name);
    return found;
}

static const struct tape_scope *scope(const char *name)
{
    return tape_scopes_at(observe_scopes, node(name));
}

static void scoped_block(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                         void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    (void)payload;
    out[0] = ad_tanh(in[0]);
    AD_SCOPE("part")
    {
        out[0] = ad_square(out[0]);
    }
}

TEST(what_a_sweep_does_again_is_in_the_scopes_that_did_it_first)
{
    observe_begin(UINT64_MAX);
    ad_profiling_ = 1;
    x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = x;
    const uint64_t before = observe_ticks;
    AD_SCOPE("again")
    {
        AD_SCOPE("first")
        {
            for (int i = 0; i < 2; i++)
                ad_checkpoint(tape, scoped_block, NULL, 1, &y, 1, &y);
        }
        AD_SCOPE("sweep")
        {
            ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
        }
    }
    const uint64_t all = observe_ticks - before - 1; /* the first begin's is the time before it */
    const struct tape_ledger *l = observe_ledger();
    observe_check_sums(l);
    const struct tape_scope *whole = scope("again"), *first = scope("first"), *part = scope("part"),
                            *sweep = scope("sweep");
    ck_assert_uint_eq(part->parent, node("first"));
    ck_assert_uint_eq(whole->ticks + first->ticks + part->ticks + sweep->ticks, all);
    ck_assert_uint_eq(part->calls, 2);
    ck_assert_uint_eq(part->recorded_calls, 0); /* dry; what is recorded is dropped */
    /* Recomputation is time of the sweep, and of the scopes that it belongs to: tanh, and the begin
     * of the part; its square, and its end; what is behind that. */
    ck_assert_uint_eq(part->sweep_ticks, 2 * (1 + 1));
    ck_assert_uint_eq(first->sweep_ticks, 2 * 3);
    ck_assert_uint_eq(sweep->ticks - sweep->sweep_ticks, 2 + 1 + 1); /* sum, begin and end */
    uint64_t again = 0, swept = 0;
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(l, i);
        again += row->scope == node("sweep") ? row->recompute_calls : 0;
        swept += row->scope == node("part") ? row->recompute_calls : 0;
    }
    ck_assert_uint_eq(again, 0);
    ck_assert_uint_eq(swept, 2);
    tape_observe_end();
    ad_profiling_ = 0;
}

RUN_TESTS(setup, teardown)
