/* common_rounds.c: interleaved rounds, their medians and the JSON rows.
 *
 * Invariant: standard output has whole rows and nothing else.
 */
#include "common_rounds.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Rounds whose quartiles are further apart than this, as a ratio, are called uneven. */
static const double uneven = 1.1;

/* Our rounds should have a processor for this share of their time. */
static const double undisturbed = 0.95;

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* What this process has had of a processor, and the children that it waited for. */
static double computed_now(void)
{
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    return read_clock(CLOCK_PROCESS_CPUTIME_ID) +
           1e9 * (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           1e3 * (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
}

double rounds_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

bool rounds_repeat(void *context, double seconds, double *result)
{
    const struct rounds_repeated *r = context;
    const double begin = rounds_now();
    double now = begin;
    uint64_t n = 0;
    do {
        if (!r->run(r->of))
            return false;
        n++;
        now = rounds_now();
    } while (now - begin < seconds * 1e9);
    result[0] = (now - begin) / (double)n;
    return true;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double rounds_median(double *values, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

/* The median of a side's rounds. */
static double settle(const struct rounds_plan *plan, int metric, const char *side, double *figure)
{
    size_t n = (size_t)plan->rounds;
    double median = rounds_median(figure, n);
    double low = figure[n / 4], high = figure[n - 1 - n / 4];
    if (high > uneven * low)
        fprintf(stderr, "%s %s %s: the rounds of %s are uneven, %.4g to %.4g %s\n", plan->suite,
                plan->case_name, plan->metric[metric], side, low, high, plan->unit);
    return median;
}

void rounds_row(const char *suite, const char *case_name, const char *metric, double ours,
                const char *peer_name, double peer, double ratio, const char *unit)
{
    printf("{\"suite\":\"%s\",\"case\":\"%s\",\"metric\":\"%s\",\"ours\":%.9g,"
           "\"peer_name\":\"%s\",\"peer\":%.9g,\"ratio\":%.4g,\"unit\":\"%s\"}\n",
           suite, case_name, metric, ours, peer_name, peer, ratio, unit);
    fflush(stdout);
}

bool rounds_compare(const struct rounds_plan *plan, const struct rounds_side *ours,
                    const struct rounds_side *peer)
{
    static double our_figure[ROUNDS_MAX_METRICS][ROUNDS_MAX];
    static double peer_figure[ROUNDS_MAX_METRICS][ROUNDS_MAX];
    static double ratio[ROUNDS_MAX_METRICS][ROUNDS_MAX];
    double a[ROUNDS_MAX_METRICS], b[ROUNDS_MAX_METRICS];

    double elapsed = 0.0, computed = 0.0;

    /* Round -1 is the warm-up. */
    for (int r = -1; r < plan->rounds; ++r) {
        elapsed -= rounds_now();
        computed -= computed_now();
        if (!ours->round(ours->context, plan->seconds, a))
            return false;
        elapsed += rounds_now();
        computed += computed_now();
        if (!peer->round(peer->context, plan->seconds, b))
            return false;
        for (int m = 0; m < plan->n_metrics && r >= 0; ++m) {
            our_figure[m][r] = a[m];
            peer_figure[m][r] = b[m];
            ratio[m][r] = a[m] / b[m];
        }
    }
    if (!plan->elsewhere && computed < undisturbed * elapsed)
        fprintf(stderr,
                "%s %s: only %.0f %% of a processor was ours: the machine is busy, and long steps "
                "suffer more than short ones\n",
                plan->suite, plan->case_name, 100.0 * computed / elapsed);
    for (int m = 0; m < plan->n_metrics; ++m) {
        if (!plan->metric[m])
            continue;
        double our_median = settle(plan, m, ours->name, our_figure[m]);
        double peer_median = settle(plan, m, peer->name, peer_figure[m]);
        rounds_row(plan->suite, plan->case_name, plan->metric[m], our_median, peer->name,
                   peer_median, rounds_median(ratio[m], (size_t)plan->rounds), plan->unit);
    }
    return true;
}
