/* html_many.c: differences of two profiles, and growth over several. See html_data.h. */
#include "html_data.h"

#include "analyze_tree.h"
#include "base_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The joined rows' lines of profile i, with costs of 0 where there is none; to be freed. */
static struct analyze_line *many_side(const struct analyze_join *join, size_t i)
{
    struct analyze_line *line = base_calloc(join->n_rows + 1, sizeof *line);
    for (size_t row = 0; row < join->n_rows; row++)
        if (join->row[row].line[i])
            line[row] = *join->row[row].line[i];
    return line;
}

static void put_sides(struct html_data *data, const struct analyze_join *join,
                      const struct analyze_line *base, const struct analyze_line *now,
                      struct analyze_line *any)
{
    struct base_json *json = &data->json;
    for (size_t i = 0; i < join->n_rows; i++)
        any[i] = *join->row[i].any;
    base_json_array(json, "in"); /* 1: the base alone, 2: the new one alone, 3: both */
    for (size_t i = 0; i < join->n_rows; i++)
        base_json_u64(json, NULL,
                      (join->row[i].line[0] ? 1u : 0) | (join->row[i].line[1] ? 2u : 0));
    base_json_end(json);
    base_json_array(json, "moved");
    for (size_t i = 0; i < join->n_rows; i++)
        base_json_u64(json, NULL, join->row[i].moved);
    base_json_end(json);
    html_put_places(data, "", (struct html_lines){any, sizeof *any, join->n_rows});
    html_put_costs(data, "base_", (struct html_lines){base, sizeof *base, join->n_rows});
    html_put_costs(data, "new_", (struct html_lines){now, sizeof *now, join->n_rows});
}

/* What the nodes of one side of the pairs are, with costs of 0 where there is none; `any` gets what
 * the calls are named by, if it is not named yet. To be freed. */
static struct analyze_line *tree_side(const struct analyze_tree *tree,
                                      const struct analyze_tree_pair *pair, size_t n, int which,
                                      struct analyze_line *any)
{
    struct analyze_line *line = base_calloc(n, sizeof *line);
    for (size_t i = 0; i < n; i++) {
        if (pair[i].node[which] == ANALYZE_NO_NODE)
            continue;
        line[i] = tree->node[pair[i].node[which]].line;
        any[i] = line[i];
    }
    return line;
}

static void put_pairs(struct html_data *data, const struct analyze_tree *const tree[2],
                      const struct analyze_tree_pair *pair, size_t n)
{
    struct base_json *json = &data->json;
    struct analyze_line *any = base_calloc(n, sizeof *any);
    struct analyze_line *base = tree_side(tree[0], pair, n, 0, any);
    struct analyze_line *now = tree_side(tree[1], pair, n, 1, any);
    base_json_array(json, "parent");
    for (size_t i = 0; i < n; i++)
        base_json_i64(json, NULL, i == 0 ? -1 : (int64_t)pair[i].parent);
    base_json_end(json);
    base_json_array(json, "in"); /* as of the rows */
    for (size_t i = 0; i < n; i++)
        base_json_u64(json, NULL,
                      (pair[i].node[0] != ANALYZE_NO_NODE ? 1u : 0) |
                          (pair[i].node[1] != ANALYZE_NO_NODE ? 2u : 0));
    base_json_end(json);
    base_json_array(json, "cut");
    for (size_t i = 0; i < n; i++) {
        const int side = pair[i].node[1] != ANALYZE_NO_NODE;
        if (tree[side]->node[pair[i].node[side]].cut)
            base_json_u64(json, NULL, i);
    }
    base_json_end(json);
    html_put_places(data, "", (struct html_lines){any, sizeof *any, n});
    html_put_costs(data, "base_", (struct html_lines){base, sizeof *base, n});
    html_put_costs(data, "new_", (struct html_lines){now, sizeof *now, n});
    free(any);
    free(base);
    free(now);
}

/* A time that a change is compared in. */
static uint64_t many_total(void *payload, const struct analyze_cost *cost)
{
    (void)payload;
    return analyze_cost_time(cost);
}

static uint64_t many_forward(void *payload, const struct analyze_cost *cost)
{
    (void)payload;
    return cost->forward_ns;
}

static uint64_t many_backward(void *payload, const struct analyze_cost *cost)
{
    (void)payload;
    return cost->backward_ns;
}

/* The metrics of times. */
static const struct {
    const char *name;
    analyze_value_fn *value;
} many_times[] = {{"total", many_total}, {"forward", many_forward}, {"backward", many_backward}};
enum { MANY_TIMES = sizeof many_times / sizeof *many_times };

/* What the times of one side's calls are over its runs: sum and sum of squares, by node. */
struct many_spread {
    double sum[MANY_TIMES], squares[MANY_TIMES];
};

/* Of the nodes of a tree, over the runs; a run without a call has 0 there. To be freed. */
static struct many_spread *many_spread_make(const struct analyze_tree *tree,
                                            const struct analyze_runs *runs)
{
    const struct analyze_tree_options all = {0};
    struct many_spread *spread = base_calloc(tree->n_nodes, sizeof *spread);
    for (size_t run = 0; run < runs->n; run++) {
        struct analyze_tree *of = analyze_tree_make(runs->run[run], &all);
        size_t n = 0;
        struct analyze_tree_pair *pair = analyze_tree_join(tree, of, &n);
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < MANY_TIMES; k++) {
                if (pair[i].node[0] == ANALYZE_NO_NODE || pair[i].node[1] == ANALYZE_NO_NODE)
                    continue;
                const double x = (double)many_times[k].value(NULL, &of->node[pair[i].node[1]].all);
                spread[pair[i].node[0]].sum[k] += x;
                spread[pair[i].node[0]].squares[k] += x * x;
            }
        free(pair);
        analyze_tree_free(of);
    }
    return spread;
}

/* The variance of a metric of a node over n runs. */
static double many_variance(const struct many_spread *spread, uint32_t node, int metric, size_t n)
{
    if (node == ANALYZE_NO_NODE || n < 2)
        return 0;
    const double sum = spread[node].sum[metric];
    const double squares = spread[node].squares[metric] - sum * sum / (double)n;
    return squares > 0 ? squares / (double)(n - 1) : 0;
}

/* "chance" as of the rows, of what each call has with all that it calls: only of several runs. */
static void put_chance_of_pairs(struct html_data *data, const struct analyze_tree *const tree[2],
                                const struct analyze_tree_pair *pair, size_t n,
                                const struct analyze_runs *const runs[2], double errors)
{
    struct many_spread *spread[2];
    if (runs[0]->n + runs[1]->n <= 2)
        return;
    for (int side = 0; side < 2; side++)
        spread[side] = many_spread_make(tree[side], runs[side]);
    base_json_object(&data->json, "chance");
    for (int k = 0; k < MANY_TIMES; k++) {
        base_json_array(&data->json, many_times[k].name);
        for (size_t i = 0; i < n; i++) {
            double variance[2];
            for (int side = 0; side < 2; side++)
                variance[side] = many_variance(spread[side], pair[i].node[side], k, runs[side]->n);
            for (int side = 0; side < 2; side++) /* one run: as the others vary */
                if (runs[side]->n == 1)
                    variance[side] = variance[!side];
            base_json_double(
                &data->json, NULL,
                errors * sqrt(variance[0] / (double)runs[0]->n + variance[1] / (double)runs[1]->n));
        }
        base_json_end(&data->json);
    }
    base_json_end(&data->json);
    free(spread[0]);
    free(spread[1]);
}

/* The calls of both profiles as one tree. */
static void put_both_trees(struct html_data *data, const struct analyze_runs *const runs[2],
                           double errors)
{
    const struct analyze_tree_options all = {0};
    struct analyze_tree *base = analyze_tree_make(runs[0]->run[runs[0]->middle], &all);
    struct analyze_tree *now = analyze_tree_make(data->analysis, &all);
    size_t n = 0;
    struct analyze_tree_pair *pair = analyze_tree_join(base, now, &n);
    base_json_object(&data->json, "tree");
    const struct analyze_tree *const trees[] = {base, now};
    put_pairs(data, trees, pair, n);
    put_chance_of_pairs(data, trees, pair, n, runs, errors);
    base_json_end(&data->json);
    free(pair);
    analyze_tree_free(base);
    analyze_tree_free(now);
}

/* "chance": of each metric of times, by row, the change that chance makes; 0: not known. The last
 * is of all. Returns how many standard errors that are. */
static double put_chance(struct html_data *data, const struct analyze_runs *const runs[2],
                         const struct analyze_join *join)
{
    static const struct analyze_line *const all[2];
    struct analyze_noise noise;
    analyze_noise_make(&noise, runs[0], runs[1], ANALYZE_BY_LINE);
    base_json_object(&data->json, "chance");
    for (size_t k = 0; k < MANY_TIMES; k++) {
        base_json_array(&data->json, many_times[k].name);
        for (size_t i = 0; i <= join->n_rows; i++) {
            const double error = analyze_noise_error(
                &noise, i < join->n_rows ? join->row[i].line : all, many_times[k].value, NULL);
            base_json_double(&data->json, NULL, error > 0 ? error * noise.errors : 0);
        }
        base_json_end(&data->json);
    }
    base_json_end(&data->json);
    const double errors = noise.errors;
    analyze_noise_free(&noise);
    return errors;
}

void html_put_diff(struct html_data *data)
{
    struct base_json *json = &data->json;
    if (!data->options->base) {
        base_json_null(json, "diff");
        return;
    }
    struct analyze_runs one;
    analyze_runs_make(&one, &data->analysis, 1);
    const struct analyze_runs *const runs[] = {data->options->base,
                                               data->options->now ? data->options->now : &one};
    const struct analyze_result *both[] = {&runs[0]->mean, &runs[1]->mean};
    struct analyze_join join;
    analyze_join_make(&join, both, 2, ANALYZE_BY_LINE, true);
    struct analyze_line *base = many_side(&join, 0);
    struct analyze_line *now = many_side(&join, 1);
    struct analyze_line *any = base_calloc(join.n_rows + 1, sizeof *any);
    base_json_object(json, "diff");
    report_json_profile(json, "base_profile", both[0]->profile);
    report_json_totals(json, "base_total", both[0]);
    base_json_u64(json, "base_runs", runs[0]->n);
    base_json_u64(json, "new_runs", runs[1]->n);
    const double errors = put_chance(data, runs, &join);
    base_json_object(json, "rows");
    put_sides(data, &join, base, now, any);
    base_json_end(json);
    put_both_trees(data, runs, errors);
    base_json_end(json);
    free(base);
    free(now);
    free(any);
    analyze_join_free(&join);
    analyze_runs_free(&one);
}

static void put_fit(struct base_json *json, const char *name, const struct analyze_fit *fit)
{
    base_json_object(json, name);
    if (fit->fits) {
        base_json_double(json, "factor", fit->factor);
        base_json_double(json, "exponent", fit->exponent);
    }
    if (fit->fits && fit->has_interval) {
        base_json_double(json, "low", fit->low);
        base_json_double(json, "high", fit->high);
    }
    base_json_end(json);
}

/* As the growth's fits have it. */
static uint64_t time_of(const struct analyze_cost *cost)
{
    return cost->forward_ns + cost->backward_ns + cost->recompute_ns;
}

static uint64_t time_of_all(const struct analyze_totals *total)
{
    return total->forward_ns + total->backward_ns + total->recompute_ns;
}

static void put_growth_row(struct html_data *data, const struct report_growth_row *row)
{
    struct base_json *json = &data->json;
    const struct report_sizes *sizes = data->options->growth;
    base_json_object(json, NULL);
    if (row->row)
        html_put_places(data, "", (struct html_lines){row->row->any, sizeof *row->row->any, 1});
    base_json_array(json, "bytes");
    for (size_t i = 0; i < sizes->n; i++)
        base_json_u64(json, NULL,
                      !row->row           ? sizes->analysis[i]->total.peak_bytes
                      : row->row->line[i] ? row->row->line[i]->cost.peak_bytes
                                          : 0);
    base_json_end(json);
    base_json_array(json, "ns");
    for (size_t i = 0; i < sizes->n; i++)
        base_json_u64(json, NULL,
                      !row->row           ? time_of_all(&sizes->analysis[i]->total)
                      : row->row->line[i] ? time_of(&row->row->line[i]->cost)
                                          : 0);
    base_json_end(json);
    put_fit(json, "bytes_fit", &row->bytes);
    put_fit(json, "time_fit", &row->time);
    base_json_end(json);
}

void html_put_growth(struct html_data *data)
{
    struct base_json *json = &data->json;
    const struct report_sizes *sizes = data->options->growth;
    struct report_growth growth;
    if (!sizes) {
        base_json_null(json, "growth");
        return;
    }
    report_growth_make(&growth, sizes, ANALYZE_BY_LINE, REPORT_BYTES_PEAK);
    base_json_object(json, "growth");
    /* Sizes that an option lists have no name of their own. */
    base_json_text(json, "size", strcmp(sizes->name, "--sizes") == 0 ? "size" : sizes->name);
    base_json_array(json, "sizes");
    for (size_t i = 0; i < sizes->n; i++)
        base_json_double(json, NULL, sizes->size[i]);
    base_json_end(json);
    base_json_array(json, "rows"); /* the totals first */
    put_growth_row(data, &growth.total);
    for (size_t i = 0; i < growth.n; i++)
        put_growth_row(data, &growth.row[i]);
    base_json_end(json);
    base_json_end(json);
    report_growth_free(&growth);
}
