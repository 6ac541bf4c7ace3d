/* cli_page.h: the page of `tapescope html`, for the commands that make one. */
#ifndef PROFILER_CLI_CLI_PAGE_H
#define PROFILER_CLI_CLI_PAGE_H

#include "cli_args.h"
#include "cli_sizes.h"
#include "html.h"

/* What the user says of a page. */
struct cli_page_args {
    struct cli_size_args sizes;
    const char *base;
    int sources, theme;
};

extern const char *const cli_page_sources[], *const cli_page_themes[];

#define CLI_PAGE_OPTIONS(type, member)                                                             \
    {"source",                                                                                     \
     0,                                                                                            \
     CLI_CHOICE,                                                                                   \
     "WHOSE",                                                                                      \
     "put these sources into the page: those that are not below /usr, all, or none",               \
     offsetof(type, member.sources),                                                               \
     cli_page_sources,                                                                             \
     0},                                                                                           \
        {"theme",                                                                                  \
         0,                                                                                        \
         CLI_CHOICE,                                                                               \
         "THEME",                                                                                  \
         "the colours that the page begins with",                                                  \
         offsetof(type, member.theme),                                                             \
         cli_page_themes,                                                                          \
         0},                                                                                       \
        {"base",                                                                                   \
         0,                                                                                        \
         CLI_TEXT,                                                                                 \
         "PROFILE",                                                                                \
         "also show what is different from this profile",                                          \
         offsetof(type, member.base),                                                              \
         NULL,                                                                                     \
         0},                                                                                       \
        CLI_SIZE_OPTIONS(type, member.sizes)

/* The profiles that a page is about, and how it shows them. */
struct cli_page {
    struct cli_profiles opened;
    struct cli_profile base;
    const struct analyze_result *analysis; /* the one that the page is about: the last */
    struct html_options how;
    double size[ANALYZE_JOIN_MOST];
    char name[128];
    struct report_sizes sizes;
};

/* Opens the operands of a command, or the default profile, and what its options name. Returns
 * CLI_OK, or says why not: then there is nothing to close. The page stays where it is. */
int cli_page_open(struct cli_page *page, const struct cli_args *args,
                  const struct cli_page_args *page_args, int argc, char **argv);
void cli_page_close(struct cli_page *page);

/* Writes the page about an analysis to `path` ("-": standard output), by way of a new file. Says
 * where it is, which sources could not be read, or why there is none. Returns an exit status. */
int cli_write_page(const char *path, const struct analyze_result *analysis,
                   const struct html_options *options);

#endif
