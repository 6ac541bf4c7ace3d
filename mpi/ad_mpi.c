/* ad_mpi.c: communicators, sweeps of all ranks together, and what all calls share.
 */
#include "mpi_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Thread_local bool swept;

bool mpi_is_swept(void)
{
    return swept;
}

/* ---- errors ---- */

ad_status mpi_fail(ad_custom_call *c, ad_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(c->message, AD_CUSTOM_MESSAGE, format, list);
    va_end(list);
    return status;
}

ad_status mpi_says(ad_custom_call *c, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "an error of MPI";
    int n, class_;
    if (code == MPI_SUCCESS)
        return AD_OK;
    (void)MPI_Error_string(code, text, &n);
    (void)MPI_Error_class(code, &class_);
    return mpi_fail(c, class_ == MPI_ERR_TRUNCATE ? AD_ERROR_SHAPE : AD_ERROR_STATE, "%.200s",
                    text);
}

const char *mpi_describe(const ad_custom_array *a, char *text, size_t n)
{
    static const char *const name[] = {[AD_F32] = "f32", [AD_F64] = "f64", [AD_I64] = "i64"};
    int at = snprintf(text, n, "%s [", name[a->dtype]);
    for (int i = 0; i < a->rank && at > 0 && (size_t)at < n; i++)
        at += snprintf(text + at, n - (size_t)at, i ? ",%lld" : "%lld", (long long)a->shape[i]);
    if (at > 0 && (size_t)at < n)
        (void)snprintf(text + at, n - (size_t)at, "]");
    return text;
}

/* Why a call is refused: the payload of a rule that does that. */
struct mpi_refusal {
    ad_status status;
    const char *why;
};

static ad_status mpi_refusal_shape(ad_custom_call *c, void *payload)
{
    const struct mpi_refusal *r = payload;
    return mpi_fail(c, r->status, "%s", r->why);
}

ad_tensor mpi_refuse(ad_tape tape, const char *name, ad_status status, const char *why,
                     const void *caller, unsigned line)
{
    struct mpi_refusal refusal = {status, why};
    const ad_custom_rule rule = {.name = name,
                                 .shape = mpi_refusal_shape,
                                 .forward = mpi_refusal_shape,
                                 .pullback = mpi_refusal_shape,
                                 .saves = AD_SWEPT_ALWAYS};
    ad_tensor y = {0, 0, 0, 0};
    (void)ad_custom_from(tape, &rule, &refusal, 0, NULL, 1, &y, caller, line);
    return y;
}

/* ---- numbers ---- */

enum { MPI_HUGE_PAGE = 2 << 20 };

void *mpi_workspace(ad_custom_call *c, struct ad_mpi_comm_of *comm, size_t bytes)
{
    if (comm->workspace_bytes < bytes || !comm->workspace) {
        free(comm->workspace);
        const size_t page = bytes >= MPI_HUGE_PAGE ? MPI_HUGE_PAGE : 64;
        comm->workspace_bytes = (bytes / page + 1) * page;
        comm->workspace = aligned_alloc(page, comm->workspace_bytes);
        if (comm->workspace && page == MPI_HUGE_PAGE)
            (void)madvise(comm->workspace, comm->workspace_bytes, MADV_HUGEPAGE);
        if (!comm->workspace) {
            comm->workspace_bytes = 0;
            (void)mpi_fail(c, AD_ERROR_MEMORY, "no memory for %zu bytes of messages", bytes);
        }
    }
    return comm->workspace;
}

MPI_Datatype mpi_type(ad_dtype dtype)
{
    return dtype == AD_F32 ? MPI_FLOAT : dtype == AD_F64 ? MPI_DOUBLE : MPI_INT64_T;
}

size_t mpi_width(ad_dtype dtype)
{
    return dtype == AD_F32 ? sizeof(float) : sizeof(double);
}

size_t mpi_bytes(const ad_custom_array *a)
{
    return (size_t)a->size * mpi_width(a->dtype);
}

void mpi_add(ad_dtype dtype, int64_t n, const void *from, void *to)
{
    if (dtype == AD_F32) {
        const float *restrict f = from;
        float *restrict t = to;
        for (int64_t i = 0; i < n; i++)
            t[i] += f[i];
    } else {
        const double *restrict f = from;
        double *restrict t = to;
        for (int64_t i = 0; i < n; i++)
            t[i] += f[i];
    }
}

#define MPI_EXTREME(type, n, from, to, better)                                                     \
    do {                                                                                           \
        const type *f = (from);                                                                    \
        type *t = (to);                                                                            \
        for (int i = 0; i < (n); i++)                                                              \
            t[i] = isnan(t[i]) ? t[i] : isnan(f[i]) || f[i] better t[i] ? f[i] : t[i];             \
    } while (0)

static void extreme_least(void *from, void *to, int *n, MPI_Datatype *type)
{
    if (*type == MPI_FLOAT)
        MPI_EXTREME(float, *n, from, to, <);
    else
        MPI_EXTREME(double, *n, from, to, <);
}

static void extreme_most(void *from, void *to, int *n, MPI_Datatype *type)
{
    if (*type == MPI_FLOAT)
        MPI_EXTREME(float, *n, from, to, >);
    else
        MPI_EXTREME(double, *n, from, to, >);
}

/* ---- communicators ---- */

/* An error of the thread's: of no tape. */
static ad_status comm_fail(ad_status status, const char *why, const void *caller, unsigned line)
{
    (void)mpi_refuse((ad_tape){0, 0}, why, status, why, caller, line);
    return status;
}

static int comm_make(struct ad_mpi_comm_of *comm, MPI_Comm from)
{
    MPI_Comm *const of[5] = {&comm->forward, &comm->backward, &comm->control, &comm->averages[0],
                             &comm->averages[1]};
    int code = MPI_SUCCESS;
    for (int i = 0; i < 5 && code == MPI_SUCCESS; i++) {
        code = MPI_Comm_dup(from, of[i]);
        if (code == MPI_SUCCESS)
            code = MPI_Comm_set_errhandler(*of[i], MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(from, &comm->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(from, &comm->size);
    if (code == MPI_SUCCESS)
        code = MPI_Op_create(extreme_least, 1, &comm->least);
    if (code == MPI_SUCCESS)
        code = MPI_Op_create(extreme_most, 1, &comm->most);
    return code;
}

static void comm_free(struct ad_mpi_comm_of *comm)
{
    MPI_Comm *const of[6] = {&comm->forward,  &comm->backward,    &comm->control,
                             &comm->reversed, &comm->averages[0], &comm->averages[1]};
    MPI_Op *const op[2] = {&comm->least, &comm->most};
    mpi_check_end(comm);
    mpi_average_free(comm);
    for (int i = 0; i < 6; i++)
        if (*of[i] != MPI_COMM_NULL)
            (void)MPI_Comm_free(of[i]);
    for (int i = 0; i < 2; i++)
        if (*op[i] != MPI_OP_NULL)
            (void)MPI_Op_free(op[i]);
    for (struct mpi_pending *p = comm->abandoned, *next; p; p = next) {
        next = p->next;
        free(p->buffer);
        free(p);
    }
    free(comm->workspace);
    free(comm->call);
    free(comm->counts);
    free(comm->world);
    free(comm);
}

enum { MPI_BUCKET = 25 << 20, MPI_BUCKET_MOST = 1 << 30 };

static bool mpi_is_there(void)
{
    int begun = 0, ended = 0;
    return MPI_Initialized(&begun) == MPI_SUCCESS && begun &&
           MPI_Finalized(&ended) == MPI_SUCCESS && !ended;
}

ad_status ad_mpi_init_site(ad_mpi_comm *comm, MPI_Comm from, const ad_mpi_options *options,
                           unsigned ad_line_)
{
    const void *caller = MPI_CALLER;
    const char *check = getenv("TAPESCOPE_MPI_CHECK"), *seconds = getenv("TAPESCOPE_MPI_SECONDS");
    if (!comm)
        return comm_fail(AD_ERROR_ARGUMENT, "mpi_init: comm is a null pointer", caller, ad_line_);
    *comm = NULL;
    if (!mpi_is_there())
        return comm_fail(AD_ERROR_STATE, "mpi_init: MPI is not initialized", caller, ad_line_);
    if (from == MPI_COMM_NULL)
        return comm_fail(AD_ERROR_ARGUMENT, "mpi_init: the communicator is MPI_COMM_NULL", caller,
                         ad_line_);
    struct ad_mpi_comm_of *made = calloc(1, sizeof *made);
    if (!made)
        return comm_fail(AD_ERROR_MEMORY, "mpi_init: out of memory", caller, ad_line_);
    made->forward = made->backward = made->control = made->reversed = MPI_COMM_NULL;
    made->averages[0] = made->averages[1] = MPI_COMM_NULL;
    made->least = made->most = MPI_OP_NULL;
    made->bucket_bytes = options && options->bucket_bytes ? options->bucket_bytes : MPI_BUCKET;
    made->bucket_bytes =
        made->bucket_bytes < MPI_BUCKET_MOST ? made->bucket_bytes : MPI_BUCKET_MOST;
    made->seconds = options && options->seconds > 0 ? options->seconds
                    : seconds                       ? strtod(seconds, NULL)
                                                    : 0;
    made->check =
        (options && options->check) || (check && *check && *check != '0') || made->seconds > 0;
    const int code = comm_make(made, from);
    if (code == MPI_SUCCESS) {
        made->call = malloc(sizeof *made->call + 2 * (size_t)made->size * sizeof *made->call->rows);
        made->counts = malloc(4 * (size_t)made->size * sizeof *made->counts);
    }
    if (code != MPI_SUCCESS || !made->call || !made->counts || !mpi_check_begin(made)) {
        comm_free(made);
        return comm_fail(code != MPI_SUCCESS ? AD_ERROR_STATE : AD_ERROR_MEMORY,
                         code != MPI_SUCCESS ? "mpi_init: MPI has not duplicated the communicator"
                                             : "mpi_init: out of memory",
                         caller, ad_line_);
    }
    mpi_log_begin(made);
    *comm = made;
    return AD_OK;
}

ad_status ad_mpi_free_site(ad_mpi_comm *comm, unsigned ad_line_)
{
    if (!comm || !*comm)
        return comm_fail(AD_ERROR_ARGUMENT, "mpi_free: comm is a null pointer", MPI_CALLER,
                         ad_line_);
    if (!mpi_is_there())
        return comm_fail(AD_ERROR_STATE, "mpi_free: MPI_Finalize has been called", MPI_CALLER,
                         ad_line_);
    mpi_log_end(*comm);
    comm_free(*comm);
    *comm = NULL;
    return AD_OK;
}

int ad_mpi_rank(ad_mpi_comm comm)
{
    return comm ? comm->rank : -1;
}

int ad_mpi_size(ad_mpi_comm comm)
{
    return comm ? comm->size : -1;
}

/* ---- a call ---- */

struct mpi_call *mpi_call_begin(ad_mpi_comm comm, const struct mpi_kind *kind, const void *caller,
                                unsigned line)
{
    static _Thread_local struct mpi_call nobodys;
    struct mpi_call *m = comm ? comm->call : &nobodys;
    memset(m, 0, sizeof *m);
    m->kind = kind;
    m->comm = comm;
    m->caller = caller;
    m->line = line;
    m->dtype = AD_I64;
    return m;
}

ad_tensor mpi_run(ad_tape tape, struct mpi_call *m, const ad_tensor *x)
{
    ad_custom_rule rule = m->kind->rule;
    ad_tensor y = {0, 0, 0, 0};
    if (!m->comm)
        return mpi_refuse(tape, rule.name, AD_ERROR_ARGUMENT, "the communicator is a null pointer",
                          m->caller, m->line);
    if (!m->request)
        m->serial = m->comm->calls + 1;
    rule.own = m;
    rule.own_bytes = sizeof *m + (size_t)m->n_rows * sizeof *m->rows;
    (void)ad_custom_from(tape, &rule, m, x ? 1 : 0, x, 1, &y, m->caller, m->line);
    return y;
}

ad_status mpi_said_check(ad_custom_call *c, const struct mpi_call *m, int most)
{
    if (m->rank < 0 || m->rank > most)
        return mpi_fail(c, AD_ERROR_SHAPE, "rank %d, from 0 to %d are possible", m->rank, most);
    if ((unsigned)m->dtype > AD_I64)
        return mpi_fail(c, AD_ERROR_DTYPE, "%d is no dtype", (int)m->dtype);
    int64_t n = 1;
    for (int i = 0; i < m->rank; i++)
        if (m->shape[i] < 0 || __builtin_mul_overflow(n, m->shape[i], &n) || n > INT32_MAX)
            return mpi_fail(c, AD_ERROR_LIMIT,
                            "extent %d is %lld: a message has from 0 to 2^31 - 1 elements", i,
                            (long long)m->shape[i]);
    return AD_OK;
}

static ad_status rule_shape(ad_custom_call *c, const struct mpi_call *m)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].size > INT32_MAX)
            return mpi_fail(c, AD_ERROR_LIMIT, "a message has at most 2^31 - 1 elements, not %lld",
                            (long long)c->in[i].size);
    const ad_status status = m->kind->shape ? m->kind->shape(c, m) : AD_OK;
    int64_t n = 1;
    for (int i = 0; i < c->out[0].rank && status == AD_OK && c->out[0].rank <= AD_MAX_RANK; i++)
        if (__builtin_mul_overflow(n, c->out[0].shape[i], &n) || n > INT32_MAX)
            return mpi_fail(c, AD_ERROR_LIMIT, "a message has at most 2^31 - 1 elements");
    return status;
}

ad_status mpi_rule_shape(ad_custom_call *c, void *payload)
{
    const ad_status status = rule_shape(c, payload);
    return status == AD_OK ? AD_OK : mpi_check_failed(c, payload, status);
}

ad_status mpi_rule_forward(ad_custom_call *c, void *payload)
{
    struct mpi_call *m = c->own;
    (void)payload;
    m->comm->calls++;
    m->integers = (c->n_in == 0 || c->in[0].dtype == AD_I64) && m->dtype == AD_I64;
    m->number = m->kind->collective ? ++m->comm->collectives : 0;
    const uint64_t start = mpi_log_start(m);
    ad_status status = m->kind->collective ? mpi_check_collective(c, m, false) : AD_OK;
    if (status == AD_OK)
        status = m->kind->forward(c, m);
    if (status == AD_OK)
        mpi_log_call(c, m, false, start);
    m->request = NULL;
    return status == AD_OK ? AD_OK : mpi_check_failed(c, m, status);
}

ad_status mpi_rule_pullback(ad_custom_call *c, void *payload)
{
    const struct mpi_call *m = c->own;
    (void)payload; /* it was the call's */
    if (m->integers)
        return AD_OK;
    if (!swept)
        return mpi_fail(c, AD_ERROR_STATE,
                        "a sweep of one rank alone cannot pass it, "
                        "ad_mpi_backward sweeps on all ranks");
    const uint64_t start = mpi_log_start(m);
    ad_status status =
        m->kind->collective && !m->kind->begins_sweep ? mpi_check_collective(c, m, true) : AD_OK;
    if (status == AD_OK)
        status = m->kind->pullback(c, m);
    if (status == AD_OK)
        mpi_log_call(c, m, true, start);
    return status == AD_OK ? AD_OK : mpi_check_failed(c, m, status);
}

/* ---- sweeps ---- */

/* What the ranks tell each other before a sweep. */
struct mpi_agreement {
    uint64_t sweeps, averaged;
    int64_t failed;
    int64_t clock; /* enum mpi_clock */
};

/* Clocks meet if all ranks take a profile by now, and one of these has not met the others. */
static void ranks_meet(struct ad_mpi_comm_of *comm, const struct mpi_agreement *all)
{
    bool every = true, fresh = false;
    for (int r = 0; r < comm->size; r++) {
        every = every && all[r].clock != MPI_CLOCK_NONE && !all[r].failed &&
                all[r].sweeps == all[0].sweeps;
        fresh = fresh || all[r].clock == MPI_CLOCK_ALONE;
    }
    if (every && fresh)
        mpi_log_meet(comm);
}

static ad_status ranks_agree(struct ad_mpi_comm_of *comm, bool failed, ad_custom_call *c)
{
    struct mpi_agreement own = {comm->sweeps, comm->averaged, failed, mpi_log_clock(comm)},
                         *all = malloc((size_t)comm->size * sizeof own);
    if (!all)
        return c ? mpi_fail(c, AD_ERROR_MEMORY, "out of memory") : AD_ERROR_MEMORY;
    const int code = MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, all, (int)sizeof own, MPI_BYTE,
                                   comm->control);
    ad_status status = c ? mpi_says(c, code) : AD_OK;
    for (int r = 0; r < comm->size && c && status == AD_OK; r++) {
        if (all[r].failed)
            status = mpi_fail(c, AD_ERROR_STATE, "rank %d has failed before its sweep", r);
        else if (all[r].sweeps != own.sweeps)
            status =
                mpi_fail(c, AD_ERROR_STATE,
                         "rank %d begins sweep %llu of its communicator, this is sweep %llu", r,
                         (unsigned long long)all[r].sweeps + 1, (unsigned long long)own.sweeps + 1);
        else if (all[r].averaged != own.averaged)
            status = mpi_fail(c, AD_ERROR_STATE,
                              "rank %d has called mpi_average_gradients with other tensors, of "
                              "other shapes, or another number of times",
                              r);
    }
    if (code == MPI_SUCCESS)
        ranks_meet(comm, all);
    free(all);
    return status;
}

static _Thread_local bool agreed; /* the forward of the op has been called */

static ad_status loss_shape(ad_custom_call *c, const struct mpi_call *m)
{
    char text[160];
    (void)m;
    if (c->n_in > 0 && c->in[0].dtype == AD_I64)
        return mpi_fail(c, AD_ERROR_DTYPE, "the loss is of integers, which have no gradient");
    if (c->n_in > 0 && c->in[0].size != 1)
        return mpi_fail(c, AD_ERROR_SHAPE, "the loss is %s, it must be of size 1",
                        mpi_describe(&c->in[0], text, sizeof text));
    return AD_OK;
}

static ad_status loss_forward(ad_custom_call *c, struct mpi_call *m)
{
    agreed = true;
    ad_status status = mpi_check_sends(c, m);
    if (status != AD_OK) {
        (void)ranks_agree(m->comm, true, NULL);
        return status;
    }
    status = ranks_agree(m->comm, false, c);
    if (status != AD_OK)
        return status;
    memset(c->out[0].data, 0, mpi_bytes(&c->out[0]));
    if (c->n_in > 0)
        memcpy(c->out[0].data, c->in[0].data, mpi_bytes(&c->out[0]));
    return AD_OK;
}

static ad_status loss_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    (void)m;
    if (c->n_in > 0 && c->in_adjoint[0].data && c->out_adjoint[0].data)
        mpi_add(c->in[0].dtype, 1, c->out_adjoint[0].data, c->in_adjoint[0].data);
    return AD_OK;
}

static const struct mpi_kind loss_kind = {
    MPI_KIND("mpi_backward", 0), .shape = loss_shape, .forward = loss_forward,
    .pullback = loss_pullback,   .collective = true,  .begins_sweep = true,
};

ad_tensor ad_mpi_backward_begin_site(ad_mpi_comm comm, ad_tape tape, ad_tensor loss, unsigned line)
{
    struct mpi_call *m = mpi_call_begin(comm, &loss_kind, MPI_CALLER, line);
    m->dtype = AD_F64;
    agreed = false;
    const ad_tensor from = mpi_run(tape, m, loss.tape ? &loss : NULL);
    if (comm && !agreed) { /* the others wait for word of it */
        char message[AD_CUSTOM_MESSAGE] = "it has no sweep";
        ad_custom_call told = {.message = message};
        if (ad_tape_status(tape) != AD_OK) /* of an op before it, mostly */
            (void)snprintf(message, sizeof message, "%s", ad_tape_message(tape));
        if (comm->checks)
            (void)mpi_check_failed(&told, m, AD_ERROR_STATE);
        else
            (void)ranks_agree(comm, true, NULL);
    }
    if (comm) {
        comm->sweeps++;
        swept = true;
    }
    return from;
}

ad_status ad_mpi_backward_end_(ad_mpi_comm comm, ad_tape tape, ad_status status)
{
    swept = false;
    if (!comm)
        return status;
    if (status != AD_OK) { /* by whatever op: the others may wait for an adjoint from here */
        char message[AD_CUSTOM_MESSAGE];
        ad_custom_call told = {.message = message};
        (void)snprintf(message, sizeof message, "%s", ad_tape_message(tape));
        (void)mpi_check_failed(&told, comm->call, status);
    }
    mpi_average_end(comm);
    /* What a sweep that failed has left under way. */
    for (struct mpi_pending *p = comm->pending, *next; p; p = next) {
        next = p->next;
        (void)MPI_Cancel(&p->request);
        (void)MPI_Request_free(&p->request);
        p->next = comm->abandoned;
        comm->abandoned = p;
    }
    comm->pending = NULL;
    return status;
}
