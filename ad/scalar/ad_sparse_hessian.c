/* ad_sparse_hessian.c: sparse Hessians of programs of numbers, by pushing second derivatives back
 * from the steps to the leaves.
 *
 * A walk from y back has for each number its adjoint, and for each pair of numbers of which a later
 * step depends on both in a curved way their second-order adjoint. A step replaces itself by its
 * operands in all pairs that it is in: R. M. Gower, M. P. Mello, A new framework for the
 * computation of Hessians, Optimization Methods and Software 27, 2012,
 * doi 10.1080/10556788.2011.580098 (algorithm edge_pushing). What is left in the end are pairs of
 * leaves.
 *
 * Invariant: a pair is kept once, by the number with the greater index. Whether there is one
 * depends on which functions are curved, never on values.
 */
#include "ad_sparse_pattern.h"

#include "ad_internal.h"
#include "ad_program_functions.h"

#include "tape_account.h"
#include "tape_program.h"
#include "tape_statement.h"
#include "tape_sweep.h"
#include "tape_value.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 8 }; /* pairs of a number that are looked through one by one */

struct hessian_pair {
    double value;
    uint32_t other, used; /* used: 0 in a gap of a table */
};

/* The pairs of a number: one behind the other, or, if they are more than FEW, a table by `other`,
 * of which less than half is used. */
struct hessian_pairs {
    struct hessian_pair *at;
    uint32_t n, size; /* a power of two */
};

struct hessian_entry {
    uint32_t row, column;
    double value;
};

struct hessian_walk {
    struct tape *t;
    const struct tape_program *p;
    const struct program_loops *loops;
    uint32_t y, end; /* its index, and one more than it */
    int64_t n;
    const uint32_t *x;
    uint32_t *pairs_of; /* [end]: 1 + which of `pairs` a number has; 0: none */
    uint32_t *column;   /* [end]: 1 + of a leaf; 0: of none */
    double *adjoint;    /* [end] */
    uint8_t *active;    /* [end]: depends on x */
    uint8_t *reached;   /* [end]: y depends on it */
    struct hessian_pairs *pairs;
    uint32_t n_pairs, pairs_size;
    uint32_t *free; /* those of `pairs` that nobody has */
    uint32_t n_free, free_size;
    struct hessian_entry *entry; /* both triangles */
    uint64_t n_entries, entries_size;
    /* What is to be filled: a pattern, or values of one. */
    struct tape_sparse *find;
    const struct tape_sparse *kept;
    double *values;
};

/* ---- pairs ---- */

static uint32_t pair_place(const struct hessian_pairs *l, uint32_t other)
{
    const uint32_t mask = l->size - 1;
    if (l->size <= FEW) {
        uint32_t k = 0;
        while (k < l->n && l->at[k].other != other)
            k++;
        return k;
    }
    uint32_t k = (other * UINT32_C(2654435769)) >> 7 & mask;
    while (l->at[k].used && l->at[k].other != other)
        k = (k + 1) & mask;
    return k;
}

static bool pairs_grow(const struct tape_memory *memory, struct hessian_pairs *l)
{
    const struct hessian_pairs old = *l;
    const uint32_t size = old.size ? old.size * (old.size == FEW ? 4 : 2) : FEW;
    if (size < old.size || size > UINT32_C(1) << 30)
        return false;
    struct hessian_pair *at = memory->resize(NULL, size * sizeof *at, memory->payload);
    if (!at)
        return false;
    memset(at, 0, size * sizeof *at);
    l->at = at;
    l->size = size;
    for (uint32_t k = 0; k < old.size; k++)
        if (old.at[k].used)
            at[pair_place(l, old.at[k].other)] = old.at[k];
    if (old.at)
        memory->release(old.at, memory->payload);
    return true;
}

/* The pairs of a number, which it has from now on. NULL: there is no memory. */
static struct hessian_pairs *pairs_of(struct hessian_walk *w, uint32_t index)
{
    if (w->pairs_of[index])
        return &w->pairs[w->pairs_of[index] - 1];
    uint32_t k;
    if (w->n_free > 0)
        k = w->free[--w->n_free];
    else {
        struct hessian_pairs *more = tape_array_reserve(w->t->memory, w->pairs, w->n_pairs + 1,
                                                        &w->pairs_size, sizeof *more);
        if (!more)
            return NULL;
        w->pairs = more;
        k = w->n_pairs;
        w->pairs[w->n_pairs++] = (struct hessian_pairs){0};
    }
    w->pairs_of[index] = k + 1;
    return &w->pairs[k];
}

/* Adds to the pair of a and b, which is there from now on. */
static bool pair_add(struct hessian_walk *w, uint32_t a, uint32_t b, double value)
{
    const uint32_t high = a > b ? a : b, low = a > b ? b : a;
    struct hessian_pairs *l = pairs_of(w, high);
    if (!l)
        return false;
    uint32_t k = l->size ? pair_place(l, low) : 0;
    if (k == l->size || !l->at[k].used) {
        const bool full = l->size <= FEW ? l->n == l->size : 2 * (l->n + 1) > l->size;
        if (full && !pairs_grow(w->t->memory, l))
            return false;
        k = pair_place(l, low);
        l->at[k] = (struct hessian_pair){0, low, 1};
        l->n++;
    }
    l->at[k].value += value;
    return true;
}

/* The number has its pairs no more, and others may use their memory. */
static bool pairs_release(struct hessian_walk *w, uint32_t index)
{
    uint32_t *more =
        tape_array_reserve(w->t->memory, w->free, w->n_free + 1, &w->free_size, sizeof *more);
    if (!more)
        return false;
    w->free = more;
    struct hessian_pairs *l = &w->pairs[w->pairs_of[index] - 1];
    if (l->n > 0)
        memset(l->at, 0, l->size * sizeof *l->at);
    l->n = 0;
    w->free[w->n_free++] = w->pairs_of[index] - 1;
    w->pairs_of[index] = 0;
    return true;
}

/* ---- functions ---- */

/* How the tables write second derivatives: xx, xy and yy. */
static const char *const curve_text[][3] = {
#define ROW(name, ...) [AD_PROGRAM_##name##_] = {__VA_ARGS__},
#define ROW1(name, v, dx, dxx) ROW(name, #dxx, "0", "0")
#define ROW2(name, v, dx, dy, dxx, dxy, dyy) ROW(name, #dxx, #dxy, #dyy)
    AD_REAL_FUNCTIONS_(ROW1) AD_REAL_FUNCTIONS2_(ROW2) ROW(ldexp, "0", "0", "0")
        ROW(jn, "", "0", "0") ROW(yn, "", "0", "0") ROW(modf, "0", "0", "0")
            ROW(frexp, "0", "0", "0") ROW(remquo, "0", "0", "0") ROW(fma, "0", "", "0")
#undef ROW
#undef ROW1
#undef ROW2
};

/* Which of them can be other than 0 at some values: bits 0 to 2. */
static unsigned bends_of(const struct tape_step *s)
{
    unsigned bends = 0;
    for (unsigned k = 0; k < 3; k++)
        bends |= strcmp(curve_text[s->op][k], "0") != 0 ? 1u << k : 0;
    return bends;
}

static void slopes_of(const struct hessian_walk *w, const struct tape_step *s,
                      double slope[TAPE_STEP_OPERANDS], double curve[3])
{
    const struct program_function *f = &w->loops->function[s->op];
    const double *of[OF_ALL] = {NULL, NULL, NULL, &s->constant[TAPE_STEP_CONSTANTS - 1]};
    double *const d[] = {&slope[0], &slope[1], &slope[2]}, *const dd[] = {&curve[0], &curve[1],
                                                                          &curve[2]};
    unsigned constants = 0;
    for (unsigned k = 0; k < f->arity; k++)
        of[k] = s->operand[k] ? &tape_program_step(w->p, s->operand[k])->value
                              : &s->constant[constants++];
    f->slopes(1, of, &s->value, d);
    if (f->curves)
        f->curves(1, of, &s->value, d, dd);
}

/* ---- the walk ---- */

/* What is 0 gives 0, whatever the derivative. */
static double scaled(double x, double d)
{
    return x == 0 ? 0 : x * d;
}

/* A step that is under way: its operands that depend on x, and its derivatives by them. */
struct hessian_step {
    uint32_t n, operand[TAPE_STEP_OPERANDS];
    double slope[TAPE_STEP_OPERANDS];
};

/* The pairs that the step's own curvature makes: of all ordered pairs of operands those with the
 * greater index first. An operand that is named twice is a pair with itself each time. */
static bool curves_add(struct hessian_walk *w, const struct tape_step *s, const double curve[3],
                       double adjoint)
{
    const unsigned bends = bends_of(s);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t l = 0; l < 2; l++) {
            const uint32_t a = s->operand[k], b = s->operand[l];
            if (bends >> (k + l) & 1 && a >= b && b && w->active[a] && w->active[b] &&
                !pair_add(w, a, b, scaled(adjoint, curve[k + l])))
                return false;
        }
    return true;
}

/* A pair of step i with itself: its operands are in its place, each with each. */
static bool square_push(struct hessian_walk *w, const struct hessian_step *s, double value)
{
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t l = 0; l < s->n; l++)
            if (s->operand[k] >= s->operand[l] &&
                !pair_add(w, s->operand[k], s->operand[l],
                          scaled(scaled(value, s->slope[k]), s->slope[l])))
                return false;
    return true;
}

static bool pairs_push(struct hessian_walk *w, uint32_t i, const struct hessian_step *s)
{
    const struct hessian_pairs l = w->pairs[w->pairs_of[i] - 1]; /* nothing is added to it */
    const uint32_t size = l.size <= FEW ? l.n : l.size;
    for (uint32_t at = 0; at < size; at++) {
        const struct hessian_pair pair = l.at[at];
        if (!pair.used)
            continue;
        bool ok = true;
        if (pair.other == i)
            ok = square_push(w, s, pair.value);
        for (uint32_t k = 0; k < s->n && pair.other != i && ok; k++) {
            const double value = scaled(pair.value, s->slope[k]);
            ok = pair_add(w, s->operand[k], pair.other,
                          s->operand[k] == pair.other ? 2 * value : value);
        }
        if (!ok)
            return false;
    }
    return pairs_release(w, i);
}

static bool steps_walk(struct hessian_walk *w)
{
    for (uint32_t i = w->end; i-- > w->p->first;) {
        const struct tape_step *s = w->reached[i] ? tape_program_find(w->p, i) : NULL;
        if (!s || !s->op)
            continue;
        double slope[TAPE_STEP_OPERANDS] = {0, 0, 0}, curve[3] = {0, 0, 0};
        struct hessian_step step = {0};
        slopes_of(w, s, slope, curve);
        for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++) {
            const uint32_t to = s->operand[k];
            if (!to || !w->active[to])
                continue;
            step.operand[step.n] = to;
            step.slope[step.n++] = slope[k];
            w->reached[to] = 1;
            w->adjoint[to] += scaled(w->adjoint[i], slope[k]);
        }
        if ((w->pairs_of[i] && !pairs_push(w, i, &step)) || !curves_add(w, s, curve, w->adjoint[i]))
            return false;
    }
    return true;
}

static void active_find(struct hessian_walk *w)
{
    for (int64_t k = 0; k < w->n; k++)
        if (w->x[k] < w->end)
            w->active[w->x[k]] = 1;
    for (uint32_t i = w->p->first; i < w->end; i++) {
        const struct tape_step *s = tape_program_find(w->p, i);
        for (uint32_t k = 0; s && s->op && k < TAPE_STEP_OPERANDS; k++)
            w->active[i] |= s->operand[k] && w->active[s->operand[k]];
    }
}

/* ---- what is left ---- */

static void entry_add(struct hessian_walk *w, uint32_t row, uint32_t column, double value)
{
    w->entry[w->n_entries++] = (struct hessian_entry){row, column, value};
}

/* Both triangles, in any order. */
static bool entries_find(struct hessian_walk *w)
{
    uint64_t most = 0;
    for (int64_t i = 0; i < w->n; i++)
        if (w->x[i] < w->end && w->pairs_of[w->x[i]])
            most += 2 * (uint64_t)w->pairs[w->pairs_of[w->x[i]] - 1].n;
    w->entry = w->t->memory->resize(NULL, (most + 1) * sizeof *w->entry, w->t->memory->payload);
    if (!w->entry)
        return false;
    for (int64_t i = 0; i < w->n; i++) {
        if (w->x[i] >= w->end || !w->pairs_of[w->x[i]])
            continue;
        const struct hessian_pairs *l = &w->pairs[w->pairs_of[w->x[i]] - 1];
        for (uint32_t k = 0; k < l->size; k++) {
            if (!l->at[k].used)
                continue;
            const uint32_t j = w->column[l->at[k].other] - 1;
            entry_add(w, (uint32_t)i, j, l->at[k].value);
            if (j != (uint32_t)i)
                entry_add(w, j, (uint32_t)i, l->at[k].value);
        }
    }
    return true;
}

static int columns_compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static bool pattern_make(struct hessian_walk *w)
{
    struct tape_sparse *s = w->find;
    const struct tape_memory *memory = &s->memory;
    s->n_values = (int64_t)w->n_entries;
    s->row_start = memory->resize(NULL, (size_t)(s->m + 2) * sizeof *s->row_start, memory->payload);
    s->column = memory->resize(NULL, (w->n_entries + 1) * sizeof *s->column, memory->payload);
    if (!s->row_start || !s->column) {
        tape_sparse_free(s);
        return false;
    }
    /* Counted one place further, so that filling moves each start to where it belongs. */
    memset(s->row_start, 0, (size_t)(s->m + 2) * sizeof *s->row_start);
    int64_t *start = s->row_start + 1;
    for (uint64_t e = 0; e < w->n_entries; e++)
        start[w->entry[e].row + 1]++;
    for (int64_t i = 0; i < s->m; i++)
        start[i + 1] += start[i];
    for (uint64_t e = 0; e < w->n_entries; e++)
        s->column[start[w->entry[e].row]++] = w->entry[e].column;
    for (int64_t i = 0; i < s->m; i++)
        qsort(s->column + s->row_start[i], (size_t)(s->row_start[i + 1] - s->row_start[i]),
              sizeof *s->column, columns_compare);
    return true;
}

static bool values_fill(struct hessian_walk *w, struct tape_site site)
{
    const struct tape_sparse *s = w->kept;
    for (int64_t e = 0; e < s->n_values; e++)
        w->values[e] = 0;
    for (uint64_t e = 0; e < w->n_entries; e++) {
        const struct hessian_entry *of = &w->entry[e];
        int64_t low = s->row_start[of->row], end = s->row_start[of->row + 1], high = end;
        while (low < high) { /* the first that is not less */
            const int64_t middle = low + (high - low) / 2;
            if (s->column[middle] < of->column)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == end || s->column[low] != of->column) {
            tape_fail(w->t, TAPE_ERROR_STATE, site,
                      "real_hessian_sparse: y depends on x[%lu] times x[%lu], which the pattern "
                      "does not have: it was found for another recording",
                      (unsigned long)of->row, (unsigned long)of->column);
            return false;
        }
        w->values[low] = of->value;
    }
    return true;
}

/* ---- the calls ---- */

/* Arrays of the walk, which lie in one piece. */
static bool walk_room(struct hessian_walk *w, char *room)
{
    const size_t end = w->end;
    memset(room, 0, end * (sizeof(double) + 2 * sizeof(uint32_t) + 2));
    w->adjoint = (double *)(void *)room;
    w->pairs_of = (uint32_t *)(void *)(w->adjoint + end);
    w->column = w->pairs_of + end;
    w->active = (uint8_t *)(w->column + end);
    w->reached = w->active + end;
    return true;
}

/* Notes the columns. Each number is there once, else the tape's error. */
static bool columns_note_once(struct hessian_walk *w, const char *what, struct tape_site site)
{
    for (int64_t i = 0; i < w->n; i++) {
        uint32_t *column = w->x[i] < w->end ? &w->column[w->x[i]] : NULL;
        if (column && *column) {
            tape_fail(w->t, TAPE_ERROR_ARGUMENT, site, "%s: x[%lld] is x[%lu] too", what,
                      (long long)i, (unsigned long)*column - 1);
            return false;
        }
        if (column)
            *column = (uint32_t)i + 1;
    }
    return true;
}

static void walk_free(struct hessian_walk *w)
{
    const struct tape_memory *memory = w->t->memory;
    for (uint32_t k = 0; k < w->n_pairs; k++)
        if (w->pairs[k].at)
            memory->release(w->pairs[k].at, memory->payload);
    void *const all[] = {w->pairs, w->free, w->entry};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k])
            memory->release(all[k], memory->payload);
}

static bool sweep_hessian(struct tape *t, struct tape_sweep *sweep)
{
    struct hessian_walk *w = sweep->of;
    const uint64_t bytes = (uint64_t)w->end * (sizeof(double) + 2 * sizeof(uint32_t) + 2);
    char *room = tape_arena_buffer(&t->arena, bytes);
    if (!room)
        return false;
    tape_account_buffer(t, sweep->own, bytes);
    walk_room(w, room);
    bool ok = columns_note_once(w, sweep->what, sweep->site);
    if (ok) {
        tape_program_slopes(t); /* values of steps are those of the newest replay, too */
        w->loops = ad_program_loops();
        active_find(w);
        w->reached[w->y] = w->y != 0;
        w->adjoint[w->y] = 1;
        ok = steps_walk(w) && entries_find(w);
    }
    if (ok)
        ok = w->find ? pattern_make(w) : values_fill(w, sweep->site);
    walk_free(w);
    tape_arena_free(&t->arena, room, bytes);
    tape_account_free(t, sweep->own, bytes);
    return ok;
}

/* x are leaves, y is a step of the tape's program, a leaf or a constant. */
static ad_status program_check(struct tape *t, const char *what, uint32_t y, int64_t n,
                               const uint32_t *x, struct tape_site site)
{
    uint32_t value, element;
    if (!t->program->whole)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "%s: the tape has no program: ad_tape_program_begin and _end "
                                    "come first",
                                    what);
    for (int64_t i = 0; i < n; i++)
        if (!x[i] || !tape_statement_leaf(t, x[i], &value, &element))
            return (ad_status)tape_fail(t, TAPE_ERROR_HANDLE, site, "%s: x[%lld] is %s", what,
                                        (long long)i, x[i] ? "no leaf" : "a constant");
    const struct tape_step *s = y ? tape_program_find(t->program, y) : NULL;
    if (y && !(s && s->op) && !tape_statement_leaf(t, y, &value, &element))
        return (ad_status)tape_fail(t, TAPE_ERROR_HANDLE, site,
                                    "%s: y is neither a step of the program nor a leaf", what);
    return AD_OK;
}

/* Finds a pattern, or fills values of one. */
static ad_status hessian_run(struct tape *t, const char *what, ad_real y, int64_t n,
                             const ad_real *x, struct hessian_walk *w, struct tape_site site)
{
    ad_status status;
    uint32_t *index = ad_sparse_numbers(t, what, 1, &y, n, x, site, &status);
    if (!index)
        return status;
    status = program_check(t, what, y.index, n, index + 1, site);
    if (status == AD_OK) {
        w->t = t;
        w->p = t->program;
        w->y = y.index;
        w->end = y.index + 1;
        w->n = n;
        w->x = index + 1;
        status = (ad_status)tape_sweep_drive(
            t, &(struct tape_sweep){.run = sweep_hessian, .what = what, .site = site, .of = w});
    }
    t->memory->release(index, t->memory->payload);
    return status;
}

static ad_status hessian_pattern(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                 ad_sparse_pattern *pattern, struct tape_site site)
{
    static const char what[] = "real_hessian_pattern";
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (!pattern)
        return ad_sparse_refuse(t, what, site, "pattern is a null pointer");
    struct sparse_own *own = t->memory->resize(NULL, sizeof *own, t->memory->payload);
    if (!own)
        return (ad_status)tape_fail_memory(t, site, what);
    *own = (struct sparse_own){.sparse = {.memory = *t->memory, .m = n, .n = n},
                               .kind = SPARSE_HESSIAN};
    struct hessian_walk w = {.find = &own->sparse};
    status = hessian_run(t, what, y, n, x, &w, site);
    if (status == AD_OK)
        ad_sparse_give(t, site, pattern, own);
    else
        t->memory->release(own, t->memory->payload);
    return status;
}

ad_status ad_real_hessian_pattern_site(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                       ad_sparse_pattern *pattern, unsigned ad_line_)
{
    if (pattern)
        *pattern = (ad_sparse_pattern){0};
    return hessian_pattern(tape, y, n, x, pattern, AD_HERE);
}

static ad_status hessian_values(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                const ad_sparse_pattern *pattern, double *values,
                                struct tape_site site)
{
    static const char what[] = "real_hessian_sparse";
    ad_status status;
    struct tape *t = ad_real_enter(tape, what, site, &status);
    if (!t)
        return status;
    status = ad_sparse_check(t, what, n, n, pattern, SPARSE_HESSIAN, values, site);
    if (status != AD_OK)
        return status;
    const struct sparse_own *own = pattern->own_;
    struct hessian_walk w = {.kept = &own->sparse, .values = values};
    return hessian_run(t, what, y, n, x, &w, site);
}

ad_status ad_real_hessian_sparse_site(ad_tape tape, ad_real y, int64_t n, const ad_real *x,
                                      const ad_sparse_pattern *pattern, double *values,
                                      unsigned ad_line_)
{
    const ad_status status = hessian_values(tape, y, n, x, pattern, values, AD_HERE);
    if (status != AD_OK)
        ad_sparse_spoil(pattern, values);
    return status;
}
