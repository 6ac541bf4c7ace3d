/* mpi_reals.c: arrays of real numbers among ranks, against differences.
 */
#include <tapescope/ad_mpi_real.h>

#include "mpi_support.h"

#include <math.h>

enum { N = 3 };

static int after(int by)
{
    return (rank + by + size) % size;
}

/* A number that all the calls have a part in. */
static ad_real through_all(const ad_real *x)
{
    ad_real y[N], z[N], all[8 * N], to[8 * N], sum[N], sent[N], part;
    ad_mpi_request s, r;
    ad_mpi_irecv_reals(comm, tape, N, after(-1), 4, &r);
    ad_mpi_isend_reals(comm, tape, N, x, after(1), 4, &s);
    for (int i = 0; i < N; i++)
        ad_set(&y[i], ad_real_sin(x[i]));
    ad_mpi_wait_reals(&r, N, z);
    ad_mpi_wait(&s);
    if (rank % 2 == 0 || size == 1)
        ad_mpi_send_reals(comm, tape, N, y, after(1), 5);
    ad_mpi_recv_reals(comm, tape, N, sent, after(-1), 5);
    if (rank % 2 == 1 && size > 1)
        ad_mpi_send_reals(comm, tape, N, y, after(1), 5);
    for (int i = 0; i < N; i++)
        ad_set(&z[i], ad_real_mul(z[i], ad_real_add(sent[i], 2)));
    ad_mpi_allreduce_reals(comm, tape, N, z, AD_MPI_PROD, sum);
    ad_mpi_bcast_reals(comm, tape, N, y, size - 1, y);
    ad_mpi_allgather_reals(comm, tape, N, y, all);
    for (int i = 0; i < size * N; i++)
        ad_set(&to[i], ad_real_mul(all[i], 1 + 0.125 * i));
    ad_mpi_alltoall_reals(comm, tape, N, to, all);
    ad_set(&part, 0);
    for (int i = 0; i < N; i++)
        ad_set(&part, ad_real_add(part, ad_real_mul(sum[i], ad_real_exp(y[i]))));
    for (int i = 0; i < size * N; i++)
        ad_set(&part, ad_real_add(part, ad_real_mul(all[i], all[i])));
    ad_set(&part, ad_real_mul(part, 0.5 + rank));
    return part;
}

static double value(const double *at)
{
    ad_real x[N];
    double sum;
    ad_tape_reset(tape);
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, N, at, x);
    const double own = through_all(x).value;
    ad_tape_record_end(tape);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

int main(int argc, char **argv)
{
    const double step = 1e-5;
    double at[N], g[N];
    ad_real x[N];
    mpi_begin(&argc, &argv, NULL);
    uint64_t seed = 3 + (uint64_t)rank;
    for (int i = 0; i < N; i++)
        at[i] = mpi_random(&seed);
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, N, at, x);
    const ad_real loss = through_all(x);
    MPI_CHECK(ad_mpi_backward_real(comm, tape, &loss) == AD_OK, "%s", ad_tape_message(tape));
    MPI_CHECK(ad_real_gradients(tape, N, x, g) == AD_OK, "%s", ad_tape_message(tape));
    /* Without a loss it sweeps for the others: the gradients grow by those of all but rank 0. */
    MPI_CHECK(ad_mpi_backward_real(comm, tape, rank == 0 ? NULL : &loss) == AD_OK, "%s",
              ad_tape_message(tape));
    ad_tape_record_end(tape);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < N; i++) {
            const double was = at[i];
            at[i] = was + (r == rank ? step : 0);
            const double above = value(at);
            at[i] = was - (r == rank ? step : 0);
            const double below = value(at), measured = (above - below) / (2 * step);
            at[i] = was;
            if (r == rank)
                MPI_CHECK(fabs(g[i] - measured) <= 1e-6 * (1 + fabs(measured)),
                          "element %d: swept %.10g, measured %.10g", i, g[i], measured);
        }
    ad_tape_reset(tape);
    return mpi_end();
}
