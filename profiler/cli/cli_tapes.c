/* cli_tapes.c: see cli_tapes.h.
 *
 * Invariant: a .tape file appears whole, under its name, or not at all; only files that begin with
 * the mark are ever replaced.
 */
#include "cli_tapes.h"

#include "base_memory.h"
#include "read_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char mark[] = "# tapescope annotate: ";

void cli_check_age(const struct read_profile *profile, const char *file)
{
    struct stat source, program;
    if (stat(file, &source) != 0 || stat(profile->program, &program) != 0)
        return;
    const struct timespec *a = &source.st_mtim, *b = &program.st_mtim;
    if (a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec))
        cli_message("%s is newer than the program: its lines may have moved", file);
}

/* What is at path may be replaced: nothing, or a plain file that begins with the mark. */
static bool tapes_is_ours(const char *path)
{
    struct stat status;
    char head[sizeof mark - 1];
    if (lstat(path, &status) != 0)
        return errno == ENOENT;
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
        return base_asprintf("%s" CLI_TAPE_SUFFIX, file);
    char *path = base_asprintf("%s/%s" CLI_TAPE_SUFFIX, folder, report_short_path(analysis, file));
    for (char *at = path + strlen(folder) + 1; *at; at++)
        if (*at == '/')
            *at = '#';
    return path;
}

/* Writes one report to an open stream; 0, or an error number. */
static int tapes_write_report(const struct analyze_result *analysis, const char *file, FILE *out,
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
static int tapes_replace(const struct analyze_result *analysis, const char *file, const char *path,
                         const struct report_style *style)
{
    char *aside;
    FILE *out = read_aside_open(path, &aside);
    if (!out)
        return errno;
    return read_aside_close(out, aside, path, tapes_write_report(analysis, file, out, style));
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
    bool refused = !tapes_is_ours(path);
    if (!refused) {
        cli_check_age(opened->profile, file);
        error = tapes_replace(opened->analysis, file, path, style);
    }
    if (refused)
        cli_message("%s is no file of 'annotate --write': it stays as it is", path);
    else if (error != 0)
        cli_message("%s: %s", path, strerror(error));
    else
        fprintf(style->out, "%s\n", path);
    free(path);
    return refused || error ? CLI_FAILED : CLI_OK;
}

int cli_write_tapes(const struct cli_profile *opened, const struct report_style *style,
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
