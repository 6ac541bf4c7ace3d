/* rosenbrock.h: Rosenbrock's function of a chain: the sum of
 *     100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2.
 *
 * Invariant: whoever includes it has chosen between statements and steps, by AD_REAL_PROGRAM.
 */
#ifndef ROSENBROCK_H
#define ROSENBROCK_H

#include <tapescope/ad_real.h>

static inline ad_real rosenbrock(int n, const ad_real *x)
{
    ad_real sum = ad_real_of(0.0);
    for (int i = 0; i + 1 < n; ++i) {
        ad_real bend = ad_real_of(ad_real_sub(x[i + 1], ad_real_square(x[i])));
        ad_set(&sum, ad_real_add(sum, ad_real_add(ad_real_mul(100.0, ad_real_square(bend)),
                                                  ad_real_square(ad_real_sub(1.0, x[i])))));
    }
    return sum;
}

#endif
