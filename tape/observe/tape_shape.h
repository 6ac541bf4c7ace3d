/* tape_shape.h: shapes of ops, by which a profile may tell rows apart.
 *
 * Nothing here is called unless a hook is set.
 */
#ifndef TAPE_SHAPE_H
#define TAPE_SHAPE_H

#include "tape_observer.h"

/* Shapes that are told apart in a process; all others are one. */
enum { TAPE_SHAPES = 4096 };

/* A result outgrows its operands if it is so many times as large as each. */
enum { TAPE_OUTGROWS = 8 };

#endif
