/* pass_written.c: functions as they were written, where no double was ever a variable.
 *
 * A function that calls nothing but mathematics is there twice: once recorded, and once as it was.
 * The runtime's flag, which is never cleared, says at its begin which of them runs. They are two
 * functions, so that registers are given out for one body at a time.
 *
 * Invariant: while the second runs, this thread can make no variable: nothing that it calls
 * does. Another thread that makes one is not waited for in it: there are no atomic and no volatile
 * accesses. So all that it reads is a constant, and so is what it writes and gives.
 */
#include "pass.h"

#include <string.h>

static bool has_attribute(value function, const char *name)
{
    return LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       LLVMGetEnumAttributeKindForName(name, strlen(name))) != NULL;
}

/* Whether a call goes to what calls nothing of the program's, and waits for nobody. */
static bool call_is_closed(value call)
{
    value callee = LLVMGetCalledValue(call);
    if (pass_has_rule(call))
        return true;
    if (!LLVMIsAFunction(callee) || strncmp(pass_name_of(callee), "llvm.", 5) != 0 ||
        !has_attribute(callee, "nocallback"))
        return false;
    if (!LLVMIsAMemIntrinsic(call))
        return has_attribute(callee, "nosync");
    return LLVMConstIntGetZExtValue(LLVMGetOperand(call, 3)) == 0; /* is not volatile */
}

static bool is_closed(value v)
{
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMCall:
        return call_is_closed(v);
    case LLVMLoad:
    case LLVMStore:
        return !LLVMGetVolatile(v) && LLVMGetOrdering(v) == LLVMAtomicOrderingNotAtomic;
    case LLVMInvoke:
    case LLVMCallBr:
    case LLVMIndirectBr:
    case LLVMFence:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return false;
    default:
        return true;
    }
}

static bool is_wanted(const struct pass *p)
{
    bool has_reals = false;
    if (p->unoptimised || /* its time is not looked at */
        LLVMIsFunctionVarArg(LLVMGlobalGetValueType(p->function)))
        return false;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(p->function); block;
         block = LLVMGetNextBasicBlock(block))
        for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v)) {
            if (!is_closed(v))
                return false;
            has_reals |= pass_is_real(LLVMTypeOf(v)) ||
                         (LLVMIsAStoreInst(v) && pass_is_real(LLVMTypeOf(LLVMGetOperand(v, 0))));
        }
    return has_reals;
}

void pass_written_prepare(struct pass *p)
{
    p->written = NULL;
    if (!is_wanted(p))
        return;
    p->written = pass_function_again(p->function);
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(p->written); block;
         block = LLVMGetNextBasicBlock(block)) {
        value end = LLVMGetBasicBlockTerminator(block);
        if (LLVMIsAReturnInst(end))
            pass_return_constants(p, end);
    }
}

/* Variables of the stack stand in the entry: elsewhere their places would be found by adding. */
static void allocas_move(struct pass *p, LLVMBasicBlockRef from)
{
    for (value v = LLVMGetFirstInstruction(from), next; v; v = next) {
        next = LLVMGetNextInstruction(v);
        if (!LLVMIsAAllocaInst(v) || !LLVMIsAConstantInt(LLVMGetOperand(v, 0)))
            continue;
        LLVMInstructionRemoveFromParent(v);
        LLVMInsertIntoBuilder(p->build, v);
    }
}

void pass_written_end(struct pass *p)
{
    if (!p->written)
        return;
    LLVMBasicBlockRef recorded = LLVMGetEntryBasicBlock(p->function);
    LLVMBasicBlockRef entry = LLVMInsertBasicBlockInContext(p->context, recorded, "begin"),
                      as_written = LLVMInsertBasicBlockInContext(p->context, recorded, "written");
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    LLVMPositionBuilderAtEnd(p->build, as_written);
    if (p->called_so) /* the word of a caller is used up in each of the two */
        pass_store(p, LLVMConstNull(p->pointer), p->callee, 8, p->tag_thread);
    pass_return_what_gives(as_written, p->written);
    LLVMPositionBuilderAtEnd(p->build, entry);
    allocas_move(p, recorded);
    value has = LLVMBuildIsNotNull(p->build, pass_has_variables(p), "");
    LLVMBuildCondBr(p->build, has, recorded, as_written);
    p->written = NULL;
}
