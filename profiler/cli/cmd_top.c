/* cmd_top.c: `tapescope top`: the costliest lines.
 *
 * May include: cli.h and what it stands on.
 */
#include "cli_args.h"

static const char help[] =
    "Usage: tapescope top [OPTIONS] [PROFILE]\n"
    "The source lines that cost most, forward and backward, in time and in tape bytes.\n"
    "\n"
    "  --sort KEY   forward, backward, total (default), tape, peak or calls;\n"
    "               'share' is a line's part of this\n"
    "  -n N         show N lines (default 20); 0: all\n"
    "  --by WHAT    line (default), op or function\n"
    "  --exact      plain integers: ns and bytes\n"
    "\n"
    "b/f: backward time over forward time. tape: bytes of records, values and adjoints\n"
    "handed out in all. at peak: bytes held when the tape was largest.\n"
    "PROFILE defaults to " CLI_DEFAULT_PROFILE ".\n";

int cmd_top(int argc, char **argv)
{
    static const char *const sorts[] = {
        [REPORT_SORT_TOTAL] = "total",       [REPORT_SORT_FORWARD] = "forward",
        [REPORT_SORT_BACKWARD] = "backward", [REPORT_SORT_TAPE] = "tape",
        [REPORT_SORT_PEAK] = "peak",         [REPORT_SORT_CALLS] = "calls",
    };
    static const char *const views[] = {
        [PROF_BY_LINE] = "line", [PROF_BY_FUNCTION] = "function", [PROF_BY_OP] = "op"};
    struct cli_args args;
    int status = cli_parse(&args, argc, argv, "sbne", help);
    if (status >= 0)
        return status;
    int sort = args.sort ? cli_choice(args.sort, sorts, 6) : REPORT_SORT_TOTAL;
    int by = args.by ? cli_choice(args.by, views, 3) : PROF_BY_LINE;
    if (sort < 0) {
        cli_message("top: cannot sort by '%s': use forward, backward, total, tape, peak or calls",
                    args.sort);
        return CLI_USAGE;
    }
    if (by < 0) {
        cli_message("top: cannot show by '%s': use line, op or function", args.by);
        return CLI_USAGE;
    }
    if (argc - optind > 1) {
        cli_message("top: one profile at a time, not also '%s'", argv[optind + 1]);
        return CLI_USAGE;
    }
    struct cli_profile opened;
    status = cli_open(&opened, argv[optind]);
    if (status != CLI_OK)
        return status;
    status = report_top(opened.analysis, (enum prof_by)by, (enum report_sort)sort, args.limit,
                        &args.style);
    cli_close(&opened);
    return cli_finish(status);
}
