/* tape_program.c: see tape_program.h. */
#include "tape_program.h"

#include "tape_account.h"
#include "tape_fused_loop.h"
#include "tape_kind.h"
#include "tape_roll.h"
#include "tape_statement.h"
#include "tape_value.h"

#include <string.h>

static const char begin_name[] = "program_begin";
static const uint64_t chunk_bytes = TAPE_CHUNK_STEPS * sizeof(struct tape_step);

/* ---- the chunks ---- */

static void chunk_drop(struct tape *t, uint32_t k, const char *end)
{
    struct tape_program *p = t->program;
    if (!p->chunk[k])
        return;
    tape_account_free(t, p->row, chunk_bytes);
    if (!end || (const char *)p->chunk[k] < end)
        tape_arena_free(&t->arena, p->chunk[k], chunk_bytes);
    p->chunk[k] = NULL;
}

static void roll_drop(struct tape *t, const char *end)
{
    struct tape_program *p = t->program;
    if (p->roll)
        tape_roll_drop(t, p->roll, end);
    p->roll = NULL;
}

struct tape_roll *tape_program_roll(struct tape *t)
{
    if (!t->program->roll)
        t->program->roll = tape_roll_make(t);
    return t->program->roll;
}

void tape_program_unroll(struct tape *t)
{
    roll_drop(t, NULL);
}

static void program_drop(struct tape *t)
{
    struct tape_program *p = t->program;
    roll_drop(t, NULL);
    p->values_wait = p->slopes_wait = false;
    for (uint32_t k = 0; k < p->n_chunks; k++)
        chunk_drop(t, k, NULL);
    p->n_chunks = p->n_questions = 0;
    p->on = p->whole = false;
}

static bool chunks_reach(struct tape *t, uint32_t n)
{
    struct tape_program *p = t->program;
    if (n <= p->n_chunks)
        return true;
    struct tape_step **more =
        tape_array_reserve(t->memory, p->chunk, n, &p->chunks_size, sizeof *more);
    if (!more)
        return false;
    p->chunk = more;
    while (p->n_chunks < n)
        p->chunk[p->n_chunks++] = NULL;
    return true;
}

static bool chunk_take(struct tape *t, uint32_t k)
{
    struct tape_step *chunk = tape_arena_buffer(&t->arena, chunk_bytes);
    if (!chunk)
        return false;
    tape_account_buffer(t, t->program->row, chunk_bytes);
    memset(chunk, 0, chunk_bytes);
    t->program->chunk[k] = chunk;
    return true;
}

static bool questions_reach(struct tape *t, uint32_t n)
{
    struct tape_program *p = t->program;
    struct tape_question *more =
        tape_array_reserve(t->memory, p->question, n, &p->questions_size, sizeof *more);
    p->question = more ? more : p->question;
    return more != NULL;
}

bool tape_program_take(struct tape *t, uint32_t n, const uint32_t *index, bool asks,
                       struct tape_program_room *taken)
{
    const struct tape_program *p = t->program;
    bool ok = !asks || questions_reach(t, p->n_questions + 1);
    for (uint32_t i = 0; i < n && ok; i++) {
        const uint32_t k = index[i] / TAPE_CHUNK_STEPS;
        if (index[i] == 0 || tape_program_find(p, index[i]))
            continue;
        ok = chunks_reach(t, k + 1) && chunk_take(t, k);
        if (ok)
            taken->chunk[taken->n++] = k;
    }
    if (!ok)
        tape_program_give_back(t, taken);
    return ok;
}

void tape_program_give_back(struct tape *t, const struct tape_program_room *taken)
{
    for (uint32_t i = 0; i < taken->n; i++)
        chunk_drop(t, taken->chunk[i], NULL);
}

void tape_program_ask(struct tape *t, const struct tape_question *q)
{
    t->program->question[t->program->n_questions++] = *q;
}

/* ---- its begin and end ---- */

void tape_program_begin(struct tape *t, struct tape_site site)
{
    struct tape_program *p = t->program;
    tape_observed(t);
    tape_settle(t);
    tape_program_slopes(t); /* what was the program stays as statements */
    program_drop(t);
    p->site = site;
    p->row = t->hook ? tape_account_row(t, site, begin_name) : TAPE_ROW_OTHER;
    p->first = p->next = tape_statement_next(t);
    p->last_record = t->last_record;
    p->on = true;
}

/* The runs of statements that were recorded since its begin, the last one first. */
static struct tape_run *run_before(const struct tape *t, uint32_t *at)
{
    while (*at != t->program->last_record && *at != UINT32_MAX) {
        struct tape_record *r = tape_record_at(t, *at);
        *at = r->previous;
        if (tape_record_kind(r)->is_run)
            return tape_run_of(r);
    }
    return NULL;
}

/* Whether a statement is that of the step. */
static bool statement_is(const struct tape_program *p, uint32_t index,
                         const struct tape_operands *o)
{
    const struct tape_step *s =
        index >= p->first && index < p->next ? tape_program_find(p, index) : NULL;
    uint32_t operand[TAPE_STEP_OPERANDS];
    return s && s->op && o->general == o->n && tape_step_indices(s, operand) == o->n &&
           memcmp(operand, o->index, o->n * sizeof *operand) == 0;
}

static enum tape_status program_refuse(struct tape *t, const char *what, const char *why,
                                       struct tape_site at, struct tape_site site)
{
    char where[160];
    t->describe(at, where, sizeof where);
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "program_end: %s at %s %s; a program is of statements compiled with "
                     "AD_REAL_PROGRAM, and depends on leaves alone; the call is",
                     what, where, why);
}

static struct tape_site step_site(const struct tape *t, const struct tape_run *run,
                                  const uint32_t *w)
{
    return (struct tape_site){t->locate(tape_statement_site(w), run->near), 0};
}

/* Whether all that was recorded as statements is steps: else its line. */
static enum tape_status statements_verify(struct tape *t, struct tape_site site)
{
    uint32_t at = t->last_record;
    for (struct tape_run *run; (run = run_before(t, &at));) {
        const struct tape_run_part part = tape_run_last(run);
        const struct tape_fused_loop *loop = part.fused_loop;
        uint32_t result = part.statements.first + part.statements.n;
        for (const uint32_t *w = part.statements.word_end; w < part.statements.word_begin;
             w = tape_statement_behind(w)) {
            const struct tape_operands o = tape_statement_operands(w);
            if (!statement_is(t->program, --result, &o))
                return program_refuse(t, "a statement", "is no step", step_site(t, run, w), site);
        }
        if (loop)
            return program_refuse(
                t, tape_fused_loop_name(loop, run->partial_begin + loop->at), "is no step",
                (struct tape_site){t->locate(loop->site, run->near), tape_fused_loop_line(loop)},
                site);
    }
    return TAPE_OK;
}

/* Whether all that steps read are steps and leaves. */
static enum tape_status operands_verify(struct tape *t, struct tape_site site)
{
    const struct tape_program *p = t->program;
    uint32_t at = t->last_record, value, element;
    for (struct tape_run *run; (run = run_before(t, &at));)
        for (const uint32_t *w = run->word_end; w < run->word_begin; w = tape_statement_behind(w)) {
            const struct tape_operands o = tape_statement_operands(w);
            for (uint32_t k = 0; k < o.n; k++) {
                const struct tape_step *s = tape_program_find(p, o.index[k]);
                if (!(s && s->op) && !tape_statement_leaf(t, o.index[k], &value, &element))
                    return program_refuse(t, "a statement",
                                          "reads what is neither a step nor a leaf",
                                          step_site(t, run, w), site);
            }
        }
    return TAPE_OK;
}

enum tape_status tape_program_end(struct tape *t, struct tape_site site)
{
    struct tape_program *p = t->program;
    tape_observed(t);
    tape_settle(t);
    const bool on = p->on;
    enum tape_status status = t->error.code;
    p->on = false;
    if (status == TAPE_OK)
        status = statements_verify(t, site);
    if (status == TAPE_OK)
        status = operands_verify(t, site);
    if (on && status == TAPE_OK && !tape_program_roll(t))
        status = tape_fail_memory(t, site, "program_end");
    if (on)
        p->whole = status == TAPE_OK; /* its memory stays, as after any call that fails */
    return status;
}

void tape_program_statements(struct tape *t, tape_program_visit *each, void *payload)
{
    const struct tape_program *p = t->program;
    uint32_t at = t->last_record;
    for (struct tape_run *run; (run = run_before(t, &at));) {
        uint32_t result = run->first + run->n;
        const double *partial = run->partial_end;
        if (run->first >= p->next)
            continue;
        for (const uint32_t *w = run->word_end; w < run->word_begin; w = tape_statement_behind(w)) {
            const struct tape_operands o = tape_statement_operands(w);
            partial -= o.general;
            if (--result < p->next)
                each(t,
                     &(struct program_statement){result, (double *)(uintptr_t)partial,
                                                 tape_statement_site(w), run->near},
                     payload);
        }
    }
}

/* ---- the tape's life ---- */

static void program_attach(struct tape *t, void *state)
{
    t->program = state;
}

static void program_finish(struct tape *t)
{
    struct tape_program *p = t->program;
    if (p->chunk)
        t->memory->release(p->chunk, t->memory->payload);
    if (p->question)
        t->memory->release(p->question, t->memory->payload);
}

/* A chunk that was taken behind the mark has no steps from before it: those were there first. */
static void program_rewind(struct tape *t, const struct tape_mark *mark, const char *end)
{
    struct tape_program *p = t->program;
    const uint32_t next = tape_cursor_next(&mark->statements.rest);
    const uint32_t last = mark->last_record;
    const bool gone =
        next < p->first || (p->whole && next == p->first) ||
        (p->last_record != UINT32_MAX && (last == UINT32_MAX || last < p->last_record));
    if (gone || next < p->next || (end && (const char *)p->roll >= end))
        roll_drop(t, end);
    for (uint32_t k = 0; k < p->n_chunks; k++)
        if (gone || (uint64_t)k * TAPE_CHUNK_STEPS >= next || (end && (char *)p->chunk[k] >= end))
            chunk_drop(t, k, end);
    if (gone)
        program_drop(t);
    /* Its index may be that of something else now. */
    struct tape_step *left = tape_program_find(p, next);
    if (left)
        memset(left, 0, (TAPE_CHUNK_STEPS - next % TAPE_CHUNK_STEPS) * sizeof *left);
    p->next = p->next > next ? next : p->next;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_questions; k++)
        if (p->question[k].operand[0] < next && p->question[k].operand[1] < next)
            p->question[n++] = p->question[k];
    p->n_questions = n;
}

static void program_account(struct tape *t)
{
    struct tape_program *p = t->program;
    p->row = TAPE_ROW_OTHER;
    for (uint32_t k = 0; k < p->n_chunks; k++) {
        if (!p->chunk[k])
            continue;
        if (p->row == TAPE_ROW_OTHER)
            p->row = tape_account_row(t, p->site, begin_name);
        tape_account_buffer(t, p->row, chunk_bytes);
    }
    if (!p->roll)
        return;
    if (p->row == TAPE_ROW_OTHER)
        p->row = tape_account_row(t, p->site, begin_name);
    tape_account_buffer(t, p->row, p->roll->bytes);
}

static enum tape_status program_sweep_refuse(struct tape *t, const char *what,
                                             struct tape_site site)
{
    if (!t->program->on)
        return TAPE_OK;
    return tape_fail(t, TAPE_ERROR_STATE, site,
                     "%s: not while a program is recorded: ad_tape_program_end comes first", what);
}

const struct tape_part tape_program_part = {.bytes = sizeof(struct tape_program),
                                            .attach = program_attach,
                                            .reset = program_drop,
                                            .end = program_finish,
                                            .rewind = program_rewind,
                                            .account = program_account,
                                            .sweep_refuse = program_sweep_refuse};
