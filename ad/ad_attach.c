/* ad_attach.c: a program that was started with the option attach=usr1 or usr2 waits for `tapescope
 * attach`, which asks for a profile by that signal.
 *
 * May include: ad_internal.h.
 * Invariant: the handler posts a semaphore and does nothing else. A thread of ours, named
 * tapescope-usr1 or -usr2, which takes no signal, begins and ends the profile, so that it does not
 * matter whether any thread is in an op.
 *
 * What is asked for stands in a file of a folder that belongs to the user alone,
 * /tmp/tapescope-UID/PID: a line with milliseconds (0: end it), one with options, one with the
 * path. What came of it is written to PID.said: "begun" or a reason; and then to PID.ended.
 */
#include "ad_internal.h"

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

struct request {
    char text[REQUEST_BYTES];
    const char *options, *path; /* within it */
    uint64_t ms;
};

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
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/tmp/tapescope-%lu", (unsigned long)geteuid());
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 &&
        (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)))) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool parse(struct request *request)
{
    char *end;
    errno = 0;
    request->ms = strtoull(request->text, &end, 10);
    if (errno != 0 || *end != '\n')
        return false;
    request->options = end + 1;
    char *path = strchr(end + 1, '\n');
    char *last = path ? strchr(path + 1, '\n') : NULL;
    if (!last)
        return false;
    *path = *last = '\0';
    request->path = path + 1;
    return true;
}

/* Takes the request out of the folder. */
static bool read_request(struct request *request, int folder)
{
    char name[32];
    struct stat st;
    snprintf(name, sizeof name, "%ld", (long)getpid());
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        n = read(fd, request->text, sizeof request->text - 1);
    close(fd);
    (void)unlinkat(folder, name, 0);
    request->text[n > 0 ? n : 0] = '\0';
    return parse(request);
}

/* Under its name only when it is whole. */
static void answer(const char *suffix, const char *text)
{
    char name[48], aside[64];
    const int folder = open_folder();
    snprintf(name, sizeof name, "%ld%s", (long)getpid(), suffix);
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
    const char *message = ad_message_of(none);
    snprintf(buf, n, "%s", message ? message : "");
    ad_clear_error(none);
}

/* Begins a profile. Returns when it ends, in ns; 0: it has not begun, which is said. */
static uint64_t begin(const struct request *request)
{
    char options[2 * OPTION_BYTES], error[600];
    snprintf(options, sizeof options, "%s,%s", usual_options ? usual_options : "",
             request->options);
    const uint64_t most = UINT64_MAX / 2000000;
    if (ad_profile_start_with(request->path, options) != AD_OK) {
        take_error(error, sizeof error);
        answer(".said", error);
        return 0;
    }
    answer(".said", "begun");
    return now_ns() + (request->ms < most ? request->ms : most) * 1000000;
}

static void end(void)
{
    char error[600] = "ended";
    if (ad_profile_stop() != AD_OK)
        take_error(error, sizeof error);
    answer(".ended", error);
}

/* True: a signal has come; false: it is that late. */
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
        struct request request;
        if (!wait_until(end_ns)) {
            end();
            end_ns = 0;
            continue;
        }
        const int folder = open_folder();
        const bool wanted = folder >= 0 && read_request(&request, folder);
        if (folder >= 0)
            close(folder);
        if (wanted && request.ms > 0 && end_ns) {
            answer(".said", "a profile is being taken already");
        } else if (wanted && request.ms > 0) {
            end_ns = begin(&request);
        } else if (wanted && end_ns) {
            end();
            end_ns = 0;
        }
    }
    return payload;
}

/* The thread and the handler are there until the process ends: so is our code. */
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
        (void)pthread_setname_np(thread, number == SIGUSR1 ? "tapescope-usr1" : "tapescope-usr2");
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
