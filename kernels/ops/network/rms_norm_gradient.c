/* ops/network/rms_norm_gradient.c: the adjoints of rms_norm's operands, in one pass.
 *
 * May include: norm_gradients.h, kernel_ops.h. A function of the rows' statistics as well, by
 * which it is differentiated again.
 */
#include "kernel_ops.h"
#include "norm_gradients.h"

static const char *const names[] = {"g", "x", "w", "rstd"};

/* clang-format off */
#define GRADIENT_SAMPLE(rank_x, rank_w, x_extents, w_extents, lead)                                \
    {.n_in = 4, .dtype = {KERNEL_F64, KERNEL_F64, KERNEL_F64, KERNEL_F64},                         \
     .rank = {rank_x, rank_x, rank_w, (rank_x) - (rank_w)},                                        \
     .shape = {{KERNEL_EXTENTS x_extents}, {KERNEL_EXTENTS x_extents},                             \
               {KERNEL_EXTENTS w_extents}, {KERNEL_EXTENTS lead}},                                 \
     .low = {-1, -2, 0.5, 0.5}, .high = {1, 2, 2, 2}}
/* clang-format on */
static const struct kernel_sample samples[] = {
    GRADIENT_SAMPLE(2, 1, (3, 5), (5), (3)),       GRADIENT_SAMPLE(1, 1, (4), (4), (0)),
    GRADIENT_SAMPLE(3, 2, (2, 3, 2), (3, 2), (2)), GRADIENT_SAMPLE(3, 1, (2, 2, 3), (3), (2, 2)),
    GRADIENT_SAMPLE(2, 1, (0, 3), (3), (0)),       GRADIENT_SAMPLE(2, 1, (2, 0), (0), (2)),
};
KERNEL_SAMPLES(samples)

static const struct norm_gradient_family family = {.centered = false};

KERNEL_OP(rms_norm_gradient) = {
    .name = "rms_norm_gradient",
    .in_names = names,
    .n_in = 4,
    .n_out = 2,
    .hidden = true,
    .saves_in = 15,
    .reads_for = {14, 15, 11, 15},
    .touches_all = true,
    .saves_out = 1,
    .family = &family,
    .shape = norm_gradient_shape,
    .forward = norm_gradient_forward,
    .pullback = norm_gradient_pullback,
    .cost = norm_gradient_cost,
    .workspace = norm_gradient_workspace,
    .sample = sample,
    .brief = "Adjoints of rms_norm's operands.",
    .shapes = "g [...,d...], x [...,d...], w [d...], rstd [...] -> [...,d...], [d...]",
    .formula = "z = x rstd, q = g w, gx = rstd (q - z mean of (q z)), gw = sum of g z",
    .derivative = "the formula's, by g, x, w and rstd",
};
