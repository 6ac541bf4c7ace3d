/* cli_sizes.c: see cli_sizes.h. */
#include "cli_sizes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool parse_size(const char *text, double *size)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    *size = strtod(text, &end);
    return *end == '\0' && isfinite(*size) && *size > 0;
}

static const struct read_profile *profile_of(const struct cli_profiles *opened, size_t i)
{
    return opened->one[i].profile;
}

static const char *argument_of(const struct read_profile *profile, size_t k)
{
    return k < profile->n_arguments ? profile->argument[k] : NULL;
}

/* What stands behind `key`: in "key=V" or "--key=V" itself, else in the argument after "--key" or
 * "-key". */
static const char *sizes_value_of(const struct read_profile *profile, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 1; i < profile->n_arguments; i++) {
        const char *at = profile->argument[i];
        size_t dashes = strspn(at, "-");
        if (dashes > 2 || strncmp(at + dashes, key, n) != 0)
            continue;
        if (at[dashes + n] == '=')
            return at + dashes + n + 1;
        if (at[dashes + n] == '\0' && dashes > 0)
            return argument_of(profile, i + 1);
    }
    return NULL;
}

/* The value of a scope's key: its name ends in " key=value key=value". NULL: it has no such key. */
static const char *key_of_scope(const char *scope, const char *key)
{
    const size_t n = strlen(key);
    const char *found = NULL;
    for (const char *at = strchr(scope, ' '); at; at = strchr(at + 1, ' '))
        if (strncmp(at + 1, key, n) == 0 && at[1 + n] == '=')
            found = at + n + 2;
    return found;
}

/* What the key is in the profile's scopes, where all that have it agree. Returns CLI_OK, or says
 * why not. */
static int read_scopes(const struct read_profile *profile, const char *command, const char *key,
                       double *size)
{
    char first[64] = "", text[64];
    for (size_t i = 0; i < profile->n_scopes; i++) {
        const char *value = key_of_scope(profile->scope[i].name, key);
        if (!value)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(value, " "), value);
        if (!*first && !parse_size(text, size)) {
            cli_message("%s: %s: %s of a scope is '%s', not a size", command, profile->path, key,
                        text);
            return CLI_USAGE;
        }
        if (*first && strcmp(first, text) != 0) {
            cli_message("%s: %s: %s is %s in one scope and %s in another", command, profile->path,
                        key, first, text);
            return CLI_USAGE;
        }
        memcpy(first, text, sizeof first);
    }
    if (*first)
        return CLI_OK;
    cli_message("%s: %s: neither an argument nor a scope has the key %s", command, profile->path,
                key);
    return CLI_USAGE;
}

static int sizes_read_list(const char *list, const char *command, size_t wanted, double *size)
{
    size_t n = 0;
    char item[64];
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : 0), at);
        double value = 0;
        if (!parse_size(item, &value)) {
            cli_message("%s: --sizes: '%s' is no list of sizes", command, list);
            return CLI_USAGE;
        }
        if (n < wanted)
            size[n] = value;
        n++;
        at += length;
        if (*at == '\0')
            break;
    }
    if (n != wanted) {
        cli_message("%s: --sizes names %zu sizes for %zu profiles", command, n, wanted);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* Whether argument k is a number in every profile and differs; fills the sizes. */
static bool is_size(const struct cli_profiles *opened, size_t k, double *size)
{
    bool differs = false;
    for (size_t i = 0; i < opened->n; i++) {
        if (!parse_size(argument_of(profile_of(opened, i), k), &size[i]))
            return false;
        differs |= size[i] != size[0];
    }
    return differs;
}

static int sizes_guess(const char *command, const struct cli_profiles *opened, double *size,
                       char *name, size_t n)
{
    size_t found = 0, how_many = 0;
    for (size_t k = 1; k < profile_of(opened, 0)->n_arguments; k++) {
        if (is_size(opened, k, size)) {
            found = k;
            how_many++;
        }
    }
    if (how_many != 1) {
        cli_message("%s: %s: say by --sizes, --size-key or --size-arg what the size is", command,
                    how_many == 0 ? "no argument of the programs is a number that differs"
                                  : "several arguments of the programs differ");
        return CLI_USAGE;
    }
    is_size(opened, found, size);
    snprintf(name, n, "argument %zu", found);
    return CLI_OK;
}

int cli_find_sizes(const struct cli_size_args *args, const char *command,
                   const struct cli_profiles *opened, double *size, char *name, size_t n)
{
    if ((args->list != NULL) + (args->key != NULL) + (args->argument > 0) > 1) {
        cli_message("%s: --sizes, --size-key and --size-arg exclude each other", command);
        return CLI_USAGE;
    }
    if (args->list) {
        snprintf(name, n, "--sizes");
        return sizes_read_list(args->list, command, opened->n, size);
    }
    if (!args->key && args->argument == 0)
        return sizes_guess(command, opened, size, name, n);
    if (args->key)
        snprintf(name, n, "%s", args->key);
    else
        snprintf(name, n, "argument %zu", args->argument);
    for (size_t i = 0; i < opened->n; i++) {
        const struct read_profile *profile = profile_of(opened, i);
        const char *text =
            args->key ? sizes_value_of(profile, args->key) : argument_of(profile, args->argument);
        if (args->key && !text) {
            const int status = read_scopes(profile, command, args->key, &size[i]);
            if (status != CLI_OK)
                return status;
            continue;
        }
        if (!parse_size(text, &size[i])) {
            cli_message("%s: %s: %s is '%s', not a size", command, profile->path, name,
                        text ? text : "");
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}
