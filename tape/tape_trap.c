/* tape_trap.c: see tape_trap.h.
 *
 * May include: tape_trap.h, tape_statement_sweep.h.
 */
#include "tape_trap.h"

#include "tape_statement_sweep.h"

#include <math.h>
#include <stdio.h>

enum { PLACE_BYTES = 160 };

static inline bool trapped(int trap, double x)
{
    return __builtin_expect(!isfinite(x), 0) &&
           (trap & (isnan(x) ? TAPE_TRAP_NAN : TAPE_TRAP_INF)) != 0;
}

/* As messages have it: a NaN's sign says nothing. */
static double shown(double x)
{
    return isnan(x) ? fabs(x) : x;
}

void tape_trap_set(struct tape *t, int trap)
{
    tape_statement_settle(t);
    t->trap = trap;
}

/* ---- arrays ---- */

static double element(kernel_ref a, int64_t at)
{
    return a->dtype == KERNEL_F32 ? (double)((const float *)a->data)[at]
                                  : ((const double *)a->data)[at];
}

/* Where element i, in row-major order, lies. */
static int64_t offset_of(kernel_ref a, int64_t i)
{
    int64_t at = 0;
    for (int d = a->rank - 1; d >= 0; d--) {
        at += i % a->shape[d] * a->strides[d];
        i /= a->shape[d];
    }
    return at;
}

/* Whether n numbers in a row are all finite: without a branch an element. */
#define ALL_FINITE(type)                                                                           \
    static bool all_finite_##type(const type *x, int64_t n)                                        \
    {                                                                                              \
        int odd = 0;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            odd |= !isfinite(x[i]);                                                                \
        return !odd;                                                                               \
    }
ALL_FINITE(float)
ALL_FINITE(double)

/* The first element that is trapped, row-major, or -1. */
static int64_t first_trapped(int trap, kernel_ref a)
{
    if (a->dtype == KERNEL_I64 || !a->data)
        return -1;
    if (a->contiguous && (a->dtype == KERNEL_F32 ? all_finite_float(a->data, a->size)
                                                 : all_finite_double(a->data, a->size)))
        return -1;
    for (int64_t i = 0; i < a->size; i++)
        if (trapped(trap, element(a, a->contiguous ? i : offset_of(a, i))))
            return i;
    return -1;
}

/* Writes "value -inf of element [0,3]". */
static const char *describe(const char *what, kernel_ref a, int64_t i, char *text)
{
    int64_t extent[KERNEL_MAX_RANK] = {0}, rest = i;
    for (int d = a->rank - 1; d >= 0; d--) {
        extent[d] = rest % a->shape[d];
        rest /= a->shape[d];
    }
    int n = snprintf(text, PLACE_BYTES, "%s %g", what,
                     shown(element(a, a->contiguous ? i : offset_of(a, i))));
    for (int d = 0; d < a->rank; d++)
        n += snprintf(text + n, (size_t)(PLACE_BYTES - n), "%s%lld", d ? "," : " of element [",
                      (long long)extent[d]);
    if (a->rank > 0)
        snprintf(text + n, (size_t)(PLACE_BYTES - n), "]");
    return text;
}

/* The record that made a value, at or before *at, which it becomes; NULL: none, as it is a leaf, a
 * constant, or was not recorded. */
static struct tape_record *maker(const struct tape *t, uint32_t value, uint32_t *at)
{
    while (*at != UINT32_MAX) {
        struct tape_record *r = tape_record_at(t, *at);
        const uint32_t *out = tape_record_out(r);
        if (r->n_out > 0 && value >= out[0] && value - out[0] < r->n_out)
            return r;
        *at = r->previous;
    }
    return NULL;
}

/* A value with a trapped element, of which it is element *i: goes back to the value in which that
 * arose, as far as operands are still there. */
static uint32_t trace(const struct tape *t, uint32_t value, int64_t *i)
{
    uint32_t at = t->last_record;
    for (struct tape_record *r; (r = maker(t, value, &at)) != NULL;) {
        int k = 0;
        int64_t found = -1;
        for (; k < r->n_in && found < 0; k++)
            found = first_trapped(t->trap, &t->entries[tape_record_in(r)[k]].array);
        if (found < 0)
            break;
        value = tape_record_in(r)[k - 1];
        *i = found;
    }
    return value;
}

/* An operand of an op is trapped at element i: the error is at the line where that arose. */
static enum tape_status fail_operand(struct tape *t, const char *op, int k, uint32_t value,
                                     int64_t i, struct tape_site site)
{
    char text[PLACE_BYTES], place[PLACE_BYTES];
    value = trace(t, value, &i);
    const struct tape_value *v = &t->entries[value];
    t->describe(site, place, sizeof place);
    return tape_fail(t, TAPE_ERROR_NONFINITE, tape_row_site(t, v->row),
                     "%s: %s (seen in operand %d of %s at %s)", tape_row(t, v->row)->op,
                     describe("value", &v->array, i, text), k + 1, op, place);
}

enum tape_status tape_trap_operands(struct tape *t, const char *op, int n_in, const uint32_t *in,
                                    struct tape_site site)
{
    tape_statement_settle(t);
    if (t->error.code != TAPE_OK)
        return t->error.code;
    for (int k = 0; k < n_in; k++) {
        const struct tape_value *v = &t->entries[in[k]];
        if (t->entries[v->root].flags & TAPE_OWNS_DATA)
            continue;
        const int64_t i = first_trapped(t->trap, &v->array);
        if (i >= 0)
            return fail_operand(t, op, k, in[k], i, site);
    }
    return TAPE_OK;
}

enum tape_status tape_trap_results(struct tape *t, const struct kernel_op *op, int n_in,
                                   const uint32_t *in, uint32_t first_out, struct tape_site site)
{
    char text[PLACE_BYTES], result[32] = "";
    for (int o = 0; o < op->n_out; o++) {
        kernel_ref a = &t->entries[first_out + (uint32_t)o].array;
        const int64_t i = first_trapped(t->trap, a);
        if (i < 0)
            continue;
        for (int k = 0; k < n_in; k++) {
            const int64_t before = first_trapped(t->trap, &t->entries[in[k]].array);
            if (before >= 0)
                return fail_operand(t, op->name, k, in[k], before, site);
        }
        if (op->n_out > 1)
            snprintf(result, sizeof result, " of result %d", o + 1);
        return tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: %s%s", op->name,
                         describe("value", a, i, text), result);
    }
    return TAPE_OK;
}

/* ---- statements ---- */

enum tape_status tape_trap_numbers(struct tape *t, const char *what, const char *name, int64_t n,
                                   const double *values, struct tape_site site)
{
    for (int64_t i = 0; i < n; i++) {
        char which[48] = "";
        if (!trapped(t->trap, values[i]))
            continue;
        if (name)
            snprintf(which, sizeof which, " of %s[%lld]", name, (long long)i);
        return tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: value %g%s", what, shown(values[i]),
                         which);
    }
    return TAPE_OK;
}

void tape_trap_statement(struct tape *t, double value, struct tape_site site)
{
    tape_statement_settle(t);
    if (trapped(t->trap, value))
        tape_fail(t, TAPE_ERROR_NONFINITE, site, "statement: value %g", shown(value));
}

static struct tape_site site_of(const struct tape *t, const struct tape_run *run,
                                const uint32_t *word)
{
    return (struct tape_site){t->locate(word[1], run->near), 0};
}

bool tape_trap_result(struct tape *t, const char *what, int64_t i, double value,
                      struct tape_site site)
{
    if (!trapped(t->trap, value))
        return true;
    tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: value %g of result %lld", what, shown(value),
              (long long)i);
    return false;
}

/* While a tape looks a run has one statement, or one segment, whose values have been looked at. */
void tape_trap_run(struct tape *t, const struct tape_run *run)
{
    if (run->segment)
        return;
    const double *p = run->partial_end;
    const uint32_t *first = NULL; /* in time, and so the last that the walk comes to */
    uint32_t operand = 0;
    double partial = 0;
    for (const uint32_t *w = run->word_end; w < run->word_begin; w += w[0] + 2) {
        p -= w[0];
        for (uint32_t k = w[0]; k-- > 0;) {
            if (!trapped(t->trap, p[k]))
                continue;
            first = w;
            operand = k;
            partial = p[k];
        }
    }
    if (first)
        tape_fail(t, TAPE_ERROR_NONFINITE, site_of(t, run, first),
                  "statement: partial derivative %g by operand %u", shown(partial), operand + 1);
}

/* ---- sweeps ---- */

static bool holds_gradient(const struct tape *t, const struct tape_value *v)
{
    return (v->flags & TAPE_LEAF) && v->adjoint && tape_has_adjoint(t, v);
}

/* The adjoint as an array: it is row-major, whatever the value is. */
static int64_t first_of_adjoint(const struct tape *t, const struct tape_value *v,
                                struct kernel_array *a)
{
    *a = v->array;
    a->data = v->adjoint;
    a->contiguous = true;
    return first_trapped(t->trap, a);
}

enum tape_status tape_trap_begin(struct tape *t, uint32_t seed, const char *what,
                                 struct tape_site site)
{
    char text[PLACE_BYTES];
    struct kernel_array a;
    if (t->error.code != TAPE_OK)
        return t->error.code;
    int64_t i = seed ? first_trapped(t->trap, &t->entries[seed].array) : -1;
    if (i >= 0)
        return tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: %s", what,
                         describe("seed", &t->entries[seed].array, i, text));
    for (uint32_t k = 1; k < t->n_values; k++) {
        const struct tape_value *v = &t->entries[k];
        if (!holds_gradient(t, v) || (v->flags & TAPE_USER_GRADIENT))
            continue;
        i = first_of_adjoint(t, v, &a);
        if (i >= 0)
            return tape_fail(t, TAPE_ERROR_NONFINITE, tape_row_site(t, v->row),
                             "%s: %s, from an earlier sweep, of the leaf", what,
                             describe("gradient", &a, i, text));
    }
    return TAPE_OK;
}

bool tape_trap_adjoints(struct tape *t, struct tape_record *r)
{
    char text[PLACE_BYTES], name[64] = "";
    struct kernel_array a;
    for (int k = 0; k < r->n_in; k++) {
        const struct tape_value *v = &t->entries[tape_record_in(r)[k]];
        if (!(v->flags & TAPE_NEEDS_GRADIENT) || !v->adjoint || !tape_has_adjoint(t, v))
            continue;
        const int64_t i = first_of_adjoint(t, v, &a);
        if (i < 0)
            continue;
        if (r->op->in_names)
            snprintf(name, sizeof name, " (%s)", kernel_in_name(r->op, k));
        tape_fail(t, TAPE_ERROR_NONFINITE, tape_row_site(t, r->row),
                  "%s: %s of operand %d%s, backward,", r->op->name,
                  describe("adjoint", &a, i, text), k + 1, name);
        return false;
    }
    return true;
}

/* Of a statement whose pullback has just run: y is its result's adjoint in the lane. */
static bool look(struct tape *t, const struct tape_run *one, const double *adjoint, uint32_t width)
{
    const uint32_t n = one->word_end[0], *index = one->word_end + 2;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t lane = 0; lane < width; lane++) {
            const double x = adjoint[(size_t)index[k] * width + lane];
            if (!trapped(t->trap, x))
                continue;
            tape_fail(t, TAPE_ERROR_NONFINITE, site_of(t, one, one->word_end),
                      "statement: adjoint %g of operand %u, whose partial derivative is %g, from "
                      "adjoint %g, backward,",
                      shown(x), k + 1, shown(one->partial_begin[k]),
                      adjoint[(size_t)one->first * width + lane]);
            return false;
        }
    return true;
}

bool tape_trap_pullback(struct tape *t, const struct tape_run *run, double *adjoint, uint32_t width)
{
    const double *p = run->partial_end;
    uint32_t result = run->first + run->n;
    for (const uint32_t *w = run->word_end; w < run->word_begin; w += w[0] + 2) {
        const struct tape_run one = {.partial_begin = p - w[0],
                                     .partial_end = p,
                                     .word_begin = w + w[0] + 2,
                                     .word_end = w,
                                     .near = run->near,
                                     .first = --result,
                                     .n = 1};
        tape_run_pullback(&one, adjoint, width, t->now);
        if (!look(t, &one, adjoint, width))
            return false;
        p -= w[0];
    }
    return true;
}

/* Element i of an operand, with this index. */
static bool look_at(struct tape *t, const struct tape_run *run, const struct tape_segment *s,
                    const double *at, uint32_t width, int operand, uint32_t i)
{
    for (uint32_t lane = 0; lane < width; lane++) {
        if (!trapped(t->trap, at[lane]))
            continue;
        const struct tape_site site = {t->locate(s->site, run->near), tape_segment_line(s)};
        tape_fail(
            t, TAPE_ERROR_NONFINITE, site, "%s: adjoint %g of element %u of operand %d, backward,",
            tape_segment_name(s, run->partial_begin + s->at), shown(at[lane]), i, operand + 1);
        return false;
    }
    return true;
}

bool tape_trap_segment(struct tape *t, const struct tape_run *run, const struct tape_segment *s,
                       const double *adjoint, uint32_t width)
{
    const int n_in = (int)tape_segment_n_in(s);
    const struct tape_segment_in *in = tape_segment_in(s);
    const uint32_t *index = (const uint32_t *)(const void *)(in + n_in);
    for (int k = 0; k < n_in; k++, in++) {
        if (in->first == TAPE_NO_INDICES)
            continue;
        const bool follow = in->first == TAPE_INDICES_FOLLOW;
        for (uint32_t i = 0; i < in->n; i++) {
            const size_t of = follow ? index[i] : in->first + i;
            if (!look_at(t, run, s, adjoint + of * width, width, k, i))
                return false;
        }
        index += follow ? in->n : 0;
    }
    return true;
}
