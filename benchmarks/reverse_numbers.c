/* reverse_numbers.c: see reverse_numbers.h.
 *
 * The objectives are those of reals/, compiled once more with AD_REAL_PROGRAM.
 */
#include "reverse_numbers.h"

#include "common_environment.h"
#include "common_own.h"
#include "common_peer.h"
#include "common_rounds.h"

#include "real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const numbers_cases[] = {"burgers", "lorenz", NULL};

extern const struct real_objective program_lorenz, program_burgers;

/* In the order of the cases. */
static const struct real_objective *const statements_of[] = {&real_burgers, &real_lorenz},
                                          *const programs_of[] = {&program_burgers,
                                                                  &program_lorenz};

struct numbers {
    const char *name;
    struct problem problem;
    struct real statements, program;
    ad_real y;
    double *direction, *product, *gradient;
    struct peer peer;
};

typedef ad_status numbers_run(struct numbers *n);

static ad_status statements_gradient(struct numbers *n)
{
    return real_step(&n->statements, NULL) ? AD_OK : ad_tape_status(n->statements.tape);
}

static ad_status program_hvp(struct numbers *n)
{
    return ad_real_hvp(n->program.tape, n->y, (int64_t)n->problem.n_variables, n->program.x,
                       n->direction, n->product, NULL);
}

static ad_status program_replay(struct numbers *n)
{
    const int64_t count = (int64_t)n->problem.n_variables;
    const ad_status status = ad_tape_replay(n->program.tape, count, n->program.x, n->problem.x, 0);
    return status != AD_OK
               ? status
               : ad_real_vjp(n->program.tape, 1, &n->y, count, n->program.x, NULL, n->gradient);
}

static bool numbers_complain(const struct numbers *n, const char *why)
{
    fprintf(stderr, "%s: %s\n", n->name, why);
    return false;
}

static bool program_record(struct numbers *n)
{
    struct real *p = &n->program;
    ad_real_leaves(p->tape, (int64_t)n->problem.n_variables, n->problem.x, p->x);
    ad_tape_program_begin(p->tape);
    p->objective->value(&n->problem, p->x, p->work, &n->y);
    return ad_tape_program_end(p->tape) == AD_OK || numbers_complain(n, ad_tape_message(p->tape));
}

/* ---- are they right? ---- */

/* a[n] is b[n] to `tolerance` of the largest. */
static bool numbers_agree(const double *a, const double *b, size_t n, double tolerance)
{
    double worst = 0, most = 0;
    for (size_t k = 0; k < n; k++) {
        most = fmax(most, fabs(b[k]));
        worst = fmax(worst, isnan(a[k] - b[k]) ? INFINITY : fabs(a[k] - b[k]));
    }
    return worst <= tolerance * most;
}

/* The gradient is that of the statements; and v H w is w H v. */
static bool numbers_are_right(struct numbers *n)
{
    const size_t count = n->problem.n_variables;
    double *const other = malloc((count + 1) * sizeof *other), form[2] = {0, 0}, size = 0;
    bool done = other && statements_gradient(n) == AD_OK && program_replay(n) == AD_OK &&
                numbers_agree(n->gradient, n->statements.gradient, count, 1e-9);
    for (size_t i = 0; i < count && other; i++)
        other[i] = sin(1.37 * (double)i) + 0.5;
    for (int k = 0; k < 2 && done; k++) {
        done = program_hvp(n) == AD_OK;
        for (size_t i = 0; i < count; i++) {
            form[k] += n->product[i] * other[i];
            size += fabs(n->product[i] * other[i]);
            const double swapped = n->direction[i];
            n->direction[i] = other[i];
            other[i] = swapped;
        }
    }
    done = done && fabs(form[0] - form[1]) <= 1e-9 * size;
    free(other);
    return done || numbers_complain(n, "a derivative is wrong, or failed");
}

/* ---- rounds ---- */

struct numbers_repeated {
    struct numbers *of;
    numbers_run *run;
};

static bool numbers_once(void *context)
{
    const struct numbers_repeated *r = context;
    return r->run(r->of) == AD_OK || numbers_complain(r->of, "a round failed");
}

static bool peer_round(void *context, double seconds, double *result)
{
    struct numbers *n = context;
    char text[128];
    (void)snprintf(text, sizeof text, "%s %.9g", n->name, seconds);
    const char *answer = peer_ask(&n->peer, text);
    char *end = text;
    if (!answer || strncmp(answer, "ok ", 3) != 0)
        return numbers_complain(n, answer ? answer : n->peer.line);
    *result = strtod(answer + 3, &end);
    return *end == '\0' || numbers_complain(n, answer);
}

static bool numbers_rows(const struct options *options, struct numbers *n)
{
    static const char *const no_settings[PEER_MAX_SETTINGS] = {NULL};
    char metric[2][OWN_METRIC_BYTES];
    (void)snprintf(metric[0], sizeof metric[0], "f64_%dt_hvp", options->threads);
    (void)snprintf(metric[1], sizeof metric[1], "f64_%dt_replay", options->threads);
    struct numbers_repeated run[] = {
        {n, program_hvp}, {n, program_replay}, {n, statements_gradient}};
    struct rounds_repeated hvp = {numbers_once, &run[0]}, replay = {numbers_once, &run[1]},
                           gradient = {numbers_once, &run[2]};
    struct rounds_plan plan = {.suite = "reverse",
                               .case_name = n->name,
                               .unit = "ns",
                               .metric = {metric[0]},
                               .n_metrics = 1,
                               .rounds = options->rounds,
                               .seconds = options->seconds};
    const struct rounds_side statements = {"gradient", rounds_repeat, &gradient};
    bool done =
        rounds_compare(&plan, &(struct rounds_side){"tapescope", rounds_repeat, &hvp}, &statements);
    plan.metric[0] = metric[1];
    const struct rounds_side ours = {"tapescope", rounds_repeat, &replay};
    done = done && rounds_compare(&plan, &ours, &statements);
    if (done && peer_start(&n->peer, "peer_adolc_replay", no_settings)) {
        done = rounds_compare(&plan, &ours, &(struct rounds_side){"adolc", peer_round, n});
        peer_stop(&n->peer);
    } else if (done) {
        fprintf(stderr, "%s: no row of ADOL-C: %s\n", n->name, n->peer.line);
    }
    return done;
}

static bool numbers_open(struct numbers *n, size_t k)
{
    if (!problem_open(&n->problem, problem_find(n->name), NULL))
        return false;
    const size_t count = n->problem.n_variables;
    n->direction = malloc(count * sizeof *n->direction);
    n->product = malloc(count * sizeof *n->product);
    n->gradient = malloc(count * sizeof *n->gradient);
    for (size_t i = 0; i < count && n->direction; i++)
        n->direction[i] = cos(0.91 * (double)i) / sqrt((double)count);
    return n->direction && n->product && n->gradient &&
           real_open(&n->program, &n->problem, programs_of[k], NULL) && program_record(n) &&
           ad_tape_record_end(n->program.tape) == AD_OK &&
           real_open(&n->statements, &n->problem, statements_of[k], NULL);
}

bool numbers_compare(const struct options *options, const char *name)
{
    struct numbers n = {.name = name};
    size_t k = 0;
    while (numbers_cases[k] != name)
        k++;
    const bool done = numbers_open(&n, k) && numbers_are_right(&n) && numbers_rows(options, &n);
    real_close(&n.statements);
    real_close(&n.program);
    free(n.direction);
    free(n.product);
    free(n.gradient);
    problem_close(&n.problem);
    return done;
}
