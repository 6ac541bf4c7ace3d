/* pattern_text.h: a sparse pattern as text, which tests compare with one worked out by hand. */
#ifndef PATTERN_TEXT_H
#define PATTERN_TEXT_H

#include <tapescope/ad_real.h>

#include <stdio.h>

/* Rows of columns, "0 2 | 1 | ". Valid until the next call. */
static inline const char *text_of(const ad_sparse_pattern *p)
{
    static char text[256];
    int at = 0;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t e = p->row_start[i]; e <= p->row_start[i + 1]; e++)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           e < p->row_start[i + 1] ? "%d " : "| ",
                           e < p->row_start[i + 1] ? (int)p->column[e] : 0);
    return text;
}

#endif
