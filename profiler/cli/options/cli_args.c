/* cli_args.c: see cli_args.h. */
#include "cli_args.h"
#include "base_json.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 80, LEAST_WIDTH = 40, MOST_WIDTH = 1000 };

/* Control characters of paths and names never reach the terminal. */
static void put_line(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const unsigned n = base_json_character(at);
        if (base_json_control(at, n ? n : 1) != 0)
            putc('?', stderr);
        else
            fwrite(at, 1, n ? n : 1, stderr);
        at += n ? n : 1;
    }
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

unsigned cli_width(void)
{
    const char *columns = secure_getenv("COLUMNS");
    char *end;
    unsigned long n = columns && *columns ? strtoul(columns, &end, 10) : 0;
    if (n > 0 && *end == '\0')
        return n < LEAST_WIDTH ? LEAST_WIDTH : n > MOST_WIDTH ? MOST_WIDTH : (unsigned)n;
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col < LEAST_WIDTH ? LEAST_WIDTH : size.ws_col;
    return DEFAULT_WIDTH;
}

/* The shared options, with the bit of each. */
#define ROW(X, NAME, name, ...) #name,
static const char *const phases[] = {PHASE_LIST(ROW, ) NULL};
#undef ROW
static const struct {
    struct cli_option option;
    unsigned bit;
} shared[] = {
    {{"focus", 0, CLI_TEXT, "RE", "only lines whose file:line, function or op matches",
      offsetof(struct cli_args, focus), NULL, 0},
     CLI_FILTER},
    {{"ignore", 0, CLI_TEXT, "RE", "no lines whose file:line, function or op matches",
      offsetof(struct cli_args, ignore), NULL, 0},
     CLI_FILTER},
    {{"phase", 0, CLI_SET, "PHASES", "whose times are shown, separated by commas",
      offsetof(struct cli_args, style.phases), phases, 0},
     CLI_PHASE},
    {{"map", 0, CLI_LIST, "OLD=NEW", "read sources below the folder OLD from the folder NEW",
      offsetof(struct cli_args, map), NULL, 0},
     CLI_MAP},
    {{"json", 0, CLI_FLAG, NULL, "one JSON document, whose names docs/PROFILER.md lists",
      offsetof(struct cli_args, style.json), NULL, 0},
     CLI_JSON},
    {{"exact", 0, CLI_FLAG, NULL, "plain integers: ns and bytes",
      offsetof(struct cli_args, style.exact), NULL, 0},
     CLI_EXACT},
    {{"color", 0, CLI_CONSTANT, NULL, "colours, also where the output is no terminal",
      offsetof(struct cli_args, color), NULL, 1},
     CLI_COLOR},
    {{"no-color", 0, CLI_CONSTANT, NULL, "no colours", offsetof(struct cli_args, color), NULL, 0},
     CLI_COLOR},
};

const struct cli_option *cli_shared_option(size_t i, unsigned *bit)
{
    if (i >= sizeof shared / sizeof *shared)
        return NULL;
    *bit = shared[i].bit;
    return &shared[i].option;
}

static void args_set_defaults(struct cli_args *args)
{
    *args = (struct cli_args){.color = -1};
    args->style.out = stdout;
    args->style.width = cli_width();
    args->style.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* The options of a command as getopt_long wants them. */
enum { MOST_OPTIONS = 64 };
struct getopt_table {
    const struct cli_option *option[MOST_OPTIONS];
    struct option name[MOST_OPTIONS + 1];
    char letters[2 * MOST_OPTIONS + 3];
    int n, n_letters;
};

static void add_option(void *payload, const struct cli_option *option)
{
    struct getopt_table *table = payload;
    if (table->n == MOST_OPTIONS)
        return;
    int has_value = option->value ? required_argument : no_argument;
    table->name[table->n] =
        (struct option){option->name, has_value, NULL, UCHAR_MAX + 1 + table->n};
    table->option[table->n++] = option;
    if (!option->letter)
        return;
    table->letters[table->n_letters++] = option->letter;
    if (option->value)
        table->letters[table->n_letters++] = ':';
}

static const struct cli_option *find_option(const struct getopt_table *table, int found)
{
    if (found > UCHAR_MAX)
        return table->option[found - UCHAR_MAX - 1];
    for (int i = 0; i < table->n; i++)
        if (table->option[i]->letter == found)
            return table->option[i];
    return NULL;
}

static int refuse_option(const struct cli_command *command, const struct getopt_table *table,
                         int found, const char *text)
{
    const char *names[MOST_OPTIONS];
    for (int i = 0; i < table->n; i++)
        names[i] = table->option[i]->name;
    const char *name =
        text + strspn(text, "-"); /* a word behind one dash is meant as an option, too */
    const char *nearest =
        found == '?' && strlen(name) > 1 ? cli_nearest(name, names, table->n) : NULL;
    if (found == ':')
        cli_message("%s: option '%s' lacks its value; try 'tapescope %s --help'", command->name,
                    text, command->name);
    else if (nearest)
        cli_message("%s: no option '%s'; did you mean '--%s'?", command->name, text, nearest);
    else
        cli_message("%s: no option '%s'; try 'tapescope %s --help'", command->name, text,
                    command->name);
    return CLI_USAGE;
}

/* The word that getopt_long stumbled over: among letters behind one dash it has not left it yet. */
static const char *refused_word(int found, int argc, char **argv)
{
    const char *last = argv[optind - 1];
    const bool is_letter = found == '?' && optopt != 0 && optopt <= UCHAR_MAX;
    const bool ends_there = last[0] == '-' && last[1] != '\0' && last[strlen(last) - 1] == optopt;
    return is_letter && !ends_there && optind < argc ? argv[optind] : last;
}

int cli_parse(const struct cli_command *command, struct cli_args *args, int argc, char **argv)
{
    struct getopt_table table = {.n = 0};
    if (command->runs_program)
        table.letters[table.n_letters++] = '+';
    table.letters[table.n_letters++] = ':';
    cli_each_option(command, add_option, &table);
    args_set_defaults(args);
    optind = 1;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, table.letters, table.name, NULL)) != -1;) {
        const struct cli_option *option = find_option(&table, found);
        if (!option)
            return refuse_option(command, &table, found, refused_word(found, argc, argv));
        if (strcmp(option->name, "help") == 0) {
            cli_put_help(stdout, command, args->style.width);
            return cli_finish();
        }
        if (!cli_store(command->name, option, optarg, (char *)args + option->at))
            return CLI_USAGE;
    }
    const char *no_color = secure_getenv("NO_COLOR");
    args->style.color =
        args->color >= 0 ? args->color == 1 : isatty(STDOUT_FILENO) && !(no_color && *no_color);
    return -1;
}

int cli_finish(void)
{
    int error = fflush(stdout) != 0 ? errno : 0;
    if (error != 0 || ferror(stdout)) { /* why an earlier write failed is not known any more */
        cli_message("cannot write the report%s%s", error != 0 ? ": " : "",
                    error != 0 ? strerror(error) : "");
        return CLI_FAILED;
    }
    return CLI_OK;
}
