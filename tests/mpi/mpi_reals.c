/* mpi_reals.c: each call for arrays of real numbers against differences over all ranks: arrays as
 * long as they are on one rank alone, arrays of nothing, and each call's line where it is refused.
 */
#include <tapescope/ad_mpi_real.h>

#include "mpi_support.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 8 };

struct real_case {
    ad_mpi_op op;
    int root;
    int n; /* numbers of x */
};

static int after(int by)
{
    return (rank + by + 2 * size) % size;
}

/* This rank's part of the loss: other on each, and no symmetry of its numbers. */
static ad_real part(int64_t n, const ad_real *y)
{
    ad_real sum = ad_real_of(0);
    for (int64_t i = 0; i < n; i++)
        ad_set(&sum, ad_real_add(sum, ad_real_mul(0.5 + 0.125 * (double)i + rank,
                                                  ad_real_sin(ad_real_add(y[i], 0.25)))));
    return sum;
}

/* Of rank r: ranks 0, 3 and so on have none. */
static int64_t few(int r)
{
    return r % 3;
}

static int64_t few_of_all(int64_t *rows)
{
    int64_t all = 0;
    for (int r = 0; r < size; r++)
        all += rows[r] = few(r);
    return all;
}

/* What ranks r and s have for each other. */
static int64_t between_of_all(int64_t *rows)
{
    int64_t all = 0;
    for (int r = 0; r < size; r++)
        all += rows[r] = (rank + r) % 3;
    return all;
}

static const ad_real *of_root(const struct real_case *k, const ad_real *x)
{
    return rank == k->root ? x : NULL;
}

/* ---- from rank to rank ---- */

static ad_real ring(const ad_real *x, const struct real_case *k)
{
    ad_real y[MOST];
    const int64_t n = few(rank), m = few(after(-1));
    (void)k;
    if (rank % 2 == 0 || size == 1)
        ad_mpi_send_reals(comm, tape, n, x, after(1), 5);
    ad_mpi_recv_reals(comm, tape, m, y, after(-1), 5);
    if (rank % 2 == 1 && size > 1)
        ad_mpi_send_reals(comm, tape, n, x, after(1), 5);
    return part(m, y);
}

static ad_real sendrecv(const ad_real *x, const struct real_case *k)
{
    ad_real y[MOST], z[2];
    const int64_t m = few(after(-1));
    (void)k;
    ad_mpi_sendrecv_reals(comm, tape, few(rank), x, after(1), 1, m, y, after(-1), 1);
    /* One direction alone is empty. */
    ad_mpi_sendrecv_reals(comm, tape, rank == 0 ? 0 : 2, rank == 0 ? NULL : x + 3, after(1), 2,
                          after(-1) == 0 ? 0 : 2, after(-1) == 0 ? NULL : z, after(-1), 2);
    const ad_real a = part(m, y), b = part(after(-1) == 0 ? 0 : 2, z);
    return ad_real_of(ad_real_add(a, b));
}

static ad_real under_way(const ad_real *x, const struct real_case *k)
{
    ad_real y[MOST], z[MOST], w[MOST];
    ad_mpi_request r[5];
    (void)k;
    ad_mpi_irecv_reals(comm, tape, few(after(-1)), after(-1), 1, &r[0]);
    ad_mpi_isend_reals(comm, tape, few(rank), x, after(1), 1, &r[1]);
    ad_mpi_irecv_reals(comm, tape, 3, after(1), 2, &r[2]);
    ad_mpi_isend_reals(comm, tape, 3, x + 1, after(-1), 2, &r[3]);
    const ad_real meanwhile = part(6, x);
    ad_mpi_waitall_reals(tape, 4, r, (int64_t[]){few(after(-1)), 0, 3, 0},
                         (ad_real *[]){y, NULL, z, NULL});
    ad_mpi_isend_reals(comm, tape, 3, z, after(2), 3, &r[0]);
    ad_mpi_irecv_reals(comm, tape, 3, after(-2), 3, &r[4]);
    ad_mpi_wait_reals(&r[4], 3, w);
    ad_mpi_waitall_reals(tape, 1, r, NULL, NULL);
    const ad_real a = part(few(after(-1)), y), b = part(3, w);
    return ad_real_of(ad_real_mul(ad_real_add(meanwhile, a), b));
}

/* ---- among all ranks ---- */

static ad_real bcast(const ad_real *x, const struct real_case *k)
{
    ad_real y[3];
    ad_mpi_bcast_reals(comm, tape, 3, of_root(k, x), k->root, y);
    ad_mpi_bcast_reals(comm, tape, 3, y, size - 1 - k->root, y); /* in its place */
    return part(3, y);
}

static ad_real scatter(const ad_real *x, const struct real_case *k)
{
    ad_real y[2];
    ad_mpi_scatter_reals(comm, tape, 2, of_root(k, x), k->root, y);
    return part(2, y);
}

static ad_real scatterv(const ad_real *x, const struct real_case *k)
{
    ad_real y[MOST];
    int64_t rows[MOST];
    few_of_all(rows);
    ad_mpi_scatterv_reals(comm, tape, rows, of_root(k, x), k->root, y);
    return part(few(rank), y);
}

static ad_real gather(const ad_real *x, const struct real_case *k)
{
    ad_real y[2 * MOST];
    ad_mpi_gather_reals(comm, tape, 2, x, k->root, rank == k->root ? y : NULL);
    return part(rank == k->root ? 2 * size : 0, y);
}

static ad_real gatherv(const ad_real *x, const struct real_case *k)
{
    ad_real y[2 * MOST];
    int64_t rows[MOST];
    const int64_t all = few_of_all(rows);
    ad_mpi_gatherv_reals(comm, tape, rows, x, k->root, rank == k->root ? y : NULL);
    return part(rank == k->root ? all : 0, y);
}

static ad_real allgather(const ad_real *x, const struct real_case *k)
{
    ad_real y[2 * MOST];
    (void)k;
    ad_mpi_allgather_reals(comm, tape, 2, x, y);
    return part(2 * size, y);
}

static ad_real allgatherv(const ad_real *x, const struct real_case *k)
{
    ad_real y[2 * MOST];
    int64_t rows[MOST];
    const int64_t all = few_of_all(rows);
    (void)k;
    ad_mpi_allgatherv_reals(comm, tape, rows, x, y);
    return part(all, y);
}

static ad_real reduce(const ad_real *x, const struct real_case *k)
{
    ad_real y[4];
    ad_mpi_reduce_reals(comm, tape, 4, x, k->op, k->root, rank == k->root ? y : NULL);
    return part(rank == k->root ? 4 : 0, y);
}

static ad_real allreduce(const ad_real *x, const struct real_case *k)
{
    ad_real y[4];
    ad_mpi_allreduce_reals(comm, tape, 4, x, k->op, y);
    return part(4, y);
}

static ad_real reduce_scatter(const ad_real *x, const struct real_case *k)
{
    ad_real y[2];
    ad_mpi_reduce_scatter_reals(comm, tape, 2, x, k->op, y);
    return part(2, y);
}

static ad_real alltoall(const ad_real *x, const struct real_case *k)
{
    ad_real y[2 * MOST];
    (void)k;
    ad_mpi_alltoall_reals(comm, tape, 2, x, y);
    return part(2 * size, y);
}

static ad_real alltoallv(const ad_real *x, const struct real_case *k)
{
    ad_real y[2 * MOST];
    int64_t rows[MOST];
    const int64_t all = between_of_all(rows);
    (void)k;
    ad_mpi_alltoallv_reals(comm, tape, rows, x, rows, y);
    return part(all, y);
}

/* Each call with arrays of nothing. */
static ad_real empty(const ad_real *x, const struct real_case *k)
{
    const int64_t none[MOST] = {0};
    ad_mpi_request r[2];
    ad_mpi_sendrecv_reals(comm, tape, 0, NULL, after(1), 1, 0, NULL, after(-1), 1);
    ad_mpi_irecv_reals(comm, tape, 0, after(-1), 2, &r[0]);
    ad_mpi_isend_reals(comm, tape, 0, NULL, after(1), 2, &r[1]);
    ad_mpi_waitall_reals(tape, 2, r, none, (ad_real *[]){NULL, NULL});
    ad_mpi_bcast_reals(comm, tape, 0, NULL, k->root, NULL);
    ad_mpi_scatter_reals(comm, tape, 0, NULL, k->root, NULL);
    ad_mpi_scatterv_reals(comm, tape, none, NULL, k->root, NULL);
    ad_mpi_gather_reals(comm, tape, 0, NULL, k->root, NULL);
    ad_mpi_gatherv_reals(comm, tape, none, NULL, k->root, NULL);
    ad_mpi_allgather_reals(comm, tape, 0, NULL, NULL);
    ad_mpi_allgatherv_reals(comm, tape, none, NULL, NULL);
    ad_mpi_reduce_reals(comm, tape, 0, NULL, k->op, k->root, NULL);
    ad_mpi_allreduce_reals(comm, tape, 0, NULL, k->op, NULL);
    ad_mpi_reduce_scatter_reals(comm, tape, 0, NULL, k->op, NULL);
    ad_mpi_alltoall_reals(comm, tape, 0, NULL, NULL);
    ad_mpi_alltoallv_reals(comm, tape, none, NULL, none, NULL);
    return part(6, x);
}

/* Several after each other, statements between them. */
static ad_real through_all(const ad_real *x, const struct real_case *k)
{
    ad_real y[6], z[6], all[6 * MOST];
    for (int i = 0; i < 6; i++)
        ad_set(&y[i], ad_real_mul(x[i], ad_real_sin(x[5 - i])));
    ad_mpi_allreduce_reals(comm, tape, 6, y, k->op, z);
    ad_mpi_sendrecv_reals(comm, tape, 6, z, after(1), 1, 6, y, after(-1), 1);
    ad_mpi_allgather_reals(comm, tape, 6, y, all);
    for (int i = 0; i < 6 * size; i++)
        ad_set(&all[i], ad_real_mul(all[i], 0.5 + 0.0625 * i));
    ad_mpi_reduce_scatter_reals(comm, tape, 6, all, AD_MPI_SUM, y);
    ad_mpi_bcast_reals(comm, tape, 6, y, k->root, z);
    const ad_real a = part(6, y), b = part(6, z);
    return ad_real_of(ad_real_mul(a, b));
}

static const struct real_row {
    const char *name;
    ad_real (*function)(const ad_real *x, const struct real_case *k);
    bool by_op, by_root;
} table[] = {
    {"ring", ring, false, false},
    {"sendrecv", sendrecv, false, false},
    {"under way", under_way, false, false},
    {"bcast", bcast, false, true},
    {"scatter", scatter, false, true},
    {"scatterv", scatterv, false, true},
    {"gather", gather, false, true},
    {"gatherv", gatherv, false, true},
    {"allgather", allgather, false, false},
    {"allgatherv", allgatherv, false, false},
    {"reduce", reduce, true, true},
    {"allreduce", allreduce, true, false},
    {"reduce_scatter", reduce_scatter, true, false},
    {"alltoall", alltoall, false, false},
    {"alltoallv", alltoallv, false, false},
    {"empty", empty, true, true},
    {"through all", through_all, true, true},
};

/* ---- against differences ---- */

struct real_payload {
    const struct real_row *row;
    struct real_case k;
};

/* The row's function, of a tensor. */
static ad_tensor row_function(ad_tensor x, void *payload)
{
    const struct real_payload *p = payload;
    ad_real u[MPI_MOST];
    ad_tape_record_begin(tape);
    ad_reals_of_tensor(x, p->k.n, u);
    const ad_real loss = p->row->function(u, &p->k);
    const ad_tensor y = ad_tensor_of_reals(tape, 0, NULL, &loss);
    ad_tape_record_end(tape);
    return y;
}

static void check_rows(void)
{
    double x[MPI_MOST];
    uint64_t seed = 3 + (uint64_t)rank;
    const int n = 2 * size > 6 ? 2 * size : 6;
    char name[80];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int op = 0; op < (table[i].by_op ? 4 : 1); op++)
            for (int root = 0; root < (table[i].by_root ? size : 1); root += 2) {
                struct real_payload p = {&table[i], {(ad_mpi_op)op, size - 1 - root, n}};
                for (int j = 0; j < n; j++)
                    x[j] = mpi_random(&seed);
                if (op == AD_MPI_PROD && (rank == 0 || rank == size - 1))
                    x[1] = 0;
                snprintf(name, sizeof name, "%s op %d root %d", table[i].name, op, p.k.root);
                mpi_check_gradient(name, row_function, &p, n, x, 1e-6);
                mpi_check_fine(name);
            }
}

/* A loss that is a number, and none. */
static void check_sweeps(void)
{
    ad_real x, sum;
    double g = 0;
    ad_tape_reset(tape);
    ad_tape_record_begin(tape);
    ad_real_leaves(tape, 1, (double[]){1.5 + rank}, &x);
    ad_mpi_allreduce_reals(comm, tape, 1, &x, AD_MPI_SUM, &sum);
    for (int k = 0; k < 2; k++)
        MPI_CHECK(ad_mpi_backward_real(comm, tape, rank == 0 ? &sum : NULL) == AD_OK, "%s",
                  ad_tape_message(tape));
    MPI_CHECK(ad_real_gradients(tape, 1, &x, &g) == AD_OK && g == 2, "%g", g);
    ad_tape_record_end(tape);
    ad_tape_reset(tape);
}

/* A call that is refused names its own line. */
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        char at[40];                                                                               \
        (void)snprintf(at, sizeof at, "the call is at mpi_reals.c:%d", __LINE__);                  \
        MPI_CHECK((call) != AD_OK, "taken");                                                       \
        mpi_check_error(AD_ERROR_ARGUMENT, at);                                                    \
    } while (0)

static void check_lines(void)
{
    const ad_mpi_comm no = NULL;
    const int64_t rows[MOST] = {0};
    ad_real x[1] = {ad_real_of(1)}, y[1];
    ad_mpi_request r = {NULL};
    REFUSED(ad_mpi_send_reals(no, tape, 1, x, 0, 1));
    REFUSED(ad_mpi_recv_reals(no, tape, 1, y, 0, 1));
    REFUSED(ad_mpi_sendrecv_reals(no, tape, 1, x, 0, 1, 1, y, 0, 1));
    REFUSED(ad_mpi_isend_reals(no, tape, 1, x, 0, 1, &r));
    REFUSED(ad_mpi_irecv_reals(no, tape, 1, 0, 1, &r));
    REFUSED(ad_mpi_bcast_reals(no, tape, 1, x, 0, y));
    REFUSED(ad_mpi_scatter_reals(no, tape, 1, x, 0, y));
    REFUSED(ad_mpi_scatterv_reals(no, tape, rows, x, 0, y));
    REFUSED(ad_mpi_gather_reals(no, tape, 1, x, 0, y));
    REFUSED(ad_mpi_gatherv_reals(no, tape, rows, x, 0, y));
    REFUSED(ad_mpi_allgather_reals(no, tape, 1, x, y));
    REFUSED(ad_mpi_allgatherv_reals(no, tape, rows, x, y));
    REFUSED(ad_mpi_reduce_reals(no, tape, 1, x, AD_MPI_SUM, 0, y));
    REFUSED(ad_mpi_allreduce_reals(no, tape, 1, x, AD_MPI_SUM, y));
    REFUSED(ad_mpi_reduce_scatter_reals(no, tape, 1, x, AD_MPI_SUM, y));
    REFUSED(ad_mpi_alltoall_reals(no, tape, 1, x, y));
    REFUSED(ad_mpi_alltoallv_reals(no, tape, rows, x, rows, y));
    /* Rows that are not given. */
    REFUSED(ad_mpi_scatterv_reals(comm, tape, NULL, x, 0, y));
    REFUSED(ad_mpi_gatherv_reals(comm, tape, NULL, x, 0, y));
    REFUSED(ad_mpi_allgatherv_reals(comm, tape, NULL, x, y));
    REFUSED(ad_mpi_alltoallv_reals(comm, tape, NULL, x, rows, y));
    REFUSED(ad_mpi_alltoallv_reals(comm, tape, rows, x, NULL, y));
    /* What waits has no tape without a request. */
    (void)ad_mpi_wait_reals(&r, 1, y);
    MPI_CHECK(strstr(ad_tape_message((ad_tape){0, 0}), "mpi_reals.c:") != NULL, "%s",
              ad_tape_message((ad_tape){0, 0}));
}

int main(int argc, char **argv)
{
    mpi_begin(&argc, &argv, NULL);
    check_rows();
    check_sweeps();
    check_lines();
    return mpi_end();
}
