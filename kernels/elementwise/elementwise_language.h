/* elementwise_language.h: the words in which rows of elementwise.def state values and derivatives.
 *
 * A word is named like the op it stands for. The same text is read in several ways: whoever
 * expands rows first defines WORD1, WORD2, WORD3 (one to three operands), WORDP, WORDQ (one
 * operand and one or two parameters) and LETTER_X and so on for the letters. So a derivative is
 * written once and becomes a fused loop, a sequence of recorded ops, the set of operands that it
 * reads, and its count of flops.
 */
#ifndef ELEMENTWISE_LANGUAGE_H
#define ELEMENTWISE_LANGUAGE_H

#include "kernel_ops.h"

/* NEG(x), ADD(a, b), SCALE(c, x), ...: made by the build from the names of the rows. */
#include "elementwise_words.h"

/* Operands, output, adjoint of the output, parameters, and "no gradient flows here". */
#define X LETTER_X
#define A LETTER_X
#define B LETTER_B
#define C LETTER_C
#define Y LETTER_Y
#define G LETTER_G
#define P LETTER_P
#define Q LETTER_Q
#define NONE LETTER_NONE

/* Operands of a fused loop, in the order in which their pointers are passed. */
enum {
    READS_G = 1,
    READS_X = 2,
    READS_A = 2,
    READS_B = 4,
    READS_Y = 8,
    READS_C = 16,
    READS_NOTHING = 0
};

/* Number of a row's parameters, by what its third column calls them. */
enum {
    PARAMETERS_0,
    PARAMETERS_c = 1,
    PARAMETERS_slope = 1,
    PARAMETERS_alpha = 1,
    PARAMETERS_order = 1,
    PARAMETERS_low_high = 2
};

#endif
