/* plain_loop.c: a counted loop as one record: what code of plain/pass/pass_loops.c calls around the
 * loop, and its pullback.
 *
 * The record keeps, as they were before the loop, the values that derivatives need: arrays that are
 * read, and numbers from before. Its operands are the arrays, in parts whose indices are
 * consecutive or whose elements are constants, then those numbers. Its results are what is written,
 * an array after the other, then the sums.
 *
 * Invariant: a record is made only where each check of a value that is read fits the newest
 * recording. Whatever does not goes the way of statements, which knows what it means.
 */
#include <tapescope/ad_plain.h>

#include "plain_loop.h"
#include "plain_shadow.h"

/* Loops of these are of the best vectors that the processor has: no result depends on that. */
#define BY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))

enum {
    /* As in plain/pass/pass_loops.c. */
    ROUNDS = 128,
    FAR = 16, /* steps between the reads of a group */
    ROW = ROUNDS + 2 * FAR,
    GROUPS = 16,
    TOKENS = 12, /* reads and scalars */
    RESULTS = 20,
    FETCHED = 4096 /* rounds: of more, the next record is asked for too early */
};
static const int64_t trips_most = INT32_MAX;

/* ---- what the pass tells ---- */

struct loop_group {
    int64_t low, high; /* steps from the base that are read in a round: from, to */
    int64_t stays;     /* it is one number */
    int64_t kept;      /* derivatives need its values */
};

struct loop_read {
    int64_t group, offset; /* in steps */
    int64_t gets;          /* something depends on it */
    int64_t before;        /* the writes, a bit each, that come later in a round */
};

struct loop_sum {
    int64_t scalar; /* which it begins with; -1: a constant */
    int64_t of;     /* groups and, from bit 16 on, scalars that it depends on */
    int64_t kept;   /* derivatives need its value before each round */
};

struct plain_loop {
    /* out[k][ROW]: what read, or behind them scalar, k gets of each of n rounds. Where not only
     * sums are carried, a scalar's out[k][0] is that of all; carried[k]: what sum k was before each
     * round; adjoints[k] of it behind the rounds becomes that before them. */
    void (*reverse)(int64_t n, const double *const *values, const double *scalars,
                    const double *const *dy, double *out, const double *const *carried,
                    double *adjoints);
    int64_t n_groups, n_reads, n_writes, n_scalars, n_sums, carries;
    /* groups, reads; what each write depends on; whether anything depends on a scalar; sums */
    int64_t told[];
};

static const struct loop_group *groups_of(const struct plain_loop *l)
{
    return (const struct loop_group *)(const void *)l->told;
}

static const struct loop_read *reads_of(const struct plain_loop *l)
{
    return (const struct loop_read *)(const void *)(groups_of(l) + l->n_groups);
}

static const int64_t *writes_of(const struct plain_loop *l)
{
    return (const int64_t *)(const void *)(reads_of(l) + l->n_reads);
}

static const int64_t *scalars_of(const struct plain_loop *l)
{
    return writes_of(l) + l->n_writes;
}

static const struct loop_sum *sums_of(const struct plain_loop *l)
{
    return (const struct loop_sum *)(const void *)(scalars_of(l) + l->n_scalars);
}

struct loop_place {
    char *base;
    int64_t step; /* bytes */
};

struct plain_loop_call {
    int64_t trips;
    uint64_t first;  /* index and tag of the first result; 0: nothing is recorded */
    uint64_t active; /* results that are recorded: a bit for each write, then each sum */
    uint64_t places[];
    /* struct loop_place of groups, of writes; struct loop_scalar; indices of sums; then struct
     * loop_place of where sums are kept */
};

static struct loop_place *places_of(struct plain_loop_call *c)
{
    return (struct loop_place *)(void *)c->places;
}

static struct loop_scalar *values_of(const struct plain_loop *l, struct plain_loop_call *c)
{
    return (struct loop_scalar *)(void *)(places_of(c) + l->n_groups + l->n_writes);
}

static uint64_t *results_of(const struct plain_loop *l, struct plain_loop_call *c)
{
    return (uint64_t *)(void *)(values_of(l, c) + l->n_scalars);
}

static struct loop_place *kept_of(const struct plain_loop *l, struct plain_loop_call *c)
{
    return (struct loop_place *)(void *)(results_of(l, c) + l->n_sums);
}

/* ---- whether writes meet reads ---- */

struct loop_range {
    uintptr_t begin, end;
};

static struct loop_range range_of(const struct loop_place *at, int64_t offset, int64_t trips)
{
    const uintptr_t first = (uintptr_t)at->base + (uintptr_t)(at->step * offset);
    const uintptr_t last = first + (uintptr_t)(at->step * (trips - 1));
    return (struct loop_range){at->step < 0 ? last : first,
                               (at->step < 0 ? first : last) + sizeof(double)};
}

/* How many steps a lies behind b, of one step, if that is a whole number; else whether the two are
 * interleaved and never meet. */
static bool steps_between(const struct loop_place *a, int64_t offset, const struct loop_place *b,
                          int64_t *steps)
{
    const int64_t apart = (int64_t)((uintptr_t)a->base - (uintptr_t)b->base) + a->step * offset;
    *steps = apart / a->step;
    return apart % a->step == 0;
}

static bool is_interleaved(const struct loop_place *a, int64_t offset, const struct loop_place *b)
{
    const int64_t step = a->step < 0 ? -a->step : a->step;
    int64_t apart = (int64_t)((uintptr_t)a->base - (uintptr_t)b->base) + a->step * offset;
    apart = (apart % step + step) % step;
    return apart >= (int64_t)sizeof(double) && step - apart >= (int64_t)sizeof(double);
}

/* Whether no round reads, or writes, what another or an earlier part of it has written. */
static bool is_independent(const struct plain_loop *l, struct plain_loop_call *c)
{
    const struct loop_place *group = places_of(c), *write = group + l->n_groups;
    const struct loop_read *read = reads_of(l);
    for (int64_t w = 0; w < l->n_writes; w++) {
        if (write[w].step > -(int64_t)sizeof(double) && write[w].step < (int64_t)sizeof(double))
            return false;
        const struct loop_range to = range_of(&write[w], 0, c->trips);
        for (int64_t k = 0; k < w; k++) {
            const struct loop_range other = range_of(&write[k], 0, c->trips);
            if (to.begin < other.end && other.begin < to.end &&
                !(write[k].step == write[w].step && is_interleaved(&write[k], 0, &write[w])))
                return false;
        }
        for (int64_t k = 0; k < l->n_reads; k++) {
            const struct loop_place *from = &group[read[k].group];
            const struct loop_range of = range_of(from, read[k].offset, c->trips);
            int64_t steps;
            if (to.begin >= of.end || of.begin >= to.end)
                continue;
            if (from->step != write[w].step)
                return false;
            if (steps_between(from, read[k].offset, &write[w], &steps)
                    ? !(steps > 0 || (steps == 0 && (read[k].before >> w & 1)))
                    : !is_interleaved(from, read[k].offset, &write[w]))
                return false;
        }
    }
    return true;
}

/* ---- what is read ---- */

/* What lies in a double's shadow, and its bits. */
static uint64_t word_at(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* What lies in the shadow of a variable: its index and tag, and its value folded over both. */
static inline uint64_t word_of(uint64_t bits, uint64_t key)
{
    return (bits << 32 ^ (bits & ~(uint64_t)UINT32_MAX)) ^ key;
}

/* How many of n indices there are none of, from the first on. */
BY_PROCESSOR static int64_t zeros_length(const char *shadow, int64_t n)
{
    enum { BLOCK = 64 };
    int64_t i = 0;
    for (uint64_t any = 0; i + BLOCK <= n; i += BLOCK) {
        for (int64_t j = i; j < i + BLOCK; j++)
            any |= word_at(shadow + 8 * j);
        if ((uint32_t)any != 0)
            break;
    }
    while (i < n && (uint32_t)word_at(shadow + 8 * i) == 0)
        i++;
    return i;
}

/* How many of n numbers have the indices key, key + 1, ..., and checks that fit. One look at each
 * says both. */
BY_PROCESSOR static int64_t variables_length(const char *at, int64_t n, uint64_t key)
{
    enum { BLOCK = 32 };
    const char *shadow = plain_shadow(at);
    int64_t i = 0;
    for (uint64_t other = 0; i + BLOCK <= n; i += BLOCK) {
        for (int64_t j = i; j < i + BLOCK; j++)
            other |= word_at(shadow + 8 * j) ^ word_of(word_at(at + 8 * j), key + (uint64_t)j);
        if (other != 0)
            break;
    }
    while (i < n && word_at(shadow + 8 * i) == word_of(word_at(at + 8 * i), key + (uint64_t)i))
        i++;
    return i;
}

/* How many of n numbers are constants, or variables as above: key is its index and tag, or the
 * index is 0. 0: the check of the first one does not fit. */
static int64_t part_length(const char *at, int64_t step, int64_t n, uint64_t key)
{
    enum { FEW = 12 }; /* a call for vectors takes as long */
    const char *shadow = plain_shadow(at);
    const bool is_variable = (uint32_t)key != 0;
    int64_t i = 0;
    if (step == sizeof(double) && n > FEW)
        return is_variable ? variables_length(at, n, key) : zeros_length(shadow, n);
    if (is_variable)
        while (i < n &&
               word_at(shadow + step * i) == word_of(word_at(at + step * i), key + (uint64_t)i))
            i++;
    else
        while (i < n && (uint32_t)word_at(shadow + step * i) == 0)
            i++;
    return i;
}

/* Whether the checks of n numbers fit where there is an index; `any`: one has an index. */
static inline bool checks_fit_from(const char *at, int64_t step, int64_t n, uint64_t tag, bool *any)
{
    uint64_t bad = 0, index = 0;
    for (int64_t i = 0; i < n; i++, at += step) {
        const uint64_t word = word_at(plain_shadow(at)), half = word & UINT32_MAX;
        bad |= (word ^ word_of(word_at(at), tag << 32 | half)) & (0 - (uint64_t)(half != 0));
        index |= half;
    }
    *any |= index != 0;
    return bad == 0;
}

BY_PROCESSOR static bool checks_fit_many(const char *at, int64_t n, uint64_t tag, bool *any)
{
    return checks_fit_from(at, sizeof(double), n, tag, any);
}

static bool checks_fit(const char *at, int64_t step, int64_t n, uint64_t tag, bool *any)
{
    return step == sizeof(double) ? checks_fit_many(at, n, tag, any)
                                  : checks_fit_from(at, step, n, tag, any);
}

bool plain_loop_look(struct loop_look *s, const char *at, int64_t step, int64_t n, uint32_t tag)
{
    const int before = s->n;
    s->active = false;
    for (int64_t i = 0; i < n;) {
        const char *here = at + step * i;
        const uint32_t first = (uint32_t)word_at(plain_shadow(here));
        /* Parts of 12 bytes each, or an index of four an element: so few in a part are none. */
        if (s->n == s->most || 3 * (int64_t)(s->n - before) > i + 6) {
            s->full = true;
            return checks_fit(here, step, n - i, tag, &s->active);
        }
        const int64_t length = part_length(here, step, n - i, (uint64_t)tag << 32 | first);
        if (length == 0)
            return false;
        s->active |= first != 0;
        s->part[s->n++] =
            (struct ad_plain_operand_){.n = length, .first = first ? first : AD_PLAIN_CONSTANTS_};
        i += length;
    }
    return true;
}

/* ---- what the processor is asked for ---- */

/* Brings n numbers into the cache, which need not be there: nothing is read. The statement that is
 * empty stays: of calls that compute nothing the compiler makes none. */
static void numbers_fetch(uintptr_t from, int64_t n)
{
    enum { LINE = 64 };
    for (int64_t i = 0; i < n * (int64_t)sizeof(double); i += LINE)
        __builtin_prefetch((const void *)(from + (uintptr_t)i), 1, 2);
    __asm__ volatile("");
}

static uintptr_t behind(const double *at, int64_t n)
{
    return (uintptr_t)at + (uintptr_t)n * sizeof *at;
}

/* ---- the record ---- */

static int64_t elements(const struct loop_group *g, int64_t trips)
{
    return g->stays ? 1 : trips + g->high - g->low;
}

static const char *begin_of(const struct loop_group *g, const struct loop_place *at)
{
    return at->base + (g->stays ? 0 : at->step * g->low);
}

/* What is kept: these, the scalars' values, then those of arrays. */
struct loop_kept {
    const struct plain_loop *loop;
    int64_t trips;
    uint64_t active;
};
enum { KEPT = sizeof(struct loop_kept) / sizeof(double) };

/* The operands of all that is read. False: a check does not fit, or no room. */
static bool look_at_all(const struct plain_loop *l, struct plain_loop_call *c,
                        struct ad_plain_operand_ *in, int *n_in, uint64_t *active)
{
    const struct loop_group *g = groups_of(l);
    const struct loop_place *at = places_of(c);
    const struct loop_scalar *scalar = values_of(l, c);
    const uint32_t tag = (uint32_t)(ad_statement_cursor_.result >> 32);
    int room = AD_PLAIN_LOOP_OPERANDS_ - (l->n_scalars > 0);
    *n_in = 0;
    *active = 0;
    for (int64_t k = 0; k < l->n_groups; k++, g++, at++) {
        const int64_t n = elements(g, c->trips);
        struct loop_look look;
        look.part = in + *n_in;
        look.n = 0;
        look.most = room - (int)(l->n_groups - k - 1);
        look.full = look.active = false;
        if (look.most < 1 || !plain_loop_look(&look, begin_of(g, at), at->step, n, tag))
            return false;
        if (look.active && (look.full || 3 * (int64_t)look.n > n + 3)) {
            if (at->step % 4 != 0)
                return false;
            look.n = 1;
            look.part[0] = (struct ad_plain_operand_){n, AD_PLAIN_INDICES_,
                                                      plain_shadow(begin_of(g, at)), at->step / 4};
        }
        *n_in += look.n;
        room -= look.n;
        *active |= (uint64_t)look.active << k;
    }
    for (int64_t k = 0; k < l->n_scalars; k++)
        *active |= (uint64_t)(scalar[k].index != 0) << (16 + k);
    if (l->n_scalars > 0) {
        const uint32_t none = (*active >> 16) == 0 ? AD_PLAIN_CONSTANTS_ : AD_PLAIN_INDICES_;
        in[(*n_in)++] =
            (struct ad_plain_operand_){l->n_scalars, none, (const void *)&scalar->index, 4};
    }
    return true;
}

static uint64_t active_results(const struct plain_loop *l, uint64_t active)
{
    uint64_t results = 0;
    for (int64_t k = 0; k < l->n_writes; k++)
        results |= (uint64_t)((active & (uint64_t)writes_of(l)[k]) != 0) << k;
    for (int64_t k = 0; k < l->n_sums; k++)
        results |= (uint64_t)((active & (uint64_t)sums_of(l)[k].of) != 0) << (l->n_writes + k);
    return results;
}

static int64_t results_count(const struct plain_loop *l, uint64_t active, int64_t trips)
{
    const uint64_t writes = active & ((UINT64_C(1) << l->n_writes) - 1);
    return __builtin_popcountll(writes) * trips + __builtin_popcountll(active & ~writes);
}

static void keep(const struct plain_loop *l, struct plain_loop_call *c, double *to)
{
    const struct loop_kept kept = {l, c->trips, c->active};
    memcpy(to, &kept, sizeof kept);
    to += KEPT;
    for (int64_t k = 0; k < l->n_scalars; k++)
        *to++ = values_of(l, c)[k].value;
    for (int64_t k = 0; k < l->n_groups; k++) {
        const struct loop_group *g = &groups_of(l)[k];
        const struct loop_place *at = &places_of(c)[k];
        const int64_t n = elements(g, c->trips);
        const char *from = begin_of(g, at);
        if (!g->kept)
            continue;
        if (at->step == sizeof(double))
            memcpy(to, from, (size_t)n * sizeof *to);
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(&to[i], from + i * at->step, sizeof *to);
        to += n;
        if (n >= ROUNDS && n <= FETCHED)
            numbers_fetch(behind(to, 0), n); /* of the next record, if that is alike */
    }
    for (int64_t k = 0; k < l->n_sums; k++)
        if (sums_of(l)[k].kept) {
            kept_of(l, c)[k] = (struct loop_place){(char *)to, sizeof *to};
            to += c->trips;
        }
}

/* What the loop would keep goes to one word, which nobody reads. */
static void keep_nothing(const struct plain_loop *l, struct plain_loop_call *c)
{
    for (int64_t k = 0; k < l->n_sums; k++)
        kept_of(l, c)[k] = (struct loop_place){(char *)&results_of(l, c)[k], 0};
}

static int64_t kept_count(const struct plain_loop *l, int64_t trips)
{
    int64_t n = KEPT + l->n_scalars;
    for (int64_t k = 0; k < l->n_groups; k++)
        n += groups_of(l)[k].kept ? elements(&groups_of(l)[k], trips) : 0;
    for (int64_t k = 0; k < l->n_sums; k++)
        n += sums_of(l)[k].kept ? trips : 0;
    return n;
}

/* ---- the sweep ---- */

BY_PROCESSOR static void numbers_add(int64_t n, const double *a, const double *b, const double *c,
                                     double *restrict to)
{
    if (c)
        for (int64_t k = 0; k < n; k++)
            to[k] += a[k] + b[k] + c[k];
    else if (b)
        for (int64_t k = 0; k < n; k++)
            to[k] += a[k] + b[k];
    else
        for (int64_t k = 0; k < n; k++)
            to[k] += a[k];
}

/* Adds a[n] + b[n] + c[n], some of which may be NULL, to the adjoints of an array from element i
 * on; the parts are its operands. */
static void parts_add(int64_t i, int64_t n, const double *const x[3], const int64_t *size,
                      double *const *dx)
{
    for (int64_t done = 0; done < n; size++, dx++) {
        if (i >= *size) {
            i -= *size;
            continue;
        }
        const int64_t here = *size - i < n - done ? *size - i : n - done;
        if (*dx)
            numbers_add(here, x[0] + done, x[1] ? x[1] + done : NULL, x[2] ? x[2] + done : NULL,
                        *dx + i);
        done += here;
        i = 0;
    }
}

/* What the reads of an array get of some rounds from `at` on, three of them at once: on both sides
 * of what a read gets are zeros. */
static void group_add(const struct plain_loop *l, int64_t group, int64_t at, int64_t rounds,
                      const double *out, const int64_t *size, double *const *dx)
{
    const struct loop_group *g = &groups_of(l)[group];
    const struct loop_read *read = reads_of(l);
    const double *x[3] = {NULL, NULL, NULL};
    int n = 0;
    for (int64_t k = 0; k <= l->n_reads; k++) {
        if (k < l->n_reads && read[k].group == group && read[k].gets)
            x[n++] = out + k * ROW - (read[k].offset - g->low);
        if (n == 3 || (n > 0 && k == l->n_reads)) {
            parts_add(at, rounds + g->high - g->low, x, size, dx);
            n = 0;
            x[1] = x[2] = NULL;
        }
    }
}

/* The first operand of each group, and of the scalars. */
static void operands_find(const struct plain_loop *l, int64_t trips, const int64_t *n, int *first)
{
    int at = 0;
    for (int64_t k = 0; k < l->n_groups; k++) {
        int64_t left = elements(&groups_of(l)[k], trips);
        first[k] = at;
        while (left > 0)
            left -= n[at++];
    }
    first[l->n_groups] = at;
}

/* What numbers get that stay, and those from before, of some rounds. */
static void numbers_of_rounds_add(const struct plain_loop *l, int64_t rounds, const double *out,
                                  const int *first, double *const *dx)
{
    const struct loop_read *read = reads_of(l);
    double *const dscalar = l->n_scalars ? dx[first[l->n_groups]] : NULL;
    for (int64_t k = 0; k < l->n_reads; k++) {
        double *const to = dx[first[read[k].group]];
        for (int64_t i = 0; groups_of(l)[read[k].group].stays && to && read[k].gets && i < rounds;
             i++)
            *to += out[k * ROW + i];
    }
    for (int64_t k = 0; dscalar && k < l->n_scalars; k++)
        for (int64_t i = 0; scalars_of(l)[k] && i < (l->carries ? 1 : rounds); i++)
            dscalar[k] += out[(l->n_reads + k) * ROW + i];
}

/* While rounds from `at` on are swept, what they need of the record before is brought into the
 * cache. That is alike if the loop stands in another: its kept numbers lie `kept` before these, and
 * adjoints of an operand as far before as that is long. The processor, which follows rows by
 * itself, does not know that the next one lies behind this one's begin. */
static void record_before_fetch(const struct plain_loop *l, const double *const *group, int64_t at,
                                int64_t rounds, int64_t kept, int n_in, const int64_t *n,
                                double *const *dx)
{
    for (int64_t k = 0; k < l->n_groups; k++)
        if (group[k] && !groups_of(l)[k].stays)
            numbers_fetch(behind(group[k], at - kept), rounds);
    for (int k = 0; k < n_in; k++)
        if (dx[k] && n[k] >= ROUNDS && at < n[k])
            numbers_fetch(behind(dx[k], at - n[k]), rounds);
}

static void loop_pullback(const double *saved, const double *dy, int n_in, const int64_t *n,
                          double *const *dx)
{
    static const double nothing[ROUNDS];
    struct loop_kept kept;
    memcpy(&kept, saved, sizeof kept);
    const struct plain_loop *l = kept.loop;
    const struct loop_read *read = reads_of(l);
    const double *scalars = saved + KEPT, *from = scalars + l->n_scalars;
    const double *group[GROUPS], *values[TOKENS], *result[RESULTS], *dy_of[RESULTS];
    const double *sum[RESULTS], *carried[RESULTS];
    double adjoint[RESULTS];
    double room[TOKENS * ROW], *const out = room + FAR;
    int first[GROUPS + 1];
    operands_find(l, kept.trips, n, first);
    for (int64_t k = 0; k < l->n_groups; k++) {
        group[k] = groups_of(l)[k].kept ? from : NULL;
        from += groups_of(l)[k].kept ? elements(&groups_of(l)[k], kept.trips) : 0;
    }
    for (int64_t k = 0; k < l->n_sums; k++) {
        sum[k] = sums_of(l)[k].kept ? from : NULL;
        from += sum[k] ? kept.trips : 0;
    }
    for (int64_t k = 0; k < l->n_writes + l->n_sums; k++) {
        result[k] = kept.active >> k & 1 ? dy : NULL;
        dy += result[k] ? (k < l->n_writes ? kept.trips : 1) : 0;
    }
    for (int64_t k = 0; k < l->n_sums; k++)
        adjoint[k] = result[l->n_writes + k] ? *result[l->n_writes + k] : 0;
    double *const dscalar = l->n_scalars ? dx[first[l->n_groups]] : NULL;
    const int64_t last = (kept.trips - 1) / ROUNDS;
    for (int64_t block = 0; block <= last; block++) {
        const int64_t at = (l->carries ? last - block : block) * ROUNDS;
        const int64_t rounds = kept.trips - at < ROUNDS ? kept.trips - at : ROUNDS;
        for (int64_t k = 0; k < l->n_reads; k++) {
            const struct loop_group *g = &groups_of(l)[read[k].group];
            const double *of = group[read[k].group];
            values[k] = of && !g->stays ? of + read[k].offset - g->low + at : of;
        }
        for (int64_t k = 0; k < l->n_writes + l->n_sums; k++)
            dy_of[k] = result[k] ? result[k] + (k < l->n_writes ? at : 0) : nothing;
        for (int64_t k = 0; k < l->n_sums; k++)
            carried[k] = sum[k] ? sum[k] + at : NULL;
        if (kept.trips <= FETCHED)
            record_before_fetch(l, group, at, rounds, from - saved, n_in, n, dx);
        l->reverse(rounds, values, scalars, dy_of, out, carried, adjoint);
        for (int64_t k = 0; k < l->n_reads; k++) {
            const struct loop_group *g = &groups_of(l)[read[k].group];
            for (int64_t j = 0; j < g->high - g->low; j++)
                out[k * ROW - 1 - j] = out[k * ROW + rounds + j] = 0;
        }
        for (int64_t k = 0; k < l->n_groups; k++)
            if (!groups_of(l)[k].stays)
                group_add(l, k, at, rounds, out, n + first[k], dx + first[k]);
        numbers_of_rounds_add(l, rounds, out, first, dx);
    }
    for (int64_t k = 0; k < l->n_sums; k++) {
        const int64_t init = sums_of(l)[k].scalar;
        if (dscalar && init >= 0)
            dscalar[init] += adjoint[k];
    }
}

/* ---- the two calls ---- */

/* Before a loop of one round at least: whether it is to be run without statements. */
uint32_t ad_plain_loop_begin_(const struct plain_loop *l, struct plain_loop_call *c);
uint32_t ad_plain_loop_begin_(const struct plain_loop *l, struct plain_loop_call *c)
{
    struct ad_plain_operand_ in[AD_PLAIN_LOOP_OPERANDS_];
    uint64_t active;
    int n_in;
    c->first = 0;
    c->active = 0;
    keep_nothing(l, c);
    if (c->trips > trips_most || !is_independent(l, c) || !look_at_all(l, c, in, &n_in, &active))
        return 0;
    const uint64_t results = active_results(l, active);
    if (results == 0)
        return 1;
    if (!ad_plain_loops_())
        return 0;
    double *saved;
    c->active = results;
    c->first =
        ad_plain_loop_open_(PLAIN_HERE, loop_pullback, n_in, in,
                            results_count(l, results, c->trips), kept_count(l, c->trips), &saved);
    if (c->first)
        keep(l, c, saved);
    else
        c->active = 0;
    return 1;
}

/* What lies at `at` has the index and tag. */
static inline void name_one(const char *at, uint64_t key)
{
    const uint64_t word = word_of(word_at(at), key);
    memcpy(plain_shadow(at), &word, sizeof word);
}

BY_PROCESSOR static void name_array(const char *at, int64_t n, uint64_t first)
{
    char *shadow = plain_shadow(at);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t word = word_of(word_at(at + 8 * i), first + (uint64_t)i);
        memcpy(shadow + 8 * i, &word, sizeof word);
    }
}

void plain_loop_name(const char *at, int64_t step, int64_t n, uint64_t first, int64_t by)
{
    if (step == sizeof(double) && by == 1)
        name_array(at, n, first);
    else
        for (int64_t i = 0; i < n; i++)
            name_one(at + i * step, first + (uint64_t)(i * by));
}

void plain_loop_forget(const char *at, int64_t step, int64_t n)
{
    if (step == sizeof(double)) { /* pages that have never been written stay so */
        const int64_t zeros = zeros_length(plain_shadow(at), n);
        memset((char *)plain_shadow(at) + 8 * zeros, 0, (size_t)(n - zeros) * sizeof(double));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memset(plain_shadow(at + i * step), 0, sizeof(double));
}

/* Behind it. */
void ad_plain_loop_end_(const struct plain_loop *l, struct plain_loop_call *c);
void ad_plain_loop_end_(const struct plain_loop *l, struct plain_loop_call *c)
{
    const struct loop_place *write = places_of(c) + l->n_groups;
    uint64_t next = c->first;
    if (c->active == LOOP_IDLE) {
        memset(results_of(l, c), 0, (size_t)l->n_sums * sizeof(uint64_t));
        return;
    }
    for (int64_t k = 0; k < l->n_writes; k++) {
        if (!(c->active >> k & 1)) {
            plain_loop_forget(write[k].base, write[k].step, c->trips);
            continue;
        }
        plain_loop_name(write[k].base, write[k].step, c->trips, next, 1);
        next += (uint64_t)c->trips;
    }
    for (int64_t k = 0; k < l->n_sums; k++)
        results_of(l, c)[k] = c->active >> (l->n_writes + k) & 1 ? (uint32_t)next++ : 0;
    if (c->first)
        ad_plain_loop_commit_();
}
