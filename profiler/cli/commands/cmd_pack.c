/* cmd_pack.c: `tapescope pack`: a profile to keep. */
#include "cli_pack.h"
#include "read_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

int cli_pack_profile(const struct analyze_result *analysis, const char *from, const char *to)
{
    size_t n;
    char error[4096];
    struct read_symbol *symbol = analyze_symbols(analysis, &n);
    int failed = read_pack(from, to, symbol, n, error, sizeof error);
    free(symbol);
    if (failed)
        cli_message("pack: %s", error);
    return failed ? CLI_FAILED : CLI_OK;
}

int cli_say_written(const struct cli_args *args, const char *command, const char *path,
                    const struct read_profile *const *from, size_t n)
{
    char error[4096];
    struct stat file;
    if (!args->style.json)
        return CLI_OK;
    struct read_profile *written = read_profile(path, error, sizeof error);
    if (!written || stat(path, &file) != 0) {
        cli_message("%s: %s", command, written ? strerror(errno) : error);
        read_profile_free(written);
        return CLI_FAILED;
    }
    report_written(written, (uint64_t)file.st_size, command, from, n, &args->style);
    read_profile_free(written);
    return cli_finish();
}

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
