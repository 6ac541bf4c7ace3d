/* common_rounds.c: interleaved rounds, their medians and the JSON rows.
 *
 * May include: nothing of the project. Invariant: standard output has whole rows and nothing else.
 */
#include "common_rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double rounds_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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

static void print_row(const struct rounds_plan *plan, int metric, double ours,
                      const char *peer_name, double peer, double ratio)
{
    printf("{\"suite\":\"%s\",\"case\":\"%s\",\"metric\":\"%s\",\"ours\":%.9g,"
           "\"peer_name\":\"%s\",\"peer\":%.9g,\"ratio\":%.4g,\"unit\":\"%s\"}\n",
           plan->suite, plan->case_name, plan->metric[metric], ours, peer_name, peer, ratio,
           plan->unit);
    fflush(stdout);
}

bool rounds_compare(const struct rounds_plan *plan, const struct rounds_side *ours,
                    const struct rounds_side *peer)
{
    static double our_figure[ROUNDS_MAX_METRICS][ROUNDS_MAX];
    static double peer_figure[ROUNDS_MAX_METRICS][ROUNDS_MAX];
    static double ratio[ROUNDS_MAX_METRICS][ROUNDS_MAX];
    double a[ROUNDS_MAX_METRICS], b[ROUNDS_MAX_METRICS];

    /* Round -1 is the warm-up. */
    for (int r = -1; r < plan->rounds; ++r) {
        if (!ours->round(ours->context, plan->seconds, a) ||
            !peer->round(peer->context, plan->seconds, b))
            return false;
        for (int m = 0; m < plan->n_metrics && r >= 0; ++m) {
            our_figure[m][r] = a[m];
            peer_figure[m][r] = b[m];
            ratio[m][r] = a[m] / b[m];
        }
    }
    size_t n = (size_t)plan->rounds;
    for (int m = 0; m < plan->n_metrics; ++m)
        if (plan->metric[m])
            print_row(plan, m, rounds_median(our_figure[m], n), peer->name,
                      rounds_median(peer_figure[m], n), rounds_median(ratio[m], n));
    return true;
}
