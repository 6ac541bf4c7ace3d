/* lstm.c: inputs, objective and gradient of lstm.h.
 *
 * Invariant: the gradient computes the loss as the objective does, term by term.
 */
#include "lstm.h"

#include "problem_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a step keeps of a layer, [b] each: the gates, the tanh of the cell, and h and the cell as
 * they stand in a state. */
enum { KEPT_F, KEPT_I, KEPT_O, KEPT_G, KEPT_TANH, KEPT_H, KEPT_CELL, KEPT };

/* ---- inputs ---- */

static bool allocate(struct problem *problem, int l, int c, int b)
{
    struct lstm *m = calloc(1, sizeof *m);
    problem->input = m;
    if (!m)
        return false;
    const size_t layers = (size_t)l, steps = (size_t)c, width = (size_t)b;
    *m = (struct lstm){.l = l, .c = c, .b = b};
    problem->n_variables = (8 * layers + 3) * width;
    problem->n_outputs = 1;
    problem->n_gradient = problem->n_variables;
    /* Per step what layers keep and the derivative with respect to y; two adjoints of each layer,
     * and one more vector. */
    problem->work_bytes = ((KEPT * layers + 1) * steps + 2 * layers + 1) * width * sizeof(double);
    problem->x = malloc(problem->n_variables * sizeof *problem->x);
    m->state = malloc(2 * layers * width * sizeof *m->state);
    m->sequence = malloc(steps * width * sizeof *m->sequence);
    return problem->x && m->state && m->sequence;
}

static bool make(struct problem *problem, const int *sizes)
{
    const int l = sizes[0], c = sizes[1], b = sizes[2];
    if (!allocate(problem, l, c, b))
        return false;
    struct lstm *m = problem->input;
    struct numbers numbers = {(uint64_t)(l * 1000 + b)};
    for (size_t i = 0; i < problem->n_variables; ++i)
        problem->x[i] = number_in(&numbers, 0.0, 1.0);
    for (int i = 0; i < 2 * l * b; ++i)
        m->state[i] = number_in(&numbers, 0.0, 1.0);
    for (int i = 0; i < c * b; ++i)
        m->sequence[i] = number_in(&numbers, 0.0, 1.0) < 0.3 ? 1.0 : 0.0;
    return true;
}

static bool read_file(struct problem *problem, const char *folder)
{
    const char *name = problem->spec->file;
    FILE *file = input_open(folder, name);
    if (!file)
        return false;
    int size[3];
    bool done = input_ints(file, 3, size) && size[0] > 0 && size[0] <= 100 && size[1] > 1 &&
                size[1] <= 1000000 && size[2] > 0 && size[2] <= 1000 &&
                allocate(problem, size[0], size[1], size[2]);
    struct lstm *m = problem->input;
    done = done && input_doubles(file, problem->n_variables, problem->x) &&
           input_doubles(file, 2 * (size_t)m->l * (size_t)m->b, m->state) &&
           input_doubles(file, (size_t)m->c * (size_t)m->b, m->sequence);
    fclose(file);
    return done || input_refuse(folder, name);
}

static void drop(void *input)
{
    struct lstm *m = input;
    free(m->state);
    free(m->sequence);
    free(m);
}

/* ---- the objective ---- */

static double sigmoid(double z)
{
    return 1.0 / (1.0 + exp(-z));
}

static void value(const struct problem *problem, const double *x, void *work, double *outputs)
{
    const struct lstm *m = problem->input;
    const int b = m->b;
    const double *w_in = x + 8 * m->l * b, *w_out = w_in + b, *b_out = w_out + b;
    double *state = work, *v = state + 2 * m->l * b;
    double loss = 0.0;
    memcpy(state, m->state, 2 * (size_t)m->l * (size_t)b * sizeof *state);
    for (int t = 0; t + 1 < m->c; ++t) {
        const double *now = m->sequence + (size_t)t * (size_t)b, *next = now + b;
        for (int j = 0; j < b; ++j)
            v[j] = now[j] * w_in[j];
        for (int l = 0; l < m->l; ++l) {
            const double *w = x + 8 * l * b, *bias = w + 4 * b;
            double *h = state + 2 * l * b, *cell = h + b;
            for (int j = 0; j < b; ++j) {
                double f = sigmoid(v[j] * w[j] + bias[j]);
                double i = sigmoid(h[j] * w[b + j] + bias[b + j]);
                double o = sigmoid(v[j] * w[2 * b + j] + bias[2 * b + j]);
                double g = tanh(h[j] * w[3 * b + j] + bias[3 * b + j]);
                cell[j] = cell[j] * f + i * g;
                h[j] = o * tanh(cell[j]);
                v[j] = h[j];
            }
        }
        double sum = 2.0;
        for (int j = 0; j < b; ++j) {
            v[j] = v[j] * w_out[j] + b_out[j];
            sum += exp(v[j]);
        }
        const double log_sum = log(sum);
        for (int j = 0; j < b; ++j)
            loss -= next[j] * (v[j] - log_sum);
    }
    outputs[0] = loss / (b * (m->c - 1));
}

/* ---- the gradient ---- */

/* A layer's step: v is what comes in, and h when it returns. */
static void layer_forward(int b, const double *restrict w, const double *restrict state,
                          double *restrict v, double *restrict kept)
{
    const double *h = state, *cell = state + b;
    const double *bias = w + 4 * b;
    for (int j = 0; j < b; ++j) {
        double f = sigmoid(v[j] * w[j] + bias[j]);
        double i = sigmoid(h[j] * w[b + j] + bias[b + j]);
        double o = sigmoid(v[j] * w[2 * b + j] + bias[2 * b + j]);
        double g = tanh(h[j] * w[3 * b + j] + bias[3 * b + j]);
        double c = cell[j] * f + i * g;
        double t = tanh(c);
        kept[KEPT_F * b + j] = f;
        kept[KEPT_I * b + j] = i;
        kept[KEPT_O * b + j] = o;
        kept[KEPT_G * b + j] = g;
        kept[KEPT_CELL * b + j] = c;
        kept[KEPT_TANH * b + j] = t;
        kept[KEPT_H * b + j] = v[j] = o * t;
    }
}

/* Its reverse. d_v is the adjoint of h by what follows in the step, and that of v when it returns;
 * d_state those of h and of the cell by the next step, and by this one when it returns. */
static void layer_backward(int b, const double *restrict w, const double *restrict v,
                           const double *restrict state, const double *restrict kept,
                           double *restrict d_v, double *restrict d_state, double *restrict d_w)
{
    const double *h = state, *cell = state + b;
    double *restrict d_h = d_state, *restrict d_cell = d_state + b;
    double *restrict d_bias = d_w + 4 * b;
    for (int j = 0; j < b; ++j) {
        const double f = kept[KEPT_F * b + j], i = kept[KEPT_I * b + j];
        const double o = kept[KEPT_O * b + j], g = kept[KEPT_G * b + j];
        const double t = kept[KEPT_TANH * b + j];
        const double dh = d_v[j] + d_h[j];
        const double dc = d_cell[j] + dh * o * (1.0 - t * t);
        const double zf = dc * cell[j] * f * (1.0 - f), zi = dc * g * i * (1.0 - i);
        const double zo = dh * t * o * (1.0 - o), zg = dc * i * (1.0 - g * g);
        d_w[j] += zf * v[j];
        d_w[b + j] += zi * h[j];
        d_w[2 * b + j] += zo * v[j];
        d_w[3 * b + j] += zg * h[j];
        d_bias[j] += zf;
        d_bias[b + j] += zi;
        d_bias[2 * b + j] += zo;
        d_bias[3 * b + j] += zg;
        d_v[j] = zf * w[j] + zo * w[2 * b + j];
        d_h[j] = zi * w[b + j] + zg * w[3 * b + j];
        d_cell[j] = dc * f;
    }
}

/* The output of a step, its share of the loss and the derivative with respect to y, times what the
 * loss is divided by. */
static double output_forward(int b, const double *restrict w_out, const double *restrict b_out,
                             const double *restrict next, double *restrict v, double *restrict d_y)
{
    double sum = 2.0, loss = 0.0, all = 0.0;
    for (int j = 0; j < b; ++j) {
        v[j] = v[j] * w_out[j] + b_out[j];
        d_y[j] = exp(v[j]);
        sum += d_y[j];
        all += next[j];
    }
    const double log_sum = log(sum), share = all / sum;
    for (int j = 0; j < b; ++j) {
        loss -= next[j] * (v[j] - log_sum);
        d_y[j] = share * d_y[j] - next[j];
    }
    return loss;
}

/* h and the cell of a layer before step t, by what the step before it kept. */
static const double *state_before(const struct lstm *m, const double *kept, int t, int l)
{
    if (t == 0)
        return m->state + 2 * l * m->b;
    return kept + ((size_t)(t - 1) * (size_t)m->l + (size_t)l) * KEPT * (size_t)m->b +
           KEPT_H * m->b;
}

static void gradient(const struct problem *problem, const double *x, void *work, double *outputs,
                     double *gradient)
{
    const struct lstm *m = problem->input;
    const int b = m->b, n_l = m->l;
    const size_t kept_step = KEPT * (size_t)n_l * (size_t)b;
    const double *w_in = x + 8 * n_l * b, *w_out = w_in + b, *b_out = w_out + b;
    double *d_in = gradient + 8 * n_l * b, *d_out = d_in + b, *d_b_out = d_out + b;
    double *v = work, *adjoint = v + b, *d_y = adjoint + 2 * n_l * b;
    double *kept = d_y + (size_t)m->c * (size_t)b;
    const double scale = 1.0 / (b * (m->c - 1));
    double loss = 0.0;
    for (int t = 0; t + 1 < m->c; ++t) {
        const double *now = m->sequence + (size_t)t * (size_t)b;
        double *step = kept + (size_t)t * kept_step;
        for (int j = 0; j < b; ++j)
            v[j] = now[j] * w_in[j];
        for (int l = 0; l < n_l; ++l) {
            layer_forward(b, x + 8 * l * b, state_before(m, kept, t, l), v, step + KEPT * l * b);
        }
        loss += output_forward(b, w_out, b_out, now + b, v, d_y + (size_t)t * (size_t)b);
    }
    outputs[0] = loss * scale;

    for (size_t j = 0; j < problem->n_gradient; ++j)
        gradient[j] = 0.0;
    for (int j = 0; j < 2 * n_l * b; ++j)
        adjoint[j] = 0.0;
    for (int t = m->c - 2; t >= 0; --t) {
        const double *now = m->sequence + (size_t)t * (size_t)b;
        const double *step = kept + (size_t)t * kept_step;
        const double *last = step + KEPT * (n_l - 1) * b + KEPT_H * b;
        double *d_v = d_y + (size_t)t * (size_t)b;
        for (int j = 0; j < b; ++j) {
            const double z = scale * d_v[j];
            d_out[j] += z * last[j];
            d_b_out[j] += z;
            d_v[j] = z * w_out[j];
        }
        for (int l = n_l - 1; l >= 0; --l) {
            for (int j = 0; j < b; ++j)
                v[j] = l == 0 ? now[j] * w_in[j] : step[(KEPT * (l - 1) + KEPT_H) * b + j];
            layer_backward(b, x + 8 * l * b, v, state_before(m, kept, t, l), step + KEPT * l * b,
                           d_v, adjoint + 2 * l * b, gradient + 8 * l * b);
        }
        for (int j = 0; j < b; ++j)
            d_in[j] += d_v[j] * now[j];
    }
}

const struct problem_kind lstm_kind = {make, read_file, drop, value, gradient};
