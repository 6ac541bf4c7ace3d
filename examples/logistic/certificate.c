/* certificate.c: loss, gradient and conditions of optimality of the logistic regression, by loops.
 *
 * Nothing here calls Tapescope, so that it can testify.
 */
#include "certificate.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = DIGITS_PIXELS + 1 };

bool images_make(const struct digits *digits, struct images *images)
{
    size_t n = (size_t)digits->count * DIGITS_PIXELS;
    *images = (struct images){.count = digits->count, .labels = digits->labels};
    images->pixels = malloc(n * sizeof *images->pixels);
    if (!images->pixels)
        return false;
    for (size_t i = 0; i < n; ++i)
        images->pixels[i] = (double)digits->pixels[i];
    return true;
}

void images_free(struct images *images)
{
    free(images->pixels);
    *images = (struct images){0};
}

/* Puts Y - P of one image into residual; returns the image's cross-entropy. */
static double image_residual(const double *pixels, int64_t label, const double *w, double *residual)
{
    double logits[DIGITS_CLASSES], largest = -INFINITY, sum = 0.0;
    for (int k = 0; k < DIGITS_CLASSES; ++k) {
        logits[k] = w[DIGITS_PIXELS * DIGITS_CLASSES + k];
        for (int j = 0; j < DIGITS_PIXELS; ++j)
            logits[k] += pixels[j] * w[j * DIGITS_CLASSES + k];
        largest = fmax(largest, logits[k]);
    }
    for (int k = 0; k < DIGITS_CLASSES; ++k)
        sum += exp(logits[k] - largest);
    for (int k = 0; k < DIGITS_CLASSES; ++k)
        residual[k] = (k == label ? 1.0 : 0.0) - exp(logits[k] - largest) / sum;
    return largest + log(sum) - logits[label];
}

bool certificate_make(const struct images *images, double penalty, const double *parameters,
                      struct certificate *certificate)
{
    /* The sum over images of x (y - p)^T. */
    double(*products)[DIGITS_CLASSES] = calloc(ROWS, sizeof *products);
    if (!products)
        return false;
    double entropy = 0.0, squares = 0.0, gradient_squares = 0.0;
    *certificate = (struct certificate){0};
    for (int64_t i = 0; i < images->count; ++i) {
        const double *pixels = images->pixels + i * DIGITS_PIXELS;
        double residual[DIGITS_CLASSES];
        entropy += image_residual(pixels, images->labels[i], parameters, residual);
        for (int j = 0; j < ROWS; ++j)
            for (int k = 0; k < DIGITS_CLASSES; ++k)
                products[j][k] += (j < DIGITS_PIXELS ? pixels[j] : 1.0) * residual[k];
    }
    double n = (double)images->count;
    for (int j = 0; j < ROWS; ++j) {
        double sum = 0.0;
        for (int k = 0; k < DIGITS_CLASSES; ++k) {
            double w = parameters[j * DIGITS_CLASSES + k];
            double gradient = penalty * w - products[j][k] / n;
            squares += w * w;
            gradient_squares += gradient * gradient;
            certificate->stationarity = fmax(certificate->stationarity, fabs(gradient / penalty));
            sum += w;
        }
        certificate->balance = fmax(certificate->balance, fabs(sum));
    }
    free(products);
    certificate->loss = entropy / n + penalty / 2 * squares;
    certificate->gradient_norm = sqrt(gradient_squares);
    certificate->gap = gradient_squares / (2 * penalty);
    return true;
}
