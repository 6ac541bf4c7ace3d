/* tape_run.c: the kind of record that a run of statements is. */
#include "tape_adjoints.h"
#include "tape_disk.h"
#include "tape_fused_loop.h"

#include <string.h>

static bool run_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    const struct tape_statements *s = t->statements;
    const struct tape_run *run = tape_run_of(r);
    if (!tape_disk_need(t, run->word_end, tape_row_site(t, r->row)) ||
        !tape_run_sweep(t, run, s->adjoint, s->width,
                        s->adjoint + (size_t)tape_statement_next(t) * s->width, stamp))
        return false;
    if (s->adjoint_lent)
        tape_adjoints_passed(t, run->first);
    return true;
}

/* ---- which scalars a sweep comes to ---- */

static void reach_statements(const struct tape_run *run, uint8_t *reached)
{
    size_t result = (size_t)run->first + run->n;
    for (const uint32_t *w = run->word_end; w < run->word_begin;) {
        const struct tape_operands o = tape_statement_operands(w);
        if (reached[--result])
            for (uint32_t k = 0; k < o.n; k++)
                reached[o.index[k]] = 1;
        w = o.index + o.n;
    }
}

/* A fused loop's results depend on all of its operands. */
static void reach_fused_loop(const struct tape_fused_loop *s, uint8_t *reached)
{
    const struct tape_fused_loop_in *in = tape_fused_loop_in(s),
                                    *end = in + tape_fused_loop_n_in(s);
    const uint32_t *index = (const uint32_t *)(const void *)end;
    if (!memchr(reached + s->first, 1, s->m))
        return;
    for (; in < end; in++) {
        if (in->first == TAPE_INDICES_FOLLOW)
            for (uint32_t i = 0; i < in->n; i++)
                reached[*index++] = 1;
        else if (in->first != TAPE_NO_INDICES)
            memset(reached + in->first, 1, in->n);
    }
}

static bool run_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads)
{
    uint8_t *const reached = t->statements->reached;
    (void)wants, (void)reads;
    if (!reached)
        return false;
    const struct tape_run *run = tape_run_of(r);
    struct tape_run_part part = tape_run_last(run);
    do {
        reach_statements(&part.statements, reached);
        if (part.fused_loop)
            reach_fused_loop(part.fused_loop, reached);
    } while (tape_run_previous(run, &part));
    return false;
}

/* ---- the kind ---- */

static void run_account(struct tape *t, struct tape_record *r)
{
    tape_run_account(t, r);
}

const struct record_kind tape_statement_kind = {.op = {.name = "statement"},
                                                .sweep = run_sweep,
                                                .seeded = tape_adjoints_seeded,
                                                .reach = run_reach,
                                                .account = run_account,
                                                .account_drop = tape_run_account_drop,
                                                .trace = tape_run_trace,
                                                .charge_sweep = tape_run_charge_sweep,
                                                .is_run = true};
