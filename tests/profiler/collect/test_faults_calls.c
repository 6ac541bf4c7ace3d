/* test_faults_calls.c: every call that the collector makes of the system, and every allocation,
 * fails once and from then on, over every workload: a profile lost is never a result changed. The
 * tests take a sample of the calls (exhaustive.h).
 */
#include "exhaustive.h"
#include "fault_workloads.h"
#include "profile_frame.h"
#include "read.h"
#include "run_cases.h"
#include "shim.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128], snapshot[128];

static void setup(void)
{
    /* In memory, if it can be: a disk takes its time for thousands of files. */
    snprintf(folder, sizeof folder, "%s/tapescope-calls-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.prof", folder);
    snprintf(snapshot, sizeof snapshot, "%s/b.prof", folder);
    /* The clock moves 1 ms at each reading: the collector writes many times. */
    setenv("TAPESCOPE_CLOCK", "step:1000000", 1);
    ck_assert_int_eq(ad_profile_start(path), AD_OK);
    AD_SCOPE("second", "run", 2)
    { /* known to the process from now on, so that all runs are alike */
    }
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert(shim_watch("/tapescope-collect.so"));
}

static void teardown(void)
{
    remove(path);
    remove(snapshot);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- one run ---- */

/* What came of a profile taken over a workload. */
struct outcome {
    ad_status started, written, stopped;
    char why[3][512]; /* what the three said */
    ad_status worked[2];
    struct fault_results results[2];
};

static const ad_tape thread = {0, 0};

static ad_status noted(ad_status status, char *why)
{
    snprintf(why, 512, "%s", status == AD_OK ? "" : ad_tape_message(thread));
    ad_tape_clear_error(thread);
    return status;
}

/* One workload has scopes and a timeline as well. */
static bool has_more(const struct fault_workload *w)
{
    return w == fault_workloads;
}

/* A tape that is destroyed while it is observed, and one that outlives the profile. No assertion:
 * the shim is armed. */
static struct outcome take_profile(const struct fault_workload *w)
{
    static struct outcome out;
    ad_tape first = {0, 0}, second = {0, 0};
    memset(&out, 0, sizeof out);
    ad_tape_options options = {.reserve_bytes = 4 << 20};
    void *guest = dlopen("libutil.so.1", RTLD_NOW); /* a library that goes in the middle */
    out.started =
        noted(ad_profile_start_with(path, has_more(w) ? "timeline=64KiB" : NULL), out.why[0]);
    out.worked[0] = ad_tape_create(&first, &options);
    if (out.worked[0] == AD_OK)
        out.worked[0] = fault_run(w, first, &out.results[0]);
    out.worked[0] = guest && dlclose(guest) == 0 ? out.worked[0] : AD_ERROR_STATE;
    out.worked[1] = ad_tape_create(&second, &options);
    if (out.worked[1] == AD_OK && has_more(w)) {
        AD_SCOPE("second", "run", 2)
        {
            AD_EXPECT_TAPE_BYTES(1);
            out.worked[1] = fault_run(w, second, &out.results[1]);
        }
    } else if (out.worked[1] == AD_OK) {
        out.worked[1] = fault_run(w, second, &out.results[1]);
    }
    ad_tape_destroy(first);
    out.written = noted(ad_profile_write(snapshot), out.why[1]);
    out.stopped = noted(ad_profile_stop(), out.why[2]);
    ad_tape_destroy(second);
    return out;
}

/* ---- what a file holds ---- */

struct content {
    size_t bytes; /* SIZE_MAX: there is no file */
    bool readable, complete;
    size_t arguments, packets;
    uint64_t calls, handed_out, left_out;
    char program[512];
};

/* What is there must be a prefix of a profile: frames are whole, but for the last. */
static struct content read_content(const char *from, size_t least)
{
    struct content content = {.bytes = SIZE_MAX};
    char error[1024];
    struct stat st;
    if (stat(from, &st) != 0)
        return content;
    content.bytes = (size_t)st.st_size;
    struct read_profile *profile = read_profile(from, error, sizeof error);
    if (!profile) {
        ck_assert_msg(content.bytes < least, "%zu bytes: %s", content.bytes, error);
        return content;
    }
    ck_assert_msg(!profile->warning || !strstr(profile->warning, "damaged"), "%s",
                  profile->warning);
    ck_assert(profile->complete || profile->warning);
    content.readable = true;
    content.complete = profile->complete && !profile->warning;
    content.arguments = profile->n_arguments;
    content.packets = profile->n_packets;
    content.left_out = profile->events_left_out;
    snprintf(content.program, sizeof content.program, "%s", profile->program);
    for (size_t i = 0; i < profile->n_tapes; i++) {
        content.handed_out += profile->tape[i].handed_out_bytes;
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            content.calls += profile->tape[i].row[j].calls;
    }
    read_profile_free(profile);
    return content;
}

/* Magic and header: what is shorter is no profile yet. */
static size_t head_bytes(const char *from)
{
    uint8_t head[PROFILE_MAGIC_BYTES + PROFILE_FRAME_BYTES];
    uint32_t n = 0, crc;
    FILE *file = fopen(from, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(head, 1, sizeof head, file), sizeof head);
    fclose(file);
    ck_assert(profile_frame_get(head + PROFILE_MAGIC_BYTES, &n, &crc));
    return sizeof head + n;
}

/* ---- what must hold ---- */

/* What a workload gives where nothing fails. */
static struct outcome expected;
static struct content whole, whole_snapshot;
static size_t head;
static int descriptors;

/* Returns how many calls of this kind there are. */
static int learn(const struct fault_workload *w, enum shim_kind kind)
{
    /* A module that a workload loads, to look up a line, is in the profile of its first run. */
    ck_assert_int_eq(take_profile(w).stopped, AD_OK);
    shim_arm(kind, 0, false);
    expected = take_profile(w);
    const int calls = shim_disarm();
    ck_assert_msg(expected.started == AD_OK, "%s", expected.why[0]);
    ck_assert_msg(expected.written == AD_OK, "%s", expected.why[1]);
    ck_assert_msg(expected.stopped == AD_OK, "%s", expected.why[2]);
    ck_assert_int_eq(expected.worked[0], AD_OK);
    ck_assert_int_eq(expected.worked[1], AD_OK);
    head = head_bytes(path);
    whole = read_content(path, head);
    whole_snapshot = read_content(snapshot, head);
    ck_assert(whole.complete && whole_snapshot.complete);
    ck_assert_uint_gt(whole.arguments, 0);
    ck_assert_int_eq(whole.program[0], '/');
    descriptors = shim_count_descriptors();
    return calls;
}

/* As much as the file says, it says rightly; a complete one says all. */
static void check_content(const struct content *got, const struct content *all, bool strict)
{
    if (!got->readable)
        return;
    ck_assert_str_eq(got->program, all->program);
    ck_assert(got->arguments == all->arguments || (!strict && got->arguments == 0));
    ck_assert_uint_le(got->calls, all->calls);
    if (got->complete) {
        ck_assert_uint_eq(got->calls, all->calls);
        ck_assert_uint_eq(got->handed_out, all->handed_out);
        /* Events for which there was no memory lack a packet, and are counted in one of its own. */
        ck_assert(got->packets == all->packets || got->left_out > 0);
    }
}

static void check_status(ad_status status, const char *why, const char *what)
{
    char begin[128];
    if (status == AD_OK)
        return;
    ck_assert_int_eq(status, AD_ERROR_PROFILE);
    snprintf(begin, sizeof begin, "profile_%s: cannot write %s", what, folder);
    ck_assert_msg(strncmp(why, begin, strlen(begin)) == 0, "%s", why);
}

/* One line where a profile that began ends early, and otherwise nothing. */
static void check_warning(bool wanted)
{
    const char *end = strchr(shim_said, '\n');
    ck_assert_msg(wanted == (end != NULL) && (!end || end[1] == '\0'), "said '%s'", shim_said);
    if (wanted)
        ck_assert_ptr_nonnull(strstr(shim_said, path));
}

static void check_outcome(const struct outcome *out, enum shim_kind kind)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(out->worked[i], AD_OK);
        ck_assert_mem_eq(&out->results[i], &expected.results[i], sizeof out->results[i]);
    }
    ck_assert_int_eq(shim_count_descriptors(), descriptors);
    struct content got = read_content(path, head), got_snapshot = read_content(snapshot, head);
    check_content(&got, &whole, kind == SHIM_MEMORY || shim_is_harmless(kind));
    check_content(&got_snapshot, &whole_snapshot, kind == SHIM_MEMORY || shim_is_harmless(kind));
    check_status(out->started, out->why[0], "start");
    if (out->started != AD_OK) {
        ck_assert_int_eq(out->written, AD_ERROR_STATE);
        ck_assert_int_eq(out->stopped, AD_ERROR_STATE);
        ck_assert(!got.complete);
        check_warning(false);
        return;
    }
    check_status(out->written, out->why[1], "write");
    check_status(out->stopped, out->why[2], "stop");
    ck_assert(got_snapshot.complete || out->written != AD_OK);
    ck_assert(got.complete || out->stopped != AD_OK);
    check_warning(out->stopped != AD_OK);
    if (shim_is_harmless(kind)) {
        ck_assert_int_eq(out->written, AD_OK);
        ck_assert_int_eq(out->stopped, AD_OK);
    }
}

static void check_later_profile(void)
{
    remove(path);
    ck_assert_int_eq(ad_profile_start(path), AD_OK);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert(read_content(path, head).complete);
}

/* Which calls of a workload fail. In every TELLING-th workload the first and the last call from
 * each place do; besides, in each that is run the first call and one of STEP, another in the next.
 * A kind of failure has one workload of TURNS, the next kind the next: what a workload is changes
 * little in how its profile is written. */
enum { TELLING = 16, STEP = 96, TURNS = 3, MOST_CALLS = 1 << 16 };
static bool chosen[MOST_CALLS];

static void choose(const struct fault_workload *w, int calls)
{
    const int number = (int)(w - fault_workloads), step = (int)exhaustive_step(STEP);
    ck_assert_int_lt(calls, MOST_CALLS);
    for (int n = 1; n <= calls; n++)
        chosen[n] =
            n == 1 || (n + number) % step == 0 || (number % TELLING == 0 && shim_is_telling(n));
    memset(chosen + calls + 1, true, sizeof chosen - (size_t)calls - 1);
}

/* Each chosen n until the workload makes no call of that number. Returns how many there were. */
static int fail_each(const struct fault_workload *w, enum shim_kind kind, bool sticky, int *failed)
{
    for (int n = 1;; n++) {
        if (!chosen[n])
            continue;
        remove(path);
        remove(snapshot);
        shim_arm(kind, n, sticky);
        struct outcome out = take_profile(w);
        int calls = shim_disarm();
        check_outcome(&out, kind);
        *failed += out.started != AD_OK || out.written != AD_OK || out.stopped != AD_OK;
        if (calls < n) {
            ck_assert_int_eq(out.stopped, AD_OK);
            return calls;
        }
        check_later_profile();
    }
}

static void fail_all(enum shim_kind kind, int least)
{
    for (int i = 0; i < fault_workload_count; i++) {
        const struct fault_workload *w = &fault_workloads[i];
        int failed[2] = {0, 0};
        if (!exhaustive_is_asked() && i % TELLING != 0 && i % TURNS != (int)kind % TURNS)
            continue;
        choose(w, learn(w, kind));
        int once = fail_each(w, kind, false, &failed[0]);
        int sticky = fail_each(w, kind, true, &failed[1]);
        ck_assert_msg(once >= least, "%s, %s: only %d calls", w->name, shim_kind_name[kind], once);
        ck_assert_int_ge(sticky, least);
        for (int j = 0; j < 2; j++)
            ck_assert_int_eq(failed[j] > 0, !shim_is_harmless(kind));
    }
}

TEST_EACH(a_profile_whose_calls_fail_one_by_one_changes_nothing_else, 6)
{
    static const struct {
        enum shim_kind kind;
        int least; /* of calls that a workload makes */
    } cases[] = {
        {SHIM_EIO, 20},   {SHIM_ENOSPC, 12},  {SHIM_EMFILE, 3},
        {SHIM_EINTR, 12}, {SHIM_ONE_BYTE, 8}, {SHIM_HALF, 8},
    };
    fail_all(cases[_i].kind, cases[_i].least);
}

TEST(a_profile_whose_allocations_fail_one_by_one_changes_nothing_else)
{
    fail_all(SHIM_MEMORY, 40);
}

int main(void)
{
    TCase *calls = file_cases(&file_tests, setup, teardown);
    tcase_set_timeout(calls, exhaustive_is_asked() ? 0 : 60);
    return run_cases("faults_calls", calls);
}
