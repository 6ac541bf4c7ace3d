/* html_ranks.c: what each rank of a set has of the lines, calls and classes of bytes. See
 * html_data.h.
 */
#include "html_data.h"

#include "analyze_ranks.h"
#include "analyze_space.h"

#include "base_memory.h"

#include <stdlib.h>

/* Lines and calls times ranks: of more the page would be too large. */
enum { MOST_ROWS = 1 << 18 };

static void ranks_put_lines(struct html_data *data, const struct analyze_ranks *ranks, size_t rank)
{
    struct analyze_line *rows;
    const struct analyze_result *sum = data->analysis;
    const struct analyze_line **beside = analyze_ranks_beside(ranks, rank, sum->line, sum->n_lines,
                                                              ANALYZE_BY_LINE_OP_AND_SHAPE, &rows);
    struct analyze_line *line = base_calloc(sum->n_lines + 1, sizeof *line);
    for (size_t i = 0; i < sum->n_lines; i++)
        if (beside[i])
            line[i].cost = beside[i]->cost;
    base_json_object(&data->json, NULL);
    html_put_costs(data, "", (struct html_lines){line, sizeof *line, sum->n_lines});
    base_json_end(&data->json);
    free(line);
    free(beside);
    free(rows);
}

static void ranks_put_tree(struct html_data *data, const struct analyze_ranks *ranks, size_t rank,
                           const struct analyze_tree *tree)
{
    size_t n;
    struct analyze_tree *of =
        analyze_tree_make(ranks->analysis[rank], &(struct analyze_tree_options){0});
    struct analyze_tree_pair *pair = analyze_tree_join(tree, of, &n);
    struct analyze_line *line = base_calloc(tree->n_nodes + 1, sizeof *line);
    for (size_t i = 0; i < n; i++)
        if (pair[i].node[0] != ANALYZE_NO_NODE && pair[i].node[1] != ANALYZE_NO_NODE)
            line[pair[i].node[0]].cost = of->node[pair[i].node[1]].line.cost;
    base_json_object(&data->json, NULL);
    html_put_costs(data, "", (struct html_lines){line, sizeof *line, tree->n_nodes});
    base_json_end(&data->json);
    free(line);
    free(pair);
    analyze_tree_free(of);
}

/* What each holds at its own peak, by the classes of the sum. */
static void ranks_put_held(struct html_data *data, const struct analyze_ranks *ranks, size_t rank)
{
    struct analyze_space sum, own;
    const enum analyze_space_by by = ANALYZE_SPACE_BY_CLASS;
    (void)analyze_space_make(&sum, data->analysis, by, ANALYZE_AT_PEAK, 0);
    (void)analyze_space_make(&own, ranks->analysis[rank], by, ANALYZE_AT_PEAK, 0);
    base_json_array(&data->json, NULL);
    for (size_t i = 0, at = 0; i < sum.n; i++) {
        while (at < own.n && analyze_space_compare(&own.holder[at], &sum.holder[i], by) < 0)
            at++;
        const bool same =
            at < own.n && analyze_space_compare(&own.holder[at], &sum.holder[i], by) == 0;
        base_json_u64(&data->json, NULL, same ? own.holder[at].held : 0);
    }
    base_json_end(&data->json);
    analyze_space_free(&sum);
    analyze_space_free(&own);
}

void html_put_ranks(struct html_data *data, const struct analyze_tree *tree)
{
    struct base_json *json = &data->json;
    const struct analyze_ranks *ranks = data->analysis->ranks;
    const size_t rows = data->analysis->n_lines + tree->n_nodes;
    if (!ranks || ranks->n < 2 || ranks->n > MOST_ROWS / (rows + 1)) {
        base_json_null(json, "ranks");
        return;
    }
    base_json_object(json, "ranks");
    base_json_array(json, "rank");
    for (size_t i = 0; i < ranks->n; i++)
        base_json_i64(json, NULL, ranks->rank[i].rank);
    base_json_end(json);
    base_json_array(json, "lines");
    for (size_t i = 0; i < ranks->n; i++)
        ranks_put_lines(data, ranks, i);
    base_json_end(json);
    base_json_array(json, "tree");
    for (size_t i = 0; i < ranks->n; i++)
        ranks_put_tree(data, ranks, i, tree);
    base_json_end(json);
    base_json_array(json, "held");
    for (size_t i = 0; i < ranks->n; i++)
        ranks_put_held(data, ranks, i);
    base_json_end(json);
    base_json_end(json);
}
