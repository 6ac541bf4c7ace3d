/* analyze_select.c: files under other names, and lines left out.
 *
 * See there for the invariant: what is left out stays in the sum.
 */
#include "analyze_map.h"
#include "analyze_merge.h"

#include <string.h>

void analyze_map(struct analyze_result *analysis, const char *from, const char *to)
{
    struct analyze_map *map = analyze_map_add(&analysis->map, from, to);
    for (size_t i = 0; i < analysis->n_lines; i++)
        analysis->line[i].file = analyze_map_file(map, analysis->line[i].file);
    analysis->n_lines =
        analyze_merge(analysis->line, analysis->n_lines, ANALYZE_BY_LINE_OP_AND_SHAPE);
    for (size_t i = 1; i < analysis->n_lines; i++) { /* equal files are one pointer */
        const char *before = analysis->line[i - 1].file;
        if (before && analysis->line[i].file && strcmp(before, analysis->line[i].file) == 0)
            analysis->line[i].file = before;
    }
}

void analyze_select(struct analyze_result *analysis,
                    bool (*keep)(void *payload, const struct analyze_line *line), void *payload)
{
    size_t kept = 0;
    analysis->keep = keep;
    analysis->keep_payload = payload;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (keep(payload, line)) {
            analysis->line[kept++] = *line;
            continue;
        }
        analyze_cost_add(&analysis->left_out, &line->cost);
        analysis->n_left_out++;
        analysis->n_unlined -= analyze_is_unlined(line);
    }
    analysis->n_lines = kept;
}

bool analyze_keeps(const struct analyze_result *analysis, const struct analyze_line *line)
{
    return !analysis->keep || analysis->keep(analysis->keep_payload, line);
}
