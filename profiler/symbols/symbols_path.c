/* symbols_path.c: see symbols_path.h. */
#include "symbols_path.h"

#include "base_memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *symbols_path_text(struct base_strings *strings, const char *text)
{
    const int64_t at = base_strings_add(strings, text);
    return at >= 0 ? strings->text[at] : NULL;
}

/* Drops the last component of out[0..n), a path without a trailing slash; returns its new
 * length. */
static size_t drop_last(const char *out, size_t n)
{
    while (n > 0 && out[n - 1] != '/')
        n--;
    return n > 0 ? n - 1 : 0;
}

const char *symbols_path_add(struct base_strings *strings, const char *directory, const char *path)
{
    size_t before = directory ? strlen(directory) + 1 : 0, length = before + strlen(path), n = 0;
    /* The joined path, then its canonical spelling. */
    char *joined = base_malloc(2 * (length + 2));
    if (!joined)
        return NULL;
    char *out = joined + length + 2;
    snprintf(joined, length + 2, "%s%s%s", directory ? directory : "", directory ? "/" : "", path);
    bool absolute = joined[0] == '/';
    for (const char *at = joined; *at;) {
        size_t m = strcspn(at, "/");
        bool up = m == 2 && at[0] == '.' && at[1] == '.';
        bool can_go_up = n > 0 && !(n >= 2 && out[n - 1] == '.' && out[n - 2] == '.' &&
                                    (n == 2 || out[n - 3] == '/'));
        if (up && can_go_up) {
            n = drop_last(out, n);
        } else if (m > 0 && !(m == 1 && at[0] == '.') && !(up && absolute)) {
            if (n > 0 || absolute)
                out[n++] = '/';
            memcpy(out + n, at, m);
            n += m;
        }
        at += m;
        at += strspn(at, "/");
    }
    if (n == 0)
        out[n++] = absolute ? '/' : '.';
    out[n] = '\0';
    const char *kept = symbols_path_text(strings, out);
    free(joined);
    return kept;
}
