/* cmd_view.c: `tapescope view`: the report in a browser, served from here, and the profile in the
 * forms that a browser's tools read.
 *
 * Invariant: what is served is what `html` and `export` write, byte for byte.
 */
#include "cli_browser.h"
#include "cli_export.h"
#include "cli_page.h"
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The one port that Perfetto's page may read from (its content security policy), and its origin. */
enum { PERFETTO_PORT = 9001 };
#define PERFETTO "https://ui.perfetto.dev"

struct view_args {
    struct cli_args cli;
    double timeout;
    size_t port;
    bool once, perfetto, no_browser;
};

#define AT(member) offsetof(struct view_args, member)
static const struct cli_option options[] = {
    {"once", 0, CLI_FLAG, NULL,
     "end when the page was sent once as a whole (with --perfetto: the timeline)", AT(once), NULL,
     0},
    {"timeout", 0, CLI_NUMBER, "SECONDS",
     "end after so long without a visit (default 1800; 0: never)", AT(timeout), NULL, 0},
    {"port", 0, CLI_COUNT, "N", "the port on 127.0.0.1 (default: any that is free)", AT(port), NULL,
     0},
    {"perfetto", 0, CLI_FLAG, NULL,
     "print the link that opens the timeline in Perfetto's page, which may read it then; needs "
     "port 9001",
     AT(perfetto), NULL, 0},
    {"no-browser", 0, CLI_FLAG, NULL, "open no browser", AT(no_browser), NULL, 0},
};
#undef AT

const struct cli_command cli_view = {
    .name = "view",
    .summary = "the report in a browser, served from this machine to itself",
    .operands = "[PROFILE]...",
    .about = "Serves the page that 'tapescope html' writes, and the profile in other forms, to "
             "browsers on this machine alone. Prints the page's address, and opens a browser if "
             "there is a display and standard output is a terminal.",
    CLI_OPTIONS(options),
    .shared = CLI_PAGE | CLI_SIZES | CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes = "The address has a random part, without which nothing is served. Ctrl-C ends it. "
             "A page that was opened stays usable then.\n"
             "PROFILE defaults to " CLI_DEFAULT_PROFILE "; several are as for 'tapescope html'.",
    .run = cmd_view,
};

/* ---- what is served ---- */

enum view_kind { FOLDER, REPORT, PERFETTO_TRACE, CHROME_TRACE, SPEEDSCOPE, PROFILE, KINDS };

static const struct {
    struct serve_document document;
    enum export_kind format; /* of exports */
    bool needs_timeline;
    const char *text; /* for the list in FOLDER */
} kinds[KINDS] = {
    [FOLDER] = {.document = {.name = "",
                             .type = "text/html; charset=utf-8",
                             .policy = "default-src 'none'; style-src 'unsafe-inline'"}},
    [REPORT] = {.document = {.name = "report.html", .type = "text/html; charset=utf-8"},
                .text = "the report"},
    [PERFETTO_TRACE] = {.document = {.name = "trace.perfetto-trace",
                                     .type = "application/octet-stream",
                                     .policy = "default-src 'none'",
                                     .download = true},
                        .format = EXPORT_KIND_perfetto,
                        .needs_timeline = true,
                        .text = "the timeline, for ui.perfetto.dev"},
    [CHROME_TRACE] = {.document = {.name = "trace.json",
                                   .type = "application/json",
                                   .policy = "default-src 'none'",
                                   .download = true},
                      .format = EXPORT_KIND_chrome,
                      .needs_timeline = true,
                      .text = "the timeline, for DevTools and others"},
    [SPEEDSCOPE] = {.document = {.name = "profile.speedscope.json",
                                 .type = "application/json",
                                 .policy = "default-src 'none'",
                                 .download = true},
                    .format = EXPORT_KIND_speedscope,
                    .text = "for speedscope"},
    [PROFILE] = {.document = {.name = "profile.prof",
                              .type = "application/octet-stream",
                              .policy = "default-src 'none'",
                              .download = true},
                 .text = "the profile itself"},
};

struct view {
    const struct view_args *args;
    struct cli_page page;
    enum view_kind kind[KINDS]; /* of each document that there is */
    struct serve_document document[KINDS];
    size_t n;
    int ready[KINDS]; /* descriptors of documents made before anybody came; -1: none */
};

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            putc(*text, out);
        }
}

/* A page of links to the others. */
static void put_list(FILE *out, const struct view *view)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Tapescope</title>\n"
          "<link rel=\"icon\" href=\"data:,\">\n"
          "<style>body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem }</style>\n<h1>",
          out);
    put_escaped(out, view->page.analysis->profile->path);
    fputs("</h1>\n<ul>\n", out);
    for (size_t i = 0; i < view->n; i++)
        if (kinds[view->kind[i]].text)
            fprintf(out, "<li><a href=\"%s\">%s</a>: %s\n", view->document[i].name,
                    view->document[i].name, kinds[view->kind[i]].text);
    fputs("</ul>\n</html>\n", out);
}

/* Returns an exit status. */
static int put_document(FILE *out, const struct view *view, enum view_kind kind)
{
    static const struct cli_export_args defaults = {0};
    if (kind == FOLDER)
        put_list(out, view);
    else if (kind == REPORT)
        html_write(out, view->page.analysis, &view->page.how);
    else
        return cli_export_to(out, view->page.analysis, kinds[kind].format, &view->args->cli,
                             &defaults);
    return CLI_OK;
}

static int view_refuse(const char *what, int error)
{
    cli_message("view: %s: %s", what, strerror(error));
    return CLI_FAILED;
}

/* A file without a name, open twice: a descriptor to read it by, and *out to write it. Returns -1
 * with errno if there is none. */
static int open_nameless(char path[PATH_MAX], FILE **out)
{
    const char *folder = secure_getenv("TMPDIR");
    int fd;
    do { /* a name that was tried is no pattern any more */
        snprintf(path, PATH_MAX, "%s/tapescope-view-XXXXXX", folder && *folder ? folder : "/tmp");
        fd = mkostemp(path, O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -1;
    unlink(path);
    const int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    *out = again >= 0 ? fdopen(again, "w") : NULL;
    if (*out)
        return fd;
    const int error = errno;
    if (again >= 0)
        close(again);
    close(fd);
    errno = error;
    return -1;
}

/* Makes a document. Returns an exit status and, with CLI_OK, its descriptor. */
static int view_make(const struct view *view, enum view_kind kind, int *fd)
{
    char path[PATH_MAX];
    if (kind == PROFILE) {
        *fd = open(read_profile_stored(view->page.analysis->profile), O_RDONLY | O_CLOEXEC);
        return *fd >= 0 ? CLI_OK : view_refuse(view->page.analysis->profile->path, errno);
    }
    FILE *out;
    *fd = open_nameless(path, &out);
    if (*fd < 0)
        return view_refuse(path, errno);
    int status = put_document(out, view, kind);
    errno = 0;
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    if (status == CLI_OK && failed)
        status = view_refuse(path, errno ? errno : EIO);
    if (status != CLI_OK)
        close(*fd);
    return status;
}

static int view_give(void *payload, size_t i)
{
    struct view *view = payload;
    int fd = view->ready[i];
    view->ready[i] = -1;
    return fd >= 0 || view_make(view, view->kind[i], &fd) == CLI_OK ? fd : -1;
}

/* Which documents there are. */
static void view_list(struct view *view)
{
    struct stat status;
    const struct read_profile *profile = view->page.analysis->profile;
    for (enum view_kind kind = 0; kind < KINDS; kind++) {
        if ((kinds[kind].needs_timeline && profile->n_events == 0) ||
            (kind == PROFILE &&
             !(stat(read_profile_stored(profile), &status) == 0 && S_ISREG(status.st_mode))))
            continue;
        view->kind[view->n] = kind;
        view->document[view->n] = kinds[kind].document;
        if (kind == PERFETTO_TRACE && view->args->perfetto)
            view->document[view->n].origin = PERFETTO;
        view->ready[view->n++] = -1;
    }
}

static size_t view_place(const struct view *view, enum view_kind kind)
{
    size_t i = 0;
    while (i < view->n && view->kind[i] != kind)
        i++;
    return i;
}

/* ---- serving ---- */

static struct serve *open_server(struct view *view, size_t shown)
{
    const struct view_args *args = view->args;
    const struct serve_options how = {
        .document = view->document,
        .n = view->n,
        .make = view_give,
        .payload = view,
        .port = args->perfetto ? PERFETTO_PORT : (uint16_t)args->port,
        .timeout = args->timeout,
        .once = args->once ? shown : view->n,
    };
    struct serve *serve = serve_open(&how);
    if (!serve && errno == EADDRINUSE)
        cli_message("view: port %u of 127.0.0.1 is taken%s", (unsigned)how.port,
                    args->perfetto ? ", and Perfetto's page reads from no other" : "");
    else if (!serve)
        view_refuse("cannot serve", errno);
    return serve;
}

static int view_run(struct view *view, size_t shown)
{
    char link[256];
    struct serve *serve = open_server(view, shown);
    if (!serve)
        return CLI_FAILED;
    const char *address = serve_address(serve);
    snprintf(link, sizeof link, "%s%s%s", view->args->perfetto ? PERFETTO "/#!/?url=" : "", address,
             view->document[shown].name);
    printf("%s\n", link);
    fflush(stdout);
    int status = cli_finish();
    if (status == CLI_OK) {
        cli_message("view: %s has all that is served; Ctrl-C ends it", address);
        if (!view->args->no_browser)
            cli_open_browser(link);
        if (!serve_run(serve))
            cli_message("view: no visit for %g s", view->args->timeout);
    }
    serve_close(serve);
    return status;
}

static int view_all(struct view *view)
{
    view_list(view);
    const size_t shown = view_place(view, view->args->perfetto ? PERFETTO_TRACE : REPORT);
    int status = CLI_OK;
    if (shown < view->n)
        status = view_make(view, view->kind[shown], &view->ready[shown]);
    else /* says why there is none */
        status = put_document(stdout, view, PERFETTO_TRACE);
    if (status == CLI_OK)
        status = view_run(view, shown);
    for (size_t i = 0; i < view->n; i++)
        if (view->ready[i] >= 0)
            close(view->ready[i]);
    return status;
}

int cmd_view(int argc, char **argv)
{
    struct view_args args = {.timeout = 1800};
    int status = cli_parse(&cli_view, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (args.port > UINT16_MAX || (args.perfetto && args.port != 0 && args.port != PERFETTO_PORT)) {
        cli_message(args.perfetto ? "view: --perfetto needs port %d"
                                  : "view: a port is a number up to 65535",
                    PERFETTO_PORT);
        return CLI_USAGE;
    }
    struct view view = {.args = &args};
    status = cli_page_open(&view.page, &args.cli, argc, argv);
    if (status != CLI_OK)
        return status;
    status = view_all(&view);
    cli_page_close(&view.page);
    return status;
}
