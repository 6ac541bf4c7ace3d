/* tape_fork_sweep.c: the sweep over joined forks: several beside each other, one sum.
 *
 * May include: tape_fork.h, threads.h.
 *
 * A sweep gives each fork adjoints of its own: 8 bytes for every index from the lowest of the
 * parent's that it names, of which those between the parent's and its own stay untouched. The
 * parent's are added to the parent's adjoints fork by fork, the last one first: no bit depends on
 * how many threads share the work.
 */
#include "tape_fork.h"

#include "threads.h"

#include <string.h>

enum { BATCH_MOST = 2 * KERNEL_MAX_THREADS };

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
static double *origin(double *buffer, uint32_t low, uint32_t width)
{
    return (double *)((uintptr_t)buffer - (size_t)low * width * sizeof(double));
}

static bool is_seeded(const struct batch *b, const struct tape_join *join)
{
    const double *y = b->t->statements.adjoint + (size_t)join->first * b->width;
    for (size_t i = 0; i < (size_t)join->n * b->width; i++)
        if (y[i] != 0)
            return true;
    return false;
}

/* The joins from r on backwards that have an adjoint, up to one whose results a later of them may
 * have named. */
static void collect(struct batch *b, struct tape_record *r)
{
    struct tape *t = b->t;
    const int threads = kernel_threads(), most = threads < 1                    ? 1
                                                 : threads < KERNEL_MAX_THREADS ? 2 * threads
                                                                                : BATCH_MOST;
    for (uint32_t base = 0; r->op == &tape_join_op && b->n < most;) {
        struct tape_join *join = tape_join_of(r);
        const struct tape_fork *f = &join->child->fork;
        if (join->first < base)
            return;
        t->fork.swept = join->first;
        if (is_seeded(b, join)) {
            b->section[b->n++] =
                (struct section){.join = join, .low = f->low < f->base ? f->low : f->base};
            base = f->base > base ? f->base : base;
        }
        if (r->previous == UINT32_MAX)
            return;
        r = tape_record_at(t, r->previous);
    }
}

/* Memory for as many as there is; those that have none are left for another batch. */
static bool take_buffers(struct batch *b, uint32_t row)
{
    struct tape *t = b->t;
    for (int k = 0; k < b->n; k++) {
        struct section *s = &b->section[k];
        const struct tape_statements *own = &s->join->child->statements;
        s->bytes = ((uint64_t)(tape_statement_next(s->join->child) - s->low) * b->width +
                    own->segments.room[b->width > 1]) *
                   sizeof(double);
        s->buffer = tape_arena_buffer(&t->arena, s->bytes);
        if (!s->buffer) {
            b->n = k;
            if (k > 0)
                t->fork.swept = b->section[k - 1].join->first;
            return k > 0;
        }
        tape_account_buffer(t, row, s->bytes);
    }
    return true;
}

static void give_buffers(struct batch *b, uint32_t row)
{
    for (int k = 0; k < b->n; k++) {
        tape_arena_free(&b->t->arena, b->section[k].buffer, b->section[k].bytes);
        tape_account_free(b->t, row, b->section[k].bytes);
    }
}

static void clear(double *adjoint, uint32_t from, uint32_t to, uint32_t width)
{
    memset(adjoint + (size_t)from * width, 0, (size_t)(to - from) * width * sizeof *adjoint);
}

static void sweep_section(struct batch *b, struct section *s)
{
    struct tape *c = s->join->child;
    const uint32_t *of = (const uint32_t *)(s->join + 1), width = b->width;
    struct tape_hook *hook = tape_observed(c);
    uint64_t stamp = hook ? hook->clock() : 0;
    double *adjoint = origin(s->buffer, s->low, width);
    if (c->fork.low <= c->fork.high)
        clear(adjoint, c->fork.low, c->fork.high + 1, width);
    clear(adjoint, c->fork.base, tape_statement_next(c), width);
    const double *y = b->t->statements.adjoint + (size_t)s->join->first * width;
    for (uint32_t i = 0; i < s->join->n; i++)
        for (uint32_t k = 0; k < width; k++)
            adjoint[(size_t)of[i] * width + k] += y[(size_t)i * width + k];
    c->statements.adjoint = adjoint;
    c->statements.width = width;
    c->statements.reading = b->t->statements.reading;
    c->fork.swept = UINT32_MAX;
    s->ok = tape_sweep_fork(c, &stamp);
    c->statements.adjoint = NULL;
}

static void sweep_part(void *job, int part, int parts)
{
    struct batch *b = job;
    (void)part, (void)parts;
    for (int k; (k = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED)) < b->n;)
        sweep_section(b, &b->section[k]);
}

/* Adds to a part of the parent's adjoints what the forks have for it. */
static void add_part(void *job, int part, int parts)
{
    const struct batch *b = job;
    double *adjoint = b->t->statements.adjoint;
    const uint64_t n = b->to - b->from;
    const uint32_t from = b->from + (uint32_t)(n * (unsigned)part / (unsigned)parts),
                   to = b->from + (uint32_t)(n * (unsigned)(part + 1) / (unsigned)parts);
    for (int k = 0; k < b->n; k++) {
        const struct section *s = &b->section[k];
        const struct tape_fork *f = &s->join->child->fork;
        const double *own = origin(s->buffer, s->low, b->width);
        const uint32_t low = f->low > from ? f->low : from, end = f->high < to ? f->high + 1 : to;
        for (size_t i = (size_t)low * b->width; i < (size_t)end * b->width; i++)
            adjoint[i] += own[i];
    }
}

bool tape_join_pullback(struct tape *t, struct tape_record *r, uint64_t *stamp)
{
    if (tape_join_of(r)->first >= t->fork.swept)
        return true;
    struct batch b = {.t = t, .width = t->statements.width, .from = UINT32_MAX};
    collect(&b, r);
    if (!take_buffers(&b, r->row))
        return false;
    uint64_t bytes = 0, named = 0;
    for (int k = 0; k < b.n; k++) {
        const struct tape_fork *f = &b.section[k].join->child->fork;
        bytes += b.section[k].join->child->statements.bytes;
        if (f->low > f->high)
            continue;
        b.from = f->low < b.from ? f->low : b.from;
        b.to = f->high + 1 > b.to ? f->high + 1 : b.to;
        named += (f->high - f->low) * (uint64_t)b.width * sizeof(double);
    }
    const uint64_t begun = t->hook ? t->hook->clock() : 0;
    const int parts = threads_parts(bytes);
    threads_run(parts < b.n ? parts : b.n, sweep_part, &b);
    if (t->hook) /* the time of the forks is on their lines */
        *stamp += t->hook->clock() - begun;
    bool ok = true;
    for (int k = 0; k < b.n; k++)
        ok = ok && b.section[k].ok;
    if (ok && b.from < b.to)
        threads_run(threads_parts(named), add_part, &b);
    give_buffers(&b, r->row);
    return ok;
}
