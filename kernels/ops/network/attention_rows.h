/* attention_rows.h: what attention, its pullback and its weights have in common: the sizes, strips
 * of rows of the weights, and how strips are shared among threads.
 *
 * Internal to kernels/. Rows are queries and columns are keys. Nothing that is made here has as
 * many elements as all weights: what is not kept exists a strip or a tile of a strip at a time.
 */
#ifndef ATTENTION_ROWS_H
#define ATTENTION_ROWS_H

#include "dense.h"
#include "gemm.h"
#include "op_rules.h"
#include "threads.h"

enum {
    ATTENTION_MOST_ROWS = 128, /* of a strip */
    ATTENTION_MOST_KEPT = 512, /* keys of weights that are kept */
    ATTENTION_MOST_PARTS = 4,  /* that run at once, each with workspace of its own */
};

/* q [...,s,d], k [...,t,d], v [...,t,e]; e is that of v where there is one. */
struct attention {
    int dtype;
    bool causal; /* row i sees columns 0..i */
    double scale;
    int64_t batches, s, t, d, e;
    int64_t strip, strips; /* rows of a strip, strips of a batch */
    int64_t tile;          /* columns that are made at a time */
};

/* Sizes of operands that attention_fits() has accepted; v: NULL where there is none. attr: scale,
 * causal. columns: the most of a tile, 0: all. */
struct attention attention_of(const int64_t *attr, kernel_ref q, kernel_ref k, kernel_ref v,
                              int64_t columns);

/* Whether the weights are kept: where that is asked for, and rows are short. attr: that of
 * attention. */
bool attention_keeps(const int64_t *attr, kernel_ref k);

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

struct gemm_matrix attention_flipped(struct gemm_matrix m);

/* `to` (dense) = scale * `from`; both have the same extents. */
void attention_scaled(const struct attention *a, const struct gemm_matrix *from,
                      const struct gemm_matrix *to);

/* What a part that makes scores works with. */
struct attention_scores {
    kernel_ref q, k;
    void *scaled, *products; /* workspace; that of `products` serves all products with k and v */
};
size_t attention_space(const struct attention *a);
void attention_begin(const struct attention *a, kernel_ref q, kernel_ref k, void *space,
                     struct attention_scores *scores);

/* Rows first..first+rows of q, times the scale. */
struct gemm_matrix attention_queries(const struct attention *a,
                                     const struct attention_scores *scores, int64_t batch,
                                     int64_t first, int64_t rows);

/* Scores of such rows and the columns from, from + 1, ..., as many as the tile has. */
void attention_tile(const struct attention *a, const struct attention_scores *scores, int64_t batch,
                    const struct gemm_matrix *queries, int64_t from,
                    const struct gemm_matrix *tile);

/* Exponentials of a strip's scores in place: exp(score - shift[row]) where a row sees the column,
 * else 0. The strip's first row is row `first`. */
void attention_exponentials(const struct attention *a, int64_t first,
                            const struct gemm_matrix *strip, const void *shift);

/* Elements from..to-1 of a row become 0. */
void attention_clear(const struct attention *a, void *row, int64_t from, int64_t to);

/* Into how many parts the work is divided at most: a function of the sizes alone. */
int attention_parts(const struct attention *a);

/* Units 0..units-1 of the work on so many threads as there are, but at most `parts`; `part` says
 * which workspace a unit may use. Which thread runs a unit, and when, changes no bit. */
struct attention_work {
    void (*unit)(const void *job, int64_t unit, int part);
    const void *job;
    int64_t units, next; /* next: 0 */
};
void attention_run(struct attention_work *work, int parts);

/* For pullbacks whose inputs q, q + 1 are q and k: adds what `scores`, an adjoint of the scaled
 * scores, says of both. */
void attention_add_scores(struct kernel_rule *rule, int q, kernel_ref scores);

#endif
