/* cli_completion.c: what bash, zsh and fish need to complete commands, options and their choices.
 *
 * Invariant: a script names exactly the commands, options and choices of the tables.
 */
#include "cli_args.h"

#include <string.h>

struct completion {
    FILE *out;
    const char *command;
};

static void completion_put_choices(const struct completion *to, const struct cli_option *option)
{
    for (size_t i = 0; option->choice[i]; i++)
        fprintf(to->out, "%s%s", i ? " " : "", option->choice[i]);
}

static void completion_put_commands(FILE *out)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s ", command[i]->name);
}

/* ---- bash ---- */

static void bash_put_name(void *payload, const struct cli_option *option)
{
    const struct completion *to = payload;
    fprintf(to->out, " --%s", option->name);
}

/* The choices of an option, as a case of the script. */
static void bash_put_choices(void *payload, const struct cli_option *option)
{
    const struct completion *to = payload;
    if (!option->choice)
        return;
    fprintf(to->out, "    %s:--%s", to->command, option->name);
    if (option->letter)
        fprintf(to->out, " | %s:-%c", to->command, option->letter);
    fputs(") choices='", to->out);
    completion_put_choices(to, option);
    fputs("' ;;\n", to->out);
}

static void completion_put_bash(FILE *out)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    struct completion to = {.out = out};
    fputs("_tapescope()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} choices=\n"
          "    local command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n"
          "    case $command:$before in\n",
          out);
    for (size_t i = 0; i < n; i++) {
        to.command = command[i]->name;
        cli_each_option(command[i], bash_put_choices, &to);
    }
    fputs("    esac\n"
          "    if ((COMP_CWORD == 1)) || [[ $command:$before:$word == help:help:[^-]* ]]; then\n"
          "        choices='",
          out);
    completion_put_commands(out);
    fputs("--help --version'\n"
          "    elif [[ -z $choices && $word == -* ]]; then\n"
          "        case $command in\n",
          out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "        %s) choices='", command[i]->name);
        cli_each_option(command[i], bash_put_name, &to);
        fputs("' ;;\n", out);
    }
    fputs("        esac\n"
          "    fi\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")\n"
          "}\n"
          "complete -o default -F _tapescope tapescope\n",
          out);
}

/* ---- zsh and fish ---- */

/* Text within single quotes; what is in `escaped` gets a backslash. */
static void completion_put_quoted(FILE *out, const char *text, const char *escaped)
{
    for (; *text && *text != '\n'; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr(escaped, *text))
            fprintf(out, "\\%c", *text);
        else
            putc(*text, out);
}

/* An option for _arguments: '(-s --sort)'{-s+,--sort=}'[text]:KEY:(one another)'. */
static void zsh_put_option(void *payload, const struct cli_option *option)
{
    const struct completion *to = payload;
    const char *value = option->value ? "=" : "";
    fputs(" \\\n        ", to->out);
    if (option->letter)
        fprintf(to->out, "'(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name,
                option->letter, option->value ? "+" : "", option->name, value);
    else
        fprintf(to->out, "'--%s%s[", option->name, value);
    completion_put_quoted(to->out, option->text, "[]:");
    putc(']', to->out);
    if (option->value) {
        putc(':', to->out);
        completion_put_quoted(to->out, option->value, ":");
        putc(':', to->out);
        if (option->choice) {
            putc('(', to->out);
            completion_put_choices(to, option);
            putc(')', to->out);
        } else {
            fputs("_files", to->out);
        }
    }
    putc('\'', to->out);
}

static void completion_put_zsh(FILE *out)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    struct completion to = {.out = out};
    fputs("#compdef tapescope\n"
          "_tapescope()\n"
          "{\n"
          "    local -a commands=(",
          out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "\n        '%s:", command[i]->name);
        completion_put_quoted(out, command[i]->summary, ":");
        putc('\'', out);
    }
    fputs(")\n"
          "    local names='",
          out);
    completion_put_commands(out);
    fputs("'\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $words[1] in\n",
          out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "    %s) _arguments -s", command[i]->name);
        cli_each_option(command[i], zsh_put_option, &to);
        if (command[i]->runs_program)
            fputs(" \\\n        '(-)1:program:_command_names -e' '*::arguments:_normal'", out);
        else if (strcmp(command[i]->name, "help") == 0)
            fputs(" \\\n        \"1:command:($names)\"", out);
        else
            fputs(" \\\n        '*:file:_files'", out);
        fputs(" ;;\n", out);
    }
    fputs("    esac\n"
          "}\n"
          "if [[ $funcstack[1] == _tapescope ]]; then _tapescope \"$@\"; else compdef _tapescope "
          "tapescope; fi\n",
          out);
}

static void fish_put_option(void *payload, const struct cli_option *option)
{
    const struct completion *to = payload;
    fprintf(to->out, "complete -c tapescope -n '__tapescope_is %s' -l %s", to->command,
            option->name);
    if (option->letter)
        fprintf(to->out, " -s %c", option->letter);
    if (option->choice) {
        fputs(" -x -a '", to->out);
        completion_put_choices(to, option);
        putc('\'', to->out);
    } else if (option->value) {
        fputs(" -r", to->out);
    }
    fputs(" -d '", to->out);
    completion_put_quoted(to->out, option->text, "\\");
    fputs("'\n", to->out);
}

static void completion_put_fish(FILE *out)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    struct completion to = {.out = out};
    fputs("function __tapescope_is\n"
          "    set -l words (commandline -opc)\n"
          "    test \"$words[2]\" = \"$argv[1]\"\n"
          "end\n",
          out);
    for (size_t i = 0; i < n; i++) {
        to.command = command[i]->name;
        fprintf(out, "complete -c tapescope -n '__tapescope_is \"\"' -f -a %s -d '", to.command);
        completion_put_quoted(out, command[i]->summary, "\\");
        fputs("'\n", out);
        cli_each_option(command[i], fish_put_option, &to);
    }
    fputs("complete -c tapescope -n '__tapescope_is help' -f -a '", out);
    completion_put_commands(out);
    fputs("'\n", out);
}

/* ---- all ---- */

const char *const cli_shells[] = {"bash", "zsh", "fish", NULL};

void cli_put_completion(FILE *out, int shell)
{
    static void (*const put[])(FILE *) = {completion_put_bash, completion_put_zsh,
                                          completion_put_fish};
    put[shell](out);
}
