/* convolution_tiles.h: the loops of a convolution for one instruction set.
 *
 * Internal to kernels/. They read images with their padding around them, as convolution_direct.c
 * lays them out. Counts and steps are in elements; the first index of the tables is the dtype.
 */
#ifndef CONVOLUTION_TILES_H
#define CONVOLUTION_TILES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CONVOLUTION_TILE = 6,    /* output channels, or elements of a window, at a time */
    CONVOLUTION_VECTORS = 2, /* vectors beside each other in a tile */
    CONVOLUTION_WINDOW = 64, /* the most elements of a window that spread takes */
    /* Weights of an output channel at a time: those of a tile stay in the first-level cache. */
    CONVOLUTION_DEPTH = 320
};

/* Rows of images to be copied, zeros around them. */
struct convolution_frame {
    int64_t planes, image[2];
    int64_t from[2]; /* the first row and column of the copy, in the image; may be negative */
    int64_t rows, width, plane_step;
};

/* A window that walks over the copy of one image. */
struct convolution_walk {
    int64_t inputs, outputs, kernel[2];
    int64_t weight_output, weight_input, weight_step; /* steps among the weights */
    int64_t plane, tap[2];                            /* steps in the copy, of inputs and windows */
    int64_t row, column;                              /* steps in the copy, of results */
    int64_t rows, width;                              /* of the result in this strip */
    int64_t result_plane;
    bool accumulate;
};

struct convolution_tiles {
    void (*frame[2])(const struct convolution_frame *f, const void *x, void *to);
    /* Results of rows from..to: `column` is 1. */
    void (*spread[2])(const struct convolution_walk *t, const void *weights, const void *copy,
                      void *y, int64_t from, int64_t to);
    /* Elements of y [outputs, n], channels `plane` apart, as blocks of output channels; in a block
     * all lanes of an element lie side by side, 0 beyond the last channel. */
    void (*turn[2])(int64_t outputs, int64_t n, int64_t plane, const void *y, void *turned);
    /* Adds to the weights: tiles from..to of weigh_tiles(). */
    void (*weigh[2])(const struct convolution_walk *t, const void *turned, const void *copy,
                     void *weights, int64_t from, int64_t to);
    int64_t (*weigh_tiles[2])(const struct convolution_walk *t);
};

extern const struct convolution_tiles kernel_convolution_portable;
#if defined(__x86_64__) && defined(__linux__)
extern const struct convolution_tiles kernel_convolution_avx2, kernel_convolution_avx512;
#endif

#endif
