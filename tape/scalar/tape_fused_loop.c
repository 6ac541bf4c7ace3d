/* tape_fused_loop.c: operands looked at, records written, runs taken apart. */
#include "tape_fused_loop.h"

#include "tape_call.h"

#include <string.h>

enum { SEEN = 512, HEAD_WORDS = sizeof(struct tape_fused_loop) / sizeof(uint32_t), IN_WORDS = 3 };

/* ---- the parts of a run ---- */

/* The part whose end is set, below result `end`, begins behind this fused loop, or with the run. */
static void part_begin(const struct tape_run *run, const uint32_t *fused_loop, uint32_t end,
                       struct tape_run_part *part)
{
    const struct tape_fused_loop *s = (const struct tape_fused_loop *)(const void *)fused_loop;
    struct tape_run *of = &part->statements;
    part->fused_loop = s;
    of->word_begin = s ? fused_loop : run->word_begin;
    of->partial_begin = s ? run->partial_begin + s->at + s->doubles : run->partial_begin;
    of->first = s ? s->first + s->m : run->first;
    of->n = end - of->first;
}

struct tape_run_part tape_run_last(const struct tape_run *run)
{
    struct tape_run_part part = {.statements = *run};
    part.statements.fused_loop = NULL;
    part_begin(run, run->fused_loop, run->first + run->n, &part);
    return part;
}

bool tape_run_previous(const struct tape_run *run, struct tape_run_part *part)
{
    const struct tape_fused_loop *s = part->fused_loop;
    if (!s)
        return false;
    part->statements.word_end = (const uint32_t *)(const void *)s + s->words;
    part->statements.partial_end = run->partial_begin + s->at;
    part_begin(run, s->previous ? run->word_begin - s->previous : NULL, s->first, part);
    return true;
}

const char *tape_fused_loop_name(const struct tape_fused_loop *s, const double *doubles)
{
    struct tape_custom custom;
    if (tape_fused_loop_kind(s) != KERNEL_FUSED_LOOP_custom)
        return kernel_fused_loop_name[tape_fused_loop_kind(s)];
    memcpy(&custom, doubles, sizeof custom);
    return custom.name;
}

/* ---- values that are kept already ---- */

static struct tape_seen *seen_at(struct tape_fused_loops *s, const void *address, uint32_t first)
{
    const uint64_t hash = ((uintptr_t)address / 8 + first) * 0x9e3779b97f4a7c15u;
    return &s->seen[hash >> 32 & (SEEN - 1)];
}

/* The place of an array's values; NULL: there is no memory to remember any. */
static struct tape_seen *seen_of(struct tape *t, const struct tape_operand *o)
{
    struct tape_fused_loops *s = &t->statements->fused_loops;
    if (!s->seen) {
        const size_t bytes = SEEN * sizeof *s->seen;
        s->seen = t->memory->resize(NULL, bytes, t->memory->payload);
        if (!s->seen)
            return NULL;
        memset(s->seen, 0, bytes);
    }
    if (o->number)
        return seen_at(s, o->number, 0);
    const uint32_t first = (uint32_t)o->real[0].key;
    return seen_at(s, first ? NULL : o->real, first);
}

static const double *seen_values(struct tape *t, const struct tape_operand *o)
{
    const struct tape_seen *at = o->n ? seen_of(t, o) : NULL;
    if (!at || at->life != t->statements->fused_loops.life || at->n != o->n)
        return NULL;
    const uint32_t first = o->real ? (uint32_t)o->real[0].key : 0;
    const void *address = first ? NULL : o->real ? (const void *)o->real : o->number;
    return at->first == first && at->address == address ? at->values : NULL;
}

static void values_remember(struct tape *t, const struct tape_operand *o, const double *values)
{
    struct tape_seen *at = seen_of(t, o);
    if (!at)
        return;
    const uint32_t first = o->real ? (uint32_t)o->real[0].key : 0;
    *at = (struct tape_seen){.address = first     ? NULL
                                        : o->real ? (const void *)o->real
                                                  : o->number,
                             .values = values,
                             .first = first,
                             .n = (uint32_t)o->n,
                             .life = t->statements->fused_loops.life};
}

/* ---- operands ---- */

/* Elements one by one; the result is true if they are values of the tape or constants. */
static bool each_holds(const struct tape *t, struct tape_operand *o, int64_t *refused)
{
    const uint32_t tag = (uint32_t)(t->statements->cursor->result >> 32);
    const uint32_t next = tape_statement_next(t);
    for (int64_t i = 0; i < o->n; i++) {
        const uint32_t index = (uint32_t)o->real[i].key, of = (uint32_t)(o->real[i].key >> 32);
        if (o->real[i].key && (of != tag || index >= next) && !tape_statement_holds(t, index, of)) {
            *refused = i;
            return false;
        }
    }
    return true;
}

bool tape_fused_loop_survey(struct tape *t, struct tape_operand *o, int64_t *refused)
{
    *refused = 0;
    o->active = false;
    o->first = TAPE_NO_INDICES;
    o->seen = NULL;
    o->values = o->number ? o->number : (const double *)(const void *)o->real;
    o->stride = o->number ? 1 : sizeof(struct kernel_real) / sizeof(double);
    if (o->n == 0)
        return true;
    const double *seen = t && o->n < UINT32_MAX ? seen_values(t, o) : NULL;
    if (o->number) {
        if (seen && memcmp(seen, o->number, (size_t)o->n * sizeof *seen) == 0)
            o->seen = seen;
        return true;
    }
    const struct kernel_real_scan scan = kernel_fused_loop_loops_get()->scan(o->n, o->real, seen);
    o->active = scan.active;
    if (scan.seen && (!scan.active || scan.consecutive))
        o->seen = o->values = seen;
    if (o->seen)
        o->stride = 1;
    if (!scan.active)
        return true;
    if (!t)
        return false;
    o->first = scan.consecutive ? (uint32_t)o->real[0].key : TAPE_INDICES_FOLLOW;
    const uint64_t last = o->real[o->n - 1].key;
    uint32_t first, end;
    if (scan.consecutive && tape_statement_tagged(t, (uint32_t)(last >> 32), &first, &end) &&
        o->first >= first && (uint32_t)last < end)
        return true;
    return each_holds(t, o, refused);
}

/* ---- records ---- */

/* Operands whose values lie in one place are kept once. */
static const struct tape_operand *same_as(const struct tape_fused_loop_plan *plan, int k)
{
    const struct tape_operand *o = &plan->in[k];
    for (int q = 0; q < k; q++) {
        const struct tape_operand *p = &plan->in[q];
        if (p->keep && p->n == o->n && p->real == o->real && p->number == o->number)
            return p;
    }
    return NULL;
}

struct size {
    uint64_t words, doubles;
};

static struct size size_of(const struct tape_fused_loop_plan *plan)
{
    struct size size = {HEAD_WORDS + (uint64_t)plan->n_in * IN_WORDS, (uint64_t)plan->n_saved};
    for (int k = 0; k < plan->n_in; k++) {
        const struct tape_operand *o = &plan->in[k];
        if (o->first == TAPE_INDICES_FOLLOW)
            size.words += (uint64_t)o->n;
        if (o->keep && o->n)
            size.doubles += 1 + (o->seen || same_as(plan, k) ? 0 : (uint64_t)o->n);
    }
    return size;
}

static void values_copy(const struct tape_operand *o, double *to)
{
    if (o->stride == 1)
        memcpy(to, o->values, (size_t)o->n * sizeof *to);
    else
        for (int64_t i = 0; i < o->n; i++)
            to[i] = o->real[i].value;
}

/* Values of an operand into the record; where the next numbers go. */
static double *values_keep(const struct tape_fused_loop_plan *plan, int k, double *place,
                           double *to)
{
    struct tape_operand *o = &plan->in[k];
    const struct tape_operand *same = same_as(plan, k);
    const double *values = o->seen ? o->seen : same ? same->values : to;
    if (values == to) {
        values_copy(o, to);
        to += o->n;
    }
    memcpy(place, &values, sizeof values);
    o->values = values;
    o->stride = 1;
    return to;
}

/* As much of its line's number as a record keeps; 0: none. */
static uint32_t fused_loop_line_of(const struct tape_fused_loop_plan *plan)
{
    return plan->site.line <= TAPE_FUSED_LOOP_LINE_MASK ? plan->site.line : 0;
}

static void write_record(const struct tape *t, struct tape_fused_loop_plan *plan)
{
    const struct tape_cursor *c = t->statements->cursor;
    const struct tape_run *run = tape_run_of(tape_record_at(t, t->open));
    uint32_t *word = c->word - plan->words, *index = word + HEAD_WORDS + IN_WORDS * plan->n_in;
    *(struct tape_fused_loop *)(void *)word = (struct tape_fused_loop){
        .mark = TAPE_FUSED_LOOP_MARK | (uint32_t)plan->kind << TAPE_FUSED_LOOP_KIND_SHIFT |
                (uint32_t)plan->n_in << TAPE_FUSED_LOOP_IN_SHIFT | fused_loop_line_of(plan),
        .site = (uint32_t)plan->site.pc,
        .words = (uint32_t)plan->words,
        .doubles = (uint32_t)plan->doubles,
        .m = (uint32_t)plan->m,
        .first = tape_cursor_next(c),
        .at = (uint32_t)(c->partial - run->partial_begin),
        .previous = run->fused_loop ? (uint32_t)(run->word_begin - run->fused_loop) : 0};
    struct tape_fused_loop_in *in = (struct tape_fused_loop_in *)(void *)(word + HEAD_WORDS);
    uint32_t kept = (uint32_t)plan->n_saved;
    plan->saved = c->partial;
    double *to = c->partial + kept;
    for (int k = 0; k < plan->n_in; k++)
        to += plan->in[k].keep && plan->in[k].n;
    for (int k = 0; k < plan->n_in; k++) {
        const struct tape_operand *o = &plan->in[k];
        in[k] = (struct tape_fused_loop_in){
            .n = (uint32_t)o->n, .first = o->first, .kept = o->joined ? TAPE_JOINED : 0};
        if (o->first == TAPE_INDICES_FOLLOW) {
            for (int64_t i = 0; i < o->n; i++)
                index[i] = o->index ? o->index[i * o->index_step] : (uint32_t)o->real[i].key;
            index += o->n;
        }
        if (!o->keep || !o->n)
            continue;
        to = values_keep(plan, k, c->partial + kept, to);
        in[k].kept = ++kept;
    }
    plan->first = c->result;
}

/* Doubles beside the adjoints: of results and operands that are not where the pullback wants
 * them. */
static void plan_room(struct tape_fused_loop_plan *plan)
{
    plan->room[0] = 0;
    plan->room[1] = (uint64_t)plan->m;
    for (int k = 0; k < plan->n_in; k++) {
        const bool is_joined = plan->in[k].joined || (k > 0 && plan->in[k - 1].joined);
        if (plan->in[k].active || is_joined)
            plan->room[1] += (uint64_t)plan->in[k].n;
        if (plan->in[k].first == TAPE_INDICES_FOLLOW || is_joined)
            plan->room[0] += (uint64_t)plan->in[k].n;
    }
}

bool tape_fused_loop_open(struct tape *t, struct tape_fused_loop_plan *plan)
{
    struct tape_statements *s = t->statements;
    bool active = false;
    plan->saved = NULL;
    for (int k = 0; k < plan->n_in; k++)
        active = active || plan->in[k].active;
    if (!active || plan->m == 0 || t->no_grad || t->error.code != TAPE_OK)
        return false;
    if (!tape_call_takes_scalars(t))
        return tape_call_refuse_scalars(t, plan->name, plan->site) == TAPE_OK;
    if (s->calling)
        return tape_fail(t, TAPE_ERROR_STATE, plan->site,
                         "%s: recorded by a callback, while the tape calls it",
                         plan->name) == TAPE_OK;
    const struct size size = size_of(plan);
    const uint64_t bytes = size.words * sizeof(uint32_t) + size.doubles * sizeof(double);
    const uint32_t next = tape_statement_next(t);
    const uint64_t left = next < TAPE_INDEX_LIMIT ? TAPE_INDEX_LIMIT - next : 0;
    if ((uint64_t)plan->m > left || size.words > UINT32_MAX || size.doubles > UINT32_MAX)
        return tape_fail(
                   t, TAPE_ERROR_LIMIT, plan->site,
                   "%s: %lld results by a record of %llu bytes: %u indices are left, and 2^32 "
                   "numbers are the most",
                   plan->name, (long long)plan->m, (unsigned long long)bytes,
                   (unsigned)left) == TAPE_OK;
    if (t->open == UINT32_MAX ||
        (uint64_t)((char *)s->cursor->word - (char *)s->cursor->partial) < bytes) {
        tape_observed(t);
        if (!tape_statement_open(t, bytes, plan->name, plan->site))
            return false;
    }
    plan->words = size.words;
    plan->doubles = size.doubles;
    plan_room(plan);
    write_record(t, plan);
    return true;
}

void tape_fused_loop_commit(struct tape *t, const struct tape_fused_loop_plan *plan)
{
    struct tape_statements *s = t->statements;
    struct tape_run *run = tape_run_of(tape_record_at(t, t->open));
    struct tape_cursor *c = s->cursor;
    c->word -= plan->words;
    c->partial += plan->doubles;
    c->result += (uint64_t)plan->m;
    run->fused_loop = c->word;
    for (int k = 0; k < 2; k++)
        if (s->fused_loops.room[k] < plan->room[k])
            s->fused_loops.room[k] = plan->room[k];
    for (int k = 0; k < plan->n_in; k++) {
        const struct tape_operand *o = &plan->in[k];
        if (o->keep && o->n && !o->seen && o->first != TAPE_INDICES_FOLLOW)
            values_remember(t, o, o->values);
    }
    /* Statements count against the limit where a run is opened: the room that is left must not
     * hold more of them than there are indices. */
    const uint64_t room = (uint64_t)((char *)c->word - (char *)c->partial);
    if ((uint64_t)(UINT32_MAX - tape_cursor_next(c)) < room / TAPE_STATEMENT_LEAST)
        tape_statement_close(t);
}

void tape_fused_loop_ran(struct tape *t, const struct tape_fused_loop_plan *plan, uint64_t start)
{
    if (!t->hook)
        return;
    const struct tape_record *run = tape_record_at(t, t->last_record);
    const uint32_t row = tape_account_row_beside(
        t, run->row, (struct tape_site){plan->site.pc, fused_loop_line_of(plan)}, plan->name);
    const uint64_t now = t->hook->clock();
    start = tape_account_until(t, tape_row(t, row), start, now, 0);
    tape_account_event(t, TAPE_EVENT_FORWARD, row, NULL, start, now, false);
}
