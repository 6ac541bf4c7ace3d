/* ops/network/softmax_cross_entropy.c: mean loss of a classifier from logits and labels.
 *
 * Output 1, the probabilities, is what the pullback reads; it has a pullback of its own, for
 * recorded gradients.
 */
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

/* clang-format off */
#define LOSS_SAMPLE(b, c)                                                                          \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_I64}, .rank = {2, 1}, .shape = {{b, c}, {b}},         \
     .low = {-2, 0}, .high = {2, c}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    LOSS_SAMPLE(3, 5),  LOSS_SAMPLE(1, 1), LOSS_SAMPLE(4, 10),
    LOSS_SAMPLE(7, 17), LOSS_SAMPLE(1, 9), LOSS_SAMPLE(0, 3),
};
KERNEL_SAMPLES(samples)

enum { BLOCK_ROWS = 64, BLOCK_ELEMENTS = 2048, LEAST_COLUMNS = 64 };

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref logits = call->in[0], labels = call->in[1];
    if (kernel_require_float(call, 0) != 0)
        return -1;
    if (labels->dtype != KERNEL_I64)
        return kernel_refuse(call, "labels must be i64, not %s", kernel_dtype_name(labels->dtype));
    if (logits->rank != 2 || labels->rank != 1 || logits->shape[0] != labels->shape[0])
        return kernel_refuse_operands(call, ", ", "logits [b,c] and labels [b] are wanted");
    kernel_shape_begin(&out[0], logits->dtype, 0);
    kernel_shape_begin(&out[1], logits->dtype, 2);
    out[1].same_as = 0;
    return 0;
}

static int64_t label_at(kernel_ref labels, int64_t row)
{
    return ((const int64_t *)labels->data)[row * labels->strides[0]];
}

/* Rows that do not fill vectors, all at once; they lie at p already. */
static void short_rows_run(const struct kernel_isa *isa, int dtype, char *p, int64_t rows,
                           int64_t columns, const double *most, double *sum)
{
    const size_t row_bytes = (size_t)columns * kernel_dtype_bytes(dtype);
    isa->exp_shift[dtype](rows, columns, p, most);
    for (int64_t r = 0; r < rows; r++) {
        char *row = p + (size_t)r * row_bytes;
        sum[r] = isa->sum[dtype](columns, row);
        const double share = 1 / sum[r];
        kernel_loop_run(LOOP_scale, dtype, columns, row, row, NULL, &share, false);
    }
}

/* Makes probabilities at p of `rows` rows of logits at x, which may be p; returns the sum of their
 * losses. */
static double rows_run(int dtype, const char *x, char *p, int64_t rows, int64_t columns,
                       kernel_ref labels, int64_t first_row)
{
    const struct kernel_isa *isa = kernel_isa_get();
    const size_t row_bytes = (size_t)columns * kernel_dtype_bytes(dtype);
    double most[BLOCK_ROWS], at_label[BLOCK_ROWS], sum[BLOCK_ROWS], loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        const char *row = x + (size_t)r * row_bytes;
        at_label[r] = kernel_load(dtype, row, label_at(labels, first_row + r));
        if (columns >= LEAST_COLUMNS)
            isa->softmax[dtype](columns, row, p + (size_t)r * row_bytes, &most[r], &sum[r]);
        else
            most[r] = isa->max[dtype](columns, row);
        at_label[r] -= most[r];
    }
    if (columns < LEAST_COLUMNS)
        short_rows_run(isa, dtype, p, rows, columns, most, sum);
    kernel_loop_run(LOOP_log, KERNEL_F64, rows, sum, sum, NULL, NULL, false);
    for (int64_t r = 0; r < rows; r++)
        loss += sum[r] - at_label[r];
    return loss;
}

static int forward(const struct kernel_call *call)
{
    const kernel_ref logits = call->in[0], labels = call->in[1];
    const int64_t rows = logits->shape[0], columns = logits->shape[1];
    const int dtype = logits->dtype;
    if (kernel_require_labels(call, labels, columns) != 0)
        return -1;
    const bool copied = columns < LEAST_COLUMNS || !logits->contiguous;
    if (copied)
        kernel_elementwise(LOOP_copy, call->out[1], 1, &logits, NULL, false);
    const int64_t fitting = columns > 0 ? BLOCK_ELEMENTS / columns : BLOCK_ROWS;
    const int64_t step = fitting < 1 ? 1 : fitting > BLOCK_ROWS ? BLOCK_ROWS : fitting;
    double loss = 0;
    char *p = call->out[1]->data;
    const char *x = copied ? p : logits->data;
    for (int64_t r = 0; r < rows; r += step) {
        const int64_t n = rows - r < step ? rows - r : step;
        const size_t bytes = (size_t)(n * columns) * kernel_dtype_bytes(dtype);
        loss += rows_run(dtype, x, p, n, columns, labels, r);
        x += bytes;
        p += bytes;
    }
    kernel_fill(call->out[0], loss / (double)rows);
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    const kernel_ref p = rule->out[1];
    if (!kernel_needs(rule, 0))
        return;
    if (rule->adjoint[0] != NULL) {
        const kernel_ref in[] = {rule->adjoint[0], p, rule->in[1]};
        kernel_accumulate(rule, 0, &kernel_op_softmax_cross_entropy_gradient, 3, in, 0, NULL);
    }
    if (rule->adjoint[1] != NULL) {
        const int64_t along_rows[] = {1, 1};
        const kernel_ref weighted = kernel_emit2(rule, &kernel_op_mul, rule->adjoint[1], p);
        const kernel_ref mean = kernel_emit(rule, &kernel_op_sum, 1, &weighted, 2, along_rows);
        const kernel_ref in[] = {kernel_emit2(rule, &kernel_op_sub, rule->adjoint[1], mean), p};
        kernel_accumulate(rule, 0, &kernel_op_mul, 2, in, 0, NULL);
    }
}

static void depends(const struct kernel_call *call, int o, int i, struct kernel_depends *d)
{
    if (o == 0)
        kernel_depends_all(call, o, i, d);
    else
        kernel_depends_rows(call, o, i, d);
}

KERNEL_OP(softmax_cross_entropy) = {
    .name = "softmax_cross_entropy",
    KERNEL_IN("logits", "labels"),
    .n_out = 2,
    .saves_in = 2,
    .saves_out = 2,
    .depends = depends,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .flops_per_element = 24,
    .sample = sample,
    .brief =
        "Mean cross entropy of softmax(logits) against labels; the probabilities stay on the tape.",
    .shapes = "logits [b,c], labels i64 [b] -> loss []",
    .formula = "p = softmax(logits by rows), loss = -(sum_i ln p_i,label_i) / b",
    .derivative = "logits' += loss' (p - onehot(labels)) / b + p (p' - sum over c of p' p)",
    .edges = "NaN loss for b = 0 and for rows with NaN or +inf; a label outside 0..c-1 is refused",
};
