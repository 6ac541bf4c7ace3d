/* common_environment.h: the conditions under which everything is measured.
 *
 * May include: nothing of the project. Invariant: OpenBLAS chooses its kernels by the processor and
 * uses one thread, here and in every program that is started from here.
 */
#ifndef COMMON_ENVIRONMENT_H
#define COMMON_ENVIRONMENT_H

/* Unsets OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE and sets the numbers of threads to 1. OpenBLAS
 * reads them when it is loaded, so the program starts again if one of them had to change. */
void environment_settle(char **argv);

/* The processor that OpenBLAS chose its kernels for, such as "Haswell". */
const char *environment_openblas_core(void);

#endif
