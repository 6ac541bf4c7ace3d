/* cli_filter.h: what --focus and --ignore ask for. */
#ifndef PROFILER_CLI_CLI_FILTER_H
#define PROFILER_CLI_CLI_FILTER_H

#include "cli_args.h"

#include <regex.h>

struct cli_filter {
    regex_t focus, ignore;
    bool has_focus, has_ignore;
    char *unmatched; /* what to say of an expression that matches nothing; NULL: each does */
};

/* Compiles the expressions; CLI_OK, or says what is wrong with one: nothing is open then. */
int cli_filter_open(struct cli_filter *filter, const struct cli_args *args);
void cli_filter_close(struct cli_filter *filter);

/* Sets `unmatched`: of the lines, and where the report shows callers also of those (args->callers).
 */
void cli_filter_check(struct cli_filter *filter, const struct cli_args *args,
                      const struct analyze_result *analysis);

/* Whether a line's file:line, function or an op of its matches; payload: the filter, whose
 * expression must be there. */
bool cli_filter_focus(void *payload, const struct analyze_line *line);
bool cli_filter_ignore(void *payload, const struct analyze_line *line);

#endif
