/* test_json.c: what the writer writes, to the letter. */
#include "base_json.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t n;
static struct base_json json;

static void begin(void)
{
    base_json_begin(&json, open_memstream(&text, &n));
}

static void expect(const char *expected)
{
    base_json_finish(&json);
    fclose(json.out);
    ck_assert_str_eq(text, expected);
    free(text);
}

TEST(members_stand_on_lines_of_their_own_down_to_two_deep)
{
    begin();
    expect("{}\n");
    begin();
    base_json_text(&json, "a", "b");
    base_json_array(&json, "rows");
    base_json_object(&json, NULL);
    base_json_u64(&json, "x", 1);
    base_json_array(&json, "y");
    base_json_u64(&json, NULL, 2);
    base_json_u64(&json, NULL, 3);
    base_json_end(&json);
    base_json_end(&json);
    base_json_object(&json, NULL);
    base_json_end(&json);
    base_json_end(&json);
    base_json_bool(&json, "z", true);
    expect("{\n"
           "  \"a\": \"b\",\n"
           "  \"rows\": [\n"
           "    {\"x\": 1, \"y\": [2, 3]},\n"
           "    {}\n"
           "  ],\n"
           "  \"z\": true\n"
           "}\n");
}

TEST(numbers_are_exact_and_what_is_none_is_null)
{
    begin();
    base_json_u64(&json, "a", UINT64_MAX);
    base_json_i64(&json, "b", INT64_MIN);
    base_json_double(&json, "c", 0.1);
    base_json_double(&json, "d", NAN);
    base_json_double(&json, "e", INFINITY);
    base_json_text(&json, "f", NULL);
    base_json_bool(&json, "g", false);
    expect("{\n"
           "  \"a\": 18446744073709551615,\n"
           "  \"b\": -9223372036854775808,\n"
           "  \"c\": 0.10000000000000001,\n"
           "  \"d\": null,\n"
           "  \"e\": null,\n"
           "  \"f\": null,\n"
           "  \"g\": false\n"
           "}\n");
}

TEST(any_bytes_are_text)
{
    static const struct {
        const char *bytes, *written;
    } cases[] = {
        {"\"\\/", "\\\"\\\\/"},
        {"\n\t\x01\x7f", "\\u000a\\u0009\\u0001\\u007f"},
        {"\xc2\x80\xc2\x9b\xc2\x9f\u00a0", "\\u0080\\u009b\\u009f\u00a0"},
        {"\u061c\u200e\u200f", "\\u061c\\u200e\\u200f"},
        // NOLINTBEGIN(misc-misleading-bidirectional): that is what is tested
        {"a\u202e\u2066b\u2069", "a\\u202e\\u2066b\\u2069"},
        {"\u2027\u2028\u2029\u202a", "\u2027\\u2028\\u2029\\u202a"},
        // NOLINTEND(misc-misleading-bidirectional)
        {"\u00e9\u20ac\U0001f600", "\u00e9\u20ac\U0001f600"},
        {"a\xff\xc3", "a\\ufffd\\ufffd"},
        {"\xc0\xaf", "\\ufffd\\ufffd"},                       /* too long a form */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},            /* half of a pair */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* beyond the last */
        {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},
        {"\xe2\x82", "\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        begin();
        base_json_text(&json, "t", cases[i].bytes);
        snprintf(expected, sizeof expected, "{\n  \"t\": \"%s\"\n}\n", cases[i].written);
        expect(expected);
    }
}

TEST(a_name_that_is_shown_has_no_controls)
{
    begin();
    base_json_name(&json, "t", "a\u202eb\n\xc2\x9b\"\u00e9");
    expect("{\n  \"t\": \"a?b??\\\"\u00e9\"\n}\n");
}

TEST(what_is_shown_has_no_controls_and_is_text)
{
    char bytes[] = "a\u202eb\n\xc2\x9b\"\u00e9\xff\U0001f600\xe2\x82";
    ck_assert_ptr_eq(base_json_shown(bytes), bytes);
    ck_assert_str_eq(bytes, "a?b??\"\u00e9?\U0001f600??");
    ck_assert_str_eq(base_json_shown(memset(bytes, 0, 1)), "");
}

TEST(what_is_still_open_is_closed_at_the_end)
{
    begin();
    base_json_array(&json, "a");
    base_json_object(&json, NULL);
    expect("{\n  \"a\": [\n    {}\n  ]\n}\n");
}

RUN_TESTS(NULL, NULL)
