/* plain_format.c: see plain_format.h.
 *
 * The thread's own locale is changed for the time of the call, which no other thread sees. The
 * whole locale "C" is a constant of the C library: to have it allocates nothing.
 */
#include "plain_format.h"

#include <locale.h>
#include <stdio.h>

int plain_vformat(char *text, size_t n, const char *format, va_list list)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t before = plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
    const int length = vsnprintf(text, n, format, list);
    if (before != (locale_t)0)
        (void)uselocale(before);
    if (plain != (locale_t)0)
        freelocale(plain);
    return length;
}

int plain_format(char *text, size_t n, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = plain_vformat(text, n, format, list);
    va_end(list);
    return length;
}
