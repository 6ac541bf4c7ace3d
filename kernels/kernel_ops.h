/* kernel_ops.h: the ops by name, for rules that are built of other ops and for tests.
 *
 * Every row and every such line becomes `kernel_op_NAME`.
 */
#ifndef KERNEL_OPS_H
#define KERNEL_OPS_H

#include "kernel.h"

/* Begins the definition of a structural op; the build greps for it at the start of a line. */
#define KERNEL_OP(id) const struct kernel_op kernel_op_##id

/* Members of it: the names of its operands, and their number; its attributes, and theirs. */
/* clang-format off */
#define KERNEL_IN(...)                                                                             \
    .in_names = (const char *const[]){__VA_ARGS__},                                                \
    .n_in = (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
#define KERNEL_ATTRS(...)                                                                          \
    .attrs = (const struct kernel_attr_info[]){__VA_ARGS__},                                       \
    .n_attrs = (int)(sizeof((const struct kernel_attr_info[]){__VA_ARGS__}) /                      \
                     sizeof(struct kernel_attr_info))
/* clang-format on */

#define X(id) extern const struct kernel_op kernel_op_##id;
#include "kernel_ops_list.h"
#undef X

#define ROW1(id, ...) extern const struct kernel_op kernel_op_##id;
#define ROW2(id, ...) extern const struct kernel_op kernel_op_##id;
#define ROW3(id, ...) extern const struct kernel_op kernel_op_##id;
#include "elementwise.def"

#endif
