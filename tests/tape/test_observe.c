/* test_observe.c: the account itself, seen through a hook of the test's own. */
#include "kernel_ops.h"
#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <string.h>

enum { SIZE = 8, MOST_ROWS = 256 };

static const int64_t shape[1] = {SIZE}, wide[2] = {2, 4};
static const double data[SIZE] = {-1, -0.5, -0.25, 0.125, 0.25, 0.5, 0.75, 1};

/* A value that two ops keep, values that one keeps, a view, a retained gradient. */
struct net {
    ad_tensor leaf, loss;
};

__attribute__((noinline)) static struct net record(ad_tape tape)
{
    struct net net = {.leaf = ad_leaf(tape, AD_F64, 1, shape, data)};
    ad_tensor a = ad_neg(net.leaf);
    ad_tensor b = ad_mul(a, a);
    ad_tensor c = ad_square(a);
    ad_tensor d = ad_tanh(ad_add(b, c));
    ad_retain_gradient(d);
    net.loss = ad_sum(ad_transpose(ad_reshape(d, wide, 2)));
    return net;
}

/* Neither inlined nor unrolled, so that each call below has one site. */
__attribute__((noinline)) static ad_status sweep(ad_tensor y)
{
    return ad_backward(y);
}

#define OP(name)                                                                                   \
    static ad_tensor op_##name(ad_tensor x)                                                        \
    {                                                                                              \
        return ad_##name(x);                                                                       \
    }
OP(sin)
OP(square)
OP(lgamma)
OP(digamma)

TEST(counters_follow_the_calls)
{
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    struct net net = record(tape);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sweep(net.loss), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *mul = observe_row(ledger, "mul"), *leaf = observe_row(ledger, "leaf");
    ck_assert_uint_eq(mul->calls, 1);
    ck_assert_uint_eq(mul->forward_ticks, 1);
    ck_assert_uint_eq(mul->backward_calls, 2);
    ck_assert_uint_eq(mul->backward_ticks, 2);
    ck_assert_uint_eq(mul->forward_flops, SIZE);
    ck_assert_uint_eq(mul->value_bytes, SIZE * sizeof(double));
    ck_assert_uint_eq(leaf->calls, 1);
    ck_assert_uint_eq(leaf->forward_ticks, 0);
    ck_assert_uint_eq(leaf->adjoint_bytes, SIZE * sizeof(double));
    ck_assert_uint_eq(observe_row(ledger, "backward")->calls, 2);
    ck_assert_uint_eq(ledger->sweeps, 2);
    ck_assert_uint_eq(ledger->records, 8);
    ck_assert_uint_eq(ledger->forward_ticks, 8);
    ck_assert_uint_eq(ledger->backward_ticks, 2 * (8 + 2));
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    ad_tape_destroy(tape);
    tape_observe_end();
}

/* Of sin x the pullback is y' cos x: a product and a cosine, and a sum where there is an adjoint
 * to add it to. Cheap and dear functions alike. */
TEST_EACH(pullbacks_have_the_flops_of_the_functions_in_them, 4)
{
    static const struct {
        const char *name;
        ad_tensor (*op)(ad_tensor x);
        const struct kernel_op *within;
    } is[] = {{"sin", op_sin, &kernel_op_cos},
              {"square", op_square, &kernel_op_scale},
              {"lgamma", op_lgamma, &kernel_op_digamma},
              {"digamma", op_digamma, &kernel_op_polygamma}};
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ck_assert_int_eq(ad_backward(ad_sum(is[_i].op(x))), AD_OK);
    const struct tape_row *row = observe_row(observe_ledger(), is[_i].name);
    const double wanted =
        SIZE * (is[_i].within->flops_per_element + kernel_op_mul.flops_per_element);
    ck_assert_double_ge((double)row->backward_flops, wanted);
    ck_assert_double_le((double)row->backward_flops, wanted + SIZE);
    ad_tape_destroy(tape);
    tape_observe_end();
}

enum { LONG = 1000 };
static int readings_left;

/* Before one of the readings the thread was not running for a while. */
static uint64_t interrupted_clock(void)
{
    if (--readings_left == 0)
        observe_ticks += LONG;
    return ++observe_ticks;
}

/* Neither inlined nor unrolled with its caller, so that all calls have one row. */
__attribute__((noinline)) static ad_tensor sine(ad_tensor x)
{
    return op_sin(x);
}

TEST_EACH(an_interrupted_pullback_does_not_lengthen_the_steady_time_of_its_row, 2)
{
    enum { CALLS = 6 };
    const struct tape_hook before = observe_hook;
    observe_hook.clock = interrupted_clock;
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ad_tensor y = ad_leaf(tape, AD_F64, 1, shape, data);
    for (int i = 0; i < CALLS; i++)
        y = sine(y);
    y = ad_sum(y);
    readings_left = _i == 0 ? 4 : 3 + CALLS; /* at the end of the first pullback, or the last */
    ck_assert_int_eq(sweep(y), AD_OK);
    const struct tape_row *row = observe_row(observe_ledger(), "sin");
    ck_assert_uint_eq(row->backward_calls, CALLS);
    ck_assert_uint_eq(row->backward_ticks, LONG + CALLS);
    ck_assert_uint_eq(row->steady_backward_ticks, CALLS);
    ck_assert_int_eq(sweep(y), AD_OK);
    ck_assert_uint_eq(row->steady_backward_ticks, 2 * CALLS);
    tape_observe_end();
    observe_hook = before;
    ad_tape_destroy(tape);
}

TEST(without_a_profile_no_counter_changes)
{
    static struct tape_row before[MOST_ROWS];
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ck_assert_int_eq(ad_backward(record(tape).loss), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    tape_observe_end();
    uint32_t n = ledger->n_rows;
    struct tape_ledger copy = *ledger;
    ck_assert_uint_le(n, MOST_ROWS);
    for (uint32_t i = 0; i < n; i++)
        before[i] = *tape_ledger_row(ledger, i);
    uint64_t readings = observe_ticks;
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(ad_backward(record(tape).loss), AD_OK);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tape_reset(tape);
    ad_tensor s = ad_sum(ad_exp(ad_leaf(tape, AD_F64, 1, shape, data))); /* new rows */
    ck_assert_int_eq(ad_backward(s), AD_OK);
    ck_assert_uint_eq(observe_ticks, readings);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_mem_eq(&before[i], tape_ledger_row(ledger, i), sizeof before[i]);
    for (uint32_t i = n; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
#define X(name) ck_assert_uint_eq(row->name, 0);
        ROW_COUNTERS(X)
#undef X
    }
#define X(name) ck_assert_uint_eq(ledger->name, copy.name);
    TAPE_COUNTERS(X)
#undef X
    ad_tape_destroy(tape);
}

/* Rows, and the names of the first keepers, as a profile of the whole recording has them. */
struct charged {
    uint64_t record, value, adjoint, kept, live;
    const char *op, *keeper;
    uint32_t others;
};

static uint32_t charges(const struct tape_ledger *ledger, struct charged *out)
{
    ck_assert_uint_le(ledger->n_rows, MOST_ROWS);
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        out[i] = (struct charged){row->record_bytes,
                                  row->value_bytes,
                                  row->adjoint_bytes,
                                  row->kept_bytes,
                                  row->live_bytes,
                                  row->op,
                                  row->kept_by ? tape_ledger_row(ledger, row->kept_by - 1)->op : "",
                                  row->kept_others};
    }
    return ledger->n_rows;
}

static void compare(const struct charged *a, const struct charged *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_str_eq(a[i].op, b[i].op);
        ck_assert_msg(a[i].record == b[i].record && a[i].value == b[i].value &&
                          a[i].adjoint == b[i].adjoint && a[i].kept == b[i].kept &&
                          a[i].live == b[i].live,
                      "%s: other bytes in a profile begun late", a[i].op);
        ck_assert_msg(strcmp(a[i].keeper, b[i].keeper) == 0 && a[i].others == b[i].others,
                      "%s: kept by %s%s, in a profile begun late by %s%s", a[i].op, a[i].keeper,
                      a[i].others ? "+" : "", b[i].keeper, b[i].others ? "+" : "");
    }
}

TEST(a_profile_begun_in_mid_recording_charges_what_is_there)
{
    static struct charged whole[MOST_ROWS], late[MOST_ROWS], again[MOST_ROWS];
    const ad_tape tape = observe_tape();
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) { /* the same lines: profiled from the start, late, and once more */
        bool from_start = i == 0;
        if (from_start)
            observe_begin(UINT64_MAX);
        if (i < 2) {
            ad_tape_reset(tape);
            record(tape);
        }
        if (!from_start)
            observe_begin(UINT64_MAX);
        ad_mark mark = ad_tape_mark(tape);
        ad_tape_rewind(tape, mark); /* anything that the tape does: it takes up the observe_hook */
        const struct tape_ledger *ledger = observe_ledger();
        n = charges(ledger, from_start ? whole : i == 1 ? late : again);
        ck_assert_uint_eq(observe_row(ledger, "mul")->calls, from_start ? 1 : 0);
        observe_check_sums(ledger);
        observe_check_live(ledger, tape);
        tape_observe_end();
    }
    compare(whole, late, n);
    compare(late, again, n);
    ad_tape_destroy(tape);
}

TEST(a_profile_begun_again_counts_from_zero)
{
    ad_tape tape = observe_tape();
    uint64_t handed_out[2];
    for (int i = 0; i < 2; i++) {
        observe_begin(UINT64_MAX);
        ad_tape_reset(tape);
        ck_assert_int_eq(ad_backward(record(tape).loss), AD_OK);
        const struct tape_ledger *ledger = observe_ledger();
        handed_out[i] = ledger->handed_out_bytes;
        if (i == 0) { /* all of this tape's life */
            ck_assert_uint_eq(observe_row(ledger, "mul")->calls, 1);
        } else { /* what the first profile left was charged anew before the reset dropped it */
            ck_assert_uint_eq(observe_row(ledger, "mul")->calls, 1);
            ck_assert_uint_eq(ledger->sweeps, 1);
        }
        observe_check_sums(ledger);
        observe_check_live(ledger, tape);
        tape_observe_end();
    }
    ck_assert_uint_gt(handed_out[1], handed_out[0]);
    ck_assert_uint_lt(handed_out[1], 2 * handed_out[0]);
    ad_tape_destroy(tape);
}

TEST(rewind_and_reset_leave_nothing_live)
{
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 2; i++) {
        struct net net = record(tape);
        ck_assert_int_eq(ad_backward(net.loss), AD_OK);
        ad_tensor gradient;
        ck_assert_int_eq(
            ad_create_graph(net.loss, (ad_tensor){0, 0, 0, 0}, 1, &net.leaf, &gradient), AD_OK);
        const struct tape_ledger *ledger = observe_ledger();
        ck_assert_uint_gt(ledger->live_bytes, 0);
        if (i == 0)
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        else
            ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_uint_eq(ledger->live_bytes, 0);
        for (uint32_t k = 0; k < ledger->n_rows; k++)
            ck_assert_uint_eq(tape_ledger_row(ledger, k)->live_bytes, 0);
        observe_check_sums(ledger);
        observe_check_live(ledger, tape);
    }
    ad_tape_destroy(tape);
    tape_observe_end();
}

TEST(rows_are_flushed_when_due_at_the_end_and_when_the_tape_goes)
{
    ad_tape tape = observe_tape(), other = observe_tape(), idle = observe_tape();
    observe_begin(UINT64_MAX);
    ck_assert(!tape_observe_begin(&observe_hook)); /* one observer at a time */
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = ad_leaf(other, AD_F64, 1, shape, data);
    x = ad_tanh(x);
    ck_assert_int_eq(observe_n_flushed, 0);
    observe_hook.due = observe_ticks + 4;
    x = ad_tanh(x);
    ck_assert_int_eq(observe_n_flushed, 0);
    x = ad_tanh(x); /* its exit is due */
    ck_assert_int_eq(observe_n_flushed, 1);
    const struct tape_ledger *first = observe_flushed[0].ledger;
    ck_assert(!observe_flushed[0].final);
    y = ad_tanh(y); /* due has passed for every tape */
    ck_assert_int_eq(observe_n_flushed, 2);
    ck_assert_ptr_ne(observe_flushed[1].ledger, first);
    observe_hook.due = UINT64_MAX;
    x = ad_sum(x);
    observe_hook.due = observe_ticks;
    ck_assert_int_eq(ad_backward(x), AD_OK); /* within the sweep, too */
    ck_assert_int_gt(observe_n_flushed, 2);
    observe_hook.due = UINT64_MAX;
    observe_n_flushed = 0;
    ad_tape_destroy(other);
    ck_assert_int_eq(observe_n_flushed, 1);
    ck_assert(observe_flushed[0].final);
    ck_assert_uint_eq(observe_flushed[0].live_bytes, 0);
    observe_n_flushed = 0;
    tape_observe_end(); /* the tape that lives; nothing is known of the one that was idle */
    ck_assert_int_eq(observe_n_flushed, 1);
    ck_assert_ptr_eq(observe_flushed[0].ledger, first);
    ck_assert(!observe_flushed[0].final);
    uint64_t readings = observe_ticks;
    x = ad_tanh(ad_leaf(tape, AD_F64, 1, shape, data));
    ad_tape_destroy(tape);
    ad_tape_destroy(idle);
    ck_assert_int_eq(observe_n_flushed, 1);
    ck_assert_uint_eq(observe_ticks, readings);
}

static void results(bool observed, double *out)
{
    if (observed)
        observe_begin(0);
    ad_tape tape = observe_tape();
    struct net net = record(tape);
    ck_assert_int_eq(ad_backward(net.loss), AD_OK);
    ck_assert_int_eq(ad_backward(net.loss), AD_OK);
    out[0] = ad_item(net.loss);
    ck_assert_int_eq(ad_gradient(net.leaf, out + 1, SIZE), AD_OK);
    ad_tape_destroy(tape);
    if (observed)
        tape_observe_end();
}

TEST(a_profile_changes_no_bit_of_a_result)
{
    double plain[1 + SIZE], observed[1 + SIZE];
    results(false, plain);
    results(true, observed);
    ck_assert_mem_eq(plain, observed, sizeof plain);
}

TEST(a_scope_that_was_begun_in_another_observation_is_no_call)
{
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_profiling_ = 1;
    ck_assert_int_eq(ad_scope_begin("around"), AD_OK);
    const uint32_t around = observe_scopes->n - 1;
    ad_neg(x);
    tape_observe_end();
    observe_begin(UINT64_MAX);
    AD_SCOPE("within")
    {
        ad_neg(x);
    }
    ck_assert_int_eq(ad_scope_end(), AD_OK);
    ad_profiling_ = 0;
    ck_assert_uint_eq(tape_scopes_at(observe_scopes, around)->calls, 0);
    ck_assert_uint_eq(tape_scopes_at(observe_scopes, around)->recorded_calls, 0);
    ck_assert_uint_eq(tape_scopes_at(observe_scopes, around + 1)->recorded_calls, 1);
    ad_tape_destroy(tape);
    tape_observe_end();
}

RUN_TESTS(NULL, NULL)
