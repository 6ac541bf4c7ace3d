/* ad_check.c: ad_check_gradient: a user's function against central differences of it.
 *
 * Meanwhile the leaves' adjoints are buffers of the check's own, and whatever else was on the tape
 * before is constant, so that no gradient of the user's is touched and a sweep sees what the
 * differences see: the leaves alone.
 */
#include "ad_check.h"
#include "plain_format.h"

#include "tape_call.h"
#include "tape_inplace.h"
#include "tape_kind.h"
#include "tape_no_grad.h"
#include "tape_observer.h"

#include <math.h>
#include <string.h>

struct kept_leaf {
    uint32_t value, epoch;
    void *adjoint;
    double *gradient; /* receives sweeps', those of the function as well */
    double *swept;    /* what the check's own sweep gave */
};

struct check_job {
    ad_tape tape;
    ad_function *function;
    void *payload;
    int n;
    const ad_tensor *x;
    double tolerance;
    const char *what; /* that checks, for the message of a disagreement */
    struct tape_site site;
    struct tape *t;
    uint32_t level;          /* everything of the check's lies behind this mark */
    struct tape_fixed fixed; /* of a check whose function calls this one */
    bool hold;
    uint32_t n_values, epoch, sweeps, swept_epoch;
    uint32_t *flags; /* [n_values], as they were */
    struct kept_leaf leaf[TAPE_MAX_IN];
    struct ad_scratch scratch;
    ad_tensor y;
    int64_t y_size;
    double *u, *above, *middle, *below; /* [y_size] */
    struct ad_check_slope slope;        /* of the worst element */
    ad_gradient_report *report;
};

enum { CHANGED = TAPE_NEEDS_GRADIENT | TAPE_RETAIN | TAPE_USER_GRADIENT };

static ad_status no_memory(struct check_job *j)
{
    return (ad_status)tape_fail(j->t, TAPE_ERROR_MEMORY, j->site, "check_gradient: out of memory");
}

/* The arguments that say which leaves. */
static ad_status find_leaves(struct check_job *j)
{
    struct tape *t = j->t;
    for (int i = 0; i < j->n; i++) {
        uint32_t v = ad_value_on(t, j->x[i], j->site, "check_gradient: x[%d]", i);
        if (!v)
            return (ad_status)t->error.code;
        const struct tape_value *leaf = &t->entries[v];
        if (leaf->array.dtype != KERNEL_F64)
            return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, j->site,
                                        "check_gradient: x[%d] is %s, not f64", i,
                                        kernel_dtype_name(leaf->array.dtype));
        if (!(leaf->flags & TAPE_LEAF))
            return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, j->site,
                                        "check_gradient: x[%d] is not a leaf", i);
        uintptr_t from = (uintptr_t)leaf->array.data, to = from + tape_value_bytes(leaf);
        for (int k = 0; k < i; k++) {
            const struct tape_value *before = &t->entries[j->leaf[k].value];
            uintptr_t at = (uintptr_t)before->array.data;
            if (from < at + tape_value_bytes(before) && at < to)
                return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, j->site,
                                            "check_gradient: x[%d] and x[%d] share memory", k, i);
        }
        j->leaf[i].value = v;
    }
    return AD_OK;
}

static ad_status enter(struct check_job *j)
{
    struct tape *t = j->t;
    char open[TAPE_NO_GRAD_TEXT];
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (!j->function || !j->x || j->n < 1 || j->n > TAPE_MAX_IN)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, j->site,
                                    j->function && j->x
                                        ? "check_gradient: n must be from 1 to %d"
                                        : "check_gradient: function or x is a null pointer",
                                    (int)TAPE_MAX_IN);
    if (!(j->tolerance > 0) || isinf(j->tolerance))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, j->site,
                                    "check_gradient: the tolerance %g is not positive",
                                    ad_check_shown(j->tolerance));
    if (t->no_grad)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, j->site,
                                    "check_gradient: not under no_grad%s",
                                    tape_no_grad_open(t, open));
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "check_gradient", j->site);
    ad_status status = find_leaves(j);
    if (status != AD_OK)
        return status;
    j->n_values = t->n_values;
    j->epoch = t->gradient_epoch;
    j->sweeps = t->sweeps;
    j->swept_epoch = t->swept_epoch;
    j->flags = ad_scratch_get(&j->scratch, t->n_values, sizeof *j->flags);
    for (int i = 0; i < j->n; i++) {
        int64_t size = t->entries[j->leaf[i].value].array.size;
        j->leaf[i].gradient = ad_scratch_get(&j->scratch, size, sizeof(double));
        j->leaf[i].swept = ad_scratch_get(&j->scratch, size, sizeof(double));
    }
    bool have = j->flags != NULL;
    for (int i = 0; i < j->n; i++)
        have = have && j->leaf[i].gradient && j->leaf[i].swept;
    if (have)
        j->level = tape_mark(t);
    if (!have || j->level == UINT32_MAX)
        return no_memory(j);
    j->fixed = t->fixed;
    j->hold = t->hold;
    t->fixed = (struct tape_fixed){t->n_values, t->n_marks, t->n_frames, t->last_record};
    for (uint32_t i = 0; i < t->n_values; i++) {
        struct tape_value *v = &t->entries[i];
        j->flags[i] = v->flags;
        v->flags &= ~(uint32_t)(TAPE_NEEDS_GRADIENT | TAPE_RETAIN);
    }
    for (int i = 0; i < j->n; i++) {
        struct tape_value *v = &t->entries[j->leaf[i].value];
        j->leaf[i].epoch = v->gradient_epoch;
        j->leaf[i].adjoint = v->adjoint;
        v->adjoint = j->leaf[i].gradient;
        v->flags = (v->flags & ~(uint32_t)TAPE_USER_GRADIENT) | TAPE_NEEDS_GRADIENT;
    }
    return AD_OK;
}

/* The tape is still there; if so, no reset and no rewind can have taken what was on it. */
static bool intact(const struct check_job *j)
{
    return ad_tape_find(j->tape.slot, j->tape.generation, "check_gradient", j->site) == j->t;
}

/* Drops what one call of the function made; handles that it kept to it become stale. */
static void drop(struct check_job *j)
{
    struct tape *t = j->t;
    tape_observed(t);
    tape_drop_behind(t, &t->marks[j->level]);
    tape_observer_dropped(t);
    t->n_marks = j->level + 1;
    t->generation++;
}

static void leave(struct check_job *j)
{
    struct tape *t = j->t;
    if (intact(j)) {
        t->fixed = j->fixed;
        t->hold = j->hold;
        drop(j);
        t->n_marks = j->level;
        t->gradient_epoch = j->epoch;
        /* The check's sweeps are none of the user's: his gradients still need one. */
        t->sweeps = j->sweeps;
        t->swept_epoch = j->swept_epoch;
        for (uint32_t i = 0; i < j->n_values; i++) {
            struct tape_value *v = &t->entries[i];
            v->flags = (v->flags & ~(uint32_t)CHANGED) | (j->flags[i] & CHANGED);
        }
        for (int i = 0; i < j->n; i++) {
            struct tape_value *v = &t->entries[j->leaf[i].value];
            v->adjoint = j->leaf[i].adjoint;
            v->gradient_epoch = j->leaf[i].epoch;
        }
    }
    ad_scratch_free(&j->scratch);
}

/* Calls the function. *value: its result; leaves that it made are constants to the check. */
static ad_status call(struct check_job *j, uint32_t *value)
{
    struct tape *t = j->t;
    j->y = j->function(j->tape, j->x, j->n, j->payload);
    if (!intact(j))
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    *value = ad_value_on(t, j->y, j->site, "check_gradient: the result");
    if (!*value)
        return (ad_status)t->error.code;
    const struct kernel_array *y = &t->entries[*value].array;
    if (y->dtype != KERNEL_F64)
        return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, j->site,
                                    "check_gradient: the result is %s, not f64",
                                    kernel_dtype_name(y->dtype));
    if (j->u && y->size != j->y_size)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, j->site,
                                    "check_gradient: the result has %lld elements, before it had "
                                    "%lld",
                                    (long long)y->size, (long long)j->y_size);
    j->y_size = y->size;
    for (uint32_t i = t->marks[j->level].n_values; i < t->n_values; i++)
        if (t->entries[i].flags & TAPE_LEAF)
            t->entries[i].flags &= ~(uint32_t)TAPE_NEEDS_GRADIENT;
    return AD_OK;
}

/* The function once, swept: the leaves' gradients. */
static ad_status sweep(struct check_job *j)
{
    struct tape *t = j->t;
    uint32_t y = 0, seed = 0;
    ad_status status = call(j, &y);
    if (status != AD_OK)
        return status;
    j->u = ad_scratch_get(&j->scratch, j->y_size, sizeof(double));
    j->above = ad_scratch_get(&j->scratch, j->y_size, sizeof(double));
    j->middle = ad_scratch_get(&j->scratch, j->y_size, sizeof(double));
    j->below = ad_scratch_get(&j->scratch, j->y_size, sizeof(double));
    if (!j->u || !j->above || !j->middle || !j->below)
        return no_memory(j);
    tape_read(t, y, j->middle);
    ad_check_vector(j->u, j->y_size);
    /* A function that sweeps by itself has added to them. */
    for (int i = 0; i < j->n; i++) {
        struct tape_value *v = &t->entries[j->leaf[i].value];
        v->adjoint = j->leaf[i].gradient;
        v->flags &= ~(uint32_t)TAPE_USER_GRADIENT;
        memset(j->leaf[i].gradient, 0, tape_value_bytes(v));
        tape_adjoint_set(t, v);
    }
    if (t->entries[y].flags & TAPE_NEEDS_GRADIENT) {
        const struct kernel_array *a = &t->entries[y].array;
        status = (ad_status)tape_borrow(t, a->dtype, a->rank, a->shape, j->u, TAPE_GIVEN_CONSTANT,
                                        j->site, &seed);
        /* An array that the function changed is a disagreement like others, to be compared and
         * named, and no reason to refuse. */
        uint32_t guards = t->last_guard;
        t->last_guard = TAPE_NO_GUARD;
        if (status == AD_OK)
            status = (ad_status)tape_sweep(t, y, seed, j->site);
        t->last_guard = guards;
        for (int i = 0; i < j->n && status == AD_OK; i++)
            memcpy(j->leaf[i].swept, j->leaf[i].gradient,
                   tape_value_bytes(&t->entries[j->leaf[i].value]));
    }
    if (status == AD_OK)
        drop(j);
    return status;
}

/* The function's value with one element of a leaf set to `at`. */
static ad_status value_at(struct check_job *j, double *element, double at, double *result)
{
    uint32_t y = 0;
    double kept;
    memcpy(&kept, element, sizeof kept);
    *element = at;
    ad_status status = call(j, &y);
    /* The result may be a view of the leaf. */
    if (status == AD_OK)
        tape_read(j->t, y, result);
    memcpy(element, &kept, sizeof kept);
    if (status == AD_OK)
        drop(j);
    return status;
}

/* What the result, times u, gains from `from` to `to`. */
static long double gain(const struct check_job *j, const double *from, const double *to)
{
    long double sum = 0;
    for (int64_t i = 0; i < j->y_size; i++)
        sum += (long double)j->u[i] * ((long double)to[i] - (long double)from[i]);
    return sum;
}

static ad_status compare(struct check_job *j, int leaf)
{
    ad_gradient_report *report = j->report;
    double *x = j->t->entries[j->leaf[leaf].value].array.data;
    int64_t size = j->t->entries[j->leaf[leaf].value].array.size;
    for (int64_t e = 0; e < size; e++) {
        struct ad_check_step step = ad_check_step(x[e]);
        ad_status status = value_at(j, &x[e], step.above, j->above);
        if (status == AD_OK)
            status = value_at(j, &x[e], step.below, j->below);
        if (status != AD_OK)
            return status;
        double measured = (double)(gain(j, j->below, j->above) /
                                   ((long double)step.above - (long double)step.below));
        double swept = j->leaf[leaf].swept[e];
        double difference = ad_check_difference(swept, measured);
        report->compared++;
        report->wrong += !(difference <= j->tolerance);
        if (report->leaf >= 0 && !(difference > report->difference))
            continue;
        report->leaf = leaf;
        report->element = e;
        report->swept = swept;
        report->measured = measured;
        report->difference = difference;
        j->slope.below = (double)gain(j, j->below, j->middle) / (x[e] - step.below);
        j->slope.above = (double)gain(j, j->middle, j->above) / (step.above - x[e]);
    }
    return AD_OK;
}

/* Records the function once more and looks for the first op that is wrong by itself. */
static ad_status find_op(struct check_job *j, struct ad_check_fault *fault)
{
    struct tape *t = j->t;
    uint32_t y = 0;
    t->hold = true; /* what the function releases is to be looked at */
    ad_status status = call(j, &y);
    if (status != AD_OK)
        return status;
    uint32_t first = t->marks[j->level].n_records, n = t->n_records - first, at = t->last_record;
    uint32_t *order = ad_scratch_get(&j->scratch, n, sizeof *order);
    if (!order)
        return no_memory(j);
    for (uint32_t i = n; i-- > 0; at = tape_record_at(t, at)->previous)
        order[i] = at;
    for (uint32_t i = 0; i < n; i++) {
        struct tape_record *r = tape_record_at(t, order[i]);
        int found = ad_check_record(t, r, j->tolerance, fault);
        if (found < 0)
            return t->error.code ? (ad_status)t->error.code : no_memory(j);
        if (found == 0)
            continue;
        j->report->op = tape_record_name(r);
        ad_describe(tape_row_site(t, r->row), j->report->where, sizeof j->report->where);
        return AD_OK;
    }
    return AD_OK;
}

static void explain(const struct check_job *j, const struct ad_check_fault *fault)
{
    ad_gradient_report *r = j->report;
    char kink[120];
    int n =
        plain_format(r->message, sizeof r->message,
                     "%s: %lld of %lld derivatives disagree, the worst of x[%d] element %lld: the "
                     "sweep gives %.10g, differences give %.10g%s",
                     j->what, (long long)r->wrong, (long long)r->compared, r->leaf,
                     (long long)r->element, ad_check_shown(r->swept), ad_check_shown(r->measured),
                     ad_check_kink(j->slope, r->swept, j->tolerance, kink, sizeof kink));
    char *text = r->message + n;
    size_t left = sizeof r->message - (size_t)n;
    if (!r->op)
        plain_format(
            text, left,
            "; no op alone is wrong: a part is detached or without a gradient, or the function "
            "is not the same at every call");
    else if (fault->changed)
        plain_format(
            text, left,
            "; %s at %s: an operand was changed after the op (its element %lld was %.10g, is "
            "now %.10g)",
            r->op, r->where, (long long)fault->element, ad_check_shown(fault->swept),
            ad_check_shown(fault->measured));
    else
        plain_format(
            text, left,
            "; %s at %s: its pullback to operand %d, element %lld, gives %.10g, differences "
            "give %.10g%s",
            r->op, r->where, fault->operand, (long long)fault->element,
            ad_check_shown(fault->swept), ad_check_shown(fault->measured),
            ad_check_kink(fault->slope, fault->swept, j->tolerance, kink, sizeof kink));
}

ad_status ad_check_run(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                       double tolerance, void *payload, ad_gradient_report *report,
                       const char *what, struct tape_site site)
{
    *report = (ad_gradient_report){.leaf = -1};
    struct check_job j = {.tape = tape,
                          .function = function,
                          .payload = payload,
                          .n = n,
                          .x = x,
                          .tolerance = tolerance,
                          .what = what,
                          .site = site,
                          .report = report};
    j.t = ad_tape_find(tape.slot, tape.generation, "check_gradient", site);
    if (!j.t)
        return ad_failed();
    j.scratch.memory = *j.t->memory;
    ad_status status = enter(&j);
    if (status != AD_OK) {
        ad_scratch_free(&j.scratch);
        return status;
    }
    struct ad_check_fault fault = {0};
    status = sweep(&j);
    for (int i = 0; i < n && status == AD_OK; i++)
        status = compare(&j, i);
    if (status == AD_OK && report->wrong > 0)
        status = find_op(&j, &fault);
    leave(&j);
    if (status != AD_OK || report->wrong == 0)
        return status;
    explain(&j, &fault);
    return ad_fail(AD_ERROR_GRADIENT, (struct tape_site){0, 0}, "%s", report->message);
}

ad_status ad_check_gradient_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                 double tolerance, void *payload, ad_gradient_report *report,
                                 unsigned ad_line_)
{
    ad_gradient_report unwanted;
    return ad_check_run(tape, function, n, x, tolerance, payload, report ? report : &unwanted,
                        "check_gradient", AD_HERE);
}
