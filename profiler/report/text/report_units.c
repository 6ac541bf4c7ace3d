/* report_units.c: see report_units.h. */
#include "report_units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Three digits of a number below 1000. */
static char *three_digits(char buf[REPORT_UNITS_ROOM], double value, const char *unit)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(buf, REPORT_UNITS_ROOM, "%.*f%s", decimals, value, unit);
    return buf;
}

/* Divides by step while the number would take more than three digits. */
static char *units_scaled(char buf[REPORT_UNITS_ROOM], double value, double step,
                          const char *const *unit, int n_units)
{
    int i = 0;
    while (value >= 999.5 && i + 1 < n_units) {
        value /= step;
        i++;
    }
    return three_digits(buf, value, unit[i]);
}

char *report_units_time(char buf[REPORT_UNITS_ROOM], uint64_t ns, bool utf8)
{
    static const char *const unit[] = {"us", "ms", "s"};
    static const char *const unit_utf8[] = {"\u00b5s", "ms", "s"};
    if (ns == 0)
        snprintf(buf, REPORT_UNITS_ROOM, "0");
    else if (ns < 1000)
        snprintf(buf, REPORT_UNITS_ROOM, "%uns", (unsigned)ns);
    else
        units_scaled(buf, (double)ns / 1e3, 1e3, utf8 ? unit_utf8 : unit, 3);
    return buf;
}

char *report_units_bytes(char buf[REPORT_UNITS_ROOM], uint64_t bytes)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes == 0)
        snprintf(buf, REPORT_UNITS_ROOM, "0");
    else if (bytes < 1000)
        snprintf(buf, REPORT_UNITS_ROOM, "%uB", (unsigned)bytes);
    else
        units_scaled(buf, (double)bytes / 1024, 1024, unit, 6);
    return buf;
}

char *report_units_count(char buf[REPORT_UNITS_ROOM], uint64_t n)
{
    static const char *const unit[] = {"k", "M", "G", "T", "P", "E"};
    if (n < 10000)
        snprintf(buf, REPORT_UNITS_ROOM, "%u", (unsigned)n);
    else
        units_scaled(buf, (double)n / 1e3, 1e3, unit, 6);
    return buf;
}

char *report_units_share(char buf[REPORT_UNITS_ROOM], uint64_t part, uint64_t whole)
{
    return report_units_part(buf, (double)part, (double)whole);
}

char *report_units_part(char buf[REPORT_UNITS_ROOM], double part, double whole)
{
    const double share = whole > 0 ? 100 * part / whole : 0;
    if (!(whole > 0))
        snprintf(buf, REPORT_UNITS_ROOM, "-");
    else
        snprintf(buf, REPORT_UNITS_ROOM, "%.*f%%", share < 99.95 ? 1 : 0, share);
    return buf;
}

char *report_units_ratio(char buf[REPORT_UNITS_ROOM], uint64_t a, uint64_t b)
{
    if (b == 0)
        snprintf(buf, REPORT_UNITS_ROOM, "-");
    else
        three_digits(buf, (double)a / (double)b, "");
    return buf;
}

char *report_units_against(char buf[REPORT_UNITS_ROOM], double x, double bound)
{
    int digits = 3;
    do
        snprintf(buf, REPORT_UNITS_ROOM, "%.*g", digits, x);
    while (digits++ < 17 && (strtod(buf, NULL) > bound) != (x > bound));
    return buf;
}

char *report_units_exact(char buf[REPORT_UNITS_ROOM], uint64_t n)
{
    snprintf(buf, REPORT_UNITS_ROOM, "%" PRIu64, n);
    return buf;
}
