/* characters.c: a network learns which character follows in a text, as that of Y. Bengio, R.
 * Ducharme, P. Vincent and C. Jauvin (2003) did of words: each of the last eight has a vector, a
 * layer of tanh reads all eight, and a linear one says how likely each character is.
 *
 *     characters               trains, and shows that it learns, and that its file goes on
 *     characters FILE.npz      goes on from there if the file exists, trains, and saves
 *
 * The last tenth of the text is held out. The program ends with an error unless it is guessed far
 * better than by how frequent letters, or pairs of them, are; and unless training that went on from
 * a file comes to the same numbers, bit for bit, as training that was not interrupted.
 */
#include "optimisers.h"
#include "training.h"

#include <tapescope/ad_file.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LETTERS = 96, /* of ASCII: those that are printed, and the end of a line */
    SEEN = 8,
    VECTOR = 12,
    UNITS = 96,
    BATCH = 64,
    EPOCHS = 4,
    MOST_TEXT = 1 << 16
};
enum { VECTORS, HIDDEN, HIDDEN_BIAS, OUT, OUT_BIAS, PARAMETERS };

static const int64_t shape[PARAMETERS][2] = {
    {LETTERS, VECTOR}, {SEEN * VECTOR, UNITS}, {UNITS, 1}, {UNITS, LETTERS}, {LETTERS, 1}};
enum { NUMBERS = LETTERS * VECTOR + SEEN * VECTOR * UNITS + UNITS + UNITS * LETTERS + LETTERS };

/* All parameters, or a number for each. */
struct parameters {
    double number[NUMBERS];
    ad_tensor leaf[PARAMETERS];
};

/* What is saved: with it training goes on. */
struct model {
    struct parameters at, velocity;
    double epochs;
};

struct text {
    int64_t letter[MOST_TEXT]; /* 0 to LETTERS */
    int64_t n, n_train;
};

/* ---- the network ---- */

static void visit_named(struct parameters *p, ad_visitor *v, const char *const *names)
{
    double *number = p->number;
    for (int i = 0; i < PARAMETERS; ++i) {
        ad_visit(v, names[i], &p->leaf[i], AD_F64, shape[i][1] > 1 ? 2 : 1, shape[i], number);
        number += shape[i][0] * shape[i][1];
    }
}

static void visit_parameters(void *of, ad_visitor *v)
{
    static const char *const names[] = {"vectors", "hidden", "hidden.bias", "out", "out.bias"};
    visit_named(of, v, names);
}

static void visit_model(void *of, ad_visitor *v)
{
    static const char *const names[] = {"velocity/vectors", "velocity/hidden",
                                        "velocity/hidden.bias", "velocity/out",
                                        "velocity/out.bias"};
    struct model *m = of;
    ad_tensor unused = {0, 0, 0, 0};
    visit_parameters(&m->at, v);
    visit_named(&m->velocity, v, names);
    ad_visit(v, "epochs", &unused, AD_F64, 0, NULL, &m->epochs);
}

/* How likely each letter is [n,LETTERS], before softmax, after those seen [n,SEEN]. */
static ad_tensor guess(ad_tape tape, const struct parameters *p, int64_t n, const int64_t *seen)
{
    const int64_t all[] = {n, SEEN}, row[] = {n, (int64_t)SEEN * VECTOR};
    ad_tensor letters = ad_constant(tape, AD_I64, 2, all, seen);
    ad_tensor vectors = ad_reshape(ad_embedding(p->leaf[VECTORS], letters), row, 2);
    ad_tensor h = ad_tanh(ad_linear(vectors, p->leaf[HIDDEN], p->leaf[HIDDEN_BIAS]));
    return ad_linear(h, p->leaf[OUT], p->leaf[OUT_BIAS]);
}

static void model_init(struct model *m)
{
    double *number = m->at.number;
    uint64_t seed = 1;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < PARAMETERS; ++i) {
        const double bound = i == VECTORS ? 1 : sqrt(3.0 / (double)shape[i][0]);
        for (int64_t k = 0; k < shape[i][0] * shape[i][1]; ++k)
            *number++ =
                shape[i][1] > 1 ? bound * ((double)(random_bits(&seed) >> 11) * 0x1p-52 - 1) : 0;
    }
}

/* ---- training ---- */

/* The letters before place[n] and those at them. */
static void batch_fill(const struct text *text, int64_t n, const int64_t *place, int64_t *seen,
                       int64_t *next)
{
    for (int64_t i = 0; i < n; ++i) {
        memcpy(seen + i * SEEN, text->letter + place[i] - SEEN, SEEN * sizeof *seen);
        next[i] = text->letter[place[i]];
    }
}

/* One epoch, in an order that its number says. */
static ad_status train_epoch(ad_tape tape, struct model *m, const struct text *text, double *loss)
{
    static struct parameters gradients;
    static int64_t place[MOST_TEXT];
    const int64_t n = text->n_train - SEEN;
    uint64_t seed = 1 + (uint64_t)m->epochs;
    const int64_t batches = n / BATCH;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
        place[i] = SEEN + i;
    shuffle(place, n, &seed);
    ad_status status = ad_visit_leaves(tape, visit_parameters, &m->at);
    const ad_mark mark = ad_tape_mark(tape);
    for (int64_t first = 0; first + BATCH <= n && status == AD_OK; first += BATCH) {
        int64_t seen[BATCH * SEEN], next[BATCH];
        const int64_t count = BATCH;
        batch_fill(text, count, place + first, seen, next);
        ad_tensor labels = ad_constant(tape, AD_I64, 1, &count, next);
        ad_tensor y = ad_softmax_cross_entropy(guess(tape, &m->at, count, seen), labels);
        sum += ad_item(y);
        status = ad_backward(y);
        if (status == AD_OK)
            status = ad_visit_gradients(tape, visit_parameters, &m->at, &gradients);
        if (status == AD_OK) {
            const double rate = 0.1 / (1 + m->epochs);
            sgd_step(NUMBERS, rate, 0.9, gradients.number, m->velocity.number, m->at.number);
            status = ad_tape_rewind(tape, mark);
        }
    }
    *loss = sum / (double)batches / log(2);
    m->epochs += 1;
    return status == AD_OK ? ad_tape_reset(tape) : status;
}

static ad_status train(ad_tape tape, struct model *m, const struct text *text, int epochs,
                       bool tells)
{
    ad_status status = AD_OK;
    for (int e = 0; e < epochs && status == AD_OK; ++e) {
        double loss;
        status = train_epoch(tape, m, text, &loss);
        if (tells && status == AD_OK)
            printf("epoch %.0f: %.3f bits a character\n", m->epochs, loss);
    }
    return status;
}

/* Bits a character of what was held out. */
static ad_status evaluate(ad_tape tape, struct model *m, const struct text *text, double *bits)
{
    ad_status status = ad_visit_leaves(tape, visit_parameters, &m->at);
    const ad_mark mark = ad_tape_mark(tape);
    *bits = 0;
    for (int64_t at = text->n_train; at < text->n && status == AD_OK; at += BATCH) {
        int64_t place[BATCH], seen[BATCH * SEEN], next[BATCH];
        const int64_t count = text->n - at < BATCH ? text->n - at : BATCH;
        for (int64_t i = 0; i < count; ++i)
            place[i] = at + i;
        batch_fill(text, count, place, seen, next);
        ad_tensor labels = ad_constant(tape, AD_I64, 1, &count, next);
        ad_tensor y = ad_softmax_cross_entropy(guess(tape, &m->at, count, seen), labels);
        *bits += ad_item(y) * (double)count / log(2);
        status = ad_tape_status(tape) == AD_OK ? ad_tape_rewind(tape, mark) : ad_tape_status(tape);
    }
    *bits /= (double)(text->n - text->n_train);
    return status == AD_OK ? ad_tape_reset(tape) : status;
}

/* ---- the text, and what is known of it without a network ---- */

static bool text_load(const char *path, struct text *text)
{
    FILE *file = fopen(path, "r");
    int c = EOF;
    text->n = 0;
    while (file && text->n < MOST_TEXT && (c = getc(file)) != EOF)
        text->letter[text->n++] = c >= ' ' && c < 127 ? c - ' ' : LETTERS - 1;
    if (file)
        fclose(file);
    else
        perror(path);
    text->n_train = text->n - text->n / 10;
    return file && text->n > 100 * SEEN;
}

/* Bits a character of what was held out, by how often letters follow the same letter (pairs) or
 * come at all in the rest; each counts once more than it came. */
static double frequency_bits(const struct text *text, bool pairs)
{
    static double count[LETTERS][LETTERS], all[LETTERS];
    double bits = 0;
    for (int i = 0; i < LETTERS; ++i) {
        all[i] = LETTERS;
        for (int k = 0; k < LETTERS; ++k)
            count[i][k] = 1;
    }
    for (int64_t i = 1; i < text->n; ++i) {
        const int64_t before = pairs ? text->letter[i - 1] : 0, next = text->letter[i];
        if (i < text->n_train) {
            count[before][next] += 1;
            all[before] += 1;
        } else {
            bits -= log2(count[before][next] / all[before]);
        }
    }
    return bits / (double)(text->n - text->n_train);
}

/* ---- what it must be ---- */

/* Training that stops half way, and goes on in another tape from the file, comes to the same. */
static bool goes_on(const struct text *text, const struct model *whole)
{
    static struct model half, rest;
    char path[] = "/tmp/characters-XXXXXX";
    ad_tape tape;
    const int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return false;
    }
    close(fd);
    if (ad_tape_create(&tape, NULL) != AD_OK) {
        fprintf(stderr, "characters: %s\n", ad_tape_message((ad_tape){0}));
        unlink(path);
        return false;
    }
    model_init(&half);
    ad_status status = train(tape, &half, text, EPOCHS / 2, false);
    if (status == AD_OK)
        status = ad_visit_save(tape, path, visit_model, &half);
    if (status == AD_OK)
        status = ad_visit_load(tape, path, visit_model, &rest);
    if (status == AD_OK)
        status = train(tape, &rest, text, EPOCHS - EPOCHS / 2, false);
    if (status != AD_OK)
        fprintf(stderr, "characters: %s\n", ad_tape_message(tape));
    ad_tape_destroy(tape);
    unlink(path);
    bool same = status == AD_OK;
    for (int i = 0; i < NUMBERS && same; ++i)
        same = rest.at.number[i] == whole->at.number[i] &&
               rest.velocity.number[i] == whole->velocity.number[i];
    printf("saved after %d epochs and gone on from the file: %s\n", EPOCHS / 2,
           same ? "the same bit for bit" : "FAILED");
    return same;
}

/* Writes as the text does: after `so_far` always the likeliest letter. */
static ad_status write_on(ad_tape tape, struct model *m, const char *so_far, int letters)
{
    int64_t seen[SEEN];
    ad_status status = ad_visit_leaves(tape, visit_parameters, &m->at);
    const ad_mark mark = ad_tape_mark(tape);
    for (int i = 0; i < SEEN; ++i)
        seen[i] = so_far[strlen(so_far) - SEEN + (size_t)i] - ' ';
    printf("%s", so_far);
    for (int i = 0; i < letters && status == AD_OK; ++i) {
        int64_t next = 0;
        status = ad_value(ad_argmax(guess(tape, &m->at, 1, seen), 1, 0), &next, 1);
        memmove(seen, seen + 1, sizeof seen - sizeof *seen);
        seen[SEEN - 1] = next;
        putchar(next == LETTERS - 1 ? ' ' : (int)next + ' ');
        if (status == AD_OK)
            status = ad_tape_rewind(tape, mark);
    }
    printf("\n");
    return status == AD_OK ? ad_tape_reset(tape) : status;
}

static ad_status run(ad_tape tape, const struct text *text, const char *path, bool *right)
{
    static struct model m;
    double bits = NAN;
    ad_status status = AD_OK;
    model_init(&m);
    if (path && access(path, F_OK) == 0)
        status = ad_visit_load(tape, path, visit_model, &m);
    if (status == AD_OK)
        status = train(tape, &m, text, EPOCHS, true);
    if (status == AD_OK && path)
        status = ad_visit_save(tape, path, visit_model, &m);
    if (status == AD_OK)
        status = evaluate(tape, &m, text, &bits);
    const double letters = frequency_bits(text, false), pairs = frequency_bits(text, true);
    printf("held out: %.2f bits a character; by how frequent letters are %.2f, pairs %.2f\n", bits,
           letters, pairs);
    *right = bits < 0.95 * pairs && bits < 0.75 * letters;
    if (!*right)
        fprintf(stderr, "characters: it has learnt too little\n");
    if (status == AD_OK)
        status = write_on(tape, &m, "The profiler ", 59);
    if (status == AD_OK && !path)
        *right = goes_on(text, &m) && *right;
    return status;
}

int main(int argc, char **argv)
{
    static struct text text;
    ad_tape tape;
    bool right = false;
    if (!text_load(EXAMPLES_DATA_DIR "/text.txt", &text))
        return EXIT_FAILURE;
    if (ad_tape_create(&tape, NULL) != AD_OK) {
        fprintf(stderr, "characters: %s\n", ad_tape_message((ad_tape){0}));
        return EXIT_FAILURE;
    }
    const ad_status status = run(tape, &text, argc > 1 ? argv[1] : NULL, &right);
    if (status != AD_OK)
        fprintf(stderr, "characters: %s\n", ad_tape_message(tape));
    ad_tape_destroy(tape);
    return status == AD_OK && right ? EXIT_SUCCESS : EXIT_FAILURE;
}
