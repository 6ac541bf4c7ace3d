/* certificate.h: says in plain C, without a tape, how far parameters of the logistic regression are
 * from the optimum.
 *
 * The loss f is the mean cross-entropy plus penalty / 2 times the sum of squares; parameters are
 * weights [DIGITS_PIXELS, DIGITS_CLASSES], then biases [DIGITS_CLASSES].
 */
#ifndef LOGISTIC_CERTIFICATE_H
#define LOGISTIC_CERTIFICATE_H

#include "digits_data.h"

/* Images in doubles. The labels are those of the digits that they were made from. */
struct images {
    int64_t count;
    double *pixels; /* [count, DIGITS_PIXELS] */
    const int64_t *labels;
};

/* images_free() frees them, also after a failure for want of memory (false). */
bool images_make(const struct digits *digits, struct images *images);
void images_free(struct images *images);

struct certificate {
    double loss, gradient_norm;
    /* Upper bound of f - min f. f less the squares is convex, so for all y f(y) >= f(x) +
     * g^T (y - x) + penalty / 2 |y - x|^2; the least right side gives gap = |g|^2 / (2 penalty)
     * (Boyd and Vandenberghe 2004, equation 9.9). */
    double gap;
    /* At the optimum, and only there, w = X^T (Y - P) / (n penalty) with a last column of ones in
     * X, Y the true classes and P the probabilities. The largest difference of an element. */
    double stationarity;
    /* Rows of Y - P sum to zero, so at the optimum each row of w does. The largest such sum. */
    double balance;
};

/* False if memory is short. */
bool certificate_make(const struct images *images, double penalty, const double *parameters,
                      struct certificate *certificate);

#endif
