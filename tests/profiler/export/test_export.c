/* test_export.c: exports of profiles that are small, damaged, or full of names that mean something
 * to the formats.
 */
#include "base_json.h"
#include "export_formats.h"
#include "export_places.h"
#include "perfetto.pb-c.h"
#include "profile_maker.h"
#include "profile_seeds.h"
#include "program_support.h"
#include "run_cases.h"
#include "sanitizers.h"
#include "xplane.pb-c.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an export gave; the caller's to free(). */
struct made {
    int status;
    char *data;
    size_t n;
    char error[1024];
};

static struct made export_split(const struct analyze_result *analysis, int format,
                                enum export_metric metric, bool split)
{
    struct made made = {.status = -1};
    const struct analyze_tree_options how = {
        .inverted = (export_formats[format].needs & EXPORT_CALLERS) != 0, .parts = true};
    struct analyze_tree *tree = analyze_tree_make(analysis, &how);
    ck_assert_ptr_nonnull(tree);
    const struct export_job job = {
        .analysis = analysis,
        .tree = tree,
        .metric = metric,
        .split = split,
        .out = open_memstream(&made.data, &made.n),
        .error = made.error,
        .error_room = sizeof made.error,
    };
    ck_assert_ptr_nonnull(job.out);
    made.status = export_formats[format].write(&job);
    fclose(job.out);
    analyze_tree_free(tree);
    return made;
}

static struct made export_one(const struct analyze_result *analysis, int format,
                              enum export_metric metric)
{
    return export_split(analysis, format, metric, false);
}

/* Lines of UTF-8 without control characters. */
static void check_text(const struct made *made, const char *format)
{
    for (size_t i = 0; i < made->n;) {
        const unsigned char *at = (const unsigned char *)made->data + i;
        const unsigned length = base_json_character(at);
        const bool end = *at == '\n' || (*at == '\r' && at[1] == '\n');
        ck_assert_msg(length > 0 && (end || *at >= 0x20) && *at != 0x7f, "%s: byte %02x at %zu",
                      format, *at, i);
        i += length;
    }
}

static void check_messages(const struct made *made, int format)
{
    const uint8_t *data = (const uint8_t *)made->data;
    if (format == EXPORT_KIND_perfetto) {
        Perfetto__Trace *trace = perfetto__trace__unpack(NULL, made->n, data);
        ck_assert_ptr_nonnull(trace);
        ck_assert_uint_gt(trace->n_packet, 0);
        perfetto__trace__free_unpacked(trace, NULL);
    } else if (format == EXPORT_KIND_xplane) {
        Xplane__XSpace *space = xplane__xspace__unpack(NULL, made->n, data);
        ck_assert_ptr_nonnull(space);
        ck_assert_uint_eq(space->n_planes, 1);
        xplane__xspace__free_unpacked(space, NULL);
    }
}

/* Every format says what it has, or in a line why not. Returns how many have something. */
static int export_all(const struct read_profile *profile)
{
    int whole = 0;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    for (int i = 0; i < EXPORT_KINDS; i++) {
        const char *name = export_format_names[i];
        const bool splits = (export_formats[i].needs & (EXPORT_SPLIT | EXPORT_ORDER)) != 0;
        struct made made = export_split(analysis, i, EXPORT_TIME, splits);
        ck_assert_msg(made.status == 0 || made.status == 1, "%s: %d", name, made.status);
        if (made.status == 1) {
            ck_assert_msg(strstr(made.error, profile->path) && !strchr(made.error, '\n'), "%s: %s",
                          name, made.error);
        } else if (export_formats[i].needs & EXPORT_BINARY) {
            check_messages(&made, i);
        } else {
            check_text(&made, name);
        }
        whole += made.status == 0;
        free(made.data);
    }
    analyze_free(analysis);
    return whole;
}

static struct read_profile *read_file(const uint8_t *data, size_t n)
{
    char error[1024];
    const char *path = program_path("x.prof");
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
    return read_profile(path, error, sizeof error);
}

TEST(a_name_is_one_line_of_utf8_that_has_a_bound)
{
    static const struct {
        const char *text, *instead, *clean;
    } cases[] = {
        {"f", "", "f"},
        {"a;b c", ";", "a?b c"},
        {"a\nb\tc\x7f\x1b[0m", "", "a?b?c??[0m"},
        {"\xc2\x85 \xc3\xa4 \xe2\x82\xac", "", "? \xc3\xa4 \xe2\x82\xac"},
        {"a\u202eb\u2067\u061c", "", "a?b??"}, // NOLINT(misc-misleading-bidirectional)
        {"a\xff\xc3", "", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"", "", ""},
    };
    char buf[EXPORT_NAME_ROOM];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(export_clean(buf, cases[i].text, cases[i].instead), cases[i].clean);
    enum { LONG = 10000000 };
    char *text = malloc(LONG + 1);
    ck_assert_ptr_nonnull(text);
    for (int first = 0; first < 3; first++) { /* a character may lie across the bound */
        memset(text, 'x', LONG);
        for (int i = first; i + 1 < LONG; i += 2)
            memcpy(text + i, "\xc3\xa4", 2);
        text[LONG - 1] = 'x';
        text[LONG] = '\0';
        export_clean(buf, text, "");
        const struct made made = {.data = buf, .n = strlen(buf)};
        ck_assert_uint_ge(made.n, EXPORT_NAME_ROOM - 8);
        ck_assert_uint_lt(made.n, EXPORT_NAME_ROOM);
        ck_assert_str_eq(buf + made.n - 3, "...");
        check_text(&made, "long");
    }
    free(text);
}

enum { NAME = 1000 };
/* NOLINTNEXTLINE(misc-misleading-bidirectional): what a viewer must stand */
static const char hostile[] = "</script>\"';\\\n(1)\r\x01%s,=cmd()\xff\xc2\x80 \xe2\x80\xae";

/* A profile whose function, file, module and ops have this name. */
static struct read_profile *make_hostile(char *name)
{
    struct maker_bytes bytes = {0};
    Tapescope__Symbol symbol = TAPESCOPE__SYMBOL__INIT, *list = &symbol;
    Tapescope__Symbols symbols = TAPESCOPE__SYMBOLS__INIT;
    maker_put_header(&bytes, "step:1", 1);
    symbol.pc = 0x1000;
    symbol.function = symbol.file = symbol.module = name;
    symbol.source_line = 7;
    symbols.symbol = &list;
    symbols.n_symbol = 1;
    maker_put_packet(&bytes, TAPESCOPE__PACKET__KIND_SYMBOLS, &symbols);
    struct maker_ledger *made = maker_new_ledger(1);
    for (uint32_t i = 0; i < 2; i++) {
        Tapescope__Row *row = maker_add_row(made, i, i == 0 ? 0x1000 : 0x2000, name);
        row->calls = 3;
        row->forward_ticks = 100;
        row->value_bytes = 64;
    }
    maker_put_ledger(&bytes, made);
    maker_put_end(&bytes);
    struct read_profile *profile = read_file(bytes.data, bytes.n);
    ck_assert_ptr_nonnull(profile);
    return profile;
}

TEST(names_that_mean_something_to_a_format_stay_names)
{
    char *name = malloc(NAME + 1);
    ck_assert_ptr_nonnull(name);
    for (int i = 0; i < 2; i++) {
        memset(name, 'n', NAME);
        name[NAME] = '\0';
        memcpy(name + (i ? NAME / 2 : 0), hostile, sizeof hostile - (i ? 1 : 0));
        struct read_profile *profile = make_hostile(name);
        ck_assert_int_ge(export_all(profile), 6);
        struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
        struct made made = export_one(analysis, EXPORT_KIND_collapsed, EXPORT_TAPE);
        int lines = 0, levels = 0;
        for (size_t k = 0; k < made.n; k++) {
            lines += made.data[k] == '\n';
            levels += made.data[k] == ';';
        }
        ck_assert_int_eq(lines, 2);
        ck_assert_int_eq(levels, 0);
        free(made.data);
        analyze_free(analysis);
        read_profile_free(profile);
    }
    free(name);
}

static struct maker_bytes seed;

/* The sum of the stacks of one figure whose outermost frame is `root`; NULL: any. */
static uint64_t sum_stacks(const struct analyze_result *analysis, enum export_metric metric,
                           const char *root)
{
    struct made made = export_split(analysis, EXPORT_KIND_collapsed, metric, root != NULL);
    uint64_t sum = 0;
    for (char *line = made.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        if (!root || (strncmp(line, root, strlen(root)) == 0 && line[strlen(root)] == ';'))
            sum += strtoull(strrchr(line, ' '), NULL, 10);
    }
    free(made.data);
    return sum;
}

/* What a phase has of a figure: all of its own, nothing of the others'; what has no phase is
 * forward's, in profiles without samples. */
static uint64_t phase_sum(const struct analyze_cost *cost, enum export_metric metric, int phase)
{
    static const enum export_metric own[] = {[READ_PHASE_NONE] = EXPORT_OTHER,
                                             [READ_PHASE_FORWARD] = EXPORT_FORWARD,
                                             [READ_PHASE_BACKWARD] = EXPORT_BACKWARD,
                                             [READ_PHASE_RECOMPUTE] = EXPORT_RECOMPUTE};
    if (metric == EXPORT_TIME || metric == own[phase])
        return export_cost(cost, own[phase]);
    const bool timed = metric == EXPORT_FORWARD || metric == EXPORT_BACKWARD ||
                       metric == EXPORT_RECOMPUTE || metric == EXPORT_OTHER;
    return !timed && phase == READ_PHASE_FORWARD ? export_cost(cost, metric) : 0;
}

/* Stacks of each figure add up to that of the analysis, samples included; split, to the phases. */
static void check_sums(const struct read_profile *profile)
{
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    for (int i = 0; i < EXPORT_METRICS; i++) {
        const enum export_metric metric = (enum export_metric)i;
        const uint64_t all = export_cost(&analysis->sum, metric);
        uint64_t phases = 0;
        ck_assert_uint_eq(sum_stacks(analysis, metric, NULL), all);
        for (int phase = 0; phase < READ_PHASES; phase++) {
            const uint64_t one = sum_stacks(analysis, metric, export_phase_names[phase]);
            if (metric <= EXPORT_RECOMPUTE || (metric <= EXPORT_PEAK && profile->n_samples == 0))
                ck_assert_uint_eq(one, phase_sum(&analysis->sum, metric, phase));
            phases += one;
        }
        ck_assert_uint_eq(phases, all);
    }
    analyze_free(analysis);
}

static size_t count_text(const struct made *made, const char *text)
{
    size_t n = 0;
    for (const char *at = made->data; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* Each slice of the timeline has a begin and an end, or is an instant if it took no time. */
static void check_slices(const struct read_profile *profile)
{
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    struct made made = export_one(analysis, EXPORT_KIND_chrome, EXPORT_TIME);
    const size_t begins = count_text(&made, "{\"ph\": \"B\"");
    ck_assert_uint_eq(count_text(&made, "{\"ph\": \"E\""), begins);
    ck_assert_uint_eq(begins + count_text(&made, "{\"ph\": \"i\""), profile->n_events);
    free(made.data);
    analyze_free(analysis);
}

/* The parts of a node have all that it has itself, and each has a phase and a thread once. */
static void check_parts(const struct read_profile *profile)
{
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    struct analyze_tree *tree =
        analyze_tree_make(analysis, &(struct analyze_tree_options){.parts = true});
    size_t k = 0;
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        struct analyze_cost sum = {0};
        for (const size_t first = k; k < tree->n_parts && tree->part[k].node == i; k++) {
            const struct analyze_tree_part *part = &tree->part[k], *last = part - 1;
            ck_assert(k == first || last->phase < part->phase ||
                      (last->phase == part->phase && last->thread < part->thread));
            analyze_cost_add(&sum, &part->cost);
        }
#define X(name) ck_assert_uint_eq(sum.name, tree->node[i].line.cost.name);
        ANALYZE_COST_MEMBERS(X)
#undef X
    }
    ck_assert_uint_eq(k, tree->n_parts);
    ck_assert(k > 0 || analyze_cost_is_nothing(&analysis->sum));
    analyze_tree_free(tree);
    analyze_free(analysis);
}

TEST_EACH(small_profiles_are_exported_in_every_format, PROFILE_SEEDS)
{
    profile_seed_make((unsigned)_i, &seed);
    struct read_profile *profile = read_file(seed.data, seed.n);
    ck_assert_ptr_nonnull(profile);
    const int whole = export_all(profile);
    ck_assert_int_ge(whole, 6);
    ck_assert(whole >= 9 || profile->n_events == 0);
    check_sums(profile);
    check_parts(profile);
    if (profile->n_events > 0)
        check_slices(profile);
    read_profile_free(profile);
}

TEST_EACH(what_a_damaged_profile_still_says_is_exported, PROFILE_SEEDS)
{
    enum { EVERY = 211, SHARE = 3 }; /* odd, so that all bits of a byte come, at some byte */
    int usable = 0;
    for (size_t bit = (size_t)_i; bit < PROFILE_SEED_BYTES * 8;
         bit += EVERY * sanitizers_step(SHARE)) {
        profile_seed_make((unsigned)_i, &seed);
        if (bit >= seed.n * 8)
            break;
        seed.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        profile_seed_repair(seed.data, seed.n);
        struct read_profile *profile = read_file(seed.data, seed.n);
        if (!profile)
            continue;
        usable++;
        export_all(profile);
        read_profile_free(profile);
    }
    ck_assert_int_gt(usable, 1);
}

/* A profile of one tape with events, whose clock has five ticks in two ns. */
static struct read_profile *read_calibrated(void)
{
    profile_seed_make(1, &seed);
    struct read_profile *profile = read_file(seed.data, seed.n);
    ck_assert_ptr_nonnull(profile);
    ck_assert(profile->ticks_per_ns == 2.5);
    ck_assert_uint_eq(profile->start_ticks, 1000);
    ck_assert_uint_eq(profile->n_tapes, 1);
    return profile;
}

TEST(live_bytes_have_their_times_in_ns)
{
    struct read_profile *profile = read_calibrated();
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    ck_assert_uint_eq(profile->tape[0].n_moments, 2);
    ck_assert_uint_eq(profile->tape[0].moment[0].ticks, 1100);
    ck_assert_uint_eq(profile->tape[0].moment[1].ticks, 1105);
    const uint64_t wanted[] = {40, 42};
    struct made made = export_one(analysis, EXPORT_KIND_perfetto, EXPORT_TIME);
    Perfetto__Trace *trace = perfetto__trace__unpack(NULL, made.n, (const uint8_t *)made.data);
    ck_assert_ptr_nonnull(trace);
    size_t n = 0;
    for (size_t i = 0; i < trace->n_packet; i++) {
        const Perfetto__TracePacket *packet = trace->packet[i];
        if (!packet->track_event || !packet->track_event->has_counter_value)
            continue;
        ck_assert_uint_lt(n, 2);
        ck_assert_uint_eq(packet->timestamp, wanted[n]);
        ck_assert_uint_eq((uint64_t)packet->track_event->counter_value,
                          profile->tape[0].moment[n].most_bytes);
        n++;
    }
    ck_assert_uint_eq(n, 2);
    perfetto__trace__free_unpacked(trace, NULL);
    free(made.data);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* heaptrack sums up line by line: what comes before what goes would be a peak that never was. */
TEST(within_a_moment_what_goes_comes_before_what_comes)
{
    struct read_profile *profile = read_calibrated();
    struct read_tape *tape = &profile->tape[0];
    ck_assert_uint_ge(tape->n_changes, 3);
    ck_assert_uint_eq(tape->n_residuals, 2);
    tape->n_changes = 3;
    tape->change[0] = (struct read_change){.ticks = 1100, .delta = 64, .ends = true};
    tape->change[1] = (struct read_change){.ticks = 1200, .delta = 128, .residual = 1};
    tape->change[2] = (struct read_change){.ticks = 1200, .delta = -64, .ends = true};
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    struct made made = export_one(analysis, EXPORT_KIND_heaptrack, EXPORT_TIME);
    ck_assert_int_eq(made.status, 0);
    char order[64] = "";
    for (const char *line = made.data; *line; line = strchr(line, '\n') + 1)
        if (*line == '+' || *line == '-')
            snprintf(order + strlen(order), sizeof order - strlen(order), "%.4s", line);
    ck_assert_str_eq(order, "+ 0\n- 0\n+ 1\n");
    free(made.data);
    analyze_free(analysis);
    read_profile_free(profile);
}

RUN_TESTS(program_setup, program_teardown)
