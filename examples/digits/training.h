/* training.h: what the classifiers of digits share: parameters, and Adam, which changes them.
 *
 * A parameter is a leaf that borrows an array of its own, so that what the optimiser writes is
 * what the next step records with.
 */
#ifndef TRAINING_H
#define TRAINING_H

#include <tapescope/ad.h>

#include <stdbool.h>
#include <stdint.h>

/* A leaf, the array that it borrows, and what Adam remembers of its gradients. */
struct parameter {
    ad_tensor leaf;
    int64_t size;
    float *value, *gradient, *mean, *square;
};

uint64_t random_bits(uint64_t *state);
void shuffle(int64_t *order, int64_t count, uint64_t *state);

/* A leaf of that shape (rank 1 or 2), uniform in [-bound, bound); parameter_free() frees its
 * arrays, not before the tape has gone. Returns false when memory is exhausted. */
bool parameter_init(struct parameter *p, ad_tape tape, int rank, const int64_t *shape, float bound,
                    uint64_t *seed);
void parameter_free(struct parameter *p);

/* One step of Adam, the step-th from 1, along the gradient that the last sweep left on the tape.
 * Returns what ad_gradient() does. */
ad_status parameter_step(struct parameter *p, int step);

#endif
