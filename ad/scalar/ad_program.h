/* ad_program.h: how calls about programs of numbers begin. */
#ifndef AD_PROGRAM_H
#define AD_PROGRAM_H

#include <tapescope/ad_real.h>

#include "tape_program.h"

/* The tape, with a program; else NULL and *status. */
struct tape *ad_program_enter(ad_tape tape, const char *what, struct tape_site site,
                              ad_status *status);
/* The error of a number that is negative, or a null pointer. */
ad_status ad_program_arguments(struct tape *t, const char *what, struct tape_site site);
/* Whether each of x[n] is a leaf of the tape (`leaves`), or of y[n] a step, a leaf or a constant;
 * else the error. */
ad_status ad_program_numbers(struct tape *t, const char *what, bool leaves, int64_t n,
                             const ad_real *x, struct tape_site site);
/* The roll is made. False: there is no memory. */
bool ad_program_ready(struct tape *t);

#endif
