/* ad_real_program_formulas.h: what formulas over ad_real are where AD_REAL_PROGRAM is 1: each
 * function is a statement of its own, and its result an ad_real. Included by ad_real_expression.h
 * in place of ad_real_formulas.h.
 */
#include <tapescope/ad_real_expression.h> /* which includes this one where its types are there */

#ifndef TAPESCOPE_AD_REAL_PROGRAM_FORMULAS_H
#define TAPESCOPE_AD_REAL_PROGRAM_FORMULAS_H

/* A formula is its result, of whatever number of operands. */
typedef ad_real ad_expr0, ad_expr1, ad_expr2, ad_expr3, ad_expr4, ad_expr5, ad_expr6, ad_expr7,
    ad_expr8, ad_expr9, ad_expr10, ad_expr11, ad_expr12;
AD_NEW_EXPR_(1)

AD_INLINE ad_new_expr1_ ad_program_scale_(ad_real x, ad_rule1_ rule, uint32_t site)
{
    const ad_real y =
        ad_program_statement_(rule.op, rule.parameter, rule.value, 1, &x, &rule.x, site);
#ifdef __cplusplus
    return y;
#else
    return (ad_new_expr1_){y};
#endif
}

AD_INLINE ad_new_expr1_ ad_program_join_(ad_real x, ad_real y, ad_rule2_ rule, uint32_t site)
{
    const ad_real operand[] = {x, y};
    const double partial[] = {rule.x, rule.y};
    const ad_real z =
        ad_program_statement_(rule.op, rule.parameter, rule.value, 2, operand, partial, site);
#ifdef __cplusplus
    return z;
#else
    return (ad_new_expr1_){z};
#endif
}

#ifdef __cplusplus
AD_INLINE ad_real ad_lift_(const ad_real &x)
{
    return x;
}
#define ad_scale_(x, rule) ad_program_scale_(x, rule, AD_STATEMENT_SITE_)
#define ad_join_(x, y, rule) ad_program_join_(x, y, rule, AD_STATEMENT_SITE_)
#else
#define ad_lift_real_ ad_real_same_
#define AD_EXPR_OR_(x, other) other
#define AD_RECORD_OF_(x) ad_statement_real_
#define AD_SCALE_(x) AD_PROGRAM_SCALE_
#define AD_JOIN_(x, y) AD_PROGRAM_JOIN_
#define AD_PROGRAM_SCALE_(x, rule) ad_program_scale_(x, rule, AD_STATEMENT_SITE_)
#define AD_PROGRAM_JOIN_(x, y, rule) ad_program_join_(x, y, rule, AD_STATEMENT_SITE_)
#endif

#endif
