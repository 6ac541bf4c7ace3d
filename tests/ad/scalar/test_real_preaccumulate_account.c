/* test_real_preaccumulate_account.c: what a profile says of sections: what was replaced is taken
 * back from its lines, the rest stands at the line of the end.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"
#include "statement_bytes.h"
#include "tape_statement.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { RUN_BYTES = sizeof(struct tape_record) + sizeof(struct tape_run) };

static ad_real x[2];

static void setup(void)
{
    modules_find();
    tape = observe_tape();
    ad_real_leaves(tape, 2, (double[]){1, 0.75}, x);
}

/* The only line that records statements one by one. */
static ad_real record_once(ad_real y, int n)
{
    for (int i = 0; i < n; i++)
        ad_set(&y, ad_real_mul(y, x[0]));
    return y;
}

/* Inlined or cloned, its line would have a program counter for each caller. */
static ad_real (*volatile record)(ad_real y, int n) = record_once;

/* The only line that ends sections. */
static void end_once(int64_t m, ad_real *y, ad_preaccumulated *saved)
{
    ck_assert_int_eq(ad_preaccumulate_end(tape, m, y, saved), AD_OK);
}

static void (*volatile end)(int64_t m, ad_real *y, ad_preaccumulated *saved) = end_once;

/* The rows of statements: that of record has `calls` of 28 bytes, `live` of them live; that of end
 * has `rows` calls, and so many bytes live. Both may have records of runs. */
static void check_lines(const struct tape_ledger *ledger, uint64_t calls, uint64_t live,
                        uint64_t rows, uint64_t row_bytes)
{
    bool recorded = false, ended = rows == 0;
    uint64_t others = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, "statement") != 0)
            continue;
        if (row->calls == calls && !recorded) {
            recorded = true;
            ck_assert_uint_ge(row->live_bytes, live * STATEMENT(2, 0));
            ck_assert_uint_eq((row->live_bytes - live * STATEMENT(2, 0)) % RUN_BYTES, 0);
        } else if (row->calls == rows && !ended) {
            ended = true;
            ck_assert_uint_ge(row->live_bytes, row_bytes);
            ck_assert_uint_eq((row->live_bytes - row_bytes) % RUN_BYTES, 0);
        } else {
            others += row->calls;
        }
    }
    ck_assert(recorded && ended);
    ck_assert_uint_eq(others, 0);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
}

TEST(what_is_replaced_is_taken_back_from_its_line)
{
    ad_preaccumulated saved;
    observe_begin(UINT64_MAX);
    ad_real y = record(x[1], 7);
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    y = record(y, 100);
    check_lines(observe_ledger(), 107, 107, 0, 0);
    end(1, &y, &saved);
    ck_assert_uint_eq(saved.bytes_after, STATEMENT(2, 0));
    const struct tape_ledger *ledger = observe_ledger();
    check_lines(ledger, 107, 7, 1, STATEMENT(2, 0));
    const struct tape_row *own = observe_row(ledger, "preaccumulate_end");
    ck_assert_uint_eq(own->calls, 1);
    ck_assert_uint_eq(own->live_bytes, 0);
    ck_assert_uint_gt(own->adjoint_bytes, 100 * 8);
    ck_assert_uint_gt(own->forward_ticks, 0);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    check_lines(observe_ledger(), 107, 7, 1, STATEMENT(2, 0));
    ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
    y = record(y, 1);
    end(1, &y, &saved); /* stays */
    ck_assert(!saved.replaced);
    check_lines(observe_ledger(), 108, 8, 1, STATEMENT(2, 0));
    tape_observe_end();
}

TEST(sections_of_several_blocks_add_up)
{
    static ad_real y[400];
    ad_preaccumulated saved;
    uint64_t calls = 0, live = 0, rows = 0, bytes = 0;
    observe_begin(UINT64_MAX);
    for (int round = 0; round < 12; round++) {
        const int before = 1 + round * 61, n = 100 << round, m = 5 + round * 30;
        y[0] = record(x[1], before);
        ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        for (int k = 0; k < m; k++)
            y[k] = record(k ? x[1] : y[0], n / m);
        end(m, y, &saved);
        calls += (uint64_t)(before + n / m * m);
        live += (uint64_t)(saved.replaced ? before : before + n / m * m);
        rows += saved.replaced ? (uint64_t)m : 0;
        bytes += saved.replaced ? saved.bytes_after : 0;
        ck_assert(saved.replaced);
        ck_assert_uint_eq(saved.bytes_after, STATEMENT(2, 0) * (uint64_t)m);
        check_lines(observe_ledger(), calls, live, rows, bytes);
    }
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    tape_observe_end();
    /* A profile that begins afterwards finds the same. */
    observe_begin(UINT64_MAX);
    ck_assert_int_eq(ad_real_backward(tape, y[0]), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
    uint64_t statements = 0;
    ad_stats stats;
    ad_tape_stats(tape, &stats);
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if (strcmp(tape_ledger_row(ledger, i)->op, "statement") == 0)
            statements += tape_ledger_row(ledger, i)->live_bytes;
    ck_assert_uint_eq((statements - stats.statement_bytes) % RUN_BYTES, 0);
    ck_assert_uint_eq(stats.statement_bytes, live * STATEMENT(2, 0) + bytes);
    tape_observe_end();
}

TEST(rewinds_and_resets_take_sections_back)
{
    ad_preaccumulated saved;
    observe_begin(UINT64_MAX);
    ad_real y = record(x[1], 10), z;
    const ad_mark mark = ad_tape_mark(tape);
    for (int round = 0; round < 4; round++) {
        ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        z = record(y, 10 + round * 3000);
        end(1, &z, &saved);
        z = record(z, 3);
        ck_assert_int_eq(ad_preaccumulate_begin(tape), AD_OK);
        z = record(z, 30 + round * 3000); /* under way */
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        const struct tape_ledger *ledger = observe_ledger();
        observe_check_sums(ledger);
        observe_check_live(ledger, tape);
    }
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_uint_eq(observe_ledger()->live_bytes, 0);
    tape_observe_end();
}

RUN_TESTS(setup, teardown)
