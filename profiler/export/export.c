/* export.c: the table of formats, and what all of them call the same. */
#include "export.h"

#include "export_formats.h"

#define ROW(X, name, ...) #name,
const char *const export_format_names[EXPORT_KINDS + 1] = {EXPORT_FORMATS(ROW, )};
#undef ROW

enum { NEEDS_TEXT, NEEDS_RAW = 0, NEEDS_JSON = 0, NEEDS_BINARY = EXPORT_BINARY };
enum { NEEDS_CALLS, NEEDS_CALLERS = EXPORT_CALLERS, NEEDS_RANKS = EXPORT_RANKS };
enum {
    NEEDS_NONE,
    NEEDS_PARTS = EXPORT_PARTS,
    NEEDS_SPLIT = EXPORT_SPLIT,
    NEEDS_ORDER = EXPORT_ORDER
};
#define ROW(X, name, form, tree, phases, opener, command, has)                                     \
    {#name, opener, has, NEEDS_##form | NEEDS_##tree | NEEDS_##phases, export_##name},
const struct export_format export_formats[EXPORT_KINDS] = {EXPORT_FORMATS(ROW, )};
#undef ROW

const char *const export_metric_names[EXPORT_CHOICES + 1] = {
    [EXPORT_TIME] = "time",       [EXPORT_FORWARD] = "forward",     [EXPORT_BACKWARD] = "backward",
    [EXPORT_CALLS] = "calls",     [EXPORT_RECOMPUTE] = "recompute", [EXPORT_TAPE] = "tape",
    [EXPORT_PEAK] = "peak",       [EXPORT_OTHER] = "other",         [EXPORT_WAITING] = "waiting",
    [EXPORT_SAMPLES] = "samples", [EXPORT_LIFETIME] = "lifetime",
};

#define ROW(X, NAME, name, ...) [READ_PHASE_##NAME] = #name,
const char *const export_phase_names[READ_PHASES] = {"other", PHASE_LIST(ROW, )};
#undef ROW

static const char ns[] = "nanoseconds", bytes[] = "bytes", count[] = "count";

const char *const export_metric_units[EXPORT_METRICS] = {
    [EXPORT_TIME] = ns,       [EXPORT_FORWARD] = ns,  [EXPORT_BACKWARD] = ns,
    [EXPORT_RECOMPUTE] = ns,  [EXPORT_CALLS] = count, [EXPORT_TAPE] = bytes,
    [EXPORT_PEAK] = bytes,    [EXPORT_OTHER] = ns,    [EXPORT_WAITING] = ns,
    [EXPORT_SAMPLES] = count,
};

uint64_t export_cost(const struct analyze_cost *cost, enum export_metric metric)
{
    switch (metric) {
    case EXPORT_TIME:
        return analyze_cost_time(cost);
    case EXPORT_FORWARD:
        return cost->forward_ns;
    case EXPORT_BACKWARD:
        return cost->backward_ns;
    case EXPORT_RECOMPUTE:
        return cost->recompute_ns;
    case EXPORT_CALLS:
        return cost->calls;
    case EXPORT_TAPE:
        return analyze_cost_tape_bytes(cost);
    case EXPORT_PEAK:
        return cost->peak_bytes;
    case EXPORT_OTHER:
        return cost->other_ns;
    case EXPORT_WAITING:
        return cost->waiting_ns;
    case EXPORT_LIFETIME:
        return read_whole(cost->byte_ns / 1e3);
    case EXPORT_SAMPLES:
    case EXPORT_CHOICES:
        break;
    }
    return cost->samples;
}

bool export_has(const struct read_profile *profile, enum export_metric metric)
{
    if (metric == EXPORT_LIFETIME)
        return !profile->without_times && !profile->is_sampled;
    return metric < EXPORT_OTHER || profile->n_samples > 0;
}

const struct read_tape *export_peak_tape(const struct read_profile *profile)
{
    return profile->n_tapes > 0 ? &profile->tape[analyze_peak_tape(profile)] : NULL;
}

int export_no_bytes(const struct export_job *job)
{
    snprintf(job->error, job->error_room,
             "%s: it does not know what tapes held and when; record that by: tapescope record "
             "(with --time=sampled also --tape=on) -- ./program",
             job->analysis->profile->path);
    return 1;
}
