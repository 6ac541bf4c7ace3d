/* attention_rows.c: see attention_rows.h. */
#include "attention_rows.h"
#include "elementwise.h"
#include "kernel_ops.h"

#include <math.h>
#include <string.h>

/* Bytes of a tile that stay in a second-level cache beside what they are multiplied with; rows that
 * a strip has at least, since products of fewer are slow; multiplications of a part that are worth
 * a thread. */
enum { TILE_BYTES = 256 << 10, LEAST_ROWS = 64, PART_PRODUCTS = 1 << 20 };

double attention_scale(const int64_t *attr, kernel_ref q)
{
    const double scale = kernel_attr_real(attr[0]);
    const int64_t d = q->shape[q->rank - 1];
    return scale != 0 ? scale : d > 0 ? 1 / sqrt((double)d) : 1;
}

bool attention_keeps(const int64_t *attr, kernel_ref k)
{
    return attr[2] != 0 && k->shape[k->rank - 2] <= ATTENTION_MOST_KEPT;
}

struct attention attention_of(const int64_t *attr, kernel_ref q, kernel_ref k, kernel_ref v,
                              int64_t columns)
{
    const int last = q->rank - 1;
    struct attention a = {.dtype = q->dtype,
                          .causal = attr[1] != 0,
                          .scale = attention_scale(attr, q),
                          .batches = 1,
                          .s = q->shape[last - 1],
                          .t = k->shape[last - 1],
                          .d = q->shape[last],
                          .e = v != NULL ? v->shape[last] : 0};
    for (int axis = 0; axis < last - 1; axis++)
        a.batches *= q->shape[axis];
    a.tile = columns > 0 && columns < a.t ? columns : a.t;
    const int64_t row_bytes = (a.tile > 0 ? a.tile : 1) * (int64_t)kernel_dtype_bytes(a.dtype);
    a.strip = TILE_BYTES / row_bytes / LEAST_ROWS * LEAST_ROWS;
    if (a.strip < LEAST_ROWS)
        a.strip = LEAST_ROWS;
    if (a.strip > ATTENTION_MOST_ROWS)
        a.strip = ATTENTION_MOST_ROWS;
    if (a.strip > a.s)
        a.strip = a.s;
    a.strips = a.s > 0 ? (a.s + a.strip - 1) / a.strip : 0;
    return a;
}

bool attention_has(kernel_ref x, kernel_ref q, int64_t rows, int64_t columns)
{
    const int leading = q->rank - 2;
    if (x->rank != leading + (columns < 0 ? 1 : 2))
        return false;
    for (int axis = 0; axis < leading; axis++)
        if (x->shape[axis] != q->shape[axis])
            return false;
    return x->shape[leading] == rows && (columns < 0 || x->shape[leading + 1] == columns);
}

bool attention_fits(kernel_ref q, kernel_ref k, kernel_ref v)
{
    if (q->rank < 2 || k->rank != q->rank || (v != NULL && v->rank != q->rank))
        return false;
    const int last = q->rank - 1;
    const int64_t t = k->shape[last - 1];
    return attention_has(k, q, t, q->shape[last]) &&
           (v == NULL || attention_has(v, q, t, v->shape[last]));
}

size_t attention_bytes(const struct attention *a, int64_t n)
{
    return dense_rounded((size_t)n * kernel_dtype_bytes(a->dtype));
}

uint64_t attention_pairs(const struct attention *a)
{
    const int64_t triangle = a->s < a->t ? a->s : a->t;
    const int64_t pairs =
        a->causal ? triangle * (triangle + 1) / 2 + (a->s - triangle) * a->t : a->s * a->t;
    return (uint64_t)(a->batches * pairs);
}

struct gemm_matrix attention_matrix(kernel_ref x, int64_t batch)
{
    const int leading = x->rank - 2;
    int64_t offset = 0;
    for (int axis = leading - 1; axis >= 0 && x->size > 0; axis--) {
        offset += batch % x->shape[axis] * x->strides[axis];
        batch /= x->shape[axis];
    }
    return (struct gemm_matrix){.data = (char *)x->data +
                                        offset * (int64_t)kernel_dtype_bytes(x->dtype),
                                .rows = x->shape[leading],
                                .columns = x->shape[leading + 1],
                                .row_stride = x->strides[leading],
                                .column_stride = x->strides[leading + 1]};
}

struct gemm_matrix attention_dense(void *data, int64_t rows, int64_t columns)
{
    return (struct gemm_matrix){data, rows, columns, columns, 1};
}

struct gemm_matrix attention_rows(const struct attention *a, const struct gemm_matrix *of,
                                  int64_t from, int64_t n)
{
    struct gemm_matrix rows = *of;
    rows.data = attention_at(a, of->data, from * of->row_stride);
    rows.rows = n;
    return rows;
}

/* An array over a matrix; `words` [4] are its shape and strides. */
static struct kernel_array array_of(const struct attention *a, const struct gemm_matrix *m,
                                    int64_t *words)
{
    memcpy(words, (int64_t[]){m->rows, m->columns, m->row_stride, m->column_stride},
           4 * sizeof *words);
    return (struct kernel_array){.data = m->data,
                                 .shape = words,
                                 .strides = words + 2,
                                 .size = m->rows * m->columns,
                                 .dtype = (uint8_t)a->dtype,
                                 .rank = 2,
                                 .contiguous =
                                     m->column_stride == 1 && m->row_stride == m->columns};
}

void attention_scaled(const struct attention *a, const struct gemm_matrix *from,
                      const struct gemm_matrix *to)
{
    int64_t words[2][4];
    const struct kernel_array x = array_of(a, from, words[0]);
    struct kernel_array y = array_of(a, to, words[1]);
    const kernel_ref in = &x;
    kernel_elementwise(LOOP_scale, &y, 1, &in, &a->scale, false);
}

struct gemm_matrix attention_flipped(struct gemm_matrix m)
{
    return (struct gemm_matrix){m.data, m.columns, m.rows, m.column_stride, m.row_stride};
}

/* A product may copy a tile of k or v, or all that a strip sees of them. */
size_t attention_space(const struct attention *a)
{
    return attention_bytes(a, a->strip * a->d) +
           attention_bytes(a, a->tile * (a->d > a->e ? a->d : a->e));
}

void attention_begin(const struct attention *a, kernel_ref q, kernel_ref k, void *space,
                     struct attention_scores *scores)
{
    *scores = (struct attention_scores){.q = q, .k = k, .scaled = space};
    scores->products = (char *)space + attention_bytes(a, a->strip * a->d);
}

struct gemm_matrix attention_queries(const struct attention *a,
                                     const struct attention_scores *scores, int64_t batch,
                                     int64_t first, int64_t rows)
{
    const struct gemm_matrix q = attention_matrix(scores->q, batch);
    const struct gemm_matrix from = attention_rows(a, &q, first, rows);
    const struct gemm_matrix scaled = attention_dense(scores->scaled, rows, a->d);
    attention_scaled(a, &from, &scaled);
    return scaled;
}

void attention_tile(const struct attention *a, const struct attention_scores *scores, int64_t batch,
                    const struct gemm_matrix *queries, int64_t from, const struct gemm_matrix *tile)
{
    const struct gemm_matrix k = attention_matrix(scores->k, batch);
    const struct gemm_matrix columns =
        attention_flipped(attention_rows(a, &k, from, tile->columns));
    gemm_run(a->dtype, queries, &columns, tile, false, scores->products);
}

void attention_exponentials(const struct attention *a, int64_t first,
                            const struct gemm_matrix *strip, const void *shift)
{
    const struct kernel_isa *isa = kernel_isa_get();
    for (int64_t r = 0; r < strip->rows; r++) {
        char *row = attention_at(a, strip->data, r * strip->row_stride);
        const int64_t seen = attention_seen(a, first + r + 1);
        const double at = kernel_load(a->dtype, shift, r);
        isa->exp_shift[a->dtype](1, seen, row, &at);
        attention_clear(a, row, seen, strip->columns);
    }
}

void attention_clear(const struct attention *a, void *row, int64_t from, int64_t to)
{
    memset(attention_at(a, row, from), 0, (size_t)(to - from) * kernel_dtype_bytes(a->dtype));
}

int attention_parts(const struct attention *a)
{
    const uint64_t products = attention_pairs(a) * (uint64_t)(a->d + a->e) / PART_PRODUCTS;
    const int64_t units = a->batches * a->strips;
    const int most = units < ATTENTION_MOST_PARTS ? (int)units : ATTENTION_MOST_PARTS;
    return products < 1 ? 1 : products < (uint64_t)most ? (int)products : most;
}

static void run_part(void *data, int part, int parts)
{
    struct attention_work *work = data;
    (void)parts;
    for (;;) {
        const int64_t unit = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);
        if (unit >= work->units)
            return;
        work->unit(work->job, unit, part);
    }
}

void attention_run(struct attention_work *work, int parts)
{
    const int threads = kernel_threads();
    int use = threads < parts ? threads : parts;
    const int before = use > 1 ? gemm_threads_hold(use) : 0;
    if (before < 0)
        use = 1;
    threads_run(use < 1 ? 1 : use, run_part, work);
    if (before > 0)
        gemm_threads_restore(before);
}

void attention_add_scores(struct kernel_rule *rule, int q, kernel_ref scores)
{
    const double scale = attention_scale(rule->attr, rule->in[q]);
    const kernel_ref u = kernel_emit_real(rule, &kernel_op_scale, scale, scores);
    if (u == NULL)
        return;
    const kernel_ref to_q[] = {u, rule->in[q + 1]};
    kernel_accumulate(rule, q, &kernel_op_matmul, 2, to_q, 0, NULL);
    const kernel_ref to_k[] = {kernel_emit1(rule, &kernel_op_transpose, u), rule->in[q]};
    kernel_accumulate(rule, q + 1, &kernel_op_matmul, 2, to_k, 0, NULL);
}
