/* mpi_collectives.c: messages among all ranks. Each pullback is the transpose: a broadcast of what
 * was reduced, a sum of what was broadcast, a gather of what was scattered.
 *
 * Invariant: whether a pullback sends depends on the call alone, never on whether an adjoint has
 * come or is wanted on this rank: all ranks do the same.
 */
#include "mpi_comm.h"

#include <math.h>
#include <string.h>

/* ---- what is given ---- */

static ad_status root_check(ad_custom_call *c, const struct mpi_call *m)
{
    if (m->root < 0 || m->root >= m->comm->size)
        return mpi_fail(c, AD_ERROR_ARGUMENT, "the root is %d, ranks are from 0 to %d", m->root,
                        m->comm->size - 1);
    return AD_OK;
}

static bool is_root(const struct mpi_call *m)
{
    return m->comm->rank == m->root;
}

static ad_status rows_check(ad_custom_call *c, const struct mpi_call *m)
{
    int64_t sum = 0;
    for (int64_t r = 0; r < m->n_rows; r++) {
        sum = r % m->comm->size == 0 ? 0 : sum;
        if (m->rows[r] < 0 || (sum += m->rows[r]) > INT32_MAX)
            return mpi_fail(c, AD_ERROR_ARGUMENT,
                            "rows[%lld] is %lld: there are from 0 to 2^31 - 1 in all",
                            (long long)(r % m->comm->size), (long long)m->rows[r]);
    }
    return AD_OK;
}

static int64_t rows_of_all(const struct mpi_call *m, const int64_t *rows)
{
    int64_t n = 0;
    for (int r = 0; r < m->comm->size; r++)
        n += rows[r];
    return n;
}

/* The operand's first extent is n, which stands for `of`. */
static ad_status first_check(ad_custom_call *c, int64_t n, const char *of)
{
    char text[160];
    const ad_custom_array *x = &c->in[0];
    if (x->rank < 1 || x->shape[0] != n)
        return mpi_fail(c, AD_ERROR_SHAPE, "x is %s, its first extent must be %s, %lld",
                        mpi_describe(x, text, sizeof text), of, (long long)n);
    return AD_OK;
}

/* A first axis of n in front of the others of the result. */
static ad_status result_stack(ad_custom_call *c, int64_t n)
{
    ad_custom_array *y = &c->out[0];
    if (y->rank >= AD_MAX_RANK)
        return mpi_fail(c, AD_ERROR_SHAPE, "x is of rank 8, at most 7 are possible");
    memmove(y->shape + 1, y->shape, (size_t)y->rank * sizeof *y->shape);
    y->shape[0] = n;
    y->rank++;
    return AD_OK;
}

static void result_unstack(ad_custom_call *c)
{
    ad_custom_array *y = &c->out[0];
    y->rank--;
    memmove(y->shape, y->shape + 1, (size_t)y->rank * sizeof *y->shape);
}

/* Counts and offsets in elements, for MPI: of comm->counts, part 0 or 1. `each`: elements of a
 * row. */
static int *counts_of(const struct mpi_call *m, const int64_t *rows, int64_t each, int part)
{
    const int size = m->comm->size;
    int *count = m->comm->counts + 2 * part * size, *offset = count + size, at = 0;
    for (int r = 0; r < size; r++) {
        count[r] = (int)(rows[r] * each);
        offset[r] = at;
        at += count[r];
    }
    return count;
}

static int64_t row_elements(const ad_custom_array *a)
{
    int64_t n = 1;
    for (int i = 1; i < a->rank; i++)
        n *= a->shape[i];
    return n;
}

/* ---- adjoints ---- */

enum { MPI_PIECE = 1 << 15 };

static void collective_add(ad_custom_call *c, const void *from)
{
    if (c->in_adjoint && c->n_in > 0 && c->in_adjoint[0].data)
        mpi_add(c->in[0].dtype, c->in[0].size, from, c->in_adjoint[0].data);
}

/* The workspace begins with `bytes` for the pullback; behind them are zeros where no adjoint of the
 * result has come, to which *adjoint points then. NULL: no memory. */
static void *pullback_begin(ad_custom_call *c, const struct mpi_call *m, size_t bytes,
                            const void **adjoint)
{
    const size_t zeros = c->out_adjoint[0].data ? 0 : mpi_bytes(&c->out[0]);
    bytes = (bytes + 63) / 64 * 64;
    char *space = mpi_workspace(c, m->comm, bytes + zeros);
    if (!space)
        return NULL;
    if (zeros)
        memset(space + bytes, 0, zeros);
    *adjoint = zeros ? space + bytes : c->out_adjoint[0].data;
    return space;
}

/* ---- bcast ---- */

static ad_status bcast_shape(ad_custom_call *c, const struct mpi_call *m)
{
    return root_check(c, m);
}

static ad_status bcast_forward(ad_custom_call *c, struct mpi_call *m)
{
    if (is_root(m))
        memcpy(c->out[0].data, c->in[0].data, mpi_bytes(&c->out[0]));
    return mpi_says(c, MPI_Bcast(c->out[0].data, (int)c->out[0].size, mpi_type(c->out[0].dtype),
                                 m->root, m->comm->forward));
}

static ad_status bcast_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const void *adjoint;
    void *term = pullback_begin(c, m, mpi_bytes(&c->in[0]), &adjoint);
    if (!term)
        return AD_ERROR_MEMORY;
    const ad_status status =
        mpi_says(c, MPI_Reduce(adjoint, term, (int)c->in[0].size, mpi_type(c->in[0].dtype), MPI_SUM,
                               m->root, m->comm->backward));
    if (status == AD_OK && is_root(m))
        collective_add(c, term);
    return status;
}

static const struct mpi_kind bcast_kind = {
    MPI_KIND("mpi_bcast", 0),
    .shape = bcast_shape,
    .forward = bcast_forward,
    .pullback = bcast_pullback,
    .alike = MPI_ALIKE_OPERAND,
    .collective = true,
    MPI_LOGS(FROM_ROOT, TO_ROOT, false, false),
};

ad_tensor ad_mpi_bcast_site(ad_mpi_comm comm, ad_tensor x, int root, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &bcast_kind, MPI_CALLER, ad_line_);
    m->root = root;
    return mpi_run((ad_tape){x.tape, x.tape_generation}, m, &x);
}

/* ---- scatter ---- */

static ad_status scatter_shape(ad_custom_call *c, const struct mpi_call *m)
{
    char text[160];
    ad_custom_array *y = &c->out[0];
    ad_status status = root_check(c, m);
    const bool by_rows = m->n_rows > 0;
    if (status == AD_OK)
        status = mpi_said_check(c, m, AD_MAX_RANK - 1);
    if (status == AD_OK && by_rows)
        status = rows_check(c, m);
    if (status != AD_OK)
        return status;
    y->dtype = m->dtype;
    y->rank = m->rank;
    memcpy(y->shape, m->shape, sizeof m->shape);
    if (c->n_in > 0) {
        const ad_custom_array *x = &c->in[0];
        const int64_t n = by_rows ? rows_of_all(m, m->rows) : m->comm->size;
        status = first_check(c, n, by_rows ? "the sum of rows" : "the number of ranks");
        if (status != AD_OK)
            return status;
        if (x->dtype != m->dtype)
            return mpi_fail(c, AD_ERROR_DTYPE, "x is %s, not of the dtype of the result",
                            mpi_describe(x, text, sizeof text));
        if (x->rank != m->rank + 1 ||
            memcmp(x->shape + 1, m->shape, (size_t)m->rank * sizeof *m->shape) != 0)
            return mpi_fail(c, AD_ERROR_SHAPE,
                            "x is %s, its other extents are not those of the result",
                            mpi_describe(x, text, sizeof text));
    }
    return by_rows ? result_stack(c, m->rows[m->comm->rank]) : AD_OK;
}

static ad_status scatter_move(ad_custom_call *c, const struct mpi_call *m, const void *from,
                              const ad_custom_array *y, void *to, MPI_Comm comm)
{
    MPI_Datatype type = mpi_type(y->dtype);
    if (m->n_rows == 0)
        return mpi_says(
            c, MPI_Scatter(from, (int)y->size, type, to, (int)y->size, type, m->root, comm));
    const int *count = counts_of(m, m->rows, row_elements(y), 0);
    return mpi_says(c, MPI_Scatterv(from, count, count + m->comm->size, type, to, (int)y->size,
                                    type, m->root, comm));
}

static ad_status gather_move(ad_custom_call *c, const struct mpi_call *m, const void *from,
                             const ad_custom_array *y, void *to, MPI_Comm comm)
{
    MPI_Datatype type = mpi_type(y->dtype);
    if (m->n_rows == 0)
        return mpi_says(
            c, MPI_Gather(from, (int)y->size, type, to, (int)y->size, type, m->root, comm));
    const int *count = counts_of(m, m->rows, row_elements(y), 0);
    return mpi_says(c, MPI_Gatherv(from, (int)y->size, type, to, count, count + m->comm->size, type,
                                   m->root, comm));
}

static ad_status scatter_forward(ad_custom_call *c, struct mpi_call *m)
{
    return scatter_move(c, m, c->n_in > 0 ? c->in[0].data : NULL, &c->out[0], c->out[0].data,
                        m->comm->forward);
}

static ad_status scatter_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const void *adjoint;
    void *term = pullback_begin(c, m, c->n_in > 0 ? mpi_bytes(&c->in[0]) : 0, &adjoint);
    if (!term)
        return AD_ERROR_MEMORY;
    const ad_status status = gather_move(c, m, adjoint, &c->out[0], term, m->comm->backward);
    if (status == AD_OK)
        collective_add(c, term);
    return status;
}

static const struct mpi_kind scatter_kind = {
    MPI_KIND("mpi_scatter", 0),
    .shape = scatter_shape,
    .forward = scatter_forward,
    .pullback = scatter_pullback,
    .alike = MPI_ALIKE_RESULT,
    .collective = true,
    MPI_LOGS(FROM_ROOT, TO_ROOT, false, false),
};

static const struct mpi_kind scatterv_kind = {
    MPI_KIND("mpi_scatterv", 0), .shape = scatter_shape,
    .forward = scatter_forward,  .pullback = scatter_pullback,
    .collective = true,          MPI_LOGS(FROM_ROOT, TO_ROOT, false, false),
};

static void call_gives(struct mpi_call *m, ad_dtype dtype, int rank, const int64_t *shape)
{
    m->dtype = dtype;
    m->rank = rank > 0 && !shape ? -1 : rank;
    for (int i = 0; i < m->rank && i < AD_MAX_RANK; i++)
        m->shape[i] = shape[i];
}

static void call_rows(struct mpi_call *m, const int64_t *rows, const int64_t *more)
{
    const int64_t n = m->comm ? m->comm->size : 0;
    m->n_rows = more ? 2 * n : n;
    memcpy(m->rows, rows, (size_t)n * sizeof *rows);
    if (more)
        memcpy(m->rows + n, more, (size_t)n * sizeof *more);
}

static ad_tensor scatter_run(ad_tape tape, struct mpi_call *m, ad_tensor x, int root)
{
    m->root = root;
    return mpi_run(tape, m, m->comm && m->comm->rank == root ? &x : NULL);
}

ad_tensor ad_mpi_scatter_site(ad_mpi_comm comm, ad_tape tape, ad_tensor x, ad_dtype dtype, int rank,
                              const int64_t *shape, int root, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &scatter_kind, MPI_CALLER, ad_line_);
    call_gives(m, dtype, rank, shape);
    return scatter_run(tape, m, x, root);
}

ad_tensor ad_mpi_scatterv_site(ad_mpi_comm comm, ad_tape tape, ad_tensor x, ad_dtype dtype,
                               int rank, const int64_t *shape, const int64_t *rows, int root,
                               unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &scatterv_kind, MPI_CALLER, ad_line_);
    if (!rows)
        return mpi_refuse(tape, m->kind->rule.name, AD_ERROR_ARGUMENT,
                          "the rows are a null pointer", m->caller, ad_line_);
    call_gives(m, dtype, rank, shape);
    call_rows(m, rows, NULL);
    return scatter_run(tape, m, x, root);
}

/* ---- gather ---- */

/* The rows of x are those that `rows` says of this rank. */
static ad_status own_rows_check(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = rows_check(c, m);
    return status == AD_OK ? first_check(c, m->rows[m->comm->rank], "rows of this rank") : status;
}

static ad_status gather_shape(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = root_check(c, m);
    return status == AD_OK ? result_stack(c, is_root(m) ? m->comm->size : 0) : status;
}

static ad_status gatherv_shape(ad_custom_call *c, const struct mpi_call *m)
{
    ad_status status = root_check(c, m);
    if (status == AD_OK)
        status = own_rows_check(c, m);
    if (status == AD_OK)
        c->out[0].shape[0] = is_root(m) ? rows_of_all(m, m->rows) : 0;
    return status;
}

static ad_status gather_forward(ad_custom_call *c, struct mpi_call *m)
{
    return gather_move(c, m, c->in[0].data, &c->in[0], c->out[0].data, m->comm->forward);
}

static ad_status gather_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const void *adjoint;
    void *term = pullback_begin(c, m, mpi_bytes(&c->in[0]), &adjoint);
    if (!term)
        return AD_ERROR_MEMORY;
    const ad_status status = scatter_move(c, m, adjoint, &c->in[0], term, m->comm->backward);
    if (status == AD_OK)
        collective_add(c, term);
    return status;
}

static const struct mpi_kind gather_kind = {
    MPI_KIND("mpi_gather", 0),
    .shape = gather_shape,
    .forward = gather_forward,
    .pullback = gather_pullback,
    .alike = MPI_ALIKE_OPERAND,
    .collective = true,
    MPI_LOGS(TO_ROOT, FROM_ROOT, false, false),
};

static const struct mpi_kind gatherv_kind = {
    MPI_KIND("mpi_gatherv", 0),  .shape = gatherv_shape, .forward = gather_forward,
    .pullback = gather_pullback, .collective = true,     MPI_LOGS(TO_ROOT, FROM_ROOT, false, false),
};

ad_tensor ad_mpi_gather_site(ad_mpi_comm comm, ad_tensor x, int root, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &gather_kind, MPI_CALLER, ad_line_);
    m->root = root;
    return mpi_run((ad_tape){x.tape, x.tape_generation}, m, &x);
}

ad_tensor ad_mpi_gatherv_site(ad_mpi_comm comm, ad_tensor x, const int64_t *rows, int root,
                              unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &gatherv_kind, MPI_CALLER, ad_line_);
    const ad_tape tape = {x.tape, x.tape_generation};
    if (!rows)
        return mpi_refuse(tape, m->kind->rule.name, AD_ERROR_ARGUMENT,
                          "the rows are a null pointer", m->caller, ad_line_);
    m->root = root;
    call_rows(m, rows, NULL);
    return mpi_run(tape, m, &x);
}

/* ---- allgather ---- */

static ad_status allgather_shape(ad_custom_call *c, const struct mpi_call *m)
{
    return result_stack(c, m->comm->size);
}

static ad_status allgatherv_shape(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_status status = own_rows_check(c, m);
    if (status == AD_OK)
        c->out[0].shape[0] = rows_of_all(m, m->rows);
    return status;
}

static ad_status allgather_forward(ad_custom_call *c, struct mpi_call *m)
{
    MPI_Datatype type = mpi_type(c->in[0].dtype);
    const int n = (int)c->in[0].size;
    return mpi_says(
        c, MPI_Allgather(c->in[0].data, n, type, c->out[0].data, n, type, m->comm->forward));
}

static ad_status allgatherv_forward(ad_custom_call *c, struct mpi_call *m)
{
    MPI_Datatype type = mpi_type(c->in[0].dtype);
    const int *count = counts_of(m, m->rows, row_elements(&c->in[0]), 0);
    return mpi_says(c, MPI_Allgatherv(c->in[0].data, (int)c->in[0].size, type, c->out[0].data,
                                      count, count + m->comm->size, type, m->comm->forward));
}

static ad_status allgather_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    MPI_Datatype type = mpi_type(c->in[0].dtype);
    const void *adjoint;
    void *term = pullback_begin(c, m, mpi_bytes(&c->in[0]), &adjoint);
    if (!term)
        return AD_ERROR_MEMORY;
    int code;
    if (m->n_rows > 0)
        code = MPI_Reduce_scatter(adjoint, term, counts_of(m, m->rows, row_elements(&c->in[0]), 0),
                                  type, MPI_SUM, m->comm->backward);
    else
        code = MPI_Reduce_scatter_block(adjoint, term, (int)c->in[0].size, type, MPI_SUM,
                                        m->comm->backward);
    if (code == MPI_SUCCESS)
        collective_add(c, term);
    return mpi_says(c, code);
}

static const struct mpi_kind allgather_kind = {
    MPI_KIND("mpi_allgather", 0),   .shape = allgather_shape,   .forward = allgather_forward,
    .pullback = allgather_pullback, .alike = MPI_ALIKE_OPERAND, .collective = true,
};

static const struct mpi_kind allgatherv_kind = {
    MPI_KIND("mpi_allgatherv", 0),  .shape = allgatherv_shape, .forward = allgatherv_forward,
    .pullback = allgather_pullback, .collective = true,
};

ad_tensor ad_mpi_allgather_site(ad_mpi_comm comm, ad_tensor x, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &allgather_kind, MPI_CALLER, ad_line_);
    return mpi_run((ad_tape){x.tape, x.tape_generation}, m, &x);
}

ad_tensor ad_mpi_allgatherv_site(ad_mpi_comm comm, ad_tensor x, const int64_t *rows,
                                 unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &allgatherv_kind, MPI_CALLER, ad_line_);
    const ad_tape tape = {x.tape, x.tape_generation};
    if (!rows)
        return mpi_refuse(tape, m->kind->rule.name, AD_ERROR_ARGUMENT,
                          "the rows are a null pointer", m->caller, ad_line_);
    call_rows(m, rows, NULL);
    return mpi_run(tape, m, &x);
}

/* ---- how elements become one ---- */

static MPI_Op reduction(const struct mpi_call *m, ad_dtype dtype)
{
    switch (m->op) {
    case AD_MPI_SUM:
        return MPI_SUM;
    case AD_MPI_PROD:
        return MPI_PROD;
    case AD_MPI_MIN:
        return dtype == AD_I64 ? MPI_MIN : m->comm->least;
    default:
        return dtype == AD_I64 ? MPI_MAX : m->comm->most;
    }
}

static ad_status op_check(ad_custom_call *c, const struct mpi_call *m)
{
    if ((unsigned)m->op > AD_MPI_MAX)
        return mpi_fail(c, AD_ERROR_ARGUMENT, "%d is no ad_mpi_op", m->op);
    return AD_OK;
}

/* to[n] += from[n] factor[n] */
#define MPI_SPREAD(type, n, from, factor, to)                                                      \
    do {                                                                                           \
        const type *f = (from), *k = (factor);                                                     \
        type *t = (to);                                                                            \
        for (int64_t i = 0; i < (n); i++)                                                          \
            t[i] += f[i] * k[i];                                                                   \
    } while (0)

/* The product of what the ranks before this one have, and of those behind it: factor[n], with
 * scratch[n]. */
static int product_of_others(const struct mpi_call *m, const ad_custom_array *x, void *factor,
                             void *scratch)
{
    struct ad_mpi_comm_of *comm = m->comm;
    MPI_Datatype type = mpi_type(x->dtype);
    int code = MPI_SUCCESS;
    if (comm->reversed == MPI_COMM_NULL) {
        code = MPI_Comm_split(comm->backward, 0, -comm->rank, &comm->reversed);
        if (code == MPI_SUCCESS)
            code = MPI_Comm_set_errhandler(comm->reversed, MPI_ERRORS_RETURN);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Exscan(x->data, factor, (int)x->size, type, MPI_PROD, comm->backward);
    if (code == MPI_SUCCESS)
        code = MPI_Exscan(x->data, scratch, (int)x->size, type, MPI_PROD, comm->reversed);
    for (int64_t i = 0; i < x->size && code == MPI_SUCCESS; i++) {
        const bool first = comm->rank == 0, last = comm->rank == comm->size - 1;
        if (x->dtype == AD_F32)
            ((float *)factor)[i] =
                (first ? 1 : ((float *)factor)[i]) * (last ? 1 : ((float *)scratch)[i]);
        else
            ((double *)factor)[i] =
                (first ? 1 : ((double *)factor)[i]) * (last ? 1 : ((double *)scratch)[i]);
    }
    return code;
}

#define MPI_TIES(type, n, x_, y_, to)                                                              \
    do {                                                                                           \
        const type *a = (x_), *b = (y_);                                                           \
        type *t = (to);                                                                            \
        for (int64_t i = 0; i < (n); i++)                                                          \
            t[i] = a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ? 1 : 0;                           \
    } while (0)
#define MPI_SHARES(type, n, sum, to)                                                               \
    do {                                                                                           \
        const type *s = (sum);                                                                     \
        type *t = (to);                                                                            \
        for (int64_t i = 0; i < (n); i++)                                                          \
            t[i] = t[i] != 0 ? t[i] / s[i] : 0;                                                    \
    } while (0)

/* This rank's share of an extreme y[n]: factor[n], with scratch[n]. */
static int share_of_extreme(const struct mpi_call *m, const ad_custom_array *x, const void *y,
                            void *factor, void *scratch)
{
    if (x->dtype == AD_F32)
        MPI_TIES(float, x->size, x->data, y, factor);
    else
        MPI_TIES(double, x->size, x->data, y, factor);
    const int code = MPI_Allreduce(factor, scratch, (int)x->size, mpi_type(x->dtype), MPI_SUM,
                                   m->comm->backward);
    if (code != MPI_SUCCESS)
        return code;
    if (x->dtype == AD_F32)
        MPI_SHARES(float, x->size, scratch, factor);
    else
        MPI_SHARES(double, x->size, scratch, factor);
    return code;
}

/* From the adjoint of all of the result, all[n], and for an extreme its value y[n], to this rank's
 * operand; scratch[2 n]. */
static ad_status reduction_pull(ad_custom_call *c, const struct mpi_call *m, const void *all,
                                const void *y, void *scratch)
{
    const ad_custom_array *x = &c->in[0];
    if (m->op == AD_MPI_SUM) {
        collective_add(c, all);
        return AD_OK;
    }
    char *more = (char *)scratch + mpi_bytes(x);
    const int code = m->op == AD_MPI_PROD ? product_of_others(m, x, scratch, more)
                                          : share_of_extreme(m, x, y, scratch, more);
    if (code == MPI_SUCCESS && c->in_adjoint[0].data) {
        if (x->dtype == AD_F32)
            MPI_SPREAD(float, x->size, all, scratch, c->in_adjoint[0].data);
        else
            MPI_SPREAD(double, x->size, all, scratch, c->in_adjoint[0].data);
    }
    return mpi_says(c, code);
}

/* How many arrays like x a pullback needs for that: the adjoint, y where the rank has to be told
 * it, and scratch. */
static size_t reduction_space(const struct mpi_call *m, const ad_custom_array *x, bool told)
{
    const size_t n = m->op == AD_MPI_SUM ? 1 : m->op == AD_MPI_PROD ? 3 : told ? 4 : 3;
    return n * mpi_bytes(x);
}

static bool is_extreme(const struct mpi_call *m)
{
    return m->op == AD_MPI_MIN || m->op == AD_MPI_MAX;
}

/* ---- reduce, allreduce ---- */

static ad_status reduce_shape(ad_custom_call *c, const struct mpi_call *m)
{
    ad_status status = root_check(c, m);
    if (status == AD_OK)
        status = op_check(c, m);
    if (status == AD_OK && !is_root(m)) {
        c->out[0].rank = 1;
        c->out[0].shape[0] = 0;
    }
    return status;
}

static ad_status reduce_forward(ad_custom_call *c, struct mpi_call *m)
{
    return mpi_says(c, MPI_Reduce(c->in[0].data, c->out[0].data, (int)c->in[0].size,
                                  mpi_type(c->in[0].dtype), reduction(m, c->in[0].dtype), m->root,
                                  m->comm->forward));
}

static ad_status reduce_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_custom_array *x = &c->in[0];
    const size_t bytes = mpi_bytes(x);
    const int n = (int)x->size;
    const void *adjoint;
    char *all = pullback_begin(c, m, reduction_space(m, x, true), &adjoint), *y = all + bytes;
    if (!all)
        return AD_ERROR_MEMORY;
    if (is_root(m))
        memcpy(all, adjoint, bytes);
    int code = MPI_Bcast(all, n, mpi_type(x->dtype), m->root, m->comm->backward);
    if (code == MPI_SUCCESS && is_extreme(m)) {
        if (is_root(m))
            memcpy(y, c->out[0].data, bytes);
        code = MPI_Bcast(y, n, mpi_type(x->dtype), m->root, m->comm->backward);
    }
    if (code != MPI_SUCCESS)
        return mpi_says(c, code);
    return reduction_pull(c, m, all, y, is_extreme(m) ? y + bytes : y);
}

static ad_status allreduce_shape(ad_custom_call *c, const struct mpi_call *m)
{
    return op_check(c, m);
}

static ad_status allreduce_forward(ad_custom_call *c, struct mpi_call *m)
{
    return mpi_says(c, MPI_Allreduce(c->in[0].data, c->out[0].data, (int)c->in[0].size,
                                     mpi_type(c->in[0].dtype), reduction(m, c->in[0].dtype),
                                     m->comm->forward));
}

/* In place of the adjoint, which nobody reads afterwards, on every rank: MPI writes one array less
 * then, and copies none. A long one goes in pieces, and each is added while it lies in cache. */
static ad_status sum_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_custom_array *x = &c->in[0];
    const size_t width = mpi_width(x->dtype);
    char *adjoint = c->out_adjoint[0].data, *to = c->in_adjoint[0].data;
    if (!adjoint) {
        adjoint = mpi_workspace(c, m->comm, mpi_bytes(x));
        if (!adjoint)
            return AD_ERROR_MEMORY;
        memset(adjoint, 0, mpi_bytes(x));
    }
    for (int64_t i = 0; i < x->size || i == 0; i += MPI_PIECE) {
        const int64_t n = x->size - i < MPI_PIECE ? x->size - i : MPI_PIECE;
        const size_t at = (size_t)i * width;
        const int code = MPI_Allreduce(MPI_IN_PLACE, adjoint + at, (int)n, mpi_type(x->dtype),
                                       MPI_SUM, m->comm->backward);
        if (code != MPI_SUCCESS)
            return mpi_says(c, code);
        if (to && c->in_fresh[0])
            memcpy(to + at, adjoint + at, (size_t)n * width);
        else if (to)
            mpi_add(x->dtype, n, adjoint + at, to + at);
    }
    return AD_OK;
}

static ad_status allreduce_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_custom_array *x = &c->in[0];
    const void *adjoint;
    if (m->op == AD_MPI_SUM)
        return sum_pullback(c, m);
    char *all = pullback_begin(c, m, reduction_space(m, x, false), &adjoint);
    if (!all)
        return AD_ERROR_MEMORY;
    const int code =
        MPI_Allreduce(adjoint, all, (int)x->size, mpi_type(x->dtype), MPI_SUM, m->comm->backward);
    if (code != MPI_SUCCESS)
        return mpi_says(c, code);
    return reduction_pull(c, m, all, c->out[0].data, all + mpi_bytes(x));
}

/* ---- reduce_scatter ---- */

static ad_status reduce_scatter_shape(ad_custom_call *c, const struct mpi_call *m)
{
    ad_status status = op_check(c, m);
    if (status == AD_OK)
        status = first_check(c, m->comm->size, "the number of ranks");
    if (status == AD_OK)
        result_unstack(c);
    return status;
}

static ad_status reduce_scatter_forward(ad_custom_call *c, struct mpi_call *m)
{
    return mpi_says(c, MPI_Reduce_scatter_block(c->in[0].data, c->out[0].data, (int)c->out[0].size,
                                                mpi_type(c->in[0].dtype),
                                                reduction(m, c->in[0].dtype), m->comm->forward));
}

static ad_status reduce_scatter_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const ad_custom_array *x = &c->in[0];
    MPI_Datatype type = mpi_type(x->dtype);
    const size_t bytes = mpi_bytes(x);
    const int n = (int)c->out[0].size;
    const void *adjoint;
    char *all = pullback_begin(c, m, reduction_space(m, x, true), &adjoint), *y = all + bytes;
    if (!all)
        return AD_ERROR_MEMORY;
    int code = MPI_Allgather(adjoint, n, type, all, n, type, m->comm->backward);
    if (code == MPI_SUCCESS && is_extreme(m))
        code = MPI_Allgather(c->out[0].data, n, type, y, n, type, m->comm->backward);
    if (code != MPI_SUCCESS)
        return mpi_says(c, code);
    return reduction_pull(c, m, all, y, is_extreme(m) ? y + bytes : y);
}

/* A sum saves nothing, a product its operands, an extreme both. */
#define MPI_REDUCTIONS(name_, fresh_, forward_, back_)                                             \
    static const struct mpi_kind name_##_kinds[4] = {                                              \
        [AD_MPI_SUM] = MPI_REDUCTION(name_, fresh_, forward_, back_),                              \
        [AD_MPI_PROD] = MPI_REDUCTION(name_, AD_SAVES_OPERANDS, forward_, back_),                  \
        [AD_MPI_MIN] =                                                                             \
            MPI_REDUCTION(name_, AD_SAVES_OPERANDS | AD_SAVES_RESULTS, forward_, back_),           \
        [AD_MPI_MAX] =                                                                             \
            MPI_REDUCTION(name_, AD_SAVES_OPERANDS | AD_SAVES_RESULTS, forward_, back_),           \
    }
#define MPI_REDUCTION(name_, saves_, forward_, back_)                                              \
    {                                                                                              \
        MPI_KIND("mpi_" #name_, saves_), .shape = name_##_shape, .forward = name_##_forward,       \
                                         .pullback = name_##_pullback, .alike = MPI_ALIKE_OPERAND, \
                                         .collective = true,                                       \
                                         MPI_LOGS(forward_, back_, false, false)                   \
    }

MPI_REDUCTIONS(reduce, 0, TO_ROOT, FROM_ROOT);
MPI_REDUCTIONS(allreduce, AD_WRITES_FRESH, ALL, ALL);
MPI_REDUCTIONS(reduce_scatter, 0, ALL, ALL);

static ad_tensor reduction_run(ad_mpi_comm comm, const struct mpi_kind *kinds, ad_tensor x,
                               ad_mpi_op op, int root, const void *caller, unsigned line)
{
    const bool known = (unsigned)op <= AD_MPI_MAX;
    struct mpi_call *m = mpi_call_begin(comm, &kinds[known ? op : AD_MPI_SUM], caller, line);
    m->op = (int)op;
    m->root = root;
    return mpi_run((ad_tape){x.tape, x.tape_generation}, m, &x);
}

ad_tensor ad_mpi_reduce_site(ad_mpi_comm comm, ad_tensor x, ad_mpi_op op, int root,
                             unsigned ad_line_)
{
    return reduction_run(comm, reduce_kinds, x, op, root, MPI_CALLER, ad_line_);
}

ad_tensor ad_mpi_allreduce_site(ad_mpi_comm comm, ad_tensor x, ad_mpi_op op, unsigned ad_line_)
{
    return reduction_run(comm, allreduce_kinds, x, op, 0, MPI_CALLER, ad_line_);
}

ad_tensor ad_mpi_reduce_scatter_site(ad_mpi_comm comm, ad_tensor x, ad_mpi_op op, unsigned ad_line_)
{
    return reduction_run(comm, reduce_scatter_kinds, x, op, 0, MPI_CALLER, ad_line_);
}

/* ---- alltoall ---- */

static ad_status alltoall_shape(ad_custom_call *c, const struct mpi_call *m)
{
    if (m->n_rows == 0)
        return first_check(c, m->comm->size, "the number of ranks");
    ad_status status = rows_check(c, m);
    if (status == AD_OK)
        status = first_check(c, rows_of_all(m, m->rows), "the sum of what is sent");
    if (status == AD_OK)
        c->out[0].shape[0] = rows_of_all(m, m->rows + m->comm->size);
    return status;
}

/* Moves x, of which send[] rows go to each rank, to y, of which receive[] came from it. */
static ad_status alltoall_move(ad_custom_call *c, const struct mpi_call *m, const void *x, void *y,
                               bool back)
{
    const ad_custom_array *a = &c->in[0];
    MPI_Datatype type = mpi_type(a->dtype);
    MPI_Comm comm = back ? m->comm->backward : m->comm->forward;
    const int size = m->comm->size;
    if (m->n_rows == 0) {
        const int n = (int)(a->size / size);
        return mpi_says(c, MPI_Alltoall(x, n, type, y, n, type, comm));
    }
    const int *send = counts_of(m, m->rows + (back ? size : 0), row_elements(a), 0);
    const int *receive = counts_of(m, m->rows + (back ? 0 : size), row_elements(a), 1);
    return mpi_says(
        c, MPI_Alltoallv(x, send, send + size, type, y, receive, receive + size, type, comm));
}

static ad_status alltoall_forward(ad_custom_call *c, struct mpi_call *m)
{
    return alltoall_move(c, m, c->in[0].data, c->out[0].data, false);
}

static ad_status alltoall_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    const void *adjoint;
    void *term = pullback_begin(c, m, mpi_bytes(&c->in[0]), &adjoint);
    if (!term)
        return AD_ERROR_MEMORY;
    const ad_status status = alltoall_move(c, m, adjoint, term, true);
    if (status == AD_OK)
        collective_add(c, term);
    return status;
}

static const struct mpi_kind alltoall_kind = {
    MPI_KIND("mpi_alltoall", 0),   .shape = alltoall_shape,    .forward = alltoall_forward,
    .pullback = alltoall_pullback, .alike = MPI_ALIKE_OPERAND, .collective = true,
};

static const struct mpi_kind alltoallv_kind = {
    MPI_KIND("mpi_alltoallv", 0),  .shape = alltoall_shape, .forward = alltoall_forward,
    .pullback = alltoall_pullback, .collective = true,
};

ad_tensor ad_mpi_alltoall_site(ad_mpi_comm comm, ad_tensor x, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &alltoall_kind, MPI_CALLER, ad_line_);
    return mpi_run((ad_tape){x.tape, x.tape_generation}, m, &x);
}

ad_tensor ad_mpi_alltoallv_site(ad_mpi_comm comm, ad_tensor x, const int64_t *send,
                                const int64_t *receive, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &alltoallv_kind, MPI_CALLER, ad_line_);
    const ad_tape tape = {x.tape, x.tape_generation};
    if (!send || !receive)
        return mpi_refuse(tape, m->kind->rule.name, AD_ERROR_ARGUMENT,
                          "the rows are a null pointer", m->caller, ad_line_);
    call_rows(m, send, receive);
    return mpi_run(tape, m, &x);
}

/* ---- barrier ---- */

static ad_status barrier_forward(ad_custom_call *c, struct mpi_call *m)
{
    *(double *)c->out[0].data = 0;
    return mpi_says(c, MPI_Barrier(m->comm->forward));
}

static ad_status barrier_pullback(ad_custom_call *c, const struct mpi_call *m)
{
    return mpi_says(c, MPI_Barrier(m->comm->backward));
}

static const struct mpi_kind barrier_kind = {
    MPI_KIND("mpi_barrier", 0),
    .forward = barrier_forward,
    .pullback = barrier_pullback,
    .collective = true,
};

ad_status ad_mpi_barrier_site(ad_mpi_comm comm, ad_tape tape, unsigned ad_line_)
{
    struct mpi_call *m = mpi_call_begin(comm, &barrier_kind, MPI_CALLER, ad_line_);
    m->dtype = AD_F64;
    const ad_tensor y = mpi_run(tape, m, NULL);
    return y.value ? AD_OK : ad_tape_status(tape);
}
