/* tape_preaccumulate.c: see tape_preaccumulate.h.
 *
 * The Jacobian's statements are written where the section's were: in the same blocks and over the
 * same records, so that nothing can be refused once the section is being taken off.
 */
#include "tape_preaccumulate.h"

#include "tape_local_jacobian.h"
#include "tape_now.h"
#include "tape_program.h"

#include <string.h>

enum tape_status tape_section_refuse(struct tape *t, const char *what, struct tape_site site)
{
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "%s: not while a section is recorded: ad_preaccumulate_end comes first", what);
}

/* ---- begin and end ---- */

static bool section_append(struct tape *t)
{
    struct tape_sections *c = t->sections;
    if (!tape_statement_reserve_tags(t, t->statements->n_tags + t->n_marks + 4))
        return false;
    struct tape_section *open =
        tape_array_reserve(t->memory, c->open, c->n + 1, &c->size, sizeof *open);
    if (open)
        c->open = open;
    return open != NULL;
}

enum tape_status tape_section_begin(struct tape *t, struct tape_site site)
{
    struct tape_sections *c = t->sections;
    tape_observed(t);
    tape_settle(t);
    if (t->program->on)
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "preaccumulate_begin: not while a program is recorded: "
                         "ad_tape_program_end comes first");
    if (!section_append(t))
        return tape_fail(t, TAPE_ERROR_MEMORY, site, "preaccumulate_begin: out of memory");
    c->open[c->n] = (struct tape_section){.from = tape_statement_mark_here(t),
                                          .record_top = t->arena.record_top,
                                          .last_record = t->last_record,
                                          .n_records = t->n_records,
                                          .n_values = t->n_values,
                                          .n_marks = t->n_marks,
                                          .frame = t->frame,
                                          .n_tags = t->statements->n_tags,
                                          .number = ++c->number};
    c->n++;
    tape_statement_tag_begin(t);
    return TAPE_OK;
}

void tape_section_leave(struct tape *t)
{
    tape_settle(t);
    const struct tape_section *section = &t->sections->open[--t->sections->n];
    tape_statement_tag_end(t, section->n_tags, (uint32_t)(section->from.rest.result >> 32));
}

void tape_sections_drop(struct tape *t, uint32_t number)
{
    while (t->sections->n > 0 && t->sections->open[t->sections->n - 1].number > number)
        tape_section_leave(t);
}

void tape_sections_end(struct tape *t)
{
    struct tape_sections *c = t->sections;
    if (c->open)
        t->memory->release(c->open, t->memory->payload);
}

/* ---- where the Jacobian goes ---- */

/* A block of the section, the free words of it when the section came to it, and how many of the
 * Jacobian's rows it takes. */
struct section_place {
    struct tape_block *block;
    double *partial;
    uint32_t *word;
    uint32_t n_rows;
};

/* The section's blocks, oldest first, in scratch; NULL: out of memory. */
static struct section_place *section_places(struct tape *t, const struct tape_section *section,
                                            uint32_t *n)
{
    const struct tape_run *oldest = NULL;
    for (uint32_t at = t->last_record; at != section->last_record;) {
        struct tape_record *r = tape_record_at(t, at);
        oldest = tape_run_of(r);
        at = r->previous;
    }
    const bool within = oldest && oldest->partial_begin == section->from.rest.partial;
    uint32_t k = within;
    for (struct tape_block *b = t->statements->block; b != section->from.block; b = b->previous)
        k++;
    struct section_place *p = tape_scratch(t, SCRATCH_PLACES, k * sizeof *p);
    if (!p)
        return NULL;
    *n = k;
    for (struct tape_block *b = t->statements->block; b != section->from.block; b = b->previous)
        p[--k] = (struct section_place){b, (double *)(void *)(b + 1),
                                        (uint32_t *)(void *)((char *)b + b->bytes), 0};
    if (within)
        p[0] = (struct section_place){section->from.block, section->from.rest.partial,
                                      section->from.rest.word, 0};
    return p;
}

static uint64_t section_room_of(const double *partial, const uint32_t *word)
{
    return (uint64_t)((const char *)word - (const char *)partial);
}

/* Gives each row its place; *n: places that are used. False: they do not suffice. */
static bool rows_distribute(struct section_place *p, uint32_t *n,
                            const struct tape_local_jacobian *j)
{
    uint32_t k = 0;
    uint64_t room = *n ? section_room_of(p[0].partial, p[0].word) : 0;
    for (uint32_t r = 0; r < j->n_rows; r++) {
        const uint64_t bytes = tape_statement_bytes(j->n[r], j->n[r]);
        while (room < bytes) {
            if (++k >= *n)
                return false;
            room = section_room_of(p[k].partial, p[k].word);
        }
        p[k].n_rows++;
        room -= bytes;
    }
    *n = j->n_rows ? k + 1 : 0;
    return true;
}

/* ---- the replacement ---- */

/* Takes off what was recorded since the section's begin; `block`: the last one that stays. */
static void section_take_off(struct tape *t, const struct tape_section *section,
                             const struct tape_block *block)
{
    struct tape_statements *s = t->statements;
    for (uint32_t at = t->last_record; at != section->last_record;) {
        struct tape_record *r = tape_record_at(t, at);
        tape_account_drop_record(t, r);
        at = r->previous;
    }
    for (struct tape_block *previous; s->block != block; s->block = previous) {
        previous = s->block->previous;
        tape_block_drop(t, s->block, NULL);
    }
    t->arena.live -= (uint64_t)(t->arena.record_top - section->record_top);
    t->arena.record_top = section->record_top;
    t->last_record = section->last_record;
    t->n_records = section->n_records;
    s->n = section->from.n;
    s->bytes = section->from.bytes;
    s->gaps = section->from.gaps;
    s->rest = section->from.rest;
}

/* Writes n rows from *row on; their entries begin at *entry. False: no record for them. */
static bool rows_write(struct tape *t, const struct tape_local_jacobian *j, uint32_t n,
                       uint32_t *row, uint64_t *entry, struct tape_site site)
{
    struct tape_cursor *c = &t->statements->rest;
    struct tape_run *run =
        tape_run_begin(t, site, tape_account_row(t, site, tape_statement_kind.op.name));
    if (!run)
        return false;
    for (; n > 0; n--) {
        const uint32_t operands = j->n[(*row)++];
        memcpy(tape_statement_head(&c->word, operands, site.pc), j->index + *entry,
               operands * sizeof *c->word);
        memcpy(c->partial, j->partial + *entry, operands * sizeof *c->partial);
        c->partial += operands;
        c->result++;
        *entry += operands;
    }
    tape_run_end(t, run);
    return true;
}

static void section_replace(struct tape *t, const struct tape_section *section,
                            struct section_place *p, uint32_t n,
                            const struct tape_local_jacobian *j, struct tape_site site)
{
    struct tape_cursor *c = &t->statements->rest;
    uint32_t row = 0;
    uint64_t entry = 0;
    bool ok = true;
    section_take_off(t, section, n ? p[n - 1].block : section->from.block);
    for (uint32_t k = 0; k < n && ok; k++) {
        c->partial = p[k].partial;
        c->word = p[k].word;
        if (p[k].n_rows)
            ok = rows_write(t, j, p[k].n_rows, &row, &entry, site);
        if (k + 1 == n)
            break;
        tape_account_tail_back(t, p[k].block->padding);
        p[k].block->padding = section_room_of(c->partial, c->word);
        tape_account_tail(t, p[k].block->padding);
    }
    /* There were as many records before; so this is never told. */
    if (!ok)
        tape_fail(t, TAPE_ERROR_MEMORY, site, "preaccumulate_end: out of memory");
}

/* ---- the decision ---- */

/* Why a section's statements cannot be taken off; NULL: they can. */
static const char *section_fixed(struct tape *t, const struct tape_section *section)
{
    if (t->n_marks > section->n_marks)
        return "a mark was set in it";
    if (t->n_frames > 0 && t->frames[t->n_frames - 1].number > section->frame)
        return "a frame was begun in it";
    uint64_t bytes = 0;
    bool alone = t->n_values == section->n_values;
    for (uint32_t at = t->last_record; at != section->last_record && alone;) {
        struct tape_record *r = tape_record_at(t, at);
        alone = tape_record_kind(r)->is_run;
        bytes += r->bytes;
        at = r->previous;
    }
    if (!alone || bytes != (uint64_t)(t->arena.record_top - section->record_top))
        return "it holds something else than statements";
    return t->last_record == section->last_record ? "nothing was recorded in it" : NULL;
}

static const char *section_attempt(struct tape *t, const struct tape_section *section, int64_t m,
                                   uint32_t *output, struct tape_site site,
                                   struct tape_section_report *report)
{
    const uint32_t first = tape_cursor_next(&section->from.rest);
    struct tape_local_jacobian j;
    const char *why = section_fixed(t, section);
    if (why)
        return why;
    if (!output)
        return "there is no memory for its Jacobian";
    uint32_t n;
    struct section_place *p = section_places(t, section, &n);
    if (!p)
        return "there is no memory for its Jacobian";
    why = tape_local_jacobian(t, section->last_record, first, report->bytes[0], m, output, &j);
    report->inputs = j.n_inputs;
    if (why)
        return why;
    report->jacobian_bytes = j.bytes;
    /* Statements of 8 bytes may leave more room in a block than there are indices. */
    if (TAPE_INDEX_LIMIT - first < (uint64_t)j.n_rows + TAPE_BLOCK_MOST / TAPE_STATEMENT_LEAST)
        why = "few indices are left";
    else if (!rows_distribute(p, &n, &j))
        why = "its blocks have no room for a row of its Jacobian";
    else
        section_replace(t, section, p, n, &j, site);
    return why;
}

uint32_t *tape_section_outputs(struct tape *t, int64_t m, struct tape_site site)
{
    tape_observed(t);
    tape_settle(t);
    t->sections->row = tape_account_row(t, site, "preaccumulate_end");
    return (uint64_t)m < UINT64_MAX / 8
               ? tape_scratch(t, SCRATCH_OUTPUTS, (uint64_t)m * sizeof(uint32_t))
               : NULL;
}

void tape_section_end(struct tape *t, int64_t m, uint32_t *output, struct tape_site site,
                      struct tape_section_report *report)
{
    TAPE_DOING(t, TAPE_PHASE_FORWARD, site, tape_row(t, t->sections->row)->op);
    tape_now_path(t, t->sections->row);
    const uint64_t start = tape_account_start(t);
    const struct tape_statements *s = t->statements;
    const struct tape_section section = t->sections->open[t->sections->n - 1];
    *report = (struct tape_section_report){0};
    report->statements[0] = s->n - section.from.n;
    report->bytes[0] = s->bytes - section.from.bytes;
    report->kept = section_attempt(t, &section, m, output, site, report);
    report->statements[1] = s->n - section.from.n;
    report->bytes[1] = s->bytes - section.from.bytes;
    tape_section_leave(t);
    tape_account_ran(t, t->sections->row, start, NULL, 1);
}

void tape_section_outputs_free(struct tape *t)
{
    tape_scratch_free(t);
}
