/* base_strings.c: see base_strings.h. */
#include "base_strings.h"

#include "base_array.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

int64_t base_strings_find(const struct base_strings *strings, const char *text)
{
    const uint64_t key = base_hash_text(text);
    size_t walk;
    int64_t at = base_table_first(&strings->table, key, &walk);
    while (at >= 0 && strcmp(strings->text[at], text) != 0)
        at = base_table_next(&strings->table, key, &walk);
    return at;
}

int64_t base_strings_add(struct base_strings *strings, const char *text)
{
    const int64_t known = base_strings_find(strings, text);
    if (known >= 0)
        return known;
    char **list = base_array_grow(strings->text, strings->n, &strings->room, sizeof *list);
    if (!list)
        return -1;
    strings->text = list;
    list[strings->n] = base_strdup(text);
    if (!list[strings->n] || !base_table_add(&strings->table, base_hash_text(text), strings->n)) {
        free(list[strings->n]);
        return -1;
    }
    return (int64_t)strings->n++;
}

void base_strings_free(struct base_strings *strings)
{
    for (size_t i = 0; i < strings->n; i++)
        free(strings->text[i]);
    free(strings->text);
    base_table_free(&strings->table);
    *strings = (struct base_strings){0};
}

const char *base_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
