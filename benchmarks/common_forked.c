/* common_forked.c: a child and a pipe.
 *
 * Invariant: the child never returns from here, and writes nothing that the parent had not yet
 * written.
 */
#include "common_forked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child does; its exit status. */
static int child(bool (*work)(void *context, double *figures), void *context, int n, int to)
{
    double figures[FORKED_MAX_FIGURES] = {0};
    if (!work(context, figures))
        return EXIT_FAILURE;
    const size_t bytes = (size_t)n * sizeof *figures;
    return write(to, figures, bytes) == (ssize_t)bytes ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool forked(bool (*work)(void *context, double *figures), void *context, int n, double *figures)
{
    int ends[2], status = 0;
    const ssize_t bytes = (ssize_t)((size_t)n * sizeof *figures);
    if (pipe(ends) != 0) {
        fprintf(stderr, "no pipe: %s\n", strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        status = child(work, context, n, ends[1]);
        fflush(stderr);
        _exit(status);
    }
    close(ends[1]);
    /* At most a pipe's room, so it comes in one piece. */
    const ssize_t got = pid < 0 ? -1 : read(ends[0], figures, (size_t)bytes);
    close(ends[0]);
    if (pid < 0) {
        fprintf(stderr, "no process: %s\n", strerror(errno));
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status))
        fprintf(stderr, "a measurement ended by signal %d\n", WTERMSIG(status));
    return got == bytes && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}
