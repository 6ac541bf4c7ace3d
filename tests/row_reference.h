/* row_reference.h: what every row computes, by the C library in double; for tests of the kernels.
 *
 * May include: nothing of the project. A row without an entry fails the test that asks for it.
 */
#ifndef ROW_REFERENCE_H
#define ROW_REFERENCE_H

#include <stdbool.h>

struct row_reference {
    const char *name;
    double (*value)(double a, double b, double c, const double *parameters);
    int ulps;      /* 0: the same bits, rounded to the dtype */
    bool at_edges; /* also at zeros, infinities, NaN and where results over- or underflow */
};

/* Never NULL: an unknown row ends the test. */
const struct row_reference *row_reference(const char *name);

#endif
