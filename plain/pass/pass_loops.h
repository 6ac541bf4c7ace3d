/* pass_loops.h: between pass_loops.c and what it asks LLVM of loops (pass_loops_found.cpp). */
#ifndef PLAIN_PASS_LOOPS_H
#define PLAIN_PASS_LOOPS_H

#include <llvm-c/Core.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PASS_ACCESSES = 16 };

/* Doubles that are read by one step from a base on; they do not move (stays) or they do. */
struct pass_found_group {
    LLVMValueRef base, step; /* pointer and i64, known before the loop */
    bool stays;
};

/* A load; or a phi that is what a load has read the round before. It reads `offset` steps behind
 * the group's base. */
struct pass_found_read {
    LLVMValueRef instruction;
    unsigned group;
    int64_t offset;
};

struct pass_found_write {
    LLVMValueRef instruction, base, step;
};

/* A loop of one block. What it reads and writes are doubles at places that are known before it. */
struct pass_found_loop {
    LLVMBasicBlockRef before, body, behind;
    LLVMValueRef trips; /* i64: how often it runs */
    unsigned n_groups, n_reads, n_writes;
    struct pass_found_group group[PASS_ACCESSES];
    struct pass_found_read read[PASS_ACCESSES];
    struct pass_found_write write[PASS_ACCESSES];
};

/* Whether the loop of this block is of interest, by its instructions alone. */
typedef bool pass_wants_loop(LLVMBasicBlockRef body, void *payload);

/* Looks at the innermost loops of a function, up to `room` of them: how many were found. Code that
 * computes where they are is put before them; what is used behind a loop goes through a phi
 * there. */
unsigned pass_find_loops(LLVMValueRef function, pass_wants_loop *wants, void *payload,
                         struct pass_found_loop *result, unsigned room);

#ifdef __cplusplus
}
#endif

#endif
