/* base_program.c: see base_program.h. */
#include "base_program.h"

#include <unistd.h>

size_t base_program_folder(char *path, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", path, room);
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n <= 0 || (size_t)n >= room)
        return 0;
    path[n] = '\0';
    return (size_t)n;
}
