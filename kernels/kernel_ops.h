/* kernel_ops.h: the ops by name, for rules that are built of other ops and for tests.
 *
 * May include: kernel.h, elementwise.def, and the list of structural ops that the build collects
 * from the lines `KERNEL_OP(name)` of the files below kernels/ops. Every row and every such line
 * becomes `kernel_op_NAME`.
 */
#ifndef KERNEL_OPS_H
#define KERNEL_OPS_H

#include "kernel.h"

/* Begins the definition of a structural op; the build greps for it at the start of a line. */
#define KERNEL_OP(id) const struct kernel_op kernel_op_##id

#define X(id) extern const struct kernel_op kernel_op_##id;
#include "kernel_ops_list.h"
#undef X

#define ROW1(id, ...) extern const struct kernel_op kernel_op_##id;
#define ROW2(id, ...) extern const struct kernel_op kernel_op_##id;
#define ROW3(id, ...) extern const struct kernel_op kernel_op_##id;
#include "elementwise.def"
#undef ROW1
#undef ROW2
#undef ROW3

#endif
