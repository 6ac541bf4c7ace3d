/* pass_nests.c: an outer loop with an inner one is one record where that can be.
 *
 * As pass_loops.c has it for a single loop: a second way through, without a statement, between two
 * calls of the runtime (plain/runtime/plain_nest.c). What the results depend on is a function made
 * of the rules, with two loops of its own. It reads the values that the record keeps, and adds to
 * adjoints where they lie: one loop for each array that moves with the inner loop, so that each can
 * be of vectors, and one for all that does not.
 *
 * Invariant: no round reads what any round has written, but to add to it: y[r] += a[c] * l[c][r].
 * What is added depends on no such y, so the derivatives of all rounds are independent. Whether
 * arrays meet otherwise is asked at run time. What goes from round to round in registers are sums,
 * and no derivative depends on one.
 */
#include "pass_nests.h"
#include "pass_derive.h"
#include "pass_search.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    NESTS_ROOM = 64,
    INSTRUCTIONS_MOST = 400,
    NEST_SCALARS = ROW_ROOM,
    NEST_SUMS = 4,
    ROUNDS_LEAST = 40, /* of the inner loop, in all: fewer are statements */
    /* Numbers of what rows are of. */
    OF_SCALARS = NEST_ACCESSES,
    OF_WITHIN = OF_SCALARS + NEST_SCALARS,
    OF_SUMS = OF_WITHIN + NEST_SUMS,
    OF_ALL = OF_SUMS + NEST_SUMS
};

/* A sum over the inner loop, or over the outer one. */
struct nest_sum {
    value phi, next, init;
    unsigned scalar; /* that it begins with, of the outer loop; NEST_SCALARS: a constant */
    uint64_t of;
    value fast; /* its value behind the second way */
};

struct nest {
    struct pass_found_nest at;
    value scalar[NEST_SCALARS];
    value given[NEST_SCALARS]; /* stores of them for the runtime */
    struct nest_sum within[NEST_SUMS], sum[NEST_SUMS];
    unsigned n_scalars, n_within, n_sums;
    int adds_to[NEST_ACCESSES]; /* the read that a write adds to; -1: it does not */
    uint64_t of[NEST_ACCESSES]; /* what a write depends on */
    bool gets[NEST_ACCESSES + NEST_SCALARS];
    bool is_kept[NEST_ACCESSES];
    value reverse, begin, end;
    struct second_way way;
    LLVMBasicBlockRef fast[NEST_BLOCKS];
    LLVMMetadataRef line;
};

struct nests {
    unsigned n;
    value memory, ready; /* of their calls */
    struct nest nest[];
};

/* ---- which nests ---- */

static bool block_is_wanted(LLVMBasicBlockRef block, void *payload)
{
    unsigned n = 0;
    if (pass_is_fast_region(payload, block))
        return false;
    for (value v = LLVMGetFirstInstruction(block); v; v = LLVMGetNextInstruction(v)) {
        if (LLVMIsACallInst(v) && strcmp(pass_name_of(LLVMGetCalledValue(v)),
                                         "llvm.experimental.noalias.scope.decl") == 0)
            continue;
        if (++n > INSTRUCTIONS_MOST || !pass_loop_takes(v))
            return false;
    }
    return true;
}

static int block_of(const struct nest *l, LLVMBasicBlockRef block)
{
    for (unsigned k = 0; k < l->at.n_blocks; k++)
        if (l->at.block[k] == block)
            return (int)k;
    return -1;
}

static bool is_of_nest(const struct nest *l, value v)
{
    return LLVMIsAInstruction(v) && block_of(l, LLVMGetInstructionParent(v)) >= 0;
}

static LLVMBasicBlockRef body_of(const struct nest *l)
{
    return l->at.block[l->at.body];
}

static LLVMBasicBlockRef latch_of(const struct nest *l)
{
    return l->at.block[l->at.n_blocks - 1];
}

static int access_of(const struct nest *l, value v)
{
    for (unsigned k = 0; k < l->at.n_accesses; k++)
        if (l->at.access[k].instruction == v)
            return (int)k;
    return -1;
}

static bool nest_scalar(struct nest *l, value v, unsigned *number)
{
    *number = NEST_SCALARS;
    if (LLVMIsAConstant(v))
        return true;
    for (*number = 0; *number < l->n_scalars; ++*number)
        if (l->scalar[*number] == v)
            return true;
    if (l->n_scalars == NEST_SCALARS)
        return false;
    l->scalar[l->n_scalars++] = v;
    return true;
}

static bool nest_sum_add(struct nest *l, value phi, unsigned block)
{
    const bool within = block == l->at.body;
    struct nest_sum *sums = within ? l->within : l->sum;
    unsigned *n = within ? &l->n_within : &l->n_sums;
    if (*n == NEST_SUMS)
        return false;
    struct nest_sum *sum = &sums[(*n)++];
    *sum = (struct nest_sum){
        .phi = phi,
        .next = pass_incoming(phi, within ? body_of(l) : latch_of(l)),
        .init = pass_incoming(phi, within ? l->at.block[block - 1] : l->at.before)};
    return within ? sum->init != NULL : nest_scalar(l, sum->init, &sum->scalar);
}

/* The sums, and the values from before. */
static bool nest_look(struct nest *l)
{
    unsigned number;
    for (unsigned b = 0; b < l->at.n_blocks; b++)
        for (value v = LLVMGetFirstInstruction(l->at.block[b]); v; v = LLVMGetNextInstruction(v)) {
            if (LLVMIsAPHINode(v) && pass_is_double(v) && access_of(l, v) < 0 &&
                (b == 0 || b == l->at.body) && !nest_sum_add(l, v, b))
                return false;
            const unsigned n = LLVMIsAPHINode(v) ? 0 : pass_operands_of(v);
            for (unsigned k = 0; k < n; k++) {
                value of = LLVMGetOperand(v, k);
                if (!LLVMValueIsBasicBlock(of) && pass_is_double(of) && !is_of_nest(l, of) &&
                    !nest_scalar(l, of, &number))
                    return false;
            }
        }
    for (unsigned k = 0; k < l->n_within; k++)
        if (!is_of_nest(l, l->within[k].init) && !nest_scalar(l, l->within[k].init, &number))
            return false;
    /* What is used behind the nest: sums of the outer loop, and no other floating value. */
    for (value v = LLVMGetFirstInstruction(l->at.behind); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v)) {
        value of = pass_incoming(v, latch_of(l));
        bool is_sum = !is_of_nest(l, of) || !pass_is_double(of);
        for (unsigned k = 0; k < l->n_sums; k++)
            is_sum |= l->sum[k].next == of;
        if (!is_sum)
            return false;
    }
    return true;
}

/* Whether a write may be one that adds: it stands behind the one read of its place, and nothing is
 * written between them. */
static bool may_add(const struct nest *l, unsigned write)
{
    const struct pass_found_access *access = l->at.access;
    const unsigned read = access[write].same;
    for (unsigned k = 0; k < l->at.n_accesses; k++) {
        if (k != write && k != read && access[k].same == read)
            return false;
        if (k > read && k < write && access[k].is_write)
            return false;
    }
    return LLVMIsALoadInst(access[read].instruction) && read < write;
}

/* ---- derivatives ---- */

/* void reverse(i64 n, i64 first, i64 step, rows, scalars): as in plain/runtime/plain_nest.c. */
enum { OF_N, OF_FIRST, OF_STEP, OF_ROWS, OF_VALUES };
enum { ROW_VALUE, ROW_ADJOINT, ROW_OUTER, ROW_OUTER_ADJOINT, ROW_INNER, ROW_WORDS };

struct nest_reverse {
    struct nest *nest;
    value function, i, trips, run, placeholder[OF_ALL];
    value word[NEST_ACCESSES + NEST_SCALARS + NEST_SUMS][ROW_WORDS];
    value within_dy[NEST_SUMS]; /* of sums over the inner loop, in this round of the outer one */
    uint64_t within_by[NEST_ACCESSES + NEST_SUMS]; /* such sums that a write, or a sum, is of */
    bool sums_again;        /* derivatives depend on such sums: they are computed again */
    value final[NEST_SUMS]; /* or NULL */
    LLVMBasicBlockRef entry, row, last;
    struct clones clones;
};

static void number_is(struct pass *p, value v, unsigned of)
{
    pass_known(p, v)->index = pass_number32(p, of + 1);
}

static value row_word(struct pass *p, value rows, unsigned row, unsigned word)
{
    value at = pass_byte_offset(p, rows, 8 * ((uint64_t)ROW_WORDS * row + word));
    return pass_load(p, word <= ROW_ADJOINT ? p->pointer : p->i64, at, 8, p->tag_thread);
}

static void nest_reverse_begin(struct pass *p, struct nest_reverse *r)
{
    struct nest *l = r->nest;
    type of[] = {p->i64, p->i64, p->i64, p->pointer, p->pointer};
    value f = pass_derivatives_add(p, "ad_plain_nest_derivatives_", of, 5);
    r->function = l->reverse = f;
    r->entry = LLVMAppendBasicBlockInContext(p->context, f, "entry");
    r->row = LLVMAppendBasicBlockInContext(p->context, f, "row");
    LLVMPositionBuilderAtEnd(p->build, r->entry);
    for (unsigned k = 0; k < l->at.n_accesses + l->n_scalars + l->n_sums; k++)
        for (unsigned w = 0; w < ROW_WORDS; w++)
            r->word[k][w] = row_word(p, LLVMGetParam(f, OF_ROWS), k, w);
    for (unsigned k = 0; k < l->at.n_accesses; k++)
        if (LLVMIsAConstantInt(l->at.access[k].inner))
            r->word[k][ROW_INNER] = l->at.access[k].inner;
    for (unsigned k = 0; k < l->n_scalars; k++) {
        value x =
            pass_load(p, p->real, pass_byte_offset(p, LLVMGetParam(f, OF_VALUES), 8 * (uint64_t)k),
                      8, p->tag_thread);
        pass_clone_add(&r->clones, l->scalar[k], x);
        number_is(p, x, OF_SCALARS + k);
    }
    for (unsigned k = 0; k < OF_ALL; k++)
        r->placeholder[k] = NULL;
    for (unsigned k = 0; k < l->n_within + l->n_sums; k++) {
        const bool within = k < l->n_within;
        const unsigned number = within ? OF_WITHIN + k : OF_SUMS + k - l->n_within;
        r->placeholder[number] = LLVMBuildFreeze(p->build, LLVMGetUndef(p->real), "");
        pass_clone_add(&r->clones, within ? l->within[k].phi : l->sum[k - l->n_within].phi,
                       r->placeholder[number]);
        number_is(p, r->placeholder[number], number);
    }
    LLVMBuildBr(p->build, r->row);
    LLVMPositionBuilderAtEnd(p->build, r->row);
    r->i = LLVMBuildPhi(p->build, p->i64, "i");
    r->trips = LLVMBuildPhi(p->build, p->i64, "trips");
    r->run = LLVMBuildPhi(p->build, p->i64, "run");
}

/* Where an access is in round i and, unless NULL, j: of its value, or of its adjoint. */
static value nest_place(struct pass *p, const struct nest_reverse *r, unsigned access, bool adjoint,
                        value j)
{
    const value *word = r->word[access];
    LLVMBuilderRef b = p->build;
    value offset = r->nest->at.access[access].runs_on
                       ? LLVMBuildMul(b, r->run, word[ROW_INNER], "")
                       : LLVMBuildMul(b, r->i, word[adjoint ? ROW_OUTER_ADJOINT : ROW_OUTER], "");
    value row = pass_pointer_at(p, p->i8, word[adjoint ? ROW_ADJOINT : ROW_VALUE], offset);
    return j ? pass_pointer_at(p, p->i8, row, LLVMBuildMul(b, j, word[ROW_INNER], "")) : row;
}

/* Which sum over the inner loop a phi behind it is, or -1. */
static int within_of(const struct nest *l, value v, value skipped)
{
    for (unsigned k = 0; k < l->n_within; k++)
        if (l->within[k].next == v && (!skipped || skipped == l->within[k].init))
            return (int)k;
    if (!LLVMIsAPHINode(v) || block_of(l, LLVMGetInstructionParent(v)) <= (int)l->at.body)
        return -1;
    value around = pass_incoming(v, l->at.block[0]);
    const unsigned n = LLVMCountIncoming(v);
    if (n > 2 || (n == 2) != (around != NULL) || (around && skipped))
        return -1;
    for (unsigned k = 0; k < n; k++)
        if (LLVMGetIncomingBlock(v, k) != l->at.block[0])
            return within_of(l, LLVMGetIncomingValue(v, k), around ? around : skipped);
    return -1;
}

/* A sum over the inner loop where that has ended: what it began with, and what was added. */
static void within_final(struct pass *p, struct nest_reverse *r, value phi, unsigned sum)
{
    value init = pass_clone_of(&r->clones, r->nest->within[sum].init);
    struct row *row = base_calloc(1, sizeof *row);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(p->build);
    LLVMPositionBuilderBefore(p->build, LLVMGetBasicBlockTerminator(r->entry));
    value final =
        r->final[sum] ? r->final[sum] : LLVMBuildFreeze(p->build, LLVMGetUndef(p->real), "");
    LLVMPositionBuilderAtEnd(p->build, here);
    if (!is_of_nest(r->nest, init))
        pass_row_add(p, row, init, NULL, false);
    else
        p->too_long = true; /* what it begins with is not known */
    pass_row_add(p, row, r->placeholder[OF_WITHIN + sum], NULL, false);
    struct known *known = pass_known(p, final);
    free(known->row);
    known->row = row;
    known->index = NULL;
    pass_clone_add(&r->clones, phi, final);
}

/* The formulas of a block again, in round i and, unless NULL, j. */
static bool block_formulas(struct pass *p, struct nest_reverse *r, unsigned block, value j)
{
    struct nest *l = r->nest;
    for (value v = LLVMGetFirstInstruction(l->at.block[block]); v; v = LLVMGetNextInstruction(v)) {
        const int access = access_of(l, v);
        if (access >= 0) {
            if (l->at.access[access].is_write)
                continue;
            const unsigned same = l->at.access[access].same;
            value x =
                same == (unsigned)access
                    ? pass_load(p, p->real, nest_place(p, r, same, false, j), 8, p->tag_thread)
                    : pass_clone_of(&r->clones, l->at.access[same].instruction);
            pass_clone_add(&r->clones, v, x);
            number_is(p, x, same);
        } else if (LLVMIsAPHINode(v)) {
            const int sum = pass_is_double(v) ? within_of(l, v, NULL) : -1;
            if (block > l->at.body && sum >= 0)
                within_final(p, r, v, (unsigned)sum);
        } else if (!pass_clone_formula(p, &r->clones, v)) {
            return false;
        }
    }
    return !p->too_long;
}

/* The sums over the inner loop again, which runs at least once. */
static bool nest_sums_again(struct pass *p, struct nest_reverse *r)
{
    struct nest *l = r->nest;
    const unsigned had = r->clones.n;
    LLVMBuilderRef b = p->build;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b),
                      body = LLVMAppendBasicBlockInContext(p->context, r->function, "sums"),
                      end = LLVMAppendBasicBlockInContext(p->context, r->function, "summed");
    value sum[NEST_SUMS] = {NULL}, zero = pass_number64(p, 0);
    LLVMBuildBr(b, body);
    LLVMPositionBuilderAtEnd(b, body);
    value j = LLVMBuildPhi(b, p->i64, "j");
    for (unsigned k = 0; k < l->n_within; k++) {
        value init = pass_clone_of(&r->clones, l->within[k].init);
        if (is_of_nest(l, init))
            return false;
        if (LLVMIsAInstruction(init) && LLVMGetInstructionOpcode(init) == LLVMFreeze)
            continue; /* it goes on with what a sum over the outer loop is: nobody knows that */
        sum[k] = LLVMBuildPhi(b, p->real, "sum");
        LLVMAddIncoming(sum[k], &init, &before, 1);
        pass_clone_add(&r->clones, l->within[k].phi, sum[k]);
        number_is(p, sum[k], OF_WITHIN + k);
    }
    if (!block_formulas(p, r, l->at.body, j))
        return false;
    for (unsigned k = 0; k < l->n_within; k++) {
        if (!sum[k])
            continue;
        r->final[k] = pass_clone_of(&r->clones, l->within[k].next);
        if (is_of_nest(l, r->final[k]))
            return false;
        LLVMAddIncoming(sum[k], &r->final[k], &body, 1);
    }
    value next = LLVMBuildAdd(b, j, pass_number64(p, 1), "");
    pass_loop_of_short_rows(
        p, LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, r->trips, ""), body, end));
    LLVMAddIncoming(j, (value[]){zero, next}, (LLVMBasicBlockRef[]){before, body}, 2);
    LLVMPositionBuilderAtEnd(b, end);
    for (unsigned k = 0; k < l->n_within; k++) { /* of its own, for its row */
        if (!sum[k])
            continue;
        value final = LLVMBuildPhi(b, p->real, "");
        LLVMAddIncoming(final, &r->final[k], &body, 1);
        r->final[k] = final;
    }
    r->clones.n = had;
    return true;
}

/* What a result's adjoint gives to all that it depends on. `own`: a sum's or read's own number,
 * which must be there as it is and has no share, or OF_ALL. */
static bool nest_result(struct pass *p, struct nest_reverse *r, value result, value dy,
                        unsigned own, bool within, value *out, uint64_t *of, uint64_t *sums)
{
    struct row row;
    bool goes_on = own == OF_ALL;
    value clone = pass_clone_of(&r->clones, result);
    if (is_of_nest(r->nest, clone))
        return false;
    pass_row_of(p, clone, &row);
    for (unsigned k = 0; k < row.n; k++) {
        const struct entry *e = &row.entry[k];
        const unsigned from = (unsigned)LLVMConstIntGetZExtValue(e->index) - 1;
        if (from == own) {
            if (e->partial || e->negative)
                return false;
            goes_on = true;
            continue;
        }
        if (from >= OF_SUMS || (from >= OF_WITHIN && within))
            return false;
        value part = pass_part_of(p, dy, e->partial);
        if (from >= OF_WITHIN) {
            pass_part_add(p, &r->within_dy[from - OF_WITHIN], part, e->negative);
            *sums |= UINT64_C(1) << (from - OF_WITHIN);
            continue;
        }
        pass_part_add(p, &out[from], part, e->negative);
        r->nest->gets[from] = true;
        *of |= UINT64_C(1) << from;
    }
    return goes_on;
}

/* A write, unless its block is another sort. */
static bool nest_write(struct pass *p, struct nest_reverse *r, unsigned k, value j, value *out)
{
    struct nest *l = r->nest;
    const struct pass_found_access *a = &l->at.access[k];
    value dy = pass_load(p, p->real, nest_place(p, r, k, true, j), 8, p->tag_thread);
    const unsigned own = a->same != k ? a->same : OF_ALL;
    value written = LLVMGetOperand(a->instruction, 0);
    const int sum = a->is_inner ? -1 : within_of(l, written, NULL);
    if (sum >= 0 && written == l->within[sum].next) /* in each round: the last one counts */
        within_final(p, r, written, (unsigned)sum);
    if (own != OF_ALL && !may_add(l, k))
        return false;
    l->adds_to[k] = own == OF_ALL ? -1 : (int)own;
    return nest_result(p, r, written, dy, own, j != NULL, out, &l->of[k], &r->within_by[k]);
}

/* Adds to an adjoint. */
static void adjoint_add(struct pass *p, value at, value part)
{
    value had = pass_load(p, p->real, at, 8, p->tag_tape);
    pass_store(p, LLVMBuildFAdd(p->build, had, part, ""), at, 8, p->tag_tape);
}

static void adjoint_of(struct pass *p, const struct nest_reverse *r, unsigned of, value part)
{
    const unsigned scalar = of - OF_SCALARS;
    value at = of < OF_SCALARS ? nest_place(p, r, of, true, NULL)
                               : r->word[r->nest->at.n_accesses + scalar][ROW_ADJOINT];
    adjoint_add(p, at, part);
}

/* What the outer loop's own instructions give, behind the inner loop's guard or not. */
static bool nest_straight(struct pass *p, struct nest_reverse *r, bool guarded)
{
    struct nest *l = r->nest;
    value out[OF_WITHIN] = {NULL};
    for (unsigned b = 0; b < l->at.n_blocks; b++) {
        if (b == l->at.body && r->sums_again && !guarded && !nest_sums_again(p, r))
            return false;
        if (b != l->at.body && l->at.guarded[b] == guarded && !block_formulas(p, r, b, NULL))
            return false;
    }
    for (unsigned k = 0; k < l->at.n_accesses; k++) {
        const struct pass_found_access *a = &l->at.access[k];
        if (a->is_write && !a->is_inner && a->is_guarded == guarded &&
            !nest_write(p, r, k, NULL, out))
            return false;
    }
    for (unsigned k = 0; k < l->n_sums && !guarded; k++) {
        struct nest_sum *sum = &l->sum[k];
        value dy = pass_load(p, p->real, r->word[l->at.n_accesses + l->n_scalars + k][ROW_ADJOINT],
                             8, p->tag_thread);
        if (!nest_result(p, r, sum->next, dy, OF_SUMS + k, false, out, &sum->of,
                         &r->within_by[NEST_ACCESSES + k]))
            return false;
        if (sum->scalar < NEST_SCALARS)
            sum->of |= UINT64_C(1) << (OF_SCALARS + sum->scalar);
    }
    for (unsigned k = 0; k < OF_WITHIN; k++)
        if (out[k])
            adjoint_of(p, r, k, out[k]);
    return true;
}

/* Whether an array's adjoints are added to in each round of the inner loop. */
static bool is_moving(const struct nest *l, unsigned of)
{
    return of < OF_SCALARS && l->at.access[of].is_inner &&
           !(LLVMIsAConstantInt(l->at.access[of].inner) &&
             LLVMConstIntGetZExtValue(l->at.access[of].inner) == 0);
}

/* A loop over j: what all rounds give, to those that stay, in one sum each; or to one that
 * moves. */
static bool nest_inner(struct pass *p, struct nest_reverse *r, unsigned moving, bool *any)
{
    struct nest *l = r->nest;
    const unsigned had = r->clones.n;
    value out[OF_WITHIN] = {NULL}, sum[OF_WITHIN] = {NULL};
    LLVMBuilderRef b = p->build;
    LLVMBasicBlockRef before = r->last,
                      body = LLVMAppendBasicBlockInContext(p->context, r->function, "round"),
                      end = LLVMAppendBasicBlockInContext(p->context, r->function, "end");
    value zero = pass_number64(p, 0);
    if (moving < OF_WITHIN)
        LLVMBuildCondBr(b, LLVMBuildIsNotNull(b, r->word[moving][ROW_ADJOINT], ""), body, end);
    else
        LLVMBuildBr(b, body);
    LLVMPositionBuilderAtEnd(b, body);
    value j = LLVMBuildPhi(b, p->i64, "j");
    for (unsigned k = 0; k < OF_WITHIN && moving == OF_WITHIN; k++)
        sum[k] = LLVMBuildPhi(b, p->real, "");
    if (!block_formulas(p, r, l->at.body, j))
        return false;
    for (unsigned k = 0; k < l->at.n_accesses; k++)
        if (l->at.access[k].is_write && l->at.access[k].is_inner && !nest_write(p, r, k, j, out))
            return false;
    for (unsigned k = 0; k < l->n_within; k++) {
        value dy = r->within_dy[k] ? r->within_dy[k] : pass_real_number(p, 0);
        uint64_t none = 0;
        if (!nest_result(p, r, l->within[k].next, dy, OF_WITHIN + k, true, out, &l->within[k].of,
                         &none))
            return false;
    }
    value next_sum[OF_WITHIN];
    for (unsigned k = 0; k < OF_WITHIN; k++) {
        if (moving == k && out[k])
            adjoint_add(p, nest_place(p, r, k, true, j), out[k]);
        if (!sum[k])
            continue;
        next_sum[k] = NULL;
        if (!out[k] || is_moving(l, k)) {
            LLVMReplaceAllUsesWith(sum[k], pass_real_number(p, 0));
            LLVMInstructionEraseFromParent(sum[k]);
            sum[k] = NULL;
            continue;
        }
        next_sum[k] = LLVMBuildFAdd(b, sum[k], out[k], "");
        if (LLVMIsAInstruction(next_sum[k]))
            LLVMSetFastMathFlags(next_sum[k], LLVMFastMathAllowReassoc);
        *any = true;
    }
    if (moving == OF_WITHIN && !*any) { /* nothing stays */
        LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
        LLVMPositionBuilderAtEnd(b, before);
        LLVMBuildBr(b, end);
        LLVMDeleteBasicBlock(body);
        LLVMPositionBuilderAtEnd(b, end);
        r->clones.n = had;
        r->last = end;
        return true;
    }
    value next = LLVMBuildAdd(b, j, pass_number64(p, 1), "");
    pass_loop_of_short_rows(
        p, LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, r->trips, ""), body, end));
    LLVMAddIncoming(j, (value[]){zero, next}, (LLVMBasicBlockRef[]){before, body}, 2);
    LLVMPositionBuilderAtEnd(b, end);
    for (unsigned k = 0; k < OF_WITHIN; k++) {
        if (!sum[k])
            continue;
        LLVMAddIncoming(sum[k], (value[]){pass_real_number(p, 0), next_sum[k]},
                        (LLVMBasicBlockRef[]){before, body}, 2);
        adjoint_of(p, r, k, next_sum[k]);
    }
    r->clones.n = had;
    r->last = end;
    return true;
}

/* All of a round of the outer loop. */
static bool nest_round(struct pass *p, struct nest_reverse *r)
{
    struct nest *l = r->nest;
    LLVMBuilderRef b = p->build;
    LLVMBasicBlockRef within = LLVMAppendBasicBlockInContext(p->context, r->function, "within"),
                      next = LLVMAppendBasicBlockInContext(p->context, r->function, "next"),
                      end = LLVMAppendBasicBlockInContext(p->context, r->function, "return");
    bool made = nest_straight(p, r, false), any = false;
    value more = LLVMBuildICmp(b, LLVMIntSGT, r->trips, pass_number64(p, 0), "");
    LLVMBuildCondBr(b, more, within, next);
    LLVMPositionBuilderAtEnd(b, within);
    r->last = within;
    made = made && nest_straight(p, r, true);
    made = made && nest_inner(p, r, OF_WITHIN, &any);
    for (unsigned k = 0; k < l->at.n_accesses; k++)
        made = made && (!l->gets[k] || !is_moving(l, k) || nest_inner(p, r, k, &any));
    LLVMBuildBr(b, next);
    LLVMPositionBuilderAtEnd(b, next);
    value i = LLVMBuildAdd(b, r->i, pass_number64(p, 1), "");
    value trips = LLVMBuildAdd(b, r->trips, LLVMGetParam(r->function, OF_STEP), "");
    value run = LLVMBuildAdd(b, r->run, r->trips, ""), zero = pass_number64(p, 0);
    LLVMBasicBlockRef from[] = {r->entry, next};
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, i, LLVMGetParam(r->function, OF_N), ""), r->row,
                    end);
    LLVMAddIncoming(r->i, (value[]){zero, i}, from, 2);
    LLVMAddIncoming(r->trips, (value[]){LLVMGetParam(r->function, OF_FIRST), trips}, from, 2);
    LLVMAddIncoming(r->run, (value[]){zero, run}, from, 2);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
    return made;
}

/* What depends on a sum over the inner loop depends on what that does. */
static void nest_of_sums(struct nest *l, const struct nest_reverse *r)
{
    for (unsigned k = 0; k < l->n_within; k++) {
        for (unsigned w = 0; w < l->at.n_accesses; w++)
            l->of[w] |= r->within_by[w] >> k & 1 ? l->within[k].of : 0;
        for (unsigned s = 0; s < l->n_sums; s++)
            l->sum[s].of |= r->within_by[NEST_ACCESSES + s] >> k & 1 ? l->within[k].of : 0;
    }
}

/* Whether what a function of derivatives has is what they need: sums are not, unless they are
 * computed again. */
static bool nest_is_right(const struct nest *l, const struct nest_reverse *r, bool *of_sums)
{
    bool any = false;
    for (value v = LLVMGetFirstInstruction(r->entry); v; v = LLVMGetNextInstruction(v))
        *of_sums |= LLVMGetInstructionOpcode(v) == LLVMFreeze;
    for (unsigned k = 0; k < l->at.n_accesses; k++) {
        const bool adds = l->at.access[k].is_write && l->adds_to[k] >= 0;
        /* What is added to is not used otherwise. */
        if (adds && (l->is_kept[l->adds_to[k]] || l->gets[l->adds_to[k]]))
            return false;
        any |= l->of[k] != 0;
    }
    for (unsigned k = 0; k < l->n_sums; k++)
        any |= l->sum[k].of != 0;
    return any && !*of_sums;
}

/* The function of the derivatives, or false; *of_sums: because they depend on sums. */
static bool nest_reverse_make(struct pass *p, struct nest *l, bool sums_again, bool *of_sums)
{
    struct nest_reverse r = {
        .nest = l,
        .clones = pass_clones_begin(NEST_BLOCKS * INSTRUCTIONS_MOST + NEST_SCALARS + OF_ALL),
        .sums_again = sums_again};
    LLVMBuilderRef before = p->build;
    value function = p->function;
    p->build = LLVMCreateBuilderInContext(p->context);
    nest_reverse_begin(p, &r);
    p->function = r.function;
    p->derives = true;
    p->too_long = false;
    bool right = nest_round(p, &r) && !p->too_long;
    p->derives = false;
    p->function = function;
    if (right) {
        pass_clean_function(r.function);
        nest_of_sums(l, &r);
        for (unsigned k = 0; k < l->at.n_accesses; k++)
            l->is_kept[k] =
                !l->at.access[k].is_write && pass_is_there(r.entry, r.word[k][ROW_VALUE]);
        right = nest_is_right(l, &r, of_sums);
    }
    LLVMDisposeBuilder(p->build);
    p->build = before;
    pass_clones_end(&r.clones);
    pass_known_clear(p);
    if (!right)
        LLVMDeleteFunction(r.function);
    return right;
}

/* The same, with sums computed again where derivatives depend on them. */
static bool nest_derive(struct pass *p, struct nest *l)
{
    const struct nest looked_at = *l;
    bool of_sums = false;
    if (nest_reverse_make(p, l, false, &of_sums))
        return true;
    *l = looked_at;
    if (!of_sums || l->at.join)
        return false;
    of_sums = false;
    return nest_reverse_make(p, l, true, &of_sums);
}

/* ---- what the runtime is told ---- */

enum { NEST_READ, NEST_ADDS, NEST_WRITES };

/* As struct plain_nest in plain/runtime/plain_nest.c. */
static value nest_description(struct pass *p, const struct nest *l)
{
    value word[8 + 8 * NEST_ACCESSES + NEST_SCALARS + 2 * NEST_SUMS];
    unsigned n = 0;
    word[n++] = pass_number64(p, l->at.n_accesses);
    word[n++] = pass_number64(p, l->n_scalars);
    word[n++] = pass_number64(p, l->n_sums);
    word[n++] = pass_number64(p, l->at.join != NULL);
    word[n++] = pass_number64(p, l->at.to_is_within);
    word[n++] = pass_number64(p, l->at.to_is_most);
    for (unsigned k = 0; k < l->at.n_accesses; k++) {
        const struct pass_found_access *a = &l->at.access[k];
        const bool adds = a->is_write && l->adds_to[k] >= 0;
        word[n++] = pass_number64(p, !a->is_write ? NEST_READ : adds ? NEST_ADDS : NEST_WRITES);
        word[n++] = pass_number64(p, a->is_inner);
        word[n++] = pass_number64(p, a->is_guarded);
        word[n++] = pass_number64(p, a->runs_on);
        word[n++] = pass_number64(p, a->same);
        word[n++] = pass_number64(p, l->is_kept[k]);
        word[n++] = pass_number64(p, is_moving(l, k));
        word[n++] = pass_number64(p, l->of[k]);
    }
    for (unsigned k = 0; k < l->n_sums; k++) {
        word[n++] =
            pass_number64(p, l->sum[k].scalar == NEST_SCALARS ? UINT64_MAX : l->sum[k].scalar);
        word[n++] = pass_number64(p, l->sum[k].of);
    }
    return pass_derivatives_told(p, "ad_plain_nest_", l->reverse, word, n);
}

/* Words of a call's memory: struct plain_nest_call. */
enum {
    CALL_READY, /* is 0 when the function is entered */
    CALL_TRIPS = 768,
    CALL_INNER,
    CALL_FROM = CALL_INNER + 2,
    CALL_TO = CALL_FROM + 2,
    CALL_ACTIVE = CALL_TO + 3,
    CALL_PLACES,
    PLACE_WORDS = 4 /* the last is the runtime's */
};

static unsigned words_to_scalars(const struct nest *l)
{
    return CALL_PLACES + PLACE_WORDS * l->at.n_accesses;
}

static unsigned words_to_sums(const struct nest *l)
{
    return words_to_scalars(l) + 2 * l->n_scalars;
}

static value nest_word(struct pass *p, unsigned place)
{
    return pass_byte_offset(p, p->nests->memory, 8 * (uint64_t)place);
}

/* ---- the second way ---- */

/* The line of a record: of the dearest store, or sum, of the inner loop; or of the last store
 * beside it. */
static LLVMMetadataRef line_of_nest(struct pass *p, const struct nest *l)
{
    value root[NEST_ACCESSES + NEST_SUMS];
    unsigned n = 0;
    LLVMMetadataRef line = NULL;
    for (unsigned k = 0; k < l->at.n_accesses; k++) {
        if (!l->at.access[k].is_write)
            continue;
        root[n++] = l->at.access[k].instruction;
        LLVMMetadataRef own = LLVMInstructionGetDebugLoc(root[n - 1]);
        line = own ? own : line;
    }
    for (unsigned k = 0; k < l->n_within; k++)
        root[n++] = l->within[k].next;
    LLVMMetadataRef dearest = pass_dearest_line(body_of(l), root, n);
    line = dearest ? dearest : line;
    if (!line)
        line = LLVMInstructionGetDebugLoc(LLVMGetBasicBlockTerminator(body_of(l)));
    LLVMMetadataRef scope = LLVMGetSubprogram(p->function);
    if (!line && scope)
        line = LLVMDIBuilderCreateDebugLocation(p->context, LLVMDISubprogramGetLine(scope), 0,
                                                scope, NULL);
    return line;
}

static void line_store(struct pass *p, const struct pass_found_line *line, unsigned at)
{
    pass_store(p, line->first ? line->first : pass_number64(p, 0), nest_word(p, at), 8, NULL);
    pass_store(p, line->step ? line->step : pass_number64(p, 0), nest_word(p, at + 1), 8, NULL);
}

/* Where the nest reads and writes, and what it takes from before. These are instructions at once:
 * LLVM changes them when it puts a phi before what they use. */
static void nest_give(struct pass *p, struct nest *l)
{
    pass_store(p, l->at.trips, nest_word(p, CALL_TRIPS), 8, NULL);
    line_store(p, &l->at.inner_trips, CALL_INNER);
    line_store(p, &l->at.from, CALL_FROM);
    line_store(p, &l->at.to, CALL_TO);
    for (unsigned k = 0; k < l->at.n_accesses; k++) {
        const struct pass_found_access *a = &l->at.access[k];
        value part[] = {a->base, a->outer, a->inner};
        for (unsigned w = 0; w + 1 < PLACE_WORDS; w++)
            pass_store(p, part[w], nest_word(p, CALL_PLACES + PLACE_WORDS * k + w), 8, NULL);
    }
    for (unsigned k = 0; k < l->n_scalars; k++)
        l->given[k] =
            pass_store(p, l->scalar[k], nest_word(p, words_to_scalars(l) + 2 * k), 8, NULL);
}

static void nest_way(struct pass *p, struct nest *l)
{
    value told = nest_description(p, l), said[] = {told, p->nests->memory};
    LLVMBuilderRef b = p->build;
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(p->context, p->function, "nest.end");
    l->line = line_of_nest(p, l);
    pass_way_make(p, &l->way, l->at.block[0], "nest");
    value of[NEST_SUMS];
    for (unsigned k = 0; k < l->n_sums; k++)
        of[k] = l->sum[k].next;
    const struct pass_found_way way = {l->at.before, l->at.behind, l->at.block, l->at.n_blocks,
                                       l->at.n_blocks - 1};
    pass_clone_way(&way, l->way.enter, end, l->fast, of, l->n_sums);
    for (unsigned k = 0; k < l->n_sums; k++)
        l->sum[k].fast = of[k];
    for (value v = LLVMGetFirstInstruction(l->at.block[0]); v && LLVMIsAPHINode(v);
         v = LLVMGetNextInstruction(v)) {
        value in = pass_incoming(v, l->at.before);
        LLVMAddIncoming(v, &in, &l->way.look, 1);
    }
    value last = LLVMGetBasicBlockTerminator(l->at.before);
    LLVMPositionBuilderBefore(b, last);
    LLVMSetCurrentDebugLocation2(b, l->line);
    /* Twice the rounds: of the first and the last of the outer loop. */
    value steps = LLVMBuildMul(b, LLVMBuildSub(b, l->at.trips, pass_number64(p, 1), ""),
                               l->at.inner_trips.step, "");
    value ends = LLVMBuildAdd(b, LLVMBuildShl(b, l->at.inner_trips.first, pass_number64(p, 1), ""),
                              steps, "");
    value rounds = LLVMBuildMul(b, ends, l->at.trips, "");
    value many = LLVMBuildICmp(b, LLVMIntSGE, rounds, pass_number64(p, 2 * ROUNDS_LEAST), "");
    pass_way_ask(p, &l->way, many, l->at.block[0]);
    LLVMInstructionEraseFromParent(last);

    LLVMPositionBuilderAtEnd(b, l->way.idle);
    pass_store(p, pass_number64(p, WAY_IDLE), nest_word(p, CALL_ACTIVE), 8, NULL);
    LLVMBuildBr(b, l->way.enter);

    LLVMPositionBuilderAtEnd(b, l->way.look);
    nest_give(p, l);
    l->begin = pass_call_runtime(p, "ad_plain_nest_begin_", p->i32, 2, said);
    pass_call_apart(p, l->begin);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, l->begin, p->zero, ""), l->way.enter,
                    l->at.block[0]);
    LLVMPositionBuilderAtEnd(b, l->way.enter);
    LLVMBuildBr(b, l->fast[0]);

    LLVMPositionBuilderAtEnd(b, end);
    LLVMSetCurrentDebugLocation2(b, l->line);
    l->end = pass_call_runtime(p, "ad_plain_nest_end_", p->nothing, 2, said);
    pass_call_apart(p, l->end);
    LLVMBuildBr(b, l->at.behind);
}

void pass_nests_prepare(struct pass *p)
{
    p->nests = NULL;
    struct pass_found_nest *found = base_calloc(NESTS_ROOM, sizeof *found);
    const unsigned n = pass_find_nests(p->function, block_is_wanted, p, found, NESTS_ROOM);
    struct nests *nests = base_calloc(1, sizeof *nests + n * sizeof *nests->nest);
    unsigned words = 0;
    p->nests = nests;
    for (unsigned k = 0; k < n; k++) {
        struct nest *l = &nests->nest[nests->n];
        *l = (struct nest){.at = found[k]};
        if (!nest_look(l) || !nest_derive(p, l))
            continue;
        const unsigned all = words_to_sums(l) + l->n_sums;
        words = all > words ? all : words;
        nests->n++;
    }
    free(found);
    if (nests->n == 0)
        return;
    LLVMPositionBuilderBefore(p->build,
                              LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(p->function)));
    LLVMSetCurrentDebugLocation2(p->build, NULL);
    nests->memory = LLVMBuildAlloca(p->build, LLVMArrayType2(p->i64, words), "nest");
    nests->ready = pass_store(p, pass_number64(p, 0), nest_word(p, CALL_READY), 8, NULL);
    for (unsigned k = 0; k < nests->n; k++)
        nest_way(p, &nests->nest[k]);
}

void pass_nests_end(struct pass *p)
{
    free(p->nests);
    p->nests = NULL;
}

bool pass_is_fast_nest(const struct pass *p, LLVMBasicBlockRef block)
{
    for (unsigned k = 0; p->nests && k < p->nests->n; k++)
        for (unsigned b = 0; b < p->nests->nest[k].at.n_blocks; b++)
            if (p->nests->nest[k].fast[b] == block)
                return true;
    return false;
}

/* Before the first call: the indices of what it takes from before. */
static void nest_begin_visit(struct pass *p, const struct nest *l)
{
    LLVMPositionBuilderBefore(p->build, l->begin);
    for (unsigned k = 0; k < l->n_scalars; k++) {
        value index = pass_index_recorded(p, LLVMGetOperand(l->given[k], 0));
        pass_store(p, LLVMBuildZExt(p->build, index, p->i64, ""),
                   nest_word(p, words_to_scalars(l) + 2 * k + 1), 8, NULL);
    }
}

static void nest_end_visit(struct pass *p, struct nest *l)
{
    pass_build_after(p, l->end);
    for (unsigned k = 0; k < l->n_sums; k++) {
        value index = pass_load(p, p->i32, nest_word(p, words_to_sums(l) + k), 8, NULL);
        pass_known(p, l->sum[k].fast)->index = index;
    }
}

bool pass_nest_visit(struct pass *p, value v)
{
    if (p->nests && (v == p->nests->memory || v == p->nests->ready))
        return true;
    for (unsigned k = 0; p->nests && k < p->nests->n; k++) {
        struct nest *l = &p->nests->nest[k];
        if (v == l->begin)
            nest_begin_visit(p, l);
        else if (v == l->end)
            nest_end_visit(p, l);
        else if (!pass_way_is_of(&l->way, v))
            continue;
        return true;
    }
    return false;
}
