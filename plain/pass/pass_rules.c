/* pass_rules.c: what instructions and functions of one floating result depend on.
 *
 * Derivatives that are a few instructions are made in place. Others are functions of the runtime,
 * ad_plain_by_NAME_, which take the operand's index besides and compute nothing for a constant;
 * they are the rules of ad_real_functions.h.
 */
#include "pass.h"

#include "base_memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions of one operand whose rule is the runtime's: ad_plain_by_NAME_(x, index). */
static const char *const by_runtime[] = {"sin",   "cos",  "lgamma", "tgamma", "erf",   "erfc",
                                         "asin",  "acos", "sinh",   "cosh",   "asinh", "acosh",
                                         "atanh", "j0",   "j1",     "y0",     "y1",    NULL};
/* Those with a rule below. */
static const char *const by_code[] = {
    "exp",   "exp2",  "exp10",  "expm1",       "log",       "log2", "log10", "log1p",
    "sqrt",  "cbrt",  "tan",    "tanh",        "atan",      "fabs", "fma",   "fmuladd",
    "fmax",  "fmin",  "maxnum", "minnum",      "pow",       "powi", "fmod",  "copysign",
    "hypot", "atan2", "fdim",   "significand", "remainder", "drem", NULL};
/* Their derivative is 1: they go to a number beside it. */
static const char *const beside[] = {"nextup", "nextdown", "nextafter", "nexttoward", NULL};
/* Their result is one of two operands. */
static const char *const choosing[] = {
    "fmaximum",     "fminimum",     "fmaximum_num",     "fminimum_num",     "fmaxmag", "fminmag",
    "fmaximum_mag", "fminimum_mag", "fmaximum_mag_num", "fminimum_mag_num", NULL};
/* Of numbers of a wider type: fadd of double is + whose result is a float. */
static const char *const narrowing[] = {
    "fadd",   "fsub",  "fmul",  "fdiv",  "fsqrt", "ffma",  "daddl",  "dsubl", "dmull", "ddivl",
    "dsqrtl", "dfmal", "faddl", "fsubl", "fmull", "fdivl", "fsqrtl", "ffmal", NULL};
/* Constants by pieces. */
static const char *const flat[] = {"floor", "ceil",      "trunc", "round", "roundeven",
                                   "rint",  "nearbyint", "logb",  NULL};

/* The name of a function of the C library, or of LLVM's that stands for it, without the letter of
 * its type; NULL: the call is of nothing that has a rule. */
static const char *rule_name(value call, char *name, size_t room)
{
    value callee = LLVMGetCalledValue(call);
    if (!LLVMIsAFunction(callee) || !LLVMIsDeclaration(callee) || !pass_is_real(LLVMTypeOf(call)))
        return NULL;
    const char *full = pass_name_of(callee);
    if (strncmp(full, "llvm.", 5) == 0) {
        full += 5;
        if (strncmp(full, "experimental.constrained.", 25) == 0)
            return NULL;
        snprintf(name, room, "%.*s", (int)strcspn(full, "."), full);
    } else {
        snprintf(name, room, "%s", full);
    }
    for (int k = 0; k < 2; k++) {
        if (strcmp(name, "gamma") == 0) /* of the C library; it is another name */
            snprintf(name, room, "lgamma");
        if (pass_is_one_of(by_runtime, name) || pass_is_one_of(by_code, name) ||
            pass_is_one_of(flat, name) || pass_is_one_of(beside, name) ||
            pass_is_one_of(choosing, name) || (k == 0 && pass_is_one_of(narrowing, name)))
            return name;
        const size_t length = strlen(name);
        if (k == 1 || length < 2 || (name[length - 1] != 'f' && name[length - 1] != 'l'))
            return NULL;
        name[length - 1] = '\0';
    }
    return NULL;
}

bool pass_has_rule(value instruction)
{
    char name[64];
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFNeg:
    case LLVMFRem:
    case LLVMFPExt:
    case LLVMFPTrunc:
    case LLVMFreeze:
    case LLVMSelect:
        return pass_is_real(LLVMTypeOf(instruction));
    case LLVMCall:
        return rule_name(instruction, name, sizeof name) != NULL;
    default:
        return false;
    }
}

bool pass_only_chooses(value instruction)
{
    static const char *const names[] = {"fmax", "fmin", "maxnum", "minnum"};
    char room[64];
    if (LLVMGetInstructionOpcode(instruction) != LLVMCall)
        return LLVMIsASelectInst(instruction) || LLVMIsAFreezeInst(instruction);
    const char *name = rule_name(instruction, room, sizeof room);
    for (unsigned k = 0; name && k < sizeof names / sizeof *names; k++)
        if (strcmp(name, names[k]) == 0)
            return true;
    return false;
}

/* ---- the runtime's ---- */

/* The index by which the runtime sees whether a derivative is wanted. */
static value wanted(struct pass *p, value v)
{
    struct row row;
    pass_row_of(p, v, &row);
    return row.n == 1 ? row.entry[0].index : pass_number32(p, 1);
}

static value by_runtime_of(struct pass *p, const char *name, value x, value second, value of)
{
    char function[96];
    value argument[] = {pass_as_real(p, x), second, second};
    unsigned n = 1;
    snprintf(function, sizeof function, "ad_plain_by_%s_", name);
    if (second)
        n++;
    argument[n++] = wanted(p, of);
    return pass_call_runtime(p, function, p->real, n, argument);
}

/* ---- rules ---- */

static value quotient(struct pass *p, double numerator, value denominator)
{
    return LLVMBuildFDiv(p->build, pass_real_number(p, numerator), denominator, "");
}

static value square_and_one(struct pass *p, value x, bool minus)
{
    value square = LLVMBuildFMul(p->build, x, x, ""), one = pass_real_number(p, 1);
    return minus ? LLVMBuildFSub(p->build, one, square, "")
                 : LLVMBuildFAdd(p->build, square, one, "");
}

/* The derivative of a function of one operand, from it and the value. */
static value derivative(struct pass *p, const char *name, value operand, value call)
{
    LLVMBuilderRef b = p->build;
    if (pass_is_one_of(by_runtime, name))
        return by_runtime_of(p, name, operand, NULL, operand);
    value x = pass_as_real(p, operand), y = pass_as_real(p, call);
    if (strcmp(name, "exp") == 0)
        return y;
    if (strcmp(name, "exp2") == 0)
        return LLVMBuildFMul(b, y, pass_real_number(p, 0.69314718055994530942), "");
    if (strcmp(name, "exp10") == 0)
        return LLVMBuildFMul(b, y, pass_real_number(p, 2.30258509299404568402), "");
    if (strcmp(name, "expm1") == 0)
        return LLVMBuildFAdd(b, y, pass_real_number(p, 1), "");
    if (strcmp(name, "log") == 0)
        return quotient(p, 1, x);
    if (strcmp(name, "log2") == 0)
        return quotient(p, 1.44269504088896340736, x);
    if (strcmp(name, "log10") == 0)
        return quotient(p, 0.43429448190325182765, x);
    if (strcmp(name, "log1p") == 0)
        return quotient(p, 1, LLVMBuildFAdd(b, x, pass_real_number(p, 1), ""));
    if (strcmp(name, "significand") == 0) /* a power of two */
        return LLVMBuildFDiv(b, y, x, "");
    if (strcmp(name, "sqrt") == 0)
        return quotient(p, 0.5, y);
    if (strcmp(name, "cbrt") == 0)
        return LLVMBuildFDiv(b, y, LLVMBuildFMul(b, x, pass_real_number(p, 3), ""), "");
    if (strcmp(name, "tan") == 0)
        return square_and_one(p, y, false);
    if (strcmp(name, "tanh") == 0)
        return square_and_one(p, y, true);
    if (strcmp(name, "atan") == 0)
        return quotient(p, 1, square_and_one(p, x, false));
    /* fabs: 0 at 0, as ad_real_abs has it. */
    value positive = LLVMBuildFCmp(b, LLVMRealOGT, x, pass_real_number(p, 0), "");
    value negative = LLVMBuildFCmp(b, LLVMRealOLT, x, pass_real_number(p, 0), "");
    return pass_choose(p, positive, pass_real_number(p, 1),
                       pass_choose(p, negative, pass_real_number(p, -1), pass_real_number(p, 0)));
}

static value plain_partial(struct pass *p, const struct entry *e)
{
    if (!e->partial)
        return pass_real_number(p, e->negative ? -1 : 1);
    return e->negative ? LLVMBuildFNeg(p->build, e->partial, "") : e->partial;
}

static const struct entry *entry_of(const struct row *row, value index)
{
    for (unsigned k = 0; k < row->n; k++)
        if (row->entry[k].index == index)
            return &row->entry[k];
    return NULL;
}

/* condition ? yes : no of rows of any length; what is not chosen has the derivative 0. */
static void rule_choice_derived(struct pass *p, struct row *row, value condition,
                                const struct row *yes, const struct row *no)
{
    value zero = pass_real_number(p, 0);
    for (unsigned k = 0; k < yes->n + no->n; k++) {
        const struct entry *e = k < yes->n ? &yes->entry[k] : &no->entry[k - yes->n];
        const struct entry *a = entry_of(yes, e->index), *b = entry_of(no, e->index);
        if (k >= yes->n && a)
            continue;
        if (row->n == ROW_ROOM) {
            p->too_long = true;
            return;
        }
        struct entry *to = &row->entry[row->n++];
        *to = *e;
        if (a && b && !a->partial && !b->partial && a->negative == b->negative)
            continue;
        to->negative = false;
        to->partial = pass_choose(p, condition, a ? plain_partial(p, a) : zero,
                                  b ? plain_partial(p, b) : zero);
    }
}

/* condition ? yes : no. Rows of one entry are joined; of others the entries of both are there, and
 * those of the one that is not chosen have index 0. */
static void rule_choice(struct pass *p, struct row *row, value condition, value yes, value no)
{
    struct row a, b;
    pass_row_of(p, yes, &a);
    pass_row_of(p, no, &b);
    if (a.n + b.n == 0)
        return;
    if (p->derives) {
        rule_choice_derived(p, row, condition, &a, &b);
        return;
    }
    if (a.n > 1 || b.n > 1) {
        a = (struct row){.n = 1, .entry = {{.index = pass_index_of(p, yes)}}};
        b = (struct row){.n = 1, .entry = {{.index = pass_index_of(p, no)}}};
    }
    const struct entry none = {.index = p->zero};
    const struct entry *x = a.n ? &a.entry[0] : &none, *y = b.n ? &b.entry[0] : &none;
    row->n = 1;
    row->entry[0] = (struct entry){.index = pass_choose(p, condition, x->index, y->index)};
    if (x->partial || y->partial || x->negative || y->negative)
        row->entry[0].partial = pass_choose(p, condition, plain_partial(p, x), plain_partial(p, y));
}

/* fmax and fmin: at equal operands the first one's, as ad_real_max has it; a NaN is not chosen. */
static void rule_extreme(struct pass *p, struct row *row, value call, bool is_max)
{
    LLVMBuilderRef b = p->build;
    value x = LLVMGetOperand(call, 0), y = LLVMGetOperand(call, 1);
    if (!pass_is_active(p, x) && !pass_is_active(p, y))
        return;
    value first = LLVMBuildFCmp(b, is_max ? LLVMRealOGE : LLVMRealOLE, x, y, "");
    first = LLVMBuildOr(b, first, LLVMBuildFCmp(b, LLVMRealUNO, y, y, ""), "");
    rule_choice(p, row, first, x, y);
}

static void rule_of_two(struct pass *p, struct row *row, const char *name, value call)
{
    LLVMBuilderRef b = p->build;
    value x = LLVMGetOperand(call, 0), y = LLVMGetOperand(call, 1);
    if (!pass_is_active(p, x) && !pass_is_active(p, y))
        return;
    value dx, dy, first = pass_as_real(p, x), second = pass_as_real(p, y),
                  r = pass_as_real(p, call);
    bool minus = false;
    if (strcmp(name, "hypot") == 0) {
        dx = LLVMBuildFDiv(b, first, r, "");
        dy = LLVMBuildFDiv(b, second, r, "");
    } else if (strcmp(name, "atan2") == 0) {
        value q = LLVMBuildFAdd(b, LLVMBuildFMul(b, first, first, ""),
                                LLVMBuildFMul(b, second, second, ""), "");
        dx = LLVMBuildFDiv(b, second, q, "");
        dy = LLVMBuildFDiv(b, first, q, "");
        minus = true;
    } else { /* fdim */
        value positive = LLVMBuildFCmp(b, LLVMRealOGT, first, second, "");
        dx = pass_choose(p, positive, pass_real_number(p, 1), pass_real_number(p, 0));
        dy = dx;
        minus = true;
    }
    if (pass_is_active(p, x))
        pass_row_add(p, row, x, dx, false);
    if (pass_is_active(p, y))
        pass_row_add(p, row, y, dy, minus);
}

static void rule_pow(struct pass *p, struct row *row, value call, bool is_whole)
{
    value x = LLVMGetOperand(call, 0), y = LLVMGetOperand(call, 1);
    value exponent = is_whole ? LLVMBuildSIToFP(p->build, y, p->real, "") : pass_as_real(p, y);
    if (pass_is_active(p, x))
        pass_row_add(p, row, x, by_runtime_of(p, "pow_base", x, exponent, x), false);
    if (!is_whole && pass_is_active(p, y))
        pass_row_add(p, row, y, by_runtime_of(p, "pow_exponent", x, pass_as_real(p, y), y), false);
}

/* x - n y, where n is x / y made whole */
static void rule_remainder(struct pass *p, struct row *row, value v)
{
    LLVMBuilderRef b = p->build;
    value x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    pass_row_add(p, row, x, NULL, false);
    if (!pass_is_active(p, y))
        return;
    value multiple = LLVMBuildFSub(b, pass_as_real(p, x), pass_as_real(p, v), "");
    pass_row_add(p, row, y, LLVMBuildFDiv(b, multiple, pass_as_real(p, y), ""), true);
}

static void rule_product(struct pass *p, struct row *row, value x, value y)
{
    if (pass_is_active(p, x))
        pass_row_add(p, row, x, pass_as_real(p, y), false);
    if (pass_is_active(p, y))
        pass_row_add(p, row, y, pass_as_real(p, x), false);
}

static void rule_quotient(struct pass *p, struct row *row, value x, value y, value v)
{
    if (!pass_is_active(p, x) && !pass_is_active(p, y))
        return;
    value inverse = quotient(p, 1, pass_as_real(p, y));
    if (pass_is_active(p, x))
        pass_row_add(p, row, x, inverse, false);
    if (pass_is_active(p, y))
        pass_row_add(p, row, y, LLVMBuildFMul(p->build, pass_as_real(p, v), inverse, ""), true);
}

static void rule_narrowing(struct pass *p, struct row *row, const char *name, value call)
{
    value x = LLVMGetOperand(call, 0), y = LLVMGetOperand(call, 1); /* of a root: its function */
    switch (name[1] == 's' ? name[2] : name[1]) {
    case 'a':
        pass_row_add(p, row, x, NULL, false);
        pass_row_add(p, row, y, NULL, false);
        break;
    case 'u':
        pass_row_add(p, row, x, NULL, false);
        pass_row_add(p, row, y, NULL, true);
        break;
    case 'm':
        rule_product(p, row, x, y);
        break;
    case 'd':
        rule_quotient(p, row, x, y, call);
        break;
    case 'q':
        if (pass_is_active(p, x))
            pass_row_add(p, row, x, quotient(p, 0.5, pass_as_real(p, call)), false);
        break;
    default: /* fma */
        pass_row_add(p, row, LLVMGetOperand(call, 2), NULL, false);
        rule_product(p, row, x, y);
        break;
    }
}

static void rule_choosing(struct pass *p, struct row *row, value call)
{
    value x = LLVMGetOperand(call, 0), y = LLVMGetOperand(call, 1);
    if (pass_is_active(p, x) || pass_is_active(p, y))
        rule_choice(p, row, LLVMBuildFCmp(p->build, LLVMRealOEQ, x, call, ""), x, y);
}

static void rule_call(struct pass *p, struct row *row, value call)
{
    char room[64];
    const char *name = rule_name(call, room, sizeof room);
    value x = LLVMGetOperand(call, 0);
    if (pass_is_one_of(flat, name))
        return;
    if (strcmp(name, "fma") == 0 || strcmp(name, "fmuladd") == 0) {
        pass_row_add(p, row, LLVMGetOperand(call, 2), NULL, false);
        rule_product(p, row, x, LLVMGetOperand(call, 1));
    } else if (strcmp(name, "fmax") == 0 || strcmp(name, "maxnum") == 0) {
        rule_extreme(p, row, call, true);
    } else if (strcmp(name, "fmin") == 0 || strcmp(name, "minnum") == 0) {
        rule_extreme(p, row, call, false);
    } else if (strcmp(name, "pow") == 0) {
        rule_pow(p, row, call, false);
    } else if (pass_is_one_of(narrowing, name)) {
        rule_narrowing(p, row, name, call);
    } else if (pass_is_one_of(choosing, name)) {
        rule_choosing(p, row, call);
    } else if (pass_is_one_of(beside, name)) {
        pass_row_add(p, row, x, NULL, false);
    } else if (strcmp(name, "fmod") == 0 || strcmp(name, "remainder") == 0 ||
               strcmp(name, "drem") == 0) {
        rule_remainder(p, row, call);
    } else if (strcmp(name, "powi") == 0) {
        rule_pow(p, row, call, true);
    } else if (strcmp(name, "hypot") == 0 || strcmp(name, "atan2") == 0 ||
               strcmp(name, "fdim") == 0) {
        rule_of_two(p, row, name, call);
    } else if (pass_is_active(p, x) && strcmp(name, "copysign") == 0) {
        value same = LLVMBuildFCmp(p->build, LLVMRealOEQ, x, call, "");
        pass_row_add(p, row, x,
                     pass_choose(p, same, pass_real_number(p, 1), pass_real_number(p, -1)), false);
    } else if (pass_is_active(p, x)) {
        pass_row_add(p, row, x, derivative(p, name, x, call), false);
    }
}

static void rule_of(struct pass *p, struct row *row, value v)
{
    value x = LLVMGetOperand(v, 0), y = LLVMGetNumOperands(v) > 1 ? LLVMGetOperand(v, 1) : NULL;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMFAdd:
    case LLVMFSub:
        pass_row_add(p, row, x, NULL, false);
        pass_row_add(p, row, y, NULL, LLVMGetInstructionOpcode(v) == LLVMFSub);
        break;
    case LLVMFNeg:
        pass_row_add(p, row, x, NULL, true);
        break;
    case LLVMFMul:
        rule_product(p, row, x, y);
        break;
    case LLVMFDiv:
        rule_quotient(p, row, x, y, v);
        break;
    case LLVMFRem:
        rule_remainder(p, row, v);
        break;
    case LLVMSelect:
        rule_choice(p, row, x, y, LLVMGetOperand(v, 2));
        break;
    case LLVMCall:
        rule_call(p, row, v);
        break;
    default: /* conversions between floating types, freeze */
        pass_row_add(p, row, x, NULL, false);
        break;
    }
}

/* Whether the value leaves the block's formulas, so that it must have an index; *users: how many
 * formulas of the block take it. */
static bool leaves_block(value v, unsigned *users)
{
    LLVMBasicBlockRef block = LLVMGetInstructionParent(v);
    value last = NULL;
    bool leaves = false;
    *users = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        value user = LLVMGetUser(use);
        const LLVMOpcode opcode = LLVMGetInstructionOpcode(user);
        if (opcode == LLVMFCmp || opcode == LLVMFPToSI || opcode == LLVMFPToUI)
            continue;
        if (pass_has_rule(user) && LLVMGetInstructionParent(user) == block) {
            *users += user != last;
            last = user;
        } else if (opcode != LLVMCall || pass_has_rule(user) || !pass_is_passive_callee(user)) {
            leaves = true;
        }
    }
    return leaves;
}

void pass_apply_rule(struct pass *p, value instruction)
{
    struct row *row = base_calloc(1, sizeof *row);
    unsigned users;
    rule_of(p, row, instruction);
    struct known *known = pass_known(p, instruction);
    if (row->n == 0) {
        known->index = p->zero;
        free(row);
        return;
    }
    known->row = row;
    /* It goes on as a row where that multiplies neither work nor operands. */
    const bool leaves = leaves_block(instruction, &users);
    if (leaves || (users > 1 && row->n > 1 && !(row->n == 2 && users == 2))) {
        value index = pass_record_row(p, row, instruction);
        pass_known(p, instruction)->index = index;
    }
}

void pass_derive_row(struct pass *p, value v)
{
    struct row *row = base_calloc(1, sizeof *row);
    rule_of(p, row, v);
    struct known *known = pass_known(p, v);
    free(known->row);
    known->row = row;
    known->index = row->n ? NULL : p->zero;
}
