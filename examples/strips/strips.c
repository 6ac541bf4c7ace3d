/* strips.c: how warm a plate was at the beginning, from how warm it is now: heat in two dimensions
 * over MPI, a strip of rows on each rank.
 *
 *     mpirun -n 4 strips
 *     mpirun -n 4 strips ROWS COLUMNS STEPS DESCENTS
 *
 * Wanted is the least of sum (u(T) - observed)^2 + a sum u(0)^2, by descent with momentum along the
 * gradient through all steps. Neither a step in time nor one of the descent adds up over ranks, so
 * all of it is the same on any number of ranks, to the last bit. Without arguments the program
 * compares its gradient with that of rank 0 alone, and ends with an error unless both are the same.
 * In sines the problem falls apart into an equation for each, so the best state is known; it has to
 * be found.
 */
#include "optimisers.h"
#include "plate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* Two warm places, by where a point lies in the plate. */
static double warm(double x, double y)
{
    const double a = (x - 0.3) * (x - 0.3) + (y - 0.35) * (y - 0.35);
    const double b = (x - 0.7) * (x - 0.7) + (y - 0.6) * (y - 0.6);
    return exp(-40 * a) + 0.6 * exp(-90 * b);
}

static double *numbers(int64_t n)
{
    double *x = calloc(n > 0 ? (size_t)n : 1, sizeof *x);
    if (!x) {
        fprintf(stderr, "strips: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return x;
}

/* What is seen of this strip after all steps. */
static bool observe(const struct plate *p, double *seen)
{
    const int64_t shape[2] = {p->own, p->columns};
    for (int64_t i = 0; i < p->own; i++)
        for (int64_t j = 0; j < p->columns; j++)
            seen[i * p->columns + j] = warm((double)(p->first + i + 1) / (double)(p->rows + 1),
                                            (double)(j + 1) / (double)(p->columns + 1));
    ad_tape_reset(p->tape);
    ad_tape_no_grad_begin(p->tape);
    const ad_tensor end = plate_after(p, ad_leaf_copy(p->tape, AD_F64, 2, shape, seen));
    ad_tape_no_grad_end(p->tape);
    return ad_value(end, seen, p->own * p->columns) == AD_OK;
}

/* The strips of all ranks, one below the other; NULL on all but rank 0. */
static double *together(const struct plate *p, const double *own)
{
    const int size = ad_mpi_size(p->comm), rank = ad_mpi_rank(p->comm);
    double *all = rank == 0 ? numbers(p->rows * p->columns) : NULL;
    int *counts = calloc(2 * (size_t)size, sizeof *counts), *begins = counts + size;
    if (!counts)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    for (int r = 0; r < size; r++) {
        begins[r] = (int)(plate_first(p, r) * p->columns);
        counts[r] = (int)(plate_first(p, r + 1) * p->columns) - begins[r];
    }
    MPI_Gatherv(own, counts[rank], MPI_DOUBLE, all, counts, begins, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(counts);
    return all;
}

/* Rank 0 compares what the strips' gradient is with that of the whole plate on it alone. */
static bool same_alone(const struct plate *p, const double *u, const double *gradient)
{
    double *all = together(p, gradient), *from = together(p, u), *seen = together(p, p->observed);
    bool same = true;
    if (all) {
        struct plate whole = *p;
        double cost, *g = numbers(p->rows * p->columns);
        ad_mpi_comm self = NULL;
        same = ad_mpi_init(&self, MPI_COMM_SELF, NULL) == AD_OK;
        if (same) {
            plate_divide(&whole, self);
            whole.observed = seen;
            same = plate_gradient(&whole, from, &cost, g) &&
                   memcmp(g, all, (size_t)(p->rows * p->columns) * sizeof *g) == 0;
            ad_tape_reset(p->tape);
            ad_mpi_free(&self);
        }
        printf("the gradient of %.0f numbers is that of one rank: %s\n",
               (double)(p->rows * p->columns), same ? "bit for bit" : "FAILED");
        free(g);
    }
    free(all);
    free(from);
    free(seen);
    return same;
}

/* to [rows, columns] = from in sines along both axes; its own inverse. */
static void sines(int64_t rows, int64_t columns, const double *from, double *to)
{
    const double scale[2] = {sqrt(2.0 / (double)(rows + 1)), sqrt(2.0 / (double)(columns + 1))};
    double *half = numbers(rows * columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t l = 0; l < columns; l++)
            for (int64_t j = 0; j < columns; j++)
                half[i * columns + l] +=
                    scale[1] * from[i * columns + j] *
                    sin(PI * (double)((j + 1) * (l + 1)) / (double)(columns + 1));
    memset(to, 0, (size_t)(rows * columns) * sizeof *to);
    for (int64_t k = 0; k < rows; k++)
        for (int64_t i = 0; i < rows; i++) {
            const double s = scale[0] * sin(PI * (double)((i + 1) * (k + 1)) / (double)(rows + 1));
            for (int64_t l = 0; l < columns; l++)
                to[k * columns + l] += s * half[i * columns + l];
        }
    free(half);
}

/* The best state from what is seen of the whole plate: of each sine g seen / (g^2 + a), where all
 * steps multiply it by g. */
static void best(const struct plate *p, const double *seen, double *u)
{
    double *in = numbers(p->rows * p->columns);
    sines(p->rows, p->columns, seen, in);
    for (int64_t k = 0; k < p->rows; k++)
        for (int64_t l = 0; l < p->columns; l++) {
            const double a = sin(PI * (double)(k + 1) / (double)(2 * (p->rows + 1)));
            const double b = sin(PI * (double)(l + 1) / (double)(2 * (p->columns + 1)));
            const double g = pow(1 - 4 * p->ratio * (a * a + b * b), p->steps);
            in[k * p->columns + l] *= g / (g * g + p->weight);
        }
    sines(p->rows, p->columns, in, u);
    free(in);
}

/* Whether the state is near enough to the best one; rank 0 alone looks. */
static bool is_best(const struct plate *p, const double *u)
{
    double *all = together(p, u), *seen = together(p, p->observed), error = 0, largest = 0;
    if (all) {
        double *wanted = numbers(p->rows * p->columns);
        best(p, seen, wanted);
        for (int64_t i = 0; i < p->rows * p->columns; i++) {
            error = fmax(error, fabs(all[i] - wanted[i]));
            largest = fmax(largest, fabs(wanted[i]));
        }
        printf("the state is up to %.3f, and differs from the best by %.1e of that\n", largest,
               error / largest);
        free(wanted);
    }
    free(all);
    free(seen);
    return error <= 1e-9 * largest;
}

static bool run(struct plate *p, int descents, bool judged)
{
    const int64_t n = p->own * p->columns;
    double *seen = numbers(n), *u = numbers(n), *g = numbers(n), *velocity = numbers(n);
    /* The curvature of the cost lies between these two. */
    const double least = 2 * p->weight, most = 2 * (1 + p->weight);
    const double rate = 4 / pow(sqrt(most) + sqrt(least), 2);
    const double momentum = pow((sqrt(most) - sqrt(least)) / (sqrt(most) + sqrt(least)), 2);
    double cost = 0, sum = 0;
    bool right = observe(p, seen);
    p->observed = seen;
    for (int i = 0; i < descents && right; i++) {
        right = plate_gradient(p, u, &cost, g);
        if (right && i == 0 && judged)
            right = same_alone(p, u, g);
        if (right)
            sgd_step(n, rate, momentum, g, velocity, u);
    }
    MPI_Reduce(&cost, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (right && ad_mpi_rank(p->comm) == 0)
        printf("%lld x %lld points, %d steps: cost %.9f after %d of the descent\n",
               (long long)p->rows, (long long)p->columns, p->steps, sum, descents);
    if (right && judged)
        right = is_best(p, u);
    if (!right)
        fprintf(stderr, "strips: %s\n",
                ad_tape_status(p->tape) == AD_OK ? "this is not right" : ad_tape_message(p->tape));
    free(seen);
    free(u);
    free(g);
    free(velocity);
    return right;
}

int main(int argc, char **argv)
{
    struct plate p = {.rows = 48, .columns = 40, .steps = 30, .ratio = 0.2, .weight = 0.01};
    int descents = 200;
    ad_mpi_comm comm;
    MPI_Init(&argc, &argv);
    if (argc > 4) {
        p.rows = strtol(argv[1], NULL, 10);
        p.columns = strtol(argv[2], NULL, 10);
        p.steps = (int)strtol(argv[3], NULL, 10);
        descents = (int)strtol(argv[4], NULL, 10);
    }
    if (ad_mpi_init(&comm, MPI_COMM_WORLD, NULL) != AD_OK ||
        ad_tape_create(&p.tape, NULL) != AD_OK) {
        fprintf(stderr, "strips: %s\n", ad_tape_message((ad_tape){0}));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    if (p.rows < ad_mpi_size(comm) || p.columns < 1) {
        fprintf(stderr, "strips: %lld x %lld points: each of %d ranks needs a row\n",
                (long long)p.rows, (long long)p.columns, ad_mpi_size(comm));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    plate_divide(&p, comm);
    const bool right = run(&p, descents, argc <= 4);
    ad_tape_destroy(p.tape);
    ad_mpi_free(&comm);
    MPI_Finalize();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
