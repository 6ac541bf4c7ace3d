/* mpi.c: a program that sums over the ranks of MPI by the installed libtapescope_mpi. */
#include <stdio.h>
#include <tapescope/ad_mpi.h>

int main(int argc, char **argv)
{
    ad_mpi_comm comm;
    ad_tape tape;
    double g = 0;
    MPI_Init(&argc, &argv);
    ad_mpi_init(&comm, MPI_COMM_WORLD, NULL);
    ad_tape_create(&tape, NULL);
    const double own = ad_mpi_rank(comm) + 1;
    ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
    ad_tensor sum = ad_mpi_allreduce(comm, x, AD_MPI_SUM);
    if (ad_mpi_backward(comm, tape, ad_square(sum)) != AD_OK || ad_gradient(x, &g, 1) != AD_OK)
        puts(ad_tape_message(tape));
    const int size = ad_mpi_size(comm);
    ad_tape_destroy(tape);
    ad_mpi_free(&comm);
    MPI_Finalize();
    return g != (double)(size * (size + 1) * size);
}
