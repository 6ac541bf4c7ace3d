/* reverse_written.h: programs that were written as C and compiled: one of numbers, measured in
 * times its objective of plain C, and those of tensors.
 */
#ifndef REVERSE_WRITTEN_H
#define REVERSE_WRITTEN_H

#include "common_options.h"
#include "common_rounds.h"
#include "common_workloads.h"

/* The case of numbers. */
extern const char written_name[];

/* Its rows of the suite reverse. Without a C compiler (`cc`, found as the shell does) there are
 * none, which standard error says. False, having said why there, if something failed or a
 * derivative is wrong. */
bool written_compare(const struct options *options);

/* The same of a workload's program, on its tape, which has been swept from the loss: f64. */
bool written_tensors_compare(const struct options *options, const struct workload *workload,
                             ad_tensor loss, const struct rounds_side *peer);

#endif
