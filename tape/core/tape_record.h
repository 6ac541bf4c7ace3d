/* tape_record.h: records of kinds other than ops, which tape_apply.c makes itself. */
#ifndef TAPE_RECORD_H
#define TAPE_RECORD_H

#include "tape_kind.h"

/* Appends a record of a kind: `attr` bytes of attributes, a multiple of 8, and `more` behind its
 * operands and outputs, which are the caller's to fill. No run may be open. NULL: no memory. */
struct tape_record *tape_record_append(struct tape *t, const struct record_kind *kind,
                                       uint16_t n_in, uint8_t n_out, size_t attr, size_t more,
                                       uint32_t row);
/* The same of a kind whose records all have the operands and outputs of its op. */
struct tape_record *tape_record_of_kind(struct tape *t, const struct record_kind *kind, size_t attr,
                                        size_t more, uint32_t row);

#endif
