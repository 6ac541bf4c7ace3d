/* common_own.c: steps of a workload on a tape of ours. */
#include "common_own.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_STEPS = 1 << 16 };

const char *const step_phase[STEP_METRICS] = {"forward", "backward", "total"};

const char *own_dtype_name(ad_dtype dtype)
{
    return dtype == AD_F32 ? "f32" : "f64";
}

bool own_complain(const struct workload *w, const char *what)
{
    fprintf(stderr, "%s %s: %s\n", w->spec->name, own_dtype_name(w->dtype), what);
    return false;
}

static bool steps(struct workload *w, double seconds, double *result)
{
    static double sample[STEP_METRICS][MAX_STEPS];
    size_t n = 0;
    double end = rounds_now() + 1e9 * seconds;
    double start;
    do {
        start = rounds_now();
        ad_tensor loss = workload_forward(w);
        double middle = rounds_now();
        ad_status status = workload_backward(w, loss);
        if (status == AD_OK)
            status = ad_tape_rewind(w->tape, w->mark);
        double stop = rounds_now();
        if (status != AD_OK)
            return own_complain(w, ad_tape_message(w->tape));
        size_t slot = n++ % MAX_STEPS;
        sample[STEP_FORWARD][slot] = middle - start;
        sample[STEP_BACKWARD][slot] = stop - middle;
        sample[STEP_TOTAL][slot] = stop - start;
    } while (start < end);
    for (int m = 0; m < STEP_METRICS; ++m)
        result[m] = rounds_median(sample[m], n < MAX_STEPS ? n : MAX_STEPS);
    return true;
}

/* ---- profiles ---- */

bool own_path_make(struct own_path *path)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(path->folder, sizeof path->folder, "%s/tapescope-bench-XXXXXX",
             temporary ? temporary : "/tmp");
    if (!mkdtemp(path->folder))
        return false;
    snprintf(path->file, sizeof path->file, "%s/profile", path->folder);
    return true;
}

void own_path_drop(const struct own_path *path)
{
    unlink(path->file);
    rmdir(path->folder);
}

static bool profile_start(const struct own *own)
{
    return ad_profile_start_with(own->profile, own->options) == AD_OK ||
           own_complain(own->workload, ad_tape_message((ad_tape){0}));
}

static bool profile_stop(const struct workload *w)
{
    return ad_profile_stop() == AD_OK || own_complain(w, ad_tape_message((ad_tape){0}));
}

bool own_round(void *context, double seconds, double *result)
{
    const struct own *own = context;
    if (!own->profile)
        return steps(own->workload, seconds, result);
    if (!profile_start(own))
        return false;
    bool done = steps(own->workload, seconds, result);
    done = profile_stop(own->workload) && done;
    unlink(own->profile);
    return done;
}

bool own_bytes_of(struct workload *w, struct own_bytes *bytes)
{
    ad_saved before, after;
    ad_stats start, end;
    ad_status status = ad_tape_saved_for_backward(w->tape, &before);
    if (status == AD_OK)
        status = ad_tape_stats(w->tape, &start);
    workload_forward(w);
    if (status == AD_OK)
        status = ad_tape_saved_for_backward(w->tape, &after);
    if (status == AD_OK)
        status = ad_tape_stats(w->tape, &end);
    if (status == AD_OK)
        status = ad_tape_rewind(w->tape, w->mark);
    if (status != AD_OK)
        return own_complain(w, ad_tape_message(w->tape));
    bytes->saved = after.buffer_bytes - before.buffer_bytes;
    bytes->records = after.record_bytes - before.record_bytes;
    bytes->all = end.live_bytes - start.live_bytes;
    bytes->ops = end.records - start.records;
    return true;
}

/* ---- gradients ---- */

bool own_sum_is_right(const struct workload *w, const char *whose, double sum)
{
    const double exact = w->spec->gradient_sum;
    const double bound = w->dtype == AD_F32    ? 1e-3 * fabs(exact) + 1e-5
                         : fabs(exact) < 1e-12 ? 1e-12
                                               : 1e-12 * fabs(exact);
    if (fabs(sum - exact) <= bound)
        return true;
    char text[160];
    snprintf(text, sizeof text, "sum of gradients of %s: %.17g, it should be %.17g", whose, sum,
             exact);
    return own_complain(w, text);
}

/* One step, whose sum has to be right. */
static bool own_check(struct workload *w)
{
    ad_status status = workload_backward(w, workload_forward(w));
    double sum = workload_gradient_sum(w);
    if (status == AD_OK)
        status = ad_tape_rewind(w->tape, w->mark);
    if (status != AD_OK)
        return own_complain(w, ad_tape_message(w->tape));
    return own_sum_is_right(w, "tapescope", sum);
}

/* ---- workloads ---- */

bool own_with(const struct workload_case *spec, ad_dtype dtype,
              bool (*run)(void *context, struct workload *w), void *context)
{
    struct workload w;
    bool done =
        workload_create(&w, spec, dtype) == AD_OK || own_complain(&w, ad_tape_message(w.tape));
    done = done && own_check(&w) && run(context, &w);
    workload_destroy(&w);
    return done;
}

bool own_each(const struct options *options, const struct workload_case *cases,
              bool (*run)(void *context, struct workload *w), void *context)
{
    bool done = true;
    for (const struct workload_case *c = cases; c->name; ++c)
        for (int dtype = AD_F64; dtype >= AD_F32; --dtype)
            if (options_want(options->case_name, c->name) &&
                options_want(options->dtype, own_dtype_name((ad_dtype)dtype)))
                done = own_with(c, (ad_dtype)dtype, run, context) && done;
    return done;
}

void own_metric(char *metric, const struct workload *w, int threads, const char *what)
{
    snprintf(metric, OWN_METRIC_BYTES, "%s_%dt_%s", own_dtype_name(w->dtype), threads, what);
}

bool own_compare(const char *suite, const struct options *options, const struct own *own,
                 const struct rounds_side *peer, unsigned phases, const char *suffix)
{
    char metric[STEP_METRICS][OWN_METRIC_BYTES], what[OWN_METRIC_BYTES / 2];
    struct own copy = *own;
    struct rounds_plan plan = {.suite = suite,
                               .case_name = own->workload->spec->name,
                               .unit = "ns",
                               .n_metrics = STEP_METRICS,
                               .rounds = options->rounds,
                               .seconds = options->seconds};
    for (int m = 0; m < STEP_METRICS; ++m) {
        snprintf(what, sizeof what, "%s%s", step_phase[m], suffix);
        own_metric(metric[m], own->workload, options->threads, what);
        plan.metric[m] = phases >> m & 1 ? metric[m] : NULL;
    }
    return rounds_compare(
        &plan, &(struct rounds_side){own->profile ? "profiled" : "tapescope", own_round, &copy},
        peer);
}
