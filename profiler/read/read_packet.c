/* read_packet.c: applies packets other than a tape's state, and what follows the last packet.
 *
 * See read_state.h for the invariant.
 */
#include "read_state.h"

#include <stdlib.h>
#include <string.h>

enum { PROFILE_VERSION = 1 };

static enum read_status apply_header(struct read_state *state, const Tapescope__Header *header)
{
    struct read_profile *profile = state->profile;
    if (state->has_header || header->version != PROFILE_VERSION)
        return READ_BAD;
    profile->library_version = base_strdup(header->library_version);
    profile->program = base_strdup(header->program);
    profile->working_directory = base_strdup(header->working_directory);
    profile->clock = base_strdup(header->clock);
    profile->collector = base_strdup(header->collector);
    profile->options = base_strdup(header->options);
    profile->argument = base_calloc(header->n_argument + 1, sizeof *profile->argument);
    for (; profile->n_arguments < header->n_argument; profile->n_arguments++)
        profile->argument[profile->n_arguments] =
            base_strdup(header->argument[profile->n_arguments]);
    profile->pid = header->pid;
    profile->ranked = header->ranked;
    profile->rank = header->rank;
    profile->ranks = header->ranks;
    profile->runs = header->runs > 0 ? header->runs : 1;
    profile->start_unix_ns = header->start_unix_ns;
    state->has_header = true;
    return READ_OK;
}

static bool packet_is_known(const struct read_profile *profile, const Tapescope__Module *module)
{
    for (size_t i = 0; i < profile->n_mappings; i++) {
        const struct read_mapping *known = &profile->mapping[i];
        if (known->start == module->start && known->end == module->end &&
            known->bias == module->bias && strcmp(known->path, module->path) == 0 &&
            known->build_id_bytes == module->build_id.len &&
            (known->build_id_bytes == 0 ||
             memcmp(known->build_id, module->build_id.data, known->build_id_bytes) == 0))
            return true;
    }
    return false;
}

static void apply_modules(struct read_state *state, const Tapescope__Modules *modules)
{
    struct read_profile *profile = state->profile;
    for (size_t i = 0; i < modules->n_module; i++) {
        const Tapescope__Module *module = modules->module[i];
        if (packet_is_known(profile, module))
            continue;
        BASE_ARRAY_GROW(profile->mapping, profile->n_mappings, &state->room_mappings);
        struct read_mapping *mapping = &profile->mapping[profile->n_mappings++];
        *mapping = (struct read_mapping){
            .path = base_strdup(module->path),
            .build_id = base_malloc(module->build_id.len + 1),
            .build_id_bytes = module->build_id.len,
            .start = module->start,
            .end = module->end,
            .bias = module->bias,
        };
        if (module->build_id.len > 0)
            memcpy(mapping->build_id, module->build_id.data, module->build_id.len);
    }
}

static void apply_clock(struct read_state *state, const Tapescope__Clock *clock)
{
    if (state->n_clocks++ == 0) {
        state->first_ticks = clock->ticks;
        state->first_ns = clock->monotonic_ns;
    }
    state->last_ticks = clock->ticks;
    state->last_ns = clock->monotonic_ns;
}

/* Nonsense counts as nothing: then too little is taken off. */
static double ticks_of(double ticks)
{
    return ticks > -1e9 && ticks < 1e9 ? ticks : 0;
}

static void apply_overhead(struct read_state *state, const Tapescope__Overhead *overhead)
{
    state->profile->forward_overhead = ticks_of(overhead->forward_ticks);
    state->profile->backward_overhead = ticks_of(overhead->backward_ticks);
    state->profile->overhead_ticks = overhead->taken_ticks;
}

static void apply_end(struct read_state *state, const Tapescope__End *end)
{
    free(state->profile->end_reason);
    state->profile->end_reason = base_strdup(end->reason);
    state->profile->end_unix_ns = end->unix_ns;
    state->profile->complete = true;
}

/* Parts come one after the other, so that there are no more than packets. */
static enum read_status apply_part(struct read_state *state, const Tapescope__Part *part)
{
    struct read_profile *profile = state->profile;
    if (part->place > profile->n_parts || part->place + (size_t)1 < profile->n_parts)
        return READ_BAD;
    profile->n_parts = part->place + (size_t)1;
    if (state->each_part && part->piece.len > 0)
        state->each_part(state->payload, part->place, part->piece.data, part->piece.len);
    return READ_OK;
}

/* Live bytes, single events, or both. */
static enum read_status apply_timeline(struct read_state *state,
                                       const Tapescope__Timeline *timeline)
{
    const enum read_status status = read_apply_moments(state, timeline);
    return status == READ_OK ? read_apply_timeline(state, timeline) : status;
}

enum read_status read_apply(struct read_state *state, const Tapescope__Packet *packet)
{
    if (!state->has_header && packet->kind_case != TAPESCOPE__PACKET__KIND_HEADER)
        return READ_BAD;
    const bool is_detail = packet->kind_case == TAPESCOPE__PACKET__KIND_RESIDUALS ||
                           packet->kind_case == TAPESCOPE__PACKET__KIND_TIMELINE ||
                           packet->kind_case == TAPESCOPE__PACKET__KIND_PATHS;
    if (state->brief && is_detail)
        return READ_OK;
    switch (packet->kind_case) {
    case TAPESCOPE__PACKET__KIND_HEADER:
        return apply_header(state, packet->header);
    case TAPESCOPE__PACKET__KIND_MODULES:
        apply_modules(state, packet->modules);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_LEDGER:
        read_apply_ledger(state, packet->ledger);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_PATHS:
        read_apply_paths(state, packet->paths);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_CLOCK:
        apply_clock(state, packet->clock);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_RESIDUALS:
        return read_apply_residuals(state, packet->residuals);
    case TAPESCOPE__PACKET__KIND_END:
        apply_end(state, packet->end);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_SAMPLES:
        return read_apply_samples(state, packet->samples);
    case TAPESCOPE__PACKET__KIND_THREADS:
        read_apply_threads(state, packet->threads);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_TIMELINE:
        return apply_timeline(state, packet->timeline);
    case TAPESCOPE__PACKET__KIND_SCOPES:
        read_apply_scopes(state, packet->scopes);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_PATTERNS:
        read_apply_patterns(state, packet->patterns);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_MESSAGES:
        return read_apply_messages(state, packet->messages);
    case TAPESCOPE__PACKET__KIND_PART:
        return apply_part(state, packet->part);
    case TAPESCOPE__PACKET__KIND_OVERHEAD:
        apply_overhead(state, packet->overhead);
        return READ_OK;
    case TAPESCOPE__PACKET__KIND_SYMBOLS:
        read_apply_symbols(state, packet->symbols);
        return READ_OK;
    default: /* a kind that a later writer may add */
        return READ_OK;
    }
}

/* Sets ticks_per_ns and the duration. */
void read_calibrate(struct read_state *state)
{
    struct read_profile *profile = state->profile;
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
            read_profile_ns(profile, state->last_ledger_ticks - state->first_ticks);
}

/* Names the op of each row's keeper; an index that no row has names none. */
static void packet_name_keepers(struct read_tape_state *tape)
{
    for (size_t i = 0; i < tape->tape.n_rows; i++) {
        struct read_row *row = &tape->tape.row[i];
        if (row->kept_by_index == 0)
            continue;
        int64_t keeper = read_row_place(tape, row->kept_by_index - 1);
        if (keeper >= 0)
            row->kept_by = tape->tape.row[keeper].op;
    }
}

/* What observing added to the time of so many calls, if it did. */
static uint64_t overhead_of(uint64_t ticks, uint64_t calls, double overhead)
{
    if (overhead < 0)
        return 0;
    const double added = (double)calls * overhead + 0.5;
    return added < (double)ticks ? (uint64_t)added : ticks;
}

/* Takes off what observing added to a row's time, and from the tape's; or adds what these lack, up
 * to as much as was measured: what a forged file says is so at most twice READ_MOST. */
static void take_off(struct read_profile *profile, uint64_t *row, uint64_t *tape, uint64_t calls,
                     double overhead)
{
    const uint64_t lacks = read_whole((double)calls * -overhead);
    const uint64_t added = lacks < *row ? lacks : *row;
    *row += added;
    *tape += added;
    uint64_t off = overhead_of(*row, calls, overhead);
    off = off < *tape ? off : *tape;
    *row -= off;
    *tape -= off;
    profile->overhead_ticks += off;
}

void read_take_off_overhead(struct read_profile *profile, struct read_tape *tape)
{
    for (size_t i = 0; i < tape->n_rows; i++) {
        struct read_row *row = &tape->row[i];
        row->untimed = row->calls > 0 && row->forward_ticks == 0 && !profile->is_sampled;
        take_off(profile, &row->forward_ticks, &tape->forward_ticks, read_row_timed_calls(row),
                 profile->forward_overhead);
        take_off(profile, &row->backward_ticks, &tape->backward_ticks,
                 row->estimated_backward_ticks ? 0 : row->backward_calls,
                 profile->backward_overhead);
        row->steady_backward_ticks -= overhead_of(row->steady_backward_ticks, row->backward_calls,
                                                  profile->backward_overhead);
        /* Within sweeps as well, and so by the same chained readings. */
        take_off(profile, &row->recompute_ticks, &tape->recompute_ticks, row->recompute_calls,
                 profile->backward_overhead);
    }
}

static bool packet_is_timed(const struct read_tape *tape)
{
    return tape->forward_ticks > 0 || tape->backward_ticks > 0 || tape->recompute_ticks > 0;
}

static bool is_used(const struct read_tape *tape)
{
    for (size_t i = 0; i < tape->n_rows; i++)
        if (tape->row[i].calls > 0)
            return true;
    return false;
}

void read_finish(struct read_state *state)
{
    struct read_profile *profile = state->profile;
    bool timed = profile->is_sampled, used = false;
    read_calibrate(state);
    read_place_scopes(state);
    read_number_paths(profile);
    profile->tape = base_calloc(state->n_tapes + 1, sizeof *profile->tape);
    for (size_t i = 0; i < state->n_tapes; i++) {
        struct read_tape_state *tape = &state->tape[i];
        /* A complete profile has its destroyed tapes in tape 0, in whatever order they came. */
        if (!(profile->complete && tape->tape.final)) {
            timed |= packet_is_timed(&tape->tape);
            used |= is_used(&tape->tape);
            packet_name_keepers(tape);
            read_finish_residuals(tape);
            profile->tape[profile->n_tapes++] = tape->tape;
            tape->tape.row = NULL;
            tape->tape.residual = NULL;
            tape->tape.change = NULL;
            tape->tape.trace = NULL;
            tape->tape.moment = NULL;
        }
    }
    read_bound(profile);
    if (!state->samples_have_times)
        read_weigh_samples(profile, &state->threads);
    for (size_t i = 0; i < profile->n_tapes; i++) {
        read_take_off_overhead(profile, &profile->tape[i]);
        read_estimate(profile, &profile->tape[i]);
    }
    profile->without_times = used && !timed;
    read_finish_symbols(profile);
}
