/* cmd_diff.c: `tapescope diff`: what is different between two profiles. */
#include "cli_args.h"
#include "cli_pager.h"
#include "report_many.h"

struct diff_args {
    struct cli_args cli;
    int metric, by, sort;
    size_t limit;
};

enum { DIFF_ABSOLUTE, DIFF_RELATIVE };
static const char *const orders[] = {
    [DIFF_ABSOLUTE] = "absolute", [DIFF_RELATIVE] = "relative", [DIFF_RELATIVE + 1] = NULL};

enum { DIFF_ROWS = 20 };

static const struct cli_option options[] = {
    {"metric", 'm', CLI_CHOICE, "WHAT", "what is compared", offsetof(struct diff_args, metric),
     cli_metrics, 0},
    {"sort", 's', CLI_CHOICE, "KEY",
     "what comes first: the greatest difference, or the greatest in relation to BASE",
     offsetof(struct diff_args, sort), orders, 0},
    {"limit", 'n', CLI_COUNT, "N", "show N rows (default 20); 0: all",
     offsetof(struct diff_args, limit), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct diff_args, by),
     cli_places, 0},
};

const struct cli_command cli_diff = {
    .name = "diff",
    .summary = "what changed between two profiles",
    .operands = "BASE NEW",
    .about =
        "The lines that cost more or less in NEW than in BASE, the greatest change first; tape "
        "is the change in bytes.",
    CLI_OPTIONS(options),
    .shared =
        CLI_EXACT | CLI_JSON | CLI_CSV | CLI_COLOR | CLI_FILTER | CLI_PHASE | CLI_MAP | CLI_RANK,
    .notes =
        "Lines are the same if file, function, line and op are. What is left over is joined by "
        "function and op in the order of the source: such lines have moved. new, gone: only "
        "one of the profiles has them. Exact times are not compared with sampled ones; of two "
        "profiles with samples, ~error is the standard error of the change.",
    .run = cmd_diff,
};

/* Whether both have what is to be compared; of profiles without any times that is bytes. */
static int diff_check(const struct cli_profiles *opened, int *sort)
{
    const struct read_profile *base = opened->one[0].profile, *now = opened->one[1].profile;
    const bool time =
        *sort != REPORT_SORT_TAPE && *sort != REPORT_SORT_PEAK && *sort != REPORT_SORT_CALLS;
    const bool counted = read_profile_has_bytes(base) && read_profile_has_bytes(now);
    if (*sort == REPORT_SORT_LIFETIME && (base->is_sampled || now->is_sampled)) {
        cli_message("diff: lifetimes need exact times");
        return CLI_USAGE;
    }
    if (time &&
        !cli_times_alike("diff", base, now, counted ? " (but bytes can: --metric tape)" : ""))
        return CLI_USAGE;
    if (time && base->without_times)
        *sort = REPORT_SORT_TAPE;
    else if (!time && (!cli_has_bytes("diff", base) || !cli_has_bytes("diff", now)))
        return CLI_BAD_PROFILE;
    return CLI_OK;
}

int cmd_diff(int argc, char **argv)
{
    struct diff_args args = {.limit = SIZE_MAX};
    int status = cli_parse(&cli_diff, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (args.limit == SIZE_MAX)
        args.limit = args.cli.style.csv ? 0 : DIFF_ROWS;
    if (argc - optind != 2) {
        cli_message("diff: name two profiles, the base first");
        return CLI_USAGE;
    }
    struct cli_profiles opened;
    status = cli_open_all(&opened, &args.cli, argv + optind, 2);
    if (status != CLI_OK)
        return status;
    status = diff_check(&opened, &args.metric);
    if (status == CLI_OK) {
        cli_pager_begin();
        report_diff(opened.analysis[0], opened.analysis[1], (enum analyze_by)args.by,
                    (enum report_sort)args.metric, args.sort == DIFF_RELATIVE, args.limit,
                    &args.cli.style);
        status = cli_finish();
    }
    cli_close_all(&opened);
    return status;
}
