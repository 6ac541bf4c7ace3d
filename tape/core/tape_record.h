/* tape_record.h: records of kinds other than ops, which tape_apply.c makes itself. */
#ifndef TAPE_RECORD_H
#define TAPE_RECORD_H

#include "tape_account.h"
#include "tape_kind.h"

#include <string.h>

/* Appends a record of a kind: `attr` bytes of attributes, a multiple of 8, and `more` behind its
 * operands and outputs, which are the caller's to fill. No run may be open. It is not accounted
 * for. NULL: no memory. */
static inline struct tape_record *tape_record_push(struct tape *t, const struct record_kind *kind,
                                                   uint16_t n_in, uint8_t n_out, size_t attr,
                                                   size_t more, uint32_t row)
{
    const size_t lists = attr + ((size_t)n_in + (size_t)n_out) * sizeof(uint32_t);
    const size_t n = (sizeof(struct tape_record) + lists + more + 7) / 8 * 8;
    const size_t offset = (size_t)(t->arena.record_top - t->arena.record_base) / 8;
    struct tape_record *r = offset < UINT32_MAX ? tape_arena_record(&t->arena, n) : NULL;
    if (!r)
        return NULL;
    *r = (struct tape_record){.op = &kind->op,
                              .previous = t->last_record,
                              .row = row,
                              .n_in = n_in,
                              .n_out = n_out,
                              .n_attr = (uint8_t)(attr / sizeof(int64_t)),
                              .bytes = (uint32_t)n};
    memset(r + 1, 0, lists);
    t->last_record = (uint32_t)offset;
    t->n_records++;
    return r;
}

/* The same, accounted for. */
static inline struct tape_record *tape_record_append(struct tape *t, const struct record_kind *kind,
                                                     uint16_t n_in, uint8_t n_out, size_t attr,
                                                     size_t more, uint32_t row)
{
    struct tape_record *r = tape_record_push(t, kind, n_in, n_out, attr, more, row);
    if (r && __builtin_expect(t->hook != NULL, 0)) {
        tape_account_record(t, r);
        TAPE_ADD(t->ledger.records, 1);
    }
    return r;
}

/* The same of a kind whose records all have the operands and outputs of its op. */
static inline struct tape_record *tape_record_of_kind(struct tape *t,
                                                      const struct record_kind *kind, size_t attr,
                                                      size_t more, uint32_t row)
{
    return tape_record_append(t, kind, (uint16_t)kind->op.n_in, (uint8_t)kind->op.n_out, attr, more,
                              row);
}

#endif
