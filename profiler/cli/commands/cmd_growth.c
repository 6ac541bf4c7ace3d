/* cmd_growth.c: `tapescope growth`: how the cost of each line grows with the problem. */
#include "cli_args.h"
#include "cli_pager.h"
#include "cli_sizes.h"

struct growth_args {
    struct cli_args cli;
    double most;
    int by, metric;
    size_t limit;
};

static const char *const what_bytes[] = {
    [REPORT_BYTES_PEAK] = "peak", [REPORT_BYTES_TAPE] = "tape", [REPORT_BYTES_TAPE + 1] = NULL};

enum { GROWTH_ROWS = 20 };

static const struct cli_option options[] = {
    {"metric", 'm', CLI_CHOICE, "WHAT", "bytes held at the peak, or handed out in all",
     offsetof(struct growth_args, metric), what_bytes, 0},
    {"max-growth", 0, CLI_NUMBER, "B", "mark exponents significantly above B (default 1)",
     offsetof(struct growth_args, most), NULL, 0},
    {"limit", 'n', CLI_COUNT, "N", "show N rows (default 20); 0: all",
     offsetof(struct growth_args, limit), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct growth_args, by),
     cli_places, 0},
};

const struct cli_command cli_growth = {
    .name = "growth",
    .summary = "how bytes and time grow with the problem",
    .operands = "PROFILE PROFILE...",
    .about = "Fits bytes = a n^b and time = c n^d to profiles of one program at several sizes n, "
             "line by line, by least squares of the logarithms. Says so where each step leaves "
             "bytes on the tape (a rewind is missing), or a tape.",
    CLI_OPTIONS(options),
    .shared =
        CLI_SIZES | CLI_EXACT | CLI_JSON | CLI_CSV | CLI_COLOR | CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes = "bytes, time: at the greatest size. ~n^: the exponent, with a ! if its whole interval "
             "is above --max-growth. 95 %: the exponent's confidence interval by Student's t, from "
             "three "
             "profiles on. Without --sizes, --size-key or --size-arg the size is the only argument "
             "of the programs that is a number and differs.\n"
             "The exit status is 0 however they grow: 'tapescope check --max-growth' ends with 1.",
    .run = cmd_growth,
};

int cmd_growth(int argc, char **argv)
{
    struct growth_args args = {.limit = SIZE_MAX, .most = 1};
    int status = cli_parse(&cli_growth, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (args.limit == SIZE_MAX)
        args.limit = args.cli.style.csv ? 0 : GROWTH_ROWS;
    int n = argc - optind;
    if (n < 2 || n > ANALYZE_JOIN_MOST) {
        cli_message("growth: name two profiles or more, up to %d", ANALYZE_JOIN_MOST);
        return CLI_USAGE;
    }
    struct cli_profiles opened;
    status = cli_open_all(&opened, &args.cli, argv + optind, (size_t)n);
    if (status != CLI_OK)
        return status;
    for (int i = 1; i < n && status == CLI_OK; i++)
        if (!cli_times_alike("growth", opened.one[0].profile, opened.one[i].profile, ""))
            status = CLI_USAGE;
    double size[ANALYZE_JOIN_MOST];
    char name[128];
    if (status == CLI_OK)
        status = cli_find_sizes(&args.cli.sizes, "growth", &opened, size, name, sizeof name);
    if (status == CLI_OK) {
        struct report_sizes sizes = {opened.analysis, size, opened.n, name};
        struct report_growth growth;
        enum analyze_by by = (enum analyze_by)args.by;
        report_growth_make(&growth, &sizes, by, (enum report_bytes)args.metric);
        cli_pager_begin();
        report_growth_print(&growth, &sizes, by, args.most, args.limit, &args.cli.style);
        report_growth_free(&growth);
        status = cli_finish();
    }
    cli_close_all(&opened);
    return status;
}
