/* ad_mpi_real.h: messages of ad_mpi.h for arrays of real numbers. Each is three ops on its line:
 * the numbers become a tensor (ad_tensor_of_reals), that is moved, and what has come becomes
 * numbers (ad_reals_of_tensor), which are variables. Other calls are made of the same three.
 *
 *     ad_real part = ad_real_dot(n, u, v), sum;
 *     ad_mpi_allreduce_reals(comm, tape, 1, &part, AD_MPI_SUM, &sum);
 *     ad_mpi_backward_real(comm, tape, rank == 0 ? &sum : NULL);
 *
 * The thread records on the tape. Errors: those of the three.
 */
#ifndef TAPESCOPE_AD_MPI_REAL_H
#define TAPESCOPE_AD_MPI_REAL_H

#include <tapescope/ad_mpi.h>
#include <tapescope/ad_real.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As ad_mpi_backward: the loss is *y, or NULL where this rank has none. */
AD_INLINE ad_status ad_mpi_backward_real_at(ad_mpi_comm comm, ad_tape tape, const ad_real *y,
                                            unsigned line)
{
    ad_tensor loss = {0, 0, 0, 0};
    if (y)
        loss = ad_tensor_of_reals_at(tape, 0, NULL, y, line);
    return ad_mpi_backward_at(comm, tape, loss, line);
}

/* x[n] to dest, and y[n] from source. */
AD_INLINE ad_status ad_mpi_send_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                         const ad_real *x, int dest, int tag, unsigned line)
{
    return ad_mpi_send_at(comm, ad_tensor_of_reals_at(tape, 1, &n, x, line), dest, tag, line);
}

AD_INLINE ad_status ad_mpi_recv_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n, ad_real *y,
                                         int source, int tag, unsigned line)
{
    return ad_reals_of_tensor_at(ad_mpi_recv_at(comm, tape, AD_F64, 1, &n, source, tag, line), n, y,
                                 line);
}

/* The same under way. ad_mpi_wait_reals gives y[n] of an irecv; ad_mpi_wait ends an isend. */
AD_INLINE ad_status ad_mpi_isend_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                          const ad_real *x, int dest, int tag,
                                          ad_mpi_request *request, unsigned line)
{
    return ad_mpi_isend_at(comm, ad_tensor_of_reals_at(tape, 1, &n, x, line), dest, tag, request,
                           line);
}

AD_INLINE ad_status ad_mpi_irecv_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n, int source,
                                          int tag, ad_mpi_request *request, unsigned line)
{
    return ad_mpi_irecv_at(comm, tape, AD_F64, 1, &n, source, tag, request, line);
}

AD_INLINE ad_status ad_mpi_wait_reals_at(ad_mpi_request *request, int64_t n, ad_real *y,
                                         unsigned line)
{
    return ad_reals_of_tensor_at(ad_mpi_wait_at(request, line), n, y, line);
}

/* y[n] = x[n] of root. */
AD_INLINE ad_status ad_mpi_bcast_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                          const ad_real *x, int root, ad_real *y, unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_bcast_at(comm, t, root, line), n, y, line);
}

/* y[n] = x[n] of all ranks, as one. */
AD_INLINE ad_status ad_mpi_allreduce_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                              const ad_real *x, ad_mpi_op op, ad_real *y,
                                              unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_allreduce_at(comm, t, op, line), n, y, line);
}

/* y[size n] = x[n] of all ranks, one behind the other. */
AD_INLINE ad_status ad_mpi_allgather_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                              const ad_real *x, ad_real *y, unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_allgather_at(comm, t, line), ad_mpi_size(comm) * n, y,
                                 line);
}

/* y[size n]: n of each rank, of x[size n], n for each rank. */
AD_INLINE ad_status ad_mpi_alltoall_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                             const ad_real *x, ad_real *y, unsigned line)
{
    const int64_t shape[2] = {ad_mpi_size(comm), n};
    const ad_tensor t = ad_tensor_of_reals_at(tape, 2, shape, x, line);
    return ad_reals_of_tensor_at(ad_mpi_alltoall_at(comm, t, line), shape[0] * n, y, line);
}

#define AD_MPI_REALS_LINE_ AD_LINE_HERE_
#define ad_mpi_backward_real(...) ad_mpi_backward_real_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_send_reals(...) ad_mpi_send_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_recv_reals(...) ad_mpi_recv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_isend_reals(...) ad_mpi_isend_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_irecv_reals(...) ad_mpi_irecv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_wait_reals(...) ad_mpi_wait_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_bcast_reals(...) ad_mpi_bcast_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_allreduce_reals(...) ad_mpi_allreduce_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_allgather_reals(...) ad_mpi_allgather_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_alltoall_reals(...) ad_mpi_alltoall_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)

#ifdef __cplusplus
}
#endif

#endif
