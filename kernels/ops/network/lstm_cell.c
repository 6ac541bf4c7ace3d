/* ops/network/lstm_cell.c: one step of a long short-term memory, behind its affine map.
 *
 * One pass over rows. The gates are not kept: the pullback makes them again from z and c, which
 * takes less time than keeping and reading five more numbers an element.
 */
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const result_names[] = {"cell"};

/* clang-format off */
#define LSTM_SAMPLE(b, h)                                                                          \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {2, 2}, .shape = {{b, 4 * (h)}, {b, h}},\
     .low = {-2, -2}, .high = {2, 2}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    LSTM_SAMPLE(2, 3),  LSTM_SAMPLE(1, 1), LSTM_SAMPLE(3, 8),
    LSTM_SAMPLE(1, 19), LSTM_SAMPLE(0, 3), LSTM_SAMPLE(2, 0),
};
KERNEL_SAMPLES(samples)

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref z = call->in[0], c = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (z->rank != 2 || c->rank != 2 || z->shape[0] != c->shape[0] || z->shape[1] % 4 != 0 ||
        z->shape[1] / 4 != c->shape[1])
        return kernel_refuse_operands(call, ", ", "z [b,4h] and c [b,h] are wanted");
    for (int o = 0; o < 2; o++) {
        kernel_shape_begin(&out[o], z->dtype, 2);
        out[o].same_as = 1;
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const int dtype = call->in[0]->dtype;
    const int64_t rows = call->in[1]->shape[0], n = call->in[1]->shape[1];
    const size_t step = (size_t)n * kernel_dtype_bytes(dtype);
    const struct kernel_isa *isa = kernel_isa_get();
    char *space = call->workspace, *h = call->out[0]->data, *m = call->out[1]->data;
    const char *z = dense_data(call->in[0], &space), *c = dense_data(call->in[1], &space);
    if (n == 0)
        return 0;
    for (int64_t r = 0; r < rows; r++) {
        isa->lstm[dtype](n, z, c, h, m);
        z += 4 * step;
        c += step;
        h += step;
        m += step;
    }
    return 0;
}

static void pullback(struct kernel_rule *rule)
{
    kernel_ref gh = rule->adjoint[0], gm = rule->adjoint[1];
    const kernel_ref c = rule->in[1];
    if (gh == NULL && gm == NULL)
        return;
    /* Of what no adjoint has arrived, it is 0: c < c, whatever c is. */
    if (gh == NULL)
        gh = kernel_emit2(rule, &kernel_op_less, c, c);
    if (gm == NULL)
        gm = kernel_emit2(rule, &kernel_op_less, c, c);
    const kernel_ref in[] = {gh, gm, rule->in[0], c};
    kernel_accumulate_all(rule, &kernel_op_lstm_cell_gradient, 4, in, 0, NULL);
}

/* Three logistic functions, two hyperbolic tangents, a product and sum, a product. */
static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = (3 * 24 + 2 * 25 + 4) * (uint64_t)call->in[1]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(lstm_cell) = {
    .name = "lstm_cell",
    KERNEL_IN("z", "c"),
    .result_names = result_names,
    .n_out = 2,
    .n_results = 2,
    .saves_in = 3,
    .depends = kernel_depends_rows,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "One step of a long short-term memory from its pre-activations z and its old cell c.",
    .shapes = "z [b,4h] in the order i, f, g, o, c [b,h] -> h [b,h], cell [b,h]",
    .formula = "cell = s(z_f) c + s(z_i) tanh(z_g), h = s(z_o) tanh(cell), s(x) = 1 / (1 + e^-x)",
    .derivative = "q = cell' + h' o (1 - t^2), t = tanh(cell); z_i' += q g i (1 - i), z_f' += q c "
                  "f (1 - f), z_g' += q i (1 - g^2), z_o' += h' t o (1 - o), c' += q f",
    .edges =
        "gates are 0 or 1 and tanh -1 or 1 at infinities, with derivative 0 where c is finite; "
        "NaN where a gate of 0 meets an infinite c",
    .source = "Hochreiter & Schmidhuber (1997), doi:10.1162/neco.1997.9.8.1735; forget gate: Gers, "
              "Schmidhuber & Cummins (2000), doi:10.1162/089976600300015015",
};
