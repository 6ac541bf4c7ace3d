/* plain_format.h: text with numbers as C writes them, whatever the program's locale.
 *
 * printf writes the decimal point of LC_NUMERIC, "1,5" in German, which a reader of a message may
 * take for two numbers.
 */
#ifndef PLAIN_FORMAT_H
#define PLAIN_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf and vsnprintf do in the locale "C". */
int plain_format(char *text, size_t n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int plain_vformat(char *text, size_t n, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));

#endif
