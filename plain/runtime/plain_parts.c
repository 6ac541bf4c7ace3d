/* plain_parts.c: parts of plain C that have a rule of the user's, or are computed again. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <stdlib.h>

ad_status ad_plain_rule(int64_t n, const double *x, int64_t m, double *y, const char *name,
                        ad_custom_callback *pullback, const void *data, size_t bytes)
{
    const uintptr_t pc = PLAIN_HERE;
    const struct ad_custom_ custom = {name, pullback, data, bytes};
    ad_real *from = ad_plain_reals_(n, x), *to = ad_plain_reals_(m, y);
    double *values = malloc((size_t)(m > 0 ? m : 0) * sizeof *values + 1);
    ad_status status = AD_ERROR_MEMORY;
    if (from && to && values) {
        for (int64_t i = 0; i < n; i++)
            from[i] = plain_looked(&x[i], pc);
        for (int64_t i = 0; i < m; i++)
            values[i] = y[i];
        status = ad_plain_custom_(pc, n, from, m, values, to, custom);
        ad_plain_written_(m, y, to);
    } else {
        ad_plain_fail_(status, pc, "plain_rule: out of memory");
    }
    free(from);
    free(to);
    free(values);
    return status;
}

/* The function has copies, so that what it writes in a sweep harms nobody. */
void ad_plain_part_(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                    void *payload)
{
    const ad_plain_part *part = payload;
    double *x = malloc((size_t)(n_in + n_out) * sizeof *x + 1), *y = x + n_in;
    if (!x) { /* out[] that are not set are an error */
        ad_plain_memory_(tape);
        return;
    }
    ad_plain_written_(n_in, x, in);
    for (int64_t i = 0; i < n_out; i++)
        ad_plain_write(&y[i], (ad_real){0, 0, 0});
    part->function(n_in, x, n_out, y, part->payload);
    for (int64_t i = 0; i < n_out; i++)
        out[i] = ad_plain_read(&y[i]);
    plain_forget(x, (size_t)(n_in + n_out) * sizeof *x);
    free(x);
}
