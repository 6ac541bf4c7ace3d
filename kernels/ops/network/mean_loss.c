/* mean_loss.c: the mean of an elementwise row, and its gradient.
 *
 * May include: mean_loss.h, elementwise.h, kernel_ops.h.
 */
#include "mean_loss.h"
#include "elementwise.h"
#include "kernel_ops.h"

#include <string.h>

int mean_loss_shape(const struct kernel_call *call, struct kernel_shape *out)
{
    const kernel_ref x = call->in[0], target = call->in[1];
    if (kernel_require_float(call, 0) != 0 || kernel_require_float(call, 1) != 0)
        return -1;
    if (x->rank != target->rank || memcmp(x->shape, target->shape, x->rank * sizeof *x->shape) != 0)
        return kernel_refuse_operands(call, ", ", "x and target have one shape");
    kernel_shape_begin(out, x->dtype, 0);
    return 0;
}

int mean_loss_forward(const struct kernel_call *call, const struct kernel_op *row, double third)
{
    struct kernel_array *loss = call->out[0];
    const float narrow = (float)third;
    struct kernel_array constant = {.size = 1, .dtype = loss->dtype, .contiguous = true};
    constant.data = loss->dtype == KERNEL_F32 ? (void *)&narrow : (void *)&third;
    const kernel_ref in[] = {call->in[0], call->in[1], &constant};
    const double n = (double)call->in[0]->size;
    kernel_fill(loss, 0);
    kernel_elementwise(row->row->loop, loss, row->n_in, in, NULL, true);
    if (loss->dtype == KERNEL_F32)
        *(float *)loss->data = (float)((double)*(float *)loss->data / n);
    else
        *(double *)loss->data /= n;
    return 0;
}

void mean_loss_pullback(struct kernel_rule *rule, const struct kernel_op *row, double third)
{
    if (rule->adjoint[0] == NULL)
        return;
    const kernel_ref *const in = rule->in, *const adjoint = rule->adjoint;
    const int n_attr = rule->n_attr;
    const double each = in[0]->size > 0 ? 1 / (double)in[0]->size : 0;
    const kernel_ref share = kernel_emit_real(rule, &kernel_op_scale, each, adjoint[0]);
    kernel_ref operands[3] = {in[0], in[1], NULL};
    if (row->n_in == 3) /* a constant, which no gradient reaches */
        operands[2] = kernel_emit_real(rule, &kernel_op_scale, third,
                                       kernel_emit2(rule, &kernel_op_tie, adjoint[0], adjoint[0]));
    rule->in = operands;
    rule->adjoint = &share;
    rule->n_attr = 0;
    if (share != NULL)
        row->pullback(rule);
    rule->in = in;
    rule->adjoint = adjoint;
    rule->n_attr = n_attr;
}

struct kernel_cost mean_loss_cost(const struct kernel_call *call, const struct kernel_op *row)
{
    return (struct kernel_cost){.flops = (row->row->flops + 1) * (uint64_t)call->in[0]->size + 4,
                                .bytes = kernel_moved_bytes(call)};
}
