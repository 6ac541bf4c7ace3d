/* base_strings.h: texts, each once, by their numbers. */
#ifndef BASE_BASE_STRINGS_H
#define BASE_BASE_STRINGS_H

#include "base_table.h"

/* Begins as zeros. */
struct base_strings {
    char **text; /* in the order in which they came */
    size_t n, room;
    struct base_table table;
};

/* The number of a text, or -1: there is none, or, of one that is to be added, memory ended. A text
 * is copied when it is added, and stays where it is until all are freed. */
int64_t base_strings_find(const struct base_strings *strings, const char *text);
int64_t base_strings_add(struct base_strings *strings, const char *text);
void base_strings_free(struct base_strings *strings);

/* The last component of a path, in it. */
const char *base_file_name(const char *path);

#endif
