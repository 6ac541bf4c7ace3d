/* pass_memory.c: indices of values in memory.
 *
 * Each byte of memory has one of shadow, at a fixed distance. A double's eight are its index and,
 * above it, its bits folded to 32, xored with the tag of the recording. So a load sees that code
 * which is not instrumented has written there since, or that the value is of another recording:
 * what the shadow says does not fit then. A float's four bytes are its index; its check lies in a
 * second shadow, which only floats have. A long double is checked by its mantissa.
 *
 * An integer that is only copied may be a copy of floating bits: what lies in its shadow goes along
 * unchecked, and is compared where the bits are taken for a floating value again.
 */
#include "pass.h"

#include <string.h>

/* As in plain/runtime/plain_shadow.h. */
#define DISTANCE UINT64_C(0x4ffffffff740)
#define DISTANCE_OF_CHECKS UINT64_C(0x3fffffffe680)

/* A value's bits folded to 32. */
static value folded(struct pass *p, value v)
{
    LLVMBuilderRef b = p->build;
    const LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(v));
    if (kind == LLVMFloatTypeKind)
        return LLVMBuildBitCast(b, v, p->i32, "");
    if (kind == LLVMX86_FP80TypeKind)
        v = LLVMBuildTrunc(b, LLVMBuildBitCast(b, v, LLVMIntTypeInContext(p->context, 80), ""),
                           p->i64, "");
    else
        v = LLVMBuildBitCast(b, v, p->i64, "");
    return LLVMBuildXor(
        b, LLVMBuildTrunc(b, v, p->i32, ""),
        LLVMBuildTrunc(b, LLVMBuildLShr(b, v, pass_number64(p, 32), ""), p->i32, ""), "");
}

static value current_tag(struct pass *p)
{
    return pass_load(p, p->i32, pass_cursor_field(p, 36), 4, p->tag_thread);
}

static value upper(struct pass *p, value word)
{
    LLVMBuilderRef b = p->build;
    return LLVMBuildTrunc(b, LLVMBuildLShr(b, word, pass_number64(p, 32), ""), p->i32, "");
}

static value joined(struct pass *p, value low, value high)
{
    LLVMBuilderRef b = p->build;
    return LLVMBuildOr(
        b, LLVMBuildZExt(b, low, p->i64, ""),
        LLVMBuildShl(b, LLVMBuildZExt(b, high, p->i64, ""), pass_number64(p, 32), ""), "");
}

/* i32 look(i32 index, i32 check, i32 folded): the index; where the check does not fit, what the
 * runtime says. `wide`: i32 look(i64 word, i64 bits) of a double's. */
static value look(struct pass *p, bool wide)
{
    value *const made = &p->look[wide ? 3 : 0];
    if (*made)
        return *made;
    type of[] = {wide ? p->i64 : p->i32, wide ? p->i64 : p->i32, p->i32};
    struct cold_helper helper = pass_cold_begin(p, wide ? "ad_plain_look_wide_" : "ad_plain_look_",
                                                p->i32, wide ? 2 : 3, of);
    LLVMBuilderRef b = p->build;
    value first = LLVMGetParam(helper.function, 0), second = LLVMGetParam(helper.function, 1);
    value index = wide ? LLVMBuildTrunc(b, first, p->i32, "") : first;
    /* Of constants no check is made: two branches that are foretold cost less. */
    pass_cold_ask(p, &helper, LLVMBuildICmp(b, LLVMIntNE, index, p->zero, ""));
    value tag = wide ? LLVMBuildXor(b, upper(p, LLVMBuildXor(b, first, second, "")),
                                    LLVMBuildTrunc(b, second, p->i32, ""), "")
                     : LLVMBuildXor(b, second, LLVMGetParam(helper.function, 2), "");
    pass_cold_branch(p, &helper, LLVMBuildICmp(b, LLVMIntNE, tag, current_tag(p), ""));
    value asked[] = {index, tag};
    value said = pass_call_kept(p, "ad_plain_operand_kept_", p->i32, 2, asked);
    return *made = pass_cold_end(p, &helper, said, index);
}

/* The address of the shadow, made once a pointer, where that is made. The builder stays where it
 * is. */
value pass_shadow_of(struct pass *p, value pointer)
{
    struct known *known = pass_known(p, pointer);
    if (known->shadow)
        return known->shadow;
    if (LLVMIsAConstant(pointer))
        return LLVMConstIntToPtr(
            LLVMConstSub(LLVMConstPtrToInt(pointer, p->i64), pass_number64(p, DISTANCE)),
            p->pointer);
    LLVMBuilderRef before = p->build;
    value base = NULL, result;
    if (LLVMIsAGetElementPtrInst(pointer) && !LLVMIsAConstant(LLVMGetOperand(pointer, 0)) &&
        LLVMGetNumIndices(pointer) <= 16 &&
        LLVMGetTypeKind(LLVMTypeOf(pointer)) == LLVMPointerTypeKind)
        base = pass_shadow_of(p, LLVMGetOperand(pointer, 0));
    p->build = LLVMCreateBuilderInContext(p->context);
    if (LLVMIsAInstruction(pointer))
        pass_build_after(p, pointer);
    else
        LLVMPositionBuilderBefore(p->build,
                                  LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(p->function)));
    if (base) {
        value place[16];
        const unsigned n = LLVMGetNumIndices(pointer);
        for (unsigned k = 0; k < n; k++)
            place[k] = LLVMGetOperand(pointer, k + 1);
        result = LLVMBuildGEP2(p->build, LLVMGetGEPSourceElementType(pointer), base, place, n, "");
    } else {
        result = LLVMBuildIntToPtr(p->build,
                                   LLVMBuildSub(p->build,
                                                LLVMBuildPtrToInt(p->build, pointer, p->i64, ""),
                                                pass_number64(p, DISTANCE), ""),
                                   p->pointer, "");
    }
    LLVMDisposeBuilder(p->build);
    p->build = before;
    return pass_known(p, pointer)->shadow = result;
}

static value checks_of(struct pass *p, value shadow)
{
    return pass_byte_offset(p, shadow, DISTANCE - DISTANCE_OF_CHECKS);
}

static bool is_float(value v)
{
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMFloatTypeKind;
}

static value checked(struct pass *p, value index, value check, value v)
{
    value argument[] = {index, check, folded(p, v)};
    return pass_call_inlined(p, look(p, false), 3, argument, v);
}

static value copied_checked(struct pass *p, value copied, value v)
{
    if (LLVMTypeOf(v) == p->real) {
        value argument[] = {copied, LLVMBuildBitCast(p->build, v, p->i64, "")};
        return pass_call_inlined(p, look(p, true), 2, argument, v);
    }
    return checked(p, LLVMBuildTrunc(p->build, copied, p->i32, ""), upper(p, copied), v);
}

value pass_index_load(struct pass *p, value shadow, value loaded)
{
    if (is_float(loaded)) {
        value index = pass_load(p, p->i32, shadow, 4, p->tag_shadow);
        return checked(p, index, pass_load(p, p->i32, checks_of(p, shadow), 4, p->tag_shadow),
                       loaded);
    }
    return copied_checked(p, pass_load(p, p->i64, shadow, 4, p->tag_shadow), loaded);
}

value pass_word_of(struct pass *p, value index, value v)
{
    if (index == p->zero)
        return pass_number64(p, 0);
    return joined(p, index, LLVMBuildXor(p->build, folded(p, v), current_tag(p), ""));
}

void pass_index_store(struct pass *p, value index, value stored, value shadow)
{
    value word = pass_word_of(p, index, stored);
    if (!is_float(stored)) {
        pass_store(p, word, shadow, 4, p->tag_shadow);
        return;
    }
    pass_store(p, index, shadow, 4, p->tag_shadow);
    if (index != p->zero)
        pass_store(p, upper(p, word), checks_of(p, shadow), 4, p->tag_shadow);
}

/* ---- stretches ---- */

static void copy_bytes(struct pass *p, const char *name, value to, value from, value bytes)
{
    value argument[] = {to, from, bytes, LLVMConstInt(p->i1, 0, 0)};
    type of[] = {p->pointer, p->pointer, LLVMTypeOf(bytes)};
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMBuildCall2(p->build, LLVMIntrinsicGetType(p->context, id, of, 3),
                   LLVMGetIntrinsicDeclaration(p->module, id, of, 3), argument, 4, "");
}

/* void copy_checks(to, from, bytes): of floats, where the program has any. */
static value copy_checks(struct pass *p)
{
    if (p->look[1])
        return p->look[1];
    static const char has[] = "ad_plain_has_floats_";
    type of[] = {p->pointer, p->pointer, p->i64};
    const struct cold_helper helper =
        pass_cold_begin(p, "ad_plain_copy_checks_", p->nothing, 3, of);
    value floats = LLVMGetNamedGlobal(p->module, has);
    if (!floats)
        floats = LLVMAddGlobal(p->module, p->i8, has);
    value any = pass_load(p, p->i8, floats, 1, p->tag_thread);
    pass_cold_branch(p, &helper,
                     LLVMBuildICmp(p->build, LLVMIntNE, any, LLVMConstInt(p->i8, 0, 0), ""));
    copy_bytes(p, "llvm.memmove", checks_of(p, LLVMGetParam(helper.function, 0)),
               checks_of(p, LLVMGetParam(helper.function, 1)), LLVMGetParam(helper.function, 2));
    return p->look[1] = pass_cold_end(p, &helper, NULL, NULL);
}

void pass_shadow_copy(struct pass *p, value to, value from, value bytes)
{
    copy_bytes(p, "llvm.memmove", to, from, bytes);
    if (LLVMTypeOf(bytes) != p->i64)
        bytes = LLVMBuildZExt(p->build, bytes, p->i64, "");
    value argument[] = {to, from, bytes};
    pass_call_inlined(p, copy_checks(p), 3, argument, NULL);
}

void pass_shadow_clear(struct pass *p, value to, value bytes)
{
    static const char name[] = "llvm.memset";
    value argument[] = {to, LLVMConstInt(p->i8, 0, 0), bytes, LLVMConstInt(p->i1, 0, 0)};
    type of[] = {p->pointer, LLVMTypeOf(bytes)};
    const unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMBuildCall2(p->build, LLVMIntrinsicGetType(p->context, id, of, 2),
                   LLVMGetIntrinsicDeclaration(p->module, id, of, 2), argument, 4, "");
}

/* ---- integers that are copies ---- */

enum { COPY_DEPTH = 10 };

/* Whether a type may hold copies of bytes: integers of whole bytes, and vectors of them. */
static bool is_bytes(type t)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    if (kind == LLVMVectorTypeKind)
        return is_bytes(LLVMGetElementType(t));
    return kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) % 8 == 0;
}

/* Of the same size, an integer. */
static type bytes_of(struct pass *p, type t)
{
    return LLVMIntTypeInContext(p->context, (unsigned)(8 * LLVMABISizeOfType(p->layout, t)));
}

static bool copy_to(struct pass *p, value v, value user, unsigned depth);

/* A number and whether it has overflown, of LLVM's. */
static bool is_overflow(value v)
{
    const type t = LLVMTypeOf(v);
    return LLVMCountStructElementTypes(t) == 2 &&
           LLVMGetTypeKind(LLVMStructGetTypeAtIndex(t, 1)) == LLVMIntegerTypeKind &&
           LLVMGetIntTypeWidth(LLVMStructGetTypeAtIndex(t, 1)) == 1;
}

static bool is_choice(value v)
{
    return LLVMIsAPHINode(v) || LLVMIsASelectInst(v);
}

/* Whether an integer is one that is loaded, or the bits of a floating value. */
static bool is_source(value v, unsigned depth)
{
    if (!LLVMIsAInstruction(v) || depth > COPY_DEPTH)
        return false;
    const LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    if (is_choice(v)) {
        for (int k = opcode == LLVMSelect; k < LLVMGetNumOperands(v); k++)
            if (is_source(LLVMGetOperand(v, (unsigned)k), depth + 1))
                return true;
        return false;
    }
    return opcode == LLVMLoad || opcode == LLVMExtractElement || opcode == LLVMBitCast ||
           pass_is_move(v);
}

/* Whether an integer comes as a word of a call, so that what it holds is followed wherever it is
 * moved. */
static bool is_word_source(const struct pass *p, value v, unsigned depth)
{
    if (pass_is_word_parameter(p, v))
        return true;
    if (!LLVMIsAInstruction(v) || depth > COPY_DEPTH)
        return false;
    if (depth > 0 && pass_result_is_word(p, v)) /* the call itself is one only if it goes on */
        return pass_is_word_type(LLVMTypeOf(v));
    if (LLVMIsAExtractValueInst(v))
        return pass_is_word_type(LLVMTypeOf(v)) && LLVMGetNumIndices(v) == 1 &&
               LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(v, 0))) == LLVMStructTypeKind &&
               !is_overflow(LLVMGetOperand(v, 0));
    return pass_is_move(v) && (is_word_source(p, LLVMGetOperand(v, 0), depth + 1) ||
                               (LLVMGetInstructionOpcode(v) == LLVMOr &&
                                is_word_source(p, LLVMGetOperand(v, 1), depth + 1)));
}

/* It is a copy, and so are those that it is chosen from, and what is chosen from it. What was asked
 * of them within a circle is made good so. */
static void copy_mark(struct pass *p, value v)
{
    if (!LLVMIsAInstruction(v) || !is_bytes(LLVMTypeOf(v)) || pass_known(p, v)->is_copy == 1)
        return;
    const LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    if (!is_choice(v) && opcode != LLVMLoad && opcode != LLVMExtractElement && !pass_is_move(v) &&
        !is_word_source(p, v, 0) && !pass_result_is_word(p, v) &&
        !(opcode == LLVMBitCast && pass_is_real(LLVMTypeOf(LLVMGetOperand(v, 0)))))
        return;
    pass_known(p, v)->is_copy = 1;
    if (opcode == LLVMExtractElement || pass_is_move(v))
        copy_mark(p, LLVMGetOperand(v, 0));
    if (opcode == LLVMOr)
        copy_mark(p, LLVMGetOperand(v, 1));
    for (int k = opcode == LLVMSelect; is_choice(v) && k < LLVMGetNumOperands(v); k++)
        copy_mark(p, LLVMGetOperand(v, (unsigned)k));
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use))
        if (is_choice(LLVMGetUser(use)))
            copy_mark(p, LLVMGetUser(use));
}

/* Whether an integer that goes on by other ways than memory may be a floating value. */
static bool may_be_source(const struct pass *p, value v)
{
    return !LLVMIsALoadInst(v) || pass_may_be_bits(p, v);
}

static bool copies(struct pass *p, value v, unsigned depth)
{
    if (LLVMIsAConstant(v) || depth > COPY_DEPTH || !is_bytes(LLVMTypeOf(v)))
        return false;
    if (!LLVMIsAInstruction(v)) /* a parameter of a region is one by its caller's word */
        return pass_known(p, v)->copied.shadow != NULL || pass_is_word_parameter(p, v);
    if (pass_known(p, v)->is_copy >= 0)
        return pass_known(p, v)->is_copy;
    pass_known(p, v)->is_copy = 0; /* what is asked meanwhile is a circle */
    const LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    bool is = opcode == LLVMBitCast && pass_is_real(LLVMTypeOf(LLVMGetOperand(v, 0)));
    if (opcode == LLVMPHI || opcode == LLVMSelect)
        for (int k = opcode == LLVMSelect; k < LLVMGetNumOperands(v); k++)
            is |= copies(p, LLVMGetOperand(v, (unsigned)k), depth + 1);
    is |= is_word_source(p, v, 0);
    if (opcode == LLVMLoad || opcode == LLVMPHI || opcode == LLVMSelect ||
        opcode == LLVMExtractElement || pass_is_move(v) || pass_result_is_word(p, v))
        for (LLVMUseRef use = LLVMGetFirstUse(v); use && !is; use = LLVMGetNextUse(use))
            is = copy_to(p, v, LLVMGetUser(use), depth);
    if (is) {
        pass_known(p, v)->is_copy = 0;
        copy_mark(p, v);
    }
    return pass_known(p, v)->is_copy == 1;
}

static bool copy_to(struct pass *p, value v, value user, unsigned depth)
{
    if (!LLVMIsAInstruction(user))
        return false;
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMBitCast:
        return pass_is_real(LLVMTypeOf(user));
    case LLVMCall:
    case LLVMInvoke:
        return pass_gives_words(p, user) || (pass_takes_word(p, user, v) && may_be_source(p, v));
    case LLVMRet:
        return pass_returns_word(p, LLVMTypeOf(v)) && may_be_source(p, v);
    case LLVMInsertValue:
        return LLVMGetOperand(user, 1) == v && pass_is_word_type(LLVMTypeOf(v)) &&
               may_be_source(p, v);
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMAdd:
        return pass_is_move(user) && may_be_source(p, v) && copies(p, user, depth + 1);
    case LLVMStore:
        if (LLVMGetOperand(user, 0) != v || LLVMGetInstructionOpcode(v) == LLVMBitCast)
            return false;
        if (pass_is_move(v) || pass_result_is_word(p, v) || is_word_source(p, v, 0))
            return pass_may_be_bits(p, user);
        return is_source(v, 0);
    case LLVMExtractElement:
        return LLVMIsAConstantInt(LLVMGetOperand(user, 1)) && copies(p, user, depth + 1);
    case LLVMPHI:
    case LLVMSelect:
        return copies(p, user, depth + 1);
    default:
        return false;
    }
}

bool pass_is_copy(struct pass *p, value v)
{
    return copies(p, v, 0);
}

/* The shadows' words of a copy: integers of its size. */
struct pair pass_copied_of(struct pass *p, value v)
{
    const struct known *known = LLVMIsAConstant(v) ? NULL : pass_known(p, v);
    if (known && known->copied.shadow)
        return known->copied;
    value none = LLVMConstInt(bytes_of(p, LLVMTypeOf(v)), 0, 0);
    return (struct pair){none, none};
}

struct pair pass_copied_load(struct pass *p, value shadow, type of)
{
    const type t = bytes_of(p, of);
    value word = pass_load(p, t, shadow, 1, p->tag_shadow), check = LLVMConstInt(t, 0, 0);
    if (p->has_floats)
        check = pass_load(p, t, checks_of(p, shadow), 1, p->tag_shadow);
    return (struct pair){word, check};
}

void pass_copied_store(struct pass *p, struct pair copied, value shadow)
{
    pass_store(p, copied.shadow, shadow, 1, p->tag_shadow);
    if (p->has_floats)
        pass_store(p, copied.checks, checks_of(p, shadow), 1, p->tag_shadow);
}

/* An element of a vector of integers. */
struct pair pass_copied_element(struct pass *p, struct pair copied, value element, unsigned k)
{
    LLVMBuilderRef b = p->build;
    const type t = bytes_of(p, LLVMTypeOf(element)), whole = LLVMTypeOf(copied.shadow);
    value bits = LLVMConstInt(whole, (uint64_t)k * LLVMGetIntTypeWidth(t), 0);
    return (struct pair){LLVMBuildTrunc(b, LLVMBuildLShr(b, copied.shadow, bits, ""), t, ""),
                         LLVMBuildTrunc(b, LLVMBuildLShr(b, copied.checks, bits, ""), t, "")};
}

/* void bits(i1 any, ptr at, i32 bytes): the runtime looks at what is read as a number of bits,
 * where its shadow is not empty. */
static value look_at_bits(struct pass *p)
{
    if (p->look[2])
        return p->look[2];
    type of[] = {p->i1, p->pointer, p->i32};
    const struct cold_helper helper =
        pass_cold_begin(p, "ad_plain_look_at_bits_", p->nothing, 3, of);
    pass_cold_branch(p, &helper, LLVMGetParam(helper.function, 0));
    value said[] = {LLVMGetParam(helper.function, 1), LLVMGetParam(helper.function, 2)};
    pass_call_apart(p, pass_call_runtime(p, "ad_plain_bits_", p->nothing, 2, said));
    return p->look[2] = pass_cold_end(p, &helper, NULL, NULL);
}

/* Where code is not optimised, unions and pointers to the bits of a value are read from memory:
 * at run time it is seen whether what is read as a number of bits is a variable's. So is an integer
 * of a structure that is loaded as one, and holds a `float` beside another member. */
static void bits_check_part(struct pass *p, value loaded, type t, uint64_t offset)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    const bool is_struct = kind == LLVMStructTypeKind;
    if (is_struct || kind == LLVMArrayTypeKind) {
        const unsigned n =
            is_struct ? LLVMCountStructElementTypes(t) : (unsigned)LLVMGetArrayLength2(t);
        for (unsigned k = 0; k < n; k++) {
            const type part = is_struct ? LLVMStructGetTypeAtIndex(t, k) : LLVMGetElementType(t);
            bits_check_part(p, loaded, part,
                            offset + (is_struct ? LLVMOffsetOfElement(p->layout, t, k)
                                                : k * LLVMABISizeOfType(p->layout, part)));
        }
        return;
    }
    if (!is_bytes(t))
        return;
    const type word = bytes_of(p, t);
    const unsigned bytes = LLVMGetIntTypeWidth(word) / 8;
    if (bytes < 4) /* of text */
        return;
    value at = LLVMGetOperand(loaded, 0),
          shadow = pass_byte_offset(p, pass_shadow_of(p, at), offset);
    value any = LLVMBuildICmp(p->build, LLVMIntNE, pass_load(p, word, shadow, 1, p->tag_shadow),
                              LLVMConstInt(word, 0, 0), "");
    value said[] = {any, pass_byte_offset(p, at, offset), pass_number32(p, bytes)};
    pass_call_inlined(p, look_at_bits(p), 3, said, loaded);
}

void pass_bits_check(struct pass *p, value loaded)
{
    if (LLVMIsALoadInst(loaded))
        bits_check_part(p, loaded, LLVMTypeOf(loaded), 0);
}

/* As in plain/runtime/plain_lost.c: only a double is looked for. */
enum { OF_DOUBLE = 256 };

/* so: i1, where this holds, or NULL */
static void register_check(struct pass *p, value v, struct pair pair, value so, unsigned bytes)
{
    LLVMBuilderRef before = p->build;
    p->build = LLVMCreateBuilderInContext(p->context);
    LLVMPositionBuilderBefore(p->build,
                              LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(p->function)));
    value at = LLVMBuildAlloca(p->build, p->i64, "");
    LLVMDisposeBuilder(p->build);
    p->build = before;
    LLVMSetAlignment(at, 8);
    LLVMSetAlignment(LLVMBuildStore(p->build, v, at), 8);
    pass_copied_store(p, pair, pass_shadow_of(p, at));
    value any = LLVMBuildICmp(p->build, LLVMIntNE, pair.shadow,
                              LLVMConstInt(LLVMTypeOf(pair.shadow), 0, 0), "");
    if (so)
        any = LLVMBuildAnd(p->build, any, so, "");
    value said[] = {any, at, pass_number32(p, bytes)};
    pass_call_inlined(p, look_at_bits(p), 3, said, v);
}

void pass_bits_check_word(struct pass *p, value v, struct pair pair, value so)
{
    unsigned halves = BOTH_HALVES;
    if (LLVMIsAConstant(pair.shadow) || !(so || pass_bits_are_used(p, v)))
        return;
    if (!so && LLVMTypeOf(v) == p->i64)
        halves = pass_halves_used(p, v, 0, 64, 0);
    if (halves == BOTH_HALVES) {
        register_check(p, v, pair, so, LLVMGetIntTypeWidth(LLVMTypeOf(v)) / 8);
        return;
    }
    /* A float may lie in the half that is not used. */
    pass_halves_check(p, v, pair);
    pass_half_check(p, v, pair, halves == UPPER_HALF);
}

void pass_half_check(struct pass *p, value v, struct pair pair, bool upper_half)
{
    if (LLVMIsAConstant(pair.shadow))
        return;
    const type half = p->i32;
    value by = pass_number64(p, upper_half ? 32 : 0);
    LLVMBuilderRef b = p->build;
    const struct pair part = {LLVMBuildTrunc(b, LLVMBuildLShr(b, pair.shadow, by, ""), half, ""),
                              LLVMBuildTrunc(b, LLVMBuildLShr(b, pair.checks, by, ""), half, "")};
    register_check(p, LLVMBuildTrunc(b, LLVMBuildLShr(b, v, by, ""), half, ""), part, NULL, 4);
}

void pass_halves_check(struct pass *p, value v, struct pair pair)
{
    if (!LLVMIsAConstant(pair.shadow) && LLVMTypeOf(v) == p->i64)
        register_check(p, v, pair, NULL, OF_DOUBLE + sizeof(double));
}

/* The bits of a floating value as an integer, and back. */
struct pair pass_copied_from(struct pass *p, value index, value v)
{
    value word = pass_word_of(p, index, v);
    const type t = bytes_of(p, LLVMTypeOf(v));
    if (is_float(v))
        return (struct pair){index, upper(p, word)};
    return (struct pair){LLVMBuildZExtOrBitCast(p->build, word, t, ""), LLVMConstInt(t, 0, 0)};
}

value pass_copied_as(struct pass *p, struct pair copied, value v)
{
    if (is_float(v))
        return checked(p, copied.shadow, copied.checks, v);
    return copied_checked(p, LLVMBuildTruncOrBitCast(p->build, copied.shadow, p->i64, ""), v);
}
