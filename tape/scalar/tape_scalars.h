/* tape_scalars.h: what scalars are to the rest of the tape. */
#ifndef TAPE_SCALARS_H
#define TAPE_SCALARS_H

#include "tape_part.h"

extern const struct tape_part tape_forks_part, tape_scalars_part;

#endif
