/* bench_tensor.c: tensor workloads against libtorch, one thread, and against themselves under a
 * profile.
 *
 *     bench_tensor [--case NAME] [--rounds N] [--seconds S]
 *
 * Uses the public header alone. A step of ours is the forward pass, the backward pass and the
 * rewind, which is counted as backward: it clears the gradients. A step of libtorch is the forward
 * and the backward pass. Rows go to standard output, everything else to standard error. The exit
 * status is 1 if something of ours failed or gradients differ; a peer that is missing is only
 * reported.
 */
#include "common_environment.h"
#include "common_peer.h"
#include "common_rounds.h"
#include "common_workloads.h"

#include <tapescope/ad.h>

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORWARD, BACKWARD, TOTAL, METRICS, MAX_STEPS = 1 << 16, METRIC_BYTES = 64 };

/* glibc gives large blocks back to the kernel and asks for them again in each step, which costs
 * libtorch up to half of its time; the large cases are compared with this setting as well. */
static const char keep_memory[] =
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:"
    "glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456";

static const double tolerance = 1e-10;
static const int64_t large_width = 512;

struct options {
    const char *case_name;
    int rounds;
    double seconds;
};

/* Our side of a comparison. */
struct own {
    struct workload *workload;
    const char *profile; /* where to, or NULL: not profiled */
};

/* The other one: what it is asked, and the checksum that it has to give. */
struct other {
    struct peer *peer;
    const struct workload *workload;
    double gradient_sum;
    bool *failed;
};

struct libtorch {
    const char *name, *setting;
    struct peer peer;
    bool tried, usable;
};

static const char *dtype_name(ad_dtype dtype)
{
    return dtype == AD_F32 ? "f32" : "f64";
}

static bool complain(const struct workload *w, const char *what)
{
    fprintf(stderr, "bench_tensor: %s %s: %s\n", w->spec->name, dtype_name(w->dtype), what);
    return false;
}

/* ---- our side ---- */

static bool steps(struct workload *w, double seconds, double *result)
{
    static double sample[METRICS][MAX_STEPS];
    size_t n = 0;
    double end = rounds_now() + 1e9 * seconds;
    double start;
    do {
        start = rounds_now();
        ad_tensor loss = workload_forward(w);
        double middle = rounds_now();
        ad_status status = ad_backward(loss);
        if (status == AD_OK)
            status = ad_tape_rewind(w->tape, w->mark);
        double stop = rounds_now();
        if (status != AD_OK)
            return complain(w, ad_message_of(w->tape));
        size_t slot = n++ % MAX_STEPS;
        sample[FORWARD][slot] = middle - start;
        sample[BACKWARD][slot] = stop - middle;
        sample[TOTAL][slot] = stop - start;
    } while (start < end);
    for (int m = 0; m < METRICS; ++m)
        result[m] = rounds_median(sample[m], n < MAX_STEPS ? n : MAX_STEPS);
    return true;
}

static bool own_round(void *context, double seconds, double *result)
{
    const struct own *own = context;
    if (!own->profile)
        return steps(own->workload, seconds, result);
    if (ad_profile_start(own->profile) != AD_OK)
        return complain(own->workload, ad_message_of((ad_tape){0}));
    bool done = steps(own->workload, seconds, result);
    if (ad_profile_stop() != AD_OK)
        done = complain(own->workload, ad_message_of((ad_tape){0}));
    unlink(own->profile);
    return done;
}

static bool equal(double a, double b)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/* The checksum of one step, which in f64 has to be the one that the case states. */
static bool check_gradients(struct workload *w, double *sum)
{
    ad_status status = ad_backward(workload_forward(w));
    *sum = workload_gradient_sum(w);
    if (status == AD_OK)
        status = ad_tape_rewind(w->tape, w->mark);
    if (status != AD_OK)
        return complain(w, ad_message_of(w->tape));
    if (w->dtype == AD_F64 && !equal(*sum, w->spec->gradient_sum)) {
        char text[128];
        snprintf(text, sizeof text, "sum of gradients %.17g, it should be %.17g", *sum,
                 w->spec->gradient_sum);
        return complain(w, text);
    }
    return true;
}

/* ---- libtorch ---- */

static bool libtorch_ready(struct libtorch *libtorch)
{
    if (libtorch->tried)
        return libtorch->usable;
    libtorch->tried = true;
    const char *hello = peer_start(&libtorch->peer, "peer_libtorch", libtorch->setting);
    char version[64], core[64], blas[PEER_LINE_BYTES];
    if (!hello) {
        fprintf(stderr, "bench_tensor: skipped %s: %s\n", libtorch->name, libtorch->peer.line);
    } else if (sscanf(hello, "ready %63s %63s %1023[^\n]", version, core, blas) != 3) {
        fprintf(stderr, "bench_tensor: skipped %s: it says '%s'\n", libtorch->name, hello);
    } else if (strcmp(core, "-") == 0) {
        fprintf(stderr, "bench_tensor: skipped %s: its BLAS, %s, is not OpenBLAS\n", libtorch->name,
                blas);
    } else {
        fprintf(stderr, "bench_tensor: %s %s with OpenBLAS (%s) from %s; ours: OpenBLAS (%s)\n",
                libtorch->name, version, core, blas, environment_openblas_core());
        libtorch->usable = true;
    }
    return libtorch->usable;
}

/* "ok FORWARD BACKWARD TOTAL GRADIENT_SUM ..." */
static bool parse_answer(const char *answer, double *result, double *sum)
{
    if (strncmp(answer, "ok ", 3) != 0)
        return false;
    const char *at = answer + 3;
    for (int k = 0; k <= METRICS; ++k) {
        char *end;
        double value = strtod(at, &end);
        if (end == at)
            return false;
        *(k < METRICS ? &result[k] : sum) = value;
        at = end;
    }
    return true;
}

static bool other_round(void *context, double seconds, double *result)
{
    struct other *other = context;
    const struct workload *w = other->workload;
    char text[PEER_LINE_BYTES + 64];
    snprintf(text, sizeof text, "%s %s %g", w->spec->name, dtype_name(w->dtype), seconds);
    const char *answer = peer_ask(other->peer, text);
    double sum;
    if (!answer || !parse_answer(answer, result, &sum)) {
        snprintf(text, sizeof text, "skipped, the peer: %s", other->peer->line);
        return complain(w, text);
    }
    if (w->dtype == AD_F64 && !equal(other->gradient_sum, sum)) {
        snprintf(text, sizeof text, "sum of gradients %.17g, the peer's is %.17g",
                 other->gradient_sum, sum);
        *other->failed = true;
        return complain(w, text);
    }
    return true;
}

/* ---- comparisons ---- */

static bool against_libtorch(struct workload *w, const struct options *options, double sum,
                             struct libtorch *libtorch)
{
    if (!libtorch_ready(libtorch))
        return true;
    static const char *const phase[METRICS] = {"forward", "backward", "total"};
    char metric[METRICS][METRIC_BYTES];
    struct rounds_plan plan = {.suite = "tensor",
                               .case_name = w->spec->name,
                               .unit = "ns",
                               .n_metrics = METRICS,
                               .rounds = options->rounds,
                               .seconds = options->seconds};
    for (int m = 0; m < METRICS; ++m) {
        snprintf(metric[m], sizeof metric[m], "%s_1t_%s", dtype_name(w->dtype), phase[m]);
        plan.metric[m] = metric[m];
    }
    bool failed = false;
    struct own own = {.workload = w};
    struct other other = {
        .peer = &libtorch->peer, .workload = w, .gradient_sum = sum, .failed = &failed};
    rounds_compare(&plan, &(struct rounds_side){"tapescope", own_round, &own},
                   &(struct rounds_side){libtorch->name, other_round, &other});
    return !failed && ad_status_of(w->tape) == AD_OK;
}

static bool against_unprofiled(struct workload *w, const struct options *options)
{
    const char *temporary = getenv("TMPDIR");
    char folder[4096], path[4096 + 16], metric[METRIC_BYTES];
    snprintf(folder, sizeof folder, "%s/tapescope-bench-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return complain(w, "no temporary folder for the profile");
    snprintf(path, sizeof path, "%s/profile", folder);
    snprintf(metric, sizeof metric, "%s_1t_total_profiled", dtype_name(w->dtype));
    struct rounds_plan plan = {.suite = "tensor",
                               .case_name = w->spec->name,
                               .unit = "ns",
                               .metric = {[TOTAL] = metric},
                               .n_metrics = METRICS,
                               .rounds = options->rounds,
                               .seconds = options->seconds};
    struct own profiled = {.workload = w, .profile = path}, unprofiled = {.workload = w};
    bool done = rounds_compare(&plan, &(struct rounds_side){"profiled", own_round, &profiled},
                               &(struct rounds_side){"unprofiled", own_round, &unprofiled});
    rmdir(folder);
    return done;
}

static bool run_case(const struct workload_case *spec, ad_dtype dtype,
                     const struct options *options, struct libtorch libtorch[2])
{
    struct workload w;
    double sum;
    bool done = workload_create(&w, spec, dtype) == AD_OK || complain(&w, ad_message_of(w.tape));
    done = done && check_gradients(&w, &sum);
    if (done) {
        done = against_libtorch(&w, options, sum, &libtorch[0]);
        if (done && spec->width >= large_width)
            done = against_libtorch(&w, options, sum, &libtorch[1]);
        bool profiled = strcmp(spec->name, dtype == AD_F32 ? "mlp128" : "chain64") == 0;
        if (done && profiled)
            done = against_unprofiled(&w, options);
    }
    workload_destroy(&w);
    return done;
}

/* ---- the program ---- */

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"case", required_argument, NULL, 'c'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {0}};
    *options = (struct options){.rounds = 7, .seconds = 0.3};
    char *end = "";
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'c')
            options->case_name = optarg;
        else if (option == 'r')
            options->rounds = (int)strtol(optarg, &end, 10);
        else if (option == 's')
            options->seconds = strtod(optarg, &end);
        if (option == '?' || *end != '\0')
            return false;
    }
    if (options->case_name && !workload_find(options->case_name))
        fprintf(stderr, "bench_tensor: there is no case %s\n", options->case_name);
    else
        return optind == argc && options->rounds >= 1 && options->rounds <= ROUNDS_MAX &&
               options->seconds > 0.0 && options->seconds <= 3600.0;
    return false;
}

int main(int argc, char **argv)
{
    environment_settle(argv);
    struct options options;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: bench_tensor [--case NAME] [--rounds N] [--seconds S]\ncases:");
        for (const struct workload_case *c = workload_cases; c->name; ++c)
            fprintf(stderr, " %s%s", c->name, c->named_only ? "*" : "");
        fprintf(stderr, " (*: only if named)\n");
        return 2;
    }
    struct libtorch libtorch[2] = {{.name = "libtorch"},
                                   {.name = "libtorch-malloc", .setting = keep_memory}};
    bool done = true;
    for (const struct workload_case *c = workload_cases; c->name; ++c) {
        if (options.case_name ? strcmp(c->name, options.case_name) != 0 : c->named_only)
            continue;
        done = run_case(c, AD_F64, &options, libtorch) && done;
        done = run_case(c, AD_F32, &options, libtorch) && done;
    }
    peer_stop(&libtorch[0].peer);
    peer_stop(&libtorch[1].peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
