/* normalize_runs.c: normalization and its gradient run by run: three passes forward, two backward,
 * over a row or a channel while it lies in cache.
 *
 * Rows and channels are shared among threads; what is summed over rows is summed in groups that do
 * not depend on the threads, so neither does a result.
 */
#include "dense.h"
#include "elementwise.h"
#include "normalize.h"
#include "threads.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_RUN = 16, /* elements of a channel that lie together */
    LEAST_ROWS = 32,
    MOST_GROUPS = 256
};

bool normalize_has_runs(const struct normalization *n)
{
    return !n->by_channel || n->inner >= LEAST_RUN;
}

struct runs {
    const struct normalization *n;
    const struct kernel_isa *isa;
    const struct normalize_forward *forward;
    const struct normalize_gradient *gradient;
    int64_t group;  /* rows whose share of gw and gb is summed up alone */
    int64_t groups; /* of rows; kept indices if by channel */
    size_t elem;
    char *shares; /* gw and gb of each group */
};

static char *run_at(const struct runs *all, const void *data, int64_t outer, int64_t kept)
{
    return (char *)data + (size_t)((outer * all->n->kept + kept) * all->n->inner) * all->elem;
}

/* sum += term, with what is lost (Neumaier). */
static void add(double *sum, double *lost, double term)
{
    const double next = *sum + term;
    *lost += fabs(*sum) >= fabs(term) ? (*sum - next) + term : (term - next) + *sum;
    *sum = next;
}

static double total(double sum, double lost)
{
    return isfinite(sum) ? sum + lost : sum;
}

static void forward_index(const struct runs *all, int64_t kept)
{
    const struct normalization *n = all->n;
    const struct normalize_forward *data = all->forward;
    const int d = n->dtype;
    const double count = (double)(n->outer * n->inner);
    struct kernel_norm_run run = {0};
    double sum = 0, lost = 0;
    if (n->centered) {
        for (int64_t o = 0; o < n->outer; o++)
            add(&sum, &lost, all->isa->sum[d](n->inner, run_at(all, data->x, o, kept)));
        run.mean = normalize_value_put(d, data->mean, kept, total(sum, lost) / count);
    }
    sum = lost = 0;
    for (int64_t o = 0; o < n->outer; o++)
        add(&sum, &lost,
            all->isa->norm_spread[d](n->inner, run_at(all, data->x, o, kept), run.mean));
    double var = total(sum, lost) / count;
    if (data->var != NULL)
        var = normalize_value_put(d, data->var, kept, var);
    run.rstd = normalize_value_put(d, data->rstd, kept, 1 / sqrt(var + data->eps));
    if (normalize_is_far(n, run.mean, var, data->eps))
        normalize_rescale_into(n, data, kept, &run.mean, &run.rstd);
    if (n->by_channel) {
        run.weight = kernel_load(d, data->w, kept);
        run.bias = kernel_load(d, data->b, kept);
    } else {
        run.w = data->w;
        run.b = data->b;
    }
    for (int64_t o = 0; o < n->outer; o++) {
        run.x = run_at(all, data->x, o, kept);
        run.y = run_at(all, data->y, o, kept);
        all->isa->norm_apply[d](n->inner, &run);
    }
}

static void forward_part(void *job, int part, int parts)
{
    const struct runs *all = job;
    const int64_t end = all->n->kept * (part + 1) / parts;
    for (int64_t k = all->n->kept * part / parts; k < end; k++)
        forward_index(all, k);
}

/* Passes over arrays, and operations of each element in all of them. */
enum { FORWARD_PASSES = 4, FORWARD_FLOPS = 6, GRADIENT_PASSES = 5, GRADIENT_FLOPS = 12 };

static int parts_of(const struct normalization *n, size_t elem, int passes, int flops)
{
    const uint64_t bytes = (uint64_t)(n->outer * n->kept * n->inner) * elem;
    return threads_parts(threads_ns(bytes, passes, flops));
}

void normalize_runs_forward(const struct normalization *n, const struct normalize_forward *data)
{
    struct runs all = {
        .n = n, .isa = kernel_isa_get(), .forward = data, .elem = kernel_dtype_bytes(n->dtype)};
    threads_run(parts_of(n, all.elem, FORWARD_PASSES, FORWARD_FLOPS), forward_part, &all);
}

/* ---- the gradient ---- */

static void channel_gradient(const struct runs *all, int64_t kept)
{
    const struct normalization *n = all->n;
    const struct normalize_gradient *data = all->gradient;
    const int d = n->dtype;
    const double count = (double)(n->outer * n->inner);
    struct kernel_norm_run run = {.mean = kernel_load(d, data->mean, kept),
                                  .rstd = kernel_load(d, data->rstd, kept),
                                  .weight = kernel_load(d, data->w, kept)};
    struct normalize_statistics found;
    if ((run.rstd == 0 || isinf(run.rstd)) && normalize_rescale(n, data->x, kept, 0, &found))
        run.rstd = found.rstd;
    double sum[2] = {0}, lost[2] = {0};
    for (int64_t o = 0; o < n->outer; o++) {
        double sums[2] = {0};
        run.g = run_at(all, data->g, o, kept);
        run.x = run_at(all, data->x, o, kept);
        all->isa->norm_sums[d](n->inner, &run, sums);
        for (int k = 0; k < 2; k++)
            add(&sum[k], &lost[k], sums[k]);
    }
    for (int k = 0; k < 2; k++)
        sum[k] = total(sum[k], lost[k]);
    (void)normalize_value_put(d, data->gb, kept, sum[0]);
    (void)normalize_value_put(d, data->gw, kept, sum[1]);
    run.of_q = run.weight * sum[0] / count;
    run.of_qz = run.weight * sum[1] / count;
    for (int64_t o = 0; o < n->outer; o++) {
        run.g = run_at(all, data->g, o, kept);
        run.x = run_at(all, data->x, o, kept);
        run.y = run_at(all, data->gx, o, kept);
        all->isa->norm_back[d](n->inner, &run);
    }
}

static size_t share_bytes(const struct normalization *n)
{
    return dense_rounded((size_t)n->inner * kernel_dtype_bytes(n->dtype));
}

static void group_gradient(const struct runs *all, int64_t group)
{
    const struct normalization *n = all->n;
    const struct normalize_gradient *data = all->gradient;
    const int d = n->dtype;
    const int64_t from = group * all->group, past = from + all->group;
    const int64_t end = past < n->kept ? past : n->kept;
    struct kernel_norm_run run = {.w = data->w};
    run.gw = all->shares + (size_t)group * 2 * share_bytes(n);
    if (n->centered)
        run.gb = (char *)run.gw + share_bytes(n);
    memset(run.gw, 0, 2 * share_bytes(n));
    for (int64_t k = from; k < end; k++) {
        double sums[2] = {0};
        run.g = run_at(all, data->g, 0, k);
        run.x = run_at(all, data->x, 0, k);
        run.y = run_at(all, data->gx, 0, k);
        run.mean = n->centered ? kernel_load(d, data->mean, k) : 0;
        run.rstd = kernel_load(d, data->rstd, k);
        all->isa->norm_sums[d](n->inner, &run, sums);
        run.of_q = n->centered ? sums[0] / (double)n->inner : 0;
        run.of_qz = sums[1] / (double)n->inner;
        all->isa->norm_back[d](n->inner, &run);
    }
}

static void gradient_part(void *job, int part, int parts)
{
    const struct runs *all = job;
    const int64_t end = all->groups * (part + 1) / parts;
    for (int64_t k = all->groups * part / parts; k < end; k++)
        if (all->n->by_channel)
            channel_gradient(all, k);
        else
            group_gradient(all, k);
}

static struct runs runs_of(const struct normalization *n)
{
    struct runs all = {.n = n, .elem = kernel_dtype_bytes(n->dtype), .group = 1};
    if (!n->by_channel) {
        const int64_t least = (n->kept + MOST_GROUPS - 1) / MOST_GROUPS;
        all.group = least > LEAST_ROWS ? least : LEAST_ROWS;
    }
    all.groups = (n->kept + all.group - 1) / all.group;
    return all;
}

size_t normalize_runs_space(const struct normalization *n)
{
    return n->by_channel ? 0 : (size_t)runs_of(n).groups * 2 * share_bytes(n);
}

/* out = the sum of the groups' shares of gw (which = 0) or gb (1). */
static void gather_shares(const struct runs *all, void *out, size_t which)
{
    const size_t bytes = (size_t)all->n->inner * all->elem;
    if (out == NULL)
        return;
    memset(out, 0, bytes);
    for (int64_t k = 0; k < all->groups; k++)
        kernel_loop_run(LOOP_copy, all->n->dtype, all->n->inner, out,
                        all->shares + (2 * (size_t)k + which) * share_bytes(all->n), NULL, NULL,
                        true);
}

void normalize_runs_gradient(const struct normalization *n, const struct normalize_gradient *data,
                             void *space)
{
    struct runs all = runs_of(n);
    if (n->inner == 0)
        return;
    all.isa = kernel_isa_get();
    all.gradient = data;
    all.shares = space;
    threads_run(parts_of(n, all.elem, GRADIENT_PASSES, GRADIENT_FLOPS), gradient_part, &all);
    if (!n->by_channel) {
        gather_shares(&all, data->gw, 0);
        gather_shares(&all, data->gb, 1);
    }
}
