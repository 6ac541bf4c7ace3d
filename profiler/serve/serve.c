/* serve.c: the server's socket, its time, and what ends it. See serve.h.
 *
 * Invariant: no thread is made, and signals are taken only while serve_run() waits.
 */
#include "serve_state.h"

#include "base_memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTION_SECONDS = 10,     /* without a byte in either direction; for a whole request */
    CONNECTION_BYTES = 16 << 10, /* for a request's head and what is sent back of it */
    BACKLOG = 32,
};

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof *ending };
static volatile sig_atomic_t stopped;
static struct sigaction before[ENDING], before_pipe;
static sigset_t mask_before;

double serve_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- signals ---- */

static void serve_stop(int number)
{
    (void)number;
    stopped = 1;
}

/* They are blocked but where serve_run() waits, so that none is missed before it. */
static void take_signals(void)
{
    const struct sigaction action = {.sa_handler = serve_stop}, ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    sigemptyset(&set);
    stopped = 0;
    for (size_t i = 0; i < ENDING; i++)
        sigaddset(&set, ending[i]);
    sigprocmask(SIG_BLOCK, &set, &mask_before);
    for (size_t i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &action, NULL);
    }
    sigaction(SIGPIPE, &ignore, &before_pipe);
}

static void give_signals_back(void)
{
    /* One that came too late has done its work: the server has ended. */
    const struct timespec none = {0};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ENDING; i++)
        if (before[i].sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    while (sigtimedwait(&set, NULL, &none) > 0)
        ;
    for (size_t i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    sigaction(SIGPIPE, &before_pipe, NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

/* ---- connections ---- */

/* libmicrohttpd's MHD_NotifyConnectionCallback. It has no limit for how long a request may take as
 * long as bytes come, so that is kept here. */
static void serve_notice(void *cls, struct MHD_Connection *connection, void **visitor,
                         enum MHD_ConnectionNotificationCode code)
{
    struct serve *serve = cls;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*visitor)
            ((struct serve_visitor *)*visitor)->is_there = false;
        *visitor = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (size_t i = 0; info && i < SERVE_CONNECTIONS; i++) {
        struct serve_visitor *free_one = &serve->visitor[i];
        if (free_one->is_there)
            continue;
        *free_one =
            (struct serve_visitor){true, info->connect_fd, serve_now() + CONNECTION_SECONDS};
        *visitor = free_one;
        return;
    }
}

/* Ends the connections whose request is late; returns when the next one will be. */
static double end_late(struct serve *serve)
{
    double next = INFINITY;
    for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
        struct serve_visitor *visitor = &serve->visitor[i];
        if (!visitor->is_there)
            continue;
        if (visitor->until <= serve_now()) {
            shutdown(visitor->fd, SHUT_RDWR); /* libmicrohttpd finds its end, and closes it */
            visitor->until = INFINITY;
        }
        next = visitor->until < next ? visitor->until : next;
    }
    return next;
}

/* ---- opening ---- */

/* A listening socket on 127.0.0.1, or -1 with errno. */
static int listen_on(uint16_t port, uint16_t *got)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    /* Connections of a server that has ended do not keep the port; one that listens does. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, BACKLOG) == 0 && getsockname(fd, (struct sockaddr *)&address, &n) == 0) {
        *got = ntohs(address.sin_port);
        return fd;
    }
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* "http://127.0.0.1:PORT/TOKEN/" */
static bool make_address(struct serve *serve)
{
    unsigned char bits[SERVE_TOKEN / 2];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return false;
    int n = snprintf(serve->address, sizeof serve->address, "http://127.0.0.1:%u/",
                     (unsigned)serve->port);
    serve->token = serve->address + n;
    for (size_t i = 0; i < sizeof bits; i++)
        n += snprintf(serve->address + n, sizeof serve->address - (size_t)n, "%02x", bits[i]);
    snprintf(serve->address + n, sizeof serve->address - (size_t)n, "/");
    return true;
}

/* Paths are compared as they were sent. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return strlen(text);
}

static int serve_start(struct serve *serve)
{
    const int fd = listen_on(serve->options.port, &serve->port);
    if (fd < 0)
        return -1;
    errno = 0;
    if (make_address(serve))
        serve->daemon = MHD_start_daemon(
            MHD_USE_EPOLL, 0, NULL, NULL, serve_answer, serve, /* then pairs up to the end */
            MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
            (unsigned)SERVE_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)CONNECTION_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
            (size_t)CONNECTION_BYTES, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
            MHD_OPTION_NOTIFY_COMPLETED, serve_completed, serve, MHD_OPTION_NOTIFY_CONNECTION,
            serve_notice, serve, MHD_OPTION_END);
    if (serve->daemon)
        return 0;
    if (errno == 0 || errno == ENOMEM)
        base_no_memory();
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

struct serve *serve_open(const struct serve_options *options)
{
    struct serve *serve = base_calloc(1, sizeof *serve);
    serve->options = *options;
    serve->response = base_calloc(options->n + 1, sizeof(struct MHD_Response *));
    if (serve_start(serve) != 0) {
        const int error = errno;
        free(serve->response);
        free(serve);
        errno = error;
        return NULL;
    }
    take_signals();
    serve->last = serve_now();
    return serve;
}

const char *serve_address(const struct serve *serve)
{
    return serve->address;
}

void serve_close(struct serve *serve)
{
    MHD_stop_daemon(serve->daemon);
    for (size_t i = 0; i < serve->options.n; i++)
        if (serve->response[i])
            MHD_destroy_response(serve->response[i]);
    give_signals_back();
    free(serve->response);
    free(serve);
}

/* ---- serving ---- */

/* Seconds until the server ends if nobody comes; at most a day, which is then looked at again. */
static double serve_left(const struct serve *serve)
{
    const double day = 86400;
    if (serve->options.timeout <= 0 || serve->visits > 0)
        return day;
    const double rest = serve->last + serve->options.timeout - serve_now();
    return rest < day ? rest : day;
}

static unsigned serve_connections(const struct serve *serve)
{
    return MHD_get_daemon_info(serve->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

/* Does what there is to do. After the most connections, new ones are not looked for before the run
 * behind the one in which one has ended. */
static void serve_work(struct serve *serve)
{
    unsigned n;
    do {
        n = serve_connections(serve);
        MHD_run(serve->daemon);
    } while (serve_connections(serve) < n);
}

bool serve_run(struct serve *serve)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(serve->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd events = {.fd = info->epoll_fd, .events = POLLIN};
    while (!serve->done && !stopped) {
        double wait = serve_left(serve);
        if (wait <= 0)
            return false;
        MHD_UNSIGNED_LONG_LONG ms;
        if (MHD_get_timeout(serve->daemon, &ms) == MHD_YES && (double)ms / 1e3 < wait)
            wait = (double)ms / 1e3;
        const double late = end_late(serve) - serve_now();
        wait = late < wait ? (late > 0 ? late : 0) : wait;
        const struct timespec most = {.tv_sec = (time_t)wait,
                                      .tv_nsec = (long)((wait - (double)(time_t)wait) * 1e9)};
        ppoll(&events, 1, &most, &mask_before);
        serve_work(serve);
    }
    return true;
}
