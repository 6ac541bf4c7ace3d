/* attention_rows.h: what attention, its pullback and its weights have in common: the sizes, and
 * strips of rows of the weights.
 *
 * Internal to kernels/. Rows are queries and columns are keys; a strip has as many rows as fit
 * into the second-level cache, so that weights which are not kept need workspace for a strip
 * alone.
 */
#ifndef ATTENTION_ROWS_H
#define ATTENTION_ROWS_H

#include "dense.h"
#include "gemm.h"
#include "op_rules.h"

enum { ATTENTION_MOST_ROWS = 256 }; /* of a strip */

/* q [...,s,d], k [...,t,d], v [...,t,e]; e is that of v where there is one. */
struct attention {
    int dtype;
    bool causal; /* row i sees columns 0..i */
    double scale;
    int64_t batches, s, t, d, e;
    int64_t strip; /* rows of a strip */
};

/* Sizes of operands that attention_check() has accepted; v: NULL where there is none. attr: scale,
 * causal. */
struct attention attention_of(const int64_t *attr, kernel_ref q, kernel_ref k, kernel_ref v);

/* The factor of the scores: attr[0], or 1 / sqrt(d) where that is 0. */
double attention_scale(const int64_t *attr, kernel_ref q);

/* True if ranks and extents of q, k and v (or NULL) fit. */
bool attention_fits(kernel_ref q, kernel_ref k, kernel_ref v);

/* True if x has the leading axes of q and then these extents; columns < 0: one axis less. */
bool attention_has(kernel_ref x, kernel_ref q, int64_t rows, int64_t columns);

/* Columns that rows before `end` see. */
static inline int64_t attention_seen(const struct attention *a, int64_t end)
{
    return a->causal && end < a->t ? end : a->t;
}

/* Pairs of a row and a column that it sees, in all batches. */
uint64_t attention_pairs(const struct attention *a);

static inline void *attention_at(const struct attention *a, void *data, int64_t elements)
{
    return (char *)data + elements * (int64_t)kernel_dtype_bytes(a->dtype);
}

/* Bytes of n numbers, rounded up so that others may lie behind them. */
size_t attention_bytes(const struct attention *a, int64_t n);

/* The matrix of a batch: the last two axes, any strides. */
struct gemm_matrix attention_matrix(kernel_ref x, int64_t batch);

/* A dense matrix, and rows from..from+n of a matrix. */
struct gemm_matrix attention_dense(void *data, int64_t rows, int64_t columns);
struct gemm_matrix attention_rows(const struct attention *a, const struct gemm_matrix *of,
                                  int64_t from, int64_t n);

/* The transposed matrix as a view, and copied to `space` where products with it are faster. */
struct gemm_matrix attention_flipped(struct gemm_matrix m);
struct gemm_matrix attention_transposed(const struct attention *a, const struct gemm_matrix *of,
                                        void *space);

/* `to` (dense) = scale * `from`; both have the same extents. */
void attention_scaled(const struct attention *a, const struct gemm_matrix *from,
                      const struct gemm_matrix *to);

/* Scores of one batch after the other, strip by strip. */
struct attention_scores {
    kernel_ref q, k;
    struct gemm_matrix queries, columns; /* of the batch: q, and k transposed */
    void *scaled, *turned, *products;    /* workspace */
};

/* Bytes of workspace that scores and all products with the matrices of k and v take. */
size_t attention_space(const struct attention *a);
void attention_begin(const struct attention *a, kernel_ref q, kernel_ref k, void *space,
                     struct attention_scores *scores);
void attention_batch(const struct attention *a, struct attention_scores *scores, int64_t batch);

/* Scores of rows first, first + 1, ... into the strip, as many columns as it has, unless its data
 * is NULL; returns the rows of q times the scale. */
struct gemm_matrix attention_strip(const struct attention *a, struct attention_scores *scores,
                                   int64_t first, const struct gemm_matrix *strip);

/* Exponentials of a strip's scores in place: exp(score - shift[row]) where a row sees the column,
 * else 0. The strip's first row is row `first`. */
void attention_exponentials(const struct attention *a, int64_t first,
                            const struct gemm_matrix *strip, const void *shift);

/* Elements from..to-1 of a row become 0. */
void attention_clear(const struct attention *a, void *row, int64_t from, int64_t to);

/* For pullbacks whose inputs q, q + 1 are q and k: adds what `scores`, an adjoint of the scaled
 * scores, says of both. */
void attention_add_scores(struct kernel_rule *rule, int q, kernel_ref scores);

#endif
