/* cmd_merge.c: `tapescope merge`: profiles of several processes or runs as one.
 *
 * May include: cli.h and what it stands on.
 */
#include "cli_args.h"
#include "merge.h"

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
    .summary = "add up profiles of one program",
    .operands = "-o FILE PROFILE...",
    .about = "Adds up profiles of one program, of several processes or runs, into one: lines are "
             "the same if they are at the same place of the same module.",
    CLI_OPTIONS(options),
    .notes = "Times and bytes are sums; peaks are those of the one tape with the greatest. Scopes, "
             "call paths, samples and single events are not kept. The sum is packed: see "
             "'tapescope pack'.",
    .run = cmd_merge,
};

static int check_programs(const struct cli_profiles *opened)
{
    for (size_t i = 1; i < opened->n; i++) {
        const struct prof_profile *first = opened->one[0].profile, *other = opened->one[i].profile;
        if (!prof_may_merge(first, other)) {
            cli_message("merge: %s is of another program than %s, or of another build of it",
                        other->path, first->path);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

/* The places of every profile's sites. */
struct places {
    const struct prof_profile **profile;
    struct prof_symbol **symbol;
    size_t *n;
};

static bool find_places(struct places *places, const struct cli_profiles *opened)
{
    *places = (struct places){
        .profile = calloc(opened->n, sizeof *places->profile),
        .symbol = calloc(opened->n, sizeof *places->symbol),
        .n = calloc(opened->n, sizeof *places->n),
    };
    bool ok = places->profile && places->symbol && places->n;
    for (size_t i = 0; i < opened->n && ok; i++) {
        places->profile[i] = opened->one[i].profile;
        places->symbol[i] = prof_analysis_symbols(opened->analysis[i], &places->n[i]);
        ok = places->symbol[i] != NULL;
    }
    return ok;
}

static void free_places(struct places *places, size_t n)
{
    for (size_t i = 0; places->symbol && i < n; i++)
        free(places->symbol[i]);
    free(places->profile);
    free(places->symbol);
    free(places->n);
}

static int merge(const struct cli_profiles *opened, const char *output)
{
    struct places places;
    char error[4096];
    int status = CLI_OK;
    if (!find_places(&places, opened)) {
        cli_message("out of memory");
        status = CLI_FAILED;
    } else if (prof_merge(output, places.profile, (const struct prof_symbol *const *)places.symbol,
                          places.n, opened->n, error, sizeof error) != 0) {
        cli_message("merge: %s", error);
        status = CLI_FAILED;
    }
    free_places(&places, opened->n);
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
        status = merge(&opened, args.output);
    cli_close_all(&opened);
    return status;
}
