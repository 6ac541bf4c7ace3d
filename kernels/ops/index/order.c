/* order.c: numbers sorted and selected by integer keys.
 *
 * Few keys are merged, many are distributed by their bytes, the least significant one first; both
 * leave equal keys as they are.
 */
#include "order.h"
#include "moves.h"
#include "part.h"
#include "product_axes.h"

#include <math.h>
#include <string.h>

struct kernel_key {
    uint64_t key;
    int64_t place;
};

enum {
    RUN = 16,         /* keys that are sorted by insertion */
    FEW = 128,        /* from here on bytes are faster than merges */
    SELECT_SHARE = 8, /* a heap holds at most this part of the keys */
    DIGITS = 256
};

static uint64_t key_of(double x, bool descending)
{
    union {
        double d;
        uint64_t u;
    } word = {.d = x + 0.0}; /* -0 becomes 0 */
    if (isnan(x))
        return UINT64_MAX;
    const uint64_t sign = (uint64_t)1 << 63;
    const uint64_t key = word.u & sign ? ~word.u : word.u | sign;
    return descending ? ~key : key;
}

/* The keys of n numbers that lie `stride` apart, in ascending order or reversed. */
static void make_keys(struct kernel_key *keys, int dtype, const void *x, int64_t n, int64_t stride,
                      bool descending)
{
    for (int64_t i = 0; i < n; i++)
        keys[i] = (struct kernel_key){key_of(kernel_load(dtype, x, i * stride), descending), i};
}

static void insert_all(struct kernel_key *keys, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const struct kernel_key k = keys[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1].key > k.key; j--)
            keys[j] = keys[j - 1];
        keys[j] = k;
    }
}

static void merge(const struct kernel_key *from, int64_t first, int64_t all, struct kernel_key *to)
{
    int64_t a = 0, b = first;
    for (int64_t i = 0; i < all; i++) {
        const bool second = a == first || (b < all && from[b].key < from[a].key);
        to[i] = from[second ? b : a];
        a += second ? 0 : 1;
        b += second ? 1 : 0;
    }
}

static struct kernel_key *sort_by_merges(struct kernel_key *keys, int64_t n,
                                         struct kernel_key *spare)
{
    for (int64_t at = 0; at < n; at += RUN)
        insert_all(keys + at, n - at < RUN ? n - at : RUN);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t at = 0; at < n; at += 2 * width) {
            const int64_t all = n - at < 2 * width ? n - at : 2 * width;
            merge(keys + at, all < width ? all : width, all, spare + at);
        }
        struct kernel_key *const sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

static struct kernel_key *sort_by_bytes(struct kernel_key *keys, int64_t n,
                                        struct kernel_key *spare)
{
    int64_t count[sizeof(uint64_t)][DIGITS] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (size_t digit = 0; digit < sizeof(uint64_t); digit++)
            count[digit][keys[i].key >> (8 * digit) & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < sizeof(uint64_t); digit++) {
        int64_t *const at = count[digit], next = 0;
        /* A byte that all have, as the last ones of f32, moves nothing. */
        if (at[keys[0].key >> (8 * digit) & (DIGITS - 1)] == n)
            continue;
        for (int value = 0; value < DIGITS; value++) {
            const int64_t have = at[value];
            at[value] = next;
            next += have;
        }
        for (int64_t i = 0; i < n; i++)
            spare[at[keys[i].key >> (8 * digit) & (DIGITS - 1)]++] = keys[i];
        struct kernel_key *const sorted = spare;
        spare = keys;
        keys = sorted;
    }
    return keys;
}

/* Sorts n keys; `spare` has room for n. Returns where the sorted keys are: one of the two. */
static struct kernel_key *sort_keys(struct kernel_key *keys, int64_t n, struct kernel_key *spare)
{
    return n < FEW ? sort_by_merges(keys, n, spare) : sort_by_bytes(keys, n, spare);
}

static bool comes_after(struct kernel_key a, struct kernel_key b)
{
    return a.key > b.key || (a.key == b.key && a.place > b.place);
}

/* Puts `k` at the root of a heap of n, whose root comes after all others, and restores it. */
static void sift(struct kernel_key *heap, int64_t root, int64_t n, struct kernel_key k)
{
    for (;;) {
        int64_t child = 2 * root + 1;
        if (child >= n)
            break;
        if (child + 1 < n && comes_after(heap[child + 1], heap[child]))
            child++;
        if (!comes_after(heap[child], k))
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = k;
}

/* The same where only the first k of n are wanted; the others are lost. */
static struct kernel_key *select_least(struct kernel_key *keys, int64_t n, int64_t k,
                                       struct kernel_key *spare)
{
    if (k > n / SELECT_SHARE)
        return sort_keys(keys, n, spare);
    for (int64_t root = k / 2; root-- > 0;)
        sift(keys, root, k, keys[root]);
    for (int64_t i = k; i < n && k > 0; i++)
        if (keys[i].key < keys[0].key) /* of equal ones the first is in already */
            sift(keys, 0, k, keys[i]);
    for (int64_t last = k - 1; last > 0; last--) {
        const struct kernel_key k_last = keys[last];
        keys[last] = keys[0];
        sift(keys, 0, last, k_last);
    }
    return keys;
}

size_t kernel_order_workspace(const struct kernel_call *call)
{
    const kernel_ref x = call->in[0];
    const int axis = kernel_part_axis(call, call->attr[0], x->rank);
    return 2 * sizeof(struct kernel_key) * (size_t)x->shape[axis];
}

void kernel_order_lines(const struct kernel_call *call, int axis, int64_t k, bool descending)
{
    const kernel_ref x = call->in[0];
    struct kernel_array *const y = call->out[0];
    const int64_t n = x->shape[axis], stride = x->strides[axis];
    const struct kernel_around around = kernel_around_axis(x, axis);
    struct kernel_key *const keys = call->workspace, *const spare = keys + n;
    struct product_walk line;
    if (y->size == 0)
        return;
    product_walk_begin(&line, x->rank, x->shape, x->strides, ~(1U << axis));
    for (int64_t o = 0; o < around.outer; o++)
        for (int64_t i = 0; i < around.inner; i++) {
            const void *const from = kernel_move_at(x->data, x->dtype, line.offset);
            const int64_t at = o * k * around.inner + i;
            int64_t *const place = (int64_t *)call->out[1]->data + at;
            make_keys(keys, x->dtype, from, n, stride, descending);
            const struct kernel_key *const first = select_least(keys, n, k, spare);
            for (int64_t j = 0; j < k; j++) {
                place[j * around.inner] = first[j].place;
                kernel_store(y->dtype, y->data, at + j * around.inner,
                             kernel_load(x->dtype, from, first[j].place * stride));
            }
            (void)product_walk_next(&line);
        }
}
