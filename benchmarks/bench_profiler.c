/* bench_profiler.c: what the profiler costs, against the same source with its hooks compiled out;
 * beside it what torch.profiler costs the same work.
 *
 *     bench_profiler [--case NAME] [--metric NAME] [--rounds N] [--seconds S] [--quick]
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
#include "common_rounds.h"
#include "common_split.h"
#include "common_torch.h"
#include "common_workloads.h"
#include "real.h"

#include <tapescope/ad.h>

#include <getopt.h>
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
enum { MODES = sizeof modes / sizeof *modes, EXACT_PATHS = 2, CASES = 3 };

struct options {
    const char *case_name, *metric;
    int rounds;
    double seconds;
};

static bool wanted(const char *option, const char *name)
{
    return !option || strcmp(option, name) == 0;
}

/* The sum of a step alone, of which the peer tells the parts as well. */
static bool peer_total(void *context, double seconds, double *result)
{
    double step[STEP_METRICS];
    if (!torch_round(context, seconds, step))
        return false;
    result[0] = step[STEP_TOTAL];
    return true;
}

static bool own_total(void *context, double seconds, double *result)
{
    double step[STEP_METRICS];
    if (!own_round(context, seconds, step))
        return false;
    result[0] = step[STEP_TOTAL];
    return true;
}

static struct rounds_plan plan_of(const struct options *options, const struct workload *w,
                                  const char *metric, const char *unit)
{
    return (struct rounds_plan){.suite = "profiler",
                                .case_name = w->spec->name,
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
        if (!wanted(options->metric, modes[m].metric))
            continue;
        struct own own = {
            .workload = w, .profile = modes[m].options ? file : NULL, .options = modes[m].options};
        const struct rounds_plan plan = plan_of(options, w, modes[m].metric, "ns");
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
    if (!wanted(options->metric, "slowdown") || w->spec == &calls_case || !torch_ready(torch, 1))
        return true;
    torch->workload = w;
    struct own own = {.workload = w, .profile = file, .options = modes[EXACT_PATHS].options};
    const struct rounds_plan plan = plan_of(options, w, "slowdown", "1");
    return rounds_compare(&plan, &(struct rounds_side){"exact_paths", own_slowdown, &own},
                          &(struct rounds_side){"torch_profiler", torch_slowdown, torch}) ||
           (!torch->wrong && ad_tape_status(w->tape) == AD_OK);
}

static bool run_case(const struct options *options, const struct workload_case *spec,
                     ad_dtype dtype, struct torch *unprofiled, struct torch *torch)
{
    struct workload w;
    struct own_path path;
    bool done =
        workload_create(&w, spec, dtype) == AD_OK || own_complain(&w, ad_tape_message(w.tape));
    done = done && own_check(&w);
    if (done && !own_path_make(&path)) {
        done = own_complain(&w, "no temporary folder for the profile");
    } else if (done) {
        done = against_unprofiled(options, &w, unprofiled, path.file);
        done = against_torch(options, &w, torch, path.file) && done;
        own_path_drop(&path);
    }
    workload_destroy(&w);
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
    if (!wanted(options->case_name, name) || !wanted(options->metric, "default"))
        return true;
    while (strcmp(c->name, name) != 0)
        c++;
    if (!problem_open(&problem, problem_find(c->problem), NULL))
        return false;
    bool done = own_path_make(&path);
    if (done) {
        done = real_open(&real, &problem, c->objective, NULL);
        const struct rounds_plan plan = {.suite = "profiler",
                                         .case_name = name,
                                         .unit = "ns",
                                         .metric = {"default"},
                                         .n_metrics = 1,
                                         .rounds = options->rounds,
                                         .seconds = options->seconds};
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
    if (!wanted(options->case_name, row->name) || !wanted(options->metric, "split_error_pp"))
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

static bool read_option(int option, struct options *options)
{
    char *end = "";
    if (option == 'c')
        options->case_name = optarg;
    else if (option == 'm')
        options->metric = optarg;
    else if (option == 'r')
        options->rounds = (int)strtol(optarg, &end, 10);
    else if (option == 's')
        options->seconds = strtod(optarg, &end);
    else if (option == 'q')
        options->rounds = 3, options->seconds = 0.05;
    return option != '?' && *end == '\0';
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"case", required_argument, NULL, 'c'},   {"metric", required_argument, NULL, 'm'},
        {"rounds", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 's'},
        {"quick", no_argument, NULL, 'q'},        {0}};
    *options = (struct options){.rounds = 11, .seconds = 0.3};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!read_option(option, options))
            return false;
    return optind == argc && options->rounds >= 1 && options->rounds <= ROUNDS_MAX &&
           options->seconds > 0.0 && options->seconds <= 3600.0;
}

int main(int argc, char **argv)
{
    const struct workload_case *const cases[CASES] = {workload_find("mlp128"),
                                                      workload_find("chain64"), &calls_case};
    struct options options;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr,
                "usage: bench_profiler [--case mlp128|chain64|calls12|burgers|gmm_d10_k25|tensor|"
                "scalar|waits|waits4] [--metric off|exact|exact_paths|sampled_250hz|slowdown|"
                "default|split_error_pp] [--rounds N] [--seconds S] [--quick]\n");
        return 2;
    }
    environment_settle(argv, 1);
    struct torch unprofiled = {.name = "unprofiled", .program = "peer_unprofiled"};
    struct torch torch = torch_peers[TORCH_PYTHON];
    bool done = true;
    for (int c = 0; c < CASES; c++)
        if (wanted(options.case_name, cases[c]->name))
            done =
                run_case(&options, cases[c], c == 0 ? AD_F32 : AD_F64, &unprofiled, &torch) && done;
    for (size_t c = 0; c < sizeof real_names / sizeof *real_names; c++)
        done = real_profiled(&options, real_names[c]) && done;
    for (size_t i = 0; i < sizeof split_rows / sizeof *split_rows; i++)
        done = split(&options, &split_rows[i]) && done;
    peer_stop(&unprofiled.peer);
    peer_stop(&torch.peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
