/* main.c: the program `tapescope`: finds the command and runs it.
 * CLI_STATUSES of cli.h says what it ends with.
 */
#include "cli_args.h"

#include "cli_memory.h"

#include <locale.h>
#include <string.h>

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    cli_end_without_memory();
    if (argc < 2) {
        cli_put_overview(stderr, cli_width());
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_put_overview(stdout, cli_width());
        return cli_finish();
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("tapescope " TAPESCOPE_VERSION);
        return cli_finish();
    }
    const struct cli_command *command = cli_find_command(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : CLI_USAGE;
}
