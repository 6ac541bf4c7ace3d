/* plate.h: heat in a plate of which each rank has a strip of rows, and the derivative of how it
 * differs from what was observed late by what it was at the beginning.
 *
 * u_t = u_xx + u_yy by Euler's method, 0 all around. Each step two messages go each way to the
 * neighbours: the last row down, the first row up.
 */
#ifndef PLATE_H
#define PLATE_H

#include <tapescope/ad_mpi.h>

struct plate {
    ad_mpi_comm comm;
    ad_tape tape;
    int64_t rows, columns; /* of the whole plate */
    int64_t first, own;    /* this rank's first row, and how many it has */
    int steps;
    double ratio;           /* of a step to the square of the distance of points */
    double weight;          /* of the initial state in the cost */
    const double *observed; /* [own, columns] */
};

/* Divides rows of p among the ranks of comm: sets comm, first and own. */
void plate_divide(struct plate *p, ad_mpi_comm comm);

/* The first row of a rank of p's comm; of the rank behind the last: rows. */
int64_t plate_first(const struct plate *p, int rank);

/* The temperatures after all steps from u [own, columns] on. */
ad_tensor plate_after(const struct plate *p, ad_tensor u);

/* sum (u(T) - observed)^2 + weight sum u^2 of this strip from u[own * columns] on, into *cost, and
 * the gradient of the sum over all strips by this rank's u. All ranks call it. Returns false where
 * the tape has an error. */
bool plate_gradient(const struct plate *p, const double *u, double *cost, double *gradient);

#endif
