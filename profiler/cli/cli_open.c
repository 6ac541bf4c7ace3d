/* cli_open.c: a profile, opened and analysed as the shared options say.
 *
 * May include: cli.h and what it stands on.
 */
#include "cli_args.h"
#include "cli_filter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool keep(void *payload, const struct prof_line *line)
{
    const struct cli_filter *filter = payload;
    return (!filter->has_focus || cli_filter_focus(payload, line)) &&
           !(filter->has_ignore && cli_filter_ignore(payload, line));
}

static int apply_filter(struct prof_analysis *analysis, const struct cli_args *args)
{
    struct cli_filter filter;
    int status = cli_filter_open(&filter, args);
    if (status != CLI_OK)
        return status;
    if (filter.has_focus || filter.has_ignore)
        prof_analysis_select(analysis, keep, &filter);
    cli_filter_close(&filter);
    return CLI_OK;
}

static int apply_maps(struct prof_analysis *analysis, const struct cli_args *args)
{
    for (size_t i = 0; i < args->map.n; i++) {
        const char *equals = strchr(args->map.item[i], '=');
        if (!equals || equals == args->map.item[i]) {
            cli_message("--map: '%s' is not OLD=NEW", args->map.item[i]);
            return CLI_USAGE;
        }
        char *from = strndup(args->map.item[i], (size_t)(equals - args->map.item[i]));
        int failed = from ? prof_analysis_map(analysis, from, equals + 1) : -1;
        free(from);
        if (failed) {
            cli_message("out of memory");
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static int apply(struct prof_analysis *analysis, const struct cli_args *args)
{
    int status = apply_maps(analysis, args);
    return status == CLI_OK ? apply_filter(analysis, args) : status;
}

static void warn(void *payload, const char *message)
{
    (void)payload;
    cli_message("%s", message);
}

int cli_open(struct cli_profile *opened, const struct cli_args *args, const char *path)
{
    char error[4096];
    *opened = (struct cli_profile){0};
    bool by_default = !path;
    if (by_default)
        path = CLI_DEFAULT_PROFILE;
    opened->profile = prof_profile_read(path, error, sizeof error);
    if (!opened->profile) {
        cli_message("%s%s", error,
                    by_default && access(path, F_OK) != 0
                        ? " (make one by: tapescope record -- ./program)"
                        : "");
        return CLI_BAD_PROFILE;
    }
    if (opened->profile->warning)
        cli_message("%s", opened->profile->warning);
    opened->analysis = prof_analyze(opened->profile, warn, NULL);
    if (!opened->analysis) {
        cli_message("%s: out of memory", path);
        cli_close(opened);
        return CLI_FAILED;
    }
    int status = apply(opened->analysis, args);
    if (status != CLI_OK) {
        cli_close(opened);
        return status;
    }
    const struct prof_totals *total = &opened->analysis->total;
    if (opened->profile->clock_is_uncalibrated && (total->forward_ticks || total->backward_ticks))
        cli_message("%s: the clock was not calibrated: times are in ticks, not in ns", path);
    return CLI_OK;
}

void cli_close(struct cli_profile *opened)
{
    prof_analysis_free(opened->analysis);
    prof_profile_free(opened->profile);
    *opened = (struct cli_profile){0};
}

int cli_open_only(struct cli_profile *opened, const struct cli_args *args, int argc, char **argv)
{
    *opened = (struct cli_profile){0};
    if (argc - optind > 1) {
        cli_message("%s: one profile at a time, not also '%s'", argv[0], argv[optind + 1]);
        return CLI_USAGE;
    }
    return cli_open(opened, args, argv[optind]);
}
