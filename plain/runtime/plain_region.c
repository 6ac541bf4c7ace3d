/* plain_region.c: several counted loops as one record: what code of plain/pass/pass_regions.c calls
 * around them, and its pullback.
 *
 * What the region reads and writes are groups: ranges of doubles, from the first to the last that
 * any round touches. A group is an operand, and one that is written is consecutive results as a
 * whole: what no round has written has its own adjoint there. The record keeps what the region was
 * given, the groups that are only read and whose values derivatives need, and what the second way
 * writes down. An adjoint of each number of a group that is written, or that is constant, is made
 * in the record's own memory.
 *
 * Invariant: groups do not meet. A record is made only where each check of a value in them fits the
 * newest recording. Whatever does not goes the way of statements, which knows what it means.
 */
#include <tapescope/ad_plain.h>

#include "plain_loop.h"
#include "plain_shadow.h"

#include <stddef.h>

enum {
    /* As in plain/pass/pass_regions.c and pass_regions.h. */
    REGION_GROUPS = 15,
    REGION_SCALARS = 24,
    REGION_RESULTS = 4,
    ROUNDS_LEAST = 100, /* of innermost loops, in all: fewer are statements, or smaller records */
    LONG = 64,          /* rounds of a loop that is better a record of its own, or of a nest */
    PARTS = 8,          /* operands of a group: more of them are an index for each number */
    /* Of a group that is only read there are at most this many numbers for each read, and some. */
    SPARSE = 2,
    SPARSE_MORE = 64,
    WORDS_A_ROUND = 96, /* of loops that surely run: others may be said to have any number */
    ROWS = 16           /* as in plain/pass/pass_regions.c */
};
static const double words_most = INT32_MAX;

/* ---- what the pass tells ---- */

/* What the way back works on: adjoints and values are where a group's origin would be. */
struct region_sweep {
    const int64_t *words;
    const double *scalars;
    const char *kept;
    int64_t top;
    double *dscalars;
    const double *dresults;
    struct {
        const double *values;
        double *adjoints;
    } group[REGION_GROUPS];
};

/* What a write writes, in bytes from its group's origin: all from `low` to `high`; or, where step
 * is not 0, rows of so many bytes, one of which begins each step, the last before `high`. */
struct region_row {
    int64_t group, low, high, step, bytes;
};

struct region_spans {
    double rounds, loops; /* of innermost loops that surely run, and how often those begin */
    double words;         /* that the second way writes down, at most */
    /* Not 0: a place is no whole number of doubles, rows leave other gaps, or there are too many
     * rounds to look at. */
    uint64_t flags;
    struct {
        int64_t low, high; /* bytes from its origin: of the first number, and of the last */
        double touched;
        int64_t from, to;        /* what is surely written before */
        int64_t needs;           /* anything else is read */
        int64_t lowest, highest; /* where it is not known before whether it goes there */
    } group[REGION_GROUPS];
    uint64_t gaps; /* groups between whose rows numbers lie that are not written: a bit each */
    int64_t n_rows;
    struct region_row row[ROWS]; /* of groups that may have any */
};

struct region_group {
    int64_t written, kept;
    uint64_t of; /* groups and, from bit 15 on, scalars that it depends on */
};

struct plain_region {
    void (*reverse)(const struct region_sweep *sweep);
    void (*inspect)(const int64_t *words, struct region_spans *spans);
    int64_t n_groups, n_unknowns, n_scalars, n_results;
    int64_t told[]; /* groups; what results depend on */
};

static const struct region_group *groups_of(const struct plain_region *l)
{
    return (const struct region_group *)(const void *)l->told;
}

static const uint64_t *results_of(const struct plain_region *l)
{
    return (const uint64_t *)(const void *)(groups_of(l) + l->n_groups);
}

struct region_place {
    char *origin, *begin;
    int64_t n;
    uint64_t first; /* index and tag of what lies at begin, behind the region; 0: a constant */
};

struct plain_region_call {
    uint64_t first; /* index and tag of the first result; 0: nothing is recorded */
    char *kept;     /* where the second way writes down */
    int64_t top;    /* how many bytes it has */
    char *saved;    /* where the record's own begins */
    uint64_t places[];
    /* struct region_place; integers and pointers from before; struct loop_scalar; indices of
     * results */
};

static struct region_place *places_of(struct plain_region_call *c)
{
    return (struct region_place *)(void *)c->places;
}

static int64_t *words_of(const struct plain_region *l, struct plain_region_call *c)
{
    return (int64_t *)(void *)(places_of(c) + l->n_groups);
}

static struct loop_scalar *scalars_of(const struct plain_region *l, struct plain_region_call *c)
{
    return (struct loop_scalar *)(void *)(words_of(l, c) + l->n_unknowns);
}

static uint64_t *indices_of(const struct plain_region *l, struct plain_region_call *c)
{
    return (uint64_t *)(void *)(scalars_of(l, c) + l->n_scalars);
}

/* ---- where it goes ---- */

/* False: it is none that is a record. */
static bool places_find(const struct plain_region *l, struct plain_region_call *c,
                        struct region_spans *s)
{
    struct region_place *at = places_of(c);
    l->inspect(words_of(l, c), s);
    if (!(s->rounds >= ROUNDS_LEAST && s->rounds < LONG * s->loops && s->words < words_most &&
          s->words < WORDS_A_ROUND * s->rounds) ||
        s->flags != 0)
        return false;
    for (int64_t k = 0; k < l->n_groups; k++) {
        at[k].first = 0;
        at[k].n = 0;
        at[k].begin = at[k].origin;
        const int64_t low = s->group[k].low, high = s->group[k].high;
        /* What is not surely read or written may not be there. */
        if (s->group[k].lowest <= s->group[k].highest &&
            (s->group[k].lowest < low || s->group[k].highest > high))
            return false;
        if (low > high) { /* none of its rounds was there */
            s->group[k].low = 0;
            continue;
        }
        if (low < -(INT64_MAX / 4) || high > INT64_MAX / 4)
            return false;
        at[k].n = (high - low) / (int64_t)sizeof(double) + 1;
        at[k].begin = (char *)((uintptr_t)at[k].origin + (uintptr_t)low);
        if (at[k].n >= INT32_MAX || ((!groups_of(l)[k].written || s->gaps >> k & 1) &&
                                     (double)at[k].n > SPARSE * s->group[k].touched + SPARSE_MORE))
            return false;
        for (int64_t b = 0; b < k; b++)
            if ((uintptr_t)at[k].begin < (uintptr_t)at[b].begin + (uintptr_t)at[b].n * 8 &&
                (uintptr_t)at[b].begin < (uintptr_t)at[k].begin + (uintptr_t)at[k].n * 8)
                return false;
    }
    return true;
}

/* Whether a group is written as a whole before any of it is read: nobody asks what was there. */
static bool is_fresh(const struct plain_region *l, const struct region_spans *s, int64_t k)
{
    return groups_of(l)[k].written && !s->group[k].needs && s->group[k].from == s->group[k].low &&
           s->group[k].to == s->group[k].high;
}

/* ---- operands and results ---- */

/* Groups as operands. */
struct region_operands {
    struct ad_plain_operand_ in[AD_PLAIN_LOOP_OPERANDS_];
    int n, first[REGION_GROUPS];
    bool active[REGION_GROUPS];
    uint64_t all_active; /* groups and scalars, as in struct region_group */
};

/* The way back adds to what an operand of consecutive indices has: no two of them may share any. */
static void operands_part(const struct plain_region *l, struct plain_region_call *c,
                          struct region_operands *o)
{
    for (int64_t k = 0; k < l->n_groups; k++) {
        struct ad_plain_operand_ *a = &o->in[o->first[k]];
        if (!o->active[k] || groups_of(l)[k].written || a->first == AD_PLAIN_INDICES_ || a->step)
            continue;
        for (int64_t b = 0; b < k; b++) {
            const struct ad_plain_operand_ *other = &o->in[o->first[b]];
            if (!o->active[b] || groups_of(l)[b].written || other->first == AD_PLAIN_INDICES_ ||
                other->step || a->first >= other->first + (uint64_t)other->n ||
                other->first >= a->first + (uint64_t)a->n)
                continue;
            *a = (struct ad_plain_operand_){a->n, AD_PLAIN_INDICES_,
                                            plain_shadow(places_of(c)[k].begin), 2};
            break;
        }
    }
}

/* What is read, or may be left as it was: a group each, then the scalars. False: a check does not
 * fit, or no room. */
static bool operands_find(const struct plain_region *l, struct plain_region_call *c,
                          const struct region_spans *s, struct region_operands *o)
{
    const uint32_t tag = (uint32_t)(ad_statement_cursor_.result >> 32);
    const struct loop_scalar *scalar = scalars_of(l, c);
    int room = AD_PLAIN_LOOP_OPERANDS_ - (l->n_scalars > 0) - (int)l->n_groups;
    o->n = 0;
    o->all_active = 0;
    for (int64_t k = 0; k < l->n_groups; k++) {
        const struct region_place *at = &places_of(c)[k];
        struct loop_look look;
        look.part = o->in + o->n;
        look.n = 0;
        look.most = room + 1 < PARTS ? room + 1 : PARTS;
        look.full = look.active = false;
        o->first[k] = o->n;
        o->active[k] = false;
        if (at->n == 0 || is_fresh(l, s, k)) {
            o->in[o->n++] = (struct ad_plain_operand_){0, AD_PLAIN_CONSTANTS_, NULL, 0};
            continue;
        }
        if (!plain_loop_look(&look, at->begin, sizeof(double), at->n, tag))
            return false;
        if (look.full || 3 * look.n > at->n + 3) {
            look.n = 1;
            look.part[0] = (struct ad_plain_operand_){
                at->n, look.active ? AD_PLAIN_INDICES_ : AD_PLAIN_CONSTANTS_,
                plain_shadow(at->begin), look.active ? 2 : 0};
        }
        for (int part = 0; part + 1 < look.n; part++)
            look.part[part].step = AD_PLAIN_JOINED_;
        o->n += look.n;
        room -= look.n - 1;
        o->active[k] = look.active;
        o->all_active |= (uint64_t)look.active << k;
    }
    for (int64_t k = 0; k < l->n_scalars; k++)
        o->all_active |= (uint64_t)(scalar[k].index != 0) << (REGION_GROUPS + k);
    if (l->n_scalars > 0) {
        const uint32_t none =
            o->all_active >> REGION_GROUPS ? AD_PLAIN_INDICES_ : AD_PLAIN_CONSTANTS_;
        o->in[o->n++] =
            (struct ad_plain_operand_){l->n_scalars, none, (const void *)&scalar->index, 4};
    }
    operands_part(l, c, o);
    return true;
}

/* ---- the record ---- */

/* What is kept: this, its groups, the integers, the scalars, rows, values of groups, room for
 * adjoints of others, then what the second way writes down. */
struct region_kept {
    const struct plain_region *loop;
    int64_t top;
    uint64_t gaps;                   /* as in struct region_spans, */
    int64_t n_rows;                  /* 0 if there are none */
    int64_t results[REGION_RESULTS]; /* where they are among the record's; -1: constants */
};
struct region_kept_group {
    int64_t low, n;
    int64_t values, adjoints; /* where they are among what is kept, or -1 */
    int64_t result;           /* likewise among the record's results */
    int64_t operand;          /* -1: constants */
};

/* Lays out what is kept: how many numbers that is. */
static int64_t kept_plan(const struct plain_region *l, struct plain_region_call *c,
                         const struct region_spans *s, const struct region_operands *o,
                         struct region_kept_group *g, int64_t *n_results)
{
    const size_t head = sizeof(struct region_kept) + (size_t)l->n_groups * sizeof *g;
    int64_t n = (int64_t)(head / sizeof(double)) + l->n_unknowns + l->n_scalars;
    if (s->gaps)
        n += s->n_rows * (int64_t)(sizeof *s->row / sizeof(double));
    for (int64_t k = 0; k < l->n_groups; k++) {
        const struct region_group *of = &groups_of(l)[k];
        const int64_t size = places_of(c)[k].n;
        g[k] = (struct region_kept_group){s->group[k].low, size, -1, -1, -1, -1};
        if (of->kept) {
            g[k].values = n;
            n += size;
        }
        if (of->written || !o->active[k]) {
            g[k].adjoints = n;
            n += size;
        }
        if (of->written && ((of->of | UINT64_C(1) << k) & o->all_active)) {
            g[k].result = *n_results;
            *n_results += size;
        }
        if (o->active[k])
            g[k].operand = o->first[k];
    }
    return n;
}

static void region_keep(const struct plain_region *l, struct plain_region_call *c,
                        const struct region_kept *kept, const struct region_kept_group *g,
                        const struct region_row *row, double *to)
{
    double *at = to;
    memcpy(at, kept, sizeof *kept);
    at += sizeof *kept / sizeof *at;
    memcpy(at, g, (size_t)l->n_groups * sizeof *g);
    at += (size_t)l->n_groups * (sizeof *g / sizeof *at);
    memcpy(at, words_of(l, c), (size_t)l->n_unknowns * sizeof *at);
    at += l->n_unknowns;
    for (int64_t k = 0; k < l->n_scalars; k++)
        *at++ = scalars_of(l, c)[k].value;
    memcpy(at, row, (size_t)kept->n_rows * sizeof *row);
    for (int64_t k = 0; k < l->n_groups; k++) {
        const size_t bytes = (size_t)g[k].n * sizeof *at;
        if (g[k].values >= 0)
            memcpy(to + g[k].values, places_of(c)[k].begin, bytes);
        if (g[k].adjoints >= 0) /* those of constants are added up, and nobody reads them */
            memset(to + g[k].adjoints, 0, bytes);
    }
}

/* ---- the sweep ---- */

/* What lies so many bytes before `at`. */
static double *before(const double *at, int64_t bytes)
{
    return (double *)((uintptr_t)at - (uintptr_t)bytes);
}

static void adjoints_begin(const struct region_kept_group *g, const double *dy, double *to)
{
    const size_t bytes = (size_t)g->n * sizeof *to;
    if (g->result >= 0)
        memcpy(to, dy + g->result, bytes);
    else
        memset(to, 0, bytes);
}

static void region_pullback(const double *saved, const double *dy, int n_in, const int64_t *n,
                            double *const *dx)
{
    double nowhere[REGION_SCALARS], results[REGION_RESULTS];
    double *own = before(saved, 0); /* adjoints are made there */
    struct region_kept kept;
    struct region_sweep sweep;
    memcpy(&kept, saved, sizeof kept);
    const struct plain_region *l = kept.loop;
    const struct region_kept_group *g =
        (const struct region_kept_group *)(const void *)(saved + sizeof kept / sizeof *saved);
    (void)n;
    memset(nowhere, 0, sizeof nowhere);
    sweep.words = (const int64_t *)(const void *)(g + l->n_groups);
    sweep.scalars = (const double *)(const void *)(sweep.words + l->n_unknowns);
    sweep.dscalars = l->n_scalars && dx[n_in - 1] ? dx[n_in - 1] : nowhere;
    sweep.dresults = results;
    sweep.top = kept.top;
    for (int64_t k = 0; k < l->n_results; k++)
        results[k] = kept.results[k] < 0 ? 0 : dy[kept.results[k]];
    int64_t end = sweep.scalars + l->n_scalars - saved +
                  kept.n_rows * (int64_t)(sizeof(struct region_row) / sizeof(double));
    for (int64_t k = 0; k < l->n_groups; k++) {
        double *adjoints = g[k].adjoints >= 0 ? own + g[k].adjoints : dx[g[k].operand];
        if (groups_of(l)[k].written)
            adjoints_begin(&g[k], dy, adjoints);
        end += ((g[k].values >= 0) + (g[k].adjoints >= 0)) * g[k].n;
        sweep.group[k].adjoints = before(adjoints, g[k].low);
        sweep.group[k].values = g[k].values >= 0 ? before(saved + g[k].values, g[k].low) : NULL;
    }
    sweep.kept = (const char *)(const void *)(saved + end);
    l->reverse(&sweep);
    for (int64_t k = 0; k < l->n_groups; k++) { /* what is left is of what was there before */
        const double *restrict from = own + g[k].adjoints;
        double *restrict to =
            groups_of(l)[k].written && g[k].operand >= 0 ? dx[g[k].operand] : NULL;
        for (int64_t i = 0; to && i < g[k].n; i++)
            to[i] += from[i];
    }
}

/* ---- the two calls ---- */

/* Before a region: whether it is to be run without statements. */
uint32_t ad_plain_region_begin_(const struct plain_region *l, struct plain_region_call *c);
uint32_t ad_plain_region_begin_(const struct plain_region *l, struct plain_region_call *c)
{
    struct region_spans spans;
    struct region_operands operands;
    struct region_kept_group g[REGION_GROUPS];
    struct region_kept kept = {.loop = l};
    int64_t m = 0;
    double *saved;
    if (!ad_plain_loops_() || !places_find(l, c, &spans) || !operands_find(l, c, &spans, &operands))
        return 0;
    const int64_t head = kept_plan(l, c, &spans, &operands, g, &m);
    for (int64_t k = 0; k < l->n_results; k++)
        kept.results[k] = results_of(l)[k] & operands.all_active ? m++ : -1;
    if (m == 0)
        return 0;
    c->first = ad_plain_loop_open_(PLAIN_HERE, region_pullback, operands.n, operands.in, m,
                                   head + (int64_t)spans.words, &saved);
    if (!c->first)
        return 0;
    kept.gaps = spans.gaps;
    kept.n_rows = spans.gaps ? spans.n_rows : 0;
    region_keep(l, c, &kept, g, spans.row, saved);
    c->kept = (char *)(saved + head);
    for (int64_t k = 0; k < l->n_groups; k++)
        if (g[k].result >= 0)
            places_of(c)[k].first = c->first + (uint64_t)g[k].result;
    for (int64_t k = 0; k < l->n_results; k++)
        indices_of(l, c)[k] =
            kept.results[k] < 0 ? 0 : (uint32_t)(c->first + (uint64_t)kept.results[k]);
    c->saved = (char *)saved;
    return 1;
}

/* What lies in a part of a group has its part of the results, or is a constant. */
static void part_name(const struct region_place *at, int64_t from, int64_t n)
{
    char *begin = at->begin + from * (int64_t)sizeof(double);
    if (at->first)
        plain_loop_name(begin, sizeof(double), n, at->first + (uint64_t)from, 1);
    else
        plain_loop_forget(begin, sizeof(double), n);
}

/* A group between whose rows there are gaps: those keep their names, as another thread may be about
 * to write there, and what lies there may be no doubles. */
static void rows_name(const struct region_place *at, int64_t low, const struct region_row *row)
{
    const int64_t one = sizeof(double);
    if (row->low > row->high)
        return;
    if (row->step == 0) {
        part_name(at, (row->low - low) / one, (row->high - row->low) / one + 1);
        return;
    }
    for (int64_t from = row->low; from <= row->high; from += row->step)
        part_name(at, (from - low) / one, row->bytes / one);
}

/* Behind it. */
void ad_plain_region_end_(const struct plain_region *l, struct plain_region_call *c);
void ad_plain_region_end_(const struct plain_region *l, struct plain_region_call *c)
{
    struct region_kept kept;
    memcpy(&kept, c->saved, sizeof kept);
    const struct region_kept_group *g =
        (const struct region_kept_group *)(const void *)(c->saved + sizeof kept);
    const struct region_row *row =
        (const struct region_row *)(const void *)((const double *)(const void *)(g + l->n_groups) +
                                                  l->n_unknowns + l->n_scalars);
    for (int64_t k = 0; k < l->n_groups; k++) {
        const struct region_place *at = &places_of(c)[k];
        if (!groups_of(l)[k].written || at->n == 0)
            continue;
        if (!(kept.gaps >> k & 1))
            part_name(at, 0, at->n);
        for (int64_t i = 0; i < kept.n_rows; i++)
            if ((kept.gaps >> k & 1) && row[i].group == k)
                rows_name(at, g[k].low, &row[i]);
    }
    memcpy(c->saved + offsetof(struct region_kept, top), &c->top, sizeof c->top);
    ad_plain_loop_commit_();
}
