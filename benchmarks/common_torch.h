/* common_torch.h: PyTorch as the other side of a comparison: libtorch for time, Python for what it
 * saves for the backward pass.
 *
 * Invariant: a peer that is missing is said once and then left out; one whose gradients are wrong
 * is an error.
 */
#ifndef COMMON_TORCH_H
#define COMMON_TORCH_H

#include "common_options.h"
#include "common_peer.h"
#include "common_workloads.h"

#include <stdbool.h>

struct torch {
    const char *name;    /* in the rows */
    const char *program; /* of peers/ */
    const char *setting; /* of its environment, or NULL */
    struct peer peer;
    bool tried, usable;
    bool wrong; /* it gave a wrong sum of gradients */
    const struct workload *workload;
};

/* libtorch with the system's malloc; with a malloc that keeps its memory; Python. */
enum { TORCH_PLAIN, TORCH_TUNED, TORCH_PYTHON, TORCH_PEERS };
extern const struct torch torch_peers[TORCH_PEERS];

/* Starts it if it has not been tried. False, having said why once, if it is of no use. */
bool torch_ready(struct torch *torch, int threads);

/* A round of torch->workload for rounds_compare: context is a struct torch. */
bool torch_round(void *context, double seconds, double *result);

/* Rows of all phases of w's step against it. True as well if it is of no use, or answered
 * nothing. */
bool torch_compare(const char *suite, const struct options *options, struct workload *w,
                   struct torch *torch);

/* Bytes of the tensors that Python's torch saves in one forward pass: distinct storages, no leaves,
 * no constants. False, having said why, without an answer. */
bool torch_saved_bytes(struct torch *torch, double *bytes);

/* What torch.profiler costs torch->workload: time under it over time without it, in rounds of so
 * many seconds together. Otherwise as torch_round. */
bool torch_profiled(void *context, double seconds, double *slowdown);

#endif
