/* read_aside.c: see read_aside.h. */
#include "read_aside.h"

#include "base_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file under way that is removed if the process ends early. */
static const char *under_way;

void read_aside_note(const char *aside)
{
    under_way = *aside ? aside : NULL;
}

void read_aside_drop(void)
{
    if (under_way)
        unlink(under_way);
}

static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* To put a file in the place of a device would take it from everybody. */
static char *open_special(const char *path, int *fd)
{
    char *aside = base_calloc(1, 1);
    *fd = open(path, O_WRONLY | O_CLOEXEC);
    if (*fd >= 0)
        return aside;
    const int error = errno;
    free(aside);
    errno = error;
    return NULL;
}

char *read_aside_make(const char *path, int *fd)
{
    if (is_special(path))
        return open_special(path, fd);
    char *aside = base_asprintf("%s.XXXXXX", path);
    do { /* a name that was tried is no pattern any more */
        memcpy(aside + strlen(path), ".XXXXXX", sizeof ".XXXXXX");
        *fd = mkostemp(aside, O_CLOEXEC);
    } while (*fd < 0 && errno == EINTR);
    if (*fd >= 0) {
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(*fd, 0666 & ~mask) == 0)
            return aside;
    }
    const int error = errno;
    if (*fd >= 0) {
        close(*fd);
        unlink(aside);
    }
    free(aside);
    errno = error;
    return NULL;
}

int read_aside_settle(char *aside, const char *path, int error)
{
    const bool is_file = aside && *aside;
    if (aside == under_way)
        under_way = NULL;
    if (is_file && error == 0 && rename(aside, path) != 0)
        error = errno;
    if (is_file && error != 0)
        unlink(aside);
    free(aside);
    return error;
}

FILE *read_aside_open(const char *path, char **aside)
{
    int fd;
    *aside = read_aside_make(path, &fd);
    FILE *out = *aside ? fdopen(fd, "wb") : NULL;
    if (*aside && !out) {
        const int error = errno;
        close(fd);
        errno = read_aside_settle(*aside, path, error);
    }
    if (out) {
        read_aside_note(*aside);
        errno = 0; /* read_aside_close asks why a stream has failed */
    }
    return out;
}

int read_aside_close(FILE *out, char *aside, const char *path, int error)
{
    if (error == 0 && (fflush(out) != 0 || ferror(out)))
        error = errno ? errno : EIO;
    if (fclose(out) != 0 && error == 0)
        error = errno;
    return read_aside_settle(aside, path, error);
}
