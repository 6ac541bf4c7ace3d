/* test_merge.c: profiles whose modules lie at other addresses, or in each other's place, added up.
 *
 * May include: profiler/file, format, Check.
 */
#include "merge.h"
#include "profile_maker.h"
#include "run_cases.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void setup(void)
{
    strcpy(path, "/tmp/tapescope-merge-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

static void put_module(struct maker_bytes *bytes, const char *name, uint64_t start, uint64_t bias)
{
    Tapescope__Module module = TAPESCOPE__MODULE__INIT, *list[] = {&module};
    Tapescope__Modules modules = TAPESCOPE__MODULES__INIT;
    Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
    module.path = (char *)(uintptr_t)name;
    module.start = start;
    module.end = start + 0x1000;
    module.bias = bias;
    modules.module = list;
    modules.n_module = 1;
    packet.kind_case = TAPESCOPE__PACKET__KIND_MODULES;
    packet.modules = &modules;
    maker_put_packet(bytes, &packet);
}

static struct prof_profile *read_made(struct maker_bytes *bytes)
{
    char error[1024] = "";
    maker_put_end(bytes);
    FILE *stream = fmemopen(bytes->data, bytes->n, "r");
    struct prof_profile *profile = prof_profile_read_stream(stream, "x", error, sizeof error);
    fclose(stream);
    free(bytes->data);
    ck_assert_msg(profile != NULL, "%s", error);
    return profile;
}

/* A profile with the library at `base`, a row of it and a row of the tape's own; ticks are a third
 * of a nanosecond off, so that rounding has something to lose. */
static struct prof_profile *make(const char *library, uint64_t base, uint64_t peak)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "tsc", 1);
    put_module(&bytes, library, base, base - 0x1000);
    maker_put_clock(&bytes, 0, 0);
    struct maker_ledger *made = maker_new_ledger(1);
    Tapescope__Row *row = maker_add_row(made, 0, base + 0x101, "matmul");
    row->line = 7;
    row->calls = 1;
    row->forward_ticks = 100;
    row->peak_bytes = peak;
    row->kept_by = 3;
    row = maker_add_row(made, 1, 0, "padding");
    row->value_bytes = 5;
    row = maker_add_row(made, 2, base + 0x201, "tanh");
    row->calls = 2;
    row->forward_ticks = 101;
    made->ledger.peak_bytes = peak;
    made->ledger.forward_ticks = 201;
    maker_put_ledger(&bytes, made);
    maker_put_clock(&bytes, 3000, 1000);
    return read_made(&bytes);
}

static struct prof_profile *merge(const struct prof_profile *a, const struct prof_profile *b)
{
    char error[1024] = "";
    const struct prof_profile *both[] = {a, b};
    static const struct prof_symbol known = {.pc = 0x50102, .line = 7, .source_line = 9};
    const struct prof_symbol *symbol[] = {NULL, &known};
    const size_t n_symbols[] = {0, 1};
    ck_assert_msg(prof_merge(path, both, symbol, n_symbols, 2, error, sizeof error) == 0, "%s",
                  error);
    struct prof_profile *sum = prof_profile_read(path, error, sizeof error);
    ck_assert_msg(sum != NULL, "%s", error);
    ck_assert(sum->complete);
    return sum;
}

static const struct prof_row *find_row(const struct prof_profile *sum, const char *op, uint64_t pc)
{
    for (size_t i = 0; i < sum->tape[0].n_rows; i++)
        if (strcmp(sum->tape[0].row[i].op, op) == 0 && sum->tape[0].row[i].pc == pc)
            return &sum->tape[0].row[i];
    ck_abort_msg("no row %s at %llx", op, (unsigned long long)pc);
    return NULL;
}

START_TEST(rows_of_one_place_are_one_wherever_the_library_was)
{
    struct prof_profile *a = make("/lib/a.so", 0x10000, 40), *b = make("/lib/a.so", 0x50000, 30);
    struct prof_profile *sum = merge(a, b);
    ck_assert_uint_eq(sum->n_tapes, 1);
    ck_assert_uint_eq(sum->tape[0].tapes, 2);
    ck_assert_uint_eq(sum->tape[0].n_rows, 3);
    const struct prof_row *row = find_row(sum, "matmul", 0x10101);
    ck_assert_uint_eq(row->calls, 2);
    ck_assert_str_eq(row->kept_by, "tanh");
    ck_assert_uint_eq(row->peak_bytes, 40);
    ck_assert_uint_eq(sum->tape[0].peak_bytes, 40);
    ck_assert_uint_eq(find_row(sum, "padding", 0)->value_bytes, 10);
    /* 100 and 101 ticks of a third of a ns: 33 and 34, together the 67 of the whole. */
    ck_assert_uint_eq(row->forward_ticks, 2 * 33);
    ck_assert_uint_eq(find_row(sum, "tanh", 0x10201)->forward_ticks, 2 * 34);
    ck_assert_uint_eq(sum->tape[0].forward_ticks, 2 * 67);
    prof_profile_free(sum);
    prof_profile_free(a);
    prof_profile_free(b);
}
END_TEST

START_TEST(libraries_in_each_others_place_stay_apart)
{
    struct prof_profile *a = make("/lib/a.so", 0x50000, 40), *b = make("/lib/b.so", 0x50000, 50);
    struct prof_profile *sum = merge(a, b);
    ck_assert_uint_eq(sum->n_mappings, 2);
    ck_assert_uint_eq(sum->tape[0].n_rows, 5); /* the tape's own are one */
    ck_assert_uint_ge(sum->mapping[1].start, sum->mapping[0].end);
    ck_assert_uint_eq(sum->mapping[1].start - sum->mapping[1].bias, 0x1000);
    uint64_t moved = sum->mapping[1].start + 0x101;
    ck_assert_uint_eq(find_row(sum, "matmul", 0x50101)->peak_bytes, 0);
    ck_assert_uint_eq(find_row(sum, "matmul", moved)->peak_bytes, 50);
    prof_profile_free(sum);
    prof_profile_free(a);
    prof_profile_free(b);
}
END_TEST

START_TEST(symbols_move_with_their_sites)
{
    struct prof_profile *a = make("/lib/a.so", 0x10000, 1), *b = make("/lib/a.so", 0x50000, 1);
    struct prof_profile *sum = merge(a, b);
    ck_assert_ptr_nonnull(prof_profile_symbol(sum, 0x10102, 7));
    ck_assert_uint_eq(prof_profile_symbol(sum, 0x10102, 7)->source_line, 9);
    prof_profile_free(sum);
    prof_profile_free(a);
    prof_profile_free(b);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("merge");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, rows_of_one_place_are_one_wherever_the_library_was);
    tcase_add_test(cases, libraries_in_each_others_place_stay_apart);
    tcase_add_test(cases, symbols_move_with_their_sites);
    return run_cases("merge", cases);
}
