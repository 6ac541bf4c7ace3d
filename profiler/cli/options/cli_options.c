/* cli_options.c: the list of commands, and what --help says of one. */
#include "cli_args.h"

#include <string.h>

enum { TEXT_COLUMN = 26, NARROW = 60 };

const struct cli_command *const *cli_commands(size_t *n)
{
    static const struct cli_command *const all[] = {
#define X(name) &cli_##name,
        CLI_COMMANDS(X)
#undef X
    };
    *n = sizeof all / sizeof *all;
    return all;
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
    struct layout layout = {out, width < 80 ? width : 80};
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
