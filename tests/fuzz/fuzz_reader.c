/* fuzz_reader.c: the fuzzer's target: any bytes are read, analysed and reported.
 *
 * Each input is read as it is, and once more with its checksums mended, so that the parser behind
 * them is reached. The profile's modules are hidden from the analysis: their paths would have it
 * open whatever files they name.
 */
#include "analyze.h"
#include "export.h"
#include "profile_seeds.h"
#include "read.h"
#include "report.h"
#include "report_dump.h"
#include "report_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void demand(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "fuzz_reader: not so: %s\n", what);
    abort();
}

static void report_space_and_whatif(const struct analyze_result *analysis,
                                    const struct report_style *style)
{
    struct analyze_space space;
    const struct report_space_options options = {.limit = 20};
    demand(analyze_space_make(&space, analysis, ANALYZE_SPACE_BY_CLASS, ANALYZE_AT_PEAK, 0) == 0,
           "space");
    report_space(analysis, &space, &options, style);
    analyze_space_free(&space);
    struct analyze_whatif whatif;
    bool is_optimal;
    if (analyze_whatif_make(&whatif, analysis, false) == 0) {
        report_whatif(analysis, &whatif, 20, style);
        demand(analyze_whatif_fit(&whatif, 1000, &is_optimal) >= 0, "whatif with a budget");
    }
    analyze_whatif_free(&whatif);
}

/* As trees of every kind, of which each has all that there is. */
static void report_calls(const struct analyze_result *analysis, const struct report_style *style)
{
    for (int how = 0; how < 8; how++) {
        const struct analyze_tree_options options = {
            .inverted = how & 1, .combine = how & 2, .flat = how & 4};
        const struct report_tree_options look = {.inverted = how & 1};
        size_t n;
        struct analyze_tree *tree = analyze_tree_make(analysis, &options);
        demand(tree != NULL, "a profile of this size has a tree");
        demand(memcmp(&tree->node[0].all, &analysis->sum, sizeof analysis->sum) == 0,
               "the tree has all");
        report_tree(tree, &look, style);
        struct analyze_line *line = analyze_tree_inclusive(tree, &n);
        demand(line != NULL, "lines with what they call");
        free(line);
        struct analyze_tree *flat = analyze_tree_flatten(tree);
        report_tree(flat, &look, style);
        analyze_tree_free(flat);
        analyze_tree_free(tree);
    }
}

/* The timeline is read from a file, which there is none of. */
static void export_all(const struct analyze_result *analysis)
{
    for (int i = 0; i < EXPORT_KINDS; i++) {
        char error[1024] = "", *data = NULL;
        size_t n;
        const struct analyze_tree_options how = {
            .inverted = (export_formats[i].needs & EXPORT_CALLERS) != 0, .parts = true};
        struct analyze_tree *tree = analyze_tree_make(analysis, &how);
        demand(tree != NULL, "a profile of this size has a tree");
        const struct export_job job = {.analysis = analysis,
                                       .tree = tree,
                                       .metric = EXPORT_TAPE,
                                       .out = open_memstream(&data, &n),
                                       .error = error,
                                       .error_room = sizeof error};
        demand(job.out != NULL, "there is memory for the export");
        demand(export_formats[i].write(&job) == (*error ? 1 : 0), "an export, or an error");
        fclose(job.out);
        free(data);
        analyze_tree_free(tree);
    }
}

static void report(struct read_profile *profile)
{
    size_t n_mappings = profile->n_mappings, n;
    profile->n_mappings = 0;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    demand(analysis != NULL, "a profile of this size can be analysed");
    char *text = NULL;
    struct report_style style = {.out = open_memstream(&text, &n), .width = 80};
    demand(style.out != NULL, "there is memory for the report");
    report_top(analysis, ANALYZE_BY_LINE, REPORT_SORT_TAPE, 20, &style);
    report_top(analysis, ANALYZE_BY_OP, REPORT_SORT_TOTAL, 0, &style);
    report_top(analysis, ANALYZE_BY_SHAPE, REPORT_SORT_PEAK, 0, &style);
    analyze_call_through(analysis);
    report_scopes(analysis, REPORT_SORT_TOTAL, 0, &style);
    report_scopes_csv(analysis, &style);
    report_info(analysis, &style);
    report_calls(analysis, &style);
    report_summary(analysis, &style);
    report_space_and_whatif(analysis, &style);
    export_all(analysis);
    fclose(style.out);
    for (size_t i = 0; i < n; i++)
        demand(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f),
               "a report has no control characters");
    free(text);
    analyze_free(analysis);
    profile->n_mappings = n_mappings;
}

static void take_event(void *payload, const struct read_profile *profile,
                       const struct read_event *event)
{
    (void)profile;
    report_dump_event(payload, event);
}

/* The events of the input, of which this is the profile, one by one. */
static void dump(uint8_t *data, size_t n, struct read_profile *profile, bool json)
{
    const size_t n_mappings = profile->n_mappings;
    const struct report_dump_options options = {.to_ns = UINT64_MAX};
    char *text = NULL, error[1024] = "";
    size_t bytes;
    struct report_style style = {
        .out = open_memstream(&text, &bytes), .width = 80, .exact = true, .json = json};
    FILE *stream = fmemopen(data, n, "r");
    demand(style.out != NULL && stream != NULL, "there is memory for the events");
    profile->n_mappings = 0;
    struct analyze_result *analysis = analyze_profile(profile, NULL, NULL);
    demand(analysis != NULL, "a profile of this size can be analysed");
    struct report_dump *made = report_dump_open(analysis, &options, &style);
    demand(made != NULL, "a profile of this size can be dumped");
    struct read_profile *again =
        read_profile_events_stream(stream, "x.prof", take_event, made, error, sizeof error);
    demand(again != NULL, "what was read can be read again");
    report_dump_close(made, true);
    fclose(style.out);
    for (size_t i = 0; i < bytes; i++)
        demand(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f),
               "a dump has no control characters");
    free(text);
    fclose(stream);
    read_profile_free(again);
    analyze_free(analysis);
    profile->n_mappings = n_mappings;
}

static void use(uint8_t *data, size_t n)
{
    char error[1024] = "";
    FILE *stream = fmemopen(data, n, "r");
    demand(stream != NULL, "the input can be opened");
    struct read_profile *profile = read_profile_stream(stream, "x.prof", error, sizeof error);
    fclose(stream);
    demand((profile == NULL) == (error[0] != '\0'), "either a profile or an error");
    demand(!strchr(error, '\n'), "an error is one line");
    if (!profile)
        return;
    demand(profile->complete || profile->warning, "what is missing is said");
    demand(!profile->warning || !strchr(profile->warning, '\n'), "a warning is one line");
    report(profile);
    if (profile->n_events > 0) {
        dump(data, n, profile, false);
        dump(data, n, profile, true);
    }
    read_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    uint8_t *copy = malloc(n);
    demand(copy != NULL, "there is memory for the input");
    memcpy(copy, data, n);
    use(copy, n);
    profile_seed_repair(copy, n);
    use(copy, n);
    free(copy);
    return 0;
}
