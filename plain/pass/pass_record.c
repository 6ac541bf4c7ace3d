/* pass_record.c: rows become records on the tape.
 *
 * A record is what a statement over ad_real makes (ad_real_expression.h): derivatives upwards from
 * the thread's cursor, and downwards a head with the operands' indices. Derivatives of 1 and -1 are
 * not stored. The code for a number of operands is a function of the module, always inlined: it
 * branches, and LLVM-C cannot split blocks.
 */
#include "pass.h"

#include "base_memory.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_BITS = 6, SHAPE_UNITS = 12, SHAPE_FULL = 60 };

value pass_cursor_field(struct pass *p, unsigned bytes)
{
    value offset = pass_number64(p, bytes);
    return LLVMConstGEP2(p->i8, p->cursor, &offset, 1);
}

value pass_has_variables(struct pass *p)
{
    static const char name[] = "ad_plain_has_variables_";
    value flag = LLVMGetNamedGlobal(p->module, name);
    return pass_load(p, p->i8, flag ? flag : LLVMAddGlobal(p->module, p->i8, name), 1, NULL);
}

static void branch_unlikely(struct pass *p, value branch)
{
    LLVMMetadataRef weight[] = {LLVMMDStringInContext2(p->context, "branch_weights", 14),
                                LLVMValueAsMetadata(pass_number32(p, 1)),
                                LLVMValueAsMetadata(pass_number32(p, 4000))};
    LLVMSetMetadata(branch, p->kind_prof,
                    LLVMMetadataAsValue(p->context, LLVMMDNodeInContext2(p->context, weight, 3)));
}

/* What the pass adds stands as if it were inlined from a header of ours: the profiler counts that
 * as recording, forward. */
LLVMMetadataRef pass_lines_of_header(struct pass *p, value function, const char *name)
{
    if (!LLVMGetNamedMetadataNumOperands(p->module, "llvm.dbg.cu"))
        return NULL;
    if (!p->lines) {
        static const char file[] = "tapescope/ad_plain.h", folder[] = "/";
        p->lines = pass_lines_of_first_unit(p->module);
        p->lines_file =
            LLVMDIBuilderCreateFile(p->lines, file, sizeof file - 1, folder, sizeof folder - 1);
        p->lines_type =
            LLVMDIBuilderCreateSubroutineType(p->lines, p->lines_file, NULL, 0, LLVMDIFlagZero);
    }
    LLVMMetadataRef scope =
        LLVMDIBuilderCreateFunction(p->lines, p->lines_file, name, strlen(name), name, strlen(name),
                                    p->lines_file, 1, p->lines_type, 1, 1, 1, LLVMDIFlagZero, 1);
    LLVMSetSubprogram(function, scope);
    return LLVMDIBuilderCreateDebugLocation(p->context, 1, 1, scope, NULL);
}

static LLVMBuilderRef helper_begin(struct pass *p, value function, const char *name)
{
    static const char *const attributes[] = {"alwaysinline", "nounwind", NULL};
    LLVMBuilderRef before = p->build;
    LLVMSetLinkage(function, LLVMInternalLinkage);
    pass_function_is(p, function, attributes);
    p->build = LLVMCreateBuilderInContext(p->context);
    LLVMSetCurrentDebugLocation2(p->build, pass_lines_of_header(p, function, name));
    return before;
}

static void helper_end(struct pass *p, LLVMBuilderRef before)
{
    LLVMDisposeBuilder(p->build);
    p->build = before;
}

struct cold_helper pass_cold_begin(struct pass *p, const char *name, type result, unsigned n,
                                   type *of)
{
    value f = LLVMAddFunction(p->module, name, LLVMFunctionType(result, of, n, 0));
    const struct cold_helper helper = {
        .function = f,
        .before = helper_begin(p, f, name),
        .entry = LLVMAppendBasicBlockInContext(p->context, f, "entry"),
        .cold = LLVMAppendBasicBlockInContext(p->context, f, "cold"),
        .end = LLVMAppendBasicBlockInContext(p->context, f, "end"),
    };
    LLVMPositionBuilderAtEnd(p->build, helper.entry);
    return helper;
}

void pass_cold_ask(struct pass *p, struct cold_helper *helper, value may)
{
    helper->first = helper->entry;
    helper->entry = LLVMInsertBasicBlockInContext(p->context, helper->cold, "may");
    LLVMBuildCondBr(p->build, may, helper->entry, helper->end);
    LLVMPositionBuilderAtEnd(p->build, helper->entry);
}

void pass_cold_branch(struct pass *p, const struct cold_helper *helper, value condition)
{
    branch_unlikely(p, LLVMBuildCondBr(p->build, condition, helper->cold, helper->end));
    LLVMPositionBuilderAtEnd(p->build, helper->cold);
}

value pass_cold_end(struct pass *p, const struct cold_helper *helper, value said, value otherwise)
{
    LLVMBuildBr(p->build, helper->end);
    LLVMPositionBuilderAtEnd(p->build, helper->end);
    if (otherwise) {
        value result = LLVMBuildPhi(p->build, LLVMTypeOf(otherwise), "");
        LLVMBasicBlockRef from[] = {helper->entry, helper->cold, helper->first};
        LLVMAddIncoming(result, (value[]){otherwise, said, otherwise}, from, helper->first ? 3 : 2);
        LLVMBuildRet(p->build, result);
    } else {
        LLVMBuildRetVoid(p->build);
    }
    helper_end(p, helper->before);
    return helper->function;
}

/* A call that is inlined into a function with lines must have one: the value's, or the
 * function's. */
value pass_call_inlined(struct pass *p, value function, unsigned n, value *argument, value of)
{
    LLVMMetadataRef had = LLVMGetCurrentDebugLocation2(p->build);
    LLVMMetadataRef scope = LLVMGetSubprogram(p->function);
    LLVMMetadataRef line = had;
    if (!line && of && LLVMIsAInstruction(of))
        line = LLVMInstructionGetDebugLoc(of);
    if (!line && scope)
        line = LLVMDIBuilderCreateDebugLocation(p->context, LLVMDISubprogramGetLine(scope), 0,
                                                scope, NULL);
    LLVMSetCurrentDebugLocation2(p->build, line);
    value result =
        LLVMBuildCall2(p->build, LLVMGlobalGetValueType(function), function, argument, n, "");
    LLVMSetCurrentDebugLocation2(p->build, had);
    return result;
}

/* A call that is kept apart from others, so that its return address says where it stands. */
void pass_call_apart(struct pass *p, value call)
{
    const unsigned kind = LLVMGetEnumAttributeKindForName("nomerge", 7);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(p->context, kind, 0));
}

/* A call of the runtime that is hardly ever made: of a function that leaves all registers as they
 * are (plain_kept.c). By C's own convention all that is alive across it would be moved or stored,
 * which was half of the code. */
value pass_call_kept(struct pass *p, const char *name, type result, unsigned n, value *argument)
{
    /* Not through the linker's first look for a name, which keeps fewer registers. */
    static const char *const attributes[] = {"cold", "nonlazybind", NULL};
    value call = pass_call_runtime(p, name, result, n, argument), f = LLVMGetCalledValue(call);
    pass_function_is(p, f, attributes);
    LLVMSetFunctionCallConv(f, LLVMColdCallConv);
    LLVMSetInstructionCallConv(call, LLVMColdCallConv);
    pass_call_apart(p, call);
    return call;
}

static unsigned shape_of(unsigned general, unsigned plus, unsigned minus)
{
    return general == SHAPE_UNITS ? SHAPE_FULL : (plus + 3 * minus) * SHAPE_UNITS + general;
}

/* i32 push(i32 site, double value, the general partials, all indices): the new index, or 0. */
static value push_of(struct pass *p, unsigned general, unsigned plus, unsigned minus)
{
    value *function = &p->push[general][plus][minus];
    const unsigned n = general + plus + minus;
    if (*function)
        return *function;
    char name[64];
    snprintf(name, sizeof name, "ad_plain_push_%u_%u_%u_", general, plus, minus);
    type of[2 + 2 * ROW_ROOM] = {p->i32, p->real};
    for (unsigned k = 0; k < general + n; k++)
        of[2 + k] = k < general ? p->real : p->i32;
    *function = LLVMAddFunction(p->module, name, LLVMFunctionType(p->i32, of, 2 + general + n, 0));
    value f = *function;
    LLVMBuilderRef before = helper_begin(p, f, name);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(p->context, f, "entry"),
                      active = LLVMAppendBasicBlockInContext(p->context, f, "active"),
                      full = LLVMAppendBasicBlockInContext(p->context, f, "full"),
                      room = LLVMAppendBasicBlockInContext(p->context, f, "room"),
                      end = LLVMAppendBasicBlockInContext(p->context, f, "end");
    LLVMBuilderRef b = p->build;
    const unsigned bytes = 8 * general + 4 * (n + 1);

    LLVMPositionBuilderAtEnd(b, entry);
    value any = LLVMGetParam(f, 2 + general);
    for (unsigned k = 1; k < n; k++)
        any = LLVMBuildOr(b, any, LLVMGetParam(f, 2 + general + k), "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, any, p->zero, ""), active, end);

    LLVMPositionBuilderAtEnd(b, active);
    value partial =
        pass_load(p, p->pointer, pass_cursor_field(p, CURSOR_PARTIAL), 8, p->tag_thread);
    value word = pass_load(p, p->pointer, pass_cursor_field(p, CURSOR_WORD), 8, p->tag_thread);
    value left = LLVMBuildSub(b, LLVMBuildPtrToInt(b, word, p->i64, ""),
                              LLVMBuildPtrToInt(b, partial, p->i64, ""), "");
    branch_unlikely(
        p, LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, left, pass_number64(p, bytes), ""), full,
                           room));

    LLVMPositionBuilderAtEnd(b, full);
    value asked[] = {pass_number32(p, bytes), LLVMGetParam(f, 1)};
    value given = pass_call_kept(p, "ad_plain_room_kept_", p->i1, 2, asked);
    value partial_now =
        pass_load(p, p->pointer, pass_cursor_field(p, CURSOR_PARTIAL), 8, p->tag_thread);
    value word_now = pass_load(p, p->pointer, pass_cursor_field(p, CURSOR_WORD), 8, p->tag_thread);
    LLVMBuildCondBr(b, given, room, end);

    LLVMPositionBuilderAtEnd(b, room);
    LLVMBasicBlockRef from[] = {active, full};
    value to_partial = LLVMBuildPhi(b, p->pointer, ""), to_word = LLVMBuildPhi(b, p->pointer, "");
    LLVMAddIncoming(to_partial, (value[]){partial, partial_now}, from, 2);
    LLVMAddIncoming(to_word, (value[]){word, word_now}, from, 2);
    value head = pass_byte_offset(p, to_word, (uint64_t)0 - 4 * (n + 1));
    pass_store(p,
               LLVMBuildOr(b, LLVMBuildShl(b, LLVMGetParam(f, 0), pass_number32(p, SHAPE_BITS), ""),
                           pass_number32(p, shape_of(general, plus, minus)), ""),
               head, 4, p->tag_tape);
    for (unsigned k = 0; k < n; k++)
        pass_store(p, LLVMGetParam(f, 2 + general + k), pass_byte_offset(p, head, 4 * (k + 1)), 4,
                   p->tag_tape);
    for (unsigned k = 0; k < general; k++)
        pass_store(p, LLVMGetParam(f, 2 + k), pass_byte_offset(p, to_partial, 8 * (uint64_t)k), 8,
                   p->tag_tape);
    pass_store(p, pass_byte_offset(p, to_partial, 8 * (uint64_t)general),
               pass_cursor_field(p, CURSOR_PARTIAL), 8, p->tag_thread);
    pass_store(p, head, pass_cursor_field(p, CURSOR_WORD), 8, p->tag_thread);
    value result = pass_load(p, p->i64, pass_cursor_field(p, CURSOR_RESULT), 8, p->tag_thread);
    pass_store(p, LLVMBuildAdd(b, result, pass_number64(p, 1), ""),
               pass_cursor_field(p, CURSOR_RESULT), 8, p->tag_thread);
    value index = LLVMBuildTrunc(b, result, p->i32, "");
    LLVMBuildBr(b, end);

    LLVMPositionBuilderAtEnd(b, end);
    value made = LLVMBuildPhi(b, p->i32, "index");
    LLVMAddIncoming(made, (value[]){p->zero, p->zero, index},
                    (LLVMBasicBlockRef[]){entry, full, room}, 3);
    LLVMBuildRet(b, made);
    helper_end(p, before);
    return f;
}

/* The low half of the program counter. The operand keeps places apart that are otherwise alike. */
static value site_here(struct pass *p)
{
    static const char text[] = "lea 0(%rip), $0", constraints[] = "=r,i";
    static const char *const attributes[] = {"memory", "nounwind"};
    const type t = LLVMFunctionType(p->i64, &p->i32, 1, 0);
    value code = LLVMGetInlineAsm(t, text, sizeof text - 1, constraints, sizeof constraints - 1, 0,
                                  0, LLVMInlineAsmDialectATT, 0);
    value place = pass_number32(p, ++p->n_sites);
    value call = LLVMBuildCall2(p->build, t, code, &place, 1, "");
    for (unsigned k = 0; k < 2; k++) {
        const unsigned kind = LLVMGetEnumAttributeKindForName(attributes[k], strlen(attributes[k]));
        LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(p->context, kind, 0));
    }
    return LLVMBuildTrunc(p->build, call, p->i32, "");
}

static value partial_of(struct pass *p, const struct entry *e)
{
    if (!e->partial)
        return pass_real_number(p, e->negative ? -1 : 1);
    return e->negative ? LLVMBuildFNeg(p->build, e->partial, "") : e->partial;
}

/* The index of a value with this row: of a copy the same one, else that of a new record. */
value pass_record_row(struct pass *p, const struct row *row, value of)
{
    if (row->n == 0)
        return p->zero;
    if (p->derives) {
        p->too_long = true;
        return p->zero;
    }
    if (row->n == 1 && !row->entry[0].partial && !row->entry[0].negative)
        return row->entry[0].index;
    /* Which derivatives are not stored: up to two, of them one of -1. */
    bool plus[ROW_ROOM] = {false}, minus[ROW_ROOM] = {false};
    unsigned n_plus = 0, n_minus = 0;
    for (unsigned k = 0; k < row->n && row->n < ROW_ROOM; k++) {
        const struct entry *e = &row->entry[k];
        if (e->partial || n_plus + n_minus == 2)
            continue;
        plus[k] = !e->negative;
        minus[k] = e->negative && n_minus == 0;
        n_plus += plus[k];
        n_minus += minus[k];
    }
    const unsigned general = row->n - n_plus - n_minus;
    value argument[2 + 2 * ROW_ROOM];
    unsigned n = 0;
    argument[n++] = site_here(p);
    argument[n++] = pass_is_real(LLVMTypeOf(of)) ? pass_as_real(p, of) : pass_real_number(p, 0);
    for (unsigned k = 0; k < row->n; k++)
        if (!plus[k] && !minus[k])
            argument[n++] = partial_of(p, &row->entry[k]);
    for (unsigned k = 0; k < row->n; k++)
        if (!plus[k] && !minus[k])
            argument[n++] = row->entry[k].index;
    for (unsigned k = 0; k < row->n; k++)
        if (plus[k])
            argument[n++] = row->entry[k].index;
    for (unsigned k = 0; k < row->n; k++)
        if (minus[k])
            argument[n++] = row->entry[k].index;
    return pass_call_inlined(p, push_of(p, general, n_plus, n_minus), n, argument, of);
}

value pass_index_of(struct pass *p, value v)
{
    if (LLVMIsAConstant(v))
        return p->zero;
    const struct known *known = pass_known(p, v);
    if (known->index)
        return known->index;
    if (!known->row)
        return p->zero;
    value index = pass_record_row(p, known->row, v);
    return pass_known(p, v)->index = index;
}

value pass_index_recorded(struct pass *p, value v)
{
    value index = LLVMIsAConstant(v) ? NULL : pass_known(p, v)->index;
    return index ? index : p->zero;
}

void pass_row_of(struct pass *p, value v, struct row *row)
{
    row->n = 0;
    if (LLVMIsAConstant(v))
        return;
    const struct known *known = pass_known(p, v);
    if (known->index && known->index != p->zero)
        *row = (struct row){.n = 1, .entry = {{.index = known->index}}};
    else if (!known->index && known->row)
        *row = *known->row;
}

bool pass_is_active(struct pass *p, value v)
{
    struct row row;
    pass_row_of(p, v, &row);
    return row.n > 0;
}

static value product(struct pass *p, value a, value b)
{
    return !a ? b : !b ? a : LLVMBuildFMul(p->build, a, b, "");
}

/* entry += partial, or minus that; partial NULL: 1. */
static void entry_add(struct pass *p, struct entry *entry, value partial, bool negative)
{
    value one = pass_real_number(p, 1);
    value had = entry->partial ? entry->partial : one, more = partial ? partial : one;
    entry->partial = entry->negative == negative ? LLVMBuildFAdd(p->build, had, more, "")
                                                 : LLVMBuildFSub(p->build, had, more, "");
}

/* How many entries the two have together. Where rows are recorded it is enough that there are not
 * too many: what is too long becomes a record of its own. */
static unsigned joined_count(const struct pass *p, const struct row *row, const struct row *more)
{
    unsigned n = row->n + more->n;
    for (unsigned k = 0; k < more->n && p->derives; k++)
        for (unsigned at = 0; at < row->n; at++)
            n -= row->entry[at].index == more->entry[k].index;
    return n;
}

void pass_row_add(struct pass *p, struct row *row, value v, value partial, bool negative)
{
    struct row more;
    pass_row_of(p, v, &more);
    if (joined_count(p, row, &more) > ROW_ROOM) { /* what is too long becomes a record of its own */
        pass_index_of(p, v);
        pass_row_of(p, v, &more);
    }
    if (joined_count(p, row, &more) > ROW_ROOM) {
        value index = pass_record_row(p, row, v);
        *row = (struct row){.n = 1, .entry = {{.index = index}}};
    }
    for (unsigned k = 0; k < more.n; k++) {
        const struct entry *e = &more.entry[k];
        value scaled = product(p, e->partial, partial);
        unsigned at = 0;
        while (at < row->n && row->entry[at].index != e->index)
            at++;
        if (at < row->n)
            entry_add(p, &row->entry[at], scaled, e->negative != negative);
        else
            row->entry[row->n++] = (struct entry){scaled, e->index, e->negative != negative};
    }
}
