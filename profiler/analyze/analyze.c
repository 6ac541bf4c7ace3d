/* analyze.c: rows to lines, and the totals.
 *
 * See analyze.h for the invariant.
 */
#include "analyze.h"
#include "base_number.h"

#include "analyze_map.h"
#include "analyze_merge.h"
#include "analyze_places.h"
#include "analyze_samples.h"
#include "analyze_sites.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

static void count_and_warn(void *payload, const char *message)
{
    struct analyze_result *analysis = payload;
    analysis->n_unusable++;
    if (analysis->warn)
        analysis->warn(analysis->warn_payload, message);
}

static struct symbols *open_symbols(struct analyze_result *analysis,
                                    const struct analyze_result *beside)
{
    const struct read_profile *profile = analysis->profile;
    struct symbols_module *module = base_calloc(profile->n_mappings + 1, sizeof *module);
    for (size_t i = 0; i < profile->n_mappings; i++) {
        const struct read_mapping *mapping = &profile->mapping[i];
        module[i] = (struct symbols_module){
            .path = mapping->path,
            .build_id = mapping->build_id_bytes ? mapping->build_id : NULL,
            .build_id_bytes = mapping->build_id_bytes,
            .start = mapping->start,
            .end = mapping->end,
            .bias = mapping->bias,
        };
    }
    struct symbols *symbols = symbols_open_beside(module, profile->n_mappings, count_and_warn,
                                                  analysis, beside ? beside->symbols : NULL);
    free(module);
    return symbols;
}

/* Into an empty list; no name is none. */
static void first_name(struct analyze_names *names, const char *name)
{
    if (name && *name)
        names->name[names->n++] = name;
}

void analyze_line_of_row(const struct analyze_result *analysis, const struct read_row *row,
                         struct analyze_line *line)
{
    struct symbols_place place = analyze_place(analysis, row->pc, row->line);
    *line = (struct analyze_line){
        .own = row->pc == 0,
        .file = place.file,
        .function = place.function,
        .module = place.module,
        .line = place.line,
        .function_line = place.function_line,
        .offset = place.file ? 0 : place.offset,
        .shape = row->shape,
        .kept_by.more = row->kept_others,
        .cost = analyze_row_cost(analysis->profile, row, true),
    };
    first_name(&line->ops, row->op);
    first_name(&line->kept_by, row->kept_by);
}

/* A line for each site, with the cost of all of its rows. */
static void fill_lines(struct analyze_result *analysis, const struct analyze_sites *sites)
{
    const struct read_profile *profile = analysis->profile;
    const size_t peak = analyze_peak_tape(profile);
    const uint32_t *of = sites->of;
    for (size_t i = 0; i < sites->n; i++) {
        analyze_line_of_row(analysis, sites->row[i], &analysis->line[i]);
        analysis->line[i].cost = (struct analyze_cost){0};
    }
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++) {
            const struct analyze_cost cost =
                analyze_row_cost(profile, &profile->tape[i].row[j], i == peak);
            analyze_cost_add(&analysis->line[*of++].cost, &cost);
        }
    analysis->n_lines = sites->n;
}

size_t analyze_peak_tape(const struct read_profile *profile)
{
    size_t best = 0;
    for (size_t i = 1; i < profile->n_tapes; i++)
        if (profile->tape[i].peak_bytes > profile->tape[best].peak_bytes)
            best = i;
    return best;
}

struct analyze_totals analyze_profile_totals(const struct read_profile *profile)
{
    struct analyze_totals sum = {0}, *total = &sum;
    for (size_t i = 0; i < profile->n_tapes; i++) {
        const struct read_tape *tape = &profile->tape[i];
        total->forward_ticks += tape->forward_ticks;
        total->backward_ticks += tape->backward_ticks;
        total->recompute_ticks += tape->recompute_ticks;
        total->handed_out_bytes += tape->handed_out_bytes;
        total->live_bytes += tape->live_bytes;
        total->sweeps += tape->sweeps;
        total->records += tape->records;
        total->tapes += tape->tapes;
        total->spilled_bytes += tape->spilled_bytes;
        total->memory_peak_bytes = base_greater(total->memory_peak_bytes, tape->memory_peak_bytes);
        total->disk_write_ns += read_profile_ns(profile, tape->disk_write_ticks);
        total->disk_read_ns += read_profile_ns(profile, tape->disk_read_ticks);
        total->peak_bytes = base_greater(total->peak_bytes, tape->peak_bytes);
        total->reserved_bytes = base_greater(total->reserved_bytes, tape->reserved_bytes);
        total->touched_bytes = base_greater(total->touched_bytes, tape->touched_bytes);
    }
    total->forward_ns = read_profile_ns(profile, total->forward_ticks);
    total->backward_ns = read_profile_ns(profile, total->backward_ticks);
    total->recompute_ns = read_profile_ns(profile, total->recompute_ticks);
    total->overhead_ns = read_profile_ns(profile, profile->overhead_ticks);
    return sum;
}

static void analyze_set_times(struct analyze_result *analysis)
{
    struct analyze_times times = {0};
    for (size_t i = 0; i < analysis->n_lines; i++) {
        struct analyze_cost *cost = &analysis->line[i].cost;
        analyze_round_times(&times, analysis->profile, cost);
        analyze_cost_add(&analysis->sum, cost);
        analysis->n_unlined += analyze_is_unlined(&analysis->line[i]);
    }
}

/* The tape has rows for what may be: those that never were say nothing. */
static void drop_empty(struct analyze_result *analysis)
{
    size_t kept = 0;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (line->own && analyze_cost_is_nothing(&line->cost) && !(line->cost.byte_ns > 0))
            continue;
        if (kept != i)
            analysis->line[kept] = *line;
        kept++;
    }
    analysis->n_lines = kept;
}

/* Makes the lines of an analysis that has none; beside: whose symbols it shares, or NULL. */
static void analyze_join(struct analyze_result *analysis, const struct analyze_result *beside)
{
    const struct read_profile *profile = analysis->profile;
    struct analyze_sites sites;
    if (!analysis->symbols) {
        analysis->symbols = open_symbols(analysis, beside);
        analysis->n_mappings = profile->n_mappings;
    }
    analyze_sites_make(&sites, profile);
    analysis->line = base_calloc(sites.n + profile->n_samples + 1, sizeof *analysis->line);
    fill_lines(analysis, &sites);
    analyze_sites_free(&sites);
    analyze_samples(analysis);
    analysis->n_lines =
        analyze_merge(analysis->line, analysis->n_lines, ANALYZE_BY_LINE_OP_AND_SHAPE);
    drop_empty(analysis);
    analyze_set_times(analysis);
    analysis->total = analyze_profile_totals(profile);
    analyze_sum_samples(analysis);
}

struct analyze_result *analyze_profile_beside(const struct read_profile *profile,
                                              analyze_warn_fn *warn, void *payload,
                                              const struct analyze_result *beside)
{
    struct analyze_result *analysis = base_calloc(1, sizeof *analysis);
    analysis->profile = profile;
    analysis->warn = warn;
    analysis->warn_payload = payload;
    analyze_join(analysis, beside);
    return analysis;
}

struct analyze_result *analyze_profile(const struct read_profile *profile, analyze_warn_fn *warn,
                                       void *payload)
{
    return analyze_profile_beside(profile, warn, payload, NULL);
}

void analyze_again(struct analyze_result *analysis, const struct read_profile *profile)
{
    const struct analyze_result before = *analysis;
    free(before.line);
    free(before.through);
    *analysis = (struct analyze_result){.profile = profile,
                                        .symbols = before.symbols,
                                        .n_mappings = before.n_mappings,
                                        .map = before.map,
                                        .libraries = before.libraries,
                                        .threads = before.threads,
                                        .warn = before.warn,
                                        .warn_payload = before.warn_payload};
    if (analysis->symbols && analysis->n_mappings != profile->n_mappings) {
        symbols_close(analysis->symbols);
        analysis->symbols = NULL;
    }
    analyze_join(analysis, NULL);
}

void analyze_show_libraries(struct analyze_result *analysis)
{
    analysis->libraries = true;
    analyze_again(analysis, analysis->profile);
}

void analyze_free(struct analyze_result *analysis)
{
    if (!analysis)
        return;
    symbols_close(analysis->symbols);
    analyze_map_free(analysis->map);
    free(analysis->through);
    free(analysis->line);
    free(analysis);
}

/* Whether path ends in `end` at the start of a component. */
static bool has_suffix(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return m > 0 && n > m && strcmp(path + n - m, end) == 0 &&
           (end[0] == '/' || path[n - m - 1] == '/');
}

static bool is_found(const char *const *file, size_t n, const char *candidate)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(file[i], candidate) == 0)
            return true;
    return false;
}

/* Lines are by file, but for those that hold what they called, whose files may come again. */
static size_t find_files(const struct analyze_result *analysis, const char *path, bool whole,
                         const char **file, size_t room)
{
    size_t n = 0;
    const char *last = NULL;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const char *candidate = analysis->line[i].file;
        if (!candidate || candidate == last)
            continue;
        last = candidate;
        if (path && !(whole ? strcmp(candidate, path) == 0 : has_suffix(candidate, path)))
            continue;
        if (is_found(file, n < room ? n : room, candidate))
            continue;
        if (n < room)
            file[n] = candidate;
        n++;
    }
    return n;
}

size_t analyze_files(const struct analyze_result *analysis, const char *path, const char **file,
                     size_t room)
{
    size_t n = path ? find_files(analysis, path, true, file, room) : 0;
    return n > 0 ? n : find_files(analysis, path, false, file, room);
}

void analyze_map(struct analyze_result *analysis, const char *from, const char *to)
{
    struct analyze_map *map = analyze_map_add(&analysis->map, from, to);
    for (size_t i = 0; i < analysis->n_lines; i++)
        analysis->line[i].file = analyze_map_file(map, analysis->line[i].file);
    analysis->n_lines =
        analyze_merge(analysis->line, analysis->n_lines, ANALYZE_BY_LINE_OP_AND_SHAPE);
    for (size_t i = 1; i < analysis->n_lines; i++) { /* equal files are one pointer */
        const char *before = analysis->line[i - 1].file;
        if (before && analysis->line[i].file && strcmp(before, analysis->line[i].file) == 0)
            analysis->line[i].file = before;
    }
}

void analyze_select(struct analyze_result *analysis,
                    bool (*keep)(void *payload, const struct analyze_line *line), void *payload)
{
    size_t kept = 0;
    analysis->roof_of_all = analyze_roof(analysis);
    analysis->keep = keep;
    analysis->keep_payload = payload;
    for (size_t i = 0; i < analysis->n_lines; i++) {
        const struct analyze_line *line = &analysis->line[i];
        if (keep(payload, line)) {
            analysis->line[kept++] = *line;
            continue;
        }
        analyze_cost_add(&analysis->left_out, &line->cost);
        analysis->n_left_out++;
        analysis->n_unlined -= analyze_is_unlined(line);
    }
    analysis->n_lines = kept;
}

bool analyze_keeps(const struct analyze_result *analysis, const struct analyze_line *line)
{
    return !analysis->keep || analysis->keep(analysis->keep_payload, line);
}
