/* cmd_info.c: `tapescope info`: what was measured and when, and the totals. */
#include "cli_args.h"

const struct cli_command cli_info = {
    .name = "info",
    .summary = "what was measured, and the totals",
    .operands = "[PROFILE]",
    .about = "The program that was measured, when, and the totals of all its tapes.",
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_RANK,
    .notes = "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_info,
};

static int info_show(struct cli_args *args, struct cli_profile *opened)
{
    report_info(opened->analysis, &args->style);
    return cli_finish();
}

int cmd_info(int argc, char **argv)
{
    struct cli_args args;
    return cli_run_only(&cli_info, &args, argc, argv, NULL, info_show);
}
