/* cmd_ranks.c: `tapescope ranks`: the ranks of one run side by side. */
#include "cli_args.h"
#include "cli_pager.h"
#include "cli_ranks.h"
#include "report_many.h"

#include "base_memory.h"

#include <stdlib.h>
#include <unistd.h>

struct ranks_args {
    struct cli_args cli;
    int by;
    size_t limit;
};

static const struct cli_option options[] = {
    {"limit", 'n', CLI_COUNT, "N", "show N lines (default 20); 0: all, and a row for each rank",
     offsetof(struct ranks_args, limit), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a row stands for", offsetof(struct ranks_args, by),
     cli_places, 0},
};

const struct cli_command cli_ranks = {
    .name = "ranks",
    .summary = "which rank of MPI is slow, and on which lines",
    .operands = "[NAME | PROFILE PROFILE...]",
    .about =
        "The ranks of one run side by side, and the lines whose time is divided unevenly among "
        "them, those first on which most is lost. NAME: that of the profiles NAME.0, NAME.1, "
        "... (default " CLI_DEFAULT_PROFILE "), or a sum of them by 'tapescope merge'.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes = "messages: time of ops of MPI; waiting: until their partners came to theirs, so that "
             "the rank with most of it had least to do; transfer: what is left; rest: time of all "
             "other ops. lost: what the slowest rank takes more than the mean. rank: the slowest.",
    .run = cmd_ranks,
};

/* The profiles that were named, or those of the set. */
static char **ranks_paths(int argc, char **argv, size_t *n)
{
    const size_t given = (size_t)(argc - optind);
    const char *name = given > 0 ? argv[optind] : CLI_DEFAULT_PROFILE;
    char **of_rank = given < 2 ? cli_ranks_find(name, n) : NULL;
    if (of_rank)
        return of_rank;
    if (given == 0) {
        cli_message("ranks: there are no profiles " CLI_DEFAULT_PROFILE
                    ".0, .1, ... (make them by: mpirun -n 4 tapescope record ./program)");
        return NULL;
    }
    if (given == 1) {
        cli_message("ranks: there are no profiles %s.0, %s.1, ...", name, name);
        return NULL;
    }
    if (!cli_ranks_are(argv + optind, given)) {
        cli_message("ranks: these are not all profiles of ranks of MPI");
        return NULL;
    }
    of_rank = base_calloc(given + 1, sizeof *of_rank);
    for (*n = 0; *n < given; ++*n)
        of_rank[*n] = base_strdup(argv[optind + (int)*n]);
    return of_rank;
}

static int ranks_show(const struct ranks_args *args, const struct cli_profiles *opened)
{
    const struct read_profile **part = base_calloc(opened->n + 1, sizeof *part);
    for (size_t i = 0; i < opened->n; i++)
        part[i] = opened->one[i].profile;
    const bool fit = cli_ranks_check(part, opened->n, !args->cli.rank);
    free(part);
    if (!fit)
        return CLI_BAD_PROFILE;
    for (size_t i = 1; i < opened->n; i++)
        if (!cli_times_alike("ranks", opened->one[0].profile, opened->one[i].profile, ""))
            return CLI_USAGE;
    struct analyze_ranks *messages = analyze_ranks(opened->analysis, opened->n);
    report_ranks(messages, (enum analyze_by)args->by, args->limit, &args->cli.style);
    analyze_ranks_free(messages);
    return cli_finish();
}

/* Of a sum that keeps its ranks. */
static int ranks_show_kept(const struct ranks_args *args, const char *path)
{
    struct cli_profile opened;
    int status = cli_open(&opened, &args->cli, path);
    if (status != CLI_OK)
        return status;
    status = cli_open_apart(&opened, &args->cli);
    const struct analyze_result *alone = opened.analysis;
    struct analyze_ranks *one = status == CLI_OK && !opened.ranks ? analyze_ranks(&alone, 1) : NULL;
    if (status == CLI_OK)
        cli_pager_begin();
    if (status == CLI_OK)
        report_ranks(one ? one : opened.ranks, (enum analyze_by)args->by, args->limit,
                     &args->cli.style);
    analyze_ranks_free(one);
    cli_close(&opened);
    return status == CLI_OK ? cli_finish() : status;
}

/* Whether it is a file that keeps them, and no set beside it goes before it. */
static bool ranks_are_kept(const char *name)
{
    char error[4096];
    size_t n;
    char **of_rank = cli_ranks_find(name, &n);
    cli_ranks_free(of_rank, of_rank ? n : 0);
    struct read_profile *profile =
        !of_rank && access(name, R_OK) == 0 ? read_profile(name, error, sizeof error) : NULL;
    const bool kept = profile && profile->n_parts > 0;
    read_profile_free(profile);
    return kept;
}

int cmd_ranks(int argc, char **argv)
{
    struct ranks_args args = {.limit = 20};
    int status = cli_parse(&cli_ranks, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    const char *name = argc > optind ? argv[optind] : CLI_DEFAULT_PROFILE;
    if (argc - optind < 2 && ranks_are_kept(name))
        return ranks_show_kept(&args, name);
    size_t n = 0;
    char **path = ranks_paths(argc, argv, &n);
    if (!path)
        return CLI_USAGE;
    struct cli_profiles opened = {0};
    struct cli_args each = args.cli;
    size_t n_chosen = n;
    char **chosen = cli_ranks_choose(&args.cli, path, &n_chosen);
    each.rank = NULL;
    if (!chosen) {
        status = CLI_BAD_PROFILE;
    } else {
        status = cli_open_all(&opened, &each, chosen, n_chosen);
    }
    if (status == CLI_OK)
        cli_pager_begin();
    if (status == CLI_OK)
        status = ranks_show(&args, &opened);
    cli_close_all(&opened);
    free(chosen);
    cli_ranks_free(path, n);
    return status;
}
