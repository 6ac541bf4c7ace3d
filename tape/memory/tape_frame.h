/* tape_frame.h: frames: what was computed since a frame's begin is released at its end.
 *
 * Frames nest; a rewind drops those that began behind its mark.
 */
#ifndef TAPE_FRAME_H
#define TAPE_FRAME_H

#include "tape_release.h"

/* Level of the new frame, or UINT32_MAX (out of memory; not sticky). */
uint32_t tape_frame_begin(struct tape *t);
/* The frame that has this level and number is open. */
bool tape_frame_is_open(const struct tape *t, uint32_t level, uint32_t number);
/* Ends it and the frames in it, releasing all but what tape_release_keep was told. */
void tape_frame_end(struct tape *t, uint32_t level, struct tape_site site);

#endif
