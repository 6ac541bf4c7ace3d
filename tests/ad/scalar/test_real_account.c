/* test_real_account.c: what a profile says of statements: every byte on the line that recorded it.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"
#include "statement_bytes.h"
#include "tape_residuals.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3000, BLOCKS = 40000, RUN_BYTES = 88 /* the record of a run */ };

static ad_tape tape;
static ad_real x[2];

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    tape = observe_tape();
    ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x);
}

static enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now);

static void take_watch(struct tape_hook *hook,
                       enum tape_looked (*given)(enum tape_look_kind kind, uint64_t now))
{
    (void)hook;
    look = given;
}

/* As the collector observes: statements are counted as they are swept, which says which they
 * are. */
static void setup_watched(void)
{
    observe_hook.apart = true;
    observe_hook.watch = take_watch;
    setup();
}

static void teardown(void)
{
    observe_hook.apart = false;
    observe_hook.watch = NULL;
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* Three lines that differ in bytes, and the numbers of statements that each has recorded. */
static uint64_t recorded[3];

static ad_real record_once(ad_real y, int n)
{
    for (int i = 0; i < n; i++) {
        ad_set(&y, ad_real_mul(y, x[0]));
        recorded[0]++;
        if (i % 3 == 0) {
            ad_set(&y, ad_real_sin(y));
            recorded[1]++;
        } else if (i % 4 == 1) {
            ad_set(&y, ad_real_add(ad_real_mul(y, x[0]), x[1]));
            recorded[2]++;
        }
    }
    return y;
}

/* Inlined or cloned, its lines would have a program counter for each caller. */
static ad_real (*volatile record)(ad_real y, int n) = record_once;

/* The rows of statements, by their bytes for each: calls times, bytes live. The records of runs and
 * of leaves are charged to rows as well, so bytes may be more than the statements'. */
static void check_lines(const struct tape_ledger *ledger, const uint64_t *calls,
                        const uint64_t *live)
{
    static const uint64_t bytes[3] = {STATEMENT(2, 0), STATEMENT(1, 0), STATEMENT(2, 1)};
    int found = 0;
    uint64_t runs = 0, all = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, "statement") != 0)
            continue;
        for (int k = 0; k < 3; k++) {
            if (row->calls != calls[k] || found >> k & 1)
                continue;
            found |= 1 << k;
            ck_assert_uint_ge(row->live_bytes, live[k] * bytes[k]);
            runs += row->live_bytes - live[k] * bytes[k];
            all += live[k] * bytes[k];
            break;
        }
    }
    ck_assert_int_eq(found, 7);
    ck_assert_uint_eq(runs % RUN_BYTES, 0);
    ck_assert_uint_le(runs, RUN_BYTES * (8 + all / 4000)); /* they are few */
}

START_TEST(every_statement_is_charged_to_its_line)
{
    memset(recorded, 0, sizeof recorded);
    observe_begin(UINT64_MAX);
    ad_real y = record(x[1], STEPS);
    ad_tensor t = ad_scalar_f64(tape, 3);
    const struct tape_ledger *ledger = observe_ledger();
    (void)t;
    y = record(y, STEPS + 1);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ledger = observe_ledger();
    check_lines(ledger, recorded, recorded);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    tape_observe_end();
}
END_TEST

START_TEST(a_profile_begun_in_mid_recording_has_the_bytes_but_not_the_calls)
{
    memset(recorded, 0, sizeof recorded);
    ad_real y = record(x[1], BLOCKS);
    uint64_t before[3];
    memcpy(before, recorded, sizeof before);
    observe_begin(UINT64_MAX);
    y = record(y, STEPS);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    uint64_t calls[3];
    for (int k = 0; k < 3; k++)
        calls[k] = recorded[k] - before[k];
    const struct tape_ledger *ledger = observe_ledger();
    check_lines(ledger, calls, recorded);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    tape_observe_end();
}
END_TEST

START_TEST(what_a_rewind_or_reset_drops_is_live_no_more)
{
    memset(recorded, 0, sizeof recorded);
    observe_begin(UINT64_MAX);
    ad_real y = record(x[1], STEPS);
    uint64_t live[3];
    memcpy(live, recorded, sizeof live);
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 3; round++) {
        record(y, round * BLOCKS + 1);
        ad_tensor square = ad_square(ad_leaf(tape, AD_F64, 0, NULL, &y.value));
        record(y, 1);
        ck_assert_int_eq(ad_backward(square), AD_OK);
        observe_check_live(observe_ledger(), tape);
        observe_check_sums(observe_ledger());
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        check_lines(observe_ledger(), recorded, live);
        observe_check_live(observe_ledger(), tape);
        observe_check_sums(observe_ledger());
    }
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(ledger->live_bytes, 0);
    observe_check_sums(ledger);
    tape_observe_end();
}
END_TEST

/* What a row held at the peak. */
static uint64_t held(const struct tape_ledger *ledger, const struct tape_row *row)
{
    return row->peak_stamp == ledger->peak_count ? row->peak_bytes : row->live_bytes;
}

/* Lines are charged when the recording has ended: at the peak they had their bytes already. */
START_TEST(at_the_peak_lines_hold_what_they_had_recorded)
{
    memset(recorded, 0, sizeof recorded);
    observe_begin(UINT64_MAX);
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 2; round++) {
        record(x[1], round == 0 ? 2 * BLOCKS : BLOCKS); /* the second is below the peak */
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t all = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        all += held(ledger, tape_ledger_row(ledger, i));
    ck_assert_uint_eq(all, ledger->peak_bytes);
    ck_assert_uint_gt(all, 2 * BLOCKS * 32);
    ck_assert_uint_lt(held(ledger, tape_ledger_row(ledger, TAPE_ROW_ROOM)), all / 4);
    ck_assert_uint_lt(held(ledger, tape_ledger_row(ledger, TAPE_ROW_PADDING)), all / 1000);
    tape_observe_end();
}
END_TEST

START_TEST(room_that_no_statement_has_filled_is_no_line_s_and_no_padding)
{
    observe_begin(UINT64_MAX);
    ad_real y = record(x[1], 1);
    const ad_mark mark = ad_tape_mark(tape);
    ad_stats before, after;
    ad_set(&y, ad_real_mul(y, x[0]));
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *room = tape_ledger_row(ledger, TAPE_ROW_ROOM),
                          *padding = tape_ledger_row(ledger, TAPE_ROW_PADDING);
    ck_assert_str_eq(room->op, "block not yet filled");
    ck_assert_uint_eq(room->record_bytes + room->value_bytes + room->adjoint_bytes, 0);
    const uint64_t free = room->live_bytes, lost = padding->live_bytes;
    enum { PRODUCT = STATEMENT(2, 0) };
    ck_assert_uint_gt(free, 60 * PRODUCT + RUN_BYTES);
    /* To the byte, while a run is open and when it is closed. */
    ad_set(&y, ad_real_mul(y, x[0]));
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    for (int i = 0; i < 49; i++)
        ad_set(&y, ad_real_mul(y, x[0]));
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_uint_eq(after.live_bytes - before.live_bytes, 49 * PRODUCT);
    ck_assert_ptr_eq(observe_ledger(), ledger);
    ck_assert_uint_eq(room->live_bytes, free - 50 * PRODUCT);
    ck_assert_uint_eq(padding->live_bytes, lost);
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    /* What is left of a block when the next one is begun is padding, less than a statement. */
    for (int i = 0; i < 2000; i++)
        ad_set(&y, ad_real_mul(y, x[0]));
    observe_check_live(observe_ledger(), tape);
    observe_check_sums(ledger);
    ck_assert_uint_gt(padding->live_bytes, lost);
    ck_assert_uint_lt(padding->live_bytes, lost + 12 * (24 + PRODUCT));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_ptr_eq(observe_ledger(), ledger);
    ck_assert_uint_eq(padding->live_bytes, lost);
    ck_assert_uint_eq(room->live_bytes, free + PRODUCT);
    observe_check_live(ledger, tape);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_uint_eq(observe_ledger()->live_bytes, 0);
    ck_assert_uint_eq(room->live_bytes, 0);
    observe_check_sums(ledger);
    tape_observe_end();
}
END_TEST

START_TEST(the_end_of_a_profile_charges_the_run_that_is_open)
{
    memset(recorded, 0, sizeof recorded);
    observe_begin(UINT64_MAX);
    record(x[1], STEPS);
    tape_observe_end();
    const struct tape_ledger *ledger = observe_flushed[observe_n_flushed - 1].ledger;
    check_lines(ledger, recorded, recorded);
    observe_check_sums(ledger);
}
END_TEST

/* Several rows of a Jacobian are swept together: 8, then 4, 2 or 1. */
START_TEST(the_sweeps_of_a_jacobian_are_counted)
{
    static const struct {
        int64_t m;
        uint64_t sweeps;
    } want[] = {{0, 0}, {1, 1}, {3, 1}, {8, 1}, {9, 2}, {12, 2}, {17, 3}};
    double jacobian[17 * 2];
    ad_real y[17] = {0};
    for (int i = 0; i < 17; i++)
        ad_set(&y[i], ad_real_mul(x[i % 2], x[0]));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        observe_begin(UINT64_MAX);
        ck_assert_int_eq(ad_real_jacobian(tape, want[i].m, y, 2, x, jacobian), AD_OK);
        ck_assert_uint_eq(observe_ledger()->sweeps, want[i].sweeps);
        tape_observe_end();
    }
}
END_TEST

/* ---- counted as they are swept ---- */

/* The objective of a test: loops that repeat themselves, one within the other, with what comes only
 * now and then, and statements of many operands. */
static ad_real varied(ad_real y)
{
    ad_real m[14];
    for (int i = 0; i < 14; i++)
        ad_set(&m[i], ad_real_mul(x[i % 2], 0.5));
    for (int i = 0; i < 700; i++) {
        for (int k = 0; k < 1 + i % 29; k++)
            ad_set(&y, ad_real_add(ad_real_mul(y, 0.25), x[k % 2]));
        if (i % 37 == 5)
            ad_set(&y, ad_real_sub(x[1], ad_real_sin(y)));
        if (i % 101 == 7)
            ad_set(&y, ad_real_product_of(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8],
                                          m[9], m[10], m[11], m[12], m[13]));
        ad_set(&y, ad_real_mul(ad_real_cos(y), x[0]));
    }
    return record(y, STEPS);
}

struct found {
    double gradient[2];
    uint64_t n, pc[64], calls[64], bytes[64], peak[64];
};

/* What a recording and its sweep come to. */
static struct found swept_once(bool apart, bool flushed_before)
{
    struct found found = {.n = 0};
    observe_hook.apart = apart;
    observe_begin(UINT64_MAX);
    const ad_real y = varied(x[1]);
    if (flushed_before)
        (void)observe_ledger();
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, "statement") != 0)
            continue;
        ck_assert_uint_lt(found.n, 64);
        found.pc[found.n] = row->pc;
        found.calls[found.n] = row->calls;
        found.bytes[found.n] = row->live_bytes;
        found.peak[found.n++] = tape_row_at_peak(ledger, row);
        ck_assert_uint_eq(row->backward_calls, row->calls);
    }
    tape_observe_end();
    ck_assert_int_eq(ad_real_gradients(tape, 2, x, found.gradient), AD_OK);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x);
    return found;
}

static void found_check(const struct found *a, const struct found *b)
{
    ck_assert_mem_eq(a->gradient, b->gradient, sizeof a->gradient);
    ck_assert_uint_eq(a->n, b->n);
    for (uint64_t i = 0; i < a->n; i++) {
        uint64_t k = 0;
        while (k < b->n && b->pc[k] != a->pc[i])
            k++;
        ck_assert_uint_lt(k, b->n);
        ck_assert_uint_eq(a->calls[i], b->calls[k]);
        ck_assert_uint_eq(a->bytes[i], b->bytes[k]);
        ck_assert_uint_eq(a->peak[i], b->peak[k]);
    }
}

START_TEST(what_a_sweep_counts_is_what_a_walk_counts)
{
    const struct found walked = swept_once(false, false), swept = swept_once(true, false),
                       before = swept_once(true, true);
    ck_assert_uint_gt(walked.n, 5);
    found_check(&walked, &swept);
    found_check(&walked, &before);
}
END_TEST

/* In a checkpoint's second call a look finds its k-th statement, which then is dropped. */
static int calls;

static void looked_at(ad_tape on, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                      void *data)
{
    const int k = *(const int *)data;
    ad_real y = in[0];
    (void)on, (void)n_in, (void)n_out;
    calls++;
    for (int i = 0; i < k; i++)
        ad_set(&y, ad_real_sin(y));
    if (calls == 2)
        ck_assert_int_eq(look(TAPE_LOOK_FIRST, observe_ticks), TAPE_LOOKED_PENDING);
    ad_set(&y, ad_real_sin(y));
    if (calls == 2)
        ck_assert_int_eq(look(TAPE_LOOK_AGAIN, observe_ticks), TAPE_LOOKED_FOUND);
    out[0] = y;
}

/* A look is kept until its statement is counted. Where that one is gone, others may lie across its
 * place. */
START_TEST(a_look_at_statements_that_are_gone_changes_no_gradient)
{
    double wanted[2], gradient[2];
    observe_begin(UINT64_MAX);
    for (int k = 0; k < 12; k++) {
        const ad_mark mark = ad_tape_mark(tape);
        ad_real y;
        calls = 0;
        if (k > 0) {
            ck_assert_int_eq(ad_real_checkpoint(tape, looked_at, &k, 1, x, 1, &y), AD_OK);
            ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
            ck_assert_int_eq(calls, 2);
        }
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        y = x[0];
        for (int i = 0; i < 200; i++)
            ad_set(&y, ad_real_product_of(y, x[1], x[0], 1.5));
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, 2, x, k > 0 ? gradient : wanted), AD_OK);
        if (k > 0)
            ck_assert_mem_eq(gradient, wanted, sizeof gradient);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    tape_observe_end();
}
END_TEST

/* ---- the trace ---- */

enum { WORDS = 1 << 16 };

static uint32_t trace_words(const struct tape_ledger *ledger, uint32_t *word)
{
    const struct tape_log *log = &ledger->residuals->log[ledger->residuals->current];
    ck_assert_uint_eq(log->trace_flags, 0);
    ck_assert_uint_lt(log->n_trace, WORDS);
    for (uint32_t i = 0; i < log->n_trace; i++)
        word[i] = *tape_trace_at(log, i);
    return log->n_trace;
}

static uint32_t statements_of(const uint32_t *word, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i += word[i] >> TRACE_KIND_BITS)
        found += word[i] % (1u << TRACE_KIND_BITS) == TRACE_STATEMENT;
    return found;
}

/* 300 statements, a leaf, and `more` statements. */
static const struct tape_ledger *record_stretch(int more)
{
    ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x);
    ad_real y = x[1];
    for (int i = 0; i < 300; i++)
        ad_set(&y, ad_real_mul(y, x[0]));
    ad_scalar_f64(tape, 3);
    for (int i = 0; i < more; i++)
        ad_set(&y, ad_real_mul(y, x[0]));
    return observe_ledger();
}

START_TEST(a_stretch_is_traced_when_the_peak_comes_to_it)
{
    static uint32_t at_once[WORDS], later[WORDS];
    ad_tape_reset(tape);
    observe_begin(UINT64_MAX);
    const struct tape_ledger *ledger = record_stretch(1500);
    const uint32_t n = trace_words(ledger, at_once);
    ck_assert_uint_eq(statements_of(at_once, n), 1800);
    tape_observe_end();
    ad_tape_reset(tape);
    observe_begin(UINT64_MAX);
    ledger = record_stretch(500);
    ad_tape_reset(tape);
    /* Without a peak nobody will ask: what is shown of the peak's stretch is the one before. */
    ledger = record_stretch(0);
    ck_assert_uint_eq(ledger->residuals->peak_inside, 0);
    ck_assert_uint_eq(statements_of(later, trace_words(ledger, later)), 0);
    ad_tape_reset(tape);
    ledger = record_stretch(1500);
    ck_assert_uint_eq(ledger->residuals->peak_inside, 1);
    ck_assert_uint_eq(trace_words(ledger, later), n);
    for (uint32_t i = 0; i < n; i += at_once[i] >> TRACE_KIND_BITS) {
        ck_assert_uint_eq(at_once[i], later[i]); /* then comes the class */
        for (uint32_t k = 2; k < at_once[i] >> TRACE_KIND_BITS; k++)
            ck_assert_uint_eq(at_once[i + k], later[i + k]);
    }
    tape_observe_end();
}
END_TEST

/* A rewind that leaves a part of the stretch drops runs that are not traced yet. */
START_TEST(what_a_rewind_within_a_stretch_drops_is_traced_before)
{
    static uint32_t word[WORDS];
    ad_tape_reset(tape);
    observe_begin(UINT64_MAX);
    record_stretch(1500);
    ad_tape_reset(tape);
    record_stretch(0);
    const ad_mark mark = ad_tape_mark(tape);
    ad_real y = x[1];
    for (int i = 0; i < 10; i++)
        ad_set(&y, ad_real_mul(y, x[0]));
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(statements_of(word, trace_words(ledger, word)), 310);
    /* One that drops all of it ends the stretch. */
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_uint_eq(trace_words(observe_ledger(), word), 0);
    tape_observe_end();
}
END_TEST

int main(void)
{
    TCase *watched = tcase_create("watched");
    tcase_add_checked_fixture(watched, setup_watched, teardown);
    tcase_add_test(watched, every_statement_is_charged_to_its_line);
    tcase_add_test(watched, a_profile_begun_in_mid_recording_has_the_bytes_but_not_the_calls);
    tcase_add_test(watched, what_a_rewind_or_reset_drops_is_live_no_more);
    tcase_add_test(watched, at_the_peak_lines_hold_what_they_had_recorded);
    tcase_add_test(watched, room_that_no_statement_has_filled_is_no_line_s_and_no_padding);
    tcase_add_test(watched, the_sweeps_of_a_jacobian_are_counted);
    tcase_add_test(watched, what_a_sweep_counts_is_what_a_walk_counts);
    tcase_add_test(watched, a_look_at_statements_that_are_gone_changes_no_gradient);
    TCase *tcase = tcase_create("lines");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_stretch_is_traced_when_the_peak_comes_to_it);
    tcase_add_test(tcase, what_a_rewind_within_a_stretch_drops_is_traced_before);
    tcase_add_test(tcase, every_statement_is_charged_to_its_line);
    tcase_add_test(tcase, a_profile_begun_in_mid_recording_has_the_bytes_but_not_the_calls);
    tcase_add_test(tcase, what_a_rewind_or_reset_drops_is_live_no_more);
    tcase_add_test(tcase, at_the_peak_lines_hold_what_they_had_recorded);
    tcase_add_test(tcase, room_that_no_statement_has_filled_is_no_line_s_and_no_padding);
    tcase_add_test(tcase, the_end_of_a_profile_charges_the_run_that_is_open);
    tcase_add_test(tcase, the_sweeps_of_a_jacobian_are_counted);
    Suite *suite = suite_create("real_account");
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, watched);
    return run_suite(suite);
}
