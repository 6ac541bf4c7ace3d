/* shim.c: see shim.h.
 *
 * The real functions are those that the next object in the order of look-up has: a sanitizer's,
 * where there is one. Streams that the watched object opens read through the counted read, 64
 * bytes at a time, because the C library's own streams call the system by a way that no program
 * can take the place of.
 */
#include "shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHIM __attribute__((visibility("default"), noinline))

enum { STREAM_STEP = 64, IN_A_ROW = 3 };

const char *const shim_kind_name[SHIM_KINDS] = {
    [SHIM_MEMORY] = "memory", [SHIM_EIO] = "EIO",
    [SHIM_ENOSPC] = "ENOSPC", [SHIM_EMFILE] = "EMFILE",
    [SHIM_EINTR] = "EINTR",   [SHIM_ONE_BYTE] = "one byte",
    [SHIM_HALF] = "half",     [SHIM_NAMED] = "a file has to be named",
};

char shim_said[8192];

/* Calls after so many have no place that is known. */
enum { MOST_PLACES = 1 << 16 };

/* Of all threads: those that the watched object makes call as well. */
static _Atomic bool armed, plan_sticky;
static _Atomic int plan_kind, plan_at, count;
static const void *places[MOST_PLACES];
static uintptr_t watched_start, watched_end;
static int stream_fd = -1; /* of the stream that was opened last */

/* The kinds of failure that a call may meet, as bits. */
enum {
    MEMORY = 1 << SHIM_MEMORY,
    EIO_ = 1 << SHIM_EIO,
    SPACE = 1 << SHIM_ENOSPC,
    FILES = 1 << SHIM_EMFILE,
    SIGNAL = 1 << SHIM_EINTR,
    SHORT = 1 << SHIM_ONE_BYTE | 1 << SHIM_HALF,
    NAMED = 1 << SHIM_NAMED,
};

static const int error_of[SHIM_KINDS] = {
    [SHIM_MEMORY] = ENOMEM, [SHIM_EIO] = EIO,     [SHIM_ENOSPC] = ENOSPC,
    [SHIM_EMFILE] = EMFILE, [SHIM_EINTR] = EINTR, [SHIM_NAMED] = EOPNOTSUPP,
};

/* Counts a call that may meet these kinds, made from `place`; whether it has to fail. */
static bool hit(int kinds, const void *place)
{
    if (!(kinds & (1 << plan_kind)))
        return false;
    const int n = ++count;
    if (n <= MOST_PLACES)
        places[n - 1] = place;
    if (plan_at == 0)
        return false;
    if (plan_kind == SHIM_EINTR && plan_sticky) /* for ever would be no failure, but a hang */
        return n >= plan_at && n < plan_at + IN_A_ROW;
    return n == plan_at || (plan_sticky && n > plan_at);
}

static bool is_watched(const void *caller)
{
    return (uintptr_t)caller >= watched_start && (uintptr_t)caller < watched_end;
}

#define PLACE __builtin_return_address(0)
#define WATCHED (armed && is_watched(PLACE))

/* Fails the call with `result` if it has to. */
#define FAIL(kinds, result)                                                                        \
    if (WATCHED && hit(kinds, PLACE)) {                                                            \
        errno = error_of[plan_kind];                                                               \
        return (result);                                                                           \
    }

/* The next object's function of this name, as `real`. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

/* ---- memory ---- */

SHIM void *malloc(size_t n)
{
    REAL(malloc);
    FAIL(MEMORY, NULL)
    return real(n);
}

SHIM void *calloc(size_t n, size_t size)
{
    REAL(calloc);
    FAIL(MEMORY, NULL)
    return real(n, size);
}

SHIM void *realloc(void *old, size_t n)
{
    REAL(realloc);
    FAIL(MEMORY, NULL)
    return real(old, n);
}

SHIM char *strdup(const char *text)
{
    REAL(strdup);
    FAIL(MEMORY, NULL)
    return real(text);
}

SHIM char *strndup(const char *text, size_t n)
{
    REAL(strndup);
    FAIL(MEMORY, NULL)
    return real(text, n);
}

SHIM int vasprintf(char **to, const char *format, va_list arguments)
{
    REAL(vasprintf);
    FAIL(MEMORY, -1)
    return real(to, format, arguments);
}

SHIM FILE *open_memstream(char **text, size_t *n)
{
    REAL(open_memstream);
    FAIL(MEMORY, NULL)
    return real(text, n);
}

SHIM char *realpath(const char *path, char *to)
{
    REAL(realpath);
    FAIL(MEMORY, NULL)
    return real(path, to);
}

/* ---- descriptors ---- */

SHIM int open(const char *path, int flags, ...)
{
    REAL(open);
    va_list more;
    va_start(more, flags);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    FAIL(EIO_ | SPACE | FILES | SIGNAL | ((flags & O_TMPFILE) == O_TMPFILE ? NAMED : 0), -1)
    return real(path, flags, mode);
}

SHIM int fcntl(int fd, int command, ...)
{
    REAL(fcntl);
    va_list more;
    va_start(more, command);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was, just above */
    void *argument = va_arg(more, void *);
    va_end(more);
    FAIL(FILES, -1)
    return real(fd, command, argument);
}

SHIM int fstat(int fd, struct stat *status)
{
    REAL(fstat);
    FAIL(EIO_, -1)
    return real(fd < 0 ? stream_fd : fd, status);
}

SHIM int stat(const char *path, struct stat *status)
{
    REAL(stat);
    FAIL(EIO_, -1)
    return real(path, status);
}

SHIM int flock(int fd, int operation)
{
    REAL(flock);
    FAIL(EIO_, -1)
    return real(fd, operation);
}

SHIM int ftruncate(int fd, off_t size)
{
    REAL(ftruncate);
    FAIL(EIO_ | SPACE | SIGNAL, -1)
    return real(fd, size);
}

SHIM int unlink(const char *path)
{
    REAL(unlink);
    FAIL(EIO_, -1)
    return real(path);
}

SHIM int pipe2(int ends[2], int flags)
{
    REAL(pipe2);
    FAIL(FILES, -1)
    return real(ends, flags);
}

SHIM pid_t fork(void)
{
    REAL(fork);
    FAIL(MEMORY, -1)
    pid_t child = real();
    armed = armed && child != 0; /* what the new process does is its own */
    return child;
}

/* How many bytes of n a call does that is cut short. */
static size_t part_of(size_t n)
{
    return plan_kind == SHIM_ONE_BYTE ? n > 0 : (n + 1) / 2;
}

SHIM ssize_t write(int fd, const void *data, size_t n)
{
    REAL(write);
    if (!WATCHED)
        return real(fd, data, n);
    if (fd == STDERR_FILENO) {
        size_t used = strlen(shim_said), room = sizeof shim_said - 1 - used;
        memcpy(shim_said + used, data, n < room ? n : room);
        return (ssize_t)n;
    }
    if (!hit(EIO_ | SPACE | SIGNAL | SHORT, PLACE))
        return real(fd, data, n);
    if (SHORT & (1 << plan_kind))
        return real(fd, data, part_of(n));
    errno = error_of[plan_kind];
    return -1;
}

SHIM ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    REAL(pwrite);
    if (!WATCHED || !hit(EIO_ | SPACE | SIGNAL | SHORT, PLACE))
        return real(fd, data, n, at);
    if (SHORT & (1 << plan_kind))
        return real(fd, data, part_of(n), at);
    errno = error_of[plan_kind];
    return -1;
}

SHIM ssize_t pread(int fd, void *data, size_t n, off_t at)
{
    REAL(pread);
    if (!WATCHED || !hit(EIO_ | SIGNAL | SHORT, PLACE))
        return real(fd, data, n, at);
    if (SHORT & (1 << plan_kind))
        return real(fd, data, part_of(n), at);
    errno = error_of[plan_kind];
    return -1;
}

/* Mappings at a place that the caller says; others are malloc's. */
SHIM void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t from)
{
    REAL(mmap);
    if (flags & MAP_FIXED)
        FAIL(MEMORY, MAP_FAILED)
    return real(at, n, protection, flags, fd, from);
}

/* Pages that cannot be read: the system does not say why. */
SHIM int madvise(void *at, size_t n, int advice)
{
    REAL(madvise);
#ifdef MADV_POPULATE_READ
    if (advice == MADV_POPULATE_READ && WATCHED && hit(EIO_, PLACE)) {
        errno = EFAULT;
        return -1;
    }
#endif
    return real(at, n, advice);
}

SHIM int mkostemp(char *path, int flags)
{
    REAL(mkostemp);
    FAIL(EIO_ | SPACE | FILES | SIGNAL, -1)
    return real(path, flags);
}

static ssize_t counted_read(int fd, void *data, size_t n, const void *place)
{
    REAL(read);
    if (!hit(EIO_ | SIGNAL | SHORT, place))
        return real(fd, data, n);
    if (SHORT & (1 << plan_kind))
        return real(fd, data, part_of(n));
    errno = error_of[plan_kind];
    return -1;
}

SHIM ssize_t read(int fd, void *data, size_t n)
{
    REAL(read);
    return WATCHED ? counted_read(fd, data, n, PLACE) : real(fd, data, n);
}

/* As Linux does it: the descriptor is closed whatever close() says. */
SHIM int close(int fd)
{
    REAL(close);
    int status = real(fd);
    FAIL(EIO_ | SPACE | SIGNAL, -1)
    return status;
}

/* ---- streams ---- */

struct stream {
    int fd;
};

static ssize_t stream_read(void *cookie, char *data, size_t n)
{
    const struct stream *stream = cookie;
    REAL(read);
    n = n < STREAM_STEP ? n : STREAM_STEP;
    return armed ? counted_read(stream->fd, data, n, NULL) : real(stream->fd, data, n);
}

static int stream_close(void *cookie)
{
    struct stream *stream = cookie;
    bool was_armed = armed;
    armed = false; /* the calls of this file are nobody's */
    close(stream->fd);
    free(stream);
    stream_fd = -1;
    armed = was_armed;
    return 0;
}

SHIM FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen);
    if (!WATCHED || mode[0] != 'r')
        return real(path, mode);
    if (hit(MEMORY | EIO_ | FILES | SIGNAL, PLACE)) {
        errno = error_of[plan_kind];
        return NULL;
    }
    armed = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stream *stream = fd >= 0 ? malloc(sizeof *stream) : NULL;
    FILE *opened = NULL;
    if (stream) {
        *stream = (struct stream){fd};
        stream_fd = fd;
        opened = fopencookie(stream, mode,
                             (cookie_io_functions_t){.read = stream_read, .close = stream_close});
    }
    armed = true;
    return opened;
}

/* ---- the plan ---- */

bool shim_is_harmless(enum shim_kind kind)
{
    return kind == SHIM_NAMED || kind == SHIM_EINTR || kind == SHIM_ONE_BYTE || kind == SHIM_HALF;
}

static int find_object(struct dl_phdr_info *info, size_t size, void *payload)
{
    (void)size;
    const char *name = payload, *path = info->dlpi_name ? info->dlpi_name : "";
    size_t n = strlen(path), m = strlen(name);
    if (n < m || strcmp(path + n - m, name) != 0 || (m == 0 && n > 0))
        return 0;
    watched_start = UINTPTR_MAX;
    watched_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type != PT_LOAD || !(load->p_flags & PF_X))
            continue;
        uintptr_t start = info->dlpi_addr + load->p_vaddr, end = start + load->p_memsz;
        watched_start = start < watched_start ? start : watched_start;
        watched_end = end > watched_end ? end : watched_end;
    }
    return 1;
}

bool shim_watch(const char *name)
{
    return dl_iterate_phdr(find_object, (void *)name) == 1;
}

void shim_arm(enum shim_kind kind, int at, bool sticky)
{
    plan_kind = (int)kind;
    plan_at = at;
    plan_sticky = sticky;
    count = 0;
    memset(shim_said, 0, sizeof shim_said);
    armed = true;
}

int shim_disarm(void)
{
    armed = false;
    return count;
}

bool shim_is_telling(int n)
{
    const void *place = n <= MOST_PLACES ? places[n - 1] : NULL;
    bool first = true, last = true;
    for (int i = 1; i < n && first; i++)
        first = places[i - 1] != place;
    for (int i = n + 1; i <= count && i <= MOST_PLACES && last; i++)
        last = places[i - 1] != place;
    return first || last;
}

int shim_count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}
