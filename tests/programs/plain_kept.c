/* plain_kept.c: calls of the runtime that leave all registers but rax as they are, also where what
 * they call changes each of them. Compiled by any compiler.
 */
#include <tapescope/ad.h>

#include <stdint.h>
#include <stdio.h>

enum { INTEGERS = 8, VECTORS = 16, WORDS = INTEGERS + 2 * VECTORS };

void ad_plain_room_kept_(void);
void ad_plain_operand_kept_(void);

/* Calls a function with these registers (rcx, rdx, rsi, rdi, r8 to r11, xmm0 to xmm15), and writes
 * down what they are behind. Returns eax. */
uint32_t call_with(void (*function)(void), uint64_t *word);
#define ALL(INTEGER, VECTOR)                                                                       \
    "at = 0\n.irp r, rcx, rdx, rsi, rdi, r8, r9, r10, r11\n" INTEGER "at = at + 8\n.endr\n"        \
    ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n" VECTOR                        \
    "at = at + 16\n.endr\n"
#define LOAD_ALL ALL("movq at(%rbx), %\\r\n", "movups at(%rbx), %xmm\\k\n")
#define STORE_ALL ALL("movq %\\r, at(%rbx)\n", "movups %xmm\\k, at(%rbx)\n")
__asm__(".text\n.globl call_with\n.type call_with, @function\ncall_with:\n"
        "pushq %rbx\n"
        "movq %rsi, %rbx\n"
        "movq %rdi, %rax\n" LOAD_ALL "call *%rax\n" STORE_ALL "popq %rbx\n"
        "ret\n.size call_with, . - call_with\n");

static int n_logged;

static void change_all(ad_log_level level, const char *message, void *payload)
{
    (void)level;
    (void)message;
    (void)payload;
    n_logged++;
    __asm__ volatile(".irp r, rcx, rdx, rsi, rdi, r8, r9, r10, r11\nmovq $-1, %%\\r\n.endr\n"
                     ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
                     "pcmpeqd %%xmm\\k, %%xmm\\k\n.endr\n" ::
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                           "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                           "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

static int changed(const char *name, void (*function)(void))
{
    uint64_t before[WORDS], behind[WORDS];
    int n = 0;
    for (int k = 0; k < WORDS; k++)
        behind[k] = before[k] = UINT64_C(0x0101010101010101) * (uint64_t)(k + 1);
    if ((call_with(function, behind) & 1) != 0)
        printf("%s: another result\n", name), n++;
    for (int k = 0; k < WORDS; k++)
        if (behind[k] != before[k])
            printf("%s: word %d is changed\n", name, k), n++;
    return n;
}

int main(void)
{
    ad_on_log(change_all, NULL);
    /* No tape: there is no room, and no operand is one. The second is logged. */
    const int n = changed("room", ad_plain_room_kept_) + changed("operand", ad_plain_operand_kept_);
    printf("%d changed, %d logged\n", n, n_logged);
    return n != 0 || n_logged != 1;
}
