/* test_real_times.c: whose the time of scalar code is, by a clock that counts its readings and that
 * pullbacks move on: exact for fused loops and custom records, an estimate for statements.
 */
#include <tapescope/ad_real.h>

#include "observe_support.h"
#include "run_cases.h"
#include "statement_bytes.h"
#include "tape_account.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FAST = 1000, SLOW = 20000 };

static ad_tape tape;
static ad_real x[2];

static enum tape_looked (*look)(enum tape_look_kind kind, uint64_t now);
static int watches;

static void take_watch(struct tape_hook *hook,
                       enum tape_looked (*given)(enum tape_look_kind kind, uint64_t now))
{
    (void)hook;
    look = given;
    watches++;
}

static void setup(void)
{
    tape = observe_tape();
    ad_real_leaves(tape, 2, (double[]){0.5, 2}, x);
    look = NULL;
    watches = 0;
    observe_hook.watch = take_watch;
}

static void teardown(void)
{
    if (__atomic_load_n(&tape_hook_now, __ATOMIC_RELAXED))
        tape_observe_end();
    observe_hook.watch = NULL;
    observe_hook.apart = false;
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

/* Statements that stand in the code once, whatever loop they are called in. */
#define ONCE __attribute__((noinline)) static void
ONCE product(ad_real *y)
{
    ad_set(y, ad_real_mul(*y, x[1])); /* 28 bytes */
}

ONCE sine(ad_real *y)
{
    ad_set(y, ad_real_sin(*y)); /* 16 bytes */
}

ONCE cosine(ad_real *y)
{
    ad_set(y, ad_real_cos(*y));
}

/* The one row of the op that was called so often. */
static const struct tape_row *row_of(const struct tape_ledger *ledger, const char *op,
                                     uint64_t calls)
{
    const struct tape_row *found = NULL;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, op) != 0 || row->calls != calls)
            continue;
        ck_assert_ptr_null(found);
        found = row;
    }
    ck_assert_msg(found != NULL, "no row of %s has %lu calls", op, (unsigned long)calls);
    return found;
}

/* ---- exact ---- */

static void pullback(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    uint64_t ticks;
    (void)m;
    memcpy(&ticks, data, sizeof ticks);
    observe_ticks += ticks;
    for (int64_t i = 0; i < n; i++)
        dx[i] += dy[0];
}

static ad_real call(const char *name, uint64_t ticks)
{
    const double value = x[0].value + x[1].value;
    ad_real y;
    ck_assert_int_eq(ad_real_custom(2, x, 1, &value, &y, name, pullback, &ticks, sizeof ticks),
                     AD_OK);
    return y;
}

TEST(a_custom_record_has_the_time_of_its_own_pullback)
{
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    for (int i = 0; i < 9; i++)
        ad_set(&y, ad_real_add(y, call("fast", FAST)));
    ad_set(&y, ad_real_add(y, call("slow", SLOW)));
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *fast = row_of(ledger, "fast", 9), *slow = row_of(ledger, "slow", 1);
    /* A reading of the clock on either side. */
    ck_assert_uint_eq(fast->backward_ticks, 9 * (FAST + 1));
    ck_assert_uint_ge(slow->backward_ticks, SLOW + 1);
    ck_assert_uint_le(slow->backward_ticks, SLOW + 2);
    ck_assert_uint_eq(fast->backward_calls, 9);
    ck_assert_uint_eq(slow->backward_calls, 1);
    ck_assert_uint_eq(fast->estimated_backward_ticks, 0);
    ck_assert_uint_eq(slow->estimated_backward_ticks, 0);
    ck_assert_uint_ge(fast->forward_ticks, 9);
    ck_assert_uint_lt(fast->forward_ticks, FAST);
    ck_assert_uint_eq(fast->estimated_forward_ticks, 0);
    observe_check_sums(ledger);
}

/* ---- divided ---- */

/* What a statement's part is of the time of its run: it takes as long as 64 bytes, and its own. */
#define PART(general, units) (64 + STATEMENT(general, units))

TEST(a_runs_time_is_divided_among_its_lines)
{
    observe_begin(UINT64_MAX);
    ad_real y = x[0], z = x[1];
    for (int i = 0; i < 300; i++) {
        product(&y);
        if (i % 3 == 0)
            sine(&z);
    }
    ad_set(&z, ad_real_add(ad_real_add(ad_real_mul(y, 0.5), z), call("slow", SLOW))); /* 32 */
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *product = row_of(ledger, "statement", 300),
                          *sine = row_of(ledger, "statement", 100),
                          *sum = row_of(ledger, "statement", 1);
    ck_assert_uint_eq(product->estimated_backward_ticks, product->backward_ticks);
    ck_assert_uint_eq(sine->estimated_backward_ticks, sine->backward_ticks);
    ck_assert_uint_eq(product->backward_calls, 300);
    ck_assert_uint_eq(sine->backward_calls, 100);
    ck_assert_uint_eq(sum->backward_calls, 1);
    /* What the pullback of the custom record took is in none of them. */
    ck_assert_uint_lt(product->backward_ticks + sine->backward_ticks + sum->backward_ticks, 10);
    observe_check_sums(ledger);
}

/* Of a clock that moves a lot between its readings. */
static uint64_t stride_clock(void)
{
    observe_ticks += 120000;
    return observe_ticks;
}

TEST(no_tick_of_a_run_is_lost_or_made)
{
    uint64_t (*const before)(void) = observe_hook.clock;
    observe_hook.clock = stride_clock;
    observe_begin(UINT64_MAX);
    ad_real y = x[0], z = x[1];
    for (int i = 0; i < 60; i++) {
        product(&y);
        if (i % 3 == 0)
            sine(&z);
    }
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *product = row_of(ledger, "statement", 60),
                          *sine = row_of(ledger, "statement", 20);
    /* Whole intervals between two readings, by 60 and 20 statements in one run and their bytes. */
    const double all_products = 60 * PART(2, 0), all_parts = all_products + 20 * PART(1, 0);
    const uint64_t all = product->backward_ticks + sine->backward_ticks;
    ck_assert_uint_gt(all, 0);
    ck_assert_uint_eq(all % 120000, 0);
    ck_assert_double_le(
        fabs((double)product->backward_ticks - (double)all * all_products / all_parts), 1);
    ck_assert_uint_eq(ledger->backward_ticks % 120000, 0);
    tape_observe_end();
    observe_hook.clock = before;
}

/* Rows of that op and of so many calls in all: those of forks are on each one's own ledger. */
static uint64_t swept_on(const struct tape_ledger *const *ledgers, int n, uint64_t calls)
{
    uint64_t ticks = 0;
    int found = 0;
    for (int k = 0; k < n; k++)
        for (uint32_t i = 0; i < ledgers[k]->n_rows; i++) {
            const struct tape_row *row = tape_ledger_row(ledgers[k], i);
            if (strcmp(row->op, "statement") != 0 || row->calls != calls)
                continue;
            ck_assert_uint_eq(row->backward_calls, calls);
            ck_assert_uint_eq(row->estimated_backward_ticks, row->backward_ticks);
            ticks += row->backward_ticks;
            found++;
        }
    ck_assert_int_eq(found, 1);
    return ticks;
}

TEST(statements_of_a_fork_have_their_share_of_its_sweep)
{
    uint64_t (*const before)(void) = observe_hook.clock;
    observe_hook.clock = stride_clock;
    observe_begin(UINT64_MAX);
    ad_tape fork;
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    ad_real y = x[0];
    for (int i = 0; i < 60; i++) {
        product(&y);
        if (i % 3 == 0)
            sine(&y);
    }
    ck_assert_int_eq(ad_tape_record_end(fork), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, fork, 1, &y), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    tape_observe_flush();
    const struct tape_ledger *ledgers[OBSERVE_LOG];
    int n = 0;
    for (int i = 0; i < observe_n_flushed; i++) {
        int k = 0;
        while (k < n && ledgers[k] != observe_flushed[i].ledger)
            k++;
        if (k == n)
            ledgers[n++] = observe_flushed[i].ledger;
    }
    const uint64_t products = swept_on(ledgers, n, 60), sines = swept_on(ledgers, n, 20);
    /* Of whole intervals between two readings of the clock. */
    const double of_products = 60 * PART(2, 0), of_all = of_products + 20 * PART(1, 0);
    ck_assert_uint_gt(sines, 0);
    ck_assert_uint_eq((products + sines) % 120000, 0);
    ck_assert_double_le(fabs((double)products - (double)(products + sines) * of_products / of_all),
                        1);
    tape_observe_end();
    observe_hook.clock = before;
}

TEST(what_counting_takes_is_no_scope_s)
{
    observe_begin(UINT64_MAX);
    ad_profiling_ = 1;
    ad_real y = x[0];
    product(&y); /* the tape is observed from here on */
    tape_observe_flush();
    uint64_t begun = 0, ended = 0;
    AD_SCOPE("counted")
    {
        begun = observe_ticks;
        for (int i = 0; i < 60; i++)
            product(&y);
        ended = observe_ticks;
    }
    ad_profiling_ = 0;
    const struct tape_scope *scope = tape_scopes_at(observe_scopes, observe_scopes->n - 1);
    ck_assert_str_eq(scope->name, "counted");
    ck_assert_uint_eq(scope->records, 60);
    /* As it ends, the clock is read before and after the lines are counted, and then once more. */
    ck_assert_uint_eq(observe_ticks - ended, 3);
    ck_assert_uint_eq(scope->ticks, ended - begun + 2);
}

TEST(lines_charged_as_a_profile_began_outlive_a_rewind)
{
    ad_real y = x[0], z = x[1];
    for (int i = 0; i < 20; i++)
        product(&y);
    const ad_mark mark = ad_tape_mark(tape);
    cosine(&z);
    observe_begin(UINT64_MAX);
    ad_real leaf = ad_real_leaf(tape, 1); /* the tape is observed from here on */
    cosine(&leaf);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    z = x[1];
    for (int i = 0; i < 10; i++)
        sine(&z);
    cosine(&z);
    ck_assert_int_eq(ad_real_backward_seeds(tape, 2, (ad_real[]){y, z}, (double[]){1, 1}), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t products = 0, sines = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        products += row->live_bytes >= 20 * STATEMENT(2, 0) && row->backward_calls == 20;
        sines += row->calls == 10 && row->backward_calls == 10;
    }
    ck_assert_uint_eq(products, 1);
    ck_assert_uint_eq(sines, 1);
}

/* A thread is begun for looks: that takes a while. */
static void dear_watch(struct tape_hook *hook,
                       enum tape_looked (*given)(enum tape_look_kind kind, uint64_t now))
{
    take_watch(hook, given);
    observe_ticks += SLOW;
}

TEST(what_the_first_look_takes_is_no_scope_s)
{
    observe_hook.watch = dear_watch;
    observe_hook.apart = true;
    observe_begin(UINT64_MAX);
    ad_profiling_ = 1;
    const uint64_t began = observe_ticks;
    AD_SCOPE("looked at")
    {
        ad_real y = x[0];
        product(&y);
    }
    ad_profiling_ = 0;
    ck_assert_int_eq(watches, 1);
    ck_assert_uint_ge(observe_ticks - began, SLOW);
    const struct tape_scope *scope = tape_scopes_at(observe_scopes, observe_scopes->n - 1);
    ck_assert_str_eq(scope->name, "looked at");
    ck_assert_uint_lt(scope->ticks, SLOW);
}

/* ---- looks ---- */

TEST(a_look_counts_for_the_statement_that_is_recorded_next)
{
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    product(&y);
    ck_assert_int_eq(watches, 1);
    for (int i = 0; i < 3; i++) {
        product(&y);
        ck_assert_int_eq(look(TAPE_LOOK_FIRST, observe_ticks + 100), TAPE_LOOKED_PENDING);
        observe_ticks += 100;
        sine(&y);
        cosine(&y);
        ck_assert_int_eq(look(TAPE_LOOK_AGAIN, observe_ticks), TAPE_LOOKED_FOUND);
    }
    ck_assert_int_eq(watches, 1);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t looks = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        looks += row->forward_looks;
        ck_assert(row->forward_looks == 0 || row->calls == 3);
        if (row->forward_looks == 0)
            continue;
        /* The sine's, which was recorded next, and not the product's, which was the last one. */
        ck_assert_uint_eq(row->record_bytes, 3 * STATEMENT(1, 0));
        ck_assert_uint_ge(row->forward_ticks, 300);
        ck_assert_uint_le(row->forward_ticks, 320);
        ck_assert_uint_eq(row->estimated_forward_ticks, row->forward_ticks);
    }
    ck_assert_uint_eq(looks, 3);
    ck_assert_uint_ge(ledger->forward_ticks, 300);
}

/* What a statement's formula takes: the clock has gone on for so long by the time it is recorded. A
 * look comes every EACH ticks, in the middle of what is computed then. */
enum { EACH = 997 };
static uint64_t next_look;

static bool compute(uint64_t ticks)
{
    bool pending = false;
    const uint64_t end = observe_ticks + ticks;
    while (next_look <= end) {
        pending = look(TAPE_LOOK_FIRST, next_look) == TAPE_LOOKED_PENDING;
        next_look += EACH;
    }
    observe_ticks = end;
    return pending;
}

static void after(bool pending)
{
    if (pending)
        look(TAPE_LOOK_AGAIN, observe_ticks);
}

/* A formula that calls the C library is dear forward and cheap backward: a line of 1 % of the
 * statements has half of the forward time, one of 1 statement has none to speak of, and what the
 * program computes beside it is on no line. */
TEST(functions_of_the_c_library_are_forward_of_their_formula_s_line)
{
    enum { ROUNDS = 60000, CHEAP = 10, DEAR = 1000 };
    observe_begin(UINT64_MAX);
    ad_real y = x[0], z = x[1];
    cosine(&z);
    next_look = observe_ticks + EACH;
    uint64_t dear = 0;
    for (int i = 0; i < ROUNDS; i++) {
        bool pending = compute(CHEAP);
        product(&y);
        after(pending);
        if (i % 100 == 99) {
            pending = compute(DEAR);
            sine(&y);
            after(pending);
            dear++;
        }
    }
    uint64_t (*const before)(void) = observe_hook.clock;
    observe_hook.clock = stride_clock;
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    observe_hook.clock = before;
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *cheap = row_of(ledger, "statement", ROUNDS),
                          *sines = row_of(ledger, "statement", dear);
    const double whole = (double)(ROUNDS * CHEAP + dear * DEAR);
    ck_assert_double_le(fabs((double)sines->forward_ticks / whole - 0.5), 0.05);
    ck_assert_double_le(fabs((double)cheap->forward_ticks / whole - 0.5), 0.05);
    ck_assert_uint_eq(sines->estimated_forward_ticks, sines->forward_ticks);
    ck_assert_uint_lt(row_of(ledger, "statement", 1)->forward_looks, 3);
    /* Backward it is a line as any other: one statement of 101. */
    ck_assert_uint_gt(sines->backward_ticks, 0);
    ck_assert_uint_lt(50 * sines->backward_ticks, cheap->backward_ticks);
}

static double processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void compute_for_a_while(void)
{
    const double begun = processor_ns();
    while (processor_ns() - begun < 2 * TAPE_LOOK_OWN_NS)
        ;
}

TEST(code_that_records_nothing_for_a_while_is_no_statement)
{
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    product(&y);
    ck_assert_int_eq(look(TAPE_LOOK_FIRST, observe_ticks + 100), TAPE_LOOKED_PENDING);
    compute_for_a_while();
    ck_assert_int_eq(look(TAPE_LOOK_AGAIN, observe_ticks + 100), TAPE_LOOKED_NOTHING);
    sine(&y);
    ck_assert_int_eq(look(TAPE_LOOK_AGAIN, observe_ticks + 100), TAPE_LOOKED_NOTHING);
    const struct tape_ledger *ledger = observe_ledger();
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        ck_assert_uint_eq(tape_ledger_row(ledger, i)->forward_looks, 0);
}

/* As it is while the system clears the page that the next statement is written to. */
TEST(where_the_next_page_is_not_there_the_thread_is_at_a_statement)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const struct ad_statement_cursor *at = &ad_statement_cursor_;
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    do {
        product(&y);
        if ((uintptr_t)at->word % page == 8)
            sine(&y);
    } while ((uintptr_t)at->word % page != 0 ||
             (uintptr_t)at->word - (uintptr_t)at->partial < 3 * page);
    ck_assert_int_eq(look(TAPE_LOOK_FIRST, observe_ticks + 100), TAPE_LOOKED_PENDING);
    ck_assert_int_eq(madvise((char *)at->word - page, page, MADV_DONTNEED), 0);
    compute_for_a_while();
    ck_assert_int_eq(look(TAPE_LOOK_AGAIN, observe_ticks + 100), TAPE_LOOKED_FOUND);
    cosine(&y);
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t looks = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        looks += row->forward_looks;
        ck_assert(row->forward_looks == 0 || row->calls == 1);
    }
    ck_assert_uint_eq(looks, 1);
}

TEST(more_looks_than_there_is_room_for_lose_no_time)
{
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    product(&y);
    for (int i = 0; i < 1000; i++) {
        look(TAPE_LOOK_FIRST, observe_ticks += 100);
        product(&y);
        look(TAPE_LOOK_AGAIN, observe_ticks);
    }
    tape_observe_flush(); /* the run is charged */
    product(&y);
    look(TAPE_LOOK_FIRST, observe_ticks += 100);
    product(&y);
    look(TAPE_LOOK_AGAIN, observe_ticks);
    const struct tape_ledger *ledger = observe_ledger();
    /* But for those at the last statement of a block, whose next is in another run. */
    ck_assert_uint_ge(ledger->forward_ticks, 990 * 100);
    ck_assert_uint_le(ledger->forward_ticks, 1001 * 100 + 100);
}

/* Another thread looks in one way until it has met sweeps often enough. */
struct looker {
    enum tape_look_kind kind;
    int found; /* atomic */
};

enum { MET = 5 };

static void *look_on(void *payload)
{
    struct looker *looker = payload;
    while (looker->found < MET) {
        enum tape_looked looked = look(looker->kind, 1);
        while (looked == TAPE_LOOKED_PENDING)
            looked = look(TAPE_LOOK_AGAIN, 1);
        if (looked == TAPE_LOOKED_FOUND)
            __atomic_add_fetch(&looker->found, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static uint64_t looks_at_sweeps(enum tape_look_kind kind, int n)
{
    struct looker looker = {.kind = kind};
    pthread_t thread;
    uint64_t looks = 0;
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    for (int i = 0; i < n; i++)
        product(&y);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK); /* from here on it is looked at */
    ck_assert_int_eq(pthread_create(&thread, NULL, look_on, &looker), 0);
    while (__atomic_load_n(&looker.found, __ATOMIC_RELAXED) < MET)
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    pthread_join(thread, NULL);
    const struct tape_ledger *ledger = observe_ledger();
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        looks += tape_ledger_row(ledger, i)->backward_looks;
    tape_observe_end();
    return looks;
}

/* Looks at sweeps are counted, with no time of their own: those that come more often as a program
 * begins must not be among them. */
TEST(looks_at_what_is_recorded_leave_sweeps_out)
{
    ck_assert_uint_gt(looks_at_sweeps(TAPE_LOOK_FIRST, 20000), 0);
    ck_assert_uint_eq(looks_at_sweeps(TAPE_LOOK_RECORDING, 20000), 0);
}

/* A sweep that is shorter than the time between asking and looking is asked before it begins. */
TEST(short_sweeps_are_looked_at)
{
    ck_assert_uint_gt(looks_at_sweeps(TAPE_LOOK_FIRST, 20), 0);
}

static void sweep_looks(const void *data, int64_t m, const double *dy, int64_t n, double *dx)
{
    look(TAPE_LOOK_FIRST, observe_ticks);
    look(TAPE_LOOK_AGAIN, observe_ticks);
    pullback(data, m, dy, n, dx);
}

TEST(a_look_into_a_fused_loop_is_no_statement_s)
{
    const uint64_t ticks = SLOW;
    const double value = 1;
    observe_begin(UINT64_MAX);
    ad_real y = x[0], z;
    product(&y);
    ck_assert_int_eq(
        ad_real_custom(1, &y, 1, &value, &z, "mine", sweep_looks, &ticks, sizeof ticks), AD_OK);
    sine(&z);
    ck_assert_int_eq(ad_real_backward(tape, z), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        ck_assert_uint_eq(tape_ledger_row(ledger, i)->forward_looks, 0);
        ck_assert_uint_eq(tape_ledger_row(ledger, i)->backward_looks, 0);
    }
}

TEST(where_nobody_wants_estimates_nobody_looks)
{
    observe_hook.watch = NULL;
    observe_begin(UINT64_MAX);
    ad_real y = x[0];
    product(&y);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    const struct tape_row *row = observe_row(observe_ledger(), "statement");
    ck_assert_uint_eq(row->forward_ticks, 0);
    ck_assert_uint_gt(row->backward_ticks, 0);
}

RUN_TESTS(setup, teardown)
