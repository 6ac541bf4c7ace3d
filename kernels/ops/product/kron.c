/* ops/product/kron.c: Kronecker product.
 *
 * Put an axis of extent 1 behind each axis of a and before each axis of b: then the Kronecker
 * product is an elementwise product that broadcasts.
 */
#include "elementwise.h"
#include "kernel_ops.h"
#include "op_rules.h"

enum { MOST_AXES = KERNEL_MAX_RANK / 2 };

/* clang-format off */
#define KRON_SAMPLE(r0, n0, r1, n1)                                                                \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {r0, r1},                               \
     .shape = {{KERNEL_EXTENTS n0}, {KERNEL_EXTENTS n1}},                                          \
     .low = {-1, -1}, .high = {1, 1}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    KRON_SAMPLE(2, (2, 3), 2, (3, 2)),
    KRON_SAMPLE(1, (4), 1, (3)),
    KRON_SAMPLE(1, (3), 2, (2, 2)),
    KRON_SAMPLE(2, (2, 2), 1, (3)),
    KRON_SAMPLE(0, (0), 2, (2, 3)),
    KRON_SAMPLE(0, (0), 0, (0)),
    KRON_SAMPLE(2, (0, 2), 2, (2, 2)),
    KRON_SAMPLE(1, (2), 1, (0)),
    KRON_SAMPLE(4, (1, 2, 1, 2), 4, (2, 1, 1, 2)),
};
KERNEL_SAMPLES(samples)

static int result_rank(const kernel_ref *in)
{
    return in[0]->rank > in[1]->rank ? in[0]->rank : in[1]->rank;
}

/* Extent of an axis of the result in an operand, which has 1 before its first axis. */
static int64_t extent_of(kernel_ref x, int axis, int rank)
{
    const int own = axis - (rank - x->rank);
    return own < 0 ? 1 : x->shape[own];
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const int rank = result_rank(call->in);
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (rank > MOST_AXES)
        return kernel_refuse_operands(call, " x ", "at most %d axes", MOST_AXES);
    kernel_shape_begin(out, call->in[0]->dtype, rank);
    for (int axis = 0; axis < rank; axis++)
        if (__builtin_mul_overflow(extent_of(call->in[0], axis, rank),
                                   extent_of(call->in[1], axis, rank), &out->extent[axis]))
            return kernel_refuse_operands(call, " x ", "the result's size overflows");
    return 0;
}

/* Operand i with its axes in the places 2 axis + i, and extents of 1 between them. */
static void spread(struct kernel_view *view, kernel_ref x, int i, int rank)
{
    view->array = *x;
    view->array.rank = (uint8_t)(2 * rank);
    kernel_view_bind(view);
    for (int axis = 0; axis < rank; axis++) {
        const int own = axis - (rank - x->rank);
        view->shape[2 * axis + i] = extent_of(x, axis, rank);
        view->strides[2 * axis + i] = own < 0 ? 0 : x->strides[own];
        view->shape[2 * axis + 1 - i] = 1;
        view->strides[2 * axis + 1 - i] = 0;
    }
}

static int forward(const struct kernel_call *call)
{
    const int rank = result_rank(call->in);
    struct kernel_view a, b, y;
    int64_t extent[KERNEL_MAX_RANK];
    spread(&a, call->in[0], 0, rank);
    spread(&b, call->in[1], 1, rank);
    for (int axis = 0; axis < 2 * rank; axis++)
        extent[axis] = (axis % 2 ? b.shape : a.shape)[axis];
    kernel_view_dense(&y, call->out[0]->data, call->out[0]->dtype, 2 * rank, extent);
    const kernel_ref in[] = {&a.array, &b.array};
    kernel_elementwise(LOOP_mul, &y.array, 2, in, NULL, false);
    return 0;
}

/* y' with an axis for each axis of each operand, times the other operand, summed over its axes. */
static void pullback(struct kernel_rule *rule)
{
    const int rank = result_rank(rule->in);
    int64_t both[KERNEL_MAX_RANK];
    if (rule->adjoint[0] == NULL)
        return;
    for (int axis = 0; axis < 2 * rank; axis++)
        both[axis] = extent_of(rule->in[axis % 2], axis / 2, rank);
    const kernel_ref g =
        kernel_emit_shape(rule, &kernel_op_reshape, rule->adjoint[0], 2 * rank, both);
    for (int i = 0; i < 2; i++) {
        int64_t other[KERNEL_MAX_RANK], attr[1 + MOST_AXES] = {0};
        if (!kernel_needs(rule, i))
            continue;
        for (int axis = 0; axis < rank; axis++) {
            other[2 * axis + i] = 1;
            other[2 * axis + 1 - i] = both[2 * axis + 1 - i];
            attr[1 + axis] = 2 * axis + 1 - i;
        }
        const kernel_ref apart =
            kernel_emit_shape(rule, &kernel_op_reshape, rule->in[1 - i], 2 * rank, other);
        const kernel_ref product = kernel_emit2(rule, &kernel_op_mul, g, apart);
        kernel_accumulate_value(rule, i,
                                kernel_emit(rule, &kernel_op_sum, 1, &product, 1 + rank, attr));
    }
}

KERNEL_OP(kron) = {
    .name = "kron",
    KERNEL_IN("a", "b"),
    .n_out = 1,
    .saves_in = 3,
    .reads_for = {2, 1},
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 1,
    .sample = sample,
    .brief = "Kronecker product.",
    .shapes = "a [m,n], b [p,q] -> [m p,n q]; any number of axes up to 4, the operand with fewer "
              "has extents of 1 before its own",
    .formula = "y_ip+k,jq+l = a_ij b_kl",
    .derivative = "a'_ij += sum_kl y'_ip+k,jq+l b_kl, b'_kl += sum_ij y'_ip+k,jq+l a_ij",
};
