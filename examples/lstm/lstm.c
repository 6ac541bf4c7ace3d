/* lstm.c: a recurrent network reads images of handwritten digits row by row, as a scanner passes
 * over paper, and says at the end which digit it has seen: an LSTM of 64 units over 8 rows of 8
 * pixels, trained by Adam on mini-batches.
 *
 *     lstm [FILE]       trains, and prints its accuracy on images held out of the training
 *     lstm --lean       the same in half of the memory
 *     lstm --check      compares the gradient of a small one, in f64, with central differences
 *
 * Uses the public header alone. Both ways call the same function, loss(): training with leaves over
 * the parameters' arrays, the check with leaves of its own. Scopes name the rows and the sweep, so
 * that a profile can tell one row from another, which are the same lines of this file.
 */
#include "digits_data.h"
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, COLUMNS = 8, HIDDEN = 64, GATES = 4, BATCH = 64, EPOCHS = 50, SEED = 1 };
enum { WX, WH, BIAS, OUT, OUT_BIAS, PARAMETERS };

/* A mini-batch; the constants on the tape borrow its arrays. */
struct batch {
    int64_t count, hidden; /* images; units of the network that reads them */
    float pixels[BATCH * DIGITS_PIXELS];
    int64_t labels[BATCH];
};

struct model {
    ad_tape tape;
    struct parameter parameter[PARAMETERS];
    int steps;
};

/* Give back what was added as soon as that is done: no pullback reads it. */
static bool lean;

/* All bits 0: the state before the first row, in f32 and in f64. */
static const double zeros[BATCH * HIDDEN];

/* ---- the network ---- */

/* The state [count, hidden] after the last row (Hochreiter and Schmidhuber 1997, with the forget
 * gate of Gers, Schmidhuber and Cummins 2000). */
static ad_tensor read_rows(ad_tape tape, const ad_tensor *w, const struct batch *batch)
{
    const ad_dtype dtype = (ad_dtype)ad_dtype_of(w[WX]);
    const int64_t images[] = {batch->count, DIGITS_PIXELS}, state[] = {batch->count, batch->hidden};
    ad_tensor pixels = ad_cast(ad_constant(tape, AD_F32, 2, images, batch->pixels), dtype);
    ad_tensor h = ad_constant(tape, dtype, 2, state, zeros);
    ad_tensor c = ad_constant(tape, dtype, 2, state, zeros);
    for (int t = 0; t < ROWS; ++t) {
        AD_SCOPE("row", "t", t)
        {
            ad_tensor row = ad_slice(pixels, 1, t * COLUMNS, (t + 1) * COLUMNS, 1);
            ad_tensor seen = ad_linear(row, w[WX], w[BIAS]);
            ad_tensor remembered = ad_matmul(h, w[WH]);
            ad_tensor z = ad_add(seen, remembered);
            if (lean) {
                ad_release(seen);
                ad_release(remembered);
            }
            h = ad_lstm_cell(z, c, &c);
        }
    }
    return h;
}

static ad_tensor classify(ad_tape tape, const ad_tensor *w, const struct batch *batch)
{
    return ad_linear(read_rows(tape, w, batch), w[OUT], w[OUT_BIAS]);
}

/* The mean cross-entropy of the batch; an ad_function of the parameters. */
static ad_tensor loss(ad_tape tape, const ad_tensor *w, int n, void *payload)
{
    const struct batch *batch = payload;
    (void)n;
    ad_tensor labels = ad_constant(tape, AD_I64, 1, &batch->count, batch->labels);
    return ad_softmax_cross_entropy(classify(tape, w, batch), labels);
}

/* ---- training ---- */

static bool model_init(struct model *model, ad_tape tape, uint64_t *seed)
{
    static const int64_t shape[PARAMETERS][2] = {{COLUMNS, GATES * HIDDEN},
                                                 {HIDDEN, GATES * HIDDEN},
                                                 {GATES * HIDDEN, 0},
                                                 {HIDDEN, DIGITS_CLASSES},
                                                 {DIGITS_CLASSES, 0}};
    *model = (struct model){.tape = tape};
    for (int i = 0; i < PARAMETERS; ++i) {
        const int rank = shape[i][1] ? 2 : 1;
        const float bound = rank == 2 ? 1.0f / sqrtf(HIDDEN) : 0.0f;
        if (!parameter_init(&model->parameter[i], tape, rank, shape[i], bound, seed))
            return false;
    }
    /* The second of the four gates forgets; at first it is to let pass. */
    for (int i = HIDDEN; i < 2 * HIDDEN; ++i)
        model->parameter[BIAS].value[i] = 1.0f;
    return true;
}

static void leaves(const struct model *model, ad_tensor *leaf)
{
    for (int i = 0; i < PARAMETERS; ++i)
        leaf[i] = model->parameter[i].leaf;
}

/* Copies the images order[first], order[first + 1], ... ; without an order, as they stand. */
static void batch_fill(struct batch *batch, const struct digits *digits, const int64_t *order,
                       int64_t first)
{
    batch->hidden = HIDDEN;
    batch->count = digits->count - first < BATCH ? digits->count - first : BATCH;
    for (int64_t i = 0; i < batch->count; ++i) {
        const int64_t image = order ? order[first + i] : first + i;
        memcpy(batch->pixels + i * DIGITS_PIXELS, digits->pixels + image * DIGITS_PIXELS,
               DIGITS_PIXELS * sizeof *batch->pixels);
        batch->labels[i] = digits->labels[image];
    }
}

/* Records behind a mark, sweeps, changes the parameters, and rewinds: the tape does not grow. */
static ad_status train_step(struct model *model, struct batch *batch, double *value)
{
    ad_tensor leaf[PARAMETERS];
    ad_mark mark = ad_tape_mark(model->tape);
    leaves(model, leaf);
    ad_tensor y = loss(model->tape, leaf, PARAMETERS, batch);
    *value = ad_item(y);
    ad_status status = AD_OK; /* whatever failed above, ad_backward returns it */
    AD_SCOPE("sweep")
    status = ad_backward(y);
    model->steps++;
    for (int i = 0; i < PARAMETERS && status == AD_OK; ++i)
        status = parameter_step(&model->parameter[i], model->steps);
    return status == AD_OK ? ad_tape_rewind(model->tape, mark) : status;
}

static ad_status train(struct model *model, const struct digits *digits, int64_t *order,
                       uint64_t *seed)
{
    for (int64_t i = 0; i < digits->count; ++i)
        order[i] = i;
    for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
        double sum = 0.0;
        int batches = 0;
        shuffle(order, digits->count, seed);
        for (int64_t first = 0; first < digits->count; first += BATCH, ++batches) {
            struct batch batch;
            double value;
            batch_fill(&batch, digits, order, first);
            ad_status status = train_step(model, &batch, &value);
            if (status != AD_OK)
                return status;
            sum += value;
        }
        if (epoch == 1 || epoch % 5 == 0)
            printf("epoch %2d of %d, loss %.4f\n", epoch, EPOCHS, sum / batches);
    }
    return AD_OK;
}

/* Counts the images that are classified rightly. Nothing is recorded. */
static ad_status evaluate(const struct model *model, const struct digits *digits, int64_t *right)
{
    ad_tensor leaf[PARAMETERS];
    ad_status status = ad_tape_no_grad_begin(model->tape);
    leaves(model, leaf);
    *right = 0;
    for (int64_t first = 0; first < digits->count && status == AD_OK; first += BATCH) {
        struct batch batch;
        int64_t said[BATCH];
        ad_mark mark = ad_tape_mark(model->tape);
        batch_fill(&batch, digits, NULL, first);
        ad_tensor best = ad_argmax(classify(model->tape, leaf, &batch), 1, 0);
        status = ad_value(best, said, batch.count);
        for (int64_t i = 0; status == AD_OK && i < batch.count; ++i)
            *right += said[i] == batch.labels[i];
        if (status == AD_OK)
            status = ad_tape_rewind(model->tape, mark);
    }
    return status == AD_OK ? ad_tape_no_grad_end(model->tape) : status;
}

static ad_status run(struct model *model, const char *path)
{
    struct digits train_set, held_out;
    uint64_t seed = SEED;
    int64_t right;
    if (!digits_load(path, &train_set, &held_out))
        return AD_ERROR_ARGUMENT;
    ad_status status = AD_ERROR_MEMORY;
    int64_t *order = malloc((size_t)train_set.count * sizeof *order);
    if (order && model_init(model, model->tape, &seed) &&
        (status = train(model, &train_set, order, &seed)) == AD_OK &&
        (status = evaluate(model, &held_out, &right)) == AD_OK)
        printf("test accuracy: %.1f %%\n", 100.0 * (double)right / (double)held_out.count);
    free(order);
    digits_free(&train_set);
    digits_free(&held_out);
    return status;
}

/* ---- the check of the gradient ---- */

/* A network of 3 units over 4 images that are random, as its 184 parameters are. */
static ad_status check(ad_tape tape)
{
    enum { UNITS = 3, IMAGES = 4, ELEMENTS = 256 };
    static const int64_t shape[PARAMETERS][2] = {{COLUMNS, GATES * UNITS},
                                                 {UNITS, GATES * UNITS},
                                                 {GATES * UNITS, 0},
                                                 {UNITS, DIGITS_CLASSES},
                                                 {DIGITS_CLASSES, 0}};
    static double value[PARAMETERS][ELEMENTS];
    struct batch batch = {.count = IMAGES, .hidden = UNITS};
    uint64_t seed = SEED;
    ad_tensor leaf[PARAMETERS];
    for (int i = 0; i < PARAMETERS; ++i) {
        for (int k = 0; k < ELEMENTS; ++k)
            value[i][k] = (double)(random_bits(&seed) >> 11) * 0x1p-52 - 1.0;
        leaf[i] = ad_leaf(tape, AD_F64, shape[i][1] ? 2 : 1, shape[i], value[i]);
    }
    for (int i = 0; i < IMAGES * DIGITS_PIXELS; ++i)
        batch.pixels[i] = (float)(random_bits(&seed) >> 40) * 0x1p-24f;
    for (int i = 0; i < IMAGES; ++i)
        batch.labels[i] = (3 * i + 1) % DIGITS_CLASSES;
    ad_gradient_report report;
    ad_status status = ad_check_gradient(tape, loss, PARAMETERS, leaf, 1e-7, &batch, &report);
    if (status == AD_OK)
        printf("the gradient agrees with central differences at all %lld parameters: %.1e\n",
               (long long)report.compared, report.difference);
    else if (status == AD_ERROR_GRADIENT) /* which is no error of the tape */
        fprintf(stderr, "lstm: %s\n", report.message);
    return status;
}

int main(int argc, char **argv)
{
    lean = argc > 1 && strcmp(argv[1], "--lean") == 0;
    const char *path = argc > 1 && !lean ? argv[1] : EXAMPLES_DATA_DIR "/digits.csv.gz";
    struct model model = {0};
    ad_status status = ad_tape_create(&model.tape, NULL);
    if (status == AD_OK && argc > 1 && strcmp(argv[1], "--check") == 0)
        status = check(model.tape);
    else if (status == AD_OK)
        status = run(&model, path);
    const char *message = ad_tape_message(model.tape);
    if (status != AD_OK && *message)
        fprintf(stderr, "lstm: %s\n", message);
    else if (status == AD_ERROR_MEMORY)
        fprintf(stderr, "lstm: %s\n", ad_status_text(status));
    ad_tape_destroy(model.tape);
    for (int i = 0; i < PARAMETERS; ++i)
        parameter_free(&model.parameter[i]);
    return status == AD_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
