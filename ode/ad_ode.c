/* ad_ode.c: the op by ad_custom: what it is given is looked at here, what it computes is in
 * ode_integrate.c.
 */
#include "ode_integrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Who asked, during the call: an op's own bytes outlast it, so they have no pointer to him. */
static _Thread_local ad_ode_report *reporting;

/* ---- the rule ---- */

static ad_status shape_refuse(ad_custom_call *c, ad_status status, const char *why)
{
    (void)snprintf(c->message, AD_CUSTOM_MESSAGE, "%s", why);
    return status;
}

static ad_status shape_find(ad_custom_call *c, bool stiff)
{
    for (int i = 2; i < c->n_in; i++)
        if (c->in[i].dtype == AD_F32) { /* rounded derivatives would be errors of the steps */
            (void)snprintf(c->message, AD_CUSTOM_MESSAGE,
                           "x[%d] is f32: ad_cast makes it f64 before the call", i - 2);
            return AD_ERROR_DTYPE;
        }
    const ad_custom_array *y = &c->in[0], *times = &c->in[1];
    if (y->dtype != AD_F64)
        return shape_refuse(c, AD_ERROR_DTYPE, "y0 is not f64");
    if (times->dtype != AD_F64)
        return shape_refuse(c, AD_ERROR_DTYPE, "the times are not f64");
    if (times->rank != 1 || times->size < 1)
        return shape_refuse(c, AD_ERROR_SHAPE, "the times are not [m] with m of 1 or more");
    if (y->rank >= AD_MAX_RANK)
        return shape_refuse(c, AD_ERROR_SHAPE, "y0 is of rank 8, at most 7 are possible");
    if (stiff && y->size > AD_ODE_MOST_STIFF) {
        (void)snprintf(c->message, AD_CUSTOM_MESSAGE,
                       "y0 has %lld elements, where stiff at most %d are possible",
                       (long long)y->size, AD_ODE_MOST_STIFF);
        return AD_ERROR_LIMIT;
    }
    c->out[0].dtype = AD_F64;
    c->out[0].rank = y->rank + 1;
    c->out[0].shape[0] = times->size;
    memcpy(c->out[0].shape + 1, y->shape, (size_t)y->rank * sizeof *y->shape);
    return AD_OK;
}

/* With the absolute tolerances as the last operand. */
static ad_status shape_find_each(ad_custom_call *c, bool stiff)
{
    const ad_custom_array *y = &c->in[0], *each = &c->in[c->n_in - 1];
    if (each->dtype != AD_F64)
        return shape_refuse(c, AD_ERROR_DTYPE, "absolute_each is not f64");
    if (each->rank != y->rank ||
        memcmp(each->shape, y->shape, (size_t)y->rank * sizeof *y->shape) != 0)
        return shape_refuse(c, AD_ERROR_SHAPE, "absolute_each is not of y0's shape");
    return shape_find(c, stiff);
}

static ad_status ode_shape(ad_custom_call *c, void *payload)
{
    (void)payload;
    return shape_find(c, false);
}

static ad_status ode_shape_stiff(ad_custom_call *c, void *payload)
{
    (void)payload;
    return shape_find(c, true);
}

static ad_status ode_shape_each(ad_custom_call *c, void *payload)
{
    (void)payload;
    return shape_find_each(c, false);
}

static ad_status ode_shape_stiff_each(ad_custom_call *c, void *payload)
{
    (void)payload;
    return shape_find_each(c, true);
}

static ad_status ode_run_forward(ad_custom_call *c, void *payload)
{
    ad_ode_report *report = reporting;
    reporting = NULL; /* an equation within f has its own */
    const ad_status status = ode_forward(c, payload, report);
    reporting = report;
    return status;
}

/* ---- arguments ---- */

/* Why a call is refused: the payload of a rule that does that. */
struct ode_refusal {
    const char *why;
};

static ad_status ode_refuse(ad_custom_call *c, void *payload)
{
    return shape_refuse(c, AD_ERROR_ARGUMENT, ((const struct ode_refusal *)payload)->why);
}

/* Not negative, no NaN, not infinite. */
static bool is_tolerance(double x)
{
    return x >= 0 && isfinite(x);
}

static const char *ode_wrong(ad_ode_function *f, int n, const ad_tensor *x, const ad_ode_options *o)
{
    return !f                                  ? "the function is a null pointer"
           : n < 0 || n > AD_ODE_MOST_OPERANDS ? "from 0 to 61 tensors x are possible"
           : n > 0 && !x                       ? "x is a null pointer"
           : !is_tolerance(o->relative) || !is_tolerance(o->absolute) ||
                   !is_tolerance(o->adjoint_relative) || !is_tolerance(o->adjoint_absolute)
               ? "a tolerance is negative or not finite"
           : o->most < 0     ? "the number of steps is negative"
           : o->interval < 0 ? "the interval of checkpoints is negative"
                             : NULL;
}

static double first_of(double a, double b)
{
    return a > 0 ? a : b;
}

ad_tensor ad_ode_site(ad_tape tape, ad_ode_function *f, void *payload, ad_tensor y0,
                      ad_tensor times, int n, const ad_tensor *x, const ad_ode_options *options,
                      unsigned ad_line_)
{
    static const ad_ode_options defaults;
    static ad_custom_function *const shape[2][2] = {{ode_shape, ode_shape_each},
                                                    {ode_shape_stiff, ode_shape_stiff_each}};
    const void *caller = __builtin_extract_return_addr(__builtin_return_address(0));
    const ad_ode_options *o = options ? options : &defaults;
    ad_tensor in[AD_ODE_MOST_OPERANDS + 3] = {y0, times}, y = {0, 0, 0, 0};
    int n_in = 2;
    if (o->report)
        *o->report = (ad_ode_report){0, 0, 0, (double)NAN};
    struct ode_head head;
    memset(&head, 0, sizeof head); /* all its bytes: two calls that do the same have the same */
    ad_custom_rule rule = {.name = "ode",
                           .forward = ode_run_forward,
                           .pullback = ode_backward,
                           .saves = AD_SAVES_OPERANDS | AD_SAVES_RESULTS,
                           .own_bytes = sizeof head,
                           .own = &head};
    struct ode_refusal refusal = {ode_wrong(f, n, x, o)};
    if (refusal.why) {
        rule.shape = ode_refuse;
        (void)ad_custom_from(tape, &rule, &refusal, n_in, in, 1, &y, caller, ad_line_);
        return y;
    }
    for (int i = 0; i < n; i++)
        in[n_in++] = x[i];
    head.each = o->absolute_each.tape != 0;
    if (head.each)
        in[n_in++] = o->absolute_each;
    head.f = f;
    head.tape = tape;
    head.stiff = o->stiff;
    head.relative = first_of(o->relative, 1e-7);
    head.absolute = first_of(o->absolute, 1e-9);
    head.adjoint_relative = first_of(o->adjoint_relative, head.relative);
    head.adjoint_absolute = first_of(o->adjoint_absolute, head.absolute);
    head.most = o->most > 0 ? o->most : 100000;
    head.interval = o->interval;
    rule.shape = shape[o->stiff][head.each];
    ad_ode_report *outer = reporting;
    reporting = o->report;
    (void)ad_custom_from(tape, &rule, payload, n_in, in, 1, &y, caller, ad_line_);
    reporting = outer;
    return y;
}
