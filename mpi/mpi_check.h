/* mpi_check.h: messages, and before each of them, where that was asked for, a look at what its
 * peers are about to do: so that what would hang is an error that names both lines.
 *
 * A checked call tells its peers by a word on comm->control. Words of one rank come in the order of
 * its calls. A send tells who it is to, a collective call everybody. A receive waits for the word
 * of a send before it waits for the message, a collective call for the words of all: a word of
 * another sort says that what is waited for will not come.
 *
 * Invariant: a checked call hangs in no call of MPI: sends are buffered, and a receive is called
 * when its message has been sent.
 */
#ifndef MPI_CHECK_H
#define MPI_CHECK_H

#include "mpi_comm.h"

/* False: no memory. */
bool mpi_check_begin(struct ad_mpi_comm_of *comm);
void mpi_check_end(struct ad_mpi_comm_of *comm);

/* All ranks have come to this collective call, in a sweep if `back`. Else c->message says why not.
 * Nothing to do where comm is not checked. */
ad_status mpi_check_collective(ad_custom_call *c, const struct mpi_call *m, bool back);
/* Once all have come to the begin of a sweep: no send is without its receive. */
ad_status mpi_check_sends(ad_custom_call *c, const struct mpi_call *m);
/* A checked call has failed here: whoever waits for this rank is told. Returns status. */
ad_status mpi_check_failed(ad_custom_call *c, const struct mpi_call *m, ad_status status);

/* What is moved: n elements from or to a rank. */
struct mpi_letter {
    void *data;
    int64_t n;
    ad_dtype dtype;
    int peer, tag;
};

/* The calls of MPI, forward or in a sweep. What has come is from->MPI_SOURCE's. */
ad_status mpi_send(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l);
ad_status mpi_recv(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                   MPI_Status *from);
ad_status mpi_isend(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                    MPI_Request *request);
ad_status mpi_irecv(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                    MPI_Request *request);
/* l: of an irecv what it was given. */
ad_status mpi_wait(ad_custom_call *c, const struct mpi_call *m, bool back, struct mpi_letter l,
                   bool received, MPI_Request *request, MPI_Status *from);

#endif
