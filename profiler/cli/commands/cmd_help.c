/* cmd_help.c: `tapescope help`: what the program says of itself, in all its forms. */
#include "base_memory.h"
#include "cli_args.h"
#include "cli_pager.h"
#include "report_howto.h"

#include <stdlib.h>
#include <string.h>

struct help_args {
    struct cli_args cli;
    int shell; /* -1: none */
    bool manual;
};

static const struct cli_option options[] = {
    {"completion", 0, CLI_CHOICE, "SHELL", "print a script by which this shell completes commands",
     offsetof(struct help_args, shell), cli_shells, -1},
    {"man", 0, CLI_FLAG, NULL, "print the manual page, tapescope(1)",
     offsetof(struct help_args, manual), NULL, 0},
};

const struct cli_command cli_help = {
    .name = "help",
    .summary = "what a command does; the manual page; completion for a shell",
    .operands = "[COMMAND | PAGE[#HEADING] | WORD]",
    .about = "Explains a command as its --help does; without one, lists them. Of a page of the "
             "docs that are installed with the program, such as profile.md, prints the text, or "
             "what is below a heading: findings name both. Of another word says what it means "
             "here, which commands have an option of that name, and which sections have it.",
    CLI_OPTIONS(options),
    .notes = "Completion is loaded in bash and zsh by '. <(tapescope help --completion bash)', in "
             "fish by 'tapescope help --completion fish | source'.",
    .run = cmd_help,
};

/* The commands that have an option of this name, one after another. */
struct help_option {
    const char *word;
    const struct cli_command *command;
    FILE *out;
    bool any;
};

static void help_put_option(void *payload, const struct cli_option *option)
{
    struct help_option *search = payload;
    if (strcmp(option->name, search->word) != 0)
        return;
    if (search->any)
        fprintf(search->out, ", %s", search->command->name);
    else
        fprintf(search->out, "--%s is an option of %s", option->name, search->command->name);
    search->any = true;
}

static bool help_put_commands(const char *word, unsigned width)
{
    size_t n, length = 0;
    char *text = NULL;
    FILE *out = base_memstream_open(&text, &length);
    struct help_option search = {.word = word + strspn(word, "-"), .out = out};
    const struct cli_command *const *command = cli_commands(&n);
    for (size_t i = 0; i < n; i++) {
        search.command = command[i];
        cli_each_option(command[i], help_put_option, &search);
    }
    fputs(search.any ? "." : "", out);
    base_memstream_close(out, &text);
    if (search.any) {
        cli_put_wrapped(stdout, text, 0, 0, width);
        putc('\n', stdout);
    }
    free(text);
    return search.any;
}

/* A command, a page, a section or a word. */
static int help_about(const char *topic, unsigned width)
{
    const struct cli_command *command = cli_command_named(topic);
    if (command) {
        cli_put_help(stdout, command, width);
        return cli_finish();
    }
    char *page = report_howto_text(topic);
    if (page) {
        cli_pager_begin();
        fputs(page, stdout);
        free(page);
        return cli_finish();
    }
    if (strpbrk(topic, "#./")) {
        cli_message("help: no page %s in the docs", topic);
        return CLI_USAGE;
    }
    const bool is_option = help_put_commands(topic, width);
    if (report_howto_find(topic + strspn(topic, "-"), stdout, width) || is_option)
        return cli_finish();
    cli_find_command(topic); /* says that there is none */
    return CLI_USAGE;
}

int cmd_help(int argc, char **argv)
{
    struct help_args args = {.shell = -1};
    int status = cli_parse(&cli_help, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (argc - optind + (args.shell >= 0) + args.manual > 1) {
        cli_message("help: name one command, or --man, or --completion");
        return CLI_USAGE;
    }
    if (args.shell >= 0) {
        cli_put_completion(stdout, args.shell);
    } else if (args.manual) {
        cli_put_manual(stdout, TAPESCOPE_VERSION);
    } else if (optind < argc) {
        return help_about(argv[optind], args.cli.style.width);
    } else {
        cli_put_overview(stdout, args.cli.style.width);
    }
    return cli_finish();
}
