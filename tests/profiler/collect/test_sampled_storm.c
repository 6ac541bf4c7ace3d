/* test_sampled_storm.c: samples at 10 kHz, or every op measured and kept as an event, while
 * everything else goes on: libraries come and go, threads too, memory is taken and given, the
 * process forks.
 *
 * No thread may stand still for good, and results stay the same bit for bit.
 * TAPESCOPE_STORM_SECONDS is for how long samples are taken (2), TAPESCOPE_STORM_STILL_MS for how
 * long a thread may take for a step (any time, as other processes may keep it from the processor).
 */
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include "program_support.h"
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 48 };

static char folder[64], path[128];
static bool stop; /* atomic */

static void setup(void)
{
    strcpy(folder, "/tmp/tapescope-storm-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.prof", folder);
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
}

static void teardown(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* What a thread of the storm does again and again, and how often it has. */
struct worker {
    void (*step)(void);
    pthread_t thread;
    uint64_t steps; /* atomic */
};

static void *work(void *payload)
{
    struct worker *w = payload;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        w->step();
        __atomic_add_fetch(&w->steps, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void load_libraries(void)
{
    static const char *const name[] = {"libz.so.1", "liblzma.so.5", "libm.so.6", "librt.so.1"};
    for (int i = 0; i < 4; i++) {
        void *library = dlopen(name[i], RTLD_NOW);
        if (library) {
            (void)dlsym(library, "inflate");
            dlclose(library);
        }
    }
}

static void take_memory(void)
{
    void *p[64];
    for (size_t i = 0; i < 64; i++)
        p[i] = malloc(16 + 97 * i);
    for (size_t i = 0; i < 64; i++)
        free(p[i]);
}

static void *spin(void *nothing)
{
    volatile double x = 1;
    for (int i = 0; i < 20000; i++)
        x = x * 1.0001;
    return nothing;
}

static void *spin_until_cancelled(void *nothing)
{
    for (bool ended = false; !ended; ended = __atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        spin(nothing);
        pthread_testcancel();
    }
    return nothing;
}

/* Every other one is cancelled. */
static void start_a_thread(void)
{
    static unsigned n;
    const bool cancelled = n++ % 2;
    pthread_t thread;
    if (pthread_create(&thread, NULL, cancelled ? spin_until_cancelled : spin, NULL) != 0)
        return;
    if (cancelled)
        pthread_cancel(thread);
    pthread_join(thread, NULL);
}

/* Every eighth becomes another program. */
static void fork_a_child(void)
{
    static unsigned n;
    const struct timespec pause = {.tv_nsec = 500000};
    char *const argv[] = {(char *)"true", NULL};
    pid_t child = -1;
    if (n++ % 8 == 0)
        (void)posix_spawnp(&child, "true", NULL, NULL, argv, environ);
    else if ((child = fork()) == 0)
        _exit(0);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    nanosleep(&pause, NULL);
}

/* ---- what is computed meanwhile ---- */

enum { VALUES = N * N + 1 };

static void compute_tensors(ad_tape tape, double *out)
{
    static double x[N * N], w[N * N];
    const int64_t shape[] = {N, N};
    for (int i = 0; i < N * N; i++) {
        x[i] = 0.01 * (i % 7 - 3);
        w[i] = 0.02 * (i % 5 - 2);
    }
    ad_tape_reset(tape);
    ad_tensor a = ad_leaf(tape, AD_F64, 2, shape, x), b = ad_leaf(tape, AD_F64, 2, shape, w);
    ad_tensor y = b;
    AD_SCOPE("layer")
    {
        y = ad_sum(ad_tanh(ad_matmul(a, b)));
    }
    (void)!ad_backward(y);
    (void)!ad_gradient(b, out, N * N);
    ad_value(y, out + N * N, 1);
}

static void compute_scalars(ad_tape tape, double *out)
{
    double start[N];
    ad_real x[N], y;
    for (int i = 0; i < N; i++)
        start[i] = 0.1 * i;
    ad_tape_reset(tape);
    ad_real_leaves(tape, N, start, x);
    ad_set(&y, ad_real_mul(x[0], x[1]));
    for (int i = 0; i < 20 * N; i++)
        ad_set(&y, ad_real_add(ad_real_mul(y, 0.9), ad_real_mul(ad_real_sin(x[i % N]), 0.5)));
    (void)!ad_real_backward(tape, y);
    memset(out, 0, VALUES * sizeof *out);
    (void)!ad_real_gradients(tape, N, x, out);
    out[N] = y.value;
}

static void (*const compute[2])(ad_tape tape, double *out) = {compute_tensors, compute_scalars};
static double expected[2][VALUES];
static uint64_t wrong; /* atomic: results that are not the expected ones, bit for bit */

static void check_results(int which)
{
    static _Thread_local ad_tape tape;
    static _Thread_local bool has_tape;
    double out[VALUES];
    if (!has_tape && ad_tape_create(&tape, NULL) == AD_OK)
        has_tape = true;
    compute[which](tape, out);
    if (ad_tape_status(tape) != AD_OK || memcmp(out, expected[which], sizeof out) != 0)
        __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        ad_tape_destroy(tape);
        has_tape = false;
    }
}

static void compute_once(int which)
{
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    compute[which](tape, expected[which]);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static void tensors(void)
{
    check_results(0);
}

static void scalars(void)
{
    check_results(1);
}

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* What interrupts a thread leaves its errno alone. */
static void keep_errno(void)
{
    errno = EDOM;
    spin(NULL);
    if (errno != EDOM)
        __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

/* Waits for so long, and until each worker has made a step after that. */
static void watch(struct worker *worker, int n, long seconds)
{
    const long most = setting("TAPESCOPE_STORM_STILL_MS", LONG_MAX);
    uint64_t before[16] = {0};
    long still[16] = {0}, longest = 0;
    uint64_t last[16] = {0};
    bool steps_on = false;
    for (long ms = 0; ms < seconds * 1000 || !steps_on; ms += 100) {
        steps_on = true;
        struct timespec left = {.tv_nsec = 100000000};
        while (nanosleep(&left, &left) != 0) {
        }
        for (int i = 0; i < n; i++) {
            const uint64_t steps = __atomic_load_n(&worker[i].steps, __ATOMIC_RELAXED);
            still[i] = steps == before[i] ? still[i] + 100 : 0;
            before[i] = steps;
            if (ms < seconds * 1000)
                last[i] = steps;
            steps_on = steps_on && steps > last[i];
            longest = still[i] > longest ? still[i] : longest;
            ck_assert_msg(still[i] <= most, "worker %d stands still", i);
        }
    }
    printf("%ld s, the longest step took less than %ld ms\n", seconds, longest + 200);
}

/* The ways that profiles are taken, and how much of the time each has. */
static const struct way {
    const char *options;
    long part;
} way[] = {
    {"time=sampled,tape=on,freq=10000", 1},
    {"timeline=1MiB", 5},
};
enum { WAYS = sizeof way / sizeof *way };

static void check_profile(void)
{
    struct program_profile opened = program_open(path);
    ck_assert(opened.profile->complete);
    sampled_check(opened.profile);
    program_check_sums(opened.analysis);
    ck_assert_uint_gt(opened.analysis->total.handed_out_bytes, 0);
    uint64_t fired = 0;
    for (size_t i = 0; i < opened.profile->n_threads; i++)
        fired += opened.profile->thread[i].fired;
    if (opened.profile->is_sampled) {
        ck_assert_uint_ge(opened.profile->n_threads, 3);
        ck_assert_uint_gt(fired, 0);
    } else {
        ck_assert_uint_gt(opened.profile->n_events, 0);
        ck_assert_uint_gt(opened.analysis->total.backward_ns, 0);
    }
    program_close(&opened);
}

TEST_EACH(nothing_stands_still_and_no_bit_changes_in_a_storm, WAYS)
{
    static struct worker worker[] = {
        {.step = tensors},     {.step = scalars},      {.step = load_libraries},
        {.step = take_memory}, {.step = fork_a_child}, {.step = start_a_thread},
        {.step = keep_errno},
    };
    enum { WORKERS = sizeof worker / sizeof *worker };
    const long seconds = setting("TAPESCOPE_STORM_SECONDS", 2) / way[_i].part;
    compute_once(0);
    compute_once(1);
    ck_assert_int_eq(ad_profile_start_with(path, way[_i].options), AD_OK);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    watch(worker, WORKERS, seconds > 0 ? seconds : 1);
    for (bool seen = _i > 0; !seen;) {
        struct read_profile *profile = sampled_fetch();
        seen = profile->n_threads >= 3 && sampled_held(profile, 0) > 0;
        read_profile_free(profile);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_join(worker[i].thread, NULL), 0);
    ck_assert_int_eq(ad_profile_stop(), AD_OK);
    ck_assert_uint_eq(wrong, 0);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_uint_gt(worker[i].steps, 0);
    check_profile();
}

/* Sampling begins and ends again and again while threads compute. */
TEST(sampling_can_begin_and_end_at_any_time)
{
    static struct worker worker[] = {
        {.step = tensors}, {.step = scalars}, {.step = start_a_thread}};
    enum { WORKERS = sizeof worker / sizeof *worker, ROUNDS = 40 };
    compute_once(0);
    compute_once(1);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    for (int i = 0; i < ROUNDS; i++) {
        const struct timespec pause = {.tv_nsec = 1000000L * (i % 4)};
        ck_assert_int_eq(ad_profile_start_with(path, "time=sampled,freq=10000"), AD_OK);
        nanosleep(&pause, NULL);
        ck_assert_int_eq(ad_profile_stop(), AD_OK);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_join(worker[i].thread, NULL), 0);
    ck_assert_uint_eq(wrong, 0);
}

int main(void)
{
    TCase *cases = file_cases(&file_tests, setup, teardown);
    tcase_set_timeout(cases, 120 + (double)setting("TAPESCOPE_STORM_SECONDS", 2));
    return run_cases("sampled_storm", cases);
}
