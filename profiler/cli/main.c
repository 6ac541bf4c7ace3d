/* main.c: the program `tapescope`: finds the command and runs it.
 * CLI_STATUSES of cli.h says what it ends with.
 */
#include "cli_args.h"

#include "cli_memory.h"

#include <locale.h>
#include <string.h>

#define X(NAME, number, text) " " #number " " text ";"
static const char statuses[] =
    "Exit status:" CLI_STATUSES(X) " and of record and stat that of a program that failed.";
#undef X

static void put_help(FILE *out)
{
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    unsigned width = cli_width() < 80 ? cli_width() : 80;
    fputs("Usage: tapescope COMMAND [OPTIONS] ...\n", out);
    cli_put_wrapped(out,
                    "What each source line of a program that uses libtapescope costs, forward and "
                    "backward.\n",
                    0, 0, width);
    for (size_t i = 0; i < n; i++) {
        int column = fprintf(out, "  %-10s", command[i]->name);
        cli_put_wrapped(out, command[i]->summary, (unsigned)column, 13, width);
    }
    putc('\n', out);
    cli_put_wrapped(out,
                    "tapescope COMMAND --help says more, as does tapescope(1), which 'tapescope "
                    "help --man' prints; tapescope --version names the version.",
                    0, 0, width);
    cli_put_wrapped(out, statuses, 0, 0, width);
}

static int main_unknown(const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST];
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    for (size_t i = 0; i < n && i < MOST; i++)
        names[i] = command[i]->name;
    const char *nearest = cli_nearest(name, names, n < MOST ? (int)n : MOST);
    if (nearest)
        cli_message("no command '%s'; did you mean '%s'?", name, nearest);
    else
        cli_message("no command '%s'; try 'tapescope --help'", name);
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    cli_end_without_memory();
    if (argc < 2) {
        put_help(stderr);
        return CLI_USAGE;
    }
    if (argc == 3 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--man") == 0) {
        cli_put_manual(stdout, TAPESCOPE_VERSION);
        return cli_finish();
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (argc == 2 && strcmp(argv[1], "help") == 0)) {
        put_help(stdout);
        return cli_finish();
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("tapescope " TAPESCOPE_VERSION);
        return cli_finish();
    }
    size_t n;
    const struct cli_command *const *command = cli_commands(&n);
    bool is_help = strcmp(argv[1], "help") == 0; /* "help top" is "top --help" */
    for (size_t i = 0; i < n; i++) {
        if (strcmp(argv[1 + is_help], command[i]->name) != 0)
            continue;
        if (!is_help)
            return command[i]->run(argc - 1, argv + 1);
        cli_put_help(stdout, command[i], cli_width());
        return cli_finish();
    }
    return main_unknown(argv[1 + is_help]);
}
