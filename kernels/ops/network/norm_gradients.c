/* norm_gradients.c: what the ops of the norms' gradients have in common.
 *
 * May include: norm_gradients.h, normalize.h, dense.h, op_rules.h.
 */
#include "norm_gradients.h"
#include "dense.h"

static struct normalization seen(const struct kernel_op *op, const kernel_ref *in)
{
    const struct norm_gradient_family *const family = op->family;
    return family->by_channel ? normalize_channels(in[1])
                              : normalize_rows(in[1], in[2], family->centered);
}

int norm_gradient_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const struct norm_gradient_family *const family = call->op->family;
    const kernel_ref x = call->in[1], w = call->in[2];
    for (int i = 0; i < call->n_in; i++)
        if (kernel_require_float(call, i) != 0)
            return -1;
    if (!family->by_channel && normalize_rows_check(call, x, w) != 0)
        return -1;
    if (family->by_channel && (x->rank < 2 || w->rank != 1 || w->shape[0] != x->shape[1]))
        return kernel_refuse_operands(call, ", ", "x [n,c,...] and w [c] are wanted");
    for (int o = 0; o < call->op->n_out; o++) {
        kernel_shape_begin(&out[o], x->dtype, o == 0 ? x->rank : w->rank);
        out[o].same_as = o == 0 ? 1 : 2;
    }
    return 0;
}

size_t norm_gradient_workspace(const struct kernel_call *call)
{
    const struct normalization n = seen(call->op, call->in);
    return dense_workspace(call) + normalize_gradient_space(&n);
}

int norm_gradient_forward(const struct kernel_call *call)
{
    const struct normalization n = seen(call->op, call->in);
    char *space = call->workspace;
    struct normalize_gradient data = {.gx = call->out[0]->data, .gw = call->out[1]->data};
    data.g = dense_data(call->in[0], &space);
    data.x = dense_data(call->in[1], &space);
    data.w = dense_data(call->in[2], &space);
    if (n.centered) {
        data.gb = call->out[2]->data;
        data.mean = dense_data(call->in[3], &space);
    }
    data.rstd = dense_data(call->in[n.centered ? 4 : 3], &space);
    normalize_gradient(&n, &data, space);
    return 0;
}

void norm_gradient_pullback(struct kernel_rule *rule)
{
    const struct normalization n = seen(rule->op, rule->in);
    normalize_gradient_pullback(rule, &n);
}

struct kernel_cost norm_gradient_cost(const struct kernel_call *call)
{
    const struct normalization n = seen(call->op, call->in);
    return normalize_gradient_cost(call, &n);
}
