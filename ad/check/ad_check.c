/* ad_check.c: ad_check_gradient: a user's function against central differences of it, isolated
 * (ad_isolation.h), so that a sweep sees what the differences see: the leaves alone.
 */
#include "ad_check.h"
#include "ad_isolation.h"
#include "plain_format.h"

#include "tape_account.h"
#include "tape_kind.h"

#include <math.h>
#include <string.h>

struct check_job {
    struct ad_isolation alone; /* of the leaves; its scratch is the check's */
    ad_function *function;
    void *payload;
    double tolerance;
    const char *what; /* that checks, for the message of a disagreement */
    double **swept;   /* [n]: what the check's own sweep gave */
    int64_t y_size;
    double *u, *above, *middle, *below; /* [y_size] */
    struct ad_check_slope slope;        /* of the worst element */
    ad_gradient_report *report;
};

static ad_status no_memory(struct check_job *j)
{
    return (ad_status)tape_fail(j->alone.t, TAPE_ERROR_MEMORY, j->alone.site,
                                "check_gradient: out of memory");
}

/* Differences can be taken by each leaf alone. */
static ad_status check_leaves(struct check_job *j)
{
    const struct ad_isolation *s = &j->alone;
    struct tape *t = s->t;
    for (int i = 0; i < s->n; i++) {
        const struct tape_value *leaf = &t->entries[s->leaf[i].value];
        if (leaf->array.dtype != KERNEL_F64)
            return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, s->site,
                                        "check_gradient: x[%d] is %s, not f64", i,
                                        kernel_dtype_name(leaf->array.dtype));
        uintptr_t from = (uintptr_t)leaf->array.data, to = from + tape_value_bytes(leaf);
        for (int k = 0; k < i; k++) {
            const struct tape_value *before = &t->entries[s->leaf[k].value];
            uintptr_t at = (uintptr_t)before->array.data;
            if (from < at + tape_value_bytes(before) && at < to)
                return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, s->site,
                                            "check_gradient: x[%d] and x[%d] share memory", k, i);
        }
    }
    return AD_OK;
}

/* What the isolation does not look at. */
static ad_status check_arguments(const struct check_job *j)
{
    const struct ad_isolation *s = &j->alone;
    if (s->t->error.code != TAPE_OK)
        return (ad_status)s->t->error.code;
    if (!j->function || !s->x || s->n < 1 || s->n > TAPE_MAX_IN)
        return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                    j->function && s->x
                                        ? "check_gradient: n must be from 1 to %d"
                                        : "check_gradient: function or x is a null pointer",
                                    (int)TAPE_MAX_IN);
    if (!(j->tolerance > 0) || isinf(j->tolerance))
        return (ad_status)tape_fail(s->t, TAPE_ERROR_ARGUMENT, s->site,
                                    "check_gradient: the tolerance %g is not positive",
                                    ad_check_shown(j->tolerance));
    return AD_OK;
}

static ad_status prepare(struct check_job *j)
{
    struct ad_isolation *s = &j->alone;
    ad_status status = check_leaves(j);
    if (status != AD_OK)
        return status;
    j->swept = ad_scratch_get(&s->scratch, s->n, sizeof *j->swept);
    bool have = j->swept != NULL;
    for (int i = 0; i < s->n && have; i++) {
        j->swept[i] =
            ad_scratch_get(&s->scratch, s->t->entries[s->leaf[i].value].array.size, sizeof(double));
        have = j->swept[i] != NULL;
    }
    return have ? AD_OK : no_memory(j);
}

/* Calls the function. *value: its result. */
static ad_status call(struct check_job *j, uint32_t *value)
{
    struct tape *t = j->alone.t;
    const ad_status status = ad_isolation_call(&j->alone, j->function, j->payload, value);
    if (status != AD_OK)
        return status;
    const struct kernel_array *y = &t->entries[*value].array;
    if (y->dtype != KERNEL_F64)
        return (ad_status)tape_fail(t, TAPE_ERROR_DTYPE, j->alone.site,
                                    "check_gradient: the result is %s, not f64",
                                    kernel_dtype_name(y->dtype));
    if (j->u && y->size != j->y_size)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, j->alone.site,
                                    "check_gradient: the result has %lld elements, before it had "
                                    "%lld",
                                    (long long)y->size, (long long)j->y_size);
    j->y_size = y->size;
    return AD_OK;
}

/* The function once, swept: the leaves' gradients. */
static ad_status sweep(struct check_job *j)
{
    struct tape *t = j->alone.t;
    uint32_t y = 0, seed = 0;
    ad_status status = call(j, &y);
    if (status != AD_OK)
        return status;
    j->u = ad_scratch_get(&j->alone.scratch, j->y_size, sizeof(double));
    j->above = ad_scratch_get(&j->alone.scratch, j->y_size, sizeof(double));
    j->middle = ad_scratch_get(&j->alone.scratch, j->y_size, sizeof(double));
    j->below = ad_scratch_get(&j->alone.scratch, j->y_size, sizeof(double));
    if (!j->u || !j->above || !j->middle || !j->below)
        return no_memory(j);
    tape_read(t, y, j->middle);
    ad_check_vector(j->u, j->y_size);
    ad_isolation_clear(&j->alone); /* a function that sweeps by itself has added to them */
    if (t->entries[y].flags & TAPE_NEEDS_GRADIENT) {
        const struct kernel_array *a = &t->entries[y].array;
        status = (ad_status)tape_borrow(t, a->dtype, a->rank, a->shape, j->u, TAPE_GIVEN_CONSTANT,
                                        j->alone.site, &seed);
        /* An array that the function changed is a disagreement like others, to be compared and
         * named, and no reason to refuse. */
        uint32_t guards = t->last_guard;
        t->last_guard = TAPE_NO_GUARD;
        if (status == AD_OK)
            status = (ad_status)tape_sweep(t, y, seed, j->alone.site);
        t->last_guard = guards;
    }
    for (int i = 0; i < j->alone.n && status == AD_OK; i++) {
        const void *gradient = ad_isolation_gradient(&j->alone, i);
        if (gradient)
            memcpy(j->swept[i], gradient, tape_value_bytes(&t->entries[j->alone.leaf[i].value]));
    }
    if (status == AD_OK)
        ad_isolation_drop(&j->alone);
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
        tape_read(j->alone.t, y, result);
    memcpy(element, &kept, sizeof kept);
    if (status == AD_OK)
        ad_isolation_drop(&j->alone);
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
    double *x = j->alone.t->entries[j->alone.leaf[leaf].value].array.data;
    int64_t size = j->alone.t->entries[j->alone.leaf[leaf].value].array.size;
    for (int64_t e = 0; e < size; e++) {
        struct ad_check_step step = ad_check_step(x[e]);
        ad_status status = value_at(j, &x[e], step.above, j->above);
        if (status == AD_OK)
            status = value_at(j, &x[e], step.below, j->below);
        if (status != AD_OK)
            return status;
        double measured = (double)(gain(j, j->below, j->above) /
                                   ((long double)step.above - (long double)step.below));
        double swept = j->swept[leaf][e];
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

/* The differences say nothing: the function's value is not finite at the worst element, or beside
 * it. */
static bool immeasurable(const struct check_job *j)
{
    return !isfinite(j->report->measured);
}

/* A result of the record is not finite. */
static bool overflows(const struct tape *t, struct tape_record *r)
{
    for (int o = 0; o < r->n_out; o++) {
        const struct kernel_array *a = &t->entries[tape_record_out(r)[o]].array;
        for (int64_t i = 0; a->data && i < a->size; i++)
            if (a->dtype == KERNEL_F64   ? !isfinite(((const double *)a->data)[i])
                : a->dtype == KERNEL_F32 ? !isfinite(((const float *)a->data)[i])
                                         : false)
                return true;
    }
    return false;
}

/* Records the function once more and looks for the first op that is wrong by itself; where nothing
 * can be measured for the first whose result is not finite. */
static ad_status find_op(struct check_job *j, struct ad_check_fault *fault)
{
    struct tape *t = j->alone.t;
    uint32_t y = 0;
    t->hold = true; /* what the function releases is to be looked at */
    ad_status status = call(j, &y);
    if (status != AD_OK)
        return status;
    uint32_t first = t->marks[j->alone.level].n_records, n = t->n_records - first,
             at = t->last_record;
    uint32_t *order = ad_scratch_get(&j->alone.scratch, n, sizeof *order);
    if (!order)
        return no_memory(j);
    for (uint32_t i = n; i-- > 0; at = tape_record_at(t, at)->previous)
        order[i] = at;
    for (uint32_t i = 0; i < n; i++) {
        struct tape_record *r = tape_record_at(t, order[i]);
        int found = immeasurable(j) ? overflows(t, r) : ad_check_record(t, r, j->tolerance, fault);
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
    if (immeasurable(j) && r->op)
        plain_format(text, left,
                     "; %s at %s has a result that is not finite, so nothing can be measured",
                     r->op, r->where);
    else if (immeasurable(j))
        plain_format(text, left,
                     "; a value of the function within the step is not finite, so nothing can be "
                     "measured");
    else if (!r->op)
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

/* The report of a check that failed has the error's words. */
static ad_status check_failed(struct check_job *j, ad_status status)
{
    const ad_tape tape = j->alone.tape; /* which the function may have destroyed */
    const struct tape *t = ad_tape_behind((ad_tensor){tape.slot, tape.generation, 0, 0});
    plain_format(j->report->message, sizeof j->report->message, "%s",
                 t && t->error.code != TAPE_OK ? t->error.message : ad_own_message());
    return status;
}

ad_status ad_check_run(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                       double tolerance, void *payload, ad_gradient_report *report,
                       const char *what, struct tape_site site)
{
    *report = (ad_gradient_report){.leaf = -1};
    struct check_job j = {.alone = {.tape = tape,
                                    .site = site,
                                    .what = "check_gradient",
                                    .by = "gradient check",
                                    .n = n,
                                    .x = x},
                          .function = function,
                          .payload = payload,
                          .tolerance = tolerance,
                          .what = what,
                          .report = report};
    j.alone.t = ad_tape_find(tape.slot, tape.generation, "check_gradient", site);
    if (!j.alone.t)
        return check_failed(&j, ad_failed());
    ad_status status = check_arguments(&j);
    if (status == AD_OK)
        status = ad_isolation_begin(&j.alone);
    if (status != AD_OK)
        return check_failed(&j, status);
    status = prepare(&j);
    struct ad_check_fault fault = {0};
    if (status == AD_OK)
        status = sweep(&j);
    for (int i = 0; i < n && status == AD_OK; i++)
        status = compare(&j, i);
    if (status == AD_OK && report->wrong > 0)
        status = find_op(&j, &fault);
    ad_isolation_end(&j.alone);
    if (status != AD_OK)
        return check_failed(&j, status);
    if (report->wrong == 0)
        return AD_OK;
    explain(&j, &fault);
    return ad_fail(AD_ERROR_GRADIENT, (struct tape_site){0, 0}, "%s", report->message);
}

ad_status ad_check_gradient_site(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                                 double tolerance, void *payload, ad_gradient_report *report,
                                 unsigned ad_line_)
{
    ad_gradient_report unwanted;
    const ad_status status = ad_check_run(tape, function, n, x, tolerance, payload,
                                          report ? report : &unwanted, "check_gradient", AD_HERE);
    struct tape *t = ad_tape_behind((ad_tensor){tape.slot, tape.generation, 0, 0});
    if (t && report && status != AD_OK) /* the user has its words in the report */
        t->error.heard = true;
    return status;
}
