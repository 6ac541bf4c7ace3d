/* tape_sparse.c: see tape_sparse.h. */
#include "tape_sparse.h"

#include "tape_bridge.h"
#include "tape_cone.h"
#include "tape_fused_loop.h"
#include "tape_guard.h"
#include "tape_kind.h"
#include "tape_program.h"
#include "tape_statement_sweep.h"
#include "tape_sweep.h"

#include <stdlib.h>
#include <string.h>

static const char what_pattern[] = "real_jacobian_pattern", what_values[] = "real_jacobian_sparse";

struct sparse {
    const uint32_t *y, *x;
    struct tape_sparse *s;
    double *values;
    struct tape_cone cone;
    const struct tape_run **runs; /* newest first */
    uint32_t n_runs, runs_size;
    uint64_t hash; /* of their words, and of which numbers are asked for */
    /* Of a pattern that is being found: */
    uint32_t *found; /* columns of the rows in `order`, one behind the other */
    uint64_t n_found, found_size;
};

/* ---- errors ---- */

/* The record whose results have the index: neither a run's statement nor a leaf. */
static struct tape_record *record_of(const struct tape *t, uint32_t index)
{
    struct tape_record *after = NULL;
    for (uint32_t at = t->last_record; at != UINT32_MAX;) {
        struct tape_record *r = tape_record_at(t, at);
        const struct record_kind *kind = tape_record_kind(r);
        if (kind->is_run && tape_run_of(r)->first <= index)
            return index - tape_run_of(r)->first < tape_run_of(r)->n ? r : after;
        if (kind == &tape_leaves_kind && tape_leaves_of(r)->first <= index)
            return after;
        if (!kind->is_run && r->n_out == 0)
            after = r;
        at = r->previous;
    }
    return after;
}

static void fail_strange(struct tape *t, const char *what, uint32_t index, struct tape_site site)
{
    struct tape_record *r = record_of(t, index);
    const char *name = "a record";
    char where[160] = "an unknown line";
    if (r && tape_record_kind(r)->is_run) {
        const struct tape_run *run = tape_run_of(r);
        struct tape_run_part part = tape_run_last(run);
        while ((!part.fused_loop || part.fused_loop->first > index) &&
               tape_run_previous(run, &part))
            ;
        const struct tape_fused_loop *loop = part.fused_loop;
        if (loop) {
            name = tape_fused_loop_name(loop, run->partial_begin + loop->at);
            t->describe(
                (struct tape_site){t->locate(loop->site, run->near), tape_fused_loop_line(loop)},
                where, sizeof where);
        }
    } else if (r) {
        name = tape_record_name(r);
        t->describe(tape_row_site(t, r->row), where, sizeof where);
    }
    tape_fail(t, TAPE_ERROR_STATE, site,
              "%s: y depends on %s at %s, which is no statement, so that nobody knows on what its "
              "results depend; the call is",
              what, name, where);
}

/* ---- memory ---- */

static void *sparse_take(const struct tape_memory *memory, uint64_t n, size_t each)
{
    return n < SIZE_MAX / each - 1 ? memory->resize(NULL, (size_t)(n + 1) * each, memory->payload)
                                   : NULL;
}

static void sparse_give(const struct tape_memory *memory, void *p)
{
    if (p)
        memory->release(p, memory->payload);
}

void tape_sparse_free(struct tape_sparse *s)
{
    sparse_give(&s->memory, s->row_start);
    sparse_give(&s->memory, s->column);
    sparse_give(&s->memory, s->order);
    sparse_give(&s->memory, s->group);
    s->row_start = s->column = NULL;
    s->order = NULL;
    s->group = NULL;
}

/* ---- the statements ---- */

/* Notes the runs that have statements from the lowest of x to the highest of y, and what tells them
 * from others: a sweep by what was found of other statements would be wrong unseen. */
static bool runs_note(struct tape *t, struct sparse *of)
{
    const struct tape_sparse *s = of->s;
    uint64_t hash = tape_guard_hash_bytes(of->y, (uint64_t)s->m * sizeof *of->y);
    hash = tape_hash_mix(hash, tape_guard_hash_bytes(of->x, (uint64_t)s->n * sizeof *of->x));
    for (uint32_t at = t->last_record; at != UINT32_MAX; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        if (!tape_record_kind(r)->is_run)
            continue;
        const struct tape_run **more =
            tape_array_reserve(t->memory, of->runs, of->n_runs + 1, &of->runs_size, sizeof *more);
        if (!more)
            return false;
        const struct tape_run *run = tape_run_of(r);
        of->runs = more;
        of->runs[of->n_runs++] = run;
        hash = tape_hash_mix(hash, (uint64_t)run->first << 32 | run->n);
        hash = tape_hash_mix(
            hash, tape_guard_hash_bytes(run->word_end, (uint64_t)(run->word_begin - run->word_end) *
                                                           sizeof *run->word_end));
    }
    of->hash = hash;
    return true;
}

/* ---- which derivatives there are ---- */

/* How many statements each row of a block walks, and how many of them the row before it walks too;
 * as differences, since most masks are of neighbours. */
struct shares {
    int64_t of[TAPE_CONE_ROWS + 1], both[TAPE_CONE_ROWS + 1];
};

static void shares_count(uint32_t index, uint64_t mask, void *payload)
{
    struct shares *s = payload;
    (void)index;
    for (uint32_t at = 0; mask;) {
        const uint32_t skip = (uint32_t)__builtin_ctzll(mask);
        at += skip;
        mask >>= skip;
        const uint32_t n = mask == UINT64_MAX ? 64 : (uint32_t)__builtin_ctzll(~mask);
        s->of[at]++;
        s->of[at + n]--;
        s->both[at + 1 <= TAPE_CONE_ROWS ? at + 1 : at]++;
        s->both[at + n]--;
        at += n;
        mask = n == 64 ? 0 : mask >> n;
    }
}

/* What a group walks. */
struct group_walk {
    uint32_t n, low;
};

static void group_count(uint32_t index, uint64_t mask, void *payload)
{
    struct group_walk *w = payload;
    (void)mask;
    w->n++;
    w->low = index; /* each is lower than the one before */
}

/* Notes where the statements of a group are, if they are next to each other. */
static void group_place(const struct sparse *of, const struct group_walk *w, uint32_t high,
                        struct tape_sparse_group *g)
{
    const struct tape_cone *c = &of->cone;
    const struct tape_run *run = w->n > 0 ? c->runs[c->at] : NULL;
    g->run = TAPE_SPARSE_WALK;
    if (!run || run->fused_loop || w->low < run->first || high - run->first >= run->n ||
        high - w->low >= (uint64_t)w->n * 2 + 16)
        return;
    const struct tape_cone_node *first = &c->node[high - c->base],
                                *last = &c->node[w->low - c->base];
    const struct tape_operands o = tape_statement_operands(run->word_begin - first->word);
    g->run = c->at;
    g->low = w->low;
    g->high = high;
    g->word = first->word;
    g->word_end = (uint32_t)(run->word_begin - tape_statement_behind(run->word_begin - last->word));
    g->partial_end = first->partial + o.general;
}

static bool group_find(struct sparse *of, uint32_t first, uint32_t n)
{
    struct tape_sparse *s = of->s;
    struct tape_sparse_group *more =
        tape_array_reserve(&s->memory, s->group, s->n_groups + 1, &s->groups_size, sizeof *more);
    if (!more)
        return false;
    s->group = more;
    struct tape_sparse_group *g = &s->group[s->n_groups++];
    *g = (struct tape_sparse_group){.first = first, .n = n};
    struct group_walk w = {0, 0};
    uint32_t root[TAPE_CONE_MAX_WIDTH];
    for (uint32_t k = 0; k < n; k++)
        root[k] = of->y[s->order[first + k]];
    if (!tape_cone_walk(&of->cone, n, root, 0, group_count, &w))
        return false;
    group_place(of, &w, root[n - 1], g);
    return true;
}

/* A row joins the group before it if it shares half of its statements with the row before, or has
 * next to none. */
static bool groups_find(struct sparse *of, const struct shares *s, uint32_t from, uint32_t n)
{
    enum { FEW = 4 };
    int64_t walked = 0, both = 0;
    uint32_t begin = 0;
    for (uint32_t k = 0; k < n; k++) {
        walked += s->of[k];
        both += s->both[k];
        if (k == begin ||
            (k - begin < TAPE_CONE_MAX_WIDTH && (2 * both >= walked || walked <= FEW)))
            continue;
        if (!group_find(of, from + begin, k - begin))
            return false;
        begin = k;
    }
    return group_find(of, from + begin, n - begin);
}

static int hits_compare(const void *a, const void *b)
{
    const struct tape_cone_hit *x = a, *y = b;
    return x->column < y->column ? -1 : x->column > y->column;
}

/* Notes the columns of a block of rows. */
static bool columns_note(struct tape *t, struct sparse *of, uint32_t n, const uint32_t *row)
{
    const struct tape_cone *c = &of->cone;
    int64_t *const count = of->s->row_start + 1; /* of a row, for now */
    uint64_t at[TAPE_CONE_ROWS], more = 0;
    for (uint32_t k = 0; k < c->n_hits; k++)
        more += (uint64_t)__builtin_popcountll(c->mask[c->hit[k].slot]);
    if (of->n_found + more > of->found_size) {
        uint64_t size = of->found_size ? of->found_size : 1024;
        while (size < of->n_found + more)
            size *= 2;
        uint32_t *found =
            size < SIZE_MAX / sizeof *found
                ? t->memory->resize(of->found, (size_t)size * sizeof *found, t->memory->payload)
                : NULL;
        if (!found)
            return false;
        of->found = found;
        of->found_size = size;
    }
    qsort(c->hit, c->n_hits, sizeof *c->hit, hits_compare);
    for (uint32_t k = 0; k < c->n_hits; k++)
        for (uint64_t mask = c->mask[c->hit[k].slot]; mask; mask &= mask - 1)
            count[row[__builtin_ctzll(mask)]]++;
    for (uint32_t k = 0; k < n; k++) {
        at[k] = of->n_found;
        of->n_found += (uint64_t)count[row[k]];
    }
    for (uint32_t k = 0; k < c->n_hits; k++)
        for (uint64_t mask = c->mask[c->hit[k].slot]; mask; mask &= mask - 1)
            of->found[at[__builtin_ctzll(mask)]++] = c->hit[k].column;
    return true;
}

/* From what was found row by row in `order` to compressed rows. */
static bool rows_compress(struct sparse *of)
{
    struct tape_sparse *s = of->s;
    for (int64_t i = 0; i < s->m; i++)
        s->row_start[i + 1] += s->row_start[i];
    s->n_values = s->row_start[s->m];
    s->column = sparse_take(&s->memory, (uint64_t)s->n_values, sizeof *s->column);
    if (!s->column)
        return false;
    const uint32_t *from = of->found;
    for (int64_t k = 0; k < s->m; k++) {
        const int64_t begin = s->row_start[s->order[k]], end = s->row_start[s->order[k] + 1];
        for (int64_t e = begin; e < end; e++)
            s->column[e] = *from++;
    }
    return true;
}

static bool pattern_find(struct tape *t, struct sparse *of, struct tape_site site)
{
    struct tape_sparse *s = of->s;
    for (int64_t from = 0; from < s->m; from += TAPE_CONE_ROWS) {
        const uint32_t n =
            s->m - from < TAPE_CONE_ROWS ? (uint32_t)(s->m - from) : (uint32_t)TAPE_CONE_ROWS;
        uint32_t root[TAPE_CONE_ROWS];
        struct shares shares = {0};
        for (uint32_t k = 0; k < n; k++)
            root[k] = of->y[s->order[from + k]];
        if (!tape_cone_walk(&of->cone, n, root, 0, shares_count, &shares)) {
            if (of->cone.strange)
                fail_strange(t, what_pattern, of->cone.strange, site);
            return false;
        }
        if (!columns_note(t, of, n, s->order + from) ||
            !groups_find(of, &shares, (uint32_t)from, n))
            return false;
    }
    return rows_compress(of);
}

/* Rows by where their results are on the tape. */
struct sparse_place {
    uint32_t index, row;
};

static int places_compare(const void *a, const void *b)
{
    const struct sparse_place *x = a, *y = b;
    const uint64_t p = (uint64_t)x->index << 32 | x->row, q = (uint64_t)y->index << 32 | y->row;
    return p < q ? -1 : p > q;
}

static bool rows_order(const struct sparse *of)
{
    struct tape_sparse *s = of->s;
    struct sparse_place *place = sparse_take(&s->memory, (uint64_t)s->m, sizeof *place);
    if (!place)
        return false;
    for (int64_t i = 0; i < s->m; i++)
        place[i] = (struct sparse_place){of->y[i], (uint32_t)i};
    qsort(place, (size_t)s->m, sizeof *place, places_compare);
    for (int64_t i = 0; i < s->m; i++)
        s->order[i] = place[i].row;
    sparse_give(&s->memory, place);
    return true;
}

static uint32_t end_of(const struct sparse *of)
{
    uint32_t end = 1;
    for (int64_t i = 0; i < of->s->m; i++)
        end = of->y[i] >= end ? of->y[i] + 1 : end;
    return end;
}

/* No number is there twice. */
static bool columns_differ(struct tape *t, const struct sparse *of, struct tape_site site)
{
    const struct tape_cone *c = &of->cone;
    for (int64_t i = 0; i < of->s->n; i++) {
        const uint32_t x = of->x[i];
        if (x && x < c->end && c->column[x - c->base] != (uint32_t)i + 1) {
            tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: x[%lld] is x[%lu] too", what_pattern,
                      (long long)i, (unsigned long)c->column[x - c->base] - 1);
            return false;
        }
    }
    return true;
}

static bool sweep_pattern(struct tape *t, struct tape_sweep *sweep)
{
    struct sparse *of = sweep->of;
    struct tape_sparse *s = of->s;
    const uint64_t m = (uint64_t)s->m;
    s->row_start = sparse_take(&s->memory, m, sizeof *s->row_start);
    s->order = s->row_start ? sparse_take(&s->memory, m, sizeof *s->order) : NULL;
    bool ok = s->order && rows_order(of) && runs_note(t, of);
    if (ok) {
        memset(s->row_start, 0, (size_t)(m + 1) * sizeof *s->row_start);
        ok = tape_cone_begin(&of->cone, t, sweep->own, end_of(of), s->n, of->x) &&
             columns_differ(t, of, sweep->site) && pattern_find(t, of, sweep->site);
        tape_cone_end(&of->cone);
    }
    s->hash = of->hash;
    sparse_give(t->memory, of->runs);
    sparse_give(t->memory, of->found);
    if (!ok)
        tape_sparse_free(s);
    return ok;
}

/* ---- their values ---- */

/* A derivative that was found and that the pattern does not have. */
static void fail_missing(struct tape *t, const struct sparse *of, uint32_t n, const uint32_t *row,
                         struct tape_site site)
{
    const struct tape_cone *c = &of->cone;
    const struct tape_sparse *s = of->s;
    for (uint32_t h = 0; h < c->n_hits; h++)
        for (uint32_t k = 0; k < n; k++) {
            int64_t e = s->row_start[row[k]];
            while (e < s->row_start[row[k] + 1] && s->column[e] != c->hit[h].column)
                e++;
            if (c->mask[c->hit[h].slot] >> k & 1 && e == s->row_start[row[k] + 1]) {
                tape_fail(t, TAPE_ERROR_STATE, site,
                          "%s: y[%lu] depends on x[%lu], and has no such column in the pattern, "
                          "which was found for another recording",
                          what_values, (unsigned long)row[k], (unsigned long)c->hit[h].column);
                return;
            }
        }
}

/* The rows of a group: whether the pattern has all that was found. */
static bool group_read(struct sparse *of, uint32_t n, uint32_t width, const uint32_t *row)
{
    const struct tape_cone *c = &of->cone;
    const struct tape_sparse *s = of->s;
    int64_t found = 0, read = 0;
    for (uint32_t h = 0; h < c->n_hits; h++)
        found += __builtin_popcountll(c->mask[c->hit[h].slot]);
    for (uint32_t k = 0; k < n; k++)
        for (int64_t e = s->row_start[row[k]]; e < s->row_start[row[k] + 1]; e++) {
            const struct tape_cone_node *node = tape_cone_reached(c, of->x[s->column[e]]);
            of->values[e] = node ? c->adjoint[(size_t)node->slot * width + k] : 0;
            read += node && c->mask[node->slot] >> k & 1;
        }
    return read == found;
}

static uint32_t width_of(const struct tape_sparse_group *g)
{
    uint32_t width = 1;
    while (width < g->n)
        width *= 2;
    return width;
}

static bool group_walk(struct tape *t, struct sparse *of, const struct tape_sparse_group *g,
                       struct tape_site site)
{
    const uint32_t width = width_of(g), *row = of->s->order + g->first;
    uint32_t root[TAPE_CONE_MAX_WIDTH];
    for (uint32_t k = 0; k < g->n; k++)
        root[k] = of->y[row[k]];
    const bool ok = tape_cone_walk(&of->cone, g->n, root, width, NULL, NULL);
    if (!ok && of->cone.strange)
        fail_strange(t, what_values, of->cone.strange, site);
    if (!ok)
        return false;
    if (!group_read(of, g->n, width, row)) {
        fail_missing(t, of, g->n, row, site);
        return false;
    }
    return true;
}

/* Sweeps the part of a run that has the group's statements. Only what is read is cleared. */
static void group_sweep(struct sparse *of, const struct tape_sparse_group *g, double *adjoint)
{
    const struct tape_sparse *s = of->s;
    const uint32_t width = width_of(g), *row = s->order + g->first;
    const struct tape_run *run = of->runs[g->run];
    const struct tape_run part = {.partial_end = run->partial_begin + g->partial_end,
                                  .word_begin = run->word_begin - g->word_end,
                                  .word_end = run->word_begin - g->word,
                                  .first = g->low,
                                  .n = g->high - g->low + 1};
    memset(adjoint + (size_t)g->low * width, 0, (size_t)part.n * width * sizeof *adjoint);
    for (uint32_t k = 0; k < g->n; k++)
        for (int64_t e = s->row_start[row[k]]; e < s->row_start[row[k] + 1]; e++)
            adjoint[(size_t)of->x[s->column[e]] * width + k] = 0;
    for (uint32_t k = 0; k < g->n; k++)
        adjoint[(size_t)of->y[row[k]] * width + k] += 1;
    tape_run_pullback(&part, adjoint, width, NULL);
    for (uint32_t k = 0; k < g->n; k++)
        for (int64_t e = s->row_start[row[k]]; e < s->row_start[row[k] + 1]; e++)
            of->values[e] = adjoint[(size_t)of->x[s->column[e]] * width + k];
}

static bool groups_walk(struct tape *t, struct sparse *of, uint32_t own, bool all,
                        struct tape_site site)
{
    const struct tape_sparse *s = of->s;
    bool ok = tape_cone_begin(&of->cone, t, own, end_of(of), s->n, of->x);
    for (uint32_t k = 0; k < s->n_groups && ok; k++)
        if (all || s->group[k].run == TAPE_SPARSE_WALK)
            ok = group_walk(t, of, &s->group[k], site);
    tape_cone_end(&of->cone);
    return ok;
}

static bool groups_sweep(struct tape *t, struct sparse *of, uint32_t own)
{
    const struct tape_sparse *s = of->s;
    uint32_t width = 1;
    for (uint32_t k = 0; k < s->n_groups; k++)
        width = width_of(&s->group[k]) > width ? width_of(&s->group[k]) : width;
    const uint64_t bytes = (uint64_t)tape_statement_next(t) * width * sizeof(double);
    double *adjoint = tape_arena_buffer(&t->arena, bytes);
    if (!adjoint)
        return false;
    tape_account_buffer(t, own, bytes);
    for (uint32_t k = 0; k < s->n_groups; k++)
        if (s->group[k].run != TAPE_SPARSE_WALK)
            group_sweep(of, &s->group[k], adjoint);
    tape_arena_free(&t->arena, adjoint, bytes);
    tape_account_free(t, own, bytes);
    return true;
}

static bool sweep_values(struct tape *t, struct tape_sweep *sweep)
{
    struct sparse *of = sweep->of;
    const struct tape_sparse *s = of->s;
    tape_program_slopes(t);
    bool ok = runs_note(t, of), walks = false, sweeps = false;
    const bool same = ok && of->hash == s->hash;
    for (uint32_t k = 0; k < s->n_groups; k++) {
        walks = walks || !same || s->group[k].run == TAPE_SPARSE_WALK;
        sweeps = sweeps || (same && s->group[k].run != TAPE_SPARSE_WALK);
    }
    if (ok && sweeps)
        ok = groups_sweep(t, of, sweep->own);
    if (ok && walks)
        ok = groups_walk(t, of, sweep->own, !same, sweep->site);
    sparse_give(t->memory, of->runs);
    return ok;
}

/* ---- the calls ---- */

static enum tape_status sparse_drive(struct tape *t, struct sparse *of, const char *what,
                                     bool (*run)(struct tape *t, struct tape_sweep *s),
                                     struct tape_site site)
{
    if (tape_bridge_crosses(t))
        return tape_fail(t, TAPE_ERROR_STATE, site,
                         "%s: tensors may lie between x and y, through which nobody knows what "
                         "depends on what",
                         what);
    return tape_sweep_drive(t,
                            &(struct tape_sweep){.run = run, .what = what, .site = site, .of = of});
}

enum tape_status tape_sparse_find(struct tape *t, int64_t m, const uint32_t *y, int64_t n,
                                  const uint32_t *x, struct tape_sparse *s, struct tape_site site)
{
    *s = (struct tape_sparse){.memory = *t->memory, .m = m, .n = n};
    struct sparse of = {.y = y, .x = x, .s = s};
    return sparse_drive(t, &of, what_pattern, sweep_pattern, site);
}

enum tape_status tape_sparse_values(struct tape *t, const uint32_t *y, const uint32_t *x,
                                    const struct tape_sparse *s, double *values,
                                    struct tape_site site)
{
    struct sparse of = {.y = y, .x = x, .s = (struct tape_sparse *)(uintptr_t)s, .values = values};
    return sparse_drive(t, &of, what_values, sweep_values, site);
}
