/* ad_mpi_real.h: messages of ad_mpi.h for arrays of real numbers. Each is three ops on its line:
 * the numbers become a tensor (ad_tensor_of_reals), that is moved, and what has come becomes
 * numbers (ad_reals_of_tensor), which are variables. x and y may be the same array where they are
 * of one length. An array of no numbers may be NULL.
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

/* x[n] to dest, and y[m] from source, at once. */
AD_INLINE ad_status ad_mpi_sendrecv_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                             const ad_real *x, int dest, int send_tag, int64_t m,
                                             ad_real *y, int source, int recv_tag, unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(
        ad_mpi_sendrecv_at(comm, t, dest, send_tag, AD_F64, 1, &m, source, recv_tag, line), m, y,
        line);
}

/* Messages under way. ad_mpi_wait_reals gives y[n] of an irecv; ad_mpi_wait ends an isend. */
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

/* Either for each of request[count], in order: of an irecv y[i][n[i]]. y[i] of an isend is NULL,
 * and y where all are isends. */
AD_INLINE ad_status ad_mpi_waitall_reals_at(ad_tape tape, int count, ad_mpi_request *request,
                                            const int64_t *n, ad_real *const *y, unsigned line)
{
    for (int i = 0; i < count; i++) {
        const ad_tensor t = ad_mpi_wait_at(&request[i], line);
        if (y && y[i])
            (void)ad_reals_of_tensor_at(t, n[i], y[i], line);
    }
    return ad_tape_status(tape);
}

/* Below, what root alone gives or is given is not looked at on the other ranks: it may be NULL. */

/* y[n] = x[n] of root, on every rank. */
AD_INLINE ad_status ad_mpi_bcast_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                          const ad_real *x, int root, ad_real *y, unsigned line)
{
    const ad_tensor t = ad_mpi_rank(comm) == root
                            ? ad_tensor_of_reals_at(tape, 1, &n, x, line)
                            : ad_broadcast_to_at(ad_scalar_f64_at(tape, 0, line), &n, 1, line);
    return ad_reals_of_tensor_at(ad_mpi_bcast_at(comm, t, root, line), n, y, line);
}

/* n of each rank, on all of them. */
AD_INLINE int64_t ad_mpi_reals_of_each_(ad_mpi_comm comm, int64_t n)
{
    return comm ? ad_mpi_size(comm) * n : 0;
}

/* rows[r] of each rank r: of all ranks, and of this one. 0 where the call is refused. */
AD_INLINE int64_t ad_mpi_reals_of_all_(ad_mpi_comm comm, const int64_t *rows)
{
    int64_t n = 0;
    for (int r = 0; rows && r < ad_mpi_size(comm); r++)
        n += rows[r];
    return n;
}

AD_INLINE int64_t ad_mpi_reals_of_own_(ad_mpi_comm comm, const int64_t *rows)
{
    return comm && rows ? rows[ad_mpi_rank(comm)] : 0;
}

/* y[n] = the rank's part of x[size n] of root. */
AD_INLINE ad_status ad_mpi_scatter_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                            const ad_real *x, int root, ad_real *y, unsigned line)
{
    const int64_t shape[2] = {ad_mpi_size(comm), n};
    ad_tensor t = {0, 0, 0, 0};
    if (ad_mpi_rank(comm) == root)
        t = ad_tensor_of_reals_at(tape, 2, shape, x, line);
    return ad_reals_of_tensor_at(ad_mpi_scatter_at(comm, tape, t, AD_F64, 1, &n, root, line), n, y,
                                 line);
}

/* y[rows[rank]] = the rank's part of x[sum of rows] of root. */
AD_INLINE ad_status ad_mpi_scatterv_reals_at(ad_mpi_comm comm, ad_tape tape, const int64_t *rows,
                                             const ad_real *x, int root, ad_real *y, unsigned line)
{
    const int64_t all = ad_mpi_reals_of_all_(comm, rows);
    ad_tensor t = {0, 0, 0, 0};
    if (ad_mpi_rank(comm) == root)
        t = ad_tensor_of_reals_at(tape, 1, &all, x, line);
    t = ad_mpi_scatterv_at(comm, tape, t, AD_F64, 0, NULL, rows, root, line);
    return ad_reals_of_tensor_at(t, ad_mpi_reals_of_own_(comm, rows), y, line);
}

/* On root y[size n] = x[n] of all ranks, one behind the other. */
AD_INLINE ad_status ad_mpi_gather_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                           const ad_real *x, int root, ad_real *y, unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_gather_at(comm, t, root, line),
                                 ad_mpi_rank(comm) == root ? ad_mpi_reals_of_each_(comm, n) : 0, y,
                                 line);
}

/* On root y[sum of rows] = x[rows[rank]] of all ranks, one behind the other. */
AD_INLINE ad_status ad_mpi_gatherv_reals_at(ad_mpi_comm comm, ad_tape tape, const int64_t *rows,
                                            const ad_real *x, int root, ad_real *y, unsigned line)
{
    const int64_t own = ad_mpi_reals_of_own_(comm, rows);
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &own, x, line);
    return ad_reals_of_tensor_at(ad_mpi_gatherv_at(comm, t, rows, root, line),
                                 ad_mpi_rank(comm) == root ? ad_mpi_reals_of_all_(comm, rows) : 0,
                                 y, line);
}

/* The same on every rank: y[size n], y[sum of rows]. */
AD_INLINE ad_status ad_mpi_allgather_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                              const ad_real *x, ad_real *y, unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_allgather_at(comm, t, line), ad_mpi_reals_of_each_(comm, n),
                                 y, line);
}

AD_INLINE ad_status ad_mpi_allgatherv_reals_at(ad_mpi_comm comm, ad_tape tape, const int64_t *rows,
                                               const ad_real *x, ad_real *y, unsigned line)
{
    const int64_t own = ad_mpi_reals_of_own_(comm, rows);
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &own, x, line);
    return ad_reals_of_tensor_at(ad_mpi_allgatherv_at(comm, t, rows, line),
                                 ad_mpi_reals_of_all_(comm, rows), y, line);
}

/* On root y[n] = x[n] of all ranks, as one. */
AD_INLINE ad_status ad_mpi_reduce_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                           const ad_real *x, ad_mpi_op op, int root, ad_real *y,
                                           unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_reduce_at(comm, t, op, root, line),
                                 ad_mpi_rank(comm) == root ? n : 0, y, line);
}

/* The same on every rank. */
AD_INLINE ad_status ad_mpi_allreduce_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                              const ad_real *x, ad_mpi_op op, ad_real *y,
                                              unsigned line)
{
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &n, x, line);
    return ad_reals_of_tensor_at(ad_mpi_allreduce_at(comm, t, op, line), n, y, line);
}

/* y[n] = the rank's part of x[size n] of all ranks, as one. */
AD_INLINE ad_status ad_mpi_reduce_scatter_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                                   const ad_real *x, ad_mpi_op op, ad_real *y,
                                                   unsigned line)
{
    const int64_t shape[2] = {ad_mpi_reals_of_each_(comm, 1), n};
    const ad_tensor t = ad_tensor_of_reals_at(tape, 2, shape, x, line);
    return ad_reals_of_tensor_at(ad_mpi_reduce_scatter_at(comm, t, op, line), n, y, line);
}

/* y[size n]: n of each rank, of x[size n], n for each rank. */
AD_INLINE ad_status ad_mpi_alltoall_reals_at(ad_mpi_comm comm, ad_tape tape, int64_t n,
                                             const ad_real *x, ad_real *y, unsigned line)
{
    const int64_t shape[2] = {ad_mpi_reals_of_each_(comm, 1), n};
    const ad_tensor t = ad_tensor_of_reals_at(tape, 2, shape, x, line);
    return ad_reals_of_tensor_at(ad_mpi_alltoall_at(comm, t, line), ad_mpi_reals_of_each_(comm, n),
                                 y, line);
}

/* y[sum of receive]: receive[r] of each rank r, of x[sum of send], send[r] for each. */
AD_INLINE ad_status ad_mpi_alltoallv_reals_at(ad_mpi_comm comm, ad_tape tape, const int64_t *send,
                                              const ad_real *x, const int64_t *receive, ad_real *y,
                                              unsigned line)
{
    const int64_t all = ad_mpi_reals_of_all_(comm, send);
    const ad_tensor t = ad_tensor_of_reals_at(tape, 1, &all, x, line);
    return ad_reals_of_tensor_at(ad_mpi_alltoallv_at(comm, t, send, receive, line),
                                 ad_mpi_reals_of_all_(comm, receive), y, line);
}

#define AD_MPI_REALS_LINE_ AD_LINE_HERE_
#define ad_mpi_backward_real(...) ad_mpi_backward_real_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_send_reals(...) ad_mpi_send_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_recv_reals(...) ad_mpi_recv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_sendrecv_reals(...) ad_mpi_sendrecv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_isend_reals(...) ad_mpi_isend_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_irecv_reals(...) ad_mpi_irecv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_wait_reals(...) ad_mpi_wait_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_waitall_reals(...) ad_mpi_waitall_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_bcast_reals(...) ad_mpi_bcast_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_scatter_reals(...) ad_mpi_scatter_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_scatterv_reals(...) ad_mpi_scatterv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_gather_reals(...) ad_mpi_gather_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_gatherv_reals(...) ad_mpi_gatherv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_allgather_reals(...) ad_mpi_allgather_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_allgatherv_reals(...) ad_mpi_allgatherv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_reduce_reals(...) ad_mpi_reduce_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_allreduce_reals(...) ad_mpi_allreduce_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_reduce_scatter_reals(...)                                                           \
    ad_mpi_reduce_scatter_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_alltoall_reals(...) ad_mpi_alltoall_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)
#define ad_mpi_alltoallv_reals(...) ad_mpi_alltoallv_reals_at(__VA_ARGS__, AD_MPI_REALS_LINE_)

#ifdef __cplusplus
}
#endif

#endif
