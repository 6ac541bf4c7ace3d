/* sampled_support.c: see sampled_support.h. */
#include "sampled_support.h"
#include "check_quietly.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

char sampled_folder[64], sampled_path[128], sampled_logged[4096];
int sampled_n_logged;
unsigned sampled_matmul_line, sampled_statement_line;

static void keep_log(ad_log_level level, const char *message, void *payload)
{
    (void)level;
    (void)payload;
    snprintf(sampled_logged, sizeof sampled_logged, "%s", message);
    __atomic_add_fetch(&sampled_n_logged, 1, __ATOMIC_RELEASE); /* another thread looks */
}

void sampled_setup(void)
{
    strcpy(sampled_folder, "/tmp/tapescope-sampled-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(sampled_folder));
    snprintf(sampled_path, sizeof sampled_path, "%s/a.prof", sampled_folder);
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    sampled_n_logged = 0;
    sampled_logged[0] = '\0';
    ad_on_log(keep_log, NULL);
}

void sampled_teardown(void)
{
    DIR *list = opendir(sampled_folder);
    for (const struct dirent *entry; list && (entry = readdir(list)) != NULL;) {
        char name[400];
        snprintf(name, sizeof name, "%s/%s", sampled_folder, entry->d_name);
        if (entry->d_name[0] != '.')
            remove(name);
    }
    if (list)
        closedir(list);
    ck_assert_int_eq(rmdir(sampled_folder), 0);
}

static uint64_t clock_ns(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t sampled_tid(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

uint64_t sampled_thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t sampled_process_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static double cpu_seconds(void)
{
    return 1e-9 * (double)sampled_process_ns();
}

double sampled_tensor_step(ad_tape tape, double *gradient)
{
    static double x[SAMPLED_N * SAMPLED_N], w[SAMPLED_N * SAMPLED_N];
    const int64_t shape[] = {SAMPLED_N, SAMPLED_N};
    double value = 0;
    for (int i = 0; i < SAMPLED_N * SAMPLED_N; i++) {
        x[i] = 0.01 * (i % 7 - 3);
        w[i] = 0.02 * (i % 5 - 2);
    }
    ad_tape_reset(tape);
    ad_tensor a = ad_leaf(tape, AD_F64, 2, shape, x), b = ad_leaf(tape, AD_F64, 2, shape, w);
    sampled_matmul_line = __LINE__ + 1;
    ad_tensor product = ad_matmul(a, b);
    ad_tensor y = ad_sum(ad_tanh(product));
    (void)!ad_backward(y);
    (void)!ad_gradient(b, gradient, SAMPLED_N * SAMPLED_N);
    ad_value(y, &value, 1);
    return value;
}

static double scalar_step(ad_tape tape)
{
    const double start[2] = {0.3, 0.4};
    ad_real x[2], y;
    ad_tape_reset(tape);
    ad_real_leaves(tape, 2, start, x);
    ad_set(&y, ad_real_mul(x[0], x[1]));
    for (int i = 0; i < 20000; i++) {
        sampled_statement_line = __LINE__ + 1;
        ad_set(&y, ad_real_add(ad_real_mul(y, 0.9), ad_real_mul(x[0], x[1])));
    }
    (void)!ad_real_backward(tape, y);
    return y.value;
}

double sampled_compute(double seconds)
{
    static double gradient[SAMPLED_N * SAMPLED_N];
    const double begin = cpu_seconds();
    double sum = 0;
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    do {
        sum = sampled_tensor_step(tape, gradient) + scalar_step(tape);
        for (int i = 0; i < SAMPLED_N * SAMPLED_N; i++)
            sum += gradient[i];
    } while (cpu_seconds() - begin < seconds);
    ck_assert_int_eq(ad_tape_status(tape), AD_OK);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
    return sum;
}

struct read_profile *sampled_fetch(void)
{
    void *data;
    size_t bytes;
    char error[400];
    ck_assert_int_eq(ad_profile_fetch(&data, &bytes), AD_OK);
    FILE *stream = fmemopen(data, bytes, "rb");
    struct read_profile *profile = read_profile_stream(stream, "memory", error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    fclose(stream);
    free(data);
    sampled_check(profile);
    return profile;
}

void sampled_compute_until(bool (*there)(const struct read_profile *profile))
{
    /* Looking may take longer than what is looked for. */
    double seconds = 0.02;
    bool done = false;
    while (!done) {
        sampled_compute(seconds);
        seconds *= 2;
        struct read_profile *profile = sampled_fetch();
        done = there(profile);
        read_profile_free(profile);
    }
}

static bool any(const struct read_profile *profile)
{
    return sampled_held(profile, 0) > 0;
}

void sampled_compute_until_sampled(void)
{
    sampled_compute_until(any);
}

static const struct read_thread *thread_of(const struct read_profile *profile, uint32_t index)
{
    for (size_t i = 0; i < profile->n_threads; i++)
        if (profile->thread[i].index == index)
            return &profile->thread[i];
    return NULL;
}

uint64_t sampled_held(const struct read_profile *profile, uint64_t tid)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_thread *thread = thread_of(profile, profile->sample[i].thread);
        ns += tid == 0 || (thread && thread->tid == tid) ? profile->sample[i].cpu_ns : 0;
    }
    return ns;
}

/* Samples of this thread at work in an op: what was before is in them, or in earlier ones. */
static uint64_t in_ops(void)
{
    struct read_profile *profile = sampled_fetch();
    uint64_t n = 0;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->sample[i];
        const struct read_thread *thread = thread_of(profile, sample->thread);
        if (sample->phase != READ_PHASE_NONE && sample->waiting == READ_WAITING_NONE && thread &&
            thread->tid == sampled_tid())
            n += sample->count;
    }
    read_profile_free(profile);
    return n;
}

uint64_t sampled_compute_past(void (*compute)(void))
{
    const uint64_t now = sampled_thread_ns(), n = in_ops();
    do
        compute();
    while (in_ops() == n);
    return now;
}

void sampled_check(const struct read_profile *profile)
{
    uint64_t kept = 0, counted = 0;
    for (size_t i = 0; i < profile->n_threads; i++) {
        const struct read_thread *t = &profile->thread[i];
        ck_assert_uint_eq(t->fired, t->recorded + t->partial + t->lost + t->outside);
        kept += t->recorded + t->partial;
    }
    for (size_t i = 0; i < profile->n_samples; i++)
        counted += profile->sample[i].count;
    ck_assert_uint_eq(counted, kept);
}

struct read_profile *sampled_read(const char *from)
{
    char error[400];
    struct read_profile *profile = read_profile(from, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    sampled_check(profile);
    return profile;
}

uint64_t sampled_count(const char *from)
{
    struct read_profile *profile = sampled_read(from);
    uint64_t n = 0;
    for (size_t i = 0; i < profile->n_samples; i++)
        n += profile->sample[i].count;
    read_profile_free(profile);
    return n;
}

struct analyze_cost sampled_cost(const struct analyze_result *analysis, unsigned line)
{
    struct analyze_cost sum = {0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *at = &analysis->line[i];
        if (at->file && strstr(at->file, "sampled_support.c") && at->line == line)
            analyze_cost_add(&sum, &at->cost);
    }
    return sum;
}
