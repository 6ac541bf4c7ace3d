/* cli_recorded.c: see cli_recorded.h. */
#include "cli_recorded.h"

#include "base_memory.h"
#include "cli_args.h"
#include "cli_ranks.h"
#include "cli_run.h"
#include "cli_written.h"
#include "read_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Moves an old profile out of the way; its new name, to be freed, or NULL: it is still there. */
static char *move_aside(const char *path)
{
    int fd;
    char *aside = read_aside_make(path, &fd);
    if (!aside)
        return NULL;
    close(fd);
    if (rename(path, aside) == 0)
        return aside;
    read_aside_settle(aside, path, errno);
    return NULL;
}

/* Checks that the profile can be written, and moves an old one to *aside or removes it. Returns 0
 * or an errno. */
static int prepare_output(const char *path, char **aside)
{
    struct stat status;
    bool is_old = stat(path, &status) == 0;
    if (is_old && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        return ENOTSUP;
    int fd;
    do
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &status) == 0 ? 0 : errno;
    /* /dev/full refuses even nothing. */
    if (error == 0 && S_ISCHR(status.st_mode) && write(fd, "", 0) < 0)
        error = errno;
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

/* The profiles of an earlier run's ranks, which a launcher's would be taken for. */
struct old_ranks {
    char **path, **aside;
    size_t n;
};

static struct old_ranks move_ranks(const char *path)
{
    struct old_ranks old = {0};
    old.path = cli_ranks_find(path, &old.n);
    old.aside = base_calloc(old.n + 1, sizeof *old.aside);
    for (size_t i = 0; i < old.n; i++)
        old.aside[i] = move_aside(old.path[i]);
    return old;
}

static void settle_ranks(struct old_ranks *old, bool restore)
{
    for (size_t i = 0; i < old->n; i++)
        settle_aside(old->aside[i], old->path[i], restore);
    free(old->aside);
    cli_ranks_free(old->path, old->n);
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

static void pack_ranks(char *const *path, size_t n)
{
    char error[PATH_MAX];
    for (size_t i = 0; i < n; i++) {
        struct read_profile *read = read_profile(path[i], error, sizeof error);
        if (!read)
            continue;
        struct analyze_result *analysis = analyze_profile(read, NULL, NULL);
        cli_pack_profile("record", analysis, path[i], path[i]);
        analyze_free(analysis);
        read_profile_free(read);
    }
}

/* One line on what the ranks left that the program, a launcher, has started. False: nothing. */
static bool report_ranks(const struct cli_recorded *recording, const char *end)
{
    size_t n;
    struct cli_profile sum = {0};
    const struct cli_args all = {.rank = NULL};
    char **of_rank = cli_ranks_find(recording->path, &n);
    if (of_rank && cli_ranks_read(&sum, &all, recording->profile, of_rank, n)) {
        sum.analysis = analyze_profile(sum.profile, NULL, NULL);
        char *summary = cli_summarize(sum.analysis, recording->utf8);
        cli_message("%swrote %s.RANK of %u rank%s: %s", end, recording->profile, sum.profile->ranks,
                    sum.profile->ranks == 1 ? "" : "s", summary);
        free(summary);
        if (recording->pack)
            pack_ranks(of_rank, n);
    }
    cli_ranks_free(of_rank, n);
    const bool any = sum.profile != NULL;
    cli_close(&sum);
    return any;
}

/* One line on what the program left, and one more if it could not be packed. Returns whether that
 * is a profile. */
static bool report_end(const struct cli_recorded *recording, int status)
{
    const char *program = recording->argv[0], *profile = recording->profile;
    const char *path = recording->path;
    char end[PATH_MAX], error[PATH_MAX];
    struct stat file;
    describe_end(end, sizeof end, program, status);
    if (stat(path, &file) != 0) {
        if (errno != ENOENT)
            cli_message("%s%s: %s", end, path, strerror(errno));
        else if (report_ranks(recording, end))
            return true;
        else if (*end)
            cli_message("%sit wrote no profile", end);
        else
            cli_message("%s wrote no profile: it is not linked with libtapescope, or has said why",
                        program);
        return false;
    }
    if (!S_ISREG(file.st_mode)) { /* a device: not to be read */
        cli_message("%swrote to %s", end, profile);
        return true;
    }
    struct read_profile *read = read_profile(path, error, sizeof error);
    if (!read) {
        cli_message("%s%s", end, error);
        return false;
    }
    struct analyze_result *analysis = analyze_profile(read, NULL, NULL);
    char *summary = cli_summarize(analysis, recording->utf8);
    if (read->complete)
        cli_message("%swrote %s: %s", end, profile, summary);
    else
        cli_message("%s%s holds what was measured until then: %s", end, profile, summary);
    if (recording->pack)
        cli_pack_profile("record", analysis, path, path);
    free(summary);
    analyze_free(analysis);
    read_profile_free(read);
    return true;
}

int cli_run_recorded(struct cli_recorded *recording)
{
    char **argv = recording->argv;
    const char *profile = recording->profile, *path = recording->path;
    char *aside = NULL;
    int error = prepare_output(path, &aside);
    if (error != 0) {
        cli_message("cannot write %s: %s", profile, strerror(error));
        return error == ENOSPC ? CLI_NO_PROFILE : CLI_USAGE;
    }
    struct old_ranks old = move_ranks(path);
    error = recording->start ? recording->start(recording->payload, argv, path)
                             : cli_start_program(argv, path);
    settle_aside(aside, path, error != 0);
    settle_ranks(&old, error != 0);
    if (error != 0) {
        cli_message("cannot run %s: %s", argv[0], strerror(error));
        return error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    }
    int status = recording->wait ? recording->wait(recording->payload) : cli_wait_program();
    recording->left = report_end(recording, status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
