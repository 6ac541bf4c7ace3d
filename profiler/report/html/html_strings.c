/* html_strings.c: see html_strings.h. */
#include "html_strings.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1000, FIRST_SLOTS = 1024 };

static uint64_t hash_of(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    return h;
}

/* The slot that has this text, or the free one where it belongs. */
static uint32_t *find(const struct html_strings *strings, const char *text, size_t n)
{
    size_t at = hash_of(text, n) & (strings->n_slots - 1);
    for (;; at = (at + 1) & (strings->n_slots - 1)) {
        const uint32_t number = strings->slot[at];
        if (number == 0)
            return &strings->slot[at];
        const char *known = strings->text[number - 1];
        if (strncmp(known, text, n) == 0 && known[n] == '\0')
            return &strings->slot[at];
    }
}

static bool make_room(struct html_strings *strings)
{
    if (strings->n == strings->room) {
        const size_t room = strings->room ? 2 * strings->room : FIRST_SLOTS / 2;
        char **text = realloc(strings->text, room * sizeof *text);
        if (!text)
            return false;
        strings->text = text;
        strings->room = room;
    }
    if (2 * (strings->n + 1) <= strings->n_slots)
        return true;
    uint32_t *old = strings->slot;
    const size_t n_slots = strings->n_slots ? 2 * strings->n_slots : FIRST_SLOTS;
    uint32_t *slot = calloc(n_slots, sizeof *slot);
    if (!slot)
        return false;
    strings->slot = slot;
    strings->n_slots = n_slots;
    for (size_t i = 0; i < strings->n; i++)
        *find(strings, strings->text[i], strlen(strings->text[i])) = (uint32_t)i + 1;
    free(old);
    return true;
}

static uint32_t add(struct html_strings *strings, const char *text, size_t n, const char *end)
{
    if (!make_room(strings)) {
        strings->failed = true;
        return 0;
    }
    char *copy = malloc(n + strlen(end) + 1);
    if (!copy) {
        strings->failed = true;
        return 0;
    }
    memcpy(copy, text, n);
    memcpy(copy + n, end, strlen(end) + 1);
    uint32_t *slot = find(strings, copy, n + strlen(end));
    if (*slot != 0) {
        free(copy);
        return *slot - 1;
    }
    strings->text[strings->n++] = copy;
    *slot = (uint32_t)strings->n;
    return *slot - 1;
}

uint32_t html_string(struct html_strings *strings, const char *text)
{
    if (strings->n == 0)
        add(strings, "", 0, "");
    if (!text || !*text || strings->failed)
        return 0;
    size_t n = strnlen(text, MOST_BYTES + 1);
    if (n <= MOST_BYTES)
        return add(strings, text, n, "");
    for (n = MOST_BYTES; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return add(strings, text, n, "...");
}

void html_strings_free(struct html_strings *strings)
{
    for (size_t i = 0; i < strings->n; i++)
        free(strings->text[i]);
    free(strings->text);
    free(strings->slot);
    *strings = (struct html_strings){0};
}
