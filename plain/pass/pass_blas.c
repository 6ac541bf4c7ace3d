/* pass_blas.c: calls of BLAS and LAPACK.
 *
 * Those that have a rule become the runtime's (plain/runtime/plain_blas.c), which get the address
 * of the program's own function beside the arguments. Of all others the runtime looks before the
 * call whether active values go in, as far as they reach: they are no 256 bytes.
 */
#include "pass.h"

#include "base_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without the letter of the type. */
static const char *const blas[] = {"dot",  "axpy", "scal", "copy", "swap", "nrm2", "asum", "gemv",
                                   "ger",  "symv", "syr",  "trmv", "trsv", "gemm", "symm", "syrk",
                                   "trmm", "trsm", "spmv", "spr",  "tpmv", "tpsv", NULL};
static const char *const lapack[] = {"getrf", "getrs", "gesv",  "getri", "potrf",
                                     "potrs", "posv",  "trtrs", "potri", "pptrf",
                                     "pptri", "pptrs", "ppsv",  "stev",  NULL};

/* Further names of BLAS, and those of matrices that names of LAPACK begin with. */
static const char *const vectors[] = {"dotu", "dotc",  "rot",   "rotg",
                                      "rotm", "rotmg", "axpby", NULL};
static const char *const odd[] = {"sdsdot_", "dsdot_",  "dzasum_", "scasum_", "dznrm2_",
                                  "scnrm2_", "csscal_", "zdscal_", "csrot_",  "zdrot_",
                                  "dzsum1_", "scsum1_", NULL};
static const char matrices[][3] = {"bd", "di", "gb", "ge", "gg", "gt", "hb", "he", "hg",
                                   "hp", "hs", "la", "op", "or", "pb", "pf", "po", "pp",
                                   "ps", "pt", "sb", "sf", "sp", "st", "sy", "tb", "tf",
                                   "tg", "tp", "tr", "tz", "un", "up"};
/* They give numbers that depend on no value. */
static const char *const passive[] = {"cblas_idamax", "cblas_isamax",
                                      "cblas_idamin", "cblas_isamin",
                                      "idamax_",      "isamax_",
                                      "idamin_",      "isamin_",
                                      "dlamch_",      "slamch_",
                                      "dlabad_",      "slabad_",
                                      "cblas_xerbla", NULL};

bool pass_blas_is_passive(const char *name)
{
    return pass_is_one_of(passive, name);
}

static bool is_type(char c)
{
    return c != '\0' && strchr("sdcz", c) != NULL;
}

/* The part of a name behind "cblas_" or "LAPACKE_" and the type, or before Fortran's underscore. */
static bool name_parts(const char *name, char base[16], char *letter, bool *is_fortran)
{
    const char *begin = name;
    if (strncmp(name, "cblas_", 6) == 0)
        begin += 6;
    else if (strncmp(name, "LAPACKE_", 8) == 0)
        begin += 8;
    *is_fortran = begin == name;
    size_t n = strlen(begin);
    if (n < 4 || n > 15 || !is_type(*begin))
        return false;
    if (*is_fortran && begin[--n] != '_')
        return false;
    *letter = *begin;
    memcpy(base, begin + 1, n - 1);
    base[n - 1] = '\0';
    return true;
}

static bool is_wrapped(const char *name)
{
    char base[16], letter;
    bool is_fortran;
    if (!name_parts(name, base, &letter, &is_fortran) || (letter != 'd' && letter != 's'))
        return false;
    if (is_fortran)
        return pass_is_one_of(blas, base) || pass_is_one_of(lapack, base);
    return pass_is_one_of(*name == 'c' ? blas : lapack, base);
}

/* Whether it is a function of BLAS or LAPACK that takes floating values, and has no rule. */
static bool has_none(const char *name)
{
    char base[16], letter;
    bool is_fortran;
    if (is_wrapped(name) || pass_blas_is_passive(name))
        return false;
    if (strncmp(name, "LAPACKE_", 8) == 0 || strncmp(name, "cblas_", 6) == 0 ||
        pass_is_one_of(odd, name))
        return true;
    if (!name_parts(name, base, &letter, &is_fortran))
        return false;
    if (pass_is_one_of(blas, base) || pass_is_one_of(vectors, base))
        return true;
    for (size_t k = 0; k < sizeof matrices / sizeof *matrices; k++)
        if (strncmp(base, matrices[k], 2) == 0 && strlen(base) >= 3 && strlen(base) <= 6)
            return true;
    return false;
}

/* A function that calls the program's: for uses of its address. */
static value thunk_of(struct pass *p, value function)
{
    const type t = LLVMGlobalGetValueType(function), result = LLVMGetReturnType(t);
    char name[96];
    snprintf(name, sizeof name, "ad_plain_pointed_%s", pass_name_of(function));
    value thunk = LLVMAddFunction(p->module, name, t);
    LLVMSetLinkage(thunk, LLVMInternalLinkage);
    const unsigned n = LLVMCountParams(thunk);
    value *argument = calloc(n + 1, sizeof *argument);
    for (unsigned k = 0; argument && k < n; k++)
        argument[k] = LLVMGetParam(thunk, k);
    LLVMPositionBuilderAtEnd(p->build, LLVMAppendBasicBlockInContext(p->context, thunk, "entry"));
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    value called = LLVMBuildCall2(p->build, t, function, argument, n, "");
    if (LLVMGetTypeKind(result) == LLVMVoidTypeKind)
        LLVMBuildRetVoid(p->build);
    else
        LLVMBuildRet(p->build, called);
    free(argument);
    return thunk;
}

/* Calls stay; other uses of the function get a thunk. */
static void pointers_become_thunks(struct pass *p, value function)
{
    size_t n = 0, room = 0;
    value *call = NULL;
    bool pointed = false;
    for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!LLVMIsACallInst(user) || LLVMGetCalledValue(user) != function) {
            pointed = true;
            continue;
        }
        if (n == room)
            call = realloc(call, (room = 2 * room + 8) * sizeof *call);
        call[n++] = user;
    }
    if (pointed) {
        value thunk = thunk_of(p, function);
        value own = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(thunk));
        LLVMReplaceAllUsesWith(function, thunk);
        LLVMSetOperand(own, (unsigned)LLVMGetNumOperands(own) - 1, function);
        while (n-- > 0)
            LLVMSetOperand(call[n], (unsigned)LLVMGetNumOperands(call[n]) - 1, function);
    }
    free(call);
}

void pass_blas_point(struct pass *p)
{
    for (value f = LLVMGetFirstFunction(p->module), next; f; f = next) {
        next = LLVMGetNextFunction(f);
        if (LLVMIsDeclaration(f) && is_wrapped(pass_name_of(f)))
            pointers_become_thunks(p, f);
    }
}

value pass_blas_wrapper(struct pass *p, value callee)
{
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || !is_wrapped(pass_name_of(callee)))
        return NULL;
    char name[96];
    snprintf(name, sizeof name, "ad_plain_call_%s", pass_name_of(callee));
    value wrapper = LLVMGetNamedFunction(p->module, name);
    if (!wrapper)
        wrapper = LLVMAddFunction(p->module, name, LLVMGlobalGetValueType(callee));
    if (!p->real_function) {
        p->real_function = LLVMAddGlobal(p->module, p->pointer, "ad_plain_real_");
        LLVMSetThreadLocalMode(p->real_function, LLVMInitialExecTLSModel);
    }
    return wrapper;
}

value pass_blas_look(struct pass *p, value call)
{
    value callee = LLVMGetCalledValue(call);
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || !has_none(pass_name_of(callee)))
        return NULL;
    /* The pointers and integers of the call; a NULL and a 0 behind them. */
    const unsigned n = LLVMGetNumArgOperands(call);
    value *argument = base_calloc(n + 2, sizeof *argument);
    unsigned at = 2, pointers = 0, numbers = 0;
    for (int pass = 0; pass < 2; pass++)
        for (unsigned k = 0; k < n; k++) {
            value a = LLVMGetOperand(call, k);
            const LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(a));
            if (pass == 0 && kind == LLVMPointerTypeKind) {
                argument[at++] = a;
                pointers++;
            } else if (pass == 1 && kind == LLVMIntegerTypeKind) {
                argument[at++] = LLVMBuildIntCast2(p->build, a, p->i64, 1, "");
                numbers++;
            }
        }
    argument[0] = pass_number32(p, pointers);
    argument[1] = pass_number32(p, numbers);
    type of[] = {p->i32, p->i32};
    const type t = LLVMFunctionType(p->i32, of, 2, 1);
    value look = LLVMGetNamedFunction(p->module, "ad_plain_look_far_");
    if (!look)
        look = LLVMAddFunction(p->module, "ad_plain_look_far_", t);
    value found = LLVMBuildCall2(p->build, t, look, argument, at, "");
    free(argument);
    return found;
}

void pass_blas_say(struct pass *p, value call, value found, value active)
{
    value callee = LLVMGetCalledValue(call);
    value said[] = {callee, LLVMBuildGlobalStringPtr(p->build, pass_name_of(callee), ""),
                    LLVMBuildOr(p->build, found, active, "")};
    value told = pass_call_runtime(p, "ad_plain_no_rule_", p->nothing, 3, said);
    LLVMInstructionSetDebugLoc(told, LLVMInstructionGetDebugLoc(call));
    pass_call_apart(p, told);
}
