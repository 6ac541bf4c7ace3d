/* test_functional_lines.c: on which lines a profile has what derivatives of functions as a whole
 * cost: the function's ops and pullbacks on its own, gradients on the leaves', the call's own part
 * on the call's.
 */
#include "program_support.h"

#include "run_cases.h"

#include <tapescope/ad.h>

#include <check.h>
#include <stdlib.h>

enum { N = 8, BYTES = N * sizeof(double) };

#define ANY UINT64_MAX /* bytes that are not looked at */

/* What a line costs: calls forward and backward, bytes of values and of adjoints; and whether any
 * of it is still live at the end. */
struct expected {
    const char *label, *op, *function;
    uint64_t calls, backward_calls, value, adjoint;
    bool live;
};

static struct program_profile record(const char *name)
{
    program_build("functional");
    const int status =
        program_record(program_path("functional.prof"), program_path("functional"), name);
    ck_assert_msg(status == 0, "status %#x: %s", (unsigned)status, program_output);
    struct program_profile opened = program_open(program_path("functional.prof"));
    ck_assert(opened.profile->complete);
    ck_assert_ptr_null(opened.profile->warning);
    return opened;
}

static void check(const char *name, const struct expected *table, size_t n, uint64_t sweeps)
{
    struct program_profile opened = record(name);
    char *text = program_text(program_source("functional.c"));
    size_t lines = 0;
    for (const struct expected *e = table; e < table + n; e++) {
        const struct analyze_line *line =
            program_find(opened.analysis, "functional.c", program_line(text, e->label), e->op);
        ck_assert_msg(line != NULL, "%s: no row of %s", e->label, e->op);
        const struct analyze_cost *c = &line->cost;
        ck_assert_str_eq(line->function, e->function);
        ck_assert_msg(c->calls == e->calls && c->backward_calls == e->backward_calls &&
                          (e->value == ANY || c->value_bytes == e->value) &&
                          (e->adjoint == ANY || c->adjoint_bytes == e->adjoint) &&
                          (c->live_bytes > 0) == e->live,
                      "%s: %s: %llu calls, %llu backward, %llu bytes of values, %llu of adjoints, "
                      "%llu live",
                      e->label, e->op, (unsigned long long)c->calls,
                      (unsigned long long)c->backward_calls, (unsigned long long)c->value_bytes,
                      (unsigned long long)c->adjoint_bytes, (unsigned long long)c->live_bytes);
    }
    for (size_t i = 0; i < opened.analysis->n_lines; i++)
        lines += !opened.analysis->line[i].own;
    ck_assert_uint_eq(lines, n);
    ck_assert_uint_eq(opened.analysis->total.sweeps, sweeps);
    program_check_sums(opened.analysis);
    free(text);
    program_close(&opened);
}

#define CHECK(name, table, sweeps) check(name, table, sizeof(table) / sizeof *(table), sweeps)

/* Two leaves of one call. To save leaves nothing on the tape. */
TEST(what_was_loaded_is_on_the_line_of_the_call)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, BYTES, true},
        {"load", "load", "from_a_file", 2, 0, 2 * BYTES, 2 * BYTES, true},
        {"of loaded", "mul", "from_a_file", 1, 1, BYTES, BYTES, true},
        {"sum of loaded", "sum", "from_a_file", 1, 1, 8, 8, true},
        {"sweep of loaded", "backward", "from_a_file", 1, 1, 0, 0, false},
    };
    CHECK("file", table, 1);
}

TEST(a_gradient_is_on_the_functions_lines)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, 2 * BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, 2 * BYTES, true},
        {"mul", "mul", "several", 1, 1, BYTES, BYTES, false},
        {"tanh", "tanh", "several", 1, 1, BYTES, BYTES, false},
        {"sum", "sum", "one", 1, 1, 8, 8, false},
        {"call", "backward", "main", 1, 1, 0, 0, false},
    };
    CHECK("gradient", table, 1);
}

/* Each call has buffers for the gradients. The seed's own array is the adjoint of tanh. */
TEST(a_pullback_is_on_the_lines_of_begin_and_calls)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, 5 * BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, 5 * BYTES, true},
        {"mul", "mul", "several", 1, 3, BYTES, 3 * BYTES, false},
        {"tanh", "tanh", "several", 1, 3, BYTES, 0, false},
        {"begin", "pullback_begin", "main", 1, 0, 3 * sizeof(ad_tensor), 0, false},
        {"pull", "constant", "main", 3, 0, 0, 0, false},
        {"pull", "backward", "main", 3, 3, 0, 0, false},
    };
    CHECK("pullback", table, 3);
}

/* J v: the pullbacks' own ops are recorded on the lines whose derivatives they are, and those that
 * depend on the seed alone are swept: of tanh's (1 - y^2) u only the product, tanh itself not at
 * all. */
TEST(a_derivative_in_a_direction_is_on_the_functions_lines)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, 2 * BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, 2 * BYTES, true},
        {"mul", "mul", "several", 3, 2, 3 * BYTES, ANY, false},
        {"tanh", "tanh", "several", 1, 0, BYTES, 0, false},
        {"tanh", "square", "several", 1, 0, BYTES, 0, false},
        {"tanh", "neg", "several", 1, 0, BYTES, 0, false},
        {"tanh", "offset", "several", 1, 0, BYTES, 0, false},
        {"tanh", "mul", "several", 1, 1, BYTES, ANY, false},
        {"jvp", "leaf", "main", 1, 0, 0, BYTES, false},
        {"jvp", "create_graph", "main", 1, 0, 0, 0, false},
        {"jvp", "constant", "main", 2, 0, 0, 0, false},
        {"jvp", "mul", "main", 2, 2, 2 * BYTES, ANY, false},
        {"jvp", "sum", "main", 2, 2, 16, ANY, false},
        {"jvp", "add", "main", 1, 1, 8, ANY, false},
        {"jvp", "backward", "main", 1, 1, 0, 0, false},
    };
    CHECK("jvp", table, 1);
}

/* H v: all that depends on x is swept, but for the sum, whose gradient is constant. */
TEST(a_product_with_the_hessian_is_on_the_functions_lines)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, 2 * BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, 2 * BYTES, true},
        {"mul", "mul", "several", 3, 3, 3 * BYTES, ANY, false},
        {"tanh", "tanh", "several", 1, 1, BYTES, ANY, false},
        {"tanh", "square", "several", 1, 1, BYTES, ANY, false},
        {"tanh", "neg", "several", 1, 1, BYTES, ANY, false},
        {"tanh", "offset", "several", 1, 1, BYTES, ANY, false},
        {"tanh", "mul", "several", 1, 1, BYTES, ANY, false},
        {"sum", "sum", "one", 1, 0, 8, 0, false},
        {"sum", "reshape", "one", 1, 0, 0, 0, false},
        {"sum", "broadcast_to", "one", 1, 0, 0, 0, false},
        {"hvp", "zeros", "main", 1, 0, 8, 0, false},
        {"hvp", "create_graph", "main", 1, 0, 0, 0, false},
        {"hvp", "constant", "main", 2, 0, 0, 0, false},
        {"hvp", "mul", "main", 2, 2, 2 * BYTES, ANY, false},
        {"hvp", "sum", "main", 2, 2, 16, ANY, false},
        {"hvp", "add", "main", 1, 1, 8, ANY, false},
        {"hvp", "backward", "main", 1, 1, 0, 0, false},
    };
    CHECK("hvp", table, 1);
}

/* H by two sweeps of N seeds each, from the gradients by x and by w. */
TEST_EACH(a_hessian_is_on_the_functions_lines, 2)
{
    const char *const call = _i == 0 ? "hessian" : "diagonal";
    const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, ANY, true},
        {"weights", "leaf", "main", 1, 0, 0, ANY, true},
        {"mul", "mul", "several", 3, 4, 3 * BYTES, ANY, false},
        {"tanh", "tanh", "several", 1, 2, BYTES, ANY, false},
        {"tanh", "square", "several", 1, 2, BYTES, ANY, false},
        {"tanh", "neg", "several", 1, 2, BYTES, ANY, false},
        {"tanh", "offset", "several", 1, 2, BYTES, ANY, false},
        {"tanh", "mul", "several", 1, 2, BYTES, ANY, false},
        {"sum", "sum", "one", 1, 0, 8, 0, false},
        {"sum", "reshape", "one", 1, 0, 0, 0, false},
        {"sum", "broadcast_to", "one", 1, 0, 0, 0, false},
        {call, "zeros", "main", 1, 0, 8, 0, false},
        {call, "create_graph", "main", 1, 0, 0, 0, false},
        {call, "backward", "main", 2, 2, 0, 0, false},
    };
    CHECK(call, table, 2);
}

/* N results of N variables: by rows, whose N seeds are one sweep, with adjoints and a gradient of
 * each, beside the leaf's own and that of the call. */
TEST(a_jacobian_by_rows_is_a_sweep_of_several_seeds)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, (2 + N) * BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, BYTES, true},
        {"sin", "sin", "half", 1, 1, BYTES, N * BYTES, false},
        {"rows", "backward", "main", 1, 1, 0, 0, false},
    };
    CHECK("rows", table, 1);
}

/* The pattern's time is that of its call, which records the function and sweeps nothing. All rows
 * have one colour. */
TEST(a_sparse_jacobian_is_on_the_lines_of_its_calls)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, 3 * BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, BYTES, true},
        {"sin", "sin", "half", 2, 1, 2 * BYTES, BYTES, false},
        {"pattern", "jacobian_pattern", "main", 1, 0, 0, 0, false},
        {"sparse", "backward", "main", 1, 1, 0, 0, false},
    };
    CHECK("sparse", table, 1);
}

TEST(a_members_leaf_is_on_the_line_that_names_it)
{
    static const struct expected table[] = {
        {"leaf", "leaf", "main", 1, 0, 0, BYTES, true},
        {"weights", "leaf", "main", 1, 0, 0, BYTES, true},
        {"member", "leaf", "visit", 1, 0, 0, BYTES, true},
        {"of member", "sin", "visited", 1, 1, BYTES, BYTES, true},
        {"sum of member", "sum", "visited", 1, 1, 8, 8, true},
        {"sweep", "backward", "visited", 1, 1, 0, 0, false},
    };
    CHECK("visit", table, 1);
}

RUN_TESTS(program_setup, program_teardown)
