/* elementwise_reads.h: what is known of each derivative from its text alone, as constants.
 *
 * COUNT_OF_ID_dx, for row ID and derivative dx (or da, db, dc), has the number of the text's words
 * and how often each letter stands in it, 5 bits a letter. So a text has up to 31 of each letter
 * and 63 words.
 *
 * Invariant: leaves the words and letters undefined, so that the next reader defines its own.
 */
#ifndef ELEMENTWISE_READS_H
#define ELEMENTWISE_READS_H

#include "elementwise_language.h"

#define COUNT_OF_WORDS (1 << 25)
#define WORD1(op, x) (COUNT_OF_WORDS + (x))
#define WORD2(op, a, b) (COUNT_OF_WORDS + (a) + (b))
#define WORD3(op, a, b, c) (COUNT_OF_WORDS + (a) + (b) + (c))
#define WORDP(op, c, x) (COUNT_OF_WORDS + (x))
#define WORDQ(op, c, d, x) (COUNT_OF_WORDS + (x))
#define LETTER_G 1
#define LETTER_X (1 << 5)
#define LETTER_B (1 << 10)
#define LETTER_Y (1 << 15)
#define LETTER_C (1 << 20)
#define LETTER_NONE 0
enum {
#define ROW1(id, parameters, forward, dx, ...) COUNT_OF_##id##_dx = (dx),
#define ROW2(id, forward, da, db, ...) COUNT_OF_##id##_da = (da), COUNT_OF_##id##_db = (db),
#define ROW3(id, forward, da, db, dc, ...)                                                         \
    COUNT_OF_##id##_da = (da), COUNT_OF_##id##_db = (db), COUNT_OF_##id##_dc = (dc),
#include "elementwise.def"
    COUNT_OF_ADJOINT = LETTER_G, /* the text is G and nothing else */
    COUNT_OF_NOTHING = LETTER_NONE
};
#undef WORD1
#undef WORD2
#undef WORD3
#undef WORDP
#undef WORDQ
#undef LETTER_G
#undef LETTER_X
#undef LETTER_B
#undef LETTER_Y
#undef LETTER_C

/* VALUE_FLOPS_ID: of the row's value. FLOPS_OF_ID_dx: of its derivative, which are those of its
 * words. */
enum {
#define ROW1(id, parameters, forward, dx, flops, ...) VALUE_FLOPS_##id = (flops),
#define ROW2(id, forward, da, db, flops, ...) VALUE_FLOPS_##id = (flops),
#define ROW3(id, forward, da, db, dc, flops, ...) VALUE_FLOPS_##id = (flops),
#include "elementwise.def"
};
#define WORD1(op, x) (VALUE_FLOPS_##op + (x))
#define WORD2(op, a, b) (VALUE_FLOPS_##op + (a) + (b))
#define WORD3(op, a, b, c) (VALUE_FLOPS_##op + (a) + (b) + (c))
#define WORDP(op, c, x) (VALUE_FLOPS_##op + (x))
#define WORDQ(op, c, d, x) (VALUE_FLOPS_##op + (x))
#define LETTER_G 0
#define LETTER_X 0
#define LETTER_B 0
#define LETTER_Y 0
#define LETTER_C 0
enum {
#define ROW1(id, parameters, forward, dx, ...) FLOPS_OF_##id##_dx = (dx),
#define ROW2(id, forward, da, db, ...) FLOPS_OF_##id##_da = (da), FLOPS_OF_##id##_db = (db),
#define ROW3(id, forward, da, db, dc, ...)                                                         \
    FLOPS_OF_##id##_da = (da), FLOPS_OF_##id##_db = (db), FLOPS_OF_##id##_dc = (dc),
#include "elementwise.def"
};
#undef WORD1
#undef WORD2
#undef WORD3
#undef WORDP
#undef WORDQ
#undef LETTER_G
#undef LETTER_X
#undef LETTER_B
#undef LETTER_Y
#undef LETTER_C
#undef LETTER_NONE

/* Of a count: the set of letters, READS_G and so on. */
#define READS_OF(count)                                                                            \
    (((count)&31 ? READS_G : 0) | ((count) >> 5 & 31 ? READS_X : 0) |                              \
     ((count) >> 10 & 31 ? READS_B : 0) | ((count) >> 15 & 31 ? READS_Y : 0) |                     \
     ((count) >> 20 & 31 ? READS_C : 0))

#endif
