/* plain_libraries.c: gradients through libraries that were compiled unmodified by `tapescope cc`,
 * against differences of fourth order of the same functions. WITH_GSL, WITH_CMINPACK,
 * WITH_LIBNOVA or WITH_DSDP says which is there. Prints a line for each; the exit status is 1 if
 * one is wrong.
 */
#include <stdlib.h>
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4 };

static const double start[N] = {1.3, 0.7, 2.1, 0.4};

struct call {
    const char *name;
    double (*f)(double *x);
    double step, tolerance; /* relative to 1 and the derivative */
};

#ifdef WITH_GSL
#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_odeiv2.h>
#include <gsl/gsl_poly.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf.h>
#include <gsl/gsl_spline.h>
#include <gsl/gsl_statistics.h>

static double bessel(double *x)
{
    return gsl_sf_bessel_J0(3 * x[0]) * gsl_sf_bessel_I1(x[1]) + gsl_sf_bessel_Knu(1.3, x[2]);
}

static double gamma_functions(double *x)
{
    return gsl_sf_lngamma(x[0] + 1) + gsl_sf_gamma_inc_P(x[1] + 1, x[2]) + gsl_sf_psi(x[3] + 1) +
           gsl_sf_beta(x[0], x[2]);
}

static double airy_zeta(double *x)
{
    return gsl_sf_airy_Ai(x[0], GSL_PREC_DOUBLE) * gsl_sf_zeta(x[2] + 1) + gsl_sf_dilog(x[1]) +
           gsl_sf_ellint_Kcomp(x[3], GSL_PREC_DOUBLE);
}

static double hypergeometric(double *x)
{
    return gsl_sf_hyperg_2F1(x[0], x[1], x[2], x[3]) + gsl_sf_legendre_Pl(4, x[3]) +
           gsl_sf_erf(x[1]) + gsl_sf_lambert_W0(x[2]);
}

static int motion(double t, const double *y, double *d, void *context)
{
    const double *p = context;
    d[0] = p[0] * y[1] - p[1] * y[0] * t;
    d[1] = -p[2] * sin(y[0]) + p[3];
    return GSL_SUCCESS;
}

static double differential_equation(double *x)
{
    double p[N], t = 0, y[2] = {x[0], 0.1};
    memcpy(p, x, sizeof p);
    gsl_odeiv2_system system = {motion, 0, 2, p};
    gsl_odeiv2_driver *driver =
        gsl_odeiv2_driver_alloc_y_new(&system, gsl_odeiv2_step_rkf45, 1e-3, 1e-10, 1e-10);
    gsl_odeiv2_driver_apply(driver, &t, 2, y);
    gsl_odeiv2_driver_free(driver);
    return y[0] * y[0] + y[1];
}

static double integrand(double t, void *context)
{
    const double *p = context;
    return exp(-p[0] * t * t) * cos(p[1] * t) / (p[2] + t * p[3]);
}

static double quadrature(double *x)
{
    double result, error;
    gsl_function f = {integrand, x};
    gsl_integration_workspace *work = gsl_integration_workspace_alloc(100);
    gsl_integration_qag(&f, 0, 2, 1e-10, 1e-10, 100, GSL_INTEG_GAUSS21, work, &result, &error);
    gsl_integration_workspace_free(work);
    return result;
}

static double splines(double *x)
{
    const double at[N] = {0, 1, 2, 4};
    gsl_spline *spline = gsl_spline_alloc(gsl_interp_cspline, N);
    gsl_spline_init(spline, at, x, N);
    const double y =
        gsl_spline_eval(spline, x[0], NULL) * gsl_spline_eval_deriv(spline, x[2], NULL);
    gsl_spline_free(spline);
    return y;
}

static double linear_equations(double *x)
{
    double a[9] = {4 + x[0], x[1], x[2], x[1], 5, x[3], x[2], x[3], 6}, b[3] = {x[0], 1, x[3]};
    gsl_matrix_view m = gsl_matrix_view_array(a, 3, 3);
    gsl_vector_view right = gsl_vector_view_array(b, 3);
    gsl_matrix *lu = gsl_matrix_alloc(3, 3);
    gsl_vector *y = gsl_vector_alloc(3);
    gsl_permutation *order = gsl_permutation_alloc(3);
    int sign;
    gsl_matrix_memcpy(lu, &m.matrix);
    gsl_linalg_LU_decomp(lu, order, &sign);
    gsl_linalg_LU_solve(lu, order, &right.vector, y);
    double sum = gsl_vector_get(y, 0) + 2 * gsl_vector_get(y, 1) * gsl_vector_get(y, 2) +
                 log(gsl_linalg_LU_det(lu, sign));
    gsl_linalg_cholesky_decomp1(&m.matrix);
    gsl_linalg_cholesky_solve(&m.matrix, &right.vector, y);
    sum *= gsl_vector_get(y, 2);
    gsl_permutation_free(order);
    gsl_vector_free(y);
    gsl_matrix_free(lu);
    return sum;
}

static double polynomials(double *x)
{
    double root[3];
    gsl_poly_solve_cubic(-6 - x[0], 11 + x[1], -6 + 0.1 * x[3], &root[0], &root[1], &root[2]);
    return root[0] * root[1] + root[2] + gsl_poly_eval(x, N, x[2]);
}

static double kepler(double e, void *context)
{
    const double *p = context;
    return e - 0.4 * p[1] * sin(e) - p[0];
}

static double kepler_slope(double e, void *context)
{
    const double *p = context;
    return 1 - 0.4 * p[1] * cos(e);
}

static void kepler_both(double e, void *context, double *f, double *slope)
{
    *f = kepler(e, context);
    *slope = kepler_slope(e, context);
}

static double newton(double *x)
{
    gsl_function_fdf f = {kepler, kepler_slope, kepler_both, x};
    gsl_root_fdfsolver *solver = gsl_root_fdfsolver_alloc(gsl_root_fdfsolver_newton);
    gsl_root_fdfsolver_set(solver, &f, 1);
    for (int i = 0; i < 8; i++)
        gsl_root_fdfsolver_iterate(solver);
    const double root = gsl_root_fdfsolver_root(solver);
    gsl_root_fdfsolver_free(solver);
    return root * x[2];
}

static double statistics(double *x)
{
    double other[N] = {1, 4, 2, 3};
    return gsl_stats_mean(x, 1, N) * gsl_stats_sd(x, 1, N) +
           gsl_stats_covariance(x, 1, other, 1, N) + gsl_stats_skew(x, 1, N);
}

static const struct call calls[] = {{"bessel", bessel, 1e-4, 1e-8},
                                    {"gamma", gamma_functions, 1e-4, 1e-8},
                                    {"airy, zeta", airy_zeta, 1e-4, 1e-8},
                                    {"2F1", hypergeometric, 1e-4, 1e-8},
                                    {"odeiv2", differential_equation, 1e-4, 1e-6},
                                    {"integration", quadrature, 1e-4, 1e-8},
                                    {"spline", splines, 1e-4, 1e-8},
                                    {"linalg", linear_equations, 1e-4, 1e-8},
                                    {"poly", polynomials, 1e-4, 1e-8},
                                    {"roots", newton, 1e-4, 1e-8},
                                    {"statistics", statistics, 1e-4, 1e-8}};
#endif

#ifdef WITH_CMINPACK
#include <cminpack.h>

/* A decay and an offset are fitted to numbers that depend on x. */
static int residuals(void *context, int m, int n, const double *u, double *r, double *slope,
                     int rows, int what)
{
    const double *data = context;
    (void)n;
    for (int i = 0; i < m; i++) {
        const double decay = exp(-u[1] * i);
        if (what == 1) {
            r[i] = u[0] * decay + u[2] - data[i];
        } else {
            slope[i] = decay;
            slope[i + rows] = -i * u[0] * decay;
            slope[i + 2 * rows] = 1;
        }
    }
    return 0;
}

static double fitted(double *x)
{
    enum { POINTS = 8 };
    double data[POINTS], u[3] = {1, 1, 0}, r[POINTS], slope[3 * POINTS], work[5 * 3 + POINTS];
    int order[3];
    for (int i = 0; i < POINTS; i++)
        data[i] = x[2] * exp(-x[3] * i) + x[1] + 0.01 * x[0] * sin(3 * i);
    lmder1(residuals, data, POINTS, 3, u, r, slope, POINTS, 1e-15, order, work, 5 * 3 + POINTS);
    return u[0] * u[1] + u[2];
}

static int balance(void *context, int n, const double *u, double *r, double *slope, int rows,
                   int what)
{
    const double *p = context;
    (void)n;
    if (what == 1) {
        r[0] = u[0] * u[0] + p[0] * u[1] - p[2];
        r[1] = u[0] * p[3] - exp(-u[1]) * p[1];
    } else {
        slope[0] = 2 * u[0];
        slope[rows] = p[0];
        slope[1] = p[3];
        slope[rows + 1] = exp(-u[1]) * p[1];
    }
    return 0;
}

static double zero(double *x)
{
    double u[2] = {1, 0.5}, r[2], slope[4], work[15];
    hybrj1(balance, x, 2, u, r, slope, 2, 1e-15, work, 15);
    return u[0] * x[0] + u[1];
}

static double norm(double *x)
{
    return enorm(N, x) * x[1];
}

static const struct call calls[] = {
    {"lmder1", fitted, 1e-2, 1e-6}, {"hybrj1", zero, 1e-4, 1e-6}, {"enorm", norm, 1e-4, 1e-8}};
#endif

#ifdef WITH_LIBNOVA
#include <libnova/libnova.h>

enum { DAY = 2451545 };

static double planets(double *x)
{
    struct ln_helio_posn mars, venus;
    ln_get_mars_helio_coords(DAY + 1000 * x[0], &mars);
    ln_get_venus_helio_coords(DAY + 1000 * x[1], &venus);
    return mars.R * sin(x[2] + mars.L * 0.01) + venus.B * x[3];
}

/* Not on an ellipse: libnova finds a place there by bisection, which has no derivative. */
static double comet(double *x)
{
    struct ln_par_orbit of = {.q = x[2], .i = 10 * x[0], .w = 20 * x[1], .omega = 30, .JD = DAY};
    struct ln_rect_posn at;
    ln_get_par_geo_rect_posn(&of, DAY + 100, &at);
    return at.X * at.Y + at.Z * x[3];
}

static double horizon(double *x)
{
    struct ln_equ_posn star = {40 * x[0], 30 * x[1]}, seen;
    struct ln_lnlat_posn observer = {10 * x[2], 50 * x[3]};
    struct ln_hrz_posn at;
    ln_get_equ_prec(&star, DAY + 20000, &seen);
    ln_get_hrz_from_equ(&seen, &observer, DAY, &at);
    return at.alt + ln_get_refraction_adj(at.alt, 1010, 10 * x[3]);
}

static double moon(double *x)
{
    struct ln_lnlat_posn at;
    ln_get_lunar_ecl_coords(DAY + x[0], &at, 0);
    return at.lat * x[1] + ln_get_lunar_earth_dist(DAY + x[2]) * 1e-5;
}

static const struct call calls[] = {{"planets", planets, 1e-3, 1e-6},
                                    {"comet", comet, 1e-3, 1e-6},
                                    {"horizon", horizon, 1e-3, 1e-6},
                                    {"moon", moon, 1e-3, 1e-6}};
#endif

#ifdef WITH_DSDP
#include <dsdp5.h>

enum { SIDE = 6, PACKED = SIDE * (SIDE + 1) / 2 };

/* The least of <c, x> over positive semidefinite x with a given diagonal, by an interior-point
 * method; in packed matrices, or in full ones. */
static double semidefinite(const double *u, char format)
{
    DSDP solver;
    SDPCone cone;
    int at[SIDE], all[PACKED];
    double ones[SIDE], c[PACKED], value = NAN;
    DSDPCreate(SIDE, &solver);
    DSDPCreateSDPCone(solver, 1, &cone);
    SDPConeSetBlockSize(cone, 0, SIDE);
    SDPConeSetStorageFormat(cone, 0, format);
    const int row = format == 'U' ? SIDE : 0;
    for (int i = 0; i < SIDE; i++) {
        at[i] = row ? i * row + i : i * (i + 1) / 2 + i;
        ones[i] = 1;
        DSDPSetDualObjective(solver, i + 1, i < 2 ? 1 + 0.1 * u[i] : 1);
        SDPConeSetASparseVecMat(cone, 0, i + 1, SIDE, 1, 0, &at[i], &ones[i], 1);
        DSDPSetY0(solver, i + 1, -40);
        for (int j = 0; j <= i; j++) {
            const int k = i * (i + 1) / 2 + j;
            all[k] = row ? i * row + j : k;
            c[k] = 0.5 * cos(2.0 * k) + 0.1 * u[k % N] * sin(3.0 * k);
        }
    }
    SDPConeSetASparseVecMat(cone, 0, 0, SIDE, 1, 0, all, c, PACKED);
    DSDPSetR0(solver, 0);
    DSDPSetZBar(solver, 1000);
    DSDPSetGapTolerance(solver, 1e-9);
    DSDPSetPotentialParameter(solver, 5);
    DSDPReuseMatrix(solver, 0);
    DSDPSetPNormTolerance(solver, 1);
    if (DSDPSetup(solver) == 0 && DSDPSolve(solver) == 0)
        DSDPGetDObjective(solver, &value);
    DSDPDestroy(solver);
    return value;
}

static double packed(double *x)
{
    return semidefinite(x, 'P');
}

static double full(double *x)
{
    return semidefinite(x, 'U');
}

static const struct call calls[] = {{"packed", packed, 1e-3, 1e-6}, {"full", full, 1e-3, 1e-6}};
#endif

/* The greatest distance of a gradient from differences. */
static double distance(const struct call *c, const double *gradient)
{
    double worst = 0;
    for (int i = 0; i < N; i++) {
        double at[4];
        for (int k = 0; k < 4; k++) {
            double x[N];
            memcpy(x, start, sizeof x);
            x[i] += c->step * (k < 2 ? k - 2 : k - 1);
            at[k] = c->f(x);
        }
        const double slope = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * c->step);
        const double d = fabs(slope - gradient[i]) / (1 + fabs(slope));
        worst = d > worst || d != d ? d : worst;
    }
    return worst;
}

int main(void)
{
    ad_tape tape;
    int wrong = 0;
    if (ad_tape_create(&tape, NULL) != AD_OK)
        return 1;
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        const struct call *c = &calls[k];
        double x[N], gradient[N] = {0}, apart = NAN;
        ad_real leaf[N];
        ad_stats stats = {0};
        memcpy(x, start, sizeof x);
        ad_status status = ad_plain_leaves(tape, N, x, leaf);
        const double y = status == AD_OK ? c->f(x) : NAN;
        if (status == AD_OK)
            status = ad_plain_backward(tape, &y);
        if (status == AD_OK)
            status = ad_plain_gradients(tape, N, leaf, gradient);
        if (status == AD_OK)
            status = ad_tape_stats(tape, &stats);
        if (status != AD_OK)
            printf("%s\n", ad_tape_message(tape));
        ad_tape_reset(tape);
        if (status == AD_OK)
            apart = distance(c, gradient);
        const bool right = apart < c->tolerance && ad_plain_dropped() == 0;
        wrong += !right;
        printf("%-14s %s, apart by %.1e; %llu bytes of tape\n", c->name, right ? "right" : "WRONG",
               apart, (unsigned long long)stats.live_bytes);
    }
    ad_tape_destroy(tape);
    return wrong > 0;
}
