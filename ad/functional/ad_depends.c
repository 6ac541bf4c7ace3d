/* ad_depends.c: see ad_depends.h. */
#include "ad_depends.h"

#include "kernel_depends.h"
#include "tape_account.h"
#include "tape_guard.h"
#include "tape_kind.h"
#include "tape_value.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS = 1024 };
#define NONE UINT32_MAX

/* Sets of columns, by number: 0 is empty, 1 + j has column j alone. */
struct depends_sets {
    const struct tape_memory *memory;
    uint32_t *column, n_columns, columns_size; /* rising within a set */
    uint32_t *start, n, starts_size;           /* [n + 1] */
    uint32_t variables, *mark, stamp; /* [variables]: in the set `marked`, if the stamp's */
    uint32_t *extra;                  /* [variables] scratch */
    uint32_t marked;
    struct {
        uint32_t a, b, both;
    } pair[PAIRS]; /* unions of two that were made last */
};

struct depends_walk {
    struct ad_isolation *s;
    struct tape *t;
    struct depends_sets sets;
    uint32_t **of;      /* of each value: the sets of its elements; NULL: all are empty */
    uint32_t last_leaf; /* the records that are walked come behind it */
    uint32_t *head, *next, *pick, heads_size, nexts_size, picks_size;
    int64_t *in, *out, *space;
    uint32_t ins_size, outs_size, spaces_size;
};

/* ---- sets ---- */

static uint32_t set_size(const struct depends_sets *s, uint32_t set)
{
    return s->start[set + 1] - s->start[set];
}

/* Room for one more set of n columns. */
static bool set_room(struct depends_sets *s, uint32_t n)
{
    if (n > UINT32_MAX - 1 - s->n_columns || s->n > UINT32_MAX - 3)
        return false;
    uint32_t *column = tape_array_reserve(s->memory, s->column, s->n_columns + n + 1,
                                          &s->columns_size, sizeof *column);
    if (!column)
        return false;
    s->column = column;
    uint32_t *start =
        tape_array_reserve(s->memory, s->start, s->n + 2, &s->starts_size, sizeof *start);
    if (!start)
        return false;
    s->start = start;
    return true;
}

static uint32_t set_end(struct depends_sets *s, uint32_t n)
{
    s->n_columns += n;
    s->start[++s->n] = s->n_columns;
    return s->n - 1;
}

static bool sets_begin(struct depends_sets *s, uint32_t variables)
{
    if (!set_room(s, 0))
        return false;
    s->variables = variables;
    s->start[0] = 0;
    set_end(s, 0);
    for (uint32_t j = 0; j < variables; j++) {
        if (!set_room(s, 1))
            return false;
        s->column[s->n_columns] = j;
        set_end(s, 1);
    }
    return true;
}

static void set_mark(struct depends_sets *s, uint32_t set)
{
    if (s->marked == set)
        return;
    if (++s->stamp == 0) {
        memset(s->mark, 0, s->variables * sizeof *s->mark);
        s->stamp = 1;
    }
    for (uint32_t k = s->start[set]; k < s->start[set + 1]; k++)
        s->mark[s->column[k]] = s->stamp;
    s->marked = set;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* A new set: `set` and n columns in s->extra that it does not have, all of them marked. */
static bool set_extend(struct depends_sets *s, uint32_t set, uint32_t n, uint32_t *to)
{
    const uint32_t own = set_size(s, set);
    if (n > UINT32_MAX - own || !set_room(s, own + n))
        return false;
    qsort(s->extra, n, sizeof *s->extra, by_number);
    uint32_t *at = s->column + s->n_columns;
    const uint32_t *a = s->column + s->start[set], *const a_end = a + own,
                   *b = s->extra, *const b_end = b + n;
    while (a < a_end || b < b_end)
        *at++ = b == b_end || (a < a_end && *a < *b) ? *a++ : *b++;
    *to = set_end(s, own + n);
    s->marked = *to;
    return true;
}

/* The union of the sets pick[n]; false: no memory. */
static bool set_unite(struct depends_sets *s, const uint32_t *pick, uint32_t n, uint32_t *to)
{
    uint32_t largest = 0, other = 0, extra = 0;
    bool several = false;
    for (uint32_t k = 0; k < n; k++)
        if (set_size(s, pick[k]) > set_size(s, largest))
            largest = pick[k];
    for (uint32_t k = 0; k < n; k++)
        if (pick[k] != 0 && pick[k] != largest && pick[k] != other) {
            several = several || other != 0;
            other = pick[k];
        }
    *to = largest;
    if (other == 0)
        return true;
    const uint32_t at = (largest * 31 + other) % PAIRS;
    if (!several && s->pair[at].a == largest && s->pair[at].b == other) {
        *to = s->pair[at].both;
        return true;
    }
    set_mark(s, largest);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t c = s->start[pick[k]]; c < s->start[pick[k] + 1] && pick[k] != largest; c++)
            if (s->mark[s->column[c]] != s->stamp) {
                s->mark[s->column[c]] = s->stamp;
                s->extra[extra++] = s->column[c];
            }
    if (extra > 0 && !set_extend(s, largest, extra, to))
        return false;
    if (!several) {
        s->pair[at].a = largest;
        s->pair[at].b = other;
        s->pair[at].both = *to;
    }
    return true;
}

/* ---- records ---- */

static bool room(struct depends_walk *w, void *array, uint32_t *size, int64_t n, size_t each)
{
    void **const p = array;
    void *more =
        n < UINT32_MAX ? tape_array_reserve(w->t->memory, *p, (uint32_t)n + 1, size, each) : NULL;
    if (more)
        *p = more;
    return more != NULL;
}

static int64_t most_groups(const struct kernel_call *call, int o, int i)
{
    return call->in[i]->size > call->out[o]->size ? call->in[i]->size : call->out[o]->size;
}

static bool rooms(struct depends_walk *w, const struct kernel_call *call, int o, int i,
                  int64_t width)
{
    const int64_t n_in = call->in[i]->size, n_out = call->out[o]->size;
    int64_t out;
    if (__builtin_mul_overflow(n_out, width, &out))
        return false;
    return room(w, &w->head, &w->heads_size, most_groups(call, o, i), sizeof *w->head) &&
           room(w, &w->next, &w->nexts_size, n_in, sizeof *w->next) &&
           room(w, &w->pick, &w->picks_size, n_in > width ? n_in : width, sizeof *w->pick) &&
           room(w, &w->in, &w->ins_size, n_in, sizeof *w->in) &&
           room(w, &w->out, &w->outs_size, out, sizeof *w->out) &&
           room(w, &w->space, &w->spaces_size,
                (int64_t)(kernel_depends_space(call) / sizeof *w->space), sizeof *w->space);
}

/* w->head[g]: the union of the sets of the elements, n, in group g. */
static bool groups_unite(struct depends_walk *w, const uint32_t *sets, uint32_t n, uint32_t groups)
{
    memset(w->head, 0xff, groups * sizeof *w->head);
    for (uint32_t k = n; k-- > 0;)
        if (w->in[k] >= 0) {
            w->next[k] = w->head[w->in[k]];
            w->head[w->in[k]] = k;
        }
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t picked = 0, set = 0;
        for (uint32_t k = w->head[g]; k != NONE; k = w->next[k])
            w->pick[picked++] = sets[k];
        if (!set_unite(&w->sets, w->pick, picked, &set))
            return false;
        w->head[g] = set;
    }
    return true;
}

/* result[]: the sets of result o's elements, to which those that come by operand i are added. */
static bool operand_add(struct depends_walk *w, const struct kernel_call *call, int o, int i,
                        const uint32_t *sets, uint32_t *result)
{
    void (*const rule)(const struct kernel_call *, int, int, struct kernel_depends *) =
        call->op->pullback ? kernel_depends : kernel_depends_all;
    const int64_t n_in = call->in[i]->size;
    struct kernel_depends d = {0};
    rule(call, o, i, &d);
    if (d.width == 0)
        return true;
    if (!rooms(w, call, o, i, d.width + 1))
        return false;
    d.in = w->in;
    d.out = w->out;
    d.space = w->space;
    rule(call, o, i, &d);
    if (!groups_unite(w, sets, (uint32_t)n_in, (uint32_t)most_groups(call, o, i)))
        return false;
    for (int64_t k = 0; k < call->out[o]->size; k++) {
        uint32_t n = 1;
        w->pick[0] = result[k];
        for (int64_t j = 0; j < d.width; j++) {
            const int64_t g = w->out[k * d.width + j];
            if (g >= 0 && g < most_groups(call, o, i))
                w->pick[n++] = w->head[g];
        }
        if (!set_unite(&w->sets, w->pick, n, &result[k]))
            return false;
    }
    return true;
}

static bool no_memory(struct depends_walk *w)
{
    tape_fail_memory(w->t, w->s->site, w->s->what);
    return false;
}

static uint32_t *sets_of_value(struct depends_walk *w, uint32_t value)
{
    return w->of[value] =
               ad_scratch_get(&w->s->scratch, w->t->entries[value].array.size, sizeof **w->of);
}

/* The record as the call that made it; a record of no op has an op without a rule. */
static bool record_walk(struct depends_walk *w, struct tape_record *r)
{
    struct tape *t = w->t;
    const uint32_t *const in = tape_record_in(r), *const out = tape_record_out(r);
    kernel_ref operand[UINT8_MAX], *operands = operand;
    struct kernel_array *result[UINT8_MAX];
    if (r->op->constant)
        return true;
    if (r->n_in > UINT8_MAX)
        operands = ad_scratch_get(&w->s->scratch, r->n_in, sizeof *operands);
    if (!operands)
        return no_memory(w);
    for (int i = 0; i < r->n_in; i++)
        operands[i] = &t->entries[in[i]].array;
    for (int o = 0; o < r->n_out; o++)
        result[o] = &t->entries[out[o]].array;
    const struct kernel_call call = {.op = r->op,
                                     .in = operands,
                                     .out = result,
                                     .attr = tape_record_attr(r),
                                     .n_in = r->n_in,
                                     .n_out = r->n_out,
                                     .n_attr = r->n_attr};
    for (int o = 0; o < r->n_out; o++) {
        if (result[o]->dtype == KERNEL_I64)
            continue;
        for (int i = 0; i < r->n_in; i++)
            if (w->of[in[i]] && ((!w->of[out[o]] && !sets_of_value(w, out[o])) ||
                                 !operand_add(w, &call, o, i, w->of[in[i]], w->of[out[o]])))
                return no_memory(w);
    }
    return true;
}

/* A tensor of numbers: what it depends on is not told by its record. */
static bool record_refused(struct depends_walk *w, struct tape_record *r)
{
    struct tape *t = w->t;
    char where[160];
    if (r->n_in > 0 || r->n_out == 0 ||
        !(t->entries[tape_record_out(r)[0]].flags & TAPE_NEEDS_GRADIENT))
        return false;
    t->describe(tape_row_site(t, r->row), where, sizeof where);
    tape_fail(t, TAPE_ERROR_STATE, w->s->site,
              "%s: %s at %s makes a tensor of numbers, so that nobody knows on what its elements "
              "depend; the call is",
              w->s->what, tape_record_name(r), where);
    return true;
}

/* Offsets of the records since the isolation began, the oldest first. */
static uint32_t *records_list(struct ad_isolation *s, uint32_t *n)
{
    const struct tape *t = s->t;
    const uint32_t end = t->marks[s->level].last_record;
    *n = 0;
    for (uint32_t at = t->last_record; at != end; at = tape_record_at(t, at)->previous)
        ++*n;
    uint32_t *record = ad_scratch_get(&s->scratch, *n, sizeof *record);
    uint32_t k = *n;
    for (uint32_t at = t->last_record; at != end && record; at = tape_record_at(t, at)->previous)
        record[--k] = at;
    return record;
}

static bool leaves_number(struct depends_walk *w)
{
    uint32_t column = 0;
    for (int i = 0; i < w->s->n; i++) {
        const uint32_t value = w->s->leaf[i].value;
        uint32_t *sets = sets_of_value(w, value);
        for (int64_t k = 0; sets && k < w->t->entries[value].array.size; k++)
            sets[k] = ++column;
        if (!sets)
            return false;
    }
    return true;
}

static bool records_walk(struct depends_walk *w, int64_t variables)
{
    struct ad_isolation *s = w->s;
    uint32_t n;
    const uint32_t *const record = records_list(s, &n);
    w->of = ad_scratch_get(&s->scratch, w->t->n_values, sizeof *w->of);
    w->sets.mark = ad_scratch_get(&s->scratch, variables, sizeof *w->sets.mark);
    w->sets.extra = ad_scratch_get(&s->scratch, variables, sizeof *w->sets.extra);
    if (!record || !w->of || !w->sets.mark || !w->sets.extra || variables >= UINT32_MAX - 4 ||
        !sets_begin(&w->sets, (uint32_t)variables) || !leaves_number(w))
        return no_memory(w);
    for (uint32_t k = 0; k < n; k++) {
        struct tape_record *r = tape_record_at(w->t, record[k]);
        if (record_refused(w, r) || !record_walk(w, r))
            return false;
    }
    return true;
}

/* ---- the pattern ---- */

static void *pattern_take(const struct tape_memory *memory, int64_t n, size_t each)
{
    return memory->resize(NULL, (size_t)(n + 1) * each, memory->payload);
}

static bool pattern_make(struct depends_walk *w, const struct ad_depends_results *of,
                         struct tape_sparse *to)
{
    const struct depends_sets *sets = &w->sets;
    int64_t n = 0, row = 0;
    for (int i = 0; i < of->n; i++)
        for (int64_t k = 0; of->y[i] && w->of[of->y[i]] && k < of->size[i]; k++)
            n += set_size(sets, w->of[of->y[i]][k]);
    to->n_values = n;
    to->row_start = pattern_take(&to->memory, to->m, sizeof *to->row_start);
    to->column = pattern_take(&to->memory, n, sizeof *to->column);
    to->order = pattern_take(&to->memory, to->m, sizeof *to->order);
    to->group = pattern_take(&to->memory, to->m, sizeof *to->group);
    if (!to->row_start || !to->column || !to->order || !to->group)
        return no_memory(w);
    n = 0;
    to->row_start[0] = 0;
    for (int i = 0; i < of->n; i++)
        for (int64_t k = 0; k < of->size[i]; k++) {
            const uint32_t *const found = of->y[i] ? w->of[of->y[i]] : NULL;
            const uint32_t set = found ? found[k] : 0;
            for (uint32_t c = sets->start[set]; c < sets->start[set + 1]; c++)
                to->column[n++] = sets->column[c];
            to->row_start[++row] = n;
        }
    return ad_depends_colour(&w->s->scratch, of, to) || no_memory(w);
}

static void walk_free(struct depends_walk *w)
{
    void *const all[] = {w->sets.column, w->sets.start, w->head, w->next,
                         w->pick,        w->in,         w->out,  w->space};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k])
            w->t->memory->release(all[k], w->t->memory->payload);
}

ad_status ad_depends_find(struct ad_isolation *s, const struct ad_depends_results *of,
                          struct tape_sparse *to)
{
    struct depends_walk w = {.s = s, .t = s->t, .sets.memory = s->t->memory};
    int64_t m = 0, n = 0;
    for (int i = 0; i < of->n; i++)
        m += of->size[i];
    for (int i = 0; i < s->n; i++)
        n += s->t->entries[s->leaf[i].value].array.size;
    *to = (struct tape_sparse){.memory = *s->t->memory, .m = m, .n = n};
    to->hash = ad_depends_hash(s, of);
    const bool ok =
        m < UINT32_MAX ? records_walk(&w, n) && pattern_make(&w, of, to) : no_memory(&w);
    walk_free(&w);
    if (ok)
        return AD_OK;
    tape_sparse_free(to);
    return (ad_status)s->t->error.code;
}

/* ---- what a pattern is of ---- */

static uint64_t hash_array(uint64_t hash, const struct kernel_array *a)
{
    hash = tape_hash_mix(hash, (uint64_t)a->dtype << 8 | a->rank);
    return tape_hash_mix(hash, tape_guard_hash_bytes(a->shape, a->rank * sizeof *a->shape));
}

/* All words but for real numbers, of which no rule knows. */
static uint64_t hash_attributes(uint64_t hash, struct tape_record *r)
{
    for (int k = 0; k < r->n_attr; k++)
        if (k >= r->op->n_attrs || r->op->attrs[k].kind != KERNEL_ATTR_REAL)
            hash = tape_hash_mix(hash, (uint64_t)tape_record_attr(r)[k]);
    return hash;
}

/* A value's number since the isolation began; older ones: which leaf it is, or that it is none. */
static uint64_t hash_value(uint64_t hash, const struct ad_isolation *s, uint32_t value)
{
    const uint32_t older = s->t->marks[s->level].n_values;
    uint64_t number = value >= older ? value - older : UINT64_MAX;
    for (int i = 0; i < s->n && value < older; i++)
        if (s->leaf[i].value == value)
            number = UINT64_MAX - 1 - (uint64_t)i;
    return tape_hash_mix(hash, number);
}

static uint64_t hash_elements(uint64_t hash, const struct kernel_array *a)
{
    int64_t at[KERNEL_MAX_RANK] = {0}, from = 0;
    const size_t bytes = kernel_dtype_bytes(a->dtype);
    for (int64_t k = 0; k < a->size && a->data; k++) {
        uint64_t word = 0;
        memcpy(&word, (const char *)a->data + (size_t)from * bytes, bytes);
        hash = tape_hash_mix(hash, word);
        for (int axis = a->rank - 1; axis >= 0; axis--) {
            from += a->strides[axis];
            if (++at[axis] < a->shape[axis])
                break;
            from -= a->strides[axis] * a->shape[axis];
            at[axis] = 0;
        }
    }
    return hash;
}

uint64_t ad_depends_hash(struct ad_isolation *s, const struct ad_depends_results *of)
{
    const struct tape *t = s->t;
    const uint32_t end = t->marks[s->level].last_record;
    uint64_t hash = (uint64_t)of->n << 32 | (uint64_t)s->n;
    for (int i = 0; i < s->n; i++)
        hash = hash_array(hash, &t->entries[s->leaf[i].value].array);
    for (int i = 0; i < of->n; i++)
        hash = hash_value(tape_hash_mix(hash, (uint64_t)of->size[i]), s, of->y[i]);
    for (uint32_t at = t->last_record; at != end; at = tape_record_at(t, at)->previous) {
        struct tape_record *r = tape_record_at(t, at);
        const bool op = tape_record_kind(r) == &tape_op_kind;
        hash = tape_hash_mix(hash, (uint64_t)(uintptr_t)r->op);
        hash = tape_hash_mix(hash, (uint64_t)r->n_in << 32 | r->n_out);
        hash = op ? hash_attributes(hash, r) : hash;
        for (int i = 0; i < r->n_in + r->n_out; i++) {
            const uint32_t value = tape_record_in(r)[i];
            const struct kernel_array *a = &t->entries[value].array;
            hash = hash_array(hash_value(hash, s, value), a);
            if (i < r->n_in && op && i < 8 && (r->op->depends_reads >> i & 1))
                hash = hash_elements(hash, a);
        }
    }
    return hash;
}
