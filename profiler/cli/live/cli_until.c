/* cli_until.c: see cli_until.h.
 *
 * Invariant: the profile always holds whole runs: one that failed is not added.
 *
 * n samples of a place have a standard deviation of sqrt(n): 1 / sqrt(n) of its share.
 */
#include "cli_until.h"

#include "base_memory.h"
#include "cli_run.h"
#include "cli_written.h"
#include "read_merge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LEAST_RUNS = 3, /* before a place without any sample is given up */
    NAME_ROOM = 1024,
    STATUS_BASE = 128
};

struct goal {
    char place[NAME_ROOM]; /* file or function */
    uint32_t line;         /* 0: a function */
    double error;          /* of the share */
};

static bool read_goal(struct goal *goal, const char *text)
{
    static const struct cli_option percent = {
        .name = "until-error", .kind = CLI_PERCENT, .value = "P%"};
    const char *equals = strrchr(text, '=');
    const size_t n = equals ? (size_t)(equals - text) : 0;
    if (n == 0 || n >= sizeof goal->place) {
        cli_message("record: --until-error: '%s' is not FILE:LINE=P%% or FUNCTION=P%%", text);
        return false;
    }
    if (!cli_store("record", &percent, equals + 1, &goal->error))
        return false;
    memcpy(goal->place, text, n);
    goal->place[n] = '\0';
    goal->line = 0;
    char *colon = strrchr(goal->place, ':'), *end;
    if (colon && colon > goal->place && colon[1] >= '1' && colon[1] <= '9') {
        const unsigned long line = strtoul(colon + 1, &end, 10);
        if (*end == '\0' && line <= UINT32_MAX) {
            goal->line = (uint32_t)line;
            *colon = '\0';
        }
    }
    if (goal->error > 0)
        return true;
    cli_message("record: --until-error: '%s': no number of samples has an error of 0", text);
    return false;
}

bool cli_until_check(const struct cli_until *until)
{
    struct goal goal;
    for (size_t i = 0; i < until->goal.n; i++)
        if (!read_goal(&goal, until->goal.item[i]))
            return false;
    return true;
}

/* Samples of a place that its share is from: those that found it at work. */
static uint64_t samples_of(const struct goal *goal, const struct analyze_result *analysis)
{
    uint64_t n = 0;
    const char *file = NULL;
    if (goal->line > 0 && analyze_files(analysis, goal->place, &file, 1) != 1)
        return 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        const bool here = goal->line > 0
                              ? line->file == file && line->line == goal->line
                              : line->function && strcmp(line->function, goal->place) == 0;
        n += here ? line->cost.cpu_samples : 0;
    }
    return n;
}

enum progress { REACHED, NOT_YET, HOPELESS };

/* How far one goal is, which is said. */
static enum progress until_judge(const char *text, const struct analyze_result *analysis,
                                 uint64_t runs)
{
    struct goal goal;
    const char *const plural = runs == 1 ? "" : "s";
    if (!read_goal(&goal, text))
        return HOPELESS;
    const int name = (int)(strrchr(text, '=') - text);
    if (goal.line > 0 && analyze_files(analysis, goal.place, NULL, 0) > 1) {
        cli_message("%s: several files have that name: write more of its path", goal.place);
        return HOPELESS;
    }
    const uint64_t n = samples_of(&goal, analysis);
    if (n == 0) {
        cli_message("%.*s: no sample of its work in %llu run%s", name, text,
                    (unsigned long long)runs, plural);
        return runs >= LEAST_RUNS ? HOPELESS : NOT_YET;
    }
    const double is = 1 / sqrt((double)n), wanted = 1 / (goal.error * goal.error);
    const bool reached = (double)n >= wanted;
    char left[64] = "";
    if (!reached)
        snprintf(left, sizeof left, ", some %.0f more needed",
                 ceil((wanted - (double)n) * (double)runs / (double)n));
    cli_message("%.*s: standard error %.2g%% of its share (%llu sample%s, %llu run%s%s)", name,
                text, 100 * is, (unsigned long long)n, n == 1 ? "" : "s", (unsigned long long)runs,
                plural, left);
    return reached ? REACHED : NOT_YET;
}

static enum progress judge_all(const struct cli_until *until, const struct analyze_result *analysis)
{
    enum progress all = REACHED;
    for (size_t i = 0; i < until->goal.n; i++) {
        const enum progress one =
            until_judge(until->goal.item[i], analysis, analysis->profile->runs);
        all = one > all ? one : all;
    }
    return all;
}

/* Once more, to a file of its own. Returns an exit status; 0: it is to be added. */
static int run_again(char **argv, const char *path)
{
    const int error = cli_start_program(argv, path);
    if (error != 0) {
        cli_message("cannot run %s: %s", argv[0], strerror(error));
        return error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    }
    const int status = cli_wait_program();
    const int code = WIFSIGNALED(status) ? STATUS_BASE + WTERMSIG(status) : WEXITSTATUS(status);
    if (code != 0)
        cli_message("record: %s failed (status %d): its samples are not added", argv[0], code);
    return code;
}

static int until_add(const struct cli_args *args, const char *path, const char *more)
{
    char *both[] = {(char *)path, (char *)more};
    struct cli_profiles opened;
    int status = cli_open_all(&opened, args, both, 2);
    if (status != CLI_OK)
        return status;
    if (read_may_merge(opened.one[0].profile, opened.one[1].profile)) {
        status = cli_sum_profiles("record", &opened, path);
    } else {
        cli_message("record: the program has changed: its samples are not added");
        status = CLI_FAILED;
    }
    cli_close_all(&opened);
    return status;
}

/* Returns REACHED and so on, or -1 with the exit status in *status. */
static int until_look(const struct cli_until *until, const struct cli_args *args, const char *path,
                      int *status)
{
    struct cli_profile opened;
    *status = cli_open(&opened, args, path);
    if (*status != CLI_OK)
        return -1;
    int progress = -1;
    if (opened.profile->is_sampled) {
        progress = (int)judge_all(until, opened.analysis);
    } else {
        cli_message("record: --until-error: %s has no samples", path);
        *status = CLI_FAILED;
    }
    cli_close(&opened);
    return progress;
}

int cli_until_repeat(const struct cli_until *until, const struct cli_args *args, char **argv,
                     const char *path)
{
    int status, progress;
    size_t runs = 1;
    char *more = base_asprintf("%s.run", path);
    while ((progress = until_look(until, args, path, &status)) == NOT_YET &&
           runs < until->most_runs) {
        unlink(more); /* what is there already is not the program's */
        status = run_again(argv, more);
        if (status == CLI_OK)
            status = until_add(args, path, more);
        unlink(more);
        if (status != CLI_OK)
            break;
        runs++;
    }
    free(more);
    if (status != CLI_OK || progress == REACHED)
        return status;
    if (progress == HOPELESS)
        cli_message("record: the error that --until-error names cannot be reached");
    else
        cli_message("record: not reached in %zu runs, the most that --max-runs lets be", runs);
    return CLI_FAILED;
}
