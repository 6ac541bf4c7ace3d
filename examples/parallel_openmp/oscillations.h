/* oscillations.h: a model of 7 parameters and 10 000 noisy measurements of it, and the judgement of
 * a gradient; for the examples that record in parallel.
 */
#ifndef OSCILLATIONS_H
#define OSCILLATIONS_H

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

enum { MEASUREMENTS = 10000, PARAMETERS = 7 };

/* Where the gradient is taken. */
extern const double guess[PARAMETERS];

/* Makes the measurements; once, before any other. */
void measure(void);

/* The sum of the squared residuals of measurements [from, to), recorded. Any thread. */
ad_real squared_residuals(const ad_real *p, int from, int to);

/* Records all of it on a tape of its own, and compares and prints. 0: the loss and its gradient
 * are those of one tape but for rounding. */
int judge(double loss, const double *gradient);

#endif
