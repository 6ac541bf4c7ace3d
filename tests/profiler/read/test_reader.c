/* test_reader.c: profiles made here byte by byte, read back, joined, damaged and reported. */
#include "analyze.h"
#include "profile_frame.h"
#include "profile_maker.h"
#include "read.h"
#include "report.h"
#include "run_cases.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct read_profile *read_bytes(const struct maker_bytes *bytes, char *error, size_t n)
{
    FILE *stream =
        bytes->n > 0 ? fmemopen((void *)bytes->data, bytes->n, "r") : fopen("/dev/null", "r");
    ck_assert_ptr_nonnull(stream);
    struct read_profile *profile = read_profile_stream(stream, "x.prof", error, n);
    fclose(stream);
    return profile;
}

static struct read_profile *read_good(const struct maker_bytes *bytes)
{
    char error[1024] = "";
    struct read_profile *profile = read_bytes(bytes, error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    return profile;
}

static void check_unusable(const struct maker_bytes *bytes, const char *expected)
{
    char error[1024] = "";
    ck_assert_ptr_null(read_bytes(bytes, error, sizeof error));
    ck_assert_msg(strstr(error, expected) != NULL, "'%s' lacks '%s'", error, expected);
    ck_assert_ptr_null(strchr(error, '\n'));
}

/* A profile that has some of everything: two living tapes and destroyed ones. */
static void put_observed(struct maker_bytes *bytes, double overhead)
{
    maker_put_header(bytes, "tsc", 1);
    maker_put_modules(bytes);
    maker_put_clock(bytes, 1000, 500);
    struct maker_ledger *made = maker_new_ledger(1);
    Tapescope__Row *row = maker_add_row(made, 0, 0, "padding");
    row->value_bytes = 8;
    row = maker_add_row(made, 2, 0x2001, "matmul");
    row->line = 41;
    row->kept_by = 4;
    row->calls = 3;
    row->forward_ticks = 31;
    row->backward_ticks = 7;
    row->recompute_calls = 2;
    row->recompute_ticks = 11;
    row->value_bytes = 64;
    row->peak_bytes = 50;
    row = maker_add_row(made, 3, 0x3001, "tanh");
    row->calls = 5;
    row->forward_ticks = 9;
    row->record_bytes = 16;
    row->kept_by = 77;
    made->ledger.forward_ticks = 40;
    made->ledger.backward_ticks = 7;
    made->ledger.recompute_ticks = 11;
    made->ledger.handed_out_bytes = 88;
    made->ledger.peak_bytes = 50;
    made->ledger.records = 8;
    maker_put_ledger(bytes, made);
    made = maker_new_ledger(2);
    row = maker_add_row(made, 2, 0x2001, "matmul");
    row->line = 41;
    row->calls = 1;
    row->forward_ticks = 4;
    row->peak_bytes = 40;
    made->ledger.forward_ticks = 4;
    made->ledger.peak_bytes = 40;
    maker_put_ledger(bytes, made);
    maker_put_clock(bytes, 1300, 600);
    maker_put_overhead(bytes, overhead, overhead);
    maker_put_end(bytes);
}

static void put_rich(struct maker_bytes *bytes)
{
    put_observed(bytes, 0);
}

TEST(a_profile_is_read_with_all_that_it_holds)
{
    struct maker_bytes bytes = {0};
    put_rich(&bytes);
    struct read_profile *profile = read_good(&bytes);
    ck_assert(profile->complete);
    ck_assert_ptr_null(profile->warning);
    ck_assert_str_eq(profile->end_reason, "stop");
    ck_assert_str_eq(profile->program, "/nowhere/program");
    ck_assert_uint_eq(profile->n_arguments, 2);
    ck_assert_uint_eq(profile->n_mappings, 1);
    ck_assert_uint_eq(profile->mapping[0].build_id_bytes, 4);
    ck_assert_uint_eq(profile->n_tapes, 2);
    ck_assert_uint_eq(profile->duration_ns, 100);
    ck_assert_double_eq(profile->ticks_per_ns, 3);
    ck_assert_uint_eq(read_profile_ns(profile, 40), 13);
    const struct read_row *row = &profile->tape[0].row[1];
    ck_assert_str_eq(row->op, "matmul");
    ck_assert_str_eq(row->kept_by, "tanh");
    ck_assert_uint_eq(row->calls, 3);
    ck_assert_uint_eq(row->recompute_calls, 2);
    ck_assert_uint_eq(row->recompute_ticks, 11);
    ck_assert_uint_eq(profile->tape[0].recompute_ticks, 11);
    ck_assert_uint_eq(profile->tape[1].row[0].recompute_calls, 0); /* as in older files */
    ck_assert_ptr_null(profile->tape[0].row[2].kept_by);           /* a row that is not there */
    read_profile_free(profile);
}

TEST(the_last_packet_of_a_row_wins_and_other_rows_stay)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "step:10", 1);
    struct maker_ledger *made = maker_new_ledger(1);
    maker_add_row(made, 0, 0x2001, "exp")->calls = 1;
    maker_add_row(made, 1, 0x3001, "log")->calls = 2;
    made->ledger.forward_ticks = 5;
    maker_put_ledger(&bytes, made);
    made = maker_new_ledger(1);
    maker_add_row(made, 1, 0x3001, "log")->calls = 9;
    made->ledger.forward_ticks = 50;
    maker_put_ledger(&bytes, made);
    maker_put_end(&bytes);
    struct read_profile *profile = read_good(&bytes);
    ck_assert_uint_eq(profile->n_tapes, 1);
    ck_assert_uint_eq(profile->tape[0].n_rows, 2);
    ck_assert_uint_eq(profile->tape[0].row[0].calls, 1);
    ck_assert_uint_eq(profile->tape[0].row[1].calls, 9);
    ck_assert_uint_eq(profile->tape[0].forward_ticks, 50);
    ck_assert_uint_eq(read_profile_ns(profile, 50), 50);
    ck_assert(!profile->clock_is_uncalibrated);
    read_profile_free(profile);
}

/* A packet with one pattern of 2 x 2, and whose values are said to be as many as this. */
static void put_pattern(struct maker_bytes *bytes, uint32_t id, uint64_t values, size_t n_cell,
                        bool again)
{
    uint64_t cell[] = {1, 0, 1, 1, 0};
    Tapescope__Pattern pattern = TAPESCOPE__PATTERN__INIT, *list[] = {&pattern};
    Tapescope__Patterns patterns = TAPESCOPE__PATTERNS__INIT;
    pattern.id = id;
    pattern.pc = 0x2001;
    pattern.rows = pattern.columns = 2;
    pattern.values = values;
    pattern.colours = 2; /* and not coloured */
    pattern.calls = 1 + id;
    pattern.cell = cell;
    pattern.n_cell = n_cell;
    patterns.pattern = list;
    patterns.n_pattern = 1;
    patterns.left_out = 5;
    patterns.again = again;
    maker_put_packet(bytes, TAPESCOPE__PACKET__KIND_PATTERNS, &patterns);
}

TEST(a_pattern_that_cannot_be_counts_as_left_out)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "step:10", 1);
    put_pattern(&bytes, 1, 3, 4, false);
    put_pattern(&bytes, 2, 3, 4, true); /* the one before is void */
    put_pattern(&bytes, 3, 4, 4, false);
    put_pattern(&bytes, 4, 2, 4, false);
    put_pattern(&bytes, 5, 3, 5, false);
    put_pattern(&bytes, 2, 3, 3, false);
    maker_put_end(&bytes);
    struct read_profile *profile = read_good(&bytes);
    ck_assert_uint_eq(profile->n_patterns, 1);
    ck_assert_uint_eq(profile->patterns_left_out, 5 + 4);
    const struct read_pattern *p = profile->pattern;
    ck_assert(p->calls == 3 && p->values == 3 && p->height == 2 && p->width == 2);
    ck_assert(!p->coloured && p->colours == 0 && p->cell[2] == 1 && p->cell[1] == 0);
    read_profile_free(profile);
}

/* Tape 1 is destroyed; tape 0 follows with what it held, or does not come. */
static uint64_t calls_of_destroyed(bool merged, bool end)
{
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "monotonic", 1);
    struct maker_ledger *made = maker_new_ledger(1);
    maker_add_row(made, 0, 0x2001, "exp")->calls = 3;
    maker_put_ledger(&bytes, made);
    made = maker_new_ledger(1);
    made->ledger.final = true;
    maker_put_ledger(&bytes, made);
    if (merged) {
        made = maker_new_ledger(0);
        made->ledger.tapes = 2;
        maker_add_row(made, 0, 0x2001, "exp")->calls = 4;
        maker_put_ledger(&bytes, made);
    }
    if (end)
        maker_put_end(&bytes);
    struct read_profile *profile = read_good(&bytes);
    uint64_t calls = 0;
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            calls += profile->tape[i].row[j].calls;
    read_profile_free(profile);
    return calls;
}

TEST(a_destroyed_tape_counts_once_wherever_the_profile_ends)
{
    ck_assert_uint_eq(calls_of_destroyed(true, true), 4);
    ck_assert_uint_eq(calls_of_destroyed(true, false), 4);
    ck_assert_uint_eq(calls_of_destroyed(false, false), 3);
}

TEST(every_truncation_is_readable_and_says_so)
{
    struct maker_bytes bytes = {0};
    put_rich(&bytes);
    size_t first = bytes.frame[1]; /* the header is whole from here on */
    for (size_t n = 0; n < bytes.n; n++) {
        char error[1024] = "";
        struct maker_bytes cut = bytes;
        cut.n = n;
        if (n < first) {
            check_unusable(&cut, n < PROFILE_MAGIC_BYTES ? "not a tapescope profile" : "header");
            continue;
        }
        struct read_profile *profile = read_bytes(&cut, error, sizeof error);
        ck_assert_msg(profile != NULL, "%zu: %s", n, error);
        ck_assert(!profile->complete);
        ck_assert_ptr_nonnull(profile->warning);
        ck_assert_ptr_nonnull(strstr(profile->warning, "was killed or is still running"));
        ck_assert_ptr_null(strchr(profile->warning, '\n'));
        read_profile_free(profile);
    }
    struct maker_bytes cut = bytes;
    cut.n = bytes.frame[3] + 9;
    struct read_profile *profile = read_good(&cut);
    char expected[128];
    snprintf(expected, sizeof expected, "x.prof: truncated after 3 packets (%zu of %zu bytes)",
             cut.n, bytes.frame[4]);
    ck_assert_ptr_nonnull(strstr(profile->warning, expected));
    read_profile_free(profile);
}

/* Reads, analyses and reports whatever it is. */
static void use(const struct maker_bytes *bytes)
{
    char error[1024], *text = NULL;
    size_t n;
    struct read_profile *profile = read_bytes(bytes, error, sizeof error);
    if (!profile)
        return;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    struct report_style style = {.out = open_memstream(&text, &n), .width = 80};
    ck_assert_ptr_nonnull(style.out);
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_TAPE, 20, &style);
    report_info(analysis, &style);
    fclose(style.out);
    free(text);
    analyze_free(analysis);
    read_profile_free(profile);
}

TEST(any_flipped_bit_is_noticed)
{
    struct maker_bytes bytes = {0};
    put_rich(&bytes);
    for (size_t bit = 0; bit < 8 * bytes.n; bit++) {
        char error[1024];
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct read_profile *profile = read_bytes(&bytes, error, sizeof error);
        ck_assert(!profile || (!profile->complete && profile->warning));
        read_profile_free(profile);
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    bytes.data[bytes.frame[4] + PROFILE_FRAME_BYTES] ^= 1;
    struct read_profile *profile = read_good(&bytes);
    ck_assert_ptr_nonnull(strstr(profile->warning, "x.prof: packet 5 is damaged (checksum)"));
    read_profile_free(profile);
}

TEST(any_flipped_bit_with_a_valid_checksum_is_survived)
{
    struct maker_bytes bytes = {0};
    put_rich(&bytes);
    bytes.frame[bytes.n_frames] = bytes.n;
    for (size_t i = 0; i < bytes.n_frames; i++) {
        size_t start = bytes.frame[i] + PROFILE_FRAME_BYTES;
        uint32_t n = (uint32_t)(bytes.frame[i + 1] - start);
        for (size_t bit = 0; bit < 8 * (size_t)n; bit++) {
            bytes.data[start + bit / 8] ^= (uint8_t)(1u << bit % 8);
            profile_frame_put(bytes.data + bytes.frame[i], bytes.data + start, n);
            use(&bytes);
            bytes.data[start + bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        profile_frame_put(bytes.data + bytes.frame[i], bytes.data + start, n);
    }
    use(&bytes);
}

TEST(what_is_not_a_profile_is_refused_in_one_line)
{
    char error[1024];
    struct maker_bytes empty = {0}, text = {0}, later = {0}, headless = {0}, twice = {0};
    struct maker_bytes once = {0};
    check_unusable(&empty, "x.prof: not a tapescope profile");
    maker_put(&text, "#!/bin/sh\necho hello\n", 21);
    check_unusable(&text, "x.prof: not a tapescope profile");
    maker_put_header(&later, "tsc", 2);
    check_unusable(&later, "version");
    maker_put(&headless, PROFILE_MAGIC, PROFILE_MAGIC_BYTES);
    maker_put_end(&headless);
    check_unusable(&headless, "header");
    maker_put_header(&twice, "tsc", 1);
    maker_put_header(&once, "tsc", 1);
    maker_put(&twice, once.data + once.frame[0], once.n - once.frame[0]);
    struct read_profile *profile = read_good(&twice);
    ck_assert_ptr_nonnull(strstr(profile->warning, "packet 2 is damaged (content)"));
    read_profile_free(profile);
    ck_assert_ptr_null(read_profile("/nowhere/x.prof", error, sizeof error));
    ck_assert_str_eq(error, "/nowhere/x.prof: No such file or directory");
    ck_assert_ptr_null(read_profile("/", error, sizeof error));
    ck_assert_str_eq(error, "/: Is a directory");
}

TEST(a_packet_of_a_million_empty_rows_does_not_take_its_weight_in_memory)
{
    enum { ROWS = 1000000 };
    struct maker_bytes bytes = {0};
    uint8_t head[PROFILE_FRAME_BYTES], *payload = calloc(ROWS, 2);
    ck_assert_ptr_nonnull(payload);
    size_t at = 0;
    payload[at++] = 3 << 3 | 2; /* Packet.ledger, 2 * ROWS - 8 bytes of it */
    size_t inside = 2 * (size_t)ROWS - 8;
    for (size_t left = inside; left > 0 || at < 2; left >>= 7)
        payload[at++] = (uint8_t)((left & 127) | (left >> 7 ? 128 : 0));
    for (size_t i = 0; i < inside / 2; i++, at += 2)
        payload[at] = 4 << 3 | 2; /* Ledger.row of no bytes */
    maker_put_header(&bytes, "tsc", 1);
    profile_frame_put(head, payload, (uint32_t)at);
    FILE *file = tmpfile();
    char error[1024] = "";
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.n, file), bytes.n);
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, file), sizeof head);
    ck_assert_uint_eq(fwrite(payload, 1, at, file), at);
    rewind(file);
    struct read_profile *profile = read_profile_stream(file, "x.prof", error, sizeof error);
    ck_assert_msg(profile != NULL, "%s", error);
    ck_assert_ptr_nonnull(strstr(profile->warning, "packet 2 is damaged (content)"));
    read_profile_free(profile);
    fclose(file);
    free(payload);
}

TEST(lines_are_joined_over_tapes_and_their_sums_are_the_totals)
{
    struct maker_bytes bytes = {0};
    put_rich(&bytes);
    struct read_profile *profile = read_good(&bytes);
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    ck_assert_uint_eq(analysis->n_lines, 3);
    const struct analyze_totals *total = &analysis->total;
    uint64_t forward = 0, backward = 0, bytes_on_tape = 0, peak = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        forward += line->cost.forward_ns;
        backward += line->cost.backward_ns;
        bytes_on_tape += analyze_cost_tape_bytes(&line->cost);
        peak += line->cost.peak_bytes;
        if (strcmp(line->ops.name[0], "matmul") == 0) {
            ck_assert_uint_eq(line->cost.calls, 4);
            ck_assert_uint_eq(line->cost.forward_ticks, 35);
            ck_assert_uint_eq(line->cost.peak_bytes, 50); /* of the tape with the greatest peak */
            ck_assert_uint_eq(line->line, 41);
            ck_assert_uint_eq(line->kept_by.n, 1);
        }
    }
    ck_assert_uint_eq(total->forward_ns, 15); /* 44 ticks at 3 a nanosecond */
    ck_assert_uint_eq(forward, total->forward_ns);
    ck_assert_uint_eq(backward, total->backward_ns);
    ck_assert_uint_eq(bytes_on_tape, total->handed_out_bytes);
    ck_assert_uint_eq(peak, total->peak_bytes);
    ck_assert_uint_eq(total->tapes, 2);
    size_t n;
    struct analyze_line *op = analyze_group(analysis, ANALYZE_BY_OP, &n);
    ck_assert_uint_eq(n, 3);
    free(op);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* Of the lines of this op, which are one. */
static const struct analyze_cost *cost_of(const struct analyze_result *analysis, const char *op)
{
    const struct analyze_cost *found = NULL;
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (strcmp(analysis->line[i].ops.name[0], op) == 0)
            found = &analysis->line[i].cost;
    ck_assert_ptr_nonnull(found);
    return found;
}

/* What is read of put_observed(). */
static struct analyze_result *read_observed(double overhead, struct read_profile **profile)
{
    struct maker_bytes bytes = {0};
    put_observed(&bytes, overhead);
    *profile = read_good(&bytes);
    struct analyze_result *analysis = analyze_profile(*profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    return analysis;
}

/* tanh has 9 ticks in 5 calls: 2 a call are more than it has. */
TEST(what_observing_added_is_taken_off_and_said)
{
    struct read_profile *profile;
    struct analyze_result *analysis = read_observed(2, &profile);
    const struct analyze_cost *matmul = cost_of(analysis, "matmul");
    const struct analyze_totals *total = &analysis->total;
    ck_assert_uint_eq(matmul->forward_ticks, 35 - 4 * 2);
    ck_assert_uint_eq(matmul->backward_ticks, 7); /* no call of it is known */
    ck_assert_uint_eq(matmul->recompute_ticks, 11 - 2 * 2);
    ck_assert_uint_eq(cost_of(analysis, "tanh")->forward_ticks, 0);
    ck_assert_uint_eq(profile->overhead_ticks, 4 * 2 + 9 + 2 * 2);
    ck_assert_uint_eq(total->forward_ticks, 44 - 4 * 2 - 9);
    ck_assert_uint_eq(total->recompute_ticks, 11 - 2 * 2);
    ck_assert_uint_eq(total->forward_ns, analysis->sum.forward_ns);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* 2 a call of tanh are more than it has: as much is added as there is. */
TEST(what_observing_left_out_is_added)
{
    struct read_profile *profile;
    struct analyze_result *analysis = read_observed(-2, &profile);
    const struct analyze_cost *matmul = cost_of(analysis, "matmul");
    ck_assert_uint_eq(matmul->forward_ticks, 35 + 4 * 2);
    ck_assert_uint_eq(matmul->backward_ticks, 7); /* no call of it is known */
    ck_assert_uint_eq(matmul->recompute_ticks, 11 + 2 * 2);
    ck_assert_uint_eq(cost_of(analysis, "padding")->forward_ticks, 0); /* nothing was measured */
    ck_assert_uint_eq(profile->overhead_ticks, 0);
    ck_assert_uint_eq(analysis->total.forward_ticks, 44 + 4 * 2 + 9);
    analyze_free(analysis);
    read_profile_free(profile);
}

TEST(an_overhead_that_cannot_be_is_none)
{
    static const double wrong[] = {-1e300, 0, 1e300, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct maker_bytes bytes = {0};
        put_observed(&bytes, wrong[i]);
        struct read_profile *profile = read_good(&bytes);
        ck_assert_double_eq(profile->forward_overhead, 0);
        ck_assert_double_eq(profile->backward_overhead, 0);
        read_profile_free(profile);
    }
}

TEST(reports_fit_eighty_columns_and_hold_no_control_characters)
{
    struct maker_bytes bytes = {0};
    char *text = NULL;
    size_t n;
    put_rich(&bytes);
    struct read_profile *profile = read_good(&bytes);
    char name[] = "\033[2J of a screen\r\n that is not ours";
    struct read_scope open = {.name = name, .calls = 2, .open_calls = 1};
    profile->scope = &open;
    profile->n_scopes = 1;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    struct report_style style = {.out = open_memstream(&text, &n), .width = 80};
    report_summary(analysis, &style);
    fputc('\n', style.out);
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 1, &style);
    report_info(analysis, &style);
    fclose(style.out);
    const char *summary = strchr(text, '\n'); /* which is a sentence, of any length */
    size_t width = 0;
    for (size_t i = 0; i < n; i++) {
        width = text[i] == '\n' || text + i < summary ? 0 : width + 1;
        ck_assert_uint_le(width, 80);
        ck_assert(text[i] == '\n' || (unsigned char)text[i] >= ' ');
    }
    ck_assert_ptr_nonnull(strstr(text, "... 2 more lines"));
    ck_assert_ptr_nonnull(strstr(text, "2 sites are without line information."));
    ck_assert_ptr_nonnull(
        strstr(text, ", scope \"?[2J of a screen?? that is not ours\" not ended"));
    profile->scope = NULL;
    profile->n_scopes = 0;
    free(text);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* What comes behind it may be damaged, or missing. */
TEST(a_header_is_read_alone)
{
    char error[1024] = "", path[] = "header.XXXXXX";
    struct maker_bytes bytes = {0};
    maker_put_header(&bytes, "tsc", 1);
    const size_t n_header = bytes.n;
    put_rich(&bytes);
    for (size_t n = 0; n <= n_header + 9; n += n < n_header ? n_header : 3) {
        FILE *out = fopen(path, "w");
        ck_assert_ptr_nonnull(out);
        ck_assert_uint_eq(fwrite(bytes.data, 1, n, out), n);
        ck_assert_int_eq(fclose(out), 0);
        struct read_profile *profile = read_profile_header(path, error, sizeof error);
        ck_assert_int_eq(profile != NULL, n >= n_header);
        ck_assert(!profile || (profile->n_packets == 1 && !profile->warning &&
                               profile->n_tapes == 0 && *profile->program));
        read_profile_free(profile);
    }
    unlink(path);
}

RUN_TESTS(NULL, NULL)
