/* test_base.c: the tools that every room may use. */
#include "base_array.h"
#include "base_buffer.h"
#include "base_memory.h"
#include "base_strings.h"
#include "base_table.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

TEST(a_table_gives_each_place_of_a_key_in_the_order_in_which_it_was_added)
{
    struct base_table table = {0};
    size_t walk;
    ck_assert_int_eq(base_table_find(&table, 7), -1);
    for (size_t i = 0; i < 10000; i++)
        ck_assert(base_table_add(&table, i % 2500 * UINT64_C(0x100000000), i));
    ck_assert_uint_eq(table.n, 10000);
    for (size_t key = 0; key < 2500; key++) {
        size_t n = 0;
        for (int64_t at = base_table_first(&table, key << 32, &walk); at >= 0;
             at = base_table_next(&table, key << 32, &walk))
            ck_assert_int_eq(at, (int64_t)(key + 2500 * n++));
        ck_assert_uint_eq(n, 4);
    }
    ck_assert_int_eq(base_table_find(&table, 1), -1);
    ck_assert(!base_table_add(&table, 1, UINT32_MAX));
    base_table_clear(&table);
    ck_assert_int_eq(base_table_find(&table, 0), -1);
    base_table_free(&table);
}

TEST(a_text_has_one_number)
{
    struct base_strings strings = {0};
    char text[32];
    ck_assert_int_eq(base_strings_find(&strings, ""), -1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3000; i++) {
            snprintf(text, sizeof text, "%d", i);
            ck_assert_int_eq(base_strings_add(&strings, text), i);
            ck_assert_int_eq(base_strings_find(&strings, text), i);
            ck_assert_str_eq(strings.text[i], text);
        }
    }
    ck_assert_uint_eq(strings.n, 3000);
    ck_assert_int_eq(base_strings_find(&strings, "3000"), -1);
    base_strings_free(&strings);
}

TEST(arrays_and_buffers_keep_what_is_in_them)
{
    int *array = NULL;
    size_t room = 0;
    struct base_buffer buffer = {0};
    for (int i = 0; i < 5000; i++) {
        BASE_ARRAY_GROW(array, (size_t)i, &room);
        array[i] = i;
        ck_assert(base_buffer_add(&buffer, &i, sizeof i));
    }
    ck_assert_ptr_nonnull(base_buffer_reserve(&buffer, 0));
    ck_assert_uint_eq(buffer.n, 5000 * sizeof(int));
    ck_assert_mem_eq(buffer.data, array, buffer.n);
    free(array);
    base_buffer_free(&buffer);
}

static int n_ended;

static void count_end(void)
{
    n_ended++;
}

TEST(what_cannot_be_had_is_said_and_changes_nothing)
{
    int one = 1, *array = &one;
    size_t room = SIZE_MAX / 2;
    struct base_buffer buffer = {0};
    ck_assert_ptr_null(base_reallocarray(NULL, SIZE_MAX, 2));
    ck_assert_int_eq(n_ended, 0);
    base_memory_ended = count_end;
    ck_assert_ptr_null(base_reallocarray(NULL, SIZE_MAX, 2));
    ck_assert_int_eq(n_ended, 1);
    ck_assert_ptr_null(base_array_grow(array, room, &room, sizeof one));
    ck_assert_int_eq(n_ended, 2);
    ck_assert_uint_eq(room, SIZE_MAX / 2);
    ck_assert_ptr_null(base_buffer_reserve(&buffer, SIZE_MAX / 2 + 1));
    ck_assert_int_eq(n_ended, 3);
    ck_assert_ptr_null(buffer.data);
    void *nothing = base_malloc(0);
    ck_assert_ptr_nonnull(nothing);
    free(nothing);
}

RUN_TESTS(NULL, NULL)
