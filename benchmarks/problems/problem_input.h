/* problem_input.h: numbers for the problems' inputs, by a formula or out of a file.
 *
 * Invariant: the formula uses integers and exact operations of doubles alone, so that its numbers
 * are the same everywhere.
 */
#ifndef PROBLEM_INPUT_H
#define PROBLEM_INPUT_H

#include "problem.h"

#include <stdint.h>
#include <stdio.h>

/* A sequence of numbers (splitmix64: G. L. Steele, D. Lea, C. H. Flood, 2014,
 * doi:10.1145/2660193.2660195). */
struct numbers {
    uint64_t state;
};

/* The next number, uniform in [low, high). */
double number_in(struct numbers *numbers, double low, double high);

/* The next number: the sum of twelve uniform ones less their mean, of variance 1. */
double number_normal(struct numbers *numbers);

/* Opens a file below a folder; NULL, having said why on standard error. */
FILE *input_open(const char *folder, const char *file);

/* Reads n numbers; false at the end of the file or at what is no number. */
bool input_doubles(FILE *file, size_t n, double *to);
bool input_ints(FILE *file, size_t n, int *to);

/* Says that the file is not what it should be; returns false. */
bool input_refuse(const char *folder, const char *file);

#endif
