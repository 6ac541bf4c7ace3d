/* test_log.c: what the library says of its own accord reaches the user's function, which may try
 * anything.
 *
 * A profile ends early because its file may not grow; the clock is a step clock that has the
 * collector write at nearly every op.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

enum { TRIES = 8 };

static const ad_tape no_tape;
static const double data[3] = {0.5, 1, 2};
static char folder[] = "/tmp/tapescope-log-XXXXXX", profile[sizeof folder + 16];
static struct rlimit unlimited;

static struct told {
    ad_tape tape;
    ad_tensor x;
    int calls;
    ad_log_level level;
    ad_status inside[TRIES];
    char message[512];
} told;

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    setenv("TAPESCOPE_CLOCK", "step:1000000000", 1);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(profile, sizeof profile, "%s/profile", folder);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
    told = (struct told){.calls = 0};
    ck_assert_int_eq(ad_tape_create(&told.tape, NULL), AD_OK);
    told.x = ad_leaf(told.tape, AD_F64, 1, SHAPE(3), data);
}

static void teardown(void)
{
    ad_on_log(NULL, NULL);
    ck_assert_int_eq(ad_tape_destroy(told.tape), AD_OK);
    remove(profile);
    rmdir(folder);
}

/* From now on no file grows, and so Check, which writes one, must not be called. */
static int limit(bool on)
{
    struct rlimit none = unlimited;
    none.rlim_cur = 1;
    return setrlimit(RLIMIT_FSIZE, on ? &none : &unlimited);
}

static void listen(ad_log_level level, const char *message, void *payload)
{
    struct told *to = payload;
    ad_tape other = {1, 1};
    to->calls++;
    to->level = level;
    snprintf(to->message, sizeof to->message, "%s", message);
    ad_exp(to->x);
    to->inside[0] = ad_tape_status(no_tape);
    to->inside[1] = ad_tape_reset(to->tape);
    to->inside[2] = ad_tape_destroy(to->tape);
    to->inside[3] = ad_tape_create(&other, NULL);
    to->inside[4] = ad_profile_start("/dev/null");
    to->inside[5] = ad_profile_write("/dev/null");
    to->inside[6] = ad_profile_stop();
    to->inside[7] = ad_backward(to->x);
    if (other.slot != 0)
        to->inside[3] = AD_OK;
    ad_on_log(listen, payload);
}

static void check_told(void)
{
    char expected[512];
    snprintf(expected, sizeof expected, "cannot write %s: File too large; the profile ends here",
             profile);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_int_eq(told.level, AD_LOG_WARNING);
    ck_assert_str_eq(told.message, expected);
    for (int i = 0; i < TRIES; i++)
        ck_assert_msg(told.inside[i] == AD_ERROR_STATE, "%d: %s", i,
                      ad_status_name(told.inside[i]));
}

static void hear(ad_tape of, ad_status status, const char *message, void *payload)
{
    (void)of, (void)status, (void)message, (void)payload;
}

TEST(a_profile_that_ends_in_the_midst_of_an_op_is_told_and_harms_nothing)
{
    double gradient[3];
    ad_on_log(listen, &told);
    ck_assert_msg(ad_profile_start(profile) == AD_OK, "%s", ad_tape_message(no_tape));
    ck_assert_int_eq(told.calls, 0);
    int limited = limit(true);
    ad_tensor y = ad_sum(ad_square(told.x));
    ad_status swept = ad_backward(y);
    limit(false);
    ck_assert(limited == 0 && swept == AD_OK);
    check_told();
    ck_assert_ptr_nonnull(strstr(ad_tape_message(no_tape), "not while the log callback runs"));
    ad_tape_clear_error(no_tape);
    ck_assert_int_eq(ad_gradient(told.x, gradient, 3), AD_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(gradient[i], 2 * data[i]);
    ck_assert_int_eq(ad_profile_stop(), AD_ERROR_PROFILE);
    ck_assert_int_eq(told.calls, 1);
    /* The tape is this thread's again, and so are profiles. */
    ck_assert_int_eq(ad_tape_reset(told.tape), AD_OK);
    ck_assert_int_eq(ad_profile_start(profile), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_int_eq(told.calls, 1);
}

TEST(a_profile_that_cannot_be_completed_is_told_as_well)
{
    ad_on_log(listen, &told);
    ck_assert_int_eq(ad_profile_start(profile), AD_OK);
    int limited = limit(true);
    ad_status stopped = ad_profile_stop();
    limit(false);
    ck_assert(limited == 0 && stopped == AD_ERROR_PROFILE);
    check_told();
}

static void *work(void *payload)
{
    ad_status *status = payload;
    ad_tape t;
    status[0] = ad_tape_create(&t, NULL);
    ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(3), data);
    status[1] = ad_backward(ad_sum(ad_exp(x)));
    status[2] = ad_tape_destroy(t);
    return NULL;
}

TEST(the_thread_that_meets_the_trouble_tells)
{
    pthread_t thread;
    ad_status status[3];
    ad_on_log(listen, &told);
    ck_assert_int_eq(ad_profile_start(profile), AD_OK);
    int failed = limit(true);
    failed = failed || pthread_create(&thread, NULL, work, status) || pthread_join(thread, NULL);
    limit(false);
    ck_assert(!failed && !status[0] && !status[1] && !status[2]);
    ck_assert_int_eq(told.calls, 1);
    for (int i = 0; i < TRIES; i++)
        ck_assert_int_eq(told.inside[i], AD_ERROR_STATE);
    ck_assert_int_eq(ad_tape_status(no_tape), AD_OK); /* of the other thread */
    ck_assert_int_eq(ad_backward(ad_sum(told.x)), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_ERROR_PROFILE);
}

TEST(without_a_function_it_is_a_line_on_standard_error)
{
    char line[1024] = "", expected[512];
    ad_on_log(listen, &told);
    ad_on_log(NULL, NULL);
    int saved = dup(STDERR_FILENO), pipes[2];
    ck_assert_int_eq(pipe(pipes), 0); /* not a file, which may not grow */
    ck_assert_int_ge(dup2(pipes[1], STDERR_FILENO), 0);
    ck_assert_int_eq(ad_profile_start(profile), AD_OK);
    int limited = limit(true);
    ad_status stopped = ad_profile_stop();
    limit(false);
    ck_assert(limited == 0 && stopped == AD_ERROR_PROFILE);
    close(pipes[1]);
    if (saved >= 0)
        dup2(saved, STDERR_FILENO);
    else
        close(STDERR_FILENO);
    ck_assert_int_gt(read(pipes[0], line, sizeof line - 1), 0);
    close(pipes[0]);
    snprintf(expected, sizeof expected,
             "tapescope: cannot write %s: File too large; the profile ends here\n", profile);
    ck_assert_str_eq(line, expected);
    ck_assert_int_eq(told.calls, 0);
}

TEST(a_tape_that_goes_with_an_error_nobody_asked_for_says_so)
{
    ad_tape t;
    ad_on_log(listen, &told);
    for (int asked = 0; asked < 4; asked++) {
        ck_assert_int_eq(ad_tape_create(&t, NULL), AD_OK);
        if (asked == 3)
            ck_assert_int_eq(ad_tape_on_error(t, hear, NULL), AD_OK);
        const ad_tensor x = ad_leaf(t, AD_F64, 1, SHAPE(3), data);
        (void)!ad_backward(ad_sum(ad_reshape(x, SHAPE(7), 1)));
        if (asked == 1)
            ck_assert_int_ne(ad_tape_status(t), AD_OK);
        if (asked == 2)
            ck_assert_str_ne(ad_tape_message(t), "");
        told.calls = 0;
        ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
        ck_assert_int_eq(told.calls, asked == 0);
    }
    ck_assert_int_eq(told.level, AD_LOG_WARNING);
    ck_assert_msg(strstr(told.message, "whose error nobody asked for: reshape:") &&
                      strstr(told.message, "test_log.c"),
                  "%s", told.message);
    /* One that was seen does not hide the next. */
    ck_assert_int_eq(ad_tape_create(&t, NULL), AD_OK);
    ad_leaf(t, AD_I64, 0, NULL, NULL);
    ck_assert_int_eq(ad_tape_status(t), AD_ERROR_DTYPE);
    ad_tape_clear_error(t);
    ad_leaf(t, AD_I64, 0, NULL, NULL);
    ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    ck_assert_int_eq(told.calls, 1);
}

TEST(a_tape_that_goes_under_no_grad_says_where_it_began)
{
    ad_tape t;
    ad_on_log(listen, &told);
    ck_assert_int_eq(ad_tape_create(&t, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_begin(t), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_end(t), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    ck_assert_int_eq(told.calls, 0);
    ck_assert_int_eq(ad_tape_create(&t, NULL), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_begin(t), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(t), AD_OK);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_msg(strstr(told.message, "destroyed while no_grad begun at test_log.c:"), "%s",
                  told.message);
}

RUN_TESTS(setup, teardown)
