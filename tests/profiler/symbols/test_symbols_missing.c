/* test_symbols_missing.c: addresses in modules whose file is not there, or that have none, and what
 * is said of them.
 */
#include "run_cases.h"
#include "symbols.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

static struct symbols *symbols;
static char warning[2 * PATH_ROOM];
static int warnings;

static void keep_warning(void *payload, const char *message)
{
    (void)payload;
    snprintf(warning, sizeof warning, "%s", message);
    warnings++;
}

/* One of 4 KiB at 0x1000. */
static void open_module(const char *path)
{
    struct symbols_module module = {.path = path, .start = 0x1000, .end = 0x2000, .bias = 0x1000};
    warnings = 0;
    symbols = symbols_open(&module, 1, keep_warning, NULL);
    ck_assert_ptr_nonnull(symbols);
}

TEST(a_missing_module_is_warned_of_once_and_a_stray_address_has_no_module)
{
    static const char path[] = "/nowhere/gone";
    struct symbols_place place;
    open_module(path);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(symbols_resolve(symbols, 0x1801, 7, &place), 1);
    ck_assert_int_eq(warnings, 1);
    ck_assert_ptr_eq(strstr(warning, "/nowhere/gone: no symbols: "), warning);
    ck_assert_uint_eq(place.offset, 0x801);
    ck_assert_uint_eq(place.line, 7);
    ck_assert_int_eq(symbols_resolve(symbols, 0, 0, &place), 1);
    ck_assert_int_eq(symbols_resolve(symbols, 0x2001, 0, &place), 1);
    ck_assert_ptr_null(place.module);
    ck_assert_int_eq(symbols_resolve(symbols, 0x2000, 0, &place), 1);
    ck_assert_str_eq(place.module, path);
    symbols_close(symbols);
}

/* A path of its length less one, of components or of one alone, that ends in "the end". */
static void fill_path(char path[PATH_ROOM], bool has_slashes)
{
    for (size_t i = 0; i < PATH_ROOM - 1; i++)
        path[i] = i == 0 || (has_slashes && i % 7 == 0) ? '/' : 'a';
    memcpy(path + PATH_ROOM - sizeof "the end", "the end", sizeof "the end");
}

TEST(a_long_path_is_shortened_and_the_reason_is_not)
{
    static const char *const start[] = {"...aaa", ".../aaaaaa/"};
    static const char end[] = "the end: no symbols: ";
    for (int has_slashes = 0; has_slashes < 2; has_slashes++) {
        char path[PATH_ROOM];
        struct symbols_place place;
        fill_path(path, has_slashes);
        open_module(path);
        ck_assert_int_eq(symbols_resolve(symbols, 0x1801, 0, &place), 1);
        ck_assert_str_eq(place.module, path);
        ck_assert_int_eq(strncmp(warning, start[has_slashes], strlen(start[has_slashes])), 0);
        const char *at = strstr(warning, end);
        ck_assert_msg(at != NULL && at[sizeof end - 1] != '\0', "%s", warning);
        symbols_close(symbols);
    }
}

TEST(code_that_is_in_no_file_has_its_name_and_no_warning)
{
    struct symbols_place place;
    open_module("[vdso]");
    ck_assert_int_eq(symbols_resolve(symbols, 0x1801, 0, &place), 1);
    ck_assert_str_eq(place.module, "[vdso]");
    ck_assert_ptr_null(place.function);
    ck_assert_ptr_null(place.file);
    ck_assert_uint_eq(place.offset, 0);
    ck_assert_int_eq(warnings, 0);
    symbols_close(symbols);
}

RUN_TESTS(NULL, NULL)
