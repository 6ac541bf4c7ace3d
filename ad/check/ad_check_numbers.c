/* ad_check_numbers.c: steps and differences of the gradient check. */
#include "ad_check.h"
#include "plain_format.h"

#include <float.h>
#include <math.h>

void ad_check_vector(double *u, int64_t n)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double size = 0.5 + (double)(state >> 12) * 0x1p-52;
        u[i] = state & 1 ? size : -size;
    }
    if (n == 1)
        u[0] = 1;
}

struct ad_check_step ad_check_step(double x)
{
    /* The cube root of the machine's epsilon balances the error of the formula, h^2 f'''/6, with
     * that of the subtraction, epsilon f / h. */
    double h = cbrt(DBL_EPSILON) * fmax(1, fabs(x));
    return (struct ad_check_step){x - h, x + h};
}

double ad_check_difference(double swept, double measured)
{
    double d = fabs(swept - measured) / (1 + fabs(measured));
    return isnan(d) ? INFINITY : d;
}

double ad_check_shown(double x)
{
    return isnan(x) ? fabs(x) : x;
}

const char *ad_check_kink(struct ad_check_slope slope, double swept, double tolerance, char *buf,
                          size_t n)
{
    const double low = fmin(slope.below, slope.above), high = fmax(slope.below, slope.above);
    /* At the kink of relu the derivative is one of the two, but for rounding. */
    const double slack = tolerance * (1 + fabs(swept));
    buf[0] = 0;
    if (high - low > slack && swept >= low - slack && swept <= high + slack)
        plain_format(buf, n,
                     " (%.6g from below, %.6g from above: a kink lies within the step, or a strong "
                     "curve)",
                     slope.below, slope.above);
    return buf;
}
