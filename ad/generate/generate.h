/* generate.h: what generate.c has others print. */
#ifndef GENERATE_H
#define GENERATE_H

/* The header of formulas over ad_real, to standard output. */
void generate_formulas(void);

#endif
