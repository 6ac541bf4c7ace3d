/* pass_derive.c: formulas of loops again, in functions of their derivatives: what pass_loops.c and
 * pass_nests.c share.
 */
#include "pass_derive.h"

#include "base_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- which instructions ---- */

bool pass_is_double(value v)
{
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMDoubleTypeKind;
}

static bool is_scalar_type(value v)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(v));
    return kind == LLVMDoubleTypeKind || kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind;
}

unsigned pass_operands_of(value v)
{
    return LLVMIsACallInst(v) ? LLVMGetNumArgOperands(v) : (unsigned)LLVMGetNumOperands(v);
}

static bool is_of_doubles(value v)
{
    const unsigned n = pass_operands_of(v);
    for (unsigned k = 0; k < n; k++)
        if (!is_scalar_type(LLVMGetOperand(v, k)))
            return false;
    return is_scalar_type(v);
}

bool pass_loop_takes(value v)
{
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMSExt:
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMGetElementPtr:
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMPHI:
    case LLVMLoad:
    case LLVMSelect:
        return is_of_doubles(v);
    case LLVMStore:
        return pass_is_double(LLVMGetOperand(v, 0));
    case LLVMBr:
        return true;
    case LLVMFPExt:
    case LLVMFPTrunc:
        return false;
    default:
        return pass_has_rule(v) && pass_is_double(v) && is_of_doubles(v);
    }
}

bool pass_is_condition(value v)
{
    const LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    return opcode == LLVMFCmp ||
           (LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMIntegerTypeKind &&
            LLVMGetIntTypeWidth(LLVMTypeOf(v)) == 1 &&
            (opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor || opcode == LLVMSelect));
}

value pass_incoming(value phi, LLVMBasicBlockRef from)
{
    for (unsigned k = 0; k < LLVMCountIncoming(phi); k++)
        if (LLVMGetIncomingBlock(phi, k) == from)
            return LLVMGetIncomingValue(phi, k);
    return NULL;
}

value pass_pointer_at(struct pass *p, type of, value base, value place)
{
    return LLVMBuildGEP2(p->build, of, base, &place, 1, "");
}

/* ---- clones ---- */

value pass_clone_of(const struct clones *c, value v)
{
    for (unsigned k = c->n; k-- > 0;)
        if (c->from[k] == v)
            return c->to[k];
    return v;
}

void pass_clone_add(struct clones *c, value from, value to)
{
    c->from[c->n] = from;
    c->to[c->n++] = to;
}

struct clones pass_clones_begin(unsigned room)
{
    return (struct clones){base_calloc(room, sizeof(value)), base_calloc(room, sizeof(value)), 0};
}

void pass_clones_end(struct clones *c)
{
    free(c->from);
    free(c->to);
}

void pass_clone_operands(const struct clones *c, value v)
{
    const unsigned n = pass_operands_of(v);
    for (unsigned k = 0; k < n; k++) {
        value of = LLVMGetOperand(v, k);
        if (!LLVMValueIsBasicBlock(of))
            LLVMSetOperand(v, k, pass_clone_of(c, of));
    }
}

bool pass_clone_formula(struct pass *p, struct clones *c, value v)
{
    const bool formula = pass_has_rule(v);
    if (!formula && !pass_is_condition(v))
        return true;
    const unsigned n = pass_operands_of(v);
    for (unsigned k = 0; k < n; k++) {
        value of = LLVMGetOperand(v, k);
        if (pass_clone_of(c, of) == of && !LLVMIsAConstant(of))
            return !formula;
    }
    value clone = LLVMInstructionClone(v);
    LLVMInsertIntoBuilderWithName(p->build, clone, "");
    LLVMInstructionSetDebugLoc(clone, LLVMGetCurrentDebugLocation2(p->build));
    pass_clone_operands(c, clone);
    pass_clone_add(c, v, clone);
    if (formula)
        pass_derive_row(p, clone);
    return true;
}

/* Adds the operations of a block that a value is made of to `found`, those of functions of <math.h>
 * eight times; n: how many there are already. */
static unsigned operations_find(value v, LLVMBasicBlockRef block, value *found, unsigned n,
                                unsigned *count)
{
    if (!LLVMIsAInstruction(v) || LLVMGetInstructionParent(v) != block || LLVMIsAPHINode(v))
        return n;
    for (unsigned k = 0; k < n; k++)
        if (found[k] == v)
            return n;
    found[n++] = v;
    if (pass_has_rule(v))
        *count += LLVMIsACallInst(v) ? 8 : 1;
    for (unsigned k = 0; k < pass_operands_of(v); k++)
        n = operations_find(LLVMGetOperand(v, k), block, found, n, count);
    return n;
}

LLVMMetadataRef pass_dearest_line(LLVMBasicBlockRef block, const value *root, unsigned n)
{
    unsigned size = 0, most = 0;
    LLVMMetadataRef dearest = NULL;
    for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v))
        size++;
    value *found = base_calloc(size + 1, sizeof *found);
    for (unsigned k = 0; k < n; k++) {
        unsigned count = 1;
        if (!LLVMIsAInstruction(root[k]) || LLVMGetInstructionParent(root[k]) != block)
            continue;
        operations_find(root[k], block, found, 0, &count);
        LLVMMetadataRef line = LLVMInstructionGetDebugLoc(root[k]);
        if (line && count >= most) {
            dearest = line;
            most = count;
        }
    }
    free(found);
    return dearest;
}

/* LLVM works on four vectors at once, and what is left of up to 31 rounds on single numbers. A row
 * may be that short: one vector at once leaves 7. */
void pass_loop_of_short_rows(struct pass *p, value branch)
{
    static const char said[] = "llvm.loop.interleave.count", kind[] = "llvm.loop";
    LLVMContextRef c = p->context;
    LLVMMetadataRef hint[] = {LLVMMDStringInContext2(c, said, sizeof said - 1),
                              LLVMValueAsMetadata(LLVMConstInt(p->i32, 1, 0))};
    LLVMMetadataRef itself = LLVMTemporaryMDNode(c, NULL, 0);
    LLVMMetadataRef part[] = {itself, LLVMMDNodeInContext2(c, hint, 2)};
    LLVMMetadataRef loop = LLVMMDNodeInContext2(c, part, 2);
    LLVMMetadataReplaceAllUsesWith(itself, loop);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(c, kind, sizeof kind - 1),
                    LLVMMetadataAsValue(c, loop));
}

static bool is_finite_constant(value v)
{
    LLVMBool loses;
    return LLVMIsAConstantFP(v) && isfinite(LLVMConstRealGetDouble(v, &loses));
}

/* 0 where dy is 0, though the partial derivative may be infinite. */
value pass_part_of(struct pass *p, value dy, value partial)
{
    if (!partial)
        return dy;
    value product = LLVMBuildFMul(p->build, dy, partial, ""), zero = pass_real_number(p, 0);
    if (is_finite_constant(partial))
        return product;
    /* Where two parts ask the same, x86 makes flags of it, and of those a mask: each round of short
     * rows waits for that. So the second one asks "equal, or no number", and has dy for both. */
    LLVMRealPredicate is = LLVMRealOEQ;
    for (LLVMUseRef use = LLVMIsAConstant(dy) ? NULL : LLVMGetFirstUse(dy); use;
         use = LLVMGetNextUse(use))
        if (LLVMIsAFCmpInst(LLVMGetUser(use)))
            is = LLVMRealUEQ;
    return pass_choose(p, LLVMBuildFCmp(p->build, is, dy, zero, ""), is == LLVMRealOEQ ? zero : dy,
                       product);
}

/* The same where the next round waits for it: the comparison is behind a branch that is hardly ever
 * taken, as only 0 times infinity, or a NaN, is no number. */
value pass_part_of_carried(struct pass *p, value dy, value partial)
{
    static const char weights[] = "branch_weights", kind[] = "prof";
    if (!partial)
        return dy;
    LLVMBuilderRef b = p->build;
    LLVMContextRef c = p->context;
    value product = LLVMBuildFMul(b, dy, partial, ""), zero = pass_real_number(p, 0);
    if (is_finite_constant(partial))
        return product;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b),
                      odd = LLVMAppendBasicBlockInContext(c, p->function, "odd"),
                      on = LLVMAppendBasicBlockInContext(c, p->function, "on");
    value is_odd = LLVMBuildFCmp(b, LLVMRealUNO, product, product, "");
    LLVMMetadataRef part[] = {LLVMMDStringInContext2(c, weights, sizeof weights - 1),
                              LLVMValueAsMetadata(LLVMConstInt(p->i32, 1, 0)),
                              LLVMValueAsMetadata(LLVMConstInt(p->i32, 1 << 20, 0))};
    LLVMSetMetadata(LLVMBuildCondBr(b, is_odd, odd, on),
                    LLVMGetMDKindIDInContext(c, kind, sizeof kind - 1),
                    LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, part, 3)));
    LLVMPositionBuilderAtEnd(b, odd);
    value is_none = LLVMBuildFCmp(b, LLVMRealOEQ, dy, zero, "");
    value chosen = pass_choose(p, is_none, zero, product);
    LLVMBuildBr(b, on);
    LLVMPositionBuilderAtEnd(b, on);
    value result = LLVMBuildPhi(b, p->real, "");
    LLVMAddIncoming(result, (value[]){product, chosen}, (LLVMBasicBlockRef[]){here, odd}, 2);
    return result;
}

void pass_part_add(struct pass *p, value *to, value part, bool negative)
{
    if (!*to)
        *to = negative ? LLVMBuildFNeg(p->build, part, "") : part;
    else
        *to = negative ? LLVMBuildFSub(p->build, *to, part, "")
                       : LLVMBuildFAdd(p->build, *to, part, "");
}

void pass_way_make(struct pass *p, struct second_way *w, LLVMBasicBlockRef around, const char *name)
{
    char room[32];
    LLVMBasicBlockRef *const block[] = {&w->ask, &w->look, &w->idle, &w->enter};
    static const char *const names[] = {"ask", "look", "idle", "enter"};
    for (unsigned k = 0; k < sizeof block / sizeof *block; k++) {
        snprintf(room, sizeof room, "%s.%s", name, names[k]);
        *block[k] = LLVMInsertBasicBlockInContext(p->context, around, room);
    }
    w->flag = NULL;
}

void pass_way_ask(struct pass *p, struct second_way *w, value many, LLVMBasicBlockRef around)
{
    LLVMBuilderRef b = p->build;
    /* Where the function has a body as it was written, this one is of variables. */
    w->flag = p->written ? NULL : pass_has_variables(p);
    value has = w->flag ? LLVMBuildIsNotNull(b, w->flag, "") : LLVMConstInt(p->i1, 1, 0);
    LLVMBuildCondBr(b, LLVMBuildOr(b, many, LLVMBuildNot(b, has, ""), ""), w->ask, around);
    LLVMPositionBuilderAtEnd(b, w->ask);
    LLVMBuildCondBr(b, has, w->look, w->idle);
}

bool pass_way_is_of(const struct second_way *w, value v)
{
    LLVMBasicBlockRef block = LLVMGetInstructionParent(v);
    return v == w->flag || block == w->ask || block == w->look || block == w->idle ||
           block == w->enter;
}

value pass_derivatives_add(struct pass *p, const char *name, type *of, unsigned n)
{
    static const char *const attributes[] = {"noinline", "nounwind", NULL};
    value f = LLVMAddFunction(p->module, name, LLVMFunctionType(p->nothing, of, n, 0));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    pass_function_is(p, f, attributes);
    LLVMSetCurrentDebugLocation2(p->build, pass_lines_of_header(p, f, name));
    return f;
}

value pass_derivatives_told(struct pass *p, const char *name, value function, value *word,
                            unsigned n)
{
    value part[] = {function, LLVMConstArray2(p->i64, word, n)};
    value constant = LLVMConstStructInContext(p->context, part, 2, 0);
    value global = LLVMAddGlobal(p->module, LLVMTypeOf(constant), name);
    LLVMSetInitializer(global, constant);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    LLVMSetGlobalConstant(global, 1);
    return global;
}

void pass_clean_function(value function)
{
    for (LLVMBasicBlockRef block = LLVMGetLastBasicBlock(function); block;
         block = LLVMGetPreviousBasicBlock(block))
        for (value v = LLVMGetLastInstruction(block), before; v; v = before) {
            before = LLVMGetPreviousInstruction(v);
            if (!LLVMGetFirstUse(v) && !LLVMIsAStoreInst(v) && !LLVMIsATerminatorInst(v))
                LLVMInstructionEraseFromParent(v);
        }
}

bool pass_is_there(LLVMBasicBlockRef block, value v)
{
    for (value at = LLVMGetFirstInstruction(block); at; at = LLVMGetNextInstruction(at))
        if (at == v)
            return true;
    return false;
}
