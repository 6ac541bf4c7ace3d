/* dense.h: operands as row-major data, for kernels that walk plain arrays.
 *
 * Internal to kernels/. What is not row-major is copied into workspace; outputs are row-major
 * always.
 */
#ifndef DENSE_H
#define DENSE_H

#include "kernel.h"

/* n bytes, rounded up so that what lies behind is aligned. */
static inline size_t dense_rounded(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

/* Bytes of a row-major copy of the array, rounded up so that another one may lie behind it. */
size_t dense_copy_bytes(kernel_ref array);

/* Bytes of workspace that dense_data takes for the operand; 0 where it is row-major. */
size_t dense_bytes(kernel_ref operand);

/* The operand's elements in row-major order; *space is moved on behind what is used of it. */
const void *dense_data(kernel_ref operand, char **space);

/* Workspace of an op that takes nothing but its operands so. */
size_t dense_workspace(const struct kernel_call *call);

#endif
