/* cli_pager.c: see cli_pager.h.
 *
 * Invariant: between fork and exec nothing is allocated and no lock is taken.
 */
#include "cli_pager.h"

#include "cli_progress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    pid_t child;
    int terminal; /* standard output as it was */
} pager = {.terminal = -1};

static const char *pager_command(void)
{
    const char *term = secure_getenv("TERM"), *command = secure_getenv("PAGER");
    if (!isatty(STDOUT_FILENO) || !term || !*term || strcmp(term, "dumb") == 0)
        return NULL;
    if (!command)
        return "less";
    return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/* Where there is no such program the report is shown all the same. */
_Noreturn static void pager_become(const char *command, int from)
{
    dup2(from, STDIN_FILENO);
    if (strcmp(command, "less") == 0)
        execlp("less", "less", (char *)NULL);
    else
        execlp("sh", "sh", "-c", command, (char *)NULL);
    execlp("cat", "cat", (char *)NULL);
    _exit(127);
}

static void pager_leave(void)
{
    cli_pager_end();
}

void cli_pager_begin(void)
{
    static int registered;
    int ends[2];
    cli_progress_end();
    const char *command = pager_command();
    if (!command || pager.child > 0 || pipe2(ends, O_CLOEXEC) != 0)
        return;
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    fflush(stdout);
    pager.terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    pager.child = pager.terminal >= 0 ? fork() : -1;
    if (pager.child == 0)
        pager_become(command, ends[0]);
    close(ends[0]);
    if (pager.child > 0) {
        signal(SIGPIPE, SIG_IGN);
        signal(SIGINT, SIG_IGN); /* of the pager, which shares the terminal */
        dup2(ends[1], STDOUT_FILENO);
        registered = registered || atexit(pager_leave) == 0;
    }
    close(ends[1]);
}

int cli_pager_end(void)
{
    if (pager.child <= 0)
        return 0;
    fflush(stdout);
    clearerr(stdout);
    dup2(pager.terminal, STDOUT_FILENO);
    close(pager.terminal);
    while (waitpid(pager.child, NULL, 0) < 0 && errno == EINTR)
        ;
    pager.child = 0;
    return 1;
}
