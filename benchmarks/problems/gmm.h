/* gmm.h: the logarithm of the likelihood of a mixture of Gaussians (ADBench: M. Srajer,
 * Z. Kukelova, A. Fitzgibbon, 2018, doi:10.1080/10556788.2018.1435651).
 *
 *   f = sum_i logsumexp_k( alpha_k + sum_j q_kj - |Q_k (p_i - mu_k)|^2 / 2 ) - n logsumexp(alpha)
 *       - n d log(2 pi) / 2
 *       + sum_k( gamma^2 (|exp q_k|^2 + |l_k|^2) / 2 - m sum_j q_kj ) - k C
 *
 * Q_k is lower triangular: exp(q_k) on the diagonal, l_k below it, column by column.
 * C = w d (log gamma - log(2) / 2) - logGamma_d(w / 2), w = d + m + 1 (a Wishart prior).
 * x and the gradient: alpha [k], mu [k, d], then for each k: q [d], l [d (d - 1) / 2]. One output.
 *
 * Invariant: input is a struct gmm.
 */
#ifndef GMM_H
#define GMM_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gmm {
    int d, k, n;
    double gamma;
    int m;
    double *points; /* [n, d] */
};

extern const struct problem_kind gmm_kind;

/* What does not depend on x: - n d log(2 pi) / 2 - k C. */
double gmm_constant(const struct gmm *g);

/* Numbers of a factor: d + d (d - 1) / 2. */
int gmm_factor_size(const struct gmm *g);

#ifdef __cplusplus
}
#endif

#endif
