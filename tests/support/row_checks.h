/* row_checks.h: what the rows of elementwise.def say for tests, by name.
 *
 * Values are C's functions on double and on long double, from one text. Long double has eleven bits
 * more than f64: rounded to f64 its value is within 0.51 ulp. Nothing is shared with the kernels
 * but the formulas.
 */
#ifndef ROW_CHECKS_H
#define ROW_CHECKS_H

#include "kernel_ops.h"

#include <math.h>

typedef long double row_exact_value(long double a, long double b, long double c, const double *p);

/* By what a bound is multiplied at an argument, where the exact value is y. */
typedef double row_factor(double x, double y, int dtype);

/* Value and derivatives at one place, with these parameters. */
struct row_edge {
    double in[3], value, derivative[3], parameter[2];
};

/* A second derivative at the end of a domain. */
struct row_end {
    double x, second;
};

struct row_check {
    const struct kernel_op *op;
    double (*value)(double a, double b, double c, const double *p);
    row_exact_value *exact;
    long double (*second)(long double a); /* NULL: not stated */
    double second_limits[2];              /* at inf and -inf */
    const struct row_end *ends;           /* n_ends; more second derivatives */
    int n_ends;
    double range[2][2]; /* of a and b: where something happens; {0, 0} is -2 to 2 */
    bool cancels;       /* the error depends on cancellation: there is no bound but */
    double apart;       /* this one on samples, in ulp, */
    bool samples_only;  /* and none at infinities and the like */
    bool any_zero;      /* the sign of a zero is not promised */
    int n_branches;     /* numbered by branch() from the operands and parameters */
    int (*branch)(const double *x, const double *p);
    const struct row_edge *edges;
    int n_edges;
};

/* All rows, in their order. */
const struct row_check *row_checks(int *n);

/* The checks of a row; a row without them ends the test. */
const struct row_check *row_check(const struct kernel_op *op);

/* What multiplies the row's bound at x, where the exact value is y. */
double row_grows(const struct row_check *row, double x, double y, int dtype);

/* Distance of y and the exact value in units in the last place of the dtype at that value. A result
 * beyond the largest number counts as the power of two after it. */
double row_distance(double y, long double exact, int dtype);

/* Numbers in edges that depend on the dtype stand there as these; row_meant() gives them. */
#define ROW_TINY (-12345.0) /* the smallest subnormal */
#define ROW_NEGTINY (-12346.0)
#define ROW_TWICE_TINY (-12347.0)
#define ROW_LOG_TINY (-12348.0)
#define ROW_NEGLOG_TINY (-12349.0)
#define ROW_ROOT_TINY (-12350.0)
#define ROW_RROOT_TINY (-12351.0)
#define ROW_HALF_RROOT_TINY (-12352.0)
double row_meant(double x, int dtype);

#endif
