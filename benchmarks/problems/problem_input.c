/* problem_input.c: a fixed sequence of numbers, and the reading of others.
 *
 * Invariant: what is no number ends the reading.
 */
#include "problem_input.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 64 };

double number_in(struct numbers *numbers, double low, double high)
{
    uint64_t z = numbers->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + (high - low) * ((double)(z >> 11) * 0x1p-53);
}

double number_normal(struct numbers *numbers)
{
    double sum = -6.0;
    for (int i = 0; i < 12; ++i)
        sum += number_in(numbers, 0.0, 1.0);
    return sum;
}

FILE *input_open(const char *folder, const char *file)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, file) >= sizeof path) {
        fprintf(stderr, "%s: the name is too long\n", folder);
        return NULL;
    }
    FILE *stream = fopen(path, "r");
    if (!stream)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return stream;
}

/* The next word, of what numbers are written with; false if there is none, or one too long. */
static bool read_word(FILE *file, char *word, size_t room)
{
    size_t n = 0;
    int c;
    do
        c = getc(file);
    while (isspace(c));
    for (; c != EOF && (isalnum(c) || strchr("+-.", c)) && n + 1 < room; c = getc(file))
        word[n++] = (char)c;
    if (c != EOF)
        ungetc(c, file);
    word[n] = '\0';
    return n > 0 && n + 1 < room;
}

bool input_doubles(FILE *file, size_t n, double *to)
{
    char word[WORD_BYTES], *end;
    for (size_t i = 0; i < n; ++i) {
        if (!read_word(file, word, sizeof word))
            return false;
        to[i] = strtod(word, &end);
        if (*end != '\0' || !isfinite(to[i]))
            return false;
    }
    return true;
}

bool input_ints(FILE *file, size_t n, int *to)
{
    char word[WORD_BYTES], *end;
    for (size_t i = 0; i < n; ++i) {
        if (!read_word(file, word, sizeof word))
            return false;
        errno = 0;
        const long number = strtol(word, &end, 10);
        if (*end != '\0' || errno != 0 || number < INT_MIN || number > INT_MAX)
            return false;
        to[i] = (int)number;
    }
    return true;
}

bool input_refuse(const char *folder, const char *file)
{
    fprintf(stderr, "%s/%s: not as the suite writes it\n", folder, file);
    return false;
}
