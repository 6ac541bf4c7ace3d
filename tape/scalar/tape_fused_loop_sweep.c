/* tape_fused_loop_sweep.c: the reverse sweep over fused loops: adjoints brought together,
 * pullbacks, and adjoints spread.
 */
#include "tape_nonfinite_scalars.h"
#include "tape_now.h"
#include "tape_record_watch.h"
#include "tape_statement_sweep.h"

#include <string.h>

static bool all_zero(int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0)
            return false;
    return true;
}

/* What the record has of an operand. */
struct part {
    const struct tape_fused_loop_in *in;
    const uint32_t *index; /* NULL: consecutive from in->first */
    double *beside;        /* its adjoints brought together; NULL: they are where they lie */
};

/* A loop of vectors. */
static void numbers_add(uint32_t n, const double *restrict x, double *restrict to)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += x[i];
}

static void fused_loop_spread(const struct part *p, double *adjoint, uint32_t width)
{
    const uint32_t n = p->in->n;
    if (p->index)
        for (uint32_t i = 0; i < n; i++)
            adjoint[(size_t)p->index[i] * width] += p->beside[i];
    else if (width > 1)
        for (uint32_t i = 0; i < n; i++)
            adjoint[((size_t)p->in->first + i) * width] += p->beside[i];
    else
        numbers_add(n, p->beside, adjoint + p->in->first);
}

/* Adjoints of operands: where they lie, or in numbers of their own, which begin at zero. */
static void fused_loop_gather(const struct tape_fused_loop *s, struct kernel_fused_loop *k,
                              struct part *part, double *adjoint, uint32_t width, double *beside)
{
    const double *doubles = k->saved;
    const struct tape_fused_loop_in *in = tape_fused_loop_in(s);
    const uint32_t *index = (const uint32_t *)(const void *)(in + k->n_in);
    bool is_joined = false; /* to the operand before */
    for (int i = 0; i < k->n_in; i++, in++) {
        const bool joins = in->kept == TAPE_JOINED, alone = !joins && !is_joined;
        is_joined = joins;
        k->n[i] = in->n;
        k->stride[i] = 1;
        k->x[i] = NULL;
        k->dx[i] = NULL;
        part[i] = (struct part){.in = in};
        if (in->kept && !joins)
            memcpy(&k->x[i], doubles + in->kept - 1, sizeof k->x[i]);
        if (in->first == TAPE_NO_INDICES && alone)
            continue;
        if (in->first == TAPE_INDICES_FOLLOW) {
            part[i].index = index;
            index += in->n;
        }
        if (!part[i].index && width == 1 && alone) {
            k->dx[i] = adjoint + in->first;
            continue;
        }
        k->dx[i] = beside;
        if (in->first != TAPE_NO_INDICES)
            part[i].beside = beside;
        beside += in->n;
        memset(k->dx[i], 0, in->n * sizeof *k->dx[i]);
    }
}

static void fused_loop_custom(const struct kernel_fused_loop *k)
{
    struct tape_custom c;
    memcpy(&c, k->saved, sizeof c);
    c.pullback(k->saved + sizeof c / sizeof(double), k->m, k->dy, k->n[0], k->dx[0]);
}

static void fused_loop_compiled(const struct kernel_fused_loop *k)
{
    tape_compiled_pullback *pullback;
    memcpy(&pullback, k->saved, sizeof pullback);
    pullback(k->saved + sizeof pullback / sizeof(double), k->dy, k->n_in, k->n, k->dx);
}

/* One of the `width` seeds; adjoint points to its lane of index 0. */
static void fused_loop_pull(const struct tape_fused_loop *s, double *doubles, double *adjoint,
                            uint32_t width, double *beside)
{
    struct kernel_fused_loop k; /* the rest is of values */
    k.m = s->m;
    k.n_in = (int)tape_fused_loop_n_in(s);
    k.saved = doubles;
    k.dy = adjoint + (size_t)s->first * width;
    if (width > 1) {
        for (uint32_t i = 0; i < s->m; i++)
            beside[i] = k.dy[(size_t)i * width];
        k.dy = beside;
        beside += s->m;
    }
    const int n_in = k.n_in;
    if (n_in == 0 || all_zero(k.m, k.dy))
        return;
    struct part part[KERNEL_FUSED_LOOP_IN];
    fused_loop_gather(s, &k, part, adjoint, width, beside);
    const uint32_t kind = tape_fused_loop_kind(s);
    if (kind == KERNEL_FUSED_LOOP_custom)
        fused_loop_custom(&k);
    else if (kind == KERNEL_FUSED_LOOP_compiled)
        fused_loop_compiled(&k);
    else
        kernel_fused_loop_loops_get()->pullback[kind](&k);
    for (int i = 0; i < n_in; i++)
        if (part[i].beside)
            fused_loop_spread(&part[i], adjoint, width);
}

/* Says of a fused loop what statements say of themselves. */
static void fused_loop_publish(const struct tape *t, const struct tape_run *run,
                               const struct tape_fused_loop *s)
{
    const struct tape_site site = {t->locate(s->site, run->near), tape_fused_loop_line(s)};
    tape_now_set(t->now, TAPE_PHASE_BACKWARD, site,
                 tape_fused_loop_name(s, run->partial_begin + s->at), t->now->doing.path);
}

/* The time up to a fused loop is the statements'; and what follows is its own, on its line. */
static void fused_loop_begins(struct tape *t, uint64_t *stamp)
{
    if (!t->hook)
        return;
    const uint64_t now = tape_clock(t);
    t->statements->swept_ticks += now - *stamp;
    *stamp = now;
}

static void fused_loop_ends(struct tape *t, const struct tape_run *run,
                            const struct tape_fused_loop *s, uint64_t *stamp)
{
    if (!t->hook)
        return;
    const uint32_t row =
        tape_run_row(t, run, s->site, tape_fused_loop_name(s, run->partial_begin + s->at));
    if (row == TAPE_ROW_NONE)
        return;
    const uint64_t now = tape_clock(t);
    TAPE_ADD(tape_row(t, row)->backward_ticks, now - *stamp);
    TAPE_ADD(tape_row(t, row)->backward_calls, 1);
    TAPE_ADD(t->ledger.backward_ticks, now - *stamp);
    *stamp = now;
}

static void fused_loop_watch(struct tape *t, const struct tape_run *run,
                             const struct tape_fused_loop *s)
{
    const struct tape_site site = {t->locate(s->site, run->near), tape_fused_loop_line(s)};
    tape_watch_loop_pullback(t, tape_fused_loop_name(s, run->partial_begin + s->at), site);
}

bool tape_run_sweep(struct tape *t, const struct tape_run *run, double *adjoint, uint32_t width,
                    double *beside, uint64_t *stamp)
{
    struct tape_now *now = t->now;
    if (!now && t->hook)
        now = tape_look_here(t->hook, NULL);
    const bool waits = now && t->charges_wait && tape_run_waits(t, run, width);
    if (t->charges_wait && !waits) { /* that is no time of the run's */
        const uint64_t own = t->own_ticks;
        tape_account_settle(t);
        *stamp += t->own_ticks - own;
    }
    t->statements->swept_ticks = 0;
    t->statements->swept_from = *stamp;
    if (!run->fused_loop && t->nonfinite)
        return tape_nonfinite_pullback(t, run, adjoint, width);
    if (!run->fused_loop) {
        if (waits)
            tape_run_pullback_charged(t, run, adjoint, now, stamp);
        else
            tape_run_pullback(run, adjoint, width, now);
        return true;
    }
    const bool calling = t->statements->calling;
    t->statements->calling = true;
    struct tape_run_part part = tape_run_last(run);
    bool ok = true;
    do {
        if (part.statements.n && t->nonfinite)
            ok = tape_nonfinite_pullback(t, &part.statements, adjoint, width);
        else if (part.statements.n)
            tape_run_pullback(&part.statements, adjoint, width, now);
        if (part.fused_loop && t->now)
            fused_loop_publish(t, run, part.fused_loop);
        if (part.fused_loop && tape_watches(t))
            fused_loop_watch(t, run, part.fused_loop);
        if (part.fused_loop)
            fused_loop_begins(t, stamp);
        for (uint32_t lane = 0; part.fused_loop && lane < width; lane++)
            fused_loop_pull(part.fused_loop,
                            (double *)(uintptr_t)(run->partial_begin + part.fused_loop->at),
                            adjoint + lane, width, beside);
        if (part.fused_loop && t->nonfinite)
            ok = ok && tape_nonfinite_fused_loop(t, run, part.fused_loop, adjoint, width);
        if (part.fused_loop)
            fused_loop_ends(t, run, part.fused_loop, stamp);
    } while (ok && tape_run_previous(run, &part));
    t->statements->calling = calling;
    return t->error.code == TAPE_OK;
}
