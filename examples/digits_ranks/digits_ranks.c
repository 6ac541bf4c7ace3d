/* digits_ranks.c: the classifier of examples/digits trained by 1, 2 or 4 ranks over MPI, each of
 * which has its part of every mini-batch: with the same bits, however many they are.
 *
 *     mpirun -n RANKS digits_ranks [EPOCHS]
 *
 * A mini-batch is always cut into four shards, of which each rank has 4 / RANKS. The gradient of a
 * shard is worked out by itself, and the four are added as a balanced tree: its lower part is here,
 * by views of the weights, its upper part in ad_mpi_average_gradients, which sends the gradients
 * of the last layer while the first is swept.
 */
#include "digits_data.h"
#include "optimisers.h"
#include "training.h"

#include <tapescope/ad_mpi.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, WEIGHTS = 2 * LAYERS, SHARDS = 4, SHARD = 16, BATCH = SHARDS * SHARD, SEED = 1 };

static const int64_t width[LAYERS + 1] = {DIGITS_PIXELS, 128, 64, DIGITS_CLASSES};

struct model {
    ad_tape tape;
    ad_mpi_comm comm;
    struct parameter weight[WEIGHTS]; /* [width[l], width[l + 1]] and [width[l + 1]], in turn */
    int shards;                       /* of this rank */
    int steps;
};

/* This rank's shards of a mini-batch; the constants on the tape borrow the arrays. */
struct batch {
    float pixels[BATCH * DIGITS_PIXELS];
    int64_t labels[BATCH];
};

static bool model_init(struct model *model, uint64_t *seed)
{
    ad_tensor all[WEIGHTS];
    for (int l = 0; l < LAYERS; ++l) {
        const float bound = sqrtf(6.0f / (float)(width[l] + width[l + 1]));
        if (!parameter_init(&model->weight[2 * l], model->tape, 2, &width[l], bound, seed) ||
            !parameter_init(&model->weight[2 * l + 1], model->tape, 1, &width[l + 1], 0.0f, seed))
            return false;
    }
    for (int w = 0; w < WEIGHTS; ++w)
        all[w] = model->weight[w].leaf;
    return ad_mpi_average_gradients(model->comm, all, WEIGHTS) == AD_OK;
}

/* ---- a step ---- */

/* Views of x, one a shard, whose gradients are added as a balanced tree. */
static void views_of(ad_tensor x, int n, ad_tensor *view)
{
    int64_t shape[2] = {0, 0};
    ad_shape(x, shape);
    x = ad_reshape(x, shape, ad_rank(x));
    if (n == 1) {
        view[0] = x;
        return;
    }
    views_of(x, n / 2, view);
    views_of(x, n / 2, view + n / 2);
}

/* The sum of the losses of this rank's shards, and each of them in loss[]. The views of a layer
 * stand in front of its first use: its gradients are complete before earlier layers are swept. */
static ad_tensor losses(struct model *model, const struct batch *batch, double *loss)
{
    ad_tensor view[WEIGHTS][SHARDS], sum = {0};
    for (int s = 0; s < model->shards; ++s) {
        const int64_t shape[] = {SHARD, DIGITS_PIXELS};
        ad_tensor x = ad_constant(model->tape, AD_F32, 2, shape,
                                  batch->pixels + (size_t)s * SHARD * DIGITS_PIXELS);
        ad_tensor labels =
            ad_constant(model->tape, AD_I64, 1, shape, batch->labels + (size_t)s * SHARD);
        for (int l = 0; l < LAYERS; ++l) {
            for (int w = 2 * l; s == 0 && w < 2 * l + 2; ++w)
                views_of(model->weight[w].leaf, model->shards, view[w]);
            x = ad_linear(l > 0 ? ad_tanh(x) : x, view[2 * l][s], view[2 * l + 1][s]);
        }
        const ad_tensor y = ad_softmax_cross_entropy(x, labels);
        loss[s] = ad_item(y);
        sum = s == 0 ? y : ad_add(sum, y);
    }
    return sum;
}

/* Adam along the average over the shards. Factors are powers of two, which change no bit. */
static ad_status model_step(struct model *model)
{
    const float shards = (float)model->shards;
    model->steps++;
    for (int w = 0; w < WEIGHTS; ++w) {
        struct parameter *p = &model->weight[w];
        const ad_status status = ad_gradient(p->leaf, p->gradient, p->size);
        if (status != AD_OK)
            return status;
        for (int64_t i = 0; i < p->size; ++i)
            p->gradient[i] /= shards;
        adam_step(p->size, 2e-3f, model->steps, p->gradient, p->mean, p->square, p->value);
    }
    return AD_OK;
}

static ad_status train_step(struct model *model, const struct batch *batch, double *loss)
{
    double own[SHARDS], all[SHARDS];
    const ad_mark mark = ad_tape_mark(model->tape);
    ad_status status = ad_mpi_backward(model->comm, model->tape, losses(model, batch, own));
    if (status == AD_OK)
        status = model_step(model);
    if (status == AD_OK)
        status = ad_tape_rewind(model->tape, mark);
    MPI_Allgather(own, model->shards, MPI_DOUBLE, all, model->shards, MPI_DOUBLE, MPI_COMM_WORLD);
    *loss = ((all[0] + all[1]) + (all[2] + all[3])) / SHARDS;
    return status;
}

/* ---- training ---- */

/* One pass over all whole mini-batches in a new order, which all ranks shuffle alike. */
static ad_status train_epoch(struct model *model, const struct digits *digits, int64_t *order,
                             uint64_t *seed, double *loss)
{
    static struct batch batch;
    const int own = ad_mpi_rank(model->comm) * model->shards * SHARD;
    double sum = 0, of = 0;
    int batches = 0;
    ad_status status = AD_OK;
    shuffle(order, digits->count, seed);
    for (int64_t at = 0; at + BATCH <= digits->count && status == AD_OK; at += BATCH) {
        for (int64_t i = 0; i < model->shards * SHARD; ++i) {
            const int64_t image = order[at + own + i];
            memcpy(batch.pixels + i * DIGITS_PIXELS, digits->pixels + image * DIGITS_PIXELS,
                   DIGITS_PIXELS * sizeof *batch.pixels);
            batch.labels[i] = digits->labels[image];
        }
        status = train_step(model, &batch, &of);
        sum += of;
        batches++;
    }
    *loss = sum / batches;
    return status;
}

/* Of the bits of all weights. */
static unsigned long long model_sum(const struct model *model)
{
    unsigned long long sum = 0xcbf29ce484222325u;
    for (int w = 0; w < WEIGHTS; ++w)
        for (int64_t i = 0; i < model->weight[w].size; ++i) {
            uint32_t bits;
            memcpy(&bits, &model->weight[w].value[i], sizeof bits);
            sum = (sum ^ bits) * 0x100000001b3u;
        }
    return sum;
}

static ad_status run(struct model *model, const struct digits *train, int64_t *order,
                     uint64_t *seed, int epochs)
{
    for (int64_t i = 0; i < train->count; ++i)
        order[i] = i;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        double loss;
        const ad_status status = train_epoch(model, train, order, seed, &loss);
        if (status != AD_OK)
            return status;
        if (ad_mpi_rank(model->comm) == 0)
            printf("epoch %d of %d, loss %.17g\n", epoch, epochs, loss);
    }
    if (ad_mpi_rank(model->comm) == 0)
        printf("the weights' bits add up to %016llx\n", model_sum(model));
    return AD_OK;
}

int main(int argc, char **argv)
{
    struct digits train, held_out;
    struct model model = {0};
    uint64_t seed = SEED;
    MPI_Init(&argc, &argv);
    const int epochs = argc > 1 ? atoi(argv[1]) : 10;
    if (!digits_load(EXAMPLES_DATA_DIR "/digits.csv.gz", &train, &held_out))
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    /* The last two layers are a bucket, the first is one. */
    const ad_mpi_options options = {.bucket_bytes = 35 << 10};
    ad_status status = ad_mpi_init(&model.comm, MPI_COMM_WORLD, &options);
    const int ranks = ad_mpi_size(model.comm);
    if (status == AD_OK && (ranks > SHARDS || SHARDS % ranks != 0)) {
        fprintf(stderr, "digits_ranks: 1, 2 or 4 ranks, not %d\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    model.shards = SHARDS / ranks;
    if (status == AD_OK)
        status = ad_tape_create(&model.tape, NULL);
    int64_t *order = malloc((size_t)train.count * sizeof *order);
    if (status == AD_OK)
        status = order && model_init(&model, &seed) ? run(&model, &train, order, &seed, epochs)
                                                    : AD_ERROR_MEMORY;
    if (status != AD_OK) {
        const char *message = ad_tape_message(model.tape);
        fprintf(stderr, "digits_ranks: %s\n", *message ? message : ad_status_text(status));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    free(order);
    ad_tape_destroy(model.tape);
    for (int w = 0; w < WEIGHTS; ++w)
        parameter_free(&model.weight[w]);
    digits_free(&train);
    digits_free(&held_out);
    ad_mpi_free(&model.comm);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
