/* pass_skip.c: functions that are not recorded: __attribute__((annotate("ad_skip"))). */
#include "pass.h"

#include <string.h>

static const char skip[] = "ad_skip";

/* Element k of a constant struct of llvm.global.annotations: a function, or its text. */
static value annotated(value annotation, unsigned k)
{
    return LLVMGetOperand(annotation, k);
}

static bool says_skip(value annotation)
{
    value text = annotated(annotation, 1), string;
    size_t n;
    if (!LLVMIsAGlobalVariable(text) || !(string = LLVMGetInitializer(text)) ||
        !LLVMIsAConstantDataSequential(string))
        return false;
    const char *of = LLVMGetAsString(string, &n);
    return n == sizeof skip && memcmp(of, skip, sizeof skip) == 0;
}

static value annotations(LLVMModuleRef module)
{
    value all = LLVMGetNamedGlobal(module, "llvm.global.annotations");
    return all ? LLVMGetInitializer(all) : NULL;
}

/* A copy that LLVM makes of the function has the attribute too. */
static const char attribute[] = "tapescope-skip";

bool pass_is_skipped(value function)
{
    return LLVMGetStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                         attribute, sizeof attribute - 1) != NULL;
}

void pass_keep_apart(LLVMModuleRef module)
{
    static const char inlined[] = "alwaysinline", apart[] = "noinline";
    const LLVMAttributeIndex whole = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMContextRef context = LLVMGetModuleContext(module);
    value all = annotations(module);
    for (int k = 0; all && k < LLVMGetNumOperands(all); k++) {
        value annotation = LLVMGetOperand(all, (unsigned)k), f = annotated(annotation, 0);
        if (!LLVMIsAFunction(f) || !says_skip(annotation))
            continue;
        LLVMRemoveEnumAttributeAtIndex(f, whole,
                                       LLVMGetEnumAttributeKindForName(inlined, strlen(inlined)));
        LLVMAddAttributeAtIndex(
            f, whole,
            LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(apart, strlen(apart)),
                                    0));
        LLVMAddAttributeAtIndex(
            f, whole, LLVMCreateStringAttribute(context, attribute, sizeof attribute - 1, "", 0));
    }
}
