/* tape_fork.c: see tape_fork.h. */
#include "tape_fork.h"

#include "tape_disk.h"
#include "tape_fused_loop.h"
#include "tape_no_grad.h"
#include "tape_record_watch.h"
#include "tape_value.h"

#include <math.h>
#include <string.h>

enum { SPARE_TAGS = 3 };

/* ---- made ---- */

/* A tape for a fork: one that was used before, or a new one. */
static struct tape *fork_take(struct tape *parent, uint64_t reserve, uint64_t budget)
{
    struct tape *child = parent->fork->spare;
    if (child) {
        parent->fork->spare = child->fork->next;
        if (child->arena.reserved >= reserve) {
            child->arena.budget = budget;
            return child;
        }
        tape_destroy(child);
    }
    return tape_create(&(struct tape_options){.memory = parent->memory,
                                              .reserve_bytes = reserve,
                                              .budget_bytes = budget,
                                              .no_huge_pages = !parent->arena.huge_pages,
                                              .whole_bytes = parent->whole_bytes,
                                              .describe = parent->describe,
                                              .locate = parent->locate});
}

/* The parent's tags of what it has so far, and one for none of its values from then on. */
static bool fork_copy_tags(const struct tape *parent, struct tape *child, uint32_t base)
{
    const struct tape_statements *from = parent->statements;
    struct tape_statements *s = child->statements;
    uint32_t n = 0;
    while (n < from->n_tags && from->tags[n].first < base)
        n++;
    child->fork->tag = n > 0 ? from->tags[n - 1].tag : 0;
    child->fork->parent_tags = n + 1;
    if (!tape_statement_reserve_tags(child, SPARE_TAGS))
        return false;
    if (n > 0)
        memcpy(s->tags, from->tags, n * sizeof *s->tags);
    s->tags[n] = (struct tape_tag){base, 0};
    s->n_tags = n + 1;
    return true;
}

struct tape *tape_fork_make(struct tape *parent, uint32_t slot, uint32_t generation, int of,
                            int parts)
{
    tape_settle(parent);
    tape_disk_flush(parent); /* forks have no file: they share what memory there is */
    const struct tape_arena *a = &parent->arena;
    const uint32_t base = tape_statement_next(parent);
    const uint64_t left = a->budget > a->live ? a->budget - a->live : 0,
                   share = left / (unsigned)of, room = a->reserved / (unsigned)parts;
    struct tape *child =
        fork_take(parent, room > TAPE_HUGE_PAGE ? room : TAPE_HUGE_PAGE, share ? share : 1);
    if (!child)
        return NULL;
    *child->fork = (struct tape_fork){.base = base,
                                      .slot = slot,
                                      .generation = generation,
                                      .low = UINT32_MAX,
                                      .no_grad = parent->no_grad > 0,
                                      .no_grad_site = tape_no_grad_site(parent),
                                      .spare = child->fork->spare};
    child->no_grad = child->fork->no_grad;
    child->no_grad_levels[0] = (struct tape_no_grad_level){child->fork->no_grad_site, 0};
    child->nonfinite = parent->nonfinite;
    child->statements->rest.result = (uint64_t)base + 1;
    if (fork_copy_tags(parent, child, base)) {
        tape_observe_adopt(child, false);
        return child;
    }
    tape_destroy(child);
    return NULL;
}

bool tape_fork_is_of(const struct tape *child, uint32_t slot, uint32_t generation)
{
    return child->fork->base && child->fork->slot == slot && child->fork->generation == generation;
}

bool tape_fork_stands(const struct tape *parent, const struct tape *child)
{
    const uint32_t last = child->fork->base - 1;
    return last == 0 || tape_statement_holds(parent, last, child->fork->tag);
}

/* ---- joined, and dropped ---- */

enum tape_status tape_fork_join(struct tape *parent, struct tape *child, uint32_t n,
                                const uint32_t *of, struct tape_site site, uint32_t *first)
{
    struct tape_statements *s = parent->statements;
    struct tape_fork *f = parent->fork;
    tape_observed(parent);
    tape_settle(parent);
    const uint32_t next = tape_statement_next(parent);
    const uint64_t bytes = child->arena.live;
    if (next >= TAPE_INDEX_LIMIT || n > TAPE_INDEX_LIMIT - next || n > UINT32_MAX / 8)
        return tape_fail(parent, TAPE_ERROR_LIMIT, site,
                         "tape_join: %u results, and %u indices are left", (unsigned)n,
                         next < TAPE_INDEX_LIMIT ? (unsigned)(TAPE_INDEX_LIMIT - next) : 0);
    struct tape_record *r = NULL;
    if (!tape_arena_charge(&parent->arena, bytes)) {
        parent->arena.refused = bytes;
        return tape_fail_memory(parent, site, "tape_join");
    }
    const size_t listed = of ? n * sizeof *of : 0;
    r = tape_record_of_kind(parent, &tape_join_kind, sizeof(struct tape_join) + listed, 0,
                            tape_account_row(parent, site, tape_join_kind.op.name));
    if (!r) {
        parent->arena.live -= bytes;
        return tape_fail_memory(parent, site, "tape_join");
    }
    r->n_attr = 0; /* more than it can count: nothing lies behind them */
    struct tape_join *join = tape_join_of(r);
    *join = (struct tape_join){child, next, n};
    child->fork->whole = !of;
    if (of)
        memcpy(join + 1, of, listed);
    if (parent->hook)
        TAPE_ADD(tape_row(parent, r->row)->calls, 1);
    s->n += child->statements->n;
    s->bytes += child->statements->bytes;
    child->fork->record = parent->last_record;
    child->fork->first = *first = tape_statement_results(parent, n);
    child->fork->next = f->joined;
    f->joined = child;
    f->n_joined++;
    tape_watch_numbers(parent, tape_join_kind.op.name, site, next, n, (double)NAN);
    return TAPE_OK;
}

/* What costs less to copy than a fork's memory and adjoints of its own. */
enum { COPIED_MOST = 64 << 10, COPIED_RUNS = 64 };

/* Runs of a child, newest first, and where their doubles are copied to; indices above base are `by`
 * further on there. */
struct fork_copy {
    struct tape *parent, *child;
    uint32_t n, base, by;
    bool apart; /* each is a run of its own on the parent too */
    struct tape_record *record[COPIED_RUNS];
    const double *partial[COPIED_RUNS];
};

static uint32_t index_moved(const struct fork_copy *c, uint32_t index)
{
    return index > c->base ? index + c->by : index;
}

static void statements_move(const struct fork_copy *c, uint32_t *w, const uint32_t *end)
{
    while (w < end) {
        const struct tape_operands o = tape_statement_operands(w);
        w = (uint32_t *)(uintptr_t)o.index;
        for (uint32_t *const next = w + o.n; w < next; w++)
            *w = index_moved(c, *w);
    }
}

/* Values lie in a run that was copied, or on the parent, where they stay. */
static void values_move(const struct fork_copy *c, double *place)
{
    const double *values;
    memcpy(&values, place, sizeof values);
    for (uint32_t k = 0; k < c->n; k++) {
        const struct tape_run *run = tape_run_of(c->record[k]);
        if (values >= run->partial_begin && values < run->partial_end) {
            values = c->partial[k] + (values - run->partial_begin);
            break;
        }
    }
    memcpy(place, &values, sizeof values);
}

/* The record lies in a run that is all of its record on the parent too, so that places in the run
 * are the same. */
static void fused_loop_move(const struct fork_copy *c, struct tape_fused_loop *s, double *doubles)
{
    const uint32_t n_in = tape_fused_loop_n_in(s);
    struct tape_fused_loop_in *in = (struct tape_fused_loop_in *)(void *)(s + 1);
    uint32_t *index = (uint32_t *)(void *)(in + n_in);
    s->first = index_moved(c, s->first);
    for (uint32_t k = 0; k < n_in; k++) {
        if (in[k].first == TAPE_INDICES_FOLLOW)
            for (uint32_t i = 0; i < in[k].n; i++, index++)
                *index = index_moved(c, *index);
        else if (in[k].first != TAPE_NO_INDICES)
            in[k].first = index_moved(c, in[k].first);
        if (in[k].kept && in[k].kept != TAPE_JOINED)
            values_move(c, doubles + in[k].kept - 1);
    }
}

static void run_move(const struct fork_copy *c, struct tape_run *run)
{
    struct tape_run_part part = tape_run_last(run);
    do {
        statements_move(c, (uint32_t *)(uintptr_t)part.statements.word_end,
                        part.statements.word_begin);
        if (part.fused_loop)
            fused_loop_move(c, (struct tape_fused_loop *)(uintptr_t)part.fused_loop,
                            (double *)(uintptr_t)run->partial_begin + part.fused_loop->at);
    } while (tape_run_previous(run, &part));
}

static bool run_copy(struct fork_copy *c, uint32_t k)
{
    struct tape *t = c->parent;
    struct tape_cursor *to = t->statements->cursor;
    const struct tape_run *run = tape_run_of(c->record[k]);
    const size_t words = (size_t)(run->word_begin - run->word_end),
                 partials = (size_t)(run->partial_end - run->partial_begin);
    if ((c->apart || (size_t)((char *)to->word - (char *)to->partial) < tape_run_bytes(run)) &&
        !tape_statement_open_row(t, tape_run_bytes(run), tape_statement_kind.op.name,
                                 (struct tape_site){run->near, 0},
                                 tape_account_row_like(t, tape_row(c->child, c->record[k]->row))))
        return false;
    struct tape_run copy = *run;
    copy.word_begin = to->word;
    copy.word_end = to->word -= words;
    copy.partial_begin = c->partial[k] = to->partial;
    memcpy(to->word, run->word_end, words * sizeof *to->word);
    memcpy(to->partial, run->partial_begin, partials * sizeof *to->partial);
    to->partial += partials;
    to->result += run->n;
    if (run->fused_loop)
        copy.fused_loop = copy.word_begin - (run->word_begin - run->fused_loop);
    run_move(c, &copy);
    if (c->apart) {
        struct tape_run *on = tape_run_of(tape_record_at(t, t->open));
        on->fused_loop = copy.fused_loop;
        on->peaks = t->hook ? TAPE_RUN_MOVED : on->peaks;
    }
    return true;
}

bool tape_fork_copy(struct tape *parent, struct tape *child, struct tape_site site, uint32_t *first)
{
    struct fork_copy c = {.parent = parent, .child = child, .base = child->fork->base};
    const uint64_t *const room = child->statements->fused_loops.room;
    uint64_t *const has = parent->statements->fused_loops.room;
    tape_observed(parent);
    tape_observed(child);
    tape_settle(child);
    const uint32_t next = tape_statement_next(parent);
    const uint32_t results = tape_statement_next(child) - c.base - 1;
    if (parent->hook != child->hook || parent->nonfinite || parent->no_grad ||
        child->statements->bytes > COPIED_MOST || next >= TAPE_INDEX_LIMIT ||
        results > TAPE_INDEX_LIMIT - next)
        return false;
    c.by = next - c.base - 1;
    c.apart = parent->hook != NULL;
    for (uint32_t at = child->last_record; at != UINT32_MAX;) {
        struct tape_record *r = tape_record_at(child, at);
        at = r->previous;
        if (c.n == COPIED_RUNS || !tape_record_kind(r)->is_run)
            return false;
        c.apart = c.apart || tape_run_of(r)->fused_loop;
        c.record[c.n++] = r;
    }
    *first = next;
    for (uint32_t k = c.n; k-- > 0;)
        if (!run_copy(&c, k)) {
            tape_fail_memory(parent, site, "tape_join");
            return false;
        }
    for (uint32_t k = 0; k < c.n; k++)
        tape_run_account_moved(child, c.record[k]);
    for (int k = 0; k < 2; k++)
        has[k] = has[k] > room[k] ? has[k] : room[k];
    if (parent->hook) /* what comes next is not counted yet */
        tape_settle(parent);
    return true;
}

void tape_fork_give(struct tape *parent, struct tape *child)
{
    child->fork->base = child->fork->parent_tags = 0;
    child->fork->no_grad = false;
    child->statements->slot = 0;
    child->statements->n_tags = 0;
    child->watch = (struct tape_error_watch){.tell = NULL};
    tape_reset(child);
    child->fork->next = parent->fork->spare;
    parent->fork->spare = child;
}

void tape_fork_drop(struct tape *t, uint32_t index)
{
    struct tape_fork *f = t->fork;
    while (f->joined && f->joined->fork->first >= index) {
        struct tape *child = f->joined;
        f->joined = child->fork->next;
        f->n_joined--;
        tape_fork_give(t, child);
    }
}

void tape_fork_end(struct tape *t)
{
    tape_fork_drop(t, 0);
    while (t->fork->spare) {
        struct tape *child = t->fork->spare;
        t->fork->spare = child->fork->next;
        tape_destroy(child);
    }
}
