/* common_environment.c: sets the environment variables that OpenBLAS reads.
 *
 * May include: nothing of the project. Invariant: the program starts again at most once.
 */
#include "common_environment.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void environment_settle(char **argv)
{
    static const char *const unwanted[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};
    static const char *const threads[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
    bool change = false;
    for (int i = 0; i < 2; ++i) {
        const char *n = getenv(threads[i]);
        change = change || getenv(unwanted[i]) || !n || strcmp(n, "1") != 0;
        unsetenv(unwanted[i]);
        setenv(threads[i], "1", 1);
    }
    if (change)
        execv("/proc/self/exe", argv);
}

const char *environment_openblas_core(void)
{
    void *all = dlopen(NULL, RTLD_LAZY);
    void *symbol = all ? dlsym(all, "openblas_get_corename") : NULL;
    char *(*name)(void) = NULL;
    memcpy(&name, &symbol, sizeof name);
    return name ? name() : "unknown";
}
