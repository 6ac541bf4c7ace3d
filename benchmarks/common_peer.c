/* common_peer.c: starts the programs of peers/ and speaks with them over two pipes.
 *
 * Invariant: the caller's ends of the pipes are closed in every other peer, so that a peer's input
 * ends when the caller closes it.
 */
#include "common_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEER_MAX_ENVIRONMENT = 4096 };

extern char **environ;

/* The path of a file in the folder of the running program. */
static bool beside_program(const char *name, char *path, size_t n)
{
    ssize_t length = readlink("/proc/self/exe", path, n - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    char *base = strrchr(path, '/');
    if (!base)
        return false;
    size_t room = n - (size_t)(base + 1 - path);
    return (size_t)snprintf(base + 1, room, "%s", name) < room;
}

static bool make_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

/* Whether the variable is one that a setting takes the place of. */
static bool is_set(const char *variable, const char *const *settings)
{
    for (int k = 0; k < PEER_MAX_SETTINGS; ++k)
        if (settings[k] && strncmp(variable, settings[k], strcspn(settings[k], "=") + 1) == 0)
            return true;
    return false;
}

/* Runs the program with its standard input and output on the pipes. Returns an errno. */
static int spawn(pid_t *pid, const char *path, const char *const *settings, int input, int output)
{
    char *environment[PEER_MAX_ENVIRONMENT];
    char added[PEER_MAX_SETTINGS][4 * PEER_LINE_BYTES];
    size_t n = 0;
    for (char **v = environ; *v && n < PEER_MAX_ENVIRONMENT - PEER_MAX_SETTINGS - 1; ++v)
        if (!is_set(*v, settings))
            environment[n++] = *v;
    for (int k = 0; k < PEER_MAX_SETTINGS; ++k) {
        if (!settings[k])
            continue;
        snprintf(added[k], sizeof added[k], "%s", settings[k]);
        environment[n++] = added[k];
    }
    environment[n] = NULL;

    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    char program[PEER_LINE_BYTES];
    snprintf(program, sizeof program, "%s", path);
    if (error == 0)
        error = posix_spawn(pid, path, &actions, NULL, (char *[]){program, NULL}, environment);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads a line; without one says how the peer ended. */
static const char *read_line(struct peer *peer)
{
    if (fgets(peer->line, sizeof peer->line, peer->from)) {
        peer->line[strcspn(peer->line, "\n")] = '\0';
        return peer->line;
    }
    int status = 0;
    fclose(peer->to);
    fclose(peer->from);
    peer->to = peer->from = NULL;
    waitpid(peer->pid, &status, 0);
    peer->pid = 0;
    if (WIFSIGNALED(status))
        snprintf(peer->line, sizeof peer->line, "ended by signal %d", WTERMSIG(status));
    else
        snprintf(peer->line, sizeof peer->line, "ended with status %d", WEXITSTATUS(status));
    return NULL;
}

const char *peer_start(struct peer *peer, const char *program,
                       const char *const settings[PEER_MAX_SETTINGS])
{
    *peer = (struct peer){0};
    char path[PEER_LINE_BYTES];
    if (!beside_program(program, path, sizeof path) || access(path, X_OK) != 0) {
        snprintf(peer->line, sizeof peer->line, "there is no program %s beside this one", program);
        return NULL;
    }
    /* A peer that has ended is told by its answer that is missing, not by a signal. */
    signal(SIGPIPE, SIG_IGN);
    int question[2], answer[2];
    int error = 0;
    if (!make_pipe(question)) {
        error = errno;
    } else if (!make_pipe(answer)) {
        error = errno;
        close(question[0]);
        close(question[1]);
    } else {
        error = spawn(&peer->pid, path, settings, question[0], answer[1]);
        close(question[0]);
        close(answer[1]);
        peer->to = fdopen(question[1], "w");
        peer->from = fdopen(answer[0], "r");
        if (error == 0 && peer->to && peer->from)
            return read_line(peer);
        error = error != 0 ? error : ENOMEM;
        peer_stop(peer);
    }
    snprintf(peer->line, sizeof peer->line, "%s: %s", program, strerror(error));
    return NULL;
}

const char *peer_ask(struct peer *peer, const char *question)
{
    if (peer->pid == 0)
        return NULL;
    fprintf(peer->to, "%s\n", question);
    fflush(peer->to);
    return read_line(peer);
}

void peer_stop(struct peer *peer)
{
    if (peer->to)
        fclose(peer->to);
    if (peer->from)
        fclose(peer->from);
    if (peer->pid != 0)
        waitpid(peer->pid, NULL, 0);
    peer->pid = 0;
    peer->to = peer->from = NULL;
}
