/* test_observe.c: the account itself, seen through a hook of the test's own.
 *
 * May include: ad.h, tape.h, Check. The clock counts its readings. Sums are checked after every call of
 * a long random program with a fixed seed.
 */
#include <tapescope/ad.h>

#include "tape.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 8, VALUE = sizeof(struct tape_value), LOG = 4096, MOST_ROWS = 256 };

static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
static const int64_t shape[1] = {SIZE}, wide[2] = {2, 4}, tall[2] = {4, 2};
static const double data[SIZE] = {-1, -0.5, -0.25, 0.125, 0.25, 0.5, 0.75, 1};

/* ---- an observer ---- */

static uint64_t ticks;
static struct {
    const struct tape_ledger *ledger;
    uint64_t live_bytes;
    bool final;
} flushed[LOG];
static int n_flushed;

static uint64_t read_clock(void)
{
    return ++ticks;
}

static void flush(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    (void)hook;
    flushed[n_flushed % LOG].ledger = ledger;
    flushed[n_flushed % LOG].live_bytes = ledger->live_bytes;
    flushed[n_flushed++ % LOG].final = final;
}

static struct tape_hook hook = {.abi = TAPE_HOOK_ABI, .clock = read_clock, .flush = flush};

static void begin(uint64_t due)
{
    hook.due = due;
    n_flushed = 0;
    ck_assert(tape_observe_begin(&hook));
}

static ad_tape create(void)
{
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &small), AD_OK);
    return tape;
}

/* The ledger of the one tape that is observed. */
static const struct tape_ledger *ledger_now(void)
{
    n_flushed = 0;
    tape_observe_flush();
    ck_assert_int_eq(n_flushed, 1);
    return flushed[0].ledger;
}

/* The row of an op that is called on one line only. */
static const struct tape_row *row_of(const struct tape_ledger *ledger, const char *op)
{
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if (strcmp(tape_ledger_row(ledger, i)->op, op) == 0)
            return tape_ledger_row(ledger, i);
    ck_abort_msg("no row of %s", op);
    return NULL;
}

/* What must add up, adds up. */
static void check_sums(const struct tape_ledger *ledger)
{
    uint64_t bytes = 0, live = 0, peak = 0, forward = 0, backward = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        bytes += row->record_bytes + row->value_bytes + row->adjoint_bytes;
        live += row->live_bytes;
        peak += tape_row_at_peak(ledger, row);
        forward += row->forward_ticks;
        backward += row->backward_ticks;
    }
    ck_assert_uint_eq(bytes, ledger->handed_out_bytes);
    ck_assert_uint_eq(live, ledger->live_bytes);
    ck_assert_uint_eq(peak, ledger->peak_bytes);
    ck_assert_uint_eq(forward, ledger->forward_ticks);
    ck_assert_uint_eq(backward, ledger->backward_ticks);
}

/* Beside the rows' bytes there is only the entry that stands for failed values. */
static void check_live(const struct tape_ledger *ledger, ad_tape tape)
{
    ad_stats stats;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(ledger->live_bytes + VALUE, stats.live_bytes);
}

/* ---- programs ---- */

/* A value that two ops keep, values that one keeps, a view, a retained gradient. */
struct net {
    ad_tensor leaf, loss;
};

static struct net record(ad_tape tape)
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

START_TEST(counters_follow_the_calls)
{
    begin(UINT64_MAX);
    ad_tape tape = create();
    struct net net = record(tape);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(ad_backward(net.loss), AD_OK);
    const struct tape_ledger *ledger = ledger_now();
    const struct tape_row *mul = row_of(ledger, "mul"), *leaf = row_of(ledger, "leaf");
    ck_assert_uint_eq(mul->calls, 1);
    ck_assert_uint_eq(mul->forward_ticks, 1);
    ck_assert_uint_eq(mul->backward_calls, 2);
    ck_assert_uint_eq(mul->backward_ticks, 2);
    ck_assert_uint_eq(mul->forward_flops, SIZE);
    ck_assert_uint_eq(mul->value_bytes, SIZE * sizeof(double));
    ck_assert_uint_eq(leaf->calls, 1);
    ck_assert_uint_eq(leaf->forward_ticks, 0);
    ck_assert_uint_eq(leaf->adjoint_bytes, SIZE * sizeof(double));
    ck_assert_uint_eq(row_of(ledger, "backward")->calls, 2);
    ck_assert_uint_eq(ledger->sweeps, 2);
    ck_assert_uint_eq(ledger->records, 8);
    ck_assert_uint_eq(ledger->forward_ticks, 8);
    ck_assert_uint_eq(ledger->backward_ticks, 2 * (8 + 2));
    check_sums(ledger);
    check_live(ledger, tape);
    ad_tape_destroy(tape);
    tape_observe_end();
}
END_TEST

START_TEST(without_a_profile_no_counter_changes)
{
    static struct tape_row before[MOST_ROWS];
    begin(UINT64_MAX);
    ad_tape tape = create();
    ad_backward(record(tape).loss);
    const struct tape_ledger *ledger = ledger_now();
    tape_observe_end();
    uint32_t n = ledger->n_rows;
    struct tape_ledger copy = *ledger;
    ck_assert_uint_le(n, MOST_ROWS);
    for (uint32_t i = 0; i < n; i++)
        before[i] = *tape_ledger_row(ledger, i);
    uint64_t readings = ticks;
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 3; i++)
        ad_backward(record(tape).loss);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ad_tape_reset(tape);
    ad_tensor s = ad_sum(ad_exp(ad_leaf(tape, AD_F64, 1, shape, data))); /* new rows */
    ck_assert_int_eq(ad_backward(s), AD_OK);
    ck_assert_uint_eq(ticks, readings);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_mem_eq(&before[i], tape_ledger_row(ledger, i), sizeof before[i]);
    for (uint32_t i = n; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
#define X(name) ck_assert_uint_eq(row->name, 0);
        TAPE_ROW_COUNTERS(X)
#undef X
    }
#define X(name) ck_assert_uint_eq(ledger->name, copy.name);
    TAPE_LEDGER_COUNTERS(X)
#undef X
    ad_tape_destroy(tape);
}
END_TEST

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
        out[i] = (struct charged){row->record_bytes, row->value_bytes, row->adjoint_bytes,
                                  row->kept_bytes, row->live_bytes, row->op,
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

START_TEST(a_profile_begun_in_mid_recording_charges_what_is_there)
{
    static struct charged whole[MOST_ROWS], late[MOST_ROWS], again[MOST_ROWS];
    const ad_tape tape = create();
    uint32_t n = 0;
    for (int i = 0; i < 3; i++) { /* the same lines: profiled from the start, late, and once more */
        bool from_start = i == 0;
        if (from_start)
            begin(UINT64_MAX);
        if (i < 2) {
            ad_tape_reset(tape);
            record(tape);
        }
        if (!from_start)
            begin(UINT64_MAX);
        ad_mark mark = ad_tape_mark(tape);
        ad_tape_rewind(tape, mark); /* anything that the tape does: it takes up the hook */
        const struct tape_ledger *ledger = ledger_now();
        n = charges(ledger, from_start ? whole : i == 1 ? late : again);
        ck_assert_uint_eq(row_of(ledger, "mul")->calls, from_start ? 1 : 0);
        check_sums(ledger);
        check_live(ledger, tape);
        tape_observe_end();
    }
    compare(whole, late, n);
    compare(late, again, n);
    ad_tape_destroy(tape);
}
END_TEST

START_TEST(a_profile_begun_again_counts_from_zero)
{
    ad_tape tape = create();
    uint64_t handed_out[2];
    for (int i = 0; i < 2; i++) {
        begin(UINT64_MAX);
        ad_tape_reset(tape);
        ad_backward(record(tape).loss);
        const struct tape_ledger *ledger = ledger_now();
        handed_out[i] = ledger->handed_out_bytes;
        if (i == 0) { /* all of this tape's life */
            ck_assert_uint_eq(row_of(ledger, "mul")->calls, 1);
        } else { /* what the first profile left was charged anew before the reset dropped it */
            ck_assert_uint_eq(row_of(ledger, "mul")->calls, 1);
            ck_assert_uint_eq(ledger->sweeps, 1);
        }
        check_sums(ledger);
        check_live(ledger, tape);
        tape_observe_end();
    }
    ck_assert_uint_gt(handed_out[1], handed_out[0]);
    ck_assert_uint_lt(handed_out[1], 2 * handed_out[0]);
    ad_tape_destroy(tape);
}
END_TEST

START_TEST(rewind_and_reset_leave_nothing_live)
{
    begin(UINT64_MAX);
    ad_tape tape = create();
    ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 2; i++) {
        struct net net = record(tape);
        ck_assert_int_eq(ad_backward(net.loss), AD_OK);
        ad_tensor gradient;
        ck_assert_int_eq(ad_create_graph(net.loss, (ad_tensor){0, 0, 0, 0}, 1, &net.leaf, &gradient),
                         AD_OK);
        const struct tape_ledger *ledger = ledger_now();
        ck_assert_uint_gt(ledger->live_bytes, 0);
        if (i == 0)
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        else
            ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_uint_eq(ledger->live_bytes, 0);
        for (uint32_t k = 0; k < ledger->n_rows; k++)
            ck_assert_uint_eq(tape_ledger_row(ledger, k)->live_bytes, 0);
        check_sums(ledger);
        check_live(ledger, tape);
    }
    ad_tape_destroy(tape);
    tape_observe_end();
}
END_TEST

START_TEST(rows_are_flushed_when_due_at_the_end_and_when_the_tape_goes)
{
    ad_tape tape = create(), other = create(), idle = create();
    begin(UINT64_MAX);
    ck_assert(!tape_observe_begin(&hook)); /* one observer at a time */
    ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data);
    ad_tensor y = ad_leaf(other, AD_F64, 1, shape, data);
    x = ad_tanh(x);
    ck_assert_int_eq(n_flushed, 0);
    hook.due = ticks + 4;
    x = ad_tanh(x);
    ck_assert_int_eq(n_flushed, 0);
    x = ad_tanh(x); /* its exit is due */
    ck_assert_int_eq(n_flushed, 1);
    const struct tape_ledger *first = flushed[0].ledger;
    ck_assert(!flushed[0].final);
    y = ad_tanh(y); /* due has passed for every tape */
    ck_assert_int_eq(n_flushed, 2);
    ck_assert_ptr_ne(flushed[1].ledger, first);
    hook.due = UINT64_MAX;
    x = ad_sum(x);
    hook.due = ticks;
    ad_backward(x); /* within the sweep, too */
    ck_assert_int_gt(n_flushed, 2);
    hook.due = UINT64_MAX;
    n_flushed = 0;
    ad_tape_destroy(other);
    ck_assert_int_eq(n_flushed, 1);
    ck_assert(flushed[0].final);
    ck_assert_uint_eq(flushed[0].live_bytes, 0);
    n_flushed = 0;
    tape_observe_end(); /* the tape that lives; nothing is known of the one that was idle */
    ck_assert_int_eq(n_flushed, 1);
    ck_assert_ptr_eq(flushed[0].ledger, first);
    ck_assert(!flushed[0].final);
    uint64_t readings = ticks;
    x = ad_tanh(ad_leaf(tape, AD_F64, 1, shape, data));
    ad_tape_destroy(tape);
    ad_tape_destroy(idle);
    ck_assert_int_eq(n_flushed, 1);
    ck_assert_uint_eq(ticks, readings);
}
END_TEST

static void results(bool observed, double *out)
{
    if (observed)
        begin(0);
    ad_tape tape = create();
    struct net net = record(tape);
    ad_backward(net.loss);
    ad_backward(net.loss);
    out[0] = ad_item(net.loss);
    ck_assert_int_eq(ad_gradient(net.leaf, out + 1, SIZE), AD_OK);
    ad_tape_destroy(tape);
    if (observed)
        tape_observe_end();
}

START_TEST(a_profile_changes_no_bit_of_a_result)
{
    double plain[1 + SIZE], observed[1 + SIZE];
    results(false, plain);
    results(true, observed);
    ck_assert_mem_eq(plain, observed, sizeof plain);
}
END_TEST

/* ---- a long random program ---- */

static uint64_t random_state;

static unsigned draw(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

enum { POOL = 12, MARKS = 4, STEPS = 1500 };

/* One call of the random program. Tensors of the pool may have been dropped: they are made anew. */
static void step(ad_tape tape, ad_tensor *pool, ad_mark *mark, int *n_marks)
{
    ad_tensor a = pool[draw(POOL)], b = pool[draw(POOL)], *out = &pool[draw(POOL)];
    switch (draw(16)) {
    case 0:
        *out = ad_leaf(tape, AD_F64, 1, shape, data);
        break;
    case 1:
        *out = ad_mul(a, b);
        break;
    case 2:
        *out = ad_add(a, ad_sum(b)); /* a scalar, broadcast */
        break;
    case 3:
        *out = ad_tanh(ad_scale(a, 0.5));
        break;
    case 4:
        *out = ad_reshape(ad_transpose(ad_reshape(a, wide, 2)), shape, 1);
        break;
    case 5:
        ad_backward(ad_sum(ad_mul(a, b)));
        break;
    case 6:
        ad_backward_seed(ad_neg(a), ad_detach(b));
        break;
    case 7:
        ad_retain_gradient(a);
        break;
    case 8:
        if (*n_marks < MARKS)
            mark[(*n_marks)++] = ad_tape_mark(tape);
        break;
    case 9:
        if (*n_marks > 0) {
            *n_marks = (int)draw((unsigned)*n_marks) + 1;
            ad_tape_rewind(tape, mark[*n_marks - 1]);
        }
        break;
    case 10:
        if (draw(8) == 0) {
            ad_tape_reset(tape);
            *n_marks = 0;
        }
        break;
    case 11:
        *out = ad_matmul(ad_reshape(a, wide, 2), ad_reshape(b, tall, 2));
        *out = ad_add(ad_sum(*out), a);
        break;
    case 12: {
        ad_tensor gradient;
        ad_create_graph(ad_sum(ad_square(a)), (ad_tensor){0, 0, 0, 0}, 1, &b, &gradient);
        break;
    }
    case 13:
        ad_zero_gradients(tape);
        break;
    case 14:
        ad_no_grad_begin(tape);
        *out = ad_exp(ad_neg(ad_square(a)));
        ad_no_grad_end(tape);
        break;
    default:
        *out = ad_div(a, ad_offset(ad_square(b), 1));
        break;
    }
    /* Dropped handles and constants are errors here: they are cleared, and leaves take their place. */
    ad_clear_error(tape);
    for (int i = 0; i < POOL; i++) {
        int rank = ad_rank(pool[i]);
        ad_clear_error(tape);
        if (rank != 1)
            pool[i] = ad_leaf(tape, AD_F64, 1, shape, data);
    }
}

START_TEST(sums_hold_after_every_call_of_a_random_program)
{
    random_state = (uint64_t)_i;
    ad_tensor pool[POOL] = {{0, 0, 0, 0}};
    ad_mark mark[MARKS];
    int n_marks = 0;
    ad_tape tape = create();
    if (_i % 2 == 0) /* otherwise the profile begins in the midst of it */
        begin(UINT64_MAX);
    const struct tape_ledger *ledger = NULL;
    for (int i = 0; i < STEPS; i++) {
        if (i == STEPS / 3 && _i % 2)
            begin(UINT64_MAX);
        step(tape, pool, mark, &n_marks);
        if (i < STEPS / 3 && _i % 2)
            continue;
        if (!ledger)
            ad_tape_rewind(tape, ad_tape_mark(tape)); /* the hook is taken up */
        if (!ledger)
            ledger = ledger_now();
        check_sums(ledger);
        check_live(ledger, tape);
    }
    ad_tape_reset(tape);
    ck_assert_uint_eq(ledger->live_bytes, 0);
    ad_tape_destroy(tape);
    tape_observe_end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("observe");
    TCase *tcase = tcase_create("observe");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, counters_follow_the_calls);
    tcase_add_test(tcase, without_a_profile_no_counter_changes);
    tcase_add_test(tcase, a_profile_begun_in_mid_recording_charges_what_is_there);
    tcase_add_test(tcase, a_profile_begun_again_counts_from_zero);
    tcase_add_test(tcase, rewind_and_reset_leave_nothing_live);
    tcase_add_test(tcase, rows_are_flushed_when_due_at_the_end_and_when_the_tape_goes);
    tcase_add_test(tcase, a_profile_changes_no_bit_of_a_result);
    tcase_add_loop_test(tcase, sums_hold_after_every_call_of_a_random_program, 0, 8);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
