/* test_forged.c: numbers of a file that no program could have counted, as great, as negative or as
 * little of a number as its format holds, are reported like others.
 *
 * The sanitizer of undefined behaviour says whether a sum or a conversion runs over. Of each field
 * the tests take a share of the numbers, and of the next profile another one (exhaustive.h).
 */
#include "exhaustive.h"
#include "export.h"
#include "html.h"
#include "profile.pb-c.h"
#include "profile_frame.h"
#include "profile_seeds.h"
#include "read_merge.h"
#include "report_dump.h"
#include "report_gates.h"
#include "report_many.h"
#include "report_tree.h"
#include "run_cases.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HAS_SOURCE = 1, MOST_FIELDS = 400, FORGED_BYTES = 8 * PROFILE_SEED_BYTES };

/* What every number of one type becomes. */
static const struct forgery {
    uint64_t plain;
    int64_t sign;
    double real;
} forgeries[] = {
    {UINT64_MAX, INT64_MAX, 1e300},
    {UINT64_C(1) << 63, INT64_MIN, -1e300},
    {UINT64_MAX / 3, -1, (double)NAN},
    {UINT64_C(1) << 62, INT64_C(1) << 62, 999999999.0},
    {1, 0, 1e-300},
    {0, 0, -0.0},
};
enum { FORGERIES = sizeof forgeries / sizeof *forgeries, STEP = 15 };

static const ProtobufCFieldDescriptor *field[MOST_FIELDS];
static size_t n_fields, n_annotated;
static char folder[64], part[96], whole[96], source[96];

static bool is_number(const ProtobufCFieldDescriptor *of)
{
    return of->type == PROTOBUF_C_TYPE_UINT64 || of->type == PROTOBUF_C_TYPE_FIXED64 ||
           of->type == PROTOBUF_C_TYPE_INT64 || of->type == PROTOBUF_C_TYPE_SINT64 ||
           of->type == PROTOBUF_C_TYPE_DOUBLE;
}

static void find_fields(const ProtobufCMessageDescriptor *message)
{
    for (unsigned i = 0; i < message->n_fields; i++) {
        const ProtobufCFieldDescriptor *of = &message->fields[i];
        if (of->type == PROTOBUF_C_TYPE_MESSAGE)
            find_fields(of->descriptor);
        ck_assert_uint_lt(n_fields, MOST_FIELDS);
        if (is_number(of))
            field[n_fields++] = of;
    }
}

static void setup(void)
{
    n_fields = 0;
    find_fields(&tapescope__packet__descriptor);
    ck_assert_uint_gt(n_fields, 100);
    strcpy(folder, "/tmp/tapescope-forged-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(part, sizeof part, "%s/part", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(source, sizeof source, "%s/a.c", folder);
    FILE *file = fopen(source, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 1; i < 50; i++)
        fprintf(file, "line %d\n", i);
    ck_assert_int_eq(fclose(file), 0);
}

static void teardown(void)
{
    unlink(part);
    unlink(whole);
    unlink(source);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void put_number(void *at, const ProtobufCFieldDescriptor *of, const struct forgery *forgery)
{
    if (of->type == PROTOBUF_C_TYPE_DOUBLE)
        memcpy(at, &forgery->real, sizeof forgery->real);
    else if (of->type == PROTOBUF_C_TYPE_INT64 || of->type == PROTOBUF_C_TYPE_SINT64)
        memcpy(at, &forgery->sign, sizeof forgery->sign);
    else
        memcpy(at, &forgery->plain, sizeof forgery->plain);
}

/* In a message and all below it: the numbers of `only`, or of all fields where that is NULL. */
static void forge(ProtobufCMessage *message, const ProtobufCFieldDescriptor *only,
                  const struct forgery *forgery)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *of = &message->descriptor->fields[i];
        uint8_t *at = (uint8_t *)message + of->offset;
        const bool below = of->type == PROTOBUF_C_TYPE_MESSAGE;
        const size_t size = below ? sizeof(ProtobufCMessage *) : sizeof(uint64_t);
        size_t n = 1;
        if (!below && (!is_number(of) || (only && of != only)))
            continue;
        if ((of->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            uint32_t kind;
            memcpy(&kind, (uint8_t *)message + of->quantifier_offset, sizeof kind);
            if (kind != of->id)
                continue;
        } else if (of->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, (uint8_t *)message + of->quantifier_offset, sizeof n);
            uint8_t *list;
            memcpy(&list, at, sizeof list);
            at = list;
        }
        for (size_t j = 0; j < n; j++) {
            ProtobufCMessage *one;
            if (!below) {
                put_number(at + j * size, of, forgery);
                continue;
            }
            memcpy(&one, at + j * size, sizeof one);
            if (one)
                forge(one, only, forgery);
        }
    }
}

/* What a profile is changed by: called for each of its packets. */
typedef void change_fn(Tapescope__Packet *packet, void *context);

static size_t make_with(uint8_t data[FORGED_BYTES], const struct maker_bytes *seed,
                        change_fn *change, void *context)
{
    size_t n = PROFILE_MAGIC_BYTES;
    memcpy(data, seed->data, n);
    for (size_t i = 0; i < seed->n_frames; i++) {
        const size_t from = seed->frame[i] + PROFILE_FRAME_BYTES;
        Tapescope__Packet *packet =
            tapescope__packet__unpack(NULL, seed->frame[i + 1] - from, seed->data + from);
        ck_assert_ptr_nonnull(packet);
        change(packet, context);
        uint8_t *payload = data + n + PROFILE_FRAME_BYTES;
        ck_assert_uint_le(n + PROFILE_FRAME_BYTES + tapescope__packet__get_packed_size(packet),
                          FORGED_BYTES);
        const size_t bytes = tapescope__packet__pack(packet, payload);
        profile_frame_put(data + n, payload, (uint32_t)bytes);
        n += PROFILE_FRAME_BYTES + bytes;
        tapescope__packet__free_unpacked(packet, NULL);
    }
    return n;
}

struct forged_numbers {
    const ProtobufCFieldDescriptor *only;
    const struct forgery *forgery;
};

static void forge_numbers(Tapescope__Packet *packet, void *context)
{
    const struct forged_numbers *numbers = context;
    forge(&packet->base, numbers->only, numbers->forgery);
}

/* The seed with those numbers instead of its own. */
static size_t make(uint8_t data[FORGED_BYTES], const struct maker_bytes *seed,
                   const ProtobufCFieldDescriptor *only, const struct forgery *forgery)
{
    struct forged_numbers numbers = {only, forgery};
    return make_with(data, seed, forge_numbers, &numbers);
}

/* What lines hold at the peak, and words of every trace: from one on, each some words further. */
struct forged_words {
    size_t first, step, set;
    uint32_t word;
};

static void forge_words(Tapescope__Packet *packet, void *context)
{
    struct forged_words *words = context;
    if (packet->kind_case != TAPESCOPE__PACKET__KIND_RESIDUALS || !packet->residuals->stretch)
        return;
    const Tapescope__Stretch *stretch = packet->residuals->stretch;
    for (size_t i = words->first; i < stretch->n_trace; i += words->step, words->set++)
        stretch->trace[i] = words->word;
    for (size_t i = 0; i < packet->residuals->n_part; i++)
        packet->residuals->part[i]->peak_bytes = READ_MOST / 16;
}

static void report_lines(const struct analyze_result *analysis, const struct report_style *style)
{
    size_t n_failed;
    for (int sort = REPORT_SORT_TOTAL; sort <= REPORT_SORT_RATIO; sort++) {
        const enum report_sort by = (enum report_sort)sort;
        report_top(analysis, ANALYZE_BY_LINE, by, 0, style);
        report_scopes(analysis, by, 0, style);
    }
    report_roofline(analysis, ANALYZE_BY_LINE, REPORT_SORT_TOTAL, 0, style);
    report_scopes_csv(analysis, style);
    report_expectations(analysis, style, &n_failed);
    report_patterns(analysis, style);
    report_info(analysis, style);
    report_summary(analysis, style);
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (analysis->line[i].file && strcmp(analysis->line[i].file, source) == 0) {
            ck_assert_int_eq(report_annotate(analysis, source, NULL, style), 0);
            n_annotated++;
            break;
        }
}

static void report_memory(const struct analyze_result *analysis, const struct report_style *style)
{
    for (int what = REPORT_HOLDERS; what <= REPORT_LEAKS; what++) {
        struct analyze_space space;
        const struct report_space_options options = {.what = (enum report_space)what};
        ck_assert_int_eq(
            analyze_space_make(&space, analysis, ANALYZE_SPACE_BY_CLASS, ANALYZE_AT_PEAK, 0), 0);
        report_space(analysis, &space, &options, style);
        analyze_space_free(&space);
    }
    struct analyze_whatif whatif;
    bool is_optimal;
    if (analyze_whatif_make(&whatif, analysis, false) == 0) {
        report_whatif(analysis, &whatif, 0, style);
        ck_assert_int_ge(analyze_whatif_fit(&whatif, 1000, &is_optimal), 0);
        report_whatif_choice(analysis, &whatif, 1000, is_optimal, style);
    }
    analyze_whatif_free(&whatif);
}

static void report_tree_and_exports(const struct analyze_result *analysis,
                                    const struct report_style *style)
{
    for (int i = 0; i < EXPORT_KINDS; i++) {
        char error[1024] = "";
        const struct analyze_tree_options how = {
            .inverted = (export_formats[i].needs & EXPORT_CALLERS) != 0, .parts = true};
        const struct report_tree_options look = {.inverted = how.inverted};
        struct analyze_tree *tree = analyze_tree_make(analysis, &how);
        ck_assert_ptr_nonnull(tree);
#define X(name) ck_assert_uint_eq(tree->node[0].all.name, analysis->sum.name);
        ROW_COUNTERS(X)
#undef X
        if (i < 2)
            report_tree(tree, &look, style);
        const struct export_job job = {.analysis = analysis,
                                       .tree = tree,
                                       .metric = EXPORT_TIME,
                                       .out = fopen("/dev/null", "w"),
                                       .error = error,
                                       .error_room = sizeof error};
        ck_assert_ptr_nonnull(job.out);
        ck_assert_int_eq(export_formats[i].write(&job), *error != '\0');
        fclose(job.out);
        analyze_tree_free(tree);
    }
}

/* With another profile beside it. */
static void report_pairs(const struct analyze_result *analysis, const struct analyze_result *other,
                         const struct report_style *style)
{
    const struct analyze_result *all[] = {other, other, analysis};
    const double size[] = {1, 2, 3};
    const struct report_sizes sizes = {all, size, 3, "n"};
    struct analyze_runs runs[2];
    const struct html_options options = {.base = &runs[0], .growth = &sizes};
    struct report_growth growth;
    struct report_gates gates = {0};
    analyze_runs_make(&runs[0], (const struct analyze_result *const[]){other}, 1);
    analyze_runs_make(&runs[1], (const struct analyze_result *const[]){analysis}, 1);
    report_diff(&runs[0], &runs[1], ANALYZE_BY_LINE, REPORT_SORT_TAPE, true, 0, style);
    report_growth_make(&growth, &sizes, ANALYZE_BY_LINE, REPORT_BYTES_TAPE);
    report_growth_print(&growth, &sizes, ANALYZE_BY_LINE, 1, 0, style);
    report_gate_peak(&gates, analysis, 1);
    report_gate_ratio(&gates, analysis, 1);
    report_gate_growth(&gates, &growth, &sizes, 1);
    report_gate_expectations(&gates, analysis);
    report_gate_baseline(&gates, &runs[0], analysis, 0.1, 0.1);
    report_gates_print(&gates, style);
    report_gates_free(&gates);
    report_growth_free(&growth);
    if (style->json)
        html_write(style->out, analysis, &options);
}

static void take_event(void *payload, const struct read_profile *profile,
                       const struct read_event *event)
{
    (void)profile;
    report_dump_event(payload, event);
}

static void dump(const struct analyze_result *analysis, const struct report_style *style)
{
    char error[1024] = "";
    const struct report_dump_options options = {.to_ns = UINT64_MAX};
    struct report_dump *made = report_dump_open(analysis, &options, style);
    ck_assert_ptr_nonnull(made);
    struct read_profile *again = read_profile_events(part, take_event, made, error, sizeof error);
    ck_assert_msg(again != NULL, "%s", error);
    report_dump_close(made, true);
    read_profile_free(again);
}

/* A sum of 64 bits is that of its parts as real numbers: it has not run over. */
static void check_sum(double parts, uint64_t sum, const char *name)
{
    ck_assert_msg(fabs(parts - (double)sum) <= 1e-9 * parts + 4, "%s: %.0f in parts, %.0f in all",
                  name, parts, (double)sum);
}

static void check_sums(const struct analyze_result *analysis)
{
    const struct analyze_cost *all = &analysis->sum;
    double bytes = 0, time = 0, handed_out = 0;
#define X(name)                                                                                    \
    do {                                                                                           \
        double sum = 0;                                                                            \
        for (size_t i = 0; i < analysis->n_lines; i++)                                             \
            sum += (double)analysis->line[i].cost.name;                                            \
        check_sum(sum, all->name, #name);                                                          \
    } while (0);
    ROW_COUNTERS(X)
    X(forward_ns)
    X(backward_ns)
    X(recompute_ns)
    X(other_ns)
    X(waiting_ns)
    X(samples)
#undef X
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_cost *cost = &analysis->line[i].cost;
        bytes +=
            (double)cost->record_bytes + (double)cost->value_bytes + (double)cost->adjoint_bytes;
        time += (double)cost->forward_ns + (double)cost->backward_ns + (double)cost->recompute_ns +
                (double)cost->other_ns;
    }
    check_sum(bytes, analyze_cost_tape_bytes(all), "tape bytes");
    check_sum(time, analyze_cost_time(all), "time");
    for (size_t i = 0; i < analysis->profile->n_tapes; i++)
        handed_out += (double)analysis->profile->tape[i].handed_out_bytes;
    check_sum(handed_out, analysis->total.handed_out_bytes, "handed out");
}

/* The sum of a profile and itself is twice that, or what a profile may have at most. */
static void check_twice(const struct read_profile *once, const struct read_profile *twice)
{
#define X(name)                                                                                    \
    do {                                                                                           \
        double one = 0, two = 0;                                                                   \
        for (size_t i = 0; i < once->n_tapes; i++)                                                 \
            for (size_t j = 0; j < once->tape[i].n_rows; j++)                                      \
                one += (double)once->tape[i].row[j].name;                                          \
        for (size_t i = 0; i < twice->n_tapes; i++)                                                \
            for (size_t j = 0; j < twice->tape[i].n_rows; j++)                                     \
                two += (double)twice->tape[i].row[j].name;                                         \
        ck_assert_double_eq(two, 2 * one < (double)READ_MOST ? 2 * one : (double)READ_MOST);       \
    } while (0);
    X(calls)
    X(forward_flops)
    X(value_bytes)
#undef X
}

static void add_up(const struct read_profile *profile)
{
    char error[1024] = "";
    const struct read_profile *twice[] = {profile, profile};
    const struct read_symbol *symbol[] = {profile->symbol, profile->symbol};
    const size_t n_symbols[] = {profile->n_symbols, profile->n_symbols};
    ck_assert_msg(read_merge(whole, twice, symbol, n_symbols, 2, error, sizeof error) == 0, "%s",
                  error);
    struct read_profile *sum = read_profile(whole, error, sizeof error);
    ck_assert_msg(sum != NULL, "%s", error);
    check_twice(profile, sum);
    read_profile_free(sum);
}

/* NULL if the reader refuses it, with its reason. */
static struct read_profile *write_and_try(const uint8_t *data, size_t n, char error[1024])
{
    *error = '\0';
    FILE *file = fopen(part, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
    return read_profile(part, error, 1024);
}

static struct read_profile *write_and_read(const uint8_t *data, size_t n)
{
    char error[1024];
    struct read_profile *profile = write_and_try(data, n, error);
    ck_assert_msg(profile != NULL, "%s", error);
    return profile;
}

static struct analyze_result *analyze(struct read_profile *profile)
{
    const size_t n_mappings = profile->n_mappings;
    profile->n_mappings = 0; /* no file that it names is opened */
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    ck_assert_ptr_nonnull(analysis);
    profile->n_mappings = n_mappings;
    return analysis;
}

static void use(const uint8_t *data, size_t n, const struct analyze_result *other)
{
    struct read_profile *profile = write_and_read(data, n);
    struct analyze_result *analysis = analyze(profile);
    check_sums(analysis);
    analyze_map(analysis, "/nowhere", folder);
    analyze_call_through(analysis);
    for (int how = 0; how < 3; how++) {
        struct report_style style = {
            .out = fopen("/dev/null", "w"), .width = 80, .exact = how == 1, .json = how == 2};
        ck_assert_ptr_nonnull(style.out);
        report_lines(analysis, &style);
        report_memory(analysis, &style);
        if (how == 0)
            report_tree_and_exports(analysis, &style);
        report_pairs(analysis, other, &style);
        if (profile->n_events > 0)
            dump(analysis, &style);
        fclose(style.out);
    }
    add_up(profile);
    analyze_free(analysis);
    read_profile_free(profile);
}

/* All numbers at once, then those of each field alone. */
TEST_EACH(any_number_may_be_forged, PROFILE_SEEDS)
{
    static struct maker_bytes seed;
    static uint8_t data[FORGED_BYTES], same[FORGED_BYTES];
    profile_seed_make((unsigned)_i, &seed);
    struct read_profile *profile = write_and_read(seed.data, seed.n);
    struct analyze_result *other = analyze(profile);
    for (size_t i = 0; i < FORGERIES; i++) {
        size_t n = make(data, &seed, NULL, &forgeries[i]);
        use(data, n, other);
        for (size_t j = 0; j < n_fields; j++) {
            if ((i + j + (size_t)_i) % exhaustive_step(STEP) != 0)
                continue;
            const struct forgery none = {.plain = 7};
            n = make(data, &seed, field[j], &forgeries[i]);
            /* Not where the seed lacks the field. */
            if (n != make(same, &seed, field[j], &none) || memcmp(data, same, n) != 0)
                use(data, n, other);
        }
    }
    ck_assert(_i != HAS_SOURCE || n_annotated > 0);
    analyze_free(other);
    read_profile_free(profile);
}

/* Bytes, counts and references of a trace are words of it. The model of the peak multiplies them
 * with one another and with the bytes of lines. */
TEST_EACH(any_word_of_a_trace_may_be_forged, PROFILE_SEEDS)
{
    static const uint32_t forged[] = {UINT32_MAX, 1};
    enum { ALONE = 1000, ALL = sizeof forged / sizeof *forged };
    static const size_t step[] = {ALONE, 8};
    static struct maker_bytes seed;
    static uint8_t data[FORGED_BYTES];
    struct report_style style = {.out = fopen("/dev/null", "w"), .width = 80};
    size_t n_set = 1, n_words = 0, n_read = 0;
    /* Some traces have few words, one of which has to be in the sample. */
    const size_t one_in = exhaustive_is_asked() ? 1 : 31;
    ck_assert_ptr_nonnull(style.out);
    profile_seed_make((unsigned)_i, &seed);
    for (size_t i = 0; n_set > 0; i++)
        for (size_t j = 0; j < sizeof step / sizeof *step * ALL; j++) {
            char error[1024];
            struct forged_words words = {
                .first = i, .step = step[j / ALL], .word = forged[j % ALL]};
            const size_t n = make_with(data, &seed, forge_words, &words);
            n_set = words.set;
            n_words += n_set;
            if (n_set == 0 || (i + j + (size_t)_i) % one_in != 0)
                continue;
            struct read_profile *profile = write_and_try(data, n, error);
            ck_assert_int_eq(profile == NULL, *error != '\0');
            if (!profile)
                continue;
            struct analyze_result *analysis = analyze(profile);
            report_memory(analysis, &style);
            analyze_free(analysis);
            read_profile_free(profile);
            n_read++;
        }
    ck_assert_int_eq(n_read > 0, n_words > 0);
    fclose(style.out);
}

RUN_TESTS(setup, teardown)
