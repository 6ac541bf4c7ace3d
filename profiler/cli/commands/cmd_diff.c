/* cmd_diff.c: `tapescope diff`: what is different between two profiles. */
#include "cli_args.h"
#include "cli_pager.h"
#include "cli_paths.h"
#include "report_many.h"

struct diff_args {
    struct cli_args cli;
    int metric, by, sort;
    size_t limit;
    struct cli_list base;
};

enum { DIFF_ABSOLUTE, DIFF_RELATIVE };
static const char *const orders[] = {
    [DIFF_ABSOLUTE] = "absolute", [DIFF_RELATIVE] = "relative", [DIFF_RELATIVE + 1] = NULL};

enum { DIFF_ROWS = 20 };

static const struct cli_option options[] = {
    {"base", 0, CLI_LIST, "BASE",
     "a profile of what was before; repeatable: then all operands are of what is now",
     offsetof(struct diff_args, base), NULL, 0},
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
    .operands = "BASE NEW\n       tapescope diff [OPTIONS] --base BASE... NEW...",
    .about =
        "The lines that cost more or less in NEW than in BASE, the greatest change first; tape "
        "is the change in bytes. A folder stands for the profiles in it: the runs that 'stat -o' "
        "has left there.",
    CLI_OPTIONS(options),
    .shared =
        CLI_EXACT | CLI_JSON | CLI_CSV | CLI_COLOR | CLI_FILTER | CLI_PHASE | CLI_MAP | CLI_RANK,
    .notes =
        "Lines are the same if file, function, line and op are. What is left over is joined by "
        "function and op in the order of the source, within a file first: such lines have moved. "
        "new, gone: only one of the profiles has them. Exact times are not compared with sampled "
        "ones; of two "
        "profiles with samples, ~error is the standard error of the change. Of several runs a side "
        "their means are compared. A change of less than two standard errors (of few runs, "
        "Student's t for 95 %) is what chance makes: it is written ~, and counted, not shown.\n"
        "The exit status is 0 whatever differs: 'tapescope check --base' ends with 1.",
    .run = cmd_diff,
};

/* Whether two have what is to be compared; of profiles without any times that is bytes. */
static int diff_check(const struct read_profile *base, const struct read_profile *now, int *sort)
{
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

/* The paths of both sides, the base's first; *n_base: how many are its. */
static int diff_paths(struct cli_paths *paths, const struct diff_args *args, int argc, char **argv,
                      size_t *n_base)
{
    const int operands = argc - optind;
    int status = CLI_OK;
    if (args->base.n > 0 ? operands < 1 : operands != 2) {
        cli_message(args->base.n > 0 ? "diff: name the profiles to compare with --base"
                                     : "diff: name two profiles, the base first");
        return CLI_USAGE;
    }
    for (size_t i = 0; i < args->base.n && status == CLI_OK; i++)
        status = cli_paths_add(paths, "diff", args->base.item[i]);
    *n_base = paths->n;
    for (int i = optind; i < argc && status == CLI_OK; i++) {
        status = cli_paths_add(paths, "diff", argv[i]);
        if (args->base.n == 0 && i == optind)
            *n_base = paths->n;
    }
    return status;
}

static int diff_show(struct diff_args *args, const struct cli_profiles *opened, size_t n_base)
{
    int status = CLI_OK;
    for (size_t i = 1; i < opened->n && status == CLI_OK; i++)
        status = diff_check(opened->one[0].profile, opened->one[i].profile, &args->metric);
    if (status != CLI_OK)
        return status;
    struct analyze_runs base, now;
    analyze_runs_make(&base, opened->analysis, n_base);
    analyze_runs_make(&now, opened->analysis + n_base, opened->n - n_base);
    cli_pager_begin();
    report_diff(&base, &now, (enum analyze_by)args->by, (enum report_sort)args->metric,
                args->sort == DIFF_RELATIVE, args->limit, &args->cli.style);
    analyze_runs_free(&base);
    analyze_runs_free(&now);
    return cli_finish();
}

int cmd_diff(int argc, char **argv)
{
    struct diff_args args = {.limit = SIZE_MAX};
    int status = cli_parse(&cli_diff, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (args.limit == SIZE_MAX)
        args.limit = args.cli.style.csv ? 0 : DIFF_ROWS;
    struct cli_paths paths = {.n = 0};
    struct cli_profiles opened;
    size_t n_base = 0;
    status = diff_paths(&paths, &args, argc, argv, &n_base);
    if (status == CLI_OK)
        status = cli_open_all(&opened, &args.cli, paths.path, paths.n);
    cli_paths_free(&paths);
    if (status != CLI_OK)
        return status;
    status = diff_show(&args, &opened, n_base);
    cli_close_all(&opened);
    return status;
}
