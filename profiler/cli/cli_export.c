/* cli_export.c: see cli_export.h. */
#include "cli_export.h"

#include "cli_filter.h"

static int write_format(const struct export_job *job, const struct export_format *format)
{
    const int status = format->write(job);
    if (status != 0)
        cli_message("export: %s", job->error);
    return status == 0 ? CLI_OK : CLI_FAILED;
}

int cli_export_to(FILE *out, const struct analyze_result *analysis, enum export_kind kind,
                  const struct cli_args *args, const struct cli_export_args *export_args)
{
    char error[4096];
    const struct export_format *format = &export_formats[kind];
    struct cli_filter filter;
    int status = cli_filter_open(&filter, args);
    if (status != CLI_OK)
        return status;
    const struct analyze_tree_options how = {
        .inverted = (format->needs & EXPORT_CALLERS) != 0,
        .combine = export_args->by == 1,
        .system = export_args->frames == CLI_FRAMES_ALL,
        .focus = filter.has_focus ? cli_filter_focus : NULL,
        .ignore = filter.has_ignore ? cli_filter_ignore : NULL,
        .payload = &filter,
        .parts = (format->needs & EXPORT_PARTS) != 0 ||
                 ((format->needs & EXPORT_SPLIT) != 0 && export_args->split),
    };
    struct analyze_tree *tree = analyze_tree_make(analysis, &how);
    const struct export_job job = {
        .analysis = analysis,
        .tree = tree,
        .metric = (enum export_metric)export_args->metric,
        .split = export_args->split,
        .out = out,
        .error = error,
        .error_room = sizeof error,
    };
    if (tree->too_large)
        cli_message("export: %s: too many call paths: some are cut", analysis->profile->path);
    status = write_format(&job, format);
    analyze_tree_free(tree);
    cli_filter_close(&filter);
    return status;
}
