/* test_checkpoint.c: checkpoints: gradients, memory, and what a function may do.
 *
 * What is compared is compared bit for bit.
 */
#include "run_cases.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tape_fixture.h"

enum { N = 8, SIZE = N * N, BYTES = SIZE * sizeof(double), BLOCKS = 16 };

static const int64_t square[2] = {N, N}, row[1] = {N};
static double x_data[SIZE], w_data[SIZE], b_data[N];

enum { DEPTHS = 5 };

struct weights {
    ad_tensor w, b;
    int calls;
    /* What a segment does: so many blocks, or two of the next kind, each a checkpoint. */
    struct part {
        struct weights *of;
        int blocks;
        bool parted;
    } part[DEPTHS];
};

/* Values and gradients of one computation. */
struct result {
    double y, x[SIZE], w[SIZE], b[N];
};

static void setup(void)
{
    for (int i = 0; i < SIZE; i++) {
        x_data[i] = (i * 37 % SIZE - 31.5) / 40;
        w_data[i] = (i * 53 % SIZE - 30.5) / 90;
    }
    for (int i = 0; i < N; i++)
        b_data[i] = (i - 3.25) / 10;
    static const ad_tape_options small = {.budget_bytes = 64 << 20, .reserve_bytes = 64 << 20};
    tape_begin(&small);
}

static ad_tensor block(ad_tensor h, const struct weights *w)
{
    return ad_tanh(ad_add(ad_matmul(h, w->w), w->b));
}

static struct weights leaves(ad_tensor *x)
{
    *x = ad_leaf(tape, AD_F64, 2, square, x_data);
    return (struct weights){.w = ad_leaf(tape, AD_F64, 2, square, w_data),
                            .b = ad_leaf(tape, AD_F64, 1, row, b_data)};
}

static void gradients(ad_tensor x, const struct weights *w, struct result *r)
{
    ck_assert_int_eq(ad_gradient(x, r->x, SIZE), AD_OK);
    ck_assert_int_eq(ad_gradient(w->w, r->w, SIZE), AD_OK);
    ck_assert_int_eq(ad_gradient(w->b, r->b, N), AD_OK);
}

/* The weights are read by their handles in the payload. */
static void segment(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    const struct part *part = payload;
    ck_assert_int_eq(n_in, 1);
    ck_assert_int_eq(n_out, 1);
    part->of->calls++;
    out[0] = in[0];
    if (part->parted) {
        ad_checkpoint(on, segment, (void *)(part + 1), 1, out, 1, out);
        ad_checkpoint(on, segment, (void *)(part + 1), 1, out, 1, out);
        return;
    }
    for (int i = 0; i < part->blocks; i++)
        out[0] = block(out[0], part->of);
}

static void plan(struct weights *w, int blocks, int depth)
{
    for (int k = 0; k < DEPTHS; k++)
        w->part[k] = (struct part){w, blocks >> k, k < depth};
}

/* BLOCKS blocks in segments of so many, 0: none; the loss is the sum of squares. */
static ad_tensor chain(ad_tensor x, struct weights *w, int of)
{
    ad_tensor h = x;
    for (int i = 0; i < BLOCKS; i += of ? of : 1) {
        if (of)
            ck_assert_int_eq(ad_checkpoint(tape, segment, w->part, 1, &h, 1, &h), AD_OK);
        else
            h = block(h, w);
    }
    return ad_sum(ad_square(h));
}

static struct result compute(int of, int depth, bool release)
{
    struct result r;
    ad_tensor x;
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    struct weights w = leaves(&x);
    plan(&w, of, depth);
    ad_tensor y = chain(x, &w, of);
    r.y = ad_item(y);
    ck_assert_int_eq(release ? ad_backward_release(y) : ad_backward(y), AD_OK);
    gradients(x, &w, &r);
    return r;
}

TEST(values_and_gradients_are_those_without_checkpoints)
{
    const struct result plain = compute(0, 0, false);
    ck_assert(fabs(plain.w[3]) > 1e-6 && fabs(plain.x[5]) > 1e-12);
    for (int of = 1; of <= BLOCKS; of *= 2) {
        const struct result kept = compute(of, 0, false), released = compute(of, 0, true);
        ck_assert_mem_eq(&kept, &plain, sizeof plain);
        ck_assert_mem_eq(&released, &plain, sizeof plain);
    }
}

TEST(checkpoints_within_checkpoints_have_the_same_gradients)
{
    const struct result plain = compute(0, 0, false);
    for (int depth = 1; depth <= 4; depth++) {
        const struct result nested = compute(BLOCKS, depth, depth % 2);
        ck_assert_mem_eq(&nested, &plain, sizeof plain);
    }
}

TEST(a_function_is_called_once_and_once_in_each_sweep)
{
    ad_tensor x;
    struct weights w = leaves(&x);
    plan(&w, 4, 0);
    ad_tensor y = chain(x, &w, 4);
    ck_assert_int_eq(w.calls, 4);
    struct result r, again;
    ck_assert_int_eq(ad_backward(y), AD_OK);
    gradients(x, &w, &r);
    ck_assert_int_eq(w.calls, 8);
    ck_assert_int_eq(ad_tape_zero_gradients(tape), AD_OK);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    gradients(x, &w, &again);
    ck_assert_int_eq(w.calls, 12);
    ck_assert_mem_eq(r.w, again.w, sizeof r.w);
    ck_assert_int_eq(ad_backward(y), AD_OK); /* gradients grow */
    gradients(x, &w, &again);
    for (int i = 0; i < SIZE; i++)
        ck_assert_double_eq(again.x[i], 2 * r.x[i]);
}

TEST(a_sweep_leaves_the_tape_as_it_was)
{
    ad_tensor x;
    struct weights w = leaves(&x);
    plan(&w, 4, 0);
    ad_tensor y = chain(x, &w, 4);
    const ad_stats before = stats();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ad_backward(y), AD_OK);
        const ad_stats after = stats();
        ck_assert_uint_eq(after.live_bytes, before.live_bytes);
        ck_assert_uint_eq(after.values, before.values);
        ck_assert_uint_eq(after.records, before.records);
    }
    ad_mark mark = ad_tape_mark(tape);
    chain(x, &w, 4);
    ck_assert_int_eq(ad_tape_rewind(tape, mark), AD_OK);
    ck_assert_uint_eq(stats().live_bytes, before.live_bytes);
}

/* ---- memory ---- */

/* What is on the tape behind the leaves, in buffers of one block's value. */
static uint64_t buffers(void)
{
    ad_saved saved;
    ck_assert_int_eq(ad_tape_saved_for_backward(tape, &saved), AD_OK);
    ck_assert_uint_eq(saved.buffer_bytes % BYTES, 0);
    return saved.buffer_bytes / BYTES;
}

/* A chain of tanh, whose pullback reads its result alone. */
static void tanhs(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                  void *payload)
{
    const int *n = payload;
    (void)on;
    (void)n_in;
    (void)n_out;
    out[0] = in[0];
    for (int i = 0; i < *n; i++)
        out[0] = ad_tanh(out[0]);
}

/* The sweep's peak above what the tape held before it, and what that was above `start`. */
static void peaks(int n, int of, uint64_t *kept, uint64_t *more)
{
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, square, x_data), h = x;
    const uint64_t start = stats().live_bytes;
    for (int i = 0; i < n / of; i++)
        ck_assert_int_eq(ad_checkpoint(tape, tanhs, &of, 1, &h, 1, &h), AD_OK);
    *kept = stats().live_bytes - start;
    ad_tensor seed = ad_constant(tape, AD_F64, 2, square, x_data);
    const uint64_t before = stats().live_bytes;
    ck_assert_int_eq(ad_tape_reset_peak(tape), AD_OK);
    ck_assert_int_eq(ad_backward_seed(h, seed), AD_OK);
    *more = stats().peak_bytes - before;
}

TEST(a_chain_keeps_the_results_of_its_segments_and_sweeps_one_segment_at_a_time)
{
    /* One tanh on the tape: its value, its entry, its record. A shape is shared with the operand,
     * or else a result's own: two extents, two strides. */
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, square, x_data);
    uint64_t at = stats().live_bytes;
    ad_tanh(x);
    const uint64_t one = stats().live_bytes - at;
    int of = 1;
    ad_tensor h;
    const uint64_t unguarded = stats().live_bytes;
    ck_assert_int_eq(ad_checkpoint(tape, tanhs, &of, 1, &x, 1, &h), AD_OK);
    at = stats().live_bytes;
    ck_assert_int_eq(ad_checkpoint(tape, tanhs, &of, 1, &h, 1, &h), AD_OK);
    const uint64_t segment_bytes = stats().live_bytes - at;
    ck_assert_uint_eq(one, BYTES + 72 + 32);
    ck_assert_uint_eq(segment_bytes, BYTES + 72 + 32 + 80);
    const uint64_t guard = at - unguarded - segment_bytes; /* of the leaf's array */
    static const int length[] = {16, 64, 256};
    for (size_t k = 0; k < sizeof length / sizeof *length; k++) {
        const int n = length[k], root = (int)sqrt(n);
        uint64_t kept, more;
        peaks(n, root, &kept, &more);
        ck_assert_uint_eq(kept, (uint64_t)root * segment_bytes + guard);
        ck_assert_uint_eq(buffers(), (uint64_t)root - 1); /* each segment's operand, but the leaf */
        /* The values of a segment, the adjoint that came and the one that grows. */
        ck_assert_uint_eq(more, (uint64_t)root * one + 2 * BYTES);
    }
}

/* n tanhs, halved down to one. */
static void halves(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                   void *payload)
{
    char *depth = payload; /* points so far into a text */
    (void)n_in;
    (void)n_out;
    if (*depth == 0) {
        out[0] = ad_tanh(in[0]);
        return;
    }
    ad_checkpoint(on, halves, depth + 1, 1, in, 1, out);
    ad_checkpoint(on, halves, depth + 1, 1, out, 1, out);
}

TEST(halves_of_halves_need_memory_that_grows_by_the_same_for_each_doubling)
{
    static char depths[] = "7654321";
    uint64_t peak[8];
    for (int k = 0; k < 8; k++) {
        ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
        ad_tensor x = ad_leaf(tape, AD_F64, 2, square, x_data), y;
        ck_assert_int_eq(ad_tape_reset_peak(tape), AD_OK);
        const uint64_t before = stats().live_bytes;
        ck_assert_int_eq(ad_checkpoint(tape, halves, depths + 7 - k, 1, &x, 1, &y), AD_OK);
        ck_assert_int_eq(ad_backward_seed(y, ad_constant(tape, AD_F64, 2, square, w_data)), AD_OK);
        peak[k] = stats().peak_bytes - before;
    }
    for (int k = 4; k < 8; k++) {
        ck_assert_uint_eq(peak[k] - peak[k - 1], peak[k - 1] - peak[k - 2]);
        ck_assert_uint_lt(peak[k] - peak[k - 1], 3 * BYTES);
    }
}

/* ---- operands and results ---- */

/* Given a, b, i64 and a constant: a * b, its transpose, a itself, a view of b, the same twice. */
static void many(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                 void *payload)
{
    (void)on;
    (void)payload;
    ck_assert_int_eq(n_in, 4);
    ck_assert_int_eq(n_out, 7);
    ad_tensor product = ad_mul(in[0], in[1]);
    out[0] = product;
    out[1] = ad_transpose(ad_mul(product, in[3]));
    out[2] = in[0];
    out[3] = ad_transpose(in[1]);
    out[4] = product;
    out[5] = ad_index_select(product, in[2], 0);
    out[6] = in[2];
}

/* The loss uses of[7] of the results. */
static void many_results(bool checkpoint, bool twice, const bool *of, struct result *r)
{
    static const int64_t index[3] = {2, 0, 2}, three[1] = {3};
    ad_tensor x, out[7];
    ck_assert_int_eq(ad_tape_reset(tape), AD_OK);
    struct weights w = leaves(&x);
    ad_tensor middle = ad_scale(w.w, 1.5);
    const ad_tensor in[4] = {twice ? middle : x, middle, ad_constant(tape, AD_I64, 1, three, index),
                             ad_constant(tape, AD_F64, 1, row, b_data)};
    if (checkpoint)
        ck_assert_int_eq(ad_checkpoint(tape, many, NULL, 4, in, 7, out), AD_OK);
    else
        many(tape, 4, in, 7, out, NULL);
    ck_assert_int_eq(ad_dtype_of(out[6]), AD_I64);
    ad_tensor y = ad_sum(ad_mul(x, w.w));
    for (int k = 0; k < 6; k++)
        if (of[k])
            y = ad_add(y, ad_scale(ad_sum(ad_square(out[k])), k + 1));
    r->y = ad_item(y);
    ck_assert_int_eq(ad_backward(y), AD_OK);
    gradients(x, &w, r);
}

TEST(any_of_several_results_may_have_adjoints)
{
    for (unsigned mask = 0; mask < 64; mask++) {
        bool of[6];
        struct result plain, kept;
        for (int k = 0; k < 6; k++)
            of[k] = mask >> k & 1;
        many_results(false, mask % 3 == 0, of, &plain);
        many_results(true, mask % 3 == 0, of, &kept);
        ck_assert_double_eq(kept.y, plain.y);
        /* What is returned twice, or returned as it came, is summed apart first. */
        for (int i = 0; i < SIZE; i++) {
            ck_assert_double_eq_tol(kept.x[i], plain.x[i], 1e-14 * (1 + fabs(plain.x[i])));
            ck_assert_double_eq_tol(kept.w[i], plain.w[i], 1e-14 * (1 + fabs(plain.w[i])));
        }
    }
}

TEST(results_are_tensors_of_their_own)
{
    static const int64_t index[3] = {2, 0, 2}, three[1] = {3};
    ad_tensor x, out[7];
    struct weights w = leaves(&x);
    const ad_tensor in[4] = {x, w.w, ad_constant(tape, AD_I64, 1, three, index),
                             ad_constant(tape, AD_F64, 1, row, b_data)};
    ck_assert_int_eq(ad_checkpoint(tape, many, NULL, 4, in, 7, out), AD_OK);
    double value[SIZE];
    for (int k = 0; k < 7; k++)
        for (int i = 0; i < k; i++)
            ck_assert_uint_ne(out[i].value, out[k].value);
    ck_assert_uint_ne(out[2].value, x.value);
    x_data[0] += 1; /* a copy: not a view of the leaf's array */
    ck_assert_int_eq(ad_value(out[2], value, SIZE), AD_OK);
    x_data[0] -= 1;
    ck_assert_mem_eq(value, x_data, sizeof value);
    ck_assert_int_eq(ad_value(out[3], value, SIZE), AD_OK);
    for (int i = 0; i < SIZE; i++)
        ck_assert_double_eq(value[i], w_data[i % N * N + i / N]);
}

static void nothing(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                    void *payload)
{
    (void)on;
    (void)n_in;
    (void)in;
    (void)n_out;
    (void)out;
    ++*(int *)payload;
}

static void reads_alone(ad_tape on, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                        void *payload)
{
    const struct weights *w = payload;
    (void)on;
    (void)in;
    ck_assert_int_eq(n_in, 0);
    for (int o = 0; o < n_out; o++)
        out[o] = ad_mul(w->b, ad_scalar_f64(on, o + 2));
}

TEST(there_may_be_no_operands_and_no_results)
{
    ad_tensor x, out[64];
    struct weights w = leaves(&x);
    const uint64_t live = stats().live_bytes, records = stats().records;
    int calls = 0;
    ck_assert_int_eq(ad_checkpoint(tape, nothing, &calls, 0, NULL, 0, NULL), AD_OK);
    ck_assert_int_eq(ad_checkpoint(tape, nothing, &calls, 1, &x, 0, NULL), AD_OK);
    ck_assert_int_eq(calls, 2);
    ck_assert_uint_eq(stats().live_bytes, live);
    ck_assert_uint_eq(stats().records, records);
    ck_assert_int_eq(ad_checkpoint(tape, reads_alone, &w, 0, NULL, 64, out), AD_OK);
    ck_assert_int_eq(ad_backward(ad_sum(ad_mul(out[63], out[0]))), AD_OK);
    double got[N];
    ck_assert_int_eq(ad_gradient(w.b, got, N), AD_OK);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(got[i], 2 * 2 * 65 * b_data[i], 1e-12);
}

TEST(constants_alone_leave_no_record)
{
    ad_tensor c = ad_constant(tape, AD_F64, 2, square, x_data), y;
    int n = 3;
    ck_assert_int_eq(ad_checkpoint(tape, tanhs, &n, 1, &c, 1, &y), AD_OK);
    ck_assert_uint_eq(stats().records, 0);
    ad_tensor x = ad_leaf(tape, AD_F64, 2, square, x_data);
    ck_assert_int_eq(ad_tape_no_grad_begin(tape), AD_OK);
    ck_assert_int_eq(ad_checkpoint(tape, tanhs, &n, 1, &x, 1, &y), AD_OK);
    ck_assert_int_eq(ad_tape_no_grad_end(tape), AD_OK);
    ck_assert_uint_eq(stats().records, 0);
    ck_assert_int_eq(ad_backward(ad_sum(y)), AD_ERROR_STATE);
    check_error(AD_ERROR_STATE, "does not depend on a leaf");
}

RUN_TESTS(setup, teardown_fine)
