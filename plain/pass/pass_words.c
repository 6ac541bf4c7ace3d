/* pass_words.c: words: integers that may hold floating values, as arguments and results.
 *
 * A structure that is passed in registers comes as numbers of 8 bytes each; one that holds a
 * `float` beside an integer, or a union, is an integer of its own. Its shadow, a pair of words
 * (pass_memory.c), goes through arrays of the thread, as indices do (pass_calls.c). clang tells
 * such an argument from a number of the program: that one is `noundef`.
 *
 * Invariant: a function that is instrumented takes every such argument of its own, and looks at run
 * time whether a variable's bits are computed with; of one that is not, the caller looks behind the
 * call. A result is looked at by the function itself, unless its caller has said that it takes it.
 */
#include "pass.h"

#include "base_memory.h"

#include <string.h>

/* As in plain/runtime/plain_calls.h: arguments by their number, elements of a result. */
enum { WORDS = 16, WORD_RESULTS = 4, DEPTH = 16 };

bool pass_is_word_type(type t)
{
    return LLVMGetTypeKind(t) == LLVMIntegerTypeKind &&
           (LLVMGetIntTypeWidth(t) == 32 || LLVMGetIntTypeWidth(t) == 64);
}

/* The words of a result: itself, or elements of a structure. */
static unsigned words_of_type(type t)
{
    unsigned n = 0;
    if (pass_is_word_type(t))
        return 1;
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind || LLVMCountStructElementTypes(t) > WORD_RESULTS)
        return 0;
    for (unsigned k = 0; k < LLVMCountStructElementTypes(t); k++)
        n += pass_is_word_type(LLVMStructGetTypeAtIndex(t, k));
    return n;
}

static unsigned elements_of(type t)
{
    return LLVMGetTypeKind(t) == LLVMStructTypeKind ? LLVMCountStructElementTypes(t) : 1;
}

static type element_type(type t, unsigned k)
{
    return LLVMGetTypeKind(t) == LLVMStructTypeKind ? LLVMStructGetTypeAtIndex(t, k) : t;
}

static unsigned kind_noundef(void)
{
    return LLVMGetEnumAttributeKindForName("noundef", 7);
}

bool pass_is_word_parameter(const struct pass *p, value v)
{
    if (!LLVMIsAArgument(v) || !pass_is_word_type(LLVMTypeOf(v)) ||
        pass_is_outlined(p, p->function))
        return false;
    for (unsigned k = 0; k < WORDS && k < LLVMCountParams(p->function); k++)
        if (LLVMGetParam(p->function, k) == v)
            return !LLVMGetEnumAttributeAtIndex(p->function, k + 1, kind_noundef());
    return false;
}

/* Whether a call may be of a function that takes words, or gives them. */
static bool call_may(const struct pass *p, value call)
{
    return pass_is_call(call) && !LLVMIsAInlineAsm(LLVMGetCalledValue(call)) &&
           !pass_has_rule(call) && !pass_is_passive_callee(call) && !pass_gives_words(p, call);
}

static bool is_word_argument(value call, unsigned k)
{
    return k < WORDS && k < LLVMCountParamTypes(LLVMGetCalledFunctionType(call)) &&
           pass_is_word_type(LLVMTypeOf(LLVMGetOperand(call, k))) &&
           !LLVMGetCallSiteEnumAttribute(call, k + 1, kind_noundef());
}

bool pass_takes_word(const struct pass *p, value call, value v)
{
    bool takes = false;
    if (!call_may(p, call))
        return false;
    for (unsigned k = 0; k < LLVMGetNumArgOperands(call); k++)
        if (LLVMGetOperand(call, k) == v) {
            if (!is_word_argument(call, k))
                return false;
            takes = true;
        }
    return takes;
}

bool pass_result_is_word(const struct pass *p, value v)
{
    return call_may(p, v) && words_of_type(LLVMTypeOf(v)) > 0;
}

bool pass_returns_word(const struct pass *p, type t)
{
    return words_of_type(t) > 0 && !pass_is_skipped(p->function);
}

/* ---- the pairs of structures ---- */

static struct pair *pairs_set(struct pass *p, value v)
{
    struct pair *pair = base_calloc(WORD_RESULTS, sizeof *pair);
    struct known *known = pass_known(p, v);
    return known->word = pair;
}

static struct pair no_pair(struct pass *p, type t)
{
    value none = LLVMConstInt(t, 0, 0);
    (void)p;
    return (struct pair){none, none};
}

/* Of an element of a structure, or of an integer itself. */
static struct pair pair_of(struct pass *p, value v, unsigned k)
{
    const type t = LLVMTypeOf(v);
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind)
        return pass_copied_of(p, v);
    while (LLVMIsAInsertValueInst(v) && LLVMGetNumIndices(v) == 1) {
        if (LLVMGetIndices(v)[0] == k)
            return pass_copied_of(p, LLVMGetOperand(v, 1));
        v = LLVMGetOperand(v, 0);
    }
    if (!LLVMIsAConstant(v) && pass_known(p, v)->word)
        return pass_known(p, v)->word[k];
    return no_pair(p, LLVMStructGetTypeAtIndex(t, k));
}

void pass_words_load(struct pass *p, value v)
{
    const type t = LLVMTypeOf(v);
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind || words_of_type(t) == 0)
        return;
    value shadow = pass_shadow_of(p, LLVMGetOperand(v, 0));
    struct pair *pair = pairs_set(p, v);
    for (unsigned k = 0; k < elements_of(t); k++)
        if (pass_is_word_type(element_type(t, k)))
            pair[k] = pass_copied_load(
                p, pass_byte_offset(p, shadow, LLVMOffsetOfElement(p->layout, t, k)),
                element_type(t, k));
}

void pass_words_store(struct pass *p, value v)
{
    value stored = LLVMGetOperand(v, 0);
    const type t = LLVMTypeOf(stored);
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind || words_of_type(t) == 0)
        return;
    value shadow = pass_shadow_of(p, LLVMGetOperand(v, 1));
    pass_build_after(p, v);
    for (unsigned k = 0; k < elements_of(t); k++)
        if (pass_is_word_type(element_type(t, k)))
            pass_copied_store(p, pair_of(p, stored, k),
                              pass_byte_offset(p, shadow, LLVMOffsetOfElement(p->layout, t, k)));
}

void pass_words_choose(struct pass *p, value v)
{
    const type t = LLVMTypeOf(v);
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind || words_of_type(t) == 0)
        return;
    pairs_set(p, v);
    for (unsigned k = 0; k < elements_of(t); k++) {
        if (!pass_is_word_type(element_type(t, k)))
            continue;
        value condition = LLVMGetOperand(v, 0);
        const struct pair a = pair_of(p, LLVMGetOperand(v, 1), k),
                          b = pair_of(p, LLVMGetOperand(v, 2), k);
        const struct pair chosen = {pass_choose(p, condition, a.shadow, b.shadow),
                                    pass_choose(p, condition, a.checks, b.checks)};
        pass_known(p, v)->word[k] = chosen;
    }
}

void pass_words_phi_make(struct pass *p, value v)
{
    const type t = LLVMTypeOf(v);
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind || words_of_type(t) == 0)
        return;
    struct pair *pair = pairs_set(p, v);
    for (unsigned k = 0; k < elements_of(t); k++)
        if (pass_is_word_type(element_type(t, k)))
            pair[k] = (struct pair){LLVMBuildPhi(p->build, element_type(t, k), ""),
                                    LLVMBuildPhi(p->build, element_type(t, k), "")};
}

void pass_words_phi_fill(struct pass *p, value v, value from, LLVMBasicBlockRef block)
{
    const type t = LLVMTypeOf(v);
    for (unsigned k = 0; pass_known(p, v)->word && k < elements_of(t); k++) {
        if (!pass_is_word_type(element_type(t, k)))
            continue;
        struct pair pair = pair_of(p, from, k);
        LLVMAddIncoming(pass_known(p, v)->word[k].shadow, &pair.shadow, &block, 1);
        LLVMAddIncoming(pass_known(p, v)->word[k].checks, &pair.checks, &block, 1);
    }
}

void pass_words_extract(struct pass *p, value v)
{
    const struct pair pair = pair_of(p, LLVMGetOperand(v, 0), LLVMGetIndices(v)[0]);
    pass_known(p, v)->copied = pair;
    pass_bits_check_word(p, v, pair, NULL);
}

/* ---- through the thread's arrays ---- */

static value place_of(struct pass *p, value array, unsigned k)
{
    value at = pass_number64(p, k);
    return LLVMConstGEP2(p->i64, array, &at, 1);
}

static void put(struct pass *p, value array, unsigned k, struct pair pair)
{
    pass_store(p, pair.shadow, place_of(p, array, 2 * k), 8, p->tag_thread);
    pass_store(p, pair.checks, place_of(p, array, 2 * k + 1), 8, p->tag_thread);
}

static struct pair taken(struct pass *p, value array, unsigned k, type t, value really)
{
    struct pair pair = {pass_load(p, t, place_of(p, array, 2 * k), 8, p->tag_thread),
                        pass_load(p, t, place_of(p, array, 2 * k + 1), 8, p->tag_thread)};
    value none = LLVMConstInt(t, 0, 0);
    pair.shadow = pass_choose(p, really, pair.shadow, none);
    pair.checks = pass_choose(p, really, pair.checks, none);
    return pair;
}

static value arguments(struct pass *p)
{
    return pass_of_thread(p, LLVMArrayType2(p->i64, 2 * WORDS), "ad_plain_words_");
}

static value results(struct pass *p)
{
    return pass_of_thread(p, LLVMArrayType2(p->i64, 2 * WORD_RESULTS), "ad_plain_word_results_");
}

static value is_here(struct pass *p, value variable, value function)
{
    return LLVMBuildICmp(p->build, LLVMIntEQ, pass_load(p, p->pointer, variable, 8, p->tag_thread),
                         function, "");
}

/* Whether what is returned is a word that may be a copy. */
static bool is_carried(struct pass *p, value v, unsigned k)
{
    while (LLVMIsAInsertValueInst(v) && LLVMGetNumIndices(v) == 1) {
        if (LLVMGetIndices(v)[0] == k)
            return is_carried(p, LLVMGetOperand(v, 1), 0);
        v = LLVMGetOperand(v, 0);
    }
    if (LLVMIsAConstant(v))
        return false;
    if (LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMStructTypeKind)
        return true;
    return LLVMIsAArgument(v) ? pass_known(p, v)->copied.shadow != NULL : pass_is_copy(p, v);
}

static bool gives_words(struct pass *p)
{
    const type t = LLVMGetReturnType(LLVMGlobalGetValueType(p->function));
    if (words_of_type(t) == 0)
        return false;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(p->function); block;
         block = LLVMGetNextBasicBlock(block)) {
        value end = LLVMGetBasicBlockTerminator(block);
        for (unsigned k = 0; LLVMIsAReturnInst(end) && k < elements_of(t); k++)
            if (pass_is_word_type(element_type(t, k)) && is_carried(p, LLVMGetOperand(end, 0), k))
                return true;
    }
    return false;
}

void pass_words_take(struct pass *p)
{
    const unsigned n = LLVMCountParams(p->function);
    value so = NULL, mask = NULL;
    for (unsigned k = 0; k < n && k < WORDS; k++) {
        value v = LLVMGetParam(p->function, k);
        if (!pass_is_word_parameter(p, v))
            continue;
        if (!so) {
            so = is_here(p, pass_of_thread(p, p->pointer, "ad_plain_words_callee_"), p->function);
            mask = pass_load(p, p->i32, pass_of_thread(p, p->i32, "ad_plain_words_mask_"), 4,
                             p->tag_thread);
        }
        value bit = LLVMBuildAnd(p->build, mask, pass_number32(p, 1U << k), "");
        value really =
            LLVMBuildAnd(p->build, so, LLVMBuildICmp(p->build, LLVMIntNE, bit, p->zero, ""), "");
        const struct pair pair = taken(p, arguments(p), k, LLVMTypeOf(v), really);
        pass_known(p, v)->copied = pair;
    }
    if (so)
        pass_store(p, LLVMConstNull(p->pointer),
                   pass_of_thread(p, p->pointer, "ad_plain_words_callee_"), 8, p->tag_thread);
    for (unsigned k = 0; so && k < n && k < WORDS; k++)
        if (pass_is_word_parameter(p, LLVMGetParam(p->function, k)))
            pass_bits_check_word(p, LLVMGetParam(p->function, k),
                                 pass_known(p, LLVMGetParam(p->function, k))->copied, NULL);
    p->word_wanted = NULL;
    if (!gives_words(p))
        return;
    value wanted = pass_of_thread(p, p->pointer, "ad_plain_words_wanted_");
    p->word_wanted = is_here(p, wanted, p->function);
    pass_store(p, LLVMConstNull(p->pointer), wanted, 8, p->tag_thread);
}

void pass_words_return(struct pass *p, value instruction)
{
    if (!p->word_wanted)
        return;
    value v = LLVMGetOperand(instruction, 0);
    const type t = LLVMTypeOf(v);
    value not_wanted = LLVMBuildNot(p->build, p->word_wanted, "");
    for (unsigned k = 0; k < elements_of(t); k++) {
        if (!pass_is_word_type(element_type(t, k)))
            continue;
        const struct pair pair = pair_of(p, v, k);
        put(p, results(p), k, pair);
        if (LLVMIsAConstant(pair.shadow) || LLVMIsAConstant(v))
            continue;
        value word = elements_of(t) == 1 && t == element_type(t, k)
                         ? v
                         : LLVMBuildExtractValue(p->build, v, k, "");
        pass_bits_check_word(p, word, pair, not_wanted);
    }
    pass_store(p, p->function, pass_of_thread(p, p->pointer, "ad_plain_words_returned_"), 8,
               p->tag_thread);
}

/* Before the call. */
void pass_words_put(struct pass *p, value call)
{
    unsigned mask = 0;
    bool any = false;
    if (!call_may(p, call))
        return;
    for (unsigned k = 0; k < LLVMGetNumArgOperands(call); k++)
        if (is_word_argument(call, k)) {
            mask |= 1U << k;
            any |= !LLVMIsAConstant(pass_copied_of(p, LLVMGetOperand(call, k)).shadow);
        }
    if (any) {
        for (unsigned k = 0; k < WORDS; k++)
            if (mask >> k & 1)
                put(p, arguments(p), k, pass_copied_of(p, LLVMGetOperand(call, k)));
        pass_store(p, pass_number32(p, mask), pass_of_thread(p, p->i32, "ad_plain_words_mask_"), 4,
                   p->tag_thread);
        pass_store(p, LLVMGetCalledValue(call),
                   pass_of_thread(p, p->pointer, "ad_plain_words_callee_"), 8, p->tag_thread);
    }
    if (!pass_wants_words(p, call))
        return;
    pass_store(p, LLVMGetCalledValue(call), pass_of_thread(p, p->pointer, "ad_plain_words_wanted_"),
               8, p->tag_thread);
    pass_store(p, LLVMConstNull(p->pointer),
               pass_of_thread(p, p->pointer, "ad_plain_words_returned_"), 8, p->tag_thread);
}

bool pass_wants_words(struct pass *p, value call)
{
    if (!pass_result_is_word(p, call))
        return false;
    return LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMStructTypeKind || pass_is_copy(p, call);
}

/* Whether words are among the arguments, which a function of another compiler does not take. */
bool pass_has_words(struct pass *p, value call)
{
    for (unsigned k = 0; call_may(p, call) && k < LLVMGetNumArgOperands(call); k++)
        if (is_word_argument(call, k) &&
            !LLVMIsAConstant(pass_copied_of(p, LLVMGetOperand(call, k)).shadow))
            return true;
    return false;
}

/* Behind it; foreign: i1, whether it was of another compiler, or NULL: it was not. */
void pass_words_look(struct pass *p, value call, value foreign)
{
    for (unsigned k = 0; foreign && call_may(p, call) && k < LLVMGetNumArgOperands(call); k++)
        if (is_word_argument(call, k)) {
            const struct pair pair = pass_copied_of(p, LLVMGetOperand(call, k));
            if (!LLVMIsAConstant(pair.shadow))
                pass_bits_check_word(p, LLVMGetOperand(call, k), pair, foreign);
        }
}

void pass_words_given(struct pass *p, value call)
{
    const type t = LLVMTypeOf(call);
    if (!pass_wants_words(p, call))
        return;
    value really = is_here(p, pass_of_thread(p, p->pointer, "ad_plain_words_returned_"),
                           LLVMGetCalledValue(call));
    if (LLVMGetTypeKind(t) != LLVMStructTypeKind) {
        const struct pair pair = taken(p, results(p), 0, t, really);
        pass_known(p, call)->copied = pair;
        pass_bits_check_word(p, call, pair, NULL);
        return;
    }
    struct pair *pair = pairs_set(p, call);
    for (unsigned k = 0; k < elements_of(t); k++)
        if (pass_is_word_type(element_type(t, k)))
            pair[k] = taken(p, results(p), k, element_type(t, k), really);
}

/* ---- bytes that are moved within integers ---- */

static bool is_whole_bytes(type t)
{
    const unsigned width = LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(t) : 0;
    return width == 8 || width == 16 || width == 32 || width == 64;
}

/* Which bytes of an integer are 0, as far as is seen. */
static unsigned zero_bytes(value v, unsigned depth)
{
    const type t = LLVMTypeOf(v);
    const unsigned bytes = LLVMGetIntTypeWidth(t) / 8, all = (1U << bytes) - 1;
    unsigned zero = 0;
    if (LLVMIsAConstantInt(v)) {
        for (unsigned k = 0; k < bytes; k++)
            if ((LLVMConstIntGetZExtValue(v) >> (8 * k) & 0xFF) == 0)
                zero |= 1U << k;
        return zero;
    }
    if (!LLVMIsAInstruction(v) || depth == DEPTH)
        return 0;
    value of = LLVMGetNumOperands(v) > 0 ? LLVMGetOperand(v, 0) : NULL,
          by = LLVMGetNumOperands(v) > 1 ? LLVMGetOperand(v, 1) : NULL;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMZExt: {
        const unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(of)), whole = (width + 7) / 8;
        zero = all & ~((1U << whole) - 1);
        return is_whole_bytes(LLVMTypeOf(of)) ? zero | zero_bytes(of, depth + 1) : zero;
    }
    case LLVMShl:
        if (!LLVMIsAConstantInt(by) || LLVMConstIntGetZExtValue(by) >= 8 * bytes)
            return 0;
        zero = (unsigned)LLVMConstIntGetZExtValue(by) / 8;
        return (LLVMConstIntGetZExtValue(by) % 8 == 0 ? zero_bytes(of, depth + 1) << zero & all
                                                      : 0) |
               ((1U << zero) - 1);
    case LLVMLShr:
        if (!LLVMIsAConstantInt(by) || LLVMConstIntGetZExtValue(by) >= 8 * bytes)
            return 0;
        zero = (unsigned)LLVMConstIntGetZExtValue(by) / 8;
        return (LLVMConstIntGetZExtValue(by) % 8 == 0 ? zero_bytes(of, depth + 1) >> zero : 0) |
               (all & ~(all >> zero));
    case LLVMAnd:
        return zero_bytes(of, depth + 1) | zero_bytes(by, depth + 1);
    case LLVMOr:
        return zero_bytes(of, depth + 1) & zero_bytes(by, depth + 1);
    case LLVMAdd: /* the lowest bytes alone: what is above may have a carry */
        zero = zero_bytes(of, depth + 1) & zero_bytes(by, depth + 1);
        return (zero ^ (zero + 1)) >> 1;
    default:
        return 0;
    }
}

/* Whether a mask takes or leaves each half of a word. */
static bool is_mask_of_halves(value v)
{
    const uint64_t mask = LLVMIsAConstantInt(v) ? LLVMConstIntGetZExtValue(v) : 1;
    return mask == UINT32_MAX || mask == UINT64_MAX << 32;
}

/* Halves of a word alone are moved: less than a `float` is no value. */
bool pass_is_move(value v)
{
    if (!LLVMIsAInstruction(v) || LLVMGetNumOperands(v) == 0 || !pass_is_word_type(LLVMTypeOf(v)))
        return false;
    value of = LLVMGetOperand(v, 0), by = LLVMGetNumOperands(v) > 1 ? LLVMGetOperand(v, 1) : NULL;
    const unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(v));
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMZExt:
    case LLVMTrunc:
        return pass_is_word_type(LLVMTypeOf(of));
    case LLVMShl:
    case LLVMLShr:
        return width == 64 && LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) == 32;
    case LLVMAnd:
        return width == 64 && is_mask_of_halves(by);
    case LLVMAdd: /* to a counter in the upper half */
        return width == 64 && LLVMIsAConstantInt(by) && (uint32_t)LLVMConstIntGetZExtValue(by) == 0;
    case LLVMOr:
        return width == 64 && (zero_bytes(of, 0) | zero_bytes(by, 0)) == 0xFF;
    default:
        return false;
    }
}

/* The shadow's bytes are moved likewise. */
static value moved(struct pass *p, value v, value a, value b)
{
    LLVMBuilderRef build = p->build;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMZExt:
        return LLVMBuildZExt(build, a, LLVMTypeOf(v), "");
    case LLVMTrunc:
        return LLVMBuildTrunc(build, a, LLVMTypeOf(v), "");
    case LLVMShl:
        return LLVMBuildShl(build, a, LLVMGetOperand(v, 1), "");
    case LLVMLShr:
        return LLVMBuildLShr(build, a, LLVMGetOperand(v, 1), "");
    case LLVMAnd:
        return LLVMBuildAnd(build, a, LLVMGetOperand(v, 1), "");
    case LLVMAdd:
        return LLVMBuildAnd(build, a, pass_number64(p, UINT32_MAX), "");
    default:
        return LLVMBuildOr(build, a, b, "");
    }
}

void pass_move_visit(struct pass *p, value v)
{
    value of = LLVMGetOperand(v, 0);
    const struct pair a = pass_copied_of(p, of);
    struct pair b = a;
    if (LLVMGetInstructionOpcode(v) != LLVMZExt && LLVMGetInstructionOpcode(v) != LLVMOr)
        pass_halves_check(p, of, a);
    if (LLVMGetInstructionOpcode(v) == LLVMAdd)
        pass_half_check(p, of, a, true);
    if (LLVMGetInstructionOpcode(v) == LLVMOr)
        b = pass_copied_of(p, LLVMGetOperand(v, 1));
    const struct pair pair = {moved(p, v, a.shadow, b.shadow), moved(p, v, a.checks, b.checks)};
    pass_known(p, v)->copied = pair;
    pass_bits_check_word(p, v, pair, NULL);
}

unsigned pass_halves_used(struct pass *p, value v, uint64_t low, uint64_t high, unsigned depth)
{
    const unsigned here = (low < 32 ? LOWER_HALF : 0U) | (high > 32 ? UPPER_HALF : 0U);
    unsigned used = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use), by;
        uint64_t n;
        if (!LLVMIsAInstruction(user) || depth == DEPTH)
            return BOTH_HALVES;
        switch (LLVMGetInstructionOpcode(user)) {
        case LLVMLShr:
        case LLVMAShr:
            by = LLVMGetOperand(user, 1);
            if (depth == 0 && pass_is_copy(p, user))
                break;
            n = LLVMIsAConstantInt(by) ? LLVMConstIntGetZExtValue(by) : 64;
            used |= low + n < high ? pass_halves_used(p, user, low + n, high, depth + 1) : here;
            break;
        case LLVMTrunc:
            if (depth == 0 && pass_is_copy(p, user))
                break;
            n = low + LLVMGetIntTypeWidth(LLVMTypeOf(user));
            used |= pass_halves_used(p, user, low, n < high ? n : high, depth + 1);
            break;
        case LLVMICmp:
        case LLVMBitCast:
        case LLVMStore:
            if (depth > 0)
                used |= here;
            break;
        default:
            used |= depth > 0 ? here : BOTH_HALVES;
            break;
        }
    }
    return used ? used : BOTH_HALVES;
}
