/* cli_summary.c: see cli_summary.h. */
#include "cli_summary.h"

#include <stdio.h>

char *cli_summarize(const struct prof_analysis *analysis, bool utf8)
{
    char *text = NULL;
    size_t n = 0;
    struct report_style style = {.out = open_memstream(&text, &n), .utf8 = utf8};
    if (!style.out)
        return NULL;
    report_summary(analysis, &style);
    fclose(style.out);
    return text;
}
