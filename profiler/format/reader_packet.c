/* reader_packet.c: applies packets other than a tape's state, and what follows the last packet.
 *
 * May include: profiler/file, protobuf-c. See reader_state.h for the invariant.
 */
#include "reader_state.h"

#include <stdlib.h>
#include <string.h>

enum { PROFILE_VERSION = 1 };

static enum reader_status apply_header(struct reader_state *state, const Tapescope__Header *header)
{
    struct prof_profile *profile = state->profile;
    if (state->has_header || header->version != PROFILE_VERSION)
        return READER_BAD;
    profile->library_version = strdup(header->library_version);
    profile->program = strdup(header->program);
    profile->working_directory = strdup(header->working_directory);
    profile->clock = strdup(header->clock);
    profile->collector = strdup(header->collector);
    profile->options = strdup(header->options);
    profile->argument = calloc(header->n_argument + 1, sizeof *profile->argument);
    if (!profile->library_version || !profile->program || !profile->working_directory ||
        !profile->clock || !profile->collector || !profile->options || !profile->argument)
        return READER_NO_MEMORY;
    for (; profile->n_arguments < header->n_argument; profile->n_arguments++) {
        char *copy = strdup(header->argument[profile->n_arguments]);
        if (!copy)
            return READER_NO_MEMORY;
        profile->argument[profile->n_arguments] = copy;
    }
    profile->pid = header->pid;
    profile->runs = header->runs > 0 ? header->runs : 1;
    profile->start_unix_ns = header->start_unix_ns;
    state->has_header = true;
    return READER_OK;
}

static bool is_known(const struct prof_profile *profile, const Tapescope__Module *module)
{
    for (size_t i = 0; i < profile->n_mappings; i++) {
        const struct prof_mapping *known = &profile->mapping[i];
        if (known->start == module->start && known->end == module->end &&
            known->bias == module->bias && strcmp(known->path, module->path) == 0 &&
            known->build_id_bytes == module->build_id.len &&
            (known->build_id_bytes == 0 ||
             memcmp(known->build_id, module->build_id.data, known->build_id_bytes) == 0))
            return true;
    }
    return false;
}

static enum reader_status apply_modules(struct reader_state *state,
                                        const Tapescope__Modules *modules)
{
    struct prof_profile *profile = state->profile;
    for (size_t i = 0; i < modules->n_module; i++) {
        const Tapescope__Module *module = modules->module[i];
        if (is_known(profile, module))
            continue;
        struct prof_mapping *mapping = reader_grow(profile->mapping, profile->n_mappings,
                                                   &state->room_mappings, sizeof *mapping);
        if (!mapping)
            return READER_NO_MEMORY;
        profile->mapping = mapping;
        mapping += profile->n_mappings;
        *mapping = (struct prof_mapping){
            .path = strdup(module->path),
            .build_id = malloc(module->build_id.len + 1),
            .build_id_bytes = module->build_id.len,
            .start = module->start,
            .end = module->end,
            .bias = module->bias,
        };
        profile->n_mappings++;
        if (!mapping->path || !mapping->build_id)
            return READER_NO_MEMORY;
        if (module->build_id.len > 0)
            memcpy(mapping->build_id, module->build_id.data, module->build_id.len);
    }
    return READER_OK;
}

static enum reader_status apply_clock(struct reader_state *state, const Tapescope__Clock *clock)
{
    if (state->n_clocks++ == 0) {
        state->first_ticks = clock->ticks;
        state->first_ns = clock->monotonic_ns;
    }
    state->last_ticks = clock->ticks;
    state->last_ns = clock->monotonic_ns;
    return READER_OK;
}

/* Nonsense counts as nothing: then too little is taken off. */
static double ticks_of(double ticks)
{
    return ticks > 0 && ticks < 1e9 ? ticks : 0;
}

static enum reader_status apply_overhead(struct reader_state *state,
                                         const Tapescope__Overhead *overhead)
{
    state->profile->forward_overhead = ticks_of(overhead->forward_ticks);
    state->profile->backward_overhead = ticks_of(overhead->backward_ticks);
    state->profile->overhead_ticks = overhead->taken_ticks;
    return READER_OK;
}

static enum reader_status apply_end(struct reader_state *state, const Tapescope__End *end)
{
    free(state->profile->end_reason);
    state->profile->end_reason = strdup(end->reason);
    state->profile->end_unix_ns = end->unix_ns;
    state->profile->complete = true;
    return state->profile->end_reason ? READER_OK : READER_NO_MEMORY;
}

/* Live bytes, single events, or both. */
static enum reader_status apply_timeline(struct reader_state *state,
                                         const Tapescope__Timeline *timeline)
{
    const enum reader_status status = reader_apply_moments(state, timeline);
    return status == READER_OK ? reader_apply_timeline(state, timeline) : status;
}

enum reader_status reader_apply(struct reader_state *state, const Tapescope__Packet *packet)
{
    if (!state->has_header && packet->kind_case != TAPESCOPE__PACKET__KIND_HEADER)
        return READER_BAD;
    const bool is_detail = packet->kind_case == TAPESCOPE__PACKET__KIND_RESIDUALS ||
                           packet->kind_case == TAPESCOPE__PACKET__KIND_TIMELINE ||
                           packet->kind_case == TAPESCOPE__PACKET__KIND_PATHS;
    if (state->brief && is_detail)
        return READER_OK;
    switch (packet->kind_case) {
    case TAPESCOPE__PACKET__KIND_HEADER:
        return apply_header(state, packet->header);
    case TAPESCOPE__PACKET__KIND_MODULES:
        return apply_modules(state, packet->modules);
    case TAPESCOPE__PACKET__KIND_LEDGER:
        return reader_apply_ledger(state, packet->ledger);
    case TAPESCOPE__PACKET__KIND_PATHS:
        return reader_apply_paths(state, packet->paths);
    case TAPESCOPE__PACKET__KIND_CLOCK:
        return apply_clock(state, packet->clock);
    case TAPESCOPE__PACKET__KIND_RESIDUALS:
        return reader_apply_residuals(state, packet->residuals);
    case TAPESCOPE__PACKET__KIND_END:
        return apply_end(state, packet->end);
    case TAPESCOPE__PACKET__KIND_SAMPLES:
        return reader_apply_samples(state, packet->samples);
    case TAPESCOPE__PACKET__KIND_THREADS:
        return reader_apply_threads(state, packet->threads);
    case TAPESCOPE__PACKET__KIND_TIMELINE:
        return apply_timeline(state, packet->timeline);
    case TAPESCOPE__PACKET__KIND_SCOPES:
        return reader_apply_scopes(state, packet->scopes);
    case TAPESCOPE__PACKET__KIND_OVERHEAD:
        return apply_overhead(state, packet->overhead);
    case TAPESCOPE__PACKET__KIND_SYMBOLS:
        return reader_apply_symbols(state, packet->symbols);
    default: /* a kind that a later writer may add */
        return READER_OK;
    }
}

/* Sets ticks_per_ns and the duration. */
void reader_calibrate(struct reader_state *state)
{
    struct prof_profile *profile = state->profile;
    uint64_t ticks = state->last_ticks - state->first_ticks;
    uint64_t ns = state->last_ns - state->first_ns;
    bool forward = state->last_ticks > state->first_ticks && state->last_ns > state->first_ns;
    profile->ticks_per_ns = 1;
    profile->clock_is_uncalibrated = false; /* of a profile that grows it may have been */
    profile->start_ticks = state->first_ticks;
    if (strcmp(profile->clock, "tsc") == 0) {
        if (forward)
            profile->ticks_per_ns = (double)ticks / (double)ns;
        else
            profile->clock_is_uncalibrated = true;
    }
    if (state->last_ns > state->first_ns)
        profile->duration_ns = ns;
    if (state->last_ledger_ticks > state->last_ticks && state->n_clocks > 0 &&
        !profile->clock_is_uncalibrated && strncmp(profile->clock, "step:", 5) != 0)
        profile->duration_ns =
            prof_profile_ns(profile, state->last_ledger_ticks - state->first_ticks);
}

/* Names the op of each row's keeper; an index that no row has names none. */
static void name_keepers(struct reader_tape *tape)
{
    for (size_t i = 0; i < tape->tape.n_rows; i++) {
        struct prof_row *row = &tape->tape.row[i];
        if (row->kept_by_index == 0)
            continue;
        int64_t keeper = reader_map_find(&tape->rows, row->kept_by_index - 1);
        if (keeper >= 0)
            row->kept_by = tape->tape.row[keeper].op;
    }
}

/* Takes off what observing added to a row's time, and from the tape's. Calls that were not
 * timed (of statements) have no time to take it from. */
static void take_off(struct prof_profile *profile, uint64_t *row, uint64_t *tape, uint64_t calls,
                     double overhead)
{
    const double added = (double)calls * overhead + 0.5;
    uint64_t off = added < (double)*row ? (uint64_t)added : *row;
    off = off < *tape ? off : *tape;
    *row -= off;
    *tape -= off;
    profile->overhead_ticks += off;
}

void reader_take_off_overhead(struct prof_profile *profile, struct prof_tape *tape)
{
    for (size_t i = 0; i < tape->n_rows; i++) {
        struct prof_row *row = &tape->row[i];
        take_off(profile, &row->forward_ticks, &tape->forward_ticks, row->calls,
                 profile->forward_overhead);
        take_off(profile, &row->backward_ticks, &tape->backward_ticks, row->backward_calls,
                 profile->backward_overhead);
        /* Within sweeps as well, and so by the same chained readings. */
        take_off(profile, &row->recompute_ticks, &tape->recompute_ticks, row->recompute_calls,
                 profile->backward_overhead);
    }
}

static bool is_timed(const struct prof_tape *tape)
{
    return tape->forward_ticks > 0 || tape->backward_ticks > 0 || tape->recompute_ticks > 0;
}

static bool is_used(const struct prof_tape *tape)
{
    for (size_t i = 0; i < tape->n_rows; i++)
        if (tape->row[i].calls > 0)
            return true;
    return false;
}

enum reader_status reader_finish(struct reader_state *state)
{
    struct prof_profile *profile = state->profile;
    bool timed = profile->is_sampled, used = false;
    reader_calibrate(state);
    reader_place_scopes(state);
    if (reader_number_paths(profile) != READER_OK)
        return READER_NO_MEMORY;
    profile->tape = calloc(state->n_tapes + 1, sizeof *profile->tape);
    if (!profile->tape)
        return READER_NO_MEMORY;
    for (size_t i = 0; i < state->n_tapes; i++) {
        struct reader_tape *tape = &state->tape[i];
        /* A complete profile has its destroyed tapes in tape 0, in whatever order they came. */
        if (!(profile->complete && tape->tape.final)) {
            timed |= is_timed(&tape->tape);
            used |= is_used(&tape->tape);
            name_keepers(tape);
            reader_finish_residuals(tape);
            profile->tape[profile->n_tapes++] = tape->tape;
            tape->tape.row = NULL;
            tape->tape.residual = NULL;
            tape->tape.change = NULL;
            tape->tape.moment = NULL;
        }
    }
    reader_bound(profile);
    for (size_t i = 0; i < profile->n_tapes; i++)
        reader_take_off_overhead(profile, &profile->tape[i]);
    profile->without_times = used && !timed;
    return reader_finish_symbols(profile);
}
