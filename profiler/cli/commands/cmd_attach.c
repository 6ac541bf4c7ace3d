/* cmd_attach.c: `tapescope attach`: a profile of a program that runs.
 *
 * Invariant: no signal is sent to a process unless it has a thread that waits for us and handles
 * that signal; whoever does not is never ended by us. What is said how: attach.h.
 */
#include "attach.h"
#include "cli_args.h"
#include "cli_run.h"
#include "cli_written.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 30000, STEP_MS = 20, TEXT_ROOM = 1024 };

struct attach_args {
    struct cli_args cli;
    const char *output;
    double seconds;
};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "PROFILE", "where to write (default " CLI_DEFAULT_PROFILE ")",
     offsetof(struct attach_args, output), NULL, 0},
    {"seconds", 0, CLI_NUMBER, "N", "how long to measure (default 10); Ctrl-C ends it before",
     offsetof(struct attach_args, seconds), NULL, 0},
};

const struct cli_command cli_attach = {
    .name = "attach",
    .summary = "profile a program that runs, for a while",
    .operands = "PID",
    .about = "Has a program that runs write a profile for some seconds. It must have been started "
             "with TAPESCOPE_OPTIONS=attach=usr2 (or usr1) in its environment: then it waits for "
             "this signal, and costs nothing until it comes.",
    CLI_OPTIONS(options),
    .shared = CLI_RECORDING,
    .notes = "A process that does not wait gets no signal. The program goes on when the profile "
             "ends; its user must be the same as ours.",
    .run = cmd_attach,
};

/* A process that is asked; `fd` refers to it for good (-1: the system has none of that kind). */
struct attach_target {
    long pid;
    int fd, signal;
    char folder[ATTACH_NAME_ROOM];
};

static volatile sig_atomic_t interrupted;

static void attach_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* The signal that a thread of the process waits for; 0: none does. */
static int find_signal(long pid)
{
    char path[PATH_MAX], name[32] = "";
    int found = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *list = opendir(path);
    for (const struct dirent *entry; list && !found && (entry = readdir(list)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%ld/task/%s/comm", pid, entry->d_name);
        FILE *comm = fopen(path, "re");
        if (comm && fgets(name, sizeof name, comm))
            found = strcmp(name, ATTACH_THREAD_USR1 "\n") == 0   ? SIGUSR1
                    : strcmp(name, ATTACH_THREAD_USR2 "\n") == 0 ? SIGUSR2
                                                                 : 0;
        if (comm)
            fclose(comm);
    }
    if (list)
        closedir(list);
    return found;
}

/* Whether the process handles the signal, and who its user is. */
static bool read_status(long pid, int number, bool *handled, unsigned long *user)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *status = fopen(path, "re");
    if (!status)
        return false;
    *handled = false;
    *user = ULONG_MAX;
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "SigCgt:", 7) == 0)
            *handled = strtoull(line + 7, NULL, 16) >> (number - 1) & 1;
        if (strncmp(line, "Uid:", 4) == 0) {
            char *effective;
            (void)strtoul(line + 4, &effective, 10);
            *user = strtoul(effective, NULL, 10);
        }
    }
    fclose(status);
    return true;
}

/* Whether the process may have the signal; says why not. */
static bool check_target(struct attach_target *target)
{
    bool handled;
    unsigned long user;
    target->signal = find_signal(target->pid);
    if (!read_status(target->pid, target->signal ? target->signal : SIGUSR1, &handled, &user))
        cli_message("attach: there is no process %ld", target->pid);
    else if (user != geteuid())
        cli_message("attach: process %ld belongs to another user", target->pid);
    else if (target->signal == 0)
        cli_message("attach: process %ld does not wait for tapescope: start it with "
                    "TAPESCOPE_OPTIONS=attach=usr2 in its environment",
                    target->pid);
    else if (!handled)
        cli_message("attach: process %ld does not handle SIG%s any more, which would end it",
                    target->pid, sigabbrev_np(target->signal));
    else
        return true;
    return false;
}

/* A folder that is ours alone. */
static bool attach_make_folder(struct attach_target *target)
{
    struct stat st;
    attach_folder(target->folder, geteuid());
    if (mkdir(target->folder, 0700) != 0 && errno != EEXIST) {
        cli_message("attach: %s: %s", target->folder, strerror(errno));
        return false;
    }
    if (lstat(target->folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return true;
    cli_message("attach: %s is not ours alone", target->folder);
    return false;
}

static void name_file(const struct attach_target *target, const char *suffix, char path[PATH_MAX])
{
    char name[ATTACH_NAME_ROOM];
    attach_file(name, target->pid, suffix);
    snprintf(path, PATH_MAX, "%s/%s", target->folder, name);
}

static void remove_file(const struct attach_target *target, const char *suffix)
{
    char path[PATH_MAX];
    name_file(target, suffix, path);
    unlink(path);
}

/* 0 or an error number. The process is the one that was looked at, also if its number went to
 * another. */
static int attach_send(const struct attach_target *target, int number)
{
    const int status = target->fd >= 0
                           ? (int)syscall(SYS_pidfd_send_signal, target->fd, number, NULL, 0)
                           : kill((pid_t)target->pid, number);
    return status == 0 ? 0 : errno;
}

/* Leaves the request and sends the signal. */
static bool attach_ask(struct attach_target *target, const struct attach_request *request)
{
    char path[PATH_MAX], aside[PATH_MAX];
    name_file(target, "", path);
    name_file(target, ".asked", aside);
    FILE *out = fopen(aside, "we");
    bool ok = out && attach_request_write(out, request);
    if (out)
        ok = fclose(out) == 0 && ok;
    ok = ok && rename(aside, path) == 0;
    if (!ok) {
        cli_message("attach: %s: %s", path, strerror(errno));
        return false;
    }
    if (!check_target(target)) { /* it may be another program by now */
        unlink(path);
        return false;
    }
    const int error = attach_send(target, target->signal);
    if (error != 0)
        cli_message("attach: process %ld: %s", target->pid, strerror(error));
    return error == 0;
}

static void pause_a_step(void)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    nanosleep(&step, NULL);
}

/* Takes the process's answer; false: there is none yet. */
static bool take_answer(const struct attach_target *target, const char *suffix,
                        char text[TEXT_ROOM])
{
    char path[PATH_MAX];
    name_file(target, suffix, path);
    FILE *in = fopen(path, "re");
    if (!in)
        return false;
    const size_t n = fread(text, 1, TEXT_ROOM - 1, in);
    text[n] = '\0';
    fclose(in);
    unlink(path);
    return true;
}

/* Its parent may not have heard of it yet. */
static bool has_ended(const struct attach_target *target)
{
    struct pollfd one = {.fd = target->fd, .events = POLLIN};
    return target->fd >= 0 ? poll(&one, 1, 0) > 0 : attach_send(target, 0) == ESRCH;
}

static bool ask_and_hear(struct attach_target *target, double seconds, const char *recording,
                         const char *output)
{
    char text[TEXT_ROOM];
    const double ms = seconds * 1000;
    const struct attach_request request = {.ms = ms < 1      ? 1
                                                 : ms < 1e15 ? (uint64_t)ms
                                                             : 1000000000000000,
                                           .options = recording,
                                           .path = output};
    remove_file(target, ATTACH_SAID);
    remove_file(target, ATTACH_OVER);
    if (!attach_ask(target, &request))
        return false;
    bool ended = false; /* as it was before its answer was looked for */
    for (int waited = 0; waited < ANSWER_MS && !ended; waited += STEP_MS) {
        ended = has_ended(target);
        if (take_answer(target, ATTACH_SAID, text)) {
            if (strcmp(text, ATTACH_BEGUN) == 0)
                return true;
            cli_message("attach: process %ld: %s", target->pid, text);
            return false;
        }
        pause_a_step();
    }
    remove_file(target, "");
    cli_message("attach: process %ld %s", target->pid, ended ? "has ended" : "does not answer");
    return false;
}

/* One asks at a time, so that nobody takes another's answer. */
static bool attach_open(struct attach_target *target, double seconds, const char *recording,
                        const char *output)
{
    const int folder = open(target->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool ok = folder >= 0 && flock(folder, LOCK_EX) == 0;
    if (!ok)
        cli_message("attach: %s: %s", target->folder, strerror(errno));
    const bool begun = ok && ask_and_hear(target, seconds, recording, output);
    if (folder >= 0)
        close(folder);
    return begun;
}

/* Until the profile has ended, or the process. */
static int wait_for_end(struct attach_target *target)
{
    char text[TEXT_ROOM];
    bool asked = false;
    while (!take_answer(target, ATTACH_OVER, text)) {
        if (has_ended(target)) {
            cli_message("attach: process %ld has ended", target->pid);
            return CLI_OK;
        }
        if (interrupted && !asked)
            asked =
                attach_ask(target, &(struct attach_request){.ms = 0, .options = "", .path = ""});
        pause_a_step();
    }
    if (strcmp(text, ATTACH_ENDED) == 0)
        return CLI_OK;
    cli_message("attach: process %ld: %s", target->pid, text);
    return CLI_FAILED;
}

static int attach_report(const char *path, bool utf8)
{
    char error[4096];
    struct read_profile *profile = read_profile(path, error, sizeof error);
    if (!profile) {
        cli_message("%s", error);
        return CLI_BAD_PROFILE;
    }
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    char *summary = cli_summarize(analysis, utf8);
    cli_message(profile->complete ? "wrote %s: %s" : "%s holds what was measured until then: %s",
                path, summary);
    free(summary);
    analyze_free(analysis);
    read_profile_free(profile);
    return CLI_OK;
}

static int attach_begin(struct attach_target *target, const struct attach_args *args)
{
    const char *recording = secure_getenv("TAPESCOPE_OPTIONS");
    char *path = cli_absolute_path(args->output);
    int status = CLI_FAILED;
    target->fd = (int)syscall(SYS_pidfd_open, (pid_t)target->pid, 0);
    if (!path || strchr(path, '\n')) {
        cli_message("cannot write %s: %s", args->output, path ? "no such name" : strerror(errno));
    } else if (check_target(target) && attach_make_folder(target)) {
        const struct sigaction action = {.sa_handler = attach_interrupt};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        if (attach_open(target, args->seconds, recording ? recording : "", path)) {
            status = wait_for_end(target);
            const int reported = attach_report(path, args->cli.style.utf8);
            status = status == CLI_OK ? reported : status;
        }
    }
    if (target->fd >= 0)
        close(target->fd);
    free(path);
    return status;
}

int cmd_attach(int argc, char **argv)
{
    struct attach_args args = {.output = CLI_DEFAULT_PROFILE, .seconds = 10};
    int status = cli_parse(&cli_attach, &args.cli, argc, argv);
    if (status >= 0)
        return status;
    char *end = NULL;
    struct attach_target target = {.fd = -1};
    errno = 0;
    if (optind + 1 == argc)
        target.pid = strtol(argv[optind], &end, 10);
    if (!end || *end != '\0' || errno != 0 || target.pid <= 0 || target.pid > INT_MAX) {
        cli_message("attach: name one process by its number, as in: tapescope attach 1234");
        return CLI_USAGE;
    }
    unsetenv("TAPESCOPE_OPTIONS"); /* ours are not the program's */
    cli_export_recording(&args.cli);
    return attach_begin(&target, &args);
}
