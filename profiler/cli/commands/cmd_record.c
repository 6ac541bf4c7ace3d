/* cmd_record.c: `tapescope record`: runs a program that writes its profile, and says what came
 * of it.
 *
 * Invariant: the exit status is the program's (128 + n after signal n) unless it never started, or
 * ended with 0 and left no profile. A profile that was there before is never taken for the
 * program's, and stays if that cannot be run.
 */
#include "cli_args.h"

#include "base_memory.h"
#include "cli_page.h"
#include "cli_recorded.h"
#include "cli_run.h"
#include "cli_until.h"
#include "ranks.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct record_args {
    struct cli_args cli;
    const char *output;
    bool pack;
    int report;
    struct cli_until until;
};

enum { REPORT_NONE, REPORT_HTML };
static const char *const reports[] = {
    [REPORT_NONE] = "none", [REPORT_HTML] = "html", [REPORT_HTML + 1] = NULL};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "PROFILE", "where to write (default " CLI_DEFAULT_PROFILE ")",
     offsetof(struct record_args, output), NULL, 0},
    {"pack", 0, CLI_FLAG, NULL, "at the end, pack it: compress it and put the symbols in",
     offsetof(struct record_args, pack), NULL, 0},
    {"report", 0, CLI_CHOICE, "WHAT",
     "at the end, write a report beside PROFILE, its name with .html for .prof (tapescope html)",
     offsetof(struct record_args, report), reports, 0},
    {"until-error", 0, CLI_LIST, "PLACE=P%",
     "run it again, with samples, until those of a line (FILE:LINE) or function have a standard "
     "error of at most P% of its share; repeatable",
     offsetof(struct record_args, until.goal), NULL, 0},
    {"max-runs", 0, CLI_COUNT, "N", "for --until-error: at most N runs (default 20)",
     offsetof(struct record_args, until.most_runs), NULL, 0},
};

const struct cli_command cli_record = {
    .name = "record",
    .summary = "run a program and write its profile",
    .operands = "[--] PROGRAM [ARGUMENTS]...",
    .about = "Runs a program that uses libtapescope and writes what its tapes cost to PROFILE. The "
             "program need not know.",
    CLI_OPTIONS(options),
    .shared = CLI_RECORDING | CLI_WARMUP,
    .notes = "The exit status is the program's, or 128 + n if signal n ended it; 126 or 127: it "
             "could not be run; 125: it ended with 0 and left no profile, or there is no space for "
             "one; 1: --until-error was not "
             "reached.",
    .runs_program = true,
    .run = cmd_record,
};

/* The page about the profile at `path`, or the ranks' that have its name. */
static void record_write_report(const struct record_args *args, const char *path)
{
    struct cli_profile opened;
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) /* a device */
        return;
    size_t n = strlen(args->output);
    if (n > strlen(".prof") && strcmp(args->output + n - strlen(".prof"), ".prof") == 0)
        n -= strlen(".prof");
    char *page = base_asprintf("%.*s.html", (int)n, args->output);
    if (cli_open(&opened, &args->cli, path) == CLI_OK) {
        cli_write_page(page, opened.analysis, &(struct html_options){0});
        cli_close(&opened);
    }
    free(page);
}

/* Samples are what --until-error counts. */
static bool prepare_until(struct record_args *args)
{
    if (args->until.goal.n == 0)
        return true;
    if (args->cli.recording.time < 0)
        args->cli.recording.time = CLI_TIME_SAMPLED;
    if (args->cli.recording.time != CLI_TIME_SAMPLED || args->until.most_runs == 0) {
        cli_message(args->until.most_runs == 0 ? "record: --max-runs: at least one"
                                               : "record: --until-error needs --time sampled");
        return false;
    }
    return cli_until_check(&args->until);
}

static int record_until(const struct record_args *args, char **argv, const char *path)
{
    if (access(path, F_OK) == 0)
        return cli_until_repeat(&args->until, &args->cli, argv, path);
    cli_message("record: --until-error: not for a program of several ranks");
    return CLI_FAILED;
}

int cmd_record(int argc, char **argv)
{
    struct record_args args = {.output = CLI_DEFAULT_PROFILE, .until = {.most_runs = 20}};
    int status = cli_parse(&cli_record, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (optind == argc) {
        cli_message("record: name the program to run, as in: tapescope record -- ./program");
        return CLI_USAGE;
    }
    if (!prepare_until(&args))
        return CLI_USAGE;
    if (args.until.goal.n > 0 && ranks_of_environment().known) {
        cli_message("record: --until-error: a rank of MPI cannot be run again alone");
        return CLI_USAGE;
    }
    char own[PATH_MAX];
    args.output = ranks_path(own, sizeof own, args.output);
    if (!args.output) {
        cli_message("record: the name of the profile is too long");
        return CLI_USAGE;
    }
    char *path = cli_absolute_path(args.output);
    if (!path) {
        cli_message("cannot write %s: %s", args.output, strerror(errno));
        return CLI_FAILED;
    }
    cli_export_recording(&args.cli);
    struct cli_recorded recording = {.argv = argv + optind,
                                     .profile = args.output,
                                     .path = path,
                                     .pack = args.pack,
                                     .utf8 = args.cli.style.utf8};
    status = cli_run_recorded(&recording);
    if (status == CLI_OK && !recording.left)
        status = CLI_NO_PROFILE;
    if (status == CLI_OK && args.until.goal.n > 0)
        status = record_until(&args, recording.argv, path);
    if (args.report == REPORT_HTML && recording.left)
        record_write_report(&args, path);
    free(path);
    return status;
}
