/* complex_pairs.h: complex numbers as pairs along a last axis of extent 2, real part first.
 *
 * Internal to kernels/. Values and adjoints are pairs of real numbers. z' in the ops' texts is the
 * complex number whose parts are the adjoints of the real and of the imaginary part of z.
 */
#ifndef COMPLEX_PAIRS_H
#define COMPLEX_PAIRS_H

#include "op_rules.h"

/* Refuses input i unless it is of floats and its last axis has an extent of 2. */
int complex_require(const struct kernel_call *call, int i);

/* Shape rules: of one operand, pairs and their plain numbers; of two, broadcast against each other;
 * and of pairs and a number for each of them, to pairs. */
int complex_shape_same(const struct kernel_call *call, struct kernel_shape *out);
int complex_shape_real(const struct kernel_call *call, struct kernel_shape *out);
int complex_shape_both(const struct kernel_call *call, struct kernel_shape *out);
int complex_shape_scaled(const struct kernel_call *call, struct kernel_shape *out);

/* Workspace of complex_map() and complex_multiply(). */
size_t complex_workspace(const struct kernel_call *call);

/* The most numbers of a block. */
enum { COMPLEX_BLOCK = 256 };

/* A block of n numbers: real and imaginary parts of the operands (a real operand has no imaginary
 * one), which may be overwritten, and room for two more rows. */
struct complex_block {
    int dtype;
    int64_t n;
    void *re[2], *im[2], *spare[2];
};

/* Leaves the result in re[0] and im[0], or re[0] where it is real. */
typedef void complex_function(const struct complex_block *block);

/* Runs the function over all blocks of the operands. */
void complex_map(const struct kernel_call *call, complex_function *f);

/* One loop of a block: out = loop(a) or loop(a, b). */
void complex_loop(const struct complex_block *block, int loop, void *out, const void *a,
                  const void *b);

/* out = a b, or a times the conjugate of b. */
void complex_multiply(const struct kernel_call *call, bool conjugated);

/* A number for each pair, [...], as [...,1]: to be multiplied with pairs. */
kernel_ref complex_emit_column(struct kernel_rule *rule, kernel_ref x);

/* Samples of one operand [...,2] with elements in [low, high). */
/* clang-format off */
#define COMPLEX_SAMPLE1(r, low_, high_, ...)                                                       \
    {.n_in = 1, .dtype = {KERNEL_F64}, .rank = {r}, .shape = {{__VA_ARGS__}}, .low = {low_},       \
     .high = {high_}}
#define COMPLEX_SAMPLES1(low_, high_)                                                              \
    COMPLEX_SAMPLE1(2, low_, high_, 3, 2), COMPLEX_SAMPLE1(1, low_, high_, 2),                     \
    COMPLEX_SAMPLE1(3, low_, high_, 3, 7, 2), COMPLEX_SAMPLE1(2, low_, high_, 0, 2)

/* Of two, the second with elements in [low, high). */
#define COMPLEX_SAMPLE2(ra, ea, rb, eb, low_, high_)                                               \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {ra, rb},                               \
     .shape = {{KERNEL_EXTENTS ea}, {KERNEL_EXTENTS eb}}, .low = {-1, low_}, .high = {1, high_}}
#define COMPLEX_SAMPLES2(low_, high_)                                                              \
    COMPLEX_SAMPLE2(2, (3, 2), 2, (3, 2), low_, high_),                                            \
    COMPLEX_SAMPLE2(1, (2), 1, (2), low_, high_),                                                  \
    COMPLEX_SAMPLE2(3, (2, 3, 2), 2, (3, 2), low_, high_),                                         \
    COMPLEX_SAMPLE2(1, (2), 2, (4, 2), low_, high_),                                               \
    COMPLEX_SAMPLE2(3, (2, 1, 2), 3, (1, 3, 2), low_, high_),                                      \
    COMPLEX_SAMPLE2(2, (17, 2), 2, (17, 2), low_, high_),                                          \
    COMPLEX_SAMPLE2(2, (0, 2), 2, (1, 2), low_, high_)

/* Of pairs away from 0, and a number for each of them. */
#define COMPLEX_SCALED_SAMPLE(r, ex, eg)                                                           \
    {.n_in = 2, .dtype = {KERNEL_F64, KERNEL_F64}, .rank = {r, (r) - 1},                           \
     .shape = {{KERNEL_EXTENTS ex}, {KERNEL_EXTENTS eg}}, .low = {0.4, -1}, .high = {2, 1}}
#define COMPLEX_SCALED_SAMPLES                                                                     \
    COMPLEX_SCALED_SAMPLE(2, (3, 2), (3)), COMPLEX_SCALED_SAMPLE(1, (2), (0)),                     \
    COMPLEX_SCALED_SAMPLE(3, (2, 7, 2), (2, 7)), COMPLEX_SCALED_SAMPLE(2, (0, 2), (0))
/* clang-format on */

#endif
