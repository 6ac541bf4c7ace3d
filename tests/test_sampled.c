/* test_sampled.c: sampled profiles of this process: what they hold, whose signal it is, and the
 * calls that say options beforehand, drop what was measured, and fetch it.
 *
 * May include: sampled_support.h, Check.
 */
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

START_TEST(time_lands_on_the_lines_of_ops_and_statements_in_both_directions)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=2000"), AD_OK);
    sampled_compute(0.7);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 0);
    struct prof_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete && profile->is_sampled);
    ck_assert_uint_eq(profile->n_tapes, 0); /* no bytes were asked for */
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    const struct prof_cost matmul = sampled_cost(analysis, sampled_matmul_line),
                           statement = sampled_cost(analysis, sampled_statement_line);
    ck_assert_uint_gt(matmul.forward_ns, 0);
    ck_assert_uint_gt(matmul.backward_ns, 0);
    ck_assert_uint_gt(statement.forward_ns, 0);
    ck_assert_uint_gt(statement.backward_ns, 0);
    /* Processor time up to each thread's last sample, out of all. */
    const double part = (double)prof_cost_time(&analysis->sum) / (double)profile->process_cpu_ns;
    ck_assert_double_gt(part, 0.95);
    ck_assert_double_lt(part, 1.0001);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

static void *spin(void *payload)
{
    while (!__atomic_load_n((const bool *)payload, __ATOMIC_RELAXED)) {
    }
    return NULL;
}

/* Nor is it the time of the helper thread, which began before. */
START_TEST(the_samples_hold_no_more_time_than_the_process_has_used)
{
    bool stop = false;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, spin, &stop), 0);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=5000"), AD_OK);
        sampled_compute(0.02);
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
        struct prof_profile *profile = sampled_read(sampled_path);
        uint64_t cpu_ns = 0;
        for (size_t k = 0; k < profile->n_threads; k++)
            cpu_ns += profile->thread[k].cpu_ns;
        ck_assert_uint_gt(cpu_ns, 0);
        ck_assert_uint_le(cpu_ns, profile->process_cpu_ns);
        prof_profile_free(profile);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(bytes_are_counted_beside_samples_if_asked_for)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,tape=on,freq=1000"), AD_OK);
    sampled_compute(0.1);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert_uint_gt(analysis->total.handed_out_bytes, 0);
    ck_assert_uint_eq(analysis->total.handed_out_bytes, prof_cost_tape_bytes(&analysis->sum));
    ck_assert_uint_eq(analysis->total.forward_ticks, 0);
    ck_assert_uint_gt(sampled_cost(analysis, sampled_matmul_line).value_bytes, 0);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

START_TEST(bytes_alone_are_counted_without_a_clock)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=off,tape=on"), AD_OK);
    sampled_compute(0.05);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete && !profile->is_sampled);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert_uint_gt(analysis->total.handed_out_bytes, 0);
    ck_assert_uint_eq(analysis->total.handed_out_bytes, prof_cost_tape_bytes(&analysis->sum));
    ck_assert_uint_eq(analysis->total.forward_ticks + analysis->total.backward_ticks, 0);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

START_TEST(time_of_a_thread_that_waits_is_told_from_time_that_it_computes)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=500"), AD_OK);
    struct timespec left = {.tv_nsec = 300000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert_uint_gt(analysis->sum.waiting_ns, 100000000);
    ck_assert_uint_gt(analysis->sum.waiting_ns, 2 * prof_cost_time(&analysis->sum));
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

/* ---- steps ---- */

enum { STEPS = 10 };
static uint64_t steps_cpu_ns; /* of all of them */

/* Runs steps of some 30 ms each, which are told in so many words or are sweeps. */
static struct prof_profile *profile_steps(const char *options, bool by_call)
{
    static double gradient[SAMPLED_N * SAMPLED_N];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, options), AD_OK);
    const clock_t first = clock();
    for (int i = 0; i < STEPS; i++) {
        const clock_t begin = clock();
        do
            sampled_tensor_step(tape, gradient);
        while (by_call && clock() - begin < CLOCKS_PER_SEC / 33);
        if (by_call)
            ad_profile_step();
    }
    steps_cpu_ns = (uint64_t)(clock() - first) * (UINT64_C(1000000000) / CLOCKS_PER_SEC);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 0);
    struct prof_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete && profile->has_steps);
    return profile;
}

START_TEST(samples_outside_of_the_measured_steps_are_in_no_row)
{
    struct prof_profile *profile = profile_steps("time=sampled,freq=2000,steps=3:4,warmup=1", true);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert(profile->steps_by_call);
    ck_assert_uint_eq(profile->first_step, 4);
    ck_assert_uint_eq(profile->last_step, 5);
    ck_assert_uint_eq(profile->seen_steps, STEPS);
    const uint64_t within = analysis->sum.samples, outside = analysis->total.outside;
    ck_assert_uint_gt(within, 0);
    ck_assert_uint_gt(sampled_cost(analysis, sampled_matmul_line).backward_ns, 0);
    ck_assert_uint_gt(outside, 0);
    /* Two of ten steps: signals come by the time of day, of which each may take any. */
    ck_assert_uint_gt(analysis->total.process_cpu_ns, 50000000);
    ck_assert_uint_lt(analysis->total.process_cpu_ns, steps_cpu_ns / 2);
    const double part = (double)prof_cost_time(&analysis->sum) / (double)profile->process_cpu_ns;
    ck_assert_double_gt(part, 0.8); /* without what is after each thread's last sample */
    ck_assert_double_lt(part, 1.0001);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

START_TEST(steps_that_never_come_leave_no_sample)
{
    struct prof_profile *profile = profile_steps("time=sampled,freq=2000,steps=100:", true);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert_uint_eq(analysis->sum.samples, 0);
    ck_assert_uint_eq(prof_cost_time(&analysis->sum), 0);
    ck_assert_uint_eq(analysis->total.process_cpu_ns, 0);
    ck_assert_uint_gt(analysis->total.outside, 0);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

START_TEST(sweeps_are_steps_of_a_sampled_program_that_tells_none)
{
    struct prof_profile *profile = profile_steps("time=sampled,freq=5000,tape=on,steps=2:3", false);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert(!profile->steps_by_call);
    ck_assert_uint_eq(profile->seen_steps, STEPS);
    ck_assert_uint_eq(analysis->total.sweeps, 2); /* rows are of the same steps */
    prof_analysis_free(analysis);
    prof_profile_free(profile);
}
END_TEST

/* ---- whose signal it is ---- */

static volatile sig_atomic_t host_signals;

static void host_handler(int number)
{
    (void)number;
    host_signals = 1;
}

START_TEST(a_program_that_has_the_signal_keeps_it_and_is_told_once)
{
    struct sigaction now;
    ck_assert(signal(SIGPROF, host_handler) != SIG_ERR);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,tape=on"), AD_OK);
    sampled_compute(0.05);
    ck_assert_int_eq(sigaction(SIGPROF, NULL, &now), 0);
    ck_assert(now.sa_handler == host_handler);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(host_signals, 0);
    ck_assert_int_eq(sampled_n_logged, 1);
    ck_assert_msg(strstr(sampled_logged, "the program uses the signal SIGPROF itself"), "%s",
                  sampled_logged);
    struct prof_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete);
    ck_assert_uint_eq(profile->n_samples, 0);
    ck_assert_uint_gt(profile->n_tapes, 0); /* bytes are counted all the same */
    prof_profile_free(profile);
    raise(SIGPROF);
    ck_assert_int_eq(host_signals, 1);
}
END_TEST

START_TEST(a_program_that_uses_the_profiling_timer_keeps_it)
{
    const struct itimerval far = {.it_value = {.tv_sec = 1000}};
    struct itimerval left;
    ck_assert_int_eq(setitimer(ITIMER_PROF, &far, NULL), 0);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=1000"), AD_OK);
    sampled_compute(0.1);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 1);
    ck_assert_int_eq(getitimer(ITIMER_PROF, &left), 0);
    ck_assert_int_gt(left.it_value.tv_sec, 0);
    ck_assert_uint_eq(sampled_count(sampled_path), 0);
}
END_TEST

START_TEST(a_program_that_takes_the_signal_later_keeps_it_from_then_on)
{
    struct sigaction now;
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=200"), AD_OK);
    sampled_compute(0.05);
    ck_assert(signal(SIGPROF, host_handler) != SIG_ERR);
    for (int i = 0; i < 1000 && __atomic_load_n(&sampled_n_logged, __ATOMIC_ACQUIRE) == 0; i++)
        sampled_compute(0.01);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 1);
    ck_assert_msg(strstr(sampled_logged, "the program has taken the signal SIGPROF"), "%s",
                  sampled_logged);
    ck_assert_int_eq(sigaction(SIGPROF, NULL, &now), 0);
    ck_assert(now.sa_handler == host_handler);
    ck_assert_uint_gt(sampled_count(sampled_path), 0);
}
END_TEST

START_TEST(the_signal_is_as_before_once_sampling_has_ended)
{
    struct sigaction now;
    for (int ignored = 0; ignored < 2; ignored++) {
        signal(SIGPROF, ignored ? SIG_IGN : SIG_DFL);
        ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=10000"), AD_OK);
        sampled_compute(0.02);
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
        ck_assert_int_eq(sigaction(SIGPROF, NULL, &now), 0);
        ck_assert(now.sa_handler == (ignored ? SIG_IGN : SIG_DFL));
        sampled_compute(0.02);
    }
}
END_TEST

/* ---- init, clear, fetch ---- */

static const ad_tape no_tape;

START_TEST(options_said_beforehand_hold_for_the_next_profiles)
{
    ck_assert_int_eq(ad_profile_init("time=often"), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_message_of(no_tape), "profile_init: "));
    ad_clear_error(no_tape);
    ck_assert_int_eq(ad_profile_init("time=sampled,freq=123"), AD_OK);
    ck_assert_int_eq(ad_profile_start(sampled_path), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    ck_assert_str_eq(profile->options, "time=sampled,freq=123");
    prof_profile_free(profile);
    ck_assert_int_eq(ad_profile_init(NULL), AD_OK);
    ck_assert_int_eq(ad_profile_start(sampled_path), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    profile = sampled_read(sampled_path);
    ck_assert_str_eq(profile->options, "");
    prof_profile_free(profile);
}
END_TEST

START_TEST(a_profile_that_is_cleared_begins_again)
{
    static double gradient[SAMPLED_N * SAMPLED_N];
    ad_tape tape;
    ck_assert_int_eq(ad_profile_clear(), AD_ERROR_STATE);
    ad_clear_error(no_tape);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=exact"), AD_OK);
    for (int i = 0; i < 10; i++)
        sampled_tensor_step(tape, gradient);
    ck_assert_int_eq(ad_profile_clear(), AD_OK);
    for (int i = 0; i < 3; i++)
        sampled_tensor_step(tape, gradient);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct prof_profile *profile = sampled_read(sampled_path);
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    ck_assert_uint_eq(analysis->total.sweeps, 3);
    ck_assert_uint_eq(sampled_cost(analysis, sampled_matmul_line).calls, 3);
    prof_analysis_free(analysis);
    prof_profile_free(profile);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}
END_TEST

START_TEST(a_profile_can_be_had_in_memory_while_it_is_taken)
{
    void *data;
    size_t bytes;
    char error[400];
    ck_assert_int_eq(ad_profile_fetch(&data, &bytes), AD_ERROR_STATE);
    ck_assert_int_eq(ad_profile_fetch(NULL, &bytes), AD_ERROR_ARGUMENT);
    ad_clear_error(no_tape);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,tape=on,freq=5000"), AD_OK);
    sampled_compute(0.05);
    ck_assert_int_eq(ad_profile_fetch(&data, &bytes), AD_OK);
    FILE *stream = fmemopen(data, bytes, "rb");
    struct prof_profile *profile = prof_profile_read_stream(stream, "memory", error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    fclose(stream);
    ck_assert(profile->complete);
    ck_assert_str_eq(profile->end_reason, "snapshot");
    ck_assert_uint_gt(profile->n_samples, 0);
    ck_assert_uint_gt(profile->n_tapes, 0);
    prof_profile_free(profile);
    free(data);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("sampled");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, sampled_setup, sampled_teardown);
    tcase_add_test(cases, time_lands_on_the_lines_of_ops_and_statements_in_both_directions);
    tcase_add_test(cases, the_samples_hold_no_more_time_than_the_process_has_used);
    tcase_add_test(cases, bytes_are_counted_beside_samples_if_asked_for);
    tcase_add_test(cases, bytes_alone_are_counted_without_a_clock);
    tcase_add_test(cases, time_of_a_thread_that_waits_is_told_from_time_that_it_computes);
    tcase_add_test(cases, samples_outside_of_the_measured_steps_are_in_no_row);
    tcase_add_test(cases, steps_that_never_come_leave_no_sample);
    tcase_add_test(cases, sweeps_are_steps_of_a_sampled_program_that_tells_none);
    tcase_add_test(cases, a_program_that_has_the_signal_keeps_it_and_is_told_once);
    tcase_add_test(cases, a_program_that_uses_the_profiling_timer_keeps_it);
    tcase_add_test(cases, a_program_that_takes_the_signal_later_keeps_it_from_then_on);
    tcase_add_test(cases, the_signal_is_as_before_once_sampling_has_ended);
    tcase_add_test(cases, options_said_beforehand_hold_for_the_next_profiles);
    tcase_add_test(cases, a_profile_that_is_cleared_begins_again);
    tcase_add_test(cases, a_profile_can_be_had_in_memory_while_it_is_taken);
    return run_cases("sampled", cases);
}
