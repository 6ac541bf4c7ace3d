/* pass_refuse.c: what would lose a gradient without a word. */
#include "pass.h"

#include <string.h>

void pass_refuse(struct pass *p, value instruction, const char *why)
{
    p->n_refused++;
    pass_report(instruction, why, p->strict);
}

bool pass_is_other_real(type t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFP128TypeKind:
    case LLVMPPC_FP128TypeKind:
        return true;
    case LLVMVectorTypeKind:
        return pass_is_other_real(LLVMGetElementType(t));
    default:
        return false;
    }
}

/* How far the bits of a value are followed as an integer. */
enum { BITS_DEPTH = 8, CHOICES_DEPTH = 4 };

/* Whether an integer that goes on in a register has no shadow that goes along. */
static bool is_lost_word(struct pass *p, value v)
{
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMIntegerTypeKind && !pass_is_copy(p, v);
}

/* Intrinsics that make an integer of another's bits. */
static bool moves_bits(value call)
{
    static const char *const of[] = {"llvm.bswap.", "llvm.fshl.", "llvm.fshr.", "llvm.bitreverse."};
    value callee = LLVMGetCalledValue(call);
    for (unsigned k = 0; LLVMIsAFunction(callee) && k < sizeof of / sizeof *of; k++)
        if (strncmp(pass_name_of(callee), of[k], strlen(of[k])) == 0)
            return true;
    return false;
}

static bool is_taken_word(struct pass *p, value call, value v)
{
    return pass_takes_word(p, call, v) && !is_lost_word(p, v);
}

/* depth: how much was computed with them on the way to v; choices: how often they were only chosen,
 * or put together, until something is. */
static bool bits_go_on(struct pass *p, value v, unsigned depth, unsigned choices)
{
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!LLVMIsAInstruction(user))
            continue;
        switch (LLVMGetInstructionOpcode(user)) {
        case LLVMICmp:
        case LLVMBr:
        case LLVMSwitch:
            break;
        case LLVMPHI:
        case LLVMSelect:
        case LLVMExtractElement:
        case LLVMInsertElement:
        case LLVMShuffleVector:
        case LLVMExtractValue:
        case LLVMInsertValue:
            if (LLVMIsAInsertValueInst(user) && depth == 0 && is_lost_word(p, v))
                return true;
            if (depth > 0 ? depth == BITS_DEPTH || bits_go_on(p, user, depth + 1, choices)
                          : choices < CHOICES_DEPTH && bits_go_on(p, user, 0, choices + 1))
                return true;
            break;
        case LLVMStore:
        case LLVMBitCast:
            if (depth > 0)
                return true;
            break;
        case LLVMRet:
            if (depth > 0 || !pass_returns_word(p, LLVMTypeOf(v)) || is_lost_word(p, v))
                return true;
            break;
        case LLVMZExt:
        case LLVMTrunc:
        case LLVMShl:
        case LLVMLShr:
        case LLVMAnd:
        case LLVMOr:
        case LLVMAdd:
            if (depth == 0 && pass_is_copy(p, user)) /* that one is looked at for itself */
                break;
            if (depth == BITS_DEPTH || bits_go_on(p, user, depth + 1, choices))
                return true;
            break;
        case LLVMCall:
        case LLVMInvoke:
            if (moves_bits(user)) {
                if (depth == BITS_DEPTH || bits_go_on(p, user, depth + 1, choices))
                    return true;
                break;
            }
            if (!pass_is_passive_callee(user) &&
                (depth > 0 || !(pass_gives_words(p, user) || is_taken_word(p, user, v))))
                return true;
            break;
        default:
            if (depth == BITS_DEPTH || bits_go_on(p, user, depth + 1, choices))
                return true;
        }
    }
    return false;
}

/* Whether bits are computed with, or leave the function, as more than a condition. Copies through
 * memory and back are followed (pass_memory.c). */
bool pass_bits_are_used(struct pass *p, value v)
{
    return bits_go_on(p, v, 0, 0);
}

void pass_refuse_bits(struct pass *p, value cast)
{
    if (pass_bits_are_used(p, cast))
        pass_refuse(p, cast, "the bits of a floating value are used as an integer");
}

bool pass_may_be_real_bits(value v, unsigned depth)
{
    if (LLVMIsAArgument(v))
        return true;
    if (!LLVMIsAInstruction(v) || depth == BITS_DEPTH)
        return false;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMOr:
        /* 0x3FF..., a number of [1, 2), with any mantissa. */
        if (LLVMIsAConstantInt(LLVMGetOperand(v, 1)) &&
            LLVMConstIntGetZExtValue(LLVMGetOperand(v, 1)) >= UINT64_C(1) << 52)
            return false;
        break;
    case LLVMLoad:
        return true;
    case LLVMCall:
    case LLVMInvoke: {
        value callee = LLVMGetCalledValue(v);
        if (!LLVMIsAFunction(callee) || pass_name_of(callee)[0] != 'l' ||
            pass_name_of(callee)[1] != 'l')
            return true;
        break;
    }
    default:
        break;
    }
    for (int k = 0; k < LLVMGetNumOperands(v); k++)
        if (pass_may_be_real_bits(LLVMGetOperand(v, (unsigned)k), depth + 1))
            return true;
    return false;
}
