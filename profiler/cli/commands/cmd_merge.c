/* cmd_merge.c: `tapescope merge`: profiles of several processes or runs as one. */
#include "cli_progress.h"
#include "cli_ranks.h"
#include "cli_written.h"

#include "base_memory.h"
#include "read_merge.h"

#include <stdlib.h>

struct merge_args {
    struct cli_args cli;
    const char *output;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "FILE", "where to write the sum; must be given",
     offsetof(struct merge_args, output), NULL, 0},
};

const struct cli_command cli_merge = {
    .name = "merge",
    .summary = "add up profiles of one program, or pack one to keep",
    .operands = "-o FILE PROFILE...",
    .about = "Adds up profiles of one program, of several processes or runs, into one: lines are "
             "the same if they are at the same place of the same module. The sum is packed: "
             "compressed, with its symbols, so that it can be read after the program was built "
             "again or on another machine. One profile alone is packed.",
    CLI_OPTIONS(options),
    .shared = CLI_JSON,
    .notes =
        "Times and bytes are sums; peaks are those of the one tape with the greatest. Call paths "
        "and scopes are joined, samples added up; single events keep the number of their process. "
        "Steps are from "
        "the first to the last that any of the programs measured. FILE may be one of the profiles. "
        "Every command reads packed profiles; 'tapescope record --pack' writes them. Of ranks of "
        "MPI FILE keeps the profile of each: --ranks, --rank and 'tapescope ranks' take it as they "
        "take the set.",
    .run = cmd_merge,
};

/* Times of ops, by the clock. */
static bool is_timed(const struct read_profile *profile)
{
    const struct analyze_totals total = analyze_profile_totals(profile);
    return total.forward_ticks + total.backward_ticks > 0;
}

static int check_programs(const struct cli_profiles *opened)
{
    const struct read_profile *first = opened->one[0].profile, *timed = NULL, *sampled = NULL;
    for (size_t i = 0; i < opened->n; i++) {
        const struct read_profile *other = opened->one[i].profile;
        if (!read_may_merge(first, other)) {
            cli_message("merge: %s is of another program than %s, or of another build of it",
                        other->path, first->path);
            return CLI_USAGE;
        }
        timed = is_timed(other) ? other : timed;
        sampled = other->is_sampled ? other : sampled;
    }
    if (timed && sampled && timed != sampled) {
        cli_message("merge: %s has exact times and %s has samples: they have no sum", timed->path,
                    sampled->path);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* Whether the profiles are ranks, not one alone. */
static bool merge_is_set(const struct cli_profiles *opened)
{
    bool all = opened->n > 1;
    for (size_t i = 0; i < opened->n; i++)
        all = all && opened->one[i].profile->ranked;
    return all;
}

/* Of one run's ranks each must be there once. */
static int merge_check_ranks(const struct cli_profiles *opened)
{
    const struct read_profile **part = base_calloc(opened->n + 1, sizeof *part);
    for (size_t i = 0; i < opened->n; i++)
        part[i] = opened->one[i].profile;
    const bool ok = !merge_is_set(opened) || cli_ranks_check(part, opened->n, true);
    free(part);
    return ok ? CLI_OK : CLI_USAGE;
}

static int merge_compare_ranks(const void *x, const void *y)
{
    const struct analyze_result *const *a = x, *const *b = y;
    const uint32_t of_a = (*a)->profile->rank, of_b = (*b)->profile->rank;
    return (of_a > of_b) - (of_a < of_b);
}

/* Of a set of ranks, or a sum that keeps them, each is kept. */
static int merge_sum(struct cli_profiles *opened, const struct cli_args *args, const char *output)
{
    struct cli_profile *one = &opened->one[0];
    const bool kept = opened->n == 1 && (one->n_parts > 0 || one->profile->n_parts > 0);
    const int status = kept ? cli_open_apart(one, args) : CLI_OK;
    if (status != CLI_OK)
        return status;
    if (kept)
        return cli_sum_ranks("merge", one->part_analysis, one->n_parts, output);
    if (opened->n == 1)
        return cli_pack_profile("merge", opened->analysis[0], read_profile_stored(one->profile),
                                output);
    if (!merge_is_set(opened))
        return cli_sum_profiles("merge", opened, output);
    qsort(opened->analysis, opened->n, sizeof *opened->analysis, merge_compare_ranks);
    return cli_sum_ranks("merge", opened->analysis, opened->n, output);
}

static int merge_write(struct cli_profiles *opened, const struct cli_args *args, const char *output)
{
    const struct read_profile **from = base_calloc(opened->n + 1, sizeof *from);
    for (size_t i = 0; i < opened->n; i++)
        from[i] = opened->one[i].profile;
    cli_progress("writing %s", output);
    int status = merge_sum(opened, args, output);
    if (status == CLI_OK)
        status = cli_say_written(args, "merge", output, from, opened->n);
    free(from);
    return status;
}

int cmd_merge(int argc, char **argv)
{
    struct merge_args args = {.output = NULL};
    int status = cli_parse(&cli_merge, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (!args.output || optind == argc) {
        cli_message("merge: name the file to write and the profiles, as in: tapescope merge -o "
                    "all.prof a.prof b.prof");
        return CLI_USAGE;
    }
    struct cli_profiles opened;
    status = cli_open_all(&opened, &args.cli, argv + optind, (size_t)(argc - optind));
    if (status != CLI_OK)
        return status;
    status = check_programs(&opened);
    if (status == CLI_OK)
        status = merge_check_ranks(&opened);
    if (status == CLI_OK)
        status = merge_write(&opened, &args.cli, args.output);
    cli_close_all(&opened);
    return status;
}
