/* tape_fork_sweep.c: the sweep over joined forks: several beside each other, one sum.
 *
 * A sweep gives each fork adjoints of its own: 8 bytes for every index from the lowest of the
 * parent's that it names (from 0 where the parent has no more of them than the fork), of which
 * those between the parent's and its own stay untouched. The parent's are added to the parent's
 * adjoints fork by fork, the last one first: no bit depends on how many threads share the work.
 */
#include "tape_adjoints.h"
#include "tape_fork.h"

#include "tape_fused_loop.h"
#include "tape_now.h"
#include "tape_sweep.h"
#include "threads.h"

#include <string.h>

enum { BATCH_MOST = 2 * KERNEL_MAX_THREADS, BYTES_A_NS = 8 /* of statements in a sweep */ };

/* One fork of a batch. */
struct section {
    struct tape_join *join;
    double *buffer; /* [from `low` to the fork's end][width] */
    uint64_t bytes;
    uint32_t low;
    bool ok;
};

struct batch {
    struct tape *t;
    uint32_t width;
    int n, next;       /* next: the section to be swept next; atomic */
    uint32_t from, to; /* the parent's adjoints that any of them may have added to */
    struct section section[BATCH_MOST];
};

/* Where index 0 would be in adjoints that begin with index `low`. */
static double *adjoints_origin(double *buffer, uint32_t low, uint32_t width)
{
    return (double *)((uintptr_t)buffer - (size_t)low * width * sizeof(double));
}

/* ---- what of the parent's a fork names ---- */

/* One operand: of the parent's, of none, or of the fork's own, which are above base. */
static void fork_name(struct tape_fork *f, uint32_t *operand)
{
    if (*operand >= f->base)
        return;
    if (*operand == 0) {
        *operand = f->base;
        return;
    }
    f->low = *operand < f->low ? *operand : f->low;
    f->high = *operand > f->high ? *operand : f->high;
}

/* What a fork of the fork names is named by it too, or is its own. */
static void fork_name_nested(struct tape_fork *f, struct tape *nested)
{
    tape_fork_look(nested);
    if (nested->fork->low >= f->base)
        return;
    f->low = nested->fork->low < f->low ? nested->fork->low : f->low;
    const uint32_t high = nested->fork->high < f->base ? nested->fork->high : f->base - 1;
    f->high = high > f->high ? high : f->high;
}

static void fork_name_statements(struct tape_fork *f, const struct tape_run *run)
{
    uint32_t *const end = (uint32_t *)(uintptr_t)run->word_begin;
    for (uint32_t *w = (uint32_t *)(uintptr_t)run->word_end; w < end;) {
        const struct tape_operands o = tape_statement_operands(w);
        w = (uint32_t *)(uintptr_t)o.index;
        for (uint32_t *const next = w + o.n; w < next; w++)
            fork_name(f, w);
    }
}

static void fork_name_fused_loop(struct tape_fork *f, const struct tape_fused_loop *s)
{
    const struct tape_fused_loop_in *in = tape_fused_loop_in(s),
                                    *end = in + tape_fused_loop_n_in(s);
    uint32_t *index = (uint32_t *)(uintptr_t)end;
    for (; in < end; in++) {
        if (in->first == TAPE_NO_INDICES || in->n == 0)
            continue;
        if (in->first == TAPE_INDICES_FOLLOW) {
            for (uint32_t i = 0; i < in->n; i++)
                fork_name(f, index++);
            continue;
        }
        /* No value has index `base`, so they are all of the parent's or all of its own. */
        uint32_t first = in->first, last = in->first + in->n - 1;
        fork_name(f, &first);
        fork_name(f, &last);
    }
}

static void fork_name_run(struct tape_fork *f, const struct tape_run *run)
{
    struct tape_run_part part = tape_run_last(run);
    do {
        fork_name_statements(f, &part.statements);
        if (part.fused_loop)
            fork_name_fused_loop(f, part.fused_loop);
    } while (tape_run_previous(run, &part));
}

/* Where the parent has no more indices than the fork, adjoints for all of them cost less than a
 * look. */
void tape_fork_look(struct tape *c)
{
    struct tape_fork *f = c->fork;
    if (f->looked)
        return;
    f->looked = true;
    if (f->base <= tape_statement_next(c) - f->base) {
        f->low = 0;
        f->high = f->base - 1;
        return;
    }
    for (struct tape *nested = f->joined; nested; nested = nested->fork->next)
        fork_name_nested(f, nested);
    for (uint32_t at = c->last_record; at != UINT32_MAX;) {
        struct tape_record *r = tape_record_at(c, at);
        at = r->previous;
        if (tape_record_kind(r)->is_run)
            fork_name_run(f, tape_run_of(r));
    }
}

/* ---- batches ---- */

static bool join_is_seeded(const struct batch *b, const struct tape_join *join)
{
    const double *y = b->t->statements->adjoint + (size_t)join->first * b->width;
    for (size_t i = 0; i < (size_t)join->n * b->width; i++)
        if (y[i] != 0)
            return true;
    return false;
}

/* The join right before this one; NULL: the record before is none. */
static struct tape_join *join_before(const struct tape *t, const struct tape_join *join)
{
    const struct tape_record *r = (const struct tape_record *)(const void *)join - 1;
    const struct tape *child = join->child->fork->next; /* the one that was joined before */
    const bool adjacent = child && child->fork->record == r->previous;
    return adjacent ? tape_join_of(tape_record_at(t, r->previous)) : NULL;
}

/* The joins from r on backwards that have an adjoint, up to one whose results a later of them may
 * have named. */
static void batch_collect(struct batch *b, struct tape_record *r)
{
    struct tape *t = b->t;
    const int threads = kernel_threads(), most = threads < 1                    ? 1
                                                 : threads < KERNEL_MAX_THREADS ? 2 * threads
                                                                                : BATCH_MOST;
    uint32_t base = 0;
    for (struct tape_join *join = tape_join_of(r); join && b->n < most;) {
        const struct tape_fork *f = join->child->fork;
        if (join->first < base)
            return;
        t->fork->swept = join->first;
        if (join_is_seeded(b, join)) {
            b->section[b->n++] = (struct section){.join = join};
            base = f->base > base ? f->base : base;
        }
        join = join_before(t, join);
    }
}

/* Memory for as many as there is; those that have none are left for another batch. */
static bool batch_take_buffers(struct batch *b, uint32_t row)
{
    struct tape *t = b->t;
    for (int k = 0; k < b->n; k++) {
        struct section *s = &b->section[k];
        struct tape *c = s->join->child;
        const struct tape_fork *f = c->fork;
        s->low = f->low < f->base ? f->low : f->base;
        s->bytes = ((uint64_t)(tape_statement_next(c) - s->low) * b->width +
                    c->statements->fused_loops.room[b->width > 1]) *
                   sizeof(double);
        s->buffer = tape_arena_buffer(&t->arena, s->bytes);
        if (!s->buffer) {
            b->n = k;
            if (k > 0)
                t->fork->swept = b->section[k - 1].join->first;
            return k > 0;
        }
        tape_account_buffer(t, row, s->bytes);
    }
    return true;
}

static void batch_give_buffers(struct batch *b, uint32_t row)
{
    for (int k = 0; k < b->n; k++) {
        tape_arena_free(&b->t->arena, b->section[k].buffer, b->section[k].bytes);
        tape_account_free(b->t, row, b->section[k].bytes);
    }
}

static void adjoints_clear(double *adjoint, uint32_t from, uint32_t to, uint32_t width)
{
    memset(adjoint + (size_t)from * width, 0, (size_t)(to - from) * width * sizeof *adjoint);
}

static void section_sweep(struct batch *b, struct section *s)
{
    struct tape *c = s->join->child;
    const uint32_t *of = (const uint32_t *)(s->join + 1), width = b->width;
    struct tape_hook *hook = tape_observed(c);
    TAPE_DOING(c, TAPE_PHASE_BACKWARD, ((struct tape_site){0, 0}), tape_join_kind.op.name);
    uint64_t stamp = hook ? tape_clock(c) : 0;
    double *adjoint = adjoints_origin(s->buffer, s->low, width);
    if (c->fork->low <= c->fork->high)
        adjoints_clear(adjoint, c->fork->low, c->fork->high + 1, width);
    adjoints_clear(adjoint, c->fork->base, tape_statement_next(c), width);
    const double *y = b->t->statements->adjoint + (size_t)s->join->first * width;
    if (c->fork->whole)
        memcpy(adjoint + (size_t)(c->fork->base + 1) * width, y,
               (size_t)s->join->n * width * sizeof *y);
    for (uint32_t i = 0; i < s->join->n && !c->fork->whole; i++)
        for (uint32_t k = 0; k < width; k++)
            adjoint[(size_t)of[i] * width + k] += y[(size_t)i * width + k];
    c->statements->adjoint = adjoint;
    c->statements->width = width;
    c->reading = b->t->reading;
    c->fork->swept = UINT32_MAX;
    s->ok = tape_sweep_behind(c, UINT32_MAX, &stamp);
    c->statements->adjoint = NULL;
}

static void batch_look(void *job, int part, int parts)
{
    const struct batch *b = job;
    for (int k = part; k < b->n; k += parts)
        tape_fork_look(b->section[k].join->child);
}

static void batch_sweep(void *job, int part, int parts)
{
    struct batch *b = job;
    (void)part, (void)parts;
    for (int k; (k = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED)) < b->n;)
        section_sweep(b, &b->section[k]);
}

/* Adds to a part of the parent's adjoints what the forks have for it. */
static void batch_add(void *job, int part, int parts)
{
    const struct batch *b = job;
    double *adjoint = b->t->statements->adjoint;
    const uint64_t n = b->to - b->from;
    const uint32_t from = b->from + (uint32_t)(n * (unsigned)part / (unsigned)parts),
                   to = b->from + (uint32_t)(n * (unsigned)(part + 1) / (unsigned)parts);
    for (int k = 0; k < b->n; k++) {
        const struct section *s = &b->section[k];
        const struct tape_fork *f = s->join->child->fork;
        const double *own = adjoints_origin(s->buffer, s->low, b->width);
        const uint32_t low = f->low > from ? f->low : from, end = f->high < to ? f->high + 1 : to;
        for (size_t i = (size_t)low * b->width; i < (size_t)end * b->width; i++)
            adjoint[i] += own[i];
    }
}

static bool join_sweep(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    if (tape_join_of(r)->first >= t->fork->swept)
        return true;
    struct batch b = {.t = t, .width = t->statements->width, .from = UINT32_MAX};
    batch_collect(&b, r);
    uint64_t bytes = 0, named = 0;
    for (int k = 0; k < b.n; k++)
        bytes += b.section[k].join->child->statements->bytes;
    const int threads = threads_parts(bytes / BYTES_A_NS), parts = threads < b.n ? threads : b.n;
    threads_run(parts, batch_look, &b);
    if (!batch_take_buffers(&b, r->row))
        return false;
    for (int k = 0; k < b.n; k++) {
        const struct tape_fork *f = b.section[k].join->child->fork;
        if (f->low > f->high)
            continue;
        b.from = f->low < b.from ? f->low : b.from;
        b.to = f->high + 1 > b.to ? f->high + 1 : b.to;
        named += (f->high - f->low) * (uint64_t)b.width * sizeof(double);
    }
    const uint64_t begun = t->hook ? t->hook->clock() : 0;
    threads_run(parts < b.n ? parts : b.n, batch_sweep, &b);
    if (t->hook) /* the time of the forks is on their lines */
        *stamp += t->hook->clock() - begun;
    bool ok = true;
    for (int k = 0; k < b.n; k++)
        ok = ok && b.section[k].ok;
    for (int k = 0; k < b.n; k++) { /* what a fork's sweep has met is the parent's error */
        struct tape_error *e = &b.section[k].join->child->error;
        if (e->code != TAPE_OK && t->error.code == TAPE_OK)
            tape_fail(t, e->code, tape_row_site(t, r->row), "%s; joined", e->message);
        e->code = TAPE_OK;
    }
    if (ok && b.from < b.to)
        threads_run(threads_parts(threads_ns(named, 2, 1)), batch_add, &b);
    batch_give_buffers(&b, r->row);
    return ok;
}

/* What a fork gave depends on any of the parent's values, from the first that it names to the
 * last. */
static bool join_reach(struct tape *t, struct tape_record *r, enum tape_flag wants, uint32_t *reads)
{
    const struct tape_join *join = tape_join_of(r);
    const struct tape_fork *f = join->child->fork;
    uint8_t *const reached = t->statements->reached;
    (void)wants, (void)reads;
    if (!reached)
        return false;
    tape_fork_look(join->child);
    if (f->low <= f->high && memchr(reached + join->first, 1, join->n))
        memset(reached + f->low, 1, f->high - f->low + 1);
    return false;
}

const struct record_kind tape_join_kind = {.op = {.name = "join"},
                                           .sweep = join_sweep,
                                           .seeded = tape_adjoints_seeded,
                                           .reach = join_reach};
