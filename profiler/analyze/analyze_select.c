/* analyze_select.c: files under other names, and lines left out.
 *
 * May include: analyze.h. See there for the invariant: what is left out stays in the sum.
 */
#include "analyze_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What follows the folder `from` in file, or NULL: it does not lie there. */
static const char *below(const char *file, const char *from)
{
    size_t n = strlen(from);
    while (n > 1 && from[n - 1] == '/')
        n--;
    if (strncmp(file, from, n) != 0)
        return NULL;
    return file[n] == '\0' || file[n] == '/' || from[n - 1] == '/' ? file + n : NULL;
}

/* The file's new name, which the analysis owns; NULL when memory is exhausted. */
static const char *rename_file(struct prof_analysis *analysis, const char *to, const char *rest)
{
    size_t n = strlen(to);
    while (n > 0 && to[n - 1] == '/' && *rest == '/')
        n--;
    char *name = NULL;
    if (asprintf(&name, "%.*s%s", (int)n, to, rest) < 0)
        name = NULL;
    char **mapped =
        name ? realloc(analysis->mapped, (analysis->n_mapped + 1) * sizeof *mapped) : NULL;
    if (!mapped) {
        free(name);
        return NULL;
    }
    analysis->mapped = mapped;
    return analysis->mapped[analysis->n_mapped++] = name;
}

int prof_analysis_map(struct prof_analysis *analysis, const char *from, const char *to)
{
    const char *last = NULL, *renamed = NULL;
    for (size_t i = 0; i < analysis->n_lines; i++) { /* sorted by file */
        struct prof_line *line = &analysis->line[i];
        const char *rest = line->file ? below(line->file, from) : NULL;
        if (!rest)
            continue;
        if (line->file != last) {
            last = line->file;
            renamed = rename_file(analysis, to, rest);
            if (!renamed)
                return -1;
        }
        line->file = renamed;
    }
    analysis->n_lines = analyze_merge(analysis->line, analysis->n_lines, ANALYZE_BY_LINE_AND_OP);
    for (size_t i = 1; i < analysis->n_lines; i++) { /* equal files are one pointer */
        const char *before = analysis->line[i - 1].file;
        if (before && analysis->line[i].file && strcmp(before, analysis->line[i].file) == 0)
            analysis->line[i].file = before;
    }
    return 0;
}

void prof_analysis_select(struct prof_analysis *analysis,
                          bool (*keep)(void *payload, const struct prof_line *line), void *payload)
{
    size_t kept = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct prof_line *line = &analysis->line[i];
        if (keep(payload, line)) {
            analysis->line[kept++] = *line;
            continue;
        }
        prof_cost_add(&analysis->left_out, &line->cost);
        analysis->n_left_out++;
        analysis->n_unlined -= !line->own && !line->file;
    }
    analysis->n_lines = kept;
}
