/* analyze_shape.h: what a row's shape says: "f64[256,256] of [256,1], [256]". */
#ifndef PROFILER_ANALYZE_SHAPE_H
#define PROFILER_ANALYZE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

enum { ANALYZE_SHAPE_ROOM = 256 };

/* An op whose result is a grid of two operands that have as many elements, but not as many
 * dimensions. Texts end with a NUL. */
struct analyze_grid {
    double times; /* the result's elements, of the largest operand's */
    char result[ANALYZE_SHAPE_ROOM], fewer[ANALYZE_SHAPE_ROOM], more[ANALYZE_SHAPE_ROOM];
    /* "[256,256]", "[256]", "[256,1]": that and the operands of fewer and more dimensions */
    unsigned dimensions; /* of the latter */
};
/* False: it is none, or not so much larger, or the text is no shape. */
bool analyze_shape_grid(struct analyze_grid *grid, const char *shape);

#endif
