/* ad_program_text.h: the functions of programs as text in C; numbers, places and names as C has
 * them. */
#ifndef AD_PROGRAM_TEXT_H
#define AD_PROGRAM_TEXT_H

#include "tape_program.h"

#include <string.h>

/* Texts in x, y and z, the operands; v, the value; ORDER, the parameter as an integer. NULL: the
 * derivative is 0. */
struct function_text {
    const char *value, *slope[TAPE_STEP_OPERANDS];
    int arity;
};
const struct function_text *function_text(uint32_t op);

/* Whether the text has this word. */
bool text_has(const char *text, const char *word);

/* What texts name that <math.h> has not: for each the text that declares it, in their order. A text
 * ends at NULL; lines have no ends. */
struct program_helper {
    const char *name;
    const char *const *line;
};
extern const struct program_helper program_helpers[];
extern const unsigned program_helpers_n;

/* Whether two numbers are the same, as 0 and -0 are not. */
static inline bool number_is(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

/* A double that is read as x again: "2.0", "(-0.5)", "NAN"; whatever the locale. */
enum { TEXT_NUMBER = 40 };
const char *number_text(double x, char text[TEXT_NUMBER]);

/* A source line, which no comment or string ends at: "mlp.c:41 in dense", or "?". */
enum { PLACE_TEXT = 160 };
void place_text(const struct tape *t, struct tape_site site, char where[PLACE_TEXT]);

/* Whether all names of a file may begin with this one: an identifier of at most 63 letters. */
bool name_is_identifier(const char *name);

#endif
