/* base_json.h: JSON written piece by piece.
 *
 * Invariant: what was begun and ended in pairs is valid JSON in UTF-8 whatever the texts hold:
 * bytes that are no UTF-8 become U+FFFD, numbers that are not finite become null, and 64-bit
 * integers are written in full; control characters are escaped. Nothing is allocated.
 */
#ifndef BASE_BASE_JSON_H
#define BASE_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { BASE_JSON_DEPTH = 16, BASE_JSON_LINES = 2 };

/* A value under way. Objects and arrays down to BASE_JSON_LINES deep have a line a member. */
struct base_json {
    FILE *out;
    unsigned depth;
    bool has_member[BASE_JSON_DEPTH], is_array[BASE_JSON_DEPTH];
};

/* The bytes of the well-formed UTF-8 character at text (RFC 3629, section 4), or 0. */
unsigned base_json_character(const unsigned char *text);

/* The code point of the character at text if it is one of n bytes that may not reach a terminal or
 * a page as it is: a control character (C0, DEL, C1), an end of line, or one that turns the
 * direction of what follows (Unicode Standard Annex 9). Else 0. */
unsigned base_json_control(const unsigned char *text, unsigned n);

/* Makes a question mark of each byte that is no UTF-8 and of each character that
 * base_json_control() names; returns the text. */
char *base_json_shown(char *text);

/* Begins a document, an object. */
void base_json_begin(struct base_json *json, FILE *out);
/* Ends it, with a line's end. */
void base_json_finish(struct base_json *json);

/* Members: `name` is NULL in an array. Objects and arrays end by base_json_end. */
void base_json_object(struct base_json *json, const char *name);
void base_json_array(struct base_json *json, const char *name);
void base_json_end(struct base_json *json);
void base_json_text(struct base_json *json, const char *name, const char *text); /* NULL: null */
/* A text that is to be shown: its controls become question marks. */
void base_json_name(struct base_json *json, const char *name, const char *text);
void base_json_u64(struct base_json *json, const char *name, uint64_t n);
void base_json_i64(struct base_json *json, const char *name, int64_t n);
void base_json_double(struct base_json *json, const char *name, double x);
/* A number as it is to be written. */
void base_json_number(struct base_json *json, const char *name, const char *digits);
void base_json_bool(struct base_json *json, const char *name, bool b);
void base_json_null(struct base_json *json, const char *name);

#endif
