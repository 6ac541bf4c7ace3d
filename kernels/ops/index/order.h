/* order.h: numbers as keys that compare like integers, sorted and selected.
 *
 * Internal to kernels/. Equal numbers keep their order, -0 equals 0, and NaN comes last whatever
 * the direction.
 */
#ifndef ORDER_H
#define ORDER_H

#include "kernel.h"

struct kernel_key {
    uint64_t key;
    int64_t place;
};

/* The keys of n numbers that lie `stride` apart, in ascending order or reversed. */
void kernel_order_keys(struct kernel_key *keys, int dtype, const void *x, int64_t n, int64_t stride,
                       bool descending);

/* Sorts n keys; `spare` has room for n. Returns where the sorted keys are: one of the two. */
struct kernel_key *kernel_order_sort(struct kernel_key *keys, int64_t n, struct kernel_key *spare);

/* The same where only the first k of n are wanted; the others are lost. */
struct kernel_key *kernel_order_least(struct kernel_key *keys, int64_t n, int64_t k,
                                      struct kernel_key *spare);

/* What sort and topk do: output 0 receives the first k numbers along an axis in their order, output
 * 1 their places. */
void kernel_order_lines(const struct kernel_call *call, int axis, int64_t k, bool descending);
size_t kernel_order_workspace(const struct kernel_call *call);

#endif
