/* html_pack.h: a stream that compresses what is written to it into text.
 *
 * Private to profiler/report/html.
 */
#ifndef PROFILER_REPORT_HTML_HTML_PACK_H
#define PROFILER_REPORT_HTML_HTML_PACK_H

#include <stdio.h>

/* A stream whose bytes go to `out` (borrowed) as base64 (RFC 4648) of gzip (RFC 1952), all of them
 * once it is closed; a failure is one of writing to it, or of fclose(). */
FILE *html_pack_open(FILE *out);

#endif
