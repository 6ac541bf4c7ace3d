/* tape_statement_sweep.c: see tape_statement_sweep.h.
 *
 * The loops are compiled once for any processor and once for one with fused multiplication and
 * wider vectors, which is chosen at run time.
 */
#include "tape_statement_sweep.h"

#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

/* A sample is charged to the statement that it finds here: each loop is compiled once more with
 * this. Once for several statements would be cheaper, and would charge most to the wrong one. */
#define PUBLISH(now)                                                                               \
    if (now)                                                                                       \
        __atomic_store_n(&(now)->statement, w, __ATOMIC_RELAXED);

/* One seed. The counts of a line repeat, so they are foreseen: where each case steps by a constant,
 * the next statement's place does not wait for this one's count to arrive from memory. */
#define TO(k) adjoint[w[2 + (k)]] += p[k] * y;
#define CASE(count, ...)                                                                           \
    case count:                                                                                    \
        p -= (count);                                                                              \
        __VA_ARGS__                                                                                \
        w += (count) + 2;                                                                          \
        break;
#define CASES                                                                                      \
    CASE(1, TO(0))                                                                                 \
    CASE(2, TO(1) TO(0))                                                                           \
    CASE(3, TO(2) TO(1) TO(0))                                                                     \
    CASE(4, TO(3) TO(2) TO(1) TO(0))                                                               \
    CASE(5, TO(4) TO(3) TO(2) TO(1) TO(0))                                                         \
    CASE(6, TO(5) TO(4) TO(3) TO(2) TO(1) TO(0))                                                   \
    CASE(7, TO(6) TO(5) TO(4) TO(3) TO(2) TO(1) TO(0))                                             \
    CASE(8, TO(7) TO(6) TO(5) TO(4) TO(3) TO(2) TO(1) TO(0))
ALWAYS void one(const struct tape_run *run, double *adjoint, struct tape_now *now)
{
    const double *p = run->partial_end;
    const uint32_t *const end = run->word_begin;
    size_t result = (size_t)run->first + run->n;
    for (const uint32_t *w = run->word_end; w < end;) {
        const uint32_t n = w[0];
        const double y = adjoint[--result];
        PUBLISH(now)
        if (y == 0) {
            p -= n;
            w += n + 2;
            continue;
        }
        switch (n) {
            CASES
        default:
            p -= n;
            for (uint32_t k = 0; k < n; k++)
                TO(k)
            w += n + 2;
        }
    }
}
#undef TO

/* Whether a vector of seeds has one that is not 0: in integers, which nothing is waited for. */
ALWAYS bool any(const double *y, int width)
{
    uint64_t bits = 0;
    for (int k = 0; k < width; k++) {
        uint64_t lane;
        memcpy(&lane, &y[k], sizeof lane);
        bits |= lane;
    }
    return bits << 1 != 0;
}

/* Several seeds, which are the lanes of a vector. A lane that is 0 is passed over by itself. */
#define TO(k) *(lanes *)&adjoint[w[2 + (k)] * width] += (lanes)((bits)(p[k] * y) & passed);
#define SEVERAL(name, seeds)                                                                       \
    ALWAYS void name(const struct tape_run *run, double *adjoint, struct tape_now *now)            \
    {                                                                                              \
        typedef double lanes                                                                       \
            __attribute__((vector_size(seeds * 8), aligned(sizeof(double)), may_alias));           \
        typedef int64_t bits __attribute__((vector_size(seeds * 8)));                              \
        const size_t width = seeds;                                                                \
        const double *p = run->partial_end;                                                        \
        const uint32_t *const end = run->word_begin;                                               \
        size_t result = (size_t)run->first + run->n;                                               \
        for (const uint32_t *w = run->word_end; w < end;) {                                        \
            const uint32_t n = w[0];                                                               \
            PUBLISH(now)                                                                           \
            const double *at = &adjoint[--result * width];                                         \
            if (!any(at, seeds)) {                                                                 \
                p -= n;                                                                            \
                w += n + 2;                                                                        \
                continue;                                                                          \
            }                                                                                      \
            const lanes y = *(const lanes *)at;                                                    \
            const bits passed = (bits)(y != 0);                                                    \
            switch (n) {                                                                           \
                CASES                                                                              \
            default:                                                                               \
                p -= n;                                                                            \
                for (uint32_t k = 0; k < n; k++)                                                   \
                    TO(k)                                                                          \
                w += n + 2;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }
SEVERAL(several2, 2)
SEVERAL(several4, 4)
SEVERAL(several8, 8)
#undef TO
#undef CASE
#undef CASES

ALWAYS void of_width(const struct tape_run *run, double *adjoint, uint32_t width,
                     struct tape_now *now)
{
    if (width == 1)
        one(run, adjoint, now);
    else if (width == 2)
        several2(run, adjoint, now);
    else if (width == 4)
        several4(run, adjoint, now);
    else
        several8(run, adjoint, now);
}

#define PULLBACK(name)                                                                             \
    static void name(const struct tape_run *run, double *adjoint, uint32_t width,                  \
                     struct tape_now *now)                                                         \
    {                                                                                              \
        if (__builtin_expect(now != NULL, 0))                                                      \
            of_width(run, adjoint, width, now);                                                    \
        else                                                                                       \
            of_width(run, adjoint, width, NULL);                                                   \
    }

PULLBACK(portable)
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) PULLBACK(avx2)
    __attribute__((target("avx512f,avx512vl,avx2,fma"))) PULLBACK(avx512)
#endif

        static void pullback(const struct tape_run *run, double *adjoint, uint32_t width,
                             struct tape_now *now)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512vl")) {
        avx512(run, adjoint, width, now);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        avx2(run, adjoint, width, now);
        return;
    }
#endif
    portable(run, adjoint, width, now);
}

void tape_run_pullback(const struct tape_run *run, double *adjoint, uint32_t width,
                       struct tape_now *now)
{
    if (__builtin_expect(now == NULL, 1)) {
        pullback(run, adjoint, width, NULL);
        return;
    }
    __atomic_store_n(&now->statement, run->word_end, __ATOMIC_RELAXED);
    struct tape_doing doing = now->doing;
    if (doing.phase != TAPE_PHASE_NONE) { /* else nobody takes samples: the thread is looked at */
        doing.op = tape_statement_kind.op.name;
        doing.line = 0;
        doing.near = run->near;
        tape_doing_write(now, &doing);
    }
    pullback(run, adjoint, width, now);
    /* What lies there may be gone after this. */
    __atomic_store_n(&now->statement, NULL, __ATOMIC_RELAXED);
}
