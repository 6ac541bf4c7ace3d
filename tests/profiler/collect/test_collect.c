/* test_collect.c: what the collector writes of tapes that live and die. */
#include "collect_support.h"

#include "profile_frame.h"
#include "run_cases.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(frame_heads_round_trip_and_impossible_lengths_are_refused)
{
    uint8_t head[PROFILE_FRAME_BYTES];
    uint32_t n, crc;
    profile_frame_put(head, "123456789", 9);
    ck_assert_mem_eq(head, "\x09\0\0\0\x26\x39\xf4\xcb", sizeof head); /* the CRC's check value */
    ck_assert(profile_frame_get(head, &n, &crc));
    ck_assert_uint_eq(n, 9);
    ck_assert_uint_eq(crc, 0xcbf43926);
    ck_assert(!profile_frame_get((const uint8_t[8]){0}, &n, &crc));
    ck_assert(profile_frame_get((const uint8_t[8]){0, 0, 0, 4}, &n, &crc));
    ck_assert(!profile_frame_get((const uint8_t[8]){1, 0, 0, 4}, &n, &crc));
}

TEST(an_empty_profile_has_header_modules_clocks_and_end)
{
    char program[PATH_MAX] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", program, sizeof program - 1), 0);
    collect_start();
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_profile.n, 5);
    const Tapescope__Header *header = collect_profile.packet[0]->header;
    ck_assert_int_eq(collect_profile.packet[0]->kind_case, TAPESCOPE__PACKET__KIND_HEADER);
    ck_assert_uint_eq(header->version, 1);
    ck_assert_str_eq(header->library_version, "1.2.3");
    ck_assert_str_eq(header->program, program);
    ck_assert_uint_ge(header->n_argument, 1);
    ck_assert_uint_eq(header->pid, (uint64_t)getpid());
    ck_assert_str_eq(header->clock, "step:1000000");

    ck_assert_int_eq(collect_profile.packet[1]->kind_case, TAPESCOPE__PACKET__KIND_MODULES);
    const Tapescope__Modules *modules = collect_profile.packet[1]->modules;
    ck_assert_str_eq(modules->module[0]->path, program);
    ck_assert_uint_le(modules->module[0]->start, (uintptr_t)collect_make_tape);
    ck_assert_uint_gt(modules->module[0]->end, (uintptr_t)collect_make_tape);
    for (size_t i = 0; i < modules->n_module; i++)
        ck_assert(modules->module[i]->path[0] == '/' || modules->module[i]->path[0] == '[');

    ck_assert_int_eq(collect_profile.packet[2]->kind_case, TAPESCOPE__PACKET__KIND_CLOCK);
    ck_assert_int_eq(collect_profile.packet[3]->kind_case, TAPESCOPE__PACKET__KIND_CLOCK);
    ck_assert_str_eq(collect_end_reason(), "stop");
}

static void *read_clock_twice(void *payload)
{
    (void)payload;
    ck_assert_uint_eq(collect->hook.clock(), MS);
    ck_assert_uint_eq(collect->hook.clock(), 2 * MS);
    return NULL;
}

TEST(step_clock_moves_with_each_reading_of_a_thread_and_not_by_a_flush)
{
    pthread_t thread;
    collect_start();
    read_clock_twice(NULL);
    collect_flush(collect_make_tape(0, 1), false);
    ck_assert_uint_eq(collect->hook.clock(), 3 * MS);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_clock_twice, NULL), 0);
    pthread_join(thread, NULL);
    collect_stop();
    collect_start();
    read_clock_twice(NULL);
    collect_stop();
}

/* No wish, an empty one, and each by name; a processor without an invariant counter refuses tsc. */
TEST_EACH(real_clocks_run_forward_at_the_rate_that_the_profile_says, 4)
{
    static const char *const wish[] = {NULL, "", "monotonic", "tsc"};
    if (wish[_i])
        setenv("TAPESCOPE_CLOCK", wish[_i], 1);
    else
        unsetenv("TAPESCOPE_CLOCK");
    collect = collect_try_open(collect_path);
    if (collect == NULL) {
        ck_assert_int_eq(_i, 3);
        ck_assert_ptr_nonnull(strstr(collect_error, "no invariant time-stamp counter"));
        return;
    }
    uint64_t before = collect->hook.clock();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = collect->hook.clock();
        ck_assert_uint_le(before, now);
        before = now;
    }
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Clock *first = collect_profile.packet[2]->clock,
                           *last = collect_profile.packet[collect_profile.n - 2]->clock;
    ck_assert_uint_lt(first->ticks, last->ticks);
    ck_assert_uint_lt(first->monotonic_ns, last->monotonic_ns);
    const char *clock = collect_profile.packet[0]->header->clock;
    ck_assert(_i < 2 || strcmp(clock, wish[_i]) == 0);
    if (strcmp(clock, "monotonic") == 0)
        ck_assert_uint_eq(first->ticks, first->monotonic_ns);
}

TEST(an_unknown_clock_is_refused)
{
    static const char *const name[] = {"step:0",
                                       "step:",
                                       "step:-1",
                                       "step:1x",
                                       "step:1000000001",
                                       "x",
                                       "step:99999999999999999999"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        setenv("TAPESCOPE_CLOCK", name[i], 1);
        ck_assert_ptr_null(collect_try_open(collect_path));
        ck_assert_ptr_nonnull(strstr(collect_error, "TAPESCOPE_CLOCK must be"));
    }
}

TEST(a_flush_writes_the_rows_that_changed)
{
    collect_start();
    struct tape_ledger *ledger = collect_make_tape(0, 1);
    collect_flush(ledger, false);
    collect_rows[0][1].calls += 5;
    collect_flush(ledger, false);
    collect_flush(ledger, false);
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_count_ledgers(1), 2);
    ck_assert_uint_eq(collect_count_ledgers(0), 0);
    const Tapescope__Ledger *first = collect_nth_ledger(1, 0), *second = collect_nth_ledger(1, 1);
    ck_assert_uint_eq(first->n_row, 2);
    ck_assert_uint_eq(first->thread, 7);
    ck_assert_uint_eq(first->forward_ticks, 100);
    ck_assert_str_eq(first->row[0]->op, "matmul");
    ck_assert_uint_eq(first->row[0]->kept_by, 2);
    ck_assert_uint_eq(first->row[1]->pc, 0x2000);
    ck_assert_uint_eq(first->row[1]->line, 42);
    ck_assert_uint_eq(first->row[1]->live_bytes, 34);
    ck_assert_uint_eq(second->n_row, 1);
    ck_assert_uint_eq(second->row[0]->index, 1);
    ck_assert_uint_eq(second->row[0]->calls, 7);
}

TEST(a_row_holds_at_the_peak_what_was_live_when_the_peak_last_rose)
{
    collect_start();
    struct tape_ledger *ledger = collect_make_tape(0, 1);
    ledger->peak_count = 3;
    collect_rows[0][0].peak_stamp = 3; /* live_bytes changed since: peak_bytes counts */
    collect_rows[0][1].peak_stamp = 2; /* unchanged since: live_bytes counts */
    collect_flush(ledger, false);
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_nth_ledger(1, 0)->row[0]->peak_bytes, collect_rows[0][0].peak_bytes);
    ck_assert_uint_eq(collect_nth_ledger(1, 0)->row[1]->peak_bytes, collect_rows[0][1].live_bytes);
}

TEST(a_round_writes_every_tape_once_and_the_interval_doubles)
{
    collect_start();
    ck_assert_uint_eq(collect->hook.due, MS);
    collect_wait_until_due();
    collect_flush(collect_make_tape(0, 1), false);
    collect_flush(collect_make_tape(1, 1), false);
    collect_rows[0][0].calls++;
    collect_flush(&collect_tapes[0], false); /* kept in memory, not written again */
    uint64_t now = collect->hook.clock();
    collect_flush(&collect_tapes[1], false);
    ck_assert_uint_eq(collect->hook.due, now + 2 * MS);
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_count_ledgers(1), 2);
    ck_assert_uint_eq(collect_count_ledgers(2), 1);
    ck_assert_uint_eq(collect_nth_ledger(1, 1)->row[0]->calls, collect_rows[0][0].calls);
}

TEST(the_interval_stops_at_what_was_asked_for)
{
    struct tape_collect_options options = tape_collect_defaults();
    options.interval = 3;
    collect_options = &options;
    collect_start();
    collect_options = NULL;
    (void)collect_make_tape(0, 1);
    for (uint64_t ms = 2; ms <= 4; ms++) {
        collect_wait_until_due();
        collect_flush(&collect_tapes[0], false);
        uint64_t now = collect->hook.clock(); /* behind the window of the round */
        collect_flush(&collect_tapes[0], false);
        ck_assert_uint_eq(collect->hook.due, now + (ms < 3 ? ms : 3) * MS);
    }
    collect_stop();
}

static uint64_t (*calibrated_clock)(void);

static void calibrate(uint64_t (*clock)(void), double *forward, double *backward)
{
    calibrated_clock = clock;
    *forward = -2;
    *backward = 7.5;
}

TEST(what_times_have_too_much_is_measured_where_a_clock_runs_by_itself)
{
    static const struct {
        const char *clock;
        uint64_t time;
        bool measured;
    } of[] = {{"step:1000000", TAPE_TIME_EXACT, false},
              {"monotonic", TAPE_TIME_EXACT, true},
              {"monotonic", TAPE_TIME_OFF, false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct tape_collect_options options = tape_collect_defaults();
        options.time = of[i].time;
        options.calibrate = calibrate;
        calibrated_clock = NULL;
        collect_options = &options;
        setenv("TAPESCOPE_CLOCK", of[i].clock, 1);
        collect_start();
        collect_options = NULL;
        ck_assert_int_eq(calibrated_clock == collect->hook.clock, of[i].measured);
        collect_stop();
        collect_read(collect_path);
        const Tapescope__Overhead *overhead = NULL;
        for (size_t k = 0; k < collect_profile.n; k++)
            if (collect_profile.packet[k]->kind_case == TAPESCOPE__PACKET__KIND_OVERHEAD)
                overhead = collect_profile.packet[k]->overhead;
        ck_assert_int_eq(overhead != NULL, of[i].measured);
        ck_assert_double_eq(overhead ? overhead->forward_ticks : -2, -2);
        ck_assert_double_eq(overhead ? overhead->backward_ticks : 7.5, 7.5);
    }
}

TEST(destroyed_tapes_are_merged_into_tape_0)
{
    collect_start();
    collect_flush(collect_make_tape(0, 10), false);
    collect_flush(&collect_tapes[0], true);
    struct tape_ledger *ledger = collect_make_tape(1, 20);
    collect_rows[1][1] =
        collect_rows[1][0]; /* the same site in another row, after one of its own */
    collect_rows[1][0].pc = 0x3000;
    collect_rows[1][1].kept_by = 1;
    collect_flush(ledger, true);
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_count_ledgers(2), 0);
    ck_assert_uint_eq(collect_count_ledgers(1), 2);
    ck_assert(collect_nth_ledger(1, 1)->final);
    ck_assert_uint_eq(collect_nth_ledger(1, 1)->n_row, 0);
    for (size_t i = 0; i < collect_profile.n; i++)
        if (collect_is_ledger(i, 1) && collect_profile.packet[i]->ledger->final)
            ck_assert(collect_is_ledger(i + 1, 0));

    ck_assert_uint_eq(collect_count_ledgers(0), 2);
    const Tapescope__Ledger *first = collect_nth_ledger(0, 0), *both = collect_nth_ledger(0, 1);
    ck_assert_uint_eq(first->tapes, 1);
    ck_assert_uint_eq(first->n_row, 2);
    ck_assert_uint_eq(first->row[0]->peak_bytes, 27);
    ck_assert_uint_eq(both->tapes, 2);
    ck_assert_uint_eq(both->thread, 0);
    ck_assert_uint_eq(both->forward_ticks, 3000);
    ck_assert_uint_eq(both->handed_out_bytes, 6000);
    ck_assert_uint_eq(both->peak_bytes, 6000);
    ck_assert_uint_eq(both->reserved_bytes, 8000);
    ck_assert_uint_eq(both->records, 30);
    ck_assert_uint_eq(both->live_bytes, 0);
    ck_assert_uint_eq(both->n_row, 3);
    ck_assert_uint_eq(both->row[0]->calls, 30);
    ck_assert_uint_eq(both->row[0]->live_bytes, 0);
    ck_assert_uint_eq(both->row[0]->kept_by, 2);
    ck_assert(both->row[0]->kept_others); /* by tanh in one tape, by 0x3000 in the other */
    ck_assert_uint_eq(both->row[0]->peak_bytes, 37);
    ck_assert_uint_eq(both->row[1]->peak_bytes, 0); /* not in the tape with the greatest peak */
    ck_assert_uint_eq(both->row[2]->pc, 0x3000);
    ck_assert_uint_eq(both->row[2]->calls, 20);
}

/* The rows of the first threads apart, those of all others in one. */
TEST(destroyed_tapes_keep_their_threads)
{
    enum { APART = 64 };
    collect_start();
    for (uint64_t i = 1; i <= APART + 3; i++) {
        for (int again = 0; again < 2; again++) {
            struct tape_ledger *ledger = collect_make_tape(0, 10);
            ledger->tape = 2 * i + (uint64_t)again;
            ledger->tid = 1000 + i;
            collect_flush(ledger, true);
        }
    }
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Ledger *all = collect_nth_ledger(0, collect_count_ledgers(0) - 1);
    uint64_t calls[2] = {0, 0};
    ck_assert_uint_eq(all->thread, 0);
    for (size_t i = 0; i < all->n_row; i++) {
        const Tapescope__Row *row = all->row[i];
        ck_assert(row->thread == 0 || (row->thread > 1000 && row->thread <= 1000 + APART));
        if (row->thread == 1002 || row->thread == 0)
            calls[row->thread == 0] += row->calls;
    }
    ck_assert_uint_gt(calls[0], 0);
    ck_assert_uint_eq(calls[1], 3 * calls[0]);
}

TEST(many_short_tapes_do_not_swell_the_file)
{
    collect_start();
    for (uint64_t i = 1; i <= 100000; i++) {
        struct tape_ledger *ledger = collect_make_tape(0, 1);
        ledger->tape = i;
        if (collect->hook.clock() >= collect->hook.due)
            collect_flush(ledger, false);
        collect_flush(ledger, true);
    }
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Ledger *all = collect_nth_ledger(0, collect_count_ledgers(0) - 1);
    ck_assert_uint_eq(all->tapes, 100000);
    ck_assert_uint_eq(all->forward_ticks, 100 * UINT64_C(100000));
    ck_assert_uint_eq(all->row[0]->calls, 100000);
    ck_assert_uint_lt(collect_profile.bytes, 3 * 100000); /* three bytes a tape */
}

TEST(many_sites_keep_their_own_rows_when_merged)
{
    collect_start();
    for (uint32_t i = 0; i < 5000; i++) {
        struct tape_ledger *ledger = collect_make_tape(0, 1);
        ledger->tape = i + 1;
        collect_rows[0][0].line = i % 1000;
        collect_rows[0][1].pc = UINT64_C(16) * (i % 2500);
        collect_flush(ledger, true);
    }
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Ledger *all = collect_nth_ledger(0, 0);
    ck_assert_uint_eq(all->n_row, 3500);
    for (size_t i = 0; i < all->n_row; i++)
        ck_assert_uint_eq(all->row[i]->calls, strcmp(all->row[i]->op, "matmul") == 0 ? 5 : 4);
}

TEST(a_snapshot_is_a_complete_profile_of_what_is_known)
{
    collect_start();
    collect_flush(collect_make_tape(0, 1), false);
    collect_flush(collect_make_tape(1, 1), true);
    ck_assert_int_eq(
        collect->snapshot(collect, collect_other_path, collect_error, sizeof collect_error), 0);
    ck_assert_int_eq(
        collect->snapshot(collect, collect_folder, collect_error, sizeof collect_error), -1);
    ck_assert_ptr_nonnull(strstr(collect_error, "Is a directory"));
    ck_assert_int_eq(collect->snapshot(collect, collect_path, collect_error, sizeof collect_error),
                     -1);
    ck_assert_ptr_nonnull(strstr(collect_error, "a running program writes its profile there"));
    collect_read(collect_other_path);
    ck_assert_int_eq(collect_profile.packet[0]->kind_case, TAPESCOPE__PACKET__KIND_HEADER);
    ck_assert_uint_eq(collect_count_ledgers(1), 1);
    ck_assert_uint_eq(collect_nth_ledger(1, 0)->n_row, 2);
    ck_assert_uint_eq(collect_nth_ledger(0, 0)->tapes, 1);
    ck_assert_str_eq(collect_end_reason(), "snapshot");
    collect_stop();
    collect_read(collect_path);
    ck_assert_uint_eq(collect_nth_ledger(0, 0)->tapes, 1);
    ck_assert_str_eq(collect_end_reason(), "stop");
}

/* The last packet of patterns, and how many of them were in all. */
static const Tapescope__Patterns *last_patterns(size_t *n)
{
    const Tapescope__Patterns *last = NULL;
    *n = 0;
    for (size_t i = 0; i < collect_profile.n; i++)
        if (collect_profile.packet[i]->kind_case == TAPESCOPE__PACKET__KIND_PATTERNS) {
            last = collect_profile.packet[i]->patterns;
            *n += last->n_pattern;
        }
    ck_assert_ptr_nonnull(last);
    return last;
}

TEST(the_newest_pattern_of_each_site_is_kept_up_to_a_limit)
{
    enum { SITES = 64, M = 130 };
    static struct tape_scopes scopes;
    int64_t start[M + 1], column[M];
    size_t n;
    for (int i = 0; i < M; i++) {
        start[i] = i;
        column[i] = M - 1 - i;
    }
    start[M] = M;
    struct tape_pattern found = {.m = M, .n = M, .row_start = start, .column = column};
    collect_start();
    collect->hook.pattern(&collect->hook, &found); /* the observation has not begun */
    collect->hook.begin(&collect->hook, &scopes);
    for (uintptr_t i = 0; i < SITES + 3; i++) {
        found.pc = 0x1000 + i;
        collect->hook.pattern(&collect->hook, &found);
    }
    found = (struct tape_pattern){.pc = 0x1000, .m = 0, .n = 7, .row_start = start};
    collect->hook.pattern(&collect->hook, &found);
    ck_assert_int_eq(
        collect->snapshot(collect, collect_other_path, collect_error, sizeof collect_error), 0);
    collect_read(collect_other_path);
    const Tapescope__Patterns *is = last_patterns(&n);
    ck_assert(n == SITES && is->left_out == 3 && !is->again);
    ck_assert(is->pattern[0]->calls == 2 && is->pattern[0]->n_cell == 0);
    const Tapescope__Pattern *p = is->pattern[1];
    ck_assert(p->pc == 0x1001 && p->rows == M && p->columns == M && p->values == M);
    ck_assert(!p->coloured && p->n_cell == 64 * 64);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < M; i++)
        sum += p->cell[i * 64 / M * 64 + (M - 1 - i) * 64 / M] > 0;
    ck_assert_uint_eq(sum, M);
    collect_wait_until_due();
    collect_flush(collect_make_tape(0, 1), false);
    collect->hook.begin(&collect->hook, &scopes); /* what was written is void */
    found.coloured = true;
    found.kind = TAPE_PATTERN_HESSIAN;
    collect->hook.pattern(&collect->hook, &found);
    collect_stop();
    collect_read(collect_path);
    is = last_patterns(&n);
    ck_assert(n == SITES + 1 && is->n_pattern == 1 && is->again && is->left_out == 0);
    ck_assert(is->pattern[0]->coloured && is->pattern[0]->kind == 1 && is->pattern[0]->calls == 1);
}

TEST(a_library_that_came_and_went_stays_among_the_modules)
{
    size_t n = 0, with_library = 0;
    collect_start();
    void *library = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
    collect_flush(collect_make_tape(0, 1), false);
    if (library != NULL)
        dlclose(library);
    collect_flush(collect_make_tape(1, 1), false);
    collect_stop();
    collect_read(collect_path);
    for (size_t i = 0; i < collect_profile.n && library != NULL; i++) {
        if (collect_profile.packet[i]->kind_case != TAPESCOPE__PACKET__KIND_MODULES)
            continue;
        const Tapescope__Modules *modules = collect_profile.packet[i]->modules;
        for (size_t k = 0; k < modules->n_module; k++)
            with_library += strstr(modules->module[k]->path, "libanl") != NULL;
        n++;
    }
    if (library != NULL)
        ck_assert_uint_eq(with_library, n - 1); /* all but the first */
}

enum { THREADS = 4, TAPES_PER_THREAD = 50, CALLS = 500, CALLS_IN_ALL = 100000 };

/* One tape after the other, as a thread of the tape's would: counts, flushes when due, destroys. */
static void *record_tapes(void *payload)
{
    struct tape_row *row = calloc(1, sizeof *row);
    struct tape_ledger *ledger = calloc(1, sizeof *ledger);
    ck_assert(row != NULL && ledger != NULL);
    for (uint64_t t = 0; t < TAPES_PER_THREAD; t++) {
        *row = (struct tape_row){.pc = 0x1000, .op = "mul"};
        *ledger = (struct tape_ledger){.tape = *(uint64_t *)payload + t, .n_rows = 1};
        ledger->chunk[0] = row;
        for (int i = 0; i < CALLS; i++) {
            row->calls++;
            ledger->records++;
            if (collect->hook.clock() >= __atomic_load_n(&collect->hook.due, __ATOMIC_RELAXED))
                collect_flush(ledger, false);
        }
        collect_flush(ledger, true);
    }
    free(row);
    free(ledger);
    return NULL;
}

TEST(tapes_of_several_threads_are_all_counted)
{
    pthread_t thread[THREADS];
    uint64_t first_tape[THREADS];
    collect_start();
    for (unsigned i = 0; i < THREADS; i++) {
        first_tape[i] = 1 + (uint64_t)i * TAPES_PER_THREAD;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, record_tapes, &first_tape[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    collect_stop();
    collect_read(collect_path);
    const Tapescope__Ledger *all = collect_nth_ledger(0, collect_count_ledgers(0) - 1);
    ck_assert_uint_eq(all->tapes, CALLS_IN_ALL / CALLS);
    ck_assert_uint_eq(all->records, CALLS_IN_ALL);
    ck_assert_uint_eq(all->row[0]->calls, CALLS_IN_ALL);
}

RUN_TESTS(collect_setup, collect_teardown)
