/* ad_tensor_write.h: a program of tensors and its adjoint as a file of C. */
#ifndef AD_TENSOR_WRITE_H
#define AD_TENSOR_WRITE_H

#include "ad_internal.h"

#include <stdio.h>

/* What ad_tensor_write_c does where arguments and program have been checked: results y[m], which
 * differ, of inputs x[n], leaves and constants. */
ad_status ad_tensor_write(FILE *file, struct tape *t, const char *name, uint32_t m,
                          const uint32_t *y, uint32_t n, const uint32_t *x, struct tape_site site);

#endif
