/* mpi_comm.h: a communicator of the library's, and one call on it.
 *
 * A call's own bytes hold a struct mpi_call, so that a sweep knows what the call was, by which
 * communicator, and where it stands.
 *
 * Invariant: forward messages use `forward`, those of sweeps `backward`, both duplicates that
 * nobody else knows, and what the ranks agree on `control`: none can be taken for another.
 */
#ifndef MPI_COMM_H
#define MPI_COMM_H

#include <tapescope/ad_message.h>
#include <tapescope/ad_mpi.h>

/* A message of a sweep that is under way: from the pullback of a wait to that of its isend or
 * irecv, which has the same serial. */
struct mpi_pending {
    struct mpi_pending *next;
    uint64_t serial;
    MPI_Request request;
    void *buffer;
};

/* Of the call of ad_mpi_average_gradients that runs. */
struct mpi_average {
    uint64_t call;  /* of these, on its communicator */
    uint64_t alike; /* the same where all tensors are of the same shapes and dtypes */
    uint64_t bytes;
    uint64_t last_bytes; /* of the tensor that was recorded last */
    ad_dtype last_dtype;
    char text[120]; /* its tensors; "": none runs */
};

struct mpi_bucket;

struct ad_mpi_comm_of {
    MPI_Comm forward, backward, control, reversed; /* reversed: made when it is first needed */
    int rank, size;
    bool check;
    double seconds;
    struct mpi_check *checks;            /* where it is checked */
    uint64_t calls, collectives, sweeps; /* so far */
    struct mpi_pending *pending, *abandoned;
    MPI_Op least, most; /* in which NaN wins */
    void *workspace;
    size_t workspace_bytes;
    struct mpi_call *call; /* the next one is put together here: room for 2 size rows */
    int *counts;           /* [4 size] */
    uint64_t id;           /* the same on all ranks, and no other's; 0: nothing is logged */
    bool clocks;           /* those of the profiles that are being taken have met */
    /* Averages: where they go both ways, and those under way, the oldest first. */
    MPI_Comm averages[2];
    size_t bucket_bytes;
    struct mpi_bucket *buckets, *spare;
    bool lost; /* some were under way when their sweep failed */
    struct mpi_average average;
    uint64_t averages_made, averaged; /* calls, and what they were of, so far */
    uint64_t *voided;                 /* [n_voided] calls that have failed halfway */
    int n_voided;
    int *world; /* [size] ranks of MPI_COMM_WORLD */
};

struct mpi_kind;

/* A call. Its first words are those that ranks compare. */
struct mpi_call {
    const struct mpi_kind *kind;
    struct ad_mpi_comm_of *comm;
    const void *caller;
    struct mpi_request *request; /* during the call alone */
    uint64_t number;             /* of a collective call, among those */
    uint64_t serial;             /* on its communicator; of a wait that of its request */
    unsigned line;
    int op, root;
    int dest, source, send_tag, recv_tag;
    bool integers; /* all that is sent: nothing goes back */
    /* Of ad_mpi_average_gradients: which call, and what it is of. A tensor's has bytes and dtype of
     * the one in front of it, which a sweep comes to next. */
    uint64_t average, alike, bytes;
    int64_t tensors;
    /* What the user says of the result; where he does not, dtype is AD_I64. */
    ad_dtype dtype;
    int rank;
    int64_t shape[AD_MAX_RANK];
    int64_t n_rows;
    int64_t rows[]; /* [n_rows] */
};

/* What all ranks of a collective call have of one size and dtype. */
enum mpi_alike { MPI_ALIKE_NOTHING, MPI_ALIKE_OPERAND, MPI_ALIKE_RESULT };

/* What a call is in the log. */
struct mpi_logs {
    ad_message_kind forward, back;
    bool sends, receives; /* forward, from rank to rank: dest is its, source is its */
};

#define MPI_LOGS(forward_, back_, sends_, receives_)                                               \
    .logs = {AD_MESSAGE_##forward_, AD_MESSAGE_##back_, (sends_), (receives_)}

/* What sort of call it is. */
struct mpi_kind {
    ad_custom_rule rule;
    /* Shape and dtype of the result, which are those of the operand, or f64 [] without one, when it
     * is called. NULL: they are those. */
    ad_status (*shape)(ad_custom_call *c, const struct mpi_call *m);
    ad_status (*forward)(ad_custom_call *c, struct mpi_call *m);
    ad_status (*pullback)(ad_custom_call *c, const struct mpi_call *m);
    enum mpi_alike alike;
    struct mpi_logs logs;
    bool collective, begins_sweep;
};

/* The functions that every kind's rule has. */
ad_custom_function mpi_rule_shape, mpi_rule_forward, mpi_rule_pullback;

#define MPI_KIND(name_, saves_)                                                                    \
    .rule = {.name = (name_),                                                                      \
             .shape = mpi_rule_shape,                                                              \
             .forward = mpi_rule_forward,                                                          \
             .pullback = mpi_rule_pullback,                                                        \
             .saves = (saves_) | AD_SWEPT_ALWAYS}

/* The call that comm is to put together next: all but what is given is zero. NULL comm: a call of
 * nobody's, which mpi_run refuses. */
struct mpi_call *mpi_call_begin(ad_mpi_comm comm, const struct mpi_kind *kind, const void *caller,
                                unsigned line);
/* Runs it on x, or without an operand if that is NULL. */
ad_tensor mpi_run(ad_tape tape, struct mpi_call *m, const ad_tensor *x);
/* Leaves an error on the tape, as a call of this name. */
ad_tensor mpi_refuse(ad_tape tape, const char *name, ad_status status, const char *why,
                     const void *caller, unsigned line);

/* Inside a kind's functions: c->message, and the status. */
__attribute__((format(printf, 3, 4))) ad_status mpi_fail(ad_custom_call *c, ad_status status,
                                                         const char *format, ...);
/* The same of what MPI returned; AD_OK for MPI_SUCCESS. */
ad_status mpi_says(ad_custom_call *c, int code);
/* "f64 [2,3]" */
const char *mpi_describe(const ad_custom_array *a, char *text, size_t n);

/* What the user says of a result, or of its rows, is possible; most: the greatest rank. */
ad_status mpi_said_check(ad_custom_call *c, const struct mpi_call *m, int most);

/* Memory of comm's until its next use; NULL: c->message says so. */
void *mpi_workspace(ad_custom_call *c, struct ad_mpi_comm_of *comm, size_t bytes);
MPI_Datatype mpi_type(ad_dtype dtype);
size_t mpi_bytes(const ad_custom_array *a);
size_t mpi_width(ad_dtype dtype);
/* to[n] += from[n] */
void mpi_add(ad_dtype dtype, int64_t n, const void *from, void *to);

/* mpi_log.c. All ranks call the first two; the first is as a communicator is made. */
void mpi_log_begin(struct ad_mpi_comm_of *comm);
void mpi_log_end(struct ad_mpi_comm_of *comm);
/* The profile that this rank takes now, and its clock; and all ranks together, each of which takes
 * one: the clocks meet. */
enum mpi_clock { MPI_CLOCK_NONE, MPI_CLOCK_ALONE, MPI_CLOCK_MET };
enum mpi_clock mpi_log_clock(struct ad_mpi_comm_of *comm);
void mpi_log_meet(struct ad_mpi_comm_of *comm);
/* A call begins: what mpi_log_call wants as it ends. */
uint64_t mpi_log_start(const struct mpi_call *m);
void mpi_log_call(const ad_custom_call *c, const struct mpi_call *m, bool back, uint64_t start);

/* mpi_average.c: a sweep has ended, well or not; and the communicator does. */
void mpi_average_end(struct ad_mpi_comm_of *comm);
void mpi_average_free(struct ad_mpi_comm_of *comm);

/* A sweep of ad_mpi_backward is under way in this thread. */
bool mpi_is_swept(void);

#define MPI_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

#endif
