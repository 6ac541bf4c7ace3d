/* pass_derive.h: see pass_derive.c. */
#ifndef PLAIN_PASS_DERIVE_H
#define PLAIN_PASS_DERIVE_H

#include "pass.h"

/* Instructions, and what became of them elsewhere. */
struct clones {
    value *from, *to;
    unsigned n;
};

bool pass_is_double(value v);
/* Without the function that a call names. */
unsigned pass_operands_of(value v);
/* Whether an instruction may be of a loop that is one record. */
bool pass_loop_takes(value v);
/* Whether it is a condition of formulas. */
bool pass_is_condition(value v);
value pass_incoming(value phi, LLVMBasicBlockRef from);
value pass_pointer_at(struct pass *p, type of, value base, value place);

struct clones pass_clones_begin(unsigned room);
void pass_clones_end(struct clones *c);
/* The value itself where it has no clone. */
value pass_clone_of(const struct clones *c, value v);
void pass_clone_add(struct clones *c, value from, value to);
void pass_clone_operands(const struct clones *c, value v);

/* The blocks before the second way through a loop or nest. ask: there are many rounds, or there
 * has never been a variable; look: what is read is looked at; idle: nothing is, as there is none;
 * enter: into the second way. */
struct second_way {
    LLVMBasicBlockRef ask, look, idle, enter;
    value flag;
};
/* `active` of a call's memory, which tells the runtime that there has never been a variable. */
#define WAY_IDLE UINT64_MAX
/* Makes the blocks, before the block `around`. */
void pass_way_make(struct pass *p, struct second_way *w, LLVMBasicBlockRef around,
                   const char *name);
/* Ends the builder's block, and asks: to `look` or `idle`, or to the block `around`. */
void pass_way_ask(struct pass *p, struct second_way *w, value many, LLVMBasicBlockRef around);
/* Whether an instruction is of these blocks, and no part of the program. */
bool pass_way_is_of(const struct second_way *w, value v);

/* A formula, with its row, or a condition again, where the builder is; other instructions are
 * passed over, as are conditions of what is not known. Known are clones, which numbers from before
 * have too, and constants; a condition or an integer from before is not. False: a formula of what
 * is not known. */
bool pass_clone_formula(struct pass *p, struct clones *c, value v);

/* The line of that store, or sum, of a block that has the most operations; of several the last.
 * NULL: none is in the block, or has a line. */
LLVMMetadataRef pass_dearest_line(LLVMBasicBlockRef block, const value *root, unsigned n);
/* Of the branch back of a loop over rounds, of which there may be few. */
void pass_loop_of_short_rows(struct pass *p, value branch);

/* A function of derivatives, whose instructions the builder makes. */
value pass_derivatives_add(struct pass *p, const char *name, type *of, unsigned n);
/* A constant with it and n words of 64 bits: what the runtime is told of a loop. */
value pass_derivatives_told(struct pass *p, const char *name, value function, value *word,
                            unsigned n);

/* What an adjoint gives by a partial derivative (NULL: 1): 0 where it is 0. */
value pass_part_of(struct pass *p, value dy, value partial);
/* The same where the next round waits for it; the builder is in another block then. */
value pass_part_of_carried(struct pass *p, value dy, value partial);
/* Adds one to what there is, NULL: nothing yet. */
void pass_part_add(struct pass *p, value *to, value part, bool negative);

/* Takes out what has no user: what is left is what the derivatives need. */
void pass_clean_function(value function);
/* Whether an instruction is still in a block. */
bool pass_is_there(LLVMBasicBlockRef block, value v);

#endif
