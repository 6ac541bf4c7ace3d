/* cli_args.c: see cli_args.h. */
#include "cli_args.h"

#include "base_json.h"
#include "base_memory.h"
#include "cli_pager.h"
#include "cli_progress.h"
#include "html.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEFAULT_WIDTH = 80, LEAST_WIDTH = 40, MOST_WIDTH = 1000 };

bool cli_has_option(const char *text, const char *wanted)
{
    const size_t n = strlen(wanted);
    for (; *text; text += strcspn(text, ","), text += *text == ',')
        if (strncmp(text, wanted, n) == 0 && (text[n] == ',' || text[n] == '\0'))
            return true;
    return false;
}

void cli_message(const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    cli_progress_clear();
    /* Control characters of paths and names never reach the terminal. */
    fprintf(stderr, "tapescope: %s\n", base_json_shown(line));
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
#define X(NAME, word, ...) word,
const char *const cli_frames[] = {"user", [CLI_FRAMES_ALL] = "all", NULL};
const char *const cli_metrics[] = {REPORT_METRICS(X) NULL};
const char *const cli_places[] = {ANALYZE_PLACES(X) NULL};
#undef X
static const char *const times[] = {"exact", [CLI_TIME_SAMPLED] = "sampled", "off", NULL},
                         *const on[] = {"on", "off", NULL}, *const off[] = {"off", "on", NULL},
                         *const frames[] = {"user", "all", "none", NULL},
                         *const unwinders[] = {"libunwind", "fp", NULL},
                         *const signals[] = {"off", "usr1", "usr2", NULL};

static const char *const
    sources[] = {[HTML_SOURCES_PROJECT] = "project",
                 [HTML_SOURCES_ALL] = "all",
                 [HTML_SOURCES_NONE] = "none",
                 NULL},
    *const themes[] = {
        [HTML_THEME_AUTO] = "auto", [HTML_THEME_LIGHT] = "light", [HTML_THEME_DARK] = "dark", NULL};

#define AT(member) offsetof(struct cli_args, member)
static const struct {
    struct cli_option option;
    unsigned bit;
} shared[] = {
    {{"time", 0, CLI_CHOICE, "HOW", "how time is measured", AT(recording.time), times, 0},
     CLI_RECORDING},
    {{"tape", 0, CLI_CHOICE, "WHETHER", "whether bytes are counted", AT(recording.tape), on, 0},
     CLI_RECORDING},
    {{"freq", 0, CLI_COUNT, "HZ", "samples a second and thread (default 250)", AT(recording.freq),
      NULL, 0},
     CLI_RECORDING},
    {{"interval", 0, CLI_COUNT, "MS",
      "milliseconds between two writings of the profile, at most (default 1000)",
      AT(recording.interval), NULL, 0},
     CLI_RECORDING},
    {{"depth", 0, CLI_COUNT, "N", "frames of a call path at most (default 64; samples: 0)",
      AT(recording.depth), NULL, 0},
     CLI_RECORDING},
    {{"frames", 0, CLI_CHOICE, "WHOSE", "whose frames a call path keeps", AT(recording.frames),
      frames, 0},
     CLI_RECORDING},
    {{"unwind", 0, CLI_CHOICE, "HOW", "how call paths are found", AT(recording.unwind), unwinders,
      0},
     CLI_RECORDING},
    {{"shapes", 0, CLI_CHOICE, "WHETHER",
      "whether ops are told apart by their shapes (top --by shape)", AT(recording.shapes), off, 0},
     CLI_RECORDING},
    {{"timeline", 0, CLI_BYTES, "BYTES", "keep single events, in at most so many bytes",
      AT(recording.timeline), NULL, 0},
     CLI_RECORDING},
    {{"steps", 0, CLI_TEXT, "A:B", "measure steps A to B only, counted from 0", AT(recording.steps),
      NULL, 0},
     CLI_RECORDING},
    {{"warmup", 0, CLI_COUNT, "K", "steps that are not measured, before the first that is",
      AT(recording.warmup), NULL, 0},
     CLI_WARMUP},
    {{"snapshot-signal", 0, CLI_CHOICE, "SIGNAL", "a signal that asks for a snapshot",
      AT(recording.snapshot_signal), signals, 0},
     CLI_RECORDING},
    {{"follow-fork", 0, CLI_FLAG, NULL, "a child process has a profile of its own",
      AT(recording.follow_fork), NULL, 0},
     CLI_RECORDING},
    {{"source", 0, CLI_CHOICE, "WHOSE",
      "put these sources into the page: those that are not below /usr, all, or none",
      AT(page.sources), sources, 0},
     CLI_PAGE},
    {{"theme", 0, CLI_CHOICE, "THEME", "the colours that the page begins with", AT(page.theme),
      themes, 0},
     CLI_PAGE},
    {{"base", 0, CLI_LIST, "PROFILE",
      "also show what is different from this profile; repeatable, or a folder of runs: their mean",
      AT(page.base), NULL, 0},
     CLI_PAGE},
    {{"sizes", 0, CLI_TEXT, "N,N,...", "the size of each profile", AT(sizes.list), NULL, 0},
     CLI_SIZES},
    {{"size-key", 0, CLI_TEXT, "NAME",
      "the size is what NAME is in each program's arguments, or in its scopes", AT(sizes.key), NULL,
      0},
     CLI_SIZES},
    {{"size-arg", 0, CLI_COUNT, "K", "the size is each program's K-th argument", AT(sizes.argument),
      NULL, 0},
     CLI_SIZES},
    {{"focus", 0, CLI_TEXT, "RE", "only lines whose file:line, function or op matches", AT(focus),
      NULL, 0},
     CLI_FILTER},
    {{"ignore", 0, CLI_TEXT, "RE", "no lines whose file:line, function or op matches", AT(ignore),
      NULL, 0},
     CLI_FILTER},
    {{"phase", 0, CLI_SET, "PHASES", "whose times are shown, separated by commas", AT(style.phases),
      phases, 0},
     CLI_PHASE},
    {{"map", 0, CLI_LIST, "OLD=NEW", "read sources below the folder OLD from the folder NEW",
      AT(map), NULL, 0},
     CLI_MAP},
    {{"libraries", 0, CLI_FLAG, NULL,
      "samples in libraries of the system, such as libm, apart from the lines that called them",
      AT(libraries), NULL, 0},
     CLI_MAP},
    {{"threads", 0, CLI_FLAG, NULL,
      "threads of a parallel loop apart, not below the line that begins it", AT(threads), NULL, 0},
     CLI_MAP},
    {{"rank", 0, CLI_TEXT, "N,N,...", "of the profiles of several ranks only those of these ranks",
      AT(rank), NULL, 0},
     CLI_RANK},
    {{"json", 0, CLI_FLAG, NULL, "one JSON document, whose names 'tapescope help json' lists",
      AT(style.json), NULL, 0},
     CLI_JSON},
    {{"csv", 0, CLI_FLAG, NULL,
      "the rows as CSV, all of them by default; 'tapescope help json' lists the columns",
      AT(style.csv), NULL, 0},
     CLI_CSV},
    {{"exact", 0, CLI_FLAG, NULL, "plain integers: ns and bytes", AT(style.exact), NULL, 0},
     CLI_EXACT},
    {{"color", 0, CLI_CONSTANT, NULL, "colours, also where the output is no terminal", AT(color),
      NULL, 1},
     CLI_COLOR},
    {{"no-color", 0, CLI_CONSTANT, NULL, "no colours", AT(color), NULL, 0}, CLI_COLOR},
};
#undef AT

const struct cli_option *cli_shared_option(size_t i, unsigned *bit)
{
    if (i >= sizeof shared / sizeof *shared)
        return NULL;
    *bit = shared[i].bit;
    return &shared[i].option;
}

/* ",name=value" of an option that was given. */
static void put_given(FILE *out, const struct cli_option *option, const void *value)
{
    char *name = base_strdup(option->name);
    for (char *dash = name; (dash = strchr(dash, '-'));)
        *dash = '_';
    if (option->kind == CLI_CHOICE && *(const int *)value >= 0)
        fprintf(out, ",%s=%s", name, option->choice[*(const int *)value]);
    else if (option->kind == CLI_COUNT && *(const size_t *)value != SIZE_MAX)
        fprintf(out, ",%s=%zu", name, *(const size_t *)value);
    else if (option->kind == CLI_BYTES && *(const uint64_t *)value != UINT64_MAX)
        fprintf(out, ",%s=%" PRIu64, name, *(const uint64_t *)value);
    else if (option->kind == CLI_TEXT && *(const char *const *)value)
        fprintf(out, ",%s=%s", name, *(const char *const *)value);
    else if (option->kind == CLI_FLAG && *(const bool *)value)
        fprintf(out, ",%s=on", name);
    free(name);
}

void cli_export_recording(const struct cli_args *args)
{
    const char *before = secure_getenv("TAPESCOPE_OPTIONS");
    char *text = NULL;
    size_t n = 0;
    FILE *out = base_memstream_open(&text, &n);
    fputs(before ? before : "", out);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (shared[i].bit & (CLI_RECORDING | CLI_WARMUP))
            put_given(out, &shared[i].option, (const char *)args + shared[i].option.at);
    base_memstream_close(out, &text);
    const char *options = *text == ',' ? text + 1 : text;
    if (*options && setenv("TAPESCOPE_OPTIONS", options, 1) != 0)
        base_no_memory();
    free(text);
}

static void args_set_defaults(struct cli_args *args)
{
    *args = (struct cli_args){
        .color = -1,
        .recording = {.time = -1,
                      .tape = -1,
                      .frames = -1,
                      .unwind = -1,
                      .shapes = -1,
                      .snapshot_signal = -1,
                      .freq = SIZE_MAX,
                      .interval = SIZE_MAX,
                      .depth = SIZE_MAX,
                      .warmup = SIZE_MAX,
                      .timeline = UINT64_MAX},
    };
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

/* "--map or --metric": the options that a name begins, if there are several. */
static const char *begun_options(const struct getopt_table *table, const char *name)
{
    static char text[256];
    const size_t length = strcspn(name, "=");
    size_t used = 0;
    int n = 0;
    for (int i = 0; length > 0 && i < table->n && used < sizeof text; i++)
        if (strncmp(table->option[i]->name, name, length) == 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s--%s", n++ ? " or " : "",
                                     table->option[i]->name);
    return n > 1 ? text : NULL;
}

/* "--time sampled" of "sampled": the only option that has this choice; else NULL. */
static const char *option_of_choice(const struct getopt_table *table, const char *word)
{
    static char text[128];
    int n = 0;
    for (int i = 0; i < table->n; i++) {
        const struct cli_option *option = table->option[i];
        const bool chooses = option->kind == CLI_CHOICE || option->kind == CLI_SET;
        const int place = chooses ? cli_choice(word, option->choice, cli_choices(option)) : -1;
        if (place >= 0 && n++ == 0)
            snprintf(text, sizeof text, "%s %s", option->name, option->choice[place]);
    }
    return n == 1 ? text : NULL;
}

#define OPTIONS_FLAMES                                                                             \
    "flame graphs are in the page of 'tapescope html'; 'tapescope export -f collapsed' is for "    \
    "flamegraph.pl, which writes SVG"

/* What is asked for by options that many programs have, and another command gives. */
static const char *options_elsewhere(const char *word)
{
    static const char *const elsewhere[][2] = {
        {"csv", "CSV is written by 'tapescope export -f csv', and by diff, growth and tape --csv"},
        {"json", "JSON is written by the reports, such as 'tapescope top --json', and by "
                 "'tapescope export -f json'"},
        {"html", "a page is written by 'tapescope html'"},
        {"svg", OPTIONS_FLAMES},
        {"flamegraph", OPTIONS_FLAMES},
        {"version", "'tapescope --version' names it"},
        {"width", "the environment's COLUMNS is the width"},
    };
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(word, elsewhere[i][0]) == 0)
            return elsewhere[i][1];
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
    const char *begun =
        found == '?' && strncmp(text, "--", 2) == 0 ? begun_options(table, name) : NULL;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "="), name);
    const char *nearest =
        found == '?' && strlen(word) > 1 ? cli_nearest(word, names, table->n) : NULL;
    const char *chosen = found == '?' && strlen(word) >= 3 ? option_of_choice(table, word) : NULL;
    const char *elsewhere = found == '?' && !chosen ? options_elsewhere(word) : NULL;
    if (!nearest)
        nearest = chosen;
    if (begun)
        cli_message("%s: '%s' may be %s", command->name, text, begun);
    else if (found == ':')
        cli_message("%s: option '%s' lacks its value; try 'tapescope %s --help'", command->name,
                    text, command->name);
    else if (elsewhere)
        cli_message("%s: no option '%s'; %s", command->name, text, elsewhere);
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
    if (args->style.json && args->style.csv) {
        cli_message("%s: --json does not go with --csv", command->name);
        return CLI_USAGE;
    }
    const char *no_color = secure_getenv("NO_COLOR");
    args->terminal = isatty(STDOUT_FILENO);
    args->style.color =
        args->color >= 0 ? args->color == 1 : args->terminal && !(no_color && *no_color);
    return -1;
}

int cli_finish(void)
{
    cli_progress_end();
    if (cli_pager_end())
        return CLI_OK;
    int error = fflush(stdout) != 0 ? errno : 0;
    if (error != 0 || ferror(stdout)) { /* why an earlier write failed is not known any more */
        cli_message("cannot write the report%s%s", error != 0 ? ": " : "",
                    error != 0 ? strerror(error) : "");
        return CLI_FAILED;
    }
    return CLI_OK;
}
