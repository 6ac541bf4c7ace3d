/* tape_nonfinite.c: see tape_nonfinite.h. */
#include "tape_nonfinite.h"
#include "plain_format.h"

#include "tape_kind.h"
#include "tape_part.h"

#include <math.h>
#include <stdio.h>

enum { PLACE_BYTES = 160 };

void tape_nonfinite_set(struct tape *t, int of, int trap)
{
    tape_settle(t);
    t->nonfinite = (t->nonfinite & ~of) | trap;
}

/* ---- arrays ---- */

static double array_element(kernel_ref a, int64_t at)
{
    return a->dtype == KERNEL_F32 ? (double)((const float *)a->data)[at]
                                  : ((const double *)a->data)[at];
}

/* Where element i, in row-major order, lies. */
static int64_t element_offset(kernel_ref a, int64_t i)
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
static int64_t first_refused(int what, kernel_ref a)
{
    if (a->dtype == KERNEL_I64 || !a->data)
        return -1;
    if (a->contiguous && (a->dtype == KERNEL_F32 ? all_finite_float(a->data, a->size)
                                                 : all_finite_double(a->data, a->size)))
        return -1;
    for (int64_t i = 0; i < a->size; i++)
        if (tape_nonfinite_is(what, array_element(a, a->contiguous ? i : element_offset(a, i))))
            return i;
    return -1;
}

/* Writes "value -inf of element [0,3]". */
static const char *element_describe(const char *what, kernel_ref a, int64_t i, char *text)
{
    int64_t extent[KERNEL_MAX_RANK] = {0}, rest = i;
    for (int d = a->rank - 1; d >= 0; d--) {
        extent[d] = rest % a->shape[d];
        rest /= a->shape[d];
    }
    int n = plain_format(
        text, PLACE_BYTES, "%s %g", what,
        tape_nonfinite_shown(array_element(a, a->contiguous ? i : element_offset(a, i))));
    for (int d = 0; d < a->rank; d++)
        n += snprintf(text + n, (size_t)(PLACE_BYTES - n), "%s%lld", d ? "," : " of element [",
                      (long long)extent[d]);
    if (a->rank > 0)
        snprintf(text + n, (size_t)(PLACE_BYTES - n), "]");
    return text;
}

/* The record that made a value, at or before *at, which it becomes; NULL: none, as it is a leaf, a
 * constant, or was not recorded. */
static struct tape_record *value_maker(const struct tape *t, uint32_t value, uint32_t *at)
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
static uint32_t value_trace(const struct tape *t, uint32_t value, int64_t *i)
{
    uint32_t at = t->last_record;
    for (struct tape_record *r; (r = value_maker(t, value, &at)) != NULL;) {
        int k = 0;
        int64_t found = -1;
        for (; k < r->n_in && found < 0; k++)
            found = first_refused(t->nonfinite, &t->entries[tape_record_in(r)[k]].array);
        if (found < 0)
            break;
        value = tape_record_in(r)[k - 1];
        *i = found;
    }
    return value;
}

/* An operand of an op is trapped at element i: the error is at the line where that arose. */
static enum tape_status operand_fail(struct tape *t, const char *op, int k, uint32_t value,
                                     int64_t i, struct tape_site site)
{
    char text[PLACE_BYTES], place[PLACE_BYTES];
    value = value_trace(t, value, &i);
    const struct tape_value *v = &t->entries[value];
    t->describe(site, place, sizeof place);
    return tape_fail(t, TAPE_ERROR_NONFINITE, tape_row_site(t, v->row),
                     "%s: %s (seen in operand %d of %s at %s)", tape_row(t, v->row)->op,
                     element_describe("value", &v->array, i, text), k + 1, op, place);
}

enum tape_status tape_nonfinite_operands(struct tape *t, const char *op, int n_in,
                                         const uint32_t *in, struct tape_site site)
{
    tape_settle(t);
    if (t->error.code != TAPE_OK)
        return t->error.code;
    for (int k = 0; k < n_in; k++) {
        const struct tape_value *v = &t->entries[in[k]];
        /* What an op has made was looked at then. */
        if ((t->entries[v->root].flags & (TAPE_OWNS_DATA | TAPE_LEAF)) == TAPE_OWNS_DATA)
            continue;
        const int64_t i = first_refused(t->nonfinite, &v->array);
        if (i >= 0)
            return operand_fail(t, op, k, in[k], i, site);
    }
    return TAPE_OK;
}

enum tape_status tape_nonfinite_results(struct tape *t, const struct kernel_op *op, int n_in,
                                        const uint32_t *in, uint32_t first_out,
                                        struct tape_site site)
{
    char text[PLACE_BYTES], result[32] = "";
    for (int o = 0; o < op->n_out; o++) {
        kernel_ref a = &t->entries[first_out + (uint32_t)o].array;
        const int64_t i = first_refused(t->nonfinite, a);
        if (i < 0)
            continue;
        for (int k = 0; k < n_in; k++) {
            const int64_t before = first_refused(t->nonfinite, &t->entries[in[k]].array);
            if (before >= 0)
                return operand_fail(t, op->name, k, in[k], before, site);
        }
        if (op->n_out > 1)
            snprintf(result, sizeof result, " of result %d", o + 1);
        return tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: %s%s", op->name,
                         element_describe("value", a, i, text), result);
    }
    return TAPE_OK;
}

/* ---- numbers ---- */

enum tape_status tape_nonfinite_numbers(struct tape *t, const char *what, const char *name,
                                        int64_t n, const double *values, struct tape_site site)
{
    for (int64_t i = 0; i < n; i++) {
        char which[48] = "";
        if (!tape_nonfinite_is(t->nonfinite, values[i]))
            continue;
        if (name)
            snprintf(which, sizeof which, " of %s[%lld]", name, (long long)i);
        return tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: value %g%s", what,
                         tape_nonfinite_shown(values[i]), which);
    }
    return TAPE_OK;
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
    return first_refused(t->nonfinite, a);
}

enum tape_status tape_nonfinite_begin(struct tape *t, uint32_t seed, const char *what,
                                      struct tape_site site)
{
    char text[PLACE_BYTES];
    struct kernel_array a;
    if (t->error.code != TAPE_OK)
        return t->error.code;
    int64_t i = seed ? first_refused(t->nonfinite, &t->entries[seed].array) : -1;
    if (i >= 0)
        return tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: %s", what,
                         element_describe("seed", &t->entries[seed].array, i, text));
    for (uint32_t k = 1; k < t->n_values; k++) {
        const struct tape_value *v = &t->entries[k];
        if (!holds_gradient(t, v) || (v->flags & TAPE_USER_GRADIENT))
            continue;
        i = first_of_adjoint(t, v, &a);
        if (i >= 0)
            return tape_fail(t, TAPE_ERROR_NONFINITE, tape_row_site(t, v->row),
                             "%s: %s, from an earlier sweep, of the leaf", what,
                             element_describe("gradient", &a, i, text));
    }
    return TAPE_OK;
}

bool tape_nonfinite_adjoint(struct tape *t, const struct tape_value *v, const char *what,
                            struct tape_site site)
{
    char text[PLACE_BYTES];
    struct kernel_array a;
    const int64_t i = first_of_adjoint(t, v, &a);
    if (i >= 0)
        tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: %s", what,
                  element_describe("adjoint", &a, i, text));
    return i < 0;
}

bool tape_nonfinite_adjoints(struct tape *t, struct tape_record *r)
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
                  "%s: %s of operand %d%s, backward,", tape_record_name(r),
                  element_describe("adjoint", &a, i, text), k + 1, name);
        return false;
    }
    return true;
}
