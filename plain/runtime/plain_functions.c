/* plain_functions.c: derivatives that are more than a few instructions, and functions of the C
 * library that are called by address. The rules are those of ad_real_functions.h. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <complex.h>
#include <math.h>

/* The derivative at x; index 0: it is not wanted. */
#define BY(name)                                                                                   \
    double ad_plain_by_##name##_(double x, uint32_t index);                                        \
    double ad_plain_by_##name##_(double x, uint32_t index)                                         \
    {                                                                                              \
        return index ? ad_real_##name(((ad_real){x, 1, 0})).p0 : 0;                                \
    }
BY(sin)
BY(cos)
BY(lgamma)
BY(tgamma)
BY(erf)
BY(erfc)
BY(asin)
BY(acos)
BY(sinh)
BY(cosh)
BY(asinh)
BY(acosh)
BY(atanh)
BY(j0)
BY(j1)
BY(y0)
BY(y1)

double ad_plain_by_pow_base_(double x, double y, uint32_t index);
double ad_plain_by_pow_base_(double x, double y, uint32_t index)
{
    return index ? ad_real_pow(((ad_real){x, 1, 0}), y).p0 : 0;
}

double ad_plain_by_pow_exponent_(double x, double y, uint32_t index);
double ad_plain_by_pow_exponent_(double x, double y, uint32_t index)
{
    return index ? ad_real_pow(x, ((ad_real){y, 1, 0})).p0 : 0;
}

/* ---- functions that record by themselves, on the line of the call ---- */

static uint32_t taken(uintptr_t function, unsigned k)
{
    return ad_plain_callee_ == function ? ad_plain_arguments_[k] : 0;
}

static ad_real number(double x, uint32_t index)
{
    return (ad_real){x, index, index ? ad_plain_tag_(index) : 0};
}

/* The result y, whose value it keeps where the record failed. */
static double given(uintptr_t function, ad_real y, double value)
{
    ad_plain_callee_ = 0;
    ad_plain_results_[0] = y.index;
    ad_plain_returned_ = function;
    return value;
}

/* By address. */
#define CALLED(name)                                                                               \
    double ad_plain_call_##name(double x);                                                         \
    double ad_plain_call_##name(double x)                                                          \
    {                                                                                              \
        const uintptr_t self = (uintptr_t)ad_plain_call_##name;                                    \
        const ad_real k = number(x, taken(self, 0));                                               \
        const double by = k.index ? ad_real_##name(((ad_real){x, 1, 0})).p0 : 0;                   \
        const double y = name(x);                                                                  \
        return given(self, ad_plain_statement_(PLAIN_HERE, 1, &k, &by, y), y);                     \
    }
CALLED(sin)
CALLED(cos)
CALLED(tan)
CALLED(exp)
CALLED(log)
CALLED(sqrt)
CALLED(tanh)
CALLED(sinh)
CALLED(cosh)
CALLED(asin)
CALLED(acos)
CALLED(atan)
CALLED(fabs)
CALLED(exp2)
CALLED(expm1)
CALLED(log2)
CALLED(log10)
CALLED(log1p)
CALLED(cbrt)
CALLED(erf)
CALLED(erfc)
CALLED(lgamma)
CALLED(tgamma)
CALLED(asinh)
CALLED(acosh)
CALLED(atanh)
CALLED(j0)
CALLED(j1)
CALLED(y0)
CALLED(y1)

/* Of two numbers; by_x, by_y: the expression's derivatives, or others. */
static double of_two(uintptr_t function, uintptr_t pc, double x, double y, double by_x, double by_y,
                     double value)
{
    const ad_real k[] = {number(x, taken(function, 0)), number(y, taken(function, 1))};
    return given(function, ad_plain_statement_(pc, 2, k, (double[]){by_x, by_y}, value), value);
}

#define CALLED_TWO(name)                                                                           \
    double ad_plain_call_##name(double x, double y);                                               \
    double ad_plain_call_##name(double x, double y)                                                \
    {                                                                                              \
        const __auto_type e = ad_real_##name(((ad_real){x, 1, 0}), ((ad_real){y, 2, 0}));          \
        return of_two((uintptr_t)ad_plain_call_##name, PLAIN_HERE, x, y, e.p0, e.p1, name(x, y));  \
    }
CALLED_TWO(pow)
CALLED_TWO(atan2)
CALLED_TWO(hypot)
CALLED_TWO(fmod)
CALLED_TWO(remainder)

/* At a tie the first operand's, as code that calls them by name has it; a NaN is not chosen. */
#define CALLED_CHOICE(name, compared)                                                              \
    double ad_plain_call_##name(double x, double y);                                               \
    double ad_plain_call_##name(double x, double y)                                                \
    {                                                                                              \
        const bool first = x compared y || isnan(y);                                               \
        return of_two((uintptr_t)ad_plain_call_##name, PLAIN_HERE, x, y, first, !first,            \
                      name(x, y));                                                                 \
    }
CALLED_CHOICE(fmax, >=)
CALLED_CHOICE(fmin, <=)

/* ---- by name ---- */

double ad_plain_call_drem(double x, double y);
double ad_plain_call_drem(double x, double y)
{
    const __auto_type e = ad_real_remainder(((ad_real){x, 1, 0}), ((ad_real){y, 2, 0}));
    return of_two((uintptr_t)ad_plain_call_drem, PLAIN_HERE, x, y, e.p0, e.p1, remainder(x, y));
}

double ad_plain_call_nextafter(double x, double towards);
double ad_plain_call_nextafter(double x, double towards)
{
    return of_two((uintptr_t)ad_plain_call_nextafter, PLAIN_HERE, x, towards, 1, 0,
                  nextafter(x, towards));
}

/* One operand whose derivative is known. */
static void of_one(uintptr_t function, uintptr_t pc, double x, double by, double value)
{
    const ad_real k = number(x, taken(function, 0));
    (void)given(function, ad_plain_statement_(pc, 1, &k, &by, value), value);
}

/* ---- results in memory ---- */

static uint32_t check_of(uint32_t bits, uint32_t index)
{
    return bits ^ ad_plain_tag_(index);
}

static void put_float(float *at, ad_real y)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    const uint32_t check = check_of(bits, y.index);
    memcpy(plain_shadow(at), &y.index, sizeof y.index);
    memcpy(plain_checks(at), &check, sizeof check);
}

static void put_long(long double *at, ad_real y)
{
    uint32_t half[2], word[2] = {y.index, 0};
    memcpy(half, at, sizeof half);
    word[1] = check_of(half[0] ^ half[1], y.index);
    memcpy(plain_shadow(at), word, sizeof word);
}

static void put_double(double *at, ad_real y)
{
    ad_plain_write(at, y);
}

/* Of each floating type t, whose functions have the letter f behind their names. Bessel functions:
 * Abramowitz and Stegun, Handbook of mathematical functions, 9.1.27. */
#define SCALED(name, t, N, power)                                                                  \
    t ad_plain_call_##name(t x, N exponent);                                                       \
    t ad_plain_call_##name(t x, N exponent)                                                        \
    {                                                                                              \
        const t y = name(x, exponent);                                                             \
        of_one((uintptr_t)ad_plain_call_##name, PLAIN_HERE, (double)x, (power), (double)y);        \
        return y;                                                                                  \
    }
#define BESSEL(name, t)                                                                            \
    t ad_plain_call_##name(int n, t x);                                                            \
    t ad_plain_call_##name(int n, t x)                                                             \
    {                                                                                              \
        const t y = name(n, x);                                                                    \
        double by = 0;                                                                             \
        if (taken((uintptr_t)ad_plain_call_##name, 0))                                             \
            by = (double)(name(n - 1, x) - name(n + 1, x)) / 2;                                    \
        of_one((uintptr_t)ad_plain_call_##name, PLAIN_HERE, (double)x, by, (double)y);             \
        return y;                                                                                  \
    }
#define OF_TYPE(t, f, put)                                                                         \
    SCALED(ldexp##f, t, int, ldexp(1, exponent))                                                   \
    SCALED(scalbn##f, t, int, scalbn(1, exponent))                                                 \
    SCALED(scalbln##f, t, long, scalbln(1, exponent))                                              \
    SCALED(scalb##f, t, t, exp2((double)exponent))                                                 \
    BESSEL(jn##f, t)                                                                               \
    BESSEL(yn##f, t)                                                                               \
    t ad_plain_call_frexp##f(t x, int *exponent);                                                  \
    t ad_plain_call_frexp##f(t x, int *exponent)                                                   \
    {                                                                                              \
        const t y = frexp##f(x, exponent);                                                         \
        of_one((uintptr_t)ad_plain_call_frexp##f, PLAIN_HERE, (double)x, ldexp(1, -*exponent),     \
               (double)y);                                                                         \
        return y;                                                                                  \
    }                                                                                              \
    t ad_plain_call_lgamma##f##_r(t x, int *sign);                                                 \
    t ad_plain_call_lgamma##f##_r(t x, int *sign)                                                  \
    {                                                                                              \
        const uintptr_t self = (uintptr_t)ad_plain_call_lgamma##f##_r;                             \
        const t y = lgamma##f##_r(x, sign);                                                        \
        of_one(self, PLAIN_HERE, (double)x, ad_plain_by_lgamma_((double)x, taken(self, 0)),        \
               (double)y);                                                                         \
        return y;                                                                                  \
    }                                                                                              \
    t ad_plain_call_modf##f(t x, t *whole);                                                        \
    t ad_plain_call_modf##f(t x, t *whole)                                                         \
    {                                                                                              \
        const ad_real k = number((double)x, taken((uintptr_t)ad_plain_call_modf##f, 0));           \
        const t y = modf##f(x, whole);                                                             \
        plain_forget(whole, sizeof *whole);                                                        \
        (void)given((uintptr_t)ad_plain_call_modf##f, k, 0);                                       \
        return y;                                                                                  \
    }                                                                                              \
    t ad_plain_call_remquo##f(t x, t y, int *quotient);                                            \
    t ad_plain_call_remquo##f(t x, t y, int *quotient)                                             \
    {                                                                                              \
        const t value = remquo##f(x, y, quotient);                                                 \
        const double by = -rint((double)((x - value) / y));                                        \
        (void)of_two((uintptr_t)ad_plain_call_remquo##f, PLAIN_HERE, (double)x, (double)y, 1, by,  \
                     (double)value);                                                               \
        return value;                                                                              \
    }                                                                                              \
    void ad_plain_call_sincos##f(t x, t *s, t *c);                                                 \
    void ad_plain_call_sincos##f(t x, t *s, t *c)                                                  \
    {                                                                                              \
        const ad_real k = number((double)x, taken((uintptr_t)ad_plain_call_sincos##f, 0));         \
        ad_plain_callee_ = 0;                                                                      \
        *s = sin##f(x);                                                                            \
        *c = cos##f(x);                                                                            \
        const double sine = (double)*s, cosine = (double)*c, minus = -sine;                        \
        put(s, ad_plain_statement_(PLAIN_HERE, 1, &k, &cosine, sine));                             \
        put(c, ad_plain_statement_(PLAIN_HERE, 1, &k, &minus, cosine));                            \
        PLAIN_RETURNS(sincos##f);                                                                  \
    }
OF_TYPE(double, , put_double)
OF_TYPE(float, f, put_float)
OF_TYPE(long double, l, put_long)

/* ---- functions of complex numbers ---- */

/* u + iv of n numbers x + iy, by derivatives f' for which du = Re f' dx - Im f' dy and
 * dv = Im f' dx + Re f' dy. */
static double complex analytic(uintptr_t function, uintptr_t pc, unsigned n,
                               const double complex *z, const double complex *by, double complex f)
{
    ad_real k[4];
    double u[4], v[4];
    for (unsigned i = 0; i < n; i++) {
        k[2 * i] = number(creal(z[i]), taken(function, 2 * i));
        k[2 * i + 1] = number(cimag(z[i]), taken(function, 2 * i + 1));
        u[2 * i] = v[2 * i + 1] = creal(by[i]);
        v[2 * i] = cimag(by[i]);
        u[2 * i + 1] = -v[2 * i];
    }
    const ad_real real = ad_plain_statement_(pc, 2 * n, k, u, creal(f));
    ad_plain_results_[1] = ad_plain_statement_(pc, 2 * n, k, v, cimag(f)).index;
    (void)given(function, real, 0);
    return f;
}

/* Whether one of n numbers is no constant: else its derivatives are not computed. */
static bool are_active(uintptr_t function, unsigned n)
{
    uint32_t any = 0;
    for (unsigned k = 0; k < 2 * n; k++)
        any |= taken(function, k);
    return any != 0;
}

/* z: the number, f: its value. Derivatives are written so that they have the branches of C's
 * functions (ISO C, annex G). */
#define ANALYTIC(name, derivative)                                                                 \
    double complex ad_plain_call_##name(double complex z);                                         \
    double complex ad_plain_call_##name(double complex z)                                          \
    {                                                                                              \
        const uintptr_t self = (uintptr_t)ad_plain_call_##name;                                    \
        const double complex f = name(z), by = are_active(self, 1) ? (derivative) : 0;             \
        return analytic(self, PLAIN_HERE, 1, &z, &by, f);                                          \
    }
ANALYTIC(cexp, f)
ANALYTIC(clog, 1 / z)
ANALYTIC(csqrt, 0.5 / f)
ANALYTIC(csin, ccos(z))
ANALYTIC(ccos, -csin(z))
ANALYTIC(ctan, 1 + f * f)
ANALYTIC(csinh, ccosh(z))
ANALYTIC(ccosh, csinh(z))
ANALYTIC(ctanh, 1 - f * f)
ANALYTIC(casin, 1 / (csqrt(1 - z) * csqrt(1 + z)))
ANALYTIC(cacos, -1 / (csqrt(1 - z) * csqrt(1 + z)))
ANALYTIC(catan, 1 / (1 + z * z))
ANALYTIC(casinh, 1 / (csqrt(1 - I * z) * csqrt(1 + I * z)))
ANALYTIC(cacosh, 1 / (csqrt(z - 1) * csqrt(z + 1)))
ANALYTIC(catanh, 1 / (1 - z * z))

/* Of two numbers. */
#define ANALYTIC_PAIR(name, value, by_z, by_w)                                                     \
    double complex ad_plain_call_##name(double complex z, double complex w);                       \
    double complex ad_plain_call_##name(double complex z, double complex w)                        \
    {                                                                                              \
        const uintptr_t self = (uintptr_t)ad_plain_call_##name;                                    \
        const double complex f = (value), of[] = {z, w};                                           \
        double complex by[2] = {0, 0};                                                             \
        if (are_active(self, 2))                                                                   \
            by[0] = (by_z), by[1] = (by_w);                                                        \
        return analytic(self, PLAIN_HERE, 2, of, by, f);                                           \
    }
ANALYTIC_PAIR(cpow, cpow(z, w), w *cpow(z, w - 1), f *clog(z))
/* A product and a quotient, where the compiler calls for them. */
ANALYTIC_PAIR(__muldc3, z *w, w, z)
ANALYTIC_PAIR(__divdc3, z / w, 1 / w, -f / w)

#define OF_PARTS(name, of, first, second)                                                          \
    double ad_plain_call_##name(double complex z);                                                 \
    double ad_plain_call_##name(double complex z)                                                  \
    {                                                                                              \
        const uintptr_t self = (uintptr_t)ad_plain_call_##name;                                    \
        const double part[] = {creal(z), cimag(z)};                                                \
        const ad_real k[] = {number(part[0], taken(self, 0)), number(part[1], taken(self, 1))};    \
        const __auto_type e = of(((ad_real){part[first], 1, 0}), ((ad_real){part[second], 2, 0})); \
        double by[2];                                                                              \
        by[first] = e.p0;                                                                          \
        by[second] = e.p1;                                                                         \
        const double y = name(z);                                                                  \
        return given(self, ad_plain_statement_(PLAIN_HERE, 2, k, by, y), y);                       \
    }
OF_PARTS(cabs, ad_real_hypot, 0, 1)
OF_PARTS(carg, ad_real_atan2, 1, 0)
