/* base_json.c: see base_json.h. A document is one thread's: its stream needs no locks. */
#include "base_json.h"

#include <math.h>
#include <string.h>

unsigned base_json_character(const unsigned char *text)
{
    unsigned char first = text[0], least = 0x80, most = 0xbf;
    unsigned n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first > 0xf4)
        return 0;
    least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : least;
    most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : most;
    for (unsigned i = 1; i < n; i++) {
        if (text[i] < least || text[i] > most)
            return 0;
        least = 0x80;
        most = 0xbf;
    }
    return n;
}

unsigned base_json_control(const unsigned char *text, unsigned n)
{
    unsigned code = text[0];
    if (n == 2)
        code = (text[0] & 0x1fU) << 6 | (text[1] & 0x3fU);
    else if (n == 3)
        code = (text[0] & 0xfU) << 12 | (text[1] & 0x3fU) << 6 | (text[2] & 0x3fU);
    else if (n != 1)
        return 0;
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return is_control || turns ? code : 0;
}

char *base_json_shown(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        const unsigned char *from = (const unsigned char *)at;
        const unsigned n = base_json_character(from);
        if (n == 0 || base_json_control(from, n) != 0)
            *to++ = '?';
        else
            to = (char *)memmove(to, at, n) + n;
        at += n ? n : 1;
    }
    *to = '\0';
    return text;
}

/* Controls are escaped, or with `shown` question marks. */
static void put_text(FILE *out, const char *text, bool shown)
{
    putc_unlocked('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned n = base_json_character(at);
        if (n == 0)
            fputs_unlocked("\\ufffd", out);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (shown && base_json_control(at, n) != 0)
            putc_unlocked('?', out);
        else if (base_json_control(at, n) != 0)
            fprintf(out, "\\u%04x", base_json_control(at, n));
        else
            fwrite_unlocked(at, 1, n, out);
        at += n ? n : 1;
    }
    putc_unlocked('"', out);
}

static void put_margin(const struct base_json *json)
{
    putc_unlocked('\n', json->out);
    for (unsigned i = 0; i < json->depth; i++)
        fputs_unlocked("  ", json->out);
}

/* What stands before a member. */
static void put_name(struct base_json *json, const char *name)
{
    bool *has_member = &json->has_member[json->depth];
    if (*has_member)
        putc_unlocked(',', json->out);
    if (json->depth <= BASE_JSON_LINES)
        put_margin(json);
    else if (*has_member)
        putc_unlocked(' ', json->out);
    *has_member = true;
    if (!name)
        return;
    put_text(json->out, name, false);
    fputs_unlocked(": ", json->out);
}

static void open(struct base_json *json, bool is_array)
{
    putc_unlocked(is_array ? '[' : '{', json->out);
    if (json->depth + 1 < BASE_JSON_DEPTH)
        json->depth++;
    json->has_member[json->depth] = false;
    json->is_array[json->depth] = is_array;
}

void base_json_begin(struct base_json *json, FILE *out)
{
    *json = (struct base_json){.out = out};
    open(json, false);
}

void base_json_finish(struct base_json *json)
{
    while (json->depth > 0)
        base_json_end(json);
    putc_unlocked('\n', json->out);
}

void base_json_object(struct base_json *json, const char *name)
{
    put_name(json, name);
    open(json, false);
}

void base_json_array(struct base_json *json, const char *name)
{
    put_name(json, name);
    open(json, true);
}

void base_json_end(struct base_json *json)
{
    bool is_array = json->is_array[json->depth], has_member = json->has_member[json->depth];
    bool has_lines = json->depth <= BASE_JSON_LINES;
    json->depth--;
    if (has_member && has_lines)
        put_margin(json);
    putc_unlocked(is_array ? ']' : '}', json->out);
}

void base_json_text(struct base_json *json, const char *name, const char *text)
{
    if (!text) {
        base_json_null(json, name);
        return;
    }
    put_name(json, name);
    put_text(json->out, text, false);
}

void base_json_name(struct base_json *json, const char *name, const char *text)
{
    put_name(json, name);
    put_text(json->out, text, true);
}

/* Without printf: documents have millions of numbers. */
static void put_number(FILE *out, uint64_t n, bool negative)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    if (negative)
        text[--at] = '-';
    fwrite_unlocked(text + at, 1, sizeof text - at, out);
}

void base_json_u64(struct base_json *json, const char *name, uint64_t n)
{
    put_name(json, name);
    put_number(json->out, n, false);
}

void base_json_i64(struct base_json *json, const char *name, int64_t n)
{
    put_name(json, name);
    put_number(json->out, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, n < 0);
}

void base_json_double(struct base_json *json, const char *name, double x)
{
    if (!isfinite(x)) {
        base_json_null(json, name);
        return;
    }
    put_name(json, name);
    fprintf(json->out, "%.17g", x);
}

void base_json_number(struct base_json *json, const char *name, const char *digits)
{
    put_name(json, name);
    fputs_unlocked(digits, json->out);
}

void base_json_bool(struct base_json *json, const char *name, bool b)
{
    put_name(json, name);
    fputs_unlocked(b ? "true" : "false", json->out);
}

void base_json_null(struct base_json *json, const char *name)
{
    put_name(json, name);
    fputs_unlocked("null", json->out);
}
