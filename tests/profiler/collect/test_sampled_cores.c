/* test_sampled_cores.c: samples within ops are charged to their ops, whichever kernels the library
 * for products uses, whose code no stack can be followed out of.
 *
 * Which kernels it uses is decided when a process begins, so that each case is this program once
 * more, with an argument.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run_cases.h"
#include "sampled_support.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 320 };

static const char *const core[] = {NULL, "Haswell", "Zen", "Sandybridge", "Prescott", "SkylakeX"};
enum { CORES = sizeof core / sizeof *core };

/* Of the library for products; NULL where it has kernels for one kind of processor alone. */
extern char *openblas_get_corename(void) __attribute__((weak));

/* Whether the kernels are those that the environment asks for. */
static bool has_its_core(void)
{
    const char *wanted = getenv("OPENBLAS_CORETYPE");
    return !wanted || (openblas_get_corename && strcasecmp(openblas_get_corename(), wanted) == 0);
}

/* Whether an address lies in the library for products. */
static bool in_blas(const struct read_profile *profile, uint64_t pc)
{
    for (size_t i = 0; i < profile->n_mappings; i++) {
        const struct read_mapping *m = &profile->mapping[i];
        if (pc >= m->start && pc < m->end)
            return strstr(m->path, "blas") != NULL;
    }
    return false;
}

/* Samples of the process's first thread in ops, those of it in the library for products that are no
 * op's, and those of other threads that are an op's. */
struct counts {
    uint64_t ops, stray, shared;
};

static struct counts count(const struct read_profile *profile)
{
    struct counts counts = {0};
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *s = &profile->sample[i];
        bool is_first = false;
        for (size_t k = 0; k < profile->n_threads; k++)
            is_first |=
                profile->thread[k].index == s->thread && profile->thread[k].tid == profile->pid;
        if (s->phase != READ_PHASE_NONE)
            *(is_first ? &counts.ops : &counts.shared) += s->count;
        else if (is_first && s->n_stack > 0 && in_blas(profile, s->stack[0]))
            counts.stray += s->count;
    }
    return counts;
}

/* As the parent wants it: enough samples in ops, of all threads that multiply. */
static bool is_enough(bool with_others)
{
    void *data;
    size_t bytes;
    char error[400];
    if (ad_profile_fetch(&data, &bytes) != AD_OK)
        return true;
    FILE *stream = fmemopen(data, bytes, "rb"); /* not by Check: it is another program's process */
    struct read_profile *profile = read_profile_stream(stream, "memory", error, sizeof error);
    const struct counts counts = profile ? count(profile) : (struct counts){0};
    read_profile_free(profile);
    fclose(stream);
    free(data);
    return counts.ops > 50 && (counts.shared > 0 || !with_others);
}

/* The process under test: products large enough for several threads, forward and backward. */
static int multiply(const char *path)
{
    const int64_t shape[] = {SIZE, SIZE};
    static double x[SIZE * SIZE], w[SIZE * SIZE];
    ad_tape tape;
    const char *const threads = getenv("OPENBLAS_NUM_THREADS");
    const bool with_others = threads && strcmp(threads, "1") != 0;
    int products = 0;
    if (!has_its_core())
        return 5;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (int i = 0; i < SIZE * SIZE; i++) {
        x[i] = 0.001 * (i % 11);
        w[i] = 0.001 * (i % 13);
    }
    if (ad_profile_start_with(path, "time=sampled,freq=1000") != AD_OK)
        return 3;
    do {
        ad_tape_reset(tape);
        ad_tensor a = ad_leaf(tape, AD_F64, 2, shape, x), b = ad_leaf(tape, AD_F64, 2, shape, w);
        (void)!ad_backward(ad_sum(ad_matmul(ad_matmul(a, b), b)));
    } while (ad_tape_status(tape) == AD_OK && (++products % 20 != 0 || !is_enough(with_others)));
    const bool ok = ad_tape_status(tape) == AD_OK && ad_profile_stop() == AD_OK;
    ad_tape_destroy(tape);
    return ok ? 0 : 4;
}

/* Whether the processor has what kernels for SkylakeX use. */
static bool has_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

/* On one processor the library for products has one thread, whatever it is asked for. */
static bool has_processors(int n)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) >= n;
}

static void run(const char *name, const char *threads)
{
    const pid_t child = fork();
    if (child == 0) {
        setenv("OPENBLAS_NUM_THREADS", threads, 1);
        if (name)
            setenv("OPENBLAS_CORETYPE", name, 1);
        else
            unsetenv("OPENBLAS_CORETYPE");
        execl("/proc/self/exe", "test_sampled_cores", "multiply", sampled_path, (char *)NULL);
        _exit(9);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    ck_assert_msg(status == 0, "%s, %s threads: %x", name ? name : "own", threads, status);
}

/* While the first thread is in the library for products, it is in an op. What others do there may
 * be to wait for work. */
TEST_EACH(samples_within_ops_are_the_ops, 2 * CORES)
{
    const char *const name = core[_i / 2];
    if (name && strcmp(name, "SkylakeX") == 0 && !has_avx512())
        return;
    if (!has_processors(1 + _i % 2)) {
        puts("two threads: not on one processor");
        return;
    }
#ifndef __x86_64__
    if (name)
        return;
#endif
    run(name, _i % 2 ? "2" : "1");
    struct read_profile *profile = sampled_read(sampled_path);
    const struct counts counts = count(profile);
    ck_assert_uint_gt(counts.ops, 50);
    ck_assert_msg(counts.stray == 0, "%s, %d threads: %llu of an op, %llu of none",
                  name ? name : "own", 1 + _i % 2, (unsigned long long)counts.ops,
                  (unsigned long long)counts.stray);
    ck_assert((counts.shared > 0) == (_i % 2 != 0));
    read_profile_free(profile);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "multiply") == 0)
        return multiply(argv[2]);
    return run_cases("sampled_cores", file_cases(&file_tests, sampled_setup, sampled_teardown));
}
