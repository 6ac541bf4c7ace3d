/* cmd_info.c: `tapescope info`: what was measured and when, and the totals.
 *
 * May include: cli.h and what it stands on.
 */
#include "cli_args.h"

static const char help[] = "Usage: tapescope info [--exact] [PROFILE]\n"
                           "The program that was measured, when, and the totals of all its tapes.\n"
                           "\n"
                           "  --exact      plain integers: ns and bytes\n"
                           "\n"
                           "PROFILE defaults to " CLI_DEFAULT_PROFILE ".\n";

int cmd_info(int argc, char **argv)
{
    struct cli_args args;
    int status = cli_parse(&args, argc, argv, "e", help);
    if (status >= 0)
        return status;
    if (argc - optind > 1) {
        cli_message("info: one profile at a time, not also '%s'", argv[optind + 1]);
        return CLI_USAGE;
    }
    struct cli_profile opened;
    status = cli_open(&opened, argv[optind]);
    if (status != CLI_OK)
        return status;
    status = report_info(opened.analysis, &args.style);
    cli_close(&opened);
    return cli_finish(status);
}
