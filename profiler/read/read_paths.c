/* read_paths.c: applies the packets of call paths.
 *
 * See read_state.h for the invariant.
 *
 * What a path refers to need not be there: a parent that no packet has, or whose number is not
 * smaller, is none. So every path ends, and each has fewer frames than there are paths.
 */
#include "read_state.h"

#include <stdlib.h>

/* Paths are numbered in the order of the file, which a collector keeps ascending: then the number
 * is the place, and no map is needed. */
static void apply_path(struct read_state *state, const Tapescope__Path *from)
{
    struct read_profile *profile = state->profile;
    const bool ascends =
        profile->n_call_paths == 0 || from->id > profile->call_path[profile->n_call_paths - 1].id;
    if (from->id == 0 || !ascends)
        return; /* known already, or never to be referred to */
    BASE_ARRAY_GROW(profile->call_path, profile->n_call_paths, &state->room_paths);
    profile->call_path[profile->n_call_paths++] =
        (struct read_path){.pc = from->pc,
                           .id = from->id,
                           .parent = from->parent < from->id ? from->parent : 0,
                           .number = from->number};
}

void read_apply_paths(struct read_state *state, const Tapescope__Paths *paths)
{
    state->profile->paths_refused = paths->refused;
    for (size_t i = 0; i < paths->n_path; i++)
        apply_path(state, paths->path[i]);
}

size_t read_profile_path(const struct read_profile *profile, uint32_t id)
{
    size_t low = 0, high = profile->n_call_paths;
    /* A collector's numbers are without gaps: then the place is known. */
    if (id > 0 && id <= profile->n_call_paths && profile->call_path[id - 1].id == id)
        return id - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (profile->call_path[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < profile->n_call_paths && profile->call_path[low].id == id ? low : SIZE_MAX;
}

static int paths_compare_numbers(const void *x, const void *y, void *payload)
{
    const struct read_path *path = payload;
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (path[a].number != path[b].number)
        return path[a].number < path[b].number ? -1 : 1;
    return a < b ? -1 : 1;
}

void read_number_paths(struct read_profile *profile)
{
    if (profile->n_events == 0 || profile->n_call_paths >= UINT32_MAX)
        return;
    profile->path_by_number =
        base_calloc(profile->n_call_paths + 1, sizeof *profile->path_by_number);
    for (size_t i = 0; i < profile->n_call_paths; i++)
        if (profile->call_path[i].number > 0)
            profile->path_by_number[profile->n_path_numbers++] = (uint32_t)i;
    qsort_r(profile->path_by_number, profile->n_path_numbers, sizeof *profile->path_by_number,
            paths_compare_numbers, profile->call_path);
}

size_t read_profile_path_numbered(const struct read_profile *profile, uint32_t number)
{
    size_t low = 0, high = profile->n_path_numbers;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (profile->call_path[profile->path_by_number[middle]].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == profile->n_path_numbers || number == 0)
        return SIZE_MAX;
    const size_t place = profile->path_by_number[low];
    return profile->call_path[place].number == number ? place : SIZE_MAX;
}
