/* test_sampled.c: sampled profiles of this process: what they hold, whose signal it is, and the
 * calls that say options beforehand, drop what was measured, and fetch it.
 */
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Whether both lines have time in both directions. */
static bool has_lines(const struct read_profile *profile)
{
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    const struct analyze_cost matmul = sampled_cost(analysis, sampled_matmul_line),
                              statement = sampled_cost(analysis, sampled_statement_line);
    analyze_free(analysis);
    return matmul.forward_ns > 0 && matmul.backward_ns > 0 && statement.forward_ns > 0 &&
           statement.backward_ns > 0;
}

static void compute(void)
{
    sampled_compute(0.01);
}

TEST(time_lands_on_the_lines_of_ops_and_statements_in_both_directions)
{
    const uint64_t before = sampled_process_ns();
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=2000"), AD_OK);
    const uint64_t begin = sampled_thread_ns();
    sampled_compute_until(has_lines);
    const uint64_t end = sampled_compute_past(compute);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 0);
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete && profile->is_sampled);
    ck_assert_uint_eq(profile->n_tapes, 0); /* no bytes were asked for */
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert(has_lines(profile));
    /* Processor time up to each thread's last sample, out of all. */
    const uint64_t held = sampled_held(profile, 0);
    ck_assert_uint_eq(analyze_cost_time(&analysis->sum), held);
    ck_assert_uint_ge(sampled_held(profile, sampled_tid()), end - begin);
    ck_assert_uint_le(held, profile->process_cpu_ns);
    ck_assert_uint_le(profile->process_cpu_ns, sampled_process_ns() - before);
    analyze_free(analysis);
    read_profile_free(profile);
}

static void *spin(void *payload)
{
    while (!__atomic_load_n((const bool *)payload, __ATOMIC_RELAXED)) {
    }
    return NULL;
}

/* Nor is it the time of the helper thread, which began before. */
TEST(the_samples_hold_no_more_time_than_the_process_has_used)
{
    bool stop = false;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, spin, &stop), 0);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=5000"), AD_OK);
        sampled_compute_until_sampled();
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
        struct read_profile *profile = sampled_read(sampled_path);
        uint64_t cpu_ns = 0;
        for (size_t k = 0; k < profile->n_threads; k++)
            cpu_ns += profile->thread[k].cpu_ns;
        ck_assert_uint_gt(cpu_ns, 0);
        ck_assert_uint_le(cpu_ns, profile->process_cpu_ns);
        read_profile_free(profile);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

TEST(bytes_are_counted_beside_samples_if_asked_for)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,tape=on,freq=1000"), AD_OK);
    sampled_compute(0.1);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct read_profile *profile = sampled_read(sampled_path);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_uint_gt(analysis->total.handed_out_bytes, 0);
    ck_assert_uint_eq(analysis->total.handed_out_bytes, analyze_cost_tape_bytes(&analysis->sum));
    ck_assert_uint_eq(analysis->total.forward_ticks, 0);
    ck_assert_uint_gt(sampled_cost(analysis, sampled_matmul_line).value_bytes, 0);
    analyze_free(analysis);
    read_profile_free(profile);
}

TEST(bytes_alone_are_counted_without_a_clock)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=off,tape=on"), AD_OK);
    sampled_compute(0.05);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete && !profile->is_sampled);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_uint_gt(analysis->total.handed_out_bytes, 0);
    ck_assert_uint_eq(analysis->total.handed_out_bytes, analyze_cost_tape_bytes(&analysis->sum));
    ck_assert_uint_eq(analysis->total.forward_ticks + analysis->total.backward_ticks, 0);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* Wall time of samples that found a thread asleep, and processor time that they have. */
static uint64_t asleep(const struct read_profile *profile, uint64_t *cpu_ns)
{
    uint64_t wall_ns = 0;
    *cpu_ns = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->sample[i];
        wall_ns += sample->waiting == READ_WAITING_OTHER ? sample->wall_ns : 0;
        *cpu_ns += sample->waiting == READ_WAITING_OTHER ? sample->cpu_ns : 0;
    }
    return wall_ns;
}

/* The thread sleeps alone: what it asks of the system else is not a sleep. */
static void *sleep_on(void *payload)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    while (!__atomic_load_n((const bool *)payload, __ATOMIC_RELAXED))
        nanosleep(&ms, NULL);
    return NULL;
}

TEST(time_of_a_thread_that_waits_is_told_from_time_that_it_computes)
{
    bool stop = false;
    pthread_t thread;
    uint64_t wall_ns, cpu_ns;
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_on, &stop), 0);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=500"), AD_OK);
    do {
        struct read_profile *profile = sampled_fetch();
        wall_ns = asleep(profile, &cpu_ns);
        read_profile_free(profile);
    } while (wall_ns == 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    struct read_profile *profile = sampled_read(sampled_path);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    uint64_t waiting_ns = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->sample[i];
        waiting_ns += sample->wall_ns > sample->cpu_ns ? sample->wall_ns - sample->cpu_ns : 0;
    }
    wall_ns = asleep(profile, &cpu_ns);
    ck_assert_uint_eq(analysis->sum.waiting_ns, waiting_ns);
    ck_assert_uint_ge(waiting_ns, wall_ns - cpu_ns);
    ck_assert_uint_eq(analyze_cost_time(&analysis->sum), sampled_held(profile, 0));
    analyze_free(analysis);
    read_profile_free(profile);
}

/* ---- steps ---- */

enum { STEPS = 10 };

/* Readings around the calls that end steps: processor time of the process before and after each,
 * and of this thread. */
static struct step_end {
    uint64_t process_before, process_after, thread_before, thread_after;
} step_end[STEPS];

static uint64_t seen_before;

static bool more_is_outside(const struct read_profile *profile)
{
    uint64_t outside = 0;
    for (size_t i = 0; i < profile->n_threads; i++)
        outside += profile->thread[i].outside;
    const bool more = outside > seen_before;
    seen_before = outside;
    return more;
}

static bool more_is_backward(const struct read_profile *profile)
{
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    const uint64_t ns = sampled_cost(analysis, sampled_matmul_line).backward_ns;
    analyze_free(analysis);
    const bool more = ns > seen_before;
    seen_before = ns;
    return more;
}

static void end_step(int i)
{
    struct step_end *end = &step_end[i];
    end->process_before = sampled_process_ns();
    end->thread_before = sampled_thread_ns();
    ad_profile_step();
    end->thread_after = sampled_thread_ns();
    end->process_after = sampled_process_ns();
}

/* Runs steps that are told in so many words. Each goes on until it has samples of its own: those of
 * the steps from first to last are the lines'. Returns this thread's processor time in the last of
 * them when it had not come to its end. */
static uint64_t run_steps(int first, int last)
{
    uint64_t past = 0;
    for (int i = 0; i < STEPS; i++) {
        const bool measured = i >= first && i <= last;
        seen_before = 0;
        struct read_profile *profile = sampled_fetch();
        (void)(measured ? more_is_backward(profile) : more_is_outside(profile));
        read_profile_free(profile);
        sampled_compute_until(measured ? more_is_backward : more_is_outside);
        if (i == last)
            past = sampled_compute_past(compute);
        end_step(i);
    }
    return past;
}

static void begin_steps(const char *options)
{
    ck_assert_int_eq(ad_profile_start_with(sampled_path, options), AD_OK);
}

static struct read_profile *end_steps(void)
{
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 0);
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete && profile->has_steps);
    return profile;
}

TEST(samples_outside_of_the_measured_steps_are_in_no_row)
{
    begin_steps("time=sampled,freq=2000,steps=3:4,warmup=1");
    const uint64_t past = run_steps(4, 5);
    struct read_profile *profile = end_steps();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert(profile->steps_by_call);
    ck_assert_uint_eq(profile->first_step, 4);
    ck_assert_uint_eq(profile->last_step, 5);
    ck_assert_uint_eq(profile->seen_steps, STEPS);
    ck_assert_uint_gt(analysis->sum.samples, 0);
    ck_assert_uint_gt(sampled_cost(analysis, sampled_matmul_line).backward_ns, 0);
    ck_assert_uint_gt(analysis->total.outside, 0);
    /* Two of ten steps, to the nanosecond. */
    const uint64_t all = analysis->total.process_cpu_ns, held = sampled_held(profile, 0);
    ck_assert_uint_ge(all, step_end[5].thread_before - step_end[3].thread_after);
    ck_assert_uint_le(all, step_end[5].process_after - step_end[3].process_before);
    ck_assert_uint_eq(analyze_cost_time(&analysis->sum), held);
    ck_assert_uint_ge(sampled_held(profile, sampled_tid()), past - step_end[3].thread_after);
    ck_assert_uint_le(held, all);
    analyze_free(analysis);
    read_profile_free(profile);
}

TEST(steps_that_never_come_leave_no_sample)
{
    begin_steps("time=sampled,freq=2000,steps=100:");
    run_steps(STEPS, STEPS);
    struct read_profile *profile = end_steps();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_uint_eq(analysis->sum.samples, 0);
    ck_assert_uint_eq(analyze_cost_time(&analysis->sum), 0);
    ck_assert_uint_eq(analysis->total.process_cpu_ns, 0);
    ck_assert_uint_gt(analysis->total.outside, 0);
    analyze_free(analysis);
    read_profile_free(profile);
}

TEST(sweeps_are_steps_of_a_sampled_program_that_tells_none)
{
    static double gradient[SAMPLED_N * SAMPLED_N];
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    begin_steps("time=sampled,freq=5000,tape=on,steps=2:3");
    for (int i = 0; i < STEPS; i++)
        sampled_tensor_step(tape, gradient);
    struct read_profile *profile = end_steps();
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert(!profile->steps_by_call);
    ck_assert_uint_eq(profile->seen_steps, STEPS);
    ck_assert_uint_eq(analysis->total.sweeps, 2); /* rows are of the same steps */
    analyze_free(analysis);
    read_profile_free(profile);
}

/* ---- whose signal it is ---- */

static volatile sig_atomic_t host_signals;

static void host_handler(int number)
{
    (void)number;
    host_signals = 1;
}

TEST(a_program_that_has_the_signal_keeps_it_and_is_told_once)
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
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert(profile->complete);
    ck_assert_uint_eq(profile->n_samples, 0);
    ck_assert_uint_gt(profile->n_tapes, 0); /* bytes are counted all the same */
    read_profile_free(profile);
    raise(SIGPROF);
    ck_assert_int_eq(host_signals, 1);
}

TEST(a_program_that_uses_the_profiling_timer_keeps_it)
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

TEST(a_program_that_takes_the_signal_later_keeps_it_from_then_on)
{
    struct sigaction now;
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=200"), AD_OK);
    sampled_compute_until_sampled();
    ck_assert(signal(SIGPROF, host_handler) != SIG_ERR);
    while (__atomic_load_n(&sampled_n_logged, __ATOMIC_ACQUIRE) == 0)
        sampled_compute(0.01);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(sampled_n_logged, 1);
    ck_assert_msg(strstr(sampled_logged, "the program has taken the signal SIGPROF"), "%s",
                  sampled_logged);
    ck_assert_int_eq(sigaction(SIGPROF, NULL, &now), 0);
    ck_assert(now.sa_handler == host_handler);
    ck_assert_uint_gt(sampled_count(sampled_path), 0);
}

TEST(the_signal_is_as_before_once_sampling_has_ended)
{
    struct sigaction now;
    for (int ignored = 0; ignored < 2; ignored++) {
        signal(SIGPROF, ignored ? SIG_IGN : SIG_DFL);
        ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,freq=10000"), AD_OK);
        sampled_compute_until_sampled();
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
        ck_assert_int_eq(sigaction(SIGPROF, NULL, &now), 0);
        ck_assert(now.sa_handler == (ignored ? SIG_IGN : SIG_DFL));
        sampled_compute(0.02);
    }
}

/* ---- init, clear, fetch ---- */

static const ad_tape no_tape;

TEST(options_said_beforehand_hold_for_the_next_profiles)
{
    ck_assert_int_eq(ad_profile_init("time=often"), AD_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(no_tape), "profile_init: "));
    ad_tape_clear_error(no_tape);
    ck_assert_int_eq(ad_profile_init("time=sampled,freq=123"), AD_OK);
    ck_assert_int_eq(ad_profile_start(sampled_path), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct read_profile *profile = sampled_read(sampled_path);
    ck_assert_str_eq(profile->options, "time=sampled,freq=123");
    read_profile_free(profile);
    ck_assert_int_eq(ad_profile_init(NULL), AD_OK);
    ck_assert_int_eq(ad_profile_start(sampled_path), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    profile = sampled_read(sampled_path);
    ck_assert_str_eq(profile->options, "");
    read_profile_free(profile);
}

TEST(a_profile_that_is_cleared_begins_again)
{
    static double gradient[SAMPLED_N * SAMPLED_N];
    ad_tape tape;
    ck_assert_int_eq(ad_profile_clear(), AD_ERROR_STATE);
    ad_tape_clear_error(no_tape);
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=exact"), AD_OK);
    for (int i = 0; i < 10; i++)
        sampled_tensor_step(tape, gradient);
    ck_assert_int_eq(ad_profile_clear(), AD_OK);
    for (int i = 0; i < 3; i++)
        sampled_tensor_step(tape, gradient);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    struct read_profile *profile = sampled_read(sampled_path);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_uint_eq(analysis->total.sweeps, 3);
    ck_assert_uint_eq(sampled_cost(analysis, sampled_matmul_line).calls, 3);
    analyze_free(analysis);
    read_profile_free(profile);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

TEST(a_profile_can_be_had_in_memory_while_it_is_taken)
{
    void *data;
    size_t bytes;
    char error[400];
    ck_assert_int_eq(ad_profile_fetch(&data, &bytes), AD_ERROR_STATE);
    ck_assert_int_eq(ad_profile_fetch(NULL, &bytes), AD_ERROR_ARGUMENT);
    ad_tape_clear_error(no_tape);
    ck_assert_int_eq(ad_profile_start_with(sampled_path, "time=sampled,tape=on,freq=5000"), AD_OK);
    sampled_compute_until_sampled();
    ck_assert_int_eq(ad_profile_fetch(&data, &bytes), AD_OK);
    FILE *stream = fmemopen(data, bytes, "rb");
    struct read_profile *profile = read_profile_stream(stream, "memory", error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    fclose(stream);
    ck_assert(profile->complete);
    ck_assert_str_eq(profile->end_reason, "snapshot");
    ck_assert_uint_gt(profile->n_samples, 0);
    ck_assert_uint_gt(profile->n_tapes, 0);
    read_profile_free(profile);
    free(data);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
}

TEST(a_signal_writes_what_is_known_so_far_though_no_rows_are_kept)
{
    char name[200];
    ck_assert(ad_profile_start_with(sampled_path, "time=sampled,snapshot_signal=usr1") == AD_OK);
    sampled_compute_until_sampled();
    ck_assert_int_eq(raise(SIGUSR1), 0);
    snprintf(name, sizeof name, "%s.1", sampled_path);
    while (access(name, F_OK) != 0)
        compute();
    ck_assert_int_eq(ad_profile_stop(), AD_OK); /* not before the other is written */
    ck_assert_uint_gt(sampled_count(name), 0);
}

RUN_TESTS(sampled_setup, sampled_teardown)
