/* html.c: the page around the data. See html.h.
 *
 * Invariant: the page's own bytes are those of profiler/report/web/dist/report.html.
 */
#include "html.h"

#include "base_memory.h"
#include "html_data.h"
#include "html_pack.h"
#include "html_page.h"

#include <stdlib.h>
#include <string.h>

/* Where the data come in the page. */
static const char mark[] = "@TAPESCOPE-DATA@";

/* The document, compressed, as text that the caller frees. */
static char *html_pack_data(const struct analyze_result *analysis,
                            const struct html_options *options, size_t *n)
{
    char *text;
    FILE *memory = base_memstream_open(&text, n), *packed = html_pack_open(memory);
    html_put_data(packed, analysis, options);
    if (fclose(packed) != 0)
        base_no_memory();
    base_memstream_close(memory, &text);
    return text;
}

void html_write(FILE *out, const struct analyze_result *analysis,
                const struct html_options *options)
{
    const char *page = (const char *)html_page;
    const char *at = memmem(page, html_page_bytes, mark, strlen(mark));
    size_t n;
    char *text = html_pack_data(analysis, options, &n);
    fwrite(page, 1, (size_t)(at - page), out);
    fwrite(text, 1, n, out);
    at += strlen(mark);
    fwrite(at, 1, html_page_bytes - (size_t)(at - page), out);
    free(text);
}
