/* tape_frame.c: see tape_frame.h. */
#include "tape_frame.h"

uint32_t tape_frame_begin(struct tape *t)
{
    if (t->n_frames == t->frames_size) {
        uint32_t size = t->frames_size ? t->frames_size * 2 : 8;
        void *p = t->memory->resize(t->frames, size * sizeof *t->frames, t->memory->payload);
        if (!p)
            return UINT32_MAX;
        t->frames = p;
        t->frames_size = size;
    }
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
