/* common_environment.c: sets the environment variables that OpenBLAS reads.
 *
 * Invariant: the program starts again at most once.
 */
#include "common_environment.h"

#include <dlfcn.h>
#include <glob.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 64 };

extern char **environ;

void environment_settle(char **argv, int threads)
{
    static const char *const unwanted[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};
    static const char *const counts[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
    const bool chosen = getenv("TAPESCOPE_ISA") != NULL; /* and with it OpenBLAS's kernels */
    bool change = false;
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%d", threads);
    for (int i = 0; i < 2; ++i) {
        const char *n = getenv(counts[i]);
        change = change || (!chosen && getenv(unwanted[i])) || !n || strcmp(n, wanted) != 0;
        if (!chosen)
            unsetenv(unwanted[i]);
        setenv(counts[i], wanted, 1);
    }
    if (change)
        execv("/proc/self/exe", argv);
}

int environment_run_with_threads(char **argv, int threads)
{
    char *arguments[MAX_ARGUMENTS + 3], option[] = "--threads", number[16];
    int n = 0, status = 0;
    pid_t child;
    while (argv[n] && n < MAX_ARGUMENTS) {
        arguments[n] = argv[n];
        ++n;
    }
    snprintf(number, sizeof number, "%d", threads);
    arguments[n++] = option;
    arguments[n++] = number;
    arguments[n] = NULL;
    fflush(NULL);
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

const char *environment_openmp_blas(void)
{
    static char setting[4096];
    glob_t found = {0};
    int length = -1;
    if (glob("/usr/lib/*/openblas-openmp/libblas.so.3", 0, NULL, &found) == 0) {
        const char *path = found.gl_pathv[0], *others = getenv("LD_LIBRARY_PATH");
        length = snprintf(setting, sizeof setting, "LD_LIBRARY_PATH=%.*s%s%s",
                          (int)(strrchr(path, '/') - path), path, others ? ":" : "",
                          others ? others : "");
    }
    globfree(&found);
    return length >= 0 && (size_t)length < sizeof setting ? setting : NULL;
}

const char *environment_openblas_core(void)
{
    void *all = dlopen(NULL, RTLD_LAZY);
    void *symbol = all ? dlsym(all, "openblas_get_corename") : NULL;
    char *(*name)(void) = NULL;
    memcpy(&name, &symbol, sizeof name);
    return name ? name() : "unknown";
}
