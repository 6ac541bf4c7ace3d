/* test_faults_ode.c: each allocation of ours and each 256 bytes of the budget, while an equation is
 * solved and swept, is refused: the tape's error says so, and the next run is right. SUNDIALS' own
 * allocations are not ours to refuse: docs/reference/faults.md.
 */
#include "run_cases.h"
#include "shim.h"

#include <tapescope/ad_ode.h>

#include <check.h>
#include <string.h>

#include "tape_fixture.h"

enum { RESULTS = 6 };

static const double begin[2] = {1, 0.5}, rate[1] = {0.7}, when[3] = {0, 0.5, 1},
                    each[2] = {1e-3, 1e-3};

static void setup(void)
{
    tape_begin(&(ad_tape_options){.budget_bytes = 64 << 20, .reserve_bytes = 8 << 20});
}

static ad_tensor growth(ad_tape on, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                        void *payload)
{
    (void)on;
    (void)t;
    (void)n;
    (void)payload;
    return ad_mul(x[0], ad_sin(y));
}

/* One run; no assertion, since the shim may be armed. */
static ad_status solve(bool stiff, double *out)
{
    ad_ode_options options = {.relative = 1e-3, .absolute = 1e-3, .stiff = stiff};
    ad_tape_reset(tape);
    const ad_tensor y0 = ad_leaf(tape, AD_F64, 1, (int64_t[]){2}, begin),
                    k = ad_leaf(tape, AD_F64, 1, (int64_t[]){1}, rate),
                    times = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, when);
    if (stiff)
        options.absolute_each = ad_constant(tape, AD_F64, 1, (int64_t[]){2}, each);
    const ad_tensor y = ad_sum(ad_ode(tape, growth, NULL, y0, times, 1, &k, &options));
    ad_status status = ad_backward(y);
    if (status == AD_OK)
        status = ad_gradient(y0, out, 2);
    if (status == AD_OK)
        status = ad_gradient(k, out + 2, 1);
    if (status == AD_OK)
        status = ad_gradient(times, out + 3, 3);
    return status;
}

static int refused;

static void check_nth(bool stiff, int n, bool sticky, const double *want)
{
    double got[RESULTS];
    shim_arm(SHIM_MEMORY, n, sticky);
    const ad_status status = solve(stiff, got);
    shim_disarm();
    ck_assert_int_eq(ad_tape_status(tape), status);
    if (status == AD_OK) {
        ck_assert_mem_eq(got, want, sizeof got);
    } else {
        refused++;
        ck_assert_msg(status == AD_ERROR_MEMORY, "%d: %s", n, ad_tape_message(tape));
    }
    ck_assert_msg(solve(stiff, got) == AD_OK, "%d: %s", n, ad_tape_message(tape));
    ck_assert_mem_eq(got, want, sizeof got);
}

TEST(whichever_allocation_is_refused_the_error_says_so_and_the_next_run_is_right)
{
    double want[RESULTS], again[RESULTS];
    ck_assert(shim_watch(""));
    for (int stiff = 0; stiff < 2; stiff++) {
        ck_assert_msg(solve(stiff, want) == AD_OK, "%s", ad_tape_message(tape));
        shim_arm(SHIM_MEMORY, 0, false);
        ck_assert_int_eq(solve(stiff, again), AD_OK);
        const int calls = shim_disarm();
        ck_assert_mem_eq(again, want, sizeof want);
        refused = 0;
        for (int n = 1; n <= calls; n++) {
            check_nth(stiff, n, false, want);
            check_nth(stiff, n, true, want);
        }
        ck_assert_int_gt(refused, 8); /* twice the blocks of a system, forward and backward */
    }
}

TEST(each_part_of_the_budget_is_an_error_or_enough)
{
    double want[RESULTS], got[RESULTS];
    int failed = 0;
    ck_assert_int_eq(solve(false, want), AD_OK);
    ad_stats stats;
    ck_assert_int_eq(ad_tape_stats(tape, &stats), AD_OK);
    const uint64_t enough = stats.peak_bytes + 4096;
    for (uint64_t budget = 256; budget <= enough; budget += 256) {
        teardown();
        tape_begin(&(ad_tape_options){.budget_bytes = budget, .reserve_bytes = 8 << 20});
        const ad_status status = solve(false, got);
        if (status == AD_OK) {
            ck_assert_mem_eq(got, want, sizeof got);
        } else {
            failed++;
            ck_assert_msg(status == AD_ERROR_MEMORY && budget < enough, "%s",
                          ad_tape_message(tape));
            ad_tape_clear_error(tape);
        }
    }
    ck_assert_int_gt(failed, 2);
}

RUN_TESTS(setup, teardown)
