/* tape_nonfinite_scalars.c: see tape_nonfinite_scalars.h. */
#include "tape_nonfinite_scalars.h"

#include "tape_call.h"
#include "tape_record_watch.h"
#include "tape_statement_sweep.h"

void tape_nonfinite_statement(struct tape *t, double value, struct tape_site site)
{
    tape_settle(t);
    if (t->scalar_watch)
        t->scalar_watch->result(t->scalar_watch->payload, tape_statement_next(t), value, site);
    if (tape_nonfinite_is(t->nonfinite, value))
        tape_fail(t, TAPE_ERROR_NONFINITE, site, "statement: value %g",
                  tape_nonfinite_shown(value));
    else if (tape_watches(t) && !t->no_grad && t->error.code == TAPE_OK &&
             !t->statements->calling && tape_call_takes_scalars(t))
        tape_watch_numbers(t, "statement", site, tape_statement_next(t), 1, value);
}

static struct tape_site statement_site(const struct tape *t, const struct tape_run *run,
                                       const uint32_t *word)
{
    return (struct tape_site){t->locate(tape_statement_site(word), run->near), 0};
}

bool tape_nonfinite_result(struct tape *t, const char *what, int64_t i, double value,
                           struct tape_site site)
{
    if (t->scalar_watch)
        t->scalar_watch->result(t->scalar_watch->payload, tape_statement_next(t) + (uint32_t)i,
                                value, site);
    if (!tape_nonfinite_is(t->nonfinite, value))
        return true;
    tape_fail(t, TAPE_ERROR_NONFINITE, site, "%s: value %g of result %lld", what,
              tape_nonfinite_shown(value), (long long)i);
    return false;
}

/* While a tape looks, a run has one statement, or one fused loop whose values have been looked
 * at. */
void tape_nonfinite_run(struct tape *t, const struct tape_run *run)
{
    if (run->fused_loop)
        return;
    const double *p = run->partial_end;
    const uint32_t *first = NULL; /* in time, and so the last that the walk comes to */
    uint32_t operand = 0;
    double partial = 0;
    uint32_t result = run->first + run->n;
    for (const uint32_t *w = run->word_end; w < run->word_begin; w = tape_statement_behind(w)) {
        const struct tape_operands o = tape_statement_operands(w);
        const uint32_t n = o.general;
        p -= n;
        if (t->scalar_watch)
            t->scalar_watch->statement(t->scalar_watch->payload, --result, &o, p);
        for (uint32_t k = n; k-- > 0;) {
            if (!tape_nonfinite_is(t->nonfinite, p[k]))
                continue;
            first = w;
            operand = k;
            partial = p[k];
        }
    }
    if (first)
        tape_fail(t, TAPE_ERROR_NONFINITE, statement_site(t, run, first),
                  "statement: partial derivative %g by operand %u", tape_nonfinite_shown(partial),
                  operand + 1);
}

/* Of a statement whose pullback has just run: y is its result's adjoint in the lane. */
static bool statement_look(struct tape *t, const struct tape_run *one, const double *adjoint,
                           uint32_t width)
{
    const struct tape_operands o = tape_statement_operands(one->word_end);
    for (uint32_t k = 0; k < o.n; k++)
        for (uint32_t lane = 0; lane < width; lane++) {
            const double x = adjoint[(size_t)o.index[k] * width + lane];
            if (!tape_nonfinite_is(t->nonfinite, x))
                continue;
            tape_fail(t, TAPE_ERROR_NONFINITE, statement_site(t, one, one->word_end),
                      "statement: adjoint %g of operand %u, whose partial derivative is %g, from "
                      "adjoint %g, backward,",
                      tape_nonfinite_shown(x), k + 1,
                      tape_nonfinite_shown(tape_operand_partial(&o, one->partial_begin, k)),
                      adjoint[(size_t)one->first * width + lane]);
            return false;
        }
    return true;
}

static void statement_watch(struct tape *t, const struct tape_run *one, const double *adjoint,
                            uint32_t width)
{
    const double *y = adjoint + (size_t)one->first * width;
    for (uint32_t lane = 0; lane < width; lane++)
        if (y[lane] != 0) {
            tape_watch_statement_pullback(t, statement_site(t, one, one->word_end), one->first,
                                          y[0]);
            return;
        }
}

bool tape_nonfinite_pullback(struct tape *t, const struct tape_run *run, double *adjoint,
                             uint32_t width)
{
    const double *p = run->partial_end;
    uint32_t result = run->first + run->n;
    for (const uint32_t *w = run->word_end, *next; w < run->word_begin; w = next) {
        const struct tape_operands o = tape_statement_operands(w);
        next = o.index + o.n;
        const struct tape_run one = {.partial_begin = p - o.general,
                                     .partial_end = p,
                                     .word_begin = next,
                                     .word_end = w,
                                     .near = run->near,
                                     .first = --result,
                                     .n = 1};
        if (tape_watches(t))
            statement_watch(t, &one, adjoint, width);
        tape_run_pullback(&one, adjoint, width, t->now);
        if (!statement_look(t, &one, adjoint, width))
            return false;
        p -= o.general;
    }
    return true;
}

/* Element i of an operand, with this index. */
static bool element_look(struct tape *t, const struct tape_run *run,
                         const struct tape_fused_loop *s, const double *at, uint32_t width,
                         int operand, uint32_t i)
{
    for (uint32_t lane = 0; lane < width; lane++) {
        if (!tape_nonfinite_is(t->nonfinite, at[lane]))
            continue;
        const struct tape_site site = {t->locate(s->site, run->near), tape_fused_loop_line(s)};
        tape_fail(t, TAPE_ERROR_NONFINITE, site,
                  "%s: adjoint %g of element %u of operand %d, backward,",
                  tape_fused_loop_name(s, run->partial_begin + s->at),
                  tape_nonfinite_shown(at[lane]), i, operand + 1);
        return false;
    }
    return true;
}

bool tape_nonfinite_fused_loop(struct tape *t, const struct tape_run *run,
                               const struct tape_fused_loop *s, const double *adjoint,
                               uint32_t width)
{
    const int n_in = (int)tape_fused_loop_n_in(s);
    const struct tape_fused_loop_in *in = tape_fused_loop_in(s);
    const uint32_t *index = (const uint32_t *)(const void *)(in + n_in);
    for (int k = 0; k < n_in; k++, in++) {
        if (in->first == TAPE_NO_INDICES)
            continue;
        const bool follow = in->first == TAPE_INDICES_FOLLOW;
        for (uint32_t i = 0; i < in->n; i++) {
            const size_t of = follow ? index[i] : in->first + i;
            if (!element_look(t, run, s, adjoint + of * width, width, k, i))
                return false;
        }
        index += follow ? in->n : 0;
    }
    return true;
}
