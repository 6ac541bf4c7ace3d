/* ops/network/lstm_cell_gradient.c: the adjoints of both operands of an LSTM's cell in one pass.
 *
 * Its own pullback is made of elementary ops, since it serves second derivatives alone.
 */
#include "dense.h"
#include "elementwise.h"
#include "kernel_depends.h"
#include "kernel_ops.h"
#include "op_rules.h"

static const char *const names[] = {"gh", "gm", "z", "c"};
enum { OPERANDS = 4 };

/* clang-format off */
#define GRADIENT_SAMPLE(b, h)                                                                      \
    {.n_in = 4, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64}, .rank = {2, 2, 2, 2},   \
     .shape = {{b, h}, {b, h}, {b, 4 * (h)}, {b, h}}, .low = {-1, -1, -2, -2},                     \
     .high = {1, 1, 2, 2}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(2, 3), GRADIENT_SAMPLE(1, 1), GRADIENT_SAMPLE(1, 17),
    GRADIENT_SAMPLE(0, 3), GRADIENT_SAMPLE(2, 0),
};
KERNEL_SAMPLES(samples)

static bool has_extents(kernel_ref x, int64_t rows, int64_t columns)
{
    return x->rank == 2 && x->shape[0] == rows && x->shape[1] == columns;
}

static int shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref *in = call->in;
    for (int i = 0; i < OPERANDS; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    const int64_t b = in[3]->rank == 2 ? in[3]->shape[0] : 0;
    const int64_t h = in[3]->rank == 2 ? in[3]->shape[1] : 0;
    if (!has_extents(in[0], b, h) || !has_extents(in[1], b, h) || !has_extents(in[2], b, 4 * h) ||
        in[3]->rank != 2)
        return kernel_refuse_operands(call, ", ", "gh, gm [b,h], z [b,4h], c [b,h] are wanted");
    for (int o = 0; o < 2; o++) {
        kernel_shape_begin(&out[o], in[3]->dtype, 2);
        out[o].same_as = (int8_t)(2 + o);
    }
    return 0;
}

static int forward(const struct kernel_call *call)
{
    const int dtype = call->in[0]->dtype;
    const int64_t rows = call->in[3]->shape[0], n = call->in[3]->shape[1];
    const size_t step = (size_t)n * kernel_dtype_bytes(dtype);
    const struct kernel_isa *isa = kernel_isa_get();
    char *space = call->workspace, *dz = call->out[0]->data, *dc = call->out[1]->data;
    const char *row[OPERANDS];
    if (n == 0)
        return 0;
    for (int i = 0; i < OPERANDS; i++)
        row[i] = dense_data(call->in[i], &space);
    for (int64_t r = 0; r < rows; r++) {
        const void *const in[] = {row[0], row[1], row[2], row[3]};
        isa->lstm_back[dtype](n, in, dz, dc);
        for (int i = 0; i < OPERANDS; i++)
            row[i] += i == 2 ? 4 * step : step;
        dz += 4 * step;
        dc += step;
    }
    return 0;
}

static kernel_ref mul(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_mul, a, b);
}

static kernel_ref mul3(struct kernel_rule *rule, kernel_ref a, kernel_ref b, kernel_ref c)
{
    return mul(rule, mul(rule, a, b), c);
}

static kernel_ref add(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_add, a, b);
}

/* 1 + c x. */
static kernel_ref one_plus(struct kernel_rule *rule, double c, kernel_ref x)
{
    return kernel_emit_real(rule, &kernel_op_offset, 1,
                            kernel_emit_real(rule, &kernel_op_scale, c, x));
}

/* A gate with its first and second derivative, and the part of z's adjoint that belongs to it. */
struct gate {
    kernel_ref value, first, second, along;
};

static kernel_ref part(struct kernel_rule *rule, kernel_ref z, int k)
{
    if (z == NULL)
        return NULL;
    const int64_t n = z->shape[1] / 4, attr[] = {1, k * n, (k + 1) * n, 1};
    return kernel_emit(rule, &kernel_op_slice, 1, &z, 4, attr);
}

static struct gate logistic(struct kernel_rule *rule, kernel_ref z, kernel_ref along, int k)
{
    struct gate g = {.value = kernel_emit1(rule, &kernel_op_sigmoid, part(rule, z, k)),
                     .along = part(rule, along, k)};
    g.first = mul(rule, g.value, one_plus(rule, -1, g.value));
    g.second = mul(rule, g.first, one_plus(rule, -2, g.value));
    return g;
}

static struct gate tangent(struct kernel_rule *rule, kernel_ref x, kernel_ref along)
{
    struct gate g = {.value = kernel_emit1(rule, &kernel_op_tanh, x), .along = along};
    g.first = one_plus(rule, -1, mul(rule, g.value, g.value));
    g.second = kernel_emit_real(rule, &kernel_op_scale, -2, mul(rule, g.value, g.first));
    return g;
}

/* The function is <Z, dz> + <C, dc> = q a + gh b with q = gm + gh o t1, where a is the derivative
 * of the new cell m along (Z, C), b = t o1 Z_o, and x1, x2 are a gate's derivatives. */
static void pullback(struct kernel_rule *rule)
{
    const kernel_ref gh = rule->in[0], gm = rule->in[1], z = rule->in[2], c = rule->in[3];
    kernel_ref along = rule->adjoint[0], step = rule->adjoint[1];
    if (along == NULL && step == NULL)
        return;
    if (along == NULL)
        along = kernel_emit2(rule, &kernel_op_less, z, z);
    if (step == NULL)
        step = kernel_emit2(rule, &kernel_op_less, c, c);
    const struct gate i = logistic(rule, z, along, 0), f = logistic(rule, z, along, 1);
    const struct gate g = tangent(rule, part(rule, z, 2), part(rule, along, 2));
    const struct gate o = logistic(rule, z, along, 3);
    const kernel_ref m = add(rule, mul(rule, f.value, c), mul(rule, i.value, g.value));
    const struct gate t = tangent(rule, m, NULL);
    const kernel_ref slope = mul(rule, o.value, t.first);
    const kernel_ref i1_g = mul(rule, i.first, g.value), i_g1 = mul(rule, i.value, g.first);
    const kernel_ref f1_c = mul(rule, f.first, c), o1_t = mul(rule, o.first, t.value);
    const kernel_ref o1_along = mul(rule, o.first, o.along);
    const kernel_ref a = add(rule, add(rule, mul(rule, i.along, i1_g), mul(rule, f.along, f1_c)),
                             add(rule, mul(rule, g.along, i_g1), mul(rule, step, f.value)));
    kernel_accumulate_value(rule, 0, mul(rule, slope, a));
    kernel_accumulate_value(rule, 0, mul(rule, o1_t, o.along));
    kernel_accumulate_value(rule, 1, a);
    if (!kernel_needs(rule, 2) && !kernel_needs(rule, 3))
        return;
    const kernel_ref q = add(rule, gm, mul(rule, gh, slope));
    /* The derivative in m. */
    const kernel_ref r =
        mul(rule, gh, add(rule, mul3(rule, o.value, t.second, a), mul(rule, t.first, o1_along)));
    const kernel_ref i1_g1 = mul(rule, i.first, g.first);
    const kernel_ref zi =
        add(rule, mul3(rule, i.along, i.second, g.value), mul(rule, g.along, i1_g1));
    const kernel_ref zf = add(rule, mul3(rule, f.along, f.second, c), mul(rule, step, f.first));
    const kernel_ref zg =
        add(rule, mul3(rule, g.along, g.second, i.value), mul(rule, i.along, i1_g1));
    const kernel_ref zo =
        add(rule, mul3(rule, o.first, t.first, a), mul3(rule, o.second, t.value, o.along));
    const kernel_ref parts[] = {add(rule, mul(rule, q, zi), mul(rule, r, i1_g)),
                                add(rule, mul(rule, q, zf), mul(rule, r, f1_c)),
                                add(rule, mul(rule, q, zg), mul(rule, r, i_g1)), mul(rule, gh, zo)};
    const int64_t axis = 1;
    kernel_accumulate(rule, 2, &kernel_op_concat, 4, parts, 1, &axis);
    kernel_accumulate_value(rule, 3, mul3(rule, q, f.along, f.first));
    kernel_accumulate_value(rule, 3, mul(rule, r, f.value));
}

/* The gates and the cell once more (without h), and 22 products and sums. */
static struct kernel_cost cost(const struct kernel_call *call)
{
    return (struct kernel_cost){.flops = (3 * 24 + 2 * 25 + 3 + 22) * (uint64_t)call->in[3]->size,
                                .bytes = kernel_moved_bytes(call)};
}

KERNEL_OP(lstm_cell_gradient) = {
    .name = "lstm_cell_gradient",
    .in_names = names,
    .n_in = OPERANDS,
    .n_out = 2,
    .hidden = true,
    .saves_in = 15,
    .reads_for = {12, 12, 15, 15},
    .depends = kernel_depends_rows,
    .shape = shape,
    .forward = forward,
    .pullback = pullback,
    .cost = cost,
    .workspace = dense_workspace,
    .sample = sample,
    .brief = "Adjoints of an LSTM cell's operands.",
    .shapes = "gh [b,h], gm [b,h], z [b,4h], c [b,h] -> dz [b,4h], dc [b,h]",
    .formula = "the derivative of lstm_cell, with gh and gm as the adjoints of h and of the cell",
    .derivative = "gh' and gm' are the derivative of h and the cell along (dz', dc'); z' and c' "
                  "have the second derivatives of the gates",
};
