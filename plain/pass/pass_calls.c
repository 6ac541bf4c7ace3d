/* pass_calls.c: indices of arguments and results.
 *
 * Before a call the indices of its floating arguments are put into an array of the thread, with the
 * address of the function that is called; a function takes them only where that address is its own.
 * So code that is not instrumented may stand between: what it calls sees constants, and what it
 * returns is one. That is said at run time where it loses a gradient. Results go back likewise.
 *
 * A structure that is passed in memory has the address of its shadow in the array.
 */
#include "pass.h"

#include "base_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in plain/runtime/plain_calls.h. */
enum { ARGUMENTS_ROOM = 256, RESULTS_ROOM = 16 };

/* They take values and give none that depends on them. */
static const char *const passive[] = {"strchr",
                                      "strrchr",
                                      "strstr",
                                      "strtok",
                                      "tolower",
                                      "toupper",
                                      "isdigit",
                                      "isspace",
                                      "isalpha",
                                      "fseek",
                                      "ftell",
                                      "rewind",
                                      "remove",
                                      "rename",
                                      "longjmp",
                                      "_setjmp",
                                      "setjmp",
                                      "__sigsetjmp",
                                      "sigsetjmp",
                                      "siglongjmp",
                                      "atexit",
                                      "putc",
                                      "getc",
                                      "fgetc",
                                      "ungetc",
                                      "feof",
                                      "ferror",
                                      "strerror",
                                      "__errno_location",
                                      "memcmp",
                                      "bcmp",
                                      "memchr",
                                      "system",
                                      "sleep",
                                      "usleep",
                                      "nanosleep",
                                      "signal",
                                      "printf",
                                      "vprintf",
                                      "vfprintf",
                                      "puts",
                                      "putchar",
                                      "fputs",
                                      "fputc",
                                      "perror",
                                      "malloc",
                                      "exit",
                                      "abort",
                                      "clock",
                                      "clock_gettime",
                                      "gettimeofday",
                                      "time",
                                      "rand",
                                      "srand",
                                      "drand48",
                                      "srand48",
                                      "random",
                                      "srandom",
                                      "getenv",
                                      "strlen",
                                      "strcmp",
                                      "strncmp",
                                      "strtol",
                                      "atoi",
                                      "fopen",
                                      "fclose",
                                      "fflush",
                                      "__assert_fail",
                                      NULL};

/* The same, also with the letter of another type behind. */
static const char *const whole_numbers[] = {
    "ilogb",      "llogb",         "lround",    "llround",       "lrint",
    "llrint",     "fromfp",        "fromfpx",   "ufromfp",       "ufromfpx",
    "isnan",      "isinf",         "finite",    "__isnan",       "__isinf",
    "__finite",   "__fpclassify",  "__signbit", "__issignaling", "__iseqsig",
    "totalorder", "totalordermag", NULL};

static bool gives_whole(const char *name)
{
    char base[24];
    const size_t n = strlen(name);
    if (pass_is_one_of(whole_numbers, name))
        return true;
    if (n < 2 || n >= sizeof base || (name[n - 1] != 'f' && name[n - 1] != 'l'))
        return false;
    memcpy(base, name, n - 1);
    base[n - 1] = '\0';
    return pass_is_one_of(whole_numbers, base);
}

/* Functions of the C library that the runtime has under the name ad_plain_call_NAME. */
static const char *const wrapped[] = {"calloc",
                                      "realloc",
                                      "malloc",
                                      "aligned_alloc",
                                      "posix_memalign",
                                      "mmap",
                                      "mmap64",
                                      "mremap",
                                      "qsort",
                                      "qsort_r",
                                      "memcpy",
                                      "memmove",
                                      "memset",
                                      "mempcpy",
                                      "__memcpy_chk",
                                      "bcopy",
                                      "__memmove_chk",
                                      "__memset_chk",
                                      "frexp",
                                      "ldexp",
                                      "scalbn",
                                      "scalbln",
                                      "modf",
                                      "sincos",
                                      "remainder",
                                      "drem",
                                      "remquo",
                                      "nextafter",
                                      "scalb",
                                      "jn",
                                      "yn",
                                      "lgamma_r",
                                      "frexpf",
                                      "ldexpf",
                                      "scalbnf",
                                      "scalblnf",
                                      "scalbf",
                                      "modff",
                                      "sincosf",
                                      "remquof",
                                      "jnf",
                                      "ynf",
                                      "lgammaf_r",
                                      "frexpl",
                                      "ldexpl",
                                      "scalbnl",
                                      "scalblnl",
                                      "scalbl",
                                      "modfl",
                                      "sincosl",
                                      "remquol",
                                      "jnl",
                                      "ynl",
                                      "lgammal_r",
                                      "cexp",
                                      "clog",
                                      "csqrt",
                                      "cpow",
                                      "csin",
                                      "ccos",
                                      "ctan",
                                      "csinh",
                                      "ccosh",
                                      "ctanh",
                                      "casin",
                                      "cacos",
                                      "catan",
                                      "casinh",
                                      "cacosh",
                                      "catanh",
                                      "cabs",
                                      "carg",
                                      "__muldc3",
                                      "__divdc3",
                                      "scanf",
                                      "fscanf",
                                      "sscanf",
                                      "__isoc99_scanf",
                                      "fread",
                                      "__isoc99_fscanf",
                                      "__isoc99_sscanf",
                                      "free",
                                      "bsearch",
                                      "strcpy",
                                      "strncpy",
                                      "strcat",
                                      "strncat",
                                      "strdup",
                                      "strtod",
                                      "strtof",
                                      "strtold",
                                      "atof",
                                      "fwrite",
                                      "fgets",
                                      "getline",
                                      NULL};

/* They write floating values as text, to a buffer or to a file. */
static const char *const printing[] = {
    "sprintf", "snprintf", "__sprintf_chk", "__snprintf_chk", "fprintf", "__fprintf_chk", NULL};

/* Functions of numbers whose address may be taken: the runtime's record by themselves. */
static const char *const pointed_to[] = {
    "sin",  "cos",    "tan",    "exp",   "log",   "sqrt",  "tanh",  "sinh",  "cosh", "asin",
    "acos", "atan",   "fabs",   "exp2",  "expm1", "log2",  "log10", "log1p", "cbrt", "erf",
    "erfc", "lgamma", "tgamma", "asinh", "acosh", "atanh", "j0",    "j1",    "y0",   "y1",
    "pow",  "atan2",  "hypot",  "fmod",  "fmax",  "fmin",  NULL};

static bool has_only_calls(value function)
{
    if (LLVMGetLinkage(function) != LLVMInternalLinkage)
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        if (!LLVMIsACallInst(user) || LLVMGetCalledValue(user) != function)
            return false;
    }
    return true;
}

void pass_find_direct(struct pass *p)
{
    for (value f = LLVMGetFirstFunction(p->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && has_only_calls(f))
            base_table_add(&p->direct, base_hash(0, (uint64_t)(uintptr_t)f), 0);
}

static bool is_called_directly(const struct pass *p, value function)
{
    return base_table_find(&p->direct, base_hash(0, (uint64_t)(uintptr_t)function)) >= 0;
}

static bool is_intrinsic(value callee)
{
    return LLVMIsAFunction(callee) && strncmp(pass_name_of(callee), "llvm.", 5) == 0;
}

static bool begins(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0;
}

/* Of the runtime or of Tapescope itself. */
static bool is_ours(const char *name)
{
    static const char *const begin[] = {"ad_real_",      "ad_tape_",          "ad_plain_",
                                        "ad_tensor_",    "ad_scope_",         "ad_profile_",
                                        "ad_statement_", "ad_preaccumulate_", NULL};
    for (const char *const *b = begin; *b; b++)
        if (begins(name, *b))
            return true;
    return false;
}

bool pass_is_passive_callee(value call)
{
    value callee = LLVMGetCalledValue(call);
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee))
        return false;
    const char *name = pass_name_of(callee);
    return is_intrinsic(callee) || pass_is_one_of(passive, name) || gives_whole(name) ||
           pass_blas_is_passive(name) || pass_is_thread_call(name) || pass_is_cxx_call(name) ||
           (is_ours(name) && !begins(name, "ad_plain_call_"));
}

/* Whether the program runs the function that the module has here, not one of the same name. */
static bool is_defined(value callee)
{
    if (!LLVMIsAFunction(callee) || LLVMIsDeclaration(callee))
        return false;
    const LLVMLinkage linkage = LLVMGetLinkage(callee);
    return linkage == LLVMExternalLinkage || linkage == LLVMInternalLinkage ||
           linkage == LLVMPrivateLinkage;
}

static value slot(struct pass *p, value array, unsigned k)
{
    value place = pass_number64(p, k);
    return LLVMConstGEP2(p->i32, array, &place, 1);
}

static bool is_by_value(const struct pass *p, value of, unsigned k, bool is_call, type *t)
{
    LLVMAttributeRef found = is_call ? LLVMGetCallSiteEnumAttribute(of, k + 1, p->kind_byval)
                                     : LLVMGetEnumAttributeAtIndex(of, k + 1, p->kind_byval);
    if (found)
        *t = LLVMGetTypeAttributeValue(found);
    return found != NULL;
}

/* ---- the function that is called ---- */

/* A word and its shadow are two halves each. */
enum { WORD_SLOTS = 4 };

static bool is_word(const struct pass *p, value v)
{
    return LLVMTypeOf(v) == p->i64;
}

static value half_taken(struct pass *p, unsigned at, value ours)
{
    value word = pass_load(p, p->i64, slot(p, p->arguments, at), 4, p->tag_thread);
    return ours ? pass_choose(p, ours, word, pass_number64(p, 0)) : word;
}

static void take_by_value(struct pass *p, value parameter, type t, unsigned at, value ours)
{
    value bytes = pass_number64(p, LLVMABISizeOfType(p->layout, t));
    value shadow = pass_shadow_of(p, parameter);
    value given = pass_load(p, p->pointer, slot(p, p->arguments, at), 4, p->tag_thread);
    if (ours) {
        pass_shadow_clear(p, shadow, bytes);
        bytes = pass_choose(p, ours, bytes, pass_number64(p, 0));
    }
    pass_shadow_copy(p, shadow, given, bytes);
}

/* Whether the function was called by one that is instrumented too. */
static value is_called_so(struct pass *p)
{
    return LLVMBuildICmp(p->build, LLVMIntEQ, pass_load(p, p->pointer, p->callee, 8, p->tag_thread),
                         p->function, "");
}

static bool gives_reals(struct pass *p, value function)
{
    const type t = LLVMGetReturnType(LLVMGlobalGetValueType(function));
    struct leaves leaves = {.n = 0};
    return pass_is_real(t) || !pass_leaves(p, t, &leaves) || leaves.n > 0;
}

void pass_take_arguments(struct pass *p)
{
    const unsigned n = LLVMCountParams(p->function);
    const bool direct = is_called_directly(p, p->function),
               words = pass_is_outlined(p, p->function);
    value ours = !direct && gives_reals(p, p->function) ? is_called_so(p) : NULL;
    unsigned at = 0;
    for (unsigned k = 0; k < n; k++) {
        value parameter = LLVMGetParam(p->function, k);
        const type t = LLVMTypeOf(parameter);
        struct leaves leaves = {.n = 0};
        type held = NULL;
        const bool by_value = LLVMGetTypeKind(t) == LLVMPointerTypeKind &&
                              is_by_value(p, p->function, k, false, &held);
        const bool word = words && is_word(p, parameter);
        if (!by_value && !word && !pass_is_real(t)) {
            pass_leaves(p, t, &leaves);
            if (leaves.n == 0)
                continue;
        }
        if (!ours && !direct)
            ours = is_called_so(p);
        if (at + WORD_SLOTS + leaves.n > ARGUMENTS_ROOM)
            break;
        if (word) {
            const struct pair copied = {half_taken(p, at, ours), half_taken(p, at + 2, ours)};
            pass_known(p, parameter)->copied = copied;
            at += WORD_SLOTS;
            continue;
        }
        if (by_value) {
            take_by_value(p, parameter, held, at, ours);
            at += 2;
            continue;
        }
        value *part = pass_is_real(t) ? NULL : pass_parts_set(p, parameter, leaves.n);
        for (unsigned i = 0; i < (part ? leaves.n : 1); i++) {
            value index = pass_load(p, p->i32, slot(p, p->arguments, at++), 4, p->tag_thread);
            if (ours)
                index = pass_choose(p, ours, index, p->zero);
            if (part)
                part[i] = index;
            else
                pass_known(p, parameter)->index = index;
        }
    }
    if (ours)
        pass_store(p, LLVMConstNull(p->pointer), p->callee, 8, p->tag_thread);
    p->called_so = ours;
}

/* void returned(i1 so, i32 active): a result that the caller does not take is said. */
static value returned(struct pass *p)
{
    if (p->returning)
        return p->returning;
    type of[] = {p->i1, p->i32};
    const struct cold_helper helper = pass_cold_begin(p, "ad_plain_returning_", p->nothing, 2, of);
    value so = LLVMGetParam(helper.function, 0), active = LLVMGetParam(helper.function, 1);
    pass_cold_branch(p, &helper,
                     LLVMBuildAnd(p->build, LLVMBuildNot(p->build, so, ""),
                                  LLVMBuildICmp(p->build, LLVMIntNE, active, p->zero, ""), ""));
    pass_call_apart(p, pass_call_runtime(p, "ad_plain_returned_lost_", p->nothing, 0, NULL));
    return p->returning = pass_cold_end(p, &helper, NULL, NULL);
}

void pass_return(struct pass *p, value instruction)
{
    value v = LLVMGetNumOperands(instruction) > 0 ? LLVMGetOperand(instruction, 0) : NULL;
    struct leaves leaves = {.n = 0};
    const bool real = v && pass_is_real(LLVMTypeOf(v));
    value active = p->zero;
    if (v && (!pass_leaves(p, LLVMTypeOf(v), &leaves) || leaves.n > RESULTS_ROOM))
        pass_refuse(p, instruction, "a result of too many floating parts");
    for (unsigned k = 0; k < (real ? 1 : leaves.n); k++) {
        value index = real                 ? pass_index_of(p, v)
                      : LLVMIsAConstant(v) ? p->zero
                                           : pass_parts(p, v, leaves.n)[k];
        pass_store(p, index, slot(p, p->results, k), 4, p->tag_thread);
        if (index != p->zero)
            active = active == p->zero ? index : LLVMBuildOr(p->build, active, index, "");
    }
    if (active != p->zero && p->called_so) {
        value said[] = {p->called_so, active};
        pass_call_inlined(p, returned(p), 2, said, instruction);
    }
    pass_words_return(p, instruction);
    /* Whoever has called sees by this that the function is instrumented. */
    if (!is_called_directly(p, p->function))
        pass_store(p, p->function, p->returned, 8, p->tag_thread);
}

void pass_return_constants(struct pass *p, value instruction)
{
    LLVMPositionBuilderBefore(p->build, instruction);
    struct leaves leaves = {.n = 0};
    if (LLVMGetNumOperands(instruction) > 0) {
        const type t = LLVMTypeOf(LLVMGetOperand(instruction, 0));
        if (pass_is_real(t))
            leaves.n = 1;
        else if (!pass_leaves(p, t, &leaves) || leaves.n > RESULTS_ROOM)
            leaves.n = RESULTS_ROOM;
    }
    for (unsigned k = 0; k < leaves.n; k++)
        pass_store(p, p->zero, slot(p, p->results, k), 4, p->tag_thread);
    if (!is_called_directly(p, p->function))
        pass_store(p, p->function, p->returned, 8, p->tag_thread);
}

/* ---- the call ---- */

/* Before the pairs. */
enum { SAID_FIRST = 5 };

/* void foreign(i1 is, ptr callee, ptr name, i32 active, i64 recorded, n of ptr and i64 bytes): a
 * function that is not instrumented was called: the runtime looks whether a gradient is lost in
 * it. The name is NULL where it is not known. Bytes of UINT64_MAX: the pointer is what it has
 * given. */
static value foreign(struct pass *p, unsigned n)
{
    if (p->foreign[n])
        return p->foreign[n];
    char name[40];
    snprintf(name, sizeof name, "ad_plain_foreign_call_%u_", n);
    type of[SAID_FIRST + 2 * LOOKED_AT] = {p->i1, p->pointer, p->pointer, p->i32, p->i64};
    for (unsigned k = 0; k < n; k++) {
        of[SAID_FIRST + 2 * k] = p->pointer;
        of[SAID_FIRST + 1 + 2 * k] = p->i64;
    }
    const struct cold_helper helper = pass_cold_begin(p, name, p->nothing, SAID_FIRST + 2 * n, of);
    value f = helper.function;
    pass_cold_branch(p, &helper, LLVMGetParam(f, 0));
    value said[SAID_FIRST + 2 * LOOKED_AT];
    for (unsigned k = 0; k + 1 < SAID_FIRST; k++)
        said[k] = LLVMGetParam(f, k + 1);
    said[SAID_FIRST - 1] = pass_number32(p, n);
    for (unsigned k = 0; k < 2 * n; k++)
        said[SAID_FIRST + k] = LLVMGetParam(f, SAID_FIRST + k);
    static const char runtime[] = "ad_plain_foreign_";
    const type t = LLVMFunctionType(
        p->nothing, (type[]){p->pointer, p->pointer, p->i32, p->i64, p->i32}, SAID_FIRST, 1);
    value function = LLVMGetNamedFunction(p->module, runtime);
    if (!function)
        function = LLVMAddFunction(p->module, runtime, t);
    pass_call_apart(p, LLVMBuildCall2(p->build, t, function, said, SAID_FIRST + 2 * n, ""));
    return p->foreign[n] = pass_cold_end(p, &helper, NULL, NULL);
}

/* How many bytes there are of the variable that a pointer points into; 0: that is not known. */
static value bytes_behind(struct pass *p, value pointer)
{
    while (LLVMIsAGetElementPtrInst(pointer) ||
           (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr))
        pointer = LLVMGetOperand(pointer, 0);
    uint64_t bytes = 0;
    if (LLVMIsAAllocaInst(pointer) && LLVMIsAConstantInt(LLVMGetOperand(pointer, 0)))
        bytes = LLVMABISizeOfType(p->layout, LLVMGetAllocatedType(pointer)) *
                LLVMConstIntGetZExtValue(LLVMGetOperand(pointer, 0));
    else if (LLVMIsAGlobalVariable(pointer) && !LLVMIsDeclaration(pointer))
        bytes = LLVMABISizeOfType(p->layout, LLVMGlobalGetValueType(pointer));
    return pass_number64(p, bytes);
}

/* They take floating values and make none of them. */
static const char *const harmless[] = {"llvm.dbg.",       "llvm.lifetime.",
                                       "llvm.assume",     "llvm.is.fpclass",
                                       "llvm.fptosi.sat", "llvm.fptoui.sat",
                                       "llvm.lround",     "llvm.llround",
                                       "llvm.lrint",      "llvm.llrint",
                                       "llvm.va_",        "llvm.expect",
                                       "llvm.prefetch",   NULL};

static bool is_harmless(const char *name)
{
    for (const char *const *begin = harmless; *begin; begin++)
        if (strncmp(name, *begin, strlen(*begin)) == 0)
            return true;
    return false;
}

/* Whether any floating part of a value is no constant. */
static bool has_active(struct pass *p, value v)
{
    struct leaves leaves = {.n = 0};
    if (pass_is_real(LLVMTypeOf(v)))
        return pass_is_active(p, v);
    if (!pass_leaves(p, LLVMTypeOf(v), &leaves))
        return true;
    for (unsigned k = 0; k < leaves.n && !LLVMIsAConstant(v); k++)
        if (pass_parts(p, v, leaves.n)[k] != p->zero)
            return true;
    return false;
}

static void pass_intrinsic(struct pass *p, value call, const char *name)
{
    if (strncmp(name, "llvm.memcpy", 11) == 0 || strncmp(name, "llvm.memmove", 12) == 0) {
        value to = pass_shadow_of(p, LLVMGetOperand(call, 0)),
              from = pass_shadow_of(p, LLVMGetOperand(call, 1));
        pass_shadow_copy(p, to, from, LLVMGetOperand(call, 2));
    } else if (strncmp(name, "llvm.memset", 11) == 0) {
        pass_shadow_clear(p, pass_shadow_of(p, LLVMGetOperand(call, 0)), LLVMGetOperand(call, 2));
    } else if (strncmp(name, "llvm.lifetime.start", 19) == 0) {
        /* The stack's shadow is that of what lay there before. */
        pass_shadow_clear(p, pass_shadow_of(p, LLVMGetOperand(call, 1)), LLVMGetOperand(call, 0));
    } else if (strncmp(name, "llvm.va_start", 13) == 0) {
        pass_variadic_begin(p, LLVMGetOperand(call, 0));
    } else if (!is_harmless(name)) {
        struct leaves leaves = {.n = 0};
        const bool gives = pass_is_real(LLVMTypeOf(call)) ||
                           !pass_leaves(p, LLVMTypeOf(call), &leaves) || leaves.n > 0;
        for (unsigned k = 0; k < LLVMGetNumArgOperands(call); k++) {
            value a = LLVMGetOperand(call, k);
            const bool reads = gives && LLVMGetTypeKind(LLVMTypeOf(a)) == LLVMPointerTypeKind;
            if (reads || has_active(p, a)) {
                pass_refuse(p, call, "there is no rule for this operation");
                break;
            }
        }
    }
}

/* What the runtime looks at of a call: indices of arguments, joined by or, and pointers. */
struct looked_at {
    value active; /* i32 */
    value *pointer;
    unsigned n;
};

/* Puts the arguments' indices. False: there are none. */
static bool put_arguments(struct pass *p, value call, struct looked_at *looked)
{
    const unsigned n = LLVMGetNumArgOperands(call);
    const unsigned fixed = LLVMCountParamTypes(LLVMGetCalledFunctionType(call));
    const bool words = pass_gives_words(p, call);
    unsigned at = 0;
    bool any = false;
    *looked = (struct looked_at){p->zero, base_calloc(n + 2, sizeof(value)), 0};
    for (unsigned k = 0; k < n; k++) {
        value a = LLVMGetOperand(call, k);
        const type t = LLVMTypeOf(a);
        struct leaves leaves = {.n = 0};
        type held;
        if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) {
            if (is_by_value(p, call, k, true, &held)) {
                value shadow = pass_shadow_of(p, a);
                LLVMPositionBuilderBefore(p->build, call);
                pass_store(p, shadow, slot(p, p->arguments, at), 4, p->tag_thread);
                at += 2;
                any = true;
                looked->pointer[looked->n++] = a;
            } else if (!LLVMIsAFunction(a) && !LLVMIsAConstantPointerNull(a)) {
                looked->pointer[looked->n++] = a;
            }
        } else if (words && is_word(p, a)) {
            if (at + WORD_SLOTS > ARGUMENTS_ROOM) {
                pass_refuse(p, call, "the region uses too many variables by value");
                return any;
            }
            const struct pair copied = pass_copied_of(p, a);
            LLVMPositionBuilderBefore(p->build, call);
            pass_store(p, copied.shadow, slot(p, p->arguments, at), 4, p->tag_thread);
            pass_store(p, copied.checks, slot(p, p->arguments, at + 2), 4, p->tag_thread);
            at += WORD_SLOTS;
            any = true;
        } else {
            pass_leaves(p, t, &leaves);
            const bool real = pass_is_real(t);
            if (!real && leaves.n == 0)
                continue;
            if (at + leaves.n + WORD_SLOTS > ARGUMENTS_ROOM) {
                pass_refuse(p, call, "the call has too many floating arguments");
                return any;
            }
            for (unsigned i = 0; i < (real ? 1 : leaves.n); i++) {
                value index = real ? pass_index_of(p, a) : pass_parts(p, a, leaves.n)[i];
                LLVMPositionBuilderBefore(p->build, call);
                if (k < fixed) {
                    pass_store(p, index, slot(p, p->arguments, at++), 4, p->tag_thread);
                    any = true;
                }
                if (index != p->zero)
                    looked->active = looked->active == p->zero
                                         ? index
                                         : LLVMBuildOr(p->build, looked->active, index, "");
            }
        }
    }
    return any;
}

/* Behind a call that may have been of a function that is not instrumented. */
static void look_behind(struct pass *p, value call, value ours, value recorded,
                        struct looked_at *looked)
{
    value callee = LLVMGetCalledValue(call);
    value name = LLVMIsAFunction(callee)
                     ? LLVMBuildGlobalStringPtr(p->build, pass_name_of(callee), "")
                     : LLVMConstNull(p->pointer);
    value said[SAID_FIRST + 2 * LOOKED_AT] = {LLVMBuildNot(p->build, ours, ""), callee, name,
                                              looked->active, recorded};
    unsigned done = 0;
    const bool gives = LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMPointerTypeKind;
    if (gives)
        looked->pointer[looked->n++] = call;
    do {
        unsigned n = 0;
        for (; n < LOOKED_AT && done < looked->n; n++) {
            value pointer = looked->pointer[done++];
            said[SAID_FIRST + 2 * n] = pointer;
            said[SAID_FIRST + 1 + 2 * n] =
                pointer == call ? pass_number64(p, UINT64_MAX) : bytes_behind(p, pointer);
        }
        pass_call_inlined(p, foreign(p, n), SAID_FIRST + 2 * n, said, call);
    } while (done < looked->n);
}

static void take_results(struct pass *p, value call, unsigned n, bool real, value ours)
{
    value *part = real ? NULL : pass_parts_set(p, call, n);
    for (unsigned k = 0; k < n; k++) {
        value index = pass_load(p, p->i32, slot(p, p->results, k), 4, p->tag_thread);
        if (ours)
            index = pass_choose(p, ours, index, p->zero);
        if (real)
            pass_known(p, call)->index = index;
        else
            part[k] = index;
    }
}

/* Behind a call: an index that is not 0 if one of its floating arguments has one. */
static value active_of(struct pass *p, value call)
{
    value active = p->zero;
    pass_build_after(p, call);
    for (unsigned k = 1; k < LLVMGetNumArgOperands(call); k++) {
        struct row row;
        value a = LLVMGetOperand(call, k);
        if (!pass_is_real(LLVMTypeOf(a)))
            continue;
        pass_row_of(p, a, &row);
        for (unsigned i = 0; i < row.n; i++)
            active = LLVMBuildOr(p->build, active, row.entry[i].index, "");
    }
    return active;
}

/* Behind a call that prints: the runtime learns whether a variable is among what is printed. */
static void say_printed(struct pass *p, value call)
{
    const char *name = pass_name_of(LLVMGetCalledValue(call));
    const bool to_file = strstr(name, "fprintf") != NULL;
    value active = active_of(p, call);
    if (to_file && active == p->zero)
        return;
    value said[] = {LLVMGetOperand(call, 0), active};
    pass_call_runtime(p, to_file ? "ad_plain_printed_to_file_" : "ad_plain_printed_", p->nothing, 2,
                      said);
}

/* The same for streams of C++, and before a number is read from one. */
static void say_streamed(struct pass *p, value call)
{
    value said[] = {LLVMGetOperand(call, 0), active_of(p, call)};
    if (said[1] != p->zero)
        pass_call_runtime(p, "ad_plain_streamed_", p->nothing, 2, said);
}

static void say_stream_read(struct pass *p, value call)
{
    value stream = LLVMGetOperand(call, 0);
    LLVMPositionBuilderBefore(p->build, call);
    pass_call_runtime(p, "ad_plain_stream_read_", p->nothing, 1, &stream);
}

static bool never_returns(value call)
{
    return LLVMIsACallInst(call) && LLVMIsAUnreachableInst(LLVMGetNextInstruction(call));
}

void pass_call(struct pass *p, value call)
{
    value callee = LLVMGetCalledValue(call);
    const type t = LLVMTypeOf(call);
    const bool real = pass_is_real(t);
    struct leaves leaves = {.n = 0};
    pass_leaves(p, t, &leaves);
    const unsigned n = real ? 1 : leaves.n;
    if (real)
        pass_known(p, call)->index = p->zero;
    if (LLVMIsAInlineAsm(callee)) {
        bool takes = n > 0;
        for (unsigned k = 0; k < LLVMGetNumArgOperands(call); k++) {
            value a = LLVMGetOperand(call, k);
            takes |= LLVMGetTypeKind(LLVMTypeOf(a)) == LLVMPointerTypeKind || has_active(p, a);
        }
        if (takes)
            pass_refuse(p, call, "inline assembly");
        return;
    }
    if (is_intrinsic(callee)) {
        pass_intrinsic(p, call, pass_name_of(callee));
        return;
    }
    if (LLVMIsAFunction(callee) && LLVMIsDeclaration(callee) &&
        pass_is_one_of(printing, pass_name_of(callee))) {
        say_printed(p, call);
        return;
    }
    if (LLVMIsAFunction(callee) && pass_writes_to_stream(pass_name_of(callee)))
        say_streamed(p, call);
    if (LLVMIsAFunction(callee) && pass_reads_from_stream(pass_name_of(callee)))
        say_stream_read(p, call);
    if (LLVMIsAFunction(callee) && pass_is_refused_thread_call(pass_name_of(callee)))
        pass_refuse(p, call, "a task, team or device of OpenMP");
    if (pass_is_passive_callee(call))
        return;
    if (LLVMIsACallInst(call) && LLVMGetTailCallKind(call) == LLVMTailCallKindMustTail) {
        pass_refuse(p, call, "a call that must be the function's last (musttail)");
        return;
    }
    const bool defined = is_defined(callee);
    const bool direct = defined && is_called_directly(p, callee);
    struct looked_at looked;
    LLVMPositionBuilderBefore(p->build, call);
    pass_variadic_put(p, call);
    LLVMPositionBuilderBefore(p->build, call);
    const bool any = put_arguments(p, call, &looked);
    LLVMPositionBuilderBefore(p->build, call);
    pass_words_put(p, call);
    LLVMPositionBuilderBefore(p->build, call);
    value wrapper = pass_blas_wrapper(p, callee), far = pass_blas_look(p, call);
    if (wrapper) {
        pass_store(p, callee, p->real_function, 8, p->tag_thread);
        LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, callee = wrapper);
    }
    if ((any || n > 0) && !direct)
        pass_store(p, callee, p->callee, 8, p->tag_thread);
    const bool may_lose = !defined && !(LLVMIsAFunction(callee) && is_ours(pass_name_of(callee)));
    const bool wants = pass_wants_words(p, call), words = !defined && pass_has_words(p, call);
    if ((n == 0 && !may_lose && !wants && !words) || n > RESULTS_ROOM || never_returns(call)) {
        free(looked.pointer);
        return;
    }
    value recorded = NULL;
    if (!direct)
        pass_store(p, LLVMConstNull(p->pointer), p->returned, 8, p->tag_thread);
    if (may_lose)
        recorded = pass_load(p, p->i64, pass_cursor_field(p, CURSOR_RESULT), 8, p->tag_thread);
    pass_build_after(p, call);
    LLVMMetadataRef line = LLVMInstructionGetDebugLoc(call); /* not that of what follows */
    if (line)
        LLVMSetCurrentDebugLocation2(p->build, line);
    value ours =
        direct ? NULL
               : LLVMBuildICmp(p->build, LLVMIntEQ,
                               pass_load(p, p->pointer, p->returned, 8, p->tag_thread), callee, "");
    if (far)
        pass_blas_say(p, call, far, looked.active);
    else if (may_lose)
        look_behind(p, call, ours, recorded, &looked);
    free(looked.pointer);
    if (words)
        pass_words_look(p, call, LLVMBuildNot(p->build, ours, ""));
    if (n > 0)
        take_results(p, call, n, real, ours);
    pass_words_given(p, call);
}

/* ---- the module ---- */

static value renamed(struct pass *p, value function, const char *prefix)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", prefix, pass_name_of(function));
    value other = LLVMGetNamedFunction(p->module, name);
    return other ? other : LLVMAddFunction(p->module, name, LLVMGlobalGetValueType(function));
}

void pass_call_renamed(struct pass *p, const char *name)
{
    value function = LLVMGetNamedFunction(p->module, name);
    if (function && !is_defined(function))
        LLVMReplaceAllUsesWith(function, renamed(p, function, "ad_plain_call_"));
}

/* What is called of the C library becomes the runtime's where that has to know of it. */
void pass_calls_rename(struct pass *p)
{
    for (const char *const *name = wrapped; *name; name++)
        pass_call_renamed(p, *name);
    for (const char *const *name = pointed_to; *name; name++) {
        value function = LLVMGetNamedFunction(p->module, *name);
        if (!function || !LLVMIsDeclaration(function))
            continue;
        /* A direct call keeps the rule that is made in place. */
        size_t n = 0, room = 0;
        value *call = NULL;
        for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = LLVMGetNextUse(use)) {
            value user = LLVMGetUser(use);
            if (!LLVMIsACallInst(user) || LLVMGetCalledValue(user) != function)
                continue;
            if (n == room)
                call = realloc(call, (room = 2 * room + 8) * sizeof *call);
            call[n++] = user;
        }
        LLVMReplaceAllUsesWith(function, renamed(p, function, "ad_plain_call_"));
        while (n-- > 0)
            LLVMSetOperand(call[n], (unsigned)LLVMGetNumOperands(call[n]) - 1, function);
        free(call);
    }
}

/* A call of the runtime's within a function of the system's headers that was inlined (atof) stands
 * on the line of the program's own that has called that. */
static void call_to_own_line(value call)
{
    static const char headers[] = "/usr/include/";
    LLVMMetadataRef at = LLVMInstructionGetDebugLoc(call), outer;
    while (at && (outer = LLVMDILocationGetInlinedAt(at)) != NULL) {
        unsigned n;
        LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(at));
        const char *name = file ? LLVMDIFileGetFilename(file, &n) : NULL;
        if (!name || n < sizeof headers || strncmp(name, headers, sizeof headers - 1) != 0)
            break;
        at = outer;
    }
    if (at)
        LLVMInstructionSetDebugLoc(call, at);
}

/* A function that records writes to the tape: what says that it touches no memory, or that a call
 * may be left out or moved, would be false. */
void pass_calls_strip(struct pass *p)
{
    static const char *const untrue[] = {"memory", "nosync", "willreturn", "speculatable", NULL};
    const LLVMAttributeIndex whole = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    const unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6);
    for (value f = LLVMGetFirstFunction(p->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        for (const char *const *name = untrue; *name; name++)
            LLVMRemoveEnumAttributeAtIndex(f, whole,
                                           LLVMGetEnumAttributeKindForName(*name, strlen(*name)));
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block))
            for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v)) {
                if (!pass_is_call(v) || is_intrinsic(LLVMGetCalledValue(v)))
                    continue;
                if (begins(pass_name_of(LLVMGetCalledValue(v)), "ad_plain_call_"))
                    call_to_own_line(v);
                LLVMRemoveCallSiteEnumAttribute(v, whole, memory);
                if (LLVMIsACallInst(v) && LLVMIsTailCall(v) &&
                    LLVMGetTailCallKind(v) != LLVMTailCallKindMustTail)
                    LLVMSetTailCallKind(v, LLVMTailCallKindNone);
            }
    }
}
