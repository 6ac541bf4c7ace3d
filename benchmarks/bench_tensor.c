/* bench_tensor.c: tensor workloads against libtorch, forward and backward apart, in both element
 * types, on one thread and on two; against the bare products of a perceptron; against themselves
 * under a profile; and the bytes saved for the backward pass against PyTorch's.
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * of ours failed or gradients are wrong, whoever's; a peer that is missing is only reported.
 */
#include "common_environment.h"
#include "common_gemm.h"
#include "common_own.h"
#include "common_torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is done to each workload, with all peers. */
struct bench {
    struct options options;
    struct torch torch[TORCH_PEERS];
};

/* Whether the rows of a peer are wanted. */
static bool wanted(const struct bench *bench, const char *peer)
{
    return options_want(bench->options.peer, peer);
}

static bool against_libtorch(const struct bench *bench, struct workload *w, struct torch *torch)
{
    return !wanted(bench, torch->name) || torch_compare("tensor", &bench->options, w, torch);
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
    bool done = own_compare("tensor", &bench->options, &own, &peer, 1u << STEP_TOTAL, "");
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
    bool done =
        own_compare("tensor", &bench->options, &profiled, &peer, 1u << STEP_TOTAL, "_profiled");
    own_path_drop(&path);
    return done;
}

/* Bytes of buffers; what else is on the tape is told on standard error. */
static bool saved_bytes(const struct bench *bench, struct workload *w, struct torch *torch)
{
    struct own_bytes own;
    double peer;
    char metric[OWN_METRIC_BYTES];
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
    own_metric(metric, w, bench->options.threads, "saved_bytes");
    rounds_row("tensor", w->spec->name, metric, (double)own.saved, torch->name, peer,
               (double)own.saved / peer, "B");
    return true;
}

static bool run_case(void *context, struct workload *w)
{
    struct bench *bench = context;
    bool done = against_libtorch(bench, w, &bench->torch[TORCH_PLAIN]);
    done = against_libtorch(bench, w, &bench->torch[TORCH_TUNED]) && done;
    done = against_bare_gemm(bench, w) && done;
    if (bench->options.threads == 1)
        done = against_unprofiled(bench, w) && done;
    return saved_bytes(bench, w, &bench->torch[TORCH_PYTHON]) && done;
}

static const char *case_name(size_t k)
{
    return workload_cases[k].name;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.options =
        options_read(argc, argv,
                     &(struct options_program){
                         .name = "bench_tensor",
                         .known = "cdtprsq",
                         .case_name = case_name,
                         .more = "peers: libtorch libtorch_tuned_malloc bare_gemm unprofiled torch",
                         .defaults = {.rounds = 7, .seconds = 0.3}, /* one thread, then two */
                         .quick_seconds = 0.05});
    if (bench.options.threads == 0) {
        const bool one = environment_run_with_threads(argv, 1) == 0;
        const bool two = environment_run_with_threads(argv, 2) == 0;
        return one && two ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    environment_settle(argv, bench.options.threads);
    memcpy(bench.torch, torch_peers, sizeof bench.torch);
    const bool done = own_each(&bench.options, workload_cases, run_case, &bench);
    for (int k = 0; k < TORCH_PEERS; ++k)
        peer_stop(&bench.torch[k].peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
