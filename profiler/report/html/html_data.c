/* html_data.c: the document that the page shows. See html_data.h. */
#include "html_data.h"

#include "base_memory.h"
#include "base_strings.h"
#include "report_findings.h"
#include "report_howto.h"
#include "report_source_text.h"
#include "report_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCE = 2 << 20, MOST_SOURCES = 16 << 20 }; /* bytes of one file, of all */

/* Lines with what is known of them alone: the ratio that their counts let expect. */
static void put_lines(struct html_data *data)
{
    struct base_json *json = &data->json;
    const struct analyze_result *analysis = data->analysis;
    const struct analyze_roof roof = analyze_roof(analysis);
    base_json_object(json, "roof");
    base_json_double(json, "flops_per_ns", roof.flops_per_ns);
    base_json_double(json, "bytes_per_ns", roof.bytes_per_ns);
    base_json_end(json);
    base_json_object(json, "lines");
    base_json_array(json, "expected_ratio");
    for (size_t i = 0; i < analysis->n_lines; i++)
        base_json_double(json, NULL, analyze_cost_expected_ratio(&analysis->line[i].cost, &roof));
    base_json_end(json);
    base_json_array(json, "slow_backward");
    for (size_t i = 0; i < analysis->n_lines; i++)
        if (analyze_line_is_slow_backward(&analysis->line[i], analysis, &roof))
            base_json_u64(json, NULL, i);
    base_json_end(json);
    const struct html_lines lines = {analysis->line, sizeof *analysis->line, analysis->n_lines};
    html_put_places(data, "", lines);
    html_put_costs(data, "", lines);
    base_json_end(json);
}

static bool data_is_wanted(const struct html_data *data, const char *file)
{
    switch (data->options->sources) {
    case HTML_SOURCES_ALL:
        return true;
    case HTML_SOURCES_NONE:
        return false;
    case HTML_SOURCES_PROJECT:
        break;
    }
    return strncmp(file, "/usr/", strlen("/usr/")) != 0;
}

static size_t html_bytes_of(const struct report_source_text *source)
{
    size_t n = 0;
    for (size_t i = 0; i < source->n_lines; i++)
        n += strlen(source->line[i]) + 1;
    return n;
}

/* Returns 0, or an error number where there is no text. */
static int data_put_text(struct html_data *data, const char *file, size_t *room)
{
    struct base_json *json = &data->json;
    struct report_source_text source;
    int error = report_source_text_read(&source, file);
    const size_t n = error == 0 ? html_bytes_of(&source) : 0;
    if (error == 0 && (n > MOST_SOURCE || n > *room))
        error = EFBIG;
    if (error == 0) {
        *room -= n;
        base_json_array(json, "text");
        for (size_t i = 0; i < source.n_lines; i++)
            base_json_text(json, NULL, source.line[i]);
        base_json_end(json);
    }
    report_source_text_free(&source);
    return error;
}

/* Sources without text that were asked for: the first one, its error, and how many. */
struct unread {
    const char *file;
    int error;
    size_t n;
};

static void say_unread(const struct html_data *data, const struct unread *unread)
{
    char message[4096], more[64] = "";
    if (unread->n == 0 || !data->options->warn)
        return;
    if (unread->n > 1)
        snprintf(more, sizeof more, " (and %zu more)", unread->n - 1);
    snprintf(message, sizeof message, "%.3000s%s: %s: showing line numbers without text",
             unread->file, more, strerror(unread->error));
    data->options->warn(data->options->warn_payload, message);
}

static int put_file(struct html_data *data, const char *file, size_t *room)
{
    struct base_json *json = &data->json;
    int error = 0;
    base_json_object(json, NULL);
    base_json_u64(json, "file", html_string(&data->strings, file));
    if (!data_is_wanted(data, file))
        base_json_text(json, "why", "not asked for (--source)");
    else if ((error = data_put_text(data, file, room)) != 0)
        base_json_text(json, "why", strerror(error));
    base_json_end(json);
    return error;
}

/* The files that places have named, with their text as the options say. */
static void put_files(struct html_data *data)
{
    struct unread unread = {NULL, 0, 0};
    size_t room = MOST_SOURCES;
    base_json_array(&data->json, "files");
    for (size_t i = 0; i < data->n_files; i++) {
        const int error = put_file(data, data->file[i], &room);
        if (error != 0 && unread.n++ == 0) {
            unread.file = data->file[i];
            unread.error = error;
        }
    }
    base_json_end(&data->json);
    say_unread(data, &unread);
}

static void put_strings(struct html_data *data)
{
    struct base_json *json = &data->json;
    html_string(&data->strings, "");
    base_json_array(json, "strings");
    for (size_t i = 0; i < data->strings.n; i++)
        base_json_name(json, NULL, data->strings.text[i]);
    base_json_end(json);
}

/* What stands out: the words, and as columns the places that they are about. */
static void put_findings(struct html_data *data)
{
    const struct report_sizes *sizes = data->options->growth;
    const struct report_style words = {.utf8 = true};
    struct report_growth growth;
    struct report_findings findings;
    if (sizes)
        report_growth_make(&growth, sizes, ANALYZE_BY_LINE, REPORT_BYTES_TAPE);
    const struct report_known known = {sizes ? &growth : NULL, sizes, &data->proposals};
    report_findings_make(&findings, data->analysis, &known, &words);
    report_findings_json(&data->json, &findings);
    base_json_object(&data->json, "finding_places");
    const struct report_finding *first = findings.finding;
    html_put_places(data, "", (struct html_lines){&first->line, sizeof *first, findings.n});
    base_json_end(&data->json);
    base_json_array(&data->json, "howtos"); /* the text of each page that is named */
    for (size_t i = 0; i < findings.n; i++) {
        char *text =
            findings.finding[i].howto ? report_howto_text(findings.finding[i].howto) : NULL;
        base_json_text(&data->json, NULL, text);
        free(text);
    }
    base_json_end(&data->json);
    report_findings_free(&findings);
    if (sizes)
        report_growth_free(&growth);
}

/* Sources that were changed since the program was built: their text is not what was measured. */
static void put_newer(struct html_data *data)
{
    const struct analyze_result *analysis = data->analysis;
    const char *first = NULL, *last = NULL;
    size_t n = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const char *file = analysis->line[i].file;
        if (!file || (last && strcmp(file, last) == 0))
            continue;
        last = file;
        if (!data_is_wanted(data, file) || !report_source_text_is_newer(file, analysis->profile))
            continue;
        first = first ? first : file;
        n++;
    }
    if (n == 0)
        return;
    char more[64] = "";
    if (n > 1)
        snprintf(more, sizeof more, " (and %zu more)", n - 1);
    char *text = base_asprintf("%s%s %s newer than the program: costs may stand beside other lines "
                               "than those that were measured.",
                               base_file_name(first), more, n == 1 ? "is" : "are");
    base_json_text(&data->json, NULL, text);
    text[strlen(text) - 1] = '\0'; /* a message is no sentence */
    if (data->options->warn)
        data->options->warn(data->options->warn_payload, text);
    free(text);
}

/* What the command says of a profile beside its own warning, as sentences. */
static void put_warnings(struct html_data *data)
{
    const struct analyze_result *analysis = data->analysis;
    struct base_json *json = &data->json;
    size_t n;
    base_json_array(json, "warnings");
    if (analysis->n_unusable > 0) {
        char text[128];
        snprintf(text, sizeof text, "The symbols of %zu file%s could not be used.",
                 analysis->n_unusable, analysis->n_unusable == 1 ? "" : "s");
        base_json_text(json, NULL, text);
    }
    static void (*const note[])(const struct analyze_result *, FILE *) = {report_text_untimed_note,
                                                                          report_text_unlined_note};
    for (size_t i = 0; i < sizeof note / sizeof *note; i++) {
        char *text;
        FILE *memory = base_memstream_open(&text, &n);
        note[i](analysis, memory);
        base_memstream_close(memory, &text);
        if (n > 0) {
            text[n - 1] = 0; /* the end of its line */
            base_json_text(json, NULL, text);
        }
        free(text);
    }
    put_newer(data);
    base_json_end(json);
}

void html_put_data(FILE *out, const struct analyze_result *analysis,
                   const struct html_options *options)
{
    static void (*const section[])(struct html_data *) = {
        html_put_tree,     html_put_space, html_put_whatif, html_put_scopes,
        html_put_patterns, html_put_diff,  html_put_growth, put_files};
    static const char *const theme[] = {"auto", "light", "dark"};
    struct html_data data = {.analysis = analysis, .options = options};
    data.tree = analyze_tree_make(analysis, &(struct analyze_tree_options){0});
    analyze_proposals_make(&data.proposals, analysis, data.tree);
    report_json_begin(&data.json, out, "html");
    base_json_text(&data.json, "theme", theme[options->theme]);
    report_json_profile(&data.json, "profile", analysis->profile);
    report_json_totals(&data.json, "total", analysis);
    char part[REPORT_TEXT_PART_ROOM];
    if (report_text_part(part, analysis, true))
        base_json_text(&data.json, "ad_part", part);
    else
        base_json_null(&data.json, "ad_part");
    put_warnings(&data);
    base_json_bool(&data.json, "sampled", analysis->profile->is_sampled);
    base_json_u64(&data.json, "overhead_ns", analysis->total.overhead_ns);
    base_json_u64(&data.json, "lines_left_out", analysis->n_left_out);
    html_put_facts(&data);
    put_findings(&data);
    put_lines(&data);
    for (size_t i = 0; i < sizeof section / sizeof *section; i++)
        section[i](&data);
    put_strings(&data);
    base_json_finish(&data.json);
    base_strings_free(&data.strings);
    analyze_proposals_free(&data.proposals);
    analyze_tree_free(data.tree);
    free(data.file);
}
