/* tape_statement_sweep.c: see tape_statement_sweep.h.
 *
 * May include: tape_statement_sweep.h. The loops are compiled once for any processor and once for
 * one with fused multiplication and wider vectors, which is chosen at run time.
 */
#include "tape_statement_sweep.h"

#define ALWAYS static inline __attribute__((always_inline))

/* One seed. The counts of a line repeat, so they are foreseen: where each case steps by a constant,
 * the next statement's place does not wait for this one's count to arrive from memory. */
#define TO(k) adjoint[w[2 + (k)]] += p[k] * y;
#define CASE(count, ...)                                                                           \
    case count:                                                                                    \
        p -= (count);                                                                              \
        __VA_ARGS__                                                                                \
        w += (count) + 2;                                                                          \
        break;
ALWAYS void one(const struct tape_run *run, double *adjoint)
{
    const double *p = run->partial_end;
    const uint32_t *const end = run->word_begin;
    size_t result = (size_t)run->first + run->n;
    for (const uint32_t *w = run->word_end; w < end;) {
        const uint32_t n = w[0];
        const double y = adjoint[--result];
        if (y == 0) {
            p -= n;
            w += n + 2;
            continue;
        }
        switch (n) {
            CASE(1, TO(0))
            CASE(2, TO(1) TO(0))
            CASE(3, TO(2) TO(1) TO(0))
            CASE(4, TO(3) TO(2) TO(1) TO(0))
            CASE(5, TO(4) TO(3) TO(2) TO(1) TO(0))
            CASE(6, TO(5) TO(4) TO(3) TO(2) TO(1) TO(0))
            CASE(7, TO(6) TO(5) TO(4) TO(3) TO(2) TO(1) TO(0))
            CASE(8, TO(7) TO(6) TO(5) TO(4) TO(3) TO(2) TO(1) TO(0))
        default:
            p -= n;
            for (uint32_t k = 0; k < n; k++)
                TO(k)
            w += n + 2;
        }
    }
}
#undef CASE
#undef TO

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
