/* common_network.h: single ops of neural networks that are measured here and in libtorch.
 *
 * Inputs and checksums are as there. Each case is one op; its sweep begins with the seed F(i, 9)
 * of the result's shape, unless the result has one element.
 *
 *     conv16     x [16, 16, 32, 32] = F(i, 0), w [16, 16, 3, 3] = F(i, 1) / 12, padding 1
 *     conv16_x   the same with x alone a parameter; conv16_w: w alone
 *     conv64     x [1, 64, 32, 32], w [64, 64, 3, 3] = F(i, 1) / 24, padding 1; _x and _w as above
 *     maxpool2   x [16, 16, 64, 64] = floor(1024 F(i, 0)) / 1024, which is the same in both element
 *                types and has ties; maxima of windows 2 x 2, stride 2
 *     maxpool3   the same, windows 3 x 3, stride 2, padding 1
 *     avgpool2   means of windows 2 x 2, stride 2; avgpool3: windows 3 x 3, stride 1, padding 1
 *     batchnorm  x [32, 64, 16, 16] = F(i, 0), w [64] = 1 + F(i, 1) / 2, b [64] = F(i, 2); eps 1e-5
 *     layernorm  x [256, 512], w and b [512] as above; rmsnorm: x and w alone
 *     softmax    x [256, 1000] = F(i, 0) along the last axis
 *     rowsums    x [1024, 512] = F(i, 0), summed along the last axis
 *     celoss     softmax cross entropy of x [256, 1000] with label (7 r + 3) mod 1000 in row r
 *     embedding  table [4096, 128] = F(i, 0), 2048 rows of it, number (7 r r + 3) mod 4096
 *     attnkeep   q, k, v [8, 256, 64] = F(i, 0), F(i, 1), F(i, 2), scale 1/8, not causal; the
 *                probabilities are kept; attnstrip: they are made again in the sweep
 */
#ifndef COMMON_NETWORK_H
#define COMMON_NETWORK_H

#include "common_workloads.h"

/* All cases, ended by one without a name. */
extern const struct workload_case network_cases[];

/* The case of that name, or NULL. */
const struct workload_case *network_find(const char *name);

#endif
