/* attention_rows.c: sizes of attention, and strips of rows of its weights. */
#include "attention_rows.h"
#include "elementwise.h"
#include "kernel_ops.h"

#include <math.h>
#include <string.h>

/* Bytes of a strip that stay in a second-level cache beside what they are multiplied with, rows
 * that a strip has at least, and from which on a transposed operand is worth its copy. */
enum { STRIP_BYTES = 256 << 10, STRIP_ROWS = 16, TRANSPOSE_ROWS = 16 };

double attention_scale(const int64_t *attr, kernel_ref q)
{
    const double scale = kernel_attr_real(attr[0]);
    const int64_t d = q->shape[q->rank - 1];
    return scale != 0 ? scale : d > 0 ? 1 / sqrt((double)d) : 1;
}

struct attention attention_of(const int64_t *attr, kernel_ref q, kernel_ref k, kernel_ref v)
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
    const int64_t row_bytes = (a.t > 0 ? a.t : 1) * (int64_t)kernel_dtype_bytes(a.dtype);
    a.strip = STRIP_BYTES / row_bytes / STRIP_ROWS * STRIP_ROWS;
    if (a.strip < STRIP_ROWS)
        a.strip = STRIP_ROWS;
    if (a.strip > ATTENTION_MOST_ROWS)
        a.strip = ATTENTION_MOST_ROWS;
    if (a.strip > a.s)
        a.strip = a.s;
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

struct gemm_matrix attention_transposed(const struct attention *a, const struct gemm_matrix *of,
                                        void *space)
{
    const struct gemm_matrix flipped = attention_flipped(*of);
    if (a->s < TRANSPOSE_ROWS || flipped.column_stride == 1)
        return flipped;
    const struct gemm_matrix copy = attention_dense(space, flipped.rows, flipped.columns);
    int64_t words[2][4];
    const struct kernel_array x = array_of(a, &flipped, words[0]);
    struct kernel_array y = array_of(a, &copy, words[1]);
    const kernel_ref in = &x;
    kernel_elementwise(LOOP_copy, &y, 1, &in, NULL, false);
    return copy;
}

/* A product may copy the matrix of k or v, if not as a whole then as far as a strip sees it. */
size_t attention_space(const struct attention *a)
{
    return attention_bytes(a, a->strip * a->d) + attention_bytes(a, a->d * a->t) +
           attention_bytes(a, a->t * (a->d > a->e ? a->d : a->e));
}

void attention_begin(const struct attention *a, kernel_ref q, kernel_ref k, void *space,
                     struct attention_scores *scores)
{
    char *at = space;
    *scores = (struct attention_scores){.q = q, .k = k, .scaled = at};
    at += attention_bytes(a, a->strip * a->d);
    scores->turned = at;
    scores->products = at + attention_bytes(a, a->d * a->t);
}

void attention_batch(const struct attention *a, struct attention_scores *scores, int64_t batch)
{
    const struct gemm_matrix k = attention_matrix(scores->k, batch);
    scores->queries = attention_matrix(scores->q, batch);
    scores->columns = attention_transposed(a, &k, scores->turned);
}

struct gemm_matrix attention_strip(const struct attention *a, struct attention_scores *scores,
                                   int64_t first, const struct gemm_matrix *strip)
{
    const struct gemm_matrix from = attention_rows(a, &scores->queries, first, strip->rows);
    const struct gemm_matrix rows = attention_dense(scores->scaled, strip->rows, a->d);
    struct gemm_matrix columns = scores->columns;
    columns.columns = strip->columns;
    attention_scaled(a, &from, &rows);
    if (strip->data != NULL)
        gemm_run(a->dtype, &rows, &columns, strip, false, scores->products);
    return rows;
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
