/* report_findings.h: what stands out, in words: for `info`, and for the page.
 *
 * Invariant: each says what to do and where that is explained; a place is written as everywhere.
 */
#ifndef PROFILER_REPORT_REPORT_FINDINGS_H
#define PROFILER_REPORT_REPORT_FINDINGS_H

#include "analyze_findings.h"
#include "report_json.h"
#include "report_many.h"

/* One of them. Texts are owned, or NULL: there is nothing to say. */
struct report_finding {
    const char *kind, *title;
    char *text;
    char *where, *strong;     /* parts of the text: the place, and what weighs most */
    char *advice, *call;      /* what to do, and what to paste for it */
    const char *howto;        /* a page and its heading */
    const char *view, *tab;   /* of the page */
    const char *sort;         /* the page's class: fwd, mem, warn, good, plain */
    struct analyze_line line; /* the place; without ops: there is none */
};

struct report_findings {
    struct report_finding *finding;
    size_t n, room;
    struct analyze_findings found;
};

/* What is known already: how several sizes compare; what would lower the peak, which must outlive
 * the findings. NULL: there are none; they are made where they are asked for. */
struct report_known {
    const struct report_growth *growth;
    const struct report_sizes *sizes;
    const struct analyze_proposals *proposals;
};

/* The caller frees them. */
void report_findings_make(struct report_findings *findings, const struct analyze_result *analysis,
                          const struct report_known *known, const struct report_style *style);
void report_findings_free(struct report_findings *findings);

/* "What stands out", with a paragraph for each. */
void report_findings_print(const struct report_findings *findings,
                           const struct report_style *style);
/* "findings": [{...}] of the object that is open; `more` adds members to each, or is NULL. */
void report_findings_json(struct base_json *json, const struct report_findings *findings);

#endif
