/* ode_system.c: see ode_system.h. */
#include "ode_system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ad_tape thread = {0, 0};

/* The tape's error becomes the call's. */
static enum ode_outcome system_failed(struct ode_system *s)
{
    s->status = ad_tape_status(s->tape);
    if (s->status == AD_OK)
        s->status = AD_ERROR_STATE;
    (void)snprintf(s->message, AD_CUSTOM_MESSAGE, "%s", ad_tape_message(s->tape));
    return ODE_FAILED;
}

/* ---- the tape ---- */

static void system_give(struct ode_system *s, const ad_custom_array *adjoint)
{
    for (int i = 0; i < s->n; i++) {
        const ad_custom_array *a = &s->array[i];
        s->x[i] = ad_constant(s->tape, a->dtype, a->rank, a->shape, a->data);
        s->leaf[i] = (ad_tensor){0, 0, 0, 0};
        if (!adjoint || !adjoint[i].data || a->dtype != AD_F64)
            continue;
        s->leaf[i] = ad_leaf(s->tape, AD_F64, a->rank, a->shape, a->data);
        s->n_derivatives += a->size;
    }
}

ad_status ode_system_begin(struct ode_system *s, ad_tape home, const ad_custom_array *y, int n,
                           const ad_custom_array *x, const ad_custom_array *adjoint)
{
    s->n = n;
    s->array = x;
    s->rank = y->rank;
    s->size = y->size;
    memcpy(s->shape, y->shape, sizeof s->shape);
    s->clean = ad_tape_status(thread) == AD_OK;
    s->status = ad_tape_within(home, &s->tape);
    if (s->status != AD_OK)
        return s->status;
    s->zero = calloc((size_t)s->size + 1, sizeof *s->zero);
    s->seed = calloc((size_t)s->size + 1, sizeof *s->seed);
    s->row = calloc((size_t)s->size + 1, sizeof *s->row);
    if (!s->zero || !s->seed || !s->row)
        return s->status = AD_ERROR_MEMORY;
    s->zeros = ad_leaf(s->tape, AD_F64, s->rank, s->shape, s->zero);
    system_give(s, adjoint);
    s->mark = ad_tape_mark(s->tape);
    if (ad_tape_status(s->tape) != AD_OK)
        system_failed(s);
    return s->status;
}

void ode_system_end(struct ode_system *s)
{
    if (s->tape.slot)
        (void)ad_tape_destroy(s->tape);
    free(s->zero);
    free(s->seed);
    free(s->row);
}

/* ---- f ---- */

/* It is a tensor of the tape, f64 and of y's shape. */
static bool system_accepts(struct ode_system *s, ad_tensor f)
{
    int64_t shape[AD_MAX_RANK];
    if (ad_tape_status(s->tape) != AD_OK) {
        system_failed(s);
        return false;
    }
    if (f.tape != s->tape.slot || f.tape_generation != s->tape.generation) {
        const bool said = s->clean && ad_tape_status(thread) != AD_OK;
        s->status = said ? ad_tape_status(thread) : AD_ERROR_TAPE;
        (void)snprintf(s->message, AD_CUSTOM_MESSAGE,
                       "f's result is not on the tape of the call%s%s", said ? ": " : "",
                       said ? ad_tape_message(thread) : "");
        return false;
    }
    const int rank = ad_rank(f);
    if (rank < 0 || ad_shape(f, shape) != AD_OK) {
        system_failed(s);
        return false;
    }
    const bool shaped =
        rank == s->rank && memcmp(shape, s->shape, (size_t)rank * sizeof *shape) == 0;
    if (shaped && ad_dtype_of(f) == AD_F64)
        return true;
    s->status = shaped ? AD_ERROR_DTYPE : AD_ERROR_SHAPE;
    if (shaped)
        (void)snprintf(s->message, AD_CUSTOM_MESSAGE, "f's result is not f64");
    else
        (void)snprintf(s->message, AD_CUSTOM_MESSAGE,
                       "f's result is of rank %d and %lld elements, not of y's shape (rank %d, "
                       "%lld elements)",
                       rank, (long long)ad_size(f), s->rank, (long long)s->size);
    return false;
}

/* f recorded anew at t and y. False: it failed. */
static bool system_record(struct ode_system *s, double t, ad_tensor y, const ad_tensor *x,
                          ad_tensor *f)
{
    s->evaluations++;
    *f = s->f(s->tape, ad_scalar_f64(s->tape, t), y, s->n, x, s->payload);
    return system_accepts(s, *f);
}

static bool system_rewind(struct ode_system *s)
{
    if (ad_tape_rewind(s->tape, s->mark) == AD_OK)
        return true;
    system_failed(s);
    return false;
}

static enum ode_outcome system_finite(struct ode_system *s, double t, const double *numbers,
                                      int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(numbers[i])) {
            s->not_finite = true;
            s->not_finite_at = t;
            return ODE_NOT_FINITE;
        }
    return ODE_DONE;
}

enum ode_outcome ode_system_value(struct ode_system *s, double t, const double *y, double *f)
{
    ad_tensor r;
    if (!system_rewind(s) ||
        !system_record(s, t, ad_constant(s->tape, AD_F64, s->rank, s->shape, y), s->x, &r))
        return ODE_FAILED;
    if (ad_value(r, f, s->size) != AD_OK)
        return system_failed(s);
    return system_finite(s, t, f, s->size);
}

/* ---- sweeps of f ---- */

/* What depends on y, or on x, with zeros that depend on a leaf in any case. */
static bool system_record_leaf(struct ode_system *s, double t, ad_tensor y, const ad_tensor *x,
                               ad_tensor *f)
{
    if (!system_record(s, t, y, x, f))
        return false;
    *f = ad_add(*f, s->zeros);
    if (ad_tape_status(s->tape) == AD_OK)
        return true;
    system_failed(s);
    return false;
}

static bool system_sweep(struct ode_system *s, ad_tensor f, const double *seed)
{
    const ad_tensor from = ad_constant(s->tape, AD_F64, s->rank, s->shape, seed);
    if (ad_backward_seed(f, from) == AD_OK)
        return true;
    system_failed(s);
    return false;
}

enum ode_outcome ode_system_pull(struct ode_system *s, double t, const double *y, const double *l,
                                 double *result)
{
    ad_tensor f;
    if (!system_rewind(s))
        return ODE_FAILED;
    const ad_tensor leaf = ad_leaf(s->tape, AD_F64, s->rank, s->shape, y);
    if (!system_record_leaf(s, t, leaf, s->x, &f) || !system_sweep(s, f, l))
        return ODE_FAILED;
    if (ad_gradient(leaf, result, s->size) != AD_OK)
        return system_failed(s);
    return system_finite(s, t, result, s->size);
}

enum ode_outcome ode_system_pull_x(struct ode_system *s, double t, const double *y, const double *l,
                                   double *result)
{
    ad_tensor f, x[AD_ODE_MOST_OPERANDS];
    if (!system_rewind(s))
        return ODE_FAILED;
    for (int i = 0; i < s->n; i++)
        x[i] = s->leaf[i].tape ? s->leaf[i] : s->x[i];
    if (!system_record_leaf(s, t, ad_constant(s->tape, AD_F64, s->rank, s->shape, y), x, &f) ||
        !system_sweep(s, f, l))
        return ODE_FAILED;
    double *to = result;
    for (int i = 0; i < s->n; i++) {
        const int64_t size = s->array[i].size;
        if (!s->leaf[i].tape)
            continue;
        if (ad_gradient(s->leaf[i], to, size) != AD_OK)
            return system_failed(s);
        to += size;
    }
    return system_finite(s, t, result, s->n_derivatives);
}

enum ode_outcome ode_system_jacobian(struct ode_system *s, double t, const double *y,
                                     ode_put_row *put, void *matrix)
{
    ad_tensor f;
    enum ode_outcome outcome = ODE_DONE;
    if (!system_rewind(s))
        return ODE_FAILED;
    const ad_tensor leaf = ad_leaf(s->tape, AD_F64, s->rank, s->shape, y);
    if (!system_record_leaf(s, t, leaf, s->x, &f))
        return ODE_FAILED;
    s->jacobians++;
    const ad_tensor seed = ad_constant(s->tape, AD_F64, s->rank, s->shape, s->seed);
    for (int64_t i = 0; i < s->size && outcome == ODE_DONE; i++) {
        if (ad_tape_zero_gradients(s->tape) != AD_OK)
            return system_failed(s);
        s->seed[i] = 1;
        const ad_status swept = ad_backward_seed(f, seed);
        s->seed[i] = 0;
        if (swept != AD_OK || ad_gradient(leaf, s->row, s->size) != AD_OK)
            return system_failed(s);
        outcome = system_finite(s, t, s->row, s->size);
        put(matrix, i, s->size, s->row);
    }
    return outcome;
}
