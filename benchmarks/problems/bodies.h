/* bodies.h: bodies that attract each other.
 *
 * s steps of v <- v + h a, x <- x + h v on n bodies, where a_i is the sum of m_j d / (d^2 +
 * 0.01)^1.5 over the others, with d = x_j - x_i. x: positions [n,3], velocities [n,3] and masses
 * [n]; output: the sum of the squares of the positions at the end.
 *
 * Invariant: input is a struct bodies.
 */
#ifndef BODIES_H
#define BODIES_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bodies {
    int n, s;
};

static const double bodies_step = 1e-3, bodies_softening = 1e-2;

extern const struct problem_kind bodies_kind;

#ifdef __cplusplus
}
#endif

#endif
