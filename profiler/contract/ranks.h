/* ranks.h: which rank of how many a process is, as its launcher says before MPI has begun, and the
 * name of its profile.
 *
 * The library names profiles by this, the collector puts it into them, and `tapescope record` looks
 * for what they wrote.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* X(variable of the rank, variable of their number, or NULL) of one launcher; the first counts that
 * says both. Slurm gives a batch script a rank too, but no number of tasks of a step. */
#define RANKS_LAUNCHERS(X)                                                                         \
    X("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")                                              \
    X("PMIX_RANK", NULL)                                                                           \
    X("PMI_RANK", "PMI_SIZE")                                                                      \
    X("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")

enum { RANKS_MOST = 1 << 24 };

/* size 0: unknown. */
struct ranks_here {
    bool known;
    uint32_t rank, size;
};

/* False: it is no number that a rank can be. */
static inline bool ranks_number(const char *text, uint32_t *value)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    const unsigned long n = strtoul(text, &end, 10);
    *value = (uint32_t)n;
    return *end == '\0' && n <= RANKS_MOST;
}

/* A process that is alone is no rank. Any thread, while nobody changes the environment. */
static inline struct ranks_here ranks_of_environment(void)
{
    static const char *const name[][2] = {
#define X(rank, size) {rank, size},
        RANKS_LAUNCHERS(X)
#undef X
    };
    struct ranks_here here = {false, 0, 0};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        here.size = 0;
        if (!ranks_number(secure_getenv(name[i][0]), &here.rank) ||
            (name[i][1] && !ranks_number(secure_getenv(name[i][1]), &here.size)))
            continue;
        here.known = here.size != 1;
        break;
    }
    return here;
}

/* The name of this process' profile: "PATH.RANK" where it is a rank, `path` for others, for a name
 * that ends so already, for what is there and is no file, and for descriptors' names. NULL: it is
 * longer than `n`. */
static inline const char *ranks_path(char *to, size_t n, const char *path)
{
    char end[16];
    struct stat there;
    const struct ranks_here here = ranks_of_environment();
    const size_t length = strlen(path);
    if (!here.known || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ||
        (stat(path, &there) == 0 && !S_ISREG(there.st_mode)))
        return path;
    const size_t own = (size_t)snprintf(end, sizeof end, ".%u", here.rank);
    if (length > own && strcmp(path + length - own, end) == 0)
        return path;
    return snprintf(to, n, "%s%s", path, end) < (int)n ? to : NULL;
}

#endif
