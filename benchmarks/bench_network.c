/* bench_network.c: single ops of neural networks against libtorch, forward and backward apart, in
 * both element types, on one thread unless another number is asked for.
 *
 *     bench_network [--case NAME] [--dtype f32|f64] [--threads N] [--rounds N] [--seconds S]
 *                   [--quick]
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * of ours failed or gradients are wrong, whoever's; a peer that is missing is only reported.
 */
#include "common_environment.h"
#include "common_network.h"
#include "common_own.h"
#include "common_rounds.h"
#include "common_torch.h"

#include <tapescope/ad.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRIC_BYTES = 64, MAX_THREADS = 64 };

struct options {
    const char *case_name, *dtype;
    int threads, rounds;
    double seconds;
};

static bool against(const struct options *options, struct workload *w, struct torch *torch)
{
    char metric[STEP_METRICS][METRIC_BYTES];
    if (!torch_ready(torch, options->threads))
        return true;
    struct own own = {.workload = w};
    struct rounds_plan plan = {.suite = "network",
                               .case_name = w->spec->name,
                               .unit = "ns",
                               .n_metrics = STEP_METRICS,
                               .rounds = options->rounds,
                               .seconds = options->seconds};
    for (int m = 0; m < STEP_METRICS; ++m) {
        snprintf(metric[m], METRIC_BYTES, "%s_%dt_%s", own_dtype_name(w->dtype), options->threads,
                 step_phase[m]);
        plan.metric[m] = metric[m];
    }
    torch->workload = w;
    return rounds_compare(&plan, &(struct rounds_side){"tapescope", own_round, &own},
                          &(struct rounds_side){torch->name, torch_round, torch}) ||
           (!torch->wrong && ad_tape_status(w->tape) == AD_OK);
}

static bool run_case(const struct options *options, struct torch *torch,
                     const struct workload_case *spec, ad_dtype dtype)
{
    struct workload w;
    bool done =
        workload_create(&w, spec, dtype) == AD_OK || own_complain(&w, ad_tape_message(w.tape));
    done = done && own_check(&w);
    for (int k = TORCH_PLAIN; k <= TORCH_TUNED && done; ++k)
        done = against(options, &w, &torch[k]);
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
    else if (option == 't')
        options->threads = (int)strtol(optarg, &end, 10);
    else if (option == 'r')
        options->rounds = (int)strtol(optarg, &end, 10);
    else if (option == 's')
        options->seconds = strtod(optarg, &end);
    else if (option == 'q')
        options->rounds = 3, options->seconds = 0.02;
    return option != '?' && *end == '\0';
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"case", required_argument, NULL, 'c'},
                                          {"dtype", required_argument, NULL, 'd'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"quick", no_argument, NULL, 'q'},
                                          {0}};
    *options = (struct options){.threads = 1, .rounds = 7, .seconds = 0.1};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!read_option(option, options))
            return false;
    if (options->case_name && !network_find(options->case_name)) {
        fprintf(stderr, "bench_network: there is no case %s\n", options->case_name);
        return false;
    }
    return optind == argc && options->threads >= 1 && options->threads <= MAX_THREADS &&
           options->rounds >= 1 && options->rounds <= ROUNDS_MAX && options->seconds > 0.0 &&
           options->seconds <= 3600.0 &&
           (!options->dtype || strcmp(options->dtype, "f32") == 0 ||
            strcmp(options->dtype, "f64") == 0);
}

int main(int argc, char **argv)
{
    struct options options;
    struct torch torch[TORCH_PEERS];
    bool done = true;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: bench_network [--case NAME] [--dtype f32|f64] [--threads N] "
                        "[--rounds N] [--seconds S] [--quick]\ncases:");
        for (const struct workload_case *c = network_cases; c->name; ++c)
            fprintf(stderr, " %s", c->name);
        fprintf(stderr, "\n");
        return 2;
    }
    environment_settle(argv, options.threads);
    memcpy(torch, torch_peers, sizeof torch);
    for (const struct workload_case *c = network_cases; c->name; ++c)
        for (int dtype = AD_F64; dtype >= AD_F32; --dtype)
            if ((!options.case_name || strcmp(c->name, options.case_name) == 0) &&
                (!options.dtype || strcmp(own_dtype_name((ad_dtype)dtype), options.dtype) == 0))
                done = run_case(&options, torch, c, (ad_dtype)dtype) && done;
    for (int k = 0; k < TORCH_PEERS; ++k)
        peer_stop(&torch[k].peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
