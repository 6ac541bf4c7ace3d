/* pass_instrument.c: goes over the functions of a module. */
#include "pass.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

struct blocks {
    LLVMBasicBlockRef *block;
    unsigned n;
};

/* The blocks that can be reached, each after one that leads to it where there is no loop. */
static struct blocks blocks_in_order(value function)
{
    const unsigned all = LLVMCountBasicBlocks(function);
    LLVMBasicBlockRef *block = base_calloc(all, sizeof *block);
    LLVMBasicBlockRef *stack = base_calloc(all + 1, sizeof *stack);
    unsigned *next = base_calloc(all + 1, sizeof *next), depth = 1, at = all;
    struct base_table seen = {0};
    stack[0] = LLVMGetEntryBasicBlock(function);
    base_table_add(&seen, (uint64_t)(uintptr_t)stack[0], 0);
    while (depth > 0) {
        value last = LLVMGetBasicBlockTerminator(stack[depth - 1]);
        if (next[depth - 1] == LLVMGetNumSuccessors(last)) {
            block[--at] = stack[--depth];
            continue;
        }
        LLVMBasicBlockRef to = LLVMGetSuccessor(last, next[depth - 1]++);
        if (base_table_find(&seen, (uint64_t)(uintptr_t)to) >= 0)
            continue;
        base_table_add(&seen, (uint64_t)(uintptr_t)to, 0);
        stack[depth] = to;
        next[depth++] = 0;
    }
    base_table_free(&seen);
    free(stack);
    free(next);
    memmove(block, block + at, (all - at) * sizeof *block);
    return (struct blocks){block, all - at};
}

/* ---- phis: made first, filled last ---- */

static void phis_make(struct pass *p, LLVMBasicBlockRef block)
{
    for (value v = LLVMGetFirstInstruction(block); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v)) {
        struct leaves leaves = {.n = 0};
        LLVMPositionBuilderBefore(p->build, v);
        if (pass_is_real(LLVMTypeOf(v))) {
            value index = LLVMBuildPhi(p->build, p->i32, "");
            pass_known(p, v)->index = index;
        } else if (pass_is_copy(p, v)) {
            const type t = LLVMTypeOf(pass_copied_of(p, v).shadow);
            value shadow = LLVMBuildPhi(p->build, t, ""), checks = LLVMBuildPhi(p->build, t, "");
            pass_known(p, v)->copied = (struct pair){shadow, checks};
        } else if (pass_leaves(p, LLVMTypeOf(v), &leaves) && leaves.n > 0) {
            value *part = pass_parts_set(p, v, leaves.n);
            for (unsigned k = 0; k < leaves.n; k++)
                part[k] = LLVMBuildPhi(p->build, p->i32, "");
        }
        pass_words_phi_make(p, v);
    }
}

static void phi_fill(struct pass *p, value v)
{
    const struct known known = *pass_known(p, v);
    struct leaves leaves = {.n = 0};
    pass_leaves(p, LLVMTypeOf(v), &leaves);
    for (unsigned k = 0; k < LLVMCountIncoming(v); k++) {
        value from = LLVMGetIncomingValue(v, k);
        LLVMBasicBlockRef block = LLVMGetIncomingBlock(v, k);
        LLVMPositionBuilderBefore(p->build, LLVMGetBasicBlockTerminator(block));
        pass_words_phi_fill(p, v, from, block);
        if (known.copied.shadow) {
            struct pair copied = pass_copied_of(p, from);
            LLVMAddIncoming(known.copied.shadow, &copied.shadow, &block, 1);
            LLVMAddIncoming(known.copied.checks, &copied.checks, &block, 1);
        } else if (known.part) {
            for (unsigned i = 0; i < leaves.n; i++) {
                value index = LLVMIsAConstant(from) ? p->zero : pass_parts(p, from, leaves.n)[i];
                LLVMAddIncoming(known.part[i], &index, &block, 1);
            }
        } else if (known.index) {
            value index = pass_index_of(p, from);
            LLVMAddIncoming(known.index, &index, &block, 1);
        }
    }
}

/* ---- instructions ---- */

/* Whether what is loaded as an integer may be a floating value: what C calls an access of a type of
 * its own may not. */
bool pass_may_be_bits(const struct pass *p, value load)
{
    if (p->unoptimised)
        return true;
    value tag = LLVMGetMetadata(load, p->kind_tbaa);
    if (!tag || LLVMGetMDNodeNumOperands(tag) < 2)
        return true;
    value of_tag[4], of_type[16];
    LLVMGetMDNodeOperands(tag, of_tag);
    unsigned length;
    const char *name = NULL;
    if (of_tag[1] && LLVMGetMDNodeNumOperands(of_tag[1]) <= 16) {
        LLVMGetMDNodeOperands(of_tag[1], of_type);
        name = of_type[0] ? LLVMGetMDString(of_type[0], &length) : NULL;
    }
    /* A floating value's own load may be made one of an integer. */
    static const char *const may[] = {"omnipotent char", "double", "float", "long double"};
    for (unsigned k = 0; name && k < sizeof may / sizeof *may; k++)
        if (strlen(may[k]) == length && strncmp(name, may[k], length) == 0)
            return true;
    return !name;
}

static void load_visit(struct pass *p, value v)
{
    const type t = LLVMTypeOf(v);
    value pointer = LLVMGetOperand(v, 0);
    struct leaves leaves = {.n = 0};
    if (pass_is_real(t)) {
        value index = pass_index_load(p, pass_shadow_of(p, pointer), v);
        pass_known(p, v)->index = index;
    } else if (pass_is_copy(p, v)) {
        struct pair copied = pass_copied_load(p, pass_shadow_of(p, pointer), t);
        pass_known(p, v)->copied = copied;
    } else if (!pass_leaves(p, t, &leaves)) {
        pass_refuse(p, v, "a value of too many floating parts");
    } else if (leaves.n > 0) {
        value shadow = pass_shadow_of(p, pointer), *part = pass_parts_set(p, v, leaves.n);
        for (unsigned k = 0; k < leaves.n; k++)
            part[k] = pass_index_load(p, pass_byte_offset(p, shadow, leaves.leaf[k].offset),
                                      pass_part_value(p, v, &leaves.leaf[k]));
    }
    pass_words_load(p, v);
    if (!pass_is_real(t) && pass_may_be_bits(p, v) && pass_bits_are_used(p, v))
        pass_bits_check(p, v);
}

static bool is_number_of_bytes(const struct pass *p, type t)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    if (kind == LLVMVectorTypeKind || kind == LLVMArrayTypeKind)
        return is_number_of_bytes(p, LLVMGetElementType(t));
    return kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) >= 32;
}

static void store_visit(struct pass *p, value v)
{
    value stored = LLVMGetOperand(v, 0), pointer = LLVMGetOperand(v, 1);
    const type t = LLVMTypeOf(stored);
    struct leaves leaves = {.n = 0};
    if (pass_is_real(t)) {
        value index = pass_index_of(p, stored);
        pass_build_after(p, v);
        pass_index_store(p, index, stored, pass_shadow_of(p, pointer));
    } else if (pass_is_copy(p, stored)) {
        pass_build_after(p, v);
        pass_copied_store(p, pass_copied_of(p, stored), pass_shadow_of(p, pointer));
    } else if (!pass_leaves(p, t, &leaves)) {
        pass_refuse(p, v, "a value of too many floating parts");
    } else if (leaves.n > 0) {
        value *part = pass_parts(p, stored, leaves.n), shadow = pass_shadow_of(p, pointer);
        pass_build_after(p, v);
        for (unsigned k = 0; k < leaves.n; k++)
            pass_index_store(p, part[k], pass_part_value(p, stored, &leaves.leaf[k]),
                             pass_byte_offset(p, shadow, leaves.leaf[k].offset));
    } else if (LLVMIsAConstant(stored) && is_number_of_bytes(p, t)) {
        /* Zeros of floating values are often written as integers. */
        value shadow = pass_shadow_of(p, pointer);
        pass_build_after(p, v);
        pass_shadow_clear(p, shadow, pass_number64(p, LLVMABISizeOfType(p->layout, t)));
    }
    pass_words_store(p, v);
}

/* Whether a floating value is put together of what is no copy, or of parts of a double. */
static bool is_put_together(struct pass *p, value cast)
{
    value from = LLVMGetOperand(cast, 0);
    return pass_is_move(from) &&
           (LLVMTypeOf(cast) == p->real || LLVMIsAConstant(pass_known(p, from)->copied.shadow));
}

static void bitcast_visit(struct pass *p, value v)
{
    value from = LLVMGetOperand(v, 0);
    const type t = LLVMTypeOf(v);
    struct leaves leaves = {.n = 0}, of = {.n = 0};
    if (pass_is_real(LLVMTypeOf(from)) && !pass_is_real(t)) {
        if (pass_is_active(p, from))
            pass_refuse_bits(p, v);
        if (pass_is_copy(p, v)) {
            struct pair copied = pass_copied_from(p, pass_index_of(p, from), from);
            pass_known(p, v)->copied = copied;
        }
    } else if (pass_is_real(t)) {
        value index = p->zero;
        if (!LLVMIsAConstant(from) && pass_known(p, from)->copied.shadow && !is_put_together(p, v))
            index = pass_copied_as(p, pass_copied_of(p, from), v);
        else if (pass_may_be_real_bits(from, 0))
            pass_refuse(p, v, "a floating value that comes as an integer");
        pass_known(p, v)->index = index;
    } else {
        pass_leaves(p, t, &leaves);
        pass_leaves(p, LLVMTypeOf(from), &of);
        if (leaves.n != of.n)
            pass_refuse(p, v, "floating values that are read as others");
        else if (of.n > 0)
            memcpy(pass_parts_set(p, v, leaves.n), pass_parts(p, from, of.n), of.n * sizeof(value));
    }
}

/* The leaves [first, first + n) of a value that lie within one element of it. */
static unsigned leaves_within(const struct leaves *leaves, unsigned element, unsigned *first)
{
    unsigned n = 0;
    for (unsigned k = leaves->n; k-- > 0;)
        if (leaves->leaf[k].path[0] == element) {
            *first = k;
            n++;
        }
    return n;
}

/* The number of the element that an instruction takes or puts. False: not known now. */
static bool element_of(value v, unsigned operand, unsigned *element)
{
    const LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    if (opcode == LLVMExtractValue || opcode == LLVMInsertValue) {
        *element = LLVMGetIndices(v)[0];
        return LLVMGetNumIndices(v) == 1;
    }
    value at = LLVMGetOperand(v, operand);
    if (!LLVMIsAConstantInt(at))
        return false;
    *element = (unsigned)LLVMConstIntGetZExtValue(at);
    return true;
}

static void extract_visit(struct pass *p, value v)
{
    value from = LLVMGetOperand(v, 0);
    struct leaves of;
    unsigned element, first = 0;
    if (LLVMIsAExtractValueInst(v) && pass_is_word_type(LLVMTypeOf(v)) && pass_is_copy(p, v)) {
        pass_words_extract(p, v);
        return;
    }
    pass_leaves(p, LLVMTypeOf(from), &of);
    if (of.n == 0) {
        if (pass_is_copy(p, v) && element_of(v, 1, &element) &&
            LLVMGetInstructionOpcode(v) == LLVMExtractElement) {
            struct pair copied = pass_copied_element(p, pass_copied_of(p, from), v, element);
            pass_known(p, v)->copied = copied;
        }
        return;
    }
    if (!element_of(v, 1, &element)) {
        pass_refuse(p, v, "an element of a vector by a variable place");
        return;
    }
    const unsigned n = leaves_within(&of, element, &first);
    value *part = pass_parts(p, from, of.n);
    if (pass_is_real(LLVMTypeOf(v))) {
        value index = part[first];
        pass_known(p, v)->index = index;
    } else if (n > 0) {
        value *inner = pass_parts_set(p, v, n);
        memcpy(inner, pass_parts(p, from, of.n) + first, n * sizeof *inner);
    }
}

static void insert_visit(struct pass *p, value v)
{
    value into = LLVMGetOperand(v, 0), element = LLVMGetOperand(v, 1);
    struct leaves of;
    unsigned place, first = 0;
    pass_leaves(p, LLVMTypeOf(v), &of);
    if (of.n == 0)
        return;
    value *part = pass_parts_set(p, v, of.n);
    if (!LLVMIsAConstant(into))
        memcpy(part, pass_parts(p, into, of.n), of.n * sizeof *part);
    if (!element_of(v, 2, &place)) {
        pass_refuse(p, v, "an element of a vector by a variable place");
        return;
    }
    const unsigned n = leaves_within(&of, place, &first);
    if (pass_is_real(LLVMTypeOf(element))) {
        value index = pass_index_of(p, element);
        pass_known(p, v)->part[first] = index;
    } else if (n > 0 && !LLVMIsAConstant(element)) {
        const value *inner = pass_parts(p, element, n);
        memcpy(pass_known(p, v)->part + first, inner, n * sizeof *inner);
    }
}

static void select_visit(struct pass *p, value v)
{
    value condition = LLVMGetOperand(v, 0), yes = LLVMGetOperand(v, 1), no = LLVMGetOperand(v, 2);
    struct leaves leaves;
    pass_words_choose(p, v);
    if (pass_is_copy(p, v)) {
        const struct pair a = pass_copied_of(p, yes), b = pass_copied_of(p, no);
        const struct pair chosen = {pass_choose(p, condition, a.shadow, b.shadow),
                                    pass_choose(p, condition, a.checks, b.checks)};
        pass_known(p, v)->copied = chosen;
    } else if (pass_leaves(p, LLVMTypeOf(v), &leaves) && leaves.n > 0) {
        pass_parts_set(p, v, leaves.n);
        for (unsigned k = 0; k < leaves.n; k++) {
            value a = LLVMIsAConstant(yes) ? p->zero : pass_parts(p, yes, leaves.n)[k];
            value b = LLVMIsAConstant(no) ? p->zero : pass_parts(p, no, leaves.n)[k];
            pass_known(p, v)->part[k] = pass_choose(p, condition, a, b);
        }
    }
}

static void shuffle_visit(struct pass *p, value v)
{
    value a = LLVMGetOperand(v, 0), b = LLVMGetOperand(v, 1);
    struct leaves leaves, of;
    pass_leaves(p, LLVMTypeOf(v), &leaves);
    pass_leaves(p, LLVMTypeOf(a), &of);
    if (leaves.n == 0)
        return;
    pass_parts_set(p, v, leaves.n);
    for (unsigned k = 0; k < leaves.n; k++) {
        const int place = LLVMGetMaskValue(v, k);
        value from = place < (int)of.n ? a : b, index = p->zero;
        if (place >= 0 && !LLVMIsAConstant(from))
            index = pass_parts(p, from, of.n)[place % (int)of.n];
        pass_known(p, v)->part[k] = index;
    }
}

/* The stack's shadow is that of what lay there before. Where the variable's life has a beginning,
 * it is cleared there (pass_calls.c). */
static void alloca_visit(struct pass *p, value v)
{
    const type t = LLVMGetAllocatedType(v);
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    if (kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind)
        return;
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (LLVMIsACallInst(user) &&
            strncmp(pass_name_of(LLVMGetCalledValue(user)), "llvm.lifetime.start", 19) == 0)
            return;
    }
    value n = LLVMBuildZExtOrBitCast(p->build, LLVMGetOperand(v, 0), p->i64, "");
    value shadow = pass_shadow_of(p, v);
    pass_shadow_clear(
        p, shadow,
        LLVMBuildMul(p->build, n, pass_number64(p, LLVMABISizeOfType(p->layout, t)), ""));
}

static void visit(struct pass *p, value v)
{
    const type t = LLVMTypeOf(v);
    struct leaves leaves = {.n = 0};
    if (pass_has_rule(v)) {
        pass_apply_rule(p, v);
        return;
    }
    if (pass_loop_visit(p, v))
        return;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMLoad:
        load_visit(p, v);
        break;
    case LLVMStore:
        store_visit(p, v);
        break;
    case LLVMBitCast:
        bitcast_visit(p, v);
        break;
    case LLVMSelect:
        select_visit(p, v);
        break;
    case LLVMExtractValue:
    case LLVMExtractElement:
        extract_visit(p, v);
        break;
    case LLVMInsertValue:
    case LLVMInsertElement:
        insert_visit(p, v);
        break;
    case LLVMShuffleVector:
        shuffle_visit(p, v);
        break;
    case LLVMCall:
    case LLVMInvoke:
        pass_call(p, v);
        break;
    case LLVMRet:
        pass_return(p, v);
        break;
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        if (pass_is_real(t) ||
            pass_is_copy(p, LLVMGetOperand(v, (unsigned)LLVMGetNumOperands(v) - 1)))
            pass_refuse(p, v, "an atomic operation on a floating value");
        break;
    case LLVMSIToFP:
    case LLVMUIToFP:
        break;
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMAdd:
        if (pass_is_copy(p, v))
            pass_move_visit(p, v);
        break;
    case LLVMAlloca:
        alloca_visit(p, v);
        break;
    case LLVMCallBr:
        pass_refuse(p, v, "inline assembly that jumps");
        break;
    default:
        pass_leaves(p, t, &leaves);
        if (pass_is_real(t) || leaves.n > 0 || pass_is_other_real(t))
            pass_refuse(p, v, "there is no rule for this operation");
        break;
    }
}

static unsigned kind_of(const char *name)
{
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

/* Of a function that is not recorded callers learn that its results are constants. */
static void function_skip(struct pass *p, value function)
{
    p->function = function;
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block)) {
        value last = LLVMGetBasicBlockTerminator(block);
        if (LLVMIsAReturnInst(last))
            pass_return_constants(p, last);
    }
}

static void function_visit(struct pass *p, value function)
{
    p->function = function;
    p->unoptimised =
        LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                    kind_of("optnone")) != NULL;
    pass_known_clear(p);
    pass_written_prepare(p);
    pass_loops_prepare(p);
    pass_known_clear(p);
    const struct blocks order = blocks_in_order(function);
    LLVMMetadataRef scope = LLVMGetSubprogram(function);
    LLVMMetadataRef line = NULL;
    if (scope)
        line = LLVMDIBuilderCreateDebugLocation(p->context, LLVMDISubprogramGetLine(scope), 0,
                                                scope, NULL);
    /* What is there before anything is added. */
    size_t n = 0, room = 0;
    value *instruction = NULL;
    size_t *first = base_calloc(order.n + 1, sizeof *first);
    for (unsigned k = 0; k < order.n; k++) {
        first[k] = n;
        if (pass_is_fast_loop(p, order.block[k]))
            continue;
        for (value v = LLVMGetFirstInstruction(order.block[k]); v; v = LLVMGetNextInstruction(v)) {
            if (n == room)
                instruction =
                    base_reallocarray(instruction, room = 2 * room + 64, sizeof *instruction);
            instruction[n++] = v;
        }
    }
    value begin = LLVMGetFirstInstruction(order.block[0]);
    while (LLVMIsAAllocaInst(begin))
        begin = LLVMGetNextInstruction(begin);
    LLVMPositionBuilderBefore(p->build, begin);
    LLVMSetCurrentDebugLocation2(p->build, line);
    pass_take_arguments(p);
    pass_variadic_take(p);
    for (size_t k = 0; k < n; k++) /* before any is gone over: one may tell of others */
        pass_is_copy(p, instruction[k]);
    pass_words_take(p);
    for (unsigned k = 0; k < order.n; k++)
        if (!pass_is_fast_loop(p, order.block[k]))
            phis_make(p, order.block[k]);
    for (size_t k = 0; k < n; k++) {
        value v = instruction[k];
        if (LLVMIsAPHINode(v))
            continue;
        LLVMMetadataRef own = LLVMInstructionGetDebugLoc(v);
        if (LLVMIsATerminatorInst(v))
            LLVMPositionBuilderBefore(p->build, v);
        else
            pass_build_after(p, v);
        LLVMSetCurrentDebugLocation2(p->build, own ? own : line);
        visit(p, v);
    }
    for (size_t k = 0; k < n; k++)
        if (LLVMIsAPHINode(instruction[k]))
            phi_fill(p, instruction[k]);
    pass_loops_end(p);
    pass_written_end(p);
    free(order.block);
    free(instruction);
    free(first);
}

/* ---- the module ---- */

static value aliasing_tag(struct pass *p, const char *name)
{
    static const char root[] = "Simple C/C++ TBAA";
    LLVMMetadataRef zero = LLVMValueAsMetadata(pass_number64(p, 0));
    LLVMMetadataRef of_root = LLVMMDStringInContext2(p->context, root, sizeof root - 1);
    LLVMMetadataRef parent = LLVMMDNodeInContext2(p->context, &of_root, 1);
    LLVMMetadataRef kind[] = {LLVMMDStringInContext2(p->context, name, strlen(name)), parent, zero};
    LLVMMetadataRef node = LLVMMDNodeInContext2(p->context, kind, 3);
    LLVMMetadataRef access[] = {node, node, zero};
    return LLVMMetadataAsValue(p->context, LLVMMDNodeInContext2(p->context, access, 3));
}

static void module_begin(struct pass *p, LLVMModuleRef module)
{
    p->module = module;
    p->context = LLVMGetModuleContext(module);
    p->layout = LLVMGetModuleDataLayout(module);
    p->build = LLVMCreateBuilderInContext(p->context);
    p->i1 = LLVMInt1TypeInContext(p->context);
    p->i8 = LLVMInt8TypeInContext(p->context);
    p->i32 = LLVMInt32TypeInContext(p->context);
    p->i64 = LLVMInt64TypeInContext(p->context);
    p->real = LLVMDoubleTypeInContext(p->context);
    p->pointer = LLVMPointerTypeInContext(p->context, 0);
    p->nothing = LLVMVoidTypeInContext(p->context);
    p->zero = LLVMConstInt(p->i32, 0, 0);
    p->kind_byval = kind_of("byval");
    p->kind_tbaa = LLVMGetMDKindIDInContext(p->context, "tbaa", 4);
    p->kind_prof = LLVMGetMDKindIDInContext(p->context, "prof", 4);
    p->tag_shadow = aliasing_tag(p, "tapescope shadow");
    p->tag_tape = aliasing_tag(p, "tapescope tape");
    p->tag_thread = aliasing_tag(p, "tapescope thread");
    type cursor[] = {p->pointer, p->i64, p->pointer, p->i64, p->i64};
    p->cursor = pass_of_thread(p, LLVMStructTypeInContext(p->context, cursor, 5, 0),
                               "ad_statement_cursor_");
    p->arguments = pass_of_thread(p, LLVMArrayType2(p->i32, 256), "ad_plain_arguments_");
    p->results = pass_of_thread(p, LLVMArrayType2(p->i32, 16), "ad_plain_results_");
    p->callee = pass_of_thread(p, p->pointer, "ad_plain_callee_");
    p->returned = pass_of_thread(p, p->pointer, "ad_plain_returned_");
}

static bool has_floats(LLVMModuleRef module)
{
    for (value f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block))
            for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v)) {
                value stored = LLVMIsAStoreInst(v) ? LLVMGetOperand(v, 0) : v;
                if (LLVMGetTypeKind(LLVMTypeOf(stored)) == LLVMFloatTypeKind)
                    return true;
            }
    return false;
}

static bool has_reals(type t)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    if (kind == LLVMArrayTypeKind || kind == LLVMVectorTypeKind)
        return has_reals(LLVMGetElementType(t));
    for (unsigned k = 0; kind == LLVMStructTypeKind && k < LLVMCountStructElementTypes(t); k++)
        if (has_reals(LLVMStructGetTypeAtIndex(t, k)))
            return true;
    return pass_is_real(t);
}

static void say_flag(struct pass *p, const char *name)
{
    value flag = LLVMGetNamedGlobal(p->module, name);
    LLVMBuildStore(p->build, LLVMConstInt(p->i8, 1, 0),
                   flag ? flag : LLVMAddGlobal(p->module, p->i8, name));
}

/* ptr f(void): where the thread has a variable that each has of its own. */
static value address_function(struct pass *p, value variable)
{
    static const char name[] = "llvm.threadlocal.address";
    const unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    value f =
        LLVMAddFunction(p->module, "ad_plain_address_", LLVMFunctionType(p->pointer, NULL, 0, 0));
    LLVMBuilderRef before = p->build;
    LLVMSetLinkage(f, LLVMInternalLinkage);
    p->build = LLVMCreateBuilderInContext(p->context);
    LLVMPositionBuilderAtEnd(p->build, LLVMAppendBasicBlockInContext(p->context, f, "entry"));
    LLVMBuildRet(p->build,
                 LLVMBuildCall2(p->build, LLVMIntrinsicGetType(p->context, id, &p->pointer, 1),
                                LLVMGetIntrinsicDeclaration(p->module, id, &p->pointer, 1),
                                &variable, 1, ""));
    LLVMDisposeBuilder(p->build);
    p->build = before;
    return f;
}

/* Variables that functions of other compilers know by their names. */
static unsigned say_globals(struct pass *p, bool count)
{
    unsigned n = 0;
    for (value g = LLVMGetFirstGlobal(p->module); g; g = LLVMGetNextGlobal(g)) {
        const LLVMLinkage linkage = LLVMGetLinkage(g);
        if (LLVMIsDeclaration(g) || LLVMIsGlobalConstant(g) ||
            (linkage != LLVMExternalLinkage && linkage != LLVMCommonLinkage) ||
            !has_reals(LLVMGlobalGetValueType(g)))
            continue;
        n++;
        if (count)
            continue;
        const bool own = LLVMIsThreadLocal(g);
        value said[] = {own ? address_function(p, g) : g,
                        pass_number64(p, LLVMABISizeOfType(p->layout, LLVMGlobalGetValueType(g)))};
        pass_call_runtime(p, own ? "ad_plain_global_of_thread_" : "ad_plain_global_", p->nothing, 2,
                          said);
    }
    return n;
}

/* What the runtime is told of the module when the program begins. */
static void module_say(struct pass *p)
{
    static const char name[] = "ad_plain_module_begin_";
    value f = LLVMAddFunction(p->module, name, LLVMFunctionType(p->nothing, NULL, 0, 0));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMPositionBuilderAtEnd(p->build, LLVMAppendBasicBlockInContext(p->context, f, "entry"));
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    if (p->has_floats)
        say_flag(p, "ad_plain_has_floats_");
    if (p->strict)
        say_flag(p, "ad_plain_is_strict_");
    say_globals(p, false);
    LLVMBuildRetVoid(p->build);
    pass_run_at_start(f);
}

static bool is_of_runtime(value global)
{
    return LLVMIsDeclaration(global) && LLVMGetFirstUse(global) &&
           strncmp(pass_name_of(global), "ad_plain_", strlen("ad_plain_")) == 0;
}

/* What needs the runtime names a variable of it that says how programs are linked. Without the
 * runtime the linker quotes that name, among many that say nothing. */
static void module_name_runtime(struct pass *p)
{
    bool needs = false;
    for (value f = LLVMGetFirstFunction(p->module); f && !needs; f = LLVMGetNextFunction(f))
        needs = is_of_runtime(f);
    for (value g = LLVMGetFirstGlobal(p->module); g && !needs; g = LLVMGetNextGlobal(g))
        needs = is_of_runtime(g);
    if (!needs)
        return;
    value by = LLVMAddGlobal(p->module, p->pointer, "ad_plain_linked_");
    LLVMSetInitializer(by,
                       LLVMAddGlobal(p->module, p->i8, "ad_plain_must_be_linked_by_tapescope_cc"));
    LLVMSetGlobalConstant(by, 1);
    LLVMSetLinkage(by, LLVMWeakODRLinkage); /* one in a program, and it stays */
    LLVMSetVisibility(by, LLVMHiddenVisibility);
}

unsigned pass_instrument(LLVMModuleRef module, const struct pass_options *options)
{
    struct pass pass = {.strict = options->strict}, *p = &pass;
    size_t n = 0, room = 0;
    value *function = NULL;
    module_begin(p, module);
    p->has_floats = has_floats(module);
    pass_invokes_prepare(module);
    pass_threads_prepare(p);
    pass_calls_rename(p);
    pass_blas_point(p);
    pass_calls_strip(p);
    pass_values_across_calls(p);
    pass_find_direct(p);
    for (value f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        if (n == room)
            function = base_reallocarray(function, room = 2 * room + 16, sizeof *function);
        function[n++] = f;
    }
    for (size_t k = 0; k < n; k++)
        if (pass_is_skipped(function[k]))
            function_skip(p, function[k]);
        else
            function_visit(p, function[k]);
    if (p->has_floats || p->strict || say_globals(p, true) > 0)
        module_say(p);
    module_name_runtime(p);
    if (p->lines) {
        LLVMDIBuilderFinalize(p->lines);
        LLVMDisposeDIBuilder(p->lines);
    }
    pass_known_clear(p);
    base_table_free(&p->places);
    base_table_free(&p->direct);
    base_table_free(&p->outlined);
    free(p->known);
    free(function);
    LLVMDisposeBuilder(p->build);
    return p->n_refused;
}
