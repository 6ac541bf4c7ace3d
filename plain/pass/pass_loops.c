/* pass_loops.c: a counted loop is one record where that can be.
 *
 * A loop of one block, without calls but those that have a rule, which reads and writes doubles at
 * places that are known before it, gets a second way through it: the loop as it is, without a
 * statement, between two calls of the runtime (plain/runtime/plain_loop.c). The first looks at what
 * the loop reads, begins a record, and says which way is taken. What the loop's results depend on
 * is a function of its own, made here of the rules: rows of the formulas, in terms of what is read.
 * The sweep calls it, for some rounds at once.
 *
 * Invariant: no round reads what another has written, and the sums that go from round to round are
 * nothing but sums. So the derivatives of all rounds are independent, and LLVM makes vectors of
 * them. Whether writes meet reads is asked at run time.
 */
#include "pass.h"

#include "pass_derive.h"
#include "pass_loops.h"

#include "base_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOPS_ROOM = 256,
    BODY_MOST = 400, /* instructions */
    SCALARS = ROW_ROOM,
    SUMS = 4,
    /* As in plain/runtime/plain_loop.c. */
    ROW = 160,
    TRIPS_LEAST = 64 /* fewer are statements: a record costs more */
};

/* A sum that goes from round to round. */
struct sum {
    value phi, next, init;
    unsigned scalar; /* what it begins with; SCALARS: a constant */
    uint64_t of;
    value fast, index; /* its value behind the loop, and where that stands on the tape */
};

struct loop {
    struct pass_found_loop at;
    value scalar[SCALARS]; /* floating values that are known before it */
    struct sum sum[SUMS];
    unsigned n_scalars, n_sums;
    uint64_t written_of[PASS_ACCESSES]; /* groups and scalars that a write depends on */
    bool by[PASS_ACCESSES + SCALARS];   /* whether anything depends on a read or scalar */
    bool is_kept[PASS_ACCESSES];        /* groups whose values the derivatives need */
    value reverse, begin, end;
    LLVMBasicBlockRef look, fast;
    LLVMMetadataRef line;
};

struct loops {
    unsigned n;
    value memory; /* of their calls, none of which are within another */
    struct loop loop[];
};

/* ---- which loops ---- */

/* By its instructions alone: it reads or sums doubles, and has results. */
static bool loop_is_wanted(LLVMBasicBlockRef body, void *payload)
{
    unsigned n = 0, results = 0;
    if (pass_is_fast_nest(payload, body))
        return false;
    for (value v = LLVMGetFirstInstruction(body); v; v = LLVMGetNextInstruction(v)) {
        if (++n > BODY_MOST || !pass_loop_takes(v))
            return false;
        results += LLVMIsAStoreInst(v) || (LLVMIsAPHINode(v) && pass_is_double(v));
    }
    return results > 0;
}

static bool is_within(value v, LLVMBasicBlockRef block)
{
    return LLVMIsAInstruction(v) && LLVMGetInstructionParent(v) == block;
}

static bool is_read(const struct loop *l, value v)
{
    for (unsigned k = 0; k < l->at.n_reads; k++)
        if (l->at.read[k].instruction == v)
            return true;
    return false;
}

/* The number of a floating value from before the loop; SCALARS: it is a constant. False: there are
 * too many. */
static bool scalar_of(struct loop *l, value v, unsigned *number)
{
    *number = SCALARS;
    if (LLVMIsAConstant(v))
        return true;
    for (unsigned k = 0; k < l->n_scalars; k++)
        if (l->scalar[k] == v) {
            *number = k;
            return true;
        }
    if (l->n_scalars == SCALARS)
        return false;
    *number = l->n_scalars;
    l->scalar[l->n_scalars++] = v;
    return true;
}

/* The sums and the values from before. */
static bool loop_look(struct loop *l)
{
    unsigned number;
    for (value v = LLVMGetFirstInstruction(l->at.body); v; v = LLVMGetNextInstruction(v)) {
        if (LLVMIsAPHINode(v)) {
            if (!pass_is_double(v) || is_read(l, v))
                continue;
            if (l->n_sums == SUMS)
                return false;
            struct sum *sum = &l->sum[l->n_sums++];
            *sum = (struct sum){.phi = v,
                                .next = pass_incoming(v, l->at.body),
                                .init = pass_incoming(v, l->at.before)};
            if (!scalar_of(l, sum->init, &sum->scalar))
                return false;
            continue;
        }
        const unsigned n = pass_operands_of(v);
        for (unsigned k = 0; k < n; k++) {
            value of = LLVMGetOperand(v, k);
            if (!LLVMValueIsBasicBlock(of) && pass_is_double(of) && !is_within(of, l->at.body) &&
                !scalar_of(l, of, &number))
                return false;
        }
    }
    /* What is used behind the loop: sums, and no other floating value. */
    for (value v = LLVMGetFirstInstruction(l->at.behind); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v)) {
        value of = pass_incoming(v, l->at.body);
        bool is_sum = !is_within(of, l->at.body) || !pass_is_double(of);
        for (unsigned k = 0; k < l->n_sums; k++)
            is_sum |= l->sum[k].next == of;
        if (!is_sum)
            return false;
    }
    return l->at.n_reads + l->n_scalars + l->n_sums <= ROW_ROOM;
}

/* ---- derivatives ---- */

/* void reverse(i64 n, values, scalars, dy, out): out[k][i], of ROW: what read or scalar k gets of
 * round i of n; values[k], dy[k]: where the reads' values and the results' adjoints of the rounds
 * begin. */
struct reverse {
    struct loop *loop;
    value function, round;
    value values[PASS_ACCESSES], dy[PASS_ACCESSES + SUMS], placeholder[SUMS];
    LLVMBasicBlockRef entry, body;
    struct clones clones;
};

static value number_at(struct pass *p, value base, value place)
{
    return pass_load(p, p->real, pass_pointer_at(p, p->real, base, place), 8, NULL);
}

static void token_set(struct pass *p, value v, unsigned token)
{
    pass_known(p, v)->index = pass_number32(p, token + 1);
}

static void reverse_begin(struct pass *p, struct reverse *r)
{
    struct loop *l = r->loop;
    type of[] = {p->i64, p->pointer, p->pointer, p->pointer, p->pointer};
    value f = pass_derivatives_add(p, "ad_plain_loop_derivatives_", of, 5);
    r->function = l->reverse = f;
    const unsigned noalias = LLVMGetEnumAttributeKindForName("noalias", 7);
    LLVMAddAttributeAtIndex(f, 5, LLVMCreateEnumAttribute(p->context, noalias, 0));
    r->entry = LLVMAppendBasicBlockInContext(p->context, f, "entry");
    r->body = LLVMAppendBasicBlockInContext(p->context, f, "round");
    LLVMPositionBuilderAtEnd(p->build, r->entry);
    for (unsigned k = 0; k < l->at.n_reads; k++)
        r->values[k] = pass_load(
            p, p->pointer, pass_pointer_at(p, p->pointer, LLVMGetParam(f, 1), pass_number64(p, k)),
            8, NULL);
    for (unsigned k = 0; k < l->n_scalars; k++) {
        value x = number_at(p, LLVMGetParam(f, 2), pass_number64(p, k));
        pass_clone_add(&r->clones, l->scalar[k], x);
        token_set(p, x, l->at.n_reads + k);
    }
    for (unsigned k = 0; k < l->at.n_writes + l->n_sums; k++) {
        value at = pass_load(
            p, p->pointer, pass_pointer_at(p, p->pointer, LLVMGetParam(f, 3), pass_number64(p, k)),
            8, NULL);
        r->dy[k] = k < l->at.n_writes ? at : number_at(p, at, pass_number64(p, 0));
    }
    for (unsigned k = 0; k < l->n_sums; k++) {
        value nothing = LLVMGetUndef(p->real);
        r->placeholder[k] = LLVMBuildFreeze(p->build, nothing, "");
        pass_clone_add(&r->clones, l->sum[k].phi, r->placeholder[k]);
        token_set(p, r->placeholder[k], l->at.n_reads + l->n_scalars + k);
    }
    LLVMBuildBr(p->build, r->body);
    LLVMPositionBuilderAtEnd(p->build, r->body);
    r->round = LLVMBuildPhi(p->build, p->i64, "round");
}

static bool is_outside(value v, void *body)
{
    return !is_within(v, body);
}

/* The formulas again, with rows; false: they use what is not known there. */
static bool reverse_formulas(struct pass *p, struct reverse *r)
{
    const struct loop *l = r->loop;
    for (unsigned k = 0; k < l->at.n_reads; k++) {
        const struct pass_found_read *read = &l->at.read[k];
        value place = l->at.group[read->group].stays ? pass_number64(p, 0) : r->round;
        value x = number_at(p, r->values[k], place);
        pass_clone_add(&r->clones, read->instruction, x);
        token_set(p, x, k);
    }
    for (value v = LLVMGetFirstInstruction(l->at.body); v; v = LLVMGetNextInstruction(v))
        if (!is_read(l, v) && !pass_clone_formula(p, &r->clones, v, is_outside, l->at.body))
            return false;
    return !p->too_long;
}

static uint64_t bit_of(const struct loop *l, unsigned token)
{
    return UINT64_C(1) << (token < l->at.n_reads ? l->at.read[token].group
                                                 : token - l->at.n_reads + PASS_ACCESSES);
}

/* What a result's adjoint gives to all that it depends on. A sum's own share is none. */
static bool reverse_result(struct pass *p, struct reverse *r, value result, value dy, int sum,
                           value *out, uint64_t *of)
{
    struct loop *l = r->loop;
    const unsigned tokens = l->at.n_reads + l->n_scalars;
    struct row row;
    bool goes_on = sum < 0;
    pass_row_of(p, pass_clone_of(&r->clones, result), &row);
    if (is_within(result, l->at.body) && pass_clone_of(&r->clones, result) == result)
        return false;
    value none = LLVMBuildFCmp(p->build, LLVMRealOEQ, dy, pass_real_number(p, 0), "");
    for (unsigned k = 0; k < row.n; k++) {
        const struct entry *e = &row.entry[k];
        const unsigned token = (unsigned)LLVMConstIntGetZExtValue(e->index) - 1;
        if (token >= tokens) {
            goes_on |= token - tokens == (unsigned)sum && !e->partial && !e->negative;
            if (token - tokens != (unsigned)sum || e->partial || e->negative)
                return false;
            continue;
        }
        value part = dy;
        if (e->partial)
            part = pass_choose(p, none, pass_real_number(p, 0),
                               LLVMBuildFMul(p->build, dy, e->partial, ""));
        if (!out[token])
            out[token] = e->negative ? LLVMBuildFNeg(p->build, part, "") : part;
        else
            out[token] = e->negative ? LLVMBuildFSub(p->build, out[token], part, "")
                                     : LLVMBuildFAdd(p->build, out[token], part, "");
        l->by[token] = true;
        *of |= bit_of(l, token);
    }
    return goes_on;
}

static bool reverse_results(struct pass *p, struct reverse *r)
{
    struct loop *l = r->loop;
    value out[PASS_ACCESSES + SCALARS] = {NULL};
    bool any = false;
    for (unsigned k = 0; k < l->at.n_writes; k++) {
        value result = LLVMGetOperand(l->at.write[k].instruction, 0);
        value dy = number_at(p, r->dy[k], r->round);
        if (!reverse_result(p, r, result, dy, -1, out, &l->written_of[k]))
            return false;
        any |= l->written_of[k] != 0;
    }
    for (unsigned k = 0; k < l->n_sums; k++) {
        struct sum *sum = &l->sum[k];
        if (!reverse_result(p, r, sum->next, r->dy[l->at.n_writes + k], (int)k, out, &sum->of))
            return false;
        if (sum->scalar < SCALARS)
            sum->of |= UINT64_C(1) << (PASS_ACCESSES + sum->scalar);
        any |= sum->of != 0;
    }
    for (unsigned k = 0; k < l->at.n_reads + l->n_scalars; k++) {
        if (!out[k])
            continue;
        value place = LLVMBuildAdd(p->build, r->round, pass_number64(p, (uint64_t)k * ROW), "");
        pass_store(p, out[k], pass_pointer_at(p, p->real, LLVMGetParam(r->function, 4), place), 8,
                   NULL);
    }
    return any;
}

static void reverse_end(struct pass *p, struct reverse *r)
{
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(p->context, r->function, "end");
    value next = LLVMBuildAdd(p->build, r->round, pass_number64(p, 1), ""),
          first = pass_number64(p, 0);
    value more = LLVMBuildICmp(p->build, LLVMIntULT, next, LLVMGetParam(r->function, 0), "");
    LLVMBuildCondBr(p->build, more, r->body, end);
    LLVMAddIncoming(r->round, (value[]){first, next}, (LLVMBasicBlockRef[]){r->entry, r->body}, 2);
    LLVMPositionBuilderAtEnd(p->build, end);
    LLVMBuildRetVoid(p->build);
}

/* The function of the derivatives, or false. */
static bool reverse_make(struct pass *p, struct loop *l)
{
    struct reverse r = {.loop = l, .clones = pass_clones_begin(BODY_MOST + SCALARS)};
    LLVMBuilderRef before = p->build;
    value function = p->function;
    p->build = LLVMCreateBuilderInContext(p->context);
    reverse_begin(p, &r);
    p->function = r.function;
    p->derives = true;
    p->too_long = false;
    const bool made = reverse_formulas(p, &r) && reverse_results(p, &r) && !p->too_long;
    reverse_end(p, &r);
    p->derives = false;
    p->function = function;
    pass_clean_function(r.function);
    bool right = made;
    for (unsigned k = 0; k < l->n_sums; k++) /* a derivative depends on the sum so far */
        right &= !pass_is_there(r.entry, r.placeholder[k]);
    for (unsigned k = 0; k < l->at.n_reads; k++)
        l->is_kept[l->at.read[k].group] |= pass_is_there(r.entry, r.values[k]);
    LLVMDisposeBuilder(p->build);
    p->build = before;
    pass_clones_end(&r.clones);
    pass_known_clear(p);
    if (!right)
        LLVMDeleteFunction(r.function);
    return right;
}

/* ---- what the runtime is told ---- */

struct told_words {
    value word[8 * PASS_ACCESSES + 4 * SCALARS + 4 * SUMS];
    unsigned n;
};

static void word_add(struct pass *p, struct told_words *w, int64_t x)
{
    w->word[w->n++] = pass_number64(p, (uint64_t)x);
}

/* The writes that a read comes before, within a round: a bit each. */
static uint64_t writes_behind(const struct loop *l, value read)
{
    uint64_t bits = 0;
    for (unsigned k = 0; k < l->at.n_writes; k++) {
        bool behind = false;
        value v = LLVMIsAPHINode(read) ? LLVMGetFirstInstruction(l->at.body) : read;
        for (; v && !behind; v = LLVMGetNextInstruction(v))
            behind = v == l->at.write[k].instruction;
        bits |= (uint64_t)behind << k;
    }
    return bits;
}

/* As struct plain_loop in plain/runtime/plain_loop.c. */
static value description(struct pass *p, const struct loop *l)
{
    struct told_words w = {.n = 0};
    word_add(p, &w, l->at.n_groups);
    word_add(p, &w, l->at.n_reads);
    word_add(p, &w, l->at.n_writes);
    word_add(p, &w, l->n_scalars);
    word_add(p, &w, l->n_sums);
    for (unsigned g = 0; g < l->at.n_groups; g++) {
        int64_t low = INT64_MAX, high = INT64_MIN;
        for (unsigned k = 0; k < l->at.n_reads; k++) {
            const int64_t offset = l->at.read[k].offset;
            if (l->at.read[k].group != g)
                continue;
            low = offset < low ? offset : low;
            high = offset > high ? offset : high;
        }
        word_add(p, &w, low);
        word_add(p, &w, high);
        word_add(p, &w, l->at.group[g].stays);
        word_add(p, &w, l->is_kept[g]);
    }
    for (unsigned k = 0; k < l->at.n_reads; k++) {
        word_add(p, &w, l->at.read[k].group);
        word_add(p, &w, l->at.read[k].offset);
        word_add(p, &w, l->by[k]);
        word_add(p, &w, (int64_t)writes_behind(l, l->at.read[k].instruction));
    }
    for (unsigned k = 0; k < l->at.n_writes; k++)
        word_add(p, &w, (int64_t)l->written_of[k]);
    for (unsigned k = 0; k < l->n_scalars; k++)
        word_add(p, &w, l->by[l->at.n_reads + k]);
    for (unsigned k = 0; k < l->n_sums; k++) {
        word_add(p, &w, l->sum[k].scalar == SCALARS ? -1 : (int64_t)l->sum[k].scalar);
        word_add(p, &w, (int64_t)l->sum[k].of);
    }
    return pass_derivatives_told(p, "ad_plain_loop_", l->reverse, w.word, w.n);
}

/* Words of a call's memory: struct plain_loop_call. */
enum { CALL_TRIPS, CALL_PLACES = 3 };

static unsigned place_of_writes(const struct loop *l)
{
    return CALL_PLACES + 2 * l->at.n_groups;
}

static unsigned place_of_scalars(const struct loop *l)
{
    return place_of_writes(l) + 2 * l->at.n_writes;
}

static unsigned place_of_sums(const struct loop *l)
{
    return place_of_scalars(l) + 2 * l->n_scalars;
}

static value word_at(struct pass *p, unsigned place)
{
    return pass_byte_offset(p, p->loops->memory, 8 * (uint64_t)place);
}

/* ---- the second way ---- */

/* The line of a record: of its dearest store or sum. */
static LLVMMetadataRef line_of(const struct loop *l)
{
    value root[PASS_ACCESSES + SUMS];
    unsigned n = 0;
    for (unsigned k = 0; k < l->n_sums; k++)
        root[n++] = l->sum[k].next;
    for (unsigned k = 0; k < l->at.n_writes; k++)
        root[n++] = l->at.write[k].instruction;
    LLVMMetadataRef line = pass_dearest_line(l->at.body, root, n);
    return line ? line : LLVMInstructionGetDebugLoc(LLVMGetBasicBlockTerminator(l->at.body));
}

static void fast_body(struct pass *p, struct loop *l, LLVMBasicBlockRef end)
{
    struct clones c = pass_clones_begin(BODY_MOST + SCALARS);
    LLVMPositionBuilderAtEnd(p->build, l->fast);
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    for (value v = LLVMGetFirstInstruction(l->at.body); v; v = LLVMGetNextInstruction(v)) {
        value clone =
            LLVMIsAPHINode(v) ? LLVMBuildPhi(p->build, LLVMTypeOf(v), "") : LLVMInstructionClone(v);
        LLVMMetadataRef line = LLVMInstructionGetDebugLoc(v);
        if (!LLVMIsAPHINode(v))
            LLVMInsertIntoBuilderWithName(p->build, clone, "");
        if (line)
            LLVMInstructionSetDebugLoc(clone, line);
        pass_clone_add(&c, v, clone);
    }
    for (value v = LLVMGetFirstInstruction(l->at.body); v; v = LLVMGetNextInstruction(v)) {
        value clone = pass_clone_of(&c, v);
        if (!LLVMIsAPHINode(v)) {
            pass_clone_operands(&c, clone);
            continue;
        }
        value in[] = {pass_incoming(v, l->at.before),
                      pass_clone_of(&c, pass_incoming(v, l->at.body))};
        LLVMAddIncoming(clone, in, (LLVMBasicBlockRef[]){l->look, l->fast}, 2);
        LLVMAddIncoming(v, in, &l->look, 1);
    }
    value last = LLVMGetBasicBlockTerminator(l->fast);
    for (unsigned k = 0; k < LLVMGetNumSuccessors(last); k++)
        LLVMSetSuccessor(last, k, LLVMGetSuccessor(last, k) == l->at.body ? l->fast : end);
    for (value v = LLVMGetFirstInstruction(l->at.behind); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v)) {
        value of = pass_clone_of(&c, pass_incoming(v, l->at.body));
        LLVMAddIncoming(v, &of, &end, 1);
    }
    for (unsigned k = 0; k < l->n_sums; k++)
        l->sum[k].fast = pass_clone_of(&c, l->sum[k].next);
    pass_clones_end(&c);
}

static unsigned call_words(const struct loop *l)
{
    return place_of_sums(l) + l->n_sums;
}

static void fast_make(struct pass *p, struct loop *l)
{
    value f = p->function, told = description(p, l);
    l->line = line_of(l);
    if (!l->line && LLVMGetSubprogram(f))
        l->line = LLVMDIBuilderCreateDebugLocation(p->context,
                                                   LLVMDISubprogramGetLine(LLVMGetSubprogram(f)), 0,
                                                   LLVMGetSubprogram(f), NULL);
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(p->context, f, "loop.end");
    l->fast = LLVMInsertBasicBlockInContext(p->context, l->at.body, "loop.fast");
    l->look = LLVMInsertBasicBlockInContext(p->context, l->fast, "loop.look");
    LLVMMoveBasicBlockAfter(end, l->fast);

    value last = LLVMGetBasicBlockTerminator(l->at.before), said[] = {told, p->loops->memory};
    LLVMPositionBuilderBefore(p->build, last);
    LLVMSetCurrentDebugLocation2(p->build, l->line);
    value many =
        LLVMBuildICmp(p->build, LLVMIntUGE, l->at.trips, pass_number64(p, TRIPS_LEAST), "");
    LLVMBuildCondBr(p->build, many, l->look, l->at.body);
    LLVMInstructionEraseFromParent(last);

    LLVMPositionBuilderAtEnd(p->build, l->look);
    l->begin = pass_call_runtime(p, "ad_plain_loop_begin_", p->i32, 2, said);
    pass_call_apart(p, l->begin);
    value yes = LLVMBuildICmp(p->build, LLVMIntNE, l->begin, p->zero, "");
    LLVMBuildCondBr(p->build, yes, l->fast, l->at.body);

    fast_body(p, l, end);
    LLVMPositionBuilderAtEnd(p->build, end);
    LLVMSetCurrentDebugLocation2(p->build, l->line);
    l->end = pass_call_runtime(p, "ad_plain_loop_end_", p->nothing, 2, said);
    pass_call_apart(p, l->end);
    LLVMBuildBr(p->build, l->at.behind);
}

void pass_loops_prepare(struct pass *p)
{
    p->loops = NULL;
    p->nests = NULL;
    if (p->unoptimised)
        return;
    pass_nests_prepare(p);
    struct pass_found_loop *found = base_calloc(LOOPS_ROOM, sizeof *found);
    const unsigned n = pass_find_loops(p->function, loop_is_wanted, p, found, LOOPS_ROOM);
    struct loops *loops = base_calloc(1, sizeof *loops + n * sizeof *loops->loop);
    unsigned words = 0;
    p->loops = loops;
    for (unsigned k = 0; k < n; k++) {
        struct loop *l = &loops->loop[loops->n];
        *l = (struct loop){.at = found[k]};
        if (!loop_look(l) || !reverse_make(p, l))
            continue;
        words = call_words(l) > words ? call_words(l) : words;
        loops->n++;
    }
    free(found);
    if (loops->n == 0)
        return;
    LLVMPositionBuilderBefore(p->build,
                              LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(p->function)));
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    loops->memory = LLVMBuildAlloca(p->build, LLVMArrayType2(p->i64, words), "loop");
    for (unsigned k = 0; k < loops->n; k++)
        fast_make(p, &loops->loop[k]);
}

void pass_loops_end(struct pass *p)
{
    free(p->loops);
    p->loops = NULL;
    pass_nests_end(p);
}

bool pass_is_fast_loop(const struct pass *p, LLVMBasicBlockRef block)
{
    for (unsigned k = 0; p->loops && k < p->loops->n; k++)
        if (p->loops->loop[k].fast == block)
            return true;
    return pass_is_fast_nest(p, block);
}

/* Before the first call: where the loop reads and writes, and what it takes from before. */
static void begin_visit(struct pass *p, const struct loop *l)
{
    LLVMPositionBuilderBefore(p->build, l->begin);
    pass_store(p, l->at.trips, word_at(p, CALL_TRIPS), 8, NULL);
    for (unsigned k = 0; k < l->at.n_groups; k++) {
        pass_store(p, l->at.group[k].base, word_at(p, CALL_PLACES + 2 * k), 8, NULL);
        pass_store(p, l->at.group[k].step, word_at(p, CALL_PLACES + 2 * k + 1), 8, NULL);
    }
    for (unsigned k = 0; k < l->at.n_writes; k++) {
        const unsigned at = place_of_writes(l) + 2 * k;
        pass_store(p, l->at.write[k].base, word_at(p, at), 8, NULL);
        pass_store(p, l->at.write[k].step, word_at(p, at + 1), 8, NULL);
    }
    for (unsigned k = 0; k < l->n_scalars; k++) {
        const unsigned at = place_of_scalars(l) + 2 * k;
        value index = LLVMBuildZExt(p->build, pass_index_recorded(p, l->scalar[k]), p->i64, "");
        pass_store(p, l->scalar[k], word_at(p, at), 8, NULL);
        pass_store(p, index, word_at(p, at + 1), 8, NULL);
    }
}

static void end_visit(struct pass *p, struct loop *l)
{
    pass_build_after(p, l->end);
    for (unsigned k = 0; k < l->n_sums; k++) {
        value index = pass_load(p, p->i32, word_at(p, place_of_sums(l) + k), 8, NULL);
        pass_known(p, l->sum[k].fast)->index = index;
    }
}

bool pass_loop_visit(struct pass *p, value v)
{
    if (p->loops && v == p->loops->memory)
        return true;
    for (unsigned k = 0; p->loops && k < p->loops->n; k++) {
        struct loop *l = &p->loops->loop[k];
        if (v == l->begin)
            begin_visit(p, l);
        else if (v == l->end)
            end_visit(p, l);
        else
            continue;
        return true;
    }
    return pass_nest_visit(p, v);
}
