/* kinetics.c: finds the three rates of a chemical reaction from measured concentrations, through an
 * adaptive stiff integrator that is one op.
 *
 * H. H. Robertson, 1966: A -> B, 2 B -> B + C, B + C -> A + C, with rates nine orders of magnitude
 * apart, over six decades of time. No step that is fixed would do. Looked for are the logarithms
 * of the rates; the gradient comes from CVODES' adjoint. The program ends with an error unless the
 * gradient agrees with differences, and the rates are found.
 */
#include "optimisers.h"

#include <tapescope/ad_ode.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SPECIES = 3, RATES = 3, TIMES = 6, MEASURED = TIMES * SPECIES };

static const double truth[RATES] = {0.04, 3e7, 1e4}, guess[RATES] = {0.1, 1e7, 3e4};

/* dy/dt = N r(y): which reaction makes and takes which species, and how fast each is. */
static ad_tensor reactions(ad_tape tape, ad_tensor t, ad_tensor y, int n, const ad_tensor *x,
                           void *payload)
{
    static const double change[SPECIES * RATES] = {-1, 0, 1, 1, -1, -1, 0, 1, 0};
    (void)t;
    (void)n;
    (void)payload;
    ad_tensor a = ad_slice(y, 0, 0, 1, 1), b = ad_slice(y, 0, 1, 2, 1), c = ad_slice(y, 0, 2, 3, 1);
    ad_tensor met[RATES] = {a, ad_square(b), ad_mul(b, c)};
    ad_tensor speed = ad_mul(ad_exp(x[0]), ad_concat(met, RATES, 0));
    ad_tensor network = ad_constant(tape, AD_F64, 2, (int64_t[]){SPECIES, RATES}, change);
    return ad_matmul(network, speed);
}

struct experiment {
    ad_tape tape;
    ad_tensor begin, times, observed; /* [SPECIES], [TIMES], [TIMES,SPECIES] */
    ad_mark mark;
};

static ad_tensor concentrations(const struct experiment *e, ad_tensor rates)
{
    ad_ode_options options = {
        .relative = 1e-8, .absolute = 1e-14, .adjoint_absolute = 1e-12, .stiff = true};
    return ad_ode(e->tape, reactions, NULL, e->begin, e->times, 1, &rates, &options);
}

/* The mean square of relative errors, and its gradient by the logarithms of the rates. */
static bool misfit(int n, const double *x, double *value, double *gradient, void *payload)
{
    const struct experiment *e = payload;
    ad_tape_rewind(e->tape, e->mark);
    ad_tensor rates = ad_leaf(e->tape, AD_F64, 1, (int64_t[]){RATES}, x);
    ad_tensor error =
        ad_sub(ad_div(concentrations(e, rates), e->observed), ad_scalar_f64(e->tape, 1));
    ad_tensor loss = ad_mean(ad_square(error));
    *value = ad_item(loss);
    return ad_backward(loss) == AD_OK && ad_gradient(rates, gradient, n) == AD_OK;
}

/* The gradient at x is that of central differences to 1e-4 of the largest element. */
static bool gradient_agrees(struct experiment *e, const double *x)
{
    double gradient[RATES], unused[RATES], value, largest = 0, worst = 0;
    if (!misfit(RATES, x, &value, gradient, e))
        return false;
    for (int i = 0; i < RATES; i++) {
        double at[RATES], side[2];
        for (int k = 0; k < 2; k++) {
            for (int j = 0; j < RATES; j++)
                at[j] = x[j] + (j == i ? (k ? 1e-3 : -1e-3) : 0);
            if (!misfit(RATES, at, &side[k], unused, e))
                return false;
        }
        largest = fmax(largest, fabs(gradient[i]));
        worst = fmax(worst, fabs(gradient[i] - (side[1] - side[0]) / 2e-3));
    }
    printf("gradient by the adjoint and by differences: %s\n",
           worst <= 1e-4 * largest ? "equal to 1e-4" : "DIFFERENT");
    return worst <= 1e-4 * largest;
}

static bool run(struct experiment *e)
{
    static double times[TIMES + 1], begin[SPECIES] = {1, 1e-5, 1e-3};
    static double observed[MEASURED + SPECIES];
    double x[RATES];
    for (int i = 1; i <= TIMES; i++)
        times[i] = 0.1 * pow(10, i - 1);
    e->begin = ad_constant(e->tape, AD_F64, 1, (int64_t[]){SPECIES}, begin);
    e->times = ad_constant(e->tape, AD_F64, 1, (int64_t[]){TIMES + 1}, times);
    for (int i = 0; i < RATES; i++)
        x[i] = log(truth[i]);
    ad_mark mark = ad_tape_mark(e->tape);
    ad_tensor rates = ad_constant(e->tape, AD_F64, 1, (int64_t[]){RATES}, x);
    if (ad_value(concentrations(e, rates), observed, MEASURED + SPECIES) != AD_OK)
        return false;
    ad_tape_rewind(e->tape, mark);
    e->observed = ad_constant(e->tape, AD_F64, 2, (int64_t[]){TIMES + 1, SPECIES}, observed);
    e->mark = ad_tape_mark(e->tape);
    for (int i = 0; i < RATES; i++)
        x[i] = log(guess[i]);
    struct minimum m;
    if (!gradient_agrees(e, x) || !minimise(LBFGS, RATES, misfit, e, x, &m))
        return false;
    bool found = true;
    for (int i = 0; i < RATES; i++) {
        printf("rate %d: %.4g, from %g, it is %g\n", i + 1, exp(x[i]), guess[i], truth[i]);
        found = found && fabs(x[i] - log(truth[i])) < 1e-3;
    }
    return found;
}

int main(void)
{
    struct experiment e;
    if (ad_tape_create(&e.tape, NULL) != AD_OK)
        return EXIT_FAILURE;
    bool found = run(&e);
    if (!found)
        fprintf(stderr, "kinetics: not found: %s\n", ad_tape_message(e.tape));
    ad_tape_destroy(e.tape);
    return found ? EXIT_SUCCESS : EXIT_FAILURE;
}
