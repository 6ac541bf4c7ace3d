/* cli_summary.c: see cli_summary.h. */
#include "cli_summary.h"

#include "base_memory.h"

#include <stdio.h>

char *cli_summarize(const struct analyze_result *analysis, bool utf8)
{
    char *text = NULL;
    size_t n = 0;
    struct report_style style = {.out = base_memstream_open(&text, &n), .utf8 = utf8};
    report_summary(analysis, &style);
    base_memstream_close(style.out, &text);
    return text;
}
