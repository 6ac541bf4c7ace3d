/* unnamed_files.h: what a test's folder has: names, and open files that nothing names. */
#ifndef UNNAMED_FILES_H
#define UNNAMED_FILES_H

#include "check_quietly.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int folder_entries(const char *folder)
{
    DIR *of = opendir(folder);
    int n = -2; /* itself, and what it is in */
    while (of && readdir(of))
        n++;
    if (of)
        closedir(of);
    return n;
}

struct unnamed_files {
    int n;
    int64_t bytes, allocated; /* their lengths, and what they take without their holes */
};

/* Of the files of this folder that are open; none of them has a name. */
static inline struct unnamed_files unnamed_files_of(const char *folder)
{
    struct unnamed_files files = {0, 0, 0};
    for (int fd = 3; fd < 64; fd++) {
        char link[64], path[1024] = "";
        struct stat st;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, folder) &&
            fstat(fd, &st) == 0) {
            ck_assert_uint_eq(st.st_nlink, 0);
            files.bytes += st.st_size;
            files.allocated += (int64_t)st.st_blocks * 512;
            files.n++;
        }
    }
    return files;
}

#endif
