/* bench_scalar.c: scalar problems recorded statement by statement, against the same problems over
 * double, gradients written by hand, other libraries, and what memory allows.
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * of ours failed or gradients are wrong, whoever's; a peer that is missing is only reported.
 */
#include "common_bandwidth.h"
#include "common_environment.h"
#include "common_forked.h"
#include "common_options.h"
#include "common_peer.h"
#include "common_rounds.h"
#include "common_scalar.h"
#include "real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the two compilers are told apart by their suite. */
#ifdef __clang__
#define SUITE "scalar_clang"
#else
#define SUITE "scalar"
#endif

static const double tolerance = 1e-8; /* ADBench's */

static const char *const metric_name[SCALAR_TIMES] = {"total_warm", "total_cold", "record_cold",
                                                      "record_warm", "reverse_warm"};

/* A case with all that is needed to compute it in each way. */
struct scalar_case {
    const struct options *options;
    const struct real_case *spec;
    struct problem problem;
    void *work;
    double *outputs, *gradient; /* by hand */
    double tape_bytes, statements;
};

enum { OTHERS = 3 };

/* The other libraries. */
static struct {
    const char *name, *program;
    struct peer peer;
    bool tried, usable;
} other[OTHERS] = {
    {.name = "adolc", .program = "peer_adolc"},
    {.name = "sacado", .program = "peer_sacado"},
    {.name = "stan", .program = "peer_stan"},
};

static bool complain(const struct scalar_case *c, const char *what)
{
    fprintf(stderr, "%s: %s\n", c->spec->name, what);
    return false;
}

/* ---- ways to the figures ---- */

/* A tape that is made in the process that measures, with the first step. */
struct own_way {
    const struct scalar_case *c;
    struct real real;
};

static bool own_step(void *context, bool clocked, struct scalar_step *step)
{
    struct own_way *own = context;
    const struct scalar_case *c = own->c;
    const ad_tape_options options = {.no_huge_pages = c->options->no_huge_pages};
    if (!own->real.problem && !real_open(&own->real, &c->problem, c->spec->objective, &options))
        return false;
    /* Where there are many small tapes a clock is read only if asked for. */
    const bool always = c->spec->objective != NULL;
    if (!real_step(&own->real, clocked || always ? rounds_now : NULL))
        return false;
    if (clocked || always)
        step->record = own->real.record;
    step->bytes = own->real.bytes;
    step->statements = own->real.statements;
    return true;
}

static bool value_step(void *context, bool clocked, struct scalar_step *step)
{
    const struct scalar_case *c = context;
    (void)clocked;
    (void)step;
    c->problem.spec->kind->value(&c->problem, c->problem.x, c->work, c->outputs);
    return true;
}

static bool hand_written_step(void *context, bool clocked, struct scalar_step *step)
{
    const struct scalar_case *c = context;
    (void)clocked;
    (void)step;
    c->problem.spec->kind->gradient(&c->problem, c->problem.x, c->work, c->outputs, c->gradient);
    return true;
}

/* ---- rounds ---- */

static bool own_round(void *context, double seconds, double *result)
{
    struct own_way own = {.c = context};
    const struct scalar_way way = {own_step, &own};
    return scalar_measure(&way, seconds, result);
}

/* The primal stands beside each of our figures. */
static bool primal_round(void *context, double seconds, double *result)
{
    const struct scalar_way way = {value_step, context};
    if (!scalar_measure(&way, seconds, result))
        return false;
    for (int m = 0; m < SCALAR_TIMES; ++m)
        result[m] = result[SCALAR_TOTAL_WARM];
    return true;
}

static bool hand_written_round(void *context, double seconds, double *result)
{
    const struct scalar_way way = {hand_written_step, context};
    return scalar_measure(&way, seconds, result);
}

struct memory_round {
    struct bandwidth bandwidth;
    double tapes;
};

static bool memory_round(void *context, double seconds, double *result)
{
    const struct memory_round *m = context;
    double write, read;
    bandwidth_measure(&m->bandwidth, seconds, &write, &read);
    result[SCALAR_RECORD_WARM] = write * m->tapes;
    result[SCALAR_REVERSE_WARM] = read * m->tapes;
    result[SCALAR_TOTAL_WARM] = result[SCALAR_RECORD_WARM] + result[SCALAR_REVERSE_WARM];
    return true;
}

struct other_round {
    const struct scalar_case *c;
    struct peer *peer;
    const char *name;
    double bytes;
};

static bool ask_round(void *context, double seconds, double *result)
{
    struct other_round *o = context;
    char text[PEER_LINE_BYTES];
    const struct options *options = o->c->options;
    const int length = snprintf(text, sizeof text, "%s %g %s", o->c->problem.spec->name, seconds,
                                options->data ? options->data : "-");
    if (length < 0 || (size_t)length >= sizeof text)
        return complain(o->c, "the name of the data folder is too long");
    const char *answer = peer_ask(o->peer, text);
    const bool done = scalar_answer(answer, result, &o->bytes);
    if (!done)
        fprintf(stderr, "skipped %s of %s: %s\n", o->c->spec->name, o->name,
                answer ? answer : o->peer->line);
    return done;
}

/* ---- comparisons ---- */

/* Of bundle adjustment bytes and statements are those of one observation, of many. */
static double tapes(const struct scalar_case *c)
{
    return c->spec->objective ? 1.0 : (double)c->problem.n_outputs / 3.0;
}

enum {
    WARM = 1u << SCALAR_TOTAL_WARM | 1u << SCALAR_RECORD_WARM | 1u << SCALAR_REVERSE_WARM,
    TOTALS = 1u << SCALAR_TOTAL_WARM | 1u << SCALAR_TOTAL_COLD,
    RECORD_COLD = 1u << SCALAR_RECORD_COLD,
    ALL = WARM | TOTALS | RECORD_COLD
};

/* Rows for the metrics whose bit is set. */
static bool compare(struct scalar_case *c, const struct rounds_side *peer, unsigned metrics)
{
    struct rounds_plan plan = {.suite = SUITE,
                               .case_name = c->spec->name,
                               .unit = "ns",
                               .n_metrics = SCALAR_TIMES,
                               .rounds = c->options->rounds,
                               .seconds = c->options->seconds};
    if (!c->spec->objective)
        metrics &=
            ~(unsigned)RECORD_COLD; /* a thousand small tapes: the clock is not read among them */
    for (int m = 0; m < SCALAR_TIMES; ++m)
        plan.metric[m] = metrics >> m & 1 ? metric_name[m] : NULL;
    return rounds_compare(&plan, &(struct rounds_side){"tapescope", own_round, c}, peer);
}

/* Whether the rows of a peer are wanted: of those that the list names, or of all. */
static bool wanted(const struct scalar_case *c, const char *peer)
{
    const size_t length = strlen(peer);
    const char *at = c->options->peer;
    while (at && (strcspn(at, ",") != length || strncmp(at, peer, length) != 0)) {
        at = strchr(at, ',');
        if (!at)
            return false;
        ++at;
    }
    return true;
}

static void bytes_row(const struct scalar_case *c, const char *peer, double bytes)
{
    if (bytes > 0.0)
        rounds_row(SUITE, c->spec->name, "tape_bytes", c->tape_bytes, peer, bytes,
                   c->tape_bytes / bytes, "B");
}

static bool against_others(struct scalar_case *c)
{
    static const char *const no_settings[PEER_MAX_SETTINGS];
    bool done = true;
    for (int k = 0; k < OTHERS; ++k) {
        if (!wanted(c, other[k].name))
            continue;
        if (!other[k].tried) {
            const char *hello = peer_start(&other[k].peer, other[k].program, no_settings);
            other[k].tried = true;
            other[k].usable = hello && strncmp(hello, "ready ", 6) == 0;
            fprintf(stderr, other[k].usable ? "%s: %s\n" : "skipped %s: %s\n", other[k].name,
                    hello ? hello : other[k].peer.line);
        }
        struct other_round o = {c, &other[k].peer, other[k].name, NAN};
        if (!other[k].usable)
            continue;
        if (compare(c, &(struct rounds_side){o.name, ask_round, &o}, ALL))
            bytes_row(c, o.name, o.bytes);
        else
            done = false;
    }
    return done;
}

static bool against_memory(struct scalar_case *c)
{
    struct memory_round m = {.tapes = tapes(c)};
    if (!wanted(c, "memory_limit"))
        return true;
    if (!bandwidth_open(&m.bandwidth, (size_t)c->tape_bytes))
        return false;
    bool done = compare(c, &(struct rounds_side){"memory_limit", memory_round, &m}, WARM);
    bandwidth_close(&m.bandwidth);
    return done;
}

/* ---- a case ---- */

/* One step in a process of its own, whose gradient must be the one by hand. */
static bool check(void *context, double *figures)
{
    struct scalar_case *c = context;
    struct own_way own = {.c = c};
    struct scalar_step step;
    if (!hand_written_step(c, false, &step) || !own_step(&own, false, &step))
        return false;
    figures[0] = step.bytes;
    figures[1] = step.statements;
    figures[2] = problem_distances(c->problem.n_gradient, own.real.gradient, c->gradient);
    return true;
}

static bool check_and_count(struct scalar_case *c)
{
    double figures[3];
    if (!forked(check, c, 3, figures))
        return complain(c, "the gradient could not be computed");
    c->tape_bytes = figures[0];
    c->statements = figures[1];
    if (!(figures[2] < tolerance)) {
        fprintf(stderr, "%s: the gradient is wrong by %g\n", c->spec->name, figures[2]);
        return false;
    }
    return true;
}

static bool tell_primal(struct scalar_case *c)
{
    double figures[SCALAR_FIGURES];
    if (!primal_round(c, c->options->seconds, figures))
        return false;
    const double statements = tapes(c) * c->statements;
    fprintf(stderr,
            "%s: %.0f statements of %.1f bytes; the primal takes %.4g us, %.3g ns a statement\n",
            c->spec->name, statements, c->tape_bytes / c->statements, 1e-3 * figures[0],
            figures[0] / statements);
    return true;
}

static bool run_case(const struct options *options, const struct real_case *spec)
{
    struct scalar_case c = {.options = options, .spec = spec};
    if (!problem_open(&c.problem, problem_find(spec->problem), options->data))
        return false;
    c.work = malloc(c.problem.work_bytes + 1);
    c.outputs = malloc(c.problem.n_outputs * sizeof *c.outputs);
    c.gradient = malloc(c.problem.n_gradient * sizeof *c.gradient);
    bool done = c.work && c.outputs && c.gradient && check_and_count(&c) && tell_primal(&c);
    if (done) {
        if (wanted(&c, "primal"))
            done = compare(&c, &(struct rounds_side){"primal", primal_round, &c}, ALL);
        if (wanted(&c, "hand_written")) {
            done = compare(&c, &(struct rounds_side){"hand_written", hand_written_round, &c},
                           TOTALS) &&
                   done;
            bytes_row(&c, "hand_written", (double)c.problem.work_bytes);
        }
        if (wanted(&c, "codipack"))
            bytes_row(&c, "codipack", spec->codipack_bytes);
        done = against_memory(&c) && done;
        done = against_others(&c) && done;
    }
    free(c.work);
    free(c.outputs);
    free(c.gradient);
    problem_close(&c.problem);
    return done;
}

/* ---- the program ---- */

static const char *case_name(size_t k)
{
    return real_cases[k].name;
}

int main(int argc, char **argv)
{
    const struct options options = options_read(
        argc, argv,
        &(struct options_program){
            .name = "bench_scalar",
            .known = "cpihrsq",
            .case_name = case_name,
            .more = "peers, one or several as A,B: primal hand_written memory_limit codipack adolc "
                    "sacado stan",
            .defaults = {.rounds = 7, .seconds = 0.3},
            .quick_seconds = 0.05});
    bool done = true;
    environment_settle(argv, 1);
    for (const struct real_case *c = real_cases; c->name; ++c)
        if (options_want(options.case_name, c->name))
            done = run_case(&options, c) && done;
    for (int k = 0; k < OTHERS; ++k)
        peer_stop(&other[k].peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
