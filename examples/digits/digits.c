/* digits.c: trains a classifier of handwritten digits: a perceptron 64-128-64-10 with tanh, by Adam
 * on mini-batches, and prints its accuracy on images held out of the training.
 *
 *     digits [FILE]
 *
 * Uses the public header alone. The parameters are leaves over arrays of this program, recorded
 * once; each step records behind a mark and rewinds to it, so the tape does not grow.
 */
#include "digits_data.h"
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 3, BATCH = 64, EPOCHS = 40, SEED = 1 };

static const int64_t width[LAYERS + 1] = {DIGITS_PIXELS, 128, 64, DIGITS_CLASSES};

struct model {
    ad_tape tape;
    struct parameter weight[LAYERS]; /* [width[l], width[l + 1]] */
    struct parameter bias[LAYERS];   /* [width[l + 1]] */
    int steps;
};

/* A mini-batch; the constants on the tape borrow its arrays. */
struct batch {
    float pixels[BATCH * DIGITS_PIXELS];
    int64_t labels[BATCH];
    int64_t count;
};

/* ---- the model ---- */

static ad_tensor dense(const struct model *model, int layer, ad_tensor x)
{
    return ad_linear(x, model->weight[layer].leaf, model->bias[layer].leaf);
}

static ad_tensor classify(const struct model *model, ad_tensor x)
{
    ad_tensor h1 = ad_tanh(dense(model, 0, x));
    ad_tensor h2 = ad_tanh(dense(model, 1, h1));
    return dense(model, 2, h2);
}

static bool model_init(struct model *model, ad_tape tape, uint64_t *seed)
{
    *model = (struct model){.tape = tape};
    for (int l = 0; l < LAYERS; ++l) {
        /* Glorot and Bengio 2010, equation 16. */
        float bound = sqrtf(6.0f / (float)(width[l] + width[l + 1]));
        if (!parameter_init(&model->weight[l], tape, 2, &width[l], bound, seed) ||
            !parameter_init(&model->bias[l], tape, 1, &width[l + 1], 0.0f, seed))
            return false;
    }
    return true;
}

static void model_free(struct model *model)
{
    for (int l = 0; l < LAYERS; ++l) {
        parameter_free(&model->weight[l]);
        parameter_free(&model->bias[l]);
    }
}

/* ---- training ---- */

/* Copies the images order[first], order[first + 1], ... ; without an order, as they stand. */
static void batch_fill(struct batch *batch, const struct digits *digits, const int64_t *order,
                       int64_t first)
{
    batch->count = digits->count - first < BATCH ? digits->count - first : BATCH;
    for (int64_t i = 0; i < batch->count; ++i) {
        int64_t image = order ? order[first + i] : first + i;
        memcpy(batch->pixels + i * DIGITS_PIXELS, digits->pixels + image * DIGITS_PIXELS,
               DIGITS_PIXELS * sizeof *batch->pixels);
        batch->labels[i] = digits->labels[image];
    }
}

/* One step of the optimiser; returns the loss of the batch in *loss. */
static ad_status train_step(struct model *model, const struct batch *batch, double *loss)
{
    ad_tape tape = model->tape;
    ad_mark mark = ad_tape_mark(tape);
    int64_t shape[] = {batch->count, DIGITS_PIXELS};
    ad_tensor x = ad_constant(tape, AD_F32, 2, shape, batch->pixels);
    ad_tensor labels = ad_constant(tape, AD_I64, 1, shape, batch->labels);

    ad_tensor logits = classify(model, x);
    ad_tensor batch_loss = ad_softmax_cross_entropy(logits, labels);
    *loss = ad_item(batch_loss);

    /* Whatever failed above, ad_backward returns it. */
    ad_status status = ad_backward(batch_loss);
    if (status != AD_OK)
        return status;
    model->steps++;
    for (int l = 0; l < LAYERS; ++l) {
        if ((status = parameter_step(&model->weight[l], model->steps)) != AD_OK ||
            (status = parameter_step(&model->bias[l], model->steps)) != AD_OK)
            return status;
    }
    return ad_tape_rewind(tape, mark);
}

/* One pass over all images in a new order; returns the mean of the batches' losses in *loss. */
static ad_status train_epoch(struct model *model, const struct digits *digits, int64_t *order,
                             uint64_t *seed, double *loss)
{
    shuffle(order, digits->count, seed);
    double sum = 0.0;
    int batches = 0;
    for (int64_t first = 0; first < digits->count; first += BATCH) {
        struct batch batch;
        double batch_loss;
        batch_fill(&batch, digits, order, first);
        ad_status status = train_step(model, &batch, &batch_loss);
        if (status != AD_OK)
            return status;
        sum += batch_loss;
        batches++;
    }
    *loss = sum / batches;
    return AD_OK;
}

/* ---- evaluation ---- */

static int64_t largest(const float *logits)
{
    int64_t best = 0;
    for (int64_t k = 1; k < DIGITS_CLASSES; ++k)
        if (logits[k] > logits[best])
            best = k;
    return best;
}

/* Counts the images that the model classifies rightly. Nothing is recorded. */
static ad_status evaluate(const struct model *model, const struct digits *digits, int64_t *right)
{
    ad_tape tape = model->tape;
    ad_status status = ad_tape_no_grad_begin(tape);
    *right = 0;
    for (int64_t first = 0; first < digits->count && status == AD_OK; first += BATCH) {
        struct batch batch;
        float logits[BATCH * DIGITS_CLASSES];
        ad_mark mark = ad_tape_mark(tape);
        batch_fill(&batch, digits, NULL, first);
        int64_t shape[] = {batch.count, DIGITS_PIXELS};
        ad_tensor x = ad_constant(tape, AD_F32, 2, shape, batch.pixels);
        status = ad_value(classify(model, x), logits, batch.count * DIGITS_CLASSES);
        if (status != AD_OK)
            break;
        for (int64_t i = 0; i < batch.count; ++i)
            *right += largest(logits + i * DIGITS_CLASSES) == batch.labels[i];
        status = ad_tape_rewind(tape, mark);
    }
    return status == AD_OK ? ad_tape_no_grad_end(tape) : status;
}

/* ---- the program ---- */

/* On a terminal one line that rewrites itself, elsewhere a line for each epoch. */
static void progress(int epoch, double loss)
{
    bool terminal = isatty(STDOUT_FILENO);
    printf("%sepoch %2d of %d, loss %.4f%s", terminal ? "\r" : "", epoch, EPOCHS, loss,
           terminal && epoch < EPOCHS ? "" : "\n");
    fflush(stdout);
}

static ad_status run(struct model *model, const struct digits *train, const struct digits *held_out,
                     int64_t *order, uint64_t *seed)
{
    for (int64_t i = 0; i < train->count; ++i)
        order[i] = i;
    for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
        double loss;
        ad_status status = train_epoch(model, train, order, seed, &loss);
        if (status != AD_OK)
            return status;
        progress(epoch, loss);
    }
    int64_t right;
    ad_status status = evaluate(model, held_out, &right);
    if (status == AD_OK)
        printf("test accuracy: %.1f %%\n", 100.0 * (double)right / (double)held_out->count);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : EXAMPLES_DATA_DIR "/digits.csv.gz";
    struct digits train, held_out;
    if (!digits_load(path, &train, &held_out))
        return EXIT_FAILURE;

    uint64_t seed = SEED;
    struct model model = {0};
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    if (status == AD_OK) {
        int64_t *order = malloc((size_t)train.count * sizeof *order);
        if (order && model_init(&model, tape, &seed))
            status = run(&model, &train, &held_out, order, &seed);
        else
            status = AD_ERROR_MEMORY;
        free(order);
    }
    if (status != AD_OK) {
        const char *message = ad_tape_message(tape);
        fprintf(stderr, "digits: %s\n", *message ? message : ad_status_text(status));
    }
    ad_tape_destroy(tape);
    model_free(&model);
    digits_free(&train);
    digits_free(&held_out);
    return status == AD_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
