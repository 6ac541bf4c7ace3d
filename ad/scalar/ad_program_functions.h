/* ad_program_functions.h: the functions of programs of numbers, each over several rounds at once.
 *
 * They stand in the tables of ad_real_functions.h, from which user code has its formulas. Each loop
 * is compiled for every instruction set; results differ only where one has fused multiplication.
 */
#ifndef AD_PROGRAM_FUNCTIONS_H
#define AD_PROGRAM_FUNCTIONS_H

#include <tapescope/ad_real_functions.h>

#include <stddef.h>
#include <stdint.h>

/* A step's operands, in their order, and its parameter. */
enum { OF_X, OF_Y, OF_Z, OF_PARAMETER, OF_ALL };

/* Of n rounds: values v; first derivatives d by each operand, where that is v; second ones by the
 * first two operands: xx, xy and yy. A third operand is linear. */
typedef void program_values(size_t n, const double *const *of, double *v);
typedef void program_slopes(size_t n, const double *const *of, const double *v, double *const *d);
typedef void program_curves(size_t n, const double *const *of, const double *v, double *const *d,
                            double *const *dd);
/* And what operands are given of the adjoint: to[k] += adjoint * d[k], where to[k] is not NULL, as
 * by struct program_loops. No number is among both. */
typedef void program_pull(size_t n, const double *const *of, const double *v, const double *adjoint,
                          double *const *to);

struct program_function {
    program_values *values;
    program_slopes *slopes;
    program_curves *curves; /* NULL: they are 0 */
    uint8_t arity;
    uint8_t unit[2]; /* the derivative is always 1: 1, or -1: 2; else 0 */
};

/* What becomes of derivatives: n rounds of `width` lanes each. What is 0 gives 0, whatever it is
 * multiplied with. */
struct program_loops {
    const struct program_function *function; /* by AD_PROGRAM_... */
    program_pull *const *pull; /* of the usual functions (ad_program_usual.h); NULL of others */
    /* to += from * d, to += from, to -= from */
    void (*add_times)(size_t n, uint32_t width, double *to, const double *from, const double *d);
    void (*add)(size_t n, double *to, const double *from);
    void (*subtract)(size_t n, double *to, const double *from);
    /* to += tangent * (adjoint * by); adjoint and by have one lane. */
    void (*add_curve)(size_t n, uint32_t width, double *to, const double *tangent,
                      const double *adjoint, const double *by);
};

/* Whether a table says that a second derivative is 0. */
#define PROGRAM_IS_ZERO(text) (sizeof(text) == 2 && (text)[0] == '0')

/* Functions that are no row of the tables of ad_real_functions.h; ORDER and `parameter`: the step's
 * parameter. Name, parameter, value, derivative, second derivative. */
#define PROGRAM_MORE_ONE(X, m)                                                                     \
    X(m, ldexp, WITH, ldexp(x, ORDER), ldexp(1, ORDER), 0)                                         \
    X(m, jn, WITH, ad_bessel_(false, ORDER, x), ad_bessel_slope_(false, ORDER, x),                 \
      bessel_curve(false, parameter, x, v, dx))                                                    \
    X(m, yn, WITH, ad_bessel_(true, ORDER, x), ad_bessel_slope_(true, ORDER, x),                   \
      bessel_curve(true, parameter, x, v, dx))                                                     \
    X(m, modf, 0, fraction(x), 1, 0)                                                               \
    X(m, frexp, 0, mantissa(x), mantissa_slope(x), 0)
#define PROGRAM_MORE_TWO(X, m) X(m, remquo, rest(x, y), 1, -rint((x - v) / y), 0, 0, 0)

/* Those of this machine. */
const struct program_loops *ad_program_loops(void);

#endif
