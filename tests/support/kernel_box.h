/* kernel_box.h: arrays of any layout for the tests of the kernels.
 *
 * Random numbers come from one fixed seed for each program.
 */
#ifndef KERNEL_BOX_H
#define KERNEL_BOX_H

#include "kernel.h"

/* An array with room for gaps between its elements. */
struct box {
    struct kernel_array array;
    int64_t shape[KERNEL_MAX_RANK], strides[KERNEL_MAX_RANK];
};

enum layout { DENSE, REVERSED, GAPPED, LAYOUTS };

double uniform(double low, double high);

/* Zeroes in this layout; box_free() gives them back. */
void box_make(struct box *box, int dtype, int rank, const int64_t *shape, enum layout layout);
void box_free(struct box *box);
void box_random(struct box *box, double low, double high);

/* One element by its offset, as a double. */
double get_at(kernel_ref a, int64_t offset);
void set_at(kernel_ref a, int64_t offset, double x);

/* Offset of the array's element that belongs to an index of the broadcast shape. */
int64_t offset_of(kernel_ref a, int rank, const int64_t *index);

/* Moves the index on in row-major order; false after the last one. */
bool index_next(int rank, const int64_t *shape, int64_t *index);

/* Element at an index of the array's own shape. */
double element(kernel_ref a, const int64_t *index);

/* Runs an op with workspace on operands and one or two outputs. */
int box_run(const struct kernel_op *op, const kernel_ref *in, struct kernel_array *out0,
            struct kernel_array *out1, int n_attr, const int64_t *attr, bool accumulate,
            char *error);

#endif
