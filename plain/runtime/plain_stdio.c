/* plain_stdio.c: values that go through text and files.
 *
 * What is read from there is a constant. Text that was made of variables is marked in its shadow.
 * A file that took some is remembered. Who reads a number there is told that a gradient is lost.
 */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- text ---- */

static void text_mark(char *text, size_t n)
{
    memset(plain_shadow(text), 0xFF, n);
}

/* sprintf and its kin have printed; active: the indices of what they got, joined by or. */
void ad_plain_printed_(char *text, uint32_t active);
void ad_plain_printed_(char *text, uint32_t active)
{
    if (active && text)
        text_mark(text, strlen(text));
    else if (text)
        plain_forget(text, strlen(text));
}

/* What is read of a text lies in [text, end). */
static void text_read(const char *text, const char *end, uintptr_t pc)
{
    static const uint32_t printed = PLAIN_PRINTED;
    if (ad_statement_cursor_.result >> 32 == 0)
        return;
    for (; text < end; text++) {
        const size_t left = (size_t)(end - text);
        if (memcmp(plain_shadow(text), &printed, left < sizeof printed ? left : sizeof printed) ==
            0) {
            ad_plain_lost_("a number is read from text that was made of active values: it is a "
                           "constant",
                           ad_plain_is_strict_, pc);
            return;
        }
    }
}

#define NUMBER_OF_TEXT(name, type)                                                                 \
    type ad_plain_call_##name(const char *text, char **end);                                       \
    type ad_plain_call_##name(const char *text, char **end)                                        \
    {                                                                                              \
        char *stop;                                                                                \
        const type x = name(text, &stop);                                                          \
        text_read(text, stop, PLAIN_HERE);                                                         \
        if (end)                                                                                   \
            *end = stop;                                                                           \
        return x;                                                                                  \
    }
NUMBER_OF_TEXT(strtod, double)
NUMBER_OF_TEXT(strtof, float)
NUMBER_OF_TEXT(strtold, long double)

double ad_plain_call_atof(const char *text);
double ad_plain_call_atof(const char *text)
{
    char *stop;
    const double x = strtod(text, &stop);
    text_read(text, stop, PLAIN_HERE);
    return x;
}

/* ---- files ---- */

enum { FILES = 64 };
static struct {
    pthread_mutex_t lock;
    struct {
        dev_t device;
        ino_t number;
    } file[FILES];
    size_t n;
} took = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether a file took active values; add: it does now. The oldest is forgotten. */
static bool number_took(dev_t device, ino_t number, bool add)
{
    bool found = false;
    pthread_mutex_lock(&took.lock);
    for (size_t k = 0; k < FILES && k < took.n && !found; k++)
        found = took.file[k].device == device && took.file[k].number == number;
    if (add && !found) {
        took.file[took.n % FILES].device = device;
        took.file[took.n % FILES].number = number;
        __atomic_store_n(&took.n, took.n + 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&took.lock);
    return found;
}

static bool any_took(void)
{
    return __atomic_load_n(&took.n, __ATOMIC_RELAXED) > 0;
}

/* One without a descriptor lies in memory (fmemopen, open_memstream) and stands for itself. */
static bool file_took(FILE *file, bool add)
{
    struct stat is = {.st_ino = (ino_t)(uintptr_t)file};
    const int number = fileno(file);
    return (add || any_took()) && (number < 0 || fstat(number, &is) == 0) &&
           number_took(is.st_dev, is.st_ino, add);
}

static void file_read(FILE *file, uintptr_t pc)
{
    if (file_took(file, false))
        ad_plain_lost_(
            "a file is read into which active values were written: what comes from there "
            "are constants",
            ad_plain_is_strict_, pc);
}

void ad_plain_printed_to_file_(FILE *file, uint32_t active);
void ad_plain_printed_to_file_(FILE *file, uint32_t active)
{
    if (active)
        file_took(file, true);
}

size_t ad_plain_call_fwrite(const void *from, size_t size, size_t n, FILE *to);
size_t ad_plain_call_fwrite(const void *from, size_t size, size_t n, FILE *to)
{
    if (ad_statement_cursor_.result >> 32 != 0 && plain_any_active(from, size * n, false)) {
        file_took(to, true);
        if (fileno(to) < 0)
            ad_plain_lost_("active values are written to a stream in memory: what is read there "
                           "are constants",
                           ad_plain_is_strict_, PLAIN_HERE);
    }
    PLAIN_RETURNS(fwrite);
    return fwrite(from, size, n, to);
}

size_t ad_plain_call_fread(void *to, size_t size, size_t n, FILE *from);
size_t ad_plain_call_fread(void *to, size_t size, size_t n, FILE *from)
{
    const size_t got = fread(to, size, n, from);
    plain_forget(to, got * size);
    file_read(from, PLAIN_HERE);
    PLAIN_RETURNS(fread);
    return got;
}

char *ad_plain_call_fgets(char *to, int n, FILE *from);
char *ad_plain_call_fgets(char *to, int n, FILE *from)
{
    char *const got = fgets(to, n, from);
    if (got)
        ad_plain_printed_(to, file_took(from, false));
    return got;
}

ssize_t ad_plain_call_getline(char **to, size_t *room, FILE *from);
ssize_t ad_plain_call_getline(char **to, size_t *room, FILE *from)
{
    const ssize_t n = getline(to, room, from);
    if (n >= 0)
        ad_plain_printed_(*to, file_took(from, false));
    return n;
}

/* A scanf has written n places, those of its first n conversions: the others hold what they held.
 * One of %n is not among them. */
static void scanned(const char *format, int n, va_list into)
{
    for (const char *c = format; *c && n > 0; c++) {
        if (*c != '%' || *++c == '%')
            continue;
        const bool kept = *c != '*';
        while (*c && strchr("*'0123456789m", *c))
            c++;
        size_t size = sizeof(float);
        for (; *c && strchr("hlLjztq", *c); c++)
            size = *c == 'L' ? sizeof(long double) : *c == 'l' ? sizeof(double) : size;
        if (*c == '[')
            for (c += c[1] == '^' ? 3 : 2; *c && *c != ']'; c++)
                continue;
        if (!*c)
            break;
        if (!kept)
            continue;
        void *const at = va_arg(into, void *);
        if (strchr("aAeEfFgG", *c))
            plain_forget(at, size);
        n -= *c != 'n';
    }
}

#define SCANF(name, call, look, parameters)                                                        \
    int ad_plain_call_##name parameters;                                                           \
    int ad_plain_call___isoc99_##name parameters __attribute__((alias("ad_plain_call_" #name)));   \
    int ad_plain_call_##name parameters                                                            \
    {                                                                                              \
        va_list into, again;                                                                       \
        va_start(into, format);                                                                    \
        va_copy(again, into);                                                                      \
        const int n = call;                                                                        \
        look;                                                                                      \
        scanned(format, n, again);                                                                 \
        va_end(again);                                                                             \
        va_end(into);                                                                              \
        return n;                                                                                  \
    }
SCANF(scanf, vscanf(format, into), file_read(stdin, PLAIN_HERE), (const char *format, ...))
SCANF(fscanf, vfscanf(from, format, into), file_read(from, PLAIN_HERE),
      (FILE * from, const char *format, ...))
SCANF(sscanf, vsscanf(from, format, into), text_read(from, from + strlen(from), PLAIN_HERE),
      (const char *from, const char *format, ...))

/* ---- streams of C++ ---- */

/* std::ios::rdbuf, in programs that have it. */
__attribute__((weak)) extern const void *
stream_buffer(const void *ios) __asm__("_ZNKSt9basic_iosIcSt11char_traitsIcEE5rdbufEv");

/* A stream's buffer stands for it, as the number of a file that is on no device. The ios is a
 * virtual base: its place is told three words before the virtual functions (Itanium C++ ABI). */
static bool stream_took(const char *stream, bool add)
{
    ptrdiff_t place;
    const char *virtual;
    if (!stream_buffer || !(add || any_took()))
        return false;
    memcpy(&virtual, stream, sizeof virtual);
    memcpy(&place, virtual - 3 * sizeof place, sizeof place);
    return number_took(0, (ino_t)(uintptr_t)stream_buffer(stream + place), add);
}

/* A number has been written to a stream. */
void ad_plain_streamed_(const char *stream, uint32_t active);
void ad_plain_streamed_(const char *stream, uint32_t active)
{
    if (active)
        stream_took(stream, true);
}

/* A number will be read from a stream. */
void ad_plain_stream_read_(const char *stream);
void ad_plain_stream_read_(const char *stream)
{
    if (ad_statement_cursor_.result >> 32 != 0 && stream_took(stream, false))
        ad_plain_lost_("a number is read from a stream into which active values were written: it "
                       "is a constant",
                       ad_plain_is_strict_, PLAIN_HERE);
}
