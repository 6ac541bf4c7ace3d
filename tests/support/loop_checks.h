/* loop_checks.h: what tests of checkpoints and their loops compare with: how often steps are
 * computed at least, and a tape that is as it was.
 */
#ifndef LOOP_CHECKS_H
#define LOOP_CHECKS_H

#include "tape_fixture.h"

/* C(n, k). */
static inline int64_t choose(int64_t n, int64_t k)
{
    int64_t product = 1;
    for (int64_t i = 1; i <= k; i++)
        product = product * (n - k + i) / i;
    return product;
}

/* The least r with n <= C(c + r, c): with c states some of n steps is computed r times, each time
 * without being recorded. */
static inline int64_t repetitions(int64_t n, int64_t c)
{
    int64_t r = 0;
    while (choose(c + r, c) < n)
        r++;
    return r;
}

/* The published optimum (A. Griewank, A. Walther 2000): t(n, c) = r n - beta(c + 1, r - 1). */
static inline int64_t optimum(int64_t n, int64_t c)
{
    const int64_t r = repetitions(n, c);
    return r == 0 ? 0 : r * n - choose(c + r, r - 1);
}

static inline ad_stats stats_but_peak(void)
{
    ad_stats s = stats();
    s.peak_bytes = 0;
    return s;
}

static inline void check_same(ad_stats before)
{
    const ad_stats now = stats_but_peak();
    ck_assert_mem_eq(&now, &before, sizeof now);
}

#endif
