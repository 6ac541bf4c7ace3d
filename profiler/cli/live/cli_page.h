/* cli_page.h: the page of `tapescope html`, for the commands that make one. */
#ifndef PROFILER_CLI_CLI_PAGE_H
#define PROFILER_CLI_CLI_PAGE_H

#include "cli_args.h"
#include "cli_sizes.h"
#include "html.h"

/* The profiles that a page is about, and how it shows them. */
struct cli_page {
    struct cli_profiles opened;
    struct cli_profiles base;
    struct analyze_runs base_runs, runs; /* runs: of one size, where there are several */
    const struct analyze_result
        *analysis; /* the one that the page is about: the last, or the middle run */
    struct html_options how;
    double size[ANALYZE_JOIN_MOST];
    char name[128];
    struct report_sizes sizes;
};

/* Opens the operands of a command, or the default profile, and what its options name. Returns
 * CLI_OK, or says why not: then there is nothing to close. The page stays where it is. */
int cli_page_open(struct cli_page *page, const struct cli_args *args, int argc, char **argv);
void cli_page_close(struct cli_page *page);

/* Writes the page about an analysis to `path` ("-": standard output), by way of a new file. Says
 * where it is, which sources could not be read, or why there is none. Returns an exit status. */
int cli_write_page(const char *path, const struct analyze_result *analysis,
                   const struct html_options *options);

#endif
