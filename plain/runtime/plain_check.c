/* plain_check.c: ad_plain_check: a function's sweep against central differences of it. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIRECTIONS = 2 };

struct check {
    ad_tape tape;
    ad_plain_function *f;
    int64_t n;
    const double *x;
    double tolerance;
    void *payload;
    double *at;       /* [n]: what f is given */
    double *along;    /* [n]: a direction */
    double *gradient; /* [n] */
    ad_real *key;     /* [n] */
    ad_gradient_report *report;
};

/* The cube root of the machine's epsilon balances the error of the formula with that of the
 * subtraction. */
static double step(double x)
{
    return cbrt(DBL_EPSILON) * fmax(1, fabs(x));
}

/* At x + `times` steps along the direction. */
static double value_at(const struct check *c, double times)
{
    for (int64_t i = 0; i < c->n; i++)
        c->at[i] = c->x[i] + times * c->along[i] * step(c->x[i]);
    plain_forget(c->at, (size_t)c->n * sizeof *c->at);
    ad_plain_callee_ = 0;
    return c->f(c->n, c->at, c->payload);
}

/* The two derivatives along the direction, in steps of x[i] divided by `scale`. */
static bool agrees(const struct check *c, double scale, double *swept, double *measured)
{
    const double up = value_at(c, 1), down = value_at(c, -1);
    *swept = 0;
    for (int64_t i = 0; i < c->n; i++)
        if (c->along[i] != 0)
            *swept += c->gradient[i] * c->along[i] * step(c->x[i]) / scale;
    *measured = (up - down) / (2 * scale);
    return fabs(*swept - *measured) <= c->tolerance * (1 + fabs(*measured));
}

static ad_status sweep(struct check *c)
{
    ad_status status = ad_plain_leaves(c->tape, c->n, c->at, c->key);
    for (int64_t i = 0; i < c->n; i++)
        c->gradient[i] = 0;
    if (status != AD_OK)
        return status;
    ad_plain_callee_ = 0;
    ad_plain_returned_ = 0;
    const double y = c->f(c->n, c->at, c->payload);
    const uint32_t index = ad_plain_returned_ == (uintptr_t)c->f ? ad_plain_results_[0] : 0;
    status = ad_tape_status(c->tape);
    if (status != AD_OK || index == 0)
        return status; /* a constant: its derivatives are 0 */
    const ad_real result = {y, index, ad_plain_tag_(index)};
    status = ad_real_backward(c->tape, result);
    return status == AD_OK ? ad_real_gradients(c->tape, c->n, c->key, c->gradient) : status;
}

/* Each x[i] by itself; `report` has the worst. */
static void by_element(struct check *c)
{
    ad_gradient_report *r = c->report;
    for (int64_t i = 0; i < c->n; i++)
        c->along[i] = 0;
    for (int64_t i = 0; i < c->n; i++) {
        double swept, measured;
        c->along[i] = 1;
        const bool good = agrees(c, step(c->x[i]), &swept, &measured);
        c->along[i] = 0;
        double off = fabs(swept - measured) / (1 + fabs(measured));
        off = isnan(off) ? (double)INFINITY : off;
        r->compared++;
        r->wrong += !good;
        if (good || off <= r->difference)
            continue;
        r->leaf = 0;
        r->element = i;
        r->swept = swept;
        r->measured = measured;
        r->difference = off;
    }
}

static void compare(struct check *c)
{
    ad_gradient_report *r = c->report;
    double swept = 0, measured = 0;
    bool good = true;
    for (int d = 0; d < DIRECTIONS && good; d++) {
        /* Parts that no two x[i] have alike, and not small. */
        for (int64_t i = 0; i < c->n; i++) {
            const double part = 0.5 + 0.5 * fabs(sin(1.3 * (double)i + d));
            c->along[i] = (i * 7 + d) % 3 == 0 ? -part : part;
        }
        good = agrees(c, cbrt(DBL_EPSILON), &swept, &measured);
        r->compared++;
    }
    if (good)
        return;
    r->compared = 0;
    by_element(c);
    if (r->wrong > 0) {
        snprintf(r->message, sizeof r->message,
                 "plain_check: the derivative by x[%lld] is %.10g by the sweep, %.10g by "
                 "differences; %lld of %lld disagree",
                 (long long)r->element, r->swept, r->measured, (long long)r->wrong,
                 (long long)r->compared);
        return;
    }
    r->wrong = 1;
    r->swept = swept;
    r->measured = measured;
    r->difference = fabs(swept - measured) / (1 + fabs(measured));
    snprintf(r->message, sizeof r->message,
             "plain_check: along a direction the derivative is %.10g by the sweep, %.10g by "
             "differences; no x[i] disagrees by itself",
             swept, measured);
}

ad_status ad_plain_check(ad_tape tape, ad_plain_function *f, int64_t n, const double *x,
                         double tolerance, void *payload, ad_gradient_report *report)
{
    const uintptr_t pc = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    ad_gradient_report own;
    report = report ? report : &own;
    *report = (ad_gradient_report){.leaf = -1, .element = -1};
    const size_t bytes = (size_t)(n > 0 ? n : 0) * sizeof(double);
    struct check c = {.tape = tape,
                      .f = f,
                      .n = n > 0 ? n : 0,
                      .x = x,
                      .tolerance = tolerance,
                      .payload = payload,
                      .at = malloc(bytes + 1),
                      .along = malloc(bytes + 1),
                      .gradient = malloc(bytes + 1),
                      .key = malloc(2 * bytes + 1),
                      .report = report};
    ad_status status = ad_tape_status(tape);
    if (status == AD_OK && (!f || n < 0 || (n > 0 && !x)))
        status = ad_plain_fail_(AD_ERROR_ARGUMENT, pc,
                                n < 0 ? "plain_check: n is negative"
                                      : "plain_check: f or x is a null pointer");
    if (status == AD_OK && (!c.at || !c.along || !c.gradient || !c.key))
        status = ad_plain_memory_(tape);
    if (status == AD_OK) {
        for (int64_t i = 0; i < c.n; i++)
            c.at[i] = x[i];
        const ad_mark mark = ad_tape_mark(tape);
        status = sweep(&c);
        ad_tape_rewind(tape, mark);
        if (status == AD_OK) {
            ad_tape_no_grad_begin(tape);
            compare(&c);
            ad_tape_no_grad_end(tape);
        }
        status = status == AD_OK ? ad_tape_status(tape) : status;
        if (status == AD_OK && report->wrong > 0)
            status = ad_plain_fail_(AD_ERROR_GRADIENT, pc, report->message);
    }
    if (c.at)
        plain_forget(c.at, bytes);
    free(c.at);
    free(c.along);
    free(c.gradient);
    free(c.key);
    return status;
}
