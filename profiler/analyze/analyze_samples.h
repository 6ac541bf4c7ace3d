/* analyze_samples.h: samples as lines of an analysis.
 *
 * Private to profiler/analyze.
 */
#ifndef PROFILER_ANALYZE_SAMPLES_H
#define PROFILER_ANALYZE_SAMPLES_H

#include "analyze.h"

/* Makes a line of each sample of the analysis' profile, behind its other lines, for which there is
 * room: the processor time that it stands for is forward, backward or other time. */
void analyze_samples(struct analyze_result *analysis);
/* The line of one sample. */
void analyze_sample_line(struct analyze_line *line, const struct read_sample *sample,
                         const struct analyze_result *analysis);
/* Outside of ops: whose line it is of the sample's stack. That is the innermost, but for what the
 * library does it is who called that; n_stack: that is not known, the line is the library's own. */
size_t analyze_sample_owner(const struct read_sample *sample,
                            const struct analyze_result *analysis);
/* Threads and what their samples came to. */
void analyze_sum_samples(struct analyze_result *analysis);

#endif
