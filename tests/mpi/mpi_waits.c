/* mpi_waits.c: messages whose partners come late by a sleep of known length, forward and backward:
 * test_waiting.sh looks for who has waited in what. On 3 ranks.
 */
#include "mpi_support.h"

#include <stdlib.h>
#include <tapescope/ad_profile.h>
#include <time.h>

enum { LATE_MS = 200 };

static void late(int who)
{
    const struct timespec time = {0, LATE_MS * 1000000L};
    if (rank == who)
        (void)nanosleep(&time, NULL);
}

static ad_status late_in_sweep(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    (void)payload;
    late(2);
    return AD_OK;
}

int main(int argc, char **argv)
{
    mpi_begin(&argc, &argv, NULL);
    const char *profile = getenv("MPI_WAITS_PROFILE"); /* begun behind ad_mpi_init */
    if (profile)
        MPI_CHECK(ad_profile_start(profile) == AD_OK, "%s", profile);
    const int64_t shape[1] = {4};
    const double own[4] = {1, 2, 3, rank};
    ad_tensor x = ad_leaf_copy(tape, AD_F64, 1, shape, own);
    (void)ad_mpi_barrier(comm, tape);
    late(0); /* the root of a bcast */
    x = ad_mpi_bcast(comm, x, 0);
    (void)ad_mpi_barrier(comm, tape);
    late(1); /* the last of an allreduce, which rank 2 is in a sweep */
    const ad_tensor sum = ad_mpi_allreduce(comm, x, AD_MPI_SUM), y = ad_scale(sum, 2);
    (void)ad_on_adjoint(y, late_in_sweep, NULL);
    (void)ad_mpi_barrier(comm, tape);
    ad_tensor got = y;
    late(0); /* a sender; and one of a message under way */
    if (rank == 0)
        (void)ad_mpi_send(comm, y, 1, 7);
    if (rank == 1) {
        ad_mpi_request request;
        (void)ad_mpi_irecv(comm, tape, AD_F64, 1, shape, MPI_ANY_SOURCE, 8, &request);
        got = ad_mpi_recv(comm, tape, AD_F64, 1, shape, 0, 7);
        got = ad_add(got, ad_mpi_wait(&request));
    }
    late(2);
    if (rank == 2)
        (void)ad_mpi_send(comm, y, 1, 8);
    MPI_CHECK(ad_mpi_backward(comm, tape, ad_sum(got)) == AD_OK, "%s", ad_tape_message(tape));
    return mpi_end();
}
