/* digits_data.c: reads the images of handwritten digits from a CSV file.
 *
 * Invariant: what digits_load() hands out has pixels in 0..1 and labels in 0..9, or is empty.
 */
#include "digits_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MAX_ROWS = 100000, LINE_BYTES = 1024, MAX_INK = 16, HOLD_OUT_EACH = 5 };

static bool parse_row(const char *line, float *pixels, int64_t *label)
{
    for (int i = 0; i <= DIGITS_PIXELS; ++i) {
        char *end;
        long value = strtol(line, &end, 10);
        bool last = i == DIGITS_PIXELS;
        if (end == line || value < 0 || value > (last ? DIGITS_CLASSES - 1 : MAX_INK))
            return false;
        if (last ? *end != '\0' && *end != '\n' && *end != '\r' : *end != ',')
            return false;
        if (last)
            *label = value;
        else
            pixels[i] = (float)value / MAX_INK;
        line = end + 1;
    }
    return true;
}

/* Makes room for one more row; the room doubles whenever the count reaches a power of two. */
static bool grow(struct digits *digits)
{
    if ((digits->count & (digits->count - 1)) != 0)
        return true;
    size_t rows = digits->count == 0 ? 1 : 2 * (size_t)digits->count;
    float *pixels = realloc(digits->pixels, rows * DIGITS_PIXELS * sizeof *pixels);
    if (pixels)
        digits->pixels = pixels;
    int64_t *labels = realloc(digits->labels, rows * sizeof *labels);
    if (labels)
        digits->labels = labels;
    return pixels && labels;
}

/* Says what zlib met, if it met anything. */
static bool read_fails(gzFile file, const char *path)
{
    int error;
    const char *text = gzerror(file, &error);
    if (error == Z_OK || error == Z_STREAM_END)
        return false;
    if (error == Z_ERRNO)
        fprintf(stderr, "digits: %s: %s\n", path, strerror(errno));
    else
        fprintf(stderr, "digits: %s\n", text); /* which names the file */
    return true;
}

static bool read_rows(gzFile file, const char *path, struct digits *train, struct digits *held_out)
{
    char line[LINE_BYTES];
    for (int row = 0; gzgets(file, line, sizeof line); ++row) {
        struct digits *part = row % HOLD_OUT_EACH == HOLD_OUT_EACH - 1 ? held_out : train;
        if (row == MAX_ROWS) {
            fprintf(stderr, "digits: %s: more than %d rows\n", path, MAX_ROWS);
            return false;
        }
        if (!grow(part)) {
            fprintf(stderr, "digits: %s: out of memory\n", path);
            return false;
        }
        if (!parse_row(line, part->pixels + part->count * DIGITS_PIXELS,
                       part->labels + part->count)) {
            if (!read_fails(file, path))
                fprintf(stderr, "digits: %s:%d: not 64 pixels (0 to 16) and a label (0 to 9)\n",
                        path, row + 1);
            return false;
        }
        part->count++;
    }
    if (read_fails(file, path))
        return false;
    if (train->count == 0 || held_out->count == 0) {
        fprintf(stderr, "digits: %s: fewer than %d rows\n", path, HOLD_OUT_EACH);
        return false;
    }
    return true;
}

bool digits_load(const char *path, struct digits *train, struct digits *held_out)
{
    *train = *held_out = (struct digits){0};
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file) {
        fprintf(stderr, "digits: %s: %s\n", path, strerror(errno ? errno : ENOMEM));
        return false;
    }
    bool read = read_rows(file, path, train, held_out);
    gzclose(file);
    if (!read) {
        digits_free(train);
        digits_free(held_out);
    }
    return read;
}

void digits_free(struct digits *digits)
{
    free(digits->pixels);
    free(digits->labels);
    *digits = (struct digits){0};
}
