/* analyze_frames.c: see analyze_frames.h. */
#include "analyze_frames.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_SLOTS = 256 };

void *analyze_grow(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    size_t want = *room ? 2 * *room : 64;
    void *bigger = realloc(array, want * size);
    if (bigger)
        *room = want;
    return bigger;
}

uint32_t *analyze_rehash(uint32_t *slot, size_t *n_slots, size_t n,
                         uint64_t (*hash)(const void *payload, size_t i), const void *payload)
{
    if (2 * (n + 1) <= *n_slots)
        return slot;
    size_t want = *n_slots ? 2 * *n_slots : LEAST_SLOTS;
    uint32_t *bigger = calloc(want, sizeof *bigger);
    if (!bigger)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash(payload, i);
        while (bigger[h & (want - 1)])
            h++;
        bigger[h & (want - 1)] = (uint32_t)i + 1;
    }
    free(slot);
    *n_slots = want;
    return bigger;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return mix(h, text != NULL);
}

static uint64_t hash_place(const struct prof_place *place)
{
    uint64_t h = mix_text(mix(0, place->line), place->function);
    return mix(mix_text(mix_text(h, place->file), place->module), place->offset);
}

static uint64_t hash_frame(const void *payload, size_t i)
{
    const struct analyze_frames *frames = payload;
    return hash_place(&frames->frame[i].place);
}

static uint64_t hash_chain(const void *payload, size_t i)
{
    const struct analyze_frames *frames = payload;
    return mix(mix(0, frames->chain[i].pc), frames->chain[i].line);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_place(const struct prof_place *a, const struct prof_place *b)
{
    return a->line == b->line && a->offset == b->offset && same_text(a->function, b->function) &&
           same_text(a->file, b->file) && same_text(a->module, b->module);
}

bool analyze_is_system(const char *module)
{
    static const char *const folder[] = {"/lib/",       "/lib32/",     "/lib64/", "/usr/lib/",
                                         "/usr/lib32/", "/usr/lib64/", "["};
    for (size_t i = 0; module && i < sizeof folder / sizeof *folder; i++)
        if (strncmp(module, folder[i], strlen(folder[i])) == 0)
            return true;
    return false;
}

/* What starts a program, and has no source. */
static bool is_start(const struct prof_place *place)
{
    return !place->file && place->function && strcmp(place->function, "_start") == 0;
}

/* What does not tell two frames apart is left out of the place. */
static void normalise(const struct analyze_frames *frames, struct prof_place *place)
{
    if (frames->combine && (place->function || place->file))
        place->line = 0;
    if (place->file || (frames->combine && place->function))
        place->offset = 0;
}

/* The number of the frame, UINT32_MAX when memory is exhausted. */
static uint32_t intern(struct analyze_frames *frames, struct prof_place place, bool cut,
                       bool hidden)
{
    normalise(frames, &place);
    uint32_t *slot = analyze_rehash(frames->frame_slot, &frames->n_frame_slots, frames->n_frames,
                                    hash_frame, frames);
    struct analyze_frame *frame =
        analyze_grow(frames->frame, frames->n_frames, &frames->room_frames, sizeof *frame);
    frames->frame_slot = slot ? slot : frames->frame_slot;
    frames->frame = frame ? frame : frames->frame;
    if (!slot || !frame || frames->n_frames >= UINT32_MAX - 1)
        return UINT32_MAX;
    uint64_t h = hash_place(&place);
    for (; slot[h & (frames->n_frame_slots - 1)]; h++) {
        uint32_t i = slot[h & (frames->n_frame_slots - 1)] - 1;
        if (frame[i].cut == cut && frame[i].hidden == hidden && same_place(&frame[i].place, &place))
            return i;
    }
    slot[h & (frames->n_frame_slots - 1)] = (uint32_t)frames->n_frames + 1;
    frame[frames->n_frames] = (struct analyze_frame){.place = place, .cut = cut, .hidden = hidden};
    return (uint32_t)frames->n_frames++;
}

static const struct analyze_chain *add_chain(struct analyze_frames *frames, uint64_t pc,
                                             uint32_t line, bool own)
{
    struct prof_place place[PROF_SYMBOLS_INLINED] = {{.line = 0}};
    size_t n = 1;
    const char *module = prof_symbols_module(frames->analysis->symbols, pc);
    bool hidden = !frames->system && !own && analyze_is_system(module);
    if (hidden)
        place[0].module = module; /* which need not be opened */
    else if (pc != 0)
        n = analyze_places(frames->analysis, pc, line, place, PROF_SYMBOLS_INLINED);
    hidden |= !frames->system && !own && is_start(&place[0]);
    struct analyze_chain *chain =
        analyze_grow(frames->chain, frames->n_chains, &frames->room_chains, sizeof *chain);
    if (!chain)
        return NULL;
    frames->chain = chain;
    chain += frames->n_chains;
    *chain = (struct analyze_chain){pc, line, (uint32_t)frames->n_list, 0, own};
    for (size_t i = 0; i < n; i++) {
        uint32_t *list =
            analyze_grow(frames->list, frames->n_list, &frames->room_list, sizeof *list);
        uint32_t frame = intern(frames, place[i], pc == 0, hidden);
        frames->list = list ? list : frames->list;
        if (!list || frame == UINT32_MAX)
            return NULL;
        list[frames->n_list++] = frame;
        chain->n++;
    }
    frames->n_chains++;
    return chain;
}

const struct analyze_chain *analyze_frames_of(struct analyze_frames *frames, uint64_t pc,
                                              uint32_t line, bool own)
{
    uint32_t *slot = analyze_rehash(frames->chain_slot, &frames->n_chain_slots, frames->n_chains,
                                    hash_chain, frames);
    if (!slot || frames->n_chains >= UINT32_MAX - 1)
        return NULL;
    frames->chain_slot = slot;
    uint64_t h = mix(mix(0, pc), line);
    for (; slot[h & (frames->n_chain_slots - 1)]; h++) {
        const struct analyze_chain *known =
            &frames->chain[slot[h & (frames->n_chain_slots - 1)] - 1];
        if (known->pc == pc && known->line == line && known->own == own)
            return known;
    }
    const struct analyze_chain *made = add_chain(frames, pc, line, own);
    if (made)
        slot[h & (frames->n_chain_slots - 1)] = (uint32_t)frames->n_chains;
    return made;
}

void analyze_frames_free(struct analyze_frames *frames)
{
    free(frames->frame);
    free(frames->list);
    free(frames->chain);
    free(frames->frame_slot);
    free(frames->chain_slot);
}
