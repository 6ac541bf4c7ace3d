/* cmd_pack.c: `tapescope pack`: a profile to keep. */
#include "cli_written.h"

struct pack_args {
    struct cli_args cli;
    const char *output;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "FILE", "where to write (default: in the place of PROFILE)",
     offsetof(struct pack_args, output), NULL, 0},
};

const struct cli_command cli_pack = {
    .name = "pack",
    .summary = "compress a profile and put its symbols in",
    .operands = "[PROFILE]",
    .about = "Compresses a profile and puts into it where its sites are, so that it can be read "
             "after the program was built again or on another machine: a baseline to keep.",
    CLI_OPTIONS(options),
    .shared = CLI_JSON,
    .notes = "Every command reads packed profiles. PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_pack,
};

int cmd_pack(int argc, char **argv)
{
    struct pack_args args = {.output = NULL};
    int status = cli_parse(&cli_pack, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    struct cli_profile opened;
    status = cli_open_only(&opened, &args.cli, argc, argv);
    if (status != CLI_OK)
        return status;
    const char *path = opened.profile->path;
    const char *to = args.output ? args.output : path;
    status = cli_pack_profile(opened.analysis, path, to);
    if (status == CLI_OK) {
        const struct read_profile *from = opened.profile;
        status = cli_say_written(&args.cli, argv[0], to, &from, 1);
    }
    cli_close(&opened);
    return status;
}
