/* test_copies.c: the ways in which the driver copies or sums two axes at once.
 *
 * The elements are small whole numbers, so that sums are exact whatever their order; every length
 * of a row and of a column up to three vectors is there, and whatever lies beside the result must
 * stay as it was.
 */
#include "elementwise.h"
#include "op_rules.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { LARGEST = 50, PADDED = LARGEST + 3, ELEMENTS = (3 * 70 + 1) * PADDED };

static const char *const isas[] = {"portable", "avx2", "avx512"};

static double source[ELEMENTS], target[ELEMENTS];

static void set(int dtype, double *data, int64_t i, double value)
{
    if (dtype == KERNEL_F32)
        ((float *)(void *)data)[i] = (float)value;
    else
        data[i] = value;
}

static double get(int dtype, const double *data, int64_t i)
{
    return dtype == KERNEL_F32 ? (double)((const float *)(const void *)data)[i] : data[i];
}

static double whole_number(int64_t i)
{
    return (double)((i * 2654435761u >> 7) % 9) - 4;
}

/* The first n elements of both. */
static void fill(int dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        set(dtype, source, i, whole_number(i));
        set(dtype, target, i, 77);
    }
}

/* A view of `data` with these extents and strides. */
static struct kernel_array view(int dtype, double *data, const int64_t *shape,
                                const int64_t *strides)
{
    return (struct kernel_array){.data = data,
                                 .shape = shape,
                                 .strides = strides,
                                 .size = shape[0] * shape[1],
                                 .dtype = (uint8_t)dtype,
                                 .rank = 2,
                                 .contiguous = strides[1] == 1 && strides[0] == shape[1]};
}

/* Copies an operand [rows, columns] of these strides, and looks at every element. */
static void check_copy(int dtype, int64_t rows, int64_t columns, int64_t row, int64_t column,
                       int64_t leading)
{
    const int64_t shape[] = {rows, columns}, from[] = {row, column}, to[] = {leading, 1};
    const struct kernel_array in = view(dtype, source, shape, from);
    struct kernel_array out = view(dtype, target, shape, to);
    const kernel_ref operand = &in;
    fill(dtype, (rows + 3) * (columns + 3));
    kernel_elementwise(LOOP_copy, &out, 1, &operand, NULL, false);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < leading; j++) {
            const double right = j < columns ? whole_number(i * row + j * column) : 77;
            ck_assert_msg(get(dtype, target, i * leading + j) == right, "%d x %d at %d, %d",
                          (int)rows, (int)columns, (int)i, (int)j);
        }
    ck_assert_msg(get(dtype, target, rows * leading) == 77, "changed behind the end");
}

TEST_EACH(transposed_matrices_and_repeated_rows_are_copied_exactly, 6)
{
    if (!kernel_isa_use(isas[_i / 2]))
        return;
    const int dtype = _i & 1 ? KERNEL_F64 : KERNEL_F32;
    for (int64_t rows = 1; rows <= LARGEST; rows += rows < 20 ? 1 : 7)
        for (int64_t columns = 1; columns <= LARGEST; columns += columns < 20 ? 1 : 6) {
            check_copy(dtype, rows, columns, 1, rows, columns);         /* transposed */
            check_copy(dtype, rows, columns, 1, rows + 2, columns + 3); /* with margins */
            check_copy(dtype, rows, columns, 0, 1, columns);            /* repeated */
            check_copy(dtype, rows, columns, 0, 1, columns + 1);
        }
    kernel_isa_use(NULL);
}

TEST(nan_keeps_its_bits_when_it_is_moved)
{
    static const uint64_t bits[] = {0x7ff8000000000123u, 0xfff8000000abcdefu, 0x7ff0000000000001u,
                                    0x8000000000000000u};
    const int64_t shape[] = {2, 2}, from[] = {1, 2}, to[] = {2, 1};
    uint64_t moved[4];
    memcpy(source, bits, sizeof bits);
    const struct kernel_array in = view(KERNEL_F64, source, shape, from);
    struct kernel_array out = view(KERNEL_F64, target, shape, to);
    const kernel_ref operand = &in;
    kernel_elementwise(LOOP_copy, &out, 1, &operand, NULL, false);
    memcpy(moved, target, sizeof moved);
    ck_assert(moved[0] == bits[0] && moved[1] == bits[2]);
    ck_assert(moved[2] == bits[1] && moved[3] == bits[3]);
}

TEST_EACH(rows_are_summed_exactly_whatever_their_length, 6)
{
    if (!kernel_isa_use(isas[_i / 2]))
        return;
    const int dtype = _i & 1 ? KERNEL_F64 : KERNEL_F32;
    static const int64_t heights[] = {9, 63, 64, 65, 128, 201};
    for (size_t h = 0; h < sizeof heights / sizeof *heights; h++)
        for (int64_t columns = 1; columns <= LARGEST; columns++) {
            const int64_t shape[] = {heights[h], columns}, strides[] = {PADDED, 1};
            const struct kernel_array in = view(dtype, source, shape, strides);
            struct kernel_array out = {.data = target,
                                       .shape = &shape[1],
                                       .strides = &strides[1],
                                       .size = columns,
                                       .dtype = (uint8_t)dtype,
                                       .rank = 1,
                                       .contiguous = true};
            const kernel_ref operand = &in;
            fill(dtype, heights[h] * PADDED);
            kernel_elementwise(LOOP_copy, &out, 1, &operand, NULL, true);
            for (int64_t j = 0; j < columns; j++) {
                double right = 77;
                for (int64_t i = 0; i < heights[h]; i++)
                    right += whole_number(i * PADDED + j);
                ck_assert_msg(get(dtype, target, j) == right, "%d x %d at %d", (int)heights[h],
                              (int)columns, (int)j);
            }
            ck_assert_msg(get(dtype, target, columns) == 77, "changed behind the end");
        }
    kernel_isa_use(NULL);
}

TEST(infinities_and_nan_come_through_a_sum_of_rows)
{
    const int64_t shape[] = {12, 3}, strides[] = {3, 1};
    const struct kernel_array in = view(KERNEL_F64, source, shape, strides);
    struct kernel_array out = {
        .data = target, .shape = &shape[1], .strides = &strides[1], .size = 3, .rank = 1};
    const kernel_ref operand = &in;
    out.dtype = KERNEL_F64;
    out.contiguous = true;
    memset(source, 0, sizeof source);
    memset(target, 0, sizeof target);
    source[3 * 4] = (double)INFINITY;
    source[3 * 5 + 1] = (double)NAN;
    source[2] = -0.0;
    kernel_elementwise(LOOP_copy, &out, 1, &operand, NULL, true);
    ck_assert(isinf(target[0]) && isnan(target[1]));
    ck_assert(target[2] == 0 && !signbit(target[2]));
}

RUN_TESTS(NULL, NULL)
