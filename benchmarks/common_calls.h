/* common_calls.h: an op that is called from deep within the program: what a call path costs.
 *
 *     calls12  x [8] = 0.5 F(i, 0) a parameter, c [8] = 0.01 F(i, 1) constant; 1000 times
 *              x = x + c, each from a function 12 calls below the first; loss sum(x)
 */
#ifndef COMMON_CALLS_H
#define COMMON_CALLS_H

#include "common_workloads.h"

enum { CALLS_OPS = 1000 };

extern const struct workload_case calls_case;

#endif
