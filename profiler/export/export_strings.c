/* export_strings.c: see export_strings.h. */
#include "export_strings.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash_text(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

/* The slot of a text, or the free one where it belongs. */
static uint32_t *slot_of(const struct export_strings *strings, const char *text)
{
    uint64_t h = hash_text(text);
    for (;; h++) {
        uint32_t *slot = &strings->slot[h & (strings->n_slots - 1)];
        if (*slot == 0 || strcmp(strings->text[*slot - 1], text) == 0)
            return slot;
    }
}

/* Room for one more, and twice as many slots as texts. */
static bool grow(struct export_strings *strings)
{
    enum { LEAST = 64 };
    if (strings->n < strings->room)
        return true;
    const size_t room = strings->room ? 2 * strings->room : LEAST;
    char **text = realloc(strings->text, room * sizeof *text);
    if (text)
        strings->text = text;
    uint32_t *slot = calloc(2 * room, sizeof *slot);
    if (!text || !slot) {
        free(slot);
        return false;
    }
    free(strings->slot);
    strings->slot = slot;
    strings->n_slots = 2 * room;
    strings->room = room;
    for (size_t i = 0; i < strings->n; i++)
        *slot_of(strings, strings->text[i]) = (uint32_t)i + 1;
    return true;
}

uint32_t export_intern(struct export_strings *strings, const char *text)
{
    if (strings->failed || !grow(strings)) {
        strings->failed = true;
        return 0;
    }
    uint32_t *slot = slot_of(strings, text);
    if (*slot > 0)
        return *slot - 1;
    char *copy = strings->n < UINT32_MAX - 1 ? strdup(text) : NULL;
    if (!copy) {
        strings->failed = true;
        return 0;
    }
    strings->text[strings->n++] = copy;
    *slot = (uint32_t)strings->n;
    return *slot - 1;
}

void export_strings_free(struct export_strings *strings)
{
    for (size_t i = 0; i < strings->n; i++)
        free(strings->text[i]);
    free(strings->text);
    free(strings->slot);
    *strings = (struct export_strings){0};
}
