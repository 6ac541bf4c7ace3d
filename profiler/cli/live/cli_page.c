/* cli_page.c: the profiles that a page is about, and the page as a file. See cli_page.h.
 *
 * Invariant: the file is the whole page or what it was before.
 */
#include "cli_page.h"

#include "cli_progress.h"
#include "read_aside.h"

#include <errno.h>
#include <string.h>

static void page_warn(void *payload, const char *message)
{
    (void)payload;
    cli_message("html: %s", message);
}

int cli_page_open(struct cli_page *page, const struct cli_args *args, int argc, char **argv)
{
    const int n = argc - optind;
    char *const none[] = {NULL};
    *page = (struct cli_page){.base.profile = NULL};
    if (n > ANALYZE_JOIN_MOST) {
        cli_message("%s: name up to %d profiles", argv[0], ANALYZE_JOIN_MOST);
        return CLI_USAGE;
    }
    int status =
        cli_open_all(&page->opened, args, n > 0 ? argv + optind : none, n > 0 ? (size_t)n : 1);
    if (status != CLI_OK)
        return status;
    if (args->page.base)
        status = cli_open(&page->base, args, args->page.base);
    const struct read_profile *last = page->opened.one[page->opened.n - 1].profile;
    if (status == CLI_OK && args->page.base &&
        !cli_times_alike(argv[0], page->base.profile, last, ""))
        status = CLI_USAGE;
    for (size_t i = 0; i < page->opened.n && status == CLI_OK; i++)
        if (!cli_times_alike(argv[0], page->opened.one[i].profile, last, ""))
            status = CLI_USAGE;
    if (status == CLI_OK && n > 1)
        status = cli_find_sizes(&args->sizes, argv[0], &page->opened, page->size, page->name,
                                sizeof page->name);
    if (status == CLI_OK && n <= 1)
        status = cli_open_apart(&page->opened.one[0], args);
    if (status != CLI_OK) {
        cli_page_close(page);
        return status;
    }
    page->analysis = page->opened.analysis[page->opened.n - 1];
    page->sizes =
        (struct report_sizes){page->opened.analysis, page->size, page->opened.n, page->name};
    page->how = (struct html_options){
        .sources = (enum html_sources)args->page.sources,
        .theme = (enum html_theme)args->page.theme,
        .base = page->base.analysis,
        .growth = n > 1 ? &page->sizes : NULL,
        .warn = page_warn,
    };
    return CLI_OK;
}

void cli_page_close(struct cli_page *page)
{
    if (page->base.profile)
        cli_close(&page->base);
    cli_close_all(&page->opened);
}

static int say_unwritten(const char *path, int error)
{
    cli_message("cannot write %s: %s", path, strerror(error));
    return CLI_FAILED;
}

/* The file at `path`, by way of a new one. Returns 0 or an error number. */
static int page_replace(const char *path, const struct analyze_result *analysis,
                        const struct html_options *how)
{
    char *aside;
    FILE *out = read_aside_open(path, &aside);
    if (!out)
        return errno;
    html_write(out, analysis, how);
    return read_aside_close(out, aside, path, 0);
}

int cli_write_page(const char *path, const struct analyze_result *analysis,
                   const struct html_options *options)
{
    struct html_options how = *options;
    how.warn = page_warn;
    if (strcmp(path, "-") == 0) {
        html_write(stdout, analysis, &how);
        return cli_finish();
    }
    cli_progress("writing %s", path);
    const int error = page_replace(path, analysis, &how);
    if (error != 0)
        return say_unwritten(path, error);
    cli_message("wrote %s", path);
    return CLI_OK;
}
