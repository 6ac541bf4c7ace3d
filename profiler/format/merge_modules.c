/* merge_modules.c: where the modules of all processes lie in the sum.
 *
 * May include: merge_state.h.
 * Invariant: no two mappings of the sum overlap; each has the bytes of its file that it had in its
 * process, so that an address keeps its place in the module.
 */
#include "merge_state.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static bool same_module(const struct prof_mapping *a, const struct prof_mapping *b)
{
    if (a->build_id_bytes > 0 && b->build_id_bytes > 0)
        return a->build_id_bytes == b->build_id_bytes &&
               memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
    return a->path && b->path && strcmp(a->path, b->path) == 0;
}

static const struct prof_mapping *program_of(const struct prof_profile *profile)
{
    for (size_t i = 0; i < profile->n_mappings; i++)
        if (strcmp(profile->mapping[i].path, profile->program) == 0)
            return &profile->mapping[i];
    return NULL;
}

bool prof_may_merge(const struct prof_profile *a, const struct prof_profile *b)
{
    const struct prof_mapping *x = program_of(a), *y = program_of(b);
    return x && y ? same_module(x, y) : strcmp(a->program, b->program) == 0;
}

static bool is_free(const struct merge *merge, const struct prof_mapping *mapping)
{
    for (size_t i = 0; i < merge->n_mappings; i++)
        if (mapping->start < merge->mapping[i].end && merge->mapping[i].start < mapping->end)
            return false;
    return true;
}

/* The mapping of the sum that stands for one of a profile, made if need be: where its addresses
 * are taken, behind all others. */
static size_t counterpart(struct merge *merge, const struct prof_mapping *mapping)
{
    uint64_t end = 0;
    for (size_t i = 0; i < merge->n_mappings; i++) {
        const struct prof_mapping *known = &merge->mapping[i];
        if (same_module(known, mapping) &&
            known->start - known->bias == mapping->start - mapping->bias &&
            known->end - known->bias == mapping->end - mapping->bias)
            return i;
        end = known->end > end ? known->end : end;
    }
    struct prof_mapping *made = &merge->mapping[merge->n_mappings];
    *made = *mapping;
    if (!is_free(merge, mapping)) {
        uint64_t shift = (end + PAGE) / PAGE * PAGE - mapping->start / PAGE * PAGE;
        made->start += shift;
        made->end += shift;
        made->bias += shift;
    }
    return merge->n_mappings++;
}

bool merge_open_modules(struct merge *merge)
{
    size_t all = 0;
    for (size_t i = 0; i < merge->n; i++)
        all += merge->profile[i]->n_mappings;
    merge->mapping = calloc(all + 1, sizeof *merge->mapping);
    merge->mapping_of = calloc(all + 1, sizeof *merge->mapping_of);
    merge->first_mapping = calloc(merge->n + 1, sizeof *merge->first_mapping);
    if (!merge->mapping || !merge->mapping_of || !merge->first_mapping)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < merge->n; i++) {
        merge->first_mapping[i] = at;
        for (size_t j = 0; j < merge->profile[i]->n_mappings; j++)
            merge->mapping_of[at++] = counterpart(merge, &merge->profile[i]->mapping[j]);
    }
    return true;
}

uint64_t merge_move(const struct merge *merge, size_t i, uint64_t pc)
{
    const struct prof_profile *profile = merge->profile[i];
    for (size_t j = profile->n_mappings; pc != 0 && j-- > 0;) {
        const struct prof_mapping *from = &profile->mapping[j];
        if (pc - 1 < from->start || pc - 1 >= from->end) /* of several, the last counts */
            continue;
        const size_t to = merge->mapping_of[merge->first_mapping[i] + j];
        return pc - from->bias + merge->mapping[to].bias;
    }
    return pc;
}
