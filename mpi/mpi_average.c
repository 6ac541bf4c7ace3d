/* mpi_average.c: gradients averaged over the ranks while the sweep that brings them goes on.
 *
 * A call records an op for each tensor and one behind them. A tensor's runs as soon as its gradient
 * is complete (AD_SWEPT_COMPLETE), the last tensor's first: it copies the gradient to a bucket, and
 * a full bucket is sent. The other one, which is older than all uses, waits for the averages.
 *
 * Each rank receives its share of a bucket from all ranks, adds these as a balanced tree, and gives
 * the averages to all. So the order of a sum depends on the number of ranks alone, and all ranks
 * have the same bits.
 *
 * Invariant: what is sent depends on the recording alone, and no tensor's op waits for a rank: the
 * ranks post the same buckets in the same order, whichever of them uses a tensor where.
 */
#include "mpi_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mpi_stage { BUCKET_FILLING, BUCKET_SCATTERED, BUCKET_GATHERED };

struct mpi_part {
    void *gradient; /* of a leaf, until the end of the sweep */
    int64_t n;
};

struct mpi_bucket {
    struct mpi_bucket *next;
    uint64_t call;
    enum mpi_stage stage;
    bool full;
    ad_dtype dtype;
    int64_t n;   /* elements */
    size_t room; /* bytes that data has */
    char *data, *shares;
    int *counts; /* [4 size] */
    MPI_Request request;
    int n_parts, parts_room;
    struct mpi_part *part;
};

/* ---- buckets ---- */

static void bucket_free(struct mpi_bucket *b)
{
    if (!b)
        return;
    free(b->data);
    free(b->shares);
    free(b->counts);
    free(b->part);
    free(b);
}

static void buckets_free(struct mpi_bucket *b)
{
    for (struct mpi_bucket *next; b; b = next) {
        next = b->next;
        bucket_free(b);
    }
}

/* One that has room for so many bytes: one that was used before, if there is. */
static struct mpi_bucket *bucket_make(struct ad_mpi_comm_of *comm, size_t bytes)
{
    for (struct mpi_bucket **at = &comm->spare; *at; at = &(*at)->next)
        if ((*at)->room >= bytes) {
            struct mpi_bucket *b = *at;
            *at = b->next;
            return b;
        }
    const size_t size = (size_t)comm->size;
    struct mpi_bucket *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->room = bytes;
    b->counts = malloc(4 * size * sizeof *b->counts);
    if (size > 1) { /* shares are as long, or an element for each rank longer */
        b->data = malloc(bytes);
        b->shares = malloc(bytes + size * sizeof(double));
    }
    if (!b->counts || (size > 1 && (!b->data || !b->shares))) {
        bucket_free(b);
        return NULL;
    }
    return b;
}

static bool bucket_add(const struct ad_mpi_comm_of *comm, struct mpi_bucket *b, void *gradient,
                       int64_t n)
{
    if (b->n_parts == b->parts_room) {
        const int room = b->parts_room ? 2 * b->parts_room : 16;
        struct mpi_part *part = realloc(b->part, (size_t)room * sizeof *part);
        if (!part)
            return false;
        b->part = part;
        b->parts_room = room;
    }
    const size_t width = mpi_width(b->dtype);
    if (comm->size > 1 && n > 0)
        memcpy(b->data + (size_t)b->n * width, gradient, (size_t)n * width);
    b->part[b->n_parts++] = (struct mpi_part){gradient, n};
    b->n += n;
    return true;
}

static int share_of(const struct ad_mpi_comm_of *comm, const struct mpi_bucket *b, int rank)
{
    return (int)(b->n / comm->size + (rank < b->n % comm->size));
}

/* The first half: each rank's share goes to it. */
static int bucket_scatter(struct ad_mpi_comm_of *comm, struct mpi_bucket *b)
{
    const int size = comm->size, own = share_of(comm, b, comm->rank);
    int *count = b->counts, *offset = count + size, *received = offset + size,
        *at = received + size, sum = 0;
    for (int r = 0; r < size; r++) {
        count[r] = share_of(comm, b, r);
        offset[r] = sum;
        sum += count[r];
        received[r] = own;
        at[r] = r * own;
    }
    b->stage = BUCKET_SCATTERED;
    if (size == 1)
        return MPI_SUCCESS;
    return MPI_Ialltoallv(b->data, count, offset, mpi_type(b->dtype), b->shares, received, at,
                          mpi_type(b->dtype), comm->averages[0], &b->request);
}

#define SHARES_AVERAGE(type, b, own, size, to)                                                     \
    do {                                                                                           \
        const type *f = (const void *)(b)->shares;                                                 \
        type *t = (void *)(to);                                                                    \
        for (int i = 0; i < (own); i++)                                                            \
            t[i] = f[i] / (type)(size);                                                            \
    } while (0)

/* Neighbours are added, then neighbours of these; an odd one goes up as it is. */
static void shares_add(const struct ad_mpi_comm_of *comm, struct mpi_bucket *b)
{
    const int own = share_of(comm, b, comm->rank);
    const size_t bytes = (size_t)own * mpi_width(b->dtype);
    char *to = b->data + (size_t)b->counts[comm->size + comm->rank] * mpi_width(b->dtype);
    for (int step = 1; step < comm->size; step *= 2)
        for (int r = 0; r + step < comm->size; r += 2 * step)
            mpi_add(b->dtype, own, b->shares + (size_t)(r + step) * bytes,
                    b->shares + (size_t)r * bytes);
    if (b->dtype == AD_F32)
        SHARES_AVERAGE(float, b, own, comm->size, to);
    else
        SHARES_AVERAGE(double, b, own, comm->size, to);
}

/* The second half, once the first has ended: each rank's share, averaged, goes to all. */
static int bucket_gather(struct ad_mpi_comm_of *comm, struct mpi_bucket *b)
{
    b->stage = BUCKET_GATHERED;
    if (comm->size == 1)
        return MPI_SUCCESS;
    shares_add(comm, b);
    return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b->data, b->counts,
                           b->counts + comm->size, mpi_type(b->dtype), comm->averages[1],
                           &b->request);
}

/* Second halves are begun in the order of the buckets, each as soon as it can be. */
static int buckets_advance(struct ad_mpi_comm_of *comm)
{
    for (struct mpi_bucket *b = comm->buckets; b; b = b->next) {
        int done = 1, code = MPI_SUCCESS;
        if (b->stage == BUCKET_FILLING)
            return MPI_SUCCESS;
        if (comm->size > 1)
            code = MPI_Test(&b->request, &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done && b->stage == BUCKET_SCATTERED)
            return MPI_SUCCESS;
        if (code == MPI_SUCCESS && b->stage == BUCKET_SCATTERED)
            code = bucket_gather(comm, b);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

/* The oldest bucket: waits for its averages, which become the gradients. */
static int bucket_finish(struct ad_mpi_comm_of *comm)
{
    struct mpi_bucket *b = comm->buckets;
    int code = MPI_SUCCESS;
    if (b->stage == BUCKET_FILLING)
        code = bucket_scatter(comm, b);
    if (comm->size > 1) {
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&b->request, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && b->stage == BUCKET_SCATTERED) {
            code = bucket_gather(comm, b);
            if (code == MPI_SUCCESS)
                code = MPI_Wait(&b->request, MPI_STATUS_IGNORE);
        }
        if (code != MPI_SUCCESS)
            return code;
        const char *from = b->data;
        for (int i = 0; i < b->n_parts; i++) {
            const size_t bytes = (size_t)b->part[i].n * mpi_width(b->dtype);
            if (bytes > 0)
                memcpy(b->part[i].gradient, from, bytes);
            from += bytes;
        }
    }
    comm->buckets = b->next;
    b->next = comm->spare;
    comm->spare = b;
    return MPI_SUCCESS;
}

void mpi_average_end(struct ad_mpi_comm_of *comm)
{
    for (struct mpi_bucket *b = comm->buckets, *next; b; b = next) {
        const bool away = b->stage != BUCKET_FILLING && comm->size > 1;
        next = b->next;
        comm->lost = comm->lost || away;
        b->next = comm->spare;
        if (!away) /* MPI may write to the others still: they are left to it */
            comm->spare = b;
    }
    comm->buckets = NULL;
}

void mpi_average_free(struct ad_mpi_comm_of *comm)
{
    buckets_free(comm->buckets);
    buckets_free(comm->spare);
    free(comm->voided);
}

/* ---- a tensor ---- */

static uint64_t hash_join(uint64_t hash, uint64_t word) /* FNV-1a, by words */
{
    return (hash ^ word) * 0x100000001b3u;
}

/* Tells the call what the tensor is. */
static ad_status post_shape(ad_custom_call *c, void *payload)
{
    struct mpi_call *m = payload;
    struct ad_mpi_comm_of *comm = m->comm;
    const ad_custom_array *x = &c->in[0];
    m->bytes = comm->average.last_bytes;
    m->dtype = comm->average.last_dtype;
    comm->average.last_bytes = mpi_bytes(x);
    comm->average.last_dtype = x->dtype;
    if (x->size > INT32_MAX - comm->size)
        return mpi_fail(c, AD_ERROR_LIMIT, "a message has at most 2^31 - 1 elements, not %lld",
                        (long long)x->size);
    uint64_t hash = hash_join(comm->average.alike, (uint64_t)x->dtype << 8 | (uint64_t)x->rank);
    for (int i = 0; i < x->rank; i++)
        hash = hash_join(hash, (uint64_t)x->shape[i]);
    comm->average.alike = hash;
    comm->average.bytes += mpi_bytes(x);
    char one[160], *text = comm->average.text;
    const size_t n = strlen(text), more = strlen(mpi_describe(x, one, sizeof one)) + 1;
    if (n + 2 + more <= sizeof comm->average.text)
        (void)snprintf(text + n, sizeof comm->average.text - n, ", %.100s", one);
    else
        text[n - 1] = text[n - 2] = text[n - 3] = '.';
    c->out[0].dtype = AD_F64;
    c->out[0].rank = 0;
    return AD_OK;
}

static ad_status post_forward(ad_custom_call *c, void *payload)
{
    (void)payload;
    *(double *)c->out[0].data = 0;
    return AD_OK;
}

static bool call_is_void(const struct ad_mpi_comm_of *comm, uint64_t call)
{
    for (int i = 0; i < comm->n_voided; i++)
        if (comm->voided[i] == call)
            return true;
    return false;
}

static ad_status alone_refuse(ad_custom_call *c)
{
    return mpi_fail(c, AD_ERROR_STATE,
                    "a sweep of one rank alone cannot pass it, "
                    "ad_mpi_backward sweeps on all ranks");
}

/* The bucket that is being filled, or a new one; NULL: no memory. */
static struct mpi_bucket *bucket_of(struct ad_mpi_comm_of *comm, uint64_t call,
                                    const ad_custom_array *x)
{
    struct mpi_bucket **last = &comm->buckets;
    while (*last && ((*last)->stage != BUCKET_FILLING || (*last)->call != call || (*last)->full))
        last = &(*last)->next;
    if (*last)
        return *last;
    const size_t bytes = mpi_bytes(x), least = comm->bucket_bytes;
    struct mpi_bucket *made = bucket_make(comm, bytes > least ? bytes : least);
    if (!made)
        return NULL;
    made->next = NULL;
    made->call = call;
    made->stage = BUCKET_FILLING;
    made->full = false;
    made->dtype = x->dtype;
    made->n = made->n_parts = 0;
    made->request = MPI_REQUEST_NULL;
    *last = made;
    return made;
}

static ad_status post_pullback(ad_custom_call *c, void *payload)
{
    const struct mpi_call *m = c->own;
    struct ad_mpi_comm_of *comm = m->comm;
    int code = MPI_SUCCESS;
    (void)payload;
    if (call_is_void(comm, m->average))
        return AD_OK;
    if (!mpi_is_swept())
        return alone_refuse(c);
    if (comm->lost)
        return mpi_fail(c, AD_ERROR_STATE,
                        "an earlier sweep has failed while averages were under way; the "
                        "communicator averages no more");
    struct mpi_bucket *b = bucket_of(comm, m->average, &c->in[0]);
    if (!b || !bucket_add(comm, b, c->in_adjoint[0].data, c->in_adjoint[0].size))
        return mpi_fail(c, AD_ERROR_MEMORY, "no memory for a bucket of averages");
    if (comm->size > 1) /* what goes out and what comes in */
        c->held_bytes = 2 * mpi_bytes(&c->in[0]);
    b->full = m->number == 0 || m->dtype != b->dtype ||
              (size_t)b->n * mpi_width(b->dtype) + m->bytes > comm->bucket_bytes;
    if (b->full)
        code = bucket_scatter(comm, b);
    if (code == MPI_SUCCESS)
        code = buckets_advance(comm);
    return mpi_says(c, code);
}

/* ---- the averages ---- */

static ad_status average_shape(ad_custom_call *c, const struct mpi_call *m)
{
    (void)m;
    c->out[0].dtype = AD_F64;
    c->out[0].rank = 0;
    return AD_OK;
}

/* The ranks do not meet here, but where they are checked. */
static ad_status average_rule_forward(ad_custom_call *c, void *payload)
{
    struct mpi_call *m = c->own;
    (void)payload;
    m->comm->calls++;
    m->number = ++m->comm->collectives;
    *(double *)c->out[0].data = 0;
    return mpi_check_collective(c, m, false);
}

static ad_status average_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    struct ad_mpi_comm_of *comm = m->comm;
    int64_t n = 0;
    int code = MPI_SUCCESS;
    for (const struct mpi_bucket *b = comm->buckets; b; b = b->next)
        n += b->call == m->average ? b->n_parts : 0;
    if (n != m->tensors)
        return mpi_fail(c, AD_ERROR_STATE,
                        "%lld of its %lld tensors were used before it: it must stand before all "
                        "uses",
                        (long long)(m->tensors - n), (long long)m->tensors);
    while (n > 0 && code == MPI_SUCCESS) {
        n -= comm->buckets->call == m->average ? comm->buckets->n_parts : 0;
        code = bucket_finish(comm);
    }
    return mpi_says(c, code);
}

static const struct mpi_kind post_kind = {
    .rule = {.name = "mpi_average_gradients",
             .shape = post_shape,
             .forward = post_forward,
             .pullback = post_pullback,
             .saves = AD_SWEPT_ALWAYS | AD_SWEPT_COMPLETE},
};

static const struct mpi_kind average_kind = {
    .rule = {.name = "mpi_average_gradients",
             .shape = mpi_rule_shape,
             .forward = average_rule_forward,
             .pullback = mpi_rule_pullback,
             .saves = AD_SWEPT_ALWAYS},
    .shape = average_shape,
    .pullback = average_pullback,
    .collective = true,
    MPI_LOGS(ALL, ALL, false, false),
};

/* A call has failed behind its i-th tensor: sweeps pass what it has recorded, and the other ranks
 * of a checked communicator are told. */
static ad_status average_failed(ad_tape tape, struct mpi_call *m, int i)
{
    struct ad_mpi_comm_of *comm = m->comm;
    const ad_status status = ad_tape_status(tape);
    char message[AD_CUSTOM_MESSAGE];
    ad_custom_call told = {.message = message};
    comm->average.text[0] = 0;
    if (i > 0) {
        uint64_t *of = realloc(comm->voided, ((size_t)comm->n_voided + 1) * sizeof *of);
        comm->voided = of ? of : comm->voided;
        if (of)
            of[comm->n_voided++] = comm->average.call;
    }
    (void)snprintf(message, sizeof message, "%s", ad_tape_message(tape));
    (void)mpi_check_failed(&told, m, status);
    return status;
}

ad_status ad_mpi_average_gradients_site(ad_mpi_comm comm, const ad_tensor *tensors, int n,
                                        unsigned ad_line_)
{
    const void *caller = MPI_CALLER;
    const ad_tape tape =
        tensors && n > 0 ? (ad_tape){tensors[0].tape, tensors[0].tape_generation} : (ad_tape){0, 0};
    const char *lacks = !comm      ? "the communicator is a null pointer"
                        : !tensors ? "the tensors are a null pointer"
                        : n < 1    ? "there must be at least one tensor"
                                   : NULL;
    if (lacks) {
        (void)mpi_refuse(tape, post_kind.rule.name, AD_ERROR_ARGUMENT, lacks, caller, ad_line_);
        return AD_ERROR_ARGUMENT;
    }
    comm->average.call = ++comm->averages_made;
    comm->average.alike = hash_join(0xcbf29ce484222325u, comm->bucket_bytes);
    comm->average.bytes = 0;
    (void)snprintf(comm->average.text, sizeof comm->average.text, "%d tensor%s", n,
                   n == 1 ? "" : "s");
    for (int i = 0; i < n; i++) {
        struct mpi_call *m = mpi_call_begin(comm, &post_kind, caller, ad_line_);
        m->average = comm->average.call;
        m->number = (uint64_t)i;
        if (!mpi_run(tape, m, &tensors[i]).value)
            return average_failed(tape, m, i);
    }
    struct mpi_call *m = mpi_call_begin(comm, &average_kind, caller, ad_line_);
    m->average = comm->average.call;
    m->tensors = n;
    m->bytes = comm->average.bytes;
    m->alike = comm->average.alike;
    m->dtype = AD_F64;
    if (!mpi_run(tape, m, NULL).value)
        return average_failed(tape, m, n);
    comm->averaged = hash_join(comm->averaged, comm->average.alike);
    comm->average.text[0] = 0;
    return AD_OK;
}
