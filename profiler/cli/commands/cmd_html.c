/* cmd_html.c: `tapescope html`: the report as one page for a browser. */
#include "cli_browser.h"
#include "cli_page.h"

#include "base_memory.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct html_args {
    struct cli_args cli;
    const char *output; /* NULL: not given */
    bool open;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "OUT", "where to write (default report.html); -: standard output",
     offsetof(struct html_args, output), NULL, 0},
    {"open", 0, CLI_FLAG, NULL,
     "open it in a browser: $BROWSER or xdg-open; without --output it is in a temporary folder",
     offsetof(struct html_args, open), NULL, 0},
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
             "shows the last one, and how costs grow. Those of different ranks of MPI are one run. "
             "The sources in the page are those that lie "
             "on this machine now.\n"
             "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_html,
};

/* A name in a new folder, which nobody else can read: the page has sources. NULL, after saying so:
 * there is none. */
static char *html_temporary(void)
{
    const char *folder = secure_getenv("TMPDIR");
    char *path = base_asprintf("%s/tapescope-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(path)) {
        cli_message("html: cannot make %s: %s", path, strerror(errno));
        free(path);
        return NULL;
    }
    char *page = base_asprintf("%s/report.html", path);
    free(path);
    return page;
}

static int html_show(const char *path)
{
    char absolute[PATH_MAX];
    if (!realpath(path, absolute)) {
        cli_message("html: %s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    if (cli_open_browser(absolute))
        return CLI_OK;
    cli_message("html: no display to open a browser on, or neither $BROWSER nor xdg-open");
    return CLI_FAILED;
}

static int html_write_page(const struct html_args *args, const struct cli_page *page)
{
    char *temporary = args->open && !args->output ? html_temporary() : NULL;
    if (args->open && !args->output && !temporary)
        return CLI_FAILED;
    const char *path = temporary ? temporary : args->output ? args->output : "report.html";
    int status = cli_write_page(path, page->analysis, &page->how);
    if (status == CLI_OK && args->open)
        status = html_show(path);
    free(temporary);
    return status;
}

int cmd_html(int argc, char **argv)
{
    struct html_args args = {.output = NULL};
    int status = cli_parse(&cli_html, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (args.open && args.output && strcmp(args.output, "-") == 0) {
        cli_message("html: --open needs a file: --output - has none");
        return CLI_USAGE;
    }
    struct cli_page page;
    status = cli_page_open(&page, &args.cli, argc, argv);
    if (status != CLI_OK)
        return status;
    status = html_write_page(&args, &page);
    cli_page_close(&page);
    return status;
}
