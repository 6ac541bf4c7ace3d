/* mpi_support.c: see mpi_support.h.
 */
#include "mpi_support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ad_mpi_comm comm;
ad_tape tape;
int rank, size;
int failures;

static bool mpi_is_ours; /* begun here, and ended here */

void mpi_begin(int *argc, char ***argv, const ad_mpi_options *options)
{
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
    int begun = 0;
    MPI_Initialized(&begun);
    mpi_is_ours = !begun;
    if ((mpi_is_ours && MPI_Init(argc, argv) != MPI_SUCCESS) ||
        ad_mpi_init(&comm, MPI_COMM_WORLD, options) != AD_OK ||
        ad_tape_create(&tape, &small) != AD_OK) {
        fprintf(stderr, "mpi_begin: %s\n", ad_tape_message((ad_tape){0, 0}));
        exit(100);
    }
    rank = ad_mpi_rank(comm);
    size = ad_mpi_size(comm);
}

int mpi_end(void)
{
    mpi_check_fine("at the end");
    ad_tape_destroy(tape);
    ad_mpi_free(&comm);
    if (mpi_is_ours)
        MPI_Finalize();
    return failures < 100 ? failures : 100;
}

void mpi_fails(const char *file, int line, const char *what, const char *format, ...)
{
    va_list list;
    if (failures++ > 20)
        return;
    const char *name = strrchr(file, '/');
    fprintf(stderr, "FAILED %s:%d: rank %d of %d: %s: ", name ? name + 1 : file, line, rank, size,
            what);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

void mpi_check_error(ad_status status, const char *words)
{
    MPI_CHECK(ad_tape_status(tape) == status && strstr(ad_tape_message(tape), words),
              "%s, not %s with \"%s\": %s", ad_status_name(ad_tape_status(tape)),
              ad_status_name(status), words, ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

void mpi_check_fine(const char *what)
{
    MPI_CHECK(ad_tape_status(tape) == AD_OK, "%s: %s", what, ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

double mpi_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / (double)(1ull << 52) - 1;
}

void mpi_gradient(mpi_function *function, void *payload, int n, const double *x, double *g)
{
    const int64_t shape[1] = {n};
    ad_tape_reset(tape);
    const ad_tensor leaf = ad_leaf_copy(tape, AD_F64, 1, shape, x);
    const ad_status status = ad_mpi_backward(comm, tape, function(leaf, payload));
    MPI_CHECK(status == AD_OK, "%s", ad_tape_message(tape));
    memset(g, 0, (size_t)n * sizeof *g);
    if (status == AD_OK)
        MPI_CHECK(ad_gradient(leaf, g, n) == AD_OK, "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
}

/* The sum over all ranks. */
static double value_of_all(mpi_function *function, void *payload, int n, const double *x)
{
    const int64_t shape[1] = {n};
    double own = 0, sum = 0;
    ad_tape_reset(tape);
    const ad_tensor y = function(ad_leaf_copy(tape, AD_F64, 1, shape, x), payload);
    if (y.tape)
        own = ad_item(y);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* The derivative of the sum by rank r's x in a direction, which only that rank knows; true where
 * that is this rank. */
static bool direction_agrees(mpi_function *function, void *payload, int r, int n, const double *x,
                             const double *direction, const double *g, double tolerance,
                             double *swept, double *measured)
{
    const double step = 1e-5;
    double at[MPI_MOST], value[2];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            at[i] = x[i] + (r == rank ? (k ? -step : step) * direction[i] : 0);
        value[k] = value_of_all(function, payload, n, at);
    }
    *swept = 0;
    for (int i = 0; i < n; i++)
        *swept += direction[i] * g[i];
    *measured = (value[0] - value[1]) / (2 * step);
    return r != rank || fabs(*swept - *measured) <= tolerance * (1 + fabs(*measured));
}

void mpi_check_gradient(const char *name, mpi_function *function, void *payload, int n,
                        const double *x, double tolerance)
{
    double g[MPI_MOST], direction[MPI_MOST], swept, measured;
    uint64_t seed = 5;
    int most = 0;
    mpi_gradient(function, payload, n, x, g);
    MPI_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (size > 2) /* each sum waits for all: a direction for each rank instead of its elements */
        most = 1;
    for (int r = 0; r < size; r++)
        for (int k = 0; k < most; k++) {
            for (int i = 0; i < n; i++)
                direction[i] = size > 2 ? mpi_random(&seed) : i == k;
            const bool agrees = direction_agrees(function, payload, r, n, x, direction, g,
                                                 tolerance, &swept, &measured);
            MPI_CHECK(agrees, "%s: %d: swept %.10g, measured %.10g", name, k, swept, measured);
        }
    ad_tape_reset(tape);
}
