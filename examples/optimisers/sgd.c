/* sgd.c: see optimisers.h. */
#include "optimisers.h"

void sgd_step(int64_t n, double rate, double momentum, const double *gradient, double *velocity,
              double *x)
{
    for (int64_t i = 0; i < n; ++i) {
        velocity[i] = momentum * velocity[i] - rate * gradient[i];
        x[i] += velocity[i];
    }
}
