/* test_kill.c: a process that records steadily is killed by SIGKILL at random times; its profile is
 * absent, complete, or a valid prefix, in whatever way it is taken.
 *
 * The clock moves 1 s at each reading, so that the collector writes every few ops. TAPESCOPE_KILLS
 * is the number of processes (default 60, with a sanitizer 20), TAPESCOPE_KILL_SEED chooses other
 * times.
 */
#include "program_support.h"
#include "run_cases.h"
#include "sampled_support.h"

#include <tapescope/ad.h>

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 12, SIZE = 16 };

/* A round takes a sanitizer a tenth of a second. */
static uint64_t rounds(void)
{
    return *TEST_SANITIZE_FLAGS ? 9 : 30;
}

static uint64_t ops_of_a_life(void)
{
    return 2 * 3 * STEPS * rounds();
}

/* How profiles are taken; the processes take turns. */
static const struct way {
    const char *options;
    bool counts; /* calls, or only samples */
} way[] = {
    {"", true},
    {"timeline=64KiB,depth=8", true},
    {"time=sampled,tape=on,freq=10000", true},
    {"time=off", true},
    {"time=sampled,freq=10000", false},
};
enum { WAYS = sizeof way / sizeof *way };

/* What the process has begun, seen by the test whenever it dies. */
struct progress {
    uint64_t ops;  /* calls of tanh that began */
    uint64_t done; /* the last statement was reached */
};
static struct progress *progress;

static uint64_t random_state;

/* xorshift64*: the same numbers for the same seed on every machine. */
static uint64_t draw(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- the process that is killed ---- */

static bool step(ad_tape tape, double *data)
{
    ad_tensor x = ad_leaf(tape, AD_F64, 1, (int64_t[]){SIZE}, data), y = x;
    for (int i = 0; i < 3; i++)
        AD_SCOPE("layer", "index", i)
        {
            __atomic_fetch_add(&progress->ops, 1, __ATOMIC_SEQ_CST);
            y = ad_tanh(y);
        }
    return ad_backward(ad_sum(ad_mul(y, x))) == AD_OK && ad_tape_reset(tape) == AD_OK;
}

/* Tapes come and go, snapshots are written over each other, then the profile is completed. */
static void live(const char *options, const char *path, const char *snapshot)
{
    static double data[SIZE] = {0.5, -0.25};
    static const ad_tape_options small = {.budget_bytes = 4 << 20, .reserve_bytes = 4 << 20};
    ad_tape lasting;
    bool ok =
        ad_profile_start_with(path, options) == AD_OK && ad_tape_create(&lasting, &small) == AD_OK;
    for (uint64_t round = 0; ok && round < rounds(); round++) {
        ad_tape passing;
        ok = ad_tape_create(&passing, &small) == AD_OK;
        for (int i = 0; ok && i < STEPS; i++)
            ok = step(lasting, data) && step(passing, data);
        ok = ok && ad_tape_destroy(passing) == AD_OK;
        if (round % (rounds() / 3) == rounds() / 3 - 1)
            ok = ok && ad_profile_write(snapshot) == AD_OK;
    }
    ok = ok && ad_profile_stop() == AD_OK && ad_tape_destroy(lasting) == AD_OK;
    __atomic_store_n(&progress->done, 1, __ATOMIC_SEQ_CST);
    _exit(ok ? 0 : 1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* When a process is killed: once it has begun so many ops, and so many ns later. */
struct when {
    uint64_t ops, ns;
};
static const struct when never = {0, UINT64_MAX};

/* Waits until the process has begun so many ops, or has ended. */
static void wait_for_ops(pid_t child, uint64_t ops)
{
    static const struct timespec pause = {.tv_nsec = 50000};
    siginfo_t ended = {.si_pid = 0};
    while (__atomic_load_n(&progress->ops, __ATOMIC_SEQ_CST) < ops && ended.si_pid == 0) {
        ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        nanosleep(&pause, NULL);
    }
}

/* Starts a process and kills it. Returns the status of wait(). */
static int run(const struct way *how, struct when when)
{
    memset(progress, 0, sizeof *progress);
    unlink(program_path("kill.prof"));
    unlink(program_path("snapshot.prof"));
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        live(how->options, program_path("kill.prof"), program_path("snapshot.prof"));
    wait_for_ops(child, when.ops);
    if (when.ns != UINT64_MAX) {
        struct timespec wait = {.tv_sec = (time_t)(when.ns / 1000000000),
                                .tv_nsec = (long)(when.ns % 1000000000)};
        nanosleep(&wait, NULL);
        kill(child, SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* ---- what it left ---- */

enum left { ABSENT, EMPTY, PREFIX, COMPLETE, KINDS };

static uint64_t tanh_calls(const struct analyze_result *analysis)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (analysis->line[i].ops.n > 0 && strcmp(analysis->line[i].ops.name[0], "tanh") == 0)
            calls += analysis->line[i].cost.calls;
    return calls;
}

static void count_event(void *events, const struct read_profile *profile,
                        const struct read_event *event)
{
    (void)profile;
    *(uint64_t *)events += event->kind == READ_EVENT_FORWARD && strcmp(event->op, "tanh") == 0;
}

/* What a profile is; fails the test if it is anything else. `calls` is what it counted. */
static enum left judge(const char *path, uint64_t *calls)
{
    char error[1024];
    struct stat status;
    *calls = 0;
    if (stat(path, &status) != 0)
        return ABSENT;
    if (status.st_size == 0)
        return EMPTY;
    /* The first write holds the header. */
    uint64_t events = 0;
    struct read_profile *profile =
        read_profile_events(path, count_event, &events, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert_uint_le(events, progress->ops);
    sampled_check(profile);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    program_check_sums(analysis);
    *calls = tanh_calls(analysis);
    enum left left = profile->complete ? COMPLETE : PREFIX;
    if (left == COMPLETE)
        ck_assert_msg(profile->warning == NULL, "%s", profile->warning);
    else
        ck_assert_ptr_nonnull(strstr(profile->warning, "was killed or is still running"));
    analyze_free(analysis);
    read_profile_free(profile);
    return left;
}

static void setup(void)
{
    program_setup();
    setenv("TAPESCOPE_CLOCK", "step:1000000000", 1);
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(progress != MAP_FAILED);
    random_state = setting("TAPESCOPE_KILL_SEED", 20231) | 1;
}

static void teardown(void)
{
    munmap(progress, sizeof *progress);
    program_teardown();
}

/* A profile has as many calls as there were, if it was completed and counts them. */
static void check_calls(const struct way *how, enum left left, uint64_t calls)
{
    ck_assert_int_eq(left, COMPLETE);
    ck_assert_uint_eq(calls, how->counts ? progress->ops : 0);
}

TEST_EACH(a_process_that_is_left_alone_completes_its_profile, WAYS)
{
    uint64_t calls;
    int status = run(&way[_i], never);
    ck_assert_msg(status == 0, "%s: status %#x", way[_i].options, (unsigned)status);
    ck_assert_uint_eq(progress->ops, ops_of_a_life());
    enum left left = judge(program_path("kill.prof"), &calls);
    check_calls(&way[_i], left, calls);
    left = judge(program_path("snapshot.prof"), &calls);
    check_calls(&way[_i], left, calls);
}

/* The shortest of three lives; of one with a sanitizer, where a life takes seconds. */
static uint64_t life_of(const struct way *how)
{
    uint64_t life = UINT64_MAX;
    for (int i = 0; i < (*TEST_SANITIZE_FLAGS ? 1 : 3); i++) {
        uint64_t start = now_ns();
        ck_assert_int_eq(run(how, never), 0);
        uint64_t took = now_ns() - start;
        life = took < life ? took : life;
    }
    return life;
}

TEST(a_process_killed_at_any_time_leaves_nothing_or_a_prefix_or_all)
{
    const uint64_t usual = *TEST_SANITIZE_FLAGS ? 20 : 60;
    uint64_t kills = setting("TAPESCOPE_KILLS", usual), seen[KINDS] = {0}, counted = 0, life[WAYS];
    for (int i = 0; i < WAYS; i++)
        life[i] = life_of(&way[i]);
    for (uint64_t i = 0; i < kills; i++) {
        /* One in sixteen is given time to end; of the others one in two dies at any time of a life,
         * as long as that was when it was measured, and one in two at any of its ops. */
        const struct way *how = &way[i % WAYS];
        const struct when by_time = {0, draw() % life[i % WAYS]},
                          by_op = {draw() % ops_of_a_life(), 0};
        uint64_t calls;
        int status = run(how, i % 16 == 15 ? never : i % 2 ? by_op : by_time);
        ck_assert_msg(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
                      "run %llu, %s: status %#x", (unsigned long long)i, how->options,
                      (unsigned)status);
        enum left left = judge(program_path("kill.prof"), &calls);
        ck_assert_uint_le(calls, progress->ops);
        if (progress->done)
            check_calls(how, left, calls);
        seen[left]++;
        counted += left == PREFIX && calls > 0;
        judge(program_path("snapshot.prof"), &calls);
        ck_assert_uint_le(calls, progress->ops);
    }
    printf("killed %llu times, a life of %.1f ms: %llu absent, %llu empty, %llu prefixes (%llu "
           "with costs), %llu complete\n",
           (unsigned long long)kills, (double)life[0] / 1e6, (unsigned long long)seen[ABSENT],
           (unsigned long long)seen[EMPTY], (unsigned long long)seen[PREFIX],
           (unsigned long long)counted, (unsigned long long)seen[COMPLETE]);
    if (kills >= 16) {
        ck_assert_uint_gt(counted, 0);
        ck_assert_uint_gt(seen[COMPLETE], 0);
    }
}

int main(void)
{
    TCase *tests = file_cases(&file_tests, setup, teardown);
    tcase_set_timeout(tests, 0); /* as many as are asked for */
    return run_cases("kill", tests);
}
