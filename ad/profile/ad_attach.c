/* ad_attach.c: a program that was started with the option attach=usr1 or usr2 waits for `tapescope
 * attach`, which asks for a profile by that signal.
 *
 * Invariant: the handler posts a semaphore and does nothing else. A thread of ours, named
 * tapescope-usr1 or -usr2, which takes no signal, begins and ends the profile, so that it does not
 * matter whether any thread is in an op. attach.h has the protocol.
 */
#include "ad_internal.h"
#include "attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OPTION_BYTES = 1024, REQUEST_BYTES = PATH_MAX + OPTION_BYTES + 64, STACK_BYTES = 512 << 10 };

static sem_t asked;
static char *usual_options; /* of the environment, which the program may change; NULL: none */

static void take(int number)
{
    const int error = errno;
    (void)number;
    sem_post(&asked);
    errno = error;
}

/* The folder of requests; -1: there is none that is the user's alone. */
static int open_folder(void)
{
    char path[ATTACH_NAME_ROOM];
    struct stat st;
    attach_folder(path, geteuid());
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 &&
        (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Takes the request out of the folder; its strings are in `text`. */
static bool read_request(struct attach_request *request, char text[REQUEST_BYTES], int folder)
{
    char name[ATTACH_NAME_ROOM];
    struct stat st;
    attach_file(name, getpid(), "");
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        n = read(fd, text, REQUEST_BYTES - 1);
    close(fd);
    (void)unlinkat(folder, name, 0);
    text[n > 0 ? n : 0] = '\0';
    return attach_request_read(request, text);
}

/* Writes an answer. The file gets its name only when it is whole. */
static void answer(const char *suffix, const char *text)
{
    char name[ATTACH_NAME_ROOM], aside[ATTACH_NAME_ROOM + 8];
    const int folder = open_folder();
    attach_file(name, getpid(), suffix);
    snprintf(aside, sizeof aside, "%s.new", name);
    const int fd = folder < 0 ? -1
                              : openat(folder, aside,
                                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        const bool whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
        close(fd);
        if (whole)
            (void)renameat(folder, aside, folder, name);
    }
    if (folder >= 0)
        close(folder);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What the last call's error was; "" if there is none. */
static void take_error(char *buf, size_t n)
{
    static const ad_tape none;
    const char *message = ad_tape_message(none);
    snprintf(buf, n, "%s", message ? message : "");
    ad_tape_clear_error(none);
}

/* Begins a profile. Returns when it ends, in ns. 0: it has not begun, and the answer says why. */
static uint64_t begin(const struct attach_request *request)
{
    char options[2 * OPTION_BYTES], error[600];
    snprintf(options, sizeof options, "%s,%s", usual_options ? usual_options : "",
             request->options);
    const uint64_t most = UINT64_MAX / 2000000;
    if (ad_profile_start_at(request->path, options) != AD_OK) {
        take_error(error, sizeof error);
        answer(ATTACH_SAID, error);
        return 0;
    }
    answer(ATTACH_SAID, ATTACH_BEGUN);
    return now_ns() + (request->ms < most ? request->ms : most) * 1000000;
}

static void end(void)
{
    char error[600] = ATTACH_ENDED;
    if (ad_profile_stop() != AD_OK)
        take_error(error, sizeof error);
    answer(ATTACH_OVER, error);
}

/* Waits for a signal. False: none came before end_ns. */
static bool wait_until(uint64_t end_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(end_ns / 1000000000),
                                   .tv_nsec = (long)(end_ns % 1000000000)};
    int status;
    do
        status = end_ns ? sem_clockwait(&asked, CLOCK_MONOTONIC, &until) : sem_wait(&asked);
    while (status != 0 && errno == EINTR);
    return status == 0;
}

static void *serve(void *payload)
{
    uint64_t end_ns = 0; /* of the profile that was asked for; 0: there is none */
    for (;;) {
        struct attach_request request;
        char text[REQUEST_BYTES];
        if (!wait_until(end_ns)) {
            end();
            end_ns = 0;
            continue;
        }
        const int folder = open_folder();
        const bool wanted = folder >= 0 && read_request(&request, text, folder);
        if (folder >= 0)
            close(folder);
        if (wanted && request.ms > 0 && end_ns) {
            answer(ATTACH_SAID, "a profile is being taken already");
        } else if (wanted && request.ms > 0) {
            end_ns = begin(&request);
        } else if (wanted && end_ns) {
            end();
            end_ns = 0;
        }
    }
    return payload;
}

/* The thread and the handler exist until the process ends, so the library must stay loaded. */
static void stay_loaded(void)
{
    Dl_info info;
    if (dladdr((void *)(uintptr_t)take, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static const char *start_thread(int number)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    if (pthread_attr_init(&attr) != 0)
        return "out of memory";
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, &attr, serve, NULL);
    if (error == 0)
        (void)pthread_setname_np(thread,
                                 number == SIGUSR1 ? ATTACH_THREAD_USR1 : ATTACH_THREAD_USR2);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return error == 0 ? NULL : "no thread can be had";
}

/* The handler comes first: whoever sees the thread may send the signal. */
void ad_attach_wait(int number, const char *options)
{
    struct sigaction now, action = {.sa_handler = take, .sa_flags = SA_RESTART};
    const char *reason = "the program has a use of its own for the signal";
    sigemptyset(&action.sa_mask);
    usual_options = strdup(options);
    if (sem_init(&asked, 0, 0) == 0 && sigaction(number, NULL, &now) == 0 &&
        !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL &&
        sigaction(number, &action, NULL) == 0) {
        stay_loaded();
        reason = start_thread(number);
        if (!reason)
            return;
        sigaction(number, &now, NULL);
    }
    char message[128];
    snprintf(message, sizeof message, "nobody can attach: %s", reason);
    ad_log_say(AD_LOG_WARNING, message);
}
