/* cmd_whatif.c: `tapescope whatif`: a tape's peak if some values were computed again. */
#include "cli_args.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

struct whatif_args {
    struct cli_args cli;
    struct cli_list checkpoint;
    uint64_t budget;
    bool pareto;
    int by;
    size_t limit;
};

static const char *const views[] = {"line", "function", NULL};

static const struct cli_option options[] = {
    {"checkpoint", 'k', CLI_LIST, "FILE:LINE",
     "compute this line's saved values again (repeatable)",
     offsetof(struct whatif_args, checkpoint), NULL, 0},
    {"budget", 0, CLI_BYTES, "SIZE", "choose lines so that the peak is at most SIZE",
     offsetof(struct whatif_args, budget), NULL, 0},
    {"pareto", '\0', CLI_FLAG, NULL, "each line by itself (default)",
     offsetof(struct whatif_args, pareto), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct whatif_args, by),
     views, 0},
    {"limit", 'n', CLI_COUNT, "N", "show N rows (default 20); 0: all",
     offsetof(struct whatif_args, limit), NULL, 0},
};

const struct cli_command cli_whatif = {
    .name = "whatif",
    .summary = "the peak with frames, checkpoints, or values computed again",
    .operands = "[PROFILE]",
    .about = "For calls and loop bodies: the tape's peak if they were in frames, checkpoints, or "
             "preaccumulated sections. For each line that saves values: the peak if it did not, "
             "and the time that "
             "it would take to compute them again.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes =
        "What was recorded before the peak is done again with the calls, or loop bodies, in "
        "frames or as checkpoints; a peak that may be higher is marked >=. A budget is met by "
        "these alone. "
        "For lines, the stretch of the recording with the greatest peak is replayed without their "
        "values, which is a lower bound. "
        "It is assumed that each is made again just before the pullback that reads it, one at a "
        "time, once a sweep, that its operands are there then (leaves, or saved, or made again "
        "as well), and that padding stays. The cost is the measured forward time of the calls "
        "that made them. --focus and --ignore choose the lines that may be computed again.\n"
        "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_whatif,
};

/* Whether a path is `name`, or ends in it at a "/". */
static bool is_file(const char *path, const char *name)
{
    const size_t n = strlen(path), m = strlen(name);
    return n >= m && strcmp(path + n - m, name) == 0 && (n == m || path[n - m - 1] == '/');
}

/* Chooses what FILE:LINE (or a function's name) says. */
static int choose_options(struct analyze_whatif *whatif, const char *text, bool by_function)
{
    const char *colon = strrchr(text, ':');
    const unsigned long line = colon ? strtoul(colon + 1, NULL, 10) : 0;
    char *file = base_strndup(text, colon ? (size_t)(colon - text) : strlen(text));
    size_t found = 0;
    for (size_t i = 0; i < whatif->n; i++) {
        struct analyze_option *option = &whatif->option[i];
        const struct analyze_line *at = &option->line;
        const bool same = by_function ? at->function && strcmp(at->function, text) == 0
                                      : at->file && at->line == line && is_file(at->file, file);
        option->chosen |= same;
        found += same;
    }
    free(file);
    if (found > 0)
        return CLI_OK;
    cli_message("whatif: --checkpoint: no %s '%s' has saved values at any time",
                by_function ? "function" : "line", text);
    return CLI_USAGE;
}

static int whatif_report(struct analyze_whatif *whatif, const struct analyze_result *analysis,
                         const struct whatif_args *args)
{
    bool is_optimal = false;
    int status = CLI_OK;
    for (size_t i = 0; i < args->checkpoint.n && status == CLI_OK; i++)
        status = choose_options(whatif, args->checkpoint.item[i], args->by == 1);
    if (status != CLI_OK)
        return status;
    if (args->budget > 0)
        (void)analyze_whatif_fit(whatif, args->budget, &is_optimal);
    if (args->budget > 0 || args->checkpoint.n > 0)
        report_whatif_choice(analysis, whatif, args->budget, is_optimal, &args->cli.style);
    else
        report_whatif(analysis, whatif, args->limit, &args->cli.style);
    return cli_finish();
}

static int whatif_check(struct cli_args *cli)
{
    const struct whatif_args *args = (void *)cli;
    if ((args->checkpoint.n > 0) + (args->budget > 0) + args->pareto <= 1)
        return CLI_OK;
    cli_message("whatif: one of --checkpoint, --budget and --pareto at a time");
    return CLI_USAGE;
}

static int whatif_show(struct cli_args *cli, struct cli_profile *opened)
{
    const struct whatif_args *args = (void *)cli;
    struct analyze_whatif whatif;
    int status = CLI_BAD_PROFILE;
    const int made = analyze_whatif_make(&whatif, opened->analysis, args->by == 1);
    if (made == 0 && cli_has_bytes("whatif", opened->profile))
        status = whatif_report(&whatif, opened->analysis, args);
    else if (made != 0 && cli_has_bytes("whatif", opened->profile))
        cli_message(
            "whatif: the profile has no changes to replay: nothing was recorded, or not yet "
            "written when the program ended");
    analyze_whatif_free(&whatif);
    return status;
}

int cmd_whatif(int argc, char **argv)
{
    struct whatif_args args = {.limit = 20};
    return cli_run_only(&cli_whatif, &args.cli, argc, argv, whatif_check, whatif_show);
}
