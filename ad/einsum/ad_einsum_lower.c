/* ad_einsum_lower.c: an equation as permutations, diagonals, sums and products on the tape.
 *
 * Operands are first made to have each label once, and only labels that another operand or the
 * result has; then two at a time become one. Of all pairs the one with the fewest multiplications
 * is next.
 */
#include "ad_einsum.h"

#include "kernel_ops.h"

#include <string.h>

/* A value with the labels of its axes, each once. */
struct einsum_part {
    uint32_t value;
    struct einsum_term term;
};

struct einsum_job {
    struct tape *t;
    const struct einsum *e;
    struct tape_site site;
    int n;
    struct einsum_part part[TAPE_MAX_IN];
    bool failed;
};

/* Axes of two parts by what becomes of them. */
struct split {
    struct einsum_term batch, left, right, sum;
};

static kernel_ref array_of(const struct einsum_job *j, uint32_t value)
{
    return &j->t->entries[value].array;
}

static uint32_t apply(struct einsum_job *j, const struct kernel_op *op, int n_in,
                      const uint32_t *in, int n_attr, const int64_t *attr)
{
    uint32_t out[KERNEL_MAX_OUT] = {0};
    if (!j->failed)
        j->failed = tape_apply(j->t, op, n_in, in, n_attr, attr, j->site, out) != TAPE_OK;
    return out[0];
}

static void add_label(struct einsum_term *term, uint8_t label)
{
    term->label[term->rank++] = label;
}

static int place_of(const struct einsum_term *term, uint8_t label)
{
    for (int i = 0; i < term->rank; i++)
        if (term->label[i] == label)
            return i;
    return -1;
}

static uint32_t reshaped(struct einsum_job *j, uint32_t x, int rank, const int64_t *shape)
{
    if (j->failed)
        return 0;
    const kernel_ref a = array_of(j, x);
    if (a->rank == rank && memcmp(a->shape, shape, (size_t)rank * sizeof *shape) == 0)
        return x;
    return apply(j, &kernel_op_reshape, 1, &x, rank, shape);
}

/* The part's axes in the order of `order`, which has the same labels. */
static uint32_t permuted(struct einsum_job *j, const struct einsum_part *p,
                         const struct einsum_term *order)
{
    int64_t axes[KERNEL_MAX_RANK];
    bool moves = false;
    for (int i = 0; i < order->rank; i++) {
        axes[i] = place_of(&p->term, order->label[i]);
        moves = moves || axes[i] != i;
    }
    return moves ? apply(j, &kernel_op_permute, 1, &p->value, order->rank, axes) : p->value;
}

/* ---- one operand ---- */

/* Axes a < b become one, the last: every (n + 1)th element of both as one axis. */
static void take_diagonal(struct einsum_job *j, struct einsum_part *p, int a, int b)
{
    const kernel_ref x = array_of(j, p->value);
    const int64_t n = x->shape[a];
    int64_t axes[KERNEL_MAX_RANK], shape[KERNEL_MAX_RANK];
    struct einsum_term rest = {0};
    for (int i = 0; i < p->term.rank; i++) {
        if (i == a || i == b)
            continue;
        axes[rest.rank] = i;
        shape[rest.rank] = x->shape[i];
        add_label(&rest, p->term.label[i]);
    }
    axes[rest.rank] = a;
    axes[rest.rank + 1] = b;
    shape[rest.rank] = n * n;
    add_label(&rest, p->term.label[a]);
    p->value = apply(j, &kernel_op_permute, 1, &p->value, p->term.rank, axes);
    p->value = reshaped(j, p->value, rest.rank, shape);
    p->value =
        apply(j, &kernel_op_slice, 1, &p->value, 4, (int64_t[]){rest.rank - 1, 0, n * n, n + 1});
    p->term = rest;
}

/* The first pair of axes with one label. */
static bool find_pair(const struct einsum_term *term, int *a, int *b)
{
    for (*a = 0; *a < term->rank; ++*a)
        for (*b = *a + 1; *b < term->rank; ++*b)
            if (term->label[*a] == term->label[*b])
                return true;
    return false;
}

static void take_diagonals(struct einsum_job *j, struct einsum_part *p)
{
    int a, b;
    while (!j->failed && find_pair(&p->term, &a, &b))
        take_diagonal(j, p, a, b);
}

/* Axes of "..." that others have more of than 1 are left out: products broadcast them. */
static void drop_ones(struct einsum_job *j, struct einsum_part *p)
{
    const kernel_ref x = array_of(j, p->value);
    int64_t shape[KERNEL_MAX_RANK];
    struct einsum_term rest = {0};
    for (int i = 0; i < p->term.rank; i++) {
        const uint8_t label = p->term.label[i];
        if (label >= EINSUM_LETTERS && x->shape[i] == 1 && j->e->extent[label] != 1)
            continue;
        shape[rest.rank] = x->shape[i];
        add_label(&rest, label);
    }
    if (rest.rank == p->term.rank)
        return;
    p->value = reshaped(j, p->value, rest.rank, shape);
    p->term = rest;
}

/* True if the result or a part besides x and y has the label. */
static bool is_needed(const struct einsum_job *j, uint8_t label, int x, int y)
{
    bool needed = place_of(&j->e->result, label) >= 0;
    for (int k = 0; k < j->n; k++)
        needed = needed || (k != x && k != y && place_of(&j->part[k].term, label) >= 0);
    return needed;
}

static void sum_unneeded(struct einsum_job *j, int k)
{
    struct einsum_part *p = &j->part[k];
    int64_t attr[1 + KERNEL_MAX_RANK] = {0};
    struct einsum_term rest = {0};
    int n = 1;
    for (int i = 0; i < p->term.rank; i++) {
        if (is_needed(j, p->term.label[i], k, k))
            add_label(&rest, p->term.label[i]);
        else
            attr[n++] = i;
    }
    if (n > 1)
        p->value = apply(j, &kernel_op_sum, 1, &p->value, n, attr);
    p->term = rest;
}

/* ---- two operands ---- */

static struct split split_of(const struct einsum_job *j, int x, int y)
{
    const struct einsum_term *a = &j->part[x].term, *b = &j->part[y].term;
    struct split s = {.batch = {0}};
    for (int i = 0; i < a->rank; i++) {
        const uint8_t label = a->label[i];
        if (place_of(b, label) < 0)
            add_label(&s.left, label);
        else if (is_needed(j, label, x, y))
            add_label(&s.batch, label);
        else
            add_label(&s.sum, label);
    }
    for (int i = 0; i < b->rank; i++)
        if (place_of(a, b->label[i]) < 0)
            add_label(&s.right, b->label[i]);
    return s;
}

static int64_t extents(const struct einsum_job *j, const struct einsum_term *term, int64_t *shape)
{
    int64_t product = 1;
    for (int i = 0; i < term->rank; i++) {
        shape[i] = j->e->extent[term->label[i]];
        product *= shape[i];
    }
    return product;
}

/* Multiplications of the pair's product. */
static double price(const struct einsum_job *j, int x, int y)
{
    const struct split s = split_of(j, x, y);
    const struct einsum_term *const all[] = {&s.batch, &s.left, &s.right, &s.sum};
    double price = 1;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < all[k]->rank; i++)
            price *= (double)j->e->extent[all[k]->label[i]];
    return price;
}

static struct einsum_term joined(const struct einsum_term *a, const struct einsum_term *b,
                                 const struct einsum_term *c)
{
    struct einsum_term all = *a;
    for (int i = 0; i < b->rank; i++)
        add_label(&all, b->label[i]);
    for (int i = 0; c != NULL && i < c->rank; i++)
        add_label(&all, c->label[i]);
    return all;
}

/* Nothing to sum: a product element by element, axes of extent 1 standing for those that one
 * operand lacks. */
static uint32_t multiply(struct einsum_job *j, const struct split *s, int x, int y)
{
    const struct einsum_term a = joined(&s->batch, &s->left, NULL);
    const struct einsum_term b = joined(&s->batch, &s->right, NULL);
    int64_t shape[KERNEL_MAX_RANK];
    uint32_t in[] = {permuted(j, &j->part[x], &a), permuted(j, &j->part[y], &b)};
    const int batch = s->batch.rank, left = s->left.rank, right = s->right.rank;
    (void)extents(j, &a, shape);
    for (int i = 0; i < right; i++)
        shape[batch + left + i] = 1;
    in[0] = reshaped(j, in[0], batch + left + right, shape);
    if (left > 0 && batch > 0) { /* else its axes are the last ones anyway */
        for (int i = 0; i < left; i++)
            shape[batch + i] = 1;
        (void)extents(j, &s->right, shape + batch + left);
        in[1] = reshaped(j, in[1], batch + left + right, shape);
    }
    return apply(j, &kernel_op_mul, 2, in, 0, NULL);
}

/* A product of matrices: several axes of a kind are folded into one. */
static uint32_t contract(struct einsum_job *j, const struct split *s, int x, int y)
{
    const struct einsum_term a = joined(&s->batch, &s->left, &s->sum);
    const struct einsum_term b = joined(&s->batch, &s->sum, &s->right);
    int64_t shape[KERNEL_MAX_RANK + 2], spare[KERNEL_MAX_RANK];
    int batch = s->batch.rank;
    const int64_t batches = extents(j, &s->batch, shape);
    if (batch + 2 > KERNEL_MAX_RANK) {
        shape[0] = batches;
        batch = 1;
    }
    uint32_t in[] = {permuted(j, &j->part[x], &a), permuted(j, &j->part[y], &b)};
    shape[batch] = extents(j, &s->left, spare);
    shape[batch + 1] = extents(j, &s->sum, spare);
    in[0] = reshaped(j, in[0], batch + 2, shape);
    shape[batch] = shape[batch + 1];
    shape[batch + 1] = extents(j, &s->right, spare);
    in[1] = reshaped(j, in[1], batch + 2, shape);
    const uint32_t product = apply(j, &kernel_op_matmul, 2, in, 0, NULL);
    const struct einsum_term all = joined(&s->batch, &s->left, &s->right);
    (void)extents(j, &all, spare);
    return reshaped(j, product, all.rank, spare);
}

/* Parts x < y become one in place of x. */
static enum tape_status combine(struct einsum_job *j, int x, int y)
{
    const struct split s = split_of(j, x, y);
    const int rank = s.batch.rank + s.left.rank + s.right.rank;
    char shown[EINSUM_SHOWN_BYTES];
    if (rank > KERNEL_MAX_RANK)
        return tape_fail(j->t, TAPE_ERROR_SHAPE, j->site,
                         "einsum: \"%s\": the product of two operands would have %d axes, %d "
                         "are possible",
                         einsum_shown(j->e->text, shown), rank, KERNEL_MAX_RANK);
    j->part[x].value = s.sum.rank > 0 ? contract(j, &s, x, y) : multiply(j, &s, x, y);
    j->part[x].term = joined(&s.batch, &s.left, &s.right);
    j->n--;
    memmove(&j->part[y], &j->part[y + 1], (size_t)(j->n - y) * sizeof j->part[0]);
    return j->failed ? (enum tape_status)j->t->error.code : TAPE_OK;
}

static enum tape_status combine_cheapest(struct einsum_job *j)
{
    double least = -1;
    int best_x = 0, best_y = 1;
    for (int x = 0; x < j->n; x++)
        for (int y = x + 1; y < j->n; y++) {
            const double p = price(j, x, y);
            if (least < 0 || p < least) {
                least = p;
                best_x = x;
                best_y = y;
            }
        }
    return combine(j, best_x, best_y);
}

enum tape_status einsum_lower(struct tape *t, const struct einsum *e, const uint32_t *in,
                              struct tape_site site, uint32_t *out)
{
    struct einsum_job j = {.t = t, .e = e, .site = site, .n = e->n};
    for (int k = 0; k < e->n; k++)
        j.part[k] = (struct einsum_part){in[k], e->term[k]};
    for (int k = 0; k < e->n && !j.failed; k++) {
        drop_ones(&j, &j.part[k]);
        take_diagonals(&j, &j.part[k]);
    }
    for (int k = 0; k < e->n && !j.failed; k++)
        sum_unneeded(&j, k);
    while (j.n > 1 && !j.failed) {
        const enum tape_status status = combine_cheapest(&j);
        if (status != TAPE_OK)
            return status;
    }
    *out = j.failed ? 0 : permuted(&j, &j.part[0], &e->result);
    if (*out == in[0] && !j.failed) { /* a value of its own, though nothing was to be done */
        int64_t axes[KERNEL_MAX_RANK];
        for (int i = 0; i < e->result.rank; i++)
            axes[i] = i;
        *out = apply(&j, &kernel_op_permute, 1, in, e->result.rank, axes);
    }
    return j.failed ? (enum tape_status)t->error.code : TAPE_OK;
}
