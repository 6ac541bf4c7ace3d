/* tape_verify.h: before a sweep: nothing that it would read has been changed. */
#ifndef TAPE_VERIFY_H
#define TAPE_VERIFY_H

#include "tape.h"

/* Every array that the sweep from y would read is as it was; else AD_ERROR_STATE with the op that
 * saved it. wants: the flag of values whose adjoint is wanted. Changes nothing but scratch. */
enum tape_status tape_guard_verify(struct tape *t, uint32_t y, enum tape_flag wants,
                                   const char *what, struct tape_site site);

#endif
