/* pass_registration.h: between the pass, which is C, and its registration with clang. */
#ifndef PLAIN_PASS_REGISTRATION_H
#define PLAIN_PASS_REGISTRATION_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pass_options {
    bool strict; /* what would lose a gradient is an error */
};

/* pass_instrument.c: returns the number of places where a gradient would be lost. */
unsigned pass_instrument(LLVMModuleRef module, const struct pass_options *options);

/* pass_skip.c: functions that are not recorded are not inlined: called before all other passes. */
void pass_keep_apart(LLVMModuleRef module);

/* pass_order.c: before all other passes, and before pass_instrument. */
void pass_order_hold(LLVMModuleRef module);
void pass_order_release(LLVMModuleRef module);

/* pass_registration.cpp: LLVM-C cannot name a unit that exists, and has no warnings with a line. */
/* Whether LLVM knows a function of this name in the C library. */
bool pass_is_library_function(const char *name);
/* An instruction's result goes to a slot of the stack, and its users load it from there. */
void pass_to_memory(LLVMValueRef instruction);
LLVMDIBuilderRef pass_lines_of_first_unit(LLVMModuleRef module);
/* Calls with a way out for exceptions (invoke): functions of the C library have none, and the
 * normal way of others has a block of its own. */
void pass_invokes_prepare(LLVMModuleRef module);
/* What comes together in a phi goes to a slot of the stack, and is loaded behind it. */
void pass_phi_to_memory(LLVMValueRef phi);
/* The same function once more, under another name, internal to the module: nothing calls it yet. */
LLVMValueRef pass_function_again(LLVMValueRef function);
/* Ends a block of another function with the same arguments: it gives what this one gives. */
void pass_return_what_gives(LLVMBasicBlockRef end, LLVMValueRef function);
/* Nothing of a block runs. */
void pass_never_reached(LLVMBasicBlockRef block);
void pass_run_at_start(LLVMValueRef function);
void pass_report(LLVMValueRef instruction, const char *text, bool is_error);

#ifdef __cplusplus
}
#endif

#endif
