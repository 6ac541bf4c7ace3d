/* cmd_dump.c: `tapescope dump`: the events of a timeline one by one. */
#include "cli_args.h"
#include "report_dump.h"

struct dump_args {
    struct cli_args cli;
    size_t limit;
    double from, to;
};

static const struct cli_option options[] = {
    {"limit", 'n', CLI_COUNT, "N", "show N events (default 100); 0: all",
     offsetof(struct dump_args, limit), NULL, 0},
    {"from", 0, CLI_NUMBER, "MS", "what was under way from here on, in ms since the start",
     offsetof(struct dump_args, from), NULL, 0},
    {"to", 0, CLI_NUMBER, "MS", "and up to here", offsetof(struct dump_args, to), NULL, 0},
};

const struct cli_command cli_dump = {
    .name = "dump",
    .summary = "the recorded ops and their pullbacks, one by one",
    .operands = "[PROFILE]",
    .about = "What was recorded, op by op, and the pullbacks in the order of the sweep, with start "
             "and length of each: of a profile with a timeline, which 'tapescope record --timeline "
             "64MiB -- ./program' makes.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_PHASE | CLI_RANK,
    .notes =
        "place: of the op's record on its tape, in units of 8 bytes; a pullback has that of its "
        "op, the newest with this place before it. saved/op and bytes/op: what the ops of that "
        "line saved for pullbacks and put on the tape, per op; times and places are exact. "
        "Brackets are scopes and sweeps, closed by the line that has the time of the whole. "
        "Events are in the order in which they ended, thread by thread.\n"
        "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_dump,
};

static void dump_take(void *payload, const struct read_profile *profile,
                      const struct read_event *event)
{
    (void)profile; /* the one that was read before has all */
    report_dump_event(payload, event);
}

static int dump_write(const struct cli_profile *opened, const struct report_dump_options *what,
                      const struct report_style *style)
{
    const char *path = read_profile_stored(opened->profile);
    char error[4096];
    struct report_dump *made = report_dump_open(opened->analysis, what, style);
    struct read_profile *again = read_profile_events(path, dump_take, made, error, sizeof error);
    report_dump_close(made, again != NULL);
    const int status = cli_finish();
    if (!again)
        cli_message("%s", error);
    read_profile_free(again);
    return again ? status : CLI_BAD_PROFILE;
}

/* In ns; what is beyond all times is the end. */
static uint64_t ns_of(double ms)
{
    return ms < 1e12 ? (uint64_t)(ms * 1e6 + 0.5) : UINT64_MAX;
}

static int dump_check(struct cli_args *cli)
{
    const struct dump_args *args = (void *)cli;
    if (args->from <= args->to)
        return CLI_OK;
    cli_message("dump: --from is after --to");
    return CLI_USAGE;
}

static int dump_show(struct cli_args *cli, struct cli_profile *opened)
{
    const struct dump_args *args = (void *)cli;
    const struct report_dump_options what = {
        .limit = args->limit, .from_ns = ns_of(args->from), .to_ns = ns_of(args->to)};
    if (opened->profile->n_events > 0)
        return dump_write(opened, &what, &cli->style);
    cli_message("dump: %s has no timeline; one is made by: tapescope record --timeline 64MiB "
                "-- ./program",
                opened->profile->path);
    return CLI_USAGE;
}

int cmd_dump(int argc, char **argv)
{
    struct dump_args args = {.limit = 100, .to = 1e12};
    return cli_run_only(&cli_dump, &args.cli, argc, argv, dump_check, dump_show);
}
