/* mpi_log.c: what calls were, for the profile that is being taken, and whose clock shows what.
 *
 * No message more is sent for a call: what it waited is worked out when the profiles of all ranks
 * are read. Clocks meet when a communicator is made and when it is freed; those of profiles that
 * are begun between meet before the next sweep of all ranks.
 */
#include "mpi_check.h"

#include <stdlib.h>
#include <tapescope/ad_message.h>

enum { LOG_ROUNDS = 8, LOG_TAG = 3 };

/* Of the communicators that this rank is the first of. */
static uint64_t log_made;

/* Rank 0 asks, the others answer with their clocks. */
static void log_ask(const struct ad_mpi_comm_of *comm, int peer)
{
    uint64_t best[3] = {0, 0, UINT64_MAX}; /* own, theirs, width: as the peer has them */
    for (int i = 0; i < LOG_ROUNDS; i++) {
        uint64_t theirs = 0;
        const uint64_t before = ad_message_clock();
        (void)MPI_Sendrecv(&before, 1, MPI_UINT64_T, peer, LOG_TAG, &theirs, 1, MPI_UINT64_T, peer,
                           LOG_TAG, comm->control, MPI_STATUS_IGNORE);
        const uint64_t width = ad_message_clock() - before;
        if (width < best[2]) {
            best[0] = theirs;
            best[1] = before + width / 2;
            best[2] = width;
        }
    }
    (void)MPI_Send(best, 3, MPI_UINT64_T, peer, LOG_TAG, comm->control);
}

static void log_answer(const struct ad_mpi_comm_of *comm)
{
    uint64_t asked, best[3] = {0, 0, UINT64_MAX};
    for (int i = 0; i < LOG_ROUNDS; i++) {
        (void)MPI_Recv(&asked, 1, MPI_UINT64_T, 0, LOG_TAG, comm->control, MPI_STATUS_IGNORE);
        const uint64_t own = ad_message_clock();
        (void)MPI_Send(&own, 1, MPI_UINT64_T, 0, LOG_TAG, comm->control);
    }
    (void)MPI_Recv(best, 3, MPI_UINT64_T, 0, LOG_TAG, comm->control, MPI_STATUS_IGNORE);
    ad_message_meet(best[0], best[1], best[2]);
}

/* A profile that has ended on one of them has no clock there: nobody's meets then. */
static bool log_wanted(const struct ad_mpi_comm_of *comm)
{
    int here = ad_message_clock() != 0, all = 0;
    return MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, comm->control) == MPI_SUCCESS && all;
}

enum mpi_clock mpi_log_clock(struct ad_mpi_comm_of *comm)
{
    if (comm->id == 0 || ad_message_clock() == 0)
        comm->clocks = false; /* of a profile that has ended: the next has another */
    else if (!comm->clocks)
        return MPI_CLOCK_ALONE;
    return comm->clocks ? MPI_CLOCK_MET : MPI_CLOCK_NONE;
}

void mpi_log_meet(struct ad_mpi_comm_of *comm)
{
    comm->clocks = true;
    if (comm->world[0] != 0)
        return;
    if (comm->rank > 0)
        log_answer(comm);
    for (int r = 1; r < comm->size && comm->rank == 0; r++)
        log_ask(comm, r);
}

/* A communicator with ranks of another program (MPI_Comm_spawn) has no place in a set of profiles:
 * its messages are not logged. */
static bool log_translate(struct ad_mpi_comm_of *comm)
{
    MPI_Group own, all;
    bool ok = true;
    int *rank = calloc(2 * (size_t)comm->size, sizeof *rank);
    if (!rank)
        return false;
    (void)MPI_Comm_group(comm->control, &own);
    (void)MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int r = 0; r < comm->size; r++)
        rank[r] = r;
    (void)MPI_Group_translate_ranks(own, comm->size, rank, all, rank + comm->size);
    (void)MPI_Group_free(&own);
    (void)MPI_Group_free(&all);
    for (int r = 0; r < comm->size; r++) {
        rank[r] = rank[comm->size + r];
        ok = ok && rank[r] >= 0;
    }
    comm->world = rank;
    return ok;
}

void mpi_log_begin(struct ad_mpi_comm_of *comm)
{
    uint64_t id = 0;
    int here = log_translate(comm), all = 0;
    if (comm->rank == 0 && here)
        id = (uint64_t)comm->world[0] << 32 | ++log_made;
    (void)MPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm->control);
    (void)MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, comm->control);
    comm->id = all ? id : 0;
    if (comm->id && log_wanted(comm))
        mpi_log_meet(comm);
}

void mpi_log_end(struct ad_mpi_comm_of *comm)
{
    if (comm->clocks && log_wanted(comm))
        mpi_log_meet(comm);
}

uint64_t mpi_log_start(const struct mpi_call *m)
{
    return m->comm->id ? ad_message_clock() : 0;
}

static int log_rank(const struct ad_mpi_comm_of *comm, int rank)
{
    return rank >= 0 && rank < comm->size ? comm->world[rank] : -1;
}

/* That this rank gives: a send its operand, the pullback of a receive the adjoint of its result. */
static uint64_t log_bytes(const ad_custom_call *c, const struct mpi_call *m, bool back)
{
    const bool one = !m->kind->collective;
    if (!back)
        return c->n_in > 0 ? mpi_bytes(&c->in[0]) : 0;
    if (m->bytes > 0)
        return m->bytes;
    return one && !m->kind->logs.receives ? 0 : mpi_bytes(&c->out[0]);
}

void mpi_log_call(const ad_custom_call *c, const struct mpi_call *m, bool back, uint64_t start)
{
    const struct mpi_logs *logs = &m->kind->logs;
    const struct ad_mpi_comm_of *comm = m->comm;
    if (start == 0 || (back && m->kind->begins_sweep))
        return;
    const bool one = !m->kind->collective, root = !one && logs->forward != AD_MESSAGE_ALL;
    /* Where it goes: the pullback of what was sent is received. */
    const int sent = logs->sends ? log_rank(comm, m->dest) : -1,
              received = logs->receives ? log_rank(comm, m->source) : -1;
    const ad_message message = {.kind = back ? logs->back : logs->forward,
                                .backward = back,
                                .op = m->kind->rule.name,
                                .caller = m->caller,
                                .line = m->line,
                                .comm = comm->id,
                                .ranks = (uint32_t)comm->size,
                                .number = one ? m->serial : m->number,
                                .root = root ? log_rank(comm, m->root) : -1,
                                .to = back ? received : sent,
                                .from = back ? sent : received,
                                .to_tag = back ? m->recv_tag : m->send_tag,
                                .from_tag = back ? m->send_tag : m->recv_tag,
                                .bytes = log_bytes(c, m, back),
                                .start = start};
    ad_message_tell(&message);
}
