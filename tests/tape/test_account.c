/* test_account.c: the whole table of programs whose lines cost known calls, times and bytes.
 *
 * The clock moves STEP ns at each reading. An op reads it at entry and at exit: one step forward. A
 * sweep reads it at its start, after the seed, after each pullback and at its end: one step for
 * each pullback, and two for the sweep itself. Making a leaf reads no clock.
 *
 * Bytes of a line, all numbers being f64:
 *   records: VALUE for each value, with extents and strides (8 bytes each per axis) unless it
 *            shares those of an operand of its shape, and the op's record
 *   values:  what the op computed; leaves and constants borrow theirs
 *   adjoint: the buffer of a leaf's gradient, made with the leaf; in each sweep, that of every
 *            value's adjoint
 * A buffer takes at least 64 bytes, and multiples of 64 here: the rest is the padding's.
 */
#include "program_support.h"

#include "run_cases.h"
#include "tape_types.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    STEP = 1000,
    VALUE = sizeof(struct tape_value),
    AXIS = 16,
    GUARD = sizeof(struct tape_guard) /* of a borrowed array that the op's pullback reads */
};

/* A record: its head, 8 bytes for each attribute, 4 for each operand and output, filled up to 8. */
#define RECORD(n_attr, n_in, n_out)                                                                \
    ((sizeof(struct tape_record) + 8 * (n_attr) + 4 * ((n_in) + (n_out)) + 7) / 8 * 8)
#define UNARY RECORD(0, 1, 1)
#define BINARY RECORD(0, 2, 1)
#define SUM RECORD(1, 1, 1) /* the attribute: no axis is kept */

/* Costs expected of one line; times in steps. */
struct expected {
    const char *label; /* of the line in account.c; NULL: the tape's own */
    const char *op, *function;
    uint64_t calls, forward, backward_calls, backward;
    uint64_t record, value, adjoint;
    uint64_t kept, live, peak;
    const char *kept_by;
};

static void check_number(const struct expected *e, const char *what, uint64_t is, uint64_t expected)
{
    ck_assert_msg(is == expected, "%s: %s is %llu instead of %llu", e->label ? e->label : e->op,
                  what, (unsigned long long)is, (unsigned long long)expected);
}

static void check_line(const struct expected *e, const struct analyze_line *line)
{
    const struct analyze_cost *cost = &line->cost;
    check_number(e, "calls", cost->calls, e->calls);
    check_number(e, "forward ns", cost->forward_ns, e->forward * STEP);
    check_number(e, "backward calls", cost->backward_calls, e->backward_calls);
    check_number(e, "backward ns", cost->backward_ns, e->backward * STEP);
    check_number(e, "bytes of records", cost->record_bytes, e->record);
    check_number(e, "bytes of values", cost->value_bytes, e->value);
    check_number(e, "bytes of adjoints", cost->adjoint_bytes, e->adjoint);
    check_number(e, "kept bytes", cost->kept_bytes, e->kept);
    check_number(e, "live bytes", cost->live_bytes, e->live);
    check_number(e, "bytes at the peak", cost->peak_bytes, e->peak);
    check_number(e, "names of keepers", line->kept_by.n, e->kept_by ? 1 : 0);
    if (e->kept_by)
        ck_assert_str_eq(line->kept_by.name[0], e->kept_by);
    if (e->function)
        ck_assert_str_eq(line->function, e->function);
}

/* Records the part of account.c of that name, and opens its profile. */
static struct program_profile record(const char *name)
{
    program_build("account");
    int status = program_record(program_path("account.prof"), program_path("account"), name);
    ck_assert_msg(status == 0, "status %#x: %s", (unsigned)status, program_output);
    struct program_profile opened = program_open(program_path("account.prof"));
    ck_assert(opened.profile->complete);
    ck_assert_ptr_null(opened.profile->warning);
    return opened;
}

static void check_table(const struct analyze_result *analysis, const struct expected *table,
                        size_t n)
{
    char *text = program_text(program_source("account.c"));
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned number = table[i].label ? program_line(text, table[i].label) : 0;
        const struct analyze_line *line = program_find(analysis, "account.c", number, table[i].op);
        ck_assert_msg(line != NULL, "%s: no row", table[i].label ? table[i].label : table[i].op);
        check_line(&table[i], line);
    }
    for (size_t i = 0; i < analysis->n_lines; i++)
        lines += !analysis->line[i].own || analyze_cost_tape_bytes(&analysis->line[i].cost) > 0;
    ck_assert_uint_eq(lines, n);
    program_check_sums(analysis);
    free(text);
}

#define ROWS(table) (sizeof(table) / sizeof *(table))

/* The peak is in the sweep, when the sum has a sweep's adjoint of 8 bytes and tanh has got its own
 * of 64; the next, add's beside tanh's, is as great and not greater. The adjoint of add is handed
 * over to matmul, whose line is then charged for it as well. */
static const struct expected layer[] = {
    {"constant", "constant", "layer", 1, 0, 0, 0, VALUE + 2 * AXIS, 0, 0, 0, VALUE + 2 * AXIS,
     VALUE + 2 * AXIS, NULL},
    {"weight", "leaf", "layer", 1, 0, 0, 0, VALUE + 2 * AXIS, 0, 96, 0, VALUE + 2 * AXIS + 96,
     VALUE + 2 * AXIS + 96, NULL},
    {"bias", "leaf", "layer", 1, 0, 0, 0, VALUE + AXIS, 0, 32, 0, VALUE + AXIS + 32,
     VALUE + AXIS + 32, NULL},
    {"matmul", "matmul", "layer", 1, 1, 2, 2, VALUE + 2 * AXIS + BINARY + GUARD, 64, 2 * 64, 0,
     VALUE + 2 * AXIS + BINARY + GUARD + 64, VALUE + 2 * AXIS + BINARY + GUARD + 64, NULL},
    {"add", "add", "layer", 1, 1, 2, 2, VALUE + BINARY, 64, 2 * 64, 0, VALUE + BINARY + 64,
     VALUE + BINARY + 64, NULL},
    {"tanh", "tanh", "layer", 1, 1, 2, 2, VALUE + UNARY, 64, 2 * 64, 64, VALUE + UNARY + 64,
     VALUE + UNARY + 64 + 64, "tanh"},
    {"sum", "sum", "layer", 1, 1, 2, 2, VALUE + SUM, 8, 2 * 8, 0, VALUE + SUM + 8,
     VALUE + SUM + 8 + 8, NULL},
    {"backward", "backward", "layer", 2, 0, 2, 2 * 2, 0, 0, 0, 0, 0, 0, NULL},
    /* values: sum's 8 of 64. adjoints: weight's 96 of 128, bias' 32 of 64, sum's twice */
    {NULL, "padding", NULL, 0, 0, 0, 0, 0, 56, 32 + 32 + 2 * 56, 0, 56 + 32 + 32, 56 + 32 + 32 + 56,
     NULL},
};

TEST(a_layer_costs_what_it_must)
{
    struct program_profile opened = record("layer");
    check_table(opened.analysis, layer, ROWS(layer));
    const struct analyze_totals *total = &opened.analysis->total;
    ck_assert_uint_eq(total->forward_ns, 4 * STEP);
    ck_assert_uint_eq(total->backward_ns, 2 * (4 + 2) * STEP);
    ck_assert_uint_eq(total->sweeps, 2);
    ck_assert_uint_eq(total->records, 4);
    ck_assert_uint_eq(total->tapes, 1);
    /* Buffers in use at once: weight's gradient 128; 64 each for bias' gradient, four values,
     * and at the peak the adjoints of sum and tanh. */
    ck_assert_uint_eq(total->touched_bytes, 128 + (1 + 4 + 2) * 64);
    program_close(&opened);
}

TEST(annotate_prints_the_same_numbers_and_their_totals)
{
    struct program_profile opened = record("layer");
    unsigned long long is[4], sum[4] = {0};
    struct program_command command = {0};
    program_add_all(&command, TAPESCOPE_PROGRAM, "annotate", "--exact", "account.c",
                    program_path("account.prof"), NULL);
    program_must(&command);
    for (size_t i = 0; i < ROWS(layer); i++) {
        const struct expected *e = &layer[i];
        unsigned long long expected[4] = {e->calls, e->forward * STEP, e->backward * STEP,
                                          e->record + e->value + e->adjoint};
        char mark[64];
        snprintf(mark, sizeof mark, "// @%s\n", e->label ? e->label : "");
        const char *at = strstr(program_output, e->label ? mark : "elsewhere: the tape's own");
        ck_assert_msg(at != NULL, "no line %s in:\n%s", mark, program_output);
        while (at > program_output && at[-1] != '\n')
            at--;
        /* "-" stands for the forward time of what has none, such as a leaf. */
        is[1] = 0;
        if (sscanf(at, "%*s %llu - %*s %llu %*s %llu", &is[0], &is[2], &is[3]) != 3)
            ck_assert_int_eq(
                sscanf(at, "%*s %llu %llu %*s %llu %*s %llu", &is[0], &is[1], &is[2], &is[3]), 4);
        for (int k = 0; k < 4; k++) {
            ck_assert_msg(is[k] == expected[k], "%s: column %d is %llu instead of %llu",
                          e->label ? e->label : e->op, k + 1, is[k], expected[k]);
            sum[k] += is[k];
        }
    }
    const char *at = strstr(program_output, " total\n");
    ck_assert_ptr_nonnull(at);
    while (at > program_output && at[-1] != '\n')
        at--;
    ck_assert_int_eq(sscanf(at, "%*s %llu %llu %*s %llu %*s %llu", &is[0], &is[1], &is[2], &is[3]),
                     4);
    for (int k = 0; k < 4; k++)
        ck_assert_uint_eq(is[k], sum[k]);
    ck_assert_uint_eq(sum[3], opened.analysis->total.handed_out_bytes);
    program_close(&opened);
}

/* Each step drops what it made; mul keeps the value of neg, which it has as both operands. */
static const struct expected steps[] = {
    {"steps leaf", "leaf", "steps", 1, 0, 0, 0, VALUE + AXIS, 0, 64, 0, VALUE + AXIS + 64,
     VALUE + AXIS + 64, NULL},
    {"steps neg", "neg", "steps", 3, 3, 3, 3, 3 * (VALUE + UNARY), 3 * 64, 3 * 64, 3 * 64, 0,
     VALUE + UNARY + 64, "mul"},
    {"steps mul", "mul", "steps", 3, 3, 3, 3, 3 * (VALUE + BINARY), 3 * 64, 3 * 64, 0, 0,
     VALUE + BINARY + 64 + 64, NULL},
    {"steps sum", "sum", "steps", 3, 3, 3, 3, 3 * (VALUE + SUM), 3 * 8, 3 * 8, 0, 0,
     VALUE + SUM + 8 + 8, NULL},
    {"steps backward", "backward", "steps", 3, 0, 3, 3 * 2, 0, 0, 0, 0, 0, 0, NULL},
    {NULL, "padding", NULL, 0, 0, 0, 0, 0, 3 * 56, 3 * 56, 0, 0, 56 + 56, NULL},
};

TEST(what_a_rewind_drops_was_charged_and_is_live_no_more)
{
    struct program_profile opened = record("steps");
    check_table(opened.analysis, steps, ROWS(steps));
    ck_assert_uint_eq(opened.analysis->total.sweeps, 3);
    ck_assert_uint_eq(opened.analysis->total.records, 9);
    program_close(&opened);
}

/* Tapes of 8, 16 and 8 numbers; the first two are destroyed and merged. The peak is that of the
 * second, the live bytes those of the third. */
static const struct expected tapes[] = {
    {"work leaf", "leaf", "work", 3, 0, 0, 0, 3 * (VALUE + AXIS), 0, 64 + 128 + 64, 0,
     VALUE + AXIS + 64, VALUE + AXIS + 128, NULL},
    {"work tanh", "tanh", "work", 3, 3, 3, 3, 3 * (VALUE + UNARY), 64 + 128 + 64, 64 + 128 + 64,
     64 + 128 + 64, VALUE + UNARY + 64, VALUE + UNARY + 128 + 128, "tanh"},
    {"work sum", "sum", "work", 3, 3, 3, 3, 3 * (VALUE + SUM), 3 * 8, 3 * 8, 0, VALUE + SUM + 8,
     VALUE + SUM + 8 + 8, NULL},
    {"work backward", "backward", "work", 3, 0, 3, 3 * 2, 0, 0, 0, 0, 0, 0, NULL},
    {NULL, "padding", NULL, 0, 0, 0, 0, 0, 3 * 56, 3 * 56, 0, 56, 56 + 56, NULL},
};

TEST(destroyed_tapes_are_merged_and_the_greatest_peak_stays_whole)
{
    struct program_profile opened = record("tapes");
    check_table(opened.analysis, tapes, ROWS(tapes));
    ck_assert_uint_eq(opened.analysis->total.tapes, 3);
    ck_assert_uint_eq(opened.analysis->total.sweeps, 3);
    ck_assert_uint_eq(opened.profile->n_tapes, 2);
    for (size_t i = 0; i < 2; i++)
        if (opened.profile->tape[i].tape == 0)
            ck_assert_uint_eq(opened.profile->tape[i].tapes, 2);
    program_close(&opened);
}

/* Two threads, with 8 and with 16 numbers; both tapes live at the end. */
static const struct expected threads[] = {
    {"work leaf", "leaf", "work", 2, 0, 0, 0, 2 * (VALUE + AXIS), 0, 64 + 128, 0,
     2 * (VALUE + AXIS) + 64 + 128, VALUE + AXIS + 128, NULL},
    {"work tanh", "tanh", "work", 2, 2, 2, 2, 2 * (VALUE + UNARY), 64 + 128, 64 + 128, 64 + 128,
     2 * (VALUE + UNARY) + 64 + 128, VALUE + UNARY + 128 + 128, "tanh"},
    {"work sum", "sum", "work", 2, 2, 2, 2, 2 * (VALUE + SUM), 2 * 8, 2 * 8, 0,
     2 * (VALUE + SUM + 8), VALUE + SUM + 8 + 8, NULL},
    {"work backward", "backward", "work", 2, 0, 2, 2 * 2, 0, 0, 0, 0, 0, 0, NULL},
    {NULL, "padding", NULL, 0, 0, 0, 0, 0, 2 * 56, 2 * 56, 0, 2 * 56, 56 + 56, NULL},
};

TEST(two_threads_with_a_tape_each_are_added_up)
{
    struct program_profile opened = record("threads");
    check_table(opened.analysis, threads, ROWS(threads));
    ck_assert_uint_eq(opened.analysis->total.tapes, 2);
    ck_assert_uint_eq(opened.profile->n_tapes, 2);
    ck_assert_uint_ne(opened.profile->tape[0].thread, opened.profile->tape[1].thread);
    program_close(&opened);
}

RUN_TESTS(program_setup, program_teardown)
