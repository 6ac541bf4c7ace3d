/* main.c: the program `tapescope`: finds the command and runs it.
 *
 * May include: cli.h and what it stands on. Exit status: 0 ok, 1 the report could not be
 * written, 2 usage, 3 a bad profile; `record` passes on the program's own.
 */
#include "cli_args.h"

#include <locale.h>
#include <string.h>

#ifndef TAPESCOPE_VERSION
#define TAPESCOPE_VERSION "0.1.0"
#endif

static const char help[] =
    "Usage: tapescope COMMAND [OPTIONS] ...\n"
    "What each source line of a program that uses libtapescope costs, forward and backward.\n"
    "\n"
    "  record     run a program and write its profile\n"
    "  top        the costliest lines, functions or ops\n"
    "  annotate   a source file with the cost of each line\n"
    "  info       what was measured, and the totals\n"
    "\n"
    "tapescope COMMAND --help says more; tapescope --version names the version.\n"
    "Exit status: 0 ok, 2 wrong usage, 3 a bad profile; record passes on the program's.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"record", cmd_record},
    {"top", cmd_top},
    {"annotate", cmd_annotate},
    {"info", cmd_info},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int unknown(const char *name)
{
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = cli_nearest(name, names, COMMANDS);
    if (nearest)
        cli_message("no command '%s'; did you mean '%s'?", name, nearest);
    else
        cli_message("no command '%s'; try 'tapescope --help'", name);
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        fputs(help, stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        fputs(help, stdout);
        return cli_finish(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("tapescope " TAPESCOPE_VERSION);
        return cli_finish(0);
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
