/* ad_on_adjoint.c: functions of the user's that sweeps call with a complete adjoint. */
#include "ad_internal.h"

#include "tape_call.h"
#include "tape_listen.h"

#include <string.h>

static bool adjoint_tell(struct tape *t, const struct tape_listener *l, struct tape_value *v,
                         struct tape_site site)
{
    char shape[96];
    ad_custom_array a = {.data = v->adjoint,
                         .size = v->array.size,
                         .dtype = (ad_dtype)v->array.dtype,
                         .rank = v->array.rank};
    memcpy(a.shape, v->array.shape, v->array.rank * sizeof *a.shape);
    const uint64_t owner = ad_calls_begin(l->slot);
    const ad_status status = ((ad_adjoint_callback *)l->callback)(&a, l->payload);
    ad_calls_end(l->slot, owner);
    if (status == AD_OK)
        return true;
    tape_fail(t,
              (unsigned)status <= AD_ERROR_NONFINITE ? (enum tape_status)status : TAPE_ERROR_STATE,
              site, "%s: the callback of %s failed: %s; the call is", tape_listen_op,
              kernel_describe(&v->array, shape, sizeof shape), ad_status_text(status));
    return false;
}

ad_status ad_on_adjoint_site(ad_tensor x, ad_adjoint_callback *callback, void *payload,
                             unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    const uint32_t v = ad_value_find(x, tape_listen_op, 0, site, &t, &status);
    if (!v)
        return status;
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    const struct tape_listener l = {.call = adjoint_tell,
                                    .callback = (void (*)(void))callback,
                                    .payload = payload,
                                    .slot = x.tape};
    return (ad_status)tape_listen(t, v, &l, site);
}
