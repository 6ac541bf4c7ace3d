/* bench_reverse.c: what derivatives beyond the gradient cost, in gradients: a Hessian times a
 * vector, a derivative in a direction, a Jacobian, a loop that is planned, a sparse Hessian,
 * programs of numbers, what is sparse of tensors; a sparse Jacobian in dense blocks; replays of
 * tensors, and their programs as C, in recordings; and a program of numbers that was written as C,
 * in times its objective.
 *
 * `ours` is one such derivative, `peer` one gradient of the same function by ad_value_and_gradient,
 * measured in turn, so that a ratio is a number of gradients. Before that each is compared with the
 * same derivative in another way.
 *
 * Rows go to standard output, everything else to standard error. The exit status is 1 if something
 * failed or a derivative is wrong.
 */
#include "bundle.h"
#include "common_environment.h"
#include "common_own.h"
#include "real.h"
#include "reverse_numbers.h"
#include "reverse_written.h"

#include <tapescope/ad_functional.h>
#include <tapescope/ad_real.h>
#include <tapescope/ad_tensor_program.h>
#include <tapescope/ad_tensor_sparse.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_X = WORKLOAD_MAX_ARRAYS };

/* A function of leaves, and what is computed of it. */
struct reverse_case {
    const char *name;
    ad_tape tape;
    ad_function *function; /* whose derivative is computed, and whose gradient */
    ad_function *loss;
    void *payload;
    int n;
    ad_tensor x[MOST_X];
    int64_t counts[MOST_X], n_results, n_variables;
    double *direction[MOST_X], *result[MOST_X], *gradient[MOST_X]; /* [counts] */
    double *jacobian[MOST_X], *derivative;
    int64_t jacobian_counts[MOST_X];
};

static const void *const *directions(const struct reverse_case *p)
{
    return (const void *const *)(const void *)p->direction;
}

static void *const *buffers(double *const *of)
{
    return (void *const *)(const void *)of;
}

static ad_status gradient(const struct reverse_case *p)
{
    return ad_value_and_gradient(p->tape, p->loss, p->n, p->x, p->payload, NULL,
                                 buffers(p->gradient), p->counts);
}

static ad_status hvp(const struct reverse_case *p)
{
    return ad_hvp(p->tape, p->loss, p->n, p->x, p->payload, directions(p), buffers(p->result),
                  p->counts);
}

static ad_status jvp(const struct reverse_case *p)
{
    return ad_jvp(p->tape, p->function, p->n, p->x, p->payload, directions(p), p->counts, NULL,
                  p->derivative, p->n_results);
}

static ad_status jacobian(const struct reverse_case *p)
{
    return ad_jacobian(p->tape, p->function, p->n, p->x, p->payload, AD_JACOBIAN_BY_SHAPE,
                       buffers(p->jacobian), p->jacobian_counts);
}

static bool complain(const struct reverse_case *p, const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", p->name, what, why);
    return false;
}

static bool ended(const struct reverse_case *p, const char *what, ad_status status)
{
    return status == AD_OK || complain(p, what, ad_tape_message(p->tape));
}

/* ---- rounds ---- */

struct repeated {
    const struct reverse_case *problem;
    const char *what;
    ad_status (*run)(const struct reverse_case *p);
};

static bool run_once(void *context)
{
    const struct repeated *r = context;
    return ended(r->problem, r->what, r->run(r->problem));
}

/* Rows of two cases, each run again and again. */
static bool compare_repeated(const struct options *options, const char *what, struct repeated *ours,
                             const char *than, struct repeated *peer)
{
    char metric[OWN_METRIC_BYTES];
    (void)snprintf(metric, sizeof metric, "f64_%dt_%s", options->threads, what);
    const struct rounds_plan plan = {.suite = "reverse",
                                     .case_name = ours->problem->name,
                                     .unit = "ns",
                                     .metric = {metric},
                                     .n_metrics = 1,
                                     .rounds = options->rounds,
                                     .seconds = options->seconds};
    struct rounds_repeated left = {run_once, ours}, right = {run_once, peer};
    return rounds_compare(&plan, &(struct rounds_side){"tapescope", rounds_repeat, &left},
                          &(struct rounds_side){than, rounds_repeat, &right});
}

static bool compare_with(const struct options *options, const struct reverse_case *p,
                         const char *what, ad_status (*run)(const struct reverse_case *p),
                         const char *than, ad_status (*other)(const struct reverse_case *p))
{
    struct repeated ours = {p, what, run}, peer = {p, than, other};
    return compare_repeated(options, what, &ours, than, &peer);
}

static bool compare(const struct options *options, const struct reverse_case *p, const char *what,
                    ad_status (*run)(const struct reverse_case *p))
{
    return compare_with(options, p, what, run, "gradient", gradient);
}

/* ---- are they right? ---- */

/* a[n] is b[n] to 1e-9 of the largest. */
static bool near(const double *a, const double *b, int64_t n)
{
    double worst = 0, most = 0;
    for (int64_t k = 0; k < n; ++k) {
        most = fmax(most, fabs(b[k]));
        worst = fmax(worst, isnan(a[k] - b[k]) ? INFINITY : fabs(a[k] - b[k]));
    }
    return worst <= 1e-9 * most;
}

/* The gradient of <gradient, direction>, recorded and swept by single calls. */
static ad_status second_by_hand(const struct reverse_case *p)
{
    const ad_mark mark = ad_tape_mark(p->tape);
    ad_tensor g[MOST_X], sum = ad_scalar_f64(p->tape, 0);
    ad_status status =
        ad_create_graph(p->loss(p->tape, p->x, p->n, p->payload), (ad_tensor){0}, p->n, p->x, g);
    for (int i = 0; i < p->n && status == AD_OK; ++i) {
        int64_t shape[AD_MAX_RANK];
        ad_shape(g[i], shape);
        ad_tensor v = ad_constant(p->tape, AD_F64, ad_rank(g[i]), shape, p->direction[i]);
        sum = ad_add(sum, ad_sum(ad_mul(g[i], v)));
    }
    if (status == AD_OK)
        status = ad_backward(sum);
    if (status == AD_OK)
        status = ad_gradients(p->n, p->x, buffers(p->gradient), p->counts);
    return status == AD_OK ? ad_tape_rewind(p->tape, mark) : status;
}

static bool hvp_is_right(const struct reverse_case *p)
{
    bool done = ended(p, "hvp", hvp(p)) && ended(p, "second derivatives", second_by_hand(p));
    for (int i = 0; i < p->n && done; ++i)
        if (!near(p->result[i], p->gradient[i], p->counts[i]))
            done = complain(p, "hvp", "it is not the gradient of the gradient times the direction");
    return done;
}

/* The Jacobian, in both orders, times the direction is the derivative in the direction. */
static bool jacobian_is_right(const struct reverse_case *p)
{
    double *sum = malloc(((size_t)p->n_results + 1) * sizeof *sum);
    bool done = sum && ended(p, "jvp", jvp(p));
    for (int order = AD_JACOBIAN_ROWS; order <= AD_JACOBIAN_COLUMNS && done; ++order) {
        done =
            ended(p, "jacobian",
                  ad_jacobian(p->tape, p->function, p->n, p->x, p->payload,
                              (ad_jacobian_order)order, buffers(p->jacobian), p->jacobian_counts));
        for (int64_t r = 0; r < p->n_results && done; ++r) {
            sum[r] = 0;
            for (int i = 0; i < p->n; ++i)
                for (int64_t k = 0; k < p->counts[i]; ++k)
                    sum[r] += p->jacobian[i][r * p->counts[i] + k] * p->direction[i][k];
        }
        if (done && !near(sum, p->derivative, p->n_results))
            done = complain(p, "jacobian", "times the direction it is not the derivative in it");
    }
    free(sum);
    return done;
}

/* ---- Hessians times vectors, of the workloads that libtorch is measured by ---- */

static ad_tensor workload_loss(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape, (void)x, (void)n;
    return workload_forward(payload);
}

static bool arrays_make(struct reverse_case *p, double **of, const int64_t *counts)
{
    for (int i = 0; i < p->n; ++i) {
        of[i] = calloc((size_t)counts[i] + 1, sizeof *of[i]);
        if (!of[i])
            return complain(p, "arrays", "no memory");
    }
    return true;
}

static void problem_free(struct reverse_case *p)
{
    for (int i = 0; i < p->n; ++i) {
        free(p->direction[i]);
        free(p->result[i]);
        free(p->gradient[i]);
        free(p->jacobian[i]);
    }
    free(p->derivative);
}

/* Of the leaves that it has. */
static bool problem_make(struct reverse_case *p)
{
    p->n_variables = 0;
    for (int i = 0; i < p->n; ++i) {
        p->counts[i] = ad_size(p->x[i]);
        p->jacobian_counts[i] = p->counts[i] * p->n_results;
        p->n_variables += p->counts[i];
    }
    p->derivative = calloc((size_t)p->n_results + 1, sizeof *p->derivative);
    if (!p->derivative || !arrays_make(p, p->direction, p->counts) ||
        !arrays_make(p, p->result, p->counts) || !arrays_make(p, p->gradient, p->counts) ||
        (p->n_results > 0 && !arrays_make(p, p->jacobian, p->jacobian_counts)))
        return complain(p, "arrays", "no memory");
    for (int i = 0; i < p->n; ++i)
        for (int64_t k = 0; k < p->counts[i]; ++k)
            p->direction[i][k] = cos(0.91 * (double)k + i) / sqrt((double)p->n_variables);
    return true;
}

/* ---- replays, in recordings of the same workload; a sweep belongs to both ---- */

/* The same workload on two tapes. */
struct replayed {
    struct workload again, anew;
    ad_tensor loss; /* of the program */
};

static ad_status replay_of_workload(const struct reverse_case *p)
{
    const struct replayed *r = p->payload;
    ad_status status = ad_tape_zero_gradients(r->again.tape);
    if (status == AD_OK)
        status = ad_tensor_replay(r->again.tape, 0, NULL, NULL);
    return status == AD_OK ? workload_backward(&r->again, r->loss) : status;
}

static ad_status recording_of_workload(const struct reverse_case *p)
{
    const struct replayed *r = p->payload;
    const ad_status status = ad_tape_rewind(r->anew.tape, r->anew.mark);
    return status == AD_OK ? workload_backward(&r->anew, workload_forward(&r->anew)) : status;
}

static bool replay_is_right(const struct reverse_case *p)
{
    const struct replayed *r = p->payload;
    return ended(p, "replay", replay_of_workload(p)) &&
           ended(p, "recording", recording_of_workload(p)) &&
           (workload_gradient_sum(&r->again) == workload_gradient_sum(&r->anew) ||
            complain(p, "replay", "its gradients are not those of a recording"));
}

static bool replays_compare(const struct options *options, const struct workload *w)
{
    struct replayed r = {.loss = {0}};
    struct reverse_case p = {.name = w->spec->name, .payload = &r, .tape = w->tape};
    bool done = ended(&p, "workload", workload_create(&r.again, w->spec, w->dtype)) &&
                ended(&p, "workload", workload_create(&r.anew, w->spec, w->dtype)) &&
                ended(&p, "program", ad_tensor_program_begin(r.again.tape));
    if (done) {
        r.loss = workload_forward(&r.again);
        p.tape = r.again.tape;
        done = ended(&p, "program", ad_tensor_program_end(r.again.tape)) && replay_is_right(&p) &&
               compare_with(options, &p, "replay", replay_of_workload, "record",
                            recording_of_workload) &&
               ended(&p, "replay", replay_of_workload(&p));
        struct repeated anew = {&p, "record", recording_of_workload};
        struct rounds_repeated peer = {run_once, &anew};
        done =
            done && written_tensors_compare(options, &r.again, r.loss,
                                            &(struct rounds_side){"record", rounds_repeat, &peer});
    }
    workload_destroy(&r.again);
    workload_destroy(&r.anew);
    return done;
}

/* ---- both ---- */

static bool second_of_workload(void *context, struct workload *w)
{
    const struct options *options = context;
    struct reverse_case p = {.name = w->spec->name,
                             .tape = w->tape,
                             .loss = workload_loss,
                             .payload = w,
                             .n = w->n_parameters};
    memcpy(p.x, w->parameter, sizeof p.x);
    const bool done = problem_make(&p) && hvp_is_right(&p) && compare(options, &p, "hvp", hvp) &&
                      replays_compare(options, w);
    problem_free(&p);
    return done;
}

static const char *const second_cases[] = {"chain64", "mlp32", "mlp128", "lstm", "attn"};

/* ---- Jacobians of a perceptron of three layers by its input ---- */

enum { LAYERS = 3 };

static const struct perceptron_case {
    const char *name;
    int64_t n_in, n_out;
} perceptron_cases[] = {
    {"net64x64", 64, 64},
    {"net256x8", 256, 8},
    {"net8x256", 8, 256},
};

/* weights W_l [n_{l-1}, n_l] = sin(0.37 i + l) / sqrt(n_{l-1}), x = sin(0.37 i) */
struct perceptron {
    int64_t width[LAYERS + 1];
    double *weight[LAYERS], *x;
};

static ad_tensor perceptron_output(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    const struct perceptron *w = payload;
    ad_tensor h = x[0];
    (void)n;
    for (int l = 0; l < LAYERS; ++l) {
        ad_tensor weight = ad_constant(tape, AD_F64, 2, &w->width[l], w->weight[l]);
        h = ad_tanh(ad_matmul(h, weight));
    }
    return h;
}

static ad_tensor perceptron_loss(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    return ad_sum(perceptron_output(tape, x, n, payload));
}

static double *wave(int64_t n, double phase, double scale)
{
    double *x = malloc(((size_t)n + 1) * sizeof *x);
    for (int64_t i = 0; x && i < n; ++i)
        x[i] = scale * sin(0.37 * (double)i + phase);
    return x;
}

static bool perceptron_make(struct perceptron *w, const struct perceptron_case *c)
{
    const int64_t width[LAYERS + 1] = {c->n_in, 64, 64, c->n_out};
    memcpy(w->width, width, sizeof width);
    w->x = wave(c->n_in, 0, 1);
    bool done = w->x != NULL;
    for (int l = 0; l < LAYERS; ++l) {
        w->weight[l] = wave(width[l] * width[l + 1], l + 1, 1 / sqrt((double)width[l]));
        done = done && w->weight[l];
    }
    return done;
}

static bool jacobian_of_perceptron(const struct options *options, const struct perceptron_case *c)
{
    struct perceptron w = {.x = NULL};
    struct reverse_case p = {.name = c->name,
                             .function = perceptron_output,
                             .loss = perceptron_loss,
                             .payload = &w,
                             .n = 1,
                             .n_results = c->n_out};
    bool done = perceptron_make(&w, c) || complain(&p, "weights", "no memory");
    done = done && ended(&p, "tape", ad_tape_create(&p.tape, NULL));
    if (done) {
        p.x[0] = ad_leaf(p.tape, AD_F64, 1, &c->n_in, w.x);
        done = problem_make(&p) && jacobian_is_right(&p) && compare(options, &p, "jvp", jvp) &&
               compare(options, &p, "jacobian", jacobian);
        ad_tape_destroy(p.tape);
    }
    problem_free(&p);
    for (int l = 0; l < LAYERS; ++l)
        free(w.weight[l]);
    free(w.x);
    return done;
}

/* ---- a loop of steps, in a fiftieth of its tape; in gradients with everything kept ---- */

enum { LORENZ_STEPS = 10000, LORENZ_STATE = 3, LORENZ_ALL = LORENZ_STATE + 3, LORENZ_LESS = 50 };

/* What ad_set expands to is counted. NOLINTBEGIN(readability-function-size) */
static void lorenz_slope(const ad_real *u, const ad_real *p, ad_real *k)
{
    ad_set(&k[0], ad_real_mul(p[0], ad_real_sub(u[1], u[0])));
    ad_set(&k[1], ad_real_sub(ad_real_mul(u[0], ad_real_sub(p[1], u[2])), u[1]));
    ad_set(&k[2], ad_real_sub(ad_real_mul(u[0], u[1]), ad_real_mul(p[2], u[2])));
}

/* The classic Runge-Kutta method; in: the state, and behind it the parameters. */
static bool lorenz_step(ad_tape tape, int64_t i, int64_t n_in, const ad_real *in, int64_t n_out,
                        ad_real *out, void *payload)
{
    static const double part[4] = {0.5, 0.5, 1, 0}, weight[4] = {1, 2, 2, 1}, size = 0.0005;
    ad_real k[LORENZ_STATE], at[LORENZ_STATE], sum[LORENZ_STATE];
    (void)tape, (void)i, (void)n_in, (void)payload;
    memcpy(at, in, sizeof at);
    memcpy(sum, in, sizeof sum);
    for (int stage = 0; stage < 4; stage++) {
        lorenz_slope(at, in + LORENZ_STATE, k);
        for (int d = 0; d < LORENZ_STATE; d++) {
            ad_set(&sum[d], ad_real_add(sum[d], ad_real_mul(weight[stage] * size / 6, k[d])));
            ad_set(&at[d], ad_real_add(in[d], ad_real_mul(part[stage] * size, k[d])));
        }
    }
    memcpy(out, sum, (size_t)n_out * sizeof *out);
    return true;
}

/* NOLINTEND(readability-function-size) */

/* gradient[0]: that of the state and the parameters; gradient[0][LORENZ_ALL]: bytes at the peak. */
static ad_status lorenz_gradient(const struct reverse_case *p, bool loop)
{
    static const double start[LORENZ_ALL] = {1, 1, 1, 10, 28, 8.0 / 3};
    ad_real x[LORENZ_ALL], u[LORENZ_ALL], y;
    ad_stats stats = {0};
    ad_tape_reset(p->tape);
    ad_tape_reset_peak(p->tape);
    ad_real_leaves(p->tape, LORENZ_ALL, start, x);
    memcpy(u, x, sizeof u);
    if (loop)
        ad_real_checkpoint_loop(p->tape, LORENZ_STEPS, lorenz_step, NULL, LORENZ_ALL, u,
                                LORENZ_STATE, u, NULL);
    for (int i = 0; i < LORENZ_STEPS && !loop; i++)
        lorenz_step(p->tape, i, LORENZ_ALL, u, LORENZ_STATE, u, NULL);
    ad_set(&y, ad_real_add(ad_real_square(u[0]), ad_real_mul(u[1], u[2])));
    ad_status status = ad_real_backward(p->tape, y);
    if (status == AD_OK)
        status = ad_real_gradients(p->tape, LORENZ_ALL, x, p->gradient[0]);
    ad_tape_stats(p->tape, &stats);
    p->gradient[0][LORENZ_ALL] = (double)stats.peak_bytes;
    return status;
}

static ad_status lorenz_loop(const struct reverse_case *p)
{
    return lorenz_gradient(p, true);
}

static ad_status lorenz_kept(const struct reverse_case *p)
{
    return lorenz_gradient(p, false);
}

static const char lorenz_name[] = "lorenz10000";

static bool lorenz_compare(const struct options *options)
{
    double gradient[2][LORENZ_ALL + 1];
    struct reverse_case p = {.name = lorenz_name};
    if (ad_tape_create(&p.tape, NULL) != AD_OK)
        return complain(&p, "tape", ad_tape_message((ad_tape){0, 0}));
    struct repeated ours = {&p, "loop", lorenz_loop}, peer = {&p, "gradient", lorenz_kept};
    bool done = true;
    for (int k = 0; k < 2 && done; k++) {
        p.gradient[0] = gradient[k];
        done = ended(&p, "loop", lorenz_gradient(&p, k == 0));
    }
    const void *bits = gradient[0], *kept = gradient[1];
    if (done && (memcmp(bits, kept, LORENZ_ALL * sizeof(double)) != 0 ||
                 gradient[0][LORENZ_ALL] * LORENZ_LESS > gradient[1][LORENZ_ALL]))
        done = complain(&p, "loop", "other gradients, or too many bytes");
    done = done && compare_repeated(options, "loop", &ours, "gradient", &peer);
    ad_tape_destroy(p.tape);
    return done;
}

/* ---- a sparse Jacobian, in Jacobians by dense blocks; a sparse Hessian, in gradients ---- */

enum { CHAIN = 10000 };

static const char bundle_name[] = "ba1", chain_name[] = "chain10000";

/* What is recorded, the pattern that was found for it first, and the peer's results. */
struct sparse_case {
    const double *at;
    ad_real *x, *y;
    int64_t n, m;
    ad_sparse_pattern pattern;
    double *values, *gradient;
    struct problem input; /* bundle adjustment: of all, */
    struct real blocks;   /* and an observation after the other */
};

static ad_status bundle_record(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    const struct bundle *b = s->input.input;
    ad_tape_reset(p->tape);
    const ad_status status = ad_real_leaves(p->tape, s->n, s->at, s->x);
    const ad_real *points = s->x + (size_t)b->n * BUNDLE_CAMERA,
                  *weights = points + (size_t)b->m * BUNDLE_POINT;
    for (int i = 0; i < b->p; ++i) {
        ad_real x[BUNDLE_ROW], y[3];
        memcpy(x, s->x + (size_t)b->observation[2 * i] * BUNDLE_CAMERA, BUNDLE_CAMERA * sizeof *x);
        memcpy(x + BUNDLE_CAMERA, points + (size_t)b->observation[2 * i + 1] * BUNDLE_POINT,
               BUNDLE_POINT * sizeof *x);
        x[BUNDLE_ROW - 1] = weights[i];
        real_bundle_residuals(x, b->feature + (size_t)i * 2, y);
        memcpy(s->y + (size_t)i * 2, y, 2 * sizeof *y);
        s->y[(size_t)b->p * 2 + (size_t)i] = y[2];
    }
    return status;
}

static ad_status bundle_sparse(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    const ad_status status = bundle_record(p);
    return status != AD_OK
               ? status
               : ad_real_jacobian_sparse(p->tape, s->m, s->y, s->n, s->x, &s->pattern, s->values);
}

static ad_status bundle_blocks(const struct reverse_case *p)
{
    struct sparse_case *s = p->payload;
    ad_status status = ad_tape_record_begin(s->blocks.tape);
    if (status == AD_OK && !real_step(&s->blocks, NULL))
        status = AD_ERROR_STATE;
    ad_tape_record_end(s->blocks.tape);
    return status;
}

/* The rows are those of the blocks, whose zeros are left out. */
static bool bundle_is_right(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    double sums[2] = {0, 0}, squares[2] = {0, 0};
    for (int64_t k = 0; k < s->pattern.n_values; ++k) {
        sums[0] += s->values[k];
        squares[0] += s->values[k] * s->values[k];
    }
    for (size_t k = 0; k < s->input.n_gradient; ++k) {
        sums[1] += s->blocks.gradient[k];
        squares[1] += s->blocks.gradient[k] * s->blocks.gradient[k];
    }
    return (near(&sums[0], &sums[1], 1) && near(&squares[0], &squares[1], 1)) ||
           complain(p, "sparse_jacobian", "other elements than those of dense blocks");
}

static bool bundle_compare(const struct options *options)
{
    struct sparse_case s = {.n = 0};
    struct reverse_case p = {.name = bundle_name, .payload = &s};
    if (!problem_open(&s.input, problem_find(bundle_name), NULL))
        return false;
    s.at = s.input.x;
    s.n = (int64_t)s.input.n_variables;
    s.m = (int64_t)s.input.n_outputs;
    s.x = malloc(s.input.n_variables * sizeof *s.x);
    s.y = malloc(s.input.n_outputs * sizeof *s.y);
    bool done = (s.x && s.y && real_open(&s.blocks, &s.input, NULL, NULL)) ||
                complain(&p, "numbers", "no memory");
    done = done && ended(&p, "tape", ad_tape_create(&p.tape, NULL)) &&
           ended(&p, "record", bundle_record(&p)) &&
           ended(&p, "pattern", ad_real_jacobian_pattern(p.tape, s.m, s.y, s.n, s.x, &s.pattern));
    s.values = done ? malloc((size_t)s.pattern.n_values * sizeof *s.values) : NULL;
    done = done && s.values && ended(&p, "sparse_jacobian", bundle_sparse(&p)) &&
           ended(&p, "blocks", bundle_blocks(&p)) && bundle_is_right(&p);
    done = done &&
           compare_with(options, &p, "sparse_jacobian", bundle_sparse, "blocks", bundle_blocks);
    ad_sparse_free(&s.pattern);
    ad_tape_destroy(p.tape);
    real_close(&s.blocks);
    problem_close(&s.input);
    free(s.values);
    free(s.x);
    free(s.y);
    return done;
}

/* A gradient of the function recorded as statements. */
static ad_status chain_gradient(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    ad_tape_reset(p->tape);
    ad_status status = ad_real_leaves(p->tape, s->n, s->at, s->x);
    if (status == AD_OK)
        status = ad_real_backward(p->tape, real_rosenbrock((int)s->n, s->x));
    return status != AD_OK ? status : ad_real_gradients(p->tape, s->n, s->x, s->gradient);
}

/* The program lies on a tape of its own, the peer's: y[0] and x are on that of `blocks`. */
static ad_status chain_hessian(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    return ad_real_hessian_sparse(s->blocks.tape, s->y[0], s->n, s->y + 1, &s->pattern, s->values);
}

/* By the formula's own second derivatives. */
static bool chain_is_right(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    for (int64_t i = 0; i < s->n; ++i)
        for (int64_t k = s->pattern.row_start[i]; k < s->pattern.row_start[i + 1]; ++k) {
            const int64_t j = s->pattern.column[k];
            const double a = s->at[i < j ? i : j],
                         own = (i + 1 < s->n ? 1200 * a * a - 400 * s->at[i + 1] + 2 : 0) +
                               (i > 0 ? 200 : 0),
                         want = i == j ? own : -400 * a;
            if (!(fabs(s->values[k] - want) <= 1e-9 * (1 + fabs(want))))
                return complain(p, "sparse_hessian", "not that of the formula");
        }
    return s->pattern.n_values == 3 * s->n - 2 ||
           complain(p, "sparse_hessian", "another pattern than three diagonals");
}

static bool chain_record(const struct reverse_case *p)
{
    struct sparse_case *s = p->payload;
    ad_tape tape = s->blocks.tape;
    const ad_status begun = ad_tape_record_begin(tape);
    bool done = begun == AD_OK && ad_real_leaves(tape, s->n, s->at, s->y + 1) == AD_OK &&
                ad_tape_program_begin(tape) == AD_OK;
    if (done)
        s->y[0] = real_rosenbrock_steps((int)s->n, s->y + 1);
    done = done && ad_tape_program_end(tape) == AD_OK && ad_tape_record_end(tape) == AD_OK &&
           ad_real_hessian_pattern(tape, s->y[0], s->n, s->y + 1, &s->pattern) == AD_OK;
    return done || complain(p, "program", ad_tape_message(tape));
}

static bool chain_compare(const struct options *options)
{
    double *at = wave(CHAIN, 0.5, 0.75);
    struct sparse_case s = {.at = at, .n = CHAIN};
    struct reverse_case p = {.name = chain_name, .payload = &s};
    s.x = malloc(CHAIN * sizeof *s.x);
    s.y = malloc((CHAIN + 1) * sizeof *s.y);
    s.gradient = malloc(CHAIN * sizeof *s.gradient);
    bool done = (at && s.x && s.y && s.gradient) || complain(&p, "numbers", "no memory");
    done = done && ended(&p, "tape", ad_tape_create(&p.tape, NULL)) &&
           ended(&p, "tape", ad_tape_create(&s.blocks.tape, NULL)) && chain_record(&p);
    s.values = done ? malloc((size_t)s.pattern.n_values * sizeof *s.values) : NULL;
    done = done && s.values && ended(&p, "sparse_hessian", chain_hessian(&p)) &&
           chain_is_right(&p) && ended(&p, "gradient", chain_gradient(&p)) &&
           compare_with(options, &p, "sparse_hessian", chain_hessian, "gradient", chain_gradient);
    ad_sparse_free(&s.pattern);
    ad_tape_destroy(s.blocks.tape);
    ad_tape_destroy(p.tape);
    free(s.values);
    free(s.gradient);
    free(s.x);
    free(s.y);
    free(at);
    return done;
}

/* ---- a sparse Jacobian and Hessian of tensors, in gradients ---- */

static const char stencil_name[] = "stencil10000";

/* x_{i+1} exp(x_i) - x_{i+2}, [CHAIN - 2]. */
static ad_tensor stencil(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    const ad_tensor at[3] = {ad_slice(x[0], 0, 0, CHAIN - 2, 1), ad_slice(x[0], 0, 1, CHAIN - 1, 1),
                             ad_slice(x[0], 0, 2, CHAIN, 1)};
    return ad_sub(ad_mul(at[1], ad_exp(at[0])), at[2]);
}

static ad_tensor stencil_squared(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    return ad_sum(ad_square(stencil(tape, x, n, payload)));
}

static ad_status stencil_jacobian(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    return ad_jacobian_sparse(p->tape, stencil, 1, p->x, NULL, &s->pattern, s->values,
                              s->pattern.n_values);
}

static ad_status stencil_pattern(const struct reverse_case *p)
{
    struct sparse_case *s = p->payload;
    ad_sparse_free(&s->pattern);
    return ad_jacobian_pattern(p->tape, stencil, 1, p->x, NULL, &s->pattern);
}

static ad_status stencil_hessian(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    return ad_hessian_sparse(p->tape, stencil_squared, 1, p->x, NULL, &s->pattern, s->values,
                             s->pattern.n_values);
}

/* By the formula's own derivatives. */
static bool stencil_is_right(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    bool right = s->pattern.n_values == 3 * (CHAIN - 2);
    for (int64_t i = 0; i < CHAIN - 2 && right; ++i) {
        const double e = exp(s->at[i]), want[3] = {s->at[i + 1] * e, e, -1};
        right = near(s->values + 3 * i, want, 3);
    }
    return right || complain(p, "sparse_jacobian", "not that of the formula");
}

/* The Hessian's products with ones are those of ad_hvp. */
static bool stencil_squares_are_right(const struct reverse_case *p)
{
    const struct sparse_case *s = p->payload;
    for (int64_t i = 0; i < CHAIN; ++i) {
        p->jacobian[0][i] = 0;
        for (int64_t k = s->pattern.row_start[i]; k < s->pattern.row_start[i + 1]; ++k)
            p->jacobian[0][i] += s->values[k];
    }
    return ended(p, "hvp", hvp(p)) && (near(p->jacobian[0], p->result[0], CHAIN) ||
                                       complain(p, "sparse_hessian", "other products than hvp's"));
}

static bool stencil_compare(const struct options *options)
{
    double *const x = wave(CHAIN, 0.5, 0.75), *const buffer = calloc(4 * CHAIN, sizeof *buffer);
    struct sparse_case s = {.at = x};
    struct reverse_case p = {.name = stencil_name, .payload = &s, .n = 1, .loss = stencil_squared};
    p.counts[0] = CHAIN;
    s.values = malloc((size_t)5 * CHAIN * sizeof *s.values);
    bool done = (x && buffer && s.values) || complain(&p, "numbers", "no memory");
    for (int64_t i = 0; i < CHAIN && done; ++i)
        buffer[i] = 1;
    if (done) {
        p.direction[0] = buffer;
        p.result[0] = buffer + CHAIN;
        p.gradient[0] = buffer + (ptrdiff_t)2 * CHAIN;
        p.jacobian[0] = buffer + (ptrdiff_t)3 * CHAIN;
    }
    done = done && ended(&p, "tape", ad_tape_create(&p.tape, NULL));
    if (done)
        p.x[0] = ad_leaf(p.tape, AD_F64, 1, p.counts, x);
    done = done && ended(&p, "pattern", stencil_pattern(&p)) &&
           ended(&p, "sparse_jacobian", stencil_jacobian(&p)) && stencil_is_right(&p) &&
           compare(options, &p, "sparse_pattern", stencil_pattern) &&
           compare(options, &p, "sparse_jacobian", stencil_jacobian);
    ad_sparse_free(&s.pattern);
    done = done &&
           ended(&p, "pattern",
                 ad_hessian_pattern(p.tape, stencil_squared, 1, p.x, NULL, &s.pattern)) &&
           ended(&p, "sparse_hessian", stencil_hessian(&p)) && stencil_squares_are_right(&p) &&
           compare(options, &p, "sparse_hessian", stencil_hessian);
    ad_sparse_free(&s.pattern);
    ad_tape_destroy(p.tape);
    free(s.values);
    free(buffer);
    free(x);
    return done;
}

/* ---- all ---- */

enum { SECOND = sizeof second_cases / sizeof *second_cases };
enum { NETS = sizeof perceptron_cases / sizeof *perceptron_cases };

static const char *case_name(size_t k)
{
    return k < SECOND               ? second_cases[k]
           : k - SECOND < NETS      ? perceptron_cases[k - SECOND].name
           : k == SECOND + NETS     ? lorenz_name
           : k == SECOND + NETS + 1 ? bundle_name
           : k == SECOND + NETS + 2 ? chain_name
           : k == SECOND + NETS + 3 ? written_name
           : k == SECOND + NETS + 4 ? stencil_name
                                    : numbers_cases[k - SECOND - NETS - 5];
}

int main(int argc, char **argv)
{
    struct options options = options_read(
        argc, argv,
        &(struct options_program){.name = "bench_reverse",
                                  .known = "ctrsq",
                                  .case_name = case_name,
                                  .defaults = {.threads = 1, .rounds = 7, .seconds = 0.2},
                                  .quick_seconds = 0.05});
    environment_settle(argv, options.threads);
    bool done = true;
    for (size_t k = 0; k < SECOND; ++k)
        if (options_want(options.case_name, second_cases[k]))
            done = own_with(workload_find(second_cases[k]), AD_F64, second_of_workload, &options) &&
                   done;
    for (size_t k = 0; k < NETS; ++k)
        if (options_want(options.case_name, perceptron_cases[k].name))
            done = jacobian_of_perceptron(&options, &perceptron_cases[k]) && done;
    if (options_want(options.case_name, lorenz_name))
        done = lorenz_compare(&options) && done;
    if (options_want(options.case_name, bundle_name))
        done = bundle_compare(&options) && done;
    if (options_want(options.case_name, chain_name))
        done = chain_compare(&options) && done;
    if (options_want(options.case_name, stencil_name))
        done = stencil_compare(&options) && done;
    if (options_want(options.case_name, written_name))
        done = written_compare(&options) && done;
    for (size_t k = 0; numbers_cases[k]; ++k)
        if (options_want(options.case_name, numbers_cases[k]))
            done = numbers_compare(&options, numbers_cases[k]) && done;
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
