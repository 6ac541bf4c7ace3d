/* collect_registers.c: what an interrupted thread's registers tell.
 *
 * Everything here may run in a signal handler of any thread: no lock, no allocation, no call of
 * the C library. Memory is read only where the thread has it: code of the C library, if that is
 * what it runs, and the top of its stack then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect_sampler.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

__attribute__((unused)) static bool may_read(const struct collect_code *code, uintptr_t pc)
{
    const uintptr_t high = __atomic_load_n(&code->high, __ATOMIC_ACQUIRE);
    return pc < high && pc >= __atomic_load_n(&code->low, __ATOMIC_RELAXED);
}

#define NO_CHECKS __attribute__((no_sanitize("address", "undefined", "thread")))

#if defined(__x86_64__)

enum { PAGE = 4096, BEFORE = 64, MOST_NUMBER = 1024 };

static uint32_t registers_immediate(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* mov $n, %rNd for a register of the upper eight, before `end`. */
static uint32_t registers_number_in(const uint8_t *begin, const uint8_t *end, unsigned which)
{
    for (const uint8_t *at = end - 6; at >= begin; at--)
        if (at[0] == 0x41 && at[1] == 0xb8 + which && registers_immediate(at + 2) < MOST_NUMBER)
            return registers_immediate(at + 2) + 1;
    return COLLECT_CALL_UNKNOWN;
}

/* The number is in eax, which the call overwrites: it is the constant that the code before puts
 * there, in glibc's wrappers a few instructions earlier. Nothing is looked for beyond the page. */
NO_CHECKS uint32_t collect_call_before(const uint8_t *call)
{
    const uintptr_t within = (uintptr_t)call % PAGE;
    const uint8_t *const begin = call - (within < BEFORE ? within : BEFORE);
    for (const uint8_t *at = call - 2; at >= begin; at--) {
        const bool prefixed = at > begin && (at[-1] == 0x41 || at[-1] == 0x49);
        if (at[0] == 0xb8 && at + 5 <= call && !prefixed &&
            registers_immediate(at + 1) < MOST_NUMBER)
            return registers_immediate(at + 1) + 1; /* mov $n, %eax */
        if (at[0] == 0x31 && at[1] == 0xc0 && !(at > begin && at[-1] >= 0x40 && at[-1] < 0x50))
            return 1; /* xor %eax, %eax */
        if (at + 3 <= call && at[0] == 0x44 && at[1] == 0x89 && (at[2] & 0xc7) == 0xc0)
            return registers_number_in(begin, at, at[2] >> 3 & 7u); /* mov %rNd, %eax */
    }
    return COLLECT_CALL_UNKNOWN;
}

NO_CHECKS void collect_registers_read(struct collect_moment *moment, const void *context,
                                      const struct collect_code *code)
{
    const ucontext_t *u = context;
    const uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    const uint8_t *const at = (const uint8_t *)pc;
    moment->pc = pc;
    moment->frame = (uintptr_t)u->uc_mcontext.gregs[REG_RBP];
    moment->stack = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
    if (!may_read(code, pc))
        return;
    /* syscall is 0f 05; one that is to be begun again is still ahead. */
    if (pc % PAGE <= PAGE - 2 && at[0] == 0x0f && at[1] == 0x05) {
        moment->call = (uint32_t)u->uc_mcontext.gregs[REG_RAX] + 1;
        moment->interrupted = true;
    } else if (pc % PAGE >= 2 && at[-2] == 0x0f && at[-1] == 0x05) {
        moment->call = collect_call_before(at - 2);
        moment->interrupted = u->uc_mcontext.gregs[REG_RAX] == -EINTR;
    }
    if (moment->call == SYS_sched_yield + 1) /* its wrapper has no frame */
        moment->caller = *(const uintptr_t *)moment->stack;
}

#elif defined(__aarch64__)

NO_CHECKS void collect_registers_read(struct collect_moment *moment, const void *context,
                                      const struct collect_code *code)
{
    static const uint32_t svc = 0xd4000001;
    const ucontext_t *u = context;
    const uintptr_t pc = u->uc_mcontext.pc;
    const uint32_t *const at = (const uint32_t *)pc;
    moment->pc = pc;
    moment->frame = u->uc_mcontext.regs[29];
    moment->stack = u->uc_mcontext.sp;
    if (!may_read(code, pc))
        return;
    if (at[0] == svc || (pc % 4096 >= 4 && at[-1] == svc)) {
        moment->call = (uint32_t)u->uc_mcontext.regs[8] + 1;
        moment->interrupted = at[0] == svc || (int64_t)u->uc_mcontext.regs[0] == -EINTR;
    }
    if (moment->call == SYS_sched_yield + 1)
        moment->caller = u->uc_mcontext.regs[30];
}

#else

void collect_registers_read(struct collect_moment *moment, const void *context,
                            const struct collect_code *code)
{
    (void)moment;
    (void)context;
    (void)code;
}

#endif
