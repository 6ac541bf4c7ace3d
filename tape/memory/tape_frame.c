/* tape_frame.c: see tape_frame.h. */
#include "tape_frame.h"

uint32_t tape_frame_begin(struct tape *t)
{
    struct tape_frame *frames =
        tape_array_reserve(t->memory, t->frames, t->n_frames + 1, &t->frames_size, sizeof *frames);
    if (!frames)
        return UINT32_MAX;
    t->frames = frames;
    t->frames[t->n_frames] = (struct tape_frame){++t->frame, t->n_values, t->last_record};
    return t->n_frames++;
}

bool tape_frame_is_open(const struct tape *t, uint32_t level, uint32_t number)
{
    return level < t->n_frames && t->frames[level].number == number;
}

void tape_frame_end(struct tape *t, uint32_t level, struct tape_site site)
{
    tape_release_behind(t, &t->frames[level], site);
    t->n_frames = level;
}
