/* common_own.h: our side of a comparison: rounds of steps, profiled or not, and what a step saves.
 *
 * A step is the forward pass, the backward pass and the rewind, which is counted as backward: it
 * clears the gradients.
 */
#ifndef COMMON_OWN_H
#define COMMON_OWN_H

#include "common_options.h"
#include "common_rounds.h"
#include "common_workloads.h"

#include <stdbool.h>
#include <stdint.h>

/* The figures of a round of steps, in ns; a peer gives the same. */
enum { STEP_FORWARD, STEP_BACKWARD, STEP_TOTAL, STEP_METRICS };

struct own {
    struct workload *workload;
    const char *profile; /* where to, or NULL: not profiled */
    const char *options; /* of the profile, or NULL */
};

/* "forward", "backward", "total" */
extern const char *const step_phase[STEP_METRICS];

/* "f32", "f64" */
const char *own_dtype_name(ad_dtype dtype);

/* Says on standard error what is wrong with the workload; returns false. */
bool own_complain(const struct workload *w, const char *what);

/* A round for rounds_compare: context is a struct own. */
bool own_round(void *context, double seconds, double *result);

/* Whether a sum of gradients is the one that the case states, or near it in f32; if not, says whose
 * it is. f64: to 1e-12 of it, or 1e-12 where it is smaller than that. f32: to 1e-3 of it and 1e-5
 * more. */
bool own_sum_is_right(const struct workload *w, const char *whose, double sum);

/* Makes the workload, checks its gradient, calls run with it and destroys it. False, having said
 * why, if something of that fails. */
bool own_with(const struct workload_case *spec, ad_dtype dtype,
              bool (*run)(void *context, struct workload *w), void *context);

/* own_with for each of the cases, in f64 and in f32, that the options want; goes on behind one that
 * fails. */
bool own_each(const struct options *options, const struct workload_case *cases,
              bool (*run)(void *context, struct workload *w), void *context);

/* "f64_1t_total" */
enum { OWN_METRIC_BYTES = 64 };
void own_metric(char *metric, const struct workload *w, int threads, const char *what);

/* Rows for the phases of a step whose bit is set in `phases`; `suffix` ends their names. */
enum { OWN_ALL_PHASES = (1 << STEP_METRICS) - 1 };
bool own_compare(const char *suite, const struct options *options, const struct own *own,
                 const struct rounds_side *peer, unsigned phases, const char *suffix);

/* What the forward pass leaves on the tape for the backward pass. */
struct own_bytes {
    uint64_t saved;   /* buffers that a pullback reads, each once; no leaves, no constants */
    uint64_t records; /* records, value entries, shapes */
    uint64_t all;     /* both, values that no pullback reads, and padding */
    uint64_t ops;     /* how many have a record */
};

/* Of one forward pass. False, having said why, if it fails. */
bool own_bytes_of(struct workload *w, struct own_bytes *bytes);

/* Makes a temporary folder and the name of a file in it, which is not created. own_path_drop
 * removes both. */
struct own_path {
    char folder[4096], file[4096 + 16];
};
bool own_path_make(struct own_path *path);
void own_path_drop(const struct own_path *path);

#endif
