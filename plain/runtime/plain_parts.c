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

/* What a function of doubles is given and sets: copies, so that what it writes in a sweep harms
 * nobody. NULL: no memory; out[] that are not set are an error. */
static double *part_begin(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out)
{
    double *x = malloc((size_t)(n_in + n_out) * sizeof *x + 1);
    if (!x) {
        ad_plain_memory_(tape);
        return NULL;
    }
    ad_plain_written_(n_in, x, in);
    for (int64_t i = 0; i < n_out; i++)
        ad_plain_write(&x[n_in + i], (ad_real){0, 0, 0});
    return x;
}

static void part_end(double *x, int64_t n_in, int64_t n_out, ad_real *out)
{
    for (int64_t i = 0; i < n_out; i++)
        out[i] = ad_plain_read(&x[n_in + i]);
    plain_forget(x, (size_t)(n_in + n_out) * sizeof *x);
    free(x);
}

void ad_plain_part_(ad_tape tape, int64_t n_in, const ad_real *in, int64_t n_out, ad_real *out,
                    void *payload)
{
    const ad_plain_part *part = payload;
    double *x = part_begin(tape, n_in, in, n_out);
    if (!x)
        return;
    part->function(n_in, x, n_out, x + n_in, part->payload);
    part_end(x, n_in, n_out, out);
}

bool ad_plain_step_(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                    ad_real *out, void *payload)
{
    const ad_plain_step *step = payload;
    double *x = part_begin(tape, n_in, in, n_out);
    if (!x)
        return false;
    const bool more = step->function(i, n_in, x, n_out, x + n_in, step->payload);
    part_end(x, n_in, n_out, out);
    return more;
}
