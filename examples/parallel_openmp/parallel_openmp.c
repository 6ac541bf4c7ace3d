/* parallel_openmp.c: a loop over data that OpenMP's threads record, each on a fork of one tape, and
 * its gradient by one sweep, in which several threads share the work again.
 *
 * The program ends with an error unless the gradient is that of one tape alone.
 */
#include "oscillations.h"

#include <stdio.h>

enum { PARTS = 4 };

int main(void)
{
    ad_tape tape, part[PARTS];
    ad_real p[PARAMETERS], y[PARTS], loss = ad_real_of(0.0);
    double gradient[PARAMETERS];
    measure();
    ad_tape_create(&tape, NULL);
    ad_real_leaves(tape, PARAMETERS, guess, p);
    ad_tape_fork(tape, PARTS, part);
#pragma omp parallel for num_threads(PARTS)
    for (int k = 0; k < PARTS; k++) {
        ad_tape_record_begin(part[k]);
        y[k] = squared_residuals(p, MEASUREMENTS / PARTS * k, MEASUREMENTS / PARTS * (k + 1));
        ad_tape_record_end(part[k]);
    }
    for (int k = 0; k < PARTS; k++)
        ad_tape_join(tape, part[k], 1, &y[k]);
    for (int k = 0; k < PARTS; k++)
        ad_set(&loss, ad_real_add(loss, y[k]));
    /* One look for all that was done, on the forks as well. */
    if (ad_real_backward(tape, loss) != AD_OK ||
        ad_real_gradients(tape, PARAMETERS, p, gradient) != AD_OK) {
        fprintf(stderr, "parallel_openmp: %s\n", ad_tape_message(tape));
        return 1;
    }
    const int wrong = judge(loss.value, gradient);
    ad_tape_destroy(tape);
    return wrong;
}
