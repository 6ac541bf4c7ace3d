/* reader_paths.c: applies the packets of call paths.
 *
 * May include: profiler/file, protobuf-c. See reader_state.h for the invariant.
 *
 * What a path refers to need not be there: a parent that no packet has, or whose number is not
 * smaller, is none. So every path ends, and each has fewer frames than there are paths.
 */
#include "reader_state.h"

/* Paths are numbered in the order of the file, which a collector keeps ascending: then the number
 * is the place, and no map is needed. */
static enum reader_status apply_path(struct reader_state *state, const Tapescope__Path *from)
{
    struct prof_profile *profile = state->profile;
    const bool ascends =
        profile->n_call_paths == 0 || from->id > profile->call_path[profile->n_call_paths - 1].id;
    if (from->id == 0 || !ascends)
        return READER_OK; /* known already, or never to be referred to */
    struct prof_path *path =
        reader_grow(profile->call_path, profile->n_call_paths, &state->room_paths, sizeof *path);
    if (!path)
        return READER_NO_MEMORY;
    profile->call_path = path;
    path[profile->n_call_paths++] = (struct prof_path){
        .pc = from->pc, .id = from->id, .parent = from->parent < from->id ? from->parent : 0};
    return READER_OK;
}

enum reader_status reader_apply_paths(struct reader_state *state, const Tapescope__Paths *paths)
{
    state->profile->paths_refused = paths->refused;
    for (size_t i = 0; i < paths->n_path; i++) {
        enum reader_status status = apply_path(state, paths->path[i]);
        if (status != READER_OK)
            return status;
    }
    return READER_OK;
}

size_t prof_profile_path(const struct prof_profile *profile, uint32_t id)
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
