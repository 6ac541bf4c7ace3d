/* logistic.c: logistic regression on images of handwritten digits, ten classes, by NLopt's L-BFGS
 * with gradients of Tapescope's, and a proof that what it found is the optimum.
 *
 *     logistic [FILE]
 *
 * The loss is the mean cross-entropy plus PENALTY / 2 times the squares of all parameters: strictly
 * convex, so it has one minimum. The program ends with an error unless the result has the
 * optimum's properties (certificate.h), a second method comes to the same loss, and images held
 * out of the training are classified well.
 */
#include "certificate.h"
#include "digits_data.h"
#include "optimisers.h"

#include <tapescope/ad.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHTS = DIGITS_PIXELS * DIGITS_CLASSES, PARAMETERS = WEIGHTS + DIGITS_CLASSES };

static const double PENALTY = 1e-3;

/* The training images, on the tape for good, and the leaves, which borrow `parameters`. */
struct problem {
    ad_tape tape;
    ad_tensor images, labels; /* [count, DIGITS_PIXELS], i64 [count] */
    ad_tensor weight, bias;   /* [DIGITS_PIXELS, DIGITS_CLASSES], [DIGITS_CLASSES] */
    double parameters[PARAMETERS];
};

static ad_tensor loss_of(const struct problem *p)
{
    ad_tensor logits = ad_linear(p->images, p->weight, p->bias);
    ad_tensor entropy = ad_softmax_cross_entropy(logits, p->labels);
    ad_tensor squares = ad_add(ad_sum(ad_square(p->weight)), ad_sum(ad_square(p->bias)));
    return ad_add(entropy, ad_scale(squares, PENALTY / 2));
}

/* The loss at x, and its gradient. */
static bool loss_at(int n, const double *x, double *value, double *gradient, void *payload)
{
    struct problem *p = payload;
    memcpy(p->parameters, x, (size_t)n * sizeof *x);
    ad_mark mark = ad_tape_mark(p->tape);
    ad_tensor loss = loss_of(p);
    *value = ad_item(loss);
    ad_status status = ad_backward(loss);
    if (status == AD_OK)
        status = ad_gradients(2, (ad_tensor[]){p->weight, p->bias},
                              (void *[]){gradient, gradient + WEIGHTS},
                              (int64_t[]){WEIGHTS, DIGITS_CLASSES});
    ad_tape_rewind(p->tape, mark);
    return status == AD_OK;
}

/* Minimises from zero; leaves the optimum in x and its loss in *loss. Says what went wrong. */
static bool find(struct problem *p, enum minimiser method, double *x, double *loss)
{
    struct minimum m;
    memset(x, 0, PARAMETERS * sizeof *x);
    bool found = minimise(method, PARAMETERS, loss_at, p, x, &m);
    *loss = m.value;
    if (ad_tape_status(p->tape) != AD_OK) {
        fprintf(stderr, "logistic: %s\n", ad_tape_message(p->tape));
        return false;
    }
    printf("%s: loss %.12f after %d evaluations (%s)\n", m.method, m.value, m.evaluations,
           m.ending);
    if (!found)
        fprintf(stderr, "logistic: no minimum was found (%s)\n", m.ending);
    return found;
}

/* The part of the images that the parameters classify rightly; NaN on error. */
static double accuracy(struct problem *p, const struct images *images, const double *x)
{
    double *logits = malloc((size_t)images->count * DIGITS_CLASSES * sizeof *logits);
    if (!logits)
        return NAN;
    memcpy(p->parameters, x, sizeof p->parameters);
    ad_mark mark = ad_tape_mark(p->tape);
    ad_tape_no_grad_begin(p->tape);
    ad_tensor held_out =
        ad_constant(p->tape, AD_F64, 2, (int64_t[]){images->count, DIGITS_PIXELS}, images->pixels);
    ad_value(ad_linear(held_out, p->weight, p->bias), logits, images->count * DIGITS_CLASSES);
    ad_tape_no_grad_end(p->tape);
    ad_tape_rewind(p->tape, mark);
    int64_t right = 0;
    for (int64_t i = 0; i < images->count; ++i) {
        const double *row = logits + i * DIGITS_CLASSES;
        int64_t best = 0;
        for (int64_t k = 1; k < DIGITS_CLASSES; ++k)
            if (row[k] > row[best])
                best = k;
        right += best == images->labels[i];
    }
    free(logits);
    return ad_tape_status(p->tape) == AD_OK ? (double)right / (double)images->count : NAN;
}

/* One line for what must hold; returns whether it does. */
static bool holds(const char *what, double value, const char *relation, double bound)
{
    bool does = *relation == '<' ? value <= bound : value >= bound; /* false for NaN */
    printf("%-58s %9.3g %s %g%s\n", what, value, relation, bound, does ? "" : "  FAILED");
    return does;
}

static bool run(ad_tape tape, const struct images *train, const struct images *held_out)
{
    struct problem p = {.tape = tape};
    int64_t shape[] = {train->count, DIGITS_PIXELS, DIGITS_CLASSES};
    p.images = ad_constant(tape, AD_F64, 2, shape, train->pixels);
    p.labels = ad_constant(tape, AD_I64, 1, shape, train->labels);
    p.weight = ad_leaf(tape, AD_F64, 2, shape + 1, p.parameters);
    p.bias = ad_leaf(tape, AD_F64, 1, shape + 2, p.parameters + WEIGHTS);

    double x[PARAMETERS], other[PARAMETERS], loss, other_loss;
    if (!find(&p, LBFGS, x, &loss) || !find(&p, TRUNCATED_NEWTON, other, &other_loss))
        return false;
    struct certificate c;
    if (!certificate_make(train, PENALTY, x, &c)) {
        fprintf(stderr, "logistic: out of memory\n");
        return false;
    }
    bool all = holds("norm of the gradient", c.gradient_norm, "<=", 1e-6);
    all &= holds("loss above the least possible, at most", c.gap, "<=", 1e-9 * loss);
    all &= holds("optimality: largest |w - X^T (Y - P) / (n penalty)|", c.stationarity, "<=", 1e-4);
    all &= holds("optimality: largest |sum over classes of w|", c.balance, "<=", 1e-4);
    all &= holds("loss against plain C, relative", fabs(c.loss / loss - 1), "<=", 1e-12);
    all &=
        holds("loss against the second method, relative", fabs(other_loss / loss - 1), "<=", 1e-9);
    all &= holds("accuracy on images held out", accuracy(&p, held_out, x), ">=", 0.95);
    if (!all)
        fprintf(stderr, "logistic: the result is not what it must be\n");
    return all;
}

int main(int argc, char **argv)
{
    struct digits digits[2];
    struct images train = {0}, held_out = {0};
    if (!digits_load(argc > 1 ? argv[1] : EXAMPLES_DATA_DIR "/digits.csv.gz", &digits[0],
                     &digits[1]))
        return EXIT_FAILURE;
    ad_tape tape = {0};
    bool good = false;
    if (!images_make(&digits[0], &train) || !images_make(&digits[1], &held_out))
        fprintf(stderr, "logistic: out of memory\n");
    else if (ad_tape_create(&tape, NULL) != AD_OK)
        fprintf(stderr, "logistic: %s\n", ad_tape_message(tape));
    else
        good = run(tape, &train, &held_out);
    ad_tape_destroy(tape); /* harmless if there is none */
    images_free(&train);
    images_free(&held_out);
    digits_free(&digits[0]);
    digits_free(&digits[1]);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
