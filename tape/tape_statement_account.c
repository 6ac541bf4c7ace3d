/* tape_statement_account.c: what the statements of a run are charged to: their lines, by bytes.
 *
 * May include: tape_segment.h. Counts are gathered in a small table by site first, since a run
 * has many statements of few lines.
 */
#include "tape_segment.h"

enum { TABLE = 64, OPERAND_BYTES = 12, HEAD_BYTES = 8 };

struct line {
    uint32_t site, row;
    uint32_t mark; /* a segment's; statements: 0 */
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

/* The line with this site and mark; a new one is charged to `name`, `number` of the source. */
static struct line *line_of(struct charge *c, uint32_t site, uint32_t mark, const char *name,
                            uint32_t number)
{
    struct line *line = &c->table[(site ^ site >> 6) % TABLE];
    if (line->calls == 0 || line->site != site || line->mark != mark) {
        settle(c, line);
        const struct tape_site at = {c->t->locate(site, c->run->near), number};
        line->site = site;
        line->mark = mark;
        line->row = tape_account_row(c->t, at, name);
    }
    line->calls++;
    return line;
}

static void charge_segment(struct charge *c, const struct tape_segment *s)
{
    const char *name = tape_segment_name(s, c->run->partial_begin + s->at);
    line_of(c, s->site, s->mark, name, tape_segment_line(s))->bytes += tape_segment_bytes(s);
}

static void charge_statements(struct charge *c, const struct tape_run *run)
{
    for (const uint32_t *w = run->word_end; w < run->word_begin; w += w[0] + 2)
        line_of(c, w[1], 0, tape_statement_op.name, 0)->bytes +=
            w[0] * (uint64_t)OPERAND_BYTES + HEAD_BYTES;
}

static void charge(struct charge *c)
{
    struct tape_run_part part = tape_run_last(c->run);
    do {
        charge_statements(c, &part.statements);
        if (part.segment)
            charge_segment(c, part.segment);
    } while (tape_run_previous(c->run, &part));
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
