/* ops/linear_algebra/weigh_triangles.c: what lies below, on and above the diagonals of matrices,
 * each part times a constant; and the symmetric part of matrices, (x + x^T) / 2, bit for bit
 * symmetric.
 *
 * Serve pullbacks: triangles, halved diagonals, and signs.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "matrix.h"
#include "matrix_samples.h"
#include "op_rules.h"

static const struct kernel_sample symmetric_part_samples[] = {
    MATRIX_SAMPLE(2, (3, 3), 0), MATRIX_SAMPLE(3, (2, 5, 5), 0), MATRIX_SAMPLE(2, (1, 1), 0),
    MATRIX_SAMPLE(2, (0, 0), 0)};
KERNEL_SAMPLES_OF(symmetric_part)

/* Runs the function over all matrices of the operand and of the result. */
static int each_matrix(const struct kernel_call *call,
                       void (*run)(const struct kernel_call *call, const struct gemm_matrix *x,
                                   void *y))
{
    const kernel_ref x = call->in[0];
    struct kernel_array *y = call->out[0];
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, x, 2), to = matrix_walk_add(&walk, y, 2);
    do {
        const struct gemm_matrix matrix = matrix_at(x, walk.data[from]);
        run(call, &matrix, walk.data[to]);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void symmetrise_one(const struct kernel_call *call, const struct gemm_matrix *x, void *y)
{
    matrix_symmetrise(call->in[0]->dtype, x, y, false);
}

static int symmetric_part_forward(const struct kernel_call *call)
{
    return each_matrix(call, symmetrise_one);
}

KERNEL_OP(symmetric_part) = {
    .name = "symmetric_part",
    KERNEL_IN("x"),
    .n_out = 1,
    .hidden = true,
    .depends = kernel_depends_matrices,
    .shape = matrix_shape_square,
    .forward = symmetric_part_forward,
    .pullback = kernel_pullback_self,
    .flops_per_element = 2,
    .sample = symmetric_part_sample,
    .brief = "Symmetric part of matrices.",
    .shapes = "x [...,n,n] -> [...,n,n]",
    .formula = "y_ij = (x_ij + x_ji) / 2",
    .derivative = "x_ij' += (y_ij' + y_ji') / 2",
};

static bool weigh_triangles_sample(int k, struct kernel_sample *s)
{
    static const struct kernel_sample shapes[] = {
        MATRIX_SAMPLE(2, (3, 3), 0),    MATRIX_SAMPLE(2, (4, 2), 0), MATRIX_SAMPLE(2, (2, 5), 0),
        MATRIX_SAMPLE(3, (2, 3, 3), 0), MATRIX_SAMPLE(2, (1, 1), 0), MATRIX_SAMPLE(2, (0, 0), 0)};
    static const double weights[][3] = {{1, 0.5, 0}, {0, 1, -2}, {1.5, 0, 1}};
    enum { SHAPES = sizeof shapes / sizeof *shapes, WEIGHTS = sizeof weights / sizeof *weights };
    if (!kernel_sample_from(shapes, SHAPES, k < 0 ? k : k % SHAPES, s) || k >= SHAPES * WEIGHTS)
        return false;
    s->n_attr = 3;
    for (int i = 0; i < 3; i++)
        s->attr[i] = kernel_attr_word(weights[k / SHAPES][i]);
    return true;
}

static int weigh_triangles_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    if (matrix_require(call, 0, false) != 0)
        return -1;
    return kernel_shape_same(call, out);
}

static void weigh_one(const struct kernel_call *call, const struct gemm_matrix *x, void *y)
{
    const struct matrix_weights weights = {kernel_attr_real(call->attr[0]),
                                           kernel_attr_real(call->attr[1]),
                                           kernel_attr_real(call->attr[2])};
    matrix_weigh(call->in[0]->dtype, x, &weights, y, call->accumulate);
}

static int weigh_triangles_forward(const struct kernel_call *call)
{
    return each_matrix(call, weigh_one);
}

KERNEL_OP(weigh_triangles) = {
    .name = "weigh_triangles",
    KERNEL_IN("x"),
    KERNEL_ATTRS({"below", KERNEL_ATTR_REAL}, {"diagonal", KERNEL_ATTR_REAL},
                 {"above", KERNEL_ATTR_REAL}),
    .n_out = 1,
    .hidden = true,
    .accumulates = true,
    .depends = kernel_depends_elements,
    .shape = weigh_triangles_shape,
    .forward = weigh_triangles_forward,
    .pullback = kernel_pullback_self,
    .flops_per_element = 1,
    .sample = weigh_triangles_sample,
    .brief = "The parts below, on and above the diagonals of matrices, each times a constant.",
    .shapes = "x [...,m,n] -> [...,m,n]",
    .formula = "y_ij = w x_ij, w = below where i > j, diagonal where i = j, above where i < j",
    .derivative = "x_ij' += w y_ij'",
    .edges = "a weight of 0 gives 0, also of infinities and NaN",
};
