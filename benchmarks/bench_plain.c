/* bench_plain.c: gradients of plain C that was compiled by `tapescope cc`, against the same clang's
 * primal; and what it costs where nothing is recorded. bench_compile says what it takes to compile.
 *
 * Rows go to standard output. The exit status is 1 if a gradient is wrong or a program fails.
 */
#include "common_environment.h"
#include "common_options.h"
#include "common_peer.h"
#include "common_rounds.h"
#include "common_scalar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The problems of one output. */
static const char *const cases[] = {"gmm_d10_k25", "gmm_d20_k50", "lstm_l2_c1024", "hand1",
                                    "lorenz",      "burgers",     "mulchain",      "heston",
                                    "heat",        "bodies"};
enum { CASES = sizeof cases / sizeof *cases };

static struct options options;
static struct peer plain, primal;

/* A program that is asked for one figure or the other of a case. */
struct side {
    struct peer *peer;
    const char *what, *name;
    double bytes;
};

static bool ask(void *context, double seconds, double *result)
{
    struct side *s = context;
    char text[PEER_LINE_BYTES];
    const int length = snprintf(text, sizeof text, "%s %s %g %s", s->what, s->name, seconds,
                                options.data ? options.data : "-");
    if (length < 0 || (size_t)length >= sizeof text) {
        fprintf(stderr, "the name of the data folder is too long\n");
        return false;
    }
    const char *answer = peer_ask(s->peer, text);
    const bool done = scalar_answer(answer, result, &s->bytes);
    /* A value stands beside each of a gradient's figures. */
    for (int m = 0; done && s->peer == &primal && m < SCALAR_TIMES; ++m)
        result[m] = result[SCALAR_TOTAL_WARM];
    if (!done)
        fprintf(stderr, "%s of %s: %s\n", s->what, s->name, answer ? answer : s->peer->line);
    return done;
}

static bool compare(const char *name, const char *what, const char *const metric[SCALAR_TIMES])
{
    struct side ours = {&plain, what, name, NAN}, theirs = {&primal, "value", name, NAN};
    struct rounds_plan plan = {.suite = "plain",
                               .case_name = name,
                               .unit = "ns",
                               .n_metrics = SCALAR_TIMES,
                               .elsewhere = true,
                               .rounds = options.rounds,
                               .seconds = options.seconds};
    memcpy(plan.metric, metric, SCALAR_TIMES * sizeof *metric);
    if (!rounds_compare(&plan, &(struct rounds_side){"tapescope_cc", ask, &ours},
                        &(struct rounds_side){"clang", ask, &theirs}))
        return false;
    if (ours.bytes > 0)
        fprintf(stderr, "%s: %.0f bytes of tape\n", name, ours.bytes);
    return true;
}

static bool run_case(const char *name)
{
    static const char *const gradient[SCALAR_TIMES] = {
        [SCALAR_TOTAL_WARM] = "total_warm",
        [SCALAR_RECORD_WARM] = "record_warm",
        [SCALAR_REVERSE_WARM] = "reverse_warm",
    };
    static const char *const passive[SCALAR_TIMES] = {[SCALAR_TOTAL_WARM] = "passive_warm"};
    const bool done = compare(name, "gradient", gradient);
    return compare(name, "value", passive) && done;
}

static const char *case_name(size_t k)
{
    return k < CASES ? cases[k] : NULL;
}

int main(int argc, char **argv)
{
    static const char *const no_settings[PEER_MAX_SETTINGS];
    options = options_read(argc, argv,
                           &(struct options_program){.name = "bench_plain",
                                                     .known = "cirsq",
                                                     .case_name = case_name,
                                                     .defaults = {.rounds = 7, .seconds = 0.3},
                                                     .quick_seconds = 0.05});
    bool done = true;
    environment_settle(argv, 1);
    if (!peer_start(&plain, "peer_plain", no_settings) ||
        !peer_start(&primal, "peer_primal", no_settings)) {
        fprintf(stderr, "skipped plain: %s%s: clang-19 and llvm-19-dev build it\n", plain.line,
                primal.line);
        return EXIT_SUCCESS;
    }
    for (size_t k = 0; k < CASES; ++k)
        if (options_want(options.case_name, cases[k]))
            done = run_case(cases[k]) && done;
    peer_stop(&plain);
    peer_stop(&primal);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
