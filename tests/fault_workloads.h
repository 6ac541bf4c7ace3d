/* fault_workloads.h: small uses of the library, each of whose calls is checked to leave the tape as
 * it was if it fails.
 *
 * May include: ad.h. A workload goes on after a failure as a user's program would that looks at the
 * status in the end, so that every later call meets the error.
 */
#ifndef FAULT_WORKLOADS_H
#define FAULT_WORKLOADS_H

#include <tapescope/ad.h>

enum { FAULT_RESULTS = 512 };

/* What a workload reads back: values and gradients. */
struct fault_results {
    double number[FAULT_RESULTS];
    int n;
};

struct fault_workload {
    const char *name;
    void (*run)(ad_tape tape, struct fault_results *out);
};

extern const struct fault_workload fault_workloads[];
extern const int fault_workload_count;

/* Runs a workload and returns the tape's status in the end. */
ad_status fault_run(const struct fault_workload *w, ad_tape tape, struct fault_results *out);

/* What was first seen to be wrong in the last run, or "": a call that failed and left a trace. No
 * assertion, so that processes may use it that Check does not run. */
extern char fault_wrong[512];

#endif
