/* bench_profiler.c: what the profiler costs, against the same source with its hooks compiled out;
 * beside it what torch.profiler costs the same work.
 *
 * split_error_pp is how far samples are from the known shares of two lines, in percentage points:
 * the worst of twelve periods of the program, or of two places where it waits, in one thread and in
 * four, forward and backward, beside what it should be at most.
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * of ours failed or gradients are wrong; a peer that is missing is only reported.
 */
#include "common_calls.h"
#include "common_environment.h"
#include "common_own.h"
#include "common_split.h"
#include "common_torch.h"
#include "real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a round of ours is observed. */
static const struct mode {
    const char *metric;
    const char *options; /* NULL: not at all */
} modes[] = {
    {"off", NULL},
    {"exact", "time=exact,depth=0"},
    {"exact_paths", "time=exact,depth=64"},
    {"sampled_250hz", "time=sampled,freq=250"},
};
enum { MODES = sizeof modes / sizeof *modes, EXACT_PATHS = 2 };

struct bench {
    struct options options;
    struct torch unprofiled, torch;
};

/* The sum of a step alone, of which the peer tells the parts as well. */
static bool total(bool (*round)(void *, double, double *), void *context, double seconds,
                  double *result)
{
    double step[STEP_METRICS];
    if (!round(context, seconds, step))
        return false;
    result[0] = step[STEP_TOTAL];
    return true;
}

static bool peer_total(void *context, double seconds, double *result)
{
    return total(torch_round, context, seconds, result);
}

static bool own_total(void *context, double seconds, double *result)
{
    return total(own_round, context, seconds, result);
}

static struct rounds_plan plan_of(const struct options *options, const char *case_name,
                                  const char *metric, const char *unit)
{
    return (struct rounds_plan){.suite = "profiler",
                                .case_name = case_name,
                                .unit = unit,
                                .metric = {metric},
                                .n_metrics = 1,
                                .rounds = options->rounds,
                                .seconds = options->seconds};
}

static bool against_unprofiled(const struct options *options, struct workload *w,
                               struct torch *unprofiled, const char *file)
{
    bool done = true;
    if (!torch_ready(unprofiled, 1))
        return true;
    unprofiled->workload = w;
    for (int m = 0; m < MODES && done; m++) {
        if (!options_want(options->metric, modes[m].metric))
            continue;
        struct own own = {
            .workload = w, .profile = modes[m].options ? file : NULL, .options = modes[m].options};
        const struct rounds_plan plan = plan_of(options, w->spec->name, modes[m].metric, "ns");
        done = rounds_compare(&plan, &(struct rounds_side){modes[m].metric, own_total, &own},
                              &(struct rounds_side){unprofiled->name, peer_total, unprofiled}) ||
               (!unprofiled->wrong && ad_tape_status(w->tape) == AD_OK);
    }
    return done;
}

/* Time under a profile over time without one, of neighbouring rounds. */
static bool own_slowdown(void *context, double seconds, double *result)
{
    struct own *profiled = context;
    struct own plain = {.workload = profiled->workload};
    double with, without;
    if (!own_total(&plain, seconds / 2, &without) || !own_total(profiled, seconds / 2, &with))
        return false;
    result[0] = with / without;
    return true;
}

static bool torch_slowdown(void *context, double seconds, double *result)
{
    return torch_profiled(context, seconds, result);
}

static bool against_torch(const struct options *options, struct workload *w, struct torch *torch,
                          const char *file)
{
    if (!options_want(options->metric, "slowdown") || w->spec == &calls_case ||
        !torch_ready(torch, 1))
        return true;
    torch->workload = w;
    struct own own = {.workload = w, .profile = file, .options = modes[EXACT_PATHS].options};
    const struct rounds_plan plan = plan_of(options, w->spec->name, "slowdown", "1");
    return rounds_compare(&plan, &(struct rounds_side){"exact_paths", own_slowdown, &own},
                          &(struct rounds_side){"torch_profiler", torch_slowdown, torch}) ||
           (!torch->wrong && ad_tape_status(w->tape) == AD_OK);
}

static bool run_case(void *context, struct workload *w)
{
    struct bench *bench = context;
    struct own_path path;
    if (!own_path_make(&path))
        return own_complain(w, "no temporary folder for the profile");
    bool done = against_unprofiled(&bench->options, w, &bench->unprofiled, path.file);
    done = against_torch(&bench->options, w, &bench->torch, path.file) && done;
    own_path_drop(&path);
    return done;
}

/* ---- problems over ad_real: a profile of default options against none ---- */

static const char *const real_names[] = {"burgers", "gmm_d10_k25"};

struct real_side {
    struct real *real;
    const char *profile; /* where to, or NULL: none is taken */
};

static bool real_round(void *context, double seconds, double *result)
{
    static double total[1 << 16];
    const struct real_side *side = context;
    size_t n = 0;
    if (side->profile && ad_profile_start_with(side->profile, NULL) != AD_OK) {
        fprintf(stderr, "%s\n", ad_tape_message((ad_tape){0}));
        return false;
    }
    const double end = rounds_now() + 1e9 * seconds;
    double start = rounds_now();
    while (start < end) {
        if (!real_step(side->real, NULL))
            return false;
        const double now = rounds_now();
        total[n++ % (sizeof total / sizeof *total)] = now - start;
        start = now;
    }
    if (side->profile && ad_profile_stop() != AD_OK) {
        fprintf(stderr, "%s\n", ad_tape_message((ad_tape){0}));
        return false;
    }
    result[0] = rounds_median(total, n < 1 << 16 ? n : 1 << 16);
    return true;
}

static bool real_profiled(const struct options *options, const char *name)
{
    const struct real_case *c = real_cases;
    struct problem problem;
    struct real real;
    struct own_path path;
    if (!options_want(options->case_name, name) || !options_want(options->metric, "default"))
        return true;
    while (strcmp(c->name, name) != 0)
        c++;
    if (!problem_open(&problem, problem_find(c->problem), NULL))
        return false;
    bool done = own_path_make(&path);
    if (done) {
        done = real_open(&real, &problem, c->objective, NULL);
        const struct rounds_plan plan = plan_of(options, name, "default", "ns");
        struct real_side with = {&real, path.file}, without = {&real, NULL};
        done = done && rounds_compare(&plan, &(struct rounds_side){"default", real_round, &with},
                                      &(struct rounds_side){"off", real_round, &without});
        real_close(&real);
        own_path_drop(&path);
    }
    problem_close(&problem);
    return done;
}

/* ---- two lines of known shares ---- */

enum { SPLIT_HZ = 4000, SPLIT_ROUNDS = 20 }; /* so many times the seconds of a round a period */

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* The programs of one row: their periods, and where each of them waits. */
static const struct split_row {
    const char *name;
    double bound;
    bool scalar;
    bool waits; /* before the one line, then before the other, at one period */
    int threads;
} split_rows[] = {{"tensor", 2, false, false, 1},
                  {"scalar", 5, true, false, 1},
                  {"waits", 2, false, true, 1},
                  {"waits4", 2, false, true, 4}};
enum { SPLIT_WAITED = 8 }; /* the period of 4 ms */

static bool split_one(const struct split_row *row, const struct split_program *program,
                      const struct options *options, const char *file, double *worst)
{
    struct split_error error;
    /* A thread that waits has fewer samples at work. */
    const double seconds = (row->waits ? 3 : 1) * SPLIT_ROUNDS * options->seconds;
    if (!split_measure(program, seconds, SPLIT_HZ, file, &error))
        return false;
    fprintf(stderr,
            "%s, period %g us%s: forward %.2f pp, backward %.2f pp off; the standard "
            "errors are %.2f and %.2f\n",
            row->name, (double)program->period_ns / 1e3,
            program->wait == SPLIT_NO_WAIT         ? ""
            : program->wait == SPLIT_WAIT_BEFORE_A ? ", waits before A"
                                                   : ", waits before B",
            error.forward_pp, error.backward_pp, error.forward_se, error.backward_se);
    *worst = greater(*worst, greater(error.forward_pp, error.backward_pp));
    return true;
}

static bool split(const struct options *options, const struct split_row *row)
{
    double worst = 0;
    struct own_path path;
    if (!options_want(options->case_name, row->name) ||
        !options_want(options->metric, "split_error_pp"))
        return true;
    if (!own_path_make(&path)) {
        fprintf(stderr, "no temporary folder for the profile\n");
        return false;
    }
    bool done = true;
    for (int k = row->waits ? SPLIT_WAITED : 0;
         k < (row->waits ? SPLIT_WAITED + 1 : SPLIT_PERIODS) && done; k++)
        for (int wait = row->waits; wait <= 2 * row->waits && done; wait++) {
            const struct split_program program = {.scalar = row->scalar,
                                                  .period_ns = split_periods[k],
                                                  .wait = (enum split_wait)wait,
                                                  .threads = row->threads};
            done = split_one(row, &program, options, path.file, &worst);
        }
    own_path_drop(&path);
    if (done)
        rounds_row("profiler", row->name, "split_error_pp", worst, "bound", row->bound,
                   worst / row->bound, "pp");
    return done;
}

/* ---- the program ---- */

static const char *case_name(size_t k)
{
    static const char *const names[] = {"mlp128", "chain64", "calls12", "burgers", "gmm_d10_k25",
                                        "tensor", "scalar",  "waits",   "waits4",  NULL};
    return names[k];
}

int main(int argc, char **argv)
{
    static struct bench bench = {
        .unprofiled = {.name = "unprofiled", .program = "peer_unprofiled"}};
    bench.options = options_read(
        argc, argv,
        &(struct options_program){.name = "bench_profiler",
                                  .known = "cmrsq",
                                  .case_name = case_name,
                                  .more = "metrics: off exact exact_paths sampled_250hz slowdown "
                                          "default split_error_pp",
                                  .defaults = {.rounds = 11, .seconds = 0.3},
                                  .quick_seconds = 0.05});
    const struct options *options = &bench.options;
    const struct workload_case *const cases[] = {workload_find("mlp128"), workload_find("chain64"),
                                                 &calls_case};
    bool done = true;
    environment_settle(argv, 1);
    bench.torch = torch_peers[TORCH_PYTHON];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (options_want(options->case_name, cases[c]->name))
            done = own_with(cases[c], c == 0 ? AD_F32 : AD_F64, run_case, &bench) && done;
    for (size_t c = 0; c < sizeof real_names / sizeof *real_names; c++)
        done = real_profiled(options, real_names[c]) && done;
    for (size_t i = 0; i < sizeof split_rows / sizeof *split_rows; i++)
        done = split(options, &split_rows[i]) && done;
    peer_stop(&bench.unprofiled.peer);
    peer_stop(&bench.torch.peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
