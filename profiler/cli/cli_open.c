/* cli_open.c: a profile, opened and analysed as the shared options say. */
#include "cli_args.h"

#include "analyze_ranks.h"
#include "base_memory.h"
#include "cli_filter.h"
#include "cli_pager.h"
#include "cli_progress.h"
#include "cli_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_keep(void *payload, const struct analyze_line *line)
{
    const struct cli_filter *filter = payload;
    return (!filter->has_focus || cli_filter_focus(payload, line)) &&
           !(filter->has_ignore && cli_filter_ignore(payload, line));
}

/* The filter stays: what is joined with the analysis later asks it as well. */
static int apply_filter(struct cli_profile *opened, const struct cli_args *args)
{
    if (!args->focus && !args->ignore)
        return CLI_OK;
    struct cli_filter *filter = base_calloc(1, sizeof *filter);
    const int status = cli_filter_open(filter, args);
    if (status != CLI_OK) {
        free(filter);
        return status;
    }
    opened->filter = filter;
    cli_filter_check(filter, args, opened->analysis);
    analyze_select(opened->analysis, open_keep, filter);
    return CLI_OK;
}

static int apply_maps(struct analyze_result *analysis, const struct cli_args *args)
{
    for (size_t i = 0; i < args->map.n; i++) {
        const char *equals = strchr(args->map.item[i], '=');
        if (!equals || equals == args->map.item[i]) {
            cli_message("--map: '%s' is not OLD=NEW", args->map.item[i]);
            return CLI_USAGE;
        }
        char *from = base_strndup(args->map.item[i], (size_t)(equals - args->map.item[i]));
        analyze_map(analysis, from, equals + 1);
        free(from);
    }
    return CLI_OK;
}

static int open_apply(struct cli_profile *opened, const struct cli_args *args)
{
    opened->analysis->threads = args->threads;
    if (args->libraries)
        analyze_show_libraries(opened->analysis);
    int status = apply_maps(opened->analysis, args);
    return status == CLI_OK ? apply_filter(opened, args) : status;
}

static void open_warn(void *payload, const char *message)
{
    (void)payload;
    cli_message("%s", message);
}

/* Analyses a profile that has been read. */
static int open_read(struct cli_profile *opened, const struct cli_args *args,
                     const struct analyze_result *beside)
{
    const struct read_profile *profile = opened->profile;
    if (profile->warning)
        cli_message("%s", profile->warning);
    cli_progress("looking up the lines of %s", profile->path);
    opened->analysis = analyze_profile_beside(profile, open_warn, NULL, beside);
    int status = open_apply(opened, args);
    if (status != CLI_OK) {
        cli_close(opened);
        return status;
    }
    char *left_out = report_left_out(profile);
    if (left_out)
        cli_message("%s: %s", profile->path, left_out);
    free(left_out);
    const struct analyze_totals *total = &opened->analysis->total;
    if (profile->clock_is_uncalibrated && (total->forward_ticks || total->backward_ticks))
        cli_message("%s: the clock was not calibrated: times are in ticks, not in ns",
                    profile->path);
    return CLI_OK;
}

static bool open_is_program(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

static int open_beside(struct cli_profile *opened, const struct cli_args *args, const char *path,
                       const struct analyze_result *beside)
{
    char error[4096];
    *opened = (struct cli_profile){0};
    bool by_default = !path;
    if (by_default)
        path = CLI_DEFAULT_PROFILE;
    size_t n;
    const bool missing = access(path, F_OK) != 0 && errno == ENOENT;
    /* A sum of the ranks that is beside their own profiles does not have them apart. */
    char **of_rank = missing || args->rank ? cli_ranks_find(path, &n) : NULL;
    if (of_rank) {
        const bool read = cli_ranks_read(opened, args, path, of_rank, n);
        cli_ranks_free(of_rank, n);
        return read ? open_read(opened, args, beside) : CLI_BAD_PROFILE;
    }
    cli_progress("reading %s", path);
    opened->profile = read_profile(path, error, sizeof error);
    if (!opened->profile) {
        if (by_default && access(path, F_OK) != 0)
            cli_message("%s (make one by: tapescope record -- ./program)", error);
        else if (open_is_program(path))
            cli_message("%s, but a program (make one by: tapescope record -- %s%s)", error,
                        strchr(path, '/') ? "" : "./", path);
        else
            cli_message("%s", error);
        return CLI_BAD_PROFILE;
    }
    if (args->rank && opened->profile->n_parts > 0)
        return cli_ranks_kept(opened, args) ? open_read(opened, args, beside) : CLI_BAD_PROFILE;
    if (!cli_ranks_chosen(args, opened->profile)) {
        cli_close(opened);
        return CLI_BAD_PROFILE;
    }
    cli_ranks_tell(opened->profile);
    return open_read(opened, args, beside);
}

/* Says so of a filter that matches nothing in any of the profiles. */
static void open_tell_unmatched(const struct cli_profile *opened, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!opened[i].filter || !opened[i].filter->unmatched)
            return;
    if (n > 0)
        cli_message("%s", opened[0].filter->unmatched);
}

int cli_open(struct cli_profile *opened, const struct cli_args *args, const char *path)
{
    const int status = open_beside(opened, args, path, NULL);
    if (status == CLI_OK)
        open_tell_unmatched(opened, 1);
    return status;
}

int cli_open_apart(struct cli_profile *opened, const struct cli_args *args)
{
    int status = CLI_OK;
    if (opened->ranks)
        return status;
    if (!cli_ranks_unpack(opened))
        return CLI_BAD_PROFILE;
    if (opened->n_parts == 0)
        return status;
    opened->part_analysis = base_calloc(opened->n_parts + 1, sizeof *opened->part_analysis);
    for (size_t i = 0; i < opened->n_parts && status == CLI_OK; i++) {
        struct cli_profile *part = &opened->part[i];
        /* The sum has symbols of its own, if it has any: the parts share theirs. */
        part->analysis = analyze_profile_beside(part->profile, NULL, NULL,
                                                i > 0 ? opened->part_analysis[0] : NULL);
        opened->part_analysis[i] = part->analysis;
        status = open_apply(part, args);
    }
    if (status == CLI_OK)
        opened->ranks = analyze_ranks(opened->part_analysis, opened->n_parts);
    opened->analysis->ranks = opened->ranks;
    return status;
}

void cli_close(struct cli_profile *opened)
{
    cli_progress_end();
    analyze_free(opened->analysis);
    read_profile_free(opened->profile);
    for (size_t i = 0; i < opened->n_parts; i++)
        cli_close(&opened->part[i]);
    free(opened->part);
    free(opened->part_analysis);
    analyze_ranks_free(opened->ranks);
    if (opened->filter)
        cli_filter_close(opened->filter);
    free(opened->filter);
    if (opened->stored > 0)
        close(opened->stored);
    if (opened->kept > 0)
        close(opened->kept);
    *opened = (struct cli_profile){0};
}

void cli_close_all(struct cli_profiles *opened)
{
    for (size_t i = 0; i < opened->n; i++)
        cli_close(&opened->one[i]);
    free(opened->one);
    free(opened->analysis);
    *opened = (struct cli_profiles){0};
}

int cli_open_all(struct cli_profiles *opened, const struct cli_args *args, char *const *path,
                 size_t n)
{
    *opened = (struct cli_profiles){
        .one = base_calloc(n + 1, sizeof *opened->one),
        .analysis = base_calloc(n + 1, sizeof *opened->analysis),
    };
    int status = CLI_OK;
    for (size_t i = 0; i < n && status == CLI_OK; i++) {
        status = open_beside(&opened->one[i], args, path[i], i > 0 ? opened->analysis[0] : NULL);
        opened->analysis[i] = opened->one[i].analysis;
        opened->n += status == CLI_OK;
    }
    if (status == CLI_OK)
        open_tell_unmatched(opened->one, opened->n);
    else
        cli_close_all(opened);
    return status;
}

static const char *kind_of_times(const struct read_profile *profile)
{
    return profile->is_sampled ? "sampled" : profile->without_times ? "no" : "exact";
}

bool cli_times_alike(const char *command, const struct read_profile *a,
                     const struct read_profile *b, const char *what_can)
{
    const char *of_a = kind_of_times(a), *of_b = kind_of_times(b);
    if (strcmp(of_a, of_b) == 0)
        return true;
    cli_message("%s: %s has %s times, %s has %s times: these cannot be compared%s", command,
                a->path, of_a, b->path, of_b, what_can);
    return false;
}

bool cli_has_bytes(const char *command, const struct read_profile *profile)
{
    if (read_profile_has_bytes(profile))
        return true;
    cli_message("%s: %s has no bytes: it was sampled without --tape=on", command, profile->path);
    return false;
}

int cli_open_only(struct cli_profile *opened, const struct cli_args *args, int argc, char **argv)
{
    *opened = (struct cli_profile){0};
    const size_t n = argc > optind ? (size_t)(argc - optind) : 0;
    if (n > 1 && cli_ranks_are(argv + optind, n)) {
        const int status = cli_ranks_read(opened, args, argv[optind], argv + optind, n)
                               ? open_read(opened, args, NULL)
                               : CLI_BAD_PROFILE;
        if (status == CLI_OK)
            open_tell_unmatched(opened, 1);
        return status;
    }
    if (n > 1) {
        cli_message("%s: one profile at a time, not also '%s'", argv[0], argv[optind + 1]);
        return CLI_USAGE;
    }
    return cli_open(opened, args, argv[optind]);
}

int cli_run_only(const struct cli_command *command, struct cli_args *args, int argc, char **argv,
                 int (*check)(struct cli_args *args),
                 int (*report)(struct cli_args *args, struct cli_profile *opened))
{
    struct cli_profile opened;
    int status = cli_parse(command, args, argc, argv);
    if (status >= 0)
        return status;
    status = check ? check(args) : CLI_OK;
    if (status == CLI_OK)
        status = cli_open_only(&opened, args, argc, argv);
    if (status != CLI_OK)
        return status;
    if (command->shared & CLI_COLOR)
        cli_pager_begin();
    status = report(args, &opened);
    cli_close(&opened);
    return status;
}
