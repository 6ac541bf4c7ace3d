/* written_support.h: for tests of programs of tensors that were written as C: files in the test's
 * folder (program_support.h), compiled as modules, and what is in these.
 */
#ifndef WRITTEN_SUPPORT_H
#define WRITTEN_SUPPORT_H

#include "program_support.h"

#include <stdio.h>

enum { WRITTEN_NAME = 64 };

typedef const char *values_function(const void *const *x, void *const *y, double *work);
typedef const char *adjoint_function(const void *const *x, void *const *y, const void *const *s,
                                     void *const *g, double *work);

struct written {
    values_function *values;
    adjoint_function *adjoint;
    double *work; /* the caller frees it */
};

/* NAME.c; what it is closed with lets written_of find the size of the workspace of `function`. */
FILE *written_open(const char *name);
void written_close(FILE *file, const char *function);

/* The module of NAME.c, which two compilers have taken without a warning. */
void *written_module(const char *name);
struct written written_of(void *module, const char *function);

#endif
