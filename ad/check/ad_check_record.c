/* ad_check_record.c: one recorded op against differences of itself.
 *
 * The pullback runs on the record itself, with its views and aliases; the differences are taken on
 * row-major copies of its operands. A value that stands for several operands is one variable.
 */
#include "ad_check.h"

#include "tape_custom.h"
#include "tape_inplace.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CHECK_MAX_OUT = TAPE_CUSTOM_MAX_OUT + 1 };
_Static_assert((int)CHECK_MAX_OUT >= (int)KERNEL_MAX_OUT, "results of any op");

struct recorded_check {
    struct tape *t;
    struct tape_record *r;
    double tolerance;
    struct ad_scratch scratch;
    int n;                          /* distinct operands */
    uint32_t value[TAPE_MAX_IN];    /* of the tape */
    int operand[TAPE_MAX_IN];       /* the first place of each, from 1 */
    void *copy[TAPE_MAX_IN];        /* row-major */
    double *swept[TAPE_MAX_IN];     /* NULL: wants no gradient */
    uint32_t in[TAPE_MAX_IN];       /* constants over the copies, in the record's places */
    double *u[CHECK_MAX_OUT];       /* NULL: integers */
    double *result[CHECK_MAX_OUT];  /* as recorded, later at x + h */
    double *result2[CHECK_MAX_OUT]; /* at x - h */
    double *middle[CHECK_MAX_OUT];  /* at x */
};

static const struct tape_value *output(const struct recorded_check *c, int o)
{
    return &c->t->entries[tape_record_out(c->r)[o]];
}

/* Buffers, copies, and the results as they were recorded. */
static bool prepare(struct recorded_check *c)
{
    const uint32_t *in = tape_record_in(c->r);
    for (int i = 0; i < c->r->n_in; i++) {
        bool seen = false;
        for (int k = 0; k < c->n && !seen; k++)
            seen = c->value[k] == in[i];
        if (seen)
            continue;
        const struct tape_value *v = &c->t->entries[in[i]];
        int k = c->n++;
        c->value[k] = in[i];
        c->operand[k] = i + 1;
        c->copy[k] = ad_scratch_get(&c->scratch, v->array.size, 8);
        if (!c->copy[k])
            return false;
        tape_read(c->t, in[i], c->copy[k]);
        if (v->flags & TAPE_NEEDS_GRADIENT) {
            c->swept[k] = ad_scratch_get(&c->scratch, v->array.size, 8);
            if (!c->swept[k])
                return false;
        }
    }
    for (int o = 0; o < c->r->n_out; o++) {
        const struct tape_value *v = output(c, o);
        if (v->array.dtype != KERNEL_F64)
            continue;
        c->u[o] = ad_scratch_get(&c->scratch, v->array.size, 8);
        c->result[o] = ad_scratch_get(&c->scratch, v->array.size, 8);
        c->result2[o] = ad_scratch_get(&c->scratch, v->array.size, 8);
        c->middle[o] = ad_scratch_get(&c->scratch, v->array.size, 8);
        if (!c->u[o] || !c->result[o] || !c->result2[o] || !c->middle[o])
            return false;
        ad_check_vector(c->u[o], v->array.size);
        tape_read(c->t, tape_record_out(c->r)[o], c->middle[o]);
    }
    return true;
}

/* A leaf's adjoint is a buffer that stays; it holds zeros. */
static void clear(struct tape *t, struct tape_value *v)
{
    tape_adjoint_free(t, v);
    if ((v->flags & TAPE_LEAF) && v->array.size > 0)
        memset(v->adjoint, 0, tape_value_bytes(v));
    tape_adjoint_set(t, v);
}

/* Runs the record's pullback with u as the adjoints of its outputs. */
static bool pull(struct recorded_check *c)
{
    struct tape *t = c->t;
    bool done = true, fresh;
    for (int k = 0; k < c->n; k++)
        if (c->swept[k])
            clear(t, &t->entries[c->value[k]]);
    for (int o = 0; o < c->r->n_out && done; o++) {
        struct tape_value *v = &t->entries[tape_record_out(c->r)[o]];
        if (!c->u[o])
            continue;
        done = tape_adjoint_buffer(t, v, &fresh) != NULL;
        if (done && v->array.size > 0)
            memcpy(v->adjoint, c->u[o], tape_value_bytes(v));
    }
    uint64_t stamp = 0;
    done = done && tape_record_kind(c->r)->sweep(t, c->r, &stamp);
    for (int o = 0; o < c->r->n_out; o++)
        tape_adjoint_free(t, &t->entries[tape_record_out(c->r)[o]]);
    for (int k = 0; k < c->n; k++) {
        struct tape_value *v = &t->entries[c->value[k]];
        if (!c->swept[k])
            continue;
        if (v->array.size > 0 && tape_has_adjoint(t, v))
            memcpy(c->swept[k], v->adjoint, tape_value_bytes(v));
        tape_adjoint_free(t, v);
    }
    return done;
}

/* Runs the op on the copies; its float results, row-major. */
static bool run(struct recorded_check *c, double *const *results)
{
    struct tape *t = c->t;
    struct tape_mark mark = tape_mark_here(t);
    uint32_t out[CHECK_MAX_OUT];
    tape_path_begin(t, c->r->row);
    const struct record_kind *kind = tape_record_kind(c->r);
    bool done = (kind->apply ? kind->apply(t, c->r, c->in, out)
                             : tape_apply(t, c->r->op, c->r->n_in, c->in, c->r->n_attr,
                                          tape_record_attr(c->r), tape_row_site(t, c->r->row),
                                          out)) == TAPE_OK;
    tape_path_end(t);
    for (int o = 0; o < c->r->n_out && done; o++)
        if (c->u[o])
            tape_read(t, out[o], results[o]);
    tape_drop_behind(t, &mark);
    return done;
}

/* Do the copies still give what was recorded? */
static int unchanged(struct recorded_check *c, struct ad_check_fault *fault)
{
    if (!run(c, c->result2))
        return -1;
    for (int o = 0; o < c->r->n_out; o++) {
        for (int64_t i = 0; c->u[o] && i < output(c, o)->array.size; i++) {
            double was = c->middle[o][i], is = c->result2[o][i];
            bool both_nan = isnan(was) && isnan(is);
            if (both_nan || was == is || ad_check_difference(was, is) <= c->tolerance)
                continue;
            *fault = (struct ad_check_fault){
                .changed = true, .element = i, .swept = was, .measured = is};
            return 1;
        }
    }
    return 0;
}

/* What the outputs, times u, gain from `from` to `to`. */
static long double gain(const struct recorded_check *c, double *const *from, double *const *to)
{
    long double sum = 0;
    for (int o = 0; o < c->r->n_out; o++)
        for (int64_t i = 0; c->u[o] && i < output(c, o)->array.size; i++)
            sum += (long double)c->u[o][i] * ((long double)to[o][i] - (long double)from[o][i]);
    return sum;
}

/* Every element of operand k: differences against what the pullback gave. */
static int compare(struct recorded_check *c, int k, struct ad_check_fault *fault)
{
    double *x = c->copy[k];
    for (int64_t j = 0; j < c->t->entries[c->value[k]].array.size; j++) {
        double kept = x[j];
        struct ad_check_step step = ad_check_step(kept);
        x[j] = step.above;
        bool done = run(c, c->result);
        x[j] = step.below;
        done = done && run(c, c->result2);
        x[j] = kept;
        if (!done)
            return -1;
        double measured = (double)(gain(c, c->result2, c->result) /
                                   ((long double)step.above - (long double)step.below));
        if (ad_check_difference(c->swept[k][j], measured) <= c->tolerance)
            continue;
        *fault = (struct ad_check_fault){
            .operand = c->operand[k],
            .element = j,
            .swept = c->swept[k][j],
            .measured = measured,
            .slope.below = (double)gain(c, c->result2, c->middle) / (kept - step.below),
            .slope.above = (double)gain(c, c->middle, c->result) / (step.above - kept)};
        return 1;
    }
    return 0;
}

/* Constants over the copies, then all comparisons. */
static int check(struct recorded_check *c, struct ad_check_fault *fault)
{
    struct tape *t = c->t;
    if (!prepare(c) || !pull(c))
        return -1;
    for (int i = 0; i < c->r->n_in; i++) {
        int k = 0;
        while (c->value[k] != tape_record_in(c->r)[i])
            k++;
        if (c->operand[k] != i + 1) {
            c->in[i] = c->in[c->operand[k] - 1];
            continue;
        }
        const struct kernel_array *a = &t->entries[c->value[k]].array;
        if (tape_borrow(t, a->dtype, a->rank, a->shape, c->copy[k], TAPE_GIVEN_CONSTANT,
                        tape_row_site(t, c->r->row), &c->in[i]) != TAPE_OK)
            return -1;
    }
    int found = unchanged(c, fault);
    for (int k = 0; k < c->n && found == 0; k++)
        if (c->swept[k])
            found = compare(c, k, fault);
    return found;
}

int ad_check_record(struct tape *t, struct tape_record *r, double tolerance,
                    struct ad_check_fault *fault)
{
    /* Scalar statements, their bridges, and checkpoints are no ops. */
    if (r->n_in == 0 || r->n_out == 0 || (!r->op->pullback && !tape_record_kind(r)->apply))
        return 0;
    for (int i = 0; i < r->n_in; i++)
        if (t->entries[tape_record_in(r)[i]].array.dtype == KERNEL_F32)
            return 0;
    for (int o = 0; o < r->n_out; o++)
        if (t->entries[tape_record_out(r)[o]].array.dtype == KERNEL_F32)
            return 0;
    struct recorded_check c = {
        .t = t, .r = r, .tolerance = tolerance, .scratch.memory = *t->memory};
    struct tape_mark mark = tape_mark_here(t);
    int found = check(&c, fault);
    tape_drop_behind(t, &mark);
    ad_scratch_free(&c.scratch);
    return found;
}
