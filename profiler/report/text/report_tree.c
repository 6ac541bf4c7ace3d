/* report_tree.c: the tree of calls, a line for each node.
 *
 * Invariant: the columns of a node are those of its own and of all below, shown or not; the first
 * row has the sum of all that the tree holds.
 */
#include "report_tree.h"
#include "base_strings.h"

#include "analyze_ranks.h"
#include "base_memory.h"
#include "report_json.h"
#include "report_rank.h"
#include "report_spread.h"
#include "report_text.h"
#include "report_units.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_ROOM = 256, LABEL_ROOM = 2048, WIDE = 100, COLUMNS_BEFORE = 36 };

struct ordered {
    uint32_t node;
    uint64_t key;
    const struct analyze_line *line;
};

struct printer {
    const struct analyze_tree *tree;
    const struct report_tree_options *options;
    const struct report_style *style;
    struct report_table *table;
    struct base_json *json;
    struct ordered *order; /* room for every node */
    size_t n_order;
    size_t shown, hidden;
    struct report_spread spread; /* by nodes, and what is left out; without ranks: not apart */
};

static int compare_text(const char *a, const char *b)
{
    if (!a || !b)
        return (a == NULL) - (b == NULL);
    return strcmp(a, b);
}

/* The greatest key first; what is equal, in the order of the source. */
static int compare_ordered(const void *x, const void *y)
{
    const struct ordered *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    int order = compare_text(a->line->file, b->line->file);
    if (order == 0)
        order = compare_text(a->line->function, b->line->function);
    if (order == 0 && a->line->line != b->line->line)
        order = a->line->line < b->line->line ? -1 : 1;
    return order ? order : a->node < b->node ? -1 : a->node > b->node;
}

static uint64_t tree_cost_of(const struct printer *p, const struct analyze_cost *cost)
{
    return report_ranking_key(cost, p->options->metric, p->style);
}

static uint64_t tree_key_of(const struct printer *p, const struct analyze_tree_node *node)
{
    switch (p->options->order) {
    case REPORT_TREE_BY_CALLS:
        return node->all.calls;
    case REPORT_TREE_BY_SELF:
        return tree_cost_of(p, &node->line.cost);
    case REPORT_TREE_BY_SOURCE:
        return 0;
    case REPORT_TREE_BY_COST:
        break;
    }
    return tree_cost_of(p, &node->all);
}

/* Op calls; where none were counted, samples. */
static uint64_t count_of(const struct analyze_cost *cost)
{
    return cost->calls > 0 ? cost->calls : cost->samples;
}

static bool tree_is_shown(const struct printer *p, const struct analyze_tree_node *node,
                          const struct analyze_tree_node *parent)
{
    const struct report_tree_options *options = p->options;
    if (options->max_depth > 0 && node->depth > options->max_depth)
        return false;
    if (options->least_share > 0 &&
        (double)tree_cost_of(p, &node->all) <
            options->least_share * (double)tree_cost_of(p, &p->tree->node[0].all))
        return false;
    /* Julia's rule: more than chance would make of the parent's count, n > x sqrt(N). */
    const double n = (double)count_of(&node->all), x = options->noise_floor;
    return n >= (double)options->min_count &&
           (x <= 0 || n * n > x * x * (double)count_of(&parent->all));
}

static const char *module_of(const struct analyze_line *line)
{
    return line->module ? base_file_name(line->module) : "?";
}

static void tree_put_place(char *buf, size_t n, const struct printer *p,
                           const struct analyze_line *line)
{
    const char *file = line->file ? report_short_path(p->tree->analysis, line->file) : NULL;
    const char *function = line->function ? line->function : "";
    const char *space = line->function ? " " : "";
    if (file && line->line)
        snprintf(buf, n, "%s%s%s:%u", function, space, file, (unsigned)line->line);
    else if (file)
        snprintf(buf, n, "%s%s%s", function, space, file);
    else if (line->line)
        snprintf(buf, n, "%s%s%s line %u", function, space, module_of(line), (unsigned)line->line);
    else if (line->offset)
        snprintf(buf, n, "%s%s%s+0x%llx", function, space, module_of(line),
                 (unsigned long long)line->offset);
    else
        snprintf(buf, n, "%s%s%s", function, space, module_of(line));
}

static bool is_wide(const struct printer *p)
{
    return p->style->exact || p->style->width == 0 || p->style->width >= WIDE;
}

/* Levels shown by spaces: half of what the other columns leave. Deeper ones are numbers. */
static unsigned most_indent(const struct printer *p)
{
    enum { LEAST = 3, MOST = 40 };
    const unsigned width = p->style->exact || p->style->width == 0 ? UINT_MAX : p->style->width;
    const unsigned levels = width > COLUMNS_BEFORE ? (width - COLUMNS_BEFORE) / 4 : 0;
    return levels < LEAST ? LEAST : levels < MOST ? levels : MOST;
}

static void put_label(char *buf, size_t n, const struct printer *p,
                      const struct analyze_tree_node *node)
{
    char names[NAMES_ROOM], place[LABEL_ROOM / 2];
    report_text_names(names, sizeof names, &node->line.ops, ",");
    const unsigned level = node->depth > 0 ? node->depth - 1 : 0, most = most_indent(p);
    const int indent = (int)(2 * (level < most ? level : most));
    if (node->depth == 0)
        snprintf(place, sizeof place, "(all)");
    else if (node->line.own)
        snprintf(place, sizeof place, "(tape)");
    else if (node->line.idle)
        snprintf(place, sizeof place, "%s", ANALYZE_IDLE_NAME);
    else if (node->cut)
        snprintf(place, sizeof place, "(frames left out)");
    else
        tree_put_place(place, sizeof place, p, &node->line);
    if (level > most)
        snprintf(buf, n, "%*s+%u %s%s%s", indent, "", level - most, place, *names ? " " : "",
                 names);
    else
        snprintf(buf, n, "%*s%s%s%s", indent, "", place, *names ? " " : "", names);
}

/* What stands beside the metric, where there is room. */
static const struct {
    enum report_sort metric;
    unsigned rank;
    bool wide; /* on wide terminals alone */
} others[] = {
    {REPORT_SORT_FORWARD, 5, true},
    {REPORT_SORT_BACKWARD, 4, false},
    {REPORT_SORT_TAPE, 6, true},
    {REPORT_SORT_CALLS, 3, false},
};
enum { OTHERS = sizeof others / sizeof *others };

static bool tree_has_other(const struct printer *p, int i)
{
    return others[i].metric != p->options->metric && (!others[i].wide || is_wide(p)) &&
           report_ranking_knows(p->tree->analysis->profile, others[i].metric);
}

/* Times of a profile with samples are estimates. */
static bool is_estimate(const struct printer *p, enum report_sort metric)
{
    return p->tree->analysis->profile->n_samples > 0 &&
           (metric == REPORT_SORT_TOTAL || metric == REPORT_SORT_FORWARD ||
            metric == REPORT_SORT_BACKWARD);
}

static const char *title_of(const struct printer *p, enum report_sort metric)
{
#define X(NAME, word, title) {title, "~" title},
    static const char *const titles[][2] = {REPORT_METRICS(X)};
#undef X
    if (metric == REPORT_SORT_LIFETIME)
        return report_text_byte_time_title(p->style);
    return titles[metric][is_estimate(p, metric)];
}

static void tree_add_columns(const struct printer *p)
{
    report_table_column(p->table, REPORT_TABLE_RIGHT, "share");
    report_table_column(p->table, REPORT_TABLE_RIGHT, title_of(p, p->options->metric));
    if (!p->options->inverted) {
        report_table_column(p->table, REPORT_TABLE_RIGHT,
                            is_estimate(p, p->options->metric) ? "~self" : "self");
        report_table_optional(p->table, 2);
    }
    for (int i = 0; i < OTHERS; i++) {
        if (!tree_has_other(p, i))
            continue;
        report_table_column(p->table, REPORT_TABLE_RIGHT, title_of(p, others[i].metric));
        report_table_optional(p->table, others[i].rank);
    }
    if (p->spread.ranks)
        report_spread_columns(&p->spread, p->table);
    report_table_column(p->table, REPORT_TABLE_LEFT,
                        p->options->inverted ? "call, op; its callers" : "call, op");
}

static void cell_cost(const struct printer *p, enum report_sort metric,
                      const struct analyze_cost *cost)
{
    const uint64_t value = report_ranking_key(cost, metric, p->style);
    if (metric == REPORT_SORT_TAPE || metric == REPORT_SORT_PEAK)
        report_cell_bytes(p->table, value, p->style);
    else if (metric == REPORT_SORT_CALLS)
        report_cell_count(p->table, value, p->style);
    else if (metric == REPORT_SORT_LIFETIME)
        report_cell_byte_time(p->table, cost->byte_ns, p->style);
    else if (metric == REPORT_SORT_TOTAL)
        report_cell_total(p->table, cost, p->style);
    else if (metric == REPORT_SORT_FORWARD || metric == REPORT_SORT_BACKWARD)
        report_cell_phase(p->table, cost,
                          metric == REPORT_SORT_FORWARD ? REPORT_FORWARD : REPORT_BACKWARD,
                          p->style);
    else
        report_cell_time(p->table, value, p->style);
}

static void tree_add_cells(const struct printer *p, const struct analyze_cost *all,
                           const struct analyze_cost *self, size_t row)
{
    char buf[REPORT_UNITS_ROOM];
    report_table_row(p->table);
    report_table_cell(p->table, report_ranking_share(buf, all, &p->tree->analysis->sum,
                                                     p->options->metric, p->style));
    cell_cost(p, p->options->metric, all);
    if (!p->options->inverted)
        cell_cost(p, p->options->metric, self);
    for (int i = 0; i < OTHERS; i++)
        if (tree_has_other(p, i))
            cell_cost(p, others[i].metric, all);
    if (p->spread.ranks)
        report_spread_cells(&p->spread, p->table, report_spread_row(&p->spread, row));
}

static void tree_put_json(const struct printer *p, uint32_t i)
{
    const struct analyze_tree_node *node = &p->tree->node[i];
    base_json_object(p->json, NULL);
    base_json_u64(p->json, "id", i);
    if (node->parent != ANALYZE_NO_NODE)
        base_json_u64(p->json, "parent", node->parent);
    else
        base_json_null(p->json, "parent");
    base_json_u64(p->json, "depth", node->depth);
    base_json_bool(p->json, "cut", node->cut);
    report_json_place(p->json, &node->line);
    base_json_object(p->json, "self");
    report_json_cost(p->json, &node->line.cost, p->tree->analysis->profile);
    base_json_end(p->json);
    base_json_object(p->json, "all");
    report_json_cost(p->json, &node->all, p->tree->analysis->profile);
    base_json_end(p->json);
    if (p->spread.ranks)
        report_spread_json_row(&p->spread, p->json, report_spread_row(&p->spread, i));
    base_json_end(p->json);
}

static void tree_put_node(struct printer *p, uint32_t i)
{
    char label[LABEL_ROOM];
    const struct analyze_tree_node *node = &p->tree->node[i];
    p->shown++;
    if (p->json) {
        tree_put_json(p, i);
        return;
    }
    tree_add_cells(p, &node->all, &node->line.cost, i);
    put_label(label, sizeof label, p, node);
    report_table_cell(p->table, label);
}

static size_t tree_count_below(const struct analyze_tree *tree, uint32_t i)
{
    size_t n = 1;
    for (uint32_t at = tree->node[i].child; at != ANALYZE_NO_NODE; at = tree->node[at].next)
        n += tree_count_below(tree, at);
    return n;
}

/* The calls below one that are shown lie behind those of its callers in p->order. */
static void put_subtree(struct printer *p, uint32_t i)
{
    const struct analyze_tree_node *node = &p->tree->node[i];
    const size_t first = p->n_order;
    tree_put_node(p, i);
    for (uint32_t at = node->child; at != ANALYZE_NO_NODE; at = p->tree->node[at].next) {
        const struct analyze_tree_node *below = &p->tree->node[at];
        if (tree_is_shown(p, below, node))
            p->order[p->n_order++] = (struct ordered){at, tree_key_of(p, below), &below->line};
        else
            p->hidden += tree_count_below(p->tree, at);
    }
    const size_t end = p->n_order;
    if (end > first)
        qsort(p->order + first, end - first, sizeof *p->order, compare_ordered);
    for (size_t k = first; k < end; k++)
        put_subtree(p, p->order[k].node);
    p->n_order = first;
}

static bool has_sampled_ops(const struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_samples; i++)
        if (profile->sample[i].phase != READ_PHASE_NONE)
            return true;
    return false;
}

static void put_notes(const struct printer *p)
{
    const struct analyze_tree *tree = p->tree;
    FILE *out = p->style->out;
    if (p->shown == 1 && p->hidden == 0 && tree->n_left_out == 0)
        fputs("Nothing was measured.\n", out);
    else if (!tree->has_paths && tree->n_left_out == 0 && tree->analysis->profile->n_samples == 0)
        report_text_paragraph(
            out, p->style->width,
            "The profile has no call paths: only the calls that record are shown.");
    else if (!tree->has_paths && has_sampled_ops(tree->analysis->profile))
        report_text_paragraph(
            out, p->style->width,
            "Callers of ops were not recorded: --depth 64 of tapescope record asks for them.");
    if (p->hidden > 0)
        fprintf(out, "%s %zu more node%s, counted in those above.\n",
                p->style->utf8 ? "\u2026" : "...", p->hidden, p->hidden == 1 ? "" : "s");
    if (tree->is_flat)
        fputs("Each row has all that it called: rows overlap.\n", out);
    if (tree->has_paths && analyze_cost_is_estimate(&tree->node[0].all))
        report_text_runs_note(p->style);
    if (tree->too_large)
        fputs("The tree is too large: some paths are cut.\n", out);
    if (tree->analysis->profile->n_samples > 0)
        report_text_sampled_note(tree->analysis, p->style);
    report_text_untimed_note(tree->analysis, out);
    report_text_unlined_note(tree->analysis, out);
}

static void tree_print_table(struct printer *p)
{
    p->table = report_table_new();
    tree_add_columns(p);
    put_subtree(p, 0);
    if (p->tree->n_left_out > 0) {
        tree_add_cells(p, &p->tree->left_out, &p->tree->left_out, p->tree->n_nodes);
        report_table_cell(p->table, "(left out)");
    }
    report_table_phases(p->table, p->style->color);
    report_table_print(p->table, p->style->out, p->style->exact ? 0 : p->style->width,
                       p->style->utf8);
    report_table_free(p->table);
    put_notes(p);
}

static void tree_print_json(struct printer *p)
{
    struct base_json json;
    const struct analyze_result *analysis = p->tree->analysis;
    report_json_begin(&json, p->style->out, "tree");
    report_json_profile(&json, "profile", analysis->profile);
    if (p->spread.ranks)
        report_spread_json(&p->spread, &json);
    base_json_bool(&json, "inverted", p->options->inverted);
    base_json_bool(&json, "flat", p->tree->is_flat);
    base_json_bool(&json, "has_paths", p->tree->has_paths);
    base_json_bool(&json, "too_large", p->tree->too_large);
    base_json_u64(&json, "paths_refused", analysis->profile->paths_refused);
    base_json_array(&json, "nodes");
    p->json = &json;
    put_subtree(p, 0);
    base_json_end(&json);
    base_json_u64(&json, "nodes_not_shown", p->hidden);
    base_json_object(&json, "left_out");
    base_json_u64(&json, "rows", p->tree->n_left_out);
    report_json_cost(&json, &p->tree->left_out, analysis->profile);
    base_json_end(&json);
    report_json_totals(&json, "total", analysis);
    base_json_finish(&json);
    p->json = NULL;
}

/* Calls of one rank's tree are those of the sum's that join finds; what it moves is no other call,
 * since all are of one program. */
static void tree_spread_rank(struct printer *p, size_t rank)
{
    size_t n;
    const struct analyze_tree *of = p->options->of_rank[rank];
    struct analyze_tree_pair *pair = analyze_tree_join(p->tree, of, &n);
    for (size_t i = 0; i < n; i++)
        if (pair[i].node[0] != ANALYZE_NO_NODE && pair[i].node[1] != ANALYZE_NO_NODE)
            report_spread_row(&p->spread, pair[i].node[0])[rank] =
                report_spread_value(&p->spread, &of->node[pair[i].node[1]].all);
    report_spread_row(&p->spread, p->tree->n_nodes)[rank] =
        report_spread_value(&p->spread, &of->left_out);
    free(pair);
}

static void tree_spread(struct printer *p)
{
    p->spread = (struct report_spread){
        .ranks = p->tree->analysis->ranks, .metric = p->options->metric, .style = p->style};
    report_spread_make(&p->spread, p->tree->n_nodes + 1);
    for (size_t i = 0; i < p->spread.ranks->n; i++)
        tree_spread_rank(p, i);
}

void report_tree(const struct analyze_tree *tree, const struct report_tree_options *options,
                 const struct report_style *style)
{
    struct report_tree_options known = *options;
    struct printer p = {.tree = tree, .options = &known, .style = style};
    known.metric = report_ranking_known(tree->analysis->profile, options->metric);
    p.order = base_calloc(tree->n_nodes, sizeof *p.order);
    if (known.of_rank)
        tree_spread(&p);
    if (style->json)
        tree_print_json(&p);
    else
        tree_print_table(&p);
    report_spread_free(&p.spread);
    free(p.order);
}
