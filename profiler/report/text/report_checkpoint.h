/* report_checkpoint.h: calls and loop bodies as checkpoints, for `whatif`.
 *
 * Private to profiler/report.
 */
#ifndef PROFILER_REPORT_CHECKPOINT_H
#define PROFILER_REPORT_CHECKPOINT_H

#include "analyze_checkpoint.h"
#include "report_json.h"
#include "report_text.h"

/* The proposals, at most `limit` of them (0: all), and what to write for the first one; run_ns:
 * time of the tape. budget (0: none): only the cheapest that is sure to fit, or why there is none.
 */
void report_proposals(const struct analyze_result *analysis, const struct analyze_proposals *all,
                      uint64_t run_ns, uint64_t budget, size_t limit,
                      const struct report_style *style);

/* The same as members of the object under way. */
void report_proposals_json(struct base_json *json, const struct analyze_proposals *all,
                           uint64_t budget, size_t limit);

/* What becomes a function, as text that the caller frees: "step (peak.c:7), each of 16"; and by
 * which call. */
char *report_proposal_text(const struct analyze_proposal *p);
/* The end of a frame: "ad_frame_end(frame, out, 1);", which the caller frees. */
char *report_frame_text(const struct analyze_proposal *p);
const char *report_proposal_call(const struct analyze_proposal *p);

#endif
