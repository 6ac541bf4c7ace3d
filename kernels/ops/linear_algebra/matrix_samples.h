/* matrix_samples.h: samples of ops on matrices.
 *
 * Extents stand in parentheses; `raise` is what the diagonals are raised by.
 */
#ifndef MATRIX_SAMPLES_H
#define MATRIX_SAMPLES_H

#include "op_rules.h"

/* clang-format off */
/* Attributes follow: their number, and the words. */
#define MATRIX_SAMPLE_WITH(r, extents, raise, n, ...)                                              \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {r}, .shape = {{KERNEL_EXTENTS extents}},           \
     .low = {-1}, .high = {1}, .diagonal = {raise}, .n_attr = n, .attr = {__VA_ARGS__}}
#define MATRIX_SAMPLE(r, extents, raise) MATRIX_SAMPLE_WITH(r, extents, raise, 0, 0)
#define MATRIX_PAIR_WITH(rank_a, extents_a, raise, rank_b, extents_b, n, ...)                      \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_a, rank_b},                       \
     .shape = {{KERNEL_EXTENTS extents_a}, {KERNEL_EXTENTS extents_b}},                            \
     .low = {-1, -1}, .high = {1, 1}, .diagonal = {raise}, .n_attr = n, .attr = {__VA_ARGS__}}
#define MATRIX_PAIR(rank_a, extents_a, raise, rank_b, extents_b)                                   \
    MATRIX_PAIR_WITH(rank_a, extents_a, raise, rank_b, extents_b, 0, 0)
/* clang-format on */

#endif
