/* test_real_fork_account.c: what forks take: bytes, calls and time by line, the budget, and memory
 * that is used again.
 */
#include <tapescope/ad_plain.h>

#include "observe_support.h"
#include "run_cases.h"
#include "statement_bytes.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { FORKS = 3, STEPS = 5000, LEDGERS = 64 };

static ad_real x[2];

static void setup(void)
{
    modules_find();
    tape = observe_tape();
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x), AD_OK);
}

/* Two lines that differ in bytes. */
static ad_real record_once(int n)
{
    ad_real y = x[1];
    for (int i = 0; i < n; i++) {
        ad_set(&y, ad_real_add(ad_real_mul(y, x[0]), 1.0)); /* 32 bytes */
        if (i % 3 == 0)
            ad_set(&y, ad_real_sin(y)); /* 20 bytes */
    }
    return y;
}

/* Inlined or cloned, its lines would have a program counter for each caller. */
static ad_real (*volatile record)(int n) = record_once;

static ad_real join_all(int n)
{
    ad_tape fork[FORKS];
    ad_real y[FORKS], sum;
    ck_assert_int_eq(ad_tape_fork(tape, FORKS, fork), AD_OK);
    for (int k = 0; k < FORKS; k++) {
        ck_assert_int_eq(ad_tape_record_begin(fork[k]), AD_OK);
        y[k] = record(n * (k + 1));
        ck_assert_int_eq(ad_tape_record_end(fork[k]), AD_OK);
    }
    for (int k = 0; k < FORKS; k++)
        ck_assert_msg(ad_tape_join(tape, fork[k], 1, &y[k]) == AD_OK, "%s", ad_tape_message(tape));
    ad_set(&sum, ad_real_add(y[0], ad_real_add(y[1], y[2])));
    return sum;
}

/* The ledgers of all tapes. */
static const struct tape_ledger *ledgers[LEDGERS];

static int all_ledgers(void)
{
    int n = 0;
    observe_n_flushed = 0;
    tape_observe_flush();
    for (int i = 0; i < observe_n_flushed; i++) {
        ck_assert_int_lt(n, LEDGERS);
        ledgers[n++] = observe_flushed[i].ledger;
    }
    return n;
}

/* What is live, without the room of the tape's own block, to which statements may still come. */
static uint64_t live_of(int n)
{
    uint64_t live = 0;
    const struct tape_ledger *own = ledgers[0];
    for (int i = 0; i < n; i++) {
        observe_check_sums(ledgers[i]);
        live += ledgers[i]->live_bytes;
        own = ledgers[i]->tape < own->tape ? ledgers[i] : own;
    }
    return live - tape_ledger_row(own, TAPE_ROW_ROOM)->live_bytes;
}

/* The rows of the parent (bit 0), or of a fork with so many times STEPS as the bit's number. */
static unsigned check_ledger(const struct tape_ledger *ledger)
{
    uint64_t calls[2] = {0}, bytes[2] = {0}, joined[3] = {0}, swept = 0, ticks = 0;
    int lines = 0;
    for (uint32_t k = 0; k < ledger->n_rows; k++) {
        const struct tape_row *row = tape_ledger_row(ledger, k);
        if (strcmp(row->op, "join") == 0) {
            joined[0] += row->calls; /* of one row, or of three where the loop is unrolled */
            joined[1] += row->backward_calls;
            joined[2] += row->adjoint_bytes;
            ck_assert_uint_gt(row->backward_ticks, 0);
        }
        if (strcmp(row->op, "statement") != 0)
            continue;
        const bool more = row->calls > calls[0];
        calls[1] = more ? calls[0] : row->calls;
        bytes[1] = more ? bytes[0] : row->live_bytes;
        calls[0] = more ? row->calls : calls[0];
        bytes[0] = more ? row->live_bytes : bytes[0];
        swept += row->backward_calls;
        ticks += row->backward_ticks;
        lines++;
    }
    if (joined[0] > 0) {
        ck_assert_uint_eq(joined[0], FORKS);
        ck_assert_uint_eq(joined[1], FORKS);
        ck_assert_uint_gt(joined[2], STEPS * 6 * sizeof(double));
        return 1;
    }
    ck_assert_int_eq(lines, 2);
    ck_assert_uint_eq(calls[1], (calls[0] + 2) / 3);
    /* Besides, 88 bytes for each run. */
    ck_assert_uint_ge(bytes[0], calls[0] * STATEMENT(2, 0));
    ck_assert_uint_eq((bytes[0] - calls[0] * STATEMENT(2, 0)) % 88, 0);
    ck_assert_uint_ge(bytes[1], calls[1] * STATEMENT(1, 0));
    ck_assert_uint_eq((bytes[1] - calls[1] * STATEMENT(1, 0)) % 88, 0);
    ck_assert_uint_eq(swept, calls[0] + calls[1]);
    ck_assert_uint_ge(
        ticks,
        (bytes[0] - calls[0] * STATEMENT(2, 0) + bytes[1] - calls[1] * STATEMENT(1, 0)) / 88);
    return 1u << calls[0] / STEPS;
}

TEST(calls_bytes_and_sweeps_are_on_the_lines_that_recorded)
{
    ad_stats stats;
    observe_begin(UINT64_MAX);
    const ad_real sum = join_all(STEPS);
    ck_assert_int_eq(ad_real_backward(tape, sum), AD_OK);
    const int n = all_ledgers();
    ck_assert_int_eq(n, FORKS + 1);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(live_of(n), stats.live_bytes);
    unsigned found = 0;
    for (int i = 0; i < n; i++)
        found |= check_ledger(ledgers[i]);
    ck_assert_uint_eq(found, 1 | 2 | 4 | 8);
    const uint64_t halves = STEPS + (STEPS + 2) / 3 + (STEPS * 2 + 2) / 3;
    ck_assert_uint_eq(stats.statements, STEPS * 6 + halves + 1);
    ck_assert_uint_eq(stats.statement_bytes,
                      STEPS * 6 * STATEMENT(2, 0) + halves * STATEMENT(1, 0) + STATEMENT(1, 2));
    tape_observe_end();
}

TEST(what_is_dropped_is_live_no_more_and_used_again)
{
    ad_stats first, stats;
    observe_begin(UINT64_MAX);
    const ad_mark mark = ad_tape_mark(tape);
    ck_assert_int_eq(ad_tape_stats(tape, &first), AD_OK);
    uint64_t peak = 0, touched = 0;
    for (int round = 0; round < 6; round++) {
        ck_assert_int_eq(ad_real_backward(tape, join_all(STEPS)), AD_OK);
        ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
        if (round == 0)
            peak = stats.peak_bytes;
        ck_assert_uint_eq(stats.peak_bytes, peak);
        const int n = all_ledgers();
        ck_assert_int_eq(n, FORKS + 1); /* no tape is made but in the first round */
        ck_assert_uint_eq(live_of(n), stats.live_bytes);
        uint64_t now = 0;
        for (int i = 0; i < n; i++)
            now += ledgers[i]->touched_bytes;
        if (round == 1)
            touched = now;
        if (round > 1)
            ck_assert_uint_eq(now, touched);
        ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
        ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
        ck_assert_uint_eq(stats.live_bytes, first.live_bytes);
        ck_assert_uint_eq(stats.statements, 0);
        ck_assert_uint_eq(live_of(all_ledgers()), stats.live_bytes);
    }
    join_all(STEPS);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(stats.live_bytes, 0);
    ck_assert_uint_eq(live_of(all_ledgers()), 0);
    tape_observe_end();
}

/* ---- forks that are copied to the tape ---- */

enum { MEMBERS = 2, ROUNDS = 100, FEW = 10, RUN = 88 };

static struct ad_plain_team_ *team;
static ad_real total;

/* A value as code finds it in memory: moved to where it is on the thread's tape. */
static ad_real found(ad_real y)
{
    ck_assert_int_eq(ad_plain_place_(&y.index, &y.tag), AD_PLAIN_STANDS_);
    return y;
}

static void *publish_often(void *number)
{
    const unsigned k = (unsigned)(uintptr_t)number;
    struct ad_plain_member_ *m = ad_plain_member_make_(team, k, MEMBERS);
    ad_plain_member_begin_(m);
    for (int i = 0; i < ROUNDS; i++) {
        ad_plain_publish_();
        total = record(FEW);
        ad_plain_publish_();
    }
    ad_plain_member_end_(m);
    return NULL;
}

static ad_real members_run(void *(*f)(void *))
{
    team = ad_plain_team_begin_(true, 0);
    ck_assert_ptr_nonnull(team);
    for (uintptr_t k = 0; k < MEMBERS; k++) {
        pthread_t id;
        ck_assert_int_eq(pthread_create(&id, NULL, f, (void *)k), 0);
        ck_assert_int_eq(pthread_join(id, NULL), 0);
    }
    ad_plain_team_end_(team);
    return found(total);
}

/* So are those that threads publish with each lock: calls and time are counted where they were
 * recorded, bytes once, and the profile has a tape for each thread, not for each fork. */
TEST(what_is_copied_is_counted_once)
{
    ad_stats stats;
    observe_begin(UINT64_MAX);
    const ad_real y = members_run(publish_often);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    const uint64_t each = FEW + (FEW + 2) / 3, all = each * ROUNDS * MEMBERS;
    ck_assert_uint_eq(stats.statements, all);
    int n = all_ledgers();
    ck_assert_int_eq(n, MEMBERS + 1);
    ck_assert_uint_eq(live_of(n), stats.live_bytes);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    n = all_ledgers();
    ck_assert_uint_eq(live_of(n), stats.live_bytes);
    uint64_t calls = 0, swept = 0, bytes = 0, live = 0;
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < ledgers[i]->n_rows; k++) {
            const struct tape_row *row = tape_ledger_row(ledgers[i], k);
            if (strcmp(row->op, "statement") != 0)
                continue;
            calls += row->calls;
            swept += row->backward_calls;
            bytes += row->record_bytes;
            live += row->live_bytes;
        }
    ck_assert_uint_eq(calls, all);
    ck_assert_uint_eq(swept, all);
    /* A run on the fork, and one on the tape. */
    ck_assert_uint_eq(bytes, stats.statement_bytes + 2 * RUN * ROUNDS * MEMBERS);
    ck_assert_uint_eq(live, stats.statement_bytes + RUN * ROUNDS * MEMBERS);
    tape_observe_end();
}

enum { LENGTH = 100, LOOPS = 20 };
static double up[LENGTH], down[LENGTH];

/* Fused loops, of which the later ones find the values of an operand in the first's record. */
static void *publish_loops(void *number)
{
    const unsigned k = (unsigned)(uintptr_t)number;
    struct ad_plain_member_ *m = ad_plain_member_make_(team, k, MEMBERS);
    ad_plain_member_begin_(m);
    for (int round = 0; round < LOOPS; round++) {
        ad_real y[LENGTH], squares, more;
        ad_plain_publish_();
        const ad_real before = found(total);
        for (int i = 0; i < LENGTH; i++)
            ad_set(&y[i], ad_real_mul(x[i % 2], ((int)k * LOOPS + round + 1) * up[i]));
        if (round % 2) /* their indices are not consecutive then */
            ad_set(&y[1], ad_real_mul(y[1], 1.0));
        squares = ad_real_sum_of_squares(LENGTH, y);
        more = ad_real_dot(LENGTH, y, up);
        ad_set(&more, ad_real_mul(squares, more));
        squares = ad_real_dot(LENGTH, y, down);
        ad_set(&total, ad_real_add(before, ad_real_mul(squares, more)));
        ad_plain_publish_();
    }
    ad_plain_member_end_(m);
    return NULL;
}

TEST(fused_loops_are_copied_with_what_they_keep)
{
    double q[2] = {0}, u[2] = {0}, d[2] = {0}, g[2];
    for (int i = 0; i < LENGTH; i++) {
        up[i] = i * 0.01;
        down[i] = 1 - i * 0.003;
        q[i % 2] += up[i] * up[i];
        u[i % 2] += up[i] * up[i];
        d[i % 2] += up[i] * down[i];
    }
    double powers = 0; /* each round's values are so many times the first's */
    for (int i = 1; i <= MEMBERS * LOOPS; i++)
        powers += pow(i, 4);
    const double v[2] = {0.5, 0.75}, all_q = q[0] * v[0] * v[0] + q[1] * v[1] * v[1],
                 all_u = u[0] * v[0] + u[1] * v[1], all_d = d[0] * v[0] + d[1] * v[1];
    for (int looks = 0; looks < 2; looks++) {
        total = x[0];
        if (looks)
            observe_begin(UINT64_MAX);
        const ad_real y = members_run(publish_loops);
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        ck_assert_int_eq(ad_real_gradients(tape, 2, x, g), AD_OK);
        for (int k = 0; k < 2; k++) {
            const double one =
                2 * q[k] * v[k] * all_u * all_d + all_q * u[k] * all_d + all_q * all_u * d[k];
            ck_assert_double_eq_tol(g[k], (k == 0) + powers * one, 1e-12 * powers * one);
        }
        if (looks)
            ck_assert_int_eq(all_ledgers(), MEMBERS + 1);
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ck_assert_int_eq(ad_real_leaves(tape, 2, v, x), AD_OK);
    }
    tape_observe_end();
}

/* Bytes that a sweep through one small fork takes, with the adjoints of the tape itself, where the
 * fork names the tape's first value or its newest. */
static uint64_t sweep_bytes(bool newest)
{
    ad_tape fork;
    ad_stats before, after;
    ad_real late = x[0], y;
    for (int i = 0; i < STEPS; i++)
        ad_set(&late, ad_real_mul(late, 1.0));
    ck_assert_int_eq(ad_tape_fork(tape, 1, &fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork), AD_OK);
    ad_set(&y, ad_real_add(ad_real_mul(newest ? late : x[0], 2.0), ad_real_of(1.0)));
    ad_set(&y, ad_real_add(y, ad_real_of(0.0)));
    ck_assert_int_eq(ad_tape_record_end(fork), AD_OK);
    ck_assert_int_eq(ad_tape_join(tape, fork, 1, &y), AD_OK);
    ck_assert_int_eq(ad_tape_reset_peak(tape), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &before), AD_OK);
    ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &after), AD_OK);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_real_leaves(tape, 2, (double[]){0.5, 0.75}, x), AD_OK);
    return after.peak_bytes - before.peak_bytes;
}

TEST(adjoints_of_a_fork_begin_with_the_lowest_value_that_it_names)
{
    const uint64_t own = STEPS * sizeof(double), late = sweep_bytes(true),
                   early = sweep_bytes(false);
    ck_assert_uint_ge(late, own);
    ck_assert_uint_lt(late, own + own / 8 + 256); /* an eighth by the size class */
    ck_assert_uint_ge(early, 2 * own);
}

TEST(forks_share_what_the_budget_has_left_and_count_against_it_when_joined)
{
    static const ad_tape_options tight = {.budget_bytes = 1 << 20, .reserve_bytes = 64 << 20};
    ad_tape parent, fork[4];
    ad_real p, y, z;
    ad_stats stats;
    ck_assert_int_eq(ad_tape_create(&parent, &tight), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(parent), AD_OK);
    p = ad_real_leaf(parent, 1);
    ck_assert_int_eq(ad_tape_fork(parent, 4, fork), AD_OK);
    ck_assert_int_eq(ad_tape_record_begin(fork[0]), AD_OK);
    ck_assert_int_eq(ad_tape_stats(fork[0], &stats), AD_OK);
    ck_assert_uint_le(stats.budget_bytes * 4, 1 << 20);
    ck_assert_uint_gt(stats.budget_bytes * 4, (1 << 20) - 4096);
    y = p;
    for (int i = 0; i < 20000; i++)
        ad_set(&y, ad_real_mul(y, 0.5));
    ck_assert_int_eq(ad_tape_status(fork[0]), AD_ERROR_MEMORY);
    ck_assert_int_eq(ad_tape_record_end(fork[0]), AD_OK);
    ck_assert_int_eq(ad_tape_join(parent, fork[0], 1, &y), AD_ERROR_MEMORY);
    ck_assert_ptr_nonnull(
        strstr(ad_tape_message(parent), "tape_join: on the fork: statement: out of memory"));
    ad_tape_clear_error(parent);
    /* The parent takes the rest meanwhile: the fork is joined no more. */
    ck_assert_int_eq(ad_tape_record_begin(fork[1]), AD_OK);
    y = p;
    for (int i = 0; i < 8000; i++)
        ad_set(&y, ad_real_mul(y, 0.5));
    ck_assert_int_eq(ad_tape_status(fork[1]), AD_OK);
    ck_assert_int_eq(ad_tape_record_end(fork[1]), AD_OK);
    z = p;
    for (int i = 0; i < 60000; i++)
        ad_set(&z, ad_real_mul(z, 0.5));
    ck_assert_int_eq(ad_tape_status(parent), AD_OK);
    ck_assert_int_eq(ad_tape_join(parent, fork[1], 1, &y), AD_ERROR_MEMORY);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(parent), "tape_join: out of memory: "));
    ck_assert_uint_eq(y.index, 0);
    ad_tape_clear_error(parent);
    ck_assert_int_eq(ad_tape_destroy(fork[2]), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(fork[3]), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(parent), AD_OK);
}

/* ---- profiles that begin and end while threads record ---- */

static uint64_t ticks;

static uint64_t read_clock(void)
{
    return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

static uint64_t calls_seen;

static void flush(struct tape_hook *hook, const struct tape_ledger *ledger, bool final)
{
    __atomic_store_n(&hook->due, read_clock() + 50, __ATOMIC_RELAXED);
    (void) final;
    for (uint32_t i = 0; i < __atomic_load_n(&ledger->n_rows, __ATOMIC_ACQUIRE); i++)
        __atomic_fetch_add(&calls_seen,
                           __atomic_load_n(&tape_ledger_row(ledger, i)->calls, __ATOMIC_RELAXED),
                           __ATOMIC_RELAXED);
}

static struct tape_hook hook = {.abi = TAPE_HOOK_ABI, .clock = read_clock, .flush = flush};

static bool stop;

static void *keep_recording(void *fork)
{
    intptr_t wrong = 0;
    do {
        wrong += ad_tape_record_begin(*(ad_tape *)fork) != AD_OK;
        record(100);
        wrong += ad_tape_reset(*(ad_tape *)fork) != AD_OK;
        record(100);
        wrong += ad_tape_record_end(*(ad_tape *)fork) != AD_OK;
    } while (!__atomic_load_n(&stop, __ATOMIC_RELAXED));
    return (void *)wrong;
}

TEST(a_profile_may_begin_and_end_while_forks_are_recorded)
{
    ad_tape fork[2];
    pthread_t thread[2];
    void *wrong;
    ck_assert_int_eq(ad_tape_fork(tape, 2, fork), AD_OK);
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(pthread_create(&thread[k], NULL, keep_recording, &fork[k]), 0);
    for (int i = 0; i < 50; i++) {
        ad_real y = join_all(10);
        ck_assert(tape_observe_begin(&hook));
        ck_assert_int_eq(ad_real_backward(tape, y), AD_OK);
        tape_observe_flush();
        tape_observe_end();
    }
    ck_assert_uint_gt(__atomic_load_n(&calls_seen, __ATOMIC_RELAXED), 0);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(pthread_join(thread[k], &wrong), 0);
        ck_assert_ptr_null(wrong);
        ck_assert_int_eq(ad_tape_join(tape, fork[k], 0, NULL), AD_OK);
    }
}

RUN_TESTS(setup, teardown)
