/* sampled_support.h: for tests of sampled profiles of their own process: what is computed, and what
 * the profile says of it.
 */
#ifndef SAMPLED_SUPPORT_H
#define SAMPLED_SUPPORT_H

#include <tapescope/ad.h>

#include "analyze.h"

enum { SAMPLED_N = 96 };

/* A folder of the test's own and a profile's path in it; how often something was logged, and the
 * last message. */
extern char sampled_folder[64], sampled_path[128], sampled_logged[4096];
extern int sampled_n_logged;

void sampled_setup(void);
void sampled_teardown(void);

/* Records and sweeps a product; gradient [N * N]. Returns the value. */
double sampled_tensor_step(ad_tape tape, double *gradient);
/* Tensors and scalars for so many seconds of the processor; returns what the results of one step
 * add up to. */
double sampled_compute(double seconds);
/* Lines of the product and of a scalar statement in it. */
extern unsigned sampled_matmul_line, sampled_statement_line;

/* The calling thread, and what it and the process have used of processors, in ns. */
uint64_t sampled_tid(void);
uint64_t sampled_thread_ns(void);
uint64_t sampled_process_ns(void);

/* What the profile has that is being taken, at this moment; the caller frees it. */
struct read_profile *sampled_fetch(void);
/* Computes until that has what is looked for, however long it takes. */
void sampled_compute_until(bool (*there)(const struct read_profile *profile));
/* The same, until there is any sample. */
void sampled_compute_until_sampled(void);
/* Returns this thread's processor time of now, having called compute() until the profile has a
 * later sample of this thread in an op: its samples then hold all of the time before. */
uint64_t sampled_compute_past(void (*compute)(void));
/* Processor time in the samples of a thread; of all of them where it is 0. */
uint64_t sampled_held(const struct read_profile *profile, uint64_t tid);

/* Every signal must be counted once, and every sample that was kept be there. */
void sampled_check(const struct read_profile *profile);
/* A profile that must be readable, and whose signals and samples add up. */
struct read_profile *sampled_read(const char *from);
/* How many samples it has. */
uint64_t sampled_count(const char *from);
/* Cost of a line of sampled_support.c, all ops together. */
struct analyze_cost sampled_cost(const struct analyze_result *analysis, unsigned line);

#endif
