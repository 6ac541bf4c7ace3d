/* cli_options.c: the list of commands, and what --help says of one. */
#include "cli_args.h"

#include <string.h>
#include <unistd.h>

enum { TEXT_COLUMN = 26, NARROW = 60, MOST_WIDTH = 140 };

const struct cli_command *const *cli_commands(size_t *n)
{
    static const struct cli_command *const all[] = {
#define X(GROUP, name) &cli_##name,
        CLI_COMMANDS(X)
#undef X
    };
    *n = sizeof all / sizeof *all;
    return all;
}

const char *cli_heading(size_t i)
{
    static const char *const headings[] = {
#define X(NAME, heading) [CLI_##NAME] = (heading),
        CLI_GROUPS(X)
#undef X
    };
    static const unsigned char group[] = {
#define X(GROUP, name) CLI_##GROUP,
        CLI_COMMANDS(X)
#undef X
    };
    return i == 0 || group[i] != group[i - 1] ? headings[group[i]] : NULL;
}

void cli_each_option(const struct cli_command *command, cli_option_fn *each, void *payload)
{
    static const struct cli_option help = {
        .name = "help", .letter = 'h', .kind = CLI_FLAG, .text = "this text"};
    const struct cli_option *shared;
    unsigned bit;
    for (size_t i = 0; i < command->n_options; i++)
        each(payload, &command->option[i]);
    for (size_t i = 0; (shared = cli_shared_option(i, &bit)) != NULL; i++)
        if (command->shared & bit)
            each(payload, shared);
    each(payload, &help);
}

/* Columns that text takes: every character is one. */
static unsigned options_columns(const char *text, size_t n)
{
    unsigned width = 0;
    for (size_t i = 0; i < n; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

void cli_put_wrapped(FILE *out, const char *text, unsigned column, unsigned indent, unsigned width)
{
    bool first = true;
    while (*text) {
        if (*text == '\n' || *text == ' ') {
            first |= *text == '\n';
            if (*text++ == '\n') {
                putc('\n', out);
                column = 0;
            }
            continue;
        }
        size_t n = strcspn(text, " \n");
        unsigned word = options_columns(text, n);
        if (!first && column + 1 + word > width) {
            putc('\n', out);
            column = 0;
            first = true;
        }
        if (first)
            for (; column < indent; column++)
                putc(' ', out);
        else
            putc(' ', out), column++;
        fwrite(text, 1, n, out);
        column += word;
        text += n;
        first = false;
    }
    putc('\n', out);
}

struct layout {
    FILE *out;
    unsigned width;
};

static void options_put_option(void *payload, const struct cli_option *option)
{
    const struct layout *layout = payload;
    unsigned indent = layout->width < NARROW ? 8 : TEXT_COLUMN;
    char head[80], text[1024];
    int n = option->letter
                ? snprintf(head, sizeof head, "  -%c, --%s", option->letter, option->name)
                : snprintf(head, sizeof head, "      --%s", option->name);
    if (option->value)
        n += snprintf(head + n, sizeof head - (size_t)n, " %s", option->value);
    fputs(head, layout->out);
    unsigned column = (unsigned)n;
    if (column + 1 >= indent) {
        putc('\n', layout->out);
        column = 0;
    }
    int used = snprintf(text, sizeof text, "%s", option->text);
    for (size_t i = 0; option->choice && option->choice[i]; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s%s", i ? ", " : ": ",
                         option->choice[i], i == 0 && cli_has_default(option) ? " (default)" : "");
    cli_put_wrapped(layout->out, text, column, indent, layout->width);
}

void cli_put_help(FILE *out, const struct cli_command *command, unsigned width)
{
    struct layout layout = {out, width < MOST_WIDTH ? width : MOST_WIDTH};
    fprintf(out, "Usage: tapescope %s [OPTIONS]%s%s\n", command->name,
            *command->operands ? " " : "", command->operands);
    cli_put_wrapped(out, command->about, 0, 0, layout.width);
    putc('\n', out);
    cli_each_option(command, options_put_option, &layout);
    if (command->notes) {
        putc('\n', out);
        cli_put_wrapped(out, command->notes, 0, 0, layout.width);
    }
}

#define X(NAME, number, text) " " #number " " text ";"
static const char statuses[] =
    "Exit status:" CLI_STATUSES(X) " and of record and stat that of a program that failed.";
#undef X

void cli_put_overview(FILE *out, unsigned width)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    width = width < MOST_WIDTH ? width : MOST_WIDTH;
    fputs("Usage: tapescope COMMAND [OPTIONS] ...\n", out);
    cli_put_wrapped(out,
                    "What each source line of a program that uses libtapescope costs, forward and "
                    "backward.\n",
                    0, 0, width);
    for (size_t i = 0; i < n; i++) {
        if (cli_heading(i))
            fprintf(out, "%s%s:\n", i > 0 ? "\n" : "", cli_heading(i));
        int column = fprintf(out, "  %-9s", command[i]->name);
        cli_put_wrapped(out, command[i]->summary, (unsigned)column, 12, width);
    }
    putc('\n', out);
    cli_put_wrapped(out,
                    "tapescope COMMAND --help explains the options of a command; tapescope "
                    "--version names the version.",
                    0, 0, width);
    cli_put_wrapped(out, statuses, 0, 0, width);
}

const struct cli_command *cli_command_named(const char *name)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(command[i]->name, name) == 0)
            return command[i];
    return NULL;
}

/* What does it: words of version 0.1, and of other profilers. */
static const char *command_instead(const char *name)
{
    static const char *const instead[][2] = {
        {"view", "html --open"},
        {"dump", "tape --records"},
        {"pack", "merge -o PACKED PROFILE"},
        {"completion", "help --completion bash"},
        {"report", "top"},
        {"script", "tape --records"},
        {"flamegraph", "html --open"},
        {"compare", "diff"},
    };
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
        if (strcmp(instead[i][0], name) == 0)
            return instead[i][1];
    return NULL;
}

const struct cli_command *cli_find_command(const char *name)
{
    enum { MOST = 64 };
    static const char *const dashed[] = {"--help", "--version"};
    const char *names[MOST];
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    const struct cli_command *found = cli_command_named(name);
    if (found)
        return found;
    for (size_t i = 0; i < n && i < MOST; i++)
        names[i] = command[i]->name;
    const char *nearest = *name == '-' ? cli_nearest(name, dashed, 2)
                                       : cli_nearest(name, names, n < MOST ? (int)n : MOST);
    const char *instead = command_instead(name);
    if (instead)
        cli_message("no command '%s'; try 'tapescope %s'", name, instead);
    else if (nearest)
        cli_message("no command '%s'; did you mean '%s'?", name, nearest);
    else if (access(name, R_OK) == 0)
        cli_message("no command '%s'; to %s: tapescope %s %s", name,
                    access(name, X_OK) == 0 ? "run it" : "see it",
                    access(name, X_OK) == 0 ? "record --" : "top", name);
    else
        cli_message("no command '%s'; try 'tapescope --help'", name);
    return NULL;
}
