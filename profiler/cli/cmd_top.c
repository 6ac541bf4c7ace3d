/* cmd_top.c: `tapescope top`: the costliest lines.
 *
 * May include: cli.h and what it stands on.
 */
#include "cli_args.h"

struct top_args {
    struct cli_args cli;
    int sort, by;
    size_t limit;
    bool roofline;
};

const char *const cli_top_sorts[] = {
    [REPORT_SORT_TOTAL] = "total",       [REPORT_SORT_FORWARD] = "forward",
    [REPORT_SORT_BACKWARD] = "backward", [REPORT_SORT_TAPE] = "tape",
    [REPORT_SORT_PEAK] = "peak",         [REPORT_SORT_CALLS] = "calls",
    [REPORT_SORT_RATIO] = "ratio",       [REPORT_SORT_RATIO + 1] = NULL,
};

const char *const cli_top_views[] = {
    [PROF_BY_LINE] = "line", [PROF_BY_FUNCTION] = "function", [PROF_BY_OP] = "op",
    [PROF_BY_FILE] = "file", [PROF_BY_MODULE] = "module",     [PROF_BY_MODULE + 1] = NULL,
};

static const struct cli_option options[] = {
    {"sort", 's', CLI_CHOICE, "KEY", "what comes first; 'share' is a line's part of it",
     offsetof(struct top_args, sort), cli_top_sorts, 0},
    {"limit", 'n', CLI_COUNT, "N", "show N lines (default 20); 0: all",
     offsetof(struct top_args, limit), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct top_args, by),
     cli_top_views, 0},
    {"roofline", 'r', CLI_FLAG, NULL, "flops and bytes a second instead, by direction",
     offsetof(struct top_args, roofline), NULL, 0},
};

const struct cli_command cli_top = {
    .name = "top",
    .summary = "the costliest lines, functions or ops",
    .operands = "[PROFILE]",
    .about = "The source lines that cost most, forward and backward, in time and in tape bytes.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_FILTER | CLI_PHASE | CLI_MAP,
    .notes = "b/f: backward time over forward time, with a ! where it is over twice what the flops "
             "and bytes of both directions let expect (column expect, on wide terminals). tape: "
             "bytes of records, values and adjoints "
             "handed out in all. at peak: bytes held when the tape was largest.\n"
             "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_top,
};

int cmd_top(int argc, char **argv)
{
    struct top_args args = {.limit = 20};
    int status = cli_parse(&cli_top, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    struct cli_profile opened;
    status = cli_open_only(&opened, &args.cli, argc, argv);
    if (status != CLI_OK)
        return status;
    int (*report)(const struct prof_analysis *, enum prof_by, enum report_sort, size_t,
                  const struct report_style *) = args.roofline ? report_roofline : report_top;
    status = report(opened.analysis, (enum prof_by)args.by, (enum report_sort)args.sort, args.limit,
                    &args.cli.style);
    cli_close(&opened);
    return cli_finish(status);
}
