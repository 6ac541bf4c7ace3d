/* common_gemm.h: the matrix products of a perceptron's step and nothing else, as a peer.
 *
 * What is called is cblas itself, once a product, with whole operands: what a program pays that
 * leaves all to BLAS.
 */
#ifndef COMMON_GEMM_H
#define COMMON_GEMM_H

#include "common_workloads.h"

#include <stdbool.h>

struct gemm_peer {
    const struct workload *workload;
    void *weight, *layer; /* [3, W, W] and [4, 64, W], and their adjoints behind them */
};

/* False if the workload is no perceptron, or without memory. */
bool gemm_peer_create(struct gemm_peer *peer, const struct workload *workload);
void gemm_peer_destroy(struct gemm_peer *peer);

/* A round for rounds_compare: context is a struct gemm_peer. Only the total is set, the others are
 * equal to it. */
bool gemm_peer_round(void *context, double seconds, double *result);

#endif
