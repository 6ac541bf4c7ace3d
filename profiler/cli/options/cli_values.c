/* cli_values.c: the values of options: numbers, sizes, percentages, choices.
 *
 * Invariant: a value that is not wholly understood is refused, never partly used.
 */
#include "cli_args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int cli_choice(const char *name, const char *const *names, int n)
{
    int found = -1;
    size_t length = strlen(name);
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
        if (length > 0 && strncmp(names[i], name, length) == 0)
            found = found == -1 ? i : -2;
    }
    return found < 0 ? -1 : found;
}

/* Levenshtein's distance, up to names of 31 characters. */
static unsigned values_distance(const char *a, const char *b)
{
    enum { MOST = 31 };
    unsigned row[MOST + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > MOST || m > MOST)
        return MOST;
    for (unsigned j = 0; j <= m; j++)
        row[j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned best = corner + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *cli_nearest(const char *name, const char *const *names, int n)
{
    const char *best = NULL;
    unsigned least = 3;
    for (int i = 0; i < n; i++) {
        unsigned d = values_distance(name, names[i]);
        if (d < least && d < strlen(names[i])) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

static bool parse_count(size_t *to, const char *text)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        return false;
    *to = n;
    return true;
}

/* A decimal number at the beginning of text; *end: what follows it. */
static bool parse_decimal(double *to, const char *text, const char **end)
{
    size_t n = strspn(text, "0123456789.");
    char *stop;
    if (n == 0)
        return false;
    *to = strtod(text, &stop);
    *end = stop;
    return stop == text + n && isfinite(*to);
}

static bool parse_bytes(uint64_t *to, const char *text)
{
    static const char *const unit[] = {"KMGTPE", "B"};
    const char *end;
    double value;
    if (!parse_decimal(&value, text, &end))
        return false;
    const char *letter = *end ? strchr(unit[0], *end) : NULL;
    if (letter) {
        value *= ldexp(1, 10 * (int)(letter - unit[0] + 1));
        end++;
        if (strcmp(end, "iB") == 0)
            end += 2;
    } else if (strcmp(end, unit[1]) == 0) {
        end++;
    }
    if (*end || value >= 0x1p64 || value != floor(value))
        return false;
    *to = (uint64_t)value;
    return true;
}

static bool parse_percent(double *to, const char *text)
{
    const char *end;
    double value;
    if (!parse_decimal(&value, text, &end) || strcmp(end, "%") != 0)
        return false;
    *to = value / 100;
    return true;
}

static int count_choices(const struct cli_option *option)
{
    int n = 0;
    while (option->choice[n])
        n++;
    return n;
}

static bool parse_set(unsigned *to, const struct cli_option *option, const char *text)
{
    unsigned set = 0;
    char name[64];
    for (;;) {
        size_t n = strcspn(text, ",");
        if (n >= sizeof name)
            return false;
        memcpy(name, text, n);
        name[n] = '\0';
        int place = cli_choice(name, option->choice, count_choices(option));
        if (place < 0)
            return false;
        set |= 1u << place;
        if (text[n] == '\0')
            break;
        text += n + 1;
    }
    *to = set;
    return true;
}

static bool add_item(const char *command, const struct cli_option *option, const char *value,
                     struct cli_list *list)
{
    if (list->n == CLI_LIST_MOST) {
        cli_message("%s: --%s: more than %d of them", command, option->name, CLI_LIST_MOST);
        return false;
    }
    list->item[list->n++] = value;
    return true;
}

static bool values_refuse(const char *command, const struct cli_option *option, const char *value,
                          const char *what)
{
    cli_message("%s: --%s: '%s' is not %s", command, option->name, value, what);
    return false;
}

static bool refuse_choice(const char *command, const struct cli_option *option, const char *value)
{
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; option->choice[i] && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 option->choice[i]);
    cli_message("%s: --%s: '%s' is none of: %s", command, option->name, value, names);
    return false;
}

bool cli_store(const char *command, const struct cli_option *option, const char *value,
               void *target)
{
    const char *end;
    int place;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)target = true;
        return true;
    case CLI_CONSTANT:
        *(int *)target = option->constant;
        return true;
    case CLI_TEXT:
        *(const char **)target = value;
        return true;
    case CLI_COUNT:
        return parse_count(target, value) || values_refuse(command, option, value, "a number");
    case CLI_NUMBER:
        return (parse_decimal(target, value, &end) && !*end) ||
               values_refuse(command, option, value, "a number");
    case CLI_BYTES:
        return parse_bytes(target, value) ||
               values_refuse(command, option, value, "a size such as 4096, 64KiB or 1.5MiB");
    case CLI_PERCENT:
        return parse_percent(target, value) ||
               values_refuse(command, option, value, "a percentage such as 2%");
    case CLI_CHOICE:
        place = cli_choice(value, option->choice, count_choices(option));
        if (place < 0)
            return refuse_choice(command, option, value);
        *(int *)target = place;
        return true;
    case CLI_SET:
        return parse_set(target, option, value) || refuse_choice(command, option, value);
    case CLI_LIST:
        return add_item(command, option, value, target);
    }
    return false;
}
