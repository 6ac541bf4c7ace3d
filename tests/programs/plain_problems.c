/* plain_problems.c: gradients of the problems of benchmarks/, which are plain C, by `tapescope cc`
 * and by hand. Prints each with the greatest relative difference. */
#include <tapescope/ad_plain.h>

#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the problem has one output and the hand's gradient is by each variable, in their order. */
static double difference(ad_tape tape, const struct problem_case *spec)
{
    struct problem p;
    double worst = 0;
    if (!problem_open(&p, spec, NULL))
        return 1;
    double *x = calloc(p.n_variables, sizeof *x), *by_hand = calloc(p.n_gradient, sizeof *by_hand);
    double *gradient = calloc(p.n_variables, sizeof *gradient);
    ad_real *k = calloc(p.n_variables, sizeof *k);
    void *work = calloc(1, p.work_bytes + 64);
    double y = 0, again = 0;
    if (!x || !by_hand || !gradient || !k || !work)
        return 1;
    memcpy(x, p.x, p.n_variables * sizeof *x);
    ad_tape_reset(tape);
    if (ad_plain_leaves(tape, (int64_t)p.n_variables, x, k) != AD_OK)
        return 1;
    spec->kind->value(&p, x, work, &y);
    if (ad_plain_backward(tape, &y) != AD_OK ||
        ad_plain_gradients(tape, (int64_t)p.n_variables, k, gradient) != AD_OK) {
        printf("%s\n", ad_tape_message(tape));
        return 1;
    }
    ad_tape_reset(tape);
    spec->kind->gradient(&p, p.x, work, &again, by_hand);
    for (size_t i = 0; i < p.n_variables; i++)
        worst = fmax(worst, fabs(gradient[i] - by_hand[i]) /
                                fmax(1, fabs(gradient[i]) + fabs(by_hand[i])));
    worst = fmax(worst, fabs(y - again) / fmax(1, fabs(y)));
    free(x);
    free(by_hand);
    free(gradient);
    free(k);
    free(work);
    problem_close(&p);
    return worst;
}

int main(void)
{
    static const struct {
        const char *name;
        int sizes[PROBLEM_SIZES];
    } cases[] = {{"gmm_d10_k25", {10, 25, 20}},
                 {"lstm_l2_c1024", {2, 16, 14}},
                 {"hand1", {64, 20}},
                 {"lorenz", {400}},
                 {"burgers", {60, 50}},
                 {"mulchain", {1000}},
                 {"heston", {50, 20}},
                 {"heat", {16, 10}},
                 {"bodies", {8, 10}}};
    ad_tape tape;
    int failed = 0;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct problem_case spec = *problem_find(cases[i].name);
        memcpy(spec.sizes, cases[i].sizes, sizeof spec.sizes);
        spec.file = NULL;
        const double worst = difference(tape, &spec);
        printf("%s %.1e\n", spec.name, worst);
        failed += !(worst < 1e-10);
    }
    failed += ad_plain_dropped() > 0;
    ad_tape_destroy(tape);
    return failed > 0;
}
