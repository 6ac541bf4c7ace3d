/* digits_data.h: the images of handwritten digits, read from a CSV file.
 *
 * A row of the file is 64 pixels from 0 to 16 and a label from 0 to 9. Rows i with i mod 5 = 4 are
 * held out of the training.
 */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#include <stdbool.h>
#include <stdint.h>

enum { DIGITS_PIXELS = 64, DIGITS_CLASSES = 10 };

struct digits {
    int64_t count;
    float *pixels;   /* [count, DIGITS_PIXELS], scaled to 0..1 */
    int64_t *labels; /* [count] */
};

/* Reads the file, plain or compressed by gzip, into *train and *held_out, which digits_free()
 * frees. Returns false with one line on standard error; both are empty then. */
bool digits_load(const char *path, struct digits *train, struct digits *held_out);

void digits_free(struct digits *digits);

#endif
