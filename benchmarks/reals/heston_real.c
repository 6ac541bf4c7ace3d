/* heston_real.c: the price of an option by Monte Carlo over ad_real.
 *
 * Invariant: as in real.h.
 */
#include "heston.h"
#include "real.h"

#include <math.h>

static size_t room(const struct problem *problem)
{
    (void)problem;
    return 0;
}

static void value(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *out)
{
    (void)work;
    const struct heston *h = problem->input;
    const ad_real kappa = x[2], theta = x[3], sigma = x[4], rho = x[5], rate = x[6];
    const double dt = heston_maturity / h->steps, root_dt = sqrt(dt), *z = h->normals;
    const ad_real other = ad_real_of(ad_real_sqrt(ad_real_sub(1.0, ad_real_mul(rho, rho))));
    ad_real sum = {0};
    for (int i = 0; i < h->paths; ++i) {
        ad_real log_s = ad_real_of(ad_real_log(x[0])), v = x[1];
        for (int j = 0; j < h->steps; ++j, z += 2) {
            const ad_real positive = ad_real_greater(v, 0.0) ? v : (ad_real){0};
            const ad_real root = ad_real_of(ad_real_sqrt(ad_real_add(positive, heston_least)));
            const ad_real dw = ad_real_of(ad_real_mul(
                root_dt, ad_real_add(ad_real_mul(rho, z[0]), ad_real_mul(other, z[1]))));
            ad_set(&log_s,
                   ad_real_add(
                       ad_real_add(log_s,
                                   ad_real_mul(ad_real_sub(rate, ad_real_mul(0.5, positive)), dt)),
                       ad_real_mul(root, dw)));
            ad_set(&v,
                   ad_real_add(
                       ad_real_add(
                           v, ad_real_mul(ad_real_mul(kappa, ad_real_sub(theta, positive)), dt)),
                       ad_real_mul(ad_real_mul(sigma, root), root_dt * z[0])));
        }
        const ad_real s = ad_real_of(ad_real_exp(log_s));
        if (ad_real_greater(s, heston_strike))
            ad_set(&sum, ad_real_add(sum, ad_real_sub(s, heston_strike)));
    }
    ad_set(out, ad_real_div(ad_real_mul(ad_real_exp(ad_real_mul(rate, -heston_maturity)), sum),
                            (double)h->paths));
}

const struct real_objective real_heston = {room, value};
