/* test_shapes.c: rows told apart by the shapes of their ops, and where they are no more. */
#include "tape_shape.h"

#include "observe_support.h"
#include "run_cases.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const double data[64] = {0.5, 0.25, 2};
static ad_tape tape;

static void setup(void)
{
    setenv("TAPESCOPE_MODULE_DIR", TAPESCOPE_LIB_DIR "/tapescope", 1);
    observe_hook.shapes = true;
    observe_begin(UINT64_MAX);
    tape = observe_tape();
}

static void teardown(void)
{
    tape_observe_end();
    observe_hook.shapes = false;
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_tensor leaf(int64_t m, int64_t n)
{
    const int64_t shape[2] = {m, n};
    return ad_leaf(tape, AD_F64, n > 0 ? 2 : 1, shape, data);
}

/* The row of an op with that shape; NULL as shape: with none. */
static const struct tape_row *row_of(const struct tape_ledger *ledger, const char *op,
                                     const char *shape)
{
    const struct tape_row *found = NULL;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        if (strcmp(row->op, op) != 0 || !row->shape != !shape ||
            (shape && strcmp(row->shape, shape) != 0))
            continue;
        ck_assert_msg(found == NULL, "two rows of %s %s", op, shape);
        found = row;
    }
    ck_assert_msg(found != NULL, "no row of %s %s", op, shape);
    return found;
}

__attribute__((noinline)) static ad_tensor product(ad_tensor a, ad_tensor b)
{
    return ad_matmul(a, b);
}

TEST(a_line_has_a_row_for_each_shape)
{
    ad_tensor a = leaf(2, 3), b = leaf(3, 4), c = leaf(4, 2);
    ad_tensor y = product(product(a, b), c);
    product(a, b);
    ck_assert_int_eq(ad_backward(ad_sum(ad_exp(y))), AD_OK);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *first = row_of(ledger, "matmul", "f64[2,4] of [2,3], [3,4]");
    const struct tape_row *second = row_of(ledger, "matmul", "f64[2,2] of [2,4], [4,2]");
    ck_assert_uint_eq(first->pc, second->pc);
    ck_assert_uint_eq(first->calls, 2);
    ck_assert_uint_eq(second->calls, 1);
    ck_assert_uint_eq(first->forward_flops, 2 * 2 * 2 * 3 * 4);
    ck_assert_uint_eq(first->backward_calls, 1);
    ck_assert_uint_eq(second->backward_calls, 1);
    ck_assert_uint_eq(row_of(ledger, "exp", "f64[2,2]")->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "sum", "f64[] of [2,2]")->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "leaf", "f64[4,2]")->calls, 1);
    ck_assert_uint_eq(row_of(ledger, "backward", NULL)->calls, 1);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
}

TEST(dtypes_and_what_operands_there_are_tell_shapes_apart)
{
    static const float single[3] = {1, 2, 3};
    static const int64_t index[2] = {2, 0}, three = 3, two = 2;
    ad_tensor x = leaf(3, 0), f = ad_leaf(tape, AD_F32, 1, &three, single);
    ad_tensor i = ad_constant(tape, AD_I64, 1, &two, index);
    ad_gather(x, i, 0);
    ad_exp(f);
    ad_exp(x);
    ad_mul(x, ad_scalar_f64(tape, 2));
    ad_mul(x, x);
    const struct tape_ledger *ledger = observe_ledger();
    row_of(ledger, "gather", "f64[2] of [3], i64[2]");
    row_of(ledger, "exp", "f32[3]");
    row_of(ledger, "exp", "f64[3]");
    row_of(ledger, "mul", "f64[3] of [3], []");
    row_of(ledger, "mul", "f64[3]");
    row_of(ledger, "scalar", "f64[]");
    row_of(ledger, "constant", "i64[2]");
    observe_check_sums(ledger);
}

TEST(without_being_asked_no_row_has_a_shape)
{
    tape_observe_end();
    observe_hook.shapes = false;
    observe_begin(UINT64_MAX);
    product(leaf(2, 3), leaf(3, 4));
    product(leaf(3, 2), leaf(2, 4));
    const struct tape_ledger *ledger = observe_ledger();
    ck_assert_uint_eq(row_of(ledger, "matmul", NULL)->calls, 2);
}

/* One call in the program, however its callers are compiled. */
__attribute__((noinline)) static ad_tensor difference(ad_tensor a, ad_tensor b)
{
    return ad_sub(a, b);
}

/* [n,n] of [n,1] and [n] may be a mistake. It is none where the extents mean a grid, and
 * nothing is to be seen of it where it is small. */
TEST(unasked_a_grid_of_operands_with_as_many_elements_has_its_shape)
{
    tape_observe_end();
    observe_hook.shapes = false;
    observe_begin(UINT64_MAX);
    ad_tensor column = leaf(16, 1), row = leaf(16, 0);
    for (int i = 0; i < 2; i++)
        difference(column, row);
    ad_sub(column, leaf(15, 0));
    ad_add(column, leaf(1, 16));
    ad_add(leaf(7, 1), leaf(7, 0));
    ad_add(leaf(4, 16), row);
    const struct tape_ledger *ledger = observe_ledger();
    const struct tape_row *grid = row_of(ledger, "sub", "f64[16,16] of [16,1], [16]");
    ck_assert_uint_eq(grid->calls, 2);
    ck_assert_uint_eq(grid->value_bytes, 2 * 16 * 16 * sizeof(double));
    uint64_t plain = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++)
        plain += tape_ledger_row(ledger, i)->shape ? 0 : tape_ledger_row(ledger, i)->calls;
    ck_assert_uint_eq(plain, 4 + 7);
    observe_check_sums(ledger);
    observe_check_live(ledger, tape);
}

enum { THREADS = 4, EACH = 600 };

static pthread_barrier_t recorded, seen;

/* Shapes that the threads have in common, each thread on a tape of its own. */
static void *make_shapes(void *payload)
{
    static double zeros[EACH + 1];
    (void)payload;
    ad_tape own = observe_tape();
    for (int64_t i = 1; i <= EACH; i++) {
        ad_exp(ad_leaf(own, AD_F64, 1, &i, zeros));
        ad_tape_reset(own);
    }
    pthread_barrier_wait(&recorded);
    pthread_barrier_wait(&seen);
    ck_assert_int_eq(ad_tape_destroy(own), AD_OK);
    return NULL;
}

TEST(threads_share_the_shapes_that_they_have_in_common)
{
    pthread_t thread[THREADS];
    ck_assert_int_eq(pthread_barrier_init(&recorded, NULL, THREADS + 1), 0);
    ck_assert_int_eq(pthread_barrier_init(&seen, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, make_shapes, NULL), 0);
    pthread_barrier_wait(&recorded);
    observe_n_flushed = 0;
    tape_observe_flush();
    const char *text[EACH] = {NULL};
    int tapes = 0;
    for (int f = 0; f < observe_n_flushed; f++) {
        const struct tape_ledger *ledger = observe_flushed[f].ledger;
        uint32_t n = 0;
        for (uint32_t i = 0; i < ledger->n_rows; i++) {
            const struct tape_row *row = tape_ledger_row(ledger, i);
            if (strcmp(row->op, "exp") != 0)
                continue;
            const char *shape = row->shape;
            ck_assert_ptr_nonnull(shape);
            ck_assert_uint_eq(row->calls, 1);
            const long extent = strtol(shape + 4, NULL, 10);
            ck_assert_int_ge(extent, 1);
            ck_assert_int_le(extent, EACH);
            ck_assert(text[extent - 1] == NULL || text[extent - 1] == shape);
            text[extent - 1] = shape;
            n++;
        }
        if (n > 0)
            ck_assert_uint_eq(n, EACH);
        tapes += n > 0;
    }
    ck_assert_int_eq(tapes, THREADS);
    pthread_barrier_wait(&seen);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&recorded);
    pthread_barrier_destroy(&seen);
}

TEST(more_shapes_than_there_is_room_for_are_one)
{
    static double zeros[2 * TAPE_SHAPES];
    const int64_t most = TAPE_SHAPES + 100;
    for (int64_t i = 1; i <= most; i++) {
        ad_leaf(tape, AD_F64, 1, &i, zeros);
        ad_tape_reset(tape);
    }
    const struct tape_ledger *ledger = observe_ledger();
    uint64_t calls = 0, rows = 0;
    for (uint32_t i = 0; i < ledger->n_rows; i++) {
        const struct tape_row *row = tape_ledger_row(ledger, i);
        calls += strcmp(row->op, "leaf") == 0 ? row->calls : 0;
        rows += strcmp(row->op, "leaf") == 0;
    }
    ck_assert_uint_eq(calls, (uint64_t)most);
    ck_assert_uint_eq(rows, TAPE_SHAPES + 1);
    ck_assert_uint_eq(row_of(ledger, "leaf", "(other shapes)")->calls, 100);
    observe_check_sums(ledger);
}

RUN_TESTS(setup, teardown)
