/* plain_mathematics.c: the functions of <math.h> of each floating type, compiled by `tapescope cc`:
 * gradients are those of differences, and nothing is lost. With an argument: losses whose messages
 * the test reads. */
#define _GNU_SOURCE
#include <tapescope/ad_plain.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of x and y; i, u, v: an int and two of the type. */
/* clang-format off */
#define ONE(X, t, f)                                                                               \
    X(acos, f)                                                                                     \
    X(asin, f)                                                                                     \
    X(atan, f)                                                                                     \
    X(cos, f)                                                                                      \
    X(sin, f)                                                                                      \
    X(tan, f)                                                                                      \
    X(asinh, f)                                                                                    \
    X(atanh, f)                                                                                    \
    X(cosh, f)                                                                                     \
    X(sinh, f) X(tanh, f) X(exp, f) X(exp2, f) X(exp10, f) X(expm1, f) X(log, f) X(log2, f)        \
        X(log10, f) X(log1p, f) X(logb, f) X(sqrt, f) X(cbrt, f) X(fabs, f) X(ceil, f) X(floor, f) \
            X(rint, f) X(nearbyint, f) X(round, f) X(trunc, f) X(roundeven, f) X(erf, f)           \
                X(erfc, f) X(lgamma, f) X(tgamma, f) X(gamma, f) X(j0, f) X(j1, f) X(y0, f)        \
                    X(y1, f) X(significand, f) X(nextup, f) X(nextdown, f)
#define TWO(X, t, f)                                                                               \
    X(pow, f)                                                                                      \
    X(atan2, f)                                                                                    \
    X(hypot, f)                                                                                    \
    X(fmod, f)                                                                                     \
    X(remainder, f)                                                                                \
    X(drem, f)                                                                                     \
    X(fmax, f)                                                                                     \
    X(fmin, f)                                                                                     \
    X(fdim, f)                                                                                     \
    X(copysign, f) X(nextafter, f) X(nexttoward, f) X(fmaxmag, f) X(fminmag, f) X(fmaximum, f)     \
        X(fminimum, f) X(fmaximum_num, f) X(fminimum_num, f) X(fmaximum_mag, f) X(fminimum_mag, f) \
            X(fmaximum_mag_num, f) X(fminimum_mag_num, f)
#define OTHER(X, t, f)                                                                             \
    X(acosh##f, acosh##f(1 + x * x))                                                               \
    X(fma##f, fma##f(x, y, x))                                                                     \
    X(ldexp##f, ldexp##f(x, 3))                                                                    \
    X(scalbn##f, scalbn##f(x, 3))                                                                  \
    X(scalbln##f, scalbln##f(x, 3))                                                                \
    X(scalb##f, scalb##f(x, 2))                                                                    \
    X(frexp##f, frexp##f(x, &i) * x)                                                               \
    X(modf##f, modf##f(x * 9, &u) + u * x)                                                         \
    X(sincos##f, (sincos##f(x, &u, &v), u * u * v))                                                \
    X(remquo##f, remquo##f(x, y, &i) * x)                                                          \
    X(jn##f, jn##f(2, x))                                                                          \
    X(yn##f, yn##f(2, x))                                                                          \
    X(lgamma##f##_r, lgamma##f##_r(x, &i))                                                         \
    X(whole##f, (t)(ilogb##f(x) + llogb##f(x) + lround##f(x) + llround##f(x) + lrint##f(x) +       \
                    llrint##f(x) + fromfp##f(x * 9, 1, 8)) *                                       \
                    x)                                                                             \
    X(classes##f, (t)(isnan(x) + isinf(x) + isfinite(x) + fpclassify(x) + iseqsig(x, y) +          \
                      (signbit(x) != 0) + totalorder##f(&x, &y)) *                                 \
                      x)
#define NARROWING(X)                                                                               \
    X(fadd, (double)fadd(x, y))                                                                    \
    X(fsub, (double)fsub(x, y))                                                                    \
    X(fmul, (double)fmul(x, y))                                                                    \
    X(fdiv, (double)fdiv(x, y))                                                                    \
    X(fsqrt, (double)fsqrt(x))                                                                     \
    X(ffma, (double)ffma(x, y, x))                                                                 \
    X(ddivl, ddivl(x, y))                                                                          \
    X(dsqrtl, dsqrtl(x))                                                                           \
    X(fmull, (double)fmull(x, y))
/* clang-format on */

#define DEFINE(t, name, expression)                                                                \
    static double of_##name(const double *at)                                                      \
    {                                                                                              \
        const t x = (t)at[0], y = (t)at[1];                                                        \
        t u = 0, v = 0;                                                                            \
        int i = 0;                                                                                 \
        (void)u, (void)v, (void)i, (void)y;                                                        \
        return (double)(expression);                                                               \
    }
#define ONE_DOUBLE(name, f) DEFINE(double, name##f, name##f(x))
#define ONE_FLOAT(name, f) DEFINE(float, name##f, name##f(x))
#define ONE_LONG(name, f) DEFINE(long double, name##f, name##f(x))
#define TWO_DOUBLE(name, f) DEFINE(double, name##f, name##f(x, y))
#define TWO_FLOAT(name, f) DEFINE(float, name##f, name##f(x, y))
#define TWO_LONG(name, f) DEFINE(long double, name##f, name##f(x, y))
#define OF_DOUBLE(name, expression) DEFINE(double, name, expression)
#define OF_FLOAT(name, expression) DEFINE(float, name, expression)
#define OF_LONG(name, expression) DEFINE(long double, name, expression)
/* clang-format off */
ONE(ONE_DOUBLE, double, )
ONE(ONE_FLOAT, float, f)
ONE(ONE_LONG, long double, l)
TWO(TWO_DOUBLE, double, )
TWO(TWO_FLOAT, float, f)
TWO(TWO_LONG, long double, l)
OTHER(OF_DOUBLE, double, )
OTHER(OF_FLOAT, float, f)
OTHER(OF_LONG, long double, l)
NARROWING(OF_DOUBLE)

static const struct {
    const char *name;
    double (*f)(const double *);
} all[] = {
#define NAMED(name, f) {#name #f, of_##name##f},
#define OTHER_NAMED(name, expression) {#name, of_##name},
    ONE(NAMED, double, ) ONE(NAMED, float, f) ONE(NAMED, long double, l) TWO(NAMED, double, )
        TWO(NAMED, float, f) TWO(NAMED, long double, l) OTHER(OTHER_NAMED, double, )
            OTHER(OTHER_NAMED, float, f) OTHER(OTHER_NAMED, long double, l) NARROWING(OTHER_NAMED)};

/* clang-format on */

static double difference(double (*f)(const double *), const double *x, int i)
{
    const double h = 1.0 / 1024; /* exact in float */
    double to[2] = {x[0], x[1]}, from[2] = {x[0], x[1]};
    to[i] += h;
    from[i] -= h;
    return (f(to) - f(from)) / (2 * h);
}

static double lost(const double *x)
{
    union {
        double d;
        unsigned long long bits;
    } a = {x[0]}, b = {x[1]};
    double y = 0;
    char text[32];
    canonicalize(&y, &x[0]); /* unknown */
    a.bits ^= 1ULL << 63, b.bits ^= 1ULL << 63;
    y += a.d * b.d + a.d; /* overwritten */
    snprintf(text, sizeof text, "%.17g", x[0]);
    return y + atof(text) * x[0]; /* text */
}

int main(int n, char **argument)
{
    int wrong = 0;
    (void)argument;
    for (size_t k = 0; k < (n > 1 ? 1 : sizeof all / sizeof *all); k++) {
        double (*f)(const double *) = n > 1 ? lost : all[k].f;
        double x[2] = {0.3125, 0.21875}, g[2] = {NAN, NAN};
        ad_real leaf[2];
        ad_tape tape;
        if (ad_tape_create(&tape, NULL) != AD_OK || ad_plain_leaves(tape, 2, x, leaf) != AD_OK)
            return 2;
        const double y = f(x);
        if (ad_plain_backward(tape, &y) == AD_OK)
            ad_plain_gradients(tape, 2, leaf, g);
        else if (ad_tape_clear_error(tape), y == f(x)) /* a constant */
            g[0] = g[1] = 0;
        ad_tape_destroy(tape);
        for (int i = 0; i < 2 && n == 1; i++) {
            const double d = difference(f, x, i);
            if (fabs(g[i] - d) <= 2e-3 * (1 + fabs(d)))
                continue;
            printf("%s: by %s %g, not %g\n", all[k].name, i ? "y" : "x", g[i], d);
            wrong++;
        }
    }
    printf("%zu functions, %d wrong, %d lost\n", sizeof all / sizeof *all, wrong,
           (int)ad_plain_dropped());
    return wrong > 0 || (n == 1 && ad_plain_dropped() > 0);
}
