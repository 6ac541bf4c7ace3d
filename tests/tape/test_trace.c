/* test_trace.c: ops in the trace, one by one, and in the log of what changed: whether they are
 * written at once, when the peak comes to them, or for a profile that is begun late.
 */
#include "observe_support.h"
#include "run_cases.h"
#include "tape_account.h"
#include "tape_residuals.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

enum { SIZE = 64, BYTES = SIZE * 8, WORDS = 1 << 14 };

static const double data[SIZE] = {0.5, -0.25, 1};

static ad_tape tape;

static void setup(void)
{
    tape = observe_tape();
}

static void teardown(void)
{
    ad_tape_destroy(tape);
    tape_observe_end();
}

static ad_tensor leaf(void)
{
    return ad_leaf(tape, AD_F64, 1, (int64_t[]){SIZE}, data);
}

static const struct tape_log *log_now(const struct tape_ledger *ledger)
{
    return &ledger->residuals->log[ledger->residuals->current];
}

static uint32_t trace_words(const struct tape_ledger *ledger, uint32_t *word)
{
    const struct tape_log *log = log_now(ledger);
    ck_assert_uint_eq(log->trace_flags, 0);
    ck_assert_uint_lt(log->n_trace, WORDS);
    for (uint32_t i = 0; i < log->n_trace; i++)
        word[i] = *tape_trace_at(log, i);
    return log->n_trace;
}

static uint32_t kind_at(const uint32_t *word, uint32_t i)
{
    return word[i] % (1u << TRACE_KIND_BITS);
}

static uint32_t count_kind(const uint32_t *word, uint32_t n, uint32_t kind)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i += word[i] >> TRACE_KIND_BITS)
        found += kind_at(word, i) == kind;
    return found;
}

/* The entry of the record that made value x. */
static const uint32_t *record_of(const uint32_t *word, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n; i += word[i] >> TRACE_KIND_BITS)
        if (kind_at(word, i) == TRACE_RECORD && word[i + 5] == x)
            return word + i;
    ck_abort_msg("no record of value %u", x);
}

/* ---- a profile that is begun late ---- */

/* Records whose operands are not those of the last one. */
static void record_some(void)
{
    const ad_tensor a = leaf(), b = leaf(), c = ad_mul(a, b), d = ad_exp(c);
    ad_add(ad_mul(d, c), b);
}

TEST(a_profile_begun_late_has_each_record_with_its_own_operands)
{
    static uint32_t whole[WORDS], late[WORDS];
    observe_begin(UINT64_MAX);
    record_some();
    const uint32_t n = trace_words(observe_ledger(), whole);
    tape_observe_end();
    ad_tape_reset(tape);
    record_some();
    observe_begin(UINT64_MAX);
    ad_tape_rewind(tape, ad_tape_mark(tape)); /* takes up the observer */
    const uint32_t m = trace_words(observe_ledger(), late);
    ck_assert_uint_eq(count_kind(whole, n, TRACE_RECORD), 4);
    ck_assert_uint_eq(count_kind(late, m, TRACE_RECORD), 4);
    for (uint32_t i = 0; i < n; i += whole[i] >> TRACE_KIND_BITS) {
        if (kind_at(whole, i) != TRACE_RECORD)
            continue;
        const uint32_t *other = record_of(late, m, whole[i + 5]);
        for (uint32_t k = 2; k < whole[i] >> TRACE_KIND_BITS; k++)
            ck_assert_uint_eq(other[k], whole[i + k]);
    }
}

/* ---- what is put off ---- */

/* A stretch of ops, a sweep, and things that change what is known of the ops' results. */
static const struct tape_ledger *record_stretch(int n)
{
    const ad_tensor x = leaf(), y = ad_exp(x), z = ad_neg(y);
    ad_tensor last = ad_tanh(z);
    ad_retain_gradient(last);
    ad_release(z);
    ck_assert_int_eq(ad_backward(ad_sum(ad_mul(last, y))), AD_OK);
    for (int i = 0; i < n; i++)
        last = ad_mul(ad_sin(last), y);
    return observe_ledger();
}

TEST(ops_are_traced_when_the_peak_comes_to_their_stretch)
{
    static uint32_t at_once[WORDS], later[WORDS];
    observe_begin(UINT64_MAX);
    const struct tape_ledger *ledger = record_stretch(20);
    const uint32_t n = trace_words(ledger, at_once);
    ck_assert_uint_eq(count_kind(at_once, n, TRACE_RECORD), 5 + 2 * 20);
    tape_observe_end();
    ad_tape_reset(tape);
    observe_begin(UINT64_MAX);
    record_stretch(10);
    ad_tape_reset(tape);
    ledger = record_stretch(0); /* without a peak nobody will ask */
    ck_assert_uint_eq(ledger->residuals->peak_inside, 0);
    ck_assert_uint_eq(count_kind(later, trace_words(ledger, later), TRACE_RECORD), 0);
    ad_tape_reset(tape);
    ledger = record_stretch(20);
    ck_assert_uint_eq(ledger->residuals->peak_inside, 1);
    ck_assert_uint_eq(trace_words(ledger, later), n);
    for (uint32_t i = 0; i < n; i += at_once[i] >> TRACE_KIND_BITS) {
        ck_assert_uint_eq(at_once[i], later[i]); /* then comes the class */
        for (uint32_t k = 2; k < at_once[i] >> TRACE_KIND_BITS; k++)
            ck_assert_uint_eq(at_once[i + k], later[i + k]);
    }
}

TEST(ops_that_a_rewind_within_a_stretch_drops_are_traced_before)
{
    static uint32_t word[WORDS];
    observe_begin(UINT64_MAX);
    record_stretch(20);
    ad_tape_reset(tape);
    ad_tensor y = leaf();
    for (int i = 0; i < 10; i++)
        y = ad_sin(y);
    const ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 3; i++)
        y = ad_neg(y);
    ad_tape_rewind(tape, mark);
    const struct tape_ledger *ledger = observe_ledger();
    const uint32_t n = trace_words(ledger, word);
    ck_assert_uint_eq(count_kind(word, n, TRACE_RECORD), 13);
    ck_assert_uint_eq(count_kind(word, n, TRACE_REWIND), 1);
}

/* ---- uses ---- */

/* The values that are used, in the order of the trace; n of them. */
static uint32_t uses(const uint32_t *word, uint32_t n, uint32_t *value)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i += word[i] >> TRACE_KIND_BITS)
        for (uint32_t k = 2; k < word[i] >> TRACE_KIND_BITS && kind_at(word, i) == TRACE_USE; k++)
            value[found++] = word[i + k];
    return found;
}

TEST(uses_of_handles_are_traced_and_operands_of_records_are_not)
{
    static uint32_t word[WORDS], value[WORDS];
    double number[SIZE];
    observe_begin(UINT64_MAX);
    const ad_tensor x = leaf(), y = ad_exp(x), z = ad_neg(y);
    ck_assert_int_eq(ad_value(y, number, SIZE), AD_OK);
    ck_assert_int_eq(ad_size(y), SIZE);                 /* once more is no entry */
    ck_assert_int_eq(ad_value(x, number, SIZE), AD_OK); /* a leaf's neither */
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ad_mul(z, y);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ad_detach(z);
    const ad_frame frame = ad_frame_begin(tape);
    const ad_tensor kept = ad_neg(z), released = ad_neg(z);
    ck_assert_int_eq(ad_frame_end(frame, &kept, 1), AD_OK);
    const uint32_t wanted[] = {y.value, z.value, y.value, z.value, kept.value};
    const uint32_t n = trace_words(observe_ledger(), word);
    ck_assert_uint_eq(uses(word, n, value), sizeof wanted / sizeof *wanted);
    ck_assert_mem_eq(value, wanted, sizeof wanted);
    ck_assert_uint_ne(released.value, kept.value);
}

TEST(what_survives_the_end_of_a_trace_counts_as_used)
{
    static uint32_t word[WORDS], value[WORDS];
    observe_begin(UINT64_MAX);
    const ad_tensor x = leaf(), y = ad_neg(x), z = ad_neg(y);
    ck_assert_int_eq(ad_release(y), AD_OK);
    const ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < 20; i++)
        ad_exp(z);
    const struct tape_residuals *all = observe_ledger()->residuals;
    const struct tape_log *log = &all->log[all->current];
    ad_tape_rewind(tape, mark);
    ck_assert_ptr_ne(log, &all->log[all->current]);
    for (uint32_t i = 0; i < log->n_trace; i++)
        word[i] = *tape_trace_at(log, i);
    ck_assert_uint_eq(uses(word, log->n_trace, value), 2);
    ck_assert_uint_eq(value[0], y.value); /* by its release */
    ck_assert_uint_eq(value[1], z.value);
}

/* ---- changes ---- */

TEST(an_op_changes_each_class_once_and_the_peak_once)
{
    enum { OPS = 5 };
    observe_begin(UINT64_MAX);
    ad_tensor y = ad_neg(leaf());
    const struct tape_ledger *ledger = observe_ledger();
    const uint32_t changes = log_now(ledger)->n;
    const uint64_t peaks = ledger->peak_count, live = ledger->live_bytes;
    for (int i = 0; i < OPS; i++)
        y = ad_neg(y);
    ck_assert_uint_eq(log_now(ledger)->n, changes + 2 * OPS); /* records and values */
    ck_assert_uint_eq(ledger->peak_count, peaks + OPS);
    ck_assert_uint_gt(ledger->live_bytes, live + OPS * (uint64_t)BYTES);
    ck_assert_uint_eq(ledger->peak_bytes, ledger->live_bytes);
    observe_check_sums(ledger);
}

/* Entries and records are of one class, but dropped one after the other. */
TEST(a_rewind_gives_back_what_neighbours_of_a_class_hold_at_once)
{
    enum { KEPT = 20 };
    const volatile int dropped = 7; /* no compiler writes the loop out: its ops are of one call */
    observe_begin(UINT64_MAX);
    ad_tensor y = leaf();
    for (int i = 0; i < KEPT; i++)
        y = ad_neg(y);
    const struct tape_ledger *ledger = observe_ledger();
    const uint64_t live = ledger->live_bytes;
    const ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < dropped; i++)
        y = ad_sin(y);
    const uint64_t more = ledger->live_bytes - live;
    const uint32_t changes = log_now(ledger)->n;
    ad_tape_rewind(tape, mark);
    ck_assert_uint_eq(log_now(ledger)->n,
                      changes + 4); /* entries, two classes of values, records */
    ck_assert_uint_eq(ledger->live_bytes, live);
    uint64_t by_rewind = 0;
    for (uint32_t i = 0; i < ledger->residuals->n_classes; i++)
        by_rewind += tape_class_at(ledger->residuals, i)->by_rewind;
    ck_assert_uint_eq(by_rewind, more);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
}

/* ---- rows that are known ---- */

static uint32_t n_paths;

static uint32_t path_by_turns(struct tape_hook *hook, uintptr_t site,
                              const struct tape_path_root *root)
{
    static uint32_t last;
    (void)hook, (void)site, (void)root;
    return last = last % n_paths + 1;
}

/* How often rows were searched for in the table by n ops of one line: before the reading of the
 * clock behind such a search the loads are waited for. */
static uint32_t searches(int n, uint32_t paths)
{
    n_paths = paths;
    const ad_tensor x = leaf();
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape *t = (const void *)((const char *)ledger - offsetof(struct tape, ledger));
    const uint32_t before = t->sites.searched;
    for (int i = 0; i < n; i++)
        ad_neg(x);
    return t->sites.searched - before;
}

TEST(a_row_that_was_found_of_late_is_not_searched_for)
{
    const struct tape_hook before = observe_hook;
    observe_hook.path = path_by_turns;
    observe_begin(UINT64_MAX);
    ck_assert_uint_eq(searches(100, 1), 1);
    ck_assert_uint_le(searches(100, 4), 4);
    ck_assert_uint_ge(searches(400, 4 * TAPE_KNOWN), 400 - TAPE_KNOWN);
    observe_hook = before;
}

RUN_TESTS(setup, teardown)
