/* ad_profile_options.c: options of a recording, from text to numbers.
 *
 * One table names every option; `tapescope record` passes what it was given in TAPESCOPE_OPTIONS,
 * a program by ad_profile_start_with. A later option of the same name counts.
 */
#include "ad_internal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHOICES = 4, ITEM_BYTES = 128 };

enum kind { CHOICE, COUNT, BYTES, RANGE };

/* A choice's number is its place. A range "A:B" fills two members, beginning at `place`. */
static const struct option {
    const char *name;
    size_t place;
    enum kind kind;
    const char *choice[MOST_CHOICES];
    uint64_t least, most;
} options[] = {
#define AT(member) offsetof(struct tape_collect_options, member)
    {"time", AT(time), CHOICE, {"off", "exact", "sampled"}, 0, 0},
    {"tape", AT(tape), CHOICE, {"off", "on"}, 0, 0},
    {"freq", AT(freq), COUNT, {NULL}, 1, 100000},
    {"interval", AT(interval), COUNT, {NULL}, 20, 3600000},
    {"depth", AT(depth), COUNT, {NULL}, 0, 1024},
    {"frames", AT(frames), CHOICE, {"none", "user", "all"}, 0, 0},
    {"unwind", AT(unwind), CHOICE, {"libunwind", "fp"}, 0, 0},
    {"timeline", AT(timeline), BYTES, {NULL}, 0, UINT64_C(1) << 40},
    {"shapes", AT(shapes), CHOICE, {"off", "on"}, 0, 0},
    {"steps", AT(first_step), RANGE, {NULL}, 0, UINT64_MAX},
    {"warmup", AT(warmup), COUNT, {NULL}, 0, UINT32_MAX},
    {"snapshot_signal", AT(snapshot_signal), CHOICE, {"off", "usr1", "usr2"}, 0, 0},
    {"attach", AT(attach), CHOICE, {"off", "usr1", "usr2"}, 0, 0},
    {"follow_fork", AT(follow_fork), CHOICE, {"off", "on"}, 0, 0},
#undef AT
};
enum { OPTIONS = sizeof options / sizeof *options };

_Static_assert(offsetof(struct tape_collect_options, last_step) ==
                   offsetof(struct tape_collect_options, first_step) + sizeof(uint64_t),
               "a range fills neighbours");

/* A number of digits at the start of text, and where it ends; NULL: there is none. */
static const char *number(const char *text, uint64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 ? end : NULL;
}

static bool read_choice(const struct option *o, const char *text, uint64_t *value)
{
    for (int i = 0; i < MOST_CHOICES && o->choice[i]; i++) {
        if (strcmp(text, o->choice[i]) == 0) {
            *value = (uint64_t)i;
            return true;
        }
    }
    return false;
}

/* "4096", "64KiB", "16MiB", "1GiB". */
static bool read_bytes(const char *text, uint64_t *value)
{
    static const char *const unit[] = {"", "KiB", "MiB", "GiB"};
    const char *end = number(text, value);
    for (int i = 0; end && i < 4; i++) {
        if (strcmp(end, unit[i]) == 0) {
            const uint64_t whole = *value << (10 * i);
            const bool fits = whole >> (10 * i) == *value;
            *value = whole;
            return fits;
        }
    }
    return false;
}

/* "A:B", "A:" or ":B": from step A to step B, both measured. */
static bool read_range(const char *text, uint64_t value[2])
{
    value[0] = 0;
    value[1] = UINT64_MAX;
    const char *at = *text == ':' ? text : number(text, &value[0]);
    if (!at || *at != ':')
        return false;
    at = at[1] ? number(at + 1, &value[1]) : at + 1;
    return at && *at == '\0' && value[0] <= value[1];
}

static bool read_value(const struct option *o, const char *text, uint64_t *value)
{
    const char *end;
    switch (o->kind) {
    case CHOICE:
        return read_choice(o, text, value);
    case COUNT:
        end = number(text, value);
        return end && *end == '\0' && *value >= o->least && *value <= o->most;
    case BYTES:
        return read_bytes(text, value) && *value <= o->most;
    case RANGE:
        break;
    }
    return read_range(text, value);
}

/* What the option takes, for a message. */
static void expected(const struct option *o, char *buf, size_t n)
{
    size_t used = 0;
    switch (o->kind) {
    case CHOICE:
        for (int i = 0; i < MOST_CHOICES && o->choice[i] && used < n; i++)
            used +=
                (size_t)snprintf(buf + used, n - used, "%s%s", i ? ", " : "one of ", o->choice[i]);
        break;
    case COUNT:
        snprintf(buf, n, "a number from %llu to %llu", (unsigned long long)o->least,
                 (unsigned long long)o->most);
        break;
    case BYTES:
        snprintf(buf, n, "bytes, as 4096, 64KiB or 16MiB");
        break;
    case RANGE:
        snprintf(buf, n, "steps, as 3:5, 3: or :5");
        break;
    }
}

static void unknown(const char *name, char *error, size_t n)
{
    size_t used = (size_t)snprintf(error, n, "no profile option is called '%s'; there are", name);
    for (int i = 0; i < OPTIONS && used < n; i++)
        used += (size_t)snprintf(error + used, n - used, "%s %s", i ? "," : "", options[i].name);
}

/* One "name=value"; text is ours. */
static bool read_option(struct tape_collect_options *to, char *text, char *error, size_t n)
{
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    for (int i = 0; i < OPTIONS; i++) {
        if (strcmp(text, options[i].name) != 0)
            continue;
        uint64_t read[2];
        if (value && read_value(&options[i], value, read)) {
            memcpy((char *)to + options[i].place, read,
                   options[i].kind == RANGE ? sizeof read : sizeof read[0]);
            return true;
        }
        char takes[ITEM_BYTES];
        expected(&options[i], takes, sizeof takes);
        snprintf(error, n, "profile option %s takes %s, not '%s'", text, takes, value ? value : "");
        return false;
    }
    unknown(text, error, n);
    return false;
}

bool ad_profile_options_read(struct tape_collect_options *to, const char *text, char *error,
                             size_t n)
{
    static const int signals[] = {0, SIGUSR1, SIGUSR2};
    static const uint64_t not_given = UINT64_MAX;
    *to = tape_collect_defaults();
    const uint64_t usual_depth = to->depth;
    to->depth = not_given;
    to->text = text ? text : "";
    for (const char *at = to->text; *at;) {
        char item[ITEM_BYTES];
        const size_t length = strcspn(at, ",");
        if (length >= sizeof item) {
            snprintf(error, n, "a profile option is longer than %d characters", ITEM_BYTES - 1);
            return false;
        }
        memcpy(item, at, length);
        item[length] = '\0';
        if (length > 0 && !read_option(to, item, error, n))
            return false;
        at += length + (at[length] == ',');
    }
    if (to->time == TAPE_TIME_EXACT && to->tape == 0) {
        snprintf(error, n,
                 "profile option tape=off needs time=sampled or time=off: exact times "
                 "are kept with the bytes");
        return false;
    }
    /* Samples alone cost nothing per op, unless paths are asked for in so many words. */
    if (to->depth == not_given)
        to->depth = to->time == TAPE_TIME_SAMPLED && to->tape != 1 ? 0 : usual_depth;
    to->snapshot_signal = (uint64_t)signals[to->snapshot_signal];
    to->attach = (uint64_t)signals[to->attach];
    return true;
}
