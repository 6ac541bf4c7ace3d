/* cmd_annotate.c: `tapescope annotate`: a source file with the cost of each line beside it. */
#include "cli_tapes.h"

#include "base_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct annotate_args {
    struct cli_args cli;
    size_t context;
    bool write;
    const char *folder;
};

static const struct cli_option options[] = {
    {"context", 0, CLI_COUNT, "N", "only lines with cost, and N lines around each",
     offsetof(struct annotate_args, context), NULL, 0},
    {"write", 0, CLI_FLAG, NULL,
     "write FILE.c" CLI_TAPE_SUFFIX " beside every source of the profile instead",
     offsetof(struct annotate_args, write), NULL, 0},
    {"output-dir", 0, CLI_TEXT, "DIR", "with --write: write into this folder",
     offsetof(struct annotate_args, folder), NULL, 0},
};

const struct cli_command cli_annotate = {
    .name = "annotate",
    .summary = "a source file with the cost of each line",
    .operands =
        "FILE.c[:FUNCTION] [PROFILE]\n       tapescope annotate --write [OPTIONS] [PROFILE]",
    .about = "The source with what each line cost; below it the totals, and what was spent "
             "elsewhere.",
    CLI_OPTIONS(options),
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_MAP,
    .notes =
        "share: part of all forward and backward time. b/f: backward over forward time. Narrow "
        "terminals show fewer columns, the source is never cut.\nthrough: forward and backward "
        "time "
        "of the ops that functions called on the line recorded; thr.tape: their bytes. Both stand "
        "with those ops' own lines as well, so they are in no sum.\nkept by: the op whose pullback "
        "needs the values that the line produced; + for more.\n"
        "FILE may be the end of a path. PROFILE defaults to " CLI_DEFAULT_PROFILE ".",
    .run = cmd_annotate,
};

enum { MAX_NAMED = 16 };

/* What the user named: a file of the profile and perhaps a function. */
struct annotate_target {
    const char *file;
    char *function; /* within `text`, or NULL */
    char *text;
};

/* The files of the profile that the user's spelling may mean. */
static size_t annotate_match(const struct analyze_result *analysis, const char *name,
                             const char **file)
{
    char *real = realpath(name, NULL);
    if (!real && errno == ENOMEM)
        base_no_memory();
    size_t n = real ? analyze_files(analysis, real, file, MAX_NAMED) : 0;
    free(real);
    while (strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0)
        name = strchr(name, '/') + 1;
    return n > 0 || !*name ? n : analyze_files(analysis, name, file, MAX_NAMED);
}

static void list_files(const char **file, size_t n)
{
    for (size_t i = 0; i < n && i < MAX_NAMED; i++)
        cli_message("  %s", file[i]);
    if (n > MAX_NAMED)
        cli_message("  and %zu more", n - MAX_NAMED);
}

/* Finds what the user named; says so if it is nothing or several things. */
static int find_target(struct annotate_target *target, const struct analyze_result *analysis,
                       const char *name)
{
    const char *file[MAX_NAMED];
    *target = (struct annotate_target){.text = base_strdup(name)};
    size_t n = annotate_match(analysis, target->text, file);
    /* Names of functions may hold colons, and so may paths: the first split that fits counts. */
    char *colon = n == 0 ? strchr(target->text, ':') : NULL;
    for (; n == 0 && colon; colon = strchr(colon + 1, ':')) {
        *colon = '\0';
        target->function = colon + 1;
        n = annotate_match(analysis, target->text, file);
        if (n == 0)
            *colon = ':';
    }
    if (n == 1) {
        target->file = file[0];
        return CLI_OK;
    }
    if (n > 1) {
        cli_message("annotate: '%s' may be any of these; name more of the path:", target->text);
    } else {
        target->text[strcspn(target->text, ":")] = '\0';
        n = analyze_files(analysis, NULL, file, MAX_NAMED);
        cli_message("annotate: the profile has no file '%s'%s", target->text,
                    n > 0 ? "; it has:" : ", nor any other: compile with -g to see source lines");
    }
    list_files(file, n);
    return CLI_USAGE;
}

static bool has_function(const struct analyze_result *analysis,
                         const struct annotate_target *target)
{
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->file == target->file && line->function &&
            strcmp(line->function, target->function) == 0)
            return true;
    }
    return false;
}

/* The source beside its costs, on standard output. */
static int annotate_show(struct cli_profile *opened, const struct report_style *style,
                         const char *name)
{
    struct annotate_target target;
    int status = find_target(&target, opened->analysis, name);
    if (status == CLI_OK && target.function && !has_function(opened->analysis, &target)) {
        cli_message("annotate: the profile has no function '%s' in %s", target.function,
                    target.file);
        status = CLI_USAGE;
    }
    if (status == CLI_OK) {
        cli_check_age(opened->profile, target.file);
        const int unread = report_annotate(opened->analysis, target.file, target.function, style);
        status = cli_finish();
        if (status == CLI_OK && unread != 0)
            cli_message("%s: %s: showing line numbers without text", target.file, strerror(unread));
    }
    free(target.text);
    return status;
}

int cmd_annotate(int argc, char **argv)
{
    struct annotate_args args = {.context = SIZE_MAX};
    struct report_style *style = &args.cli.style;
    int status = cli_parse(&cli_annotate, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (args.context < 1u << 30)
        style->around = (unsigned)args.context + 1;
    int n = argc - optind, files = args.write ? 0 : 1;
    if (n < files || n > files + 1) {
        cli_message(args.write ? "annotate: --write takes a profile, no source files"
                               : "annotate: name one source file, and perhaps a profile");
        return CLI_USAGE;
    }
    struct cli_profile opened;
    status = cli_open(&opened, &args.cli, argv[optind + files]);
    if (status != CLI_OK)
        return status;
    analyze_call_through(opened.analysis);
    status = args.write ? cli_write_tapes(&opened, style, args.folder)
                        : annotate_show(&opened, style, argv[optind]);
    cli_close(&opened);
    return status;
}
