/* fault_workloads.c: the workloads, and the look at the tape before and after each call. */
#include "fault_workloads.h"

#include <stdio.h>
#include <string.h>

#define NOTE(...) (fault_wrong[0] ? 0 : snprintf(fault_wrong, sizeof fault_wrong, __VA_ARGS__))
#define REQUIRE(condition)                                                                         \
    ((condition) ? 0 : NOTE("%s: line %d: not so: %s", workload_now, __LINE__, #condition))

char fault_wrong[512];
static const char *workload_now;
static ad_tape now_tape;
static ad_stats before;
static ad_status status_before;
static double data[144];
static float data_f32[48];

void fault_look(void)
{
    REQUIRE(ad_tape_stats(now_tape, &before) == AD_OK);
    status_before = ad_tape_status(now_tape);
}

/* A call that failed, or came after a failure, has left nothing. */
static void check_untouched(void)
{
    ad_stats after;
    REQUIRE(ad_tape_stats(now_tape, &after) == AD_OK);
    if (after.values != before.values || after.records != before.records ||
        after.live_bytes != before.live_bytes)
        NOTE("%s: %llu values, %llu records, %llu bytes became %llu, %llu, %llu: %s", workload_now,
             (unsigned long long)before.values, (unsigned long long)before.records,
             (unsigned long long)before.live_bytes, (unsigned long long)after.values,
             (unsigned long long)after.records, (unsigned long long)after.live_bytes,
             ad_tape_message(now_tape));
}

ad_tensor fault_tensor_done(ad_tensor result)
{
    REQUIRE((ad_tape_status(now_tape) == AD_OK) == (result.value != 0));
    if (ad_tape_status(now_tape) != AD_OK)
        check_untouched();
    return result;
}

ad_status fault_status_done(ad_status status)
{
    if (status != AD_OK) {
        REQUIRE(status == ad_tape_status(now_tape));
        check_untouched();
    } else {
        REQUIRE(ad_tape_status(now_tape) == status_before);
    }
    return status;
}

ad_status fault_run(const struct fault_workload *w, ad_tape tape, struct fault_results *out)
{
    workload_now = w->name;
    now_tape = tape;
    for (int i = 0; i < 144; i++)
        data[i] = 0.25 + (double)(i * 37 % 101) / 64;
    for (int i = 0; i < 48; i++)
        data_f32[i] = 0.5F + (float)(i * 29 % 53) / 32;
    memset(out, 0, sizeof *out);
    fault_wrong[0] = 0;
    w->run(tape, out);
    return ad_tape_status(tape);
}

/* ---- parts of workloads ---- */

ad_tensor fault_leaf(ad_tape tape, int64_t rows, int64_t columns)
{
    return OP(ad_leaf(tape, AD_F64, 2, SHAPE(rows, columns), data));
}

void fault_read_gradient(ad_tensor x, int n, struct fault_results *out)
{
    REQUIRE(out->n + n <= FAULT_RESULTS);
    if (DO(ad_gradient(x, out->number + out->n, n)) == AD_OK)
        out->n += n;
}

void fault_read_value(ad_tensor x, int n, struct fault_results *out)
{
    REQUIRE(out->n + n <= FAULT_RESULTS);
    if (ad_value(x, out->number + out->n, n) == AD_OK)
        out->n += n;
}

void fault_sweep(ad_tensor y, ad_tensor x, int n, struct fault_results *out)
{
    y = OP(ad_sum(y));
    DO(ad_backward(y));
    fault_read_gradient(x, n, out);
}

static ad_tensor mean_of_squares(ad_tensor x)
{
    x = OP(ad_square(x));
    return OP(ad_mean(x));
}

const double *const fault_data = data;

/* ---- workloads ---- */

static void elementwise(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 5);
    ad_tensor h = OP(ad_exp(x));
    h = OP(ad_tanh(h));
    h = OP(ad_mul(h, x));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_value(h, 1, out);
    fault_read_gradient(x, 20, out);
}

static void aliased(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 3);
    ad_tensor h = OP(ad_mul(x, x));
    h = OP(ad_matmul(h, h));
    h = OP(ad_div(h, h));
    h = OP(ad_add(h, x));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(x, 9, out);
}

static void broadcasting(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 6), row = fault_leaf(tape, 1, 6),
              column = fault_leaf(tape, 4, 1);
    ad_tensor h = OP(ad_mul(x, row));
    h = OP(ad_sub(h, column));
    h = mean_of_squares(h);
    DO(ad_backward(h));
    fault_read_gradient(x, 24, out);
    fault_read_gradient(row, 6, out);
    fault_read_gradient(column, 4, out);
}

static void layers(ad_tape tape, struct fault_results *out)
{
    static const int64_t classes[4] = {0, 2, 1, 2};
    ad_tensor x = OP(ad_constant(tape, AD_F64, 2, SHAPE(4, 5), data));
    ad_tensor w = fault_leaf(tape, 5, 6), b = OP(ad_leaf(tape, AD_F64, 1, SHAPE(6), data));
    ad_tensor v = fault_leaf(tape, 6, 3), c = OP(ad_leaf(tape, AD_F64, 1, SHAPE(3), data));
    ad_tensor labels = OP(ad_constant(tape, AD_I64, 1, SHAPE(4), classes));
    ad_tensor h = OP(ad_linear(x, w, b));
    h = OP(ad_relu(h));
    h = OP(ad_linear(h, v, c));
    h = OP(ad_softmax_cross_entropy(h, labels));
    h = OP(ad_mean(h));
    DO(ad_backward(h));
    fault_read_gradient(w, 30, out);
    fault_read_gradient(b, 6, out);
    fault_read_gradient(v, 18, out);
    fault_read_gradient(c, 3, out);
}

static void views(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 6);
    ad_tensor h = OP(ad_transpose(x));
    h = OP(ad_exp(h));
    h = OP(ad_transpose(h));
    h = OP(ad_reshape(h, SHAPE(2, 12), 2));
    h = OP(ad_transpose(h));
    h = OP(ad_reshape(h, SHAPE(24), 1));
    h = mean_of_squares(h);
    DO(ad_backward(h));
    fault_read_gradient(x, 24, out);
}

static void strided_products(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 1, 6), w = fault_leaf(tape, 5, 6);
    ad_tensor wide =
        OP(ad_broadcast_to(x, SHAPE(5, 6), 2)); /* copied into workspace by a product */
    ad_tensor turned = OP(ad_transpose(wide));
    ad_tensor h = OP(ad_matmul(w, turned));
    h = OP(ad_matmul(h, wide));
    h = mean_of_squares(h);
    DO(ad_backward(h));
    fault_read_gradient(x, 6, out);
    fault_read_gradient(w, 30, out);
}

static void reductions(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 4, 6);
    ad_tensor a = OP(ad_sum_axes(x, (int64_t[]){0}, 1, AD_KEEPDIM));
    ad_tensor b = OP(ad_mean_axes(x, (int64_t[]){1}, 1, AD_KEEPDIM));
    ad_tensor c = OP(ad_max_axes(x, (int64_t[]){1}, 1, AD_KEEPDIM));
    ad_tensor h = OP(ad_mul(a, b));
    h = OP(ad_mul(h, c));
    h = OP(ad_max(h));
    DO(ad_backward(h));
    fault_read_gradient(x, 24, out);
}

static void single_precision(ad_tape tape, struct fault_results *out)
{
    float g[48] = {0};
    ad_tensor x = OP(ad_leaf(tape, AD_F32, 2, SHAPE(6, 8), data_f32));
    ad_tensor h = OP(ad_transpose(x));
    h = OP(ad_matmul(x, h));
    h = OP(ad_sigmoid(h));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    if (DO(ad_gradient(x, g, 48)) == AD_OK)
        for (int i = 0; i < 48; i++)
            out->number[out->n++] = (double)g[i];
}

static void seeded(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 4),
              seed = OP(ad_constant(tape, AD_F64, 2, SHAPE(3, 4), data));
    ad_tensor h = OP(ad_sqrt(x));
    DO(ad_backward_seed(h, seed));
    seed = OP(ad_transpose(x));
    h = OP(ad_transpose(h));
    DO(ad_backward_seed(h, seed)); /* read through strides */
    fault_read_gradient(x, 12, out);
}

static void several_sweeps(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 4);
    ad_tensor h = OP(ad_log(x)), y = mean_of_squares(h);
    for (int i = 0; i < 3; i++)
        DO(ad_backward(y));
    fault_read_gradient(x, 12, out);
    DO(ad_tape_zero_gradients(tape));
    y = OP(ad_sum(h));
    DO(ad_backward(y));
    fault_read_gradient(x, 12, out);
}

static void leaf_alone(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 0, NULL, data));
    DO(ad_backward(x));
    DO(ad_backward(x)); /* is added through a copy of the seed */
    fault_read_gradient(x, 1, out);
}

static void retained(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 5);
    ad_tensor h = OP(ad_exp(x));
    DO(ad_retain_gradient(h));
    ad_tensor y = mean_of_squares(h);
    DO(ad_retain_gradient(y));
    DO(ad_backward(y));
    DO(ad_backward(y));
    fault_read_gradient(h, 15, out);
    fault_read_gradient(y, 1, out);
    fault_read_gradient(x, 15, out);
}

static void user_buffer(ad_tape tape, struct fault_results *out)
{
    double mine[15], kept[15];
    for (int i = 0; i < 15; i++)
        mine[i] = 0.125 * i;
    memcpy(kept, mine, sizeof mine);
    ad_tensor x = fault_leaf(tape, 3, 5);
    DO(ad_gradient_buffer(x, mine, 15));
    ad_tensor h = OP(ad_tanh(x));
    ad_tensor e = OP(ad_exp(h));
    h = OP(ad_mul(h, e));
    h = mean_of_squares(h);
    ad_tensor last = mean_of_squares(x); /* gives x a part before the other needs more memory */
    h = OP(ad_add(h, last));
    if (DO(ad_backward(h)) != AD_OK)
        REQUIRE(memcmp(mine, kept, sizeof mine) == 0);
    fault_read_gradient(x, 15, out);
    DO(ad_gradient_buffer(x, NULL, 0));
    DO(ad_backward(h));
    fault_read_gradient(x, 15, out);
    if (ad_tape_status(tape) == AD_OK)
        memcpy(out->number + out->n, mine, sizeof mine);
    out->n += 15;
}

static void second_derivative(ad_tape tape, struct fault_results *out)
{
    ad_tensor g = {0}, x = fault_leaf(tape, 3, 3);
    ad_tensor h = OP(ad_transpose(x));
    h = OP(ad_matmul(x, h));
    h = OP(ad_tanh(h));
    h = OP(ad_sum(h));
    DO(ad_create_graph(h, (ad_tensor){0}, 1, &x, &g));
    if (ad_tape_status(tape) != AD_OK)
        REQUIRE(g.value == 0);
    h = mean_of_squares(g);
    DO(ad_backward(h));
    fault_read_value(g, 9, out);
    fault_read_gradient(x, 9, out);
}

static void third_derivative(ad_tape tape, struct fault_results *out)
{
    ad_tensor g = {0}, x = fault_leaf(tape, 2, 2), y;
    y = OP(ad_exp(x));
    y = OP(ad_mul(y, x));
    y = OP(ad_sum(y));
    for (int i = 0; i < 3; i++) {
        DO(ad_create_graph(y, (ad_tensor){0}, 1, &x, &g));
        y = OP(ad_sum(g));
    }
    fault_read_value(g, 4, out);
}

static void graph_of_independent(ad_tape tape, struct fault_results *out)
{
    ad_tensor x[2] = {fault_leaf(tape, 2, 3), fault_leaf(tape, 2, 2)}, g[2] = {{0}, {0}};
    ad_tensor h = OP(ad_square(x[0])), seed = OP(ad_constant(tape, AD_F64, 2, SHAPE(2, 3), data));
    DO(ad_create_graph(h, seed, 2, x, g)); /* zeros are made for x[1] */
    fault_read_value(g[0], 6, out);
    fault_read_value(g[1], 4, out);
}

static void marks(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 2, 3);
    ad_tensor base = OP(ad_exp(x));
    for (int i = 0; i < 3; i++) {
        fault_look();
        ad_mark mark = ad_tape_mark(tape);
        if (ad_tape_status(tape) != AD_OK)
            check_untouched();
        ad_tensor h = OP(ad_scale(base, 1 + i));
        h = mean_of_squares(h);
        DO(ad_backward(h));
        fault_read_gradient(x, 6, out);
        if (ad_tape_status(tape) == AD_OK)
            REQUIRE(ad_tape_rewind(tape, mark) == AD_OK);
    }
}

static void nested_marks(ad_tape tape, struct fault_results *out)
{
    ad_mark mark[20]; /* the table of marks grows twice */
    ad_tensor x = fault_leaf(tape, 2, 2), h = x;
    for (int i = 0; i < 20; i++) {
        fault_look();
        mark[i] = ad_tape_mark(tape);
        if (ad_tape_status(tape) != AD_OK)
            check_untouched();
        h = OP(ad_tanh(h));
    }
    ad_tensor y = OP(ad_sum(h));
    DO(ad_backward(y));
    fault_read_gradient(x, 4, out);
    if (ad_tape_status(tape) == AD_OK)
        REQUIRE(ad_tape_rewind(tape, mark[0]) == AD_OK);
    y = OP(ad_sum(x));
    DO(ad_backward(y));
    fault_read_gradient(x, 4, out);
}

static void without_recording(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 3, 3);
    REQUIRE(ad_tape_no_grad_begin(tape) == AD_OK);
    ad_tensor h = OP(ad_matmul(x, x));
    REQUIRE(ad_tape_no_grad_end(tape) == AD_OK);
    ad_tensor cut = OP(ad_tanh(x));
    cut = OP(ad_detach(cut));
    ad_tensor two = OP(ad_scalar_f64(tape, 2));
    h = OP(ad_mul(h, cut));
    h = OP(ad_mul(h, x));
    h = OP(ad_mul(h, two));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(x, 9, out);
}

static void empty(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = OP(ad_leaf(tape, AD_F64, 2, SHAPE(0, 3), NULL)), z = fault_leaf(tape, 3, 2);
    ad_tensor h = OP(ad_matmul(x, z));
    h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(z, 6, out);
    fault_read_value(h, 1, out);
}

/* Each call is a line of its own to the account, whose tables grow. */
static void many_lines(ad_tape tape, struct fault_results *out)
{
    ad_tensor x = fault_leaf(tape, 1, 2), h = x;
#define ONCE h = OP(ad_scale(h, 0.99));
#define FOUR ONCE ONCE ONCE ONCE
#define SIXTEEN FOUR FOUR FOUR FOUR
    SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN h = OP(ad_sum(h));
    DO(ad_backward(h));
    fault_read_gradient(x, 2, out);
}

const struct fault_workload fault_workloads[] = {
    {"elementwise", elementwise},
    {"aliased", aliased},
    {"broadcasting", broadcasting},
    {"layers", layers},
    {"views", views},
    {"strided_products", strided_products},
    {"reductions", reductions},
    {"single_precision", single_precision},
    {"seeded", seeded},
    {"several_sweeps", several_sweeps},
    {"leaf_alone", leaf_alone},
    {"retained", retained},
    {"user_buffer", user_buffer},
    {"second_derivative", second_derivative},
    {"third_derivative", third_derivative},
    {"graph_of_independent", graph_of_independent},
    {"marks", marks},
    {"nested_marks", nested_marks},
    {"frames", fault_frames},
    {"releasing_sweep", fault_releasing_sweep},
    {"checkpoints", fault_checkpoints},
    {"checkpoints of scalars", fault_real_checkpoints},
    {"custom", fault_custom},
    {"checked_custom", fault_checked_custom},
    {"listened", fault_listened},
    {"loops", fault_loops},
    {"loops of scalars", fault_real_loops},
    {"loops on disk", fault_disk_loops},
    {"roots", fault_roots},
    {"reals", fault_reals},
    {"program of numbers", fault_program},
    {"sparse Jacobian of numbers", fault_sparse_jacobian},
    {"sparse Hessian of numbers", fault_sparse_hessian},
    {"sections", fault_sections},
    {"fused loops", fault_fused_loops},
    {"forks", fault_forks},
    {"bridges", fault_bridges},
    {"trapped", fault_trapped},
    {"recorded", fault_recorded},
    {"without_recording", without_recording},
    {"empty", empty},
    {"many_lines", many_lines},
    {"choices", fault_choices},
    {"functions", fault_functions},
    {"moved_parts", fault_moved_parts},
    {"rows_by_index", fault_rows_by_index},
    {"scans", fault_scans},
    {"moved_elements", fault_moved_elements},
    {"repeated", fault_repeated},
    {"ordered", fault_ordered},
    {"indexed", fault_indexed},
    {"losses", fault_losses},
    {"normalized", fault_normalized},
    {"embedded", fault_embedded},
    {"convolved", fault_convolved},
    {"pooled", fault_pooled},
    {"program of tensors", fault_tensor_program},
    {"forms", fault_forms},
    {"more_reductions", fault_more_reductions},
    {"shares", fault_shares},
    {"batched_products", fault_batched_products},
    {"casts", fault_casts},
    {"second_of_reductions", fault_second_of_reductions},
    {"complex", fault_complex},
    {"einsum", fault_einsum},
    {"value and gradient", fault_value_and_gradient},
    {"pullbacks", fault_pullbacks},
    {"directional", fault_directional},
    {"visits", fault_visits},
    {"files", fault_files},
    {"visited files", fault_visited_files},
    {"matrices", fault_matrices},
    {"sparse matrices of tensors", fault_sparse_tensors},
    {"recurrence", fault_recurrence},
    {"attention", fault_attention},
    {"linear_systems", fault_linear_systems},
    {"second_of_linear_systems", fault_second_of_linear_systems},
    {"decompositions", fault_decompositions},
    {"second_of_decompositions", fault_second_of_decompositions},
    {"checked", fault_checked},
    {"looked_at", fault_looked_at},
};
const int fault_workload_count = (int)(sizeof fault_workloads / sizeof *fault_workloads);
