/* common_split.c: see common_split.h.
 *
 * The program is compiled with line tables in every build; where it is not, no line is found and
 * that is said.
 */
#include "common_split.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include "analyze.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)

enum { MOST = 1 << 12, MOST_STATEMENTS = 1 << 16 };

const uint64_t split_periods[SPLIT_PERIODS] = {40 * US,   100 * US,  250 * US,  500 * US,
                                               1000 * US, 1333 * US, 2000 * US, 2667 * US,
                                               4000 * US, 5000 * US, 6000 * US, 8000 * US};

/* What one period does: `length` is how much an op or a run of statements is, `times` how many of
 * them stand at line B; at line A there are three times as many. */
struct program {
    ad_tape tape;
    double *x;
    bool scalar;
    enum split_wait wait;
    int64_t length, times;
};

static unsigned line_a, line_b;

/* As long as it should be, also if signals end it. */
static void wait_before(const struct program *p, enum split_wait line)
{
    struct timespec left = {.tv_nsec = SPLIT_WAIT_NS};
    while (p->wait == line && nanosleep(&left, &left) != 0) {
    }
}

/* The op computes long for what it reads, or caches would make it dearer at one place than at
 * another. */
static void run_tensors(const struct program *p)
{
    ad_tape_reset(p->tape);
    ad_tensor x = ad_leaf(p->tape, AD_F64, 1, &p->length, p->x), sum = x;
    wait_before(p, SPLIT_WAIT_BEFORE_A);
    for (int64_t i = 0; i < 3 * p->times; i++) {
        line_a = __LINE__ + 1;
        ad_tensor v = ad_lgamma(x);
        sum = ad_add(sum, v);
    }
    wait_before(p, SPLIT_WAIT_BEFORE_B);
    for (int64_t i = 0; i < p->times; i++) {
        line_b = __LINE__ + 1;
        ad_tensor v = ad_lgamma(x);
        sum = ad_add(sum, v);
    }
    if (ad_backward(ad_sum(sum)) != AD_OK)
        abort();
}

/* Of each line a function, so that both are compiled alike. */
static void statements_a(const ad_real x[2], ad_real *v, int64_t n)
{
    line_a = __LINE__ + 2;
    for (int64_t i = 0; i < n; i++)
        ad_set(v, ad_real_add(ad_real_mul(*v, 0.9), ad_real_mul(x[0], x[1])));
}

static void statements_b(const ad_real x[2], ad_real *v, int64_t n)
{
    line_b = __LINE__ + 2;
    for (int64_t i = 0; i < n; i++)
        ad_set(v, ad_real_add(ad_real_mul(*v, 0.9), ad_real_mul(x[0], x[1])));
}

static void run_scalars(const struct program *p)
{
    ad_real x[2], v;
    const int64_t n = p->length * p->times;
    ad_tape_reset(p->tape);
    ad_real_leaves(p->tape, 2, p->x, x);
    ad_set(&v, ad_real_mul(x[0], x[1]));
    wait_before(p, SPLIT_WAIT_BEFORE_A);
    statements_a(x, &v, 3 * n);
    wait_before(p, SPLIT_WAIT_BEFORE_B);
    statements_b(x, &v, n);
    if (ad_real_backward(p->tape, v) != AD_OK)
        abort();
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void run(const struct program *p)
{
    if (p->scalar)
        run_scalars(p);
    else
        run_tensors(p);
}

/* The least time of a few periods. */
static uint64_t period_of(const struct program *p)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 7; i++) {
        const uint64_t begin = now_ns();
        run(p);
        const uint64_t took = now_ns() - begin;
        least = took < least ? took : least;
    }
    return least;
}

/* Lengths and times with which a period takes about so long. */
static void fit(struct program *p, uint64_t period_ns)
{
    p->times = 1;
    p->length = 64;
    const int64_t most = p->scalar ? MOST_STATEMENTS : MOST;
    while (p->length < most && period_of(p) < split_periods[0])
        p->length += p->length / 4;
    const uint64_t least = period_of(p);
    if (period_ns > least)
        p->times = (int64_t)((period_ns + least / 2) / least);
}

static struct analyze_cost cost_of(const struct analyze_result *analysis, unsigned line)
{
    struct analyze_cost sum = {0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *at = &analysis->line[i];
        if (at->file && strstr(at->file, "common_split.c") && at->line == line)
            analyze_cost_add(&sum, &at->cost);
    }
    return sum;
}

/* Line A's part of both lines' time, in percent, forward and backward, and the samples behind. */
struct shares {
    double forward, backward;
    double n_forward, n_backward;
};

static bool read_shares(const char *file, unsigned hz, struct shares *shares)
{
    char reason[400] = "nothing was measured on its lines";
    struct read_profile *profile = read_profile(file, reason, sizeof reason);
    struct analyze_result *analysis = profile ? analyze_profile(profile, NULL, NULL) : NULL;
    bool found = false;
    if (analysis) {
        const struct analyze_cost a = cost_of(analysis, line_a), b = cost_of(analysis, line_b);
        const double forward = (double)(a.forward_ns + b.forward_ns),
                     backward = (double)(a.backward_ns + b.backward_ns);
        found = a.forward_ns > 0 && a.backward_ns > 0;
        if (found)
            *shares = (struct shares){100 * (double)a.forward_ns / forward,
                                      100 * (double)a.backward_ns / backward, 1e-9 * forward * hz,
                                      1e-9 * backward * hz};
    }
    if (!found)
        fprintf(stderr, "split: %s\n", reason);
    analyze_free(analysis);
    read_profile_free(profile);
    return found;
}

/* Of a share of 3/4 from so many samples. */
static double standard_error(double n)
{
    return 100 * sqrt(0.75 * 0.25 / (1 + n));
}

static double end_seconds;

static bool program_make(struct program *p, const struct split_program *from)
{
    *p = (struct program){.scalar = from->scalar, .x = calloc(2 * MOST, sizeof *p->x)};
    if (!p->x || ad_tape_create(&p->tape, NULL) != AD_OK) {
        fprintf(stderr, "split: out of memory\n");
        free(p->x);
        return false;
    }
    for (int i = 0; i < 2 * MOST; i++)
        p->x[i] = 0.1 + 1e-5 * i;
    fit(p, from->period_ns);
    p->wait = from->wait;
    return true;
}

static bool program_drop(struct program *p)
{
    const bool ok = ad_tape_status(p->tape) == AD_OK;
    if (!ok)
        fprintf(stderr, "split: %s\n", ad_tape_message(p->tape));
    ad_tape_destroy(p->tape);
    free(p->x);
    return ok;
}

static void repeat(const struct program *p)
{
    while (1e-9 * (double)now_ns() < end_seconds)
        run(p);
}

/* A thread has its own tape; how long the lines are was found before. */
static void *repeat_apart(void *context)
{
    const struct program *like = context;
    struct program p = *like;
    p.tape = (ad_tape){0};
    if (ad_tape_create(&p.tape, NULL) != AD_OK)
        return NULL;
    repeat(&p);
    const bool ok = ad_tape_status(p.tape) == AD_OK;
    ad_tape_destroy(p.tape);
    return ok ? context : NULL;
}

/* Repeats the program for so long under a profile, and reads it. */
static bool observe(const struct program *p, int threads, double seconds, const char *options,
                    unsigned hz, const char *file, struct shares *shares)
{
    pthread_t thread[SPLIT_MOST_THREADS];
    int begun = 1;
    void *did;
    bool ok = ad_profile_start_with(file, options) == AD_OK;
    end_seconds = 1e-9 * (double)now_ns() + seconds;
    for (; ok && begun < threads; begun++)
        ok = pthread_create(&thread[begun], NULL, repeat_apart, (void *)(uintptr_t)p) == 0;
    repeat(p);
    for (int i = 1; i < begun; i++)
        ok = pthread_join(thread[i], &did) == 0 && did && ok;
    ok = ad_profile_stop() == AD_OK && ok;
    if (!ok)
        fprintf(stderr, "split: %s\n", ad_tape_message((ad_tape){0}));
    ok = ok && read_shares(file, hz, shares);
    unlink(file);
    return ok;
}

bool split_measure(const struct split_program *program, double seconds, unsigned hz,
                   const char *file, struct split_error *error)
{
    char options[64];
    struct program p;
    if (!program_make(&p, program))
        return false;
    struct shares is = {0};
    snprintf(options, sizeof options, "time=sampled,freq=%u", hz);
    bool ok = observe(&p, program->threads, seconds, options, hz, file, &is);
    *error = (struct split_error){fabs(is.forward - 75), fabs(is.backward - 75),
                                  standard_error(is.n_forward), standard_error(is.n_backward)};
    ok = program_drop(&p) && ok;
    return ok;
}
