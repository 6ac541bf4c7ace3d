/* cmd_export.c: `tapescope export`: a profile for other programs. */
#include "cli_export.h"
#include "cli_ranks.h"
#include "read_aside.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct export_args {
    struct cli_args cli;
    struct cli_export_args export;
    const char *output;
    int format;
};

static const char *const views[] = {"line", "function", NULL};

#define AT(member) offsetof(struct export_args, member)
static const struct cli_option options[] = {
    {"format", 'f', CLI_CHOICE, "FORMAT", "the form of the file", AT(format), export_format_names,
     -1},
    {"output", 'o', CLI_TEXT, "FILE", "where to write (default, or '-': standard output)",
     AT(output), NULL, 0},
    {"metric", 'm', CLI_CHOICE, "WHAT",
     "of collapsed, which holds one figure: which; of quickfix: what its lines are sorted by",
     AT(export.metric), export_metric_names, 0},
    {"split-phase", 0, CLI_FLAG, NULL,
     "of collapsed and speedscope: forward and backward are the outermost frames; of callgrind: "
     "the first columns",
     AT(export.split), NULL, 0},
    {"by", 'b', CLI_CHOICE, "WHAT", "what a level of a call path stands for", AT(export.by), views,
     0},
    {"frames", 0, CLI_CHOICE, "WHOSE",
     "whose frames are levels: all has those in libraries of the system, such as what calls main",
     AT(export.frames), cli_frames, 0},
};
#undef AT

const struct cli_command cli_export = {
    .name = "export",
    .summary = "a profile for other programs",
    .operands = "-f FORMAT [PROFILE]",
    .about = "Writes a profile in the form that another program reads. What such a program adds up "
             "is what the reports say.",
    CLI_OPTIONS(options),
    .shared = CLI_FILTER | CLI_MAP | CLI_RANK,
    .notes = "'tapescope help exports' says which program reads which format, and what it shows.\n"
             "PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_export,
};

/* A file that becomes OUT when it is whole. */
struct output {
    const char *path;
    char *aside; /* NULL: standard output */
    FILE *out;
};

static int export_refuse(const struct output *output, int error)
{
    cli_message("export: cannot write %s: %s", output->path, strerror(error));
    return CLI_FAILED;
}

static int open_output(struct output *output, const struct export_args *args)
{
    *output = (struct output){.path = args->output, .out = stdout};
    if (!args->output || strcmp(args->output, "-") == 0) {
        if (!(export_formats[args->format].needs & EXPORT_BINARY) || !isatty(STDOUT_FILENO))
            return CLI_OK;
        cli_message("export: %s is binary, nothing for a terminal: name a file by -o, or redirect "
                    "standard output",
                    export_formats[args->format].name);
        return CLI_USAGE;
    }
    output->out = read_aside_open(args->output, &output->aside);
    return output->out ? CLI_OK : export_refuse(output, errno);
}

/* status: what came before. */
static int close_output(struct output *output, int status)
{
    if (!output->aside)
        return status == CLI_OK ? cli_finish() : status;
    /* Without a profile the file is to go, and the status that was said stays. */
    const int error =
        read_aside_close(output->out, output->aside, output->path, status == CLI_OK ? 0 : EIO);
    return status == CLI_OK && error != 0 ? export_refuse(output, error) : status;
}

static int export_write(struct cli_args *cli, struct cli_profile *opened)
{
    const struct export_args *args = (void *)cli;
    struct output output;
    const bool apart = (export_formats[args->format].needs & EXPORT_RANKS) != 0;
    int status = apart ? cli_open_apart(opened, cli) : CLI_OK;
    cli_ranks_tell_clocks(opened);
    if (status == CLI_OK)
        status = open_output(&output, args);
    if (status != CLI_OK)
        return status;
    return close_output(&output, cli_export_to(output.out, opened->analysis,
                                               (enum export_kind)args->format, cli, &args->export));
}

/* Without a format: which there are, and what for. */
static int export_list(void)
{
    int longest = 0;
    for (int i = 0; i < EXPORT_KINDS; i++)
        if ((int)strlen(export_formats[i].name) > longest)
            longest = (int)strlen(export_formats[i].name);
    cli_message("export: name a format by -f:");
    for (int i = 0; i < EXPORT_KINDS; i++) {
        const struct export_format *format = &export_formats[i];
        fprintf(stderr, "  %-*s  for %s: ", longest, format->name, format->opener);
        for (const char *at = format->has; *at; at++)
            if (*at != '`') /* of the page */
                putc(*at, stderr);
        putc('\n', stderr);
    }
    return CLI_USAGE;
}

static int export_check(struct cli_args *cli)
{
    const struct export_args *args = (void *)cli;
    cli->callers = true;
    if (args->format < 0)
        return export_list();
    const struct export_format *format = &export_formats[args->format];
    if (!args->export.split || (format->needs & (EXPORT_SPLIT | EXPORT_ORDER)) != 0)
        return CLI_OK;
    if (format->needs & EXPORT_PARTS)
        cli_message("export: --split-phase: %s always tells the phases apart", format->name);
    else
        cli_message("export: --split-phase goes with collapsed, speedscope and callgrind");
    return CLI_USAGE;
}

int cmd_export(int argc, char **argv)
{
    struct export_args args = {.format = -1};
    for (int i = 0; argc > 1 && i < EXPORT_KINDS; i++)
        if (strcmp(argv[1], export_formats[i].name) == 0 && access(argv[1], F_OK) != 0) {
            cli_message("export: a format goes behind -f: tapescope export -f %s", argv[1]);
            return CLI_USAGE;
        }
    return cli_run_only(&cli_export, &args.cli, argc, argv, export_check, export_write);
}
