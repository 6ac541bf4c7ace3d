/* heat.h: heat on a square, by explicit steps.
 *
 * s times u_ij <- m + 0.2 (l + r + t + b - 4 m) on n by n points, with m = u_ij and its four
 * neighbours, the edge fixed. x: u at the start, row by row; output: the sum of u^2 at the end.
 *
 * Invariant: input is a struct heat.
 */
#ifndef HEAT_H
#define HEAT_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct heat {
    int n, s;
};

static const double heat_share = 0.2;

extern const struct problem_kind heat_kind;

#ifdef __cplusplus
}
#endif

#endif
