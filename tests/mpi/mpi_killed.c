/* mpi_killed.c: rank 1 is killed while all take profiles: mpirun ends the others, and the profiles
 * are readable.
 *
 *     mpi_killed between    between two sweeps
 *     mpi_killed sweep      in a sweep, before the adjoint that the others wait for is sent
 *     mpi_killed averages   in a sweep, before the gradient that the others average
 *     mpi_killed MS         so many milliseconds later, wherever it is then
 *
 * The file killed.at is made just before.
 */
#include "mpi_support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SOON = 2000 }; /* steps before the death that is not by time */

static int steps;

static void die(int sign)
{
    (void)sign;
    (void)close(open("killed.at", O_CREAT | O_WRONLY, 0600));
    (void)kill(getpid(), SIGKILL);
}

static ad_status die_in_sweep(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    (void)payload;
    if (steps == SOON)
        die(0);
    return AD_OK;
}

int main(int argc, char **argv)
{
    mpi_begin(&argc, &argv, NULL);
    const char *when = argc > 1 ? argv[1] : "between";
    const bool averages = strcmp(when, "averages") == 0, between = strcmp(when, "between") == 0,
               in_sweep = averages || strcmp(when, "sweep") == 0;
    MPI_CHECK(ad_profile_start("killed.prof") == AD_OK, "%s", ad_tape_message((ad_tape){0, 0}));
    for (;; steps++) {
        const double own = rank;
        ad_tape_reset(tape);
        const ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
        if (averages) /* the others wait for them when it dies */
            MPI_CHECK(ad_mpi_average_gradients(comm, &x, 1) == AD_OK, "%s", ad_tape_message(tape));
        const ad_tensor h = ad_exp(x), sum = ad_mpi_allreduce(comm, h, AD_MPI_SUM);
        const ad_tensor y = ad_scale(sum, 2);
        if (rank == 1 && in_sweep)
            MPI_CHECK(ad_on_adjoint(averages ? h : y, die_in_sweep, NULL) == AD_OK, "%s",
                      ad_tape_message(tape));
        MPI_CHECK(ad_mpi_backward(comm, tape, y) == AD_OK, "%s", ad_tape_message(tape));
        if (rank == 1 && between && steps == SOON)
            die(0);
        if (rank == 1 && !between && !in_sweep && steps == 0) {
            const long ms = strtol(when, NULL, 10);
            const struct itimerval at = {.it_value = {ms / 1000, ms % 1000 * 1000 + 1}};
            (void)signal(SIGALRM, die);
            (void)setitimer(ITIMER_REAL, &at, NULL);
        }
    }
}
