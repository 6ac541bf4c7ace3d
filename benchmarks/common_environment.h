/* common_environment.h: the conditions under which everything is measured.
 *
 * Invariant: OpenBLAS chooses its kernels by the processor and uses as many threads as were asked
 * for, here and in every program that is started from here.
 */
#ifndef COMMON_ENVIRONMENT_H
#define COMMON_ENVIRONMENT_H

/* Unsets OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE, unless TAPESCOPE_ISA chooses an instruction set as
 * well, and sets the numbers of threads. OpenBLAS reads them when it is loaded, so the program
 * starts again if one of them had to change. */
void environment_settle(char **argv, int threads);

/* Runs this program again with the same arguments and "--threads N" behind them, and waits. Returns
 * its exit status, or -1. */
int environment_run_with_threads(char **argv, int threads);

/* "LD_LIBRARY_PATH=..." with the folder of the OpenBLAS that runs its threads by OpenMP, as Debian
 * installs it, in front; NULL if there is none. Valid until the next call. */
const char *environment_openmp_blas(void);

/* The processor that OpenBLAS chose its kernels for, such as "Haswell". */
const char *environment_openblas_core(void);

#endif
