/* test_merge.c: profiles whose modules lie at other addresses, or in each other's place, added up.
 */
#include "analyze.h"
#include "profile_maker.h"
#include "read_merge.h"
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

/* A profile with the library at `base`, a row of it and a row of the tape's own; ticks are a third
 * of a nanosecond off, so that rounding has something to lose. */
static struct read_profile *make(const char *library, uint64_t base, uint64_t peak)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "tsc", 1);
    maker_put_module(&bytes, library, base, base - 0x1000);
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
    return maker_read(&bytes);
}

static struct read_profile *merge(const struct read_profile *a, const struct read_profile *b)
{
    char error[1024] = "";
    const struct read_profile *both[] = {a, b};
    static const struct read_symbol known = {.pc = 0x50102, .line = 7, .source_line = 9};
    const struct read_symbol *symbol[] = {NULL, &known};
    const size_t n_symbols[] = {0, 1};
    ck_assert_msg(read_merge(path, both, symbol, n_symbols, 2, error, sizeof error) == 0, "%s",
                  error);
    struct read_profile *sum = read_profile(path, error, sizeof error);
    ck_assert_msg(sum != NULL, "%s", error);
    ck_assert(sum->complete);
    return sum;
}

static const struct read_row *find_row(const struct read_profile *sum, const char *op, uint64_t pc)
{
    for (size_t i = 0; i < sum->tape[0].n_rows; i++)
        if (strcmp(sum->tape[0].row[i].op, op) == 0 && sum->tape[0].row[i].pc == pc)
            return &sum->tape[0].row[i];
    ck_abort_msg("no row %s at %llx", op, (unsigned long long)pc);
    return NULL;
}

TEST(rows_of_one_place_are_one_wherever_the_library_was)
{
    struct read_profile *a = make("/lib/a.so", 0x10000, 40), *b = make("/lib/a.so", 0x50000, 30);
    struct read_profile *sum = merge(a, b);
    ck_assert_uint_eq(sum->n_tapes, 1);
    ck_assert_uint_eq(sum->tape[0].tapes, 2);
    ck_assert_uint_eq(sum->tape[0].n_rows, 3);
    const struct read_row *row = find_row(sum, "matmul", 0x10101);
    ck_assert_uint_eq(row->calls, 2);
    ck_assert_str_eq(row->kept_by, "tanh");
    ck_assert_uint_eq(row->peak_bytes, 40);
    ck_assert_uint_eq(sum->tape[0].peak_bytes, 40);
    ck_assert_uint_eq(find_row(sum, "padding", 0)->value_bytes, 10);
    /* 100 and 101 ticks of a third of a ns: 33 and 34, together the 67 of the whole. */
    ck_assert_uint_eq(row->forward_ticks, 2 * 33);
    ck_assert_uint_eq(find_row(sum, "tanh", 0x10201)->forward_ticks, 2 * 34);
    ck_assert_uint_eq(sum->tape[0].forward_ticks, 2 * 67);
    read_profile_free(sum);
    read_profile_free(a);
    read_profile_free(b);
}

TEST(libraries_in_each_others_place_stay_apart)
{
    struct read_profile *a = make("/lib/a.so", 0x50000, 40), *b = make("/lib/b.so", 0x50000, 50);
    struct read_profile *sum = merge(a, b);
    ck_assert_uint_eq(sum->n_mappings, 2);
    ck_assert_uint_eq(sum->tape[0].n_rows, 5); /* the tape's own are one */
    ck_assert_uint_ge(sum->mapping[1].start, sum->mapping[0].end);
    ck_assert_uint_eq(sum->mapping[1].start - sum->mapping[1].bias, 0x1000);
    uint64_t moved = sum->mapping[1].start + 0x101;
    ck_assert_uint_eq(find_row(sum, "matmul", 0x50101)->peak_bytes, 0);
    ck_assert_uint_eq(find_row(sum, "matmul", moved)->peak_bytes, 50);
    read_profile_free(sum);
    read_profile_free(a);
    read_profile_free(b);
}

TEST(symbols_move_with_their_sites)
{
    struct read_profile *a = make("/lib/a.so", 0x10000, 1), *b = make("/lib/a.so", 0x50000, 1);
    struct read_profile *sum = merge(a, b);
    ck_assert_ptr_nonnull(read_profile_symbol(sum, 0x10102, 7, 0));
    ck_assert_uint_eq(read_profile_symbol(sum, 0x10102, 7, 0)->source_line, 9);
    read_profile_free(sum);
    read_profile_free(a);
    read_profile_free(b);
}

/* A scope whose row took 100 ns in 3 calls, of which observing added 10 each. */
static struct read_profile *make_scope(void)
{
    struct maker_bytes bytes = {0};
    Tapescope__Scope scope = TAPESCOPE__SCOPE__INIT, *list[] = {&scope};
    Tapescope__Scopes scopes = TAPESCOPE__SCOPES__INIT;
    maker_put_header(&bytes, "monotonic", 1);
    maker_put_overhead(&bytes, 10, 0);
    scope.id = 7;
    scope.thread = 1;
    scope.name = (char *)"step";
    scope.calls = 1;
    scope.ticks = 500;
    scopes.scope = list;
    scopes.n_scope = 1;
    maker_put_packet(&bytes, TAPESCOPE__PACKET__KIND_SCOPES, &scopes);
    struct maker_ledger *made = maker_new_ledger(1);
    Tapescope__Row *row = maker_add_row(made, 0, 0x101, "matmul");
    row->calls = 3;
    row->forward_ticks = 100;
    row->scope = 7;
    made->ledger.forward_ticks = 100;
    maker_put_ledger(&bytes, made);
    return maker_read(&bytes);
}

TEST(what_observing_added_is_off_scopes_and_rows_once)
{
    struct read_profile *a = make_scope(), *b = make_scope(), *sum = merge(a, b);
    struct read_profile *again = merge(sum, a);
    struct analyze_scope_costs costs;
    ck_assert_uint_eq(sum->overhead_ticks, 60);
    ck_assert_uint_eq(sum->tape[0].forward_ticks, 140);
    analyze_scope_costs_make(&costs, sum, false);
    ck_assert_uint_eq(costs.n, 1);
    ck_assert_uint_eq(costs.scope[0].calls, 2);
    ck_assert_uint_eq(costs.scope[0].wall_ns, 1000);
    ck_assert_uint_eq(costs.scope[0].forward_ns, 940);
    ck_assert_uint_eq(costs.scope[0].cost.forward_ns, 140);
    analyze_scope_costs_free(&costs);
    analyze_scope_costs_make(&costs, again, false);
    ck_assert_uint_eq(again->overhead_ticks, 90);
    ck_assert_uint_eq(costs.scope[0].forward_ns, 1410);
    analyze_scope_costs_free(&costs);
    read_profile_free(again);
    read_profile_free(sum);
    read_profile_free(a);
    read_profile_free(b);
}

RUN_TESTS(setup, teardown)
