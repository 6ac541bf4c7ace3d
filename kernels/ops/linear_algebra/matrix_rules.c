/* matrix_rules.c: what pullbacks of linear algebra emit. */
#include "matrix_rules.h"
#include "kernel_ops.h"
#include "op_rules.h"

#include <string.h>

kernel_ref matrix_emit_columns(struct kernel_rule *rule, kernel_ref x, bool vector)
{
    int64_t shape[KERNEL_MAX_RANK];
    if (x == NULL || !vector)
        return x;
    memcpy(shape, x->shape, sizeof *shape * x->rank);
    shape[x->rank] = 1;
    return kernel_emit_shape(rule, &kernel_op_reshape, x, x->rank + 1, shape);
}

kernel_ref matrix_emit_row(struct kernel_rule *rule, kernel_ref x)
{
    int64_t shape[KERNEL_MAX_RANK];
    if (x == NULL)
        return NULL;
    memcpy(shape, x->shape, sizeof *shape * (size_t)(x->rank - 1));
    shape[x->rank - 1] = 1;
    shape[x->rank] = x->shape[x->rank - 1];
    return kernel_emit_shape(rule, &kernel_op_reshape, x, x->rank + 1, shape);
}

void matrix_accumulate_columns(struct kernel_rule *rule, int i, kernel_ref value, bool vector)
{
    if (value != NULL && vector)
        value = kernel_emit_shape(rule, &kernel_op_reshape, value, value->rank - 1, value->shape);
    kernel_accumulate_value(rule, i, value);
}

kernel_ref matrix_emit_solve_triangular(struct kernel_rule *rule, kernel_ref a, kernel_ref b,
                                        bool upper, bool transposed, bool unit)
{
    const kernel_ref in[] = {a, b};
    const int64_t attr[] = {upper, transposed, unit};
    return kernel_emit(rule, &kernel_op_solve_triangular, 2, in, 3, attr);
}

kernel_ref matrix_emit_weighed(struct kernel_rule *rule, kernel_ref x, double below,
                               double diagonal, double above)
{
    const int64_t attr[] = {kernel_attr_word(below), kernel_attr_word(diagonal),
                            kernel_attr_word(above)};
    return kernel_emit(rule, &kernel_op_weigh_triangles, 1, &x, 3, attr);
}

void matrix_accumulate_weighed(struct kernel_rule *rule, int i, kernel_ref x, double below,
                               double diagonal, double above)
{
    const kernel_ref in = rule->in[i];
    if (x == NULL)
        return;
    bool same = x->rank == in->rank;
    for (int axis = 0; same && axis < x->rank; axis++)
        same = x->shape[axis] == in->shape[axis];
    if (!same) {
        kernel_accumulate_value(rule, i, matrix_emit_weighed(rule, x, below, diagonal, above));
        return;
    }
    const int64_t attr[] = {kernel_attr_word(below), kernel_attr_word(diagonal),
                            kernel_attr_word(above)};
    kernel_accumulate(rule, i, &kernel_op_weigh_triangles, 1, &x, 3, attr);
}

kernel_ref matrix_emit_tn(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_matmul, kernel_emit1(rule, &kernel_op_transpose, a), b);
}

kernel_ref matrix_emit_nt(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_matmul, a, kernel_emit1(rule, &kernel_op_transpose, b));
}

kernel_ref matrix_emit_nn(struct kernel_rule *rule, kernel_ref a, kernel_ref b)
{
    return kernel_emit2(rule, &kernel_op_matmul, a, b);
}
