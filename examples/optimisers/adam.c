/* adam.c: see optimisers.h. */
#include "optimisers.h"

#include <math.h>

void adam_step(int64_t n, float rate, int step, const float *gradient, float *mean, float *square,
               float *x)
{
    const float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    const float rate_at_step = rate / (1.0f - powf(beta1, (float)step));
    const float square_scale = 1.0f / (1.0f - powf(beta2, (float)step));
    for (int64_t i = 0; i < n; ++i) {
        float g = gradient[i];
        mean[i] = beta1 * mean[i] + (1.0f - beta1) * g;
        square[i] = beta2 * square[i] + (1.0f - beta2) * g * g;
        x[i] -= rate_at_step * mean[i] / (sqrtf(square[i] * square_scale) + epsilon);
    }
}
