/* tape_unnamed.c: see tape_unnamed.h. */
#include "tape_unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Some file systems make none: there it is named for a moment. */
int tape_unnamed_file(char *directory, size_t length)
{
    static const char name[] = "/tapescope-XXXXXX";
    int fd;
    do
        fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    do {
        memcpy(directory + length, name, sizeof name);
        fd = mkostemp(directory, O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    const int error = errno;
    if (fd >= 0)
        (void)unlink(directory);
    directory[length] = 0;
    errno = error;
    return fd;
}
