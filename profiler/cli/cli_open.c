/* cli_open.c: a profile, opened and analysed as the shared options say.
 *
 * May include: cli.h and what it stands on.
 */
#include "cli_args.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What --focus and --ignore ask for. */
struct filter {
    regex_t focus, ignore;
    bool has_focus, has_ignore;
};

static bool matches(const regex_t *expression, const struct prof_line *line)
{
    char place[4096];
    snprintf(place, sizeof place, "%s:%u", line->file ? line->file : "", (unsigned)line->line);
    if (line->file && regexec(expression, place, 0, NULL, 0) == 0)
        return true;
    if (line->function && regexec(expression, line->function, 0, NULL, 0) == 0)
        return true;
    for (unsigned i = 0; i < line->ops.n; i++)
        if (regexec(expression, line->ops.name[i], 0, NULL, 0) == 0)
            return true;
    return false;
}

static bool keep(void *payload, const struct prof_line *line)
{
    const struct filter *filter = payload;
    return (!filter->has_focus || matches(&filter->focus, line)) &&
           !(filter->has_ignore && matches(&filter->ignore, line));
}

/* Compiles an extended regular expression; CLI_OK, or says what is wrong with it. */
static int compile(regex_t *expression, const char *name, const char *text)
{
    char why[256];
    int error = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
    if (error == 0)
        return CLI_OK;
    regerror(error, expression, why, sizeof why);
    if (error == REG_ESPACE)
        cli_message("out of memory");
    else
        cli_message("--%s: '%s' is no regular expression: %s", name, text, why);
    return error == REG_ESPACE ? CLI_FAILED : CLI_USAGE;
}

static int apply_filter(struct prof_analysis *analysis, const struct cli_args *args)
{
    struct filter filter = {.has_focus = false};
    int status = CLI_OK;
    if (args->focus) {
        status = compile(&filter.focus, "focus", args->focus);
        filter.has_focus = status == CLI_OK;
    }
    if (status == CLI_OK && args->ignore) {
        status = compile(&filter.ignore, "ignore", args->ignore);
        filter.has_ignore = status == CLI_OK;
    }
    if (status == CLI_OK && (filter.has_focus || filter.has_ignore))
        prof_analysis_select(analysis, keep, &filter);
    if (filter.has_focus)
        regfree(&filter.focus);
    if (filter.has_ignore)
        regfree(&filter.ignore);
    return status;
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
