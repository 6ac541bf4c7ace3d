/* tape_statement_account.c: what the statements of a run are charged to: their lines, by bytes.
 *
 * May include: tape_statement.h. Counts are gathered in a small table by site first, since a run
 * has many statements of few lines.
 */
#include "tape_statement.h"

enum { TABLE = 64, OPERAND_BYTES = 12, HEAD_BYTES = 8 };

struct line {
    uint32_t site, row;
    uint64_t calls, bytes;
};

struct charge {
    struct tape *t;
    const struct tape_run *run;
    bool recorded, dropped;
    struct line table[TABLE];
};

static void settle(const struct charge *c, struct line *line)
{
    struct tape *t = c->t;
    if (line->calls == 0)
        return;
    tape_account_filled(t, line->row, line->bytes, c->dropped);
    if (c->recorded)
        TAPE_ADD(tape_row(t, line->row)->calls, line->calls);
    line->calls = line->bytes = 0;
}

static void charge(struct charge *c)
{
    const struct tape_run *run = c->run;
    for (const uint32_t *w = run->word_end; w < run->word_begin; w += w[0] + 2) {
        const uint32_t n = w[0], site = w[1];
        struct line *line = &c->table[(site ^ site >> 6) % TABLE];
        if (line->calls == 0 || line->site != site) {
            settle(c, line);
            const struct tape_site at = {c->t->locate(site, run->near), 0};
            line->site = site;
            line->row = tape_account_row(c->t, at, tape_statement_op.name);
        }
        line->calls++;
        line->bytes += n * (uint64_t)OPERAND_BYTES + HEAD_BYTES;
    }
    for (int k = 0; k < TABLE; k++)
        settle(c, &c->table[k]);
}

void tape_account_run(struct tape *t, const struct tape_run *run, bool recorded)
{
    if (t->hook)
        charge(&(struct charge){.t = t, .run = run, .recorded = recorded});
}

void tape_account_drop_run(struct tape *t, const struct tape_run *run)
{
    if (t->hook)
        charge(&(struct charge){.t = t, .run = run, .dropped = true});
}
