/* ops/shape/tril.c: the elements of matrices on and below a diagonal.
 *
 * May include: triangle.h, kernel_ops.h. Its own adjoint.
 */
#include "kernel_ops.h"
#include "triangle.h"

static const char *const names[] = {"x"};
static const struct kernel_attr_info attrs[] = {{"diagonal", KERNEL_ATTR_INT}};

static int forward(const struct kernel_call *call)
{
    return kernel_triangle_copy(call, false);
}

KERNEL_OP(tril) = {
    .name = "tril",
    .in_names = names,
    .attrs = attrs,
    .n_in = 1,
    .n_out = 1,
    .n_attrs = 1,
    .any_dtype = true,
    .shape = kernel_triangle_shape,
    .forward = forward,
    .pullback = kernel_triangle_pullback,
    .cost = kernel_triangle_cost,
    .sample = kernel_triangle_sample,
    .brief = "Matrices with 0 but on and below a diagonal.",
    .shapes = "x [...,m,n] -> [...,m,n]",
    .formula = "y_ij = x_ij where j <= i + diagonal, else 0",
    .derivative = "x'_ij += y'_ij where j <= i + diagonal",
    .edges =
        "diagonal 0 is the main one, positive ones lie above it, and it may lie outside of the "
        "matrix; what is left out does not matter, be it NaN",
};
