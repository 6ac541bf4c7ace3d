/* test_locale.c: what is printed and told does not follow the program's locale.
 *
 * The locale is made here, so that no package of locales is needed: one file for LC_NUMERIC in
 * glibc's own format, with a comma as its decimal point.
 */
#include <tapescope/ad.h>

#include "run_cases.h"

#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static locale_t comma;

static void locale_write(const char *folder)
{
    /* Magic number, how many items and where they begin; then decimal point, separator of
     * thousands, grouping, the first two as wide characters, character set. */
    static const uint32_t head[] = {0x20031115 ^ LC_NUMERIC, 6, 32, 34, 35, 36, 40, 44};
    static const char items[] = ",\0\0\0,\0\0\0\0\0\0\0UTF-8";
    char path[600];
    snprintf(path, sizeof path, "%s/comma", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(head, sizeof head, 1, file), 1);
    ck_assert_uint_eq(fwrite(items, sizeof items, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void)
{
    static char folder[] = TEST_BINARY_DIR "/test_locale";
    char text[16];
    mkdir(folder, 0777);
    locale_write(folder);
    setenv("LOCPATH", folder, 1);
    comma = newlocale(LC_NUMERIC_MASK, "comma", (locale_t)0);
    ck_assert_msg(comma != (locale_t)0, "the locale cannot be read");
    uselocale(comma);
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
}

static void teardown(void)
{
    char text[16];
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5"); /* the program's own locale is as it was */
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(comma);
}

TEST(tensors_and_messages_have_points)
{
    const double x[] = {1.5, 2.25, 3};
    char printed[256] = "";
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor v = ad_leaf(tape, AD_F64, 1, (int64_t[]){3}, x);
    FILE *file = fmemopen(printed, sizeof printed, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ad_tensor_print(file, v), AD_OK);
    fclose(file);
    ck_assert_str_eq(printed, "f64 [3]\n[ 1.5 2.25   3.]\n");
    ad_norm(v, 0.5);
    ck_assert_msg(strstr(ad_tape_message(tape), "p is 0.5: ") != NULL, "%s", ad_tape_message(tape));
    ad_tape_clear_error(tape);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

static ad_tensor detached(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    return ad_mul(x[0], ad_detach(x[0]));
}

TEST(checks_of_gradients_have_points)
{
    const double x[] = {1.25};
    ad_gradient_report report;
    ad_tape tape;
    ck_assert_int_eq(ad_tape_create(&tape, NULL), AD_OK);
    const ad_tensor v = ad_leaf(tape, AD_F64, 0, NULL, x);
    ck_assert_int_eq(ad_check_gradient(tape, detached, 1, &v, 1e-6, NULL, &report),
                     AD_ERROR_GRADIENT);
    ad_tape_clear_error((ad_tape){0, 0});
    ck_assert_msg(strstr(report.message, "the sweep gives 1.25") != NULL, "%s", report.message);
    ck_assert_msg(strstr(report.message, "differences give 2.5") != NULL ||
                      strstr(report.message, "differences give 2.4999") != NULL,
                  "%s", report.message);
    ck_assert_int_eq(ad_tape_destroy(tape), AD_OK);
}

RUN_TESTS(setup, teardown)
