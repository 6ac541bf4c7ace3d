/* test_sampled_waits.c: processor time of a thread that mostly waits is that of what it computes.
 *
 * May include: sampled_support.h, Check. A signal ends the wait that it finds, so that the work
 * behind it always has the same distance from a sample: just there no time may be missed.
 */
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ELEMENTS = 100000, ROUNDS = 800 };

static unsigned short_line, long_line;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* One round; adds the time of two lines, of which the second takes longer. */
static void wait_and_compute(ad_tape tape, const double *data, double ns[2])
{
    const struct timespec pause = {.tv_nsec = 2000000};
    ad_tape_reset(tape);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){ELEMENTS}, data);
    nanosleep(&pause, NULL);
    const double start = cpu_ns();
    short_line = __LINE__ + 1;
    ad_tensor y = ad_exp(x);
    const double middle = cpu_ns();
    long_line = __LINE__ + 1;
    ad_sin(ad_sin(ad_sin(y)));
    ns[0] += middle - start;
    ns[1] += cpu_ns() - middle;
}

static double time_of(const struct prof_analysis *analysis, unsigned line)
{
    double ns = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct prof_line *at = &analysis->line[i];
        if (at->file && strstr(at->file, "test_sampled_waits.c") && at->line == line)
            ns += (double)at->cost.forward_ns;
    }
    return ns;
}

START_TEST(time_between_waits_is_that_of_the_ops)
{
    static double data[ELEMENTS];
    double ns[2] = {0};
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    for (int i = 0; i < ROUNDS; i++)
        wait_and_compute(tape, data, ns);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    const double first = time_of(analysis, short_line), second = time_of(analysis, long_line);
    printf("exp %.1f of %.1f ms, sin %.1f of %.1f ms\n", first / 1e6, ns[0] / 1e6, second / 1e6,
           ns[1] / 1e6);
    /* Some hundred samples: these bounds are four standard deviations and more. */
    ck_assert_double_gt((first + second) / (ns[0] + ns[1]), 0.75);
    ck_assert_double_le(first + second, (double)profile->process_cpu_ns);
    ck_assert_double_gt(first / (first + second), ns[0] / (ns[0] + ns[1]) - 0.25);
    ck_assert_double_lt(first / (first + second), ns[0] / (ns[0] + ns[1]) + 0.25);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("sampled_waits");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, sampled_setup, sampled_teardown);
    tcase_add_test(cases, time_between_waits_is_that_of_the_ops);
    return run_cases("sampled_waits", cases);
}
