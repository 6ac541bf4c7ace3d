/* plain_functions.c: derivatives that are more than a few instructions, and functions of the C
 * library that are called by address. The rules are those of ad_real_functions.h. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"

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

/* A function that is called by its address records by itself. */
#define CALLED(name, of)                                                                           \
    double ad_plain_call_##name(double x);                                                         \
    double ad_plain_call_##name(double x)                                                          \
    {                                                                                              \
        const bool ours = ad_plain_callee_ == (uintptr_t)ad_plain_call_##name;                     \
        const uint32_t index = ours ? ad_plain_arguments_[0] : 0;                                  \
        const uint32_t tag = index ? ad_plain_tag_(index) : 0;                                     \
        const ad_real y = ad_real_of(ad_real_##of(((ad_real){x, index, tag})));                    \
        ad_plain_callee_ = 0;                                                                      \
        ad_plain_results_[0] = y.index;                                                            \
        ad_plain_returned_ = (uintptr_t)ad_plain_call_##name;                                      \
        return name(x);                                                                            \
    }
CALLED(sin, sin)
CALLED(cos, cos)
CALLED(tan, tan)
CALLED(exp, exp)
CALLED(log, log)
CALLED(sqrt, sqrt)
CALLED(tanh, tanh)
CALLED(sinh, sinh)
CALLED(cosh, cosh)
CALLED(asin, asin)
CALLED(acos, acos)
CALLED(atan, atan)
CALLED(fabs, fabs)
