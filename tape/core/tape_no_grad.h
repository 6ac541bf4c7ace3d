/* tape_no_grad.h: the levels of ad_tape_no_grad_begin that are open, and where each was begun. */
#ifndef TAPE_NO_GRAD_H
#define TAPE_NO_GRAD_H

#include "tape_types.h"

enum { TAPE_NO_GRAD_TEXT = 256 };

void tape_no_grad_begin(struct tape *t, struct tape_site site);
/* The depth is again that of the mark. */
void tape_no_grad_restore(struct tape *t, const struct tape_mark *mark);
/* Where the innermost level was begun; zeros: none is open, or that is not known. */
struct tape_site tape_no_grad_site(const struct tape *t);
/* "; no_grad begun at f.c:12 in g is still open", of the innermost level, into buf; "" where none
 * is open. Returns buf. */
const char *tape_no_grad_open(const struct tape *t, char buf[TAPE_NO_GRAD_TEXT]);

#endif
