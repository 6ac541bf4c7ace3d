/* pass_regions.c: a nest of several loops is one record where that can be.
 *
 * A region is a counted loop with other counted loops in it, one behind the other or one in the
 * other, whose calls have rules and which reads and writes doubles at places that are formulas of
 * rounds. As pass_loops.c has it for a single loop there is a second way through it, without a
 * statement. The second way writes down what the way back needs and cannot compute again: values
 * before they are overwritten, results of functions, conditions, which way was taken. Each loop
 * has a part of that memory, in which a value of all its rounds is an array; parts are put one
 * behind the other as loops are entered.
 *
 * The way back is a function made here: the loops backwards, with an adjoint for each floating
 * value, and one for each number in memory, which moves with its place. So a number that is
 * written and read in every round is right by construction. Arrays that are only read are kept by
 * the record as they were. Another function says, before anything is run, where the region reads
 * and writes, and how much the second way writes down.
 *
 * Invariant: groups, which are the arrays that the pass tells apart, do not meet: that is asked at
 * run time (plain/runtime/plain_region.c). What lies in gaps between rows keeps its names.
 */
#include "pass_regions.h"
#include "pass_derive.h"
#include "pass_search.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    REGIONS_ROOM = 16,
    REGION_VALUES = 768,
    REGION_SLOTS = 96,
    REGION_SCALARS = 24,
    REGION_MADE = 512, /* what is made once in a block */
    /* Words of a call's memory, as in struct plain_region_call; then of each group. */
    CALL_FIRST = 0,
    CALL_KEPT,
    CALL_TOP,
    CALL_SAVED,
    CALL_GROUPS,
    GROUP_WORDS = 4,
    /* Words that the way back is given, as in struct region_sweep; then of each group. */
    SWEEP_WORDS = 0,
    SWEEP_SCALARS,
    SWEEP_KEPT,
    SWEEP_TOP,
    SWEEP_DSCALARS,
    SWEEP_DRESULTS,
    SWEEP_GROUPS
};

/* What the second way writes down of each round of a loop. */
struct region_slot {
    value of; /* a value of the region; or a block, of which it is how that was reached */
    unsigned loop, number;
};

struct pass_region {
    struct pass_found_region *at;
    value scalar[REGION_SCALARS];
    value given[REGION_SCALARS]; /* stores of them for the runtime */
    unsigned n_scalars;
    struct region_slot slot[REGION_SLOTS];
    unsigned n_slots, n_slots_of[REGION_LOOPS];
    bool is_kept[REGION_GROUPS];
    uint64_t of[REGION_GROUPS + REGION_RESULTS]; /* groups, and scalars, that something is of */
    value reverse, inspect, begin, end, flag, result_fast[REGION_RESULTS];
    LLVMBasicBlockRef look, enter, leave, fast[REGION_BLOCKS];
    LLVMMetadataRef line;
};

struct regions {
    unsigned n;
    value memory;
    struct pass_found_region *found;
    struct pass_region region[];
};

/* ---- which regions ---- */

static bool is_scope(value v)
{
    return LLVMIsACallInst(v) &&
           strcmp(pass_name_of(LLVMGetCalledValue(v)), "llvm.experimental.noalias.scope.decl") == 0;
}

static bool instruction_is_wanted(value v)
{
    return is_scope(v) || pass_loop_takes(v);
}

static int block_number(const struct pass_region *r, LLVMBasicBlockRef block)
{
    for (unsigned k = 0; k < r->at->n_blocks; k++)
        if (r->at->block[k].block == block)
            return (int)k;
    return -1;
}

/* The block of a value of the region; -1: it is from before. */
static int block_of_value(const struct pass_region *r, value v)
{
    return LLVMIsAInstruction(v) ? block_number(r, LLVMGetInstructionParent(v)) : -1;
}

static int region_access(const struct pass_region *r, value v)
{
    for (unsigned k = 0; k < r->at->n_accesses; k++)
        if (r->at->access[k].instruction == v)
            return (int)k;
    return -1;
}

static bool is_in_loop(const struct pass_region *r, unsigned loop, unsigned outer)
{
    for (int l = (int)loop; l >= 0; l = r->at->loop[l].parent)
        if (l == (int)outer)
            return true;
    return false;
}

static bool region_scalar_add(struct pass_region *r, value v)
{
    if (LLVMIsAConstant(v) || block_of_value(r, v) >= 0)
        return true;
    for (unsigned k = 0; k < r->n_scalars; k++)
        if (r->scalar[k] == v)
            return true;
    if (r->n_scalars == REGION_SCALARS)
        return false;
    r->scalar[r->n_scalars++] = v;
    return true;
}

static unsigned values_of_instruction(value v)
{
    return LLVMIsAPHINode(v) ? LLVMCountIncoming(v) : pass_operands_of(v);
}

static value value_in(value v, unsigned k)
{
    return LLVMIsAPHINode(v) ? LLVMGetIncomingValue(v, k) : LLVMGetOperand(v, k);
}

/* The numbers from before. */
static bool region_look(struct pass_region *r)
{
    for (unsigned b = 0; b < r->at->n_blocks; b++)
        for (value v = LLVMGetFirstInstruction(r->at->block[b].block); v;
             v = LLVMGetNextInstruction(v))
            for (unsigned k = 0; k < values_of_instruction(v) && !LLVMIsABranchInst(v); k++) {
                value of = value_in(v, k);
                if (pass_is_double(of) && !region_scalar_add(r, of))
                    return false;
            }
    return true;
}

/* ---- what results are of ---- */

struct origins {
    value v[REGION_VALUES];
    uint64_t of[REGION_VALUES];
    unsigned n;
};

static uint64_t origins_of_value(const struct pass_region *r, const struct origins *o, value v)
{
    for (unsigned k = 0; k < r->n_scalars; k++)
        if (r->scalar[k] == v)
            return UINT64_C(1) << (REGION_GROUPS + k);
    for (unsigned k = 0; k < o->n; k++)
        if (o->v[k] == v)
            return o->of[k];
    return 0;
}

/* Which groups and scalars each written group, and each result, may depend on. */
static bool region_origins(struct pass_region *r)
{
    struct origins *o = base_calloc(1, sizeof *o);
    bool fits = true;
    for (bool more = true; more && fits;) {
        more = false;
        for (unsigned b = 0; b < r->at->n_blocks; b++)
            for (value v = LLVMGetFirstInstruction(r->at->block[b].block); v && fits;
                 v = LLVMGetNextInstruction(v)) {
                const int access = region_access(r, v);
                const bool is_write = access >= 0 && r->at->access[access].is_write;
                if (!is_write && !pass_is_double(v))
                    continue;
                uint64_t of = 0;
                for (unsigned k = 0; k < values_of_instruction(v); k++)
                    of |= origins_of_value(r, o, value_in(v, k));
                const unsigned group = access >= 0 ? r->at->access[access].group : 0;
                if (is_write) {
                    more |= (of & ~r->of[group]) != 0;
                    r->of[group] |= of;
                    continue;
                }
                if (access >= 0)
                    of = r->of[group] | UINT64_C(1) << group;
                unsigned at = 0;
                while (at < o->n && o->v[at] != v)
                    at++;
                fits = at < REGION_VALUES;
                if (fits && at == o->n) {
                    o->v[o->n] = v;
                    o->of[o->n++] = 0;
                }
                more |= fits && (of & ~o->of[at]) != 0;
                if (fits)
                    o->of[at] |= of;
            }
    }
    for (unsigned k = 0; k < r->at->n_results; k++)
        r->of[REGION_GROUPS + k] = origins_of_value(r, o, r->at->result[k]);
    free(o);
    return fits;
}

/* ---- formulas ---- */

/* Something that a block already has. */
struct made {
    LLVMBasicBlockRef where;
    value of, made;
    unsigned node; /* if of is NULL */
};

/* One of the three places where code of the region is made. */
struct maker {
    struct pass_region *region;
    value function;
    value unknown[REGION_UNKNOWNS]; /* i64 */
    value counter[REGION_LOOPS];    /* i64, or a slot of it */
    value cell[REGION_CELLS];       /* i64, or a slot of it */
    bool has_slots;                 /* counters and cells are slots */
    struct made made[REGION_MADE];
    unsigned n_made;
    bool no_room;
    /* of the way back */
    value kept, trips[REGION_LOOPS], chunk[REGION_LOOPS], pop[REGION_LOOPS], top;
    value scalar[REGION_SCALARS];
    value values[REGION_GROUPS], adjoints[REGION_GROUPS];
    LLVMBasicBlockRef entry, way_in[REGION_LOOPS], first[REGION_BLOCKS], last[REGION_BLOCKS];
    value number[REGION_VALUES], adjoint[REGION_VALUES]; /* floating values, and slots */
    unsigned n_numbers;
};

static value made_find(const struct maker *m, LLVMBasicBlockRef where, value of, unsigned node)
{
    for (unsigned k = m->n_made; k-- > 0;)
        if (m->made[k].where == where && m->made[k].of == of && m->made[k].node == node)
            return m->made[k].made;
    return NULL;
}

static value made_add(struct maker *m, LLVMBasicBlockRef where, value of, unsigned node, value v)
{
    /* Without room it is made again. */
    if (m->n_made == REGION_MADE)
        m->n_made = 0;
    m->made[m->n_made++] = (struct made){where, of, v, node};
    return v;
}

static value cell_at(struct pass *p, struct maker *m, unsigned cell, int block);

static value as_bits(struct pass *p, value v, unsigned bits)
{
    if (LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMPointerTypeKind)
        v = LLVMBuildPtrToInt(p->build, v, p->i64, "");
    type to = LLVMIntTypeInContext(p->context, bits);
    return LLVMBuildIntCast2(p->build, v, to, 0, "");
}

/* A node, at the end of the block where the builder is. `block`: of the region, where the node is
 * used. */
static value node_make(struct pass *p, struct maker *m, unsigned node, int block)
{
    const struct pass_node *n = &m->region->at->node[node];
    LLVMBuilderRef b = p->build;
    LLVMBasicBlockRef where = LLVMGetInsertBlock(b);
    value made = made_find(m, where, NULL, node);
    if (made)
        return made;
    type of = LLVMIntTypeInContext(p->context, n->bits);
    value x[3] = {NULL};
    const unsigned operands = n->kind <= NODE_CELL                            ? 0
                              : n->kind == NODE_CHOICE                        ? 3
                              : n->kind >= NODE_ZEXT && n->kind <= NODE_TRUNC ? 1
                                                                              : 2;
    for (unsigned k = 0; k < operands; k++)
        x[k] = node_make(p, m, n->of[k], block);
    /* Parts of one sum may be a pointer and an integer: both are i64. */
    static const LLVMIntPredicate greater[] = {LLVMIntSGT, LLVMIntUGT, LLVMIntSLT, LLVMIntULT};
    switch (n->kind) {
    case NODE_CONSTANT:
        return LLVMConstInt(of, (unsigned long long)n->number, 1);
    case NODE_UNKNOWN:
        made = as_bits(p, m->unknown[n->number], n->bits);
        break;
    case NODE_CELL:
        made = cell_at(p, m, (unsigned)n->number, block);
        break;
    case NODE_STEPS: {
        value i = m->counter[n->number];
        if (m->has_slots)
            i = LLVMBuildLoad2(b, p->i64, i, "");
        made = LLVMBuildAdd(b, x[0], LLVMBuildMul(b, as_bits(p, i, n->bits), x[1], ""), "");
        break;
    }
    case NODE_ADD:
        made = LLVMBuildAdd(b, x[0], x[1], "");
        break;
    case NODE_MUL:
        made = LLVMBuildMul(b, x[0], x[1], "");
        break;
    case NODE_UDIV:
        made = LLVMBuildUDiv(b, x[0], x[1], "");
        break;
    case NODE_SMAX:
    case NODE_UMAX:
    case NODE_SMIN:
    case NODE_UMIN: {
        value is = LLVMBuildICmp(b, greater[n->kind - NODE_SMAX], x[0], x[1], "");
        made = LLVMBuildSelect(b, is, x[0], x[1], "");
        break;
    }
    case NODE_ZEXT:
        made = LLVMBuildZExt(b, x[0], of, "");
        break;
    case NODE_SEXT:
        made = LLVMBuildSExt(b, x[0], of, "");
        break;
    case NODE_TRUNC:
        made = LLVMBuildTrunc(b, x[0], of, "");
        break;
    case NODE_COMPARE:
        made = LLVMBuildICmp(b, (LLVMIntPredicate)n->number, x[0], x[1], "");
        break;
    case NODE_CHOICE:
        made = LLVMBuildSelect(b, x[0], x[1], x[2], "");
        break;
    }
    return made_add(m, where, NULL, node, made);
}

/* How often a loop runs, where the builder is, before it. */
static value trips_make(struct pass *p, struct maker *m, unsigned loop)
{
    const struct pass_region_loop *l = &m->region->at->loop[loop];
    value taken = as_bits(p, node_make(p, m, l->taken, l->before), 64);
    return LLVMBuildAdd(p->build, taken, pass_number64(p, 1), "");
}

static value slot_make(struct pass *p, const struct maker *m, type of)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->build);
    LLVMPositionBuilderBefore(p->build, LLVMGetFirstInstruction(m->entry));
    value slot = LLVMBuildAlloca(p->build, of, "");
    LLVMPositionBuilderAtEnd(p->build, here);
    return slot;
}

static void to_end_of(struct pass *p, LLVMBasicBlockRef block)
{
    value last = LLVMGetBasicBlockTerminator(block);
    if (last)
        LLVMPositionBuilderBefore(p->build, last);
    else
        LLVMPositionBuilderAtEnd(p->build, block);
}

/* ---- what is written down ---- */

static const struct region_slot *slot_of(struct pass_region *r, value of, unsigned loop)
{
    for (unsigned k = 0; k < r->n_slots; k++)
        if (r->slot[k].of == of)
            return &r->slot[k];
    if (r->n_slots == REGION_SLOTS)
        return NULL;
    r->slot[r->n_slots] = (struct region_slot){of, loop, r->n_slots_of[loop]++};
    return &r->slot[r->n_slots++];
}

/* Where a slot is in this round of its loop. */
static value slot_place(struct pass *p, struct maker *m, const struct region_slot *s)
{
    LLVMBuilderRef b = p->build;
    value i = m->counter[s->loop];
    if (m->has_slots)
        i = LLVMBuildLoad2(b, p->i64, i, "");
    value begin = LLVMBuildMul(b, m->trips[s->loop], pass_number64(p, s->number), "");
    value bytes = LLVMBuildShl(b, LLVMBuildAdd(b, begin, i, ""), pass_number64(p, 3), "");
    return pass_pointer_at(p, p->i8, m->kept, LLVMBuildAdd(b, m->chunk[s->loop], bytes, ""));
}

/* Whether the second way writes down behind a loop where its part is: else that is right before. */
static bool has_word(const struct pass_region *r, unsigned loop)
{
    return loop > 0 && !r->at->loop[loop].is_innermost && r->n_slots_of[loop] > 0;
}

/* ---- the way back: values ---- */

/* Where a value of a loop is made for use in a block: at its begin, or, if it is of a loop around
 * that one, before the loop that goes there. */
static LLVMBasicBlockRef place_of(const struct maker *m, unsigned loop, int block)
{
    unsigned l = m->region->at->block[block].loop;
    if (l == loop)
        return m->first[block];
    while (m->region->at->loop[l].parent != (int)loop)
        l = (unsigned)m->region->at->loop[l].parent;
    return m->way_in[l];
}

static value kept_value(struct pass *p, struct maker *m, value v, unsigned loop, type of)
{
    const struct region_slot *s = slot_of(m->region, v, loop);
    if (!s) {
        m->no_room = true;
        return LLVMGetUndef(of);
    }
    value at = slot_place(p, m, s);
    if (LLVMGetTypeKind(of) == LLVMDoubleTypeKind)
        return pass_load(p, of, at, 8, p->tag_tape);
    return LLVMBuildIntCast2(p->build, pass_load(p, p->i64, at, 8, p->tag_tape), of, 0, "");
}

/* A cell where the builder is: in the function that goes before and in the second way it is there;
 * on the way back it was written down. */
static value cell_at(struct pass *p, struct maker *m, unsigned cell, int block)
{
    if (!m->kept)
        return LLVMBuildLoad2(p->build, p->i64, m->cell[cell], "");
    if (!m->has_slots)
        return as_bits(p, m->cell[cell], 64);
    const struct pass_cell *c = &m->region->at->cell[cell];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->build);
    LLVMBasicBlockRef place =
        m->region->at->block[block].loop == c->loop ? here : place_of(m, c->loop, block);
    value made = made_find(m, place, c->phi, 0);
    if (made)
        return made;
    to_end_of(p, place);
    made = made_add(m, place, c->phi, 0, kept_value(p, m, c->phi, c->loop, p->i64));
    to_end_of(p, here);
    return made;
}

static bool is_cheap(value v)
{
    if (!LLVMIsACallInst(v))
        return true;
    const char *name = pass_name_of(LLVMGetCalledValue(v));
    return strncmp(name, "llvm.fmuladd", 12) == 0 || strncmp(name, "llvm.fabs", 9) == 0 ||
           strncmp(name, "llvm.sqrt", 9) == 0;
}

/* A value of the program as the round had it. `block`: where it is used. */
static value value_again(struct pass *p, struct maker *m, value v, int block)
{
    struct pass_region *r = m->region;
    const int own = block_of_value(r, v);
    if (own < 0) {
        for (unsigned k = 0; k < r->n_scalars; k++)
            if (r->scalar[k] == v)
                return m->scalar[k];
        if (!LLVMIsAConstant(v))
            m->no_room = true; /* a condition from before */
        return v;
    }
    const unsigned loop = r->at->block[own].loop;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->build), place = place_of(m, loop, block);
    value made = made_find(m, place, v, 0);
    if (made)
        return made;
    const int access = region_access(r, v);
    const unsigned group = access >= 0 ? r->at->access[access].group : 0;
    if (access >= 0 && !r->at->group[group].is_written) {
        to_end_of(p, place);
        value offset = node_make(p, m, r->at->access[access].offset, block);
        r->is_kept[group] = true;
        made = pass_load(p, p->real, pass_pointer_at(p, p->i8, m->values[group], offset), 8,
                         p->tag_thread);
    } else if (access >= 0 || LLVMIsAPHINode(v) || !pass_is_double(v) || !is_cheap(v)) {
        to_end_of(p, place);
        made = kept_value(p, m, v, loop, LLVMTypeOf(v));
    } else {
        value with[3] = {NULL};
        const unsigned n = pass_operands_of(v);
        for (unsigned k = 0; k < n; k++)
            with[k] = value_again(p, m, LLVMGetOperand(v, k), block);
        to_end_of(p, place);
        made = LLVMInstructionClone(v);
        LLVMInsertIntoBuilderWithName(p->build, made, "");
        LLVMInstructionSetDebugLoc(made, LLVMGetCurrentDebugLocation2(p->build));
        for (unsigned k = 0; k < n; k++)
            LLVMSetOperand(made, k, with[k]);
    }
    made_add(m, place, v, 0, made);
    to_end_of(p, here);
    return made;
}

/* ---- the way back: adjoints ---- */

/* The number of a floating value, which has an adjoint; -1: it is a constant. */
static int number_of(struct pass *p, struct maker *m, value v)
{
    if (LLVMIsAConstant(v))
        return -1;
    for (unsigned k = 0; k < m->n_numbers; k++)
        if (m->number[k] == v)
            return (int)k;
    if (m->n_numbers == REGION_VALUES) {
        m->no_room = true;
        return -1;
    }
    m->number[m->n_numbers] = v;
    m->adjoint[m->n_numbers] = slot_make(p, m, p->real);
    return (int)m->n_numbers++;
}

/* Sums of adjoints may be grouped otherwise. */
static value sum_freely(value sum)
{
    if (LLVMIsAInstruction(sum))
        LLVMSetFastMathFlags(sum, LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros);
    return sum;
}

static void adjoint_add(struct pass *p, struct maker *m, value v, value part, bool negative)
{
    const int number = number_of(p, m, v);
    if (number < 0)
        return;
    value slot = m->adjoint[number], had = LLVMBuildLoad2(p->build, p->real, slot, "");
    LLVMBuildStore(p->build,
                   sum_freely(negative ? LLVMBuildFSub(p->build, had, part, "")
                                       : LLVMBuildFAdd(p->build, had, part, "")),
                   slot);
}

/* The adjoint, which is 0 from then on. */
static value adjoint_take(struct pass *p, struct maker *m, value v)
{
    const int number = number_of(p, m, v);
    if (number < 0)
        return pass_real_number(p, 0);
    value had = LLVMBuildLoad2(p->build, p->real, m->adjoint[number], "");
    LLVMBuildStore(p->build, pass_real_number(p, 0), m->adjoint[number]);
    return had;
}

static value stand_in(struct pass *p, type of)
{
    return LLVMBuildFreeze(p->build, LLVMGetUndef(of), "");
}

/* Takes out what has no user from an instruction on to the end of its block. */
static void clean_from(value first)
{
    for (value v = LLVMGetLastInstruction(LLVMGetInstructionParent(first)), before; v; v = before) {
        before = v == first ? NULL : LLVMGetPreviousInstruction(v);
        if (!LLVMGetFirstUse(v) && !LLVMIsAStoreInst(v) && !LLVMIsATerminatorInst(v))
            LLVMInstructionEraseFromParent(v);
    }
}

/* What the adjoint of a formula gives to its operands. The row is made in terms of numbers that
 * stand for them; those that derivatives need are then found. */
static void formula_back(struct pass *p, struct maker *m, value v, int block)
{
    const unsigned n = pass_operands_of(v);
    value of[3] = {NULL}, with[3] = {NULL};
    if (n > 3) {
        m->no_room = true;
        return;
    }
    value dy = adjoint_take(p, m, v);
    value mark = stand_in(p, p->real), first = mark;
    for (unsigned k = 0; k < n; k++) {
        of[k] = LLVMGetOperand(v, k);
        if (LLVMIsAConstant(of[k]))
            continue;
        for (unsigned j = 0; j < k; j++)
            if (of[j] == of[k])
                with[k] = with[j];
        if (with[k])
            continue;
        with[k] = stand_in(p, LLVMTypeOf(of[k]));
        if (pass_is_double(of[k])) {
            const int number = number_of(p, m, of[k]);
            pass_known(p, with[k])->index = pass_number32(p, (uint32_t)number + 1);
        }
    }
    value again = LLVMInstructionClone(v);
    LLVMInsertIntoBuilderWithName(p->build, again, "");
    LLVMInstructionSetDebugLoc(again, LLVMGetCurrentDebugLocation2(p->build));
    for (unsigned k = 0; k < n; k++)
        if (with[k])
            LLVMSetOperand(again, k, with[k]);
    pass_derive_row(p, again);
    struct row row;
    pass_row_of(p, again, &row);
    for (unsigned k = 0; k < row.n; k++) {
        const uint64_t number = LLVMConstIntGetZExtValue(row.entry[k].index) - 1;
        adjoint_add(p, m, m->number[number], pass_part_of(p, dy, row.entry[k].partial),
                    row.entry[k].negative);
    }
    pass_known_clear(p);
    /* An instruction that stays, so that the rest can be taken out behind it. */
    clean_from(first);
    /* Those of a derivative: the result, if it is dear, was written down. */
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->build);
    bool there = false, other[3] = {false};
    for (value at = LLVMGetFirstInstruction(here); at; at = LLVMGetNextInstruction(at)) {
        there |= at == again;
        for (unsigned k = 0; k < n; k++)
            other[k] |= at == with[k];
    }
    if (there && !is_cheap(v)) {
        LLVMReplaceAllUsesWith(again, value_again(p, m, v, block));
        LLVMInstructionEraseFromParent(again);
        for (unsigned k = 0; k < n; k++)
            if (other[k] && !LLVMGetFirstUse(with[k])) {
                for (unsigned j = k + 1; j < n; j++)
                    other[j] &= with[j] != with[k];
                LLVMInstructionEraseFromParent(with[k]);
                other[k] = false;
            }
    }
    for (unsigned k = 0; k < n; k++) {
        if (!other[k])
            continue;
        for (unsigned j = k + 1; j < n; j++)
            other[j] &= with[j] != with[k];
        LLVMReplaceAllUsesWith(with[k], value_again(p, m, of[k], block));
        LLVMInstructionEraseFromParent(with[k]);
    }
    to_end_of(p, here);
}

static value adjoint_place(struct pass *p, struct maker *m, int access, int block)
{
    const struct pass_region_access *a = &m->region->at->access[access];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->build);
    to_end_of(p, m->first[block]);
    value offset = node_make(p, m, a->offset, block);
    value at = pass_pointer_at(p, p->i8, m->adjoints[a->group], offset);
    to_end_of(p, here);
    return at;
}

static void instruction_back(struct pass *p, struct maker *m, value v, int block)
{
    LLVMBuilderRef b = p->build;
    const int access = region_access(m->region, v);
    if (access >= 0) {
        value at = adjoint_place(p, m, access, block);
        value had = pass_load(p, p->real, at, 8, p->tag_thread);
        if (m->region->at->access[access].is_write) {
            pass_store(p, pass_real_number(p, 0), at, 8, p->tag_thread);
            adjoint_add(p, m, LLVMGetOperand(v, 0), had, false);
            return;
        }
        value sum = LLVMBuildFAdd(b, had, adjoint_take(p, m, v), "");
        pass_store(p, sum_freely(sum), at, 8, p->tag_thread);
    } else if (pass_has_rule(v) && pass_is_double(v)) {
        formula_back(p, m, v, block);
    }
}

/* The adjoints of a block's phis go to what they are from there. */
static void phis_back(struct pass *p, struct maker *m, int block, LLVMBasicBlockRef from,
                      value *adjoint)
{
    unsigned k = 0;
    for (value v = LLVMGetFirstInstruction(m->region->at->block[block].block);
         v && LLVMIsAPHINode(v); v = LLVMGetNextInstruction(v))
        if (pass_is_double(v))
            adjoint_add(p, m, pass_incoming(v, from), adjoint[k++], false);
}

static LLVMBasicBlockRef block_made(struct pass *p, const struct maker *m, const char *name)
{
    return LLVMAppendBasicBlockInContext(p->context, m->function, name);
}

/* Where the way back goes on from a block that this one leads to. */
static LLVMBasicBlockRef way_back_to(const struct maker *m, int from, int block)
{
    const struct pass_found_region *at = m->region->at;
    for (unsigned l = 1; l < at->n_loops; l++)
        if (at->loop[l].behind == block && (int)at->loop[l].latch == from)
            return m->way_in[l];
    return m->first[from];
}

/* The end of a block on the way back, which is its begin. */
static void block_leaves(struct pass *p, struct maker *m, int block, LLVMBasicBlockRef end)
{
    const struct pass_found_region *at = m->region->at;
    const struct pass_region_block *of = &at->block[block];
    LLVMBuilderRef b = p->build;
    value adjoint[REGION_VALUES] = {NULL};
    unsigned n = 0;
    LLVMBasicBlockRef to[REGION_FROM] = {NULL}, edge[REGION_FROM] = {NULL},
                      from[REGION_FROM] = {NULL};
    for (value v = LLVMGetFirstInstruction(of->block); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v))
        if (pass_is_double(v) && n < REGION_VALUES)
            adjoint[n++] = adjoint_take(p, m, v);
    for (unsigned k = 0; k < of->n_from; k++) {
        edge[k] = block_made(p, m, "edge");
        from[k] = of->from[k] < 0 ? at->before : at->block[of->from[k]].block;
        to[k] = of->from[k] < 0 ? end : way_back_to(m, of->from[k], block);
    }
    if (of->is_head) {
        value i = LLVMBuildLoad2(b, p->i64, m->counter[of->loop], "");
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, i, pass_number64(p, 0), ""), edge[0],
                        edge[1]);
        LLVMPositionBuilderAtEnd(b, edge[0]);
        if (of->loop > 0) {
            value had = LLVMBuildLoad2(b, p->i64, m->top, "");
            /* Replaced where nothing of this loop is written down. */
            value top = LLVMBuildSelect(b, m->pop[of->loop], m->chunk[of->loop], had, "");
            LLVMBuildStore(b, top, m->top);
        }
        LLVMPositionBuilderAtEnd(b, edge[1]);
        LLVMBuildStore(b, LLVMBuildSub(b, i, pass_number64(p, 1), ""), m->counter[of->loop]);
    } else if (of->n_from == 1) {
        LLVMBuildBr(b, edge[0]);
    } else if (of->which >= 0) {
        value yes = node_make(p, m, (unsigned)of->which, block);
        LLVMBuildCondBr(b, yes, edge[of->from_yes], edge[1 - of->from_yes]);
    } else {
        value which = kept_value(p, m, LLVMBasicBlockAsValue(of->block), of->loop, p->i64);
        value choice = LLVMBuildSwitch(b, which, edge[0], of->n_from - 1);
        for (unsigned k = 1; k < of->n_from; k++)
            LLVMAddCase(choice, pass_number64(p, k), edge[k]);
    }
    for (unsigned k = 0; k < of->n_from; k++) {
        LLVMPositionBuilderAtEnd(b, edge[k]);
        phis_back(p, m, block, from[k], adjoint);
        LLVMBuildBr(b, to[k]);
    }
}

static void block_back(struct pass *p, struct maker *m, int block, LLVMBasicBlockRef end)
{
    LLVMPositionBuilderAtEnd(p->build, m->last[block]);
    for (value v = LLVMGetLastInstruction(m->region->at->block[block].block); v;
         v = LLVMGetPreviousInstruction(v))
        if (!LLVMIsAPHINode(v) && !is_scope(v))
            instruction_back(p, m, v, block);
    block_leaves(p, m, block, end);
}

/* Before a loop on the way back: how often, and where its part of what was written down is. */
static void loop_back(struct pass *p, struct maker *m, unsigned loop)
{
    LLVMBuilderRef b = p->build;
    const struct pass_region_loop *l = &m->region->at->loop[loop];
    LLVMPositionBuilderAtEnd(b, m->way_in[loop]);
    m->trips[loop] = trips_make(p, m, loop);
    /* Numbers of slots are known when all is made. */
    m->pop[loop] = stand_in(p, p->i1);
    if (loop == 0) {
        m->chunk[0] = pass_number64(p, 0);
    } else if (l->is_innermost) {
        value slots = stand_in(p, p->i64);
        m->chunk[loop] = LLVMBuildSub(b, LLVMBuildLoad2(b, p->i64, m->top, ""), slots, "");
    } else {
        value less =
            LLVMBuildSub(b, LLVMBuildLoad2(b, p->i64, m->top, ""), stand_in(p, p->i64), "");
        value at = pass_pointer_at(p, p->i8, m->kept, less);
        m->chunk[loop] = pass_load(p, p->i64, at, 8, p->tag_tape);
        LLVMBuildStore(b, less, m->top); /* the parts of the loops in it are before that word */
    }
    LLVMBuildStore(b, LLVMBuildSub(b, m->trips[loop], pass_number64(p, 1), ""), m->counter[loop]);
    LLVMBuildBr(b, m->first[l->latch]);
}

/* What loop_back() could not know. */
static void slots_are_known(struct pass *p, struct maker *m, unsigned loop)
{
    const struct pass_region_loop *l = &m->region->at->loop[loop];
    const unsigned slots = m->region->n_slots_of[loop];
    LLVMPositionBuilderBefore(p->build, m->pop[loop]);
    if (loop > 0) {
        value less =
            l->is_innermost ? m->chunk[loop] : LLVMGetOperand(LLVMGetOperand(m->chunk[loop], 0), 1);
        value stands = LLVMGetOperand(less, 1);
        value bytes = l->is_innermost ? LLVMBuildMul(p->build, m->trips[loop],
                                                     pass_number64(p, 8 * (uint64_t)slots), "")
                                      : pass_number64(p, slots > 0 ? 8 : 0);
        LLVMReplaceAllUsesWith(stands, bytes);
        LLVMInstructionEraseFromParent(stands);
    }
    if (loop > 0 && slots == 0)
        LLVMReplaceAllUsesWith(m->chunk[loop], pass_number64(p, 0));
    LLVMReplaceAllUsesWith(m->pop[loop], LLVMConstInt(p->i1, slots > 0, 0));
    LLVMInstructionEraseFromParent(m->pop[loop]);
}

/* ---- the way back: functions ---- */

/* Arguments of the inner function: words, scalars, kept, top, adjoints of scalars, of results; then
 * values and adjoints of each group. It tells LLVM that they do not meet. */
static void reverse_arguments(struct pass *p, struct maker *m)
{
    struct pass_region *r = m->region;
    const unsigned n = SWEEP_GROUPS + 2 * r->at->n_groups;
    type of[SWEEP_GROUPS + 2 * REGION_GROUPS];
    for (unsigned k = 0; k < n; k++)
        of[k] = k == SWEEP_TOP ? p->i64 : p->pointer;
    m->function = pass_derivatives_add(p, "ad_plain_region_derivatives_", of, n);
    const unsigned kind = LLVMGetEnumAttributeKindForName("noalias", 7);
    for (unsigned k = 0; k < n; k++)
        if (k != SWEEP_TOP)
            LLVMAddAttributeAtIndex(m->function, k + 1,
                                    LLVMCreateEnumAttribute(p->context, kind, 0));
    m->entry = block_made(p, m, "entry");
    LLVMPositionBuilderAtEnd(p->build, m->entry);
    m->kept = LLVMGetParam(m->function, SWEEP_KEPT);
    for (unsigned k = 0; k < r->at->n_unknowns; k++)
        m->unknown[k] = pass_load(
            p, p->i64, pass_byte_offset(p, LLVMGetParam(m->function, SWEEP_WORDS), 8 * (uint64_t)k),
            8, p->tag_thread);
    for (unsigned k = 0; k < r->n_scalars; k++)
        m->scalar[k] = pass_load(
            p, p->real,
            pass_byte_offset(p, LLVMGetParam(m->function, SWEEP_SCALARS), 8 * (uint64_t)k), 8,
            p->tag_thread);
    for (unsigned k = 0; k < r->at->n_groups; k++) {
        m->values[k] = LLVMGetParam(m->function, SWEEP_GROUPS + 2 * k);
        m->adjoints[k] = LLVMGetParam(m->function, SWEEP_GROUPS + 2 * k + 1);
    }
}

/* void reverse(const struct region_sweep *): calls the other. */
static value reverse_wrapper(struct pass *p, const struct maker *m)
{
    const unsigned n = SWEEP_GROUPS + 2 * m->region->at->n_groups;
    value f = pass_derivatives_add(p, "ad_plain_region_reverse_", &p->pointer, 1);
    value argument[SWEEP_GROUPS + 2 * REGION_GROUPS];
    LLVMPositionBuilderAtEnd(p->build, LLVMAppendBasicBlockInContext(p->context, f, "entry"));
    for (unsigned k = 0; k < n; k++)
        argument[k] =
            pass_load(p, k == SWEEP_TOP ? p->i64 : p->pointer,
                      pass_byte_offset(p, LLVMGetParam(f, 0), 8 * (uint64_t)k), 8, p->tag_thread);
    LLVMBuildCall2(p->build, LLVMGlobalGetValueType(m->function), m->function, argument, n, "");
    LLVMBuildRetVoid(p->build);
    return f;
}

static void reverse_end_make(struct pass *p, struct maker *m, LLVMBasicBlockRef end)
{
    struct pass_region *r = m->region;
    LLVMPositionBuilderAtEnd(p->build, end);
    for (unsigned k = 0; k < r->n_scalars; k++) {
        value at = pass_byte_offset(p, LLVMGetParam(m->function, SWEEP_DSCALARS), 8 * (uint64_t)k);
        value sum = LLVMBuildFAdd(p->build, pass_load(p, p->real, at, 8, p->tag_thread),
                                  adjoint_take(p, m, r->scalar[k]), "");
        pass_store(p, sum, at, 8, p->tag_thread);
    }
    LLVMBuildRetVoid(p->build);
}

static void region_reverse(struct pass *p, struct pass_region *r, struct maker *m)
{
    LLVMBuilderRef b = p->build;
    reverse_arguments(p, m);
    p->function = m->function;
    m->has_slots = true;
    m->top = slot_make(p, m, p->i64);
    for (unsigned l = 0; l < r->at->n_loops; l++) {
        m->counter[l] = slot_make(p, m, p->i64);
        m->way_in[l] = block_made(p, m, "loop");
    }
    for (unsigned k = 0; k < r->at->n_blocks; k++) {
        m->first[k] = block_made(p, m, "values");
        m->last[k] = block_made(p, m, "adjoints");
    }
    LLVMBasicBlockRef end = block_made(p, m, "end");
    for (unsigned l = 0; l < r->at->n_loops; l++)
        loop_back(p, m, l);
    for (int k = (int)r->at->n_blocks - 1; k >= 0; k--)
        block_back(p, m, k, end);
    reverse_end_make(p, m, end);
    for (unsigned k = 0; k < r->at->n_blocks; k++) {
        to_end_of(p, m->first[k]);
        LLVMBuildBr(b, m->last[k]);
    }
    for (unsigned l = 0; l < r->at->n_loops; l++)
        slots_are_known(p, m, l);
    /* What it begins with. */
    LLVMPositionBuilderAtEnd(b, m->entry);
    LLVMBuildStore(b, LLVMGetParam(m->function, SWEEP_TOP), m->top);
    const unsigned n = m->n_numbers;
    for (unsigned k = 0; k < n; k++)
        LLVMBuildStore(b, pass_real_number(p, 0), m->adjoint[k]);
    for (unsigned k = 0; k < r->at->n_results; k++) {
        value at = pass_byte_offset(p, LLVMGetParam(m->function, SWEEP_DRESULTS), 8 * (uint64_t)k);
        adjoint_add(p, m, r->at->result[k], pass_load(p, p->real, at, 8, p->tag_thread), false);
    }
    LLVMBuildBr(b, m->way_in[0]);
    m->no_room |= m->n_numbers > n; /* a result that has no part in the way back */
}

/* ---- what is asked before ---- */

enum { IS_NOT, IS_LINEAR, IS_OTHER };

/* How a node depends on the round of a loop. */
static int depends(const struct pass_region *r, unsigned node, unsigned loop, unsigned depth)
{
    const struct pass_node *n = &r->at->node[node];
    if (depth > 64)
        return IS_OTHER;
    int of[3] = {IS_NOT, IS_NOT, IS_NOT};
    const unsigned operands = n->kind <= NODE_CELL                            ? 0
                              : n->kind == NODE_CHOICE                        ? 3
                              : n->kind >= NODE_ZEXT && n->kind <= NODE_TRUNC ? 1
                                                                              : 2;
    for (unsigned k = 0; k < operands; k++)
        of[k] = depends(r, n->of[k], loop, depth + 1);
    const int most = of[0] > of[1] ? of[0] : of[1];
    switch (n->kind) {
    case NODE_CONSTANT:
    case NODE_UNKNOWN:
        return IS_NOT;
    case NODE_CELL: {
        const struct pass_cell *c = &r->at->cell[n->number];
        if (is_in_loop(r, loop, c->loop))
            return c->loop == loop ? IS_OTHER : IS_NOT;
        /* Steps of a cell that do not depend on the loop leave it as its begin is. */
        return depends(r, c->init, loop, depth + 1);
    }
    case NODE_STEPS:
        if (n->number != (int64_t)loop)
            return most;
        return of[0] == IS_OTHER || of[1] != IS_NOT ? IS_OTHER : IS_LINEAR;
    case NODE_ADD:
        return most;
    case NODE_MUL:
        return of[0] != IS_NOT && of[1] != IS_NOT ? IS_OTHER : most;
    case NODE_CHOICE:
        if (of[0] != IS_NOT)
            return IS_OTHER;
        return of[1] > of[2] ? of[1] : of[2];
    default:
        return most == IS_NOT ? IS_NOT : IS_OTHER;
    }
}

/* A cell's step, as long as it is what it was: of what else its next value is made. */
static int step_depends(const struct pass_region *r, const struct pass_cell *c, unsigned node,
                        unsigned loop, unsigned depth)
{
    const struct pass_node *n = &r->at->node[node];
    if (n->kind == NODE_CELL && &r->at->cell[n->number] == c)
        return IS_NOT;
    if (depth > 64)
        return IS_OTHER;
    if (n->kind == NODE_ADD || n->kind == NODE_CHOICE) {
        int most = IS_NOT;
        for (unsigned k = 0; k < (n->kind == NODE_ADD ? 2 : 3); k++) {
            const int of = step_depends(r, c, n->of[k], loop, depth + 1);
            most = of > most ? of : most;
        }
        return most;
    }
    if (n->kind == NODE_STEPS) {
        const int first = step_depends(r, c, n->of[0], loop, depth + 1);
        return n->number == (int64_t)loop || first != IS_NOT
                   ? IS_OTHER
                   : depends(r, n->of[1], loop, depth + 1);
    }
    return depends(r, node, loop, depth + 1);
}

/* Whether the first and the last round of a loop say all about where it goes, and each round is as
 * the others are. */
static bool is_regular(const struct pass_region *r, unsigned loop)
{
    const struct pass_found_region *at = r->at;
    for (unsigned l = 0; l < at->n_loops; l++)
        if (l != loop && is_in_loop(r, l, loop) && depends(r, at->loop[l].taken, loop, 0) != IS_NOT)
            return false;
    for (unsigned k = 0; k < at->n_blocks; k++)
        if (is_in_loop(r, at->block[k].loop, loop) && at->block[k].condition >= 0 &&
            depends(r, (unsigned)at->block[k].condition, loop, 0) != IS_NOT)
            return false;
    for (unsigned k = 0; k < at->n_cells; k++) {
        const struct pass_cell *c = &at->cell[k];
        if (is_in_loop(r, c->loop, loop) &&
            (c->loop == loop || depends(r, c->init, loop, 0) == IS_OTHER ||
             step_depends(r, c, c->next, loop, 0) != IS_NOT))
            return false;
    }
    for (unsigned k = 0; k < at->n_accesses; k++) {
        const struct pass_region_access *a = &at->access[k];
        const int block = block_of_value(r, a->instruction);
        if (is_in_loop(r, at->block[block].loop, loop) &&
            depends(r, a->offset, loop, 0) == IS_OTHER)
            return false;
    }
    return true;
}

/* Words of what it says, as struct region_spans in plain/runtime/plain_region.c. */
enum { SPAN_ROUNDS, SPAN_LOOPS, SPAN_WORDS, SPAN_FLAGS, SPAN_GROUPS };
enum {
    SPARSE = 8, /* a flag beside those of odd places */
    MANY = 16,  /* likewise: more rounds to go through than ROUNDS_TRIED */
    ROUNDS_TRIED = 1 << 22,
    GROUP_SPANS = 8,
    SPAN_GAPS = SPAN_GROUPS + GROUP_SPANS * REGION_GROUPS,
    SPAN_N_ROWS,
    SPAN_ROWS,
    ROWS = 16, /* writes of groups whose rows may leave gaps */
    ROW_WORDS = 5
};

struct inspector {
    struct maker m;
    value rounds, loops, words, flags; /* slots */
    value left;                        /* of the rounds that may be gone through */
    value low[REGION_GROUPS], high[REGION_GROUPS], touched[REGION_GROUPS];
    value lowest[REGION_GROUPS], highest[REGION_GROUPS]; /* where it is not known that it goes */
    /* What the region has surely written so far, and whether it reads anything else. */
    value from[REGION_GROUPS], to[REGION_GROUPS], needs[REGION_GROUPS];
    value runs[REGION_BLOCKS]; /* i1 */
    /* Writes whose places are told one by one: where from and to, and, where rows leave gaps, from
     * one row to the next. */
    unsigned n_rows, row[ROWS];
    value row_low[ROWS], row_high[ROWS], row_step[ROWS], row_bytes[ROWS], gaps;
};

static void slot_add(struct pass *p, type of, value slot, value x)
{
    value had = LLVMBuildLoad2(p->build, of, slot, "");
    LLVMBuildStore(p->build,
                   of == p->real ? LLVMBuildFAdd(p->build, had, x, "")
                                 : LLVMBuildOr(p->build, had, x, ""),
                   slot);
}

/* Steps by which a place moves are whole doubles. */
static void steps_inspect(struct pass *p, struct inspector *s, unsigned node, int block)
{
    const struct pass_node *n = &s->m.region->at->node[node];
    if (n->kind == NODE_STEPS && n->bits == 64) {
        value odd =
            LLVMBuildAnd(p->build, node_make(p, &s->m, n->of[1], block), pass_number64(p, 7), "");
        slot_add(p, p->i64, s->flags, odd);
        steps_inspect(p, s, n->of[0], block);
    } else if (n->kind == NODE_ADD) {
        steps_inspect(p, s, n->of[0], block);
        steps_inspect(p, s, n->of[1], block);
    }
}

/* A place that is touched where `runs` holds: slots of the lowest and the highest. */
static void span_add(struct pass *p, value runs, value offset, value at_low, value at_high)
{
    LLVMBuilderRef b = p->build;
    value low = LLVMBuildLoad2(b, p->i64, at_low, ""),
          high = LLVMBuildLoad2(b, p->i64, at_high, "");
    value lower = LLVMBuildAnd(b, runs, LLVMBuildICmp(b, LLVMIntSLT, offset, low, ""), "");
    value higher = LLVMBuildAnd(b, runs, LLVMBuildICmp(b, LLVMIntSGT, offset, high, ""), "");
    LLVMBuildStore(b, LLVMBuildSelect(b, lower, offset, low, ""), at_low);
    LLVMBuildStore(b, LLVMBuildSelect(b, higher, offset, high, ""), at_high);
}

/* ---- rows with gaps between them ---- */

static int row_of(const struct inspector *s, unsigned access)
{
    for (unsigned k = 0; k < s->n_rows; k++)
        if (s->row[k] == access)
            return (int)k;
    return -1;
}

/* Groups with a write of rows: all their writes are told one by one, if there is room. */
static void rows_find(struct inspector *s)
{
    const struct pass_found_region *at = s->m.region->at;
    for (unsigned g = 0; g < at->n_groups; g++) {
        unsigned n = 0;
        bool of_rows = false;
        for (unsigned k = 0; k < at->n_accesses; k++)
            if (at->access[k].is_write && at->access[k].group == g) {
                n++;
                of_rows |= at->access[k].n_levels == 2;
            }
        if (!of_rows || s->n_rows + n > ROWS)
            continue;
        for (unsigned k = 0; k < at->n_accesses; k++)
            if (at->access[k].is_write && at->access[k].group == g)
                s->row[s->n_rows++] = k;
    }
}

/* Whether a write of rows, if it is run, is of each row, and each is as long as the others. */
static bool is_comb(const struct pass_region *r, const struct pass_region_access *a)
{
    const struct pass_found_region *at = r->at;
    if (!at->block[block_of_value(r, a->instruction)].is_known || !is_regular(r, a->level[0]) ||
        !is_regular(r, a->level[1]))
        return false;
    for (unsigned l = 0; l < at->n_loops; l++)
        if (depends(r, a->step[1], l, 0) != IS_NOT ||
            depends(r, at->loop[a->level[0]].taken, l, 0) != IS_NOT ||
            depends(r, at->loop[a->level[1]].taken, l, 0) != IS_NOT)
            return false;
    return true;
}

static void rows_begin(struct pass *p, struct inspector *s)
{
    rows_find(s);
    s->gaps = slot_make(p, &s->m, p->i64);
    LLVMBuildStore(p->build, pass_number64(p, 0), s->gaps);
    for (unsigned k = 0; k < s->n_rows; k++) {
        s->row_low[k] = slot_make(p, &s->m, p->i64);
        s->row_high[k] = slot_make(p, &s->m, p->i64);
        s->row_step[k] = slot_make(p, &s->m, p->i64);
        s->row_bytes[k] = slot_make(p, &s->m, p->i64);
        LLVMBuildStore(p->build, pass_number64(p, (uint64_t)INT64_MAX), s->row_low[k]);
        LLVMBuildStore(p->build, pass_number64(p, (uint64_t)INT64_MIN), s->row_high[k]);
        LLVMBuildStore(p->build, pass_number64(p, 0), s->row_step[k]);
        LLVMBuildStore(p->build, pass_number64(p, 0), s->row_bytes[k]);
    }
}

static void span_tell(struct pass *p, const struct inspector *s, unsigned word, value v)
{
    pass_store(p, v, pass_byte_offset(p, LLVMGetParam(s->m.function, 1), 8 * (uint64_t)word), 8,
               p->tag_thread);
}

/* As struct region_row in plain/runtime/plain_region.c. */
static void rows_tell(struct pass *p, const struct inspector *s)
{
    LLVMBuilderRef b = p->build;
    span_tell(p, s, SPAN_GAPS, LLVMBuildLoad2(b, p->i64, s->gaps, ""));
    span_tell(p, s, SPAN_N_ROWS, pass_number64(p, s->n_rows));
    for (unsigned k = 0; k < s->n_rows; k++) {
        const unsigned at = SPAN_ROWS + ROW_WORDS * k;
        span_tell(p, s, at, pass_number64(p, s->m.region->at->access[s->row[k]].group));
        span_tell(p, s, at + 1, LLVMBuildLoad2(b, p->i64, s->row_low[k], ""));
        span_tell(p, s, at + 2, LLVMBuildLoad2(b, p->i64, s->row_high[k], ""));
        span_tell(p, s, at + 3, LLVMBuildLoad2(b, p->i64, s->row_step[k], ""));
        span_tell(p, s, at + 4, LLVMBuildLoad2(b, p->i64, s->row_bytes[k], ""));
    }
}

static void access_inspect(struct pass *p, struct inspector *s, unsigned access, int block,
                           value weight)
{
    const struct pass_region *r = s->m.region;
    const struct pass_region_access *a = &r->at->access[access];
    LLVMBuilderRef b = p->build;
    value offset = node_make(p, &s->m, a->offset, block), runs = s->runs[block];
    const bool is_known = r->at->block[block].is_known;
    value at_low = is_known ? s->low[a->group] : s->lowest[a->group],
          at_high = is_known ? s->high[a->group] : s->highest[a->group];
    span_add(p, runs, offset, at_low, at_high);
    value count = LLVMBuildSelect(b, runs, weight, pass_real_number(p, 0), "");
    slot_add(p, p->real, s->touched[a->group], count);
    slot_add(p, p->i64, s->flags,
             LLVMBuildSelect(b, runs, LLVMBuildAnd(b, offset, pass_number64(p, 7), ""),
                             pass_number64(p, 0), ""));
    steps_inspect(p, s, a->offset, block);
    if (!a->is_write) {
        value from = LLVMBuildLoad2(b, p->i64, s->from[a->group], ""),
              to = LLVMBuildLoad2(b, p->i64, s->to[a->group], "");
        value outside = LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntSLT, offset, from, ""),
                                    LLVMBuildICmp(b, LLVMIntSGT, offset, to, ""), "");
        slot_add(p, p->i64, s->needs[a->group],
                 LLVMBuildZExt(b, LLVMBuildAnd(b, runs, outside, ""), p->i64, ""));
    }
    const int row = row_of(s, access);
    if (row >= 0)
        span_add(p, runs, offset, s->row_low[row], s->row_high[row]);
    if (a->n_levels < 2)
        return;
    /* A row that does not begin where the one before has ended leaves a gap. */
    value step = node_make(p, &s->m, a->step[1], block), zero = pass_number64(p, 0);
    step = as_bits(p, step, 64);
    step = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, step, zero, ""),
                           LLVMBuildNeg(b, step, ""), step, "");
    value bytes = LLVMBuildShl(b, s->m.trips[a->level[0]], pass_number64(p, 3), "");
    value gap = LLVMBuildAnd(b, runs, LLVMBuildICmp(b, LLVMIntUGT, step, bytes, ""), "");
    if (row < 0 || !is_comb(r, a)) {
        slot_add(p, p->i64, s->flags, LLVMBuildSelect(b, gap, pass_number64(p, SPARSE), zero, ""));
        return;
    }
    slot_add(p, p->i64, s->gaps,
             LLVMBuildSelect(b, gap, pass_number64(p, UINT64_C(1) << a->group), zero, ""));
    /* Where it is run at all, these are always the same. */
    LLVMBuildStore(
        b, LLVMBuildSelect(b, gap, step, LLVMBuildLoad2(b, p->i64, s->row_step[row], ""), ""),
        s->row_step[row]);
    LLVMBuildStore(
        b, LLVMBuildSelect(b, gap, bytes, LLVMBuildLoad2(b, p->i64, s->row_bytes[row], ""), ""),
        s->row_bytes[row]);
}

/* A write that surely fills a range when its loop is run: where the first and the last round write.
 */
static bool fills(const struct pass_region *r, const struct pass_region_access *a, unsigned loop)
{
    const int block = block_of_value(r, a->instruction);
    for (unsigned k = 0; k < r->at->n_blocks; k++)
        if (r->at->block[k].condition < -1)
            return false;
    return a->is_write && a->is_sure && a->n_levels == 1 && a->level[0] == loop &&
           r->at->block[block].loop == loop;
}

static void fill_inspect(struct pass *p, struct inspector *s, unsigned access, value taken,
                         value *low, value *high)
{
    const struct pass_region_access *a = &s->m.region->at->access[access];
    const int block = block_of_value(s->m.region, a->instruction);
    LLVMBuilderRef b = p->build;
    value first = node_make(p, &s->m, a->offset, block);
    value step = as_bits(p, node_make(p, &s->m, a->step[0], block), 64);
    value last = LLVMBuildAdd(b, first, LLVMBuildMul(b, step, taken, ""), "");
    value is = LLVMBuildICmp(b, LLVMIntSLT, first, last, "");
    *low = LLVMBuildSelect(b, is, first, last, "");
    *high = LLVMBuildSelect(b, is, last, first, "");
}

/* Behind its loop: what it has filled. */
static void filled(struct pass *p, struct inspector *s, unsigned group, value low, value high)
{
    LLVMBuilderRef b = p->build;
    value from = LLVMBuildLoad2(b, p->i64, s->from[group], ""),
          to = LLVMBuildLoad2(b, p->i64, s->to[group], "");
    /* Behind or before what was, without a gap; or nothing was. */
    value end = LLVMBuildAdd(b, to, pass_number64(p, 8), ""),
          end_of_new = LLVMBuildAdd(b, high, pass_number64(p, 8), "");
    value joins = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSLE, low, end, ""),
                               LLVMBuildICmp(b, LLVMIntSLE, from, end_of_new, ""), "");
    value none = LLVMBuildICmp(b, LLVMIntSGT, from, to, "");
    value lower = LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntSLT, low, from, ""), none, ""),
          higher = LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntSGT, high, to, ""), none, "");
    joins = LLVMBuildOr(b, joins, none, "");
    value lowest = LLVMBuildSelect(b, LLVMBuildAnd(b, joins, lower, ""), low, from, "");
    value highest = LLVMBuildSelect(b, LLVMBuildAnd(b, joins, higher, ""), high, to, "");
    LLVMBuildStore(b, lowest, s->from[group]);
    LLVMBuildStore(b, highest, s->to[group]);
}

/* Whether a block runs, as far as that is known. */
static value runs_inspect(struct pass *p, struct inspector *s, int block)
{
    const struct pass_found_region *at = s->m.region->at;
    const struct pass_region_block *of = &at->block[block];
    value runs = LLVMConstInt(p->i1, 0, 0);
    if (of->is_head)
        return LLVMConstInt(p->i1, 1, 0);
    for (unsigned k = 0; k < of->n_from; k++) {
        const struct pass_region_block *from = &at->block[of->from[k]];
        int of_loop = of->from[k];
        if (from->loop != of->loop) /* behind a loop, which is as often as before it */
            of_loop = at->loop[from->loop].before;
        value edge = s->runs[of_loop];
        if (from->loop == of->loop && from->condition >= 0) {
            value is = node_make(p, &s->m, (unsigned)from->condition, of->from[k]);
            if (from->yes != (unsigned)block)
                is = LLVMBuildNot(p->build, is, "");
            edge = LLVMBuildAnd(p->build, edge, is, "");
        }
        runs = LLVMBuildOr(p->build, runs, edge, "");
    }
    return runs;
}

static value as_real(struct pass *p, value i)
{
    return LLVMBuildUIToFP(p->build, i, p->real, "");
}

/* Rounds of a loop are gone through, unless that takes too long. If it is not known that the loop
 * is begun, how often it would run may be any number. */
static void rounds_limit(struct pass *p, struct inspector *s, value taken, bool regular,
                         LLVMBasicBlockRef head, LLVMBasicBlockRef end)
{
    LLVMBuilderRef b = p->build;
    value left = LLVMBuildLoad2(b, p->i64, s->left, "");
    value looked_at = regular ? pass_number64(p, 1) : taken;
    value few =
        LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntULT, looked_at, left, ""),
                     LLVMBuildICmp(b, LLVMIntULT, taken, pass_number64(p, INT32_MAX), ""), "");
    value rest = LLVMBuildSub(b, LLVMBuildSub(b, left, looked_at, ""), pass_number64(p, 1), "");
    LLVMBuildStore(b, LLVMBuildSelect(b, few, rest, left, ""), s->left);
    slot_add(p, p->i64, s->flags,
             LLVMBuildSelect(b, few, pass_number64(p, 0), pass_number64(p, MANY), ""));
    LLVMBuildCondBr(b, few, head, end);
}

/* Rounds of a loop: all, or the first and the last. */
static void loop_inspect(struct pass *p, struct inspector *s, unsigned loop, value weight)
{
    struct maker *m = &s->m;
    struct pass_region *r = m->region;
    const struct pass_found_region *at = r->at;
    LLVMBuilderRef b = p->build;
    const bool regular = is_regular(r, loop);
    value taken = as_bits(p, node_make(p, m, at->loop[loop].taken, at->loop[loop].before), 64);
    value trips = LLVMBuildAdd(b, taken, pass_number64(p, 1), "");
    m->trips[loop] = trips;
    value all = LLVMBuildFMul(b, weight, as_real(p, trips), "");
    value slots = pass_real_number(p, r->n_slots_of[loop]);
    value words = LLVMBuildFMul(b, all, slots, "");
    if (has_word(r, loop))
        words = LLVMBuildFAdd(b, words, weight, "");
    slot_add(p, p->real, s->words, words);
    if (at->loop[loop].is_innermost && at->block[at->loop[loop].head].is_known) {
        slot_add(p, p->real, s->rounds, all);
        slot_add(p, p->real, s->loops, weight);
    }
    for (unsigned k = 0; k < at->n_cells; k++)
        if (at->cell[k].loop == loop)
            LLVMBuildStore(b, node_make(p, m, at->cell[k].init, at->loop[loop].before), m->cell[k]);
    LLVMBuildStore(b, pass_number64(p, 0), m->counter[loop]);
    value low[REGION_ACCESSES], high[REGION_ACCESSES];
    for (unsigned a = 0; a < at->n_accesses; a++)
        if (fills(r, &at->access[a], loop))
            fill_inspect(p, s, a, taken, &low[a], &high[a]);
    LLVMBasicBlockRef head = block_made(p, m, "round"), end = block_made(p, m, "behind");
    rounds_limit(p, s, taken, regular, head, end);
    LLVMPositionBuilderAtEnd(b, head);
    value i = LLVMBuildLoad2(b, p->i64, m->counter[loop], "");
    if (regular) /* one counts for all */
        weight = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, i, pass_number64(p, 0), ""), all,
                                 pass_real_number(p, 0), "");
    for (unsigned k = 0; k < at->n_blocks; k++) {
        if (at->block[k].loop != loop)
            continue;
        s->runs[k] = runs_inspect(p, s, (int)k);
        for (unsigned a = 0; a < at->n_accesses; a++)
            if (block_of_value(r, at->access[a].instruction) == (int)k)
                access_inspect(p, s, a, (int)k, weight);
        for (unsigned l = loop + 1; l < at->n_loops; l++) {
            if (at->loop[l].before != (int)k)
                continue;
            LLVMBasicBlockRef inner = block_made(p, m, "inner"), on = block_made(p, m, "on");
            LLVMBuildCondBr(b, s->runs[k], inner, on);
            LLVMPositionBuilderAtEnd(b, inner);
            loop_inspect(p, s, l, weight);
            LLVMBuildBr(b, on);
            LLVMPositionBuilderAtEnd(b, on);
        }
    }
    value next[REGION_CELLS];
    for (unsigned k = 0; k < at->n_cells; k++)
        if (at->cell[k].loop == loop)
            next[k] = node_make(p, m, at->cell[k].next, (int)at->loop[loop].latch);
    for (unsigned k = 0; k < at->n_cells; k++)
        if (at->cell[k].loop == loop)
            LLVMBuildStore(b, next[k], m->cell[k]);
    value one = pass_number64(p, 1), step = one;
    if (regular)
        step = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, taken, pass_number64(p, 0), ""), one,
                               taken, "");
    i = LLVMBuildAdd(b, i, step, "");
    LLVMBuildStore(b, i, m->counter[loop]);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULE, i, taken, ""), head, end);
    LLVMPositionBuilderAtEnd(b, end);
    for (unsigned a = 0; a < at->n_accesses; a++)
        if (fills(r, &at->access[a], loop))
            filled(p, s, at->access[a].group, low[a], high[a]);
}

/* void inspect(const i64 *words, struct region_spans *). */
static void region_inspect(struct pass *p, struct pass_region *r)
{
    struct inspector *s = base_calloc(1, sizeof *s);
    LLVMBuilderRef b = p->build;
    type of[] = {p->pointer, p->pointer};
    const struct pass_found_region *at = r->at;
    value slot[SPAN_GROUPS + GROUP_SPANS * REGION_GROUPS + REGION_LOOPS + REGION_CELLS + 2 +
               4 * ROWS];
    unsigned n = 0;
    s->m.region = r;
    s->m.has_slots = true;
    s->m.function = r->inspect = pass_derivatives_add(p, "ad_plain_region_inspect_", of, 2);
    s->m.entry = block_made(p, &s->m, "entry");
    LLVMPositionBuilderAtEnd(b, s->m.entry);
    for (unsigned k = 0; k < at->n_unknowns; k++)
        s->m.unknown[k] =
            pass_load(p, p->i64, pass_byte_offset(p, LLVMGetParam(r->inspect, 0), 8 * (uint64_t)k),
                      8, p->tag_thread);
    slot[n++] = s->rounds = slot_make(p, &s->m, p->real);
    slot[n++] = s->loops = slot_make(p, &s->m, p->real);
    slot[n++] = s->words = slot_make(p, &s->m, p->real);
    slot[n++] = s->flags = slot_make(p, &s->m, p->i64);
    for (unsigned k = 0; k < at->n_loops; k++)
        slot[n++] = s->m.counter[k] = slot_make(p, &s->m, p->i64);
    for (unsigned k = 0; k < at->n_cells; k++)
        slot[n++] = s->m.cell[k] = slot_make(p, &s->m, p->i64);
    slot[n++] = s->left = slot_make(p, &s->m, p->i64);
    LLVMBuildStore(b, pass_number64(p, ROUNDS_TRIED), s->left);
    LLVMBuildStore(b, pass_real_number(p, 0), s->rounds);
    LLVMBuildStore(b, pass_real_number(p, 0), s->loops);
    LLVMBuildStore(b, pass_real_number(p, 0), s->words);
    LLVMBuildStore(b, pass_number64(p, 0), s->flags);
    for (unsigned k = 0; k < at->n_groups; k++) {
        slot[n++] = s->low[k] = slot_make(p, &s->m, p->i64);
        slot[n++] = s->high[k] = slot_make(p, &s->m, p->i64);
        slot[n++] = s->touched[k] = slot_make(p, &s->m, p->real);
        LLVMBuildStore(b, pass_number64(p, (uint64_t)INT64_MAX), s->low[k]);
        LLVMBuildStore(b, pass_number64(p, (uint64_t)INT64_MIN), s->high[k]);
        LLVMBuildStore(b, pass_real_number(p, 0), s->touched[k]);
        slot[n++] = s->from[k] = slot_make(p, &s->m, p->i64);
        slot[n++] = s->to[k] = slot_make(p, &s->m, p->i64);
        slot[n++] = s->needs[k] = slot_make(p, &s->m, p->i64);
        LLVMBuildStore(b, pass_number64(p, (uint64_t)INT64_MAX), s->from[k]);
        LLVMBuildStore(b, pass_number64(p, (uint64_t)INT64_MIN), s->to[k]);
        LLVMBuildStore(b, pass_number64(p, 0), s->needs[k]);
        slot[n++] = s->lowest[k] = slot_make(p, &s->m, p->i64);
        slot[n++] = s->highest[k] = slot_make(p, &s->m, p->i64);
        LLVMBuildStore(b, pass_number64(p, (uint64_t)INT64_MAX), s->lowest[k]);
        LLVMBuildStore(b, pass_number64(p, (uint64_t)INT64_MIN), s->highest[k]);
    }
    rows_begin(p, s);
    loop_inspect(p, s, 0, pass_real_number(p, 1));
    rows_tell(p, s);
    for (unsigned k = 0; k < n; k++) {
        const unsigned others = at->n_loops + at->n_cells + 1;
        const bool of_group = k >= SPAN_GROUPS + others;
        if (k >= SPAN_GROUPS && !of_group)
            continue;
        const unsigned word = of_group ? k - others : k;
        type kind = LLVMGetAllocatedType(slot[k]);
        pass_store(p, LLVMBuildLoad2(b, kind, slot[k], ""),
                   pass_byte_offset(p, LLVMGetParam(r->inspect, 1), 8 * (uint64_t)word), 8,
                   p->tag_thread);
    }
    LLVMBuildRetVoid(b);
    slot[n++] = s->gaps;
    for (unsigned k = 0; k < s->n_rows; k++) {
        slot[n++] = s->row_low[k];
        slot[n++] = s->row_high[k];
        slot[n++] = s->row_step[k];
        slot[n++] = s->row_bytes[k];
    }
    pass_slots_to_registers(r->inspect, slot, n);
    free(s);
}

/* ---- the second way ---- */

static value region_word(struct pass *p, unsigned place)
{
    return pass_byte_offset(p, p->regions->memory, 8 * (uint64_t)place);
}

static unsigned place_of_unknowns(const struct pass_region *r)
{
    return CALL_GROUPS + GROUP_WORDS * r->at->n_groups;
}

static unsigned place_of_numbers(const struct pass_region *r)
{
    return place_of_unknowns(r) + r->at->n_unknowns;
}

static unsigned place_of_results(const struct pass_region *r)
{
    return place_of_numbers(r) + 2 * r->n_scalars;
}

static value first_behind_phis(LLVMBasicBlockRef block)
{
    value v = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(v))
        v = LLVMGetNextInstruction(v);
    return v;
}

/* Before what is said of variables there: a phi has none of that before it. */
static void to_begin_of(struct pass *p, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderBeforeInstrAndDbgRecords(p->build, LLVMGetFirstInstruction(block));
}

/* How a block is reached: the number of the block that leads there. */
static value which_make(struct pass *p, struct pass_region *r, int block)
{
    const struct pass_region_block *of = &r->at->block[block];
    to_begin_of(p, r->fast[block]);
    value which = LLVMBuildPhi(p->build, p->i64, "which");
    for (unsigned k = 0; k < of->n_from; k++) {
        value number = pass_number64(p, k);
        LLVMAddIncoming(which, &number, &r->fast[of->from[k]], 1);
    }
    return which;
}

/* Before a loop: its part of the memory. */
static void chunk_begin(struct pass *p, struct maker *m, unsigned loop, LLVMBasicBlockRef before)
{
    LLVMBuilderRef b = p->build;
    to_end_of(p, before);
    m->trips[loop] = trips_make(p, m, loop);
    m->chunk[loop] = LLVMBuildLoad2(b, p->i64, m->top, "");
    value bytes = LLVMBuildMul(b, m->trips[loop],
                               pass_number64(p, 8 * (uint64_t)m->region->n_slots_of[loop]), "");
    LLVMBuildStore(b, LLVMBuildAdd(b, m->chunk[loop], bytes, ""), m->top);
}

/* Behind it: where that was, unless it is right before. */
static void chunk_end(struct pass *p, struct maker *m, unsigned loop)
{
    const struct pass_region_loop *l = &m->region->at->loop[loop];
    LLVMBuilderRef b = p->build;
    LLVMPositionBuilderBefore(b, first_behind_phis(m->region->fast[l->behind]));
    value top = LLVMBuildLoad2(b, p->i64, m->top, "");
    pass_store(p, m->chunk[loop], pass_pointer_at(p, p->i8, m->kept, top), 8, p->tag_tape);
    LLVMBuildStore(b, LLVMBuildAdd(b, top, pass_number64(p, 8), ""), m->top);
}

static void counter_make(struct pass *p, struct maker *m, unsigned loop)
{
    const struct pass_region_loop *l = &m->region->at->loop[loop];
    LLVMBasicBlockRef head = m->region->fast[l->head], latch = m->region->fast[l->latch],
                      before = l->before < 0 ? m->region->enter : m->region->fast[l->before];
    to_begin_of(p, head);
    value i = LLVMBuildPhi(p->build, p->i64, "count");
    to_end_of(p, latch);
    value next = LLVMBuildAdd(p->build, i, pass_number64(p, 1), ""), zero = pass_number64(p, 0);
    LLVMAddIncoming(i, (value[]){zero, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
    m->counter[loop] = i;
}

/* Stores to what is kept. Returns the slot of how much that is. */
static value fast_keeps(struct pass *p, struct pass_region *r, const value *fast_of)
{
    struct maker *m = base_calloc(1, sizeof *m);
    LLVMBuilderRef b = p->build;
    m->region = r;
    m->function = p->function;
    m->entry = LLVMGetEntryBasicBlock(p->function);
    for (unsigned k = 0; k < r->at->n_unknowns; k++)
        m->unknown[k] = r->at->unknown[k];
    for (unsigned k = 0; k < r->at->n_cells; k++)
        m->cell[k] = fast_of[REGION_SLOTS + k];
    to_end_of(p, r->enter);
    m->top = slot_make(p, m, p->i64);
    to_end_of(p, r->enter);
    LLVMBuildStore(b, pass_number64(p, 0), m->top);
    m->kept = pass_load(p, p->pointer, region_word(p, CALL_KEPT), 8, NULL);
    for (unsigned l = 0; l < r->at->n_loops; l++)
        if (r->n_slots_of[l] > 0)
            counter_make(p, m, l);
    /* Formulas of places are of rounds of all loops. */
    for (unsigned l = 0; l < r->at->n_loops; l++)
        if (!m->counter[l])
            counter_make(p, m, l);
    for (unsigned l = 0; l < r->at->n_loops; l++) {
        const int before = r->at->loop[l].before;
        if (r->n_slots_of[l] > 0)
            chunk_begin(p, m, l, before < 0 ? r->enter : r->fast[before]);
    }
    for (unsigned l = 1; l < r->at->n_loops; l++)
        if (has_word(r, l))
            chunk_end(p, m, l);
    for (unsigned k = 0; k < r->n_slots; k++) {
        const struct region_slot *s = &r->slot[k];
        value v = fast_of[k];
        if (LLVMValueIsBasicBlock(s->of))
            v = which_make(p, r, block_number(r, LLVMValueAsBasicBlock(s->of)));
        LLVMBasicBlockRef at = LLVMGetInstructionParent(v);
        LLVMPositionBuilderBefore(b, LLVMIsAPHINode(v) ? first_behind_phis(at)
                                                       : LLVMGetNextInstruction(v));
        if (!pass_is_double(v))
            v = as_bits(p, v, 64);
        pass_store(p, v, slot_place(p, m, s), 8, p->tag_tape);
    }
    LLVMPositionBuilderAtEnd(b, r->leave);
    pass_store(p, LLVMBuildLoad2(b, p->i64, m->top, ""), region_word(p, CALL_TOP), 8, NULL);
    value top = m->top;
    free(m);
    return top;
}

/* As struct plain_region in plain/runtime/plain_region.c. */
static value region_description(struct pass *p, const struct pass_region *r)
{
    value word[4 + 3 * REGION_GROUPS + REGION_RESULTS];
    unsigned n = 0;
    word[n++] = pass_number64(p, r->at->n_groups);
    word[n++] = pass_number64(p, r->at->n_unknowns);
    word[n++] = pass_number64(p, r->n_scalars);
    word[n++] = pass_number64(p, r->at->n_results);
    for (unsigned k = 0; k < r->at->n_groups; k++) {
        word[n++] = pass_number64(p, r->at->group[k].is_written);
        word[n++] = pass_number64(p, r->is_kept[k]);
        word[n++] = pass_number64(p, r->of[k]);
    }
    for (unsigned k = 0; k < r->at->n_results; k++)
        word[n++] = pass_number64(p, r->of[REGION_GROUPS + k]);
    value part[] = {r->reverse, r->inspect, LLVMConstArray2(p->i64, word, n)};
    value constant = LLVMConstStructInContext(p->context, part, 3, 0);
    value global = LLVMAddGlobal(p->module, LLVMTypeOf(constant), "ad_plain_region_");
    LLVMSetInitializer(global, constant);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    LLVMSetGlobalConstant(global, 1);
    return global;
}

/* The line of a record: of the dearest store, or sum, of the innermost loops. */
static LLVMMetadataRef line_of_region(struct pass *p, const struct pass_region *r)
{
    LLVMMetadataRef line = NULL;
    unsigned deepest = 0;
    for (unsigned b = 0; b < r->at->n_blocks; b++) {
        value root[64];
        unsigned n = 0, depth = 0;
        for (int l = (int)r->at->block[b].loop; l >= 0; l = r->at->loop[l].parent)
            depth++;
        LLVMBasicBlockRef block = r->at->block[b].block;
        for (value v = LLVMGetFirstInstruction(block); v && n < 64; v = LLVMGetNextInstruction(v)) {
            if (LLVMIsAStoreInst(v))
                root[n++] = v;
            if (LLVMIsAPHINode(v) && pass_is_double(v) && r->at->block[b].is_head)
                root[n++] =
                    pass_incoming(v, r->at->block[r->at->loop[r->at->block[b].loop].latch].block);
        }
        LLVMMetadataRef own = pass_dearest_line(block, root, n);
        if (own && depth >= deepest) {
            line = own;
            deepest = depth;
        }
    }
    LLVMMetadataRef scope = LLVMGetSubprogram(p->function);
    if (!line && scope)
        line = LLVMDIBuilderCreateDebugLocation(p->context, LLVMDISubprogramGetLine(scope), 0,
                                                scope, NULL);
    return line;
}

static void region_give(struct pass *p, struct pass_region *r)
{
    struct maker *m = base_calloc(1, sizeof *m);
    m->region = r;
    for (unsigned k = 0; k < r->at->n_unknowns; k++) {
        m->unknown[k] = as_bits(p, r->at->unknown[k], 64);
        pass_store(p, m->unknown[k], region_word(p, place_of_unknowns(r) + k), 8, NULL);
    }
    for (unsigned k = 0; k < r->at->n_groups; k++)
        pass_store(p, node_make(p, m, r->at->group[k].origin, -1),
                   region_word(p, CALL_GROUPS + GROUP_WORDS * k), 8, NULL);
    for (unsigned k = 0; k < r->n_scalars; k++)
        r->given[k] =
            pass_store(p, r->scalar[k], region_word(p, place_of_numbers(r) + 2 * k), 8, NULL);
    free(m);
}

static void region_way(struct pass *p, struct pass_region *r)
{
    LLVMBuilderRef b = p->build;
    LLVMBasicBlockRef head = r->at->block[0].block;
    value told = region_description(p, r), said[] = {told, p->regions->memory};
    r->line = line_of_region(p, r);
    r->look = LLVMInsertBasicBlockInContext(p->context, head, "region.look");
    r->enter = LLVMInsertBasicBlockInContext(p->context, head, "region.enter");
    r->leave = LLVMAppendBasicBlockInContext(p->context, p->function, "region.end");
    value *of = base_calloc(REGION_SLOTS + REGION_CELLS + REGION_RESULTS, sizeof *of);
    for (unsigned k = 0; k < r->n_slots; k++)
        of[k] = r->slot[k].of;
    for (unsigned k = 0; k < r->at->n_cells; k++)
        of[REGION_SLOTS + k] = r->at->cell[k].phi;
    for (unsigned k = 0; k < r->at->n_results; k++)
        of[REGION_SLOTS + REGION_CELLS + k] = r->at->result[k];
    LLVMBasicBlockRef block[REGION_BLOCKS];
    for (unsigned k = 0; k < r->at->n_blocks; k++)
        block[k] = r->at->block[k].block;
    const struct pass_found_way way = {r->at->before, r->at->behind, block, r->at->n_blocks,
                                       r->at->loop[0].latch};
    pass_clone_way(&way, r->enter, r->leave, r->fast, of,
                   REGION_SLOTS + REGION_CELLS + r->at->n_results);
    for (unsigned k = 0; k < r->at->n_results; k++)
        r->result_fast[k] = of[REGION_SLOTS + REGION_CELLS + k];
    for (value v = LLVMGetFirstInstruction(head); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v)) {
        value in = pass_incoming(v, r->at->before);
        LLVMAddIncoming(v, &in, &r->look, 1);
    }
    value last = LLVMGetBasicBlockTerminator(r->at->before);
    LLVMPositionBuilderBefore(b, last);
    LLVMSetCurrentDebugLocation2(b, r->line);
    r->flag = p->written ? NULL : pass_has_variables(p);
    value has = r->flag ? LLVMBuildIsNotNull(b, r->flag, "") : LLVMConstInt(p->i1, 1, 0);
    LLVMBuildCondBr(b, has, r->look, head);
    LLVMInstructionEraseFromParent(last);

    LLVMPositionBuilderAtEnd(b, r->look);
    region_give(p, r);
    r->begin = pass_call_runtime(p, "ad_plain_region_begin_", p->i32, 2, said);
    pass_call_apart(p, r->begin);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, r->begin, p->zero, ""), r->enter, head);
    LLVMPositionBuilderAtEnd(b, r->enter);
    LLVMBuildBr(b, r->fast[0]);

    value top = fast_keeps(p, r, of);
    LLVMPositionBuilderAtEnd(b, r->leave);
    LLVMSetCurrentDebugLocation2(b, r->line);
    r->end = pass_call_runtime(p, "ad_plain_region_end_", p->nothing, 2, said);
    pass_call_apart(p, r->end);
    LLVMBuildBr(b, r->at->behind);
    pass_slots_to_registers(p->function, &top, 1);
    free(of);
}

/* The functions of a region, or false. */
static bool region_derive(struct pass *p, struct pass_region *r)
{
    struct maker *m = base_calloc(1, sizeof *m);
    LLVMBuilderRef before = p->build;
    value function = p->function;
    value slot[REGION_VALUES + REGION_LOOPS + 1];
    unsigned n = 0;
    m->region = r;
    p->build = LLVMCreateBuilderInContext(p->context);
    p->derives = true;
    p->too_long = false;
    region_reverse(p, r, m);
    p->derives = false;
    const bool right = !m->no_room && !p->too_long;
    if (right) {
        for (unsigned k = 0; k < m->n_numbers; k++)
            slot[n++] = m->adjoint[k];
        for (unsigned l = 0; l < r->at->n_loops; l++)
            slot[n++] = m->counter[l];
        slot[n++] = m->top;
        pass_slots_to_registers(m->function, slot, n);
        pass_clean_function(m->function);
        r->reverse = reverse_wrapper(p, m);
        region_inspect(p, r);
    } else {
        LLVMDeleteFunction(m->function);
    }
    LLVMDisposeBuilder(p->build);
    p->build = before;
    p->function = function;
    pass_known_clear(p);
    free(m);
    return right;
}

void pass_regions_prepare(struct pass *p)
{
    p->regions = NULL;
    struct pass_found_region *found = base_calloc(REGIONS_ROOM, sizeof *found);
    const unsigned n = pass_find_regions(p->function, instruction_is_wanted, found, REGIONS_ROOM);
    struct regions *regions = base_calloc(1, sizeof *regions + n * sizeof *regions->region);
    unsigned words = 0;
    p->regions = regions;
    for (unsigned k = 0; k < n; k++) {
        struct pass_region *r = &regions->region[regions->n];
        *r = (struct pass_region){.at = &found[k]};
        if (!region_look(r) || !region_origins(r) || !region_derive(p, r))
            continue;
        const unsigned all = place_of_results(r) + r->at->n_results;
        words = all > words ? all : words;
        regions->n++;
    }
    if (regions->n > 0) {
        LLVMPositionBuilderBefore(p->build,
                                  LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(p->function)));
        LLVMSetCurrentDebugLocation2(p->build, NULL);
        regions->memory = LLVMBuildAlloca(p->build, LLVMArrayType2(p->i64, words), "region");
    }
    for (unsigned k = 0; k < regions->n; k++)
        region_way(p, &regions->region[k]);
    regions->found = found;
}

void pass_regions_end(struct pass *p)
{
    if (p->regions)
        free(p->regions->found);
    free(p->regions);
    p->regions = NULL;
}

bool pass_is_fast_region(const struct pass *p, LLVMBasicBlockRef block)
{
    for (unsigned k = 0; p->regions && k < p->regions->n; k++)
        for (unsigned b = 0; b < p->regions->region[k].at->n_blocks; b++)
            if (p->regions->region[k].fast[b] == block)
                return true;
    return false;
}

/* Before the first call: the indices of what it takes from before. */
static void region_begin_visit(struct pass *p, const struct pass_region *r)
{
    LLVMPositionBuilderBefore(p->build, r->begin);
    for (unsigned k = 0; k < r->n_scalars; k++) {
        value index = pass_index_recorded(p, LLVMGetOperand(r->given[k], 0));
        pass_store(p, LLVMBuildZExt(p->build, index, p->i64, ""),
                   region_word(p, place_of_numbers(r) + 2 * k + 1), 8, NULL);
    }
}

static void region_end_visit(struct pass *p, struct pass_region *r)
{
    pass_build_after(p, r->end);
    for (unsigned k = 0; k < r->at->n_results; k++) {
        value index = pass_load(p, p->i32, region_word(p, place_of_results(r) + k), 8, NULL);
        pass_known(p, r->result_fast[k])->index = index;
    }
}

bool pass_region_visit(struct pass *p, value v)
{
    if (p->regions && v == p->regions->memory)
        return true;
    for (unsigned k = 0; p->regions && k < p->regions->n; k++) {
        struct pass_region *r = &p->regions->region[k];
        LLVMBasicBlockRef block = LLVMGetInstructionParent(v);
        if (v == r->begin)
            region_begin_visit(p, r);
        else if (v == r->end)
            region_end_visit(p, r);
        else if (v != r->flag && block != r->look && block != r->enter && block != r->leave)
            continue;
        return true;
    }
    return false;
}
