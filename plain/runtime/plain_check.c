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
    ad_plain_callee_ = (uintptr_t)c->f;
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
    ad_plain_callee_ = (uintptr_t)c->f;
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

/* Parts that no two x[i] have alike, and not small. */
static void direct(const struct check *c, int d)
{
    for (int64_t i = 0; i < c->n; i++) {
        const double part = 0.5 + 0.5 * fabs(sin(1.3 * (double)i + d));
        c->along[i] = (i * 7 + d) % 3 == 0 ? -part : part;
    }
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
        direct(c, d);
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

/* ---- the first line whose own derivative disagrees ---- */

/* A result on the tape: its values at the point and a step before and behind it. */
struct result {
    double value[3];
    double local;     /* the derivative along the direction by the statement's operands */
    double magnitude; /* the sum of what it is the sum of, without signs */
    uintptr_t pc;
    bool is_statement;
};

struct lines {
    const struct check *check;
    uint32_t first; /* index of x[0] */
    struct result *result;
    size_t n, room;
    unsigned run; /* which of the values; 3: derivatives */
    bool differs; /* a run has recorded otherwise, or there was no memory */
};

static struct result *result_at(struct lines *l, uint32_t index)
{
    const size_t k = index - l->first;
    if (index < l->first || (l->run > 0 && k >= l->n)) {
        l->differs |= l->run > 0;
        return NULL;
    }
    if (k >= l->room) {
        const size_t room = 2 * k + 64;
        struct result *more = realloc(l->result, room * sizeof *more);
        if (!more) {
            l->differs = true;
            return NULL;
        }
        memset(more + l->room, 0, (room - l->room) * sizeof *more);
        l->result = more;
        l->room = room;
    }
    l->n = k >= l->n ? k + 1 : l->n;
    return &l->result[k];
}

static void line_result(void *payload, uint32_t index, double value, uintptr_t pc)
{
    struct lines *l = payload;
    struct result *r = result_at(l, index);
    if (!r)
        return;
    l->differs |= l->run > 0 && r->pc != pc;
    if (l->run < 3)
        r->value[l->run] = value;
    r->pc = pc;
}

/* How an operand moves along the direction, by differences. What is older does not. */
static double slope(const struct lines *l, uint32_t index)
{
    if (index < l->first || index - l->first >= l->n)
        return 0;
    const struct result *r = &l->result[index - l->first];
    return (r->value[1] - r->value[2]) / (2 * cbrt(DBL_EPSILON));
}

static void line_operand(void *payload, uint32_t index, uint32_t of, double partial)
{
    struct lines *l = payload;
    struct result *r = l->run == 3 ? result_at(l, index) : NULL;
    if (!r)
        return;
    const double part = partial == 0 ? 0 : partial * slope(l, of);
    r->local += part;
    r->magnitude += fabs(part);
    r->is_statement = true;
}

/* Records f at x + `times` steps, and tells of it. */
static bool lines_run(struct lines *l, unsigned run, double times)
{
    const struct check *c = l->check;
    const struct ad_plain_watch_ watch = {line_result, line_operand, l};
    const ad_mark mark = ad_tape_mark(c->tape);
    l->run = run;
    for (int64_t i = 0; i < c->n; i++)
        c->at[i] = c->x[i] + times * c->along[i] * step(c->x[i]);
    bool done = ad_plain_leaves(c->tape, c->n, c->at, c->key) == AD_OK && ad_plain_watched_(&watch);
    if (done) {
        l->first = c->key[0].index;
        for (int64_t i = 0; i < c->n; i++)
            line_result(l, c->key[i].index, c->at[i], 0);
        ad_plain_callee_ = 0;
        c->f(c->n, c->at, c->payload);
        ad_plain_watched_(NULL);
        done = ad_tape_status(c->tape) == AD_OK && !l->differs;
    }
    ad_tape_rewind(c->tape, mark);
    return done;
}

/* Values at three points, then derivatives at the first, by what is recorded: a statement's own is
 * that of its operands as they move. So the first that disagrees is where an operand is missing, or
 * has another derivative. Not found where f takes other ways at the three points. */
static void find_line(const struct check *c)
{
    struct lines l = {.check = c};
    ad_gradient_report *report = c->report;
    direct(c, 0);
    const bool done = c->n > 0 && lines_run(&l, 0, 0) && lines_run(&l, 1, 1) &&
                      lines_run(&l, 2, -1) && lines_run(&l, 3, 0);
    for (size_t k = 0; done && k < l.n; k++) {
        const struct result *r = &l.result[k];
        const double measured = (r->value[1] - r->value[2]) / (2 * cbrt(DBL_EPSILON));
        if (!r->is_statement ||
            fabs(r->local - measured) <= c->tolerance * (1 + fabs(measured) + r->magnitude))
            continue;
        ad_plain_where_(r->pc, report->where, sizeof report->where);
        const size_t n = strlen(report->message);
        snprintf(report->message + n, sizeof report->message - n,
                 "; the first line whose own derivative disagrees is %s: %.10g by its operands, "
                 "%.10g by differences",
                 report->where, r->local, measured);
        report->op = "statement";
        break;
    }
    free(l.result);
}

/* No line's derivative is at fault where its differences are not finite. */
static void immeasurable(ad_gradient_report *report)
{
    const size_t n = strlen(report->message);
    snprintf(report->message + n, sizeof report->message - n,
             "; a value of the function within the step is not finite, so nothing can be measured");
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
    const bool room = c.at && c.along && c.gradient && c.key;
    if (status == AD_OK && !room)
        status = ad_plain_memory_(tape);
    if (status == AD_OK && room) {
        for (int64_t i = 0; i < c.n; i++)
            c.at[i] = x[i];
        const ad_mark mark = ad_tape_mark(tape);
        status = sweep(&c);
        ad_tape_rewind(tape, mark);
        if (status == AD_OK) {
            ad_tape_no_grad_begin(tape);
            compare(&c);
            ad_tape_no_grad_end(tape);
            if (report->wrong > 0 && isfinite(report->measured))
                find_line(&c);
            else if (report->wrong > 0)
                immeasurable(report);
        }
        status = status == AD_OK ? ad_tape_status(tape) : status;
        if (status == AD_OK && report->wrong > 0)
            status = ad_plain_fail_(AD_ERROR_GRADIENT, pc, report->message);
    }
    if (status != AD_OK && !report->message[0] && report != &own)
        snprintf(report->message, sizeof report->message, "%s",
                 ad_tape_message(ad_tape_status(tape) != AD_OK ? tape : (ad_tape){0, 0}));
    if (c.at)
        plain_forget(c.at, bytes);
    free(c.at);
    free(c.along);
    free(c.gradient);
    free(c.key);
    return status;
}
