/* test_convolution_tiles.c: convolutions by tiles against plain loops, on whole numbers, so that
 * sums are exact in every order.
 *
 * Workspace is of exactly the declared bytes, so that AddressSanitizer sees what lies beyond.
 */
#include "convolution_direct.h"
#include "elementwise.h"
#include "run_cases.h"
#include "threads.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 60 };

struct convolution_arrays {
    struct convolution all;
    int64_t size[3]; /* of x, w, y */
    double *at[3];
};

static uint64_t state;

static int64_t drawn(int64_t least, int64_t most)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return least + (int64_t)((state >> 33) % (uint64_t)(most - least + 1));
}

/* False if there is no such convolution. */
static bool arrays_make(struct convolution_arrays *a, int dtype, const int64_t x[4], int64_t o,
                        const int64_t kernel[2], const int64_t attr[7])
{
    char error[KERNEL_ERROR_BYTES];
    static const struct kernel_op op = {.name = "conv2d"};
    const struct kernel_call call = {.op = &op, .error = error};
    const int64_t w[] = {o, x[1] / attr[6], kernel[0], kernel[1]};
    if (convolution_make(&call, dtype, x, w, attr, &a->all) != 0)
        return false;
    a->size[CONVOLUTION_X] = x[0] * x[1] * x[2] * x[3];
    a->size[CONVOLUTION_W] = o * w[1] * kernel[0] * kernel[1];
    a->size[CONVOLUTION_Y] = x[0] * o * a->all.result[0] * a->all.result[1];
    for (int k = 0; k < 3; k++) {
        a->at[k] = malloc((size_t)a->size[k] * sizeof(double));
        for (int64_t i = 0; i < a->size[k]; i++)
            a->at[k][i] = (double)drawn(-3, 3);
    }
    return true;
}

static void arrays_free(struct convolution_arrays *a)
{
    for (int k = 0; k < 3; k++)
        free(a->at[k]);
}

/* The result's numbers by the definition, onto `sum`. */
static void add_plainly(const struct convolution_arrays *a, enum convolution_array result,
                        double *sum)
{
    const struct convolution *g = &a->all;
    const int64_t cg = g->c / g->groups, og = g->o / g->groups, *k = g->kernel, *y = g->result;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t o = 0; o < g->o; o++)
            for (int64_t p = 0; p < y[0] * y[1]; p++)
                for (int64_t c = 0; c < cg; c++)
                    for (int64_t e = 0; e < k[0] * k[1]; e++) {
                        const int64_t r =
                            p / y[1] * g->stride[0] + e / k[1] * g->dilation[0] - g->padding[0];
                        const int64_t s =
                            p % y[1] * g->stride[1] + e % k[1] * g->dilation[1] - g->padding[1];
                        if (r < 0 || r >= g->image[0] || s < 0 || s >= g->image[1])
                            continue;
                        const int64_t at[3] = {
                            ((n * g->c + o / og * cg + c) * g->image[0] + r) * g->image[1] + s,
                            (o * cg + c) * k[0] * k[1] + e, (n * g->o + o) * y[0] * y[1] + p};
                        const int one = result == CONVOLUTION_X ? 1 : 0;
                        const int other = result == CONVOLUTION_Y ? 1 : 2;
                        sum[at[result]] += a->at[one][at[one]] * a->at[other][at[other]];
                    }
}

/* n numbers in the dtype, or back. */
static void *narrowed(int dtype, const double *x, int64_t n)
{
    void *const to = malloc((size_t)n * kernel_dtype_bytes(dtype) + 1);
    for (int64_t i = 0; i < n; i++)
        if (dtype == KERNEL_F32)
            ((float *)to)[i] = (float)x[i];
        else
            ((double *)to)[i] = x[i];
    return to;
}

static double number(int dtype, const void *x, int64_t i)
{
    return dtype == KERNEL_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* One product by tiles; NULL: not computed so. The caller frees it. */
static void *by_tiles(const struct convolution_arrays *a, enum convolution_array result,
                      bool accumulate)
{
    const int dtype = a->all.dtype;
    const int first = result == CONVOLUTION_X ? CONVOLUTION_Y : CONVOLUTION_X;
    const int second = result == CONVOLUTION_W ? CONVOLUTION_Y : CONVOLUTION_W;
    const size_t space = convolution_direct_space(&a->all, result);
    void *const x = narrowed(dtype, a->at[first], a->size[first]);
    void *const y = narrowed(dtype, a->at[second], a->size[second]);
    void *out = narrowed(dtype, a->at[result], a->size[result]);
    void *const workspace = space != 0 ? aligned_alloc(64, space) : NULL;
    if (workspace != NULL)
        memset(workspace, 0xff, space); /* NaN */
    if (!convolution_direct(&a->all, result, x, y, out, accumulate, workspace)) {
        free(out);
        out = NULL;
    }
    free(workspace);
    free(x);
    free(y);
    return out;
}

/* Whether it was computed by tiles. */
static bool check_product(const struct convolution_arrays *a, enum convolution_array result,
                          bool accumulate)
{
    void *const out = by_tiles(a, result, accumulate);
    if (out == NULL)
        return false;
    double *const want = calloc((size_t)a->size[result] + 1, sizeof *want);
    if (accumulate)
        memcpy(want, a->at[result], (size_t)a->size[result] * sizeof *want);
    add_plainly(a, result, want);
    for (int64_t i = 0; i < a->size[result]; i++)
        ck_assert_msg(number(a->all.dtype, out, i) == want[i], "array %d, element %d: %g, not %g",
                      (int)result, (int)i, number(a->all.dtype, out, i), want[i]);
    free(want);
    free(out);
    return true;
}

static bool has_tiles(void)
{
    return kernel_isa_get()->convolution->frame[0] != NULL;
}

TEST(products_of_drawn_shapes_are_exact)
{
    int done[3] = {0};
    for (state = 11; done[0] < SHAPES;) {
        struct convolution_arrays a;
        const int64_t groups = drawn(0, 3) == 0 ? drawn(2, 3) : 1;
        const bool strides = drawn(0, 3) == 0;
        const int64_t x[] = {drawn(1, 2), groups * drawn(1, 5), drawn(1, 8), drawn(1, 40)};
        const int64_t kernel[] = {drawn(1, 4), drawn(1, 4)};
        const int64_t attr[] = {strides ? drawn(1, 3) : 1,
                                strides ? drawn(1, 3) : 1,
                                drawn(0, 5),
                                drawn(0, 5),
                                drawn(1, 3),
                                drawn(1, 3),
                                groups};
        if (!arrays_make(&a, drawn(0, 1) ? KERNEL_F64 : KERNEL_F32, x,
                         groups > 1 ? groups * drawn(1, 5) : drawn(1, 40), kernel, attr))
            continue;
        for (int result = 0; result < 3; result++)
            done[result] += check_product(&a, (enum convolution_array)result, drawn(0, 1) != 0);
        done[0] += !has_tiles();
        arrays_free(&a);
    }
    ck_assert(!has_tiles() || (done[1] > SHAPES / 2 && done[2] > SHAPES / 2));
}

/* Several strips, more input channels than are summed at a time, and the last strip of one row. */
TEST(products_of_large_images_are_exact)
{
    for (int run = 0; run < 2; run++) {
        struct convolution_arrays a;
        const int64_t x[] = {1, 40, 49, 60}, kernel[] = {3, 3};
        const int64_t attr[] = {1, 1, 1, 1, 1 + run, 1, 1};
        ck_assert(arrays_make(&a, run ? KERNEL_F64 : KERNEL_F32, x, 7, kernel, attr));
        for (int result = 0; result < 3; result++)
            ck_assert(check_product(&a, (enum convolution_array)result, false) == has_tiles());
        arrays_free(&a);
    }
}

static int shared; /* loops that threads had a part in */

static void *count_shared(void)
{
    shared++;
    return NULL;
}

/* One image of several strips; a batch of images each of which is too small to be shared, with
 * groups; several strips of several images in a round. */
static const struct threads_case {
    int64_t x[4], o, attr[7];
} threads_cases[] = {{{1, 32, 60, 70}, 40, {1, 1, 1, 1, 1, 1, 1}},
                     {{40, 6, 8, 9}, 10, {1, 1, 1, 0, 1, 1, 2}},
                     {{5, 8, 61, 45}, 9, {1, 1, 2, 1, 1, 1, 1}}};

TEST_EACH(results_do_not_depend_on_the_number_of_threads,
          sizeof threads_cases / sizeof *threads_cases)
{
    static const struct threads_watch watch = {.caller = count_shared};
    const struct threads_case *const c = &threads_cases[_i];
    const int64_t kernel[] = {3, 3};
    char error[KERNEL_ERROR_BYTES];
    const int before = kernel_threads();
    struct convolution_arrays a;
    ck_assert(arrays_make(&a, KERNEL_F32, c->x, c->o, kernel, c->attr));
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < a.size[k]; i++)
            a.at[k][i] += 0.1 * (double)(i % 7); /* sums are rounded */
    for (int result = 0; result < 3 && has_tiles(); result++) {
        const size_t bytes = (size_t)a.size[result] * sizeof(float);
        ck_assert_int_eq(kernel_set_threads(1, error, sizeof error), 0);
        void *const alone = by_tiles(&a, (enum convolution_array)result, false);
        for (int n = 2; n <= 3; n++) {
            ck_assert_int_eq(kernel_set_threads(n, error, sizeof error), 0);
            shared = 0;
            threads_watch(&watch);
            void *const together = by_tiles(&a, (enum convolution_array)result, false);
            threads_watch(NULL);
            ck_assert_int_gt(shared, 0);
            ck_assert(memcmp(alone, together, bytes) == 0);
            free(together);
        }
        free(alone);
    }
    ck_assert_int_eq(kernel_set_threads(before, error, sizeof error), 0);
    arrays_free(&a);
}

/* Beyond the edges of y there are zeros, which would become NaN. */
TEST(weights_that_are_not_finite_are_left_to_windows)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    struct convolution_arrays a;
    const int64_t x[] = {1, 4, 9, 16}, kernel[] = {3, 3}, attr[] = {1, 1, 1, 1, 1, 1, 1};
    ck_assert(arrays_make(&a, KERNEL_F64, x, 5, kernel, attr));
    for (int k = 0; k < 3; k++) {
        a.at[CONVOLUTION_W][a.size[CONVOLUTION_W] - 1] = bad[k];
        ck_assert_ptr_null(by_tiles(&a, CONVOLUTION_X, false));
    }
    arrays_free(&a);
}

TEST(workspace_is_the_same_on_every_processor)
{
    struct convolution_arrays a;
    const int64_t x[] = {2, 8, 30, 30}, kernel[] = {3, 3}, attr[] = {1, 1, 1, 1, 1, 1, 1};
    ck_assert(arrays_make(&a, KERNEL_F32, x, 17, kernel, attr));
    for (int result = 0; result < 3; result++) {
        const size_t best = convolution_direct_space(&a.all, (enum convolution_array)result);
        ck_assert(kernel_isa_use("portable"));
        ck_assert_uint_eq(convolution_direct_space(&a.all, (enum convolution_array)result), best);
        ck_assert_ptr_null(by_tiles(&a, (enum convolution_array)result, false));
        kernel_isa_use(NULL);
    }
    arrays_free(&a);
}

RUN_TESTS(NULL, NULL)
