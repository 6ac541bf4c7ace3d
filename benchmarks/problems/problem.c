/* problem.c: the table of cases.
 *
 * Invariant: a problem is open, or all zero.
 */
#include "problem.h"

#include "bodies.h"
#include "bundle.h"
#include "chains.h"
#include "gmm.h"
#include "hand.h"
#include "heat.h"
#include "heston.h"
#include "lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct problem_case problem_cases[] = {
    {"gmm_d10_k25", &gmm_kind, "gmm_d10_K25.txt", {10, 25, 1000}},
    {"gmm_d20_k50", &gmm_kind, "gmm_d20_K50.txt", {20, 50, 1000}},
    {"lstm_l2_c1024", &lstm_kind, "lstm_l2_c1024.txt", {2, 1024, 14}},
    {"ba1", &bundle_kind, "ba1_n49_m7776_p31843.txt", {49, 7776, 31843}},
    {"hand1", &hand_kind, "hand/hand1_t26_c100.txt", {544, 100}},
    {"lorenz", &lorenz_kind, NULL, {40000}},
    {"burgers", &burgers_kind, NULL, {1000, 1000}},
    {"mulchain", &mulchain_kind, NULL, {5000000}},
    {"heston", &heston_kind, NULL, {10000, 50}},
    {"heat", &heat_kind, NULL, {128, 100}},
    {"bodies", &bodies_kind, NULL, {64, 50}},
    {0},
};

const struct problem_case *problem_find(const char *name)
{
    for (const struct problem_case *c = problem_cases; c->name; ++c)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

bool problem_open(struct problem *problem, const struct problem_case *spec, const char *folder)
{
    *problem = (struct problem){.spec = spec};
    if (folder && spec->file ? spec->kind->read(problem, folder)
                             : spec->kind->make(problem, spec->sizes))
        return true;
    problem_close(problem);
    return false;
}

void problem_close(struct problem *problem)
{
    if (problem->input)
        problem->spec->kind->drop(problem->input);
    free(problem->x);
    *problem = (struct problem){0};
}

double problem_distance(double a, double b)
{
    return fabs(a - b) / fmax(1.0, fabs(a) + fabs(b));
}

double problem_distances(size_t n, const double *a, const double *b)
{
    double most = 0.0;
    for (size_t i = 0; i < n; ++i) {
        double d = problem_distance(a[i], b[i]);
        if (!(d <= most)) /* NaN as well */
            most = d;
        if (isnan(most))
            break;
    }
    return most;
}
