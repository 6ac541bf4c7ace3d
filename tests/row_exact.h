/* row_exact.h: what every row computes, in long double; for tests of accuracy and of derivatives.
 *
 * May include: nothing of the project. Eleven bits more than f64 has: rounded to f64 a value here
 * is within 0.51 ulp. Independent of the kernels: nothing is shared with them but the formulas.
 */
#ifndef ROW_EXACT_H
#define ROW_EXACT_H

typedef long double row_exact_value(long double a, long double b, long double c, const double *p);

/* NULL for a row that is not known. p: the row's parameters. */
row_exact_value *row_exact(const char *name);

#endif
