/* test_apart.c: what counting takes is no time of an op, of a pullback or of a scope.
 *
 * The clock is the observer's: a tick each time that it is read. What the profiler does by itself
 * takes MUCH.
 */
#include "observe_support.h"
#include "run_cases.h"
#include "tape_account.h"
#include "tape_residuals.h"
#include "tape_scope.h"

#include <tapescope/ad_real.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MUCH = 100000, READINGS = 4096, N = 8 };

static const double data[N] = {0.5, 0.25, 0.125, 0.5, 0.25, 0.125, 0.5, 0.25};
static struct tape_hook before;

static void setup(void)
{
    before = observe_hook;
    observe_hook.apart = true;
}

static void teardown(void)
{
    if (__atomic_load_n(&tape_hook_now, __ATOMIC_RELAXED))
        tape_observe_end();
    observe_hook = before;
    ad_profiling_ = 0;
}

static ad_tensor leaf_of(ad_tape tape)
{
    return ad_leaf(tape, AD_F64, 1, (int64_t[]){N}, data);
}

static uint32_t dear_path(struct tape_hook *hook, uintptr_t site, const struct tape_path_root *root)
{
    (void)hook, (void)site, (void)root;
    observe_ticks += MUCH;
    return 1;
}

TEST(to_find_the_calls_that_lead_to_an_op_is_no_time_of_it)
{
    observe_hook.path = dear_path;
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    const uint64_t began = observe_ticks;
    const ad_tensor y = ad_tanh(leaf_of(tape));
    ck_assert_uint_ge(observe_ticks - began, 2 * MUCH);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(observe_row(ledger, "tanh")->forward_ticks, 1);
    ck_assert_uint_eq(observe_row(ledger, "tanh")->path, 1);
    ck_assert_uint_eq(observe_row(ledger, "sum")->forward_ticks, 1);
    /* An op that is refused before it has a row does not lend the next one its begin. */
    ad_tape other = observe_tape();
    const ad_tensor z = leaf_of(other), m = ad_reshape(z, (int64_t[]){2, 4}, 2);
    ad_add(z, y);
    ck_assert_int_ne(ad_tape_status(other), AD_OK);
    ad_tape_clear_error(other);
    observe_ticks += MUCH;
    ad_einsum("ij,kj->ik", (ad_tensor[]){m, m}, 2); /* several ops, by another way */
    tape_observe_flush();
    for (int i = 0; i < observe_n_flushed; i++)
        ck_assert_uint_lt(observe_flushed[i].ledger->forward_ticks, MUCH);
    ad_tape_destroy(other);
    ad_tape_destroy(tape);
}

static uint32_t new_path(struct tape_hook *hook, uintptr_t site, const struct tape_path_root *root)
{
    static uint32_t last;
    (void)hook, (void)site, (void)root;
    return ++last;
}

static void *dear_resize(void *p, size_t bytes, void *payload)
{
    (void)payload;
    observe_ticks += MUCH;
    return realloc(p, bytes);
}

static void plain_release(void *p, void *payload)
{
    (void)payload;
    free(p);
}

TEST(to_make_the_row_of_an_op_is_no_time_of_it)
{
    enum { CALLS = 300 };
    const ad_allocator dear = {tape_memory_system.reserve, tape_memory_system.unreserve,
                               dear_resize, plain_release, NULL};
    const ad_tape_options options = {
        .budget_bytes = 64 << 20, .reserve_bytes = 64 << 20, .allocator = &dear};
    observe_hook.path = new_path;
    observe_begin(UINT64_MAX);
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    const ad_tensor x = leaf_of(tape);
    const uint64_t began = observe_ticks;
    for (int i = 0; i < CALLS; i++) /* each is on a path of its own */
        ad_tanh(x);
    ck_assert_uint_ge(observe_ticks - began, 4 * MUCH); /* rows, and the table twice or more */
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_gt(ledger->n_rows, CALLS);
    ck_assert_uint_eq(ledger->forward_ticks, CALLS);
    ad_tape_destroy(tape);
}

/* ---- sweeps ---- */

static const struct tape_ledger *swept;
static uint64_t counted_at[READINGS];
static int n_readings;

/* Notes the bytes that have been counted at each reading. */
static uint64_t noting_clock(void)
{
    if (swept && n_readings < READINGS)
        counted_at[n_readings++] = swept->handed_out_bytes;
    return ++observe_ticks;
}

TEST(bytes_of_a_sweep_are_counted_between_two_pullbacks)
{
    enum { RECORDS = 41 };
    observe_hook.clock = noting_clock;
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ad_tensor y = leaf_of(tape);
    for (int i = 0; i < 20; i++)
        y = ad_tanh(ad_scale(y, 0.99));
    const ad_tensor s = ad_sum(y);
    n_readings = 0;
    swept = observe_ledger();
    const struct tape_ledger *ledger = swept;
    ck_assert_int_eq(ad_backward(s), AD_OK);
    swept = NULL;
    int changes = 0;
    for (int i = 1; i < n_readings; i++)
        changes += counted_at[i] != counted_at[i - 1];
    ck_assert_int_gt(changes, 0);
    /* One reading a record, besides those at the begin, after the seed and at the end; and one more
     * where bytes are counted, of several records together. */
    ck_assert_int_eq(n_readings, 3 + RECORDS + changes);
    ck_assert_int_lt(changes, RECORDS / 4);
    /* Each reading is a tick, and ticks in which bytes are counted are no row's. */
    ck_assert_int_eq((int)ledger->backward_ticks, n_readings - 1 - changes);
    observe_check_sums(ledger);
    ad_tape_destroy(tape);
}

TEST(an_op_reads_the_clock_as_it_begins_and_as_it_ends)
{
    enum { OPS = 10 };
    observe_hook.clock = noting_clock;
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    ad_tensor y = leaf_of(tape);
    n_readings = 0;
    swept = observe_ledger();
    for (int i = 0; i < OPS; i++)
        y = ad_tanh(y);
    swept = NULL;
    ck_assert_int_eq(n_readings, 2 * OPS);
    ad_tape_destroy(tape);
}

/* They are counted before the sweep comes to a run with a fused loop. */
TEST(to_count_statements_is_no_time_of_their_sweep)
{
    const ad_allocator dear = {tape_memory_system.reserve, tape_memory_system.unreserve,
                               dear_resize, plain_release, NULL};
    const ad_tape_options options = {
        .budget_bytes = 64 << 20, .reserve_bytes = 64 << 20, .allocator = &dear};
    for (int loop = 0; loop < 2; loop++) {
        observe_begin(UINT64_MAX);
        ad_tape tape;
        enum { LONG = 64 };
        const double ones[LONG] = {1};
        ad_real x[LONG], y;
        ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
        ck_assert_int_eq(ad_real_leaves(tape, LONG, ones, x), AD_OK);
        y = ad_real_of(ad_real_mul(x[0], x[1]));
        if (loop)
            ad_set(&y, ad_real_add(y, ad_real_dot(LONG, x, x)));
        ad_set(&y, ad_real_mul(y, x[2]));
        const uint64_t began = observe_ticks;
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_uint_ge(observe_ticks - began, MUCH); /* the lines of runs have memory now */
        const struct tape_ledger *ledger = observe_ledger();
        uint64_t ticks = 0, calls = 0;
        for (uint32_t i = 0; i < ledger->n_rows; i++)
            if (strcmp(tape_ledger_row(ledger, i)->op, "statement") == 0) {
                ticks += tape_ledger_row(ledger, i)->backward_ticks;
                calls += tape_ledger_row(ledger, i)->backward_calls;
            }
        ck_assert_uint_eq(calls, 2U + (unsigned)loop);
        ck_assert_uint_gt(ticks, 0);
        ck_assert_uint_lt(ticks, MUCH);
        ad_tape_destroy(tape);
        tape_observe_end();
    }
}

/* The observer writes its file: that takes a while. */
static void dear_flush(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    before.flush(hook, ledger, final);
    observe_ticks += MUCH;
}

TEST(what_is_written_meanwhile_is_no_pullback_s_and_no_scope_s)
{
    observe_hook.flush = dear_flush;
    observe_begin(0); /* each time that there is one */
    ad_profiling_ = 1;
    ad_tape tape = observe_tape();
    ad_tensor y = leaf_of(tape);
    for (int i = 0; i < 3; i++)
        y = ad_tanh(y);
    const ad_tensor s = ad_sum(y);
    const uint64_t began = observe_ticks;
    AD_SCOPE("swept apart")
    {
        ck_assert_int_eq(ad_backward(s), AD_OK);
    }
    ad_profiling_ = 0;
    ck_assert_uint_ge(observe_ticks - began, 4 * MUCH);
    const struct tape_scope *scope = tape_scopes_at(observe_scopes, observe_scopes->n - 1);
    ck_assert_str_eq(scope->name, "swept apart");
    ck_assert_uint_lt(scope->ticks, MUCH);
    ck_assert_uint_gt(scope->sweep_ticks, 0);
    ck_assert_uint_le(scope->sweep_ticks, scope->ticks);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t ticks = 0; /* a compiler may make three lines of the loop's one */
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        if (strcmp(tape_ledger_row(ledger, i)->op, "tanh") == 0)
            ticks += tape_ledger_row(ledger, i)->backward_ticks;
    ck_assert_uint_eq(ticks, 3);
    ck_assert_uint_lt(ledger->backward_ticks, MUCH);
    observe_check_sums(ledger);
    ad_tape_destroy(tape);
}

TEST(what_is_written_as_an_op_ends_is_no_scope_s)
{
    observe_hook.flush = dear_flush;
    observe_begin(0);
    ad_profiling_ = 1;
    ad_tape tape = observe_tape();
    ad_tensor y = leaf_of(tape);
    const uint64_t began = observe_ticks;
    AD_SCOPE("recorded apart")
    {
        y = ad_tanh(ad_tanh(y));
    }
    ad_profiling_ = 0;
    ck_assert_uint_ge(observe_ticks - began, 2 * MUCH);
    const struct tape_scope *scope = tape_scopes_at(observe_scopes, observe_scopes->n - 1);
    ck_assert_str_eq(scope->name, "recorded apart");
    ck_assert_uint_gt(scope->ticks, 0);
    ck_assert_uint_lt(scope->ticks, MUCH);
    ad_tape_destroy(tape);
}

/* ---- the same bytes ---- */

static void block(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    (void)tape, (void)n_in, (void)n_out, (void)payload;
    out[0] = ad_tanh(ad_exp(in[0]));
}

/* All kinds of records, and rules that take more buffers than are noted at once. */
static const struct tape_ledger *all_kinds(ad_tape tape)
{
    const ad_mark mark = ad_tape_mark(tape);
    for (int step = 0; step < 3; step++) {
        const ad_tensor x = leaf_of(tape);
        ad_tensor y = ad_tanh(x), z;
        ck_assert_int_eq(ad_checkpoint(tape, block, NULL, 1, &y, 1, &z), AD_OK);
        const ad_tensor m = ad_reshape(z, (int64_t[]){4, 2}, 2);
        y = ad_softmax(ad_matmul(m, ad_transpose(m)), 1);
        ad_real a[16];
        ck_assert_int_eq(ad_reals_of_tensor(y, 16, a), AD_OK);
        ad_real b = a[0];
        for (int i = 1; i < 16; i++)
            ad_set(&b, ad_real_add(b, ad_real_sin(a[i])));
        const ad_tensor back = ad_tensor_of_reals(tape, 0, NULL, &b);
        const ad_tensor s = ad_add(ad_sum(ad_gelu(y)), back);
        const ad_status status = step == 2 ? ad_backward_release(s) : ad_backward(s);
        ck_assert_int_eq(status, AD_OK);
        if (step == 0)
            ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    }
    return observe_ledger();
}

/* What must not depend on when it is counted. */
struct counted {
    uint64_t row[64][8], class_[128][6], live, peak, peaks, out;
    uint32_t n_rows, n_classes;
};

static void count(struct counted *to, bool apart)
{
    observe_hook.apart = apart;
    observe_begin(UINT64_MAX);
    ad_tape tape = observe_tape();
    const struct tape_ledger *l = all_kinds(tape);
    observe_check_sums(l);
    observe_check_live(l, tape);
    memset(to, 0, sizeof *to);
    to->live = l->live_bytes;
    to->peak = l->peak_bytes;
    to->peaks = l->peak_count;
    to->out = l->handed_out_bytes;
    to->n_rows = l->n_rows;
    to->n_classes = l->residuals->n_classes;
    ck_assert_uint_le(l->n_rows, 64);
    ck_assert_uint_le(to->n_classes, 128);
    for (uint32_t i = 0; i < l->n_rows; i++) {
        const struct tape_row *r = tape_ledger_row(l, i);
        memcpy(to->row[i],
               (uint64_t[]){r->calls, r->backward_calls, r->record_bytes, r->value_bytes,
                            r->adjoint_bytes, r->kept_bytes, r->live_bytes, tape_row_at_peak(l, r)},
               sizeof to->row[i]);
    }
    for (uint32_t i = 0; i < to->n_classes; i++) {
        const struct tape_class *c = tape_class_at(l->residuals, i);
        memcpy(to->class_[i],
               (uint64_t[]){c->producer, c->kind, c->bytes, c->live_bytes,
                            tape_class_at_peak(c, l->peak_count), c->by_sweep},
               sizeof to->class_[i]);
    }
    tape_observe_end();
    ad_tape_destroy(tape);
}

TEST(bytes_are_the_same_however_they_are_counted)
{
    static struct counted within, apart;
    count(&within, false);
    count(&apart, true);
    ck_assert_uint_gt(within.peak, 0);
    ck_assert_mem_eq(&within, &apart, sizeof within);
}

RUN_TESTS(setup, teardown)
