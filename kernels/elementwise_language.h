/* elementwise_language.h: the words in which rows of elementwise.def state values and derivatives.
 *
 * May include: kernel_ops.h. A word is named like the op it stands for. The same text is read in
 * several ways: whoever expands rows first defines WORD1, WORD2, WORDP (one operand, two operands,
 * one parameter and one operand) and LETTER_X and so on for the letters. So a derivative is written
 * once and becomes a fused loop, a sequence of recorded ops, the set of operands that it reads, and
 * its count of flops.
 */
#ifndef ELEMENTWISE_LANGUAGE_H
#define ELEMENTWISE_LANGUAGE_H

#include "kernel_ops.h"

#define NEG(x) WORD1(neg, x)
#define EXP(x) WORD1(exp, x)
#define LOG(x) WORD1(log, x)
#define TANH(x) WORD1(tanh, x)
#define SIGMOID(x) WORD1(sigmoid, x)
#define RELU(x) WORD1(relu, x)
#define SQUARE(x) WORD1(square, x)
#define SQRT(x) WORD1(sqrt, x)
#define COPY(x) WORD1(copy, x)
#define ADD(a, b) WORD2(add, a, b)
#define SUB(a, b) WORD2(sub, a, b)
#define MUL(a, b) WORD2(mul, a, b)
#define DIV(a, b) WORD2(div, a, b)
#define GATE(a, b) WORD2(gate, a, b)
#define TIE(a, b) WORD2(tie, a, b)
#define SCALE(c, x) WORDP(scale, c, x)
#define OFFSET(c, x) WORDP(offset, c, x)

/* Operands, output, adjoint of the output, parameter, and "no gradient flows here". */
#define X LETTER_X
#define A LETTER_X
#define B LETTER_B
#define Y LETTER_Y
#define G LETTER_G
#define P LETTER_P
#define NONE LETTER_NONE

/* Operands of a fused loop, in the order in which their pointers are passed. */
enum { READS_G = 1, READS_X = 2, READS_A = 2, READS_B = 4, READS_Y = 8, READS_NOTHING = 0 };

#endif
