/* pass_variadic.c: floating arguments among the `...` of a function.
 *
 * clang reads them from memory: eight registers that the function has saved, then the caller's
 * stack. Where each lies is the x86-64 calling convention's. The caller puts the words of their
 * shadow (pass_memory.c) into an array of the thread, in that order; the function keeps it from its
 * begin on, and va_start copies it to the shadow of that memory (plain_variadic.c).
 */
#include "pass.h"

#include <string.h>

/* As in plain/runtime/plain_variadic.c: words of the registers, the number of words on the stack,
 * and these. */
enum { REGISTERS = 8, STACK = REGISTERS + 1, ROOM = 64 };
enum { GENERAL_REGISTERS = 6, WORD_BYTES = 8 };

static value variadic_place(struct pass *p, unsigned k)
{
    value array = LLVMGetNamedGlobal(p->module, "ad_plain_variadic_"), place = pass_number64(p, k);
    if (!array)
        array = pass_of_thread(p, LLVMArrayType2(p->i64, ROOM), "ad_plain_variadic_");
    return LLVMConstGEP2(p->i64, array, &place, 1);
}

static value variadic_function(struct pass *p)
{
    return pass_of_thread(p, p->pointer, "ad_plain_variadic_of_");
}

/* What a call has taken of registers and stack. */
struct taken {
    unsigned floating, general, stack; /* stack: words of the `...` */
};

/* The place of an argument's first word; ROOM: in a general register, or a declared one. */
static unsigned variadic_place_of(struct pass *p, type t, type by_value, bool declared,
                                  struct taken *taken)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    uint64_t bytes = LLVMABISizeOfType(p->layout, by_value ? by_value : t);
    unsigned alignment = LLVMABIAlignmentOfType(p->layout, by_value ? by_value : t);
    const bool in_vector = kind == LLVMVectorTypeKind && bytes <= 16;
    if (!by_value && (kind == LLVMDoubleTypeKind || kind == LLVMFloatTypeKind || in_vector)) {
        if (taken->floating < REGISTERS)
            return declared ? (taken->floating++, (unsigned)ROOM) : taken->floating++;
    } else if (!by_value && (kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind)) {
        const unsigned n = bytes > WORD_BYTES ? 2 : 1;
        if (taken->general + n <= GENERAL_REGISTERS) {
            taken->general += n;
            return ROOM;
        }
    }
    if (declared)
        return ROOM;
    if (alignment > WORD_BYTES)
        taken->stack += taken->stack % 2;
    const unsigned at = taken->stack;
    taken->stack += (unsigned)((bytes + WORD_BYTES - 1) / WORD_BYTES);
    return STACK + at;
}

bool pass_variadic_put(struct pass *p, value call)
{
    const type of = LLVMGetCalledFunctionType(call);
    const unsigned n = LLVMGetNumArgOperands(call), declared = LLVMCountParamTypes(of);
    struct taken taken = {0, 0, 0};
    value word[ROOM] = {NULL};
    if (!LLVMIsFunctionVarArg(of))
        return false;
    for (unsigned k = 0; k < n; k++) {
        value a = LLVMGetOperand(call, k);
        LLVMAttributeRef found = LLVMGetCallSiteEnumAttribute(call, k + 1, p->kind_byval);
        const type by_value = found ? LLVMGetTypeAttributeValue(found) : NULL;
        const unsigned at = variadic_place_of(p, LLVMTypeOf(a), by_value, k < declared, &taken);
        struct leaves leaves = {.n = 0};
        if (k < declared)
            continue;
        if (STACK + taken.stack > ROOM) {
            pass_refuse(p, call,
                        "too many arguments among those that a function takes without "
                        "declaring them (...)");
            return false;
        }
        const bool real = pass_is_real(LLVMTypeOf(a));
        if (real) {
            word[at] = pass_word_of(p, pass_index_of(p, a), a);
        } else if (by_value) {
            LLVMPositionBuilderBefore(p->build, call);
            for (unsigned i = at; i < STACK + taken.stack; i++)
                word[i] = pass_load(
                    p, p->i64,
                    pass_byte_offset(p, pass_shadow_of(p, a), (uint64_t)(i - at) * WORD_BYTES), 1,
                    p->tag_shadow);
        } else if (!pass_leaves(p, LLVMTypeOf(a), &leaves) || leaves.n > 0) {
            pass_refuse(p, call,
                        "a vector or structure among the arguments that a function takes "
                        "without declaring them (...)");
        }
    }
    LLVMPositionBuilderBefore(p->build, call);
    for (unsigned k = 0; k < STACK + taken.stack; k++)
        if (k == REGISTERS || word[k] || k >= STACK)
            pass_store(p,
                       k == REGISTERS ? pass_number64(p, taken.stack)
                       : word[k]      ? word[k]
                                      : pass_number64(p, 0),
                       variadic_place(p, k), 8, p->tag_thread);
    pass_store(p, LLVMGetCalledValue(call), variadic_function(p), 8, p->tag_thread);
    return true;
}

static value variadic_start(value function)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v))
            if (LLVMIsACallInst(v) &&
                strncmp(pass_name_of(LLVMGetCalledValue(v)), "llvm.va_start", 13) == 0)
                return v;
    return NULL;
}

/* The builder stands at the function's begin. */
void pass_variadic_take(struct pass *p)
{
    p->variadic = NULL;
    if (!LLVMIsFunctionVarArg(LLVMGlobalGetValueType(p->function)) || !variadic_start(p->function))
        return;
    p->variadic = LLVMBuildAlloca(p->build, LLVMArrayType2(p->i64, ROOM), "");
    value argument[] = {p->function, p->variadic};
    pass_call_runtime(p, "ad_plain_variadic_take_", p->nothing, 2, argument);
}

void pass_variadic_begin(struct pass *p, value list)
{
    if (!p->variadic)
        return;
    value argument[] = {list, p->variadic};
    pass_call_runtime(p, "ad_plain_variadic_begin_", p->nothing, 2, argument);
}
