/* ad_program_usual.h: the usual functions of programs: those that are an instruction or two.
 *
 * They are computed in place where others are called, or go through arrays of their derivatives.
 * None of their rows in ad_real_functions.h has a product that is added to something, so that
 * results do not depend on whether the compiler contracts it.
 */
#ifndef AD_PROGRAM_USUAL_H
#define AD_PROGRAM_USUAL_H

#include "ad_program_functions.h"

#define USUAL_ONE(X, m) X(m, neg) X(m, square) X(m, reciprocal) X(m, sqrt)
#define USUAL_TWO(X, m) X(m, add) X(m, sub) X(m, mul) X(m, div)

#define USUAL_ALWAYS static inline __attribute__((always_inline, unused))

/* Derivatives by x and y, each as `unit` of struct program_function says, and second ones: xx, xy,
 * yy. */
struct usual_rule {
    double by[2], curve[3];
    unsigned unit[2];
    bool flat; /* all second ones are 0 */
};

#define DEFINE(name, v_, dx_, dxx_)                                                                \
    USUAL_ALWAYS double usual_value_##name(double x, double y)                                     \
    {                                                                                              \
        (void)y;                                                                                   \
        return v_;                                                                                 \
    }                                                                                              \
    USUAL_ALWAYS struct usual_rule usual_rule_##name(double x, double y, double v)                 \
    {                                                                                              \
        const double dx = dx_;                                                                     \
        (void)x, (void)y, (void)v, (void)dx;                                                       \
        return (struct usual_rule){.by = {dx},                                                     \
                                   .curve = {dxx_},                                                \
                                   .unit = {AD_WRITTEN_UNIT_(#dx_)},                               \
                                   .flat = PROGRAM_IS_ZERO(#dxx_)};                                \
    }
AD_REAL_FUNCTIONS_(DEFINE)
#undef DEFINE
#define DEFINE(name, v_, dx_, dy_, dxx_, dxy_, dyy_)                                               \
    USUAL_ALWAYS double usual_value_##name(double x, double y)                                     \
    {                                                                                              \
        return v_;                                                                                 \
    }                                                                                              \
    USUAL_ALWAYS struct usual_rule usual_rule_##name(double x, double y, double v)                 \
    {                                                                                              \
        const double dx = dx_, dy = dy_;                                                           \
        (void)x, (void)y, (void)v, (void)dx, (void)dy;                                             \
        return (struct usual_rule){.by = {dx, dy},                                                 \
                                   .curve = {dxx_, dxy_, dyy_},                                    \
                                   .unit = {AD_WRITTEN_UNIT_(#dx_), AD_WRITTEN_UNIT_(#dy_)},       \
                                   .flat = PROGRAM_IS_ZERO(#dxx_) && PROGRAM_IS_ZERO(#dxy_) &&     \
                                           PROGRAM_IS_ZERO(#dyy_)};                                \
    }
AD_REAL_FUNCTIONS2_(DEFINE)
#undef DEFINE

/* As add, subtract and add_times of struct program_loops. */
USUAL_ALWAYS void usual_share(double *to, double from, double d, unsigned unit)
{
    if (unit == 1)
        *to += from;
    else if (unit == 2)
        *to -= from;
    else
        *to += from == 0 ? 0 : from * d;
}

#endif
