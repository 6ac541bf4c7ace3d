// formulas.cpp: the formulas of formulas.c in infix, whose records must be the same.
#include <tapescope/ad_real.hpp>

#include "formulas.h"

static auto sum6(const ad_real *x)
{
    return x[0] + x[1] + x[2] * 3 + x[3] + x[4] + x[5];
}

static auto sum12(const ad_real *x)
{
    return sum6(x) + sum6(x + 6);
}

int main()
{
    ad_tape tape;
    ad_real x[40], y;
    if (!formulas_begin(&tape, x))
        return 1;
    y = x[0] * x[1];
    formulas_print(x);
    y = x[0] * x[1] + x[2] / (3 - x[3]);
    formulas_print(x);
    y = x[1] - 0.1 * x[1] * (x[2] - x[0]) - 0.2 * (x[2] - 2 * x[1] + x[0]);
    formulas_print(x);
    y = sqrt(y * y + x[4] * 2);
    formulas_print(x);
    y = ad_real(2) * x[5];
    formulas_print(x);
    y = -fma(x[6], x[7], ad_real_square(x[6]));
    formulas_print(x);
    ad_real *const u = x + 3;
    y = x[0] * x[1] * u[0] * x[1];
    formulas_print(x);
    y = sum12(x);
    formulas_print(x);
    y = sum12(x) * x[20];
    formulas_print(x);
    y = x[20] * sum12(x);
    formulas_print(x);
    y = sum12(x) * sum12(x + 12);
    formulas_print(x);
    y = (sum6(x) + x[30]) * sum6(x + 12);
    formulas_print(x);
    // What is stored goes by the form, not by values: that of x[0] is 1.
    y = x[0] * x[1];
    formulas_print_shape();
    y = x[2] + x[0] * x[1];
    formulas_print_shape();
    y = -(x[2] - x[3]) - x[4];
    formulas_print_shape();
    y = fma(x[0], x[1], -1 * x[2]);
    formulas_print_shape();
    y = x[2] + x[3] + x[2] * 2;
    formulas_print_shape();
    y = (x[2] - x[3]) * x[0];
    formulas_print_shape();
    return ad_tape_destroy(tape) != AD_OK;
}
