/* minimise.c: see optimisers.h. */
#include "optimisers.h"

#include <math.h>
#include <nlopt.h>
#include <stddef.h>

/* What NLopt's function of the user gets. */
struct search {
    minimised_function *f;
    void *payload;
    nlopt_opt of;
    int evaluations;
};

static double objective(unsigned n, const double *x, double *gradient, void *payload)
{
    struct search *s = payload;
    double value = NAN;
    s->evaluations++;
    if (!s->f((int)n, x, &value, gradient, s->payload))
        nlopt_force_stop(s->of);
    return value;
}

bool minimise(enum minimiser method, int n, minimised_function *f, void *payload, double *x,
              struct minimum *m)
{
    const nlopt_algorithm algorithm =
        method == LBFGS ? NLOPT_LD_LBFGS : NLOPT_LD_TNEWTON_PRECOND_RESTART;
    struct search s = {.f = f, .payload = payload, .of = nlopt_create(algorithm, (unsigned)n)};
    *m = (struct minimum){NAN, 0, nlopt_algorithm_to_string(algorithm), "out of memory"};
    if (!s.of)
        return false;
    nlopt_set_min_objective(s.of, objective, &s);
    nlopt_set_ftol_rel(s.of, 1e-15);
    nlopt_set_maxeval(s.of, 5000);
    const nlopt_result result = nlopt_optimize(s.of, x, &m->value);
    nlopt_destroy(s.of);
    m->evaluations = s.evaluations;
    m->ending = nlopt_result_to_string(result);
    return result == NLOPT_FTOL_REACHED || result == NLOPT_SUCCESS ||
           result == NLOPT_ROUNDOFF_LIMITED;
}
