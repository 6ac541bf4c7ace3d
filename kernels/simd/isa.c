/* isa.c: which instruction set the loops use on this machine.
 *
 * The choice is made once and kept in an atomic pointer. Threads that choose at the same time
 * choose the same.
 */
#include "elementwise.h"

#include <stdlib.h>
#include <string.h>

const struct kernel_isa *_Atomic kernel_isa_chosen;

#if defined(__x86_64__) && defined(__linux__)
enum { ISAS = 3 };
/* By level; NULL where this build has none (TAPESCOPE_KERNEL_ISAS). */
static const struct kernel_isa *const isas[ISAS] = {
    &kernel_isa_portable,
#ifndef KERNEL_WITHOUT_AVX2
    [1] = &kernel_isa_avx2,
#endif
#ifndef KERNEL_WITHOUT_AVX512
    [2] = &kernel_isa_avx512,
#endif
};

/* Index of the best set that this machine and its system can run. */
static int isa_best(void)
{
    __builtin_cpu_init();
    if (isas[2] != NULL && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return 2;
    return isas[1] != NULL && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1
                                                                                              : 0;
}
#else
enum { ISAS = 1 };
static const struct kernel_isa *const isas[ISAS] = {&kernel_isa_portable};

static int isa_best(void)
{
    return 0;
}
#endif

/* Index of a set by name, or -1. */
static int isa_find(const char *name)
{
    for (int i = 0; i < ISAS; i++)
        if (isas[i] != NULL && strcmp(isas[i]->name, name) == 0)
            return i;
    return -1;
}

const struct kernel_isa *kernel_isa_choose(void)
{
    int best = isa_best();
    const char *wish = secure_getenv("TAPESCOPE_ISA");
    const int wished = wish != NULL ? isa_find(wish) : -1;
    if (wished >= 0 && wished < best)
        best = wished;
    atomic_store_explicit(&kernel_isa_chosen, isas[best], memory_order_release);
    return isas[best];
}

bool kernel_isa_use(const char *name)
{
    if (name == NULL) {
        (void)kernel_isa_choose();
        return true;
    }
    const int found = isa_find(name);
    if (found < 0 || found > isa_best())
        return false;
    atomic_store_explicit(&kernel_isa_chosen, isas[found], memory_order_release);
    return true;
}

const char *kernel_isa_name(void)
{
    return kernel_isa_get()->name;
}

int kernel_isa_level(void)
{
    const struct kernel_isa *isa = kernel_isa_get();
    int level = (int)(sizeof isas / sizeof *isas) - 1;
    while (level > 0 && isas[level] != isa)
        level--;
    return level;
}
