/* test_facts.c: every counter of counters.def comes out where people read it: in JSON and in the
 * columns of the page, under its name and with its own value.
 */
#include "html_data.h"
#include "report_json.h"
#include "run_cases.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct read_profile profile;
static struct analyze_line line;
static char *text;
static size_t n_bytes;
static FILE *out;

/* A line each of whose costs is another number. */
static void setup(void)
{
    uint64_t value = 1000;
    profile = (struct read_profile){.ticks_per_ns = 1};
    line = (struct analyze_line){.line = 7};
#define X(name) line.cost.name = value++;
    ANALYZE_COST_MEMBERS(X)
#undef X
    line.cost.waiting_ns = line.cost.waiting_io_ns + line.cost.waiting_lock_ns + 5;
    line.cost.byte_ns = 2.5;
    out = open_memstream(&text, &n_bytes);
    ck_assert_ptr_nonnull(out);
}

static void teardown(void)
{
    fclose(out);
    free(text);
}

/* Fails unless the text has the member with this value. */
static void check_member(const char *name, const char *before, uint64_t value, const char *after)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "\"%s\": %s%llu%s", name, before, (unsigned long long)value,
             after);
    fflush(out);
    ck_assert_msg(strstr(text, wanted) != NULL, "no %s in %s", wanted, text);
}

TEST(json_has_every_cost)
{
    struct base_json json;
    base_json_begin(&json, out);
    report_json_cost(&json, &line.cost, &profile);
    base_json_finish(&json);
    const struct analyze_cost *cost = &line.cost;
    check_member("calls", "", cost->calls, "");
    check_member("recompute_ns", "", cost->recompute_ns, "");
    check_member("recompute_flops", "", cost->recompute_flops, "");
    check_member("recompute_moved_bytes", "", cost->recompute_moved, "");
    check_member("tape_bytes", "", analyze_cost_tape_bytes(cost), "");
    check_member("peak_bytes", "", cost->peak_bytes, "");
    check_member("waiting_io_ns", "", cost->waiting_io_ns, "");
    check_member("waiting_lock_ns", "", cost->waiting_lock_ns, "");
    check_member("waiting_other_ns", "", 5, "");
#define ROW(X, name, field, unit, phase, out, ...)                                                 \
    check_member(#out, "", cost->ANALYZE_COST_SHOWN(unit, name, out), "");
    COUNTERS(ROW, COUNTER_NONE, )
#undef ROW
    ck_assert_ptr_null(strstr(text, "cpu_samples"));
}

TEST(the_page_has_every_cost)
{
    struct html_data data = {0};
    base_json_begin(&data.json, out);
    html_put_facts(&data);
    base_json_object(&data.json, "lines");
    html_put_costs(&data, "", (struct html_lines){&line, sizeof line, 1});
    base_json_end(&data.json);
    base_json_finish(&data.json);
    const struct analyze_cost *cost = &line.cost;
    check_member("recompute_ns", "[", cost->recompute_ns, "]");
    check_member("recompute_flops", "[", cost->recompute_flops, "]");
    check_member("recompute_moved_bytes", "[", cost->recompute_moved, "]");
    check_member("waiting_ns", "[", cost->waiting_ns, "]");
    check_member("waiting_io_ns", "[", cost->waiting_io_ns, "]");
    check_member("waiting_lock_ns", "[", cost->waiting_lock_ns, "]");
    check_member("samples", "[", cost->samples, "]");
#define ROW(X, name, field, unit, phase, out, ...)                                                 \
    check_member(#out, "[", cost->ANALYZE_COST_SHOWN(unit, name, out), "]");
    COUNTERS(ROW, COUNTER_NONE, )
#undef ROW
    /* The page's modules know them from the document. */
    ck_assert_ptr_nonnull(strstr(text, "\"name\": \"recompute_flops\""));
    ck_assert_ptr_nonnull(strstr(text, "\"name\": \"waiting_lock_ns\""));
    ck_assert_ptr_nonnull(strstr(text, "{\"name\": \"recompute\", \"class\": \"rec\"}"));
    ck_assert_ptr_null(strstr(text, "cpu_samples"));
}

RUN_TESTS(setup, teardown)
