/* network_support.h: tensors of random or given numbers beside the same numbers as doubles, for
 * tests of the ops of networks against plain loops.
 *
 * Numbers are those that f32 can hold, so both dtypes compute from the same.
 */
#ifndef NETWORK_SUPPORT_H
#define NETWORK_SUPPORT_H

#include <tapescope/ad.h>

enum { NET_MOST = 4096 };

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

/* One tape; everything that is made of it is in this dtype. */
struct net {
    ad_tape tape;
    ad_dtype dtype;
};

/* An operand: leaf, the tensor that is used, and its numbers in the tensor's row-major order. */
struct net_tensor {
    ad_tensor leaf, x;
    int64_t n;
    double at[NET_MOST];
    char data[NET_MOST * 8];
};

/* How the tensor is made of the leaf: the leaf itself, or a view of the last two axes exchanged. */
enum net_form { NET_PLAIN, NET_TURNED };

void net_begin(struct net *net, ad_dtype dtype);
void net_end(struct net *net);

/* Random numbers in [low, high], of a seed that depends on the extents and low alone. */
void net_random(struct net *net, struct net_tensor *t, enum net_form form, int rank,
                const int64_t *shape, double low, double high);
/* A leaf of these numbers. */
void net_given(struct net *net, struct net_tensor *t, int rank, const int64_t *shape,
               const double *numbers);

/* y has these extents and numbers, each within `ulps` of its dtype, relative to 1 + |number|; NaN
 * and infinities are themselves. */
void net_expect(const struct net *net, ad_tensor y, int rank, const int64_t *shape,
                const long double *want, double ulps);
/* Sweeps from y and compares the gradient of the leaf, in the leaf's order. */
void net_expect_gradient(const struct net *net, ad_tensor y, const struct net_tensor *t,
                         const long double *want, double ulps);

/* y failed with this error and a message that contains the text; the tape is cleared. */
void net_refused(const struct net *net, ad_tensor y, ad_status status, const char *text);

#endif
