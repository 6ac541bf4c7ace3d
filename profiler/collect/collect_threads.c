/* collect_threads.c: the threads of this process, as the system shows them in /proc.
 *
 * Where there is no /proc, only threads that are known otherwise are sampled, and stacks are not
 * followed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_sampler.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int threads_compare(const void *a, const void *b)
{
    const pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return x < y ? -1 : x > y;
}

uint32_t collect_threads_list(pid_t *tid, uint32_t room)
{
    uint32_t n = 0;
    DIR *folder = opendir("/proc/self/task");
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry; n < room && (entry = readdir(folder)) != NULL;) {
        const long number = strtol(entry->d_name, NULL, 10);
        if (number > 0)
            tid[n++] = (pid_t)number;
    }
    closedir(folder);
    qsort(tid, n, sizeof *tid, threads_compare);
    return n;
}

void collect_thread_name(char name[16], pid_t tid)
{
    char path[64];
    struct collect_buffer text = {0};
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)tid);
    name[0] = '\0';
    if (collect_file_read(&text, path, 64) == 0 && text.n > 0) {
        const size_t n = text.n < 15 ? text.n : 15;
        memcpy(name, text.data, n);
        name[n] = '\0';
        name[strcspn(name, "\n")] = '\0';
    }
    free(text.data);
}

bool collect_thread_is_own(pid_t tid)
{
    char name[16];
    collect_thread_name(name, tid);
    return strncmp(name, "tapescope-", strlen("tapescope-")) == 0;
}

uint64_t collect_thread_cpu(pid_t tid)
{
    /* The kernel's number for the processor-time clock of a thread: see CPUCLOCK_PERTHREAD. */
    const clockid_t id = (clockid_t)(~(unsigned)tid << 3 | 6u);
    struct timespec t;
    if (clock_gettime(id, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

bool collect_mapping_of(uintptr_t address, uintptr_t *low, uintptr_t *high)
{
    struct collect_buffer maps = {0};
    bool found = false;
    if (collect_file_read(&maps, "/proc/self/maps", SIZE_MAX) != 0 ||
        !collect_put_bytes(&maps, "", 1)) {
        free(maps.data);
        return false;
    }
    for (const char *line = (char *)maps.data; *line != '\0' && !found;) {
        char *at;
        const uintptr_t start = strtoull(line, &at, 16);
        const uintptr_t end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
        found = address >= start && address < end && strncmp(at, " rw", 3) == 0;
        if (found) {
            *low = start;
            *high = end;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(maps.data);
    return found;
}
