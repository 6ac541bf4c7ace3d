/* report_written.c: what a command has put into a profile. */
#include "report.h"

#include "report_json.h"

void report_written(const struct read_profile *written, uint64_t bytes, const char *command,
                    const struct read_profile *const *from, size_t n,
                    const struct report_style *style)
{
    struct base_json json;
    uint64_t tapes = 0, rows = 0, classes = 0;
    for (size_t i = 0; i < written->n_tapes; i++) {
        tapes += written->tape[i].tapes;
        rows += written->tape[i].n_rows;
        classes += written->tape[i].n_residuals;
    }
    report_json_begin(&json, style->out, command);
    report_json_profile(&json, "profile", written);
    base_json_array(&json, "from");
    for (size_t i = 0; i < n; i++)
        base_json_text(&json, NULL, from[i]->path);
    base_json_end(&json);
    base_json_u64(&json, "bytes", bytes);
    base_json_u64(&json, "packets", written->n_packets);
    base_json_u64(&json, "tapes", tapes);
    base_json_u64(&json, "rows", rows);
    base_json_u64(&json, "residual_classes", classes);
    base_json_u64(&json, "call_paths", written->n_call_paths);
    base_json_u64(&json, "scopes", written->n_scopes);
    base_json_u64(&json, "samples", written->n_samples);
    base_json_u64(&json, "threads", written->n_threads);
    base_json_u64(&json, "events", written->n_events);
    base_json_u64(&json, "symbols", written->n_symbols);
    base_json_finish(&json);
}
