/* mpi_cases.c: each op of ad_mpi.h against differences over all ranks, over dtypes, views, orders
 * and sorts of messages; ties and zeros against what they must be; and each way to be wrong.
 */
#include "mpi_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ad_tensor none = {0, 0, 0, 0};

/* ---- operands ---- */

/* What is made of a rank's x before it is sent: as it is, a view with gaps, in f32, both. */
enum { PLAIN, VIEW, SINGLE, SINGLE_VIEW, FORMS };

struct mpi_case {
    int form;
    ad_mpi_op op;
    int root;
    int n; /* elements of x */
};

static ad_dtype dtype_of(const struct mpi_case *k)
{
    return k->form >= SINGLE ? AD_F32 : AD_F64;
}

/* [a, b] of x [a b]. */
static ad_tensor operand(ad_tensor x, const struct mpi_case *k, int64_t a, int64_t b)
{
    const bool view = k->form == VIEW || k->form == SINGLE_VIEW;
    const ad_tensor y = view ? ad_transpose(ad_reshape(x, (int64_t[]){b, a}, 2))
                             : ad_reshape(x, (int64_t[]){a, b}, 2);
    return dtype_of(k) == AD_F32 ? ad_cast(y, AD_F32) : y;
}

/* This rank's part: other on each, and no symmetry of its elements. */
static ad_tensor part(ad_tensor y)
{
    const ad_tensor z = ad_dtype_of(y) == AD_F32 ? ad_cast(y, AD_F64) : y;
    return ad_scale(ad_sum(ad_sin(ad_add(z, ad_square(z)))), 1 + 0.25 * rank);
}

static int after(int by)
{
    return (rank + by + size) % size;
}

/* ---- messages ---- */

static ad_tensor ring(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    ad_tensor y;
    if (rank % 2 == 0 || size == 1)
        ad_mpi_send(comm, operand(x, k, 3, 2), after(1), 5);
    y = ad_mpi_recv(comm, tape, dtype_of(k), 2, shape, after(-1), 5);
    if (rank % 2 == 1 && size > 1)
        ad_mpi_send(comm, operand(x, k, 3, 2), after(1), 5);
    return ad_add(part(y), part(x));
}

/* One loss alone, at the end; each rank uses what has come twice. */
static ad_tensor chain(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    ad_tensor y = operand(x, k, 3, 2);
    if (rank > 0) {
        const ad_tensor before =
            ad_mpi_recv(comm, tape, dtype_of(k), 2, shape, MPI_ANY_SOURCE, MPI_ANY_TAG);
        y = ad_add(ad_mul(before, y), ad_scale(before, 0.25));
    }
    if (rank == size - 1)
        return part(y);
    ad_mpi_send(comm, y, rank + 1, rank);
    return none;
}

static ad_tensor sendrecv_ring(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {2, 3};
    return part(ad_mpi_sendrecv(comm, operand(x, k, 2, 3), after(1), 1, dtype_of(k), 2, shape,
                                after(-1), 1));
}

/* Neighbours without one at both ends. */
static ad_tensor halo(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {2, 3};
    const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL,
              right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    const ad_tensor y = operand(x, k, 2, 3);
    const ad_tensor a = ad_mpi_sendrecv(comm, y, left, 1, dtype_of(k), 2, shape, right, 1);
    const ad_tensor b = ad_mpi_sendrecv(comm, y, right, 2, dtype_of(k), 2, shape, left, 2);
    ad_mpi_send(comm, y, MPI_PROC_NULL, 1);
    const ad_tensor c = ad_mpi_recv(comm, tape, dtype_of(k), 2, shape, MPI_PROC_NULL, 1);
    return part(ad_add(ad_mul(a, y), ad_add(ad_mul(b, a), c)));
}

/* Several messages of one pair, received in another order than they were sent. */
static ad_tensor crossed(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    const ad_tensor y = operand(x, k, 3, 2);
    ad_tensor z[3];
    ad_mpi_send(comm, y, after(1), 1);
    ad_mpi_send(comm, ad_square(y), after(1), 2);
    ad_mpi_send(comm, ad_sin(y), after(1), 1);
    z[0] = ad_mpi_recv(comm, tape, dtype_of(k), 2, shape, after(-1), 2);
    z[1] = ad_mpi_recv(comm, tape, dtype_of(k), 2, shape, after(-1), 1);
    z[2] = ad_mpi_recv(comm, tape, dtype_of(k), 2, shape, after(-1), 1);
    return part(ad_add(ad_mul(z[0], z[1]), ad_scale(z[2], 3)));
}

/* A message whose value nobody uses, and one whose operand needs no gradient. */
static ad_tensor unused(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    const ad_tensor y = operand(x, k, 3, 2);
    ad_mpi_sendrecv(comm, y, after(1), 1, dtype_of(k), 2, shape, after(-1), 1);
    const ad_tensor fixed = dtype_of(k) == AD_F32 ? ad_scalar_f32(tape, 0.5f + (float)rank)
                                                  : ad_scalar_f64(tape, 0.5 + rank);
    const ad_tensor z =
        ad_mpi_sendrecv(comm, fixed, after(1), 2, dtype_of(k), 0, NULL, after(-1), 2);
    return part(ad_mul(z, y));
}

static ad_tensor async_ring(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    const ad_tensor y = operand(x, k, 3, 2);
    ad_mpi_request r[4];
    ad_tensor z[4];
    ad_mpi_irecv(comm, tape, dtype_of(k), 2, shape, after(-1), 1, &r[0]);
    ad_mpi_irecv(comm, tape, dtype_of(k), 2, shape, after(1), 2, &r[1]);
    ad_mpi_isend(comm, y, after(1), 1, &r[2]);
    ad_mpi_isend(comm, ad_mul(y, y), after(-1), 2, &r[3]);
    const ad_tensor between = part(y);
    ad_mpi_waitall(tape, 4, r, z);
    return ad_add(between, part(ad_mul(z[0], z[1])));
}

/* Waits in another order than the calls, in a frame; messages of one tag keep theirs. */
static ad_tensor async_crossed(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    const ad_tensor y = operand(x, k, 3, 2);
    ad_mpi_request s[3], r[3];
    ad_tensor z[3];
    const ad_frame frame = ad_frame_begin(tape);
    for (int i = 0; i < 3; i++)
        ad_mpi_isend(comm, ad_scale(ad_sin(y), 1 + i), after(2), i == 2 ? 7 : 8, &s[i]);
    for (int i = 2; i >= 0; i--)
        ad_mpi_irecv(comm, tape, dtype_of(k), 2, shape, size > 1 ? after(-2) : 0, i == 0 ? 7 : 8,
                     &r[i]);
    z[1] = ad_mpi_wait(&r[1]);
    ad_mpi_wait(&s[1]);
    z[0] = ad_mpi_wait(&r[0]);
    z[2] = ad_mpi_wait(&r[2]);
    ad_mpi_wait(&s[2]);
    ad_mpi_wait(&s[0]);
    const ad_tensor sum = ad_add(ad_mul(z[0], z[1]), ad_square(z[2]));
    ad_frame_end(frame, &sum, 1);
    return part(sum);
}

/* x to the next rank, by a call of either sort on either side. */
static ad_tensor passed(ad_tensor x, ad_dtype dtype, bool isend, bool irecv, int tag)
{
    const int64_t shape[2] = {3, 2};
    const bool first = rank % 2 == 0 || size == 1;
    ad_mpi_request s = {NULL}, r = {NULL};
    ad_tensor y = none;
    if (irecv)
        ad_mpi_irecv(comm, tape, dtype, 2, shape, after(-1), tag, &r);
    for (int turn = 0; turn < 2; turn++)
        if (first == (turn == 0)) {
            if (isend)
                ad_mpi_isend(comm, x, after(1), tag, &s);
            else
                ad_mpi_send(comm, x, after(1), tag);
        } else if (!irecv) {
            y = ad_mpi_recv(comm, tape, dtype, 2, shape, after(-1), tag);
        }
    if (irecv)
        y = ad_mpi_wait(&r);
    if (isend)
        ad_mpi_wait(&s);
    return y;
}

/* Every sort of send meets every sort of receive. */
static ad_tensor pairs(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[2] = {3, 2};
    const ad_dtype dtype = dtype_of(k);
    ad_tensor sum = operand(x, k, 3, 2);
    for (int way = 0; way < 6; way++) {
        const ad_tensor y = ad_scale(sum, 0.5 + 0.125 * way);
        const bool both =
            way >= 4 && (rank % 2 == 0 || size == 1); /* as one call, its peer by two */
        const ad_tensor z =
            both ? ad_mpi_sendrecv(comm, y, after(1), way, dtype, 2, shape, after(-1), way)
                 : passed(y, dtype, way & 1, way == 5 || (way & 2), way);
        sum = ad_add(ad_sin(z), ad_scale(y, 0.25));
    }
    return part(sum);
}

/* Tensors without elements, without an axis, and of four axes. */
static ad_tensor shapes(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t four[4] = {1, 3, 1, 2}, empty[2] = {0, 2};
    const ad_dtype dtype = dtype_of(k);
    const ad_tensor y = operand(x, k, 3, 2), deep = ad_reshape(y, four, 4),
                    one = ad_scale(ad_sum(ad_sin(y)), 0.25), no_rows = ad_slice(y, 0, 1, 1, 1);
    ad_tensor sum = part(ad_mpi_sendrecv(comm, deep, after(1), 1, dtype, 4, four, after(-1), 1));
    sum = ad_add(sum, part(ad_mul(ad_mpi_bcast(comm, deep, size - 1), deep)));
    sum = ad_add(sum, part(ad_mpi_allgather(comm, deep)));
    sum = ad_add(sum, part(ad_mpi_sendrecv(comm, one, after(1), 2, dtype, 0, NULL, after(-1), 2)));
    sum = ad_add(sum, part(ad_mul(ad_mpi_bcast(comm, one, 0), one)));
    sum = ad_add(sum, part(ad_mpi_gather(comm, one, 0)));
    sum = ad_add(sum, part(ad_mpi_allreduce(comm, one, AD_MPI_PROD)));
    sum = ad_add(sum,
                 part(ad_mpi_sendrecv(comm, no_rows, after(1), 3, dtype, 2, empty, after(-1), 3)));
    sum = ad_add(sum, part(ad_mpi_bcast(comm, no_rows, 0)));
    sum = ad_add(sum, part(ad_mpi_allgather(comm, no_rows)));
    return ad_add(sum, part(ad_mpi_allreduce(comm, no_rows, AD_MPI_SUM)));
}

/* ---- among all ranks ---- */

static ad_tensor bcast(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    return part(ad_mpi_bcast(comm, operand(x, k, 3, 2), k->root));
}

/* x of every rank is as long as root's must be. */
static ad_tensor scatter(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[1] = {2};
    return part(ad_mpi_scatter(comm, tape, operand(x, k, size, 2), dtype_of(k), 1, shape, k->root));
}

/* Rank r has r rows of what `rows` says: rank 0 none. */
static const int64_t *own_rows(int64_t *rows)
{
    for (int r = 0; r < size; r++)
        rows[r] = r;
    return rows;
}

static ad_tensor scatterv(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const int64_t shape[1] = {2}, all = size * (size - 1) / 2;
    int64_t rows[8];
    return part(ad_mpi_scatterv(comm, tape, operand(x, k, all, 2), dtype_of(k), 1, shape,
                                own_rows(rows), k->root));
}

static ad_tensor gather(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    return part(ad_mpi_gather(comm, operand(x, k, 3, 2), k->root));
}

static ad_tensor gatherv(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    int64_t rows[8];
    return part(ad_mpi_gatherv(comm, operand(x, k, rank, 2), own_rows(rows), k->root));
}

static ad_tensor allgather(ad_tensor x, void *payload)
{
    return part(ad_mpi_allgather(comm, operand(x, payload, 3, 2)));
}

static ad_tensor allgatherv(ad_tensor x, void *payload)
{
    int64_t rows[8];
    return part(ad_mpi_allgatherv(comm, operand(x, payload, rank, 2), own_rows(rows)));
}

static ad_tensor reduce(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    return part(ad_mpi_reduce(comm, operand(x, k, 3, 2), k->op, k->root));
}

static ad_tensor allreduce(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    return part(ad_mpi_allreduce(comm, operand(x, k, 3, 2), k->op));
}

static ad_tensor reduce_scatter(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    return part(ad_mpi_reduce_scatter(comm, operand(x, k, size, 2), k->op));
}

static ad_tensor alltoall(ad_tensor x, void *payload)
{
    return part(ad_mpi_alltoall(comm, operand(x, payload, size, 2)));
}

/* Rank r sends (r + s) % 3 rows to rank s. */
static ad_tensor alltoallv(ad_tensor x, void *payload)
{
    int64_t send[8], receive[8], all = 0;
    for (int s = 0; s < size; s++) {
        send[s] = receive[s] = (rank + s) % 3;
        all += send[s];
    }
    return part(ad_mpi_alltoallv(comm, operand(x, payload, all, 2), send, receive));
}

static ad_tensor together(ad_tensor x, void *payload)
{
    const struct mpi_case *k = payload;
    const ad_tensor y = ad_mpi_bcast(comm, operand(x, k, 3, 2), k->root);
    ad_mpi_barrier(comm, tape);
    const ad_tensor z = ad_mpi_allreduce(comm, ad_mul(y, operand(x, k, 3, 2)), AD_MPI_SUM);
    const ad_tensor mean =
        ad_mpi_reduce(comm, ad_sum(ad_sin(ad_scale(z, 0.25))), AD_MPI_SUM, k->root);
    return rank == k->root ? part(mean) : none;
}

static const struct mpi_row {
    const char *name;
    mpi_function *function;
    int per_rank, per_size, per_all; /* elements of x: 2 rank, 2 size, all of the rows, else 6 */
    bool by_op, by_root;
} table[] = {
    {"ring", ring, 0, 0, 0, false, false},
    {"chain", chain, 0, 0, 0, false, false},
    {"sendrecv", sendrecv_ring, 0, 0, 0, false, false},
    {"halo", halo, 0, 0, 0, false, false},
    {"crossed", crossed, 0, 0, 0, false, false},
    {"unused", unused, 0, 0, 0, false, false},
    {"isend and irecv", async_ring, 0, 0, 0, false, false},
    {"waits in another order", async_crossed, 0, 0, 0, false, false},
    {"sends and receives of all sorts", pairs, 0, 0, 0, false, false},
    {"shapes", shapes, 0, 0, 0, false, false},
    {"bcast", bcast, 0, 0, 0, false, true},
    {"scatter", scatter, 0, 1, 0, false, true},
    {"scatterv", scatterv, 0, 0, 1, false, true},
    {"gather", gather, 0, 0, 0, false, true},
    {"gatherv", gatherv, 1, 0, 0, false, true},
    {"allgather", allgather, 0, 0, 0, false, false},
    {"allgatherv", allgatherv, 1, 0, 0, false, false},
    {"reduce", reduce, 0, 0, 0, true, true},
    {"allreduce", allreduce, 0, 0, 0, true, false},
    {"reduce_scatter", reduce_scatter, 0, 1, 0, true, false},
    {"alltoall", alltoall, 0, 1, 0, false, false},
    {"alltoallv", alltoallv, 0, 0, 2, false, false},
    {"together", together, 0, 0, 0, false, true},
};

static int elements(const struct mpi_row *row)
{
    int all = 0;
    for (int s = 0; s < size; s++)
        all += (rank + s) % 3;
    return row->per_rank       ? 2 * rank
           : row->per_size     ? 2 * size
           : row->per_all == 1 ? size * (size - 1)
           : row->per_all == 2 ? 2 * all
                               : 6;
}

/* f64 against differences; f32 against f64. */
static void check_row(const struct mpi_row *row, struct mpi_case k)
{
    double x[MPI_MOST], g[MPI_MOST], h[MPI_MOST];
    uint64_t seed = 77 + (uint64_t)rank;
    char name[80];
    const int n = elements(row);
    for (int i = 0; i < n; i++)
        x[i] = mpi_random(&seed) + 0.125;
    if (row->by_op && k.op == AD_MPI_PROD && rank == 0)
        x[1] = 0; /* and on another rank, one more */
    if (row->by_op && k.op == AD_MPI_PROD && rank == size - 1)
        x[1] = x[2] = 0;
    snprintf(name, sizeof name, "%s form %d op %d root %d", row->name, k.form, (int)k.op, k.root);
    k.n = n;
    if (k.form < SINGLE) {
        mpi_check_gradient(name, row->function, &k, n, x, 1e-6);
        mpi_check_fine(name);
        return;
    }
    for (int i = 0; i < n; i++)
        x[i] = (float)x[i];
    mpi_gradient(row->function, &k, n, x, g);
    k.form -= SINGLE;
    mpi_gradient(row->function, &k, n, x, h);
    for (int i = 0; i < n; i++)
        MPI_CHECK(fabs(g[i] - h[i]) <= 1e-4 * (1 + fabs(h[i])), "%s: %g, in f64 %g", name, g[i],
                  h[i]);
    mpi_check_fine(name);
}

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int form = 0; form < FORMS; form++)
            for (int op = 0; op < (table[i].by_op ? 4 : 1); op++)
                for (int root = 0; root < (table[i].by_root && form < 2 ? size : 1); root += 2)
                    check_row(&table[i],
                              (struct mpi_case){form, (ad_mpi_op)op, size - 1 - root, 0});
}

/* ---- values that must be ---- */

static void check_ties(void)
{
    double g[3];
    ad_tape_reset(tape);
    const double own[3] = {1, rank, NAN};
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 1, (int64_t[]){3}, own);
    const ad_tensor y = ad_mpi_allreduce(comm, x, AD_MPI_MAX);
    double v[3];
    MPI_CHECK(ad_value(y, v, 3) == AD_OK && v[0] == 1 && v[1] == size - 1 && isnan(v[2]),
              "%g %g %g", v[0], v[1], v[2]);
    MPI_CHECK(ad_mpi_backward(comm, tape, rank == 0 ? ad_sum(y) : none) == AD_OK, "%s",
              ad_tape_message(tape));
    MPI_CHECK(ad_gradient(x, g, 3) == AD_OK, "%s", ad_tape_message(tape));
    MPI_CHECK(fabs(g[0] - 1.0 / size) < 1e-15 && g[1] == (rank == size - 1) &&
                  fabs(g[2] - 1.0 / size) < 1e-15,
              "%g %g %g", g[0], g[1], g[2]);

    /* One NaN is the extreme, whatever rank has it. */
    ad_tape_reset(tape);
    const double few = rank == size / 2 ? (double)NAN : 7;
    const ad_tensor z = ad_leaf_copy(tape, AD_F64, 0, NULL, &few),
                    least = ad_mpi_allreduce(comm, z, AD_MPI_MIN);
    MPI_CHECK(isnan(ad_item(least)), "%g", ad_item(least));
    MPI_CHECK(ad_mpi_backward(comm, tape, rank == 0 ? least : none) == AD_OK, "%s",
              ad_tape_message(tape));
    MPI_CHECK(ad_gradient(z, g, 1) == AD_OK && g[0] == (rank == size / 2), "%g", g[0]);
}

/* Longer than what MPI sends at once, and than a piece of a sum's adjoint; whole numbers, so exact.
 * added: the operand has an adjoint before the message's comes. */
static void check_long_one(ad_dtype dtype, int way, bool added)
{
    enum { LONG = 100003 };
    static double w[LONG], g[LONG];
    const int64_t n = LONG;
    int64_t wrong = 0;
    ad_mpi_request r = {NULL}, s = {NULL};
    ad_tape_reset(tape);
    for (int64_t i = 0; i < n; i++)
        w[i] = (double)(i % 7 + rank);
    const ad_tensor leaf = ad_leaf_copy(tape, AD_F64, 1, &n, w),
                    weight = ad_cast(ad_constant(tape, AD_F64, 1, &n, w), dtype),
                    x = ad_cast(leaf, dtype);
    ad_tensor y;
    if (way == 0) {
        y = ad_mpi_sendrecv(comm, x, after(1), 1, dtype, 1, &n, after(-1), 1);
    } else if (way == 1) {
        ad_mpi_irecv(comm, tape, dtype, 1, &n, after(-1), 1, &r);
        ad_mpi_isend(comm, x, after(1), 1, &s);
        y = ad_mpi_wait(&r);
        ad_mpi_wait(&s);
    } else {
        y = way == 2 ? ad_mpi_bcast(comm, x, size - 1) : ad_mpi_allreduce(comm, x, AD_MPI_SUM);
    }
    const ad_tensor parts = ad_mul(y, weight);
    const ad_tensor loss = ad_sum(added ? ad_add(parts, ad_scale(x, 3)) : parts);
    MPI_CHECK(ad_mpi_backward(comm, tape, loss) == AD_OK, "%s", ad_tape_message(tape));
    MPI_CHECK(ad_gradient(leaf, g, n) == AD_OK, "%s", ad_tape_message(tape));
    for (int64_t i = 0; i < n; i++) {
        const double all = size * (double)(i % 7) + size * (size - 1) / 2.0;
        const double moved = way < 2                        ? (double)(i % 7 + after(1))
                             : way == 3 || rank == size - 1 ? all
                                                            : 0;
        wrong += g[i] != moved + (added ? 3 : 0);
    }
    MPI_CHECK(wrong == 0, "way %d, %s, added %d: %lld elements", way,
              dtype == AD_F32 ? "f32" : "f64", added, (long long)wrong);
}

static void check_long(void)
{
    for (int way = 0; way < 4; way++)
        for (int added = 0; added < 2; added++) {
            check_long_one(AD_F64, way, added);
            check_long_one(AD_F32, way, added);
        }
    ad_tape_reset(tape);
}

/* Gradients grow with each sweep; a second loss of another rank. */
static void check_sweeps(void)
{
    double g;
    const double own = rank + 1;
    ad_tape_reset(tape);
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
    const ad_tensor sum = ad_mpi_allreduce(comm, x, AD_MPI_SUM);
    MPI_CHECK(ad_item(sum) == size * (size + 1) / 2.0, "%g", ad_item(sum));
    for (int k = 0; k < 3; k++)
        MPI_CHECK(ad_mpi_backward(comm, tape, ad_mul(sum, x)) == AD_OK, "%s",
                  ad_tape_message(tape));
    MPI_CHECK(ad_gradient(x, &g, 1) == AD_OK && fabs(g - 6 * ad_item(sum)) < 1e-9, "%g", g);
    ad_tape_zero_gradients(tape);
    MPI_CHECK(ad_mpi_backward(comm, tape, rank == size - 1 ? sum : none) == AD_OK, "%s",
              ad_tape_message(tape));
    MPI_CHECK(ad_gradient(x, &g, 1) == AD_OK && g == 1, "%g", g);
    /* What is retained of a result is its adjoint, not the sum of those that came of it. */
    ad_tape_zero_gradients(tape);
    ad_retain_gradient(sum);
    MPI_CHECK(ad_mpi_backward(comm, tape, ad_scale(sum, 1 + rank)) == AD_OK, "%s",
              ad_tape_message(tape));
    MPI_CHECK(ad_gradient(sum, &g, 1) == AD_OK && g == 1 + rank, "%g", g);
    MPI_CHECK(ad_gradient(x, &g, 1) == AD_OK && g == size * (size + 1) / 2.0, "%g", g);
    ad_tape_zero_gradients(tape);
    MPI_CHECK(ad_mpi_backward(comm, tape, rank == size - 1 ? sum : none) == AD_OK, "%s",
              ad_tape_message(tape));
    /* A constant loss is one. */
    MPI_CHECK(ad_mpi_backward(comm, tape, ad_scalar_f64(tape, 3)) == AD_OK, "%s",
              ad_tape_message(tape));
    MPI_CHECK(ad_gradient(x, &g, 1) == AD_OK && g == 1, "%g", g);
}

/* What is rewound is not swept; integers and no_grad leave nothing to sweep. */
static void check_rewinds(void)
{
    double g;
    const double own = rank + 1;
    ad_tape_reset(tape);
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
    const ad_mark mark = ad_tape_mark(tape);
    if (rank == 0)
        ad_mpi_allreduce(comm, x, AD_MPI_SUM);
    else
        ad_item(ad_mpi_allreduce(comm, x, AD_MPI_SUM));
    ad_tape_rewind(tape, mark);
    ad_tape_no_grad_begin(tape);
    const ad_tensor all = ad_mpi_allreduce(comm, x, AD_MPI_SUM);
    ad_tape_no_grad_end(tape);
    MPI_CHECK(ad_item(all) == size * (size + 1) / 2.0, "%g", ad_item(all));
    const int64_t label = rank;
    const ad_tensor i = ad_mpi_allreduce(comm, ad_scalar_i64(tape, label), AD_MPI_MAX);
    int64_t most = 0;
    MPI_CHECK(ad_value(i, &most, 1) == AD_OK && most == size - 1, "%lld", (long long)most);
    /* A sweep of one rank alone passes no message, and there is none. */
    MPI_CHECK(ad_backward(ad_mul(x, all)) == AD_OK, "%s", ad_tape_message(tape));
    MPI_CHECK(ad_gradient(x, &g, 1) == AD_OK && g == ad_item(all), "%g", g);
}

/* Rows of ranks have a communicator of their own; sweeps of all go over both. */
static void check_parts(void)
{
    ad_mpi_comm part_comm;
    MPI_Comm half;
    double g;
    const double own = rank + 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_CHECK(ad_mpi_init(&part_comm, half, NULL) == AD_OK, "%s", ad_tape_message((ad_tape){0, 0}));
    MPI_Comm_free(&half);
    ad_tape_reset(tape);
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
    const ad_tensor y = ad_mpi_allreduce(part_comm, x, AD_MPI_SUM);
    const ad_tensor z = ad_mpi_allreduce(comm, ad_mul(x, y), AD_MPI_SUM);
    MPI_CHECK(ad_mpi_backward(comm, tape, rank == 0 ? z : none) == AD_OK, "%s",
              ad_tape_message(tape));
    /* sum over a part of x_r s, s = their sum: by x it is 2 s */
    MPI_CHECK(ad_gradient(x, &g, 1) == AD_OK && fabs(g - 2 * ad_item(y)) < 1e-9, "%g, %g", g,
              ad_item(y));
    ad_tape_reset(tape);
    MPI_CHECK(ad_mpi_free(&part_comm) == AD_OK && !part_comm, "not freed");
}

/* ---- each way to be wrong: found before anything is sent ---- */

static void check_refused(void)
{
    const int64_t shape[2] = {size + 1, 2}, negative[8] = {-1, 0, 0, 0, 0, 0, 0, 0};
    double data[16];
    memset(data, 0, sizeof data);
    ad_mpi_request r;
    ad_tape_reset(tape);
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 2, shape, data);
    ad_mpi_send(comm, x, size, 1);
    mpi_check_error(AD_ERROR_ARGUMENT, "mpi_send: its shape failed: the dest is ");
    ad_mpi_send(comm, x, 0, -3);
    mpi_check_error(AD_ERROR_ARGUMENT, "mpi_send: its shape failed: the tag is -3");
    ad_mpi_recv(comm, tape, AD_F64, 2, shape, -7, 1);
    mpi_check_error(AD_ERROR_ARGUMENT, "the source is -7");
    ad_mpi_recv(comm, tape, AD_F64, 9, shape, 0, 1);
    mpi_check_error(AD_ERROR_SHAPE, "rank");
    ad_mpi_recv(comm, tape, AD_F64, 2, NULL, 0, 1);
    mpi_check_error(AD_ERROR_SHAPE, "rank");
    MPI_CHECK(ad_mpi_irecv(comm, tape, AD_F64, 9, shape, 0, 1, &r) == AD_ERROR_SHAPE && !r.of,
              "taken");
    mpi_check_error(AD_ERROR_SHAPE, "mpi_irecv");
    MPI_CHECK(ad_mpi_irecv(comm, tape, AD_F64, 2, (int64_t[]){1 << 20, 1 << 20}, 0, 1, &r) ==
                      AD_ERROR_LIMIT &&
                  !r.of,
              "irecv of too many");
    mpi_check_error(AD_ERROR_LIMIT, "a message has from 0 to 2^31 - 1 elements");
    ad_mpi_isend(comm, x, 0, 1, NULL);
    mpi_check_error(AD_ERROR_ARGUMENT, "the request is a null pointer");
    ad_mpi_bcast(comm, x, size);
    mpi_check_error(AD_ERROR_ARGUMENT, "the root is ");
    ad_mpi_alltoall(comm, x);
    mpi_check_error(AD_ERROR_SHAPE, "its first extent must be the number of ranks");
    ad_mpi_reduce_scatter(comm, x, AD_MPI_SUM);
    mpi_check_error(AD_ERROR_SHAPE, "its first extent must be the number of ranks");
    ad_mpi_gatherv(comm, x, negative, 0);
    mpi_check_error(AD_ERROR_ARGUMENT, "rows[0] is -1");
    ad_mpi_allgatherv(comm, x, NULL);
    mpi_check_error(AD_ERROR_ARGUMENT, "the rows are a null pointer");
    ad_mpi_allreduce(comm, x, (ad_mpi_op)9);
    mpi_check_error(AD_ERROR_ARGUMENT, "9 is no ad_mpi_op");
    ad_mpi_allreduce(NULL, x, AD_MPI_SUM);
    mpi_check_error(AD_ERROR_ARGUMENT, "mpi_allreduce: its shape failed: the communicator is a "
                                       "null pointer; the call is at mpi_cases.c:");
    ad_mpi_scatter(comm, tape, x, AD_F64, 1, shape, rank);
    mpi_check_error(AD_ERROR_SHAPE, "x is f64 [");
    ad_mpi_scatter(comm, tape, x, AD_F32, 1, &shape[1], rank);
    mpi_check_error(AD_ERROR_SHAPE, "must be the number of ranks");
    r.of = NULL;
    ad_mpi_wait(&r);
    MPI_CHECK(strstr(ad_tape_message((ad_tape){0, 0}), "mpi_wait") != NULL, "%s",
              ad_tape_message((ad_tape){0, 0}));

    /* Of another length than what comes. */
    const int64_t two[1] = {2};
    ad_mpi_sendrecv(comm, ad_scalar_f64(tape, 1), after(1), 1, AD_F64, 1, two, after(-1), 1);
    mpi_check_error(AD_ERROR_SHAPE, "f64 [2] is to be received, but the message of rank ");
    const double pair[2] = {1, 2};
    ad_mpi_sendrecv(comm, ad_leaf_copy(tape, AD_F64, 1, two, pair), after(1), 1, AD_F64, 0, NULL,
                    after(-1), 1);
    if (size > 1) /* Open MPI says nothing of a message to oneself */
        mpi_check_error(AD_ERROR_SHAPE, "mpi_sendrecv: its forward failed: MPI_ERR_TRUNCATE");
    ad_tape_reset(tape);
}

static void checkpointed(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                         void *payload)
{
    (void)on;
    (void)n_in;
    (void)n_out;
    (void)payload;
    out[0] = ad_mpi_allreduce(comm, in[0], AD_MPI_SUM);
}

/* On all ranks alike, so that nobody waits for a message. */
static void check_sweeps_refused(void)
{
    const double own = rank;
    ad_tensor y, d;
    ad_tape_reset(tape);
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 0, NULL, &own);
    ad_checkpoint(tape, checkpointed, NULL, 1, &x, 1, &y);
    mpi_check_error(AD_ERROR_STATE, "mpi_allreduce: not while a checkpoint's function runs");
    y = ad_mpi_allreduce(comm, x, AD_MPI_SUM);
    MPI_CHECK(ad_backward(y) == AD_ERROR_STATE, "swept");
    mpi_check_error(AD_ERROR_STATE, "mpi_allreduce: its pullback failed: a sweep of one rank alone "
                                    "cannot pass it");
    MPI_CHECK(ad_create_graph(y, none, 1, &x, &d) == AD_ERROR_STATE, "recorded");
    mpi_check_error(AD_ERROR_STATE, "create_graph: mpi_allreduce is swept always");
    /* One rank has no loss of size 1: all are told. */
    const ad_tensor two = ad_leaf_copy(tape, AD_F64, 1, (int64_t[]){2}, (double[]){1, 2});
    MPI_CHECK(ad_mpi_backward(comm, tape, rank == size - 1 ? two : y) != AD_OK, "swept");
    if (rank == size - 1)
        mpi_check_error(AD_ERROR_SHAPE, "mpi_backward: its shape failed: the loss is f64 [2]");
    else
        mpi_check_error(AD_ERROR_STATE, "has failed before its sweep");
    /* And a sweep is possible still. */
    MPI_CHECK(ad_mpi_backward(comm, tape, y) == AD_OK, "%s", ad_tape_message(tape));
    /* An isend that was not waited for. */
    ad_mpi_request r, s;
    ad_mpi_irecv(comm, tape, AD_F64, 0, NULL, after(-1), 1, &r);
    ad_mpi_isend(comm, x, after(1), 1, &s);
    ad_tape_no_grad_begin(tape);
    ad_mpi_wait(&r);
    ad_mpi_wait(&s);
    ad_tape_no_grad_end(tape);
    MPI_CHECK(ad_mpi_backward(comm, tape, y) == AD_ERROR_STATE, "swept");
    mpi_check_error(AD_ERROR_STATE,
                    "mpi_isend: its pullback failed: no wait for it is on the tape");
    ad_tape_reset(tape);
}

int main(int argc, char **argv)
{
    mpi_begin(&argc, &argv, NULL);
    check_rows();
    check_ties();
    check_long();
    check_sweeps();
    check_rewinds();
    check_parts();
    if (!getenv("TAPESCOPE_MPI_CHECK")) { /* such errors end a checked communicator */
        check_refused();
        check_sweeps_refused();
    }
    return mpi_end();
}
