/* mpi_averages.c: averaged gradients against sums in the order that is promised, bit for bit, over
 * dtypes, shapes and sizes of buckets; that buckets leave while the sweep goes on; and each way to
 * be wrong.
 */
#include "mpi_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the library sends, in which order ---- */

static char events[400];

static void event(const char *what)
{
    if (strlen(events) + strlen(what) + 2 < sizeof events) {
        strcat(events, what);
        strcat(events, " ");
    }
}

/* The library's calls come here. */
__attribute__((visibility("default"))) int MPI_Ialltoallv(const void *from, const int *count,
                                                          const int *offset, MPI_Datatype type,
                                                          void *to, const int *received,
                                                          const int *at, MPI_Datatype to_type,
                                                          MPI_Comm on, MPI_Request *request)
{
    char text[32];
    int n = 0;
    for (int r = 0; r < size; r++)
        n += count[r];
    (void)snprintf(text, sizeof text, "sends%d", n);
    event(text);
    return PMPI_Ialltoallv(from, count, offset, type, to, received, at, to_type, on, request);
}

/* ---- a model ---- */

enum { TENSORS = 6, MOST = 300 };

struct shape_of {
    int rank;
    int64_t extent[3];
};

static const struct shape_of shapes[TENSORS] = {{1, {5}}, {0, {0}},        {2, {3, 4}},
                                                {1, {0}}, {3, {2, 3, 50}}, {1, {7}}};

static int64_t elements(const struct shape_of *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->extent[i];
    return n;
}

/* What rank r's gradient of tensor k is: it is used once with this, and a second time if k is odd,
 * with 0.5; rank 1 does not use tensor 2. */
static double coefficient(int r, int k, int i)
{
    uint64_t seed = 1 + 1000 * (uint64_t)k + 7919 * (uint64_t)i + (uint64_t)r;
    mpi_random(&seed);
    return mpi_random(&seed);
}

static bool uses(int r, int k)
{
    return k != 2 || r != 1;
}

struct model {
    ad_dtype dtype;
    ad_tensor w[TENSORS];
    double data[TENSORS][MOST], factor[TENSORS][MOST]; /* room for either dtype */
};

static void store(ad_dtype dtype, void *to, int64_t i, double x)
{
    if (dtype == AD_F32)
        ((float *)to)[i] = (float)x;
    else
        ((double *)to)[i] = x;
}

static void model_begin(struct model *m, ad_dtype dtype)
{
    m->dtype = dtype;
    for (int k = 0; k < TENSORS; k++) {
        for (int64_t i = 0; i < elements(&shapes[k]); i++) {
            store(dtype, m->data[k], i, 1);
            store(dtype, m->factor[k], i, coefficient(rank, k, (int)i));
        }
        m->w[k] = ad_leaf(tape, dtype, shapes[k].rank, shapes[k].extent, m->data[k]);
    }
}

static ad_tensor model_loss(struct model *m)
{
    ad_tensor loss = m->dtype == AD_F32 ? ad_scalar_f32(tape, 0) : ad_scalar_f64(tape, 0);
    for (int k = 0; k < TENSORS; k++) {
        const ad_tensor c =
            ad_constant(tape, m->dtype, shapes[k].rank, shapes[k].extent, m->factor[k]);
        if (uses(rank, k))
            loss = ad_add(loss, ad_sum(ad_mul(m->w[k], c)));
        if (k % 2)
            loss = ad_add(loss, ad_scale(ad_sum(m->w[k]), 0.5));
    }
    return loss;
}

/* The balanced tree over the ranks of what is there before and one sweep brings. */
#define EXPECTED(type, name)                                                                       \
    static type name(int k, int i, type before)                                                    \
    {                                                                                              \
        type x[8];                                                                                 \
        for (int r = 0; r < size; r++) {                                                           \
            x[r] = before + (type)(k % 2 ? 0.5 : 0); /* the last use comes first */                \
            x[r] += (type)(uses(r, k) ? coefficient(r, k, i) : 0);                                 \
        }                                                                                          \
        for (int step = 1; step < size; step *= 2)                                                 \
            for (int r = 0; r + step < size; r += 2 * step)                                        \
                x[r] += x[r + step];                                                               \
        return x[0] / (type)size;                                                                  \
    }
EXPECTED(float, expected_f32)
EXPECTED(double, expected_f64)

/* Compares all gradients; `before` has those of the sweep before, and receives these. */
static void check_averages(struct model *m, const char *what, double before[TENSORS][MOST])
{
    for (int k = 0; k < TENSORS; k++) {
        double g[MOST];
        const int64_t n = elements(&shapes[k]);
        MPI_CHECK(ad_gradient(m->w[k], (void *)g, n) == AD_OK, "%s: %s", what,
                  ad_tape_message(tape));
        for (int i = 0; i < (int)n; i++) {
            const double found = m->dtype == AD_F32 ? (double)((float *)(void *)g)[i] : g[i];
            const double wanted = m->dtype == AD_F32
                                      ? (double)expected_f32(k, i, (float)before[k][i])
                                      : expected_f64(k, i, before[k][i]);
            MPI_CHECK(found == wanted, "%s: tensor %d [%d]: %.17g, not %.17g", what, k, i, found,
                      wanted);
            before[k][i] = found;
        }
    }
}

static void averages_are_those_of_the_tree(ad_dtype dtype, size_t bucket)
{
    static struct model m;
    static double before[TENSORS][MOST];
    char what[64];
    ad_mpi_comm own;
    (void)snprintf(what, sizeof what, "%s in buckets of %zu", dtype == AD_F32 ? "f32" : "f64",
                   bucket);
    memset(before, 0, sizeof before);
    MPI_CHECK(ad_mpi_init(&own, MPI_COMM_WORLD, &(ad_mpi_options){.bucket_bytes = bucket}) == AD_OK,
              "%s", what);
    ad_tape_reset(tape);
    model_begin(&m, dtype);
    MPI_CHECK(ad_mpi_average_gradients(own, m.w, TENSORS) == AD_OK, "%s", ad_tape_message(tape));
    const ad_mark mark = ad_tape_mark(tape);
    ad_tensor loss = model_loss(&m);
    MPI_CHECK(ad_mpi_backward(own, tape, loss) == AD_OK, "%s: %s", what, ad_tape_message(tape));
    check_averages(&m, what, before);
    /* A second sweep adds to what stands there. */
    MPI_CHECK(ad_mpi_backward(own, tape, loss) == AD_OK, "%s: %s", what, ad_tape_message(tape));
    check_averages(&m, "a second sweep", before);
    /* A rewind to behind the call leaves it. */
    ad_tape_rewind(tape, mark);
    memset(before, 0, sizeof before);
    loss = model_loss(&m);
    MPI_CHECK(ad_mpi_backward(own, tape, loss) == AD_OK, "%s: %s", what, ad_tape_message(tape));
    check_averages(&m, "behind a rewind", before);
    /* The tape's other gradients are this rank's own. */
    ad_mpi_free(&own);
}

/* ---- overlap ---- */

static ad_status passed(const ad_custom_array *adjoint, void *payload)
{
    (void)adjoint;
    event(payload);
    return AD_OK;
}

/* Four layers, each bucket of which has one layer's weight: it goes out as soon as the sweep has
 * passed the layer, before the one in front is swept. */
static void buckets_leave_while_the_sweep_goes_on(void)
{
    static char *const name[4] = {"h0", "h1", "h2", "h3"};
    ad_mpi_comm own;
    double data[4][10] = {{0}};
    ad_tensor w[4];
    ad_mpi_init(&own, MPI_COMM_WORLD, &(ad_mpi_options){.bucket_bytes = 8});
    ad_tape_reset(tape);
    for (int l = 0; l < 4; l++) {
        const int64_t n = 5 + l;
        w[l] = ad_leaf(tape, AD_F64, 1, &n, data[l]);
    }
    ad_mpi_average_gradients(own, w, 4);
    ad_tensor h = ad_scalar_f64(tape, 1);
    for (int l = 0; l < 4; l++) {
        h = ad_add(ad_sum(w[l]), h);
        ad_on_adjoint(h, passed, name[l]);
    }
    events[0] = 0;
    MPI_CHECK(ad_mpi_backward(own, tape, h) == AD_OK, "%s", ad_tape_message(tape));
    if (size > 1 && !getenv("TAPESCOPE_MPI_CHECK"))
        MPI_CHECK(strcmp(events, "h3 sends8 h2 sends7 h1 sends6 h0 sends5 ") == 0, "%s", events);
    ad_mpi_free(&own);
}

/* ---- memory ---- */

/* Buckets are twice the gradients, of one rank nothing: in a budget that has as much they fit, and
 * in one that has less the sweep says so on every rank. */
static void buckets_count_as_the_tapes_memory(void)
{
    enum { N = 40000 };
    static double data[N];
    const int64_t n = N;
    uint64_t peak[2];
    for (int averaged = 0; averaged < 3; averaged++) {
        const ad_tape before = tape;
        const uint64_t budget = averaged == 2 && size > 1 ? peak[1] - 8 * N : 16 << 20;
        ad_mpi_comm own;
        ad_stats stats;
        ad_mpi_init(&own, MPI_COMM_WORLD, &(ad_mpi_options){.bucket_bytes = 1000});
        ad_tape_create(&tape, &(ad_tape_options){.budget_bytes = budget});
        const ad_tensor x = ad_leaf(tape, AD_F64, 1, &n, data);
        if (averaged)
            ad_mpi_average_gradients(own, &x, 1);
        const ad_status status = ad_mpi_backward(own, tape, ad_sum(x));
        ad_tape_stats(tape, &stats);
        if (averaged < 2)
            peak[averaged] = stats.peak_bytes;
        const bool fits = averaged < 2 || size == 1;
        MPI_CHECK(status == (fits ? AD_OK : AD_ERROR_MEMORY), "%d: %s", averaged,
                  ad_tape_message(tape));
        if (!fits)
            mpi_check_error(AD_ERROR_MEMORY, "mpi_average_gradients: ");
        ad_tape_destroy(tape);
        tape = before;
        ad_mpi_free(&own);
    }
    const uint64_t more = peak[1] - peak[0], buckets = size > 1 ? 2 * 8 * N : 0;
    MPI_CHECK(more >= buckets && more <= buckets + buckets / 8 + 4096, "%llu bytes more",
              (unsigned long long)more);
}

/* ---- errors ---- */

static void what_cannot_be_is_refused(void)
{
    double data[3] = {1, 2, 3};
    ad_tensor gradient;
    const int64_t three = 3;
    ad_tape_reset(tape);
    ad_tensor x = ad_leaf(tape, AD_F64, 1, &three, data), all[2] = {x, ad_exp(x)};
    MPI_CHECK(ad_mpi_average_gradients(NULL, &x, 1) == AD_ERROR_ARGUMENT, "none");
    mpi_check_error(AD_ERROR_ARGUMENT, "mpi_average_gradients: its shape failed: the communicator "
                                       "is a null pointer; the call is at mpi_averages.c");
    MPI_CHECK(ad_mpi_average_gradients(comm, NULL, 1) == AD_ERROR_ARGUMENT, "none");
    MPI_CHECK(ad_mpi_average_gradients(comm, &x, 0) == AD_ERROR_ARGUMENT, "none");
    if (getenv("TAPESCOPE_MPI_CHECK"))
        return; /* its communicator would take no more calls */
    MPI_CHECK(ad_mpi_average_gradients(comm, all, 2) == AD_ERROR_ARGUMENT, "no leaf");
    mpi_check_error(AD_ERROR_ARGUMENT, "mpi_average_gradients: in[0] is no leaf");
    /* And leaves nothing that sweeps look at. */
    MPI_CHECK(ad_mpi_backward(comm, tape, ad_sum(x)) == AD_OK, "%s", ad_tape_message(tape));

    ad_tape_reset(tape);
    x = ad_leaf(tape, AD_F64, 1, &three, data);
    ad_tensor y = ad_sum(ad_exp(x));
    MPI_CHECK(ad_mpi_average_gradients(comm, &x, 1) == AD_OK, "%s", ad_tape_message(tape));
    MPI_CHECK(ad_mpi_backward(comm, tape, y) == AD_ERROR_STATE, "used before");
    mpi_check_error(AD_ERROR_STATE,
                    "mpi_average_gradients: its pullback failed: 1 of its 1 tensors were used "
                    "before it: it must stand before all uses; the call is at mpi_averages.c");

    ad_tape_reset(tape);
    x = ad_leaf(tape, AD_F64, 1, &three, data);
    ad_mpi_average_gradients(comm, &x, 1);
    y = ad_sum(ad_exp(x));
    MPI_CHECK(ad_backward(y) == AD_ERROR_STATE, "alone");
    mpi_check_error(AD_ERROR_STATE, "mpi_average_gradients: its pullback failed: a sweep of one "
                                    "rank alone cannot pass it");
    MPI_CHECK(ad_create_graph(y, (ad_tensor){0, 0, 0, 0}, 1, &x, &gradient) == AD_ERROR_STATE,
              "second");
    mpi_check_error(AD_ERROR_STATE, "create_graph: mpi_average_gradients is swept always");
    MPI_CHECK(ad_mpi_backward(comm, tape, y) == AD_OK, "%s", ad_tape_message(tape));
}

/* Rank 1 has other tensors, or none: all are told before they wait, checked or not. */
static void other_tensors_are_found_before_the_sweep(void)
{
    double data[4] = {1, 2, 3, 4};
    const int64_t four = 4, n = rank == 1 ? 3 : 4;
    if (size == 1 || getenv("TAPESCOPE_MPI_CHECK"))
        return;
    for (int k = 0; k < 3; k++) {
        ad_mpi_comm own;
        ad_mpi_init(&own, MPI_COMM_WORLD, NULL);
        ad_tape_reset(tape);
        const ad_tensor x = ad_leaf(tape, AD_F64, 1, k == 0 ? &n : &four, data), both[2] = {x, x};
        if (k < 2 || rank != 1)
            ad_mpi_average_gradients(own, both, k == 1 && rank == 1 ? 1 : 2);
        MPI_CHECK(ad_mpi_backward(own, tape, ad_sum(x)) == AD_ERROR_STATE, "%d is swept", k);
        mpi_check_error(AD_ERROR_STATE, "has called mpi_average_gradients with other tensors");
        ad_mpi_free(&own);
    }
}

int main(int argc, char **argv)
{
    static const size_t bucket[] = {0, 8, 100, 2000};
    mpi_begin(&argc, &argv, NULL);
    for (int b = 0; b < 4; b++) {
        averages_are_those_of_the_tree(AD_F32, bucket[b]);
        averages_are_those_of_the_tree(AD_F64, bucket[b]);
    }
    buckets_leave_while_the_sweep_goes_on();
    buckets_count_as_the_tapes_memory();
    what_cannot_be_is_refused();
    other_tensors_are_found_before_the_sweep();
    return mpi_end();
}
