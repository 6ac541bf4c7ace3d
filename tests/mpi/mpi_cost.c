/* mpi_cost.c: what an op costs over MPI's call, and what the adjoint of an allreduce costs over the
 * call forward. `mpirun -n 2 build/release/bin/mpi_cost`; no test.
 */
#include "mpi_support.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t)
{
    qsort(t, ROUNDS, sizeof *t, compare);
    return t[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {1, 1000, 30000, 1000000};
    static double bare[ROUNDS], forward[ROUNDS], backward[ROUNDS];
    ad_tape big;
    mpi_begin(&argc, &argv, NULL);
    MPI_CHECK(ad_tape_create(&big, NULL) == AD_OK, "no tape");
    if (rank == 0)
        printf("%d ranks, allreduce of f64, median of %d: microseconds\n"
               "elements      MPI  forward  adjoint  adjoint/forward\n",
               size, ROUNDS);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        const int calls = n < 10000 ? 200 : n < 100000 ? 20 : 3;
        double *data = calloc((size_t)n, sizeof *data), *sum = calloc((size_t)n, sizeof *sum);
        ad_tensor seed = ad_scalar_f64(big, 0);
        for (int k = 0; k < ROUNDS; k++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            for (int i = 0; i < calls; i++)
                MPI_Allreduce(data, sum, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            bare[k] = (MPI_Wtime() - begun) / calls * 1e6;
            ad_tape_reset(big);
            ad_tensor x = ad_leaf(big, AD_F64, 1, &n, data), y = x;
            MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
            for (int i = 0; i < calls; i++)
                y = ad_mpi_allreduce(comm, y, AD_MPI_SUM);
            forward[k] = (MPI_Wtime() - begun) / calls * 1e6;
            seed = ad_sum(y);
            MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
            MPI_CHECK(ad_mpi_backward(comm, big, seed) == AD_OK, "%s", ad_tape_message(big));
            backward[k] = (MPI_Wtime() - begun) / calls * 1e6;
        }
        if (rank == 0)
            printf("%8lld %8.2f %8.2f %8.2f %8.2f\n", (long long)n, median(bare), median(forward),
                   median(backward), median(backward) / median(forward));
        free(data);
        free(sum);
    }
    ad_tape_destroy(big);
    return mpi_end();
}
