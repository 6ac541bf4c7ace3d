/* cli_man.c: the manual page, from the commands' tables. */
#include "cli_options.h"

#include <string.h>

/* Text in which troff finds no request and no escape of its own. */
static void man_put_text(FILE *out, const char *text)
{
    bool at_start = true;
    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\n')
            fputs("\n.br\n", out);
        else
            putc(*text, out);
        at_start = *text == '\n';
    }
}

static void man_put_option(void *payload, const struct cli_option *option)
{
    FILE *out = payload;
    fputs(".TP\n", out);
    if (option->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", out);
    man_put_text(out, option->name);
    fputs("\\fR", out);
    if (option->value) {
        fputs(" \\fI", out);
        man_put_text(out, option->value);
        fputs("\\fR", out);
    }
    putc('\n', out);
    man_put_text(out, option->text);
    for (size_t i = 0; option->choice && option->choice[i]; i++) {
        fputs(i ? ", " : ": ", out);
        man_put_text(out, option->choice[i]);
        if (i == 0 && cli_has_default(option))
            fputs(" (default)", out);
    }
    putc('\n', out);
}

static void put_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, ".SS tapescope %s", command->name);
    if (*command->operands) {
        putc(' ', out);
        /* Further forms of the command are lines of their own in --help. */
        size_t n = strcspn(command->operands, "\n");
        for (size_t i = 0; i < n; i++)
            putc(command->operands[i], out);
    }
    putc('\n', out);
    man_put_text(out, command->about);
    putc('\n', out);
    cli_each_option(command, man_put_option, out);
    if (command->notes) {
        fputs(".PP\n", out);
        man_put_text(out, command->notes);
        putc('\n', out);
    }
}

void cli_put_manual(FILE *out, const char *version)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    fprintf(out, ".TH TAPESCOPE 1 \"\" \"tapescope %s\" \"User Commands\"\n", version);
    fputs(".SH NAME\n"
          "tapescope \\- what each source line of a program costs, forward and backward\n"
          ".SH SYNOPSIS\n"
          ".B tapescope\n"
          ".I COMMAND\n"
          "[\\fIOPTIONS\\fR] ...\n"
          ".SH DESCRIPTION\n"
          "Records programs that use libtapescope and reads the profiles that they leave: what\n"
          "each line cost in time, forward and in the backward sweep, and in bytes on the tape.\n"
          ".SH COMMANDS\n",
          out);
    for (size_t i = 0; i < n; i++)
        put_command(out, command[i]);
#define X(NAME, number, text) ".TP\n" #number "\n" text ".\n"
    static const char statuses[] = CLI_STATUSES(X);
#undef X
    fputs(".SH EXIT STATUS\n", out);
    fputs(statuses, out);
    fputs(
        ".PP\n"
        "record and stat pass on the status of a program that failed, or 128 + n if signal n\n"
        "ended it.\n"
        ".SH ENVIRONMENT\n"
        ".TP\n"
        ".B COLUMNS\n"
        "The width of the output; by default the terminal's, or 80.\n"
        ".TP\n"
        ".B NO_COLOR\n"
        "If it is set and not empty, there are no colours but by \\-\\-color.\n"
        ".TP\n"
        ".B PAGER\n"
        "What reports on a terminal go through; by default less. If it is empty or cat: nothing.\n"
        ".TP\n"
        ".B BROWSER\n"
        "The browsers of html \\-\\-open, separated by colons; then xdg-open.\n"
        ".TP\n"
        ".B TAPESCOPE_OPTIONS\n"
        "Options of a recording, before those of the command line.\n"
        ".SH FILES\n"
        ".TP\n"
        ".B " CLI_DEFAULT_PROFILE "\n"
        "The profile that is written and read where none is named.\n",
        out);
}
