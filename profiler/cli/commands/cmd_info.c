/* cmd_info.c: `tapescope info`: what was measured and when, and the totals. */
#include "cli_args.h"

const struct cli_command cli_info = {
    .name = "info",
    .summary = "what was measured, and the totals",
    .operands = "[PROFILE]",
    .about = "The program that was measured, when, and the totals of all its tapes.",
    .shared = CLI_EXACT | CLI_JSON,
    .notes = "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_info,
};

int cmd_info(int argc, char **argv)
{
    struct cli_args args;
    int status = cli_parse(&cli_info, &args, argc, argv);
    if (status >= 0)
        return status;
    struct cli_profile opened;
    status = cli_open_only(&opened, &args, argc, argv);
    if (status != CLI_OK)
        return status;
    report_info(opened.analysis, &args.style);
    cli_close(&opened);
    return cli_finish();
}
