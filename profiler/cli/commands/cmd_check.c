/* cmd_check.c: `tapescope check`: profiles held against limits, for continuous integration.
 *
 * Invariant: CLI_OK means that every gate was judged and none failed; a profile that is not
 * complete is judged by no gate.
 */
#include "cli_args.h"

#include "base_memory.h"
#include "cli_paths.h"
#include "cli_sizes.h"
#include "report_gates.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct check_args {
    struct cli_args cli;
    uint64_t peak, total_tape; /* UINT64_MAX: no such gate */
    double ratio, growth;      /* negative: no such gate */
    struct cli_list tape;
    bool expectations, github;
    struct cli_list baseline;
    const char *junit, *sarif;
    double tolerance, time_tolerance; /* the latter negative: time is not compared */
};

static const struct cli_option options[] = {
    {"max-peak", 0, CLI_BYTES, "BYTES", "the tape's bytes at its peak",
     offsetof(struct check_args, peak), NULL, 0},
    {"max-total-tape", 0, CLI_BYTES, "BYTES", "tape bytes handed out in all",
     offsetof(struct check_args, total_tape), NULL, 0},
    {"max-tape", 0, CLI_LIST, "FILE:LINE=BYTES", "tape bytes of one source line; repeatable",
     offsetof(struct check_args, tape), NULL, 0},
    {"max-ratio", 0, CLI_NUMBER, "R", "backward time over forward time",
     offsetof(struct check_args, ratio), NULL, 0},
    {"expectations", 0, CLI_FLAG, NULL, "what the source states by AD_EXPECT_... holds",
     offsetof(struct check_args, expectations), NULL, 0},
    {"max-growth", 0, CLI_NUMBER, "B",
     "no line's tape bytes grow significantly faster than n^B; three profiles or more",
     offsetof(struct check_args, growth), NULL, 0},
    {"base", 0, CLI_LIST, "PROFILE",
     "no line has more tape bytes than there, nor the peak; repeatable, or a folder of runs: their "
     "mean",
     offsetof(struct check_args, baseline), NULL, 0},
    {"tolerance", 0, CLI_PERCENT, "P%", "bytes that --base lets pass (default 0%)",
     offsetof(struct check_args, tolerance), NULL, 0},
    {"time-tolerance", 0, CLI_PERCENT, "P%", "--base compares time too, and lets that much pass",
     offsetof(struct check_args, time_tolerance), NULL, 0},
    {"junit", 0, CLI_TEXT, "FILE", "write the result as JUnit's XML as well",
     offsetof(struct check_args, junit), NULL, 0},
    {"sarif", 0, CLI_TEXT, "FILE", "write what failed as SARIF 2.1.0 as well",
     offsetof(struct check_args, sarif), NULL, 0},
    {"github", 0, CLI_FLAG, NULL,
     "print what failed as annotations of GitHub Actions as well, at the source lines",
     offsetof(struct check_args, github), NULL, 0},
};

const struct cli_command cli_check = {
    .name = "check",
    .summary = "hold profiles against limits",
    .operands = "[PROFILE]...",
    .about = "Holds profiles against limits and exits with status 1 if one is exceeded. Tape bytes "
             "are the same in every run of one program, so their limits can be exact.",
    CLI_OPTIONS(options),
    .shared = CLI_SIZES | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes =
        "Every gate but --max-growth judges each profile by itself. Sizes for --max-growth are "
        "found as by 'tapescope growth'. What is the tape's own, such as its padding, is judged in "
        "the whole alone. A gate that cannot be judged has failed.\n"
        "--sarif and --github name sources from GITHUB_WORKSPACE, or else from the current "
        "folder.\n"
        "PROFILE defaults to " CLI_DEFAULT_PROFILE
        ". Exit status: 0 all gates passed, 1 one failed, 2 wrong usage, 3 a bad or "
        "incomplete profile.",
    .run = cmd_check,
};

/* "FILE:LINE=BYTES" in parts; file is within `text`, which is cut. */
static bool split_limit(char *text, const char **file, uint32_t *line, uint64_t *most)
{
    static const struct cli_option bytes = {
        .name = "max-tape", .kind = CLI_BYTES, .value = "BYTES"};
    char *equals = strrchr(text, '='), *end;
    if (!equals)
        return false;
    *equals = '\0';
    char *colon = strrchr(text, ':');
    if (!colon || colon == text || colon[1] < '1' || colon[1] > '9')
        return false;
    unsigned long n = strtoul(colon + 1, &end, 10);
    *colon = '\0';
    *file = text;
    *line = (uint32_t)n;
    return *end == '\0' && n <= UINT32_MAX && cli_store("check", &bytes, equals + 1, most);
}

static int judge_lines(struct report_gates *gates, const struct check_args *args,
                       const struct analyze_result *analysis)
{
    for (size_t i = 0; i < args->tape.n; i++) {
        const char *file;
        uint32_t line;
        uint64_t most;
        char *text = base_strdup(args->tape.item[i]);
        bool good = split_limit(text, &file, &line, &most);
        if (good)
            report_gate_line_tape(gates, analysis, file, line, most);
        else
            cli_message("check: --max-tape: '%s' is not FILE:LINE=BYTES", args->tape.item[i]);
        free(text);
        if (!good)
            return CLI_USAGE;
    }
    return CLI_OK;
}

static int judge_one(struct report_gates *gates, const struct check_args *args,
                     const struct analyze_result *analysis, const struct analyze_runs *base)
{
    if (args->peak != UINT64_MAX)
        report_gate_peak(gates, analysis, args->peak);
    if (args->total_tape != UINT64_MAX)
        report_gate_total_tape(gates, analysis, args->total_tape);
    if (args->ratio >= 0)
        report_gate_ratio(gates, analysis, args->ratio);
    if (args->expectations)
        report_gate_expectations(gates, analysis);
    if (base)
        report_gate_baseline(gates, base, analysis, args->tolerance, args->time_tolerance);
    return judge_lines(gates, args, analysis);
}

static int judge_growth(struct report_gates *gates, const struct check_args *args,
                        const struct cli_profiles *opened)
{
    double size[ANALYZE_JOIN_MOST];
    char name[128];
    int status = cli_find_sizes(&args->cli.sizes, "check", opened, size, name, sizeof name);
    if (status != CLI_OK)
        return status;
    struct report_sizes sizes = {opened->analysis, size, opened->n, name};
    struct report_growth growth;
    report_growth_make(&growth, &sizes, ANALYZE_BY_LINE, REPORT_BYTES_TAPE);
    report_gate_growth(gates, &growth, &sizes, args->growth);
    report_growth_free(&growth);
    return CLI_OK;
}

/* What was cut off may be what a gate is for. */
static int demand_complete(const struct cli_profiles *opened)
{
    for (size_t i = 0; i < opened->n; i++) {
        if (!opened->one[i].profile->complete) {
            cli_message("check: %s is not complete: no gate can be judged",
                        opened->one[i].profile->path);
            return CLI_BAD_PROFILE;
        }
    }
    return CLI_OK;
}

static int check_judge(struct report_gates *gates, const struct check_args *args,
                       const struct cli_profiles *opened, const struct cli_profiles *base)
{
    int status = demand_complete(opened);
    if (status == CLI_OK)
        status = demand_complete(base);
    struct analyze_runs runs = {.n = 0};
    if (status == CLI_OK && base->n > 0)
        analyze_runs_make(&runs, base->analysis, base->n);
    for (size_t i = 0; i < opened->n && status == CLI_OK; i++)
        status = judge_one(gates, args, opened->analysis[i], runs.n > 0 ? &runs : NULL);
    analyze_runs_free(&runs);
    if (status == CLI_OK && args->growth >= 0)
        status = judge_growth(gates, args, opened);
    return status;
}

/* names: SARIF; NULL: JUnit. */
static int check_write(const struct report_gates *gates, const struct report_gates_names *names,
                       const char *path)
{
    FILE *out = fopen(path, "we");
    int error = out ? 0 : errno;
    if (out) {
        if (names)
            report_gates_put_sarif(gates, names, out);
        else
            report_gates_put_junit(gates, out);
        error = ferror(out) ? EIO : 0;
        if (fclose(out) != 0)
            error = errno;
    }
    if (error == 0)
        return CLI_OK;
    cli_message("cannot write %s: %s", path, strerror(error));
    return CLI_FAILED;
}

static int check_report(const struct report_gates *gates, const struct check_args *args,
                        const struct cli_profiles *opened)
{
    char folder[PATH_MAX];
    const char *workspace = secure_getenv("GITHUB_WORKSPACE");
    const struct report_gates_names names = {
        .folder = workspace                       ? workspace
                  : getcwd(folder, sizeof folder) ? folder
                                                  : "",
        .whole = opened->one[0].profile->path,
        .version = TAPESCOPE_VERSION,
    };
    report_gates_print(gates, &args->cli.style);
    if (args->github)
        report_gates_put_github(gates, &names, args->cli.style.out);
    int status = cli_finish();
    if (status == CLI_OK && args->junit)
        status = check_write(gates, NULL, args->junit);
    if (status == CLI_OK && args->sarif)
        status = check_write(gates, &names, args->sarif);
    return status == CLI_OK && report_gates_failed(gates) > 0 ? CLI_FAILED : status;
}

static bool has_gate(const struct check_args *args)
{
    return args->peak != UINT64_MAX || args->total_tape != UINT64_MAX || args->ratio >= 0 ||
           args->growth >= 0 || args->tape.n > 0 || args->baseline.n > 0 || args->expectations;
}

/* The profiles of --base, which may be folders of them. */
static int open_base(struct cli_profiles *base, const struct check_args *args)
{
    struct cli_paths paths = {.n = 0};
    int status = CLI_OK;
    for (size_t i = 0; i < args->baseline.n && status == CLI_OK; i++)
        status = cli_paths_add(&paths, "check", args->baseline.item[i]);
    if (status == CLI_OK && paths.n > 0)
        status = cli_open_all(base, &args->cli, paths.path, paths.n);
    for (size_t i = 1; status == CLI_OK && i < base->n; i++)
        if (!cli_times_alike("check", base->one[0].profile, base->one[i].profile, ""))
            status = CLI_USAGE;
    cli_paths_free(&paths);
    return status;
}

int cmd_check(int argc, char **argv)
{
    struct check_args args = {.peak = UINT64_MAX,
                              .total_tape = UINT64_MAX,
                              .ratio = -1,
                              .growth = -1,
                              .time_tolerance = -1};
    int status = cli_parse(&cli_check, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (!has_gate(&args)) {
        cli_message("check: name a gate, such as --max-peak 64MiB; try 'tapescope check --help'");
        return CLI_USAGE;
    }
    if (args.github && args.cli.style.json) {
        cli_message("check: --github does not go with --json: both write to standard output");
        return CLI_USAGE;
    }
    int n = argc - optind;
    if (n > ANALYZE_JOIN_MOST || (args.growth >= 0 && n < 3)) {
        cli_message(n < 3 ? "check: --max-growth needs three profiles or more"
                          : "check: too many profiles");
        return CLI_USAGE;
    }
    char *by_default[] = {NULL};
    struct cli_profiles opened, base = {.n = 0};
    status = cli_open_all(&opened, &args.cli, n ? argv + optind : by_default, n ? (size_t)n : 1);
    if (status != CLI_OK)
        return status;
    struct report_gates gates = {.n = 0};
    status = open_base(&base, &args);
    if (status == CLI_OK)
        status = check_judge(&gates, &args, &opened, &base);
    if (status == CLI_OK)
        status = check_report(&gates, &args, &opened);
    report_gates_free(&gates);
    cli_close_all(&base);
    cli_close_all(&opened);
    return status;
}
