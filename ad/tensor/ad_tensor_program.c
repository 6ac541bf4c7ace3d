/* ad_tensor_program.c: programs of tensors: the checks of their calls; see tape_replay.h. */
#include <tapescope/ad_tensor_program.h>

#include "ad_internal.h"

#include "tape_replay.h"
#include "tape_value.h"

/* The tape, without an error; else NULL and *status. */
static struct tape *replay_enter(ad_tape tape, const char *what, struct tape_site site,
                                 ad_status *status)
{
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    *status = !t ? ad_failed() : (ad_status)t->error.code;
    return *status == AD_OK ? t : NULL;
}

ad_status ad_tensor_program_begin_site(ad_tape tape, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = replay_enter(tape, "tensor_program_begin", site, &status);
    return t ? (ad_status)tape_replay_begin(t, site) : status;
}

ad_status ad_tensor_program_end_site(ad_tape tape, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "tensor_program_end", site);
    return t ? (ad_status)tape_replay_end(t, site) : ad_failed();
}

/* The leaf or constant of x, 0: it is none, and the tape's error says so. */
static uint32_t input_find(struct tape *t, int i, ad_tensor x, const void *array,
                           struct tape_site site)
{
    const uint32_t index = ad_value_on(t, x, site, "%s: x[%d]", tape_replay_op, i);
    if (index == 0)
        return 0;
    const struct tape_value *v = &t->entries[index];
    if (!(v->flags & TAPE_LEAF) &&
        (v->root != index || (v->flags & (TAPE_OWNS_DATA | TAPE_FREED)))) {
        tape_fail(t, TAPE_ERROR_HANDLE, site, "%s: x[%d] is neither a leaf nor a constant",
                  tape_replay_op, i);
        return 0;
    }
    if (!array && v->array.size > 0) {
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: arrays[%d] is a null pointer", tape_replay_op,
                  i);
        return 0;
    }
    return index;
}

ad_status ad_tensor_replay_site(ad_tape tape, int n, const ad_tensor *x, const void *const *arrays,
                                unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = replay_enter(tape, tape_replay_op, site, &status);
    if (!t)
        return status;
    if (n < 0 || (n > 0 && (!x || !arrays)))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "%s: n is negative, or a null pointer", tape_replay_op);
    status = (ad_status)tape_replay_ready(t, tape_replay_op, site);
    for (int i = 0; i < n && status == AD_OK; i++)
        if (!input_find(t, i, x[i], arrays[i], site))
            status = (ad_status)t->error.code;
    for (int i = 0; i < n && status == AD_OK; i++)
        tape_replay_bind(t, x[i].value, arrays[i]);
    return status == AD_OK ? (ad_status)tape_replay(t, site) : status;
}
