/* ad_mpi.h: messages between the ranks of an MPI program as ops: a sweep sends adjoints the other
 * way. A library of its own: -ltapescope_mpi, which is built where MPI was found.
 *
 *     ad_mpi_comm comm;
 *     MPI_Init(&argc, &argv);
 *     ad_mpi_init(&comm, MPI_COMM_WORLD, NULL);
 *     ad_tensor error = ad_sum(ad_square(ad_sub(model(x[rank], w), y[rank])));
 *     ad_tensor loss = ad_mpi_allreduce(comm, error, AD_MPI_SUM);      // of all ranks
 *     ad_mpi_backward(comm, tape, rank == 0 ? loss : (ad_tensor){0});  // on all ranks
 *
 * What is differentiated is the sum over the ranks of what each gives to ad_mpi_backward: here rank
 * 0 alone gives something. docs/how-to/mpi.md has more.
 */
#ifndef TAPESCOPE_AD_MPI_H
#define TAPESCOPE_AD_MPI_H

#include <mpi.h>
#include <tapescope/ad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- communicators ---- */

/* Duplicates of a communicator of the user's, and what its calls share. */
typedef struct ad_mpi_comm_of *ad_mpi_comm;

typedef struct ad_mpi_options {
    /* Each call first compares with its peers what they are about to do, and an error that names
     * both lines takes the place of a hang or of wrong numbers; docs/how-to/mpi.md says what is
     * found. All ranks give the same. The environment's TAPESCOPE_MPI_CHECK=1 does it too. */
    bool check;
    /* A call that has waited so long fails, with the line that every rank which waits has come to:
     * calls are checked then, too. 0: the environment's TAPESCOPE_MPI_SECONDS, else it waits for
     * ever. */
    double seconds;
    /* Gradients are averaged in buckets of at most so many bytes, or of one tensor; 0: 25 MiB, at
     * most 1 GiB. All ranks give the same. */
    size_t bucket_bytes;
} ad_mpi_options;

/* Duplicates `from` into *comm: all ranks of `from` call it, after MPI_Init. Errors of MPI become
 * those of tapes from then on. options: NULL for the defaults. Errors, in the thread's error:
 * AD_ERROR_ARGUMENT, AD_ERROR_STATE (MPI is not initialized; what MPI says), AD_ERROR_MEMORY; *comm
 * is NULL then. */
AD_INLINE ad_status ad_mpi_init(ad_mpi_comm *comm, MPI_Comm from,
                                const ad_mpi_options *options AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_init, (ad_mpi_comm * comm, MPI_Comm from, const ad_mpi_options *options),
         (comm, from, options))

/* Frees it and sets *comm to NULL: all ranks call it, before MPI_Finalize, and once no sweep is to
 * come over what was recorded with it. */
AD_INLINE ad_status ad_mpi_free(ad_mpi_comm *comm AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_free, (ad_mpi_comm * comm), (comm))

/* The rank in it, and how many there are; -1 for NULL. */
AD_API int ad_mpi_rank(ad_mpi_comm comm);
AD_API int ad_mpi_size(ad_mpi_comm comm);

/* ---- sweeps ---- */

/* Sweeps on all ranks together, as ad_backward does on one: all ranks of comm call it, each with a
 * loss of size 1 on its tape, or with the zero handle if it has none. Gradients are those of the
 * sum of all losses, by the leaves of each rank. Messages of other communicators on the tape are
 * swept as well; their ranks must all be ranks of comm. It records an op "mpi_backward", some 300
 * bytes. Errors: those of ad_backward, AD_ERROR_STATE where another rank has failed before its
 * sweep, or has begun another one. (It consists of the following: not for direct use.) */
AD_API ad_tensor ad_mpi_backward_begin_site(ad_mpi_comm comm, ad_tape tape, ad_tensor loss,
                                            unsigned line);
AD_API ad_status ad_mpi_backward_end_(ad_mpi_comm comm, ad_tape tape, ad_status status);

AD_INLINE ad_status ad_mpi_backward_at(ad_mpi_comm comm, ad_tape tape, ad_tensor loss,
                                       unsigned line)
{
    const ad_tensor from = ad_mpi_backward_begin_site(comm, tape, loss, line);
    const ad_status status = ad_backward_site(from, line);
    const ad_status result = ad_mpi_backward_end_(comm, tape, status);
    AD_NO_TAIL_CALL;
    return result;
}

AD_INLINE ad_status ad_mpi_backward(ad_mpi_comm comm, ad_tape tape,
                                    ad_tensor loss AD_LINE_PARAMETER_)
{
    return ad_mpi_backward_at(comm, tape, loss, AD_LINE_GIVEN_);
}

/* ---- averaged gradients ---- */

/* From here on each sweep by ad_mpi_backward leaves in the gradients of tensors[n], leaves of one
 * tape, their average over the ranks of comm: the sum divided by their number. All ranks call it,
 * with tensors of the same shapes and dtypes, before any use of them; it is recorded, so a rewind
 * to before it undoes it. A rank that does not use a tensor gives zeros.
 *
 * The gradients of the last tensors are sent while those of the first are swept: list them in the
 * order of their uses. Sums are balanced trees over the ranks, the same bits on every rank and in
 * each run (docs/how-to/mpi.md). What is averaged is the gradient as ad_gradient reads it, with
 * what earlier sweeps have left there. Errors: those of the ops below, AD_ERROR_ARGUMENT (a tensor
 * that is no leaf); in the sweep AD_ERROR_STATE (a tensor is used before the call). */
AD_INLINE ad_status ad_mpi_average_gradients(ad_mpi_comm comm, const ad_tensor *tensors,
                                             int n AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_average_gradients, (ad_mpi_comm comm, const ad_tensor *tensors, int n),
         (comm, tensors, n))

/* ---- messages from rank to rank ---- */

/* A shape is that of the result: rank and shape as for ad_leaf. Any dtype; integers have no
 * gradient. A source may be MPI_ANY_SOURCE, a tag MPI_ANY_TAG: the adjoint goes to whoever has sent
 * it. A dest or source of MPI_PROC_NULL: nothing is sent; what is received is zero. At most
 * 2^31 - 1 elements in a message.
 *
 * Errors of all ops below, which leave the tape as it was: AD_ERROR_ARGUMENT, AD_ERROR_SHAPE,
 * AD_ERROR_DTYPE, AD_ERROR_LIMIT, AD_ERROR_HANDLE, AD_ERROR_STATE (what MPI says; within a
 * checkpoint; on a fork), AD_ERROR_MEMORY. A sweep that is not ad_mpi_backward's fails at them
 * (AD_ERROR_STATE). */

/* MPI_Send. The adjoint of x comes from dest. */
AD_INLINE ad_status ad_mpi_send(ad_mpi_comm comm, ad_tensor x, int dest,
                                int tag AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_send, (ad_mpi_comm comm, ad_tensor x, int dest, int tag),
         (comm, x, dest, tag))

/* MPI_Recv of a message of this dtype and shape. */
AD_INLINE ad_tensor ad_mpi_recv(ad_mpi_comm comm, ad_tape tape, ad_dtype dtype, int rank,
                                const int64_t *shape, int source, int tag AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_recv,
         (ad_mpi_comm comm, ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
          int source, int tag),
         (comm, tape, dtype, rank, shape, source, tag))

/* MPI_Sendrecv: sends x to dest, and is what comes from source, of this dtype and shape. */
AD_INLINE ad_tensor ad_mpi_sendrecv(ad_mpi_comm comm, ad_tensor x, int dest, int send_tag,
                                    ad_dtype dtype, int rank, const int64_t *shape, int source,
                                    int recv_tag AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_sendrecv,
         (ad_mpi_comm comm, ad_tensor x, int dest, int send_tag, ad_dtype dtype, int rank,
          const int64_t *shape, int source, int recv_tag),
         (comm, x, dest, send_tag, dtype, rank, shape, source, recv_tag))

/* A message under way; {NULL}: none. Each is waited for once, before the tape's next reset. */
typedef struct ad_mpi_request {
    struct mpi_request *of;
} ad_mpi_request;

/* MPI_Isend of a copy of x, and MPI_Irecv. In a sweep the adjoint's message begins where the wait
 * stands, and is waited for where the call itself stands: what was recorded in between overlaps
 * with it both times. *request is {NULL} after an error. */
AD_INLINE ad_status ad_mpi_isend(ad_mpi_comm comm, ad_tensor x, int dest, int tag,
                                 ad_mpi_request *request AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_isend,
         (ad_mpi_comm comm, ad_tensor x, int dest, int tag, ad_mpi_request *request),
         (comm, x, dest, tag, request))
/* MPI_Irecv, the other side of ad_mpi_isend. */
AD_INLINE ad_status ad_mpi_irecv(ad_mpi_comm comm, ad_tape tape, ad_dtype dtype, int rank,
                                 const int64_t *shape, int source, int tag,
                                 ad_mpi_request *request AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_irecv,
         (ad_mpi_comm comm, ad_tape tape, ad_dtype dtype, int rank, const int64_t *shape,
          int source, int tag, ad_mpi_request *request),
         (comm, tape, dtype, rank, shape, source, tag, request))

/* MPI_Wait, and *request becomes {NULL}: what an irecv has received; of an isend a tensor f64 []
 * that nobody needs. */
AD_INLINE ad_tensor ad_mpi_wait(ad_mpi_request *request AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_wait, (ad_mpi_request * request), (request))

/* The same for each of request[n], in order; value[n], or NULL, receives the results. */
AD_INLINE ad_status ad_mpi_waitall_at(ad_tape tape, int n, ad_mpi_request *request,
                                      ad_tensor *value, unsigned line)
{
    for (int i = 0; i < n; i++) {
        const ad_tensor y = ad_mpi_wait_at(&request[i], line);
        if (value)
            value[i] = y;
    }
    return ad_tape_status(tape);
}

AD_INLINE ad_status ad_mpi_waitall(ad_tape tape, int n, ad_mpi_request *request,
                                   ad_tensor *value AD_LINE_PARAMETER_)
{
    return ad_mpi_waitall_at(tape, n, request, value, AD_LINE_GIVEN_);
}

/* ---- messages among all ranks ---- */

/* All ranks of comm call the same ones in the same order. `rows` [size of comm] is the same on
 * every rank: how long axis 0 is that each has. */

/* MPI_Bcast: x of rank root, on every rank. On the others x says shape and dtype alone: it has no
 * gradient from here. */
AD_INLINE ad_tensor ad_mpi_bcast(ad_mpi_comm comm, ad_tensor x, int root AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_bcast, (ad_mpi_comm comm, ad_tensor x, int root), (comm, x, root))

/* MPI_Scatter: rank r has x[r], of this dtype and shape, of root's x [size, shape]; on the others x
 * is not looked at. */
AD_INLINE ad_tensor ad_mpi_scatter(ad_mpi_comm comm, ad_tape tape, ad_tensor x, ad_dtype dtype,
                                   int rank, const int64_t *shape, int root AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_scatter,
         (ad_mpi_comm comm, ad_tape tape, ad_tensor x, ad_dtype dtype, int rank,
          const int64_t *shape, int root),
         (comm, tape, x, dtype, rank, shape, root))
/* MPI_Scatterv: rank r has the next rows[r] rows of root's x [sum of rows, shape]: shape is that of
 * a row, the result is [rows[r], shape]. */
AD_INLINE ad_tensor ad_mpi_scatterv(ad_mpi_comm comm, ad_tape tape, ad_tensor x, ad_dtype dtype,
                                    int rank, const int64_t *shape, const int64_t *rows,
                                    int root AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_scatterv,
         (ad_mpi_comm comm, ad_tape tape, ad_tensor x, ad_dtype dtype, int rank,
          const int64_t *shape, const int64_t *rows, int root),
         (comm, tape, x, dtype, rank, shape, rows, root))

/* MPI_Gather: [size, shape of x] on root, [0, shape of x] on the others. MPI_Gatherv: x [rows[r],
 * ...] of each rank r, one behind the other, [sum of rows, ...] on root, [0, ...] on the others.
 * MPI_Allgather, MPI_Allgatherv: the same on every rank. */
AD_INLINE ad_tensor ad_mpi_gather(ad_mpi_comm comm, ad_tensor x, int root AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_gather, (ad_mpi_comm comm, ad_tensor x, int root), (comm, x, root))
/* MPI_Gatherv, as above. */
AD_INLINE ad_tensor ad_mpi_gatherv(ad_mpi_comm comm, ad_tensor x, const int64_t *rows,
                                   int root AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_gatherv, (ad_mpi_comm comm, ad_tensor x, const int64_t *rows, int root),
         (comm, x, rows, root))
/* MPI_Allgather, as above. */
AD_INLINE ad_tensor ad_mpi_allgather(ad_mpi_comm comm, ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_allgather, (ad_mpi_comm comm, ad_tensor x), (comm, x))
/* MPI_Allgatherv, as above. */
AD_INLINE ad_tensor ad_mpi_allgatherv(ad_mpi_comm comm, ad_tensor x,
                                      const int64_t *rows AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_allgatherv, (ad_mpi_comm comm, ad_tensor x, const int64_t *rows),
         (comm, x, rows))

/* How elements of the ranks become one. The derivative of a product is the product of the others,
 * multiplied up, never divided: right with zeros too. That of an extreme is divided among the ranks
 * that have it, as ad_max does among elements; NaN wins. The order of a sum is MPI's. */
typedef enum ad_mpi_op { AD_MPI_SUM, AD_MPI_PROD, AD_MPI_MIN, AD_MPI_MAX } ad_mpi_op;

/* MPI_Reduce: on root, of the shape of x; [0] on the others. MPI_Allreduce: on every rank.
 * MPI_Reduce_scatter_block: of x [size, ...] rank r has element r of the result [...]. */
AD_INLINE ad_tensor ad_mpi_reduce(ad_mpi_comm comm, ad_tensor x, ad_mpi_op op,
                                  int root AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_reduce, (ad_mpi_comm comm, ad_tensor x, ad_mpi_op op, int root),
         (comm, x, op, root))
/* MPI_Allreduce, as above. */
AD_INLINE ad_tensor ad_mpi_allreduce(ad_mpi_comm comm, ad_tensor x,
                                     ad_mpi_op op AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_allreduce, (ad_mpi_comm comm, ad_tensor x, ad_mpi_op op), (comm, x, op))
/* MPI_Reduce_scatter_block, as above. */
AD_INLINE ad_tensor ad_mpi_reduce_scatter(ad_mpi_comm comm, ad_tensor x,
                                          ad_mpi_op op AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_reduce_scatter, (ad_mpi_comm comm, ad_tensor x, ad_mpi_op op),
         (comm, x, op))

/* MPI_Alltoall: x [size, ...], whose element s goes to rank s: element s of the result came from
 * rank s. MPI_Alltoallv: x [sum of send, ...], of which send[s] rows go to rank s; the result
 * [sum of receive, ...], of which receive[s] rows came from it. send, receive [size]. */
AD_INLINE ad_tensor ad_mpi_alltoall(ad_mpi_comm comm, ad_tensor x AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_alltoall, (ad_mpi_comm comm, ad_tensor x), (comm, x))
/* MPI_Alltoallv, as above. */
AD_INLINE ad_tensor ad_mpi_alltoallv(ad_mpi_comm comm, ad_tensor x, const int64_t *send,
                                     const int64_t *receive AD_LINE_PARAMETER_);
AD_SITED(ad_tensor, ad_mpi_alltoallv,
         (ad_mpi_comm comm, ad_tensor x, const int64_t *send, const int64_t *receive),
         (comm, x, send, receive))

/* MPI_Barrier, forward and in sweeps. */
AD_INLINE ad_status ad_mpi_barrier(ad_mpi_comm comm, ad_tape tape AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_mpi_barrier, (ad_mpi_comm comm, ad_tape tape), (comm, tape))

#if AD_LINE_MACROS
#define ad_mpi_init(...) ad_mpi_init_at(__VA_ARGS__, __LINE__)
#define ad_mpi_free(...) ad_mpi_free_at(__VA_ARGS__, __LINE__)
#define ad_mpi_backward(...) ad_mpi_backward_at(__VA_ARGS__, __LINE__)
#define ad_mpi_average_gradients(...) ad_mpi_average_gradients_at(__VA_ARGS__, __LINE__)
#define ad_mpi_send(...) ad_mpi_send_at(__VA_ARGS__, __LINE__)
#define ad_mpi_recv(...) ad_mpi_recv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_sendrecv(...) ad_mpi_sendrecv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_isend(...) ad_mpi_isend_at(__VA_ARGS__, __LINE__)
#define ad_mpi_irecv(...) ad_mpi_irecv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_wait(...) ad_mpi_wait_at(__VA_ARGS__, __LINE__)
#define ad_mpi_waitall(...) ad_mpi_waitall_at(__VA_ARGS__, __LINE__)
#define ad_mpi_bcast(...) ad_mpi_bcast_at(__VA_ARGS__, __LINE__)
#define ad_mpi_scatter(...) ad_mpi_scatter_at(__VA_ARGS__, __LINE__)
#define ad_mpi_scatterv(...) ad_mpi_scatterv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_gather(...) ad_mpi_gather_at(__VA_ARGS__, __LINE__)
#define ad_mpi_gatherv(...) ad_mpi_gatherv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_allgather(...) ad_mpi_allgather_at(__VA_ARGS__, __LINE__)
#define ad_mpi_allgatherv(...) ad_mpi_allgatherv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_reduce(...) ad_mpi_reduce_at(__VA_ARGS__, __LINE__)
#define ad_mpi_allreduce(...) ad_mpi_allreduce_at(__VA_ARGS__, __LINE__)
#define ad_mpi_reduce_scatter(...) ad_mpi_reduce_scatter_at(__VA_ARGS__, __LINE__)
#define ad_mpi_alltoall(...) ad_mpi_alltoall_at(__VA_ARGS__, __LINE__)
#define ad_mpi_alltoallv(...) ad_mpi_alltoallv_at(__VA_ARGS__, __LINE__)
#define ad_mpi_barrier(...) ad_mpi_barrier_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
