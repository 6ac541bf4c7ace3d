/* cmd_record.c: `tapescope record`: runs a program that writes its profile, and says what came
 * of it.
 *
 * May include: cli.h and what it stands on.
 * Invariant: the exit status is the program's (128 + n after signal n) unless it never started;
 * a profile that was there before is never taken for the program's, and stays if that cannot be
 * run.
 */
#include "cli_args.h"
#include "cli_pack.h"
#include "cli_recording.h"
#include "cli_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct record_args {
    struct cli_args cli;
    const char *output;
    bool pack;
    struct cli_recording recording;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "PROFILE", "where to write (default " CLI_DEFAULT_PROFILE ")",
     offsetof(struct record_args, output), NULL, 0},
    {"pack", 0, CLI_FLAG, NULL, "at the end, compress it and put the symbols in (tapescope pack)",
     offsetof(struct record_args, pack), NULL, 0},
    CLI_RECORDING_OPTIONS(offsetof(struct record_args, recording)),
    {"warmup", 0, CLI_COUNT, "K", "steps that are not measured, before the first that is",
     offsetof(struct record_args, recording.warmup), NULL, 0},
};

const struct cli_command cli_record = {
    .name = "record",
    .summary = "run a program and write its profile",
    .operands = "[--] PROGRAM [ARGUMENTS]...",
    .about = "Runs a program that uses libtapescope and writes what its tapes cost to PROFILE. The "
             "program need not know.",
    CLI_OPTIONS(options),
    .notes = "The exit status is the program's, or 128 + n if signal n ended it; 126 or 127: it "
             "could not be run.",
    .runs_program = true,
    .run = cmd_record,
};

/* Moves an old profile out of the way; its new name, to be freed, or NULL: it is still there. */
static char *move_aside(const char *path)
{
    char *aside = NULL;
    if (asprintf(&aside, "%s.XXXXXX", path) < 0)
        return NULL;
    int fd = mkstemp(aside);
    if (fd >= 0) {
        close(fd);
        if (rename(path, aside) == 0)
            return aside;
        unlink(aside);
    }
    free(aside);
    return NULL;
}

/* Checks that the profile can be written, and moves an old one to *aside or removes it. Returns 0
 * or an errno. */
static int prepare_output(const char *path, char **aside)
{
    struct stat status;
    bool is_old = stat(path, &status) == 0;
    int fd;
    do
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &status) == 0 ? 0 : errno;
    close(fd);
    if (error != 0 || !S_ISREG(status.st_mode))
        return error;
    *aside = is_old ? move_aside(path) : NULL;
    return *aside || unlink(path) == 0 ? 0 : errno;
}

/* The program could not be run: the old profile comes back. It could: that is no longer needed. */
static void settle_aside(char *aside, const char *path, bool restore)
{
    if (!aside)
        return;
    if (!restore)
        unlink(aside);
    else if (rename(aside, path) != 0)
        cli_message("the profile that was there before is now %s", aside);
    free(aside);
}

/* What became of the program, for the message: "" after an ordinary end. */
static void describe_end(char *buf, size_t n, const char *program, int status)
{
    buf[0] = '\0';
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        if (name)
            snprintf(buf, n, "%s was killed by SIG%s; ", program, name);
        else
            snprintf(buf, n, "%s was killed by signal %d; ", program, WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(buf, n, "%s exited with status %d; ", program, WEXITSTATUS(status));
    }
}

/* Text that report_summary writes. */
static char *summarize(const struct prof_analysis *analysis, bool utf8)
{
    char *text = NULL;
    size_t n = 0;
    struct report_style style = {.out = open_memstream(&text, &n), .utf8 = utf8};
    if (!style.out)
        return NULL;
    report_summary(analysis, &style);
    fclose(style.out);
    return text;
}

/* What record() was asked for. */
struct recording {
    char **argv;
    const char *profile; /* as the user wrote it */
    const char *path;    /* absolute */
    bool pack, utf8;
};

/* One line on what the program left, and one more if it could not be packed. */
static void report_end(const struct recording *recording, int status)
{
    const char *program = recording->argv[0], *profile = recording->profile;
    const char *path = recording->path;
    char end[PATH_MAX], error[PATH_MAX];
    struct stat file;
    describe_end(end, sizeof end, program, status);
    if (stat(path, &file) != 0) {
        if (errno != ENOENT)
            cli_message("%s%s: %s", end, path, strerror(errno));
        else if (*end)
            cli_message("%sit wrote no profile", end);
        else
            cli_message("%s wrote no profile: it is not linked with libtapescope, or has said why",
                        program);
        return;
    }
    if (!S_ISREG(file.st_mode)) { /* a device or a pipe: not to be read */
        cli_message("%swrote to %s", end, profile);
        return;
    }
    struct prof_profile *read = prof_profile_read(path, error, sizeof error);
    if (!read) {
        cli_message("%s%s", end, error);
        return;
    }
    struct prof_analysis *analysis = prof_analyze(read, NULL, NULL);
    char *summary = analysis ? summarize(analysis, recording->utf8) : NULL;
    if (!summary)
        cli_message("%swrote %s, which cannot be summed up: out of memory", end, profile);
    else if (read->complete)
        cli_message("%swrote %s: %s", end, profile, summary);
    else
        cli_message("%s%s holds what was measured until then: %s", end, profile, summary);
    if (analysis && recording->pack)
        cli_pack_profile(analysis, path, path);
    free(summary);
    prof_analysis_free(analysis);
    prof_profile_free(read);
}

static int record(const struct recording *recording)
{
    char **argv = recording->argv;
    const char *profile = recording->profile, *path = recording->path;
    char *aside = NULL;
    int error = prepare_output(path, &aside);
    if (error != 0) {
        cli_message("cannot write %s: %s", profile, strerror(error));
        return CLI_USAGE;
    }
    error = cli_start_program(argv, path);
    settle_aside(aside, path, error != 0);
    if (error != 0) {
        cli_message("cannot run %s: %s", argv[0], strerror(error));
        return error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    }
    int status = cli_wait_program();
    report_end(recording, status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int cmd_record(int argc, char **argv)
{
    struct record_args args = {.output = CLI_DEFAULT_PROFILE, .recording = CLI_RECORDING_DEFAULTS};
    int status = cli_parse(&cli_record, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    if (optind == argc) {
        cli_message("record: name the program to run, as in: tapescope record -- ./program");
        return CLI_USAGE;
    }
    char *path = cli_absolute_path(args.output);
    if (!path) {
        cli_message("cannot write %s: %s", args.output, strerror(errno));
        return CLI_FAILED;
    }
    if (!cli_export_recording(&args.recording)) {
        cli_message("cannot run %s: %s", argv[optind], strerror(ENOMEM));
        free(path);
        return CLI_CANNOT_EXECUTE;
    }
    struct recording recording = {.argv = argv + optind,
                                  .profile = args.output,
                                  .path = path,
                                  .pack = args.pack,
                                  .utf8 = args.cli.style.utf8};
    status = record(&recording);
    free(path);
    return status;
}
