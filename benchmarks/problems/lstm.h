/* lstm.h: the loss of a network of long short-term memory that predicts the next symbol of a
 * sequence (ADBench: M. Srajer, Z. Kukelova, A. Fitzgibbon, 2018,
 * doi:10.1080/10556788.2018.1435651). All products are elementwise, over b numbers; s(z) is
 * 1 / (1 + exp(-z)).
 *
 *   step t = 0 ... c-2: v = x_t w_in; per layer
 *       f = s(v W_f + b_f), i = s(h W_i + b_i), o = s(v W_o + b_o), g = tanh(h W_c + b_c),
 *       cell = cell f + i g, h = o tanh(cell), v = h
 *     y = v w_out + b_out, loss -= sum x_{t+1} (y - log(2 + sum exp y))
 *   at the end loss /= b (c - 1)
 *
 * x and the gradient: per layer the weights W_f, W_i, W_o, W_c, then the biases b_f, b_i, b_o, b_c;
 * then w_in, w_out, b_out; [b] each. One output.
 *
 * Invariant: input is a struct lstm.
 */
#ifndef LSTM_H
#define LSTM_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lstm {
    int l, c, b;
    double *state;    /* [l, 2, b]: h and cell of each layer at the start */
    double *sequence; /* [c, b] */
};

extern const struct problem_kind lstm_kind;

#ifdef __cplusplus
}
#endif

#endif
