/* tape_statement_account.c: what the statements of a run are charged to: their lines, by bytes.
 *
 * Counts are gathered in a small table by site first, since a run has many statements of few
 * lines.
 */
#include "tape_fused_loop.h"
#include "tape_scope.h"

#include <string.h>

enum { TABLE = 256, OPERAND_BYTES = 12, HEAD_BYTES = 8 };

struct line {
    uint32_t site, row;
    uint32_t mark; /* a fused loop's; statements: 0 */
    uint64_t calls, bytes;
};

struct charge {
    struct tape *t;
    const struct tape_run *run;
    uint32_t row; /* of the run's record */
    bool recorded, dropped;
    uint64_t used[TABLE / 64]; /* a bit for each entry: the others have no content */
    struct line table[TABLE];
};

static void line_settle(const struct charge *c, struct line *line)
{
    struct tape *t = c->t;
    tape_account_filled(t, line->row, line->bytes, c->run->peaks, c->dropped);
    if (c->recorded) {
        struct tape_row *row = tape_row(t, line->row);
        const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
        TAPE_ADD(*(again ? &row->recompute_calls : &row->calls), line->calls);
        tape_scope_records += line->calls;
    }
}

static inline uint32_t entry_of(uint32_t site)
{
    return site * 2654435769u >> 24;
}
_Static_assert(TABLE == 1 << 8, "the hash is the upper 8 bits of 32");

/* The record behind one of n operands. Of the usual counts the step is a constant, so that the next
 * record's place does not wait for this one's count to arrive from memory. */
static inline const uint32_t *statement_behind(const uint32_t *w, uint32_t n)
{
    switch (n) {
    case 1:
        return w + 3;
    case 2:
        return w + 4;
    case 3:
        return w + 5;
    case 4:
        return w + 6;
    default:
        return w + n + 2;
    }
}

/* The line with this site and mark; a new one is charged to `name`, `number` of the source. */
static struct line *line_of(struct charge *c, uint32_t site, uint32_t mark, const char *name,
                            uint32_t number)
{
    const uint32_t k = entry_of(site);
    struct line *line = &c->table[k];
    const bool used = c->used[k / 64] >> k % 64 & 1;
    if (!used || line->site != site || line->mark != mark) {
        if (used)
            line_settle(c, line);
        c->used[k / 64] |= (uint64_t)1 << k % 64;
        const struct tape_site at = {c->t->locate(site, c->run->near), number};
        *line = (struct line){
            .site = site, .mark = mark, .row = tape_account_row_beside(c->t, c->row, at, name)};
    }
    return line;
}

static void charge_fused_loop(struct charge *c, const struct tape_fused_loop *s)
{
    const char *name = tape_fused_loop_name(s, c->run->partial_begin + s->at);
    struct line *line = line_of(c, s->site, s->mark, name, tape_fused_loop_line(s));
    line->calls++;
    line->bytes += tape_fused_loop_bytes(s);
}

static void charge_statements(struct charge *c, const struct tape_run *run)
{
    for (const uint32_t *w = run->word_end; w < run->word_begin;) {
        const uint32_t n = w[0], site = w[1];
        uint64_t same = 0;
        /* A loop's statements repeat. */
        do {
            same++;
            w = statement_behind(w, n);
        } while (w < run->word_begin && w[0] == n && w[1] == site);
        struct line *line = line_of(c, site, 0, tape_statement_kind.op.name, 0);
        line->calls += same;
        line->bytes += same * (n * (uint64_t)OPERAND_BYTES + HEAD_BYTES);
    }
}

static void run_charge(struct charge *c)
{
    struct tape_run_part part = tape_run_last(c->run);
    do {
        charge_statements(c, &part.statements);
        if (part.fused_loop)
            charge_fused_loop(c, part.fused_loop);
    } while (tape_run_previous(c->run, &part));
    for (int i = 0; i < TABLE / 64; i++)
        for (uint64_t left = c->used[i]; left; left &= left - 1)
            line_settle(c, &c->table[i * 64 + __builtin_ctzll(left)]);
}

/* The table is not cleared: short runs are many. */
static void charge_begin(struct charge *c, struct tape *t, struct tape_record *run, bool recorded,
                         bool dropped)
{
    c->t = t;
    c->run = tape_run_of(run);
    c->row = run->row;
    c->recorded = recorded;
    c->dropped = dropped;
    memset(c->used, 0, sizeof c->used);
}

void tape_run_account(struct tape *t, struct tape_record *run, bool recorded)
{
    if (!t->hook)
        return;
    struct charge c;
    charge_begin(&c, t, run, recorded, false);
    run_charge(&c);
}

void tape_run_account_drop(struct tape *t, struct tape_record *run)
{
    if (!t->hook)
        return;
    struct charge c;
    charge_begin(&c, t, run, false, true);
    run_charge(&c);
}
