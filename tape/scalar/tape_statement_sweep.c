/* tape_statement_sweep.c: see tape_statement_sweep.h.
 *
 * The loops are compiled once for any processor and once for one with fused multiplication and
 * wider vectors, which is chosen at run time.
 */
#include "tape_statement_sweep.h"

#include "tape_now.h"

#include <string.h>

/* Words that are swept before it is asked again whether the thread is to say where it is. */
enum { STRETCH = 16384 };

#define ALWAYS static inline __attribute__((always_inline))

/* A sample is charged to the statement that it finds here: each loop is compiled once more with
 * this. Once for several statements would be cheaper, and would charge most to the wrong one. */
#define PUBLISH(now)                                                                               \
    if (now)                                                                                       \
        __atomic_store_n(&(now)->statement, w, __ATOMIC_RELAXED);

/* A case for each shape, so that the operands are written out. The shapes of a loop's statements
 * repeat, so they are foreseen: where each case steps by a constant, the next statement's place
 * does not wait for this one's shape to arrive from memory. For the same reason an adjoint is
 * compared with 0 within the case. A loop's statements often have one shape: a case goes on while
 * the next has it too. NEXT: the statement at w is the one under way. TO: an operand with a partial
 * derivative of its own; PLUS, MINUS: one of 1 and -1. */
#define CASE(shape, general, n, ...)                                                               \
    case shape:                                                                                    \
        for (;;) {                                                                                 \
            p -= (general);                                                                        \
            if (SOME) {                                                                            \
                __VA_ARGS__                                                                        \
            }                                                                                      \
            w += 1 + (n);                                                                          \
            if (w >= end || w[0] % TAPE_SHAPES != (shape))                                         \
                break;                                                                             \
            NEXT;                                                                                  \
        }                                                                                          \
        break;
#define GENERAL(g, ...) CASE(g, g, g, __VA_ARGS__)
#define WITH_UNITS(g, ...)                                                                         \
    CASE(TAPE_SHAPE_UNITS + (g), g, (g) + 1, __VA_ARGS__ PLUS(g))                                  \
    CASE(TAPE_SHAPE_UNITS * 2 + (g), g, (g) + 2, __VA_ARGS__ PLUS(g) PLUS((g) + 1))                \
    CASE(TAPE_SHAPE_UNITS * 3 + (g), g, (g) + 1, __VA_ARGS__ MINUS(g))                             \
    CASE(TAPE_SHAPE_UNITS * 4 + (g), g, (g) + 2, __VA_ARGS__ PLUS(g) MINUS((g) + 1))
#define EITHER(g, ...) GENERAL(g, __VA_ARGS__) WITH_UNITS(g, __VA_ARGS__)
#define TO2 TO(1) TO(0)
#define TO3 TO(2) TO2
#define TO4 TO(3) TO3
#define TO5 TO(4) TO4
#define TO6 TO(5) TO5
#define TO7 TO(6) TO6
#define TO8 TO(7) TO7
#define TO9 TO(8) TO8
#define TO10 TO(9) TO9
#define TO11 TO(10) TO10
#define EITHER_TO_3 EITHER(1, TO(0)) EITHER(2, TO2) EITHER(3, TO3)
#define EITHER_TO_6 EITHER_TO_3 EITHER(4, TO4) EITHER(5, TO5) EITHER(6, TO6)
#define EITHER_TO_9 EITHER_TO_6 EITHER(7, TO7) EITHER(8, TO8) EITHER(9, TO9)
#define EITHER_TO_11 EITHER_TO_9 EITHER(10, TO10) EITHER(11, TO11)
#define GENERAL_4_TO_6 GENERAL(4, TO4) GENERAL(5, TO5) GENERAL(6, TO6)
#define GENERAL_7_TO_9 GENERAL(7, TO7) GENERAL(8, TO8) GENERAL(9, TO9)
#define FEW_CASES WITH_UNITS(0, ) EITHER_TO_3 GENERAL_4_TO_6 GENERAL_7_TO_9
#define MANY_CASES WITH_UNITS(0, ) EITHER_TO_11 CASE(TAPE_SHAPE_FULL, 12, 12, TO(11) TO11)
/* Any shape: the words then begin at the indices. */
#define EACH(o)                                                                                    \
    do {                                                                                           \
        uint32_t k = 0;                                                                            \
        p -= (o).general;                                                                          \
        w = (o).index - 1;                                                                         \
        if (SOME) {                                                                                \
            for (; k < (o).general; k++)                                                           \
                TO(k)                                                                              \
            for (; k < (o).general + (o).plus; k++)                                                \
                PLUS(k)                                                                            \
            for (; k < (o).n; k++)                                                                 \
                MINUS(k)                                                                           \
        }                                                                                          \
        w += 1 + (o).n;                                                                            \
    } while (0)

/* What is left of a run is below this statement. */
ALWAYS void run_left(struct tape_run *run, const uint32_t *w, const double *p, size_t result)
{
    run->word_end = w;
    run->partial_end = p;
    run->n = (uint32_t)(result - run->first);
}

/* A case for each shape is long. NOLINTBEGIN(readability-function-size) */

/* One seed. head: what the statements' heads are to be: it ends at the first that is another, as
 * TAPE_HEAD_NONE always is. NULL: they may be any. */
#define NEXT                                                                                       \
    if (head && w[0] != *head++)                                                                   \
        goto left;                                                                                 \
    PUBLISH(now)                                                                                   \
    y = adjoint[--result]
#define SOME (y != 0)
#define TO(k) adjoint[w[1 + (k)]] += p[k] * y;
#define PLUS(k) adjoint[w[1 + (k)]] += y;
#define MINUS(k) adjoint[w[1 + (k)]] -= y;
ALWAYS void one(struct tape_run *run, const uint32_t *end, double *adjoint, struct tape_now *now,
                const uint32_t *head)
{
    const double *p = run->partial_end;
    size_t result = (size_t)run->first + run->n;
    const uint32_t *w = run->word_end;
    double y;
    while (w < end) {
        NEXT;
        switch (w[0] % TAPE_SHAPES) {
            MANY_CASES
        default: {
            const struct tape_operands o = tape_statement_operands(w);
            EACH(o);
        }
        }
    }
left:
    run_left(run, w, p, result);
}
#undef NEXT
#undef SOME
#undef TO
#undef PLUS
#undef MINUS

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

/* Several seeds, which are the lanes of one vector, or of two where the machine's are shorter: gcc
 * takes longer vectors apart in memory. A lane that is 0 is passed over by itself. */
#define NEXT                                                                                       \
    PUBLISH(now)                                                                                   \
    result--;                                                                                      \
    some = any(&adjoint[result * width], (int)width);                                              \
    y = *(const lanes *)&adjoint[result * width];                                                  \
    more = *(const lanes *)&adjoint[result * width + width - length];                              \
    passed = (bits)(y != 0);                                                                       \
    more_passed = (bits)(more != 0)
#define SOME some
#define AT(k) *(lanes *)&adjoint[w[1 + (k)] * width]
#define MORE(k) *(lanes *)&adjoint[w[1 + (k)] * width + length]
#define EACH_HALF(first, second)                                                                   \
    {                                                                                              \
        first;                                                                                     \
        if (width > length)                                                                        \
            second;                                                                                \
    }
#define TO(k)                                                                                      \
    EACH_HALF(AT(k) += (lanes)((bits)(p[k] * y) & passed),                                         \
              MORE(k) += (lanes)((bits)(p[k] * more) & more_passed))
#define PLUS(k) EACH_HALF(AT(k) += y, MORE(k) += more)
#define MINUS(k) EACH_HALF(AT(k) -= y, MORE(k) -= more)
#define SEVERAL(name, seeds, together)                                                             \
    ALWAYS void name(struct tape_run *run, const uint32_t *end, double *adjoint,                   \
                     struct tape_now *now)                                                         \
    {                                                                                              \
        typedef double lanes                                                                       \
            __attribute__((vector_size(together * 8), aligned(sizeof(double)), may_alias));        \
        typedef int64_t bits __attribute__((vector_size(together * 8)));                           \
        const size_t width = seeds, length = together;                                             \
        const double *p = run->partial_end;                                                        \
        size_t result = (size_t)run->first + run->n;                                               \
        const uint32_t *w = run->word_end;                                                         \
        bool some;                                                                                 \
        lanes y, more;                                                                             \
        bits passed, more_passed;                                                                  \
        while (w < end) {                                                                          \
            NEXT;                                                                                  \
            switch (w[0] % TAPE_SHAPES) {                                                          \
                FEW_CASES                                                                          \
            default: {                                                                             \
                const struct tape_operands o = tape_statement_operands(w);                         \
                EACH(o);                                                                           \
            }                                                                                      \
            }                                                                                      \
        }                                                                                          \
        run_left(run, w, p, result);                                                               \
    }
SEVERAL(several2, 2, 2)
SEVERAL(several4, 4, 4)
SEVERAL(several8, 8, 8)
SEVERAL(several8_by_4, 8, 4)
#undef NEXT
#undef SOME
#undef AT
#undef MORE
#undef EACH_HALF
#undef TO
#undef PLUS
#undef MINUS

/* NOLINTEND(readability-function-size) */

/* wide: the machine's vectors have eight lanes. */
ALWAYS void of_width(struct tape_run *run, const uint32_t *end, double *adjoint, uint32_t width,
                     struct tape_now *now, bool wide)
{
    if (width == 1)
        one(run, end, adjoint, now, NULL);
    else if (width == 2)
        several2(run, end, adjoint, now);
    else if (width == 4)
        several4(run, end, adjoint, now);
    else if (wide)
        several8(run, end, adjoint, now);
    else
        several8_by_4(run, end, adjoint, now);
}

/* A sweep over a part of a run, and over statements alike `head`, by one instruction set. */
#define SWEEPS(name, wide, target)                                                                 \
    target static void pullback_##name(struct tape_run *run, const uint32_t *end, double *adjoint, \
                                       uint32_t width, struct tape_now *now)                       \
    {                                                                                              \
        if (__builtin_expect(now != NULL, 0))                                                      \
            of_width(run, end, adjoint, width, now, wide);                                         \
        else                                                                                       \
            of_width(run, end, adjoint, width, NULL, wide);                                        \
    }                                                                                              \
    target static void alike_##name(struct tape_run *run, const uint32_t *end, double *adjoint,    \
                                    const uint32_t *head)                                          \
    {                                                                                              \
        if (!head) /* so that no statement asks */                                                 \
            __builtin_unreachable();                                                               \
        one(run, end, adjoint, NULL, head);                                                        \
    }

SWEEPS(portable, false, )
#ifdef __x86_64__
SWEEPS(avx2, false, __attribute__((target("avx2,fma"))))
SWEEPS(avx512, true, __attribute__((target("avx512f,avx512vl,avx2,fma"))))
#endif

/* By the instruction set of all loops, which the user may have chosen. */
static void statement_pullback(struct tape_run *run, const uint32_t *end, double *adjoint,
                               uint32_t width, struct tape_now *now)
{
#ifdef __x86_64__
    const int level = kernel_isa_level();
    if (KERNEL_HAS_AVX512 && level == 2) {
        pullback_avx512(run, end, adjoint, width, now);
        return;
    }
    if (KERNEL_HAS_AVX2 && level == 1) {
        pullback_avx2(run, end, adjoint, width, now);
        return;
    }
#endif
    pullback_portable(run, end, adjoint, width, now);
}

/* Without samples nobody but the sweep's thread reads what it does: it is looked at. */
static bool now_is_sampled(const struct tape_now *now)
{
    return now->doing.phase != TAPE_PHASE_NONE;
}

void tape_run_sweep_begins(const struct tape_run *run, struct tape_now *now)
{
    if (!now_is_sampled(now)) {
        tape_look_hides(now);
        return;
    }
    __atomic_store_n(&now->statement, run->word_end, __ATOMIC_RELAXED);
    struct tape_doing doing = now->doing;
    doing.op = tape_statement_kind.op.name;
    doing.line = 0;
    doing.near = run->near;
    tape_doing_write(now, &doing);
}

/* What lies where it was may be gone after this. */
void tape_run_sweep_ends(struct tape_now *now)
{
    __atomic_store_n(&now->statement, NULL, __ATOMIC_RELAXED);
}

bool tape_run_says_where(const struct tape_now *now)
{
    return now_is_sampled(now) || tape_look_asks(now);
}

/* What is done between two parts is no statement's. */
void tape_run_pullback_part(struct tape_run *left, const uint32_t *end, double *adjoint,
                            uint32_t width, struct tape_now *now)
{
    const bool says = tape_run_says_where(now);
    statement_pullback(left, end, adjoint, width, says ? now : NULL);
    if (says && !now_is_sampled(now))
        tape_look_hides(now);
}

uint32_t tape_run_pullback_alike(struct tape_run *run, const uint32_t *end, double *adjoint,
                                 const uint32_t *head)
{
    const uint32_t n = run->n;
#ifdef __x86_64__
    const int level = kernel_isa_level();
    if (KERNEL_HAS_AVX512 && level == 2)
        alike_avx512(run, end, adjoint, head);
    else if (KERNEL_HAS_AVX2 && level == 1)
        alike_avx2(run, end, adjoint, head);
    else
#endif
        alike_portable(run, end, adjoint, head);
    return n - run->n;
}

void tape_run_pullback(const struct tape_run *run, double *adjoint, uint32_t width,
                       struct tape_now *now)
{
    /* What the loops change, field by field: a run that was just closed has not reached the cache,
     * and a vector of two fields would have to wait for that. */
    struct tape_run left = {.partial_end = run->partial_end,
                            .word_end = run->word_end,
                            .first = run->first,
                            .n = run->n};
    if (__builtin_expect(now == NULL, 1)) {
        statement_pullback(&left, run->word_begin, adjoint, width, NULL);
        return;
    }
    tape_run_sweep_begins(run, now);
    for (const uint32_t *w; (w = left.word_end) < run->word_begin;)
        tape_run_pullback_part(&left, run->word_begin - w > STRETCH ? w + STRETCH : run->word_begin,
                               adjoint, width, now);
    tape_run_sweep_ends(now);
}
