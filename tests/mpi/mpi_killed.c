/* mpi_killed.c: rank 1 is killed amid messages, while all take profiles: mpirun ends the others,
 * and the profiles are readable.
 */
#include "mpi_support.h"

#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char name[40];
    mpi_begin(&argc, &argv, NULL);
    (void)snprintf(name, sizeof name, "killed.%d.prof", rank);
    MPI_CHECK(ad_profile_start(name) == AD_OK, "%s", ad_tape_message((ad_tape){0, 0}));
    for (int k = 0;; k++) {
        const double own = rank;
        ad_tape_reset(tape);
        const ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
        const ad_tensor y = ad_mpi_allreduce(comm, ad_exp(x), AD_MPI_SUM);
        MPI_CHECK(ad_mpi_backward(comm, tape, y) == AD_OK, "%s", ad_tape_message(tape));
        if (rank == 1 && k == 2000)
            (void)raise(SIGKILL);
    }
}
