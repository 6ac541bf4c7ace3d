/* cli_page.c: the profiles that a page is about, and the page as a file. See cli_page.h.
 *
 * Invariant: the file is the whole page or what it was before.
 */
#include "cli_page.h"

#include "base_memory.h"
#include "cli_paths.h"
#include "cli_progress.h"
#include "cli_ranks.h"
#include "read_aside.h"

#include <errno.h>
#include <string.h>

static void page_warn(void *payload, const char *message)
{
    (void)payload;
    cli_message("html: %s", message);
}

/* Opens operands, each of which may be a folder of runs. */
static int page_open_paths(struct cli_profiles *opened, const struct cli_args *args,
                           const char *command, const char *const *operand, size_t n)
{
    struct cli_paths paths = {.n = 0};
    int status = CLI_OK;
    for (size_t i = 0; i < n && status == CLI_OK; i++)
        status = cli_paths_add(&paths, command, operand[i]);
    if (status == CLI_OK && paths.n > ANALYZE_JOIN_MOST) {
        cli_message("%s: name up to %d profiles", command, ANALYZE_JOIN_MOST);
        status = CLI_USAGE;
    }
    if (status == CLI_OK)
        status = cli_open_all(opened, args, paths.path, paths.n);
    cli_paths_free(&paths);
    return status;
}

static bool page_alike(const char *command, const struct cli_profiles *opened,
                       const struct read_profile *with)
{
    for (size_t i = 0; i < opened->n; i++)
        if (!cli_times_alike(command, opened->one[i].profile, with, ""))
            return false;
    return true;
}

/* Files of different ranks are one run, not one program at several sizes. */
static int page_open_set(struct cli_page *page, const struct cli_args *args, int argc, char **argv)
{
    page->opened = (struct cli_profiles){
        .one = base_calloc(1, sizeof *page->opened.one),
        .analysis = base_calloc(1, sizeof *page->opened.analysis),
    };
    const int status = cli_open_only(&page->opened.one[0], args, argc, argv);
    page->opened.analysis[0] = page->opened.one[0].analysis;
    page->opened.n = status == CLI_OK;
    if (status != CLI_OK)
        cli_close_all(&page->opened);
    return status;
}

int cli_page_open(struct cli_page *page, const struct cli_args *args, int argc, char **argv)
{
    const int n = argc - optind;
    char *const none[] = {NULL};
    const struct cli_list *base = &args->page.base;
    *page = (struct cli_page){.base.n = 0};
    const bool set = n > 1 && cli_ranks_differ(argv + optind, (size_t)n);
    int status = set     ? page_open_set(page, args, argc, argv)
                 : n > 0 ? page_open_paths(&page->opened, args, argv[0],
                                           (const char *const *)argv + optind, (size_t)n)
                         : cli_open_all(&page->opened, args, none, 1);
    if (status != CLI_OK)
        return status;
    if (base->n > 0)
        status = page_open_paths(&page->base, args, argv[0], base->item, base->n);
    const struct read_profile *last = page->opened.one[page->opened.n - 1].profile;
    if (status == CLI_OK &&
        (!page_alike(argv[0], &page->base, last) || !page_alike(argv[0], &page->opened, last)))
        status = CLI_USAGE;
    const bool has_sizes = n > 1 && !set;
    if (status == CLI_OK && has_sizes)
        status = cli_find_sizes(&args->sizes, argv[0], &page->opened, page->size, page->name,
                                sizeof page->name);
    if (status == CLI_OK && page->opened.n == 1)
        status = cli_open_apart(&page->opened.one[0], args);
    if (status != CLI_OK) {
        cli_page_close(page);
        return status;
    }
    const size_t runs = has_sizes ? 1 : page->opened.n;
    analyze_runs_make(&page->runs, page->opened.analysis + page->opened.n - runs, runs);
    if (base->n > 0)
        analyze_runs_make(&page->base_runs, page->base.analysis, page->base.n);
    page->analysis = page->runs.run[page->runs.middle];
    page->sizes =
        (struct report_sizes){page->opened.analysis, page->size, page->opened.n, page->name};
    page->how = (struct html_options){
        .sources = (enum html_sources)args->page.sources,
        .theme = (enum html_theme)args->page.theme,
        .base = base->n > 0 ? &page->base_runs : NULL,
        .now = &page->runs,
        .growth = has_sizes ? &page->sizes : NULL,
        .warn = page_warn,
    };
    return CLI_OK;
}

void cli_page_close(struct cli_page *page)
{
    analyze_runs_free(&page->runs);
    analyze_runs_free(&page->base_runs);
    cli_close_all(&page->base);
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
