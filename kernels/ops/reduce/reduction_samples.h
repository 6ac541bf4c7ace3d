/* reduction_samples.h: samples of the ops with one operand that reduce or walk along axes.
 *
 * Extents stand in parentheses; what follows the number of attributes is the attributes: flags,
 * integers and axes.
 */
#ifndef REDUCTION_SAMPLES_H
#define REDUCTION_SAMPLES_H

#include "op_rules.h"

/* clang-format off */
#define AXES_SAMPLE(rank_, extents, low_, high_, count, ...)                                       \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {rank_}, .shape = {{KERNEL_EXTENTS extents}},       \
     .low = {low_}, .high = {high_}, .n_attr = count, .attr = {__VA_ARGS__}}
/* clang-format on */

/* Attributes {keepdim, axes...}: no axes, each end, two of three, a middle one, one element, one
 * that fills no vector, and nothing beside an empty axis. */
#define REDUCTION_SAMPLES(low, high)                                                               \
    AXES_SAMPLE(2, (3, 5), low, high, 1, 0), AXES_SAMPLE(0, (0), low, high, 1, 0),                 \
        AXES_SAMPLE(2, (3, 5), low, high, 2, 0, 0), AXES_SAMPLE(2, (3, 5), low, high, 2, 1, -1),   \
        AXES_SAMPLE(3, (2, 3, 4), low, high, 3, 0, 0, 2),                                          \
        AXES_SAMPLE(3, (2, 3, 4), low, high, 2, 0, 1), AXES_SAMPLE(1, (1), low, high, 1, 0),       \
        AXES_SAMPLE(1, (17), low, high, 1, 1), AXES_SAMPLE(2, (0, 3), low, high, 2, 0, 1)

/* The same with a word between keepdim and the axes. */
#define REDUCTION_SAMPLES_WITH(word, low, high)                                                    \
    AXES_SAMPLE(2, (3, 5), low, high, 2, 0, word),                                                 \
        AXES_SAMPLE(2, (3, 5), low, high, 3, 0, word, 0),                                          \
        AXES_SAMPLE(2, (3, 5), low, high, 3, 1, word, -1),                                         \
        AXES_SAMPLE(3, (2, 3, 4), low, high, 4, 0, word, 0, 2),                                    \
        AXES_SAMPLE(3, (2, 3, 4), low, high, 3, 0, word, 1),                                       \
        AXES_SAMPLE(1, (17), low, high, 2, 1, word),                                               \
        AXES_SAMPLE(2, (0, 3), low, high, 3, 0, word, 1)

/* One attribute: an axis. */
#define ONE_AXIS_SAMPLES(low, high)                                                                \
    AXES_SAMPLE(2, (3, 5), low, high, 1, 1), AXES_SAMPLE(2, (3, 5), low, high, 1, 0),              \
        AXES_SAMPLE(3, (2, 3, 4), low, high, 1, -2), AXES_SAMPLE(1, (1), low, high, 1, 0),         \
        AXES_SAMPLE(1, (8), low, high, 1, -1), AXES_SAMPLE(1, (17), low, high, 1, 0),              \
        AXES_SAMPLE(2, (3, 0), low, high, 1, 1), AXES_SAMPLE(2, (3, 0), low, high, 1, 0)

#endif
