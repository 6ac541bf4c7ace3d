/* ad_check_custom.c: ad_check_custom: a rule of the user's against differences, by the check of
 * functions: once the op itself, and once what its `graph` records.
 */
#include "ad_check.h"
#include "plain_format.h"

#include "kernel_ops.h"
#include "tape_inplace.h"

#include <string.h>

struct custom_check {
    struct tape *t;
    const ad_custom_rule *rule;
    void *payload;
    int n_out;
    double tolerance;
    struct tape_site site;
    struct ad_scratch scratch;
    double *seed; /* [n_seed] */
    int64_t n_seed;
    bool compared; /* what `graph` records, with the pullback */
    int leaf;      /* that disagreed, or -1 */
    int64_t element;
    double recorded, swept;
};

static enum tape_status flatten(struct custom_check *c, uint32_t *x)
{
    const int64_t size = c->t->entries[*x].array.size;
    return tape_apply(c->t, &kernel_op_reshape, 1, x, 1, &size, c->site, x);
}

/* The float ones of x[n], one behind the other, as one value; 0: the tape's error says why not. */
static uint32_t join(struct custom_check *c, int n, const uint32_t *x)
{
    uint32_t part[TAPE_MAX_IN], out = 0;
    const int64_t axis = 0;
    int parts = 0;
    for (int i = 0; i < n; i++) {
        if (c->t->entries[x[i]].array.dtype == KERNEL_I64)
            continue;
        part[parts] = x[i];
        if (flatten(c, &part[parts++]) != TAPE_OK)
            return 0;
    }
    if (parts == 0)
        tape_fail(c->t, TAPE_ERROR_DTYPE, c->site, "check_custom: %s has no result of floats",
                  c->rule->name);
    else if (parts == 1)
        out = part[0];
    else
        tape_apply(c->t, &kernel_op_concat, parts, part, 1, &axis, c->site, &out);
    return out;
}

/* All results of the op in one value. */
static uint32_t compute(struct custom_check *c, ad_tape tape, const ad_tensor *x, int n)
{
    ad_tensor out[AD_CUSTOM_MAX_RESULTS];
    uint32_t value[AD_CUSTOM_MAX_RESULTS];
    if (ad_custom_run(tape, c->rule, c->payload, n, x, c->n_out, out, c->site) != AD_OK)
        return 0;
    for (int o = 0; o < c->n_out; o++)
        value[o] = out[o].value;
    return join(c, c->n_out, value);
}

static ad_tensor results(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    struct custom_check *c = payload;
    return ad_handle_of(c->t, tape.slot, tape.generation, compute(c, tape, x, n));
}

/* The gradient that a sweep leaves is the one that was recorded. */
static enum tape_status compare(struct custom_check *c, uint32_t y, uint32_t seed, int n,
                                const ad_tensor *x, const uint32_t *recorded)
{
    struct tape *t = c->t;
    for (int i = 0; i < n; i++)
        t->entries[x[i].value].gradient_epoch = t->gradient_epoch - 1;
    const enum tape_status status = tape_sweep(t, y, seed, c->site);
    for (int i = 0; i < n && status == TAPE_OK && c->leaf < 0; i++) {
        const struct tape_value *v = &t->entries[x[i].value];
        const double *swept = tape_has_adjoint(t, v) ? v->adjoint : NULL;
        double *got = ad_scratch_get(&c->scratch, v->array.size, sizeof *got);
        if (!got)
            return tape_fail(t, TAPE_ERROR_MEMORY, c->site, "check_custom: out of memory");
        tape_read(t, recorded[i], got);
        for (int64_t e = 0; e < v->array.size && c->leaf < 0; e++) {
            const double s = swept ? swept[e] : 0;
            if (ad_check_difference(got[e], s) <= c->tolerance)
                continue;
            c->leaf = i;
            c->element = e;
            c->recorded = got[e];
            c->swept = s;
        }
    }
    c->compared = true;
    return status;
}

/* The recorded derivative, times a fixed vector, by all operands. */
static ad_tensor derivatives(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    struct custom_check *c = payload;
    struct tape *t = c->t;
    uint32_t by[TAPE_MAX_IN], gradient[TAPE_MAX_IN], seed, out = 0;
    const uint32_t y = compute(c, tape, x, n);
    const ad_tensor none = {tape.slot, tape.generation, 0, 0};
    if (!y)
        return none;
    const struct kernel_array *a = &t->entries[y].array;
    if (!c->seed || c->n_seed != a->size) {
        c->n_seed = a->size;
        c->seed = ad_scratch_get(&c->scratch, a->size, sizeof *c->seed);
        if (!c->seed) {
            tape_fail(t, TAPE_ERROR_MEMORY, c->site, "check_custom: out of memory");
            return none;
        }
        ad_check_vector(c->seed, a->size);
    }
    for (int i = 0; i < n; i++)
        by[i] = x[i].value;
    if (tape_borrow(t, a->dtype, a->rank, a->shape, c->seed, TAPE_GIVEN_CONSTANT, c->site, &seed) ==
            TAPE_OK &&
        tape_graph(t, y, seed, n, by, c->site, gradient) == TAPE_OK &&
        (c->compared || compare(c, y, seed, n, x, gradient) == TAPE_OK))
        out = join(c, n, gradient);
    return ad_handle_of(t, tape.slot, tape.generation, out);
}

static ad_status custom_check(struct custom_check *c, ad_tape tape, int n, const ad_tensor *x,
                              ad_gradient_report *report)
{
    ad_status status =
        ad_check_run(tape, results, n, x, c->tolerance, c, report, "check_custom", c->site);
    if (status != AD_OK || !c->rule->graph)
        return status;
    const ad_gradient_report first = *report;
    status = ad_check_run(tape, derivatives, n, x, c->tolerance, c, report, "check_custom: graph",
                          c->site);
    if (status != AD_OK && status != AD_ERROR_GRADIENT)
        return status;
    if (c->leaf < 0) {
        if (status == AD_OK)
            *report = first;
        return status;
    }
    *report = (ad_gradient_report){.compared = first.compared,
                                   .wrong = 1,
                                   .leaf = c->leaf,
                                   .element = c->element,
                                   .swept = c->recorded,
                                   .measured = c->swept,
                                   .difference = ad_check_difference(c->recorded, c->swept),
                                   .op = c->rule->name};
    ad_describe(c->site, report->where, sizeof report->where);
    plain_format(report->message, sizeof report->message,
                 "check_custom: graph of %s gives %.10g for x[%d] element %lld, the pullback "
                 "%.10g",
                 c->rule->name, ad_check_shown(c->recorded), c->leaf, (long long)c->element,
                 ad_check_shown(c->swept));
    return ad_fail(AD_ERROR_GRADIENT, (struct tape_site){0, 0}, "%s", report->message);
}

ad_status ad_check_custom_site(ad_tape tape, const ad_custom_rule *rule, void *payload, int n,
                               const ad_tensor *x, int n_out, double tolerance,
                               ad_gradient_report *report, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    ad_gradient_report unwanted;
    report = report ? report : &unwanted;
    *report = (ad_gradient_report){.leaf = -1};
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "check_custom", site);
    if (!t)
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (!rule || n_out < 1 || n_out > AD_CUSTOM_MAX_RESULTS)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    rule ? "check_custom: n_out must be from 1 to %d"
                                         : "check_custom: rule is a null pointer",
                                    (int)AD_CUSTOM_MAX_RESULTS);
    struct custom_check c = {.t = t,
                             .rule = rule,
                             .payload = payload,
                             .n_out = n_out,
                             .tolerance = tolerance,
                             .site = site,
                             .scratch.memory = *t->memory,
                             .leaf = -1};
    const ad_status status = custom_check(&c, tape, n, x, report);
    ad_scratch_free(&c.scratch);
    return status;
}
