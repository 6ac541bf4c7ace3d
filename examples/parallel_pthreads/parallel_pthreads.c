/* parallel_pthreads.c: the same as parallel_openmp.c with POSIX threads: steps of gradient descent,
 * for each of which threads record on forks of one tape.
 *
 * The forks of a step use the memory of those before. The program ends with an error unless the
 * gradient is that of one tape alone, and memory stays as it is after the second step.
 */
#include "oscillations.h"

#include <pthread.h>
#include <stdio.h>

enum { PARTS = 4, STEPS = 20 };

struct worker {
    pthread_t thread;
    ad_tape part;
    const ad_real *p;
    int from, to;
    ad_real y;
};

static void *work(void *payload)
{
    struct worker *w = payload;
    ad_tape_record_begin(w->part);
    w->y = squared_residuals(w->p, w->from, w->to);
    ad_tape_record_end(w->part);
    return NULL;
}

/* The loss, recorded by PARTS threads. */
static ad_real record(ad_tape tape, const ad_real *p)
{
    ad_tape part[PARTS];
    struct worker worker[PARTS];
    bool runs[PARTS];
    ad_real loss = ad_real_of(0.0);
    ad_tape_fork(tape, PARTS, part);
    for (int k = 0; k < PARTS; k++) {
        worker[k] = (struct worker){.part = part[k],
                                    .p = p,
                                    .from = MEASUREMENTS / PARTS * k,
                                    .to = MEASUREMENTS / PARTS * (k + 1)};
        runs[k] = pthread_create(&worker[k].thread, NULL, work, &worker[k]) == 0;
        if (!runs[k])
            work(&worker[k]); /* no more threads: this one does it */
    }
    for (int k = 0; k < PARTS; k++) {
        if (runs[k])
            pthread_join(worker[k].thread, NULL);
        ad_tape_join(tape, part[k], 1, &worker[k].y);
    }
    for (int k = 0; k < PARTS; k++)
        ad_set(&loss, ad_real_add(loss, worker[k].y));
    return loss;
}

int main(void)
{
    ad_tape tape;
    ad_real p[PARAMETERS], loss;
    double at[PARAMETERS], gradient[PARAMETERS], first_gradient[PARAMETERS];
    double first = 0;
    ad_stats stats;
    uint64_t peak = 0;
    measure();
    ad_tape_create(&tape, NULL);
    for (int i = 0; i < PARAMETERS; i++)
        at[i] = guess[i];
    for (int step = 0; step < STEPS; step++) {
        ad_tape_reset(tape);
        ad_real_leaves(tape, PARAMETERS, at, p);
        loss = record(tape, p);
        if (ad_real_backward(tape, loss) != AD_OK ||
            ad_real_gradients(tape, PARAMETERS, p, gradient) != AD_OK ||
            ad_tape_stats(tape, &stats) != AD_OK) {
            fprintf(stderr, "parallel_pthreads: %s\n", ad_tape_message(tape));
            return 1;
        }
        for (int i = 0; i < PARAMETERS; i++) {
            first_gradient[i] = step == 0 ? gradient[i] : first_gradient[i];
            at[i] -= 2e-5 * gradient[i];
        }
        first = step == 0 ? loss.value : first;
        peak = step == 1 ? stats.peak_bytes : peak;
    }
    printf("after %d steps the loss is %.6g, with %llu statements of %llu bytes\n", STEPS,
           loss.value, (unsigned long long)stats.statements,
           (unsigned long long)stats.statement_bytes);
    const int wrong = judge(first, first_gradient);
    if (stats.peak_bytes != peak || loss.value > first / 2) {
        fprintf(stderr, "parallel_pthreads: memory grew, or the loss did not fall\n");
        return 1;
    }
    ad_tape_destroy(tape);
    return wrong;
}
