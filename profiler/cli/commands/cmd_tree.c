/* cmd_tree.c: `tapescope tree`: what each call cost, by call path. */
#include "cli_args.h"
#include "cli_filter.h"
#include "cli_ranks.h"
#include "report_tree.h"

#include "analyze_ranks.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

struct tree_args {
    struct cli_args cli;
    int metric, order, recursion, by, frames;
    size_t max_depth, min_calls;
    double noise_floor;
    bool inverted, flat, all, ranks;
};

static const char *const orders[] = {
    [REPORT_TREE_BY_COST] = "cost",     [REPORT_TREE_BY_CALLS] = "calls",
    [REPORT_TREE_BY_SELF] = "self",     [REPORT_TREE_BY_SOURCE] = "source",
    [REPORT_TREE_BY_SOURCE + 1] = NULL,
};

enum { TREE_BY_LINE, TREE_BY_FUNCTION };
static const char *const views[] = {
    [TREE_BY_LINE] = "line", [TREE_BY_FUNCTION] = "function", [TREE_BY_FUNCTION + 1] = NULL};

static const char *const recursions[] = {"full", "flat", NULL};

#define AT(member) offsetof(struct tree_args, member)
static const struct cli_option options[] = {
    {"metric", 'm', CLI_CHOICE, "WHAT", "what a call is said to cost", AT(metric), cli_metrics, 0},
    {"max-depth", 'd', CLI_COUNT, "N", "show N levels; 0, the default: all", AT(max_depth), NULL,
     0},
    {"min-calls", 0, CLI_COUNT, "N", "only what N op calls or more were made in", AT(min_calls),
     NULL, 0},
    {"noise-floor", 0, CLI_NUMBER, "X",
     "only what has more op calls than X times the root of its caller's", AT(noise_floor), NULL, 0},
    {"sort", 's', CLI_CHOICE, "KEY", "the order of the calls below one", AT(order), orders, 0},
    {"inverted", 'i', CLI_FLAG, NULL, "the lines that record first, their callers below",
     AT(inverted), NULL, 0},
    {"flat", 0, CLI_FLAG, NULL, "each line once with all that it called, not below its callers",
     AT(flat), NULL, 0},
    {"recursion", 0, CLI_CHOICE, "HOW",
     "calls within themselves: each a level, or back to the level that is there", AT(recursion),
     recursions, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a level stands for", AT(by), views, 0},
    {"ranks", 0, CLI_FLAG, NULL,
     "a column for each rank of MPI, of what --metric names, and the most over the mean", AT(ranks),
     NULL, 0},
    {"all", 0, CLI_FLAG, NULL, "on a terminal also calls of less than 0.5 % of the whole", AT(all),
     NULL, 0},
    {"frames", 0, CLI_CHOICE, "WHOSE",
     "whose frames are levels: all has those in libraries of the system, such as what calls main",
     AT(frames), cli_frames, 0},
};
#undef AT

const struct cli_command cli_tree = {
    .name = "tree",
    .summary = "what each call cost, by call path",
    .operands = "[PROFILE]",
    .about = "The calls that led to ops, from main inwards, each with what it and all that it "
             "called cost. Backward time is with the call that recorded the op.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_PHASE | CLI_MAP | CLI_RANK,
    .notes =
        "--flat: each line (--by function: function) once with all that it called; the rows "
        "overlap. self: of ops that this very line recorded. calls: of ops, on the line and below. "
        "--focus and --ignore ask for any frame of a path. All figures are exact. On a terminal "
        "calls "
        "of less than 0.5 % of the whole are left out, unless --all, --max-depth, --min-calls or "
        "--noise-floor says what to show; in a file or a pipe all are there.\n"
        "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_tree,
};

/* Of the whole cost: calls of less are no line on a terminal. */
static const double LEAST_SHARE = 0.005;

/* On a terminal, unless it is said what to show. */
static bool tree_is_short(const struct tree_args *args)
{
    return args->cli.terminal && !args->all && !args->cli.style.json && args->max_depth == 0 &&
           args->min_calls == 0 && !(args->noise_floor > 0);
}

static struct analyze_tree *tree_made(const struct analyze_result *analysis, bool flatten,
                                      const struct analyze_tree_options *how)
{
    struct analyze_tree *tree = analyze_tree_make(analysis, how);
    if (!flatten)
        return tree;
    struct analyze_tree *flat = analyze_tree_flatten(tree);
    analyze_tree_free(tree);
    return flat;
}

static void tree_show(const struct analyze_result *analysis, const struct tree_args *args,
                      struct cli_filter *filter)
{
    const struct analyze_tree_options how = {
        .inverted = args->inverted,
        .combine = args->by == TREE_BY_FUNCTION,
        .flat = args->recursion == 1,
        .system = args->frames == CLI_FRAMES_ALL ||
                  cli_has_option(analysis->profile->options, "frames=all"),
        .focus = filter->has_focus ? cli_filter_focus : NULL,
        .ignore = filter->has_ignore ? cli_filter_ignore : NULL,
        .payload = filter,
    };
    const struct analyze_ranks *ranks = args->ranks ? analysis->ranks : NULL;
    const size_t n = ranks ? ranks->n : 0;
    struct analyze_tree **of_rank = base_calloc(n + 1, sizeof(struct analyze_tree *));
    for (size_t i = 0; i < n; i++)
        of_rank[i] = tree_made(ranks->analysis[i], args->flat, &how);
    const struct report_tree_options look = {
        .metric = (enum report_sort)args->metric,
        .order = (enum report_tree_order)args->order,
        .max_depth = args->max_depth,
        .min_count = args->min_calls,
        .noise_floor = args->noise_floor,
        .least_share = tree_is_short(args) ? LEAST_SHARE : 0,
        .inverted = args->inverted,
        .of_rank = ranks ? (const struct analyze_tree *const *)of_rank : NULL,
    };
    struct analyze_tree *tree = tree_made(analysis, args->flat, &how);
    report_tree(tree, &look, &args->cli.style);
    analyze_tree_free(tree);
    for (size_t i = 0; i < n; i++)
        analyze_tree_free(of_rank[i]);
    free(of_rank);
}

static int tree_check(struct cli_args *cli)
{
    const struct tree_args *args = (void *)cli;
    cli->callers = true;
    if (!args->inverted || !args->flat)
        return CLI_OK;
    cli_message("tree: --inverted does not go with --flat, which has no levels");
    return CLI_USAGE;
}

static int tree_report(struct cli_args *cli, struct cli_profile *opened)
{
    struct cli_filter filter;
    const struct tree_args *args = (void *)cli;
    int status = args->ranks ? cli_ranks_apart("tree", opened, cli) : CLI_OK;
    if (status == CLI_OK)
        status = cli_filter_open(&filter, cli);
    if (status != CLI_OK)
        return status;
    tree_show(opened->analysis, (void *)cli, &filter);
    status = cli_finish();
    cli_filter_close(&filter);
    return status;
}

int cmd_tree(int argc, char **argv)
{
    struct tree_args args = {.metric = REPORT_SORT_TOTAL};
    return cli_run_only(&cli_tree, &args.cli, argc, argv, tree_check, tree_report);
}
