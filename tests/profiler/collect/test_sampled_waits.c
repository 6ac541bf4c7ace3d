/* test_sampled_waits.c: processor time of a thread that mostly waits is that of what it computes.
 *
 * A signal ends the wait that it finds, so that the work behind it always has the same distance
 * from a sample: just there no time may be missed. What share each line has of it is for
 * test_sampler_waiting, whose time is made up.
 */
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <string.h>
#include <time.h>

enum { ELEMENTS = 100000 };

static unsigned short_line, long_line;
static ad_tape tape;

/* Two lines behind a wait, of which the second takes longer. */
static void wait_and_compute(void)
{
    static double data[ELEMENTS];
    const struct timespec pause = {.tv_nsec = 2000000};
    ad_tape_reset(tape);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){ELEMENTS}, data);
    nanosleep(&pause, NULL);
    short_line = __LINE__ + 1;
    ad_tensor y = ad_exp(x);
    long_line = __LINE__ + 1;
    ad_sin(ad_sin(ad_sin(y)));
}

static void compute(void)
{
    for (int i = 0; i < 20; i++)
        wait_and_compute();
}

static double time_of(const struct analyze_result *analysis, unsigned line)
{
    double ns = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *at = &analysis->line[i];
        if (at->file && strstr(at->file, "test_sampled_waits.c") && at->line == line)
            ns += (double)at->cost.forward_ns;
    }
    return ns;
}

/* Samples within ops of this name. */
static bool has(const struct read_profile *profile, const char *op)
{
    for (size_t i = 0; i < profile->n_samples; i++)
        if (strcmp(profile->sample[i].op, op) == 0 && profile->sample[i].cpu_ns > 0)
            return true;
    return false;
}

TEST(time_between_waits_is_that_of_the_ops)
{
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const uint64_t before = sampled_thread_ns();
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    const uint64_t begin = sampled_thread_ns();
    for (bool seen = false; !seen;) {
        compute();
        struct read_profile *now = sampled_fetch();
        seen = has(now, "exp") && has(now, "sin");
        read_profile_free(now);
    }
    const uint64_t end = sampled_compute_past(compute);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    const uint64_t after = sampled_thread_ns();
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    struct read_profile *profile = sampled_read(sampled_path);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    ck_assert_double_gt(time_of(analysis, short_line), 0);
    ck_assert_double_gt(time_of(analysis, long_line), 0);
    /* Whatever a signal finds, no time of the thread is missed and none counted twice. */
    const uint64_t held = sampled_held(profile, sampled_tid());
    ck_assert_uint_ge(held, end - begin);
    ck_assert_uint_le(held, after - before);
    ck_assert_uint_le(sampled_held(profile, 0), profile->process_cpu_ns);
    analyze_free(analysis);
    read_profile_free(profile);
}

RUN_TESTS(sampled_setup, sampled_teardown)
