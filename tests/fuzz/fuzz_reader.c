/* fuzz_reader.c: the fuzzer's target: any bytes are read, analysed and reported.
 *
 * May include: profile_seeds.h, profiler/format, analyze, report. Each input is read as it is, and
 * once more with its checksums mended, so that the parser behind them is reached. The profile's
 * modules are hidden from the analysis: their paths would have it open whatever files they name.
 */
#include "analyze.h"
#include "profile_seeds.h"
#include "reader.h"
#include "report.h"
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

static void report_space_and_whatif(const struct prof_analysis *analysis,
                                    const struct report_style *style)
{
    struct prof_space space;
    const struct report_space_options options = {.limit = 20};
    demand(prof_space_make(&space, analysis, PROF_SPACE_BY_CLASS, PROF_AT_PEAK, 0) == 0, "space");
    demand(report_space(analysis, &space, &options, style) == 0, "tape");
    prof_space_free(&space);
    struct prof_whatif whatif;
    bool is_optimal;
    if (prof_whatif_make(&whatif, analysis, false) == 0) {
        demand(report_whatif(analysis, &whatif, 20, style) == 0, "whatif");
        demand(prof_whatif_fit(&whatif, 1000, &is_optimal) >= 0, "whatif with a budget");
    }
    prof_whatif_free(&whatif);
}

/* As trees of every kind, of which each has all that there is. */
static void report_calls(const struct prof_analysis *analysis, const struct report_style *style)
{
    for (int how = 0; how < 8; how++) {
        const struct prof_tree_options options = {
            .inverted = how & 1, .combine = how & 2, .flat = how & 4};
        const struct report_tree_options look = {.inverted = how & 1};
        size_t n;
        struct prof_tree *tree = prof_tree_make(analysis, &options);
        demand(tree != NULL, "a profile of this size has a tree");
        demand(memcmp(&tree->node[0].all, &analysis->sum, sizeof analysis->sum) == 0,
               "the tree has all");
        demand(report_tree(tree, &look, style) == 0, "tree");
        struct prof_line *line = prof_tree_inclusive(tree, &n);
        demand(line != NULL, "lines with what they call");
        free(line);
        prof_tree_free(tree);
    }
}

static void report(struct prof_profile *profile)
{
    size_t n_mappings = profile->n_mappings, n;
    profile->n_mappings = 0;
    struct prof_analysis *analysis = prof_analyze(profile, NULL, NULL);
    demand(analysis != NULL, "a profile of this size can be analysed");
    char *text = NULL;
    struct report_style style = {.out = open_memstream(&text, &n), .width = 80};
    demand(style.out != NULL, "there is memory for the report");
    demand(report_top(analysis, PROF_BY_LINE, REPORT_SORT_TAPE, 20, &style) == 0, "top by line");
    demand(report_top(analysis, PROF_BY_OP, REPORT_SORT_TOTAL, 0, &style) == 0, "top by op");
    demand(report_scopes(analysis, REPORT_SORT_TOTAL, 0, &style) == 0, "top by scope");
    demand(report_scopes_csv(analysis, &style) == 0, "scopes as CSV");
    demand(report_info(analysis, &style) == 0, "info");
    report_calls(analysis, &style);
    report_summary(analysis, &style);
    report_space_and_whatif(analysis, &style);
    fclose(style.out);
    for (size_t i = 0; i < n; i++)
        demand(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f),
               "a report has no control characters");
    free(text);
    prof_analysis_free(analysis);
    profile->n_mappings = n_mappings;
}

static void use(uint8_t *data, size_t n)
{
    char error[1024] = "";
    FILE *stream = fmemopen(data, n, "r");
    demand(stream != NULL, "the input can be opened");
    struct prof_profile *profile = prof_profile_read_stream(stream, "x.prof", error, sizeof error);
    fclose(stream);
    demand((profile == NULL) == (error[0] != '\0'), "either a profile or an error");
    demand(!strchr(error, '\n'), "an error is one line");
    if (!profile)
        return;
    demand(profile->complete || profile->warning, "what is missing is said");
    demand(!profile->warning || !strchr(profile->warning, '\n'), "a warning is one line");
    report(profile);
    prof_profile_free(profile);
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
