/* mpi_main.c: the main of mpi_tests, which has what passes on any number of ranks:
 *
 *     mpi_tests cases reals averages programs 100 1
 *
 * runs those that are named, one after the other, each with the words behind its name. They are one
 * program because mpirun takes longer to start it than they take.
 */
#include "mpi_support.h"

#include <stdio.h>
#include <string.h>

int mpi_cases(int argc, char **argv);
int mpi_reals(int argc, char **argv);
int mpi_averages(int argc, char **argv);
int mpi_programs(int argc, char **argv);

static const struct mpi_test {
    const char *name;
    int (*run)(int argc, char **argv);
} tests[] = {
    {"cases", mpi_cases},
    {"reals", mpi_reals},
    {"averages", mpi_averages},
    {"programs", mpi_programs},
};

int main(int argc, char **argv)
{
    int status = 0, n = 0;
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < sizeof tests / sizeof *tests; k++)
            if (strcmp(argv[i], tests[k].name) == 0) {
                status = tests[k].run(argc - i, argv + i); /* the failures of all before too */
                n++;
            }
    MPI_Finalize();
    if (n == 0)
        fprintf(stderr, "%s: no test is named\n", argv[0]);
    return n > 0 ? status : 2;
}
