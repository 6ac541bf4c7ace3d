/* tape_error.c: a tape's sticky error: the first failure, kept with its message and its place.
 *
 * Allocates nothing, since what it reports may be a lack of memory.
 */
#include "plain_format.h"
#include "tape_disk.h"
#include "tape_record_watch.h"
#include "tape_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum tape_status tape_fail(struct tape *t, enum tape_status code, struct tape_site site,
                           const char *format, ...)
{
    if (t->error.code != TAPE_OK)
        return code;
    tape_settle(t); /* so that the next statement asks, and is not recorded */
    char *text = t->error.message;
    va_list list;
    va_start(list, format);
    int n = plain_vformat(text, TAPE_MESSAGE_BYTES, format, list);
    va_end(list);
    t->error.code = code;
    t->error.number = 0;
    t->error.heard = t->watch.tell != NULL;
    if (n < 0 || n > TAPE_MESSAGE_BYTES - 64)
        n = n < 0 ? 0 : TAPE_MESSAGE_BYTES - 64;
    if (site.pc || site.line) {
        memcpy(text + n, " at ", 5);
        t->describe(site, text + n + 4, (size_t)(TAPE_MESSAGE_BYTES - n - 4));
    }
    if (code == TAPE_ERROR_NONFINITE && (t->nonfinite & TAPE_TRAP_BREAK))
        t->record_watch->nonfinite(t);
    if (t->watch.tell)
        t->watch.tell(t);
    return code;
}

enum tape_status tape_fail_as(struct tape *t, const struct tape_error *error)
{
    if (t->error.code != TAPE_OK)
        return error->code;
    tape_settle(t);
    t->error = *error;
    t->error.heard = t->watch.tell != NULL;
    if (t->watch.tell)
        t->watch.tell(t);
    return error->code;
}

enum tape_status tape_fail_memory(struct tape *t, struct tape_site site, const char *what)
{
    char wanted[64] = "", filed[64] = "";
    if (t->refused && t->refused(t, what, site))
        return t->error.code;
    if (t->arena.refused)
        snprintf(wanted, sizeof wanted, "%llu bytes are wanted, ",
                 (unsigned long long)t->arena.refused);
    if (t->disk->bytes)
        snprintf(filed, sizeof filed, " (%llu of them in its file)",
                 (unsigned long long)t->disk->bytes);
    t->arena.refused = 0;
    return tape_fail(
        t, TAPE_ERROR_MEMORY, site,
        "%s: out of memory: %s%llu bytes are on the tape%s, its budget is %llu of %llu reserved",
        what, wanted, (unsigned long long)t->arena.live, filed,
        (unsigned long long)(t->arena.budget - t->arena.beyond),
        (unsigned long long)t->arena.reserved);
}
