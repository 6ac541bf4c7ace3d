/* cmd_completion.c: `tapescope completion`: what a shell needs to complete commands and options.
 *
 * Invariant: the script names exactly the commands, options and choices of the tables.
 */
#include "cli_args.h"

#include <string.h>

const struct cli_command cli_completion = {
    .name = "completion",
    .summary = "a script by which the shell completes",
    .operands = "bash",
    .about = "Prints a script by which bash completes commands, options and their choices.",
    .notes = "Load it in a shell by: . <(tapescope completion bash)",
    .run = cmd_completion,
};

static void completion_put_name(void *payload, const struct cli_option *option)
{
    fprintf(payload, " --%s", option->name);
}

/* The choices of an option, as a case of the script. */
static void put_choices(void *payload, const struct cli_option *option)
{
    const char *name = payload;
    if (!option->choice)
        return;
    printf("    %s:--%s", name, option->name);
    if (option->letter)
        printf(" | %s:-%c", name, option->letter);
    printf(") choices='");
    for (size_t i = 0; option->choice[i]; i++)
        printf("%s%s", i ? " " : "", option->choice[i]);
    puts("' ;;");
}

static void put_bash(void)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    puts("_tapescope()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} choices=\n"
         "    local command=${COMP_WORDS[1]}\n"
         "    COMPREPLY=()\n"
         "    case $command:$before in");
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", command[i]->name);
        cli_each_option(command[i], put_choices, name);
    }
    puts("    completion:completion) [[ $word == -* ]] || choices=bash ;;\n"
         "    esac\n"
         "    if ((COMP_CWORD == 1)); then");
    printf("        choices='");
    for (size_t i = 0; i < n; i++)
        printf("%s ", command[i]->name);
    puts("--help --version'\n"
         "    elif [[ -z $choices && $word == -* ]]; then\n"
         "        case $command in");
    for (size_t i = 0; i < n; i++) {
        printf("        %s) choices='", command[i]->name);
        cli_each_option(command[i], completion_put_name, stdout);
        puts("' ;;");
    }
    puts("        esac\n"
         "    fi\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")\n"
         "}\n"
         "complete -o default -F _tapescope tapescope");
}

int cmd_completion(int argc, char **argv)
{
    struct cli_args args;
    int status = cli_parse(&cli_completion, &args, argc, argv);
    if (status >= 0)
        return status;
    if (argc - optind != 1 || strcmp(argv[optind], "bash") != 0) {
        cli_message("completion: name the shell: bash");
        return CLI_USAGE;
    }
    put_bash();
    return cli_finish();
}
