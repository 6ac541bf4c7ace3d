/* peer_plain.c: the scalar problems as they are, in plain C. Two programs: peer_plain, compiled by
 * `tapescope cc`, and peer_primal, by the same clang alone (PEER_PRIMAL).
 *
 * Reads "WHAT CASE SECONDS FOLDER" ("-": inputs of its own) a line, WHAT being gradient or value,
 * and answers "ok" and the figures of common_scalar.h, or why not. A gradient is compared with the
 * one by hand first. Values by peer_plain: nothing is recorded.
 */
#include "common_forked.h"
#include "common_rounds.h"
#include "common_scalar.h"
#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
    struct problem problem;
    void *work;
    double *x, *exact, *gradient;
    double output;
};

static bool value_step(void *context, bool clocked, struct scalar_step *step)
{
    struct session *s = context;
    (void)clocked;
    (void)step;
    s->problem.spec->kind->value(&s->problem, s->x, s->work, &s->output);
    return true;
}

#ifdef PEER_PRIMAL
static bool gradient_step(void *context, bool clocked, struct scalar_step *step)
{
    return value_step(context, clocked, step) && false;
}

static bool check(void *context, double *figures)
{
    (void)context;
    (void)figures;
    return false;
}
#else
#include <tapescope/ad_plain.h>

static bool gradient_step(void *context, bool clocked, struct scalar_step *step)
{
    static ad_tape tape; /* made in the process that measures, with the first step */
    static ad_real *k;
    struct session *s = context;
    const int64_t n = (int64_t)s->problem.n_variables;
    ad_stats stats;
    (void)clocked;
    if (!k && ((k = calloc((size_t)n, sizeof *k)) == NULL || ad_tape_create(&tape, NULL) != AD_OK))
        return false;
    const double start = rounds_now();
    if (ad_plain_leaves(tape, n, s->x, k) != AD_OK)
        return false;
    value_step(s, false, step);
    const double middle = rounds_now();
    if (ad_plain_backward(tape, &s->output) != AD_OK ||
        ad_plain_gradients(tape, n, k, s->gradient) != AD_OK ||
        ad_tape_stats(tape, &stats) != AD_OK)
        return false;
    step->record = middle - start;
    step->reverse = rounds_now() - middle;
    step->bytes = (double)stats.live_bytes;
    step->statements = NAN;
    return ad_tape_reset(tape) == AD_OK;
}

static bool check(void *context, double *figures)
{
    struct session *s = context;
    struct scalar_step step;
    *figures = NAN;
    if (!gradient_step(s, false, &step))
        return false;
    *figures = problem_distances(s->problem.n_gradient, s->gradient, s->exact);
    return *figures < 1e-8; /* ADBench's */
}
#endif

static double *numbers(size_t n)
{
    return calloc(n + 1, sizeof(double));
}

static bool session_open(struct session *s, const char *name, const char *folder)
{
    const struct problem_case *spec = problem_find(name);
    memset(s, 0, sizeof *s);
    if (!spec || !problem_open(&s->problem, spec, strcmp(folder, "-") == 0 ? NULL : folder))
        return false;
    const struct problem *p = &s->problem;
    s->work = calloc(1, p->work_bytes + 64);
    s->x = numbers(p->n_variables);
    s->exact = numbers(p->n_gradient);
    s->gradient = numbers(p->n_gradient);
    if (!s->work || !s->x || !s->exact || !s->gradient || p->n_outputs != 1)
        return false;
    memcpy(s->x, p->x, p->n_variables * sizeof *s->x);
    spec->kind->gradient(p, p->x, s->work, &s->output, s->exact);
    return true;
}

static void answer(const char *line)
{
    char what[16], name[64], folder[4096];
    double seconds, figures[SCALAR_FIGURES], unused;
    struct session s;
    if (sscanf(line, "%15s %63s %lf %4095[^\n]", what, name, &seconds, folder) != 4) {
        printf("not a question\n");
        return;
    }
    const bool gradient = strcmp(what, "gradient") == 0;
    const struct scalar_way way = {gradient ? gradient_step : value_step, &s};
    if (!session_open(&s, name, folder))
        printf("no such problem\n");
    else if (gradient && !forked(check, &s, 1, &unused))
        printf("its gradient is wrong, or it failed\n");
    else if (!scalar_measure(&way, seconds, figures))
        printf("it failed\n");
    else {
        printf("ok");
        for (int m = 0; m < SCALAR_FIGURES; ++m)
            printf(" %.9g", figures[m]);
        printf("\n");
    }
    free(s.work);
    free(s.x);
    free(s.exact);
    free(s.gradient);
    problem_close(&s.problem);
}

int main(void)
{
    char line[8192];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        answer(line);
        fflush(stdout);
    }
    return 0;
}
