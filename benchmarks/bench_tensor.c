/* bench_tensor.c: tensor workloads against libtorch, forward and backward apart, in both element
 * types, on one thread and on two; against the bare products of a perceptron; against themselves
 * under a profile; and the bytes saved for the backward pass against PyTorch's.
 *
 *     bench_tensor [--case NAME] [--dtype f32|f64] [--threads N] [--peer NAME]
 *                  [--rounds N] [--seconds S] [--quick]
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * of ours failed or gradients are wrong, whoever's; a peer that is missing is only reported.
 */
#include "common_environment.h"
#include "common_gemm.h"
#include "common_own.h"
#include "common_rounds.h"
#include "common_torch.h"
#include "common_workloads.h"

#include <tapescope/ad.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRIC_BYTES = 64, MAX_THREADS = 64 };

struct options {
    const char *case_name, *dtype, *peer;
    int threads; /* 0: one, then two */
    int rounds;
    double seconds;
};

/* What is done to each workload, with all peers. */
struct bench {
    struct options options;
    struct torch torch[TORCH_PEERS];
};

/* Whether the rows of a peer are wanted. */
static bool wanted(const struct bench *bench, const char *peer)
{
    return !bench->options.peer || strcmp(bench->options.peer, peer) == 0;
}

/* "f64_1t_total" */
static void metric_name(char *name, const struct workload *w, int threads, const char *what)
{
    snprintf(name, METRIC_BYTES, "%s_%dt_%s", own_dtype_name(w->dtype), threads, what);
}

/* Rows for the phases of a step whose bit is set in `phases`; `suffix` ends their names. */
static bool compare(const struct bench *bench, const struct own *own,
                    const struct rounds_side *peer, unsigned phases, const char *suffix)
{
    char metric[STEP_METRICS][METRIC_BYTES], what[METRIC_BYTES / 2];
    struct own copy = *own;
    struct rounds_plan plan = {.suite = "tensor",
                               .case_name = own->workload->spec->name,
                               .unit = "ns",
                               .n_metrics = STEP_METRICS,
                               .rounds = bench->options.rounds,
                               .seconds = bench->options.seconds};
    for (int m = 0; m < STEP_METRICS; ++m) {
        snprintf(what, sizeof what, "%s%s", step_phase[m], suffix);
        metric_name(metric[m], own->workload, bench->options.threads, what);
        plan.metric[m] = phases >> m & 1 ? metric[m] : NULL;
    }
    return rounds_compare(
        &plan, &(struct rounds_side){own->profile ? "profiled" : "tapescope", own_round, &copy},
        peer);
}

static bool against_libtorch(const struct bench *bench, struct workload *w, struct torch *torch)
{
    if (!wanted(bench, torch->name) || !torch_ready(torch, bench->options.threads))
        return true;
    torch->workload = w;
    const struct own own = {.workload = w};
    const struct rounds_side peer = {torch->name, torch_round, torch};
    const unsigned all = (1u << STEP_METRICS) - 1;
    return compare(bench, &own, &peer, all, "") ||
           (!torch->wrong && ad_tape_status(w->tape) == AD_OK);
}

static bool against_bare_gemm(const struct bench *bench, struct workload *w)
{
    struct gemm_peer gemm;
    if (!wanted(bench, "bare_gemm") || strncmp(w->spec->name, "mlp", 3) != 0)
        return true;
    if (!gemm_peer_create(&gemm, w))
        return false;
    const struct own own = {.workload = w};
    const struct rounds_side peer = {"bare_gemm", gemm_peer_round, &gemm};
    bool done = compare(bench, &own, &peer, 1u << STEP_TOTAL, "");
    gemm_peer_destroy(&gemm);
    return done;
}

static bool against_unprofiled(const struct bench *bench, struct workload *w)
{
    struct own_path path;
    const char *name = w->dtype == AD_F32 ? "mlp128" : "chain64";
    if (!wanted(bench, "unprofiled") || strcmp(w->spec->name, name) != 0)
        return true;
    if (!own_path_make(&path))
        return own_complain(w, "no temporary folder for the profile");
    const struct own profiled = {.workload = w, .profile = path.file};
    struct own unprofiled = {.workload = w};
    const struct rounds_side peer = {"unprofiled", own_round, &unprofiled};
    bool done = compare(bench, &profiled, &peer, 1u << STEP_TOTAL, "_profiled");
    own_path_drop(&path);
    return done;
}

/* Bytes of buffers; what else is on the tape is told on standard error. */
static bool saved_bytes(const struct bench *bench, struct workload *w, struct torch *torch)
{
    struct own_bytes own;
    double peer;
    char metric[METRIC_BYTES];
    if (!wanted(bench, torch->name))
        return true;
    if (!own_bytes_of(w, &own))
        return false;
    fprintf(stderr,
            "%s %s: after the forward pass %.0f bytes of buffers are saved; records have %.0f "
            "bytes, %.1f an op; with all else there are %.0f\n",
            w->spec->name, own_dtype_name(w->dtype), (double)own.saved, (double)own.records,
            (double)own.records / (double)own.ops, (double)own.all);
    if (!torch_ready(torch, bench->options.threads))
        return true;
    torch->workload = w;
    if (!torch_saved_bytes(torch, &peer))
        return !torch->wrong;
    metric_name(metric, w, bench->options.threads, "saved_bytes");
    rounds_row("tensor", w->spec->name, metric, (double)own.saved, torch->name, peer,
               (double)own.saved / peer, "B");
    return true;
}

static bool run_case(struct bench *bench, const struct workload_case *spec, ad_dtype dtype)
{
    struct workload w;
    bool done =
        workload_create(&w, spec, dtype) == AD_OK || own_complain(&w, ad_tape_message(w.tape));
    done = done && own_check(&w);
    if (done) {
        done = against_libtorch(bench, &w, &bench->torch[TORCH_PLAIN]) && done;
        done = against_libtorch(bench, &w, &bench->torch[TORCH_TUNED]) && done;
        done = against_bare_gemm(bench, &w) && done;
        if (bench->options.threads == 1)
            done = against_unprofiled(bench, &w) && done;
        done = saved_bytes(bench, &w, &bench->torch[TORCH_PYTHON]) && done;
    }
    workload_destroy(&w);
    return done;
}

/* ---- the program ---- */

static bool read_option(int option, struct options *options)
{
    char *end = "";
    if (option == 'c')
        options->case_name = optarg;
    else if (option == 'd')
        options->dtype = optarg;
    else if (option == 'p')
        options->peer = optarg;
    else if (option == 't')
        options->threads = (int)strtol(optarg, &end, 10);
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
        {"case", required_argument, NULL, 'c'},   {"dtype", required_argument, NULL, 'd'},
        {"peer", required_argument, NULL, 'p'},   {"threads", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 's'},
        {"quick", no_argument, NULL, 'q'},        {0}};
    *options = (struct options){.rounds = 7, .seconds = 0.3};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!read_option(option, options))
            return false;
    if (options->case_name && !workload_find(options->case_name)) {
        fprintf(stderr, "bench_tensor: there is no case %s\n", options->case_name);
        return false;
    }
    return optind == argc && options->threads >= 0 && options->threads <= MAX_THREADS &&
           options->rounds >= 1 && options->rounds <= ROUNDS_MAX && options->seconds > 0.0 &&
           options->seconds <= 3600.0 &&
           (!options->dtype || strcmp(options->dtype, "f32") == 0 ||
            strcmp(options->dtype, "f64") == 0);
}

static bool run_all(struct bench *bench)
{
    bool done = true;
    memcpy(bench->torch, torch_peers, sizeof bench->torch);
    for (const struct workload_case *c = workload_cases; c->name; ++c)
        for (int dtype = AD_F64; dtype >= AD_F32; --dtype) {
            const struct options *o = &bench->options;
            if ((!o->case_name || strcmp(c->name, o->case_name) == 0) &&
                (!o->dtype || strcmp(own_dtype_name((ad_dtype)dtype), o->dtype) == 0))
                done = run_case(bench, c, (ad_dtype)dtype) && done;
        }
    for (int k = 0; k < TORCH_PEERS; ++k)
        peer_stop(&bench->torch[k].peer);
    return done;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    if (!parse(argc, argv, &bench.options)) {
        fprintf(stderr, "usage: bench_tensor [--case NAME] [--dtype f32|f64] [--threads N] "
                        "[--peer NAME] [--rounds N] [--seconds S] [--quick]\ncases:");
        for (const struct workload_case *c = workload_cases; c->name; ++c)
            fprintf(stderr, " %s", c->name);
        fprintf(stderr, "\npeers: libtorch libtorch_tuned_malloc bare_gemm unprofiled torch\n");
        return 2;
    }
    if (bench.options.threads == 0) {
        const bool one = environment_run_with_threads(argv, 1) == 0;
        const bool two = environment_run_with_threads(argv, 2) == 0;
        return one && two ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    environment_settle(argv, bench.options.threads);
    return run_all(&bench) ? EXIT_SUCCESS : EXIT_FAILURE;
}
