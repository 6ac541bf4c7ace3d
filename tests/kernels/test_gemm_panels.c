/* test_gemm_panels.c: products by panels are exact, and are taken where they were measured. */
#include "elementwise.h"
#include "gemm.h"
#include "gemm_panels.h"
#include "kernel.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 3 }; /* unused elements behind each row */

static double whole_number(int64_t i)
{
    return (double)((i * 2654435761u >> 7) % 9) - 4;
}

static void *array_new(int dtype, int64_t rows, int64_t columns)
{
    const int64_t n = rows * (columns + MARGIN);
    void *data = malloc((size_t)n * sizeof(double));
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < n; i++)
        if (dtype == KERNEL_F32)
            ((float *)data)[i] = (float)whole_number(i);
        else
            ((double *)data)[i] = whole_number(i);
    return data;
}

static double get(int dtype, const void *data, int64_t i)
{
    return dtype == KERNEL_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* c is made anew; a and b are transposed where their flag says so. */
static struct gemm_panels product_new(int dtype, int m, int n, int k, bool a_transposed,
                                      bool b_transposed)
{
    struct gemm_panels p = {.m = m, .n = n, .k = k, .b_transposed = b_transposed};
    p.a = a_transposed ? array_new(dtype, k, m) : array_new(dtype, m, k);
    p.b = b_transposed ? array_new(dtype, n, k) : array_new(dtype, k, n);
    p.c = array_new(dtype, m, n);
    p.a_row = a_transposed ? 1 : k + MARGIN;
    p.a_deep = a_transposed ? m + MARGIN : 1;
    p.b_leading = (b_transposed ? k : n) + MARGIN;
    p.c_leading = n + MARGIN;
    return p;
}

static void product_free(const struct gemm_panels *p)
{
    free((void *)(uintptr_t)p->a);
    free((void *)(uintptr_t)p->b);
    free(p->c);
}

enum { FROM_ZERO, FROM_RESULT, FROM_ROW, FROM_ROWS };

/* Sums of small whole numbers are exact in any order. */
static void check_exact(int dtype, int m, int n, int k, int flags)
{
    struct gemm_panels p = product_new(dtype, m, n, k, flags & 1, flags & 2);
    void *was = array_new(dtype, m, n), *bias = array_new(dtype, m, n + 1);
    const int from = flags >> 2;
    p.start = from == FROM_ZERO ? NULL : from == FROM_RESULT ? p.c : bias;
    p.start_leading = from == FROM_RESULT ? p.c_leading : from == FROM_ROWS ? n + 1 : 0;
    gemm_panels_function *const loops = gemm_panels_for(dtype, &p);
    if (loops != NULL) {
        loops(&p);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n + MARGIN; j++) {
                double right = j >= n || from == FROM_RESULT ? get(dtype, was, i * p.c_leading + j)
                               : from == FROM_ZERO           ? 0
                                                   : get(dtype, bias, i * p.start_leading + j);
                for (int64_t l = 0; l < k && j < n; l++)
                    right +=
                        get(dtype, p.a, i * p.a_row + l * p.a_deep) *
                        get(dtype, p.b, p.b_transposed ? j * p.b_leading + l : l * p.b_leading + j);
                const double is = get(dtype, p.c, i * p.c_leading + j);
                ck_assert_msg(is == right, "%s %d x %d x %d, flags %d: [%d,%d] is %g, not %g",
                              kernel_dtype_name(dtype), m, n, k, flags, (int)i, (int)j, is, right);
            }
    }
    free(was);
    free(bias);
    product_free(&p);
}

TEST_EACH(panels_of_every_rest_are_exact, 32)
{
    static const int depths[] = {1, 2, 5, 16, 255, 256, 257, 515};
    const int dtype = _i & 16 ? KERNEL_F32 : KERNEL_F64;
    for (int m = 1; m <= 9; m++)
        for (int n = 1; n <= 53; n += n < 26 ? 1 : 9)
            check_exact(dtype, m, n, depths[(m + n) % 8], _i & 15);
    check_exact(dtype, 70, 131, 151, _i & 15);
}

TEST(panels_are_taken_where_they_were_measured)
{
    enum { NN, NT, TN };
    static const struct {
        int product, m, n, k;
        bool taken, taken_in_place; /* the latter beside a BLAS that reads operands in place */
    } cases[] = {
        {NN, 64, 128, 128, true, true},   {NN, 64, 3, 128, false, false},
        {NN, 64, 64, 64, true, false},    {NT, 64, 64, 64, true, true},
        {NN, 16, 384, 128, true, false},  {NT, 16, 512, 128, true, false},
        {TN, 1024, 64, 64, true, true},   {TN, 512, 64, 300, false, true},
        {NN, 64, 512, 512, false, true},  {NN, 1024, 1024, 1024, false, false},
        {NN, 2048, 200, 256, true, true},
    };
    const bool portable = strcmp(kernel_isa_name(), "portable") == 0;
    const bool in_place = strcmp(kernel_isa_name(), "avx512") == 0 && gemm_reads_in_place();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gemm_panels p = product_new(KERNEL_F64, cases[i].m, cases[i].n, cases[i].k,
                                           cases[i].product == TN, cases[i].product == NT);
        const bool taken = in_place ? cases[i].taken_in_place : cases[i].taken;
        ck_assert_msg((gemm_panels_for(KERNEL_F64, &p) != NULL) == (taken && !portable), "case %d",
                      (int)i);
        product_free(&p);
    }
}

RUN_TESTS(NULL, NULL)
