/* cmd_html.c: `tapescope html`: the report as one page for a browser. */
#include "cli_page.h"

struct html_args {
    struct cli_args cli;
    const char *output;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "OUT", "where to write (default report.html); -: standard output",
     offsetof(struct html_args, output), NULL, 0},
};

const struct cli_command cli_html = {
    .name = "html",
    .summary = "the report as one page for a browser",
    .operands = "[PROFILE]...",
    .about = "Writes one file that shows the profile in a browser: a summary, flame graphs, the "
             "source with its costs, the tape over time, what holds it, what computing again would "
             "save. The page needs no network and no server.",
    CLI_OPTIONS(options),
    .shared = CLI_PAGE | CLI_SIZES | CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes = "Several profiles are those of one program at several sizes, as for growth: the page "
             "shows the last one, and how costs grow. The sources in the page are those that lie "
             "on this machine now.\n"
             "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_html,
};

int cmd_html(int argc, char **argv)
{
    struct html_args args = {.output = "report.html"};
    int status = cli_parse(&cli_html, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    struct cli_page page;
    status = cli_page_open(&page, &args.cli, argc, argv);
    if (status != CLI_OK)
        return status;
    status = cli_write_page(args.output, page.analysis, &page.how);
    cli_page_close(&page);
    return status;
}
