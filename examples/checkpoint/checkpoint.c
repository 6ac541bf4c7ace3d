/* checkpoint.c: the gradient of a long recurrence in a fraction of the memory.
 *
 *     checkpoint [--time]
 *
 * An LSTM reads 256 steps of a signal; the loss looks at its last state. Its gradient is computed
 * five times: with everything kept; in 16 segments of 16 steps, each a checkpoint; in halves of
 * halves down to single steps; and as a loop of checkpoints that plans itself, by the bytes and
 * with 8 states. The gradients must be the same bit for bit.
 */
#include <tapescope/ad.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STEPS = 256,
    SEGMENTS = 16,
    LEVELS = 8, /* of halves: 2^8 steps */
    STATES = 8, /* of the last way */
    BATCH = 16,
    INPUTS = 8,
    HIDDEN = 64,
    GATES = 4 * HIDDEN,
    WX = INPUTS * GATES,
    WH = HIDDEN * GATES,
    ALL = WX + WH + GATES,
    PASSES = 5 /* that are timed, the fastest of which counts */
};

static float signal_of[STEPS][BATCH * INPUTS], wx[WX], wh[WH], bias[GATES];
static const float zeros[BATCH * HIDDEN];

struct model {
    ad_tensor wx, wh, b;
    long steps; /* computed so far */
};

/* Steps [first, first + n); of[2]: its halves, for a checkpoint that consists of two. */
struct range {
    struct model *model;
    int first, n;
    struct range *of[2];
};

static struct range segments[SEGMENTS], halves[2 * STEPS];

/* in and out: state and cell [BATCH, HIDDEN]. A function that a sweep can call again. */
static void run(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                void *payload)
{
    const struct range *range = payload;
    struct model *m = range->model;
    ad_tensor h = in[0], c = in[1];
    (void)n_in;
    (void)n_out;
    for (int t = range->first; t < range->first + range->n; t++) {
        ad_tensor x = ad_constant(tape, AD_F32, 2, (int64_t[]){BATCH, INPUTS}, signal_of[t]);
        ad_tensor z = ad_add(ad_linear(x, m->wx, m->b), ad_matmul(h, m->wh));
        h = ad_lstm_cell(z, c, &c);
        m->steps++;
    }
    out[0] = h;
    out[1] = c;
}

/* Two checkpoints, each of two, down to single steps. */
static void run_halves(ad_tape tape, int n_in, const ad_tensor *in, int n_out, ad_tensor *out,
                       void *payload)
{
    struct range *range = payload;
    if (range->n == 1) {
        run(tape, n_in, in, n_out, out, range);
        return;
    }
    ad_checkpoint(tape, run_halves, range->of[0], 2, in, 2, out);
    ad_checkpoint(tape, run_halves, range->of[1], 2, out, 2, out);
}

static void kept(ad_tape tape, ad_tensor *state, struct model *model)
{
    struct range all = {.model = model, .n = STEPS};
    run(tape, 2, state, 2, state, &all);
}

static void in_segments(ad_tape tape, ad_tensor *state, struct model *model)
{
    for (int s = 0; s < SEGMENTS; s++) {
        segments[s] = (struct range){model, s * (STEPS / SEGMENTS), STEPS / SEGMENTS, {NULL, NULL}};
        ad_checkpoint(tape, run, &segments[s], 2, state, 2, state);
    }
}

static void in_halves(ad_tape tape, ad_tensor *state, struct model *model)
{
    struct range *next = halves + 1;
    halves[0] = (struct range){.model = model, .n = STEPS};
    for (struct range *r = halves; r < next; r++) {
        for (int k = 0; k < 2 && r->n > 1; k++) {
            *next = (struct range){model, r->first + k * r->n / 2, r->n / 2, {NULL, NULL}};
            r->of[k] = next++;
        }
    }
    ad_checkpoint(tape, run_halves, halves, 2, state, 2, state);
}

/* in and out: state and cell. A step that a sweep can call again. */
static bool one_step(ad_tape tape, int64_t i, int n_in, const ad_tensor *in, int n_out,
                     ad_tensor *out, void *payload)
{
    struct range range = {.model = payload, .first = (int)i, .n = 1};
    run(tape, n_in, in, n_out, out, &range);
    return true;
}

static void as_a_loop(ad_tape tape, ad_tensor *state, struct model *model)
{
    ad_checkpoint_loop(tape, STEPS, one_step, model, 2, state, 2, state, NULL);
}

static void with_few_states(ad_tape tape, ad_tensor *state, struct model *model)
{
    const ad_checkpoint_budget budget = {.states = STATES};
    ad_checkpoint_loop(tape, STEPS, one_step, model, 2, state, 2, state, &budget);
}

struct result {
    double loss, milliseconds;
    uint64_t peak_bytes;
    long steps;
    float gradient[ALL];
};

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

/* One pass forward and back. False: the tape has an error, which is printed. */
static bool pass(ad_tape tape, void (*way)(ad_tape, ad_tensor *, struct model *),
                 struct result *result)
{
    const double begin = now();
    ad_tape_reset(tape);
    ad_tape_reset_peak(tape);
    struct model m = {.wx = ad_leaf(tape, AD_F32, 2, (int64_t[]){INPUTS, GATES}, wx),
                      .wh = ad_leaf(tape, AD_F32, 2, (int64_t[]){HIDDEN, GATES}, wh),
                      .b = ad_leaf(tape, AD_F32, 1, (int64_t[]){GATES}, bias)};
    ad_tensor zero = ad_constant(tape, AD_F32, 2, (int64_t[]){BATCH, HIDDEN}, zeros);
    ad_tensor state[2] = {zero, zero};
    way(tape, state, &m);
    ad_tensor loss = ad_sum(ad_square(state[0]));
    ad_status status = ad_backward(loss);
    ad_stats stats;
    ad_tape_stats(tape, &stats);
    result->loss = ad_item(loss);
    float *g = result->gradient;
    if (status == AD_OK)
        status = ad_gradients(3, (ad_tensor[]){m.wx, m.wh, m.b}, (void *[]){g, g + WX, g + WX + WH},
                              (int64_t[]){WX, WH, GATES});
    result->peak_bytes = stats.peak_bytes;
    result->steps = m.steps;
    result->milliseconds = now() - begin;
    if (status == AD_OK)
        return true;
    fprintf(stderr, "checkpoint: %s\n", ad_tape_message(tape));
    return false;
}

static void fill(void)
{
    for (int t = 0; t < STEPS; t++)
        for (int i = 0; i < BATCH * INPUTS; i++)
            signal_of[t][i] = (float)sin(0.05 * t * (1 + i % INPUTS) + i);
    for (int i = 0; i < WX; i++)
        wx[i] = (float)sin(1.7 * i) / 3;
    for (int i = 0; i < WH; i++)
        wh[i] = (float)sin(2.3 * i) / 8;
    for (int i = 0; i < GATES; i++)
        bias[i] = i / HIDDEN == 1 ? 1.5F : 0.0F; /* the forget gate lets pass */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(ad_tape, ad_tensor *, struct model *);
    } way[] = {{"everything kept", kept},
               {"16 segments of 16 steps", in_segments},
               {"halves of halves", in_halves},
               {"loop", as_a_loop},
               {"loop, 8 states", with_few_states}};
    enum { WAYS = sizeof way / sizeof *way };
    static struct result result[WAYS];
    const bool timed = argc > 1 && strcmp(argv[1], "--time") == 0;
    ad_tape tape;
    if (ad_tape_create(&tape, NULL) != AD_OK) {
        fprintf(stderr, "checkpoint: %s\n", ad_tape_message(tape));
        return 1;
    }
    fill();
    printf("an LSTM over %d steps, batch %d, %d hidden units, f32\n", STEPS, BATCH, HIDDEN);
    printf("%-24s %10s %7s %14s%s\n", "", "peak KiB", "of all", "steps computed",
           timed ? "   fastest ms" : "");
    bool same = true;
    for (int w = 0; w < WAYS; w++) {
        for (int i = 0; i < (timed ? PASSES : 1); i++) {
            const double before = i ? result[w].milliseconds : HUGE_VAL;
            if (!pass(tape, way[w].run, &result[w]))
                return 1;
            result[w].milliseconds = fmin(result[w].milliseconds, before);
        }
        printf("%-24s %10llu %6.1f%% %14ld", way[w].name,
               (unsigned long long)(result[w].peak_bytes >> 10),
               100 * (double)result[w].peak_bytes / (double)result[0].peak_bytes, result[w].steps);
        if (timed)
            printf(" %12.1f", result[w].milliseconds);
        printf("\n");
        const void *bits = result[w].gradient, *first = result[0].gradient;
        same = same && memcmp(bits, first, sizeof result[0].gradient) == 0;
    }
    printf("loss %.6f; the gradients are %s\n", result[0].loss,
           same ? "the same bit for bit" : "not the same: FAILED");
    ad_tape_destroy(tape);
    return same ? 0 : 1;
}
