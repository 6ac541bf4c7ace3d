/* tape_statement_sweep.c: see tape_statement_sweep.h.
 *
 * May include: tape_statement_sweep.h. The loops are compiled once for any processor and once for
 * one with fused multiplication and wider vectors, which is chosen at run time.
 */
#include "tape_statement_sweep.h"

#define ALWAYS static inline __attribute__((always_inline))

/* One seed. */
ALWAYS void one(const struct tape_run *run, double *adjoint)
{
    const double *p = run->partial_end;
    const uint32_t *const end = run->word_begin;
    size_t result = (size_t)run->first + run->n;
    for (const uint32_t *w = run->word_end; w < end;) {
        const uint32_t n = w[0], *index = w + 2;
        const double y = adjoint[--result];
        w += n + 2;
        p -= n;
        if (y == 0)
            continue;
        /* The counts of a line repeat, so the branch is foreseen where a loop's end is not. */
        switch (n) {
        case 3:
            adjoint[index[2]] += p[2] * y; /* fall through */
        case 2:
            adjoint[index[1]] += p[1] * y; /* fall through */
        case 1:
            adjoint[index[0]] += p[0] * y;
            break;
        default:
            for (uint32_t k = 0; k < n; k++)
                adjoint[index[k]] += p[k] * y;
        }
    }
}

/* Several seeds, which are the lanes of a vector. */
#define SEVERAL(width)                                                                             \
    typedef double lanes##width                                                                    \
        __attribute__((vector_size(width * sizeof(double)), aligned(sizeof(double)), may_alias));  \
    ALWAYS void several##width(const struct tape_run *run, double *adjoint)                        \
    {                                                                                              \
        const double *p = run->partial_end;                                                        \
        const uint32_t *const end = run->word_begin;                                               \
        size_t result = (size_t)run->first + run->n;                                               \
        for (const uint32_t *w = run->word_end; w < end;) {                                        \
            const uint32_t n = w[0], *index = w + 2;                                               \
            const lanes##width y = *(const lanes##width *)&adjoint[--result * width];              \
            bool any = false;                                                                      \
            for (int k = 0; k < width; k++)                                                        \
                any |= y[k] != 0;                                                                  \
            w += n + 2;                                                                            \
            p -= n;                                                                                \
            for (uint32_t k = 0; k < n && any; k++)                                                \
                *(lanes##width *)&adjoint[(size_t)index[k] * width] += p[k] * y;                   \
        }                                                                                          \
    }
SEVERAL(2)
SEVERAL(4)
SEVERAL(8)

#define PULLBACK(name)                                                                             \
    static void name(const struct tape_run *run, double *adjoint, uint32_t width)                  \
    {                                                                                              \
        if (width == 1)                                                                            \
            one(run, adjoint);                                                                     \
        else if (width == 2)                                                                       \
            several2(run, adjoint);                                                                \
        else if (width == 4)                                                                       \
            several4(run, adjoint);                                                                \
        else                                                                                       \
            several8(run, adjoint);                                                                \
    }

PULLBACK(portable)
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) PULLBACK(avx2)
    __attribute__((target("avx512f,avx512vl,avx2,fma"))) PULLBACK(avx512)
#endif

        void tape_run_pullback(const struct tape_run *run, double *adjoint, uint32_t width)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512vl")) {
        avx512(run, adjoint, width);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        avx2(run, adjoint, width);
        return;
    }
#endif
    portable(run, adjoint, width);
}
