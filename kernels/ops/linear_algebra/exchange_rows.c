/* ops/linear_algebra/exchange_rows.c: rows of matrices exchanged pair by pair, as an LU
 * decomposition has done it.
 *
 * Pullbacks of ops that use an LU decomposition need it.
 */
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "lu.h"
#include "op_rules.h"

/* clang-format off */
#define EXCHANGE_SAMPLE(rank_x, extents_x, rank_p, extents_p, back)                                \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {rank_x, rank_p},                       \
     .shape = {{KERNEL_EXTENTS extents_x}, {KERNEL_EXTENTS extents_p}},                            \
     .low = {-1, 0}, .high = {1, 3},                                                               \
     .switches = 2, .n_attr = 1, .attr = {back}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    EXCHANGE_SAMPLE(2, (3, 4), 1, (3), 0),       EXCHANGE_SAMPLE(2, (5, 2), 1, (5), 1),
    EXCHANGE_SAMPLE(3, (4, 3, 2), 2, (4, 3), 0), EXCHANGE_SAMPLE(3, (4, 3, 2), 1, (3), 1),
    EXCHANGE_SAMPLE(2, (3, 3), 1, (3), 1),       EXCHANGE_SAMPLE(2, (0, 2), 1, (0), 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], exchanges = call->in[1];
    if (matrix_require(call, 0, false) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    bool fits = exchanges->rank >= 1 && exchanges->rank < x->rank &&
                exchanges->shape[exchanges->rank - 1] == x->shape[x->rank - 2];
    for (int axis = 0; fits && axis < exchanges->rank - 1; axis++) {
        const int64_t extent = exchanges->shape[axis];
        fits = extent == 1 || extent == x->shape[axis + x->rank - 1 - exchanges->rank];
    }
    if (!fits)
        return kernel_refuse_operands(call, ", ", "x [...,n,k] and exchanges [...,n] are wanted");
    return kernel_shape_same(call, out);
}

static size_t workspace(const struct kernel_call *call)
{
    const kernel_ref exchanges = call->in[1];
    return matrix_bytes(exchanges->dtype, exchanges->shape[exchanges->rank - 1]);
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0], exchanges = call->in[1];
    struct kernel_array *y = call->out[0];
    const int64_t n = x->shape[x->rank - 2], k = x->shape[x->rank - 1];
    struct matrix_walk walk;
    if (y->size == 0)
        return 0;
    matrix_walk_begin(&walk, y, 2);
    const int from = matrix_walk_add(&walk, x, 2), to = matrix_walk_add(&walk, y, 2);
    const int list = matrix_walk_add(&walk, exchanges, 1);
    do {
        const struct gemm_matrix matrix = matrix_at(x, walk.data[from]);
        const struct gemm_matrix row = {walk.data[list], n, 1,
                                        exchanges->strides[exchanges->rank - 1], 1};
        matrix_pack(x->dtype, &row, call->workspace);
        matrix_pack(x->dtype, &matrix, walk.data[to]);
        lu_exchange_rows(x->dtype, n, call->workspace, call->attr[0] != 0, k, walk.data[to]);
    } while (matrix_walk_next(&walk));
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref in[] = {rule->adjoint[0], rule->in[1]};
    const int64_t back[] = {!rule->attr[0]};
    if (rule->adjoint[0] != NULL)
        kernel_accumulate(rule, 0, &kernel_op_exchange_rows, 2, in, 1, back);
}

KERNEL_OP(exchange_rows) = {
    .name = "exchange_rows",
    KERNEL_IN("x", "exchanges"),
    KERNEL_ATTRS({"backwards", KERNEL_ATTR_FLAG}),
    .n_out = 1,
    .hidden = true,
    .saves_in = 2,
    .depends = kernel_depends_matrices,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .workspace = workspace,
    .sample = sample,
    .brief = "Rows of matrices exchanged: row i with row exchanges[i], for i = 0, 1, ..., or the "
             "same backwards.",
    .shapes = "x [...,n,k], exchanges [...,n] of whole numbers -> [...,n,k]",
    .formula = "y = P x",
    .derivative = "x' += P^T y'; none to exchanges",
    .edges = "an exchange with what is no row is left out",
};
