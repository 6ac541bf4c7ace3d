/* tape_memory.c: address space by mmap, small tables by malloc, the budget from /proc and cgroup.
 *
 * A reservation costs no memory until it is touched.
 */
#include "tape_memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PATH_BYTES = 2 * PATH_MAX + 64 };

static void system_advise_huge(void *p, size_t n, void *payload)
{
    (void)payload;
#ifdef MADV_HUGEPAGE
    /* Advice only: without it a first touch costs about five times as much per byte. */
    (void)madvise(p, n, MADV_HUGEPAGE);
#endif
}

static void *system_reserve(size_t n, void *payload)
{
    (void)payload;
    void *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void system_unreserve(void *p, size_t n, void *payload)
{
    (void)payload;
    munmap(p, n);
}

static void *system_resize(void *p, size_t n, void *payload)
{
    (void)payload;
    return realloc(p, n);
}

static void system_release(void *p, void *payload)
{
    (void)payload;
    free(p);
}

const struct tape_memory tape_memory_system = {
    system_reserve, system_unreserve, system_resize, system_release, NULL, system_advise_huge};

/* The number in a one-line file, or UINT64_MAX if there is none ("max", no such file). */
static uint64_t memory_number_in(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return UINT64_MAX;
    char line[64];
    uint64_t n = UINT64_MAX;
    if (fgets(line, sizeof line, f) && line[0] >= '0' && line[0] <= '9')
        n = strtoull(line, NULL, 10);
    fclose(f);
    return n;
}

static uint64_t memory_available(const char *root)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *f = fopen(path, "re");
    uint64_t kib = UINT64_MAX;
    if (!f)
        return UINT64_MAX;
    char line[128];
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtoull(line + 13, NULL, 10);
    fclose(f);
    return kib == UINT64_MAX ? UINT64_MAX : kib * 1024;
}

/* What this process's version-2 control group still allows. */
static uint64_t cgroup_left(const char *root)
{
    char line[PATH_MAX], path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    uint64_t left = UINT64_MAX;
    if (!f)
        return left;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/memory.max", root, line + 3);
        uint64_t max = memory_number_in(path);
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/memory.current", root, line + 3);
        uint64_t now = memory_number_in(path);
        if (max != UINT64_MAX && now != UINT64_MAX)
            left = max > now ? max - now : 0;
    }
    fclose(f);
    return left;
}

uint64_t tape_memory_budget_under(const char *root)
{
    uint64_t a = memory_available(root), c = cgroup_left(root);
    uint64_t least = a < c ? a : c;
    if (least == UINT64_MAX)
        return (uint64_t)64 << 30;
    least = least / 10 * 9;
    return least < TAPE_HUGE_PAGE ? TAPE_HUGE_PAGE : least;
}

uint64_t tape_memory_default_budget(void)
{
    return tape_memory_budget_under("");
}

void *tape_array_reserve(const struct tape_memory *memory, void *array, uint32_t n, uint32_t *size,
                         size_t each)
{
    enum { LEAST = 8 };
    if (n <= *size)
        return array;
    const uint32_t most = n < LEAST / 2 ? LEAST : n * 2;
    void *p = memory->resize(array, most * each, memory->payload);
    if (p)
        *size = most;
    return p;
}
