/* read_range.c: see read_range.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "read_range.h"

#include "base_memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct read_range {
    int fd;
    uint64_t at, end;
};

/* No file has such a name: behind the descriptor nothing follows in that folder. */
#define RANGE_FOLDER "/proc/self/fd/"

char *read_range_name(int fd, uint64_t at, uint64_t n)
{
    return base_asprintf(RANGE_FOLDER "%d@%llu+%llu", fd, (unsigned long long)at,
                         (unsigned long long)n);
}

/* The number at the begin of the text, behind which `end` has to follow. */
static bool range_number(const char **text, char end, uint64_t *number)
{
    char *behind;
    *number = strtoull(*text, &behind, 10);
    if (behind == *text || *behind != end)
        return false;
    *text = behind + 1;
    return true;
}

static bool range_of_name(const char *path, struct read_range *range)
{
    uint64_t fd, n;
    if (strncmp(path, RANGE_FOLDER, strlen(RANGE_FOLDER)) != 0)
        return false;
    path += strlen(RANGE_FOLDER);
    if (!range_number(&path, '@', &fd) || !range_number(&path, '+', &range->at) ||
        !range_number(&path, '\0', &n))
        return false;
    range->fd = (int)fd;
    range->end = range->at + n;
    return true;
}

static ssize_t range_read(void *cookie, char *to, size_t n)
{
    struct read_range *range = cookie;
    const uint64_t left = range->end - range->at;
    const ssize_t got = pread(range->fd, to, left < n ? (size_t)left : n, (off_t)range->at);
    range->at += got > 0 ? (uint64_t)got : 0;
    return got;
}

static int range_close(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *read_range_open(const char *path)
{
    struct read_range range;
    FILE *stream;
    if (!range_of_name(path, &range)) {
        do
            stream = fopen(path, "re");
        while (!stream && errno == EINTR);
        return stream;
    }
    struct read_range *cookie = base_calloc(1, sizeof *cookie);
    *cookie = range;
    stream =
        fopencookie(cookie, "r", (cookie_io_functions_t){.read = range_read, .close = range_close});
    if (!stream)
        base_no_memory();
    return stream;
}
