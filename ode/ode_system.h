/* ode_system.h: the right-hand side f(t, y, x) of an equation, evaluated and swept on a tape that
 * exists during a call.
 *
 * Invariant: once a function has returned ODE_FAILED, status and the call's message say why.
 */
#ifndef ODE_SYSTEM_H
#define ODE_SYSTEM_H

#include <tapescope/ad_ode.h>

/* As CVODES wants it of the user's functions. */
enum ode_outcome { ODE_FAILED = -1, ODE_DONE = 0, ODE_NOT_FINITE = 1 };

struct ode_system {
    ad_ode_function *f;
    void *payload;
    char *message; /* [AD_CUSTOM_MESSAGE] */
    ad_tape tape;
    ad_mark mark;
    ad_tensor zeros;           /* a leaf of y's shape: what it is added to depends on a leaf */
    double *zero, *seed, *row; /* [size] */
    int64_t size, shape[AD_MAX_RANK];
    int rank, n;
    ad_tensor x[AD_ODE_MOST_OPERANDS];    /* constants */
    ad_tensor leaf[AD_ODE_MOST_OPERANDS]; /* the same as leaves; zero handles: no derivative */
    const ad_custom_array *array;         /* [n] */
    int64_t n_derivatives;                /* elements of the leaves */
    int64_t evaluations, jacobians;
    bool clean;      /* the thread had no error of its own before */
    bool not_finite; /* f or a derivative once was; then: where, at last */
    double not_finite_at;
    ad_status status;
};

/* x[n] and, where derivatives by them are wanted, their adjoints, else NULL. AD_OK, or why not;
 * ode_system_end is due in either case. */
ad_status ode_system_begin(struct ode_system *s, ad_tape home, const ad_custom_array *y, int n,
                           const ad_custom_array *x, const ad_custom_array *adjoint);
void ode_system_end(struct ode_system *s);

/* f [size]. */
enum ode_outcome ode_system_value(struct ode_system *s, double t, const double *y, double *f);
/* (df/dy)^T l [size]. */
enum ode_outcome ode_system_pull(struct ode_system *s, double t, const double *y, const double *l,
                                 double *result);
/* (df/dx)^T l [n_derivatives], of the leaves one behind the other. */
enum ode_outcome ode_system_pull_x(struct ode_system *s, double t, const double *y, const double *l,
                                   double *result);
/* Calls put with each row of df/dy [size,size]. */
typedef void ode_put_row(void *matrix, int64_t row, int64_t size, const double *numbers);
enum ode_outcome ode_system_jacobian(struct ode_system *s, double t, const double *y,
                                     ode_put_row *put, void *matrix);

#endif
