/* ad_einsum_read.c: reads an equation and compares it with the operands. */
#include "ad_einsum.h"

#include <stdio.h>
#include <string.h>

/* Where the reader is, and what it has seen. */
struct reader {
    struct einsum *e;
    const kernel_ref *in;
    int at;
    int dots;                 /* axes that "..." stands for: the most of all operands */
    int seen[EINSUM_LETTERS]; /* times that a letter names an axis of an operand */
};

#define SAY(e, ...) (void)snprintf((e)->error, EINSUM_ERROR_BYTES, __VA_ARGS__)

static int letter_of(char c)
{
    /* In the order of their codes: capitals first. */
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

static char name_of(int letter)
{
    return (char)(letter < 26 ? 'A' + letter : 'a' + letter - 26);
}

/* Bytes of the UTF-8 letter that begins here, 1 to 4; 1 for what begins none. */
static int letter_bytes(const char *at)
{
    const unsigned char c = (unsigned char)*at;
    const int n = c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
    for (int i = 1; i < n; i++)
        if (c >= 0xf5 || ((unsigned char)at[i] & 0xc0) != 0x80)
            return 1;
    /* Longer than need be, half of a surrogate pair, or beyond the last letter. */
    const unsigned char d = n > 1 ? (unsigned char)at[1] : 0;
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) ||
        (c == 0xf4 && d > 0x8f))
        return 1;
    return n;
}

const char *einsum_shown(const char *text, char shown[EINSUM_SHOWN_BYTES])
{
    int n = 0;
    for (int bytes; *text != 0; text += bytes) {
        char one[8];
        bytes = letter_bytes(text);
        if (bytes > 1 || (*text >= ' ' && *text <= '~'))
            (void)snprintf(one, sizeof one, "%.*s", bytes, text);
        else
            (void)snprintf(one, sizeof one, "\\x%02x", (unsigned char)*text);
        const int more = (int)strlen(one);
        if (n + more >= EINSUM_SHOWN_BYTES)
            break;
        memcpy(shown + n, one, (size_t)more);
        n += more;
    }
    shown[n] = 0;
    return shown;
}

static char next(struct reader *r)
{
    while (r->e->text[r->at] == ' ')
        r->at++;
    return r->e->text[r->at];
}

/* One term, up to a comma, an arrow or the end: letters, and the place of "..." among them or -1.
 * Returns the number of letters, or -1. */
static int read_term(struct reader *r, uint8_t *letters, int *dots_at)
{
    const char *text = r->e->text;
    int n = 0;
    *dots_at = -1;
    for (char c = next(r); c != 0 && c != ',' && c != '-'; c = next(r)) {
        const int letter = letter_of(c);
        if (c == '.' && strncmp(text + r->at, "...", 3) == 0 && *dots_at < 0) {
            *dots_at = n;
            r->at += 3;
            continue;
        }
        if (letter < 0) {
            char what[8]; /* a byte that is no letter of UTF-8 would spoil the message */
            const int bytes = letter_bytes(text + r->at);
            if (bytes > 1 || (c >= ' ' && c <= '~'))
                (void)snprintf(what, sizeof what, "'%.*s'", bytes, text + r->at);
            else
                (void)snprintf(what, sizeof what, "0x%02x", (unsigned)(unsigned char)c);
            SAY(r->e, "character %d, %s, is no label, comma, arrow or first \"...\"", r->at + 1,
                what);
            return -1;
        }
        if (n == KERNEL_MAX_RANK) {
            SAY(r->e, "character %d is one label too many: %d axes are possible", r->at + 1,
                KERNEL_MAX_RANK);
            return -1;
        }
        letters[n++] = (uint8_t)letter;
        r->at++;
    }
    return n;
}

/* Letters with `dots` labels of the axes from the end in place of "...". */
static void expand(struct einsum_term *term, const uint8_t *letters, int n, int dots_at, int dots)
{
    term->rank = 0;
    for (int i = 0; i <= n; i++) {
        for (int k = dots; i == dots_at && k > 0; k--)
            term->label[term->rank++] = (uint8_t)(EINSUM_LETTERS + k - 1);
        if (i < n)
            term->label[term->rank++] = letters[i];
    }
}

/* An extent of an operand's axis: equal to what the label has, or broadcast if it is of "...". */
static bool extent_fits(struct einsum *e, int label, int64_t extent)
{
    int64_t *known = &e->extent[label];
    if (*known < 0 || (label >= EINSUM_LETTERS && *known == 1))
        *known = extent;
    if (*known == extent || (label >= EINSUM_LETTERS && extent == 1))
        return true;
    if (label < EINSUM_LETTERS)
        SAY(e, "'%c' has extents %lld and %lld", name_of(label), (long long)*known,
            (long long)extent);
    else
        SAY(e, "\"...\" has extents %lld and %lld in axis %d from its end", (long long)*known,
            (long long)extent, label - EINSUM_LETTERS + 1);
    return false;
}

static enum tape_status read_operand(struct reader *r, int k)
{
    struct einsum *e = r->e;
    uint8_t letters[KERNEL_MAX_RANK];
    int dots_at;
    const kernel_ref x = r->in[k];
    const int n = read_term(r, letters, &dots_at), dots = x->rank - n;
    if (n < 0)
        return TAPE_ERROR_ARGUMENT;
    if (dots < 0 || (dots > 0 && dots_at < 0)) {
        SAY(e, "operand %d has %d axes, the equation names %d", k + 1, x->rank, n);
        return TAPE_ERROR_SHAPE;
    }
    r->dots = dots > r->dots ? dots : r->dots;
    expand(&e->term[k], letters, n, dots_at, dots);
    for (int axis = 0; axis < x->rank; axis++) {
        const int label = e->term[k].label[axis];
        if (label < EINSUM_LETTERS)
            r->seen[label]++;
        if (!extent_fits(e, label, x->shape[axis]))
            return TAPE_ERROR_SHAPE;
    }
    return TAPE_OK;
}

/* Without an arrow: the axes of "...", then the letters that occur once, in the order of their
 * codes. */
static enum tape_status imply_result(struct reader *r)
{
    uint8_t letters[EINSUM_LETTERS];
    int n = 0;
    for (int i = 0; i < EINSUM_LETTERS; i++)
        if (r->seen[i] == 1)
            letters[n++] = (uint8_t)i;
    if (n + r->dots > KERNEL_MAX_RANK) {
        SAY(r->e, "the result would have %d axes, %d are possible", n + r->dots, KERNEL_MAX_RANK);
        return TAPE_ERROR_SHAPE;
    }
    expand(&r->e->result, letters, n, 0, r->dots);
    return TAPE_OK;
}

static enum tape_status read_result(struct reader *r)
{
    uint8_t letters[KERNEL_MAX_RANK];
    int dots_at;
    if (r->e->text[r->at] == 0)
        return imply_result(r);
    if (r->e->text[r->at + 1] != '>') {
        SAY(r->e, "character %d, '-', does not begin an arrow", r->at + 1);
        return TAPE_ERROR_ARGUMENT;
    }
    r->at += 2;
    const int n = read_term(r, letters, &dots_at);
    if (n < 0)
        return TAPE_ERROR_ARGUMENT;
    if (r->e->text[r->at] != 0) {
        SAY(r->e, "character %d, '%c', is behind the result", r->at + 1, r->e->text[r->at]);
        return TAPE_ERROR_ARGUMENT;
    }
    for (int i = 0; i < n; i++)
        if (r->seen[letters[i]] == 0 || memchr(letters, letters[i], (size_t)i) != NULL) {
            SAY(r->e, "'%c' of the result %s", name_of(letters[i]),
                r->seen[letters[i]] == 0 ? "is of no operand" : "is named twice");
            return TAPE_ERROR_ARGUMENT;
        }
    const int dots = dots_at < 0 ? 0 : r->dots;
    if (n + dots > KERNEL_MAX_RANK) {
        SAY(r->e, "the result would have %d axes, %d are possible", n + dots, KERNEL_MAX_RANK);
        return TAPE_ERROR_SHAPE;
    }
    expand(&r->e->result, letters, n, dots_at, dots);
    return TAPE_OK;
}

enum tape_status einsum_read(struct einsum *e, const kernel_ref *in)
{
    struct reader r = {.e = e, .in = in};
    for (int label = 0; label < EINSUM_LABELS; label++)
        e->extent[label] = -1;
    for (int k = 0;; k++) {
        if (k < e->n) {
            const enum tape_status status = read_operand(&r, k);
            if (status != TAPE_OK)
                return status;
        }
        if (k == e->n - 1 && e->text[r.at] != ',')
            return read_result(&r);
        if (k >= e->n - 1 || e->text[r.at] != ',') {
            SAY(e, "the equation names %s operands than %d", k < e->n - 1 ? "fewer" : "more", e->n);
            return TAPE_ERROR_ARGUMENT;
        }
        r.at++;
    }
}
