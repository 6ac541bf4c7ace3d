/* plain_kept.c: calls that are hardly ever made, and leave all registers as they are.
 *
 * A statement of code that was compiled by `tapescope cc` calls these by LLVM's coldcc, which gcc
 * does not have: all but rax and the upper halves of long vectors are kept. Each passes on what it
 * was given, and the program counter that it was called from. Frame pointers lead through it, and
 * its unwind table names no vectors, which libunwind could not read.
 */

/* `pc`: the register of the runtime's last argument. */
#define KEPT(name, runtime, pc)                                                                    \
    __asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n"           \
            ".cfi_startproc\n"                                                                     \
            "pushq %rbp\n"                                                                         \
            ".cfi_def_cfa_offset 16\n"                                                             \
            ".cfi_offset %rbp, -16\n"                                                              \
            "movq %rsp, %rbp\n"                                                                    \
            ".cfi_def_cfa_register %rbp\n"                                                         \
            ".irp r, rcx, rdx, rsi, rdi, r8, r9, r10, r11\npushq %\\r\n.endr\n"                    \
            "subq $256, %rsp\n"                                                                    \
            "andq $-16, %rsp\n"                                                                    \
            ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"                       \
            "movaps %xmm\\k, 16 * \\k(%rsp)\n.endr\n"                                              \
            "movq 8(%rbp), %" pc "\n"                                                              \
            "call " runtime "@PLT\n"                                                               \
            ".irp k, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"                       \
            "movaps 16 * \\k(%rsp), %xmm\\k\n.endr\n"                                              \
            "leaq -64(%rbp), %rsp\n"                                                               \
            ".irp r, r11, r10, r9, r8, rdi, rsi, rdx, rcx\npopq %\\r\n.endr\n"                     \
            "popq %rbp\n"                                                                          \
            ".cfi_def_cfa %rsp, 8\n"                                                               \
            "ret\n"                                                                                \
            ".cfi_endproc\n"                                                                       \
            ".size " name ", . - " name "\n")

/* bool (uint32_t bytes, double value) */
KEPT("ad_plain_room_kept_", "ad_plain_room_at_", "rsi");
/* uint32_t (uint32_t index, uint32_t tag) */
KEPT("ad_plain_operand_kept_", "ad_plain_operand_at_", "rdx");
