/* analyze_frames.c: see analyze_frames.h. */
#include "analyze_frames.h"

#include "base_array.h"
#include "system_folders.def"

#include <stdlib.h>
#include <string.h>

/* No text is not "". */
static uint64_t frames_hash_text(uint64_t h, const char *text)
{
    return text ? base_hash(h, base_hash_text(text)) : base_hash(h, 0);
}

static uint64_t hash_place(const struct symbols_place *place)
{
    uint64_t h = frames_hash_text(base_hash(0, place->line), place->function);
    return base_hash(frames_hash_text(frames_hash_text(h, place->file), place->module),
                     place->offset);
}

static bool frames_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool frames_same_place(const struct symbols_place *a, const struct symbols_place *b)
{
    return a->line == b->line && a->offset == b->offset &&
           frames_same_text(a->function, b->function) && frames_same_text(a->file, b->file) &&
           frames_same_text(a->module, b->module);
}

bool analyze_is_system(const char *module)
{
#define X(path) path,
    static const char *const folder[] = {SYSTEM_FOLDERS(X)};
#undef X
    for (size_t i = 0; module && i < sizeof folder / sizeof *folder; i++)
        if (strncmp(module, folder[i], strlen(folder[i])) == 0)
            return true;
    return false;
}

/* What starts a program, and has no source. */
static bool is_start(const struct symbols_place *place)
{
    return !place->file && place->function && strcmp(place->function, "_start") == 0;
}

/* What does not tell two frames apart is left out of the place. */
static void frames_normalise(const struct analyze_frames *frames, struct symbols_place *place)
{
    if (frames->combine && (place->function || place->file))
        place->line = 0;
    if (place->file || (frames->combine && place->function))
        place->offset = 0;
}

/* The number of the frame. */
static uint32_t frames_intern(struct analyze_frames *frames, struct symbols_place place, bool cut,
                              bool hidden)
{
    frames_normalise(frames, &place);
    const uint64_t key = hash_place(&place);
    size_t walk;
    for (int64_t i = base_table_first(&frames->frames, key, &walk); i >= 0;
         i = base_table_next(&frames->frames, key, &walk))
        if (frames->frame[i].cut == cut && frames->frame[i].hidden == hidden &&
            frames_same_place(&frames->frame[i].place, &place))
            return (uint32_t)i;
    BASE_ARRAY_GROW(frames->frame, frames->n_frames, &frames->room_frames);
    frames->frame[frames->n_frames] =
        (struct analyze_frame){.place = place, .cut = cut, .hidden = hidden};
    base_table_add(&frames->frames, key, frames->n_frames);
    return (uint32_t)frames->n_frames++;
}

uint32_t analyze_frames_named(struct analyze_frames *frames, const char *name)
{
    return frames_intern(frames, (struct symbols_place){.function = name}, false, false);
}

static const struct analyze_chain *add_chain(struct analyze_frames *frames, uint64_t pc,
                                             uint32_t line, bool own)
{
    struct symbols_place place[SYMBOLS_INLINED] = {{.line = 0}};
    size_t n = 1;
    const char *module = symbols_module(frames->analysis->symbols, pc);
    bool hidden = !frames->system && !own && analyze_is_system(module);
    if (hidden)
        place[0].module = module; /* which need not be opened */
    else if (pc != 0)
        n = analyze_places(frames->analysis, pc, line, place, SYMBOLS_INLINED);
    hidden |= !frames->system && !own && is_start(&place[0]);
    BASE_ARRAY_GROW(frames->chain, frames->n_chains, &frames->room_chains);
    struct analyze_chain *chain = &frames->chain[frames->n_chains++];
    *chain = (struct analyze_chain){pc, line, (uint32_t)frames->n_list, (uint32_t)n, own};
    for (size_t i = 0; i < n; i++) {
        BASE_ARRAY_GROW(frames->list, frames->n_list, &frames->room_list);
        frames->list[frames->n_list++] = frames_intern(frames, place[i], pc == 0, hidden);
    }
    return chain;
}

const struct analyze_chain *analyze_frames_of(struct analyze_frames *frames, uint64_t pc,
                                              uint32_t line, bool own)
{
    const uint64_t key = base_hash(base_hash(0, pc), line);
    size_t walk;
    for (int64_t i = base_table_first(&frames->chains, key, &walk); i >= 0;
         i = base_table_next(&frames->chains, key, &walk)) {
        const struct analyze_chain *known = &frames->chain[i];
        if (known->pc == pc && known->line == line && known->own == own)
            return known;
    }
    base_table_add(&frames->chains, key, frames->n_chains);
    return add_chain(frames, pc, line, own);
}

void analyze_frames_free(struct analyze_frames *frames)
{
    free(frames->frame);
    free(frames->list);
    free(frames->chain);
    base_table_free(&frames->frames);
    base_table_free(&frames->chains);
}
