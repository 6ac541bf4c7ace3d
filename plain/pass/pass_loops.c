/* pass_loops.c: a counted loop is one record where that can be.
 *
 * A loop of one block, without calls but those that have a rule, which reads and writes doubles at
 * places that are known before it, gets a second way through it: the loop as it is, without a
 * statement, between two calls of the runtime (plain/runtime/plain_loop.c). The first looks at what
 * the loop reads, begins a record, and says which way is taken. What the loop's results depend on
 * is a function of its own, made here of the rules: rows of the formulas, in terms of what is read.
 * The sweep calls it, for some rounds at once.
 *
 * Invariant: no round reads what another has written; whether writes meet reads is asked at run
 * time. Where what goes from round to round are nothing but sums, the derivatives of all rounds are
 * independent, and LLVM makes vectors of them. Other numbers that are carried so (products, maxima,
 * s = a * s + b) have adjoints that are carried back: the last round is the first, and the values
 * that derivatives need of them are kept by the second way itself.
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

/* A number that goes from round to round: a sum, unless the loop carries others. */
struct sum {
    value phi, next, init;
    unsigned scalar; /* what it begins with; SCALARS: a constant */
    uint64_t of;
    bool is_kept;          /* derivatives need its value before each round */
    value kept, kept_step; /* where the second way puts that */
    value fast, index;     /* its value behind the loop, and where that stands on the tape */
};

struct loop {
    struct pass_found_loop at;
    value scalar[SCALARS]; /* floating values that are known before it */
    struct sum sum[SUMS];
    unsigned n_scalars, n_sums;
    bool carries;                       /* not only sums */
    uint64_t written_of[PASS_ACCESSES]; /* groups and scalars that a write depends on */
    bool by[PASS_ACCESSES + SCALARS];   /* whether anything depends on a read or scalar */
    bool is_kept[PASS_ACCESSES];        /* groups whose values the derivatives need */
    value reverse, begin, end;
    struct second_way way;
    LLVMBasicBlockRef fast;
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
    if (pass_is_fast_nest(payload, body) || pass_is_fast_region(payload, body))
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

/* void reverse(i64 n, values, scalars, dy, out, carried, adjoints): out[k][i], of ROW: what read or
 * scalar k gets of round i of n; values[k], dy[k]: where the reads' values and the results'
 * adjoints of the rounds begin. In a loop that carries numbers: carried[k] is where their values
 * before each round begin, adjoints[k] those of what the last round has left, which become those of
 * what the first has begun with; and out[k][0] of a scalar is the sum of all rounds. */
enum { OF_N, OF_VALUES, OF_SCALARS, OF_DY, OF_OUT, OF_CARRIED, OF_ADJOINTS, OF_ALL };

struct reverse {
    struct loop *loop;
    value function, count, round;
    value values[PASS_ACCESSES], dy[PASS_ACCESSES + SUMS], placeholder[SUMS];
    value carried[SUMS], adjoint[SUMS], next_adjoint[SUMS]; /* of a loop that carries numbers */
    value total[SCALARS], next_total[SCALARS];
    uint64_t by_sums[PASS_ACCESSES + SUMS]; /* carried numbers that a write, or a number, is of */
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

static value pointer_at(struct pass *p, value base, unsigned k)
{
    value at = pass_pointer_at(p, p->pointer, base, pass_number64(p, k));
    return pass_load(p, p->pointer, at, 8, NULL);
}

/* The last round is the first. */
static void carried_begin(struct pass *p, struct reverse *r)
{
    struct loop *l = r->loop;
    value adjoints = LLVMGetParam(r->function, OF_ADJOINTS), zero = pass_real_number(p, 0);
    for (unsigned k = 0; k < l->n_sums; k++)
        r->adjoint[k] = LLVMBuildPhi(p->build, p->real, "adjoint");
    for (unsigned k = 0; k < l->n_scalars; k++) {
        r->total[k] = LLVMBuildPhi(p->build, p->real, "total");
        LLVMAddIncoming(r->total[k], &zero, &r->entry, 1);
    }
    value last = LLVMBuildSub(p->build, LLVMGetParam(r->function, OF_N), pass_number64(p, 1), "");
    r->round = LLVMBuildSub(p->build, last, r->count, "");
    for (unsigned k = 0; k < l->n_sums; k++) {
        value x = number_at(p, r->carried[k], r->round);
        pass_clone_add(&r->clones, l->sum[k].phi, x);
        token_set(p, x, l->at.n_reads + l->n_scalars + k);
        LLVMPositionBuilderBefore(p->build, LLVMGetBasicBlockTerminator(r->entry));
        value first = number_at(p, adjoints, pass_number64(p, k));
        LLVMPositionBuilderAtEnd(p->build, r->body);
        LLVMAddIncoming(r->adjoint[k], &first, &r->entry, 1);
    }
}

static void reverse_begin(struct pass *p, struct reverse *r)
{
    struct loop *l = r->loop;
    type of[OF_ALL] = {p->i64,     p->pointer, p->pointer, p->pointer,
                       p->pointer, p->pointer, p->pointer};
    value f = pass_derivatives_add(p, "ad_plain_loop_derivatives_", of, OF_ALL);
    r->function = l->reverse = f;
    const unsigned noalias = LLVMGetEnumAttributeKindForName("noalias", 7);
    LLVMAddAttributeAtIndex(f, OF_OUT + 1, LLVMCreateEnumAttribute(p->context, noalias, 0));
    r->entry = LLVMAppendBasicBlockInContext(p->context, f, "entry");
    r->body = LLVMAppendBasicBlockInContext(p->context, f, "round");
    LLVMPositionBuilderAtEnd(p->build, r->entry);
    for (unsigned k = 0; k < l->at.n_reads; k++)
        r->values[k] = pointer_at(p, LLVMGetParam(f, OF_VALUES), k);
    for (unsigned k = 0; k < l->n_scalars; k++) {
        value x = number_at(p, LLVMGetParam(f, OF_SCALARS), pass_number64(p, k));
        pass_clone_add(&r->clones, l->scalar[k], x);
        token_set(p, x, l->at.n_reads + k);
    }
    for (unsigned k = 0; k < l->at.n_writes + l->n_sums; k++) {
        value at = pointer_at(p, LLVMGetParam(f, OF_DY), k);
        r->dy[k] = k < l->at.n_writes ? at : number_at(p, at, pass_number64(p, 0));
    }
    for (unsigned k = 0; k < l->n_sums && !l->carries; k++) {
        value nothing = LLVMGetUndef(p->real);
        r->placeholder[k] = LLVMBuildFreeze(p->build, nothing, "");
        pass_clone_add(&r->clones, l->sum[k].phi, r->placeholder[k]);
        token_set(p, r->placeholder[k], l->at.n_reads + l->n_scalars + k);
    }
    for (unsigned k = 0; k < l->n_sums && l->carries; k++)
        r->carried[k] = pointer_at(p, LLVMGetParam(f, OF_CARRIED), k);
    LLVMBuildBr(p->build, r->body);
    LLVMPositionBuilderAtEnd(p->build, r->body);
    r->count = r->round = LLVMBuildPhi(p->build, p->i64, "round");
    if (l->carries)
        carried_begin(p, r);
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
        if (!is_read(l, v) && !pass_clone_formula(p, &r->clones, v))
            return false;
    return !p->too_long;
}

static uint64_t bit_of(const struct loop *l, unsigned token)
{
    return UINT64_C(1) << (token < l->at.n_reads ? l->at.read[token].group
                                                 : token - l->at.n_reads + PASS_ACCESSES);
}

/* What a result's adjoint gives to all that it depends on. A sum's own share is none; to carried
 * numbers it gives what they have in the round before. */
static bool reverse_result(struct pass *p, struct reverse *r, value result, value dy, int sum,
                           value *out, uint64_t *of, uint64_t *by_sums)
{
    struct loop *l = r->loop;
    const unsigned tokens = l->at.n_reads + l->n_scalars;
    struct row row;
    bool goes_on = sum < 0 || l->carries;
    pass_row_of(p, pass_clone_of(&r->clones, result), &row);
    if (is_within(result, l->at.body) && pass_clone_of(&r->clones, result) == result)
        return false;
    for (unsigned k = 0; k < row.n; k++) {
        const struct entry *e = &row.entry[k];
        const unsigned token = (unsigned)LLVMConstIntGetZExtValue(e->index) - 1;
        if (token >= tokens && !l->carries) {
            goes_on |= token - tokens == (unsigned)sum && !e->partial && !e->negative;
            if (token - tokens != (unsigned)sum || e->partial || e->negative)
                return false;
            continue;
        }
        const bool is_carried = token >= tokens;
        value part =
            is_carried ? pass_part_of_carried(p, dy, e->partial) : pass_part_of(p, dy, e->partial);
        if (is_carried) {
            pass_part_add(p, &r->next_adjoint[token - tokens], part, e->negative);
            *by_sums |= UINT64_C(1) << (token - tokens);
            continue;
        }
        pass_part_add(p, &out[token], part, e->negative);
        l->by[token] = true;
        *of |= bit_of(l, token);
    }
    return goes_on;
}

/* What depends on a carried number depends on what that does. */
static void of_carried(struct loop *l, const struct reverse *r)
{
    for (unsigned time = 0; time < l->n_sums; time++)
        for (unsigned to = 0; to < l->at.n_writes + l->n_sums; to++)
            for (unsigned k = 0; k < l->n_sums; k++)
                if (r->by_sums[to] >> k & 1)
                    *(to < l->at.n_writes ? &l->written_of[to] : &l->sum[to - l->at.n_writes].of) |=
                        l->sum[k].of;
}

static bool reverse_results(struct pass *p, struct reverse *r)
{
    struct loop *l = r->loop;
    value out[PASS_ACCESSES + SCALARS] = {NULL};
    bool any = false;
    for (unsigned k = 0; k < l->at.n_writes; k++) {
        value result = LLVMGetOperand(l->at.write[k].instruction, 0);
        value dy = number_at(p, r->dy[k], r->round);
        if (!reverse_result(p, r, result, dy, -1, out, &l->written_of[k], &r->by_sums[k]))
            return false;
    }
    for (unsigned k = 0; k < l->n_sums; k++) {
        struct sum *sum = &l->sum[k];
        value dy = l->carries ? r->adjoint[k] : r->dy[l->at.n_writes + k];
        if (!reverse_result(p, r, sum->next, dy, (int)k, out, &sum->of,
                            &r->by_sums[l->at.n_writes + k]))
            return false;
        if (sum->scalar < SCALARS)
            sum->of |= UINT64_C(1) << (PASS_ACCESSES + sum->scalar);
    }
    of_carried(l, r);
    for (unsigned k = 0; k < l->at.n_writes; k++)
        any |= l->written_of[k] != 0;
    for (unsigned k = 0; k < l->n_sums; k++)
        any |= l->sum[k].of != 0;
    for (unsigned k = 0; k < l->at.n_reads + l->n_scalars; k++) {
        if (!out[k])
            continue;
        if (l->carries && k >= l->at.n_reads) {
            const unsigned scalar = k - l->at.n_reads;
            r->next_total[scalar] = LLVMBuildFAdd(p->build, r->total[scalar], out[k], "");
            continue;
        }
        value place = LLVMBuildAdd(p->build, r->round, pass_number64(p, (uint64_t)k * ROW), "");
        pass_store(p, out[k], pass_pointer_at(p, p->real, LLVMGetParam(r->function, OF_OUT), place),
                   8, NULL);
    }
    return any;
}

/* What is carried on, and totals, behind the loop. */
static void carried_end(struct pass *p, struct reverse *r, LLVMBasicBlockRef latch)
{
    struct loop *l = r->loop;
    for (unsigned k = 0; k < l->n_sums; k++) {
        value next = r->next_adjoint[k] ? r->next_adjoint[k] : pass_real_number(p, 0);
        LLVMAddIncoming(r->adjoint[k], &next, &latch, 1);
        value at = LLVMGetParam(r->function, OF_ADJOINTS);
        pass_store(p, next, pass_pointer_at(p, p->real, at, pass_number64(p, k)), 8, NULL);
    }
    for (unsigned k = 0; k < l->n_scalars; k++) {
        value next = r->next_total[k] ? r->next_total[k] : r->total[k];
        LLVMAddIncoming(r->total[k], &next, &latch, 1);
        if (!r->next_total[k])
            continue;
        value place = pass_number64(p, (uint64_t)(l->at.n_reads + k) * ROW);
        pass_store(p, next, pass_pointer_at(p, p->real, LLVMGetParam(r->function, OF_OUT), place),
                   8, NULL);
    }
}

static void reverse_end(struct pass *p, struct reverse *r)
{
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(p->context, r->function, "end"),
                      latch = LLVMGetInsertBlock(p->build);
    value next = LLVMBuildAdd(p->build, r->count, pass_number64(p, 1), ""),
          first = pass_number64(p, 0);
    value more = LLVMBuildICmp(p->build, LLVMIntULT, next, LLVMGetParam(r->function, OF_N), "");
    LLVMBuildCondBr(p->build, more, r->body, end);
    LLVMAddIncoming(r->count, (value[]){first, next}, (LLVMBasicBlockRef[]){r->entry, latch}, 2);
    LLVMPositionBuilderAtEnd(p->build, end);
    if (r->loop->carries)
        carried_end(p, r, latch);
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
    for (unsigned k = 0; k < l->n_sums && !l->carries; k++) /* it depends on the sum so far */
        right &= !pass_is_there(r.entry, r.placeholder[k]);
    for (unsigned k = 0; k < l->n_sums && l->carries; k++)
        l->sum[k].is_kept = pass_is_there(r.entry, r.carried[k]);
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

/* Whether it makes a number that it has not read: of a maximum of what is read nothing is
 * recorded, which costs less. */
static bool loop_computes(const struct loop *l)
{
    for (value v = LLVMGetFirstInstruction(l->at.body); v; v = LLVMGetNextInstruction(v))
        if (pass_has_rule(v) && !pass_only_chooses(v))
            return true;
    return false;
}

/* The same, with numbers that are carried where they are no sums. */
static bool loop_derive(struct pass *p, struct loop *l)
{
    const struct loop looked_at = *l;
    if (reverse_make(p, l))
        return true;
    *l = looked_at;
    l->carries = l->n_sums > 0 && loop_computes(l);
    return l->carries && reverse_make(p, l);
}

/* ---- what the runtime is told ---- */

struct told_words {
    value word[8 * PASS_ACCESSES + 4 * SCALARS + 4 * SUMS + 1];
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
    word_add(p, &w, l->carries);
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
        word_add(p, &w, l->sum[k].is_kept);
    }
    return pass_derivatives_told(p, "ad_plain_loop_", l->reverse, w.word, w.n);
}

/* Words of a call's memory: struct plain_loop_call. */
enum { CALL_TRIPS, CALL_ACTIVE = 2, CALL_PLACES };

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

/* Of each sum where its values are to be kept, and how far apart. */
static unsigned place_of_kept(const struct loop *l)
{
    return place_of_sums(l) + l->n_sums;
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
    value kept[SUMS];
    LLVMPositionBuilderAtEnd(p->build, l->fast);
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    for (unsigned k = 0; k < l->n_sums; k++)
        kept[k] = l->sum[k].is_kept ? LLVMBuildPhi(p->build, p->pointer, "kept") : NULL;
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
        LLVMAddIncoming(clone, in, (LLVMBasicBlockRef[]){l->way.enter, l->fast}, 2);
        LLVMAddIncoming(v, in, &l->way.look, 1);
    }
    value last = LLVMGetBasicBlockTerminator(l->fast);
    LLVMPositionBuilderBefore(p->build, last);
    for (unsigned k = 0; k < l->n_sums; k++) {
        if (!kept[k])
            continue;
        pass_store(p, pass_clone_of(&c, l->sum[k].phi), kept[k], 8, p->tag_tape);
        value next = pass_pointer_at(p, p->i8, kept[k], l->sum[k].kept_step);
        LLVMAddIncoming(kept[k], (value[]){l->sum[k].kept, next},
                        (LLVMBasicBlockRef[]){l->way.enter, l->fast}, 2);
    }
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
    return place_of_kept(l) + 2 * l->n_sums;
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
    pass_way_make(p, &l->way, l->fast, "loop");
    LLVMMoveBasicBlockAfter(end, l->fast);

    value last = LLVMGetBasicBlockTerminator(l->at.before), said[] = {told, p->loops->memory};
    LLVMPositionBuilderBefore(p->build, last);
    LLVMSetCurrentDebugLocation2(p->build, l->line);
    value many =
        LLVMBuildICmp(p->build, LLVMIntUGE, l->at.trips, pass_number64(p, TRIPS_LEAST), "");
    pass_way_ask(p, &l->way, many, l->at.body);
    LLVMInstructionEraseFromParent(last);

    LLVMPositionBuilderAtEnd(p->build, l->way.idle);
    pass_store(p, pass_number64(p, WAY_IDLE), word_at(p, CALL_ACTIVE), 8, NULL);
    for (unsigned k = 0; k < l->n_sums; k++) { /* what it would keep goes to one word */
        const unsigned at = place_of_kept(l) + 2 * k;
        if (!l->sum[k].is_kept)
            continue;
        pass_store(p, word_at(p, place_of_sums(l) + k), word_at(p, at), 8, NULL);
        pass_store(p, pass_number64(p, 0), word_at(p, at + 1), 8, NULL);
    }
    LLVMBuildBr(p->build, l->way.enter);

    LLVMPositionBuilderAtEnd(p->build, l->way.look);
    l->begin = pass_call_runtime(p, "ad_plain_loop_begin_", p->i32, 2, said);
    pass_call_apart(p, l->begin);
    value yes = LLVMBuildICmp(p->build, LLVMIntNE, l->begin, p->zero, "");
    LLVMBuildCondBr(p->build, yes, l->way.enter, l->at.body);

    LLVMPositionBuilderAtEnd(p->build, l->way.enter);
    for (unsigned k = 0; k < l->n_sums; k++) {
        if (!l->sum[k].is_kept)
            continue;
        const unsigned at = place_of_kept(l) + 2 * k;
        l->sum[k].kept = pass_load(p, p->pointer, word_at(p, at), 8, NULL);
        l->sum[k].kept_step = pass_load(p, p->i64, word_at(p, at + 1), 8, NULL);
    }
    LLVMBuildBr(p->build, l->fast);

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
    p->regions = NULL;
    if (p->unoptimised)
        return;
    pass_regions_prepare(p);
    pass_nests_prepare(p);
    struct pass_found_loop *found = base_calloc(LOOPS_ROOM, sizeof *found);
    const unsigned n = pass_find_loops(p->function, loop_is_wanted, p, found, LOOPS_ROOM);
    struct loops *loops = base_calloc(1, sizeof *loops + n * sizeof *loops->loop);
    unsigned words = 0;
    p->loops = loops;
    for (unsigned k = 0; k < n; k++) {
        struct loop *l = &loops->loop[loops->n];
        *l = (struct loop){.at = found[k]};
        if (!loop_look(l) || !loop_derive(p, l))
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
    pass_regions_end(p);
}

bool pass_is_fast_loop(const struct pass *p, LLVMBasicBlockRef block)
{
    for (unsigned k = 0; p->loops && k < p->loops->n; k++)
        if (p->loops->loop[k].fast == block)
            return true;
    return pass_is_fast_nest(p, block) || pass_is_fast_region(p, block);
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
        else if (!pass_way_is_of(&l->way, v))
            continue;
        return true;
    }
    return pass_nest_visit(p, v) || pass_region_visit(p, v);
}
