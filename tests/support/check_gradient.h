/* check_gradient.h: for tests of gradients: pullbacks against differences, and against themselves.
 *
 * Each check returns true, or false with check_message, which names op, dtype, sample, operand,
 * element and both numbers. NaN never passes.
 */
#ifndef CHECK_GRADIENT_H
#define CHECK_GRADIENT_H

#include "check_tape.h"

extern char check_message[1024];

typedef bool check_fn(const struct check_case *c);

/* Fails the test with check_message. */
void check_demand(bool passed);

/* Demands a check of every sample of every op that has a gradient, active operands in `form`. */
void check_samples(int dtype, enum check_form form, const char *aim, check_fn *check);

/* The case with operand 1 the same value as operand 0. False if they have not the same shape. */
bool check_alias(const struct check_case *c, struct check_case *same);

/* A function of x [check_x_size] with n_y results, for differences. */
typedef void check_function(const struct check_case *c, const double *x, const double *payload,
                            double *y);

/* dy [n_y] = derivative of f at x along `along`, by central differences of the fourth order; x is
 * moved by at most CHECK_REACH times `along`. */
void check_difference(check_function *f, const struct check_case *c, const double *x,
                      const double *payload, const double *along, int64_t n_y, double *dy);

/* Compares n gradients in x; at y_at of y, or -1. |got - want| <= tolerance (1 + |want|). */
bool check_close(const struct check_case *c, const char *what, int64_t y_at, const double *got,
                 const double *want, double tolerance);

/* The whole Jacobian, f64; inactive leaves have no gradient. */
bool check_jacobian(const struct check_case *c);

/* The same; under a sanitizer, which sees in one row what it would in all, a direction alone. */
bool check_rows(const struct check_case *c);

/* <u, J v> = <J^T u, v> for a random u and v, f64. */
bool check_direction(const struct check_case *c);

/* The pullback in f32 equals that in f64 at the same x: c has f32 leaves. */
bool check_narrow(const struct check_case *c);

/* Gradients are added to what operands' adjoints hold already: the operands are used a second time,
 * before and behind the op, and leaves have buffers of the user's with something in them. */
bool check_held(const struct check_case *c);

/* Operand i repeated along axis 0 by a view: its gradient is that of the repeated array, summed. */
bool check_stretched(const struct check_case *c, int i);

/* While the tape is observed the same gradients come out, bit for bit. */
bool check_observed(const struct check_case *c);

/* An op that says that it is constant records nothing. */
bool check_constant(const struct check_case *c);

/* An op on f64 operands of one rank in [-1, 1), too large for a whole Jacobian: direction and held
 * adjoints in f64, the pullback in f32. The test fails if one of them does. */
struct check_large {
    const struct kernel_op *op;
    int n_in, rank, n_attr;
    int64_t shape[4][3], attr[5];
};
void check_large(const struct check_large *large);

#endif
