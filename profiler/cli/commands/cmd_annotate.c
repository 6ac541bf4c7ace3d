/* cmd_annotate.c: `tapescope annotate`: a source file with the cost of each line beside it. */
#include "base_memory.h"
#include "cli_args.h"
#include "cli_pager.h"
#include "cli_ranks.h"
#include "read_aside.h"
#include "report_source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAPE_SUFFIX ".tape"

struct annotate_args {
    struct cli_args cli;
    size_t context;
    bool write, ranks;
    const char *folder;
};

static const struct cli_option options[] = {
    {"context", 0, CLI_COUNT, "N", "only lines with cost, and N lines around each",
     offsetof(struct annotate_args, context), NULL, 0},
    {"ranks", 0, CLI_FLAG, NULL,
     "a column for each rank of MPI, of its time, and the most over the mean",
     offsetof(struct annotate_args, ranks), NULL, 0},
    {"write", 0, CLI_FLAG, NULL,
     "write FILE.c" TAPE_SUFFIX " beside every source of the profile instead",
     offsetof(struct annotate_args, write), NULL, 0},
    {"output", 'o', CLI_TEXT, "DIR", "with --write: write into this folder",
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
    .shared = CLI_EXACT | CLI_JSON | CLI_COLOR | CLI_FILTER | CLI_MAP | CLI_RANK,
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

/* ---- the .tape files of --write ----
 *
 * Invariant: a .tape file appears whole, under its name, or not at all; only files that begin with
 * the mark are ever replaced. */

static const char mark[] = "# tapescope annotate: ";

static void check_age(const struct read_profile *profile, const char *file)
{
    if (report_source_text_is_newer(file, profile))
        cli_message("%s is newer than the program: its lines may have moved", file);
}

/* What is at path may be replaced: nothing, or a plain file that begins with the mark. */
static bool tape_is_ours(const char *path)
{
    struct stat status;
    char head[sizeof mark - 1];
    if (lstat(path, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR; /* else it cannot be written, which is said */
    if (!S_ISREG(status.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, head, sizeof head);
    close(fd);
    return got == (ssize_t)sizeof head && memcmp(head, mark, sizeof head) == 0;
}

/* Where the source's costs go; to be freed. Two sources of one name in a folder get more of their
 * paths, with "#" for "/". */
static char *tape_path(const struct analyze_result *analysis, const char *file, const char *folder)
{
    if (!folder)
        return base_asprintf("%s" TAPE_SUFFIX, file);
    char *path = base_asprintf("%s/%s" TAPE_SUFFIX, folder, report_short_path(analysis, file));
    for (char *at = path + strlen(folder) + 1; *at; at++)
        if (*at == '/')
            *at = '#';
    return path;
}

/* Writes one report to an open stream; 0, or an error number. */
static int tape_write_report(const struct analyze_result *analysis, const char *file, FILE *out,
                             const struct report_style *style)
{
    struct report_style to_file = *style;
    to_file.out = out;
    to_file.color = false;
    to_file.width = 0;
    to_file.json = false;
    fprintf(out, "%s%s, from %s\n", mark, file, analysis->profile->path);
    return report_annotate(analysis, file, NULL, &to_file);
}

/* The file at `path`, by way of a new one. Returns 0 or an error number. */
static int tape_replace(const struct analyze_result *analysis, const char *file, const char *path,
                        const struct report_style *style)
{
    char *aside;
    FILE *out = read_aside_open(path, &aside);
    if (!out)
        return errno;
    return read_aside_close(out, aside, path, tape_write_report(analysis, file, out, style));
}

static int write_tape(const struct cli_profile *opened, const char *file,
                      const struct report_style *style, const char *folder)
{
    if (access(file, R_OK) != 0) {
        cli_message("%s: %s: nothing is written for it", file, strerror(errno));
        return CLI_OK;
    }
    char *path = tape_path(opened->analysis, file, folder);
    int error = 0;
    bool refused = !tape_is_ours(path);
    if (!refused) {
        check_age(opened->profile, file);
        error = tape_replace(opened->analysis, file, path, style);
    }
    if (refused)
        cli_message("%s is no file of 'annotate --write': it stays as it is", path);
    else if (error != 0)
        cli_message("annotate: cannot write %s: %s", path, strerror(error));
    else
        fprintf(style->out, "%s\n", path);
    free(path);
    return refused || error ? CLI_FAILED : CLI_OK;
}

/* Writes SOURCE.tape for every source of the profile that can be read, beside it, or into `folder`
 * if it is not NULL. A file that is there and was not written by this command stays as it is.
 * Returns an exit status; what is not written is said. */
static int write_tapes(const struct cli_profile *opened, const struct report_style *style,
                       const char *folder)
{
    const struct analyze_result *analysis = opened->analysis;
    size_t n = analyze_files(analysis, NULL, NULL, 0);
    const char **file = base_calloc(n + 1, sizeof *file);
    analyze_files(analysis, NULL, file, n);
    int status = CLI_OK;
    for (size_t i = 0; i < n; i++) {
        int wrote = write_tape(opened, file[i], style, folder);
        status = wrote != CLI_OK ? wrote : status;
    }
    free(file);
    if (n == 0)
        cli_message("annotate: the profile has no sources: compile with -g to see source lines");
    int finished = cli_finish();
    return status != CLI_OK ? status : finished;
}

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

static void list_names(const char **name, size_t n)
{
    for (size_t i = 0; i < n && i < MAX_NAMED; i++)
        cli_message("  %s", name[i]);
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
    list_names(file, n);
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

/* Names the function that was probably meant, or those that the file has. */
static void annotate_refuse_function(const struct analyze_result *analysis,
                                     const struct annotate_target *target)
{
    const char *name[MAX_NAMED];
    size_t n = 0;
    for (size_t i = 0; i < analysis->n_lines && n < MAX_NAMED; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->file == target->file && line->function)
            n = cli_name_add(name, n, line->function);
    }
    const char *nearest = cli_nearest(target->function, name, (int)n);
    cli_message("annotate: the profile has no function '%s' in %s%s%s%s", target->function,
                target->file,
                nearest ? "; did you mean '"
                : n > 0 ? "; it has:"
                        : "",
                nearest ? nearest : "", nearest ? "'?" : "");
    if (!nearest)
        list_names(name, n);
}

/* The source beside its costs, on standard output. */
static int annotate_show(struct cli_profile *opened, const struct report_style *style,
                         const char *name)
{
    struct annotate_target target;
    int status = find_target(&target, opened->analysis, name);
    if (status == CLI_OK && target.function && !has_function(opened->analysis, &target)) {
        annotate_refuse_function(opened->analysis, &target);
        status = CLI_USAGE;
    }
    if (status == CLI_OK) {
        check_age(opened->profile, target.file);
        cli_pager_begin();
        const int unread = report_annotate(opened->analysis, target.file, target.function, style);
        status = cli_finish();
        if (status == CLI_OK && unread != 0)
            cli_message("%s: %s: showing line numbers without text", target.file, strerror(unread));
    }
    free(target.text);
    return status;
}

static bool annotate_is_profile(const char *path)
{
    char error[4096];
    struct read_profile *profile = read_profile(path, error, sizeof error);
    read_profile_free(profile);
    return profile != NULL;
}

/* The profile stands where the source belongs: which sources it has. */
static int annotate_ask_source(const struct cli_args *args, const char *path)
{
    struct cli_profile opened;
    const char *file[MAX_NAMED];
    const int status = cli_open(&opened, args, path);
    if (status != CLI_OK)
        return status;
    const size_t n = analyze_files(opened.analysis, NULL, file, MAX_NAMED);
    if (n == 0)
        cli_message("annotate: %s has no sources: compile with -g to see source lines", path);
    else
        cli_message("annotate: the source is missing, as in: tapescope annotate %s %s; the profile "
                    "has:",
                    report_short_path(opened.analysis, file[0]), path);
    list_names(file, n);
    cli_close(&opened);
    return CLI_USAGE;
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
    if (n == 0 && files == 1 && access(CLI_DEFAULT_PROFILE, R_OK) == 0)
        return annotate_ask_source(&args.cli, CLI_DEFAULT_PROFILE);
    if (n < files || n > files + 1) {
        cli_message(args.write ? "annotate: --write takes a profile, no source files"
                               : "annotate: name one source file, and perhaps a profile");
        return CLI_USAGE;
    }
    if (n == 1 && files == 1 && annotate_is_profile(argv[optind]))
        return annotate_ask_source(&args.cli, argv[optind]);
    struct cli_profile opened;
    status = cli_open(&opened, &args.cli, argv[optind + files]);
    if (status != CLI_OK && n > files && files == 1 && annotate_is_profile(argv[optind]))
        return annotate_ask_source(&args.cli, argv[optind]);
    if (status != CLI_OK)
        return status;
    analyze_call_through(opened.analysis);
    if (args.ranks)
        status = cli_ranks_apart("annotate", &opened, &args.cli);
    if (status == CLI_OK)
        status = args.write ? write_tapes(&opened, style, args.folder)
                            : annotate_show(&opened, style, argv[optind]);
    cli_close(&opened);
    return status;
}
