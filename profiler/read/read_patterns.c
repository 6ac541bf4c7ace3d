/* read_patterns.c: patterns of sparse derivatives, as the last packets have them.
 *
 * See read_state.h for the invariant. A pattern whose picture is not of it, which no collector
 * writes, counts as left out.
 */
#include "read_state.h"

#include "base_number.h"

#include <stdlib.h>
#include <string.h>

static uint64_t patterns_side(uint64_t n)
{
    return base_lesser(n, READ_PATTERN_CELLS);
}

static bool pattern_is_whole(const Tapescope__Pattern *from)
{
    if (from->rows > READ_MOST || from->columns > READ_MOST || from->values > READ_MOST ||
        from->colours > from->rows ||
        from->n_cell != patterns_side(from->rows) * patterns_side(from->columns))
        return false;
    uint64_t left = from->values;
    for (size_t i = 0; i < from->n_cell; i++) {
        if (from->cell[i] > left)
            return false;
        left -= from->cell[i];
    }
    return left == 0;
}

static void apply_pattern(struct read_state *state, const Tapescope__Pattern *from)
{
    struct read_profile *profile = state->profile;
    int64_t at = base_table_find(&state->patterns, from->id);
    if (at < 0) {
        BASE_ARRAY_GROW(profile->pattern, profile->n_patterns, &state->room_patterns);
        at = (int64_t)profile->n_patterns++;
        base_table_add(&state->patterns, from->id, (size_t)at);
        profile->pattern[at].cell = NULL;
    }
    struct read_pattern *to = &profile->pattern[at];
    free(to->cell);
    *to = (struct read_pattern){
        .kind = (enum read_pattern_kind)from->kind,
        .pc = from->pc,
        .line = from->line,
        .coloured = from->coloured,
        .rows = from->rows,
        .columns = from->columns,
        .values = from->values,
        .colours = from->coloured ? from->colours : 0,
        .calls = from->calls,
        .height = (uint32_t)patterns_side(from->rows),
        .width = (uint32_t)patterns_side(from->columns),
        .cell = base_calloc(from->n_cell + 1, sizeof *to->cell),
    };
    if (from->n_cell > 0)
        memcpy(to->cell, from->cell, from->n_cell * sizeof *to->cell);
}

static void patterns_clear(struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_patterns; i++)
        free(profile->pattern[i].cell);
    profile->n_patterns = 0;
}

void read_apply_patterns(struct read_state *state, const Tapescope__Patterns *patterns)
{
    if (patterns->again) {
        patterns_clear(state->profile);
        base_table_free(&state->patterns);
        state->bad_patterns = 0;
    }
    for (size_t i = 0; i < patterns->n_pattern; i++) {
        const Tapescope__Pattern *from = patterns->pattern[i];
        if (from->kind >= READ_PATTERN_KINDS) /* a later writer's */
            continue;
        if (pattern_is_whole(from))
            apply_pattern(state, from);
        else
            state->bad_patterns++;
    }
    state->profile->patterns_left_out = read_add(patterns->left_out, state->bad_patterns);
}

void read_free_patterns(struct read_profile *profile)
{
    patterns_clear(profile);
    free(profile->pattern);
}
