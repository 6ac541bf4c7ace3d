/* cli_args.c: see cli_args.h. */
#include "cli_args.h"

#include <errno.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 80, LEAST_WIDTH = 40, MOST_WIDTH = 1000, DEFAULT_LIMIT = 20 };

/* Control characters of paths and names never reach the terminal. */
static void put_line(const char *text)
{
    for (; *text; text++)
        putc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
    putc('\n', stderr);
}

void cli_message(const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fputs("tapescope: ", stderr);
    put_line(line);
}

/* COLUMNS if it is a number, else the terminal's width, else 80. */
static unsigned output_width(void)
{
    const char *columns = getenv("COLUMNS");
    char *end;
    unsigned long n = columns && *columns ? strtoul(columns, &end, 10) : 0;
    if (n > 0 && *end == '\0')
        return n < LEAST_WIDTH ? LEAST_WIDTH : n > MOST_WIDTH ? MOST_WIDTH : (unsigned)n;
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col < LEAST_WIDTH ? LEAST_WIDTH : size.ws_col;
    return DEFAULT_WIDTH;
}

static void set_defaults(struct cli_args *args)
{
    *args = (struct cli_args){.limit = DEFAULT_LIMIT, .around = SIZE_MAX, .color = -1};
    args->style.out = stdout;
    args->style.width = output_width();
    args->style.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static bool parse_limit(size_t *limit, const char *text)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        return false;
    *limit = n;
    return true;
}

int cli_parse(struct cli_args *args, int argc, char **argv, const char *accepted, const char *help)
{
    static const struct option all[] = {
        {"output", required_argument, NULL, 'o'},  {"sort", required_argument, NULL, 's'},
        {"by", required_argument, NULL, 'b'},      {"limit", required_argument, NULL, 'n'},
        {"context", required_argument, NULL, 'a'}, {"exact", no_argument, NULL, 'e'},
        {"color", no_argument, NULL, 'c'},         {"no-color", no_argument, NULL, 'C'},
        {"help", no_argument, NULL, 'h'},
    };
    enum { ALL = sizeof all / sizeof *all };
    struct option option[ALL + 1];
    char letters[2 * ALL + 2], *letter_end = letters;
    int n = 0;
    if (strchr(accepted, 'o'))
        *letter_end++ = '+'; /* what follows the program's name is the program's */
    for (int i = 0; i < ALL; i++) {
        if (all[i].val != 'h' && !strchr(accepted, all[i].val))
            continue;
        option[n++] = all[i];
        if (strchr("onh", all[i].val))
            *letter_end++ = (char)all[i].val;
        if (strchr("on", all[i].val))
            *letter_end++ = ':';
    }
    *letter_end = '\0';
    option[n] = (struct option){0};
    set_defaults(args);
    optind = 1;
    opterr = 0;
    for (int letter; (letter = getopt_long(argc, argv, letters, option, NULL)) != -1;) {
        switch (letter) {
        case 'o':
            args->output = optarg;
            break;
        case 's':
            args->sort = optarg;
            break;
        case 'b':
            args->by = optarg;
            break;
        case 'n':
            if (!parse_limit(&args->limit, optarg)) {
                cli_message("%s: -n: '%s' is not a number", argv[0], optarg);
                return CLI_USAGE;
            }
            break;
        case 'a':
            if (!parse_limit(&args->around, optarg)) {
                cli_message("%s: --context: '%s' is not a number", argv[0], optarg);
                return CLI_USAGE;
            }
            break;
        case 'e':
            args->style.exact = true;
            break;
        case 'c':
        case 'C':
            args->color = letter == 'c';
            break;
        case 'h':
            fputs(help, stdout);
            return cli_finish(0);
        default:
            cli_message("%s: option '%s' is unknown or lacks its value; try 'tapescope %s --help'",
                        argv[0], argv[optind - 1], argv[0]);
            return CLI_USAGE;
        }
    }
    const char *no_color = getenv("NO_COLOR");
    args->style.color =
        args->color >= 0 ? args->color == 1 : isatty(STDOUT_FILENO) && !(no_color && *no_color);
    return -1;
}

int cli_choice(const char *name, const char *const *names, int n)
{
    int found = -1;
    size_t length = strlen(name);
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
        if (length > 0 && strncmp(names[i], name, length) == 0)
            found = found == -1 ? i : -2;
    }
    return found < 0 ? -1 : found;
}

/* Levenshtein's distance, up to names of 31 characters. */
static unsigned distance(const char *a, const char *b)
{
    enum { MOST = 31 };
    unsigned row[MOST + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MOST || m > MOST)
        return MOST;
    for (unsigned j = 0; j <= m; j++)
        row[j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned best = corner + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *cli_nearest(const char *name, const char *const *names, int n)
{
    const char *best = NULL;
    unsigned least = 3;
    for (int i = 0; i < n; i++) {
        unsigned d = distance(name, names[i]);
        if (d < least && d < strlen(names[i])) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

static void warn(void *payload, const char *message)
{
    (void)payload;
    cli_message("%s", message);
}

int cli_open(struct cli_profile *opened, const char *path)
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

int cli_finish(int report_status)
{
    if (report_status != 0) {
        cli_message("out of memory");
        return CLI_FAILED;
    }
    int error = fflush(stdout) != 0 ? errno : 0;
    if (error != 0 || ferror(stdout)) { /* why an earlier write failed is not known any more */
        cli_message("cannot write the report%s%s", error != 0 ? ": " : "",
                    error != 0 ? strerror(error) : "");
        return CLI_FAILED;
    }
    return CLI_OK;
}
