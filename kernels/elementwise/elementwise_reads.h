/* elementwise_reads.h: what is known of each derivative from its text alone, as constants.
 *
 * May include: elementwise_language.h, elementwise.def. For row ID and derivative dx (or da, db):
 * READS_OF_ID_dx are the operands that it reads, FLOPS_OF_ID_dx its operations for one element,
 * FORM_OF_ID_dx tells whether it is the adjoint itself or nothing at all.
 *
 * Invariant: leaves the words and letters undefined, so that the next reader defines its own.
 */
#ifndef ELEMENTWISE_READS_H
#define ELEMENTWISE_READS_H

#include "elementwise_language.h"

#define WORD1(op, x) (x)
#define WORD2(op, a, b) ((a) | (b))
#define WORD3(op, a, b, c) ((a) | (b) | (c))
#define WORDP(op, c, x) (x)
#define WORDQ(op, c, d, x) (x)
#define LETTER_X READS_X
#define LETTER_B READS_B
#define LETTER_C READS_C
#define LETTER_Y READS_Y
#define LETTER_G READS_G
#define LETTER_NONE READS_NOTHING
enum {
#define ROW1(id, visibility, parameters, forward, dx, ...) READS_OF_##id##_dx = (dx),
#define ROW2(id, visibility, forward, da, db, ...)                                                 \
    READS_OF_##id##_da = (da), READS_OF_##id##_db = (db),
#define ROW3(id, visibility, forward, da, db, dc, ...)                                             \
    READS_OF_##id##_da = (da), READS_OF_##id##_db = (db), READS_OF_##id##_dc = (dc),
#include "elementwise.def"
#undef ROW1
#undef ROW2
#undef ROW3
};
#undef WORD1
#undef WORD2
#undef WORD3
#undef WORDP
#undef WORDQ
#undef LETTER_X
#undef LETTER_B
#undef LETTER_C
#undef LETTER_Y
#undef LETTER_G
#undef LETTER_NONE

#define WORD1(op, x) (1 + (x))
#define WORD2(op, a, b) (1 + (a) + (b))
#define WORD3(op, a, b, c) (1 + (a) + (b) + (c))
#define WORDP(op, c, x) (1 + (x))
#define WORDQ(op, c, d, x) (1 + (x))
#define LETTER_X 0
#define LETTER_B 0
#define LETTER_C 0
#define LETTER_Y 0
#define LETTER_G 0
#define LETTER_NONE 0
enum {
#define ROW1(id, visibility, parameters, forward, dx, ...) FLOPS_OF_##id##_dx = (dx),
#define ROW2(id, visibility, forward, da, db, ...)                                                 \
    FLOPS_OF_##id##_da = (da), FLOPS_OF_##id##_db = (db),
#define ROW3(id, visibility, forward, da, db, dc, ...)                                             \
    FLOPS_OF_##id##_da = (da), FLOPS_OF_##id##_db = (db), FLOPS_OF_##id##_dc = (dc),
#include "elementwise.def"
#undef ROW1
#undef ROW2
#undef ROW3
};
#undef WORD1
#undef WORD2
#undef WORD3
#undef WORDP
#undef WORDQ
#undef LETTER_G
#undef LETTER_NONE

#define WORD1(op, x) FORM_TERM
#define WORD2(op, a, b) FORM_TERM
#define WORD3(op, a, b, c) FORM_TERM
#define WORDP(op, c, x) FORM_TERM
#define WORDQ(op, c, d, x) FORM_TERM
#define LETTER_G FORM_ADJOINT
#define LETTER_NONE FORM_NONE
enum {
    FORM_TERM,
    FORM_ADJOINT,
    FORM_NONE,
#define ROW1(id, visibility, parameters, forward, dx, ...) FORM_OF_##id##_dx = (dx),
#define ROW2(id, visibility, forward, da, db, ...)                                                 \
    FORM_OF_##id##_da = (da), FORM_OF_##id##_db = (db),
#define ROW3(id, visibility, forward, da, db, dc, ...)                                             \
    FORM_OF_##id##_da = (da), FORM_OF_##id##_db = (db), FORM_OF_##id##_dc = (dc),
#include "elementwise.def"
#undef ROW1
#undef ROW2
#undef ROW3
};
#undef WORD1
#undef WORD2
#undef WORD3
#undef WORDP
#undef WORDQ
#undef LETTER_X
#undef LETTER_B
#undef LETTER_C
#undef LETTER_Y
#undef LETTER_G
#undef LETTER_NONE

#endif
