/* mpi_messages.c: messages from rank to rank, at once or under way.
 *
 * The pullback of a send receives, that of a receive sends: with the same peer and tag, in the
 * reverse order, so messages of one tag meet their adjoints as they met each other.
 */
#include "mpi_check.h"

#include <stdlib.h>
#include <string.h>

/* A message that is under way. */
struct mpi_request {
    struct ad_mpi_comm_of *comm;
    ad_tape tape;
    MPI_Request request;
    void *buffer;
    bool received;
    int peer, tag;
    uint64_t serial;
    ad_dtype dtype;
    int rank;
    int64_t shape[AD_MAX_RANK], size;
};

/* ---- what is given ---- */

static ad_status peer_check(ad_custom_call *c, const struct mpi_call *m, const char *what, int peer,
                            bool any)
{
    if (peer == MPI_PROC_NULL || (any && peer == MPI_ANY_SOURCE))
        return AD_OK;
    if (peer < 0 || peer >= m->comm->size)
        return mpi_fail(c, AD_ERROR_ARGUMENT, "the %s is %d, ranks are from 0 to %d", what, peer,
                        m->comm->size - 1);
    return AD_OK;
}

static ad_status tag_check(ad_custom_call *c, int tag, bool any)
{
    if (tag < 0 && !(any && tag == MPI_ANY_TAG))
        return mpi_fail(c, AD_ERROR_ARGUMENT, "the tag is %d, it must not be negative", tag);
    return AD_OK;
}

static ad_status dest_check(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = peer_check(c, m, "dest", m->dest, false);
    return status == AD_OK ? tag_check(c, m->send_tag, false) : status;
}

static ad_status source_check(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = peer_check(c, m, "source", m->source, true);
    return status == AD_OK ? tag_check(c, m->recv_tag, true) : status;
}

/* The result is what the user has said. */
static void result_given(ad_custom_call *c, const struct mpi_call *m)
{
    c->out[0].dtype = m->dtype;
    c->out[0].rank = m->rank;
    memcpy(c->out[0].shape, m->shape, sizeof m->shape);
}

/* The result is a number that stands for the call. */
static void result_token(ad_custom_call *c)
{
    c->out[0].dtype = AD_F64;
    c->out[0].rank = 0;
}

static void token_write(ad_custom_call *c)
{
    *(double *)c->out[0].data = 0;
}

/* What has come is as long as what was asked for; who has sent it is kept. */
static ad_status received_check(ad_custom_call *c, struct mpi_call *m, MPI_Status *status,
                                const ad_custom_array *into)
{
    char text[160];
    int n = 0;
    (void)MPI_Get_count(status, mpi_type(into->dtype), &n);
    if (n != into->size)
        return mpi_fail(c, AD_ERROR_SHAPE,
                        "%s is to be received, but the message of rank %d has %d elements",
                        mpi_describe(into, text, sizeof text), status->MPI_SOURCE, n);
    m->source = status->MPI_SOURCE;
    m->recv_tag = status->MPI_TAG;
    return AD_OK;
}

/* The adjoint of the result; zeros where none has come. NULL: no memory. */
static void *adjoint_of_result(ad_custom_call *c, const struct mpi_call *m)
{
    if (c->out_adjoint[0].data)
        return c->out_adjoint[0].data;
    void *zeros = mpi_workspace(c, m->comm, mpi_bytes(&c->out[0]));
    if (zeros)
        memset(zeros, 0, mpi_bytes(&c->out[0]));
    return zeros;
}

static void operand_add(ad_custom_call *c, const void *from)
{
    if (c->in_adjoint[0].data)
        mpi_add(c->in[0].dtype, c->in[0].size, from, c->in_adjoint[0].data);
}

/* ---- send ---- */

static ad_status send_shape(ad_custom_call *c, const struct mpi_call *m)
{
    result_token(c);
    return dest_check(c, m);
}

static struct mpi_letter letter_of(const ad_custom_array *a, int peer, int tag)
{
    return (struct mpi_letter){a->data, a->size, a->dtype, peer, tag};
}

static ad_status send_forward(ad_custom_call *c, struct mpi_call *m)
{
    token_write(c);
    return mpi_send(c, m, false, letter_of(&c->in[0], m->dest, m->send_tag));
}

static ad_status send_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    struct mpi_letter l = letter_of(&c->in[0], m->dest, m->send_tag);
    l.data = mpi_workspace(c, m->comm, mpi_bytes(&c->in[0]));
    if (!l.data)
        return AD_ERROR_MEMORY;
    if (m->dest == MPI_PROC_NULL)
        return AD_OK;
    const ad_status status = mpi_recv(c, m, true, l, MPI_STATUS_IGNORE);
    if (status == AD_OK)
        operand_add(c, l.data);
    return status;
}

static const struct mpi_kind send_kind = {
    MPI_KIND("mpi_send", 0),           .shape = send_shape,
    .forward = send_forward,           .pullback = send_pullback,
    MPI_LOGS(SEND, SEND, true, false),
};

ad_status ad_mpi_send_site(ad_mpi_comm comm, ad_tensor x, int dest, int tag, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &send_kind, MPI_CALLER, ad_line_);
    const ad_tape tape = {x.tape, x.tape_generation};
    m->dest = dest;
    m->send_tag = tag;
    const ad_tensor y = mpi_run(tape, m, &x);
    return y.value ? AD_OK : ad_tape_status(tape);
}

/* ---- recv ---- */

static ad_status recv_shape(ad_custom_call *c, const struct mpi_call *m)
{
    result_given(c, m);
    return source_check(c, m);
}

static ad_status recv_forward(ad_custom_call *c, struct mpi_call *m)
{
    MPI_Status from;
    if (m->source == MPI_PROC_NULL) {
        memset(c->out[0].data, 0, mpi_bytes(&c->out[0]));
        return AD_OK;
    }
    const ad_status status =
        mpi_recv(c, m, false, letter_of(&c->out[0], m->source, m->recv_tag), &from);
    return status == AD_OK ? received_check(c, m, &from, &c->out[0]) : status;
}

static ad_status recv_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    struct mpi_letter l = letter_of(&c->out[0], m->source, m->recv_tag);
    l.data = adjoint_of_result(c, m);
    return l.data ? mpi_send(c, m, true, l) : AD_ERROR_MEMORY;
}

static const struct mpi_kind recv_kind = {
    MPI_KIND("mpi_recv", 0),           .shape = recv_shape,
    .forward = recv_forward,           .pullback = recv_pullback,
    MPI_LOGS(SEND, SEND, false, true),
};

/* What the user says of a result; a rank that is none stays as it is, to be refused. */
static void call_says(struct mpi_call *m, ad_dtype dtype, int rank, const int64_t *shape)
{
    m->dtype = dtype;
    m->rank = rank;
    for (int i = 0; i < rank && i < AD_MAX_RANK && shape; i++)
        m->shape[i] = shape[i];
    if (rank > 0 && !shape)
        m->rank = -1;
}

ad_tensor ad_mpi_recv_site(ad_mpi_comm comm, ad_tape tape, ad_dtype dtype, int rank,
                           const int64_t *shape, int source, int tag, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &recv_kind, MPI_CALLER, ad_line_);
    m->source = source;
    m->recv_tag = tag;
    call_says(m, dtype, rank, shape);
    return mpi_run(tape, m, NULL);
}

/* ---- sendrecv ---- */

static ad_status sendrecv_shape(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = dest_check(c, m);
    return status == AD_OK ? recv_shape(c, m) : status;
}

/* Both at once: `out` goes, `in` comes. */
static ad_status letters_exchange(ad_custom_call *c, const struct mpi_call *m, bool back,
                                  struct mpi_letter out, struct mpi_letter in, MPI_Status *from)
{
    if (out.peer == MPI_PROC_NULL)
        out.tag = 0;
    if (!m->comm->checks)
        return mpi_says(c, MPI_Sendrecv(out.data, (int)out.n, mpi_type(out.dtype), out.peer,
                                        out.tag, in.data, (int)in.n, mpi_type(in.dtype), in.peer,
                                        in.tag, back ? m->comm->backward : m->comm->forward, from));
    const ad_status status = mpi_send(c, m, back, out); /* which is buffered */
    return status == AD_OK ? mpi_recv(c, m, back, in, from) : status;
}

static ad_status sendrecv_forward(ad_custom_call *c, struct mpi_call *m)
{
    MPI_Status from;
    memset(c->out[0].data, 0, mpi_bytes(&c->out[0]));
    const ad_status status =
        letters_exchange(c, m, false, letter_of(&c->in[0], m->dest, m->send_tag),
                         letter_of(&c->out[0], m->source, m->recv_tag), &from);
    return status == AD_OK && m->source != MPI_PROC_NULL ? received_check(c, m, &from, &c->out[0])
                                                         : status;
}

/* Where one of both is of integers, nothing goes back its way. */
static ad_status sendrecv_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const bool in = c->in[0].dtype != AD_I64, out = c->out[0].dtype != AD_I64;
    const size_t bytes = (mpi_bytes(&c->in[0]) + 63) / 64 * 64,
                 more = c->out_adjoint[0].data ? 0 : mpi_bytes(&c->out[0]);
    char *term = mpi_workspace(c, m->comm, bytes + more);
    if (!term)
        return AD_ERROR_MEMORY;
    memset(term, 0, bytes + more);
    struct mpi_letter goes = letter_of(&c->out[0], out ? m->source : MPI_PROC_NULL, m->recv_tag),
                      comes = letter_of(&c->in[0], in ? m->dest : MPI_PROC_NULL, m->send_tag);
    goes.data = more ? term + bytes : c->out_adjoint[0].data;
    comes.data = term;
    const ad_status status = letters_exchange(c, m, true, goes, comes, MPI_STATUS_IGNORE);
    if (status == AD_OK && in)
        operand_add(c, term);
    return status;
}

static const struct mpi_kind sendrecv_kind = {
    MPI_KIND("mpi_sendrecv", 0),   .shape = sendrecv_shape,          .forward = sendrecv_forward,
    .pullback = sendrecv_pullback, MPI_LOGS(SEND, SEND, true, true),
};

/* As many as MPI's own has. NOLINTNEXTLINE(readability-function-size) */
ad_tensor ad_mpi_sendrecv_site(ad_mpi_comm comm, ad_tensor x, int dest, int send_tag,
                               ad_dtype dtype, int rank, const int64_t *shape, int source,
                               int recv_tag, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &sendrecv_kind, MPI_CALLER, ad_line_);
    m->dest = dest;
    m->send_tag = send_tag;
    m->source = source;
    m->recv_tag = recv_tag;
    call_says(m, dtype, rank, shape);
    return mpi_run((ad_tape){x.tape, x.tape_generation}, m, &x);
}

/* ---- messages under way ---- */

static void request_free(struct mpi_request *r)
{
    if (r)
        free(r->buffer);
    free(r);
}

static struct mpi_request *request_make(ad_custom_call *c, const struct mpi_call *m,
                                        const ad_custom_array *like)
{
    struct mpi_request *r = m->request;
    r->size = like->size;
    r->dtype = like->dtype;
    r->rank = like->rank;
    memcpy(r->shape, like->shape, sizeof r->shape);
    r->buffer = malloc(mpi_bytes(like) + 1);
    if (!r->buffer)
        (void)mpi_fail(c, AD_ERROR_MEMORY, "no memory for %zu bytes of a message", mpi_bytes(like));
    return r->buffer ? r : NULL;
}

/* A message of a sweep: from the pullback of a wait to that of the call it waited for. */
static struct mpi_pending *pending_make(ad_custom_call *c, const struct mpi_call *m, size_t bytes)
{
    struct mpi_pending *p = malloc(sizeof *p);
    void *buffer = malloc(bytes + 1);
    if (!p || !buffer) {
        free(p);
        free(buffer);
        (void)mpi_fail(c, AD_ERROR_MEMORY, "no memory for %zu bytes of a message", bytes);
        return NULL;
    }
    *p = (struct mpi_pending){.serial = m->serial, .request = MPI_REQUEST_NULL, .buffer = buffer};
    return p;
}

static void pending_add(const struct mpi_call *m, struct mpi_pending *p)
{
    p->next = m->comm->pending;
    m->comm->pending = p;
}

/* Takes what the pullback of its wait has begun, and waits for it. NULL: c->message says why. */
static struct mpi_pending *pending_take(ad_custom_call *c, const struct mpi_call *m,
                                        struct mpi_letter l, bool received, ad_status *status)
{
    struct mpi_pending **at = &m->comm->pending;
    while (*at && (*at)->serial != m->serial)
        at = &(*at)->next;
    struct mpi_pending *p = *at;
    *status = AD_ERROR_STATE;
    if (!p) {
        (void)mpi_fail(c, *status, "no wait for it is on the tape");
        return NULL;
    }
    *status = mpi_wait(c, m, true, l, received, &p->request, MPI_STATUS_IGNORE);
    *at = p->next;
    if (*status == AD_OK)
        return p;
    p->next = m->comm->abandoned;
    m->comm->abandoned = p;
    return NULL;
}

static void pending_free(struct mpi_pending *p)
{
    free(p->buffer);
    free(p);
}

static ad_status isend_forward(ad_custom_call *c, struct mpi_call *m)
{
    struct mpi_request *r = request_make(c, m, &c->in[0]);
    if (!r)
        return AD_ERROR_MEMORY;
    token_write(c);
    memcpy(r->buffer, c->in[0].data, mpi_bytes(&c->in[0]));
    return mpi_isend(c, m, false,
                     (struct mpi_letter){r->buffer, r->size, r->dtype, m->dest, m->send_tag},
                     &r->request);
}

static ad_status isend_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    ad_status status;
    struct mpi_pending *p =
        pending_take(c, m, letter_of(&c->in[0], m->dest, m->send_tag), true, &status);
    if (!p)
        return status;
    if (m->dest != MPI_PROC_NULL)
        operand_add(c, p->buffer);
    pending_free(p);
    return AD_OK;
}

static const struct mpi_kind isend_kind = {
    MPI_KIND("mpi_isend", 0),          .shape = send_shape,
    .forward = isend_forward,          .pullback = isend_pullback,
    MPI_LOGS(BEGIN, END, true, false),
};

static ad_status irecv_shape(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = mpi_said_check(c, m, AD_MAX_RANK);
    if (status != AD_OK)
        return status;
    result_token(c);
    return source_check(c, m);
}

static ad_status irecv_forward(ad_custom_call *c, struct mpi_call *m)
{
    ad_custom_array like = {.dtype = m->dtype, .rank = m->rank, .size = 1};
    for (int i = 0; i < m->rank; i++) {
        like.shape[i] = m->shape[i];
        like.size *= m->shape[i];
    }
    struct mpi_request *r = request_make(c, m, &like);
    if (!r)
        return AD_ERROR_MEMORY;
    token_write(c);
    r->received = true;
    memset(r->buffer, 0, mpi_bytes(&like));
    return mpi_irecv(c, m, false,
                     (struct mpi_letter){r->buffer, r->size, r->dtype, m->source, m->recv_tag},
                     &r->request);
}

static ad_status irecv_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    ad_status status;
    struct mpi_pending *p = pending_take(
        c, m, (struct mpi_letter){.peer = m->source, .tag = m->recv_tag}, false, &status);
    if (p)
        pending_free(p);
    return status;
}

static const struct mpi_kind irecv_kind = {
    MPI_KIND("mpi_irecv", 0),          .shape = irecv_shape,
    .forward = irecv_forward,          .pullback = irecv_pullback,
    MPI_LOGS(BEGIN, END, false, true),
};

/* Runs a call that begins a message; *request is what it left, or none. */
static ad_status request_begin(ad_tape tape, struct mpi_call *m, const ad_tensor *x,
                               ad_mpi_request *request)
{
    const char *name = m->kind->rule.name;
    struct mpi_request *r = request ? calloc(1, sizeof *r) : NULL;
    if (request)
        request->of = NULL;
    if (!r) {
        (void)mpi_refuse(tape, name, request ? AD_ERROR_MEMORY : AD_ERROR_ARGUMENT,
                         request ? "out of memory" : "the request is a null pointer", m->caller,
                         m->line);
        return ad_tape_status(tape);
    }
    m->request = r;
    if (m->comm)
        m->serial = m->comm->calls + 1;
    *r = (struct mpi_request){.comm = m->comm,
                              .tape = tape,
                              .request = MPI_REQUEST_NULL,
                              .peer = x ? m->dest : m->source,
                              .tag = x ? m->send_tag : m->recv_tag,
                              .serial = m->serial};
    const ad_tensor y = mpi_run(tape, m, x);
    if (y.value) {
        request->of = r;
        return AD_OK;
    }
    request_free(r);
    return ad_tape_status(tape);
}

ad_status ad_mpi_isend_site(ad_mpi_comm comm, ad_tensor x, int dest, int tag,
                            ad_mpi_request *request, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &isend_kind, MPI_CALLER, ad_line_);
    m->dest = dest;
    m->send_tag = tag;
    return request_begin((ad_tape){x.tape, x.tape_generation}, m, &x, request);
}

ad_status ad_mpi_irecv_site(ad_mpi_comm comm, ad_tape tape, ad_dtype dtype, int rank,
                            const int64_t *shape, int source, int tag, ad_mpi_request *request,
                            unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &irecv_kind, MPI_CALLER, ad_line_);
    m->source = source;
    m->recv_tag = tag;
    call_says(m, dtype, rank, shape);
    return request_begin(tape, m, NULL, request);
}

/* ---- wait ---- */

static ad_status wait_send_shape(ad_custom_call *c, const struct mpi_call *m)
{
    (void)m;
    result_token(c);
    return AD_OK;
}

static ad_status wait_send_forward(ad_custom_call *c, struct mpi_call *m)
{
    token_write(c);
    return mpi_wait(c, m, false, (struct mpi_letter){.peer = m->dest, .tag = m->send_tag}, false,
                    &m->request->request, MPI_STATUS_IGNORE);
}

/* The adjoint of what was sent begins to come. */
static ad_status wait_send_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    int64_t n = 1;
    for (int i = 0; i < m->rank; i++)
        n *= m->shape[i];
    struct mpi_pending *p = pending_make(c, m, (size_t)n * mpi_width(m->dtype));
    if (!p)
        return AD_ERROR_MEMORY;
    pending_add(m, p);
    return mpi_irecv(c, m, true, (struct mpi_letter){p->buffer, n, m->dtype, m->dest, m->send_tag},
                     &p->request);
}

static const struct mpi_kind wait_send_kind = {
    MPI_KIND("mpi_wait", 0),        .shape = wait_send_shape,          .forward = wait_send_forward,
    .pullback = wait_send_pullback, MPI_LOGS(END, BEGIN, true, false),
};

static ad_status wait_recv_shape(ad_custom_call *c, const struct mpi_call *m)
{
    result_given(c, m);
    return AD_OK;
}

static ad_status wait_recv_forward(ad_custom_call *c, struct mpi_call *m)
{
    MPI_Status from;
    struct mpi_request *r = m->request;
    ad_status status = mpi_wait(c, m, false, letter_of(&c->out[0], m->source, m->recv_tag), true,
                                &r->request, &from);
    if (status == AD_OK && m->source != MPI_PROC_NULL)
        status = received_check(c, m, &from, &c->out[0]);
    if (status == AD_OK)
        memcpy(c->out[0].data, r->buffer, mpi_bytes(&c->out[0]));
    return status;
}

/* The adjoint of what was received begins to go. */
static ad_status wait_recv_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const size_t bytes = mpi_bytes(&c->out[0]);
    struct mpi_pending *p = pending_make(c, m, bytes);
    if (!p)
        return AD_ERROR_MEMORY;
    if (c->out_adjoint[0].data)
        memcpy(p->buffer, c->out_adjoint[0].data, bytes);
    else
        memset(p->buffer, 0, bytes);
    pending_add(m, p);
    return mpi_isend(
        c, m, true,
        (struct mpi_letter){p->buffer, c->out[0].size, c->out[0].dtype, m->source, m->recv_tag},
        &p->request);
}

static const struct mpi_kind wait_recv_kind = {
    MPI_KIND("mpi_wait", 0),        .shape = wait_recv_shape,          .forward = wait_recv_forward,
    .pullback = wait_recv_pullback, MPI_LOGS(END, BEGIN, false, true),
};

ad_tensor ad_mpi_wait_site(ad_mpi_request *request, unsigned ad_line_)
{
    struct mpi_request *r = request ? request->of : NULL;
    if (!r)
        return mpi_refuse((ad_tape){0, 0}, "mpi_wait", AD_ERROR_ARGUMENT, "there is no request",
                          MPI_CALLER, ad_line_);
    struct mpi_call *m = mpi_call_begin(r->comm, r->received ? &wait_recv_kind : &wait_send_kind,
                                        MPI_CALLER, ad_line_);
    m->request = r;
    m->serial = r->serial;
    m->dest = m->source = r->peer;
    m->send_tag = m->recv_tag = r->tag;
    m->dtype = r->dtype;
    m->rank = r->rank;
    memcpy(m->shape, r->shape, sizeof m->shape);
    const ad_tensor y = mpi_run(r->tape, m, NULL);
    /* The message ends here also where the tape takes nothing. */
    if (r->request != MPI_REQUEST_NULL)
        (void)MPI_Wait(&r->request, MPI_STATUS_IGNORE);
    request_free(r);
    request->of = NULL;
    return y;
}
