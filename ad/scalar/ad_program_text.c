/* ad_program_text.c: see ad_program_text.h. The formulas are those of the tables. */
#include "ad_program_text.h"

#include "ad_program_functions.h"
#include "ad_program_gamma.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOPE(text) (sizeof(text) == 2 && (text)[0] == '0' ? NULL : (text))
#define ONE(name, v, dx, dxx) [AD_PROGRAM_##name##_] = {#v, {SLOPE(#dx), NULL, NULL}, 1},
#define TWO(name, v, dx, dy, dxx, dxy, dyy)                                                        \
    [AD_PROGRAM_##name##_] = {#v, {SLOPE(#dx), SLOPE(#dy), NULL}, 2},
#define MORE2(m, ...) TWO(__VA_ARGS__)
#define MORE(m, name, parameter, v, dx, dxx) ONE(name, v, dx, dxx)

static const struct function_text texts[] = {
    AD_REAL_FUNCTIONS_(ONE) AD_REAL_FUNCTIONS2_(TWO) PROGRAM_MORE_ONE(MORE, )
        PROGRAM_MORE_TWO(MORE2, )[AD_PROGRAM_fma_] = {"fma(x, y, z)", {"y", "x", "1"}, 3}};

const struct function_text *function_text(uint32_t op)
{
    return &texts[op];
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool text_has(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; at && (at = strstr(at, word)) != NULL; at += n)
        if ((at == text || !is_word(at[-1])) && !is_word(at[n]))
            return true;
    return false;
}

/* ---- what <math.h> has not ---- */

#define HELPER(name, ...) static const char *const name##lines[] = {__VA_ARGS__, NULL};
HELPER(ad_turn_, "/* a / h^2: of an angle v at infinite distance h, 0. */",
       "static double ad_turn_(double v, double a, double h)", "{",
       "    return v == v && isinf(h) ? 0 : a / h / h;", "}")
HELPER(ad_share_,
       "/* The chosen operand has the derivative; both have half of it where they are equal. */",
       "static double ad_share_(bool chosen, bool tie, bool other_is_nan)", "{",
       "    return chosen || other_is_nan ? 1 : tie ? 0.5 : 0;", "}")
HELPER(ad_exp10_, "static double ad_exp10_(double x)", "{", "    return pow(10, x);", "}")
HELPER(ad_lgamma_, "static double ad_lgamma_(double x)", "{", "    return lgamma(x);", "}")
HELPER(ad_bessel_, "static double ad_bessel_(bool second, int n, double x)", "{",
       "    return second ? yn(n, x) : jn(n, x);", "}")
HELPER(ad_bessel_slope_, "static double ad_bessel_slope_(bool second, int n, double x)", "{",
       "    if (n == 0)", "        return -ad_bessel_(second, 1, x);", "    if (second && x == 0)",
       "        return n < 0 && n % 2 ? -INFINITY : INFINITY;",
       "    return (ad_bessel_(second, n - 1, x) - ad_bessel_(second, n + 1, x)) / 2;", "}")
HELPER(fraction, "static double fraction(double x)", "{", "    double whole;",
       "    return modf(x, &whole);", "}")
HELPER(mantissa, "static double mantissa(double x)", "{", "    int exponent;",
       "    return frexp(x, &exponent);", "}")
HELPER(mantissa_slope, "static double mantissa_slope(double x)", "{", "    int exponent;",
       "    return isfinite(frexp(x, &exponent)) ? ldexp(1, -exponent) : 1;", "}")
HELPER(rest, "static double rest(double x, double y)", "{", "    int quotient;",
       "    return remquo(x, y, &quotient);", "}")
HELPER(ad_digamma_, PROGRAM_DIGAMMA)

#define ROW(name) {#name, name##lines},
/* ad_bessel_slope_ calls the one before it. */
const struct program_helper program_helpers[] = {
    ROW(ad_turn_) ROW(ad_share_) ROW(ad_exp10_) ROW(ad_lgamma_) ROW(ad_bessel_)
        ROW(ad_bessel_slope_) ROW(fraction) ROW(mantissa) ROW(mantissa_slope) ROW(rest)
            ROW(ad_digamma_)};
const unsigned program_helpers_n = sizeof program_helpers / sizeof *program_helpers;

/* ---- numbers ---- */

const char *number_text(double x, char text[TEXT_NUMBER])
{
    char plain[TEXT_NUMBER];
    bool whole = true;
    size_t n = 0;
    if (!isfinite(x))
        return isnan(x) ? "NAN" : x > 0 ? "INFINITY" : "(-INFINITY)";
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(plain, sizeof plain, "%.*g", digits, x);
        if (strtod(plain, NULL) == x)
            break;
    }
    if (signbit(x))
        text[n++] = '(';
    for (const char *from = plain; *from;) {
        const bool radix = !strchr("+-0123456789e", *from);
        whole = whole && !radix && *from != 'e';
        text[n++] = (char)(radix ? '.' : *from++);
        while (radix && *from && !strchr("+-0123456789e", *from))
            from++;
    }
    snprintf(text + n, TEXT_NUMBER - n, "%s%s", whole ? ".0" : "", signbit(x) ? ")" : "");
    return text;
}

void place_text(const struct tape *t, struct tape_site site, char where[PLACE_TEXT])
{
    snprintf(where, PLACE_TEXT, "?");
    if (site.pc || site.line)
        t->describe(site, where, PLACE_TEXT);
    for (char *c = where; *c; c++)
        if (*c == '*' || *c == '\\' || *c == '"' || *c == '?' || (unsigned char)*c < ' ')
            *c = '_';
}

bool name_is_identifier(const char *name)
{
    enum { NAME_MOST = 63 };
    const char *rest = name + (name[0] >= '0' && name[0] <= '9');
    const size_t n =
        strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return rest == name && n > 0 && n <= NAME_MOST && name[n] == 0;
}
