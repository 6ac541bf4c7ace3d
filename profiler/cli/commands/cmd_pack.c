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

static int pack_show(struct cli_args *cli, struct cli_profile *opened)
{
    const struct pack_args *args = (void *)cli;
    const struct read_profile *from = opened->profile;
    const char *to = args->output ? args->output : from->path;
    const int status = cli_pack_profile(opened->analysis, read_profile_stored(from), to);
    return status == CLI_OK ? cli_say_written(cli, cli_pack.name, to, &from, 1) : status;
}

int cmd_pack(int argc, char **argv)
{
    struct pack_args args = {.output = NULL};
    return cli_run_only(&cli_pack, &args.cli, argc, argv, NULL, pack_show);
}
