/* diagonals.c: diagonals of matrices as views. */
#include "diagonals.h"
#include "elementwise.h"
#include "moves.h"

#include <string.h>

bool kernel_diagonal_of(int64_t m, int64_t n, int64_t number, struct kernel_diagonal *diagonal)
{
    if (number < -m || number > n)
        return false;
    diagonal->row = number < 0 ? -number : 0;
    diagonal->column = number > 0 ? number : 0;
    const int64_t rows = m - diagonal->row, columns = n - diagonal->column;
    diagonal->length = rows < columns ? rows : columns;
    return true;
}

int kernel_diagonal_find(const struct kernel_call *call, int64_t number,
                         struct kernel_diagonal *diagonal)
{
    const kernel_ref x = call->in[0];
    if (x->rank < 2)
        return kernel_refuse_operands(call, "", "a matrix [...,m,n] is wanted");
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1];
    if (!kernel_diagonal_of(m, n, number, diagonal))
        return kernel_refuse_operands(call, "", "diagonal %lld is not in %lld..%lld",
                                      (long long)number, -(long long)m, (long long)n);
    return 0;
}

void kernel_diagonal_view(struct kernel_view *view, const struct kernel_array *of,
                          const struct kernel_diagonal *diagonal)
{
    const int last = of->rank - 2;
    const int64_t row = of->strides[last], column = of->strides[last + 1];
    view->array = *of;
    kernel_view_bind(view);
    view->array.rank = (uint8_t)(last + 1);
    view->array.size = diagonal->length;
    for (int axis = 0; axis < last; axis++) {
        view->shape[axis] = of->shape[axis];
        view->strides[axis] = of->strides[axis];
        view->array.size *= of->shape[axis];
    }
    view->shape[last] = diagonal->length;
    view->strides[last] = row + column;
    view->array.contiguous = view->array.size == 0;
    if (view->array.size > 0)
        view->array.data =
            kernel_move_at(of->data, of->dtype, diagonal->row * row + diagonal->column * column);
}

void kernel_diagonal_put(const struct kernel_call *call, int64_t number)
{
    struct kernel_array *const y = call->out[0];
    const kernel_ref x = call->in[0];
    struct kernel_diagonal diagonal;
    struct kernel_view view;
    if (!call->accumulate)
        memset(y->data, 0, (size_t)y->size * kernel_dtype_bytes(y->dtype));
    if (x->size == 0 ||
        !kernel_diagonal_of(y->shape[y->rank - 2], y->shape[y->rank - 1], number, &diagonal))
        return;
    kernel_diagonal_view(&view, y, &diagonal);
    if (call->accumulate)
        kernel_elementwise(LOOP_copy, &view.array, 1, &x, NULL, true);
    else
        kernel_move_all(&view.array, x);
}
