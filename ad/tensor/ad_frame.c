/* ad_frame.c: frames, and values that are released one by one. */
#include "ad_internal.h"

#include "tape_frame.h"

ad_frame ad_frame_begin_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "frame_begin", site);
    uint32_t level = t ? tape_frame_begin(t) : UINT32_MAX;
    if (!t)
        return (ad_frame){0, 0, 0, 0};
    if (level == UINT32_MAX) {
        tape_fail(t, TAPE_ERROR_MEMORY, site, "frame_begin: out of memory");
        return (ad_frame){tape.slot, tape.generation, 0, 0};
    }
    return (ad_frame){tape.slot, tape.generation, level, t->frames[level].number};
}

/* Whether the frame's end may release what lies behind it. */
static ad_status check(struct tape *t, ad_frame frame, const ad_tensor *keep, int n,
                       struct tape_site site)
{
    char at[AD_DROPPED_TEXT];
    if (n < 0 || (n > 0 && !keep))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    n < 0 ? "frame_end: n is negative"
                                          : "frame_end: keep is a null pointer");
    /* A frame without a number is the result of a begin that failed. */
    if (frame.number == 0)
        return t->error.code ? (ad_status)t->error.code
                             : (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                                    "frame_end: the frame's begin failed");
    if (!tape_frame_is_open(t, frame.level, frame.number))
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "frame_end: the frame is not open: it was ended, or dropped by "
                                    "a reset or a rewind%s; the call is",
                                    ad_dropped_at(t, at, sizeof at));
    if (frame.level < t->fixed.n_frames)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "frame_end: the frame is older than the %s that runs",
                                    tape_fixed_by(t));
    /* After a failure results of failed ops are among them: there is nothing to keep of those. */
    for (int i = 0; i < n && t->error.code == TAPE_OK; i++) {
        if (!ad_value_on(t, keep[i], site, "frame_end: keep[%d]", i))
            return (ad_status)t->error.code;
    }
    return AD_OK;
}

/* The value of a handle that is known to be one of the tape's if it is live; 0: it is not. */
static uint32_t live(const struct tape *t, ad_frame frame, ad_tensor x)
{
    return x.tape == frame.tape && x.tape_generation == frame.tape_generation && x.value != 0 &&
                   x.value < t->n_values && t->entries[x.value].generation == x.value_generation
               ? x.value
               : 0;
}

ad_status ad_frame_end_site(ad_frame frame, const ad_tensor *keep, int n, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(frame.tape, frame.tape_generation, "frame_end", site);
    if (!t)
        return ad_failed();
    ad_status status = check(t, frame, keep, n, site);
    if (status != AD_OK)
        return status;
    for (int i = 0; i < n; i++) {
        uint32_t v = live(t, frame, keep[i]);
        if (v >= t->frames[frame.level].n_values) /* what is older stays anyway */
            tape_release_keep(t, v);
    }
    tape_frame_end(t, frame.level, site);
    return AD_OK;
}

ad_status ad_release_site(ad_tensor x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    uint32_t v = ad_value_find(x, "release", 0, site, &t, &status);
    return v ? (ad_status)tape_release(t, v, site) : status;
}
