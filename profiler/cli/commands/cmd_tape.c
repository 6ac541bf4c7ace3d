/* cmd_tape.c: `tapescope tape`: who holds a tape's memory, and what for. */
#include "cli_args.h"
#include "cli_pager.h"
#include "cli_ranks.h"
#include "cli_records.h"

#include <stdlib.h>
#include <string.h>

struct tape_args {
    struct cli_args cli;
    const char *at;
    int by, what;
    size_t limit; /* SIZE_MAX: not given */
    bool records, ranks;
    double from, to; /* < 0: not given */
};

enum { TAPE_ROWS = 20, TAPE_RECORDS = 100 };

static const char *const views[] = {
    [ANALYZE_SPACE_BY_CLASS] = "class",
    [ANALYZE_SPACE_BY_LINE] = "line",
    [ANALYZE_SPACE_BY_OP] = "op",
    [ANALYZE_SPACE_BY_OP + 1] = NULL,
};

static const struct cli_option options[] = {
    {"at", '\0', CLI_TEXT, "WHEN", "peak (default), end, or seconds since the start",
     offsetof(struct tape_args, at), NULL, 0},
    {"lifetime", '\0', CLI_CONSTANT, NULL, "bytes times the time that they lived",
     offsetof(struct tape_args, what), NULL, REPORT_LIFETIME},
    {"dead", '\0', CLI_CONSTANT, NULL, "what was saved and never read by a pullback",
     offsetof(struct tape_args, what), NULL, REPORT_DEAD},
    {"leaks", '\0', CLI_CONSTANT, NULL, "what was left when its tape was destroyed, or at the end",
     offsetof(struct tape_args, what), NULL, REPORT_LEAKS},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct tape_args, by), views,
     0},
    {"records", 0, CLI_FLAG, NULL,
     "the recorded ops and their pullbacks one by one, of a profile with a timeline",
     offsetof(struct tape_args, records), NULL, 0},
    {"from", 0, CLI_NUMBER, "MS",
     "of --records what was under way from here on, in ms since the start",
     offsetof(struct tape_args, from), NULL, 0},
    {"to", 0, CLI_NUMBER, "MS", "and up to here", offsetof(struct tape_args, to), NULL, 0},
    {"ranks", 0, CLI_FLAG, NULL,
     "a column for each rank of MPI, of what it holds at its own peak, and the most over the mean",
     offsetof(struct tape_args, ranks), NULL, 0},
    {"limit", 'n', CLI_COUNT, "N", "show N rows (default 20; of --records 100); 0: all",
     offsetof(struct tape_args, limit), NULL, 0},
};

const struct cli_command cli_tape = {
    .name = "tape",
    .summary = "who holds a tape's memory, what for and how long",
    .operands = "[PROFILE]",
    .about = "What holds the tape with the greatest peak at that peak: lines, and the ops whose "
             "pullbacks will read it; and the bytes that were live over time.",
    CLI_OPTIONS(options),
    .shared =
        CLI_EXACT | CLI_JSON | CLI_CSV | CLI_COLOR | CLI_FILTER | CLI_PHASE | CLI_MAP | CLI_RANK,
    .notes = "Kinds: saved values, which a pullback reads; values, which none reads; records; "
             "adjoints with all that pullbacks need meanwhile. A + stands for further readers. In "
             "the plot, = marks sweeps and ^ the peak. All bytes are exact; a time is that of the "
             "op under way. --focus and --ignore ask for the line and op that the bytes were "
             "made by.\n"
             "--records is of what 'tapescope record --timeline 64MiB -- ./program' wrote: each op "
             "with start and length, and the pullbacks in the order of the sweep; --phase shows "
             "one of both. "
             "place: of the op's record on its tape, in units of 8 bytes; a pullback has that of "
             "its op, the newest with this place before it. saved/op and bytes/op: what the ops "
             "of that line saved for pullbacks and put on the tape, per op; times and places are "
             "exact. Brackets are scopes and sweeps, closed by the line that has the time of the "
             "whole. Events are in the order in which they ended, thread by thread.\n"
             "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_tape,
};

/* "peak", "end" or seconds. */
static bool parse_at(const char *text, struct report_space_options *what)
{
    static const char *const names[] = {[ANALYZE_AT_PEAK] = "peak", [ANALYZE_AT_END] = "end"};
    const int name = cli_choice(text, names, 2);
    if (name >= 0) {
        what->at = (enum analyze_space_at)name;
        return true;
    }
    char *end;
    const double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0 && seconds < 1e9))
        return false;
    what->at = ANALYZE_AT_TIME;
    what->at_ns = (uint64_t)(seconds * 1e9 + 0.5);
    return true;
}

static int tape_run(const struct tape_args *args, const struct analyze_result *analysis,
                    const struct report_space_options *what)
{
    struct analyze_space space;
    if (!cli_has_bytes("tape", analysis->profile))
        return CLI_BAD_PROFILE;
    const int made = analyze_space_make(&space, analysis, what->by, what->at, what->at_ns);
    if (made != 0) {
        if (space.from_ns < space.to_ns)
            cli_message("tape: --at: only %.9f to %.9f s are known change by change",
                        (double)space.from_ns / 1e9, (double)space.to_ns / 1e9);
        else
            cli_message("tape: --at: the profile has no changes to look at");
        analyze_space_free(&space);
        return CLI_USAGE;
    }
    report_space(analysis, &space, what, &args->cli.style);
    analyze_space_free(&space);
    return cli_finish();
}

/* What is asked for with --records alone, or cannot be with it. */
static int tape_check(const struct tape_args *args)
{
    const char *wrong = NULL;
    if (args->records)
        wrong = args->ranks           ? "--ranks"
                : args->at            ? "--at"
                : args->cli.style.csv ? "--csv"
                : args->what          ? "another view"
                : args->by            ? "--by"
                : args->cli.focus     ? "--focus"
                : args->cli.ignore    ? "--ignore"
                                      : NULL;
    else if (args->from >= 0 || args->to >= 0 || args->cli.style.phases)
        wrong = args->cli.style.phases ? "--phase" : args->from >= 0 ? "--from" : "--to";
    if (wrong)
        cli_message(args->records ? "tape: --records does not go with %s"
                                  : "tape: %s goes with --records alone",
                    wrong);
    else if (args->from >= 0 && args->to >= 0 && args->from > args->to)
        cli_message("tape: --from is after --to");
    else
        return CLI_OK;
    return CLI_USAGE;
}

static int tape_show(const struct tape_args *args, const struct cli_profile *opened,
                     struct report_space_options *what)
{
    const bool chosen = args->limit != SIZE_MAX;
    what->limit = chosen ? args->limit : args->cli.style.csv ? 0 : TAPE_ROWS;
    if (!args->records)
        return tape_run(args, opened->analysis, what);
    const struct cli_records records = {.limit = chosen ? args->limit : TAPE_RECORDS,
                                        .from = args->from >= 0 ? args->from : 0,
                                        .to = args->to >= 0 ? args->to : 1e12};
    return cli_show_records(opened, &records, &args->cli.style);
}

int cmd_tape(int argc, char **argv)
{
    struct tape_args args = {.limit = SIZE_MAX, .from = -1, .to = -1};
    struct report_space_options what = {.at = ANALYZE_AT_PEAK};
    int status = cli_parse(&cli_tape, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    status = tape_check(&args);
    if (status != CLI_OK)
        return status;
    if (args.at && !parse_at(args.at, &what)) {
        cli_message("tape: --at: '%s' is neither peak nor end nor a number of seconds", args.at);
        return CLI_USAGE;
    }
    if (args.ranks && what.at == ANALYZE_AT_TIME) {
        cli_message("tape: --ranks does not go with --at SECONDS");
        return CLI_USAGE;
    }
    what.what = (enum report_space)args.what;
    what.by = (enum analyze_space_by)args.by;
    struct cli_profile opened;
    status = cli_open_only(&opened, &args.cli, argc, argv);
    if (status != CLI_OK)
        return status;
    cli_pager_begin();
    if (args.ranks)
        status = cli_ranks_apart("tape", &opened, &args.cli);
    if (status == CLI_OK)
        status = tape_show(&args, &opened, &what);
    cli_close(&opened);
    return status;
}
