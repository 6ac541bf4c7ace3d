/* pass_values.c: what is known of values, and small pieces of code that are made everywhere. */
#include "pass.h"

#include "base_array.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

struct known *pass_known(struct pass *p, value v)
{
    const uint64_t key = base_hash(0, (uint64_t)(uintptr_t)v);
    const int64_t at = base_table_find(&p->places, key);
    if (at >= 0)
        return &p->known[at];
    BASE_ARRAY_GROW(p->known, p->n_known, &p->room_known);
    if (!base_table_add(&p->places, key, p->n_known))
        abort();
    p->known[p->n_known] = (struct known){.is_copy = -1};
    return &p->known[p->n_known++];
}

void pass_known_clear(struct pass *p)
{
    for (size_t i = 0; i < p->n_known; i++) {
        free(p->known[i].row);
        free(p->known[i].part);
        free(p->known[i].word);
    }
    p->n_known = 0;
    base_table_clear(&p->places);
}

bool pass_is_real(type t)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    return kind == LLVMDoubleTypeKind || kind == LLVMFloatTypeKind || kind == LLVMX86_FP80TypeKind;
}

static bool leaves_add(const struct pass *p, type t, const struct leaf *at, struct leaves *leaves)
{
    if (pass_is_real(t)) {
        if (leaves->n == LEAVES_ROOM)
            return false;
        leaves->leaf[leaves->n] = *at;
        leaves->leaf[leaves->n++].type = t;
        return true;
    }
    const LLVMTypeKind kind = LLVMGetTypeKind(t);
    const bool is_struct = kind == LLVMStructTypeKind;
    unsigned n = 0;
    if (is_struct)
        n = LLVMCountStructElementTypes(t);
    else if (kind == LLVMArrayTypeKind)
        n = (unsigned)LLVMGetArrayLength2(t);
    else if (kind == LLVMVectorTypeKind)
        n = LLVMGetVectorSize(t);
    for (unsigned k = 0; k < n; k++) {
        const type element = is_struct ? LLVMStructGetTypeAtIndex(t, k) : LLVMGetElementType(t);
        struct leaf inner = *at;
        if (inner.depth == sizeof inner.path / sizeof *inner.path)
            return false;
        inner.path[inner.depth++] = k;
        inner.offset += is_struct ? LLVMOffsetOfElement(p->layout, t, k)
                                  : k * LLVMABISizeOfType(p->layout, element);
        if (!leaves_add(p, element, &inner, leaves))
            return false;
    }
    return true;
}

bool pass_leaves(const struct pass *p, type t, struct leaves *leaves)
{
    const struct leaf whole = {.depth = 0};
    leaves->n = 0;
    return pass_is_real(t) || leaves_add(p, t, &whole, leaves);
}

value *pass_parts_set(struct pass *p, value v, unsigned n)
{
    value *part = base_calloc(n + 1, sizeof *part);
    for (unsigned k = 0; k < n; k++)
        part[k] = p->zero;
    struct known *known = pass_known(p, v);
    free(known->part);
    return known->part = part;
}

value *pass_parts(struct pass *p, value v, unsigned n)
{
    value *part = pass_known(p, v)->part;
    return part ? part : pass_parts_set(p, v, n);
}

value pass_as_real(struct pass *p, value v)
{
    const LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(v));
    if (kind == LLVMDoubleTypeKind)
        return v;
    return kind == LLVMX86_FP80TypeKind ? LLVMBuildFPTrunc(p->build, v, p->real, "")
                                        : LLVMBuildFPExt(p->build, v, p->real, "");
}

value pass_part_value(struct pass *p, value v, const struct leaf *leaf)
{
    for (unsigned k = 0; k < leaf->depth; k++)
        v = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind
                ? LLVMBuildExtractElement(p->build, v, pass_number32(p, leaf->path[k]), "")
                : LLVMBuildExtractValue(p->build, v, leaf->path[k], "");
    return v;
}

bool pass_is_call(value v)
{
    return LLVMIsACallInst(v) || LLVMIsAInvokeInst(v);
}

void pass_build_after(struct pass *p, value instruction)
{
    value next = instruction;
    if (LLVMIsAInvokeInst(instruction))
        next = LLVMGetFirstInstruction(LLVMGetNormalDest(instruction));
    else if (!LLVMIsATerminatorInst(instruction))
        do
            next = LLVMGetNextInstruction(next);
        while (LLVMIsAPHINode(next) || LLVMIsALandingPadInst(next));
    LLVMPositionBuilderBefore(p->build, next);
}

value pass_number32(struct pass *p, uint32_t n)
{
    return LLVMConstInt(p->i32, n, 0);
}

value pass_number64(struct pass *p, uint64_t n)
{
    return LLVMConstInt(p->i64, n, 0);
}

value pass_real_number(struct pass *p, double x)
{
    return LLVMConstReal(p->real, x);
}

value pass_byte_offset(struct pass *p, value pointer, uint64_t bytes)
{
    value offset = pass_number64(p, bytes);
    return bytes ? LLVMBuildGEP2(p->build, p->i8, pointer, &offset, 1, "") : pointer;
}

value pass_choose(struct pass *p, value condition, value yes, value no)
{
    return yes == no ? yes : LLVMBuildSelect(p->build, condition, yes, no, "");
}

value pass_load(struct pass *p, type t, value pointer, unsigned alignment, value tag)
{
    value loaded = LLVMBuildLoad2(p->build, t, pointer, "");
    LLVMSetAlignment(loaded, alignment);
    LLVMSetMetadata(loaded, p->kind_tbaa, tag);
    return loaded;
}

value pass_store(struct pass *p, value v, value pointer, unsigned alignment, value tag)
{
    value stored = LLVMBuildStore(p->build, v, pointer);
    LLVMSetAlignment(stored, alignment);
    LLVMSetMetadata(stored, p->kind_tbaa, tag);
    return stored;
}

value pass_of_thread(struct pass *p, type t, const char *name)
{
    value global = LLVMGetNamedGlobal(p->module, name);
    if (!global) {
        global = LLVMAddGlobal(p->module, t, name);
        LLVMSetThreadLocalMode(global, LLVMInitialExecTLSModel);
    }
    return global;
}

void pass_function_is(struct pass *p, value function, const char *const *attribute)
{
    for (; *attribute; attribute++) {
        const unsigned kind = LLVMGetEnumAttributeKindForName(*attribute, strlen(*attribute));
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(p->context, kind, 0));
    }
}

value pass_call_runtime(struct pass *p, const char *name, type result, unsigned n, value *argument)
{
    type of[8];
    for (unsigned k = 0; k < n; k++)
        of[k] = LLVMTypeOf(argument[k]);
    const type t = LLVMFunctionType(result, of, n, 0);
    value function = LLVMGetNamedFunction(p->module, name);
    if (!function) {
        static const char *const attributes[] = {"nounwind", NULL};
        function = LLVMAddFunction(p->module, name, t);
        pass_function_is(p, function, attributes);
    }
    return LLVMBuildCall2(p->build, t, function, argument, n, "");
}

bool pass_is_one_of(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

const char *pass_name_of(value v)
{
    size_t length;
    return LLVMGetValueName2(v, &length);
}
