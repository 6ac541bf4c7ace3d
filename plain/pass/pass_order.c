/* pass_order.c: fmax and fmin keep the order of their operands.
 *
 * At a tie the first operand's derivative is taken. But LLVM takes the two for equal, and swaps
 * them as it likes: fmax(0, x) is fmax(x, 0) from -O1 on, whose derivative at x = 0 is another. So
 * until the pass comes they are calls of functions that LLVM knows nothing of, but that they have
 * no effect.
 */
#include "pass.h"

#include <stdio.h>
#include <string.h>

static const char held[] = "ad_plain_held.";

static bool is_extreme(const char *name)
{
    static const char *const of[] = {"fmax",  "fmaxf", "fmaxl",        "fmin",
                                     "fminf", "fminl", "llvm.maxnum.", "llvm.minnum."};
    for (unsigned k = 0; k < sizeof of / sizeof *of; k++)
        if (of[k][0] == 'l' ? strncmp(name, of[k], strlen(of[k])) == 0 : strcmp(name, of[k]) == 0)
            return true;
    return false;
}

static void add_attribute(value f, const char *name)
{
    const LLVMAttributeIndex whole = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(f));
    LLVMAddAttributeAtIndex(
        f, whole,
        LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0));
}

static value declared(LLVMModuleRef module, const char *name, value like)
{
    value f = LLVMGetNamedFunction(module, name);
    return f ? f : LLVMAddFunction(module, name, LLVMGlobalGetValueType(like));
}

/* What calls one function calls the other. An address that is taken stays. */
static void calls_move(value from, value to)
{
    LLVMUseRef next = LLVMGetFirstUse(from);
    while (next) {
        value user = LLVMGetUser(next);
        next = LLVMGetNextUse(next);
        if ((LLVMIsACallInst(user) || LLVMIsAInvokeInst(user)) && LLVMGetCalledValue(user) == from)
            LLVMSetOperand(user, (unsigned)LLVMGetNumOperands(user) - 1, to);
    }
}

void pass_order_hold(LLVMModuleRef module)
{
    char name[64];
    for (value f = LLVMGetFirstFunction(module), next; f; f = next) {
        size_t n;
        const char *of = LLVMGetValueName2(f, &n);
        next = LLVMGetNextFunction(f);
        if (!LLVMIsDeclaration(f) || !is_extreme(of) || sizeof held + n > sizeof name)
            continue;
        snprintf(name, sizeof name, "%s%s", held, of);
        value to = declared(module, name, f);
        add_attribute(to, "memory"); /* 0: none */
        add_attribute(to, "nounwind");
        add_attribute(to, "willreturn");
        add_attribute(to, "speculatable");
        calls_move(f, to);
    }
}

void pass_order_release(LLVMModuleRef module)
{
    for (value f = LLVMGetFirstFunction(module), next; f; f = next) {
        size_t n;
        const char *of = LLVMGetValueName2(f, &n);
        next = LLVMGetNextFunction(f);
        if (strncmp(of, held, sizeof held - 1) != 0)
            continue;
        calls_move(f, declared(module, of + sizeof held - 1, f));
        LLVMDeleteFunction(f);
    }
}
