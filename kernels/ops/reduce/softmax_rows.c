/* softmax_rows.c: see softmax_rows.h. */
#include "softmax_rows.h"
#include "elementwise.h"
#include "threads.h"

struct softmax_rows {
    const struct kernel_isa *isa;
    const char *x, *g;
    char *out;
    int64_t rows, columns;
    size_t row_bytes;
    int dtype;
};

static void softmax_rows_part(void *job, int part, int parts)
{
    const struct softmax_rows *const all = job;
    const int64_t end = all->rows * (part + 1) / parts;
    double most, total;
    for (int64_t r = all->rows * part / parts; r < end; r++) {
        const size_t at = (size_t)r * all->row_bytes;
        if (all->g)
            all->isa->softmax_gradient[all->dtype](all->columns, all->x + at, all->g + at,
                                                   all->out + at);
        else
            all->isa->softmax[all->dtype](all->columns, all->x + at, all->out + at, &most, &total);
    }
}

void softmax_rows_run(const struct kernel_array *out, const void *x, const void *g, int flops)
{
    if (out->size == 0)
        return;
    struct softmax_rows all = {.isa = kernel_isa_get(),
                               .x = x,
                               .g = g,
                               .out = out->data,
                               .columns = out->shape[out->rank - 1],
                               .dtype = out->dtype};
    const size_t elem = kernel_dtype_bytes(out->dtype);
    all.rows = out->size / all.columns;
    all.row_bytes = (size_t)all.columns * elem;
    const uint64_t ns = threads_ns((uint64_t)out->size * elem, g ? 3 : 2, flops);
    threads_run(threads_parts(ns), softmax_rows_part, &all);
}
