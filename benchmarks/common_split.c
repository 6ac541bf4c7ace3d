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
    int64_t length, times;
};

static unsigned line_a, line_b;

/* The op computes long for what it reads, or caches would make it dearer at one place than at
 * another. */
static void run_tensors(const struct program *p)
{
    ad_tape_reset(p->tape);
    ad_tensor x = ad_leaf(p->tape, AD_F64, 1, &p->length, p->x), sum = x;
    for (int64_t i = 0; i < 3 * p->times; i++) {
        line_a = __LINE__ + 1;
        ad_tensor v = ad_lgamma(x);
        sum = ad_add(sum, v);
    }
    for (int64_t i = 0; i < p->times; i++) {
        line_b = __LINE__ + 1;
        ad_tensor v = ad_lgamma(x);
        sum = ad_add(sum, v);
    }
    ad_backward(ad_sum(sum));
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
    statements_a(x, &v, 3 * n);
    statements_b(x, &v, n);
    ad_real_backward(p->tape, v);
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

/* Repeats the program for so long under a profile, and reads it. */
static bool observe(const struct program *p, double seconds, const char *options, unsigned hz,
                    const char *file, struct shares *shares)
{
    bool ok = ad_profile_start_with(file, options) == AD_OK;
    const uint64_t end = now_ns() + (uint64_t)(1e9 * seconds);
    while (ok && now_ns() < end)
        run(p);
    ok = ok && ad_profile_stop() == AD_OK && ad_tape_status(p->tape) == AD_OK;
    if (!ok)
        fprintf(stderr, "split: %s\n", ad_tape_message(p->tape));
    ok = ok && read_shares(file, hz, shares);
    unlink(file);
    return ok;
}

bool split_measure(bool scalar, uint64_t period_ns, double seconds, unsigned hz, const char *file,
                   struct split_error *error)
{
    char options[64];
    struct program p = {.scalar = scalar, .x = calloc(2 * MOST, sizeof *p.x)};
    if (!p.x || ad_tape_create(&p.tape, NULL) != AD_OK) {
        fprintf(stderr, "split: out of memory\n");
        free(p.x);
        return false;
    }
    for (int i = 0; i < 2 * MOST; i++)
        p.x[i] = 0.1 + 1e-5 * i;
    fit(&p, period_ns);
    struct shares is = {0};
    snprintf(options, sizeof options, "time=sampled,freq=%u", hz);
    const bool ok = observe(&p, seconds, options, hz, file, &is);
    *error = (struct split_error){fabs(is.forward - 75), fabs(is.backward - 75),
                                  standard_error(is.n_forward), standard_error(is.n_backward)};
    ad_tape_destroy(p.tape);
    free(p.x);
    return ok;
}
