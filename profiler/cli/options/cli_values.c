/* cli_values.c: the values of options: numbers, sizes, percentages, choices.
 *
 * Invariant: a value that is not wholly understood is refused, never partly used.
 */
#include "cli_args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICE_ROOM = 64 };

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

/* Insertions, deletions, substitutions and swaps of neighbours that make one name of the other
 * (optimal string alignment), of names up to 31 characters. */
static unsigned values_distance(const char *a, const char *b)
{
    enum { MOST = 31 };
    unsigned row[3][MOST + 1]; /* of this character of a, and of the two before */
    const size_t n = strlen(a), m = strlen(b);
    if (n > MOST || m > MOST)
        return MOST;
    for (unsigned j = 0; j <= m; j++)
        row[0][j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned *now = row[i % 3];
        const unsigned *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

/* "sort" of "sortedby", "max-depth" of "depth". */
static bool is_part(const char *part, const char *name)
{
    enum { LEAST = 3 };
    const size_t n = strlen(part), m = strlen(name);
    return (m >= LEAST && n > m && strncmp(part, name, m) == 0) ||
           (n >= LEAST && m > n && name[m - n - 1] == '-' && strcmp(name + m - n, part) == 0);
}

/* Near is what differs in a third of the letters, as in rustc, or in words. */
const char *cli_nearest(const char *name, const char *const *names, int n)
{
    const char *best = NULL;
    const size_t length = strlen(name);
    unsigned least = length < 6 ? 1 : (unsigned)(length / 3);
    for (int i = 0; i < n; i++) {
        const size_t other = strlen(names[i]);
        const unsigned d = is_part(name, names[i]) ? 1 : values_distance(name, names[i]);
        if (d < other && (d < least || (d == least && !best))) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

size_t cli_name_add(const char **names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return n;
    names[n] = name;
    return n + 1;
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

/* A decimal number that may have an exponent: 1e9. */
static bool parse_number(double *to, const char *text)
{
    char *end;
    if (strspn(text, "0123456789.eE+-") != strlen(text) || *text == '+' || *text == '-')
        return false;
    *to = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*to);
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

int cli_choices(const struct cli_option *option)
{
    int n = 0;
    while (option->choice[n])
        n++;
    return n;
}

/* False: `wrong` is the first of the names that is no choice. */
static bool parse_set(unsigned *to, const struct cli_option *option, const char *text,
                      char wrong[CHOICE_ROOM])
{
    unsigned set = 0;
    for (;;) {
        const size_t n = strcspn(text, ",");
        snprintf(wrong, CHOICE_ROOM, "%.*s", (int)(n < CHOICE_ROOM ? n : CHOICE_ROOM - 1), text);
        const int place =
            n < CHOICE_ROOM ? cli_choice(wrong, option->choice, cli_choices(option)) : -1;
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

/* The choice that another program has this word for; NULL: none. */
static const char *values_meant(const char *value, const struct cli_option *option)
{
    static const char *const words[][2] = {
        {"total", " all cum inclusive self time "},
        {"cost", " cum inclusive time total "},
        {"exact", " time "},
        {"forward", " fwd primal "},
        {"backward", " adjoint bwd grad gradient pullback reverse "},
        {"recompute", " checkpoint replay "},
        {"tape", " alloc bytes mem memory size "},
        {"peak", " held highest live max mem memory rss "},
        {"calls", " count hits number times "},
        {"lifetime", " age "},
        {"line", " location site source "},
        {"function", " method name symbol "},
        {"op", " kernel operation "},
        {"module", " dso library object "},
        {"scope", " region "},
        {"absolute", " abs difference "},
        {"relative", " percent ratio "},
        {"callgrind", " callgraph kcachegrind "},
        {"collapsed", " flame flamegraph folded svg "},
        {"chrome", " trace "},
        {"firefox", " gecko "},
        {"quickfix", " emacs vim "},
    };
    char word[CHOICE_ROOM + 2];
    snprintf(word, sizeof word, " %s ", value);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int j = 0; strstr(words[i][1], word) && option->choice[j]; j++)
            if (strcmp(words[i][0], option->choice[j]) == 0)
                return option->choice[j];
    return NULL;
}

static bool choice_begins(const char *name, const char *beginning)
{
    return *beginning && strncmp(name, beginning, strlen(beginning)) == 0;
}

/* What begins a choice here begins several. */
static bool refuse_choice(const char *command, const struct cli_option *option, const char *value)
{
    char names[512] = "";
    size_t used = 0;
    bool several = false;
    for (size_t i = 0; option->choice[i]; i++)
        several |= choice_begins(option->choice[i], value);
    for (size_t i = 0; option->choice[i] && used < sizeof names; i++)
        if (!several || choice_begins(option->choice[i], value))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     option->choice[i]);
    const char *nearest = several ? NULL : values_meant(value, option);
    if (!several && !nearest)
        nearest = cli_nearest(value, option->choice, cli_choices(option));
    cli_message("%s: --%s: '%s' %s: %s%s%s%s", command, option->name, value,
                several ? "may be" : "is none of", names, nearest ? "; did you mean '" : "",
                nearest ? nearest : "", nearest ? "'?" : "");
    return false;
}

bool cli_store(const char *command, const struct cli_option *option, const char *value,
               void *target)
{
    char wrong[CHOICE_ROOM] = "";
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
        return parse_number(target, value) || values_refuse(command, option, value, "a number");
    case CLI_BYTES:
        return parse_bytes(target, value) ||
               values_refuse(command, option, value, "a size such as 4096, 64KiB or 1.5MiB");
    case CLI_PERCENT:
        return parse_percent(target, value) ||
               values_refuse(command, option, value, "a percentage such as 2%");
    case CLI_CHOICE:
        place = cli_choice(value, option->choice, cli_choices(option));
        if (place < 0)
            return refuse_choice(command, option, value);
        *(int *)target = place;
        return true;
    case CLI_SET:
        return parse_set(target, option, value, wrong) || refuse_choice(command, option, wrong);
    case CLI_LIST:
        return add_item(command, option, value, target);
    }
    return false;
}
