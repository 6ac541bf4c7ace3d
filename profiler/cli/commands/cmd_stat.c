/* cmd_stat.c: `tapescope stat`: a program run again and again.
 *
 * Invariant: a run that failed or left no complete profile ends the command: its figures are in no
 * mean. The profiles of the runs are temporary and do not stay, unless -o names a folder for them.
 */
#include "analyze.h"

#include "base_memory.h"
#include "cli_args.h"
#include "cli_memory.h"
#include "cli_run.h"
#include "report_stat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct stat_args {
    struct cli_args cli;
    size_t runs, warmup;
    const char *primal, *output;
};

static const struct cli_option options[] = {
    {"runs", 'r', CLI_COUNT, "N", "how many runs are counted (default 5)",
     offsetof(struct stat_args, runs), NULL, 0},
    {"warmup-runs", 0, CLI_COUNT, "K", "runs before them, which are not (default 1)",
     offsetof(struct stat_args, warmup), NULL, 0},
    {"output", 'o', CLI_TEXT, "FOLDER",
     "keep the profiles of the runs there, for 'diff', 'check --base' and 'html --base'",
     offsetof(struct stat_args, output), NULL, 0},
    {"primal", 0, CLI_TEXT, "COMMAND",
     "a shell command that computes the value alone: its wall time is measured in turn",
     offsetof(struct stat_args, primal), NULL, 0},
};

const struct cli_command cli_stat = {
    .name = "stat",
    .summary = "run a program again and again: mean and spread",
    .operands = "[--] PROGRAM [ARGUMENTS]...",
    .about = "Runs a program several times and says what its runs cost: mean, standard deviation, "
             "least and most of the times, and of the tape's bytes.",
    CLI_OPTIONS(options),
    .shared = CLI_RECORDING | CLI_WARMUP | CLI_EXACT | CLI_JSON | CLI_COLOR,
    .notes = "wall: the process from start to end, profiled. gradient / forward: forward and "
             "backward time over forward time. The program's own output is not shown.",
    .runs_program = true,
    .run = cmd_stat,
};

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Runs a program whose output goes nowhere; *ns: its wall time. */
static int stat_run(char **argv, const char *profile, double *ns)
{
    double start = now_ns();
    int error = cli_start_quiet_program(argv, profile);
    if (error != 0) {
        cli_message("cannot run %s: %s", argv[0], strerror(error));
        return error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    }
    int status = cli_wait_program();
    *ns = now_ns() - start;
    if (WIFSIGNALED(status)) {
        cli_message("stat: %s was killed by signal %d", argv[0], WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    if (WEXITSTATUS(status) != 0)
        cli_message("stat: %s exited with status %d", argv[0], WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

/* Times of a profile: exact, or what its samples stand for. */
static void add_times(struct report_stat *stat, const struct analyze_result *analysis)
{
    const struct analyze_totals *total = &analysis->total;
    double forward = (double)total->forward_ns, backward = (double)total->backward_ns;
    double recompute = (double)total->recompute_ns;
    if (!analyze_cost_is_untimed(&analysis->sum)) /* else not known, which is not 0 */
        report_stat_add(&stat->series[REPORT_STAT_FORWARD], forward);
    report_stat_add(&stat->series[REPORT_STAT_BACKWARD], backward);
    report_stat_add(&stat->series[REPORT_STAT_RECOMPUTE], recompute);
    if (forward > 0)
        report_stat_add(&stat->series[REPORT_STAT_RATIO],
                        (forward + backward + recompute) / forward);
}

static int add_profile(struct report_stat *stat, const char *path, const char *program)
{
    struct stat file;
    if (lstat(path, &file) != 0 || file.st_size == 0) {
        cli_message(
            "stat: %s wrote no profile: it is not linked with libtapescope, or has said why",
            program);
        return CLI_FAILED;
    }
    char error[4096];
    struct read_profile *profile = read_profile(path, error, sizeof error);
    if (!profile || !profile->complete) {
        cli_message("stat: %s", profile ? profile->warning : error);
        read_profile_free(profile);
        return CLI_BAD_PROFILE;
    }
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    stat->sampled |= profile->is_sampled;
    add_times(stat, analysis);
    if (read_profile_has_bytes(profile)) {
        report_stat_add(&stat->series[REPORT_STAT_TAPE], (double)analysis->total.handed_out_bytes);
        report_stat_add(&stat->series[REPORT_STAT_PEAK], (double)analysis->total.peak_bytes);
    }
    analyze_free(analysis);
    read_profile_free(profile);
    return CLI_OK;
}

/* Keeps the profile of run `number`, from 1, in the folder; NULL: in none. */
static int stat_keep(const char *path, const char *folder, size_t number)
{
    if (!folder)
        return CLI_OK;
    char *kept = base_asprintf("%s/%zu.prof", folder, number);
    const bool moved = rename(path, kept) == 0;
    if (!moved)
        cli_message("stat: cannot make %s: %s", kept, strerror(errno));
    free(kept);
    return moved ? CLI_OK : CLI_FAILED;
}

/* One round: the program, and the primal if there is one. */
static int round_of(struct report_stat *stat, char **argv, const char *path, bool counted)
{
    char *primal[] = {(char *)"/bin/sh", (char *)"-c", (char *)stat->primal, NULL};
    double ns = 0, primal_ns = 0;
    if (unlink(path) != 0 && errno != ENOENT) {
        cli_message("stat: %s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    int status = stat_run(argv, path, &ns);
    if (status == CLI_OK && stat->primal)
        status = stat_run(primal, NULL, &primal_ns);
    if (status != CLI_OK || !counted)
        return status;
    report_stat_add(&stat->series[REPORT_STAT_WALL], ns);
    if (stat->primal) {
        report_stat_add(&stat->series[REPORT_STAT_PRIMAL], primal_ns);
        report_stat_add(&stat->series[REPORT_STAT_PRIMAL_RATIO], ns / primal_ns);
    }
    return add_profile(stat, path, argv[0]);
}

static int run_all(struct report_stat *stat, char **argv, const char *path,
                   const struct stat_args *args)
{
    int status = CLI_OK;
    for (size_t i = 0; i < stat->warmup + args->runs && status == CLI_OK; i++) {
        const bool counted = i >= stat->warmup;
        status = round_of(stat, argv, path, counted);
        if (status == CLI_OK && counted)
            status = stat_keep(path, args->output, i - stat->warmup + 1);
    }
    return status;
}

static const char *temporary, *temporary_folder;

static void remove_folder(void)
{
    unlink(temporary);
    rmdir(temporary_folder);
}

/* The folder in which profiles are kept, made if it is not there, by its whole path: the program
 * may go elsewhere. To be freed; NULL, after saying why: there is none, or it has some already. */
static char *stat_output(const char *output)
{
    char *whole = NULL;
    if (mkdir(output, 0777) != 0 && errno != EEXIST) {
        cli_message("stat: cannot make %s: %s", output, strerror(errno));
        return NULL;
    }
    char *first = base_asprintf("%s/1.prof", output);
    if (access(first, F_OK) == 0)
        cli_message("stat: %s has profiles already", output);
    else if (!(whole = realpath(output, NULL)))
        cli_message("stat: %s: %s", output, strerror(errno));
    free(first);
    return whole;
}

/* A folder of our own for the profile, where those that are kept go; to be freed. */
static char *stat_make_folder(const char *output)
{
    const char *parent = output ? output : secure_getenv("TMPDIR");
    if (!parent || parent[0] != '/')
        parent = "/tmp";
    char *folder = base_asprintf("%s/tapescope-stat-XXXXXX", parent);
    if (mkdtemp(folder))
        return folder;
    cli_message("stat: cannot make a folder in %s: %s", parent, strerror(errno));
    free(folder);
    return NULL;
}

int cmd_stat(int argc, char **argv)
{
    struct stat_args args = {.runs = 5, .warmup = 1};
    int status = cli_parse(&cli_stat, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (optind == argc || args.runs == 0) {
        cli_message(args.runs == 0 ? "stat: --runs: at least one"
                                   : "stat: name the program to run, as in: tapescope stat -- "
                                     "./program");
        return CLI_USAGE;
    }
    cli_export_recording(&args.cli);
    char *output = args.output ? stat_output(args.output) : NULL;
    char *folder = args.output && !output ? NULL : stat_make_folder(output);
    args.output = output;
    if (!folder) {
        free(output);
        return CLI_FAILED;
    }
    char *path = base_asprintf("%s/profile", folder);
    struct report_stat stat = {.command = (const char *const *)argv + optind,
                               .primal = args.primal,
                               .warmup = args.warmup};
    temporary = path;
    temporary_folder = folder;
    cli_before_end = remove_folder;
    status = run_all(&stat, argv + optind, path, &args);
    cli_before_end = NULL;
    unlink(path);
    if (rmdir(folder) != 0)
        cli_message("stat: %s is left: %s", folder, strerror(errno));
    if (status == CLI_OK) {
        report_stat_print(&stat, &args.cli.style);
        status = cli_finish();
    }
    free(path);
    free(folder);
    free(output);
    return status;
}
