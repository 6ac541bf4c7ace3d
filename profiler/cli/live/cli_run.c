/* cli_run.c: see cli_run.h. */
#include "cli_run.h"

#include "base_memory.h"
#include "base_program.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals for us that are meant for the program. */
static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on };

static volatile pid_t child;

/* The terminal signals the program as well as us: only what a process sent is passed on. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    if (child > 0 && info->si_code <= 0)
        kill(child, number);
    errno = saved;
}

bool cli_modules_folder(char *path, size_t room)
{
    const size_t n = base_program_folder(path, room);
    if (n == 0 || n + sizeof CLI_MODULES_FROM_BIN > room)
        return false;
    memcpy(path + n, CLI_MODULES_FROM_BIN, sizeof CLI_MODULES_FROM_BIN);
    return true;
}

/* Tells a program that holds the library statically, and so has no modules beside it, where those
 * of this installation lie: the last place where it looks. */
static void hint_modules(void)
{
    char path[PATH_MAX];
    if (cli_modules_folder(path, sizeof path))
        setenv("TAPESCOPE_MODULE_HINT", path, 0);
}

char *cli_absolute_path(const char *path)
{
    if (path[0] == '/')
        return base_strdup(path);
    char *directory = getcwd(NULL, 0);
    char *joined = directory ? base_asprintf("%s/%s", directory, path) : NULL;
    free(directory);
    return joined;
}

/* In the new process: never returns; a failure's errno goes to the pipe. */
static void run_child(char **argv, const char *profile, const sigset_t *mask, int pipe_end,
                      const int streams[3])
{
    for (int i = 0; i < 3; i++)
        if (streams[i] >= 0)
            dup2(streams[i], i);
    for (int i = 0; i < PASSED_ON; i++)
        signal(passed_on[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    hint_modules();
    if (!profile)
        unsetenv("TAPESCOPE_PROFILE");
    /* The second tells the library that the file was removed before. */
    if (!profile ||
        (setenv("TAPESCOPE_PROFILE", profile, 1) == 0 && setenv("TAPESCOPE_RECORD", "1", 1) == 0))
        execvp(argv[0], argv);
    int error = errno;
    ssize_t wrote = write(pipe_end, &error, sizeof error);
    _exit(wrote > 0 ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE);
}

int cli_start_program_at(char **argv, const char *profile, const int streams[3])
{
    int ends[2], error = 0;
    sigset_t set, mask;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    sigemptyset(&set);
    for (int i = 0; i < PASSED_ON; i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &mask);
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < PASSED_ON; i++)
        sigaction(passed_on[i], &action, NULL);
    child = fork();
    if (child == 0)
        run_child(argv, profile, &mask, ends[1], streams);
    if (child < 0)
        error = errno;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(ends[1]);
    ssize_t got;
    int reported;
    do
        got = read(ends[0], &reported, sizeof reported);
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (error == 0 && got == (ssize_t)sizeof reported) {
        error = reported;
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return error;
}

int cli_start_program(char **argv, const char *profile)
{
    return cli_start_program_at(argv, profile, (const int[]){-1, -1, -1});
}

int cli_start_quiet_program(char **argv, const char *profile)
{
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int error = cli_start_program_at(argv, profile, (const int[]){nowhere, nowhere, -1});
    if (nowhere >= 0)
        close(nowhere);
    return error;
}

static void settle_program(void)
{
    for (int i = 0; i < PASSED_ON; i++)
        signal(passed_on[i], SIG_DFL);
    child = 0;
}

int cli_wait_program(void)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    settle_program();
    return status;
}

bool cli_program_ended(int *status)
{
    *status = 0;
    const pid_t ended = waitpid(child, status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    settle_program();
    return true;
}

pid_t cli_program(void)
{
    return child;
}
