/* plain_nest.c: two counted loops as one record: what code of plain/pass/pass_nests.c calls around
 * them, and its pullback.
 *
 * What the nest reads, adds to and writes are areas: ranges of doubles, from the first to the last
 * that any round touches. An area is an operand, or consecutive results, as a whole; what lies
 * between the nest's own numbers keeps its name, and nobody asks for the adjoint of such a result.
 * The record keeps the areas whose values derivatives need, as they were before the nest.
 *
 * Invariant: areas that are read, added to and written do not meet. A record is made only where
 * each check of a value in what is read or added to fits the newest recording. Whatever does not
 * goes the way of statements, which knows what it means.
 */
#include <tapescope/ad_plain.h>

#include "plain_loop.h"
#include "plain_shadow.h"

enum {
    /* As in plain/pass/pass_nests.c. */
    NEST_ACCESSES = 32,
    NEST_SCALARS = 12,
    NEST_SUMS = 4,
    MEMORY_WORDS = 768,
    SEEN = 128, /* arrays that are remembered, a power of two */
    /* An area has at most this many numbers for each that is touched, and some. */
    SPARSE = 2,
    SPARSE_MORE = 64,
    PARTS = 8,  /* operands of an area: more of them are an index for each number */
    APART = 256 /* numbers of an area from which on its operands are not joined */
};
static const int64_t rounds_most = INT32_MAX;

/* ---- what the pass tells ---- */

enum { NEST_READ, NEST_ADDS, NEST_WRITES };

struct nest_access {
    int64_t kind;
    int64_t is_inner;   /* in each round of the inner loop; else once a round of the outer one, */
    int64_t is_guarded; /* and then only if the inner one has any */
    int64_t runs_on;    /* a row begins where the one before has ended */
    int64_t same;       /* the read that it is, or that it adds to */
    int64_t kept;       /* derivatives need its values */
    int64_t moving;     /* it may move with the inner loop */
    uint64_t of;        /* accesses and, from bit 32 on, scalars that it depends on */
};

struct nest_total {
    int64_t scalar; /* which it begins with; -1: a constant */
    uint64_t of;
};

/* Of an access: its value, and its or, of a write, the result's adjoint, in the first round; how
 * far apart they are in bytes. Behind those of accesses: adjoints of scalars and of sums. */
struct nest_row {
    const double *value;
    double *adjoint;
    int64_t outer, outer_adjoint, inner;
};

struct plain_nest {
    /* Adds what n rounds of the outer loop give; the inner has first, first + step, … rounds. */
    void (*reverse)(int64_t n, int64_t first, int64_t step, const struct nest_row *rows,
                    const double *scalars);
    int64_t n_accesses, n_scalars, n_sums, is_guarded, to_is_within, to_is_most;
    int64_t told[]; /* accesses, sums */
};

static const struct nest_access *accesses_of(const struct plain_nest *l)
{
    return (const struct nest_access *)(const void *)l->told;
}

static const struct nest_total *sums_of(const struct plain_nest *l)
{
    return (const struct nest_total *)(const void *)(accesses_of(l) + l->n_accesses);
}

/* first + i step. */
struct nest_line {
    int64_t first, step;
};

struct nest_place {
    char *base;
    int64_t outer, inner; /* bytes */
    uint64_t first;       /* of a write: the index and tag that what lies at base has behind it */
};

/* Rounds of the outer loop that have some of the inner one, and all of those. */
struct nest_rounds {
    int64_t begin, end, all, most;
};

/* What is read, added to or written, from the first number to the last. */
struct nest_area {
    uintptr_t begin, end;
    int64_t low, size; /* bytes from its first access' base; numbers */
    int64_t kind, touched;
    uint64_t accesses;         /* a bit each */
    int first, operand, parts; /* its first operand, and how many those are */
    bool kept, active, has_results;
    bool in_parts;        /* adjoints of its operands are an array each */
    const double *values; /* where they are kept */
    int64_t result;       /* where its results begin */
};

/* Where a nest goes, for the next time that it goes the same way. */
struct nest_shape {
    const struct plain_nest *loop; /* NULL: nothing is known */
    int64_t trips;
    struct nest_line line[3];
    struct nest_rounds rounds;
    int64_t n; /* areas */
    struct nest_area area[NEST_ACCESSES];
    struct {
        int64_t outer, inner;
        int64_t apart; /* its base from that of its area's first access, and which area that is */
        int64_t area;
    } access[NEST_ACCESSES];
};

/* An array that a record keeps: its indices, and where its values are. */
struct nest_seen {
    uint64_t indices;
    const double *values;
};

/* What a call of the function with the nest has for all its nests. */
struct nest_memory {
    int64_t ready; /* 0 when the function is entered: the rest is not set */
    struct nest_shape shape;
    uint64_t tag; /* of the indices of */
    struct nest_seen seen[SEEN];
};

struct plain_nest_call {
    union {
        struct nest_memory memory;
        uint64_t room[MEMORY_WORDS];
    } of;
    int64_t trips;
    struct nest_line line[3]; /* the inner loop's rounds; what its guard compares */
    uint64_t first;           /* index and tag of the first result; 0: nothing is recorded */
    uint64_t active;          /* what is recorded: a bit for each access, then each sum */
    uint64_t places[];
    /* struct nest_place; struct loop_scalar; then indices of sums */
};
_Static_assert(sizeof(struct nest_memory) <= MEMORY_WORDS * sizeof(uint64_t), "there is room");
enum { LINE_INNER, LINE_FROM, LINE_TO };

static struct nest_place *places_of(struct plain_nest_call *c)
{
    return (struct nest_place *)(void *)c->places;
}

static struct loop_scalar *scalars_of(const struct plain_nest *l, struct plain_nest_call *c)
{
    return (struct loop_scalar *)(void *)(places_of(c) + l->n_accesses);
}

static uint64_t *results_of(const struct plain_nest *l, struct plain_nest_call *c)
{
    return (uint64_t *)(void *)(scalars_of(l, c) + l->n_scalars);
}

/* ---- how often ---- */

static int64_t line_at(const struct nest_line *line, int64_t i)
{
    return line->first + i * line->step;
}

/* Whether all n numbers of it are from `least` up to what rounds may be. So they do not wrap in 32
 * bits either. */
static bool line_is_within(const struct nest_line *line, int64_t n, int64_t least)
{
    const int64_t most = rounds_most;
    if (line->first < -most || line->first > most || line->step < -most || line->step > most)
        return false;
    const int64_t last = line_at(line, n - 1);
    return line->first >= least && last >= least && line->first < most && last < most;
}

/* Whether the inner loop is gone round where its rounds, as they are known, are none, and only
 * there. */
static bool guard_is_known(const struct plain_nest *l, const struct plain_nest_call *c)
{
    const int64_t n = c->trips, last = n - 1;
    if (!line_is_within(&c->line[LINE_FROM], n, 0) || !line_is_within(&c->line[LINE_TO], n, 0))
        return false;
    if (c->line[LINE_FROM].step == 0 && c->line[LINE_TO].step == 0 &&
        c->line[LINE_FROM].first < c->line[LINE_TO].first + l->to_is_within)
        return line_is_within(&c->line[LINE_INNER], n, 1); /* never, whatever is compared */
    for (int64_t i = 0; i <= last; i += last ? last : 1)
        if (line_at(&c->line[LINE_TO], i) - line_at(&c->line[LINE_FROM], i) + l->to_is_within !=
            line_at(&c->line[LINE_INNER], i))
            return false;
    return true;
}

/* Whether in each round of the outer loop `from` is no more than `to`. */
static bool is_most(const struct plain_nest_call *c)
{
    const struct nest_line *from = &c->line[LINE_FROM], *to = &c->line[LINE_TO];
    const int64_t last = c->trips - 1;
    return line_is_within(from, c->trips, 0) && line_is_within(to, c->trips, 0) &&
           from->first <= to->first && line_at(from, last) <= line_at(to, last);
}

/* Whether it is known how often the inner loop runs in each round of the outer one. */
static bool rounds_of(const struct plain_nest *l, const struct plain_nest_call *c,
                      struct nest_rounds *r)
{
    const int64_t n = c->trips, last = n - 1;
    if (n < 1 || n >= rounds_most || !line_is_within(&c->line[LINE_INNER], n, !l->is_guarded) ||
        (l->is_guarded && !guard_is_known(l, c)) || (l->to_is_most && !is_most(c)))
        return false;
    const int64_t at_first = c->line[LINE_INNER].first,
                  at_last = line_at(&c->line[LINE_INNER], last);
    r->begin = at_first == 0;
    r->end = n - (at_last == 0);
    r->most = at_first > at_last ? at_first : at_last;
    return r->most > 0 && !__builtin_mul_overflow(n, at_first + at_last, &r->all) &&
           (r->all /= 2) < rounds_most;
}

/* ---- areas ---- */

static void span_add(int64_t x, int64_t *low, int64_t *high)
{
    *low = x < *low ? x : *low;
    *high = x > *high ? x : *high;
}

/* Whether n steps lead to where an array of doubles may end. */
static bool reaches(int64_t step, int64_t n)
{
    int64_t bytes;
    return step % (int64_t)sizeof(double) == 0 && !__builtin_mul_overflow(step, n, &bytes) &&
           bytes < INT64_MAX / 4 && bytes > INT64_MIN / 4;
}

/* From where to where an access goes, in bytes from its base. */
static void span_of(const struct nest_access *a, const struct nest_place *at,
                    const struct plain_nest_call *c, const struct nest_rounds *r, int64_t *low,
                    int64_t *high)
{
    const struct nest_line *inner = &c->line[LINE_INNER];
    const int64_t begin = a->is_guarded ? r->begin : 0;
    const int64_t last = (a->is_guarded ? r->end : c->trips) - 1;
    *low = *high = begin * at->outer;
    span_add(last * at->outer, low, high);
    if (a->runs_on) {
        span_add((r->all - 1) * at->inner, low, high);
    } else if (a->is_inner) {
        span_add(begin * at->outer + (line_at(inner, begin) - 1) * at->inner, low, high);
        span_add(last * at->outer + (line_at(inner, last) - 1) * at->inner, low, high);
    }
    *high += (int64_t)sizeof(double);
}

static bool areas_meet(const struct nest_area *a, const struct nest_area *b)
{
    return a->begin < b->end && b->begin < a->end;
}

/* Areas of one kind that meet become one. False: not by whole numbers. */
static bool area_add(struct nest_shape *s, const struct nest_area *new)
{
    struct nest_area a = *new;
    for (int64_t k = 0; k < s->n; k++) {
        const struct nest_area *o = &s->area[k];
        if (o->kind != a.kind || o->begin > a.end || a.begin > o->end)
            continue;
        if ((o->begin - a.begin) % sizeof(double) != 0)
            return false;
        a.begin = o->begin < a.begin ? o->begin : a.begin;
        a.end = o->end > a.end ? o->end : a.end;
        a.touched += o->touched;
        a.accesses |= o->accesses;
        a.first = o->first < a.first ? o->first : a.first;
        a.kept |= o->kept;
        a.has_results |= o->has_results;
        s->area[k] = s->area[--s->n];
        k = -1; /* it may meet one that it did not before */
    }
    s->area[s->n++] = a;
    return true;
}

/* A read that is added to is of the writes that do so. */
static bool is_added_to(const struct plain_nest *l, int64_t read)
{
    const struct nest_access *a = accesses_of(l);
    for (int64_t k = 0; k < l->n_accesses; k++)
        if (a[k].kind == NEST_ADDS && a[k].same == read)
            return true;
    return false;
}

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Whether a write goes to another place in each round. */
static bool is_one_each(const struct nest_access *a, const struct nest_place *at,
                        const struct plain_nest_call *c, const struct nest_rounds *r)
{
    const int64_t rows = a->is_guarded ? r->end - r->begin : c->trips, size = sizeof(double);
    const int64_t most = a->is_inner ? r->most : 1;
    const int64_t outer = magnitude(at->outer), inner = magnitude(at->inner);
    if (most > 1 && inner < size)
        return false;
    return a->runs_on || rows == 1 || outer >= inner * (most - 1) + size ||
           (outer >= size && inner >= outer * (rows - 1) + size);
}

/* Whether two writes to one area go to different places: side by side in each row, or by turns. */
static bool are_apart(const struct nest_access *a, const struct nest_place *at,
                      const struct nest_access *b, const struct nest_place *bt,
                      const struct nest_rounds *r)
{
    const int64_t size = sizeof(double),
                  apart = (int64_t)((uintptr_t)bt->base - (uintptr_t)at->base);
    int64_t low[2] = {0, apart}, high[2] = {0, apart};
    if (a->runs_on || b->runs_on || at->outer != bt->outer)
        return false;
    if (a->is_inner)
        span_add(at->inner * (r->most - 1), &low[0], &high[0]);
    if (b->is_inner)
        span_add(apart + bt->inner * (r->most - 1), &low[1], &high[1]);
    if (high[0] + size <= low[1] || high[1] + size <= low[0]) {
        span_add(low[1], &low[0], &high[0]);
        span_add(high[1], &low[0], &high[0]);
        return high[0] + size - low[0] <= magnitude(at->outer);
    }
    const int64_t inner = magnitude(at->inner);
    return a->is_inner && b->is_inner && at->inner == bt->inner && inner > 0 &&
           at->outer % inner == 0 && apart % inner != 0;
}

static bool areas_are_apart(const struct nest_shape *s)
{
    for (int64_t k = 1; k < s->n; k++)
        for (int64_t b = 0; b < k; b++)
            if (areas_meet(&s->area[k], &s->area[b]))
                return false;
    return true;
}

/* Whether what is written and read is as a record has it. */
static bool areas_find(const struct plain_nest *l, struct plain_nest_call *c, struct nest_shape *s)
{
    const struct nest_access *access = accesses_of(l);
    const struct nest_place *place = places_of(c);
    const struct nest_rounds *r = &s->rounds;
    uintptr_t begin[NEST_ACCESSES], end[NEST_ACCESSES];
    s->n = 0;
    for (int64_t k = 0; k < l->n_accesses; k++) {
        const struct nest_access *a = &access[k];
        if (a->kind == NEST_READ && (a->same != k || is_added_to(l, k)))
            continue;
        int64_t low, high;
        if (!reaches(place[k].outer, c->trips) ||
            !reaches(place[k].inner, a->runs_on ? r->all : r->most))
            return false;
        span_of(a, &place[k], c, r, &low, &high);
        begin[k] = (uintptr_t)place[k].base + (uintptr_t)low;
        end[k] = (uintptr_t)place[k].base + (uintptr_t)high;
        if (begin[k] > end[k] ||
            !area_add(s, &(struct nest_area){.begin = begin[k],
                                             .end = end[k],
                                             .kind = a->kind,
                                             .touched = a->is_inner ? r->all : c->trips,
                                             .accesses = UINT64_C(1) << k,
                                             .first = (int)k,
                                             .kept = a->kept,
                                             .has_results = a->of != 0}))
            return false;
        if (a->kind != NEST_WRITES)
            continue;
        if (!is_one_each(a, &place[k], c, r))
            return false;
        for (int64_t b = 0; b < k; b++)
            if (access[b].kind == NEST_WRITES && begin[b] < end[k] && begin[k] < end[b] &&
                !are_apart(a, &place[k], &access[b], &place[b], r))
                return false;
    }
    return areas_are_apart(s);
}

static bool shape_make(const struct plain_nest *l, struct plain_nest_call *c, struct nest_shape *s)
{
    const struct nest_place *place = places_of(c);
    s->loop = NULL;
    if (!rounds_of(l, c, &s->rounds) || !areas_find(l, c, s))
        return false;
    for (int64_t k = 0; k < s->n; k++) {
        struct nest_area *a = &s->area[k];
        a->size = (int64_t)((a->end - a->begin) / sizeof(double));
        a->low = (int64_t)(a->begin - (uintptr_t)place[a->first].base);
        if (a->size > SPARSE * a->touched + SPARSE_MORE || a->size >= rounds_most / NEST_ACCESSES)
            return false;
    }
    for (int64_t k = 0; k < l->n_accesses; k++) {
        const uint64_t of = accesses_of(l)[k].kind == NEST_READ && !is_added_to(l, k)
                                ? UINT64_C(1) << accesses_of(l)[k].same
                                : UINT64_C(1) << k;
        s->access[k].outer = place[k].outer;
        s->access[k].inner = place[k].inner;
        if (place[k].outer > rounds_most || place[k].outer < -rounds_most ||
            place[k].inner > rounds_most || place[k].inner < -rounds_most)
            return false;
        s->access[k].area = -1; /* of a read that is added to */
        for (int64_t a = 0; a < s->n; a++)
            if (s->area[a].accesses & of) {
                s->access[k].area = a;
                s->access[k].apart = place[k].base - place[s->area[a].first].base;
            }
    }
    s->trips = c->trips;
    memcpy(s->line, c->line, sizeof s->line);
    s->loop = l;
    return true;
}

/* Where the nest goes: as the time before, from other bases, or it is looked at anew. False: it is
 * none that is a record. */
static bool shape_of(const struct plain_nest *l, struct plain_nest_call *c, struct nest_shape *s)
{
    const struct nest_place *place = places_of(c);
    bool same = s->loop == l && s->trips == c->trips;
    for (int64_t k = 0; k < 3 && same; k++)
        same = s->line[k].first == c->line[k].first && s->line[k].step == c->line[k].step;
    for (int64_t k = 0; k < l->n_accesses && same; k++)
        same = s->access[k].outer == place[k].outer && s->access[k].inner == place[k].inner &&
               (s->access[k].area < 0 ||
                place[k].base - place[s->area[s->access[k].area].first].base == s->access[k].apart);
    for (int64_t k = 0; k < s->n && same; k++) {
        s->area[k].begin = (uintptr_t)place[s->area[k].first].base + (uintptr_t)s->area[k].low;
        s->area[k].end = s->area[k].begin + (uintptr_t)s->area[k].size * sizeof(double);
    }
    return (same && areas_are_apart(s)) || shape_make(l, c, s);
}

/* ---- parts of areas ---- */

/* Where an access is: in round i of the outer loop from + i outer to + (most - 1) inner, in bytes
 * from where its area begins. */
struct nest_stretch {
    int64_t from, outer, inner, most;
};

/* For how many rounds from i on, of n, an access stays in the part of its area that it is in: which
 * one, and where that begins, in bytes. 0: it is in more than one at once. */
static int64_t rounds_in_part(const struct nest_stretch *a, int64_t i, int64_t n,
                              const int64_t *size, int64_t *part, int64_t *begin)
{
    const int64_t word = sizeof(double);
    int64_t low = a->from + i * a->outer, high = low;
    span_add(low + (a->most - 1) * a->inner, &low, &high);
    int64_t end = 0, k = -1;
    while (low >= end) {
        *begin = end;
        k++;
        end += word * size[k];
    }
    *part = k;
    if (high >= end)
        return 0;
    int64_t rounds = n - i;
    if (a->outer > 0)
        rounds = (end - word - high) / a->outer + 1;
    else if (a->outer < 0)
        rounds = (low - *begin) / -a->outer + 1;
    return rounds < n - i ? rounds : n - i;
}

/* Whether the reads of an area can be followed part by part, so that its adjoints need not be one
 * array: the inner loop has as many rounds each time. Derivatives depend on no sum over the outer
 * loop, so its rounds may be gone through in several calls. */
static bool is_in_parts(const struct plain_nest *l, const struct nest_shape *s, int64_t area,
                        const struct ad_plain_operand_ *in)
{
    const struct nest_access *access = accesses_of(l);
    int64_t size[PARTS], part = 0, begin = 0;
    if (s->area[area].size < APART || s->line[LINE_INNER].step != 0)
        return false;
    for (int64_t k = 0; k < l->n_accesses; k++)
        if (access[k].runs_on)
            return false;
    for (int64_t k = 0; k < s->area[area].parts; k++)
        size[k] = in[k].n;
    for (int64_t k = 0; k < l->n_accesses; k++) {
        const struct nest_stretch at = {s->access[k].apart - s->area[area].low, s->access[k].outer,
                                        s->access[k].inner,
                                        access[k].is_inner ? s->line[LINE_INNER].first : 1};
        if (access[k].kind != NEST_READ || s->access[k].area != area)
            continue;
        for (int64_t i = 0, n; i < s->trips; i += n)
            if ((n = rounds_in_part(&at, i, s->trips, size, &part, &begin)) == 0)
                return false;
    }
    return true;
}

/* ---- operands and results ---- */

/* What is read, as operands, an area each, then the scalars. False: a check does not fit, or no
 * room. */
static bool operands_of(const struct plain_nest *l, struct plain_nest_call *c, struct nest_shape *s,
                        struct ad_plain_operand_ *in, int *n_in, uint64_t *active)
{
    const uint32_t tag = (uint32_t)(ad_statement_cursor_.result >> 32);
    const struct loop_scalar *scalar = scalars_of(l, c);
    int room = AD_PLAIN_LOOP_OPERANDS_ - (l->n_scalars > 0);
    for (int64_t k = 0; k < s->n; k++)
        room -= s->area[k].kind != NEST_WRITES;
    *n_in = 0;
    *active = 0;
    for (int64_t k = 0; k < s->n && room >= 0; k++) {
        struct nest_area *a = &s->area[k];
        struct loop_look look;
        if (a->kind == NEST_WRITES)
            continue;
        look.part = in + *n_in;
        look.n = 0;
        look.most = room + 1 < PARTS ? room + 1 : PARTS;
        look.full = look.active = false;
        if (!plain_loop_look(&look, (const char *)a->begin, sizeof(double), a->size, tag))
            return false;
        if (look.full || 3 * look.n > a->size + 3) {
            look.n = 1;
            look.part[0] = (struct ad_plain_operand_){a->size, AD_PLAIN_INDICES_,
                                                      plain_shadow((const void *)a->begin), 2};
        }
        a->operand = *n_in;
        a->parts = look.n;
        a->in_parts = look.n > 1 && a->kind == NEST_READ && is_in_parts(l, s, k, look.part);
        for (int part = 0; part + 1 < look.n && !a->in_parts; part++)
            look.part[part].step = AD_PLAIN_JOINED_;
        *n_in += look.n;
        room -= look.n - 1;
        a->active = look.active;
        if (a->active && a->kind == NEST_READ)
            *active |= a->accesses;
    }
    for (int64_t k = 0; k < l->n_scalars; k++)
        *active |= (uint64_t)(scalar[k].index != 0) << (NEST_ACCESSES + k);
    if (l->n_scalars > 0) {
        const uint32_t none = *active >> NEST_ACCESSES ? AD_PLAIN_INDICES_ : AD_PLAIN_CONSTANTS_;
        in[(*n_in)++] =
            (struct ad_plain_operand_){l->n_scalars, none, (const void *)&scalar->index, 4};
    }
    return room >= 0;
}

/* What of the results is recorded, and where: how many there are. */
static int64_t results_plan(const struct plain_nest *l, struct plain_nest_call *c,
                            struct nest_shape *s, uint64_t active)
{
    const struct nest_access *access = accesses_of(l);
    int64_t m = 0;
    c->active = 0;
    for (int64_t k = 0; k < s->n; k++) {
        struct nest_area *a = &s->area[k];
        if (a->kind == NEST_READ)
            continue;
        for (int64_t w = 0; w < l->n_accesses; w++)
            if ((a->accesses >> w & 1) && (access[w].of & active)) {
                c->active |= UINT64_C(1) << w;
                a->active = true;
            }
        if (a->kind == NEST_ADDS && a->active)
            c->active |= a->accesses;
        a->result = m;
        /* An adjoint of what is not recorded is looked at, too: it is 0. */
        m += a->active || a->has_results ? a->size : 0;
    }
    for (int64_t k = 0; k < l->n_sums; k++)
        c->active |= (uint64_t)((sums_of(l)[k].of & active) != 0) << (NEST_ACCESSES + k);
    return m;
}

/* ---- the record ---- */

/* What is kept: this, its areas, its accesses, the scalars' values, then those of arrays that no
 * record of this recording has kept already. */
struct nest_kept {
    const struct plain_nest *loop;
    int32_t trips, first, step, n_areas;
    int64_t sums;
};
struct nest_kept_area {
    const double *values;
    int16_t kind, in_parts;
    int32_t operand, result, size;
};
struct nest_kept_access {
    int32_t area;
    int32_t from; /* bytes, from where the area begins, in the first round */
    int32_t outer, inner;
};

/* Where the values of an area are kept, or are to be. NULL: nowhere. The indices say which values
 * they are. */
static struct nest_seen *seen_of(struct nest_memory *m, const struct nest_area *a,
                                 const struct ad_plain_operand_ *in)
{
    const uint64_t tag = ad_statement_cursor_.result >> 32;
    if (a->parts > 1 || in->first == AD_PLAIN_INDICES_ || in->first == AD_PLAIN_CONSTANTS_)
        return NULL;
    if (m->tag != tag) {
        memset(m->seen, 0, sizeof m->seen);
        m->tag = tag;
    }
    return &m->seen[(in->first * UINT32_C(0x9e3779b9) >> 16 ^ (uint32_t)a->size) % SEEN];
}

/* How many numbers are kept. */
static int64_t kept_plan(const struct plain_nest *l, struct nest_memory *m,
                         const struct ad_plain_operand_ *in)
{
    struct nest_shape *s = &m->shape;
    const size_t head = sizeof(struct nest_kept) + (size_t)s->n * sizeof(struct nest_kept_area) +
                        (size_t)l->n_accesses * sizeof(struct nest_kept_access);
    int64_t n = 0;
    for (int64_t k = 0; k < s->n; k++) {
        struct nest_area *a = &s->area[k];
        a->values = NULL;
        if (!a->kept)
            continue;
        const struct nest_seen *seen = seen_of(m, a, &in[a->operand]);
        if (seen && seen->indices == ((uint64_t)in[a->operand].first << 32 | (uint32_t)a->size))
            a->values = seen->values;
        else
            n += a->size;
    }
    return (int64_t)(head / sizeof(double)) + l->n_scalars + n;
}

static void nest_keep(const struct plain_nest *l, struct plain_nest_call *c, int64_t sums,
                      const struct ad_plain_operand_ *in, double *to)
{
    struct nest_memory *m = &c->of.memory;
    struct nest_shape *s = &m->shape;
    struct nest_kept *const kept = (struct nest_kept *)(void *)to;
    struct nest_kept_area *area = (struct nest_kept_area *)(void *)(kept + 1);
    struct nest_kept_access *access = (struct nest_kept_access *)(void *)(area + s->n);
    double *scalar = (double *)(void *)(access + l->n_accesses), *value = scalar + l->n_scalars;
    kept->loop = l;
    kept->trips = (int32_t)c->trips;
    kept->first = (int32_t)c->line[LINE_INNER].first;
    kept->step = (int32_t)c->line[LINE_INNER].step;
    kept->n_areas = (int32_t)s->n;
    kept->sums = sums;
    for (int64_t k = 0; k < s->n; k++, area++) {
        struct nest_area *a = &s->area[k];
        if (a->kept && !a->values) {
            struct nest_seen *seen = seen_of(m, a, &in[a->operand]);
            memcpy(value, (const void *)a->begin, (size_t)a->size * sizeof *value);
            a->values = value;
            value += a->size;
            if (seen) {
                seen->indices = (uint64_t)in[a->operand].first << 32 | (uint32_t)a->size;
                seen->values = a->values;
            }
        }
        area->values = a->values;
        area->kind = (int16_t)(a->active ? a->kind : NEST_READ);
        area->in_parts = a->in_parts;
        area->operand = a->operand;
        area->result = (int32_t)a->result;
        area->size = (int32_t)a->size;
    }
    for (int64_t k = 0; k < l->n_accesses; k++, access++) {
        const int64_t of = s->access[k].area;
        access->area = (int32_t)of;
        access->from = of < 0 ? 0 : (int32_t)(s->access[k].apart - s->area[of].low);
        access->outer = (int32_t)s->access[k].outer;
        access->inner = (int32_t)s->access[k].inner;
    }
    for (int64_t k = 0; k < l->n_scalars; k++)
        scalar[k] = scalars_of(l, c)[k].value;
}

/* ---- the sweep ---- */

static double *moved(const void *at, int64_t bytes)
{
    return (double *)((uintptr_t)at + (uintptr_t)bytes);
}

/* Where values and adjoints of an access are from round i of the outer loop on, and for how many
 * rounds; n: sizes of operands. */
static int64_t row_find(const struct nest_access *access, const struct nest_kept_access *of,
                        const struct nest_kept *kept, int64_t i, const double *dy, const int64_t *n,
                        double *const *dx, double *nowhere, struct nest_row *row)
{
    const struct nest_kept_area *a = (const struct nest_kept_area *)(const void *)(kept + 1);
    const int64_t from = of->from + i * of->outer;
    int64_t rounds = kept->trips - i, part = 0, begin = 0;
    a += of->area;
    row->outer = row->outer_adjoint = of->outer;
    row->inner = of->inner;
    row->adjoint = NULL;
    if (access->kind != NEST_READ) {
        row->value = NULL;
        row->adjoint = moved(dy + a->result, from);
        return rounds;
    }
    if (a->in_parts) {
        const struct nest_stretch at = {of->from, of->outer, of->inner,
                                        access->is_inner ? kept->first : 1};
        rounds = rounds_in_part(&at, i, kept->trips, n + a->operand, &part, &begin);
    }
    row->value = moved(a->values, from);
    if (dx[a->operand + part]) {
        row->adjoint = moved(dx[a->operand + part], from - begin);
    } else if (!access->moving) {
        row->adjoint = nowhere;
        row->outer_adjoint = 0;
    }
    return rounds;
}

static void nest_pullback(const double *saved, const double *dy, int n_in, const int64_t *n,
                          double *const *dx)
{
    struct nest_row rows[NEST_ACCESSES + NEST_SCALARS + NEST_SUMS];
    double nowhere = 0;
    const struct nest_kept *kept = (const struct nest_kept *)(const void *)saved;
    const struct plain_nest *l = kept->loop;
    const struct nest_access *access = accesses_of(l);
    const struct nest_kept_area *area = (const struct nest_kept_area *)(const void *)(kept + 1);
    const struct nest_kept_access *of =
        (const struct nest_kept_access *)(const void *)(area + kept->n_areas);
    const double *const scalars = (const double *)(const void *)(of + l->n_accesses);
    double *const dscalar = l->n_scalars ? dx[n_in - 1] : NULL;
    struct nest_row *row = rows + l->n_accesses;
    for (int64_t k = 0; k < l->n_scalars; k++)
        (row++)->adjoint = dscalar ? dscalar + k : &nowhere;
    for (int64_t k = 0; k < l->n_sums; k++)
        (row++)->adjoint = moved(dy + kept->sums, k * (int64_t)sizeof(double));
    for (int64_t i = 0, rounds; i < kept->trips; i += rounds) {
        rounds = kept->trips - i;
        for (int64_t k = 0; k < l->n_accesses; k++)
            if (of[k].area >= 0) {
                const int64_t most =
                    row_find(&access[k], &of[k], kept, i, dy, n, dx, &nowhere, &rows[k]);
                rounds = most < rounds ? most : rounds;
            }
        l->reverse(rounds, kept->first, kept->step, rows, scalars);
    }
    for (int64_t k = 0; k < kept->n_areas; k++) { /* what was added to goes on */
        double *restrict to = area[k].kind == NEST_ADDS ? dx[area[k].operand] : NULL;
        for (int64_t i = 0; to && i < area[k].size; i++)
            to[i] += dy[area[k].result + i];
    }
    for (int64_t k = 0; k < l->n_sums; k++) {
        const int64_t init = sums_of(l)[k].scalar;
        if (dscalar && init >= 0)
            dscalar[init] += dy[kept->sums + k];
    }
}

/* ---- the two calls ---- */

/* Before a nest: whether it is to be run without statements. */
uint32_t ad_plain_nest_begin_(const struct plain_nest *l, struct plain_nest_call *c);
uint32_t ad_plain_nest_begin_(const struct plain_nest *l, struct plain_nest_call *c)
{
    struct ad_plain_operand_ in[AD_PLAIN_LOOP_OPERANDS_];
    struct nest_memory *m = &c->of.memory;
    uint64_t active;
    int n_in;
    c->first = 0;
    c->active = 0;
    if (!m->ready) {
        m->ready = 1;
        m->shape.loop = NULL;
        m->tag = UINT64_MAX; /* nobody's */
    }
    if (!shape_of(l, c, &m->shape) || !operands_of(l, c, &m->shape, in, &n_in, &active))
        return 0;
    const int64_t sums = results_plan(l, c, &m->shape, active);
    if (c->active == 0)
        return 1;
    if (!ad_plain_loops_()) {
        c->active = 0;
        return 0;
    }
    double *saved;
    c->first = ad_plain_loop_open_(PLAIN_HERE, nest_pullback, n_in, in, sums + l->n_sums,
                                   kept_plan(l, m, in), &saved);
    if (!c->first) {
        c->active = 0;
        return 1;
    }
    nest_keep(l, c, sums, in, saved);
    for (int64_t k = 0; k < l->n_accesses; k++) {
        if (!(c->active >> k & 1))
            continue;
        const struct nest_area *a = &m->shape.area[m->shape.access[k].area];
        places_of(c)[k].first =
            c->first + (uint64_t)a->result + (uint64_t)((m->shape.access[k].apart - a->low) / 8);
    }
    for (int64_t k = 0; k < l->n_sums; k++)
        results_of(l, c)[k] = (uint32_t)(c->first + (uint64_t)(sums + k));
    return 1;
}

/* n places of a write, `step` bytes apart, from so far behind its base. */
static void places_name(const struct nest_place *at, int64_t from, int64_t step, int64_t n,
                        bool active)
{
    if (active)
        plain_loop_name(at->base + from, step, n, at->first + (uint64_t)(from / 8), step / 8);
    else
        plain_loop_forget(at->base + from, step, n);
}

/* All places of a write, each once where that is easy. */
static void write_name(const struct nest_access *a, const struct nest_place *at,
                       const struct plain_nest_call *c, const struct nest_rounds *r, bool active)
{
    const int64_t begin = a->is_guarded ? r->begin : 0, end = a->is_guarded ? r->end : c->trips;
    int64_t low, high;
    if (!a->is_inner || at->inner == 0) {
        places_name(at, begin * at->outer, at->outer, end - begin, active);
        return;
    }
    if (a->runs_on || at->outer == 0 || at->outer == at->inner || at->outer == -at->inner ||
        (c->line[LINE_INNER].step == 0 && at->outer == at->inner * c->line[LINE_INNER].first)) {
        const int64_t step = magnitude(at->inner);
        span_of(a, at, c, r, &low, &high);
        places_name(at, low, step, (high - 8 - low) / step + 1, active);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        places_name(at, i * at->outer, at->inner, line_at(&c->line[LINE_INNER], i), active);
}

/* Behind it. */
void ad_plain_nest_end_(const struct plain_nest *l, struct plain_nest_call *c);
void ad_plain_nest_end_(const struct plain_nest *l, struct plain_nest_call *c)
{
    const struct nest_rounds *rounds = &c->of.memory.shape.rounds;
    if (c->active == LOOP_IDLE) {
        memset(results_of(l, c), 0, (size_t)l->n_sums * sizeof(uint64_t));
        return;
    }
    for (int64_t k = 0; k < l->n_accesses; k++) {
        const struct nest_access *a = &accesses_of(l)[k];
        const bool active = c->active >> k & 1;
        if (a->kind == NEST_WRITES || (a->kind == NEST_ADDS && active))
            write_name(a, &places_of(c)[k], c, rounds, active);
    }
    for (int64_t k = 0; k < l->n_sums; k++)
        if (!(c->active >> (NEST_ACCESSES + k) & 1))
            results_of(l, c)[k] = 0;
    if (c->first)
        ad_plain_loop_commit_();
}
