/* html.c: the page around the data. See html.h.
 *
 * May include: html_data.h, html_pack.h, html_page.h.
 * Invariant: the page's own bytes are those of profiler/report/web/dist/report.html.
 */
#include "html.h"

#include "html_data.h"
#include "html_pack.h"
#include "html_page.h"

#include <stdlib.h>
#include <string.h>

/* Where the data come in the page. */
static const char mark[] = "@TAPESCOPE-DATA@";

/* The document, compressed, as text that the caller frees; NULL: memory is exhausted. */
static char *pack(const struct prof_analysis *analysis, const struct html_options *options,
                  size_t *n)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, n);
    FILE *packed = memory ? html_pack_open(memory) : NULL;
    int status = packed ? html_put_data(packed, analysis, options) : -1;
    if (packed && fclose(packed) != 0)
        status = -1;
    if (memory && fclose(memory) != 0)
        status = -1;
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

int html_write(FILE *out, const struct prof_analysis *analysis, const struct html_options *options)
{
    const char *page = (const char *)html_page;
    const char *at = memmem(page, html_page_bytes, mark, strlen(mark));
    size_t n;
    char *text = at ? pack(analysis, options, &n) : NULL;
    if (!text)
        return -1;
    fwrite(page, 1, (size_t)(at - page), out);
    fwrite(text, 1, n, out);
    at += strlen(mark);
    fwrite(at, 1, html_page_bytes - (size_t)(at - page), out);
    free(text);
    return 0;
}
