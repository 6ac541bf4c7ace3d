/* peer_unprofiled.c: the workloads by this library with the profiler's hooks compiled out, as a
 * server that another program asks: what the hooks cost when nobody looks.
 *
 * Prints one line when it is ready: "ready VERSION CORE PATH", as peer_libtorch does. Then each
 * input line "CASE f32|f64 SECONDS" is answered by "ok FORWARD BACKWARD TOTAL GRADIENT_SUM" (ns,
 * medians), or by "error TEXT".
 */
#include "common_calls.h"
#include "common_environment.h"
#include "common_own.h"

#include <stdio.h>
#include <string.h>

static const struct workload_case *find(const char *name)
{
    return strcmp(name, calls_case.name) == 0 ? &calls_case : workload_find(name);
}

/* The sum is taken by a step of its own: rounds clear their gradients. */
static void answer(struct workload *w, double seconds)
{
    double result[STEP_METRICS];
    struct own own = {.workload = w};
    ad_status status = workload_backward(w, workload_forward(w));
    const double sum = workload_gradient_sum(w);
    if (status == AD_OK)
        status = ad_tape_rewind(w->tape, w->mark);
    if (status != AD_OK || !own_round(&own, seconds, result))
        printf("error %s\n", ad_tape_message(w->tape));
    else
        printf("ok %.1f %.1f %.1f %.17g\n", result[STEP_FORWARD], result[STEP_BACKWARD],
               result[STEP_TOTAL], sum);
}

int main(void)
{
    char line[256], name[64], type[8], made[80] = "", wanted[80];
    double seconds;
    struct workload w;
    printf("ready %s %s -\n", ad_version(), environment_openblas_core());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const struct workload_case *spec =
            sscanf(line, "%63s %7s %lf", name, type, &seconds) == 3 ? find(name) : NULL;
        if (!spec) {
            puts("error there is no such case");
        } else {
            snprintf(wanted, sizeof wanted, "%s %s", name, type);
            if (*made && strcmp(made, wanted) != 0)
                workload_destroy(&w);
            ad_status status = AD_OK;
            if (strcmp(made, wanted) != 0)
                status = workload_create(&w, spec, strcmp(type, "f32") == 0 ? AD_F32 : AD_F64);
            strcpy(made, wanted);
            if (status == AD_OK)
                answer(&w, seconds);
            else
                printf("error %s\n", ad_tape_message(w.tape));
        }
        fflush(stdout);
    }
    if (*made)
        workload_destroy(&w);
    return 0;
}
