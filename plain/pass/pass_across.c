/* pass_across.c: values that live across a call that may drop what was recorded.
 *
 * An index in a register cannot see that a rewind has given it to another value. In memory it can,
 * by its tag. So a floating value that is used behind such a call goes through memory.
 */
#include "pass.h"

#include "base_array.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

static uint64_t key_of(const void *x)
{
    return base_hash(0, (uint64_t)(uintptr_t)x);
}

static bool is_known(const struct base_table *table, const void *x)
{
    return base_table_find(table, key_of(x)) >= 0;
}

/* Functions of complex numbers, without the letter of their type, which LLVM does not know; the
 * last two are multiplication and division. */
static const char *const complex_functions[] = {
    "cexp",   "clog",   "csqrt", "cpow",  "csin",     "ccos",     "ctan",
    "csinh",  "ccosh",  "ctanh", "casin", "cacos",    "catan",    "casinh",
    "cacosh", "catanh", "carg",  "cproj", "__mul*c3", "__div*c3", NULL};

/* Of the C library, which calls nothing of the program's. */
static bool is_of_system(const char *name)
{
    char base[16];
    const size_t n = strlen(name);
    if (pass_is_library_function(name))
        return true;
    if (n >= sizeof base || n < 2)
        return false;
    memcpy(base, name, n + 1);
    if (strncmp(name, "__", 2) == 0 && n == strlen("__muldc3"))
        base[5] = '*';
    else if (base[n - 1] == 'f' || base[n - 1] == 'l')
        base[n - 1] = '\0';
    return pass_is_one_of(complex_functions, base) || pass_is_one_of(complex_functions, name);
}

/* dropping: the functions of the module that may. Of others it is not known. */
static bool call_may_drop(const struct base_table *dropping, value call)
{
    if (!pass_is_call(call) || pass_has_rule(call))
        return false;
    value callee = LLVMGetCalledValue(call);
    if (LLVMIsAInlineAsm(callee))
        return false;
    if (!LLVMIsAFunction(callee))
        return true;
    const char *name = pass_name_of(callee);
    if (!LLVMIsDeclaration(callee))
        return is_known(dropping, callee);
    if (pass_switches_tape(name))
        return true;
    return strncmp(name, "ad_tape_", 8) == 0 || strncmp(name, "ad_preaccumulate_", 17) == 0 ||
           (!pass_is_passive_callee(call) && strncmp(name, "ad_plain_", 9) != 0 &&
            !is_of_system(name));
}

static bool block_may_drop(const struct base_table *dropping, LLVMBasicBlockRef block)
{
    for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v))
        if (call_may_drop(dropping, v))
            return true;
    return false;
}

static bool function_may_drop(const struct base_table *dropping, value function)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        if (block_may_drop(dropping, block))
            return true;
    return false;
}

/* Functions that may, by themselves or by what they call. */
static void find_dropping(const struct pass *p, struct base_table *dropping)
{
    bool more = true;
    while (more) {
        more = false;
        for (value f = LLVMGetFirstFunction(p->module); f; f = LLVMGetNextFunction(f))
            if (!LLVMIsDeclaration(f) && !is_known(dropping, f) && function_may_drop(dropping, f)) {
                base_table_add(dropping, key_of(f), 0);
                more = true;
            }
    }
}

/* ---- the way from a value to its use ---- */

struct walk {
    const struct base_table *dropping;
    struct base_table *calling; /* blocks of the function that have such a call */
    struct base_table seen;
    LLVMBasicBlockRef *block; /* to be gone over from their ends */
    size_t n, room;
};

enum way { WAY_CALLS, WAY_BEGINS, WAY_GOES_ON };

/* Backwards from before `at`, or NULL: from the block's end. */
static enum way block_walk(const struct walk *walk, LLVMBasicBlockRef block, value at, value v)
{
    const bool begins = LLVMIsAInstruction(v) && LLVMGetInstructionParent(v) == block;
    if (!begins && !is_known(walk->calling, block))
        return WAY_GOES_ON;
    at = at ? LLVMGetPreviousInstruction(at) : LLVMGetLastInstruction(block);
    for (; at; at = LLVMGetPreviousInstruction(at)) {
        if (at == v)
            return WAY_BEGINS;
        if (call_may_drop(walk->dropping, at))
            return WAY_CALLS;
    }
    return WAY_GOES_ON;
}

static void walk_before(struct walk *walk, LLVMBasicBlockRef block)
{
    for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use;
         use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!LLVMIsATerminatorInst(user))
            continue;
        LLVMBasicBlockRef from = LLVMGetInstructionParent(user);
        if (is_known(&walk->seen, from))
            continue;
        base_table_add(&walk->seen, key_of(from), 0);
        BASE_ARRAY_GROW(walk->block, walk->n, &walk->room);
        walk->block[walk->n++] = from;
    }
}

/* Whether a call may stand between v and this place. */
static bool is_across(struct walk *walk, value v, LLVMBasicBlockRef block, value at)
{
    base_table_clear(&walk->seen);
    walk->n = 0;
    enum way way = block_walk(walk, block, at, v);
    if (way == WAY_GOES_ON)
        walk_before(walk, block);
    while (way != WAY_CALLS && walk->n > 0) {
        LLVMBasicBlockRef before = walk->block[--walk->n];
        way = block_walk(walk, before, NULL, v);
        if (way == WAY_GOES_ON)
            walk_before(walk, before);
    }
    return way == WAY_CALLS;
}

static bool lives_across(struct walk *walk, value v)
{
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!LLVMIsAPHINode(user)) {
            if (is_across(walk, v, LLVMGetInstructionParent(user), user))
                return true;
            continue;
        }
        for (unsigned k = 0; k < LLVMCountIncoming(user); k++)
            if (LLVMGetIncomingValue(user, k) == v &&
                is_across(walk, v, LLVMGetIncomingBlock(user, k), NULL))
                return true;
    }
    return false;
}

/* ---- functions ---- */

static bool is_floating(const struct pass *p, value v)
{
    struct leaves leaves;
    const type t = LLVMTypeOf(v);
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    if (kind == LLVMVoidTypeKind || kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind)
        return false;
    return pass_leaves(p, t, &leaves) && (leaves.n > 0 || pass_is_real(t));
}

/* A parameter as an instruction, which can go through memory. */
static value parameter_loaded(struct pass *p, value parameter)
{
    const type t = LLVMTypeOf(parameter);
    value begin = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(p->function));
    LLVMPositionBuilderBefore(p->build, begin);
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    value slot = LLVMBuildAlloca(p->build, t, ""), loaded = LLVMBuildLoad2(p->build, t, slot, "");
    LLVMReplaceAllUsesWith(parameter, loaded);
    LLVMPositionBuilderBefore(p->build, loaded);
    LLVMBuildStore(p->build, parameter, slot);
    return loaded;
}

/* What meets where an exception is caught comes from before the calls that it left. */
static void caught_to_memory(struct pass *p)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(p->function); block;
         block = LLVMGetNextBasicBlock(block)) {
        value v = LLVMGetFirstInstruction(block), end = v, next;
        while (LLVMIsAPHINode(end))
            end = LLVMGetNextInstruction(end);
        if (!LLVMIsALandingPadInst(end))
            continue;
        for (; v != end; v = next) {
            next = LLVMGetNextInstruction(v);
            if (is_floating(p, v))
                pass_phi_to_memory(v);
        }
    }
}

static void function_across(struct pass *p, const struct base_table *dropping)
{
    struct base_table calling = {0};
    struct walk walk = {.dropping = dropping, .calling = &calling};
    value *found = NULL;
    size_t n = 0, room = 0;
    caught_to_memory(p);
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(p->function); block;
         block = LLVMGetNextBasicBlock(block))
        if (block_may_drop(dropping, block))
            base_table_add(&calling, key_of(block), 0);
    for (unsigned k = 0; k < LLVMCountParams(p->function); k++) {
        value v = LLVMGetParam(p->function, k);
        if (!is_floating(p, v) || !lives_across(&walk, v))
            continue;
        BASE_ARRAY_GROW(found, n, &room);
        found[n++] = parameter_loaded(p, v);
    }
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(p->function); block;
         block = LLVMGetNextBasicBlock(block))
        for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v)) {
            if ((LLVMIsATerminatorInst(v) && !pass_is_call(v)) || !is_floating(p, v) ||
                !lives_across(&walk, v))
                continue;
            BASE_ARRAY_GROW(found, n, &room);
            found[n++] = v;
        }
    for (size_t k = 0; k < n; k++)
        pass_to_memory(found[k]);
    base_table_free(&calling);
    base_table_free(&walk.seen);
    free(walk.block);
    free(found);
}

void pass_values_across_calls(struct pass *p)
{
    struct base_table dropping = {0};
    find_dropping(p, &dropping);
    for (value f = LLVMGetFirstFunction(p->module); f; f = LLVMGetNextFunction(f))
        if (is_known(&dropping, f)) {
            p->function = f;
            function_across(p, &dropping);
        }
    base_table_free(&dropping);
}
