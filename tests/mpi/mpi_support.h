/* mpi_support.h: what programs over MPI share: their tape, their checks, and gradients against
 * differences over all ranks. mpirun starts them; they end with the number of failures.
 */
#ifndef MPI_SUPPORT_H
#define MPI_SUPPORT_H

#include <tapescope/ad_mpi.h>

extern ad_mpi_comm comm;
extern ad_tape tape;
extern int rank, size;
extern int failures;

/* Begins MPI, if main has not, comm over all ranks, and the tape. */
void mpi_begin(int *argc, char ***argv, const ad_mpi_options *options);
/* Frees what that began. Returns the failures of this rank since main began, at most 100. */
int mpi_end(void);

/* Says on standard error what did not hold, with the rank. */
#define MPI_CHECK(holds, ...)                                                                      \
    do {                                                                                           \
        if (!(holds))                                                                              \
            mpi_fails(__FILE__, __LINE__, #holds, __VA_ARGS__);                                    \
    } while (0)
__attribute__((format(printf, 4, 5))) void mpi_fails(const char *file, int line, const char *what,
                                                     const char *format, ...);

/* The tape has an error with this status and these words, which is cleared. */
void mpi_check_error(ad_status status, const char *words);
void mpi_check_fine(const char *what);

/* This rank's part of a function of all ranks' x[n] (f64 [n]); the zero handle: no part of it. */
typedef ad_tensor mpi_function(ad_tensor x, void *payload);

enum { MPI_MOST = 64 };

/* Sets g[n] to the gradient of the sum over the ranks of `function` by this rank's x[n]. */
void mpi_gradient(mpi_function *function, void *payload, int n, const double *x, double *g);

/* Compares that with central differences by each element of each rank, on more than two ranks in a
 * direction of each rank's. */
void mpi_check_gradient(const char *name, mpi_function *function, void *payload, int n,
                        const double *x, double tolerance);

/* A number in [-1, 1) from a seed. */
double mpi_random(uint64_t *seed);

#endif
