/* stack_kinds.c: see stack_kinds.h. Compiled without frame pointers, and with optimization, in
 * every build: functions that need none keep numbers in that register.
 */
#include "stack_kinds.h"

#include <stdint.h>

static uint64_t state = 20;
static void (*end)(void);

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

static void descend(unsigned n);

/* Both leave the frame pointer's register alone, whoever calls them. */
__attribute__((noinline)) static void innermost(void)
{
    end();
    __asm__ volatile("");
}

__attribute__((noinline)) static void leaf(void)
{
    innermost();
    __asm__ volatile("");
}

__attribute__((noinline)) static void plain(unsigned n)
{
    descend(n);
    __asm__ volatile("");
}

__attribute__((noinline)) static void of_any_size(unsigned n)
{
    volatile char *room = __builtin_alloca(16 + 16 * draw(9));
    room[0] = 1;
    leaf();
    descend(n);
    room[1] = 2;
}

__attribute__((noinline)) static void aligned(unsigned n)
{
    _Alignas(64) volatile char room[64];
    room[0] = 1;
    leaf();
    descend(n);
    room[1] = room[0];
}

/* Has numbers in all registers that its callee keeps. */
__attribute__((noinline)) static void full_registers(unsigned n)
{
    const unsigned a = draw(9), b = draw(9), c = draw(9), d = draw(9), e = draw(9), f = draw(9);
    leaf();
    descend(n);
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
    if (draw(2))
        descend(n);
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

/* Two places of one function in turn. A stack that is aligned is found by its saved pointer. */
__attribute__((noinline)) static void in_turn(void)
{
    volatile int twice = 2;
    for (int i = 0; i < twice; i++) {
        end();
        end();
    }
}

__attribute__((noinline)) static void in_turn_aligned(void)
{
    _Alignas(64) volatile char room[64];
    volatile int twice = 2;
    room[0] = 1;
    for (int i = 0; i < twice; i++) {
        end();
        room[1] = room[0];
        end();
    }
}

__attribute__((noinline)) static void descend(unsigned n)
{
    static void (*const kind[])(unsigned n) = {plain, of_any_size, aligned, full_registers};
    volatile int twice = 2; /* a loop that is not unrolled has one call */
    if (n == 0) {
        for (int i = 0; i < twice; i++)
            end();
        in_turn();
        in_turn_aligned();
        return;
    }
    kind[draw(4)](n - 1 - draw(n) / 2);
    if (draw(4) == 0)
        kind[draw(4)](n - 1 - draw(n) / 2);
}

void stack_kinds_walk(unsigned deep, void (*at_the_end)(void))
{
    end = at_the_end;
    descend(draw(deep));
}
