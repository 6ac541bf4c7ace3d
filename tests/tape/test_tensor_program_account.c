/* test_tensor_program_account.c: replays in a profile: calls, time, flops and bytes moved of each
 * op are on its own line, as forward; the rest is on the line of ad_tensor_replay; nothing is
 * handed out; sums add up.
 *
 * The clock gives the number of its reading. */
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>
#include <tapescope/ad_tensor_program.h>

enum { N = 16, BYTES = N * sizeof(double), REPLAYS = 3 };

static const int64_t shape[2] = {4, 4};
static double data[N], other[N];
static ad_tape tape;

static void setup(void)
{
    for (int i = 0; i < N; i++) {
        data[i] = (i * 5 % N - 7.5) / 20;
        other[i] = data[i] / 2;
    }
    tape = observe_tape();
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static void check_ok(ad_status status)
{
    ck_assert_msg(status == AD_OK, "%s", ad_tape_message(tape));
}

struct lines {
    ad_tensor x, y;
};

static struct lines record(void)
{
    struct lines p;
    p.x = ad_leaf(tape, AD_F64, 2, shape, data);
    check_ok(ad_tensor_program_begin(tape));
    const ad_tensor h = ad_tanh(p.x);
    p.y = ad_sum(ad_mul(ad_transpose(h), h));
    check_ok(ad_tensor_program_end(tape));
    return p;
}

TEST(each_op_is_on_its_own_line)
{
    observe_begin(UINT64_MAX);
    const struct lines p = record();
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *tanh_row = observe_row(l, "tanh"), *mul = observe_row(l, "mul"),
                          *view = observe_row(l, "transpose");
    const uint64_t flops = tanh_row->forward_flops, moved = mul->forward_moved,
                   handed_out = l->handed_out_bytes, values = mul->value_bytes,
                   records = l->records;
    ck_assert_uint_gt(flops, 0);
    ck_assert_uint_gt(moved, 0);
    for (unsigned k = 1; k <= REPLAYS; k++) {
        const uint64_t before = observe_ticks, ticks = l->forward_ticks;
        const int events = observe_n_events;
        check_ok(ad_tensor_replay(tape, 1, &p.x, (const void *const[]){k % 2 ? other : data}));
        /* Between the first reading and the last no tick is lost. */
        ck_assert_uint_eq(l->forward_ticks - ticks, observe_ticks - before - 1);
        /* Of four ops, one of them a view; of the call three, which are two parts of it. */
        ck_assert_uint_eq(observe_ticks - before, 7);
        ck_assert_int_eq(observe_n_events - events, 6);
        ck_assert_uint_eq(tanh_row->calls, 1 + k);
        ck_assert_uint_eq(tanh_row->forward_ticks, 1 + k);
        ck_assert_uint_eq(tanh_row->forward_flops, (1 + k) * flops);
        ck_assert_uint_eq(mul->forward_moved, (1 + k) * moved);
        ck_assert_uint_eq(view->calls, 1 + k);
        ck_assert_uint_eq(observe_row(l, "tensor_replay")->calls, k);
        ck_assert_uint_eq(observe_row(l, "tensor_replay")->forward_ticks, 2 * k);
        ck_assert_uint_eq(tanh_row->recompute_calls + tanh_row->backward_calls, k - 1);
        observe_check_sums(l);
        observe_check_live(l, tape);
        check_ok(ad_backward(p.y));
        observe_check_sums(l);
        observe_check_live(l, tape);
    }
    ck_assert_uint_eq(mul->value_bytes, values);
    ck_assert_uint_eq(l->records, records);
    ck_assert_uint_gt(l->handed_out_bytes, handed_out); /* adjoints, of the sweeps */
    observe_check_pairs();
    tape_observe_end();
}

/* What no sweep reads is no residual. */
TEST(what_needs_no_gradient_keeps_nothing)
{
    observe_begin(UINT64_MAX);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, shape, data);
    check_ok(ad_tensor_program_begin(tape));
    ad_sum(ad_mul(ad_exp(x), ad_tanh(ad_detach(x))));
    check_ok(ad_tensor_program_end(tape));
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(observe_row(l, "exp")->kept_bytes, BYTES);
    ck_assert_uint_eq(observe_row(l, "tanh")->kept_bytes, BYTES); /* mul's pullback reads it */
    const struct tape_row *mul = tape_ledger_row(l, observe_row(l, "tanh")->kept_by - 1);
    ck_assert_ptr_eq(mul, observe_row(l, "mul"));
    ck_assert_uint_eq(observe_row(l, "tanh")->kept_others, 0);
    observe_check_sums(l);
    tape_observe_end();
}

/* Results kept for a replay are what the tape says that it holds. */
TEST(an_observation_may_begin_with_a_replay)
{
    const struct lines p = record();
    observe_begin(UINT64_MAX);
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(observe_row(l, "tanh")->calls, 1);
    ck_assert_uint_eq(observe_row(l, "tanh")->value_bytes, BYTES);
    observe_check_sums(l);
    observe_check_live(l, tape);
    check_ok(ad_backward(p.y));
    observe_check_sums(l);
    tape_observe_end();
}

static ad_status forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    memcpy(c->out[0].data, c->in[0].data, BYTES);
    return AD_OK;
}

static ad_status pullback(ad_custom_call *c, void *payload)
{
    (void)c, (void)payload;
    return AD_OK;
}

TEST(an_op_of_the_users_own_is_on_its_line)
{
    static const ad_custom_rule rule = {.name = "copied", .forward = forward, .pullback = pullback};
    ad_tensor y;
    observe_begin(UINT64_MAX);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, shape, data);
    check_ok(ad_tensor_program_begin(tape));
    check_ok(ad_custom(tape, &rule, NULL, 1, &x, 1, &y));
    check_ok(ad_tensor_program_end(tape));
    const struct tape_ledger *l = observe_ledger();
    const struct tape_row *row = observe_row(l, "copied");
    const uint64_t ticks = row->forward_ticks, moved = row->forward_moved;
    check_ok(ad_tensor_replay(tape, 0, NULL, NULL));
    ck_assert_uint_eq(row->calls, 2);
    ck_assert_uint_eq(row->forward_ticks, 2 * ticks);
    ck_assert_uint_eq(row->forward_moved, 2 * moved);
    ck_assert_uint_gt(moved, 0);
    observe_check_sums(l);
    observe_check_live(l, tape);
    tape_observe_end();
}

/* What failed has its time on the line of the call. */
TEST(sums_add_up_where_a_replay_fails)
{
    int64_t rows[2] = {1, 3};
    observe_begin(UINT64_MAX);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, shape, data);
    ad_tensor at = ad_constant(tape, AD_I64, 1, (int64_t[]){2}, rows);
    check_ok(ad_tensor_program_begin(tape));
    ad_sum(ad_index_select(ad_exp(x), at, 0));
    check_ok(ad_tensor_program_end(tape));
    rows[0] = 4;
    ck_assert_int_eq(ad_tensor_replay(tape, 0, NULL, NULL), AD_ERROR_VALUE);
    const struct tape_ledger *l = observe_ledger();
    ck_assert_uint_eq(observe_row(l, "exp")->calls, 2);
    ck_assert_uint_eq(observe_row(l, "index_select")->calls, 1);
    ck_assert_uint_eq(observe_row(l, "sum")->calls, 1);
    ck_assert_uint_eq(observe_row(l, "tensor_replay")->forward_ticks, 2);
    observe_check_sums(l);
    observe_check_live(l, tape);
    ad_tape_clear_error(tape);
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
