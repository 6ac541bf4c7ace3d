/* formulas.c: prints the records of formulas: how many operands, which, and the derivatives, bit
 * for bit. formulas.cpp prints the same of infix ones. */
#include <tapescope/ad_real.h>

#include "formulas.h"

int main(void)
{
    ad_tape tape;
    ad_real x[40], y;
    if (!formulas_begin(&tape, x))
        return 1;
    ad_set(&y, ad_real_mul(x[0], x[1]));
    formulas_print(x);
    ad_set(&y, ad_real_add(ad_real_mul(x[0], x[1]), ad_real_div(x[2], ad_real_sub(3, x[3]))));
    formulas_print(x);
    ad_set(&y, ad_real_sub(
                   ad_real_sub(x[1], ad_real_mul(ad_real_mul(0.1, x[1]), ad_real_sub(x[2], x[0]))),
                   ad_real_mul(0.2, ad_real_add(ad_real_sub(x[2], ad_real_mul(2, x[1])), x[0]))));
    formulas_print(x);
    ad_set(&y, ad_real_sqrt(ad_real_add(ad_real_mul(y, y), ad_real_mul(x[4], 2))));
    formulas_print(x);
    ad_set(&y, ad_real_mul(ad_real_of(2), x[5])); /* a constant is an operand, once */
    formulas_print(x);
    ad_set(&y, ad_real_neg(ad_real_fma(x[6], x[7], ad_real_square(x[6]))));
    formulas_print(x);
    ad_real *const u = x + 3;
    ad_set(&y, ad_real_product_of(x[0], x[1], u[0], x[1]));
    formulas_print(x);
    /* 12 and 13 operands, from either side, and two full formulas. */
#define SUM6(k)                                                                                    \
    ad_real_sum_of(x[k], x[k + 1], ad_real_mul(x[k + 2], 3), x[k + 3], x[k + 4], x[k + 5])
#define SUM12(k) ad_real_add(SUM6(k), SUM6(k + 6))
    ad_set(&y, SUM12(0));
    formulas_print(x);
    ad_set(&y, ad_real_mul(SUM12(0), x[20]));
    formulas_print(x);
    ad_set(&y, ad_real_mul(x[20], SUM12(0)));
    formulas_print(x);
    ad_set(&y, ad_real_mul(SUM12(0), SUM12(12)));
    formulas_print(x);
    ad_set(&y, ad_real_mul(ad_real_sum_of(SUM6(0), x[30]), SUM6(12)));
    formulas_print(x);
    /* What is stored goes by the form, not by values: that of x[0] is 1. */
    ad_set(&y, ad_real_mul(x[0], x[1]));
    formulas_print_shape();
    ad_set(&y, ad_real_add(x[2], ad_real_mul(x[0], x[1])));
    formulas_print_shape();
    ad_set(&y, ad_real_sub(ad_real_neg(ad_real_sub(x[2], x[3])), x[4]));
    formulas_print_shape();
    ad_set(&y, ad_real_fma(x[0], x[1], ad_real_mul(-1, x[2])));
    formulas_print_shape();
    ad_set(&y, ad_real_add(ad_real_add(x[2], x[3]), ad_real_mul(x[2], 2)));
    formulas_print_shape();
    ad_set(&y, ad_real_mul(ad_real_sub(x[2], x[3]), x[0]));
    formulas_print_shape();
    return ad_tape_destroy(tape) != AD_OK;
}
