/* test_profile_options.c: options of a recording, by call and by environment: what is taken, what
 * is refused, and that the profile says which they were.
 */
#include "ad_internal.h"
#include "read.h"
#include "run_cases.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const ad_tape no_tape;
static char folder[64];

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope-options-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
}

static void teardown(void)
{
    unlink("a.prof");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct tape_collect_options read_right(const char *text)
{
    struct tape_collect_options options;
    char error[400] = "";
    ck_assert_msg(ad_profile_options_read(&options, text, error, sizeof error), "%s: %s", text,
                  error);
    return options;
}

static void refuses(const char *text, const char *reason)
{
    struct tape_collect_options options;
    char error[400] = "";
    ck_assert_msg(!ad_profile_options_read(&options, text, error, sizeof error), "%s", text);
    ck_assert_msg(strstr(error, reason) != NULL, "%s: %s", text, error);
}

TEST(nothing_asked_for_is_the_defaults)
{
    const char *const empty[] = {NULL, "", ",", ",,"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct tape_collect_options is = read_right(empty[i]);
        ck_assert_uint_eq(is.time, TAPE_TIME_EXACT);
        ck_assert_uint_eq(is.tape, TAPE_BYTES_WITH_TIME);
        ck_assert_uint_eq(is.freq, 250);
        ck_assert_uint_eq(is.interval, 1000);
        ck_assert_uint_eq(is.frames, TAPE_FRAMES_USER);
        ck_assert_uint_eq(is.unwind, TAPE_UNWIND_LIBUNWIND);
        ck_assert_uint_eq(is.timeline, 0);
        ck_assert_uint_eq(is.first_step, 0);
        ck_assert_uint_eq(is.last_step, UINT64_MAX);
        ck_assert_uint_eq(is.snapshot_signal, 0);
        ck_assert_uint_eq(is.shapes, 0);
    }
}

TEST(every_option_is_taken)
{
    struct tape_collect_options is =
        read_right("time=off,tape=off,freq=1000,interval=20,depth=0,frames=all,unwind=fp,"
                   "timeline=16MiB,"
                   "steps=3:5,warmup=2,snapshot_signal=usr1,attach=usr2,follow_fork=on");
    ck_assert_uint_eq(is.time, TAPE_TIME_OFF);
    ck_assert_uint_eq(read_right("time=sampled").time, TAPE_TIME_SAMPLED);
    ck_assert_uint_eq(is.tape, 0);
    ck_assert_uint_eq(is.freq, 1000);
    ck_assert_uint_eq(is.interval, 20);
    ck_assert_uint_eq(is.depth, 0);
    ck_assert_uint_eq(is.frames, TAPE_FRAMES_ALL);
    ck_assert_uint_eq(is.unwind, TAPE_UNWIND_FRAME_POINTERS);
    ck_assert_uint_eq(is.timeline, 16u << 20);
    ck_assert_uint_eq(is.first_step, 3);
    ck_assert_uint_eq(is.last_step, 5);
    ck_assert_uint_eq(is.warmup, 2);
    ck_assert_uint_eq(is.snapshot_signal, SIGUSR1);
    ck_assert_uint_eq(is.attach, SIGUSR2);
    ck_assert_uint_eq(is.follow_fork, 1);
    ck_assert_uint_eq(read_right("depth=3,depth=4").depth, 4);
    /* Samples alone have paths within ops only if these are asked for. */
    ck_assert_uint_eq(read_right("time=sampled").depth, 0);
    ck_assert_uint_eq(read_right("depth=12,time=sampled").depth, 12);
    ck_assert_uint_eq(read_right("time=sampled,tape=on").depth, 64);
    ck_assert_uint_eq(read_right("time=off").depth, 64);
    ck_assert_uint_eq(read_right("steps=3:").last_step, UINT64_MAX);
    ck_assert_uint_eq(read_right("steps=:7").last_step, 7);
    ck_assert_uint_eq(read_right("shapes=on").shapes, 1);
    ck_assert_uint_eq(read_right("timeline=64KiB,").timeline, 64u << 10);
}

TEST(what_is_no_option_is_refused_with_what_there_is)
{
    refuses("frq=3", "no profile option is called 'frq'; there are time, tape, freq");
    refuses("time=often", "profile option time takes one of off, exact, sampled, not 'often'");
    refuses("time", "not ''");
    refuses("freq=0", "profile option freq takes a number from 1 to 100000, not '0'");
    refuses("freq=-1", "not '-1'");
    refuses("interval=19", "profile option interval takes a number from 20 to 3600000, not '19'");
    refuses("depth=1025", "from 0 to 1024");
    refuses("depth=99999999999999999999999", "from 0 to 1024");
    refuses("depth=8x", "not '8x'");
    refuses("timeline=3MB", "bytes, as 4096, 64KiB or 16MiB, not '3MB'");
    refuses("timeline=18446744073709551615GiB", "bytes");
    refuses("steps=5:3", "steps, as 3:5, 3: or :5, not '5:3'");
    refuses("steps=5", "not '5'");
    refuses("depth=4,,frq=1", "'frq'");
    refuses("tape=off", "tape=off needs time=sampled or time=off");
    char text[200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuses(text, "longer than 127 characters");
}

TEST(a_profile_says_what_it_was_asked_for)
{
    char error[400];
    setenv("TAPESCOPE_OPTIONS", "depth=9", 1);
    for (int i = 0; i < 3; i++) {
        const char *const given = i == 1 ? "depth=8,frames=all" : NULL;
        ck_assert_int_eq(
            i == 0 ? ad_profile_start("a.prof") : ad_profile_start_with("a.prof", given), AD_OK);
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
        struct read_profile *profile = read_profile("a.prof", error, sizeof error);
        ck_assert_msg(profile != NULL, "%s", error);
        ck_assert_str_eq(profile->options, i == 0 ? "depth=9" : i == 1 ? given : "");
        read_profile_free(profile);
    }
}

TEST(the_profilers_own_time_is_measured_where_a_clock_runs_by_itself)
{
    static const struct {
        const char *clock;
        bool measured;
    } of[] = {{"step:1000", false}, {"monotonic", true}};
    char error[400];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        setenv("TAPESCOPE_CLOCK", of[i].clock, 1);
        ck_assert_int_eq(ad_profile_start("a.prof"), AD_OK);
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
        struct read_profile *profile = read_profile("a.prof", error, sizeof error);
        ck_assert_msg(profile != NULL, "%s", error);
        ck_assert_int_eq(profile->backward_overhead > 0, of[i].measured);
        read_profile_free(profile);
    }
}

TEST(a_bad_option_begins_no_profile)
{
    ck_assert_int_eq(ad_profile_start_with("a.prof", "depht=8"), AD_ERROR_ARGUMENT);
    ck_assert_str_eq(ad_tape_message(no_tape),
                     "profile_start: no profile option is called 'depht'; there are time, tape, "
                     "freq, interval, depth, frames, unwind, timeline, shapes, steps, warmup, "
                     "snapshot_signal, attach, follow_fork");
    ad_tape_clear_error(no_tape);
    ck_assert_int_eq(access("a.prof", F_OK), -1);
    ck_assert_int_eq(ad_profile_start_with("a.prof", "depth=8"), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
}

RUN_TESTS(setup, teardown)
