/* common_torch.c: what is asked of peers/peer_libtorch and peers/peer_torch.py, and what they
 * answer.
 */
#include "common_torch.h"

#include "common_environment.h"
#include "common_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* glibc gives large blocks back to the kernel and asks for them again in each step, which costs
 * libtorch up to half of its time. */
static const char keep_memory[] =
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:"
    "glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456";

const struct torch torch_peers[TORCH_PEERS] = {
    {.name = "libtorch", .program = "peer_libtorch"},
    {.name = "libtorch_tuned_malloc", .program = "peer_libtorch", .setting = keep_memory},
    {.name = "torch", .program = "peer_torch.py"},
};

static bool skipped(const struct torch *torch, const char *why)
{
    fprintf(stderr, "skipped %s: %s\n", torch->name, why);
    return false;
}

/* "ready VERSION CORE BLAS": on what a peer runs. */
static bool greet(const struct torch *torch, const char *hello)
{
    char version[64], core[64], blas[PEER_LINE_BYTES];
    if (sscanf(hello, "ready %63s %63s %1023[^\n]", version, core, blas) != 3)
        return skipped(torch, hello);
    if (strcmp(core, "-") == 0) {
        fprintf(stderr, "its BLAS is %s\n", blas);
        return skipped(torch, "its BLAS is not OpenBLAS");
    }
    fprintf(stderr, "%s %s with OpenBLAS (%s) from %s; ours: OpenBLAS (%s)\n", torch->name, version,
            core, blas, environment_openblas_core());
    return true;
}

bool torch_ready(struct torch *torch, int threads)
{
    if (torch->tried)
        return torch->usable;
    torch->tried = true;
    /* OpenBLAS' own threads and OpenMP's would take the processors from each other. */
    const char *settings[PEER_MAX_SETTINGS] = {torch->setting,
                                               threads > 1 ? environment_openmp_blas() : NULL};
    const char *hello = peer_start(&torch->peer, torch->program, settings);
    torch->usable = hello ? greet(torch, hello) : skipped(torch, torch->peer.line);
    if (torch->usable && threads > 1 && !settings[1])
        fprintf(stderr,
                "%s: there is no OpenBLAS with OpenMP (libopenblas0-openmp): its threads "
                "and OpenBLAS' disturb each other\n",
                torch->name);
    return torch->usable;
}

/* "ok NUMBER NUMBER ...": n of them. */
static bool parse(const char *answer, int n, double *number)
{
    if (!answer || strncmp(answer, "ok ", 3) != 0)
        return false;
    const char *at = answer + 3;
    for (int k = 0; k < n; ++k) {
        char *end;
        number[k] = strtod(at, &end);
        if (end == at)
            return false;
        at = end;
    }
    return true;
}

/* Asks for the workload, `how` if that is not ""; the last of the n numbers of the answer is the
 * sum of its gradients. */
static bool ask(struct torch *torch, double seconds, const char *how, int n, double *number)
{
    const struct workload *w = torch->workload;
    char text[PEER_LINE_BYTES + 64];
    snprintf(text, sizeof text, "%s %s %g%s", w->spec->name, own_dtype_name(w->dtype), seconds,
             how);
    if (!parse(peer_ask(&torch->peer, text), n, number)) {
        snprintf(text, sizeof text, "skipped %s: %s", torch->name, torch->peer.line);
        return own_complain(w, text);
    }
    torch->wrong = !own_sum_is_right(w, torch->name, number[n - 1]);
    return !torch->wrong;
}

bool torch_round(void *context, double seconds, double *result)
{
    double number[STEP_METRICS + 1] = {0};
    if (!ask(context, seconds, "", STEP_METRICS + 1, number))
        return false;
    memcpy(result, number, STEP_METRICS * sizeof *result);
    return true;
}

bool torch_compare(const char *suite, const struct options *options, struct workload *w,
                   struct torch *torch)
{
    if (!torch_ready(torch, options->threads))
        return true;
    torch->workload = w;
    return own_compare(suite, options, &(struct own){.workload = w},
                       &(struct rounds_side){torch->name, torch_round, torch}, OWN_ALL_PHASES,
                       "") ||
           (!torch->wrong && ad_tape_status(w->tape) == AD_OK);
}

bool torch_saved_bytes(struct torch *torch, double *bytes)
{
    double number[2] = {0};
    if (!ask(torch, 0, "", 2, number))
        return false;
    *bytes = number[0];
    return true;
}

bool torch_profiled(void *context, double seconds, double *slowdown)
{
    double number[3] = {0};
    if (!ask(context, seconds, " profiled", 3, number))
        return false;
    *slowdown = number[1] / number[0];
    return true;
}
