/* json.h: JSON written piece by piece.
 *
 * Invariant: what was begun and ended in pairs is valid JSON in UTF-8 whatever the texts hold:
 * bytes that are no UTF-8 become U+FFFD, numbers that are not finite become null, and 64-bit
 * integers are written in full; control characters are escaped. Nothing is allocated.
 */
#ifndef PROFILER_REPORT_JSON_H
#define PROFILER_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16, JSON_LINES = 2 };

/* A value under way. Objects and arrays down to JSON_LINES deep have a line for each member. */
struct json {
    FILE *out;
    unsigned depth;
    bool has_member[JSON_DEPTH], is_array[JSON_DEPTH];
};

/* The bytes of the well-formed UTF-8 character at text (RFC 3629, section 4), or 0. */
unsigned json_character(const unsigned char *text);

/* The code point of the character at text if it is one of n bytes that may not reach a terminal or
 * a page as it is: a control character (C0, DEL, C1), an end of line, or one that turns the
 * direction of what follows (Unicode Standard Annex 9). Else 0. */
unsigned json_control(const unsigned char *text, unsigned n);

/* Begins a document, an object. */
void json_begin(struct json *json, FILE *out);
/* Ends it, with a line's end. */
void json_finish(struct json *json);

/* Members: `name` is NULL in an array. Objects and arrays end by json_end. */
void json_object(struct json *json, const char *name);
void json_array(struct json *json, const char *name);
void json_end(struct json *json);
void json_text(struct json *json, const char *name, const char *text); /* NULL: null */
/* A text that is to be shown: its controls become question marks. */
void json_name(struct json *json, const char *name, const char *text);
void json_u64(struct json *json, const char *name, uint64_t n);
void json_i64(struct json *json, const char *name, int64_t n);
void json_double(struct json *json, const char *name, double x);
void json_bool(struct json *json, const char *name, bool b);
void json_null(struct json *json, const char *name);

#endif
