/* pass_nests.h: between pass_nests.c and what it asks LLVM of nests (pass_nests_found.cpp). */
#ifndef PLAIN_PASS_NESTS_H
#define PLAIN_PASS_NESTS_H

#include <llvm-c/Core.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NEST_ACCESSES = 32, NEST_BLOCKS = 8 };

/* A number that is first + i step in round i of the outer loop: i64, known before it. */
struct pass_found_line {
    LLVMValueRef first, step;
};

/* A double that is read or written, or a phi that is what a load has read the round before. In
 * round i of the outer loop and j of the inner it is at base + i outer + j inner, in bytes. */
struct pass_found_access {
    LLVMValueRef instruction, base, outer, inner;
    bool runs_on; /* a row begins where the one before has ended: outer is 0 */
    bool is_write, is_inner;
    bool is_guarded; /* not of rounds of the outer loop without one of the inner */
    unsigned same;   /* the first read of this place; its own number: there is none before */
};

/* An outer loop, within it an inner one of one block, and nothing else but straight lines. */
struct pass_found_nest {
    LLVMBasicBlockRef before, behind;
    LLVMBasicBlockRef block[NEST_BLOCKS]; /* in their order; the first is the head, the last the
                                             latch */
    unsigned n_blocks, body;              /* body: the inner loop's number */
    bool guarded[NEST_BLOCKS];
    LLVMBasicBlockRef join; /* where the way that goes round the inner loop comes back, or NULL */
    LLVMValueRef trips;     /* of the outer loop */
    struct pass_found_line inner_trips;
    /* The inner loop is gone round unless from < to, or from <= to; or, where they are NULL, never.
     * That these say the same as inner_trips is not known yet. */
    struct pass_found_line from, to;
    bool to_is_within;
    bool to_is_most; /* there is no way round, and inner_trips is so only where from <= to */
    unsigned n_accesses;
    struct pass_found_access access[NEST_ACCESSES];
};

/* Whether all instructions of a block may be of a nest. */
typedef bool pass_wants_block(LLVMBasicBlockRef block, void *payload);

/* Looks at the nests of a function, up to `room` of them: how many were found. As
 * pass_find_loops(). */
unsigned pass_find_nests(LLVMValueRef function, pass_wants_block *wants, void *payload,
                         struct pass_found_nest *result, unsigned room);

#ifdef __cplusplus
}
#endif

#endif
