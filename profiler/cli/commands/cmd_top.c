/* cmd_top.c: `tapescope top`: the costliest lines. */
#include "analyze_tree.h"
#include "cli_args.h"
#include "cli_filter.h"
#include "cli_ranks.h"

#include <stdlib.h>

struct top_args {
    struct cli_args cli;
    int sort, by;
    size_t limit;
    bool roofline, csv, cum, expectations, patterns, ranks;
};

enum { BY_SCOPE = ANALYZE_BY_SHAPE + 1 };
#define X(NAME, word, ...) word,
static const char *const sorts[] = {REPORT_METRICS(X) "ratio", NULL};
static const char *const views[] = {ANALYZE_VIEWS(X) "scope", NULL};
#undef X

static const struct cli_option options[] = {
    {"sort", 's', CLI_CHOICE, "KEY", "what comes first; 'share' is a line's part of it",
     offsetof(struct top_args, sort), sorts, 0},
    {"limit", 'n', CLI_COUNT, "N", "show N lines (default 20); 0: all",
     offsetof(struct top_args, limit), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct top_args, by), views,
     0},
    {"roofline", 'r', CLI_FLAG, NULL, "flops and bytes a second instead, by direction",
     offsetof(struct top_args, roofline), NULL, 0},
    {"cum", 'c', CLI_FLAG, NULL, "each line or function with all that it called, by call path",
     offsetof(struct top_args, cum), NULL, 0},
    {"expectations", 'e', CLI_FLAG, NULL, "what the source expects (AD_EXPECT_...), and what is",
     offsetof(struct top_args, expectations), NULL, 0},
    {"patterns", 'p', CLI_FLAG, NULL, "patterns of sparse Jacobians and Hessians that were found",
     offsetof(struct top_args, patterns), NULL, 0},
    {"ranks", 0, CLI_FLAG, NULL,
     "a column for each rank of MPI, of what --sort names, and the most over the mean",
     offsetof(struct top_args, ranks), NULL, 0},
    {"csv", '\0', CLI_FLAG, NULL, "with --by scope: CSV, a row for each scope and thread",
     offsetof(struct top_args, csv), NULL, 0},
};

const struct cli_command cli_top = {
    .name = "top",
    .summary = "the costliest lines, functions or ops",
    .operands = "[PROFILE]",
    .about = "The source lines that cost most, forward and backward, in time and in tape bytes.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_PHASE | CLI_MAP | CLI_RANK,
    .notes =
        "b/f: backward time over forward time, with a ! where it is over twice what the flops "
        "and bytes of both directions let expect (column expect, on wide terminals), and sampled "
        "times are so by more than two standard errors. tape: "
        "bytes of records, values and adjoints "
        "handed out in all. at peak: bytes held when the tape was largest. --sort lifetime is by "
        "bytes times the time that each was on the tape (column B*ms), which exact times alone "
        "tell; else it is by bytes.\n"
        "-: not measured, or nothing was there to measure; 0: measured, and none. (tape): bytes of "
        "no line, such as padding, by which buffers are rounded up, and room of a block for "
        "statements.\n"
        "--by shape needs a recording with --shapes on; its rows are ops, each with the shape of "
        "its "
        "result and, where one differs, of its operands.\n"
        "A scope's figures have those of the scopes within it. Its forward time is all between "
        "begin and end that was not in sweeps, its backward time that of what was recorded in "
        "it.\n"
        "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_top,
};

/* What scopes cannot be asked for. Returns CLI_OK, or says so. */
static int top_check(struct cli_args *cli)
{
    const struct top_args *args = (void *)cli;
    const bool scopes = args->by == BY_SCOPE;
    const char *wrong = NULL;
    cli->callers = args->cum;
    if (args->ranks && (args->csv || args->cum || args->roofline || scopes || args->expectations ||
                        args->patterns))
        wrong = "--ranks does not go with --by scope, --cum, --csv, --expectations, --patterns and "
                "--roofline";
    else if (args->expectations &&
             (args->csv || args->cum || args->roofline || args->by != ANALYZE_BY_LINE))
        wrong = "--expectations does not go with --by, --cum, --csv and --roofline";
    else if (args->patterns && (args->expectations || args->csv || args->cum || args->roofline ||
                                args->by != ANALYZE_BY_LINE || args->cli.style.phases))
        wrong = "--patterns does not go with --by, --cum, --csv, --expectations, --phase and "
                "--roofline";
    else if (args->csv && !scopes)
        wrong = "--csv goes with --by scope; lines as CSV: tapescope export -f csv";
    else if (scopes && args->roofline)
        wrong = "--roofline does not go with --by scope";
    else if (scopes && (args->cli.focus || args->cli.ignore || args->cli.style.phases))
        wrong = "--focus, --ignore and --phase do not go with --by scope";
    else if (args->cum &&
             (args->roofline || (args->by != ANALYZE_BY_LINE && args->by != ANALYZE_BY_FUNCTION)))
        wrong = "--cum goes with --by line or --by function, and without --roofline";
    if (wrong)
        cli_message("top: %s", wrong);
    return wrong ? CLI_USAGE : CLI_OK;
}

/* The same report of lines that hold what they called: a line that calls itself counts once. */
static void report_cumulative(const struct top_args *args, const struct analyze_result *analysis)
{
    struct cli_filter filter;
    struct report_style style = args->cli.style;
    if (cli_filter_open(&filter, &args->cli) != CLI_OK)
        return; /* which cli_open has said */
    const struct analyze_tree_options how = {
        .combine = args->by == ANALYZE_BY_FUNCTION,
        .focus = filter.has_focus ? cli_filter_focus : NULL,
        .ignore = filter.has_ignore ? cli_filter_ignore : NULL,
        .payload = &filter,
    };
    struct analyze_tree *tree = analyze_tree_make(analysis, &how);
    struct analyze_result inclusive = *analysis;
    inclusive.line = analyze_tree_inclusive(tree, &inclusive.n_lines);
    style.inclusive = true;
    inclusive.left_out = tree->left_out;
    inclusive.n_left_out = tree->n_left_out;
    report_top(&inclusive, (enum analyze_by)args->by, (enum report_sort)args->sort, args->limit,
               &style);
    analyze_tree_free(tree);
    cli_filter_close(&filter);
    free(inclusive.line);
}

/* Whether the recording told shapes apart; says how to, if it did not. */
static bool has_shapes(const struct analyze_result *analysis)
{
    if (cli_has_option(analysis->profile->options, "shapes=on"))
        return true;
    cli_message("top: %s has no shapes: they are recorded by 'tapescope record --shapes on'",
                analysis->profile->path);
    return false;
}

static void top_report(const struct top_args *args, const struct analyze_result *analysis)
{
    const enum report_sort sort = (enum report_sort)args->sort;
    const struct report_style *style = &args->cli.style;
    size_t n_failed;
    if (args->expectations)
        report_expectations(analysis, style, &n_failed);
    else if (args->patterns)
        report_patterns(analysis, style);
    else if (args->by == BY_SCOPE && args->csv)
        report_scopes_csv(analysis, style);
    else if (args->by == BY_SCOPE)
        report_scopes(analysis, sort, args->limit, style);
    else if (args->cum)
        report_cumulative(args, analysis);
    else if (args->roofline)
        report_roofline(analysis, (enum analyze_by)args->by, sort, args->limit, style);
    else
        report_top(analysis, (enum analyze_by)args->by, sort, args->limit, style);
}

static int top_show(struct cli_args *cli, struct cli_profile *opened)
{
    const struct top_args *args = (void *)cli;
    if (args->by == ANALYZE_BY_SHAPE && !has_shapes(opened->analysis))
        return CLI_BAD_PROFILE;
    const int status = args->ranks ? cli_ranks_apart("top", opened, cli) : CLI_OK;
    if (status != CLI_OK)
        return status;
    top_report(args, opened->analysis);
    return cli_finish();
}

int cmd_top(int argc, char **argv)
{
    struct top_args args = {.limit = 20};
    return cli_run_only(&cli_top, &args.cli, argc, argv, top_check, top_show);
}
