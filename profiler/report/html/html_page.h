/* html_page.h: the page as the build found it in profiler/report/web/dist/report.html.
 *
 * Private to profiler/report/html; defined in a file that the build makes.
 */
#ifndef PROFILER_REPORT_HTML_HTML_PAGE_H
#define PROFILER_REPORT_HTML_HTML_PAGE_H

#include <stddef.h>

extern const unsigned char html_page[];
extern const size_t html_page_bytes;

#endif
