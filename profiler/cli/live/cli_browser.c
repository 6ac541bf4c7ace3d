/* cli_browser.c: see cli_browser.h.
 *
 * Invariant: between fork and exec nothing is allocated and no lock is taken.
 */
#include "cli_browser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_ROOM = 1024, MOST_WORDS = 16 };

static bool browser_has(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value;
}

/* Runs the command in `text`, words separated by spaces; returns if it cannot be run. */
static void browser_run(char *text, char *address)
{
    char *words[MOST_WORDS + 2] = {NULL}, *rest = NULL;
    size_t n = 0;
    bool named = false;
    for (char *word = strtok_r(text, " ", &rest); word && n < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        const bool here = strcmp(word, "%s") == 0;
        words[n++] = here ? address : word;
        named |= here;
    }
    if (n == 0)
        return;
    if (!named)
        words[n] = address;
    execvp(words[0], words);
}

/* In a process of its own session, which Ctrl-C at our terminal does not reach. `failed` takes a
 * byte where no program can be run; it is closed where one is. */
_Noreturn static void become_browser(char *list, char *address, int failed)
{
    char standard[] = "xdg-open";
    sigset_t none;
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; nowhere >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nowhere, fd);
    setsid();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (char *rest = list, *entry; (entry = strsep(&rest, ":")) != NULL;)
        browser_run(entry, address);
    browser_run(standard, address);
    _exit(write(failed, "", 1) == 1 ? 127 : 126);
}

bool cli_open_browser(const char *path)
{
    char list[TEXT_ROOM] = "", text[TEXT_ROOM];
    int ends[2];
    const char *chosen = secure_getenv("BROWSER");
    if (!(browser_has("DISPLAY") || browser_has("WAYLAND_DISPLAY") || browser_has("BROWSER")) ||
        strlen(path) >= sizeof text || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    if (chosen && strlen(chosen) < sizeof list)
        snprintf(list, sizeof list, "%s", chosen);
    snprintf(text, sizeof text, "%s", path);
    const pid_t child = fork();
    if (child == 0) {
        /* The browser's parent ends at once, so that init is the one that it is waited for by. */
        if (fork() == 0)
            become_browser(list, text, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    char byte;
    ssize_t n;
    while ((n = read(ends[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    return child > 0 && n == 0;
}
