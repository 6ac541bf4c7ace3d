/* cli_filter.c: see cli_filter.h. */
#include "cli_filter.h"

#include "base_memory.h"

static bool filter_matches(const regex_t *expression, const struct analyze_line *line)
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

bool cli_filter_focus(void *payload, const struct analyze_line *line)
{
    const struct cli_filter *filter = payload;
    return filter_matches(&filter->focus, line);
}

bool cli_filter_ignore(void *payload, const struct analyze_line *line)
{
    const struct cli_filter *filter = payload;
    return filter_matches(&filter->ignore, line);
}

/* Compiles an extended regular expression; CLI_OK, or says what is wrong with it. */
static int filter_compile(regex_t *expression, const char *name, const char *text)
{
    char why[256];
    int error = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
    if (error == 0)
        return CLI_OK;
    regerror(error, expression, why, sizeof why);
    if (error == REG_ESPACE)
        base_no_memory();
    cli_message("--%s: '%s' is no regular expression: %s", name, text, why);
    return CLI_USAGE;
}

int cli_filter_open(struct cli_filter *filter, const struct cli_args *args)
{
    int status = CLI_OK;
    *filter = (struct cli_filter){.has_focus = false};
    if (args->focus) {
        status = filter_compile(&filter->focus, "focus", args->focus);
        filter->has_focus = status == CLI_OK;
    }
    if (status == CLI_OK && args->ignore) {
        status = filter_compile(&filter->ignore, "ignore", args->ignore);
        filter->has_ignore = status == CLI_OK;
    }
    if (status != CLI_OK)
        cli_filter_close(filter);
    return status;
}

void cli_filter_close(struct cli_filter *filter)
{
    if (filter->has_focus)
        regfree(&filter->focus);
    if (filter->has_ignore)
        regfree(&filter->ignore);
    filter->has_focus = filter->has_ignore = false;
}
