/* common_inputs.h: the arrays that workloads compute with, and tensors over them.
 *
 * Invariant: inputs are computed in double in the order in which the formulae of
 * common_workloads.h are written, so that programs in other libraries get the same ones.
 */
#ifndef COMMON_INPUTS_H
#define COMMON_INPUTS_H

#include "common_workloads.h"

/* A zeroed array that lives as long as the workload; NULL without memory. */
void *input_array(struct workload *w, size_t bytes);

/* offset + scale F(i, p) for i from 0 to n - 1, in the workload's element type, into `array` from
 * element `at` on. Does nothing without an array. */
void input_fill(const struct workload *w, void *array, int64_t at, int64_t n, double offset,
                double scale, int p);

/* A tensor over such an array of its own: the workload's next parameter, or a constant. Without
 * memory the tape's error says so. */
ad_tensor input_tensor(struct workload *w, bool parameter, int rank, const int64_t *shape,
                       double offset, double scale, int p);

/* The workload's next parameter, floor(steps F(i, 0)) / steps: with steps a power of two that is
 * the same number in both element types. */
ad_tensor input_rounded(struct workload *w, int rank, const int64_t *shape, double steps);

/* A tensor of one axis over an array of zeros, or of whatever number `value` is. */
ad_tensor input_vector(struct workload *w, bool parameter, int64_t n, double value);

#endif
