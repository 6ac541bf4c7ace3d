/* common_workloads.h: the computations that are measured here and in other libraries.
 *
 * Knows nothing of clocks or of other libraries, so that tests use it as well.
 *
 * Inputs, with i the row-major index: F(i, p) = sin(0.37 i + p + (i^2 mod 1009)) in double, scaled
 * as below in double, then converted to the element type. Checksum of the gradients g_0, g_1, ...
 * in the order of `parameter`: sum over k and i of g_k[i] cos(0.73 i + k), in double.
 *
 *     chainN   x [N] = 0.5 F(i, 0) a parameter; c [N] = 0.01 F(i, 1), d [N] = 1 + 0.01 F(i, 2)
 *              constants; 1000 times in turn x = x + c, x = x d, x = tanh(x); loss sum(x)
 *     chainpN  the same, with c and d as parameters too: x, c, d
 *     mlpW     X [64, W] = F(i, 0); weights [W, W] = F(i, k) / sqrt(W), k = 1, 2, 3;
 *              biases [W] = 0.1 F(i, k), k = 4, 5, 6; three layers, tanh after the first two;
 *              loss: softmax cross entropy with label (7 r + 3) mod W in row r;
 *              parameters W1, b1, W2, b2, W3, b3
 *     lstm     100 steps, batch B = 16, width H = 128: x_t [B, H] = F(i, 100 + t) constant;
 *              Wx, Wh [H, 4 H] = F(i, k) / sqrt(H), k = 1, 2; b [4 H] = 0.1 F(i, 3); h = c = 0;
 *              z = x_t Wx + h Wh + b, four blocks of columns i, f, g, o;
 *              c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c);
 *              loss: mean of h^2 after the last step; parameters Wx, Wh, b
 *     attn     X [256, 64] = F(i, 0); Wq, Wk, Wv, Wo [64, 64] = F(i, k) / 8, k = 1, 2, 3, 4;
 *              P = softmax of the rows of (X Wq) (X Wk)^T / 8, Y = P (X Wv) Wo; loss: mean of Y^2;
 *              parameters X, Wq, Wk, Wv, Wo
 *     gpN      x [N, 4] = F(i, 0), y [N] = F(i, 1) constants; ll [4] = 0.1 F(i, 2), lsf = 0 and
 *              lsn = -1 [1]; u = x exp(-ll), K_ij = exp(2 lsf) exp(-|u_i - u_j|^2 / 2), and
 *              exp(2 lsn) more where i = j; L L^T = K lower, a = L^-1 y; loss: a a / 2 + sum of
 *              log L_ii + N log(2 pi) / 2; parameters ll, lsf, lsn
 */
#ifndef COMMON_WORKLOADS_H
#define COMMON_WORKLOADS_H

#include <tapescope/ad.h>

#include <stdbool.h>

struct workload;

struct workload_case {
    const char *name;
    int64_t width;
    double gradient_sum; /* the checksum in f64, computed in quadruple precision */
    ad_tensor (*forward)(const struct workload *workload);
    ad_status (*create)(struct workload *workload);
};

enum { WORKLOAD_MAX_ARRAYS = 8 };

struct workload {
    const struct workload_case *spec;
    ad_dtype dtype;
    ad_tape tape;
    ad_mark mark; /* behind the leaves: where a step rewinds to */
    int n_arrays, n_parameters;
    void *array[WORKLOAD_MAX_ARRAYS]; /* what the leaves and constants borrow */
    ad_tensor parameter[WORKLOAD_MAX_ARRAYS];
    ad_tensor constant[WORKLOAD_MAX_ARRAYS];
    bool seeded;    /* the forward pass does not end in a loss: the sweep begins with a seed */
    ad_tensor seed; /* of the result's shape */
};

/* All cases, ended by one without a name. */
extern const struct workload_case workload_cases[];

/* The case of that name, or NULL. */
const struct workload_case *workload_find(const char *name);

/* Makes a tape of the calling thread with the inputs of the case on it. dtype: AD_F32 or AD_F64.
 * On an error the message is in the tape's or the thread's error (tape zero), and nothing is kept
 * but what workload_destroy() frees. */
ad_status workload_create(struct workload *workload, const struct workload_case *spec,
                          ad_dtype dtype);

/* Records the forward pass; returns the loss, of rank 0, or where it is seeded any result. */
ad_tensor workload_forward(const struct workload *workload);

/* Sweeps from the result of the forward pass. */
ad_status workload_backward(const struct workload *workload, ad_tensor result);

/* The checksum of the gradients that have been swept and not cleared; NaN on an error. */
double workload_gradient_sum(const struct workload *workload);

void workload_destroy(struct workload *workload);

#endif
