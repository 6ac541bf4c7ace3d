/* test_faults.c: every allocation of every workload is refused, once and from then on; so is every
 * byte of the budget. Under a profile, and of budgets, the tests take a sample (exhaustive.h).
 */
#include "exhaustive.h"
#include "fault_workloads.h"
#include "run_cases.h"
#include "tape_memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVE = 2 << 20 };

/* Counts what is out, and refuses from call fail_at on: that one alone, or all later as well. */
struct allocator {
    int calls, fail_at, live;
    bool sticky;
};

static bool refuses(struct allocator *a)
{
    a->calls++;
    return a->fail_at && (a->sticky ? a->calls >= a->fail_at : a->calls == a->fail_at);
}

static void *fault_reserve(size_t bytes, void *payload)
{
    struct allocator *a = payload;
    void *p = refuses(a) ? NULL : tape_memory_system.reserve(bytes, NULL);
    a->live += p != NULL;
    return p;
}

static void fault_unreserve(void *p, size_t bytes, void *payload)
{
    ck_assert_ptr_nonnull(p);
    ((struct allocator *)payload)->live--;
    tape_memory_system.unreserve(p, bytes, NULL);
}

static void *fault_resize(void *p, size_t bytes, void *payload)
{
    struct allocator *a = payload;
    if (refuses(a))
        return NULL;
    a->live += p == NULL;
    return realloc(p, bytes);
}

static void fault_release(void *p, void *payload)
{
    ((struct allocator *)payload)->live -= p != NULL;
    free(p);
}

static ad_allocator allocator_of(struct allocator *a)
{
    return (ad_allocator){fault_reserve, fault_unreserve, fault_resize, fault_release, a};
}

static ad_status create(ad_tape *tape, struct allocator *a, uint64_t budget)
{
    ad_allocator allocator = allocator_of(a);
    ad_tape_options options = {
        .reserve_bytes = RESERVE, .budget_bytes = budget, .allocator = &allocator};
    ad_status status = ad_tape_create(tape, &options);
    memset(&allocator, 0xff, sizeof allocator); /* it was copied */
    return status;
}

static ad_status run(const struct fault_workload *w, ad_tape tape, struct fault_results *out)
{
    ad_status status = fault_run(w, tape, out);
    ck_assert_msg(!fault_wrong[0], "%s", fault_wrong);
    return status;
}

/* What the workload gives where nothing fails, the calls it makes of an allocator, its peak. */
static struct fault_results expected;
static int expected_calls;
static uint64_t peak;

static void learn(const struct fault_workload *w)
{
    struct allocator a = {0};
    ad_tape tape;
    ad_stats stats;
    ck_assert_int_eq(create(&tape, &a, 0), AD_OK);
    ck_assert_msg(run(w, tape, &expected) == AD_OK, "%s: %s", w->name, ad_tape_message(tape));
    ck_assert_int_gt(expected.n, 0);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    peak = stats.peak_bytes;
    expected_calls = a.calls;
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(a.live, 0);
}

static void check_expected(const struct fault_workload *w, const struct fault_results *got)
{
    ck_assert_msg(got->n == expected.n &&
                      memcmp(got->number, expected.number, sizeof(double) * (size_t)got->n) == 0,
                  "%s: not bit for bit what it gives where nothing fails", w->name);
}

/* The message of the tape's error names the failure and the line, and a second look changes
 * nothing. */
static void check_memory_error(const struct fault_workload *w, ad_tape tape)
{
    const char *message = ad_tape_message(tape);
    ck_assert_msg(ad_tape_status(tape) == AD_ERROR_MEMORY, "%s: %s", w->name, message);
    ck_assert_msg(strstr(message, "out of memory") && strstr(message, " at "), "%s: %s", w->name,
                  message);
}

static int failed_creates, failed_runs, unharmed_runs;
static bool profiled;

/* The n-th allocation fails. */
static void check_nth(const struct fault_workload *w, int n, bool sticky)
{
    struct allocator a = {.fail_at = n, .sticky = sticky};
    struct fault_results got;
    ad_tape tape;
    ad_status status = create(&tape, &a, 0);
    if (status != AD_OK) {
        failed_creates++;
        ck_assert_int_eq(status, AD_ERROR_MEMORY);
        ck_assert(tape.slot == 0 && tape.generation == 0);
        ck_assert_int_eq(ad_tape_status(tape), AD_ERROR_MEMORY);
        ad_tape_clear_error(tape);
        ck_assert_int_eq(a.live, 0);
        a.fail_at = 0;
        ck_assert_int_eq(create(&tape, &a, 0), AD_OK);
    } else if (run(w, tape, &got) == AD_OK) {
        unharmed_runs++; /* only the account went without a row or a larger table */
        /* While a profile is taken, runs of statements are charged when it is time to write it:
         * their lines may be asked for later than in the run that was learned from. */
        ck_assert(profiled || a.calls >= n);
        check_expected(w, &got);
    } else {
        failed_runs++;
        check_memory_error(w, tape);
        ad_tape_clear_error(tape);
    }
    a.fail_at = 0;
    ck_assert_msg(run(w, tape, &got) == AD_OK, "%s: %s", w->name, ad_tape_message(tape));
    check_expected(w, &got);
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(run(w, tape, &got), AD_OK);
    check_expected(w, &got);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(a.live, 0);
}

/* Every step-th allocation, from another first one in each workload. */
static void check_every_nth(const struct fault_workload *w, unsigned step)
{
    learn(w);
    const int first = 1 + (int)((unsigned)(w - fault_workloads) % step);
    for (int n = first; n <= expected_calls; n += (int)step) {
        check_nth(w, n, false);
        check_nth(w, n, true);
    }
}

TEST(whichever_allocation_fails_the_status_says_so_and_the_tape_serves_again)
{
    failed_creates = failed_runs = unharmed_runs = 0;
    for (int i = 0; i < fault_workload_count; i++)
        check_every_nth(&fault_workloads[i], 1);
    ck_assert_int_gt(failed_creates, 5 * fault_workload_count);
    ck_assert_int_gt(failed_runs, 10);
    ck_assert_int_gt(unharmed_runs, 5);
}

TEST(the_same_holds_while_a_profile_is_taken)
{
    char path[] = "/tmp/tapescope-faults-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(ad_profile_start(path) == AD_OK, "%s", ad_tape_message((ad_tape){0, 0}));
    profiled = true;
    for (int i = 0; i < fault_workload_count; i++)
        check_every_nth(&fault_workloads[i], exhaustive_step(6));
    profiled = false;
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    remove(path);
}

/* The budget is a part of what the workload needs. */
static void check_budget(const struct fault_workload *w, uint64_t budget)
{
    struct allocator a = {0};
    struct fault_results got;
    ad_tape tape;
    ad_stats stats;
    ck_assert_int_eq(create(&tape, &a, budget), AD_OK);
    ad_status status = run(w, tape, &got);
    /* Near its end statements make do with a smaller block than the one that was at the peak. */
    if (budget >= peak || (status == AD_OK && budget > peak / 2)) {
        ck_assert_int_eq(status, AD_OK);
        check_expected(w, &got);
    } else {
        check_memory_error(w, tape);
        ad_tape_clear_error(tape);
    }
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_le(stats.peak_bytes, budget);
    /* Again on the tape that has been emptied: nothing has been lost from the budget. */
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_eq(stats.live_bytes, 0);
    ck_assert_int_eq(run(w, tape, &got), status);
    if (status == AD_OK)
        check_expected(w, &got);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(a.live, 0);
}

TEST(every_64_bytes_of_the_budget_are_an_error_or_enough)
{
    for (int i = 0; i < fault_workload_count; i++) {
        learn(&fault_workloads[i]);
        const uint64_t step = 64 * (uint64_t)exhaustive_step(9);
        for (uint64_t budget = 64 + 64 * (uint64_t)i % step; budget < peak; budget += step)
            check_budget(&fault_workloads[i], budget);
        check_budget(&fault_workloads[i], peak - 1);
        check_budget(&fault_workloads[i], peak);
    }
}

TEST(an_allocator_without_one_of_its_functions_is_refused)
{
    for (int i = 0; i < 4; i++) {
        struct allocator a = {0};
        ad_allocator allocator = allocator_of(&a);
        ad_tape_options options = {.allocator = &allocator};
        ad_tape tape = {1, 1};
        if (i == 0)
            allocator.reserve = NULL;
        else if (i == 1)
            allocator.unreserve = NULL;
        else if (i == 2)
            allocator.resize = NULL;
        else
            allocator.release = NULL;
        ck_assert_int_eq(ad_tape_create(&tape, &options), AD_ERROR_ARGUMENT);
        ck_assert_uint_eq(tape.slot, 0);
        ck_assert_ptr_nonnull(strstr(ad_tape_message(tape), "the allocator lacks a function"));
        ck_assert_int_eq(a.calls, 0);
    }
}

/* A reservation that is not aligned. */
static void *reserve_askew(size_t bytes, void *payload)
{
    char *p = fault_reserve(bytes, payload);
    return p ? p + 32 : NULL;
}

static void unreserve_askew(void *p, size_t bytes, void *payload)
{
    fault_unreserve((char *)p - 32, bytes, payload);
}

TEST(a_reservation_that_is_not_aligned_is_given_back_and_refused)
{
    struct allocator a = {0};
    ad_allocator allocator = allocator_of(&a);
    ad_tape_options options = {.reserve_bytes = RESERVE, .allocator = &allocator};
    ad_tape tape;
    allocator.reserve = reserve_askew;
    allocator.unreserve = unreserve_askew;
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_ERROR_MEMORY);
    ck_assert_int_eq(a.live, 0);
    ck_assert_int_gt(a.calls, 1);
}

TEST(a_reservation_beyond_any_memory_is_halved_and_rounded)
{
    struct allocator a = {0};
    ad_allocator allocator = allocator_of(&a);
    ad_stats stats;
    ad_tape tape;
    ad_tape_options options = {.reserve_bytes = UINT64_MAX, .allocator = &allocator};
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    ck_assert_uint_gt(stats.reserved_bytes, 0);
    ck_assert_uint_eq(stats.reserved_bytes % TAPE_HUGE_PAGE, 0);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(a.live, 0);
}

int main(void)
{
    TCase *faults = file_cases(&file_tests, NULL, NULL);
    tcase_set_timeout(faults, 900);
    return run_cases("faults", faults);
}
