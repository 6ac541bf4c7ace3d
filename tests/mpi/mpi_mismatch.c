/* mpi_mismatch.c: ranks that do not do the same, on checked communicators: each is told before it
 * hangs, with both lines. On three ranks.
 */
#include "mpi_support.h"

#include <string.h>

static const ad_tensor none = {0, 0, 0, 0};
static ad_mpi_comm checked;
static ad_tensor x; /* [4] */

static void case_begin(double seconds)
{
    const double data[4] = {1, 2, 3, 4};
    const ad_mpi_options options = {.check = seconds == 0, .seconds = seconds};
    MPI_Barrier(MPI_COMM_WORLD);
    ad_tape_reset(tape);
    x = ad_leaf_copy(tape, AD_F64, 1, (int64_t[]){4}, data);
    MPI_CHECK(ad_mpi_init(&checked, MPI_COMM_WORLD, &options) == AD_OK, "%s",
              ad_tape_message((ad_tape){0, 0}));
}

/* The tape has an error with these words and so many lines of this file. */
static void case_end(const char *name, const char *words, int lines)
{
    const char *message = ad_tape_message(tape);
    int n = 0;
    for (const char *at = message; (at = strstr(at, "mpi_mismatch.c:")); at++)
        n++;
    MPI_CHECK(ad_tape_status(tape) != AD_OK && strstr(message, words) && n >= lines,
              "%s: %d lines, no \"%s\": %s", name, n, words, message);
    ad_tape_clear_error(tape);
    /* It takes no more, and says why. */
    ad_mpi_allreduce(checked, x, AD_MPI_SUM);
    MPI_CHECK(strstr(ad_tape_message(tape), "takes no more calls since"), "%s: %s", name,
              ad_tape_message(tape));
    ad_tape_clear_error(tape);
    MPI_Barrier(MPI_COMM_WORLD);
    ad_mpi_free(&checked);
}

static void nobody_receives(void)
{
    case_begin(0);
    if (rank == 0)
        ad_mpi_send(checked, x, 1, 5);
    MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(x)) != AD_OK, "swept");
    case_end("nobody receives",
             rank == 1 ? "no call has received what rank 0 sent with tag 5 by mpi_send" : "",
             rank == 1 ? 2 : 1);
}

static void other_collectives(void)
{
    case_begin(0);
    if (rank == 0)
        ad_mpi_allreduce(checked, x, AD_MPI_SUM);
    else
        ad_mpi_bcast(checked, x, 1);
    case_end("other collective calls",
             rank == 0 ? "has come to mpi_bcast at mpi_mismatch.c"
                       : "rank 0 has come to mpi_allreduce at mpi_mismatch.c",
             2);
}

static void receive_or_barrier(void)
{
    case_begin(0);
    if (rank == 0)
        ad_mpi_recv(checked, tape, AD_F64, 0, NULL, 1, 3);
    else
        ad_mpi_barrier(checked, tape);
    case_end("a receive and a barrier", rank == 0 ? "rank 1 has come to mpi_barrier" : "mpi_recv",
             2);
}

static void other_counts(void)
{
    case_begin(0);
    const int64_t two = 2;
    ad_tensor y = x;
    if (rank == 1)
        y = ad_leaf_copy(tape, AD_F64, 1, &two, (double[]){1, 2});
    ad_mpi_allreduce(checked, y, AD_MPI_SUM);
    case_end("other counts", rank == 1 ? "2 elements of f64, but of rank 0 4 of f64" : "rank 1", 2);
}

static void other_roots(void)
{
    case_begin(0);
    ad_mpi_reduce(checked, x, AD_MPI_SUM, rank == 2 ? 1 : 0);
    case_end("other roots", rank == 2 ? "op 0 and root 1, but of rank 0 op 0 and root 0" : "rank 2",
             2);
}

static void other_dtypes(void)
{
    case_begin(0);
    if (rank == 0)
        ad_mpi_send(checked, ad_cast(x, AD_F32), 1, 3);
    if (rank == 1)
        ad_mpi_recv(checked, tape, AD_F64, 1, (int64_t[]){2}, 0, 3);
    ad_mpi_barrier(checked, tape);
    case_end("other dtypes",
             rank == 1 ? "it receives 2 elements of f64, but mpi_send of rank 0 at mpi_mismatch.c"
                       : "rank 1 has failed",
             2);
}

static void two_receives(void)
{
    case_begin(0);
    if (rank < 2)
        ad_mpi_recv(checked, tape, AD_F64, 0, NULL, 1 - rank, 3);
    else
        ad_mpi_barrier(checked, tape);
    case_end("two receives", rank < 2 ? "mpi_recv at mpi_mismatch.c" : "", rank < 2 ? 2 : 1);
}

/* Nobody waits for him who waits for it: a cycle of three is found by time alone. */
static void three_receives(void)
{
    case_begin(1);
    ad_mpi_recv(checked, tape, AD_F64, 0, NULL, (rank + 1) % 3, 3);
    case_end("three receives", "mpi_recv at mpi_mismatch.c", 2);
}

static void other_sweeps(void)
{
    ad_tape other;
    case_begin(0);
    const ad_tensor a = ad_mpi_allreduce(checked, x, AD_MPI_SUM);
    ad_tape_create(&other, &(ad_tape_options){.budget_bytes = 1 << 22, .reserve_bytes = 1 << 22});
    const ad_tensor y = ad_leaf_copy(other, AD_F64, 1, (int64_t[]){4}, (double[]){4, 3, 2, 1});
    const ad_tensor b = ad_mpi_allreduce(checked, y, AD_MPI_SUM);
    if (rank == 0)
        MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(a)) != AD_OK, "swept");
    else
        MPI_CHECK(ad_mpi_backward(checked, other, ad_sum(b)) != AD_OK, "swept");
    if (rank > 0) { /* the message is the other tape's */
        MPI_CHECK(strstr(ad_tape_message(other), "collective call"), "%s", ad_tape_message(other));
        ad_tape_clear_error(other);
        ad_mpi_barrier(checked, tape);
    }
    ad_tape_destroy(other);
    case_end("other sweeps", rank == 0 ? "collective call 1 of its communicator" : "", 1);
}

static void swept_by_some(void)
{
    case_begin(0);
    const ad_mark mark = ad_tape_mark(tape);
    const ad_tensor y = ad_mpi_allreduce(checked, x, AD_MPI_SUM);
    ad_tensor loss = ad_sum(y);
    if (rank == 1) {
        ad_tape_rewind(tape, mark);
        loss = none;
    }
    const ad_status status = ad_mpi_backward(checked, tape, loss);
    MPI_CHECK(rank == 1 || status != AD_OK, "swept");
    ad_mpi_barrier(checked, tape);
    case_end("swept by some", rank == 1 ? "the sweep of mpi_allreduce" : "mpi_barrier", 2);
}

static ad_status copy(ad_custom_call *c, void *payload)
{
    (void)payload;
    memcpy(c->out[0].data, c->in[0].data, (size_t)c->in[0].size * sizeof(double));
    return AD_OK;
}

static ad_status refuse(ad_custom_call *c, void *payload)
{
    (void)payload;
    strcpy(c->message, "it will not");
    return AD_ERROR_STATE;
}

/* An op that is no message fails on one rank, which comes to its sweep: who waits for its message
 * is told why it does not come. */
static void an_op_fails(void)
{
    static const ad_custom_rule rule = {.name = "stubborn", .forward = refuse, .pullback = copy};
    case_begin(20);
    ad_tensor y = x;
    if (rank == 1)
        ad_custom(tape, &rule, NULL, 1, &x, 1, &y);
    const ad_tensor sum = ad_mpi_allreduce(checked, y, AD_MPI_SUM);
    MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(sum)) != AD_OK, "swept");
    case_end("an op fails",
             rank == 1 ? "stubborn: its forward failed: it will not; the call is at"
                       : " in an_op_fails: stubborn: its forward failed: it will not",
             1);
}

/* An op that is no message fails in one rank's sweep: who waits for that rank's adjoint is told, by
 * the sweep's line, long before it has waited too long. */
static void sweep_fails(void)
{
    static const ad_custom_rule rule = {.name = "stubborn", .forward = copy, .pullback = refuse};
    case_begin(20);
    const ad_tensor sum = ad_mpi_allreduce(checked, x, AD_MPI_SUM);
    ad_tensor y = sum;
    if (rank == 1)
        ad_custom(tape, &rule, NULL, 1, &sum, 1, &y);
    MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(y)) != AD_OK, "swept");
    case_end("a sweep fails",
             rank == 1 ? "stubborn: its pullback failed: it will not"
                       : "rank 1 has failed: mpi_backward at mpi_mismatch.c",
             rank == 1 ? 1 : 2);
}

/* Rank 1 averages a tensor of another shape, fewer, or none. */
static void other_averages(void)
{
    const int64_t three = 3;
    case_begin(0);
    ad_tensor w[2] = {x, x};
    if (rank == 1)
        w[1] = ad_leaf_copy(tape, AD_F32, 1, &three, (float[]){1, 2, 3});
    ad_mpi_average_gradients(checked, w, 2);
    case_end("other shapes are averaged",
             rank == 0   ? "it is of 2 tensors, f64 [4], f64 [4], but of rank 1 at mpi_mismatch.c"
             : rank == 1 ? " of 2 tensors, f64 [4], f64 [4]; the call is at"
                         : " of 2 tensors, f64 [4], f32 [3]; the call is at",
             2);
    case_begin(0);
    w[0] = w[1] = x;
    ad_mpi_average_gradients(checked, w, rank == 1 ? 1 : 2);
    case_end("fewer are averaged",
             rank == 1 ? "it is of 1 tensor, f64 [4], but of rank 0 at" : " of 1 tensor, f64 [4]",
             2);
    case_begin(0);
    if (rank != 1)
        ad_mpi_average_gradients(checked, &x, 1);
    MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(x)) != AD_OK, "swept");
    case_end("one rank averages none",
             rank == 1 ? "rank 0 has come to mpi_average_gradients at mpi_mismatch.c"
                       : "rank 1 has come to mpi_backward at mpi_mismatch.c",
             2);
}

/* What rank 1 cannot average is told to the others; and who fails in a sweep, while they wait for
 * averages. */
static void averages_fail(void)
{
    static const ad_custom_rule rule = {.name = "stubborn", .forward = copy, .pullback = refuse};
    case_begin(20);
    const ad_tensor no_leaf = ad_exp(x);
    ad_mpi_average_gradients(checked, rank == 1 ? &no_leaf : &x, 1);
    case_end("one is no leaf",
             rank == 1 ? "in[0] is no leaf" : "rank 1 has failed: mpi_average_gradients at", 1);
    case_begin(20);
    ad_mpi_average_gradients(checked, &x, 1);
    ad_tensor y = x;
    if (rank == 1)
        ad_custom(tape, &rule, NULL, 1, &x, 1, &y);
    MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(y)) != AD_OK, "swept");
    case_end("a sweep that averages fails",
             rank == 1 ? "stubborn: its pullback failed: it will not"
                       : "rank 1 has failed: mpi_backward at mpi_mismatch.c",
             rank == 1 ? 1 : 2);
}

/* And what is right passes. */
static void right(void)
{
    double g[4];
    case_begin(20);
    ad_mpi_request s, r;
    const int64_t four = 4;
    ad_mpi_irecv(checked, tape, AD_F64, 1, &four, (rank + 2) % 3, 1, &r);
    ad_mpi_isend(checked, x, (rank + 1) % 3, 1, &s);
    const ad_tensor sum = ad_mpi_allreduce(checked, x, AD_MPI_SUM);
    const ad_tensor y = ad_mpi_wait(&r);
    ad_mpi_wait(&s);
    MPI_CHECK(ad_mpi_backward(checked, tape, ad_sum(ad_mul(y, sum))) == AD_OK, "%s",
              ad_tape_message(tape));
    /* Each rank's loss is sum of 3 x x: by its own x 3 x from the next, and 3 x from the sums. */
    MPI_CHECK(ad_gradient(x, g, 4) == AD_OK && g[0] == 6 && g[3] == 24, "%g %g", g[0], g[3]);
    ad_mpi_free(&checked);
}

int main(int argc, char **argv)
{
    mpi_begin(&argc, &argv, NULL);
    right();
    nobody_receives();
    other_collectives();
    receive_or_barrier();
    other_counts();
    other_roots();
    other_dtypes();
    two_receives();
    three_receives();
    other_sweeps();
    swept_by_some();
    an_op_fails();
    sweep_fails();
    other_averages();
    averages_fail();
    return mpi_end();
}
