/* aside.c: see aside.h. */
#include "aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* To put a file in the place of a device would take it from everybody. */
static char *open_special(const char *path, int *fd)
{
    char *aside = calloc(1, 1);
    *fd = aside ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (*fd >= 0)
        return aside;
    const int error = aside ? errno : ENOMEM;
    free(aside);
    errno = error;
    return NULL;
}

char *aside_make(const char *path, int *fd)
{
    char *aside = NULL;
    if (is_special(path))
        return open_special(path, fd);
    if (asprintf(&aside, "%s.XXXXXX", path) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    *fd = mkostemp(aside, O_CLOEXEC);
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

int aside_settle(char *aside, const char *path, int error)
{
    const bool is_file = aside && *aside;
    if (is_file && error == 0 && rename(aside, path) != 0)
        error = errno;
    if (is_file && error != 0)
        unlink(aside);
    free(aside);
    return error;
}

FILE *aside_open(const char *path, char **aside)
{
    int fd;
    *aside = aside_make(path, &fd);
    FILE *out = *aside ? fdopen(fd, "wb") : NULL;
    if (*aside && !out) {
        const int error = errno;
        close(fd);
        errno = aside_settle(*aside, path, error);
    }
    if (out)
        errno = 0; /* aside_close asks why a stream has failed */
    return out;
}

int aside_close(FILE *out, char *aside, const char *path, int error)
{
    if (error == 0 && (fflush(out) != 0 || ferror(out)))
        error = errno ? errno : EIO;
    if (fclose(out) != 0 && error == 0)
        error = errno;
    return aside_settle(aside, path, error);
}
