/* cmd_help.c: `tapescope help`: what the program says of itself, in all its forms. */
#include "cli_args.h"
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
    .operands = "[COMMAND | PAGE[#HEADING]]",
    .about = "Explains a command as its --help does; without one, lists them. Of a page of the "
             "docs that are installed with the program, such as profile.md, prints the text, or "
             "what is below a heading: findings name both.",
    CLI_OPTIONS(options),
    .notes = "Completion is loaded in bash and zsh by '. <(tapescope help --completion bash)', in "
             "fish by 'tapescope help --completion fish | source'.",
    .run = cmd_help,
};

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
        char *page = report_howto_text(argv[optind]);
        if (page) {
            fputs(page, stdout);
            free(page);
            return cli_finish();
        }
        if (strpbrk(argv[optind], "#./")) {
            cli_message("help: no page %s in the docs", argv[optind]);
            return CLI_USAGE;
        }
        const struct cli_command *command = cli_find_command(argv[optind]);
        if (!command)
            return CLI_USAGE;
        cli_put_help(stdout, command, args.cli.style.width);
    } else {
        cli_put_overview(stdout, args.cli.style.width);
    }
    return cli_finish();
}
