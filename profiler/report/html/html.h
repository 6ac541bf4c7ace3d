/* html.h: the report as one page that needs no network.
 *
 * Invariant: what a profile or a source holds gets into the page as packed data alone, never as
 * markup or script; the same profiles and options give the same bytes.
 */
#ifndef PROFILER_REPORT_HTML_HTML_H
#define PROFILER_REPORT_HTML_HTML_H

#include "report_many.h"

/* Whose sources are put into the page: of all files, of those that are not below /usr, of none. */
enum html_sources { HTML_SOURCES_PROJECT, HTML_SOURCES_ALL, HTML_SOURCES_NONE };
enum html_theme { HTML_THEME_AUTO, HTML_THEME_LIGHT, HTML_THEME_DARK };

struct html_options {
    enum html_sources sources;
    enum html_theme theme;           /* which one the page begins with; auto: the browser's */
    const struct analyze_runs *base; /* what the differences are to; NULL: none are shown */
    const struct analyze_runs
        *now; /* whose middle run the page is about; NULL: it is the only one */
    const struct report_sizes *growth; /* the profiles at several sizes; NULL: no growth */
    analyze_warn_fn *warn;             /* says which sources could not be read; may be NULL */
    void *warn_payload;
};

/* Writes the page about one analysis to `out`; whether that took all of it is for the caller to
 * see. */
void html_write(FILE *out, const struct analyze_result *analysis,
                const struct html_options *options);

#endif
