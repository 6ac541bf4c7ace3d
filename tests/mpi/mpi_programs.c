/* mpi_programs.c: random programs of messages against their serial twins: one tape that has what
 * all ranks have, by ops without messages. Values and gradients agree. Each rank takes each step
 * with tensors or with arrays of numbers, whatever the others do: messages are the same.
 *
 *     mpi_tests programs COUNT FIRST-SEED
 */
#include <tapescope/ad_mpi_real.h>

#include "mpi_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 3, MOST_RANKS = 8, MOST_STEPS = 24, MOST_FLYING = 4 };

enum step_sort {
    STEP_LOCAL,
    STEP_SEND,
    STEP_SENDRECV,
    STEP_BEGIN,
    STEP_WAIT,
    STEP_BCAST,
    STEP_SCATTER,
    STEP_GATHER,
    STEP_ALLGATHER,
    STEP_REDUCE,
    STEP_ALLREDUCE,
    STEP_REDUCE_SCATTER,
    STEP_ALLTOALL,
    STEP_BARRIER,
    STEPS
};

struct program_step {
    int sort, a, b, by, tag;
    ad_mpi_op op;
    int reals; /* bit r: rank r takes it with numbers */
};

struct program {
    int n, losses; /* bit r: rank r has a loss */
    struct program_step step[MOST_STEPS];
};

/* What is known of the ranks' tensors: on a twin of all, else of this one. */
struct world {
    ad_tape tape;
    bool twin;
    ad_tensor x[MOST_RANKS];
    ad_tensor flying[MOST_FLYING]; /* the twin's */
    ad_mpi_request sent[MOST_FLYING], came[MOST_FLYING];
};

static int choose(uint64_t *seed, int n)
{
    return (int)((mpi_random(seed) + 1) / 2 * n) % n;
}

static struct program program_make(uint64_t seed)
{
    struct program p = {0};
    int flying[MOST_FLYING][2], n_flying = 0; /* whose wait is to come: the step's slot */
    bool used[MOST_FLYING] = {false};
    p.losses = 1 + choose(&seed, (1 << size) - 1);
    const int wanted = 4 + choose(&seed, 12);
    for (int k = 0; k < wanted || n_flying > 0; k++) {
        struct program_step *s = &p.step[p.n++];
        s->sort = k < wanted ? choose(&seed, STEPS) : STEP_WAIT;
        s->a = choose(&seed, size);
        s->b = choose(&seed, size);
        s->by = choose(&seed, size);
        s->tag = choose(&seed, 3);
        s->op = (ad_mpi_op)choose(&seed, 4);
        s->reals = choose(&seed, 1 << size);
        if (s->sort == STEP_BEGIN && n_flying == MOST_FLYING)
            s->sort = STEP_LOCAL;
        if (s->sort == STEP_WAIT && n_flying == 0)
            s->sort = STEP_LOCAL;
        if (s->sort == STEP_BEGIN) {
            int slot = 0;
            while (used[slot])
                slot++;
            used[slot] = true;
            s->by = slot;
            s->tag = 10 + slot; /* or the messages of a pair would change places */
            flying[n_flying][0] = p.n - 1;
            n_flying++;
        }
        if (s->sort == STEP_WAIT) {
            const int which = choose(&seed, n_flying);
            const struct program_step *begun = &p.step[flying[which][0]];
            s->a = begun->a;
            s->b = begun->b;
            s->by = begun->by;
            used[begun->by] = false;
            n_flying--;
            flying[which][0] = flying[n_flying][0];
        }
    }
    return p;
}

static double row_weight(int r)
{
    return 0.5 + 0.25 * r;
}

static double sum_weight(int r)
{
    return 1 - 0.125 * r;
}

/* [size, n] of x [n], rows of other weights. */
static ad_tensor rows_of(ad_tape on, ad_tensor x)
{
    double weight[MOST_RANKS];
    for (int r = 0; r < size; r++)
        weight[r] = row_weight(r);
    const ad_tensor w = ad_detach(ad_leaf_copy(on, AD_F64, 2, (int64_t[]){size, 1}, weight));
    return ad_mul(w, ad_reshape(x, (int64_t[]){1, N}, 2));
}

/* [n] of rows [size, n]. */
static ad_tensor rows_sum(ad_tape on, ad_tensor rows)
{
    double weight[MOST_RANKS];
    for (int r = 0; r < size; r++)
        weight[r] = sum_weight(r);
    const ad_tensor w = ad_detach(ad_leaf_copy(on, AD_F64, 2, (int64_t[]){1, size}, weight));
    return ad_reshape(ad_matmul(w, rows), (int64_t[]){N}, 1);
}

static ad_tensor row_of(ad_tensor rows, int r)
{
    return ad_reshape(ad_slice(rows, 0, r, r + 1, 1), (int64_t[]){N}, 1);
}

static ad_tensor joined(const ad_tensor *x)
{
    ad_tensor row[MOST_RANKS];
    for (int r = 0; r < size; r++)
        row[r] = ad_reshape(x[r], (int64_t[]){1, N}, 2);
    return ad_concat(row, size, 0);
}

static ad_tensor reduced(const ad_tensor *x, ad_mpi_op op)
{
    const int64_t axis = 0;
    const ad_tensor all = joined(x);
    return op == AD_MPI_SUM    ? ad_sum_axes(all, &axis, 1, 0)
           : op == AD_MPI_PROD ? ad_prod_axes(all, &axis, 1, 0)
           : op == AD_MPI_MIN  ? ad_min_axes(all, &axis, 1, 0)
                               : ad_max_axes(all, &axis, 1, 0);
}

/* The tensor of rank r takes part in what has come to it. */
static void mix(struct world *w, int r, ad_tensor y)
{
    w->x[r] = ad_add(ad_scale(ad_sin(w->x[r]), 0.75), ad_scale(ad_sin(y), 0.5));
}

static void step_twin(struct world *w, const struct program_step *s)
{
    ad_tensor y[MOST_RANKS], rows[MOST_RANKS];
    bool has[MOST_RANKS] = {false};
    for (int r = 0; r < size; r++) {
        y[r] = w->x[r];
        has[r] = s->sort >= STEP_ALLGATHER && s->sort != STEP_REDUCE && s->sort != STEP_BARRIER;
    }
    switch (s->sort) {
    case STEP_LOCAL:
        for (int r = 0; r < size; r++)
            w->x[r] = ad_add(ad_sin(w->x[r]), ad_scale(w->x[r], 0.125 * (s->a + 1)));
        break;
    case STEP_SEND:
        y[s->b] = w->x[s->a];
        has[s->b] = true;
        break;
    case STEP_SENDRECV:
        for (int r = 0; r < size; r++) {
            y[r] = w->x[(r - s->by + size) % size];
            has[r] = true;
        }
        break;
    case STEP_BEGIN:
        w->flying[s->by] = w->x[s->a];
        break;
    case STEP_WAIT:
        y[s->b] = w->flying[s->by];
        has[s->b] = true;
        break;
    case STEP_BCAST:
        for (int r = 0; r < size; r++) {
            y[r] = w->x[s->a];
            has[r] = true;
        }
        break;
    case STEP_SCATTER:
        rows[0] = rows_of(w->tape, w->x[s->a]);
        for (int r = 0; r < size; r++) {
            y[r] = row_of(rows[0], r);
            has[r] = true;
        }
        break;
    case STEP_GATHER:
        y[s->a] = rows_sum(w->tape, joined(w->x));
        has[s->a] = true;
        break;
    case STEP_ALLGATHER:
        y[0] = rows_sum(w->tape, joined(w->x));
        break;
    case STEP_REDUCE:
        y[s->a] = reduced(w->x, s->op);
        has[s->a] = true;
        break;
    case STEP_ALLREDUCE:
        y[0] = reduced(w->x, s->op);
        break;
    case STEP_REDUCE_SCATTER:
    case STEP_ALLTOALL:
        for (int r = 0; r < size; r++)
            rows[r] = rows_of(w->tape, w->x[r]);
        for (int r = 0; r < size; r++) {
            ad_tensor own[MOST_RANKS];
            for (int q = 0; q < size; q++)
                own[q] = row_of(rows[q], r);
            y[r] = s->sort == STEP_ALLTOALL ? rows_sum(w->tape, joined(own)) : reduced(own, s->op);
        }
        break;
    default:
        break;
    }
    if (s->sort == STEP_ALLGATHER || s->sort == STEP_ALLREDUCE)
        for (int r = 1; r < size; r++)
            y[r] = y[0];
    for (int r = 0; r < size; r++)
        if (has[r])
            mix(w, r, y[r]);
}

static void step_rank(struct world *w, const struct program_step *s)
{
    const int64_t shape[1] = {N};
    const ad_tensor x = w->x[rank];
    switch (s->sort) {
    case STEP_LOCAL:
        w->x[rank] = ad_add(ad_sin(x), ad_scale(x, 0.125 * (s->a + 1)));
        break;
    case STEP_SEND:
        if (rank == s->a)
            ad_mpi_send(comm, x, s->b, s->tag);
        if (rank == s->b)
            mix(w, rank, ad_mpi_recv(comm, tape, AD_F64, 1, shape, s->a, s->tag));
        break;
    case STEP_SENDRECV:
        mix(w, rank,
            ad_mpi_sendrecv(comm, x, (rank + s->by) % size, s->tag, AD_F64, 1, shape,
                            (rank - s->by + size) % size, s->tag));
        break;
    case STEP_BEGIN:
        if (rank == s->b)
            ad_mpi_irecv(comm, tape, AD_F64, 1, shape, s->a, s->tag, &w->came[s->by]);
        if (rank == s->a)
            ad_mpi_isend(comm, x, s->b, s->tag, &w->sent[s->by]);
        break;
    case STEP_WAIT:
        if (rank == s->a)
            ad_mpi_wait(&w->sent[s->by]);
        if (rank == s->b)
            mix(w, rank, ad_mpi_wait(&w->came[s->by]));
        break;
    case STEP_BCAST:
        mix(w, rank, ad_mpi_bcast(comm, x, s->a));
        break;
    case STEP_SCATTER:
        mix(w, rank,
            ad_mpi_scatter(comm, tape, rank == s->a ? rows_of(tape, x) : x, AD_F64, 1, shape,
                           s->a));
        break;
    case STEP_GATHER: {
        const ad_tensor all = ad_mpi_gather(comm, x, s->a);
        if (rank == s->a)
            mix(w, rank, rows_sum(tape, all));
        break;
    }
    case STEP_ALLGATHER:
        mix(w, rank, rows_sum(tape, ad_mpi_allgather(comm, x)));
        break;
    case STEP_REDUCE: {
        const ad_tensor all = ad_mpi_reduce(comm, x, s->op, s->a);
        if (rank == s->a)
            mix(w, rank, all);
        break;
    }
    case STEP_ALLREDUCE:
        mix(w, rank, ad_mpi_allreduce(comm, x, s->op));
        break;
    case STEP_REDUCE_SCATTER:
        mix(w, rank, ad_mpi_reduce_scatter(comm, rows_of(tape, x), s->op));
        break;
    case STEP_ALLTOALL:
        mix(w, rank, rows_sum(tape, ad_mpi_alltoall(comm, rows_of(tape, x))));
        break;
    case STEP_BARRIER:
        ad_mpi_barrier(comm, tape);
        break;
    default:
        break;
    }
}

/* The same with numbers. */
static void reals_rows_of(const ad_real *x, ad_real *rows)
{
    for (int k = 0; k < size * N; k++)
        ad_set(&rows[k], ad_real_mul(row_weight(k / N), x[k % N]));
}

static void reals_rows_sum(const ad_real *rows, ad_real *y)
{
    for (int i = 0; i < N; i++) {
        ad_set(&y[i], ad_real_mul(sum_weight(0), rows[i]));
        for (int r = 1; r < size; r++)
            ad_set(&y[i], ad_real_add(y[i], ad_real_mul(sum_weight(r), rows[r * N + i])));
    }
}

/* A step from rank to rank. False: nothing has come to this one. */
static bool reals_letter(struct world *w, const struct program_step *s, const ad_real *x,
                         ad_real *y)
{
    switch (s->sort) {
    case STEP_SEND:
        if (rank == s->a)
            ad_mpi_send_reals(comm, tape, N, x, s->b, s->tag);
        if (rank == s->b)
            ad_mpi_recv_reals(comm, tape, N, y, s->a, s->tag);
        return rank == s->b;
    case STEP_SENDRECV:
        ad_mpi_sendrecv_reals(comm, tape, N, x, (rank + s->by) % size, s->tag, N, y,
                              (rank - s->by + size) % size, s->tag);
        return true;
    case STEP_BEGIN:
        if (rank == s->b)
            ad_mpi_irecv_reals(comm, tape, N, s->a, s->tag, &w->came[s->by]);
        if (rank == s->a)
            ad_mpi_isend_reals(comm, tape, N, x, s->b, s->tag, &w->sent[s->by]);
        return false;
    default: {
        const int64_t n[1] = {N};
        if (rank == s->a)
            ad_mpi_waitall_reals(tape, 1, &w->sent[s->by], NULL, NULL);
        if (rank == s->b)
            ad_mpi_waitall_reals(tape, 1, &w->came[s->by], n, (ad_real *[]){y});
        return rank == s->b;
    }
    }
}

static void step_reals(struct world *w, const struct program_step *s)
{
    const int64_t shape[1] = {N};
    ad_real x[N], y[N], rows[MOST_RANKS * N], come[MOST_RANKS * N];
    bool has = true;
    ad_reals_of_tensor(w->x[rank], N, x);
    reals_rows_of(x, rows);
    switch (s->sort) {
    case STEP_LOCAL:
        for (int i = 0; i < N; i++)
            ad_set(&y[i], ad_real_add(ad_real_sin(x[i]), ad_real_mul(0.125 * (s->a + 1), x[i])));
        w->x[rank] = ad_tensor_of_reals(tape, 1, shape, y);
        return;
    case STEP_SEND:
    case STEP_SENDRECV:
    case STEP_BEGIN:
    case STEP_WAIT:
        has = reals_letter(w, s, x, y);
        break;
    case STEP_BCAST:
        ad_mpi_bcast_reals(comm, tape, N, rank == s->a ? x : NULL, s->a, y);
        break;
    case STEP_SCATTER:
        ad_mpi_scatter_reals(comm, tape, N, rank == s->a ? rows : NULL, s->a, y);
        break;
    case STEP_GATHER:
        ad_mpi_gather_reals(comm, tape, N, x, s->a, come);
        has = rank == s->a;
        if (has)
            reals_rows_sum(come, y);
        break;
    case STEP_ALLGATHER:
        ad_mpi_allgather_reals(comm, tape, N, x, come);
        reals_rows_sum(come, y);
        break;
    case STEP_REDUCE:
        ad_mpi_reduce_reals(comm, tape, N, x, s->op, s->a, y);
        has = rank == s->a;
        break;
    case STEP_ALLREDUCE:
        ad_mpi_allreduce_reals(comm, tape, N, x, s->op, y);
        break;
    case STEP_REDUCE_SCATTER:
        ad_mpi_reduce_scatter_reals(comm, tape, N, rows, s->op, y);
        break;
    case STEP_ALLTOALL:
        ad_mpi_alltoall_reals(comm, tape, N, rows, come);
        reals_rows_sum(come, y);
        break;
    default:
        ad_mpi_barrier(comm, tape);
        has = false;
        break;
    }
    if (has)
        mix(w, rank, ad_tensor_of_reals(tape, 1, shape, y));
}

static ad_tensor loss_of(ad_tensor x, int r)
{
    return ad_scale(ad_sum(ad_sin(ad_add(x, ad_square(x)))), 1 + 0.5 * r);
}

static void program_check(uint64_t seed, ad_tape twin_tape)
{
    const struct program p = program_make(seed);
    const int64_t shape[1] = {N};
    struct world own = {.tape = tape}, twin = {.tape = twin_tape, .twin = true};
    ad_tensor leaf[MOST_RANKS], sum = {0, 0, 0, 0};
    double start[MOST_RANKS][N], g[N], h[N], v[N], u[N];
    ad_tape_reset(tape);
    ad_tape_reset(twin_tape);
    ad_tape_record_begin(tape);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < N; i++)
            start[r][i] = mpi_random(&seed);
        leaf[r] = twin.x[r] = ad_leaf_copy(twin_tape, AD_F64, 1, shape, start[r]);
    }
    const ad_tensor x = ad_leaf_copy(tape, AD_F64, 1, shape, start[rank]);
    own.x[rank] = x;
    for (int k = 0; k < p.n; k++) {
        if (p.step[k].reals >> rank & 1)
            step_reals(&own, &p.step[k]);
        else
            step_rank(&own, &p.step[k]);
        step_twin(&twin, &p.step[k]);
    }
    const bool has = p.losses >> rank & 1;
    const ad_tensor loss = has ? loss_of(own.x[rank], rank) : (ad_tensor){0, 0, 0, 0};
    MPI_CHECK(ad_mpi_backward(comm, tape, loss) == AD_OK, "%s", ad_tape_message(tape));
    for (int r = 0; r < size; r++)
        if (p.losses >> r & 1)
            sum = sum.tape ? ad_add(sum, loss_of(twin.x[r], r)) : loss_of(twin.x[r], r);
    MPI_CHECK(ad_backward(sum) == AD_OK, "%s", ad_tape_message(twin_tape));
    if (ad_gradient(x, g, N) != AD_OK || ad_gradient(leaf[rank], h, N) != AD_OK ||
        ad_value(own.x[rank], v, N) != AD_OK || ad_value(twin.x[rank], u, N) != AD_OK)
        MPI_CHECK(false, "%s %s", ad_tape_message(tape), ad_tape_message(twin_tape));
    ad_tape_record_end(tape);
    for (int i = 0; i < N; i++)
        MPI_CHECK(fabs(v[i] - u[i]) <= 1e-12 * (1 + fabs(u[i])) &&
                      fabs(g[i] - h[i]) <= 1e-10 * (1 + fabs(h[i])),
                  "element %d: %.15g, twin %.15g; gradient %.15g, twin %.15g", i, v[i], u[i], g[i],
                  h[i]);
}

int main(int argc, char **argv)
{
    ad_tape twin;
    const int n = argc > 1 ? atoi(argv[1]) : 20;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    mpi_begin(&argc, &argv, NULL);
    ad_tape_create(&twin, &(ad_tape_options){.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20});
    for (int k = 0; k < n; k++) {
        const int before = failures;
        program_check((first + (uint64_t)k) * 7919, twin);
        if (failures > before)
            fprintf(stderr, "program %llu of %d ranks\n", (unsigned long long)first + (unsigned)k,
                    size);
    }
    ad_tape_destroy(twin);
    return mpi_end();
}
