/* bench_network.c: single ops of neural networks against libtorch, forward and backward apart, in
 * both element types, on one thread unless another number is asked for.
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * of ours failed or gradients are wrong, whoever's; a peer that is missing is only reported.
 */
#include "common_environment.h"
#include "common_network.h"
#include "common_own.h"
#include "common_torch.h"

#include <stdlib.h>
#include <string.h>

struct bench {
    struct options options;
    struct torch torch[TORCH_PEERS];
};

static bool run_case(void *context, struct workload *w)
{
    struct bench *bench = context;
    bool done = true;
    for (int k = TORCH_PLAIN; k <= TORCH_TUNED && done; ++k)
        if (options_want(bench->options.peer, bench->torch[k].name))
            done = torch_compare("network", &bench->options, w, &bench->torch[k]);
    return done;
}

static const char *case_name(size_t k)
{
    return network_cases[k].name;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.options = options_read(
        argc, argv,
        &(struct options_program){.name = "bench_network",
                                  .known = "cdtprsq",
                                  .case_name = case_name,
                                  .more = "peers: libtorch libtorch_tuned_malloc",
                                  .defaults = {.threads = 1, .rounds = 7, .seconds = 0.1},
                                  .quick_seconds = 0.02});
    environment_settle(argv, bench.options.threads);
    memcpy(bench.torch, torch_peers, sizeof bench.torch);
    const bool done = own_each(&bench.options, network_cases, run_case, &bench);
    for (int k = 0; k < TORCH_PEERS; ++k)
        peer_stop(&bench.torch[k].peer);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
