/* collect_file.c: the profile's file descriptor, in a process that is not ours.
 *
 * The host may close or reuse any descriptor, limit file sizes, or fill the disk. Before each write
 * the descriptor is compared with the file that was opened, so that nothing lands in a file of the
 * host's; signals that a write can raise (SIGXFSZ, SIGPIPE) never reach the host.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FREE_FD = 3, WARN_BYTES = 4608, READ_STEP = 4096 };

const char *collect_reason(int error)
{
    const char *text = strerrordesc_np(error);
    return text != NULL ? text : "unknown error";
}

/* Takes the signal that our own write left pending for this thread. */
static void file_consume(int signal_number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    const struct timespec now = {0};
    while (sigtimedwait(&one, NULL, &now) < 0 && errno == EINTR) {
    }
}

/* Writes all; returns 0 or the error number. */
static int write_all(int fd, const uint8_t *data, size_t n)
{
    sigset_t quiet, before, old;
    sigemptyset(&quiet);
    sigaddset(&quiet, SIGXFSZ);
    sigaddset(&quiet, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &quiet, &old);
    sigpending(&before);
    int error = 0;
    while (n > 0 && error == 0) {
        ssize_t done = write(fd, data, n);
        if (done > 0) {
            data += done;
            n -= (size_t)done;
        } else if (done == 0) {
            error = EIO;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    int raised = error == EFBIG ? SIGXFSZ : error == EPIPE ? SIGPIPE : 0;
    if (raised != 0 && !sigismember(&before, raised))
        file_consume(raised);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

/* Returns 0 if the descriptor still is the file's, an error number if that cannot be known, and
 * EBADF if it is not. */
static int check_owner(const struct collect_file *file)
{
    struct stat st;
    if (file->fd < 0)
        return EBADF;
    if (fstat(file->fd, &st) != 0)
        return errno;
    return st.st_dev == file->device && st.st_ino == file->inode ? 0 : EBADF;
}

static int cut_to(int fd, off_t size)
{
    while (ftruncate(fd, size) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* Standard input, output and error, where the host has closed them, are the host's to open
 * again. */
static int open_above_standard(const char *path)
{
    int fd;
    do
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || fd >= FIRST_FREE_FD)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    int error = errno;
    close(fd);
    errno = error;
    return high;
}

/* Locks the file, then empties it. File systems without locks are taken as they are. */
static const char *take_over(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return "a running program writes its profile there";
    int error = cut_to(fd, 0);
    return error == 0 ? NULL : collect_reason(error);
}

const char *collect_file_open(struct collect_file *file, const char *path)
{
    struct stat st;
    *file = (struct collect_file){.fd = open_above_standard(path)};
    if (file->fd < 0)
        return collect_reason(errno);
    const char *reason = NULL;
    if (fstat(file->fd, &st) != 0)
        reason = collect_reason(errno);
    else if (S_ISREG(st.st_mode))
        reason = take_over(file->fd);
    if (reason != NULL) {
        close(file->fd);
        file->fd = -1;
        return reason;
    }
    file->regular = S_ISREG(st.st_mode);
    file->device = st.st_dev;
    file->inode = st.st_ino;
    return NULL;
}

const char *collect_file_write(struct collect_file *file, const void *data, size_t n)
{
    int error = check_owner(file);
    if (error == EBADF)
        return "the program closed or reused the profile's file descriptor";
    if (error == 0)
        error = write_all(file->fd, data, n);
    if (error == 0) {
        file->size += (off_t)n;
        return NULL;
    }
    /* Best effort: a cut that fails leaves a torn frame, which a reader recognises. */
    if (file->regular)
        (void)cut_to(file->fd, file->size);
    return collect_reason(error);
}

/* A file whose owner cannot be known, since the file system itself fails, is ours all but surely:
 * the program's own would have to take its place and fail as well. */
const char *collect_file_close(struct collect_file *file)
{
    int error = 0;
    if (check_owner(file) != EBADF && close(file->fd) != 0 && errno != EINTR)
        error = errno;
    file->fd = -1;
    return error == 0 ? NULL : collect_reason(error);
}

/* Reads all that is there, or `most`; returns 0 or the error number. */
static int read_all(struct collect_buffer *to, int fd, size_t most)
{
    uint8_t part[READ_STEP];
    for (size_t n = 0; n < most;) {
        ssize_t got = read(fd, part, sizeof part);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0 && !collect_put_bytes(to, part, (size_t)got))
            return ENOMEM;
        n += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int collect_file_read(struct collect_buffer *to, const char *path, size_t most)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    size_t before = to->n;
    int error = read_all(to, fd, most);
    if (error != 0)
        to->n = before;
    close(fd);
    return error;
}

void collect_say(bool (*log)(int level, const char *message), const char *path, const char *format,
                 const char *reason)
{
    char message[WARN_BYTES], line[WARN_BYTES + 16];
    snprintf(message, sizeof message, format, path, reason);
    if (log != NULL && log(TAPE_LOG_WARNING, message))
        return;
    int n = snprintf(line, sizeof line, "tapescope: %s\n", message);
    if (n > 0 && (size_t)n < sizeof line)
        (void)write_all(STDERR_FILENO, (const uint8_t *)line, (size_t)n);
}

void collect_warn(bool (*log)(int level, const char *message), const char *path, const char *reason)
{
    collect_say(log, path, "cannot write %s: %s; the profile ends here", reason);
}

const char *collect_file_put(const char *path, const struct collect_buffer *data)
{
    struct collect_file file;
    const char *reason = collect_file_open(&file, path);
    if (reason != NULL)
        return reason;
    reason = collect_file_write(&file, data->data, data->n);
    const char *end = collect_file_close(&file);
    return reason != NULL ? reason : end;
}
