/* test_errors.c: every mistake gets a status, and a message with the op, the shapes and the line.
 *
 * A case is one row: its mistake is made on a fresh scene, whose tape must then be idle, clean
 * again after ad_tape_clear_error, and right in what it computes next.
 */
#include <tapescope/ad.h>

#include "run_cases.h"
#include "tape_memory.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What calls return is dropped: the error that stays in the tape is looked at. */
#pragma GCC diagnostic ignored "-Wunused-result"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})
#define WIDE ((int64_t)1 << 40)
#define OK(call) ck_assert_msg((call) == AD_OK, "%s", ad_tape_message(scene.tape))

enum { ON_TAPE, ON_THREAD, MOST_CASES = 120, MIB = 1 << 20 };

static const ad_tensor zero;
static const ad_tape no_tape;

static struct scene {
    ad_tape tape, other;
    ad_tensor a, b, v, narrow, labels, whole, constant, y, foreign; /* see setup */
    ad_mark mark;
    ad_stats before;
    int line;
} scene;
static double data[32], buffer[32];
static int64_t labels[3] = {0, 1, 7};
static float singles[12];

static struct mistake {
    const char *name, *text;
    ad_status status;
    int where;
    void (*make)(const struct scene *s);
} cases[MOST_CASES];
static int n_cases;

/* What the mistake must not change. */
static void snapshot(int line)
{
    scene.line = line;
    ad_tape_stats(scene.tape, &scene.before);
}

/* The call; its line is noted. */
#define AT(...) (snapshot(__LINE__), (void)__VA_ARGS__)

/* A row: its name, where the error is kept, status, what the message begins with, the call. */
#define CASE(name_, where_, status_, text_, ...)                                                   \
    static void make_##name_(const struct scene *s)                                                \
    {                                                                                              \
        (void)s;                                                                                   \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    __attribute__((constructor)) static void add_##name_(void)                                     \
    {                                                                                              \
        cases[n_cases++] =                                                                         \
            (struct mistake){#name_, text_, AD_ERROR_##status_, ON_##where_, make_##name_};        \
    }                                                                                              \
    _Static_assert(MOST_CASES > 0, "")

static void setup(void)
{
    struct scene *s = &scene;
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    ad_tape_options options = {.reserve_bytes = 64 * MIB, .budget_bytes = 64 * MIB};
    for (int i = 0; i < 32; i++)
        data[i] = 0.25 * (i + 1);
    ck_assert_int_eq(ad_tape_create(&s->tape, &options), AD_OK);
    ck_assert_int_eq(ad_tape_create(&s->other, &options), AD_OK);
    s->foreign = ad_leaf(s->other, AD_F64, 1, SHAPE(3), data);
    s->a = ad_leaf(s->tape, AD_F64, 2, SHAPE(3, 4), data);
    s->b = ad_leaf(s->tape, AD_F64, 2, SHAPE(5, 6), data);
    s->v = ad_leaf(s->tape, AD_F64, 1, SHAPE(3), data);
    s->narrow = ad_leaf(s->tape, AD_F32, 2, SHAPE(3, 4), singles);
    s->labels = ad_constant(s->tape, AD_I64, 1, SHAPE(3), labels);
    s->whole = ad_constant(s->tape, AD_I64, 2, SHAPE(1, 3), labels);
    s->constant = ad_constant(s->tape, AD_F64, 1, SHAPE(3), data);
    s->y = ad_sum(ad_square(s->v));
    s->mark = ad_tape_mark(s->tape);
}

static void teardown(void)
{
    ck_assert_int_eq(ad_tape_destroy(scene.other), AD_OK);
    if (ad_rank(scene.y) == 0)
        ck_assert_int_eq(ad_tape_destroy(scene.tape), AD_OK);
}

/* ---- tensors in a state that makes them mistakes ---- */

static ad_tensor after_reset(void)
{
    ad_tape_reset(scene.tape);
    snapshot(scene.line);
    return scene.v;
}

static ad_tensor changed(void)
{
    data[1] += 1;
    return scene.y;
}

static ad_tensor after_rewind(void)
{
    ad_tensor x = ad_square(scene.v);
    ad_tape_rewind(scene.tape, scene.mark);
    return x;
}

static ad_tensor after_destroy(void)
{
    ad_tape tape;
    ad_tape_create(&tape, &(ad_tape_options){.reserve_bytes = MIB, .budget_bytes = MIB});
    ad_tensor x = ad_leaf(tape, AD_F64, 1, SHAPE(3), data);
    ad_tape_destroy(tape);
    return x;
}

static ad_mark dropped_mark(void)
{
    ad_mark inner = ad_tape_mark(scene.tape);
    ad_tape_rewind(scene.tape, scene.mark);
    return inner;
}

static ad_tensor intermediate(void)
{
    ad_tensor x = ad_exp(scene.a);
    snapshot(scene.line);
    return x;
}

static ad_tape destroyed(void)
{
    ad_tensor x = after_destroy();
    return (ad_tape){x.tape, x.tape_generation};
}

/* ---- the cases ---- */

/* clang-format off */
CASE(matmul_inner, TAPE, SHAPE, "matmul: f64 [3,4] x f64 [5,6]: ", AT(ad_matmul(s->a, s->b)));
CASE(matmul_rank, TAPE, SHAPE, "matmul: f64 [3,4] x f64 [3]: ", AT(ad_matmul(s->a, s->v)));
CASE(linear_inner, TAPE, SHAPE, "linear: f64 [3,4], f64 [5,6], f64 [3]: ",
     AT(ad_linear(s->a, s->b, s->v)));
CASE(linear_bias, TAPE, SHAPE, "linear: f64 [3,4], f64 [4,3], f64 [3,4]: ",
     AT(ad_linear(s->a, ad_constant(s->tape, AD_F64, 2, SHAPE(4, 3), data), s->a)));
CASE(broadcast, TAPE, SHAPE, "add: f64 [3,4] and f64 [3]: ", AT(ad_add(s->a, s->v)));
CASE(broadcast_to, TAPE, SHAPE, "broadcast_to: f64 [3,4]: ",
     AT(ad_broadcast_to(s->a, SHAPE(3, 5), 2)));
CASE(broadcast_less, TAPE, SHAPE, "broadcast_to: f64 [3,4]: ",
     AT(ad_broadcast_to(s->a, SHAPE(4), 1)));
CASE(broadcast_wide, TAPE, SHAPE, "broadcast_to: f64 [3,4]: ",
     AT(ad_broadcast_to(s->a, SHAPE(WIDE, WIDE, 3, 4), 4)));
CASE(broadcast_null, TAPE, ARGUMENT, "broadcast_to: shape is a null",
     AT(ad_broadcast_to(s->a, NULL, 2)));
CASE(broadcast_deep, TAPE, ARGUMENT, "broadcast_to: 9 entries of shape",
     AT(ad_broadcast_to(s->a, SHAPE(1, 1, 1, 1, 1, 1, 1, 3, 4), 9)));
CASE(reshape_size, TAPE, SHAPE, "reshape: f64 [3,4]: ", AT(ad_reshape(s->a, SHAPE(5, -1), 2)));
CASE(reshape_negative, TAPE, SHAPE, "reshape: f64 [3,4]: ", AT(ad_reshape(s->a, SHAPE(-2, -6), 2)));
CASE(reshape_open_twice, TAPE, SHAPE, "reshape: f64 [3,4]: ",
     AT(ad_reshape(s->a, SHAPE(-1, -1), 2)));
CASE(reshape_wide, TAPE, SHAPE, "reshape: f64 [3,4]: ", AT(ad_reshape(s->a, SHAPE(WIDE, WIDE), 2)));
CASE(reshape_null, TAPE, ARGUMENT, "reshape: shape is a null pointer",
     AT(ad_reshape(s->a, NULL, 1)));
CASE(reshape_rank, TAPE, ARGUMENT, "reshape: -1 entries of shape",
     AT(ad_reshape(s->a, SHAPE(12), -1)));
CASE(transpose_rank, TAPE, SHAPE, "transpose: f64 [3]: ", AT(ad_transpose(s->v)));
CASE(sum_axis, TAPE, SHAPE, "sum: f64 [3,4]: ", AT(ad_sum_axes(s->a, SHAPE(2), 1, 0)));
CASE(sum_axis_below, TAPE, SHAPE, "sum: f64 [3,4]: ", AT(ad_sum_axes(s->a, SHAPE(-3), 1, 0)));
CASE(mean_axis_twice, TAPE, SHAPE, "mean: f64 [3,4]: ",
     AT(ad_mean_axes(s->a, SHAPE(1, -1), 2, AD_KEEPDIM)));
CASE(max_axes_null, TAPE, ARGUMENT, "max: axes is a null pointer",
     AT(ad_max_axes(s->a, NULL, 1, AD_KEEPDIM)));
CASE(sum_axes_many, TAPE, ARGUMENT, "sum: 9 entries of axes",
     AT(ad_sum_axes(s->a, SHAPE(0), 9, AD_KEEPDIM)));
CASE(max_of_nothing, TAPE, SHAPE, "max: f64 [0]: ",
     AT(ad_max(ad_constant(s->tape, AD_F64, 1, SHAPE(0), NULL))));
CASE(entropy_rank, TAPE, SHAPE, "softmax_cross_entropy: f64 [3], i64 [3]: ",
     AT(ad_softmax_cross_entropy(s->v, s->labels)));
CASE(entropy_rows, TAPE, SHAPE, "softmax_cross_entropy: f64 [5,6], i64 [3]: ",
     AT(ad_softmax_cross_entropy(s->b, s->labels)));
CASE(entropy_labels, TAPE, DTYPE, "softmax_cross_entropy: ",
     AT(ad_softmax_cross_entropy(s->a, s->v)));
CASE(label, TAPE, VALUE, "softmax_cross_entropy: f64 [3,4], i64 [3]: label 7",
     AT(ad_softmax_cross_entropy(s->a, s->labels)));

CASE(mixed_add, TAPE, DTYPE, "add: f64 [3,4] and f32 [3,4]: ", AT(ad_add(s->a, s->narrow)));
CASE(mixed_matmul, TAPE, DTYPE, "matmul: f64 [5,6] ", AT(ad_matmul(s->b, s->narrow)));
CASE(integer_square, TAPE, DTYPE, "square takes f32 or f64, not i64", AT(ad_square(s->whole)));
CASE(integer_sum, TAPE, DTYPE, "sum takes f32 or f64, not i64", AT(ad_sum(s->labels)));
CASE(integer_matmul, TAPE, DTYPE, "matmul takes f32 or f64, not i64",
     AT(ad_matmul(s->whole, s->whole)));
CASE(integer_leaf, TAPE, DTYPE, "leaf: i64", AT(ad_leaf(s->tape, AD_I64, 1, SHAPE(3), labels)));
CASE(integer_item, TAPE, DTYPE, "item: ", AT(ad_item(ad_scalar_i64(s->tape, 3))));
CASE(no_dtype, TAPE, DTYPE, "constant: 9",
     AT(ad_constant(s->tape, (ad_dtype)9, 0, NULL, (const void *)data)));
CASE(flag_of_others, TAPE, ARGUMENT, "cumsum: flags has AD_CAUSAL; it takes AD_REVERSE at",
     AT(ad_cumsum(s->a, 0, AD_CAUSAL)));
CASE(true_as_flag, TAPE, ARGUMENT, "sort: flags has 0x1; it takes AD_DESCENDING at",
     AT(ad_sort(s->a, 0, true, NULL)));
/* A case of three lines would have the line of its first or of its last, by the compiler. */
static const char other_flags[] =
    "attention: flags has AD_KEEPDIM | AD_UPPER | 0x1000; it takes AD_CAUSAL | AD_KEEP_WEIGHTS at";
CASE(flags_of_others, TAPE, ARGUMENT, other_flags,
     AT(ad_attention(s->a, s->a, s->a, 0, AD_UPPER | AD_CAUSAL | AD_KEEPDIM | 0x1000)));
CASE(flag_of_axes, TAPE, ARGUMENT, "sum: flags has AD_REVERSE; it takes AD_KEEPDIM at",
     AT(ad_sum_axes(s->a, SHAPE(0), 1, AD_REVERSE)));
CASE(flag_of_options, TAPE, ARGUMENT, "avg_pool1d: flags has AD_KEEPDIM; it takes AD_SKIP_PADDING",
     AT(ad_avg_pool1d(s->a, 2, &(ad_avg_pool1d_options){.flags = AD_KEEPDIM})));
CASE(flag_and_handle, THREAD, HANDLE, "cumsum: ", AT(ad_cumsum(zero, 0, AD_CAUSAL)));

CASE(leaf_data, TAPE, ARGUMENT, "leaf: data is a null",
     AT(ad_leaf(s->tape, AD_F64, 1, SHAPE(3), NULL)));
CASE(leaf_shape, TAPE, ARGUMENT, "leaf: shape is a null",
     AT(ad_leaf(s->tape, AD_F64, 1, NULL, data)));
CASE(leaf_negative, TAPE, SHAPE, "leaf: extent 1 is negative: -4",
     AT(ad_leaf(s->tape, AD_F64, 2, SHAPE(3, -4), data)));
CASE(leaf_rank, TAPE, SHAPE, "leaf: rank 9", AT(ad_leaf(s->tape, AD_F64, 9, SHAPE(1), data)));
CASE(constant_rank, TAPE, SHAPE, "constant: rank -1",
     AT(ad_constant(s->tape, AD_F64, -1, NULL, data)));
CASE(leaf_wide, TAPE, SHAPE, "leaf: the size",
     AT(ad_leaf(s->tape, AD_F64, 2, SHAPE(WIDE, WIDE), data)));
CASE(constant_wide, TAPE, SHAPE, "constant: the size",
     AT(ad_constant(s->tape, AD_F32, 2, SHAPE(WIDE, WIDE), (const void *)data)));
CASE(leaf_large, TAPE, MEMORY, "leaf: out of memory",
     AT(ad_leaf(s->tape, AD_F64, 1, SHAPE(WIDE), data)));
CASE(value_count, TAPE, ARGUMENT, "value: the buffer has 3 elements, f64 [3,4] has 12",
     AT(ad_value(s->a, buffer, 3)));
CASE(value_null, TAPE, ARGUMENT, "value: buffer is a null pointer", AT(ad_value(s->a, NULL, 12)));
CASE(shape_null, TAPE, ARGUMENT, "shape: shape is a null pointer", AT(ad_shape(s->a, NULL)));
CASE(gradient_count, TAPE, ARGUMENT, "gradient: the buffer has -1 elements, f64 [3] has 3",
     AT(ad_gradient(s->v, buffer, -1)));
CASE(gradient_null, TAPE, ARGUMENT, "gradient: buffer is a null", AT(ad_gradient(s->v, NULL, 3)));
CASE(buffer_count, TAPE, ARGUMENT, "gradient_buffer: the buffer has 2",
     AT(ad_gradient_buffer(s->v, buffer, 2)));
CASE(item_size, TAPE, SHAPE, "item: takes a float tensor of size 1, not f64 [3]",
     AT(ad_item(s->v)));

CASE(used_after_reset, TAPE, HANDLE, "square: operand 1 was dropped", AT(ad_square(after_reset())));
CASE(used_after_rewind, TAPE, HANDLE, "square: operand 1 was dropped",
     AT(ad_square(after_rewind())));
CASE(read_after_rewind, TAPE, HANDLE, "value: the tensor was dropped",
     AT(ad_value(after_rewind(), buffer, 3)));
CASE(used_after_destroy, THREAD, HANDLE, "square: operand 1: the tape was destroyed",
     AT(ad_square(after_destroy())));
CASE(one_after_destroy, TAPE, HANDLE, "mul: operand 2", AT(ad_mul(s->v, after_destroy())));
CASE(other_after_destroy, TAPE, HANDLE, "mul: operand 1", AT(ad_mul(after_destroy(), s->v)));
CASE(other_tape, TAPE, TAPE, "mul: operand 2 is of another tape", AT(ad_mul(s->v, s->foreign)));
CASE(third_of_other_tape, TAPE, TAPE, "linear: operand 3 is of another tape",
     AT(ad_linear(s->a, s->b, s->foreign)));
CASE(zeros, THREAD, HANDLE, "square: operand 1 is a handle of zeros", AT(ad_square(zero)));
CASE(one_of_zeros, TAPE, HANDLE, "mul: operand 2", AT(ad_mul(s->v, zero)));
CASE(read_zeros, THREAD, HANDLE, "value: the tensor is a handle of zeros",
     AT(ad_value(zero, buffer, 1)));
CASE(garbage, THREAD, HANDLE, "exp: operand 1: not a handle",
     AT(ad_exp((ad_tensor){0xdeadbeef, 0xdeadbeef, 0xdeadbeef, 0xdeadbeef})));
CASE(garbage_slot, THREAD, HANDLE, "exp: operand 1: ", AT(ad_exp((ad_tensor){65535, 1, 1, 1})));
CASE(garbage_value, TAPE, HANDLE, "exp: operand 1",
     AT(ad_exp((ad_tensor){s->v.tape, s->v.tape_generation, 0xffffffff, 1})));
CASE(leaf_of_no_tape, THREAD, HANDLE, "leaf: ", AT(ad_leaf(no_tape, AD_F64, 0, NULL, data)));
CASE(scalar_of_destroyed, THREAD, HANDLE, "scalar: ", AT(ad_scalar_f64(destroyed(), 1)));
CASE(detach_of_zeros, THREAD, HANDLE, "detach: ", AT(ad_detach(zero)));
CASE(reset_of_no_tape, THREAD, HANDLE, "tape_reset: ", AT(ad_tape_reset(no_tape)));
CASE(destroyed_twice, THREAD, HANDLE, "tape_destroy: ", AT(ad_tape_destroy(destroyed())));
CASE(no_tape_destroyed, THREAD, HANDLE, "tape_destroy: ", AT(ad_tape_destroy(no_tape)));
CASE(created_nowhere, THREAD, ARGUMENT, "tape_create: ", AT(ad_tape_create(NULL, NULL)));

CASE(backward_constant, TAPE, STATE, "backward: ", AT(ad_backward(ad_sum(s->constant))));
CASE(backward_of_many, TAPE, SHAPE, "backward: y is f64 [3]", AT(ad_backward(s->v)));
CASE(backward_integer, TAPE, DTYPE, "backward: y is i64 [3]", AT(ad_backward(s->labels)));
CASE(backward_zeros, THREAD, HANDLE, "backward: ", AT(ad_backward(zero)));
CASE(seed_shape, TAPE, SHAPE, "backward_seed: the seed is f64 [3,4], y is f64 [3]",
     AT(ad_backward_seed(s->v, s->a)));
CASE(seed_dtype, TAPE, DTYPE, "backward_seed: the seed is f32 [3,4], y is f64 [3,4]",
     AT(ad_backward_seed(s->a, s->narrow)));
CASE(seed_of_other_tape, TAPE, TAPE, "backward_seed: the seed",
     AT(ad_backward_seed(s->v, s->foreign)));
CASE(seed_of_zeros, TAPE, HANDLE, "backward_seed: the seed", AT(ad_backward_seed(s->v, zero)));
CASE(gradient_constant, TAPE, STATE, "gradient: ", AT(ad_gradient(s->constant, buffer, 3)));
CASE(gradient_inner, TAPE, STATE, "gradient: ", AT(ad_gradient(intermediate(), buffer, 12)));
CASE(buffer_of_data, TAPE, ARGUMENT, "gradient_buffer: the buffer overlaps",
     AT(ad_gradient_buffer(s->v, data + 2, 3)));
CASE(backward_changed, TAPE, STATE, "backward: the leaf f64 [3] of ", AT(ad_backward(changed())));
CASE(changed_zeros, THREAD, HANDLE, "leaf_changed: ", AT(ad_leaf_changed(zero)));
CASE(changed_dropped, TAPE, HANDLE, "leaf_changed: the tensor was dropped",
     AT(ad_leaf_changed(after_rewind())));
CASE(buffer_inner, TAPE, STATE, "gradient_buffer: ",
     AT(ad_gradient_buffer(intermediate(), buffer, 12)));
CASE(retain_constant, TAPE, STATE, "retain_gradient: ", AT(ad_retain_gradient(s->constant)));
CASE(retain_before_mark, TAPE, STATE, "retain_gradient: ", AT(ad_retain_gradient(s->y)));
CASE(graph_many, TAPE, SHAPE, "create_graph: y is f64 [3]",
     AT(ad_create_graph(s->v, zero, 1, &s->v, &(ad_tensor){0})));
CASE(graph_null, TAPE, ARGUMENT, "create_graph: x or gradient is a null",
     AT(ad_create_graph(s->y, zero, 1, NULL, NULL)));
CASE(graph_count, TAPE, ARGUMENT, "create_graph: n",
     AT(ad_create_graph(s->y, zero, -1, NULL, NULL)));
CASE(graph_of_other, TAPE, TAPE, "create_graph: x[0]",
     AT(ad_create_graph(s->y, zero, 1, &s->foreign, &(ad_tensor){0})));
CASE(graph_integer, TAPE, DTYPE, "create_graph: x[0]",
     AT(ad_create_graph(s->y, zero, 1, &s->labels, &(ad_tensor){0})));

CASE(mark_of_other, TAPE, TAPE, "tape_rewind: ",
     AT(ad_tape_rewind(s->tape, ad_tape_mark(s->other))));
CASE(mark_dropped, TAPE, STATE, "tape_rewind: ", AT(ad_tape_rewind(s->tape, dropped_mark())));
CASE(mark_of_zeros, TAPE, HANDLE, "tape_rewind: ",
     AT(ad_tape_rewind(s->tape, (ad_mark){0, 0, 0, 0})));
CASE(end_without_begin, TAPE, STATE, "tape_no_grad_end: ", AT(ad_tape_no_grad_end(s->tape)));
/* clang-format on */

/* ---- what holds for every case ---- */

static void check_works(void)
{
    double gradient[3];
    ad_tensor x = ad_leaf(scene.tape, AD_F64, 1, SHAPE(3), data);
    OK(ad_backward(ad_sum(ad_square(x))));
    OK(ad_gradient(x, gradient, 3));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(gradient[i], 2 * data[i]);
}

static void check_idle(ad_status status)
{
    char message[600];
    ad_stats before, after;
    snprintf(message, sizeof message, "%s", ad_tape_message(scene.tape));
    OK(ad_tape_stats(scene.tape, &before));
    ck_assert_int_eq(ad_rank(ad_square(scene.v)), -1);
    ck_assert_int_eq(ad_rank(ad_leaf(scene.tape, AD_F64, 0, NULL, data)), -1);
    ck_assert_int_eq(ad_rank(ad_matmul(ad_exp(scene.a), ad_detach(scene.b))), -1);
    ck_assert_int_eq(ad_backward(scene.y), status);
    ck_assert_int_eq(ad_gradient(scene.v, buffer, 3), status);
    OK(ad_tape_stats(scene.tape, &after));
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_int_eq(ad_tape_status(scene.tape), status);
    ck_assert_str_eq(ad_tape_message(scene.tape), message);
}

/* Of a row of two lines, clang's debug information has the first, and its __LINE__ the second. */
static bool names_line(const char *message, const struct mistake *c, int line)
{
    char place[64];
    snprintf(place, sizeof place, " at test_errors.c:%d in make_%s", line, c->name);
    return strstr(message, place) != NULL;
}

START_TEST(a_mistake_is_named_with_its_line_and_leaves_the_tape_fit)
{
    const struct mistake *c = &cases[_i];
    ad_stats after;
    c->make(&scene);
    ad_tape where = c->where == ON_TAPE ? scene.tape : no_tape;
    const char *message = ad_tape_message(where);
    ck_assert_msg(ad_tape_status(where) == c->status, "%s: %s: %s", c->name,
                  ad_status_name(ad_tape_status(where)), message);
    ck_assert_msg(strncmp(message, c->text, strlen(c->text)) == 0, "%s: %s", c->name, message);
    ck_assert_msg(names_line(message, c, scene.line) ||
                      (!AD_LINE_MACROS && names_line(message, c, scene.line - 1)),
                  "%s: not line %d: %s", c->name, scene.line, message);
    if (c->where == ON_TAPE)
        check_idle(c->status);
    else
        ck_assert_int_eq(ad_tape_status(scene.tape), AD_OK);
    ck_assert_int_eq(ad_tape_status(scene.other), AD_OK);
    ad_tape_clear_error(where);
    ck_assert_int_eq(ad_tape_status(where), AD_OK);
    ck_assert_str_eq(ad_tape_message(where), "");
    OK(ad_tape_stats(scene.tape, &after));
    if (after.values == scene.before.values)
        ck_assert_uint_eq(after.live_bytes, scene.before.live_bytes);
    else /* an operand was made after the snapshot */
        ck_assert_uint_le(after.values, scene.before.values + 1);
    check_works();
}
END_TEST

/* ---- memory ---- */

static ad_tape tape_of(uint64_t budget)
{
    ad_tape tape;
    ad_tape_options options = {.reserve_bytes = 2 * MIB, .budget_bytes = budget};
    ck_assert_int_eq(ad_tape_create(&tape, &options), AD_OK);
    return tape;
}

START_TEST(a_sweep_that_runs_out_of_memory_clears_the_gradients_it_would_leave_half_done)
{
    static double many[4096], gradient[4096];
    enum { BYTES = sizeof many };
    scene.tape = tape_of(5 * BYTES + BYTES / 2);
    ad_tensor x = ad_leaf(scene.tape, AD_F64, 1, SHAPE(4096), many); /* and its gradient: 1 */
    OK(ad_backward(ad_sum(x)));
    ad_mark mark = ad_tape_mark(scene.tape);
    ad_tensor h = ad_exp(ad_exp(ad_exp(x))); /* 4; then for adjoints there is room for 1 of 2 */
    ad_tensor y = ad_add(ad_sum(ad_mul(x, x)), ad_sum(h));
    if (ad_tape_status(scene.tape) == AD_OK)
        ad_backward(y);
    ck_assert_int_eq(ad_tape_status(scene.tape), AD_ERROR_MEMORY);
    ad_tape_clear_error(scene.tape);
    OK(ad_tape_rewind(scene.tape, mark));
    ck_assert_int_eq(ad_tape_status(scene.tape), AD_OK);
    h = ad_exp(ad_exp(ad_exp(x)));
    y = ad_sum(h);
    ad_stats before, after;
    OK(ad_backward(ad_sum(x)));
    OK(ad_tape_stats(scene.tape, &before));
    ck_assert_int_eq(ad_backward(y), AD_ERROR_MEMORY);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(scene.tape), "backward: out of memory: "));
    ad_tape_clear_error(scene.tape);
    OK(ad_tape_stats(scene.tape, &after));
    ck_assert_uint_eq(after.live_bytes, before.live_bytes);
    ck_assert_int_eq(ad_gradient(x, gradient, 4096), AD_ERROR_STATE);
    ad_tape_clear_error(scene.tape);
    OK(ad_tape_rewind(scene.tape, mark));
    check_works();
    OK(ad_tape_destroy(scene.tape));
}
END_TEST

START_TEST(a_tiny_reservation_is_rounded_up_and_its_end_is_an_error)
{
    ad_stats stats;
    ad_tape_options options = {.reserve_bytes = 1};
    OK(ad_tape_create(&scene.tape, &options));
    OK(ad_tape_stats(scene.tape, &stats));
    ck_assert_uint_eq(stats.reserved_bytes, 2 * MIB);
    ad_tensor x = ad_leaf(scene.tape, AD_F64, 1, SHAPE(3), data);
    for (int i = 0; i < 100000 && ad_tape_status(scene.tape) == AD_OK; i++)
        x = ad_square(x);
    ck_assert_int_eq(ad_tape_status(scene.tape), AD_ERROR_MEMORY);
    OK(ad_tape_reset(scene.tape));
    check_works();
    OK(ad_tape_destroy(scene.tape));
}
END_TEST

START_TEST(there_can_be_65535_tapes_and_one_more_is_an_error)
{
    static ad_tape tapes[65536];
    int n = 0;
    ad_tape_options options = {.reserve_bytes = 1, .budget_bytes = 65536, .no_huge_pages = true};
    /* A tape with one value touches some 40 KiB, which takes the system seconds, and sanitizers
     * multiply it: in one build. */
#ifdef NDEBUG
    if (tape_memory_default_budget() < (uint64_t)5 << 30)
        return;
    while (n < 65536 && ad_tape_create(&tapes[n], &options) == AD_OK)
        n++;
    ck_assert_msg(n == 65535, "%d: %s", n, ad_tape_message(no_tape));
    ck_assert_int_eq(ad_tape_status(no_tape), AD_ERROR_LIMIT);
    ck_assert_ptr_nonnull(strstr(ad_tape_message(no_tape), "65535 tapes"));
    ck_assert(tapes[n].slot == 0 && tapes[n].generation == 0);
    ck_assert_int_eq(ad_tape_destroy(tapes[77]), AD_OK);
    ck_assert_int_eq(ad_tape_create(&tapes[n], &options), AD_OK);
    ck_assert_uint_eq(tapes[n].slot, tapes[77].slot);
    ck_assert_int_eq(ad_tape_destroy(tapes[77]), AD_ERROR_HANDLE);
    ck_assert_int_eq(ad_tape_destroy(tapes[n]), AD_OK);
#endif
    (void)options;
    for (int i = n; i-- > 0;)
        ck_assert(i == 77 || ad_tape_destroy(tapes[i]) == AD_OK);
}
END_TEST

/* ---- words ---- */

START_TEST(every_status_has_a_name_and_a_text)
{
    ck_assert_str_eq(ad_status_name(AD_OK), "AD_OK");
    ck_assert_str_eq(ad_status_name(AD_ERROR_PROFILE), "AD_ERROR_PROFILE");
    ck_assert_str_eq(ad_status_text(AD_ERROR_SHAPE), "shapes do not fit");
    for (int i = -1; i < 20; i++)
        ck_assert(ad_status_name((ad_status)i) && ad_status_text((ad_status)i));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("errors");
    TCase *mistakes = tcase_create("mistakes"), *memory = tcase_create("memory");
    tcase_add_checked_fixture(mistakes, setup, teardown);
    tcase_set_timeout(mistakes, 60);
    tcase_add_loop_test(mistakes, a_mistake_is_named_with_its_line_and_leaves_the_tape_fit, 0,
                        n_cases);
    tcase_set_timeout(memory, 300);
    tcase_add_test(memory,
                   a_sweep_that_runs_out_of_memory_clears_the_gradients_it_would_leave_half_done);
    tcase_add_test(memory, a_tiny_reservation_is_rounded_up_and_its_end_is_an_error);
    tcase_add_test(memory, there_can_be_65535_tapes_and_one_more_is_an_error);
    tcase_add_test(memory, every_status_has_a_name_and_a_text);
    suite_add_tcase(suite, mistakes);
    suite_add_tcase(suite, memory);
    return run_suite(suite);
}
