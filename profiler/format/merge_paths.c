/* merge_paths.c: the call paths of all profiles as one prefix tree.
 *
 * May include: merge_state.h.
 * Invariant: a path of the sum has the same frames as each that it stands for, and no other path
 * has them; a parent comes before its children.
 */
#include "merge_state.h"

#include <errno.h>
#include <stdlib.h>

enum { PATHS_IN_PACKET = 1 << 14 };

static bool same_path(const void *payload, uint32_t place, const void *key)
{
    const struct merge *merge = payload;
    const struct prof_path *a = &merge->path[place], *b = key;
    return a->parent == b->parent && a->pc == b->pc;
}

/* The number of the path with that parent and frame. */
static uint32_t add_path(struct merge *merge, uint32_t parent, uint64_t pc)
{
    const struct prof_path key = {.pc = pc, .parent = parent};
    uint32_t *slot =
        merge_set_find(&merge->paths, merge_mix(merge_mix(0, parent), pc), same_path, merge, &key);
    if (*slot == 0) {
        merge->path[merge->n_paths] = key;
        *slot = (uint32_t)++merge->n_paths;
    }
    return *slot;
}

bool merge_open_paths(struct merge *merge)
{
    size_t all = 0;
    for (size_t i = 0; i < merge->n; i++)
        all += merge->profile[i]->n_call_paths;
    merge->path = calloc(all + 1, sizeof *merge->path);
    merge->path_of = calloc(all + 1, sizeof *merge->path_of);
    merge->first_path = calloc(merge->n + 1, sizeof *merge->first_path);
    if (!merge->path || !merge->path_of || !merge->first_path ||
        !merge_set_open(&merge->paths, all))
        return false;
    size_t at = 0;
    for (size_t i = 0; i < merge->n; i++) {
        const struct prof_profile *profile = merge->profile[i];
        merge->first_path[i] = at;
        for (size_t j = 0; j < profile->n_call_paths; j++) {
            const struct prof_path *from = &profile->call_path[j];
            merge->path_of[at++] =
                add_path(merge, merge_path(merge, i, from->parent), merge_move(merge, i, from->pc));
        }
    }
    return true;
}

uint32_t merge_path(const struct merge *merge, size_t i, uint32_t id)
{
    const size_t place = id ? prof_profile_path(merge->profile[i], id) : SIZE_MAX;
    return place == SIZE_MAX ? 0 : merge->path_of[merge->first_path[i] + place];
}

void merge_put_paths(const struct merge *merge, struct writer *writer)
{
    Tapescope__Path *made = calloc(PATHS_IN_PACKET, sizeof *made);
    Tapescope__Path **list = calloc(PATHS_IN_PACKET, sizeof(Tapescope__Path *));
    uint64_t refused = 0;
    for (size_t i = 0; i < merge->n; i++)
        refused = prof_add(refused, merge->profile[i]->paths_refused);
    if ((!made || !list) && writer->error == 0)
        writer->error = ENOMEM;
    for (size_t i = 0; writer->error == 0 && (i < merge->n_paths || (i == 0 && refused > 0));) {
        Tapescope__Paths paths = TAPESCOPE__PATHS__INIT;
        Tapescope__Packet packet = TAPESCOPE__PACKET__INIT;
        for (; i < merge->n_paths && paths.n_path < PATHS_IN_PACKET; i++) {
            Tapescope__Path *to = list[paths.n_path] = &made[paths.n_path];
            tapescope__path__init(to);
            to->id = to->number = (uint32_t)i + 1;
            to->parent = merge->path[i].parent;
            to->pc = merge->path[i].pc;
            paths.n_path++;
        }
        paths.path = list;
        paths.refused = refused;
        packet.kind_case = TAPESCOPE__PACKET__KIND_PATHS;
        packet.paths = &paths;
        writer_put_packet(writer, &packet);
        if (merge->n_paths == 0)
            break;
    }
    free(list);
    free(made);
}
