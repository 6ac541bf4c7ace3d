/* plain_lost.c: where a gradient is lost at run time. What code that was compiled by `tapescope cc`
 * calls when something does not fit. */
#include <tapescope/ad_plain.h>

#include "plain_calls.h"
#include "plain_shadow.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

uint8_t ad_plain_is_strict_;

/* The index of an operand whose check does not fit its value or the newest recording; the tag is
 * what the check would be of. 0: it is a constant; if that loses a gradient it is said. */
static uint32_t plain_operand(uint32_t index, uint32_t tag, uintptr_t pc)
{
    switch (ad_plain_place_(&index, &tag)) {
    case AD_PLAIN_STANDS_:
        return index;
    case AD_PLAIN_DROPPED_:
        break;
    case AD_PLAIN_ELSEWHERE_:
        ad_plain_lost_("an active value is read by a thread that does not record on its tape: "
                       "ad_tape_fork makes a tape for each thread",
                       ad_plain_is_strict_, pc);
        break;
    case AD_PLAIN_UNKNOWN_:
        ad_plain_lost_("what is read is no longer the active value that was stored here: it was "
                       "overwritten by arithmetic on its bits, by a value of another type, or by "
                       "code that was not compiled by `tapescope cc`",
                       ad_plain_is_strict_, pc);
        break;
    }
    return 0;
}

ad_real plain_looked(const double *x, uintptr_t pc)
{
    uint32_t word[2];
    memcpy(word, plain_shadow(x), sizeof word);
    return plain_real(*x, word[0], word[1] ^ plain_folded(*x), pc);
}

ad_real plain_real(double x, uint32_t index, uint32_t tag, uintptr_t pc)
{
    if (index != 0 && tag != (uint32_t)(ad_statement_cursor_.result >> 32))
        index = plain_operand(index, tag, pc);
    return (ad_real){x, index, index ? ad_plain_tag_(index) : 0};
}

uint32_t ad_plain_operand_at_(uint32_t index, uint32_t tag, uintptr_t pc);
uint32_t ad_plain_operand_at_(uint32_t index, uint32_t tag, uintptr_t pc)
{
    return plain_operand(index, tag, pc);
}

/* How far behind a pointer values are looked for. */
enum { LOOKED_BYTES = 256, PAGE = 4096, VARIABLE_BYTES = 1 << 16, LINE = 64 };

static bool is_active(const double *x)
{
    uint32_t word[2];
    memcpy(word, plain_shadow(x), sizeof word);
    uint32_t tag = word[1] ^ plain_folded(*x);
    return word[0] != 0 && ad_plain_place_(&word[0], &tag) == AD_PLAIN_STANDS_;
}

static bool is_active_float(const float *x)
{
    uint32_t index, check, bits;
    memcpy(&index, plain_shadow(x), sizeof index);
    memcpy(&check, plain_checks(x), sizeof check);
    memcpy(&bits, x, sizeof bits);
    check ^= bits;
    return index != 0 && ad_plain_place_(&index, &check) == AD_PLAIN_STANDS_;
}

/* The bits of what is at an address are read as numbers, of 4 bytes or more; more than OF_DOUBLE: a
 * double is taken apart. As in plain/pass/pass_memory.c. */
enum { OF_DOUBLE = 256 };
void ad_plain_bits_(const void *at, uint32_t bytes);
void ad_plain_bits_(const void *at, uint32_t bytes)
{
    bool found = bytes > OF_DOUBLE && is_active(at);
    if (bytes > OF_DOUBLE)
        bytes = 0;
    for (uint32_t k = 0; k + sizeof(float) <= bytes && !found; k += sizeof(float)) {
        const void *const part = (const char *)at + k;
        found = (k % sizeof(double) == 0 && k + sizeof(double) <= bytes && is_active(part)) ||
                (ad_plain_has_floats_ && is_active_float(part));
    }
    if (found)
        ad_plain_lost_("the bits of an active value are used as an integer", ad_plain_is_strict_,
                       PLAIN_HERE);
}

/* Whether what lies there can be read. */
static bool is_mapped(uintptr_t page)
{
    unsigned char resident;
    return mincore((void *)page, PAGE, &resident) == 0;
}

/* Whether an active value stands there, or was written over since. */
static bool was_active(const double *x)
{
    uint32_t word[2], newest = (uint32_t)(ad_statement_cursor_.result >> 32);
    memcpy(word, plain_shadow(x), sizeof word);
    uint32_t index = word[0], tag = word[1] ^ plain_folded(*x);
    if (index == 0)
        return false;
    const enum ad_plain_standing_ is = ad_plain_place_(&index, &tag);
    return is == AD_PLAIN_STANDS_ ||
           (is == AD_PLAIN_UNKNOWN_ && ad_plain_place_(&word[0], &newest) == AD_PLAIN_STANDS_);
}

/* Whether a line of memory has no shadow, and no pointers where these are looked for. */
static bool is_empty(const void *line, bool pointers)
{
    uint64_t shadow[LINE / sizeof(uint64_t)], word[LINE / sizeof(uint64_t)], any = 0;
    memcpy(shadow, plain_shadow(line), sizeof shadow);
    for (unsigned k = 0; k < LINE / sizeof *shadow; k++)
        any |= shadow[k];
    if (any != 0 || !pointers)
        return any == 0;
    memcpy(word, line, sizeof word);
    for (unsigned k = 0; k < LINE / sizeof *word; k++)
        any |= (uint64_t)plain_has_shadow((const void *)(uintptr_t)word[k]);
    return any == 0;
}

/* Whether these bytes of shadow are each 0 or that of text. */
static bool is_like_text(uint32_t shadow)
{
    return (shadow & UINT32_C(0x01010101)) * UINT32_C(0xFF) == shadow;
}

/* Whether text that was made of active values lies there, which may be shorter than an index. The
 * index of a value may look so too, but not its check as well. */
static bool is_printed(const void *x, uint32_t index)
{
    uint32_t upper = 0;
    if (index == 0 || !is_like_text(index))
        return false;
    if ((uintptr_t)x % sizeof(double) == 0)
        memcpy(&upper, plain_shadow((const char *)x + sizeof upper), sizeof upper);
    return index == PLAIN_PRINTED || is_like_text(upper);
}

/* Among so many bytes from an address on, and behind the pointers that lie there. Shadows can be
 * read wherever they are; what they belong to cannot. */
bool plain_any_active(const void *at, uint64_t bytes, bool pointers)
{
    const uintptr_t begin = ((uintptr_t)at + sizeof(float) - 1) / sizeof(float) * sizeof(float);
    if (!plain_has_shadow(at))
        return false;
    if ((uintptr_t)at < begin && *(const uint8_t *)plain_shadow(at) == (PLAIN_PRINTED & 0xFF))
        return true;
    uintptr_t mapped = 1; /* no page: what was given may have been given back since */
    for (uintptr_t x = begin; x < begin + bytes; x += sizeof(float)) {
        const bool whole = x % sizeof(double) == 0;
        uint32_t index;
        if (!plain_has_shadow((const void *)x))
            break;
        if (x % LINE == 0 && begin + bytes - x >= LINE &&
            (!pointers || x / PAGE * PAGE == mapped) && is_empty((const void *)x, pointers)) {
            x += LINE - sizeof(float);
            continue;
        }
        memcpy(&index, plain_shadow((const void *)x), sizeof index);
        if (index == 0 && !(pointers && whole))
            continue;
        if (is_printed((const void *)x, index))
            return true;
        const uintptr_t last = (x + sizeof(double) - 1) / PAGE * PAGE;
        if (last != mapped && !is_mapped(last))
            break;
        mapped = last;
        if (index != 0 && ((whole && was_active((const double *)x)) ||
                           (ad_plain_has_floats_ && is_active_float((const float *)x))))
            return true;
        const void *inner;
        if (pointers && whole && index == 0) {
            memcpy(&inner, (const void *)x, sizeof inner);
            if (plain_any_active(inner, LOOKED_BYTES, false))
                return true;
        }
    }
    return false;
}

/* The stack behind a variable is that of other functions. */
static bool is_on_stack(const void *at)
{
    enum { STACK = 8 << 20 };
    return (uintptr_t)at - (uintptr_t)__builtin_frame_address(0) < STACK;
}

/* Global variables that other files may read: what was told of them at the program's begin. */
static struct {
    pthread_mutex_t lock;
    struct {
        const void *at;
        const void *(*of_thread)(void); /* where a thread has its own, or NULL */
        uint64_t bytes;
    } * variable;
    size_t n;
} globals = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void global_add(const void *at, const void *(*of_thread)(void), uint64_t bytes)
{
    pthread_mutex_lock(&globals.lock);
    void *const more = realloc(globals.variable, (globals.n + 1) * sizeof *globals.variable);
    if (more) {
        globals.variable = more;
        globals.variable[globals.n].at = at;
        globals.variable[globals.n].of_thread = of_thread;
        globals.variable[globals.n++].bytes = bytes;
    }
    pthread_mutex_unlock(&globals.lock);
}

void ad_plain_global_(const void *at, uint64_t bytes);
void ad_plain_global_(const void *at, uint64_t bytes)
{
    global_add(at, NULL, bytes);
}

void ad_plain_global_of_thread_(const void *(*at)(void), uint64_t bytes);
void ad_plain_global_of_thread_(const void *(*at)(void), uint64_t bytes)
{
    global_add(NULL, at, bytes);
}

/* Whether a function is of one of these libraries. */
static bool is_within(const void *function, const char *const *library)
{
    Dl_info info;
    if (dladdr(function, &info) == 0 || !info.dli_fname)
        return false;
    for (; *library; library++)
        if (strstr(info.dli_fname, *library))
            return true;
    return false;
}

/* They know no variables of the program; those of C++ compute with none that they get. */
static const char *const of_system[] = {"/libc.so",    "/libm.so",      "/libomp.so",
                                        "/libgomp.so", "/libtapescope", "/libstdc++.so",
                                        "/libc++.so",  "/libgcc_s.so",  NULL};
static const char *const of_cxx[] = {"/libstdc++.so", "/libc++.so", "/libgcc_s.so", NULL};

static bool any_global_active(void)
{
    bool found = false;
    pthread_mutex_lock(&globals.lock);
    for (size_t k = 0; k < globals.n && !found; k++) {
        const uint64_t bytes = globals.variable[k].bytes;
        const void *at = globals.variable[k].at;
        if (!at)
            at = globals.variable[k].of_thread();
        found = plain_any_active(at, bytes < VARIABLE_BYTES ? bytes : VARIABLE_BYTES, false);
    }
    pthread_mutex_unlock(&globals.lock);
    return found;
}

/* ---- memory that functions know from earlier calls ---- */

/* What is known of functions of other compilers. It is for all threads: memory that one has given
 * away may be read by a call of another. */
enum { FUNCTIONS = 256, GIVEN = 64 };
static struct {
    pthread_mutex_t lock;
    struct {
        const void *function, *object;
    } function[FUNCTIONS]; /* an entry never changes once it has its function */
    struct {
        const void *object, *at;
    } last[GIVEN];
    unsigned n;
} foreign = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The loaded file that a function is of, NULL: the system's; asked once a function. */
static const void *object_of(const void *function)
{
    const size_t k = ((uintptr_t)function >> 4) % FUNCTIONS;
    const void *const known = __atomic_load_n(&foreign.function[k].function, __ATOMIC_ACQUIRE);
    if (known == function)
        return foreign.function[k].object;
    Dl_info info;
    const bool system = is_within(function, of_system);
    const void *const object = !system && dladdr(function, &info) != 0 ? info.dli_fbase : NULL;
    if (!known) {
        pthread_mutex_lock(&foreign.lock);
        if (!foreign.function[k].function) {
            foreign.function[k].object = object;
            __atomic_store_n(&foreign.function[k].function, function, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&foreign.lock);
    }
    return object;
}

/* The last pointers that functions of other compilers got, or gave, before a recording too: values
 * may be put there later. Not those of variables on the stack, whose memory is soon another's. */
static void given_add(const void *object, const void *at)
{
    bool found = false;
    if (!plain_has_shadow(at) || is_on_stack(at))
        return;
    pthread_mutex_lock(&foreign.lock);
    for (unsigned k = 0; k < GIVEN && !found; k++)
        found = foreign.last[k].at == at && foreign.last[k].object == object;
    if (!found) {
        foreign.last[foreign.n].object = object;
        foreign.last[foreign.n].at = at;
        foreign.n = (foreign.n + 1) % GIVEN;
    }
    pthread_mutex_unlock(&foreign.lock);
}

static bool any_given_active(const void *object)
{
    const void *of_object[GIVEN];
    unsigned n = 0;
    pthread_mutex_lock(&foreign.lock);
    for (unsigned k = 0; k < GIVEN; k++)
        if (foreign.last[k].object == object)
            of_object[n++] = foreign.last[k].at;
    pthread_mutex_unlock(&foreign.lock);
    for (unsigned k = 0; k < n; k++)
        if (plain_any_active(of_object[k], LOOKED_BYTES, false))
            return true;
    return false;
}

static void foreign_lost(const char *before, const char *name, const char *after, uintptr_t pc)
{
    char why[512];
    snprintf(why, sizeof why, "%s%s%s%s", before, name ? name : "a function",
             name ? " (not compiled by `tapescope cc`)"
                  : " that was not compiled by `tapescope cc`",
             after);
    ad_plain_lost_(why, ad_plain_is_strict_, pc);
}

/* A function that is not instrumented was called; name: NULL where it is not known; active: the
 * indices of its floating arguments, joined by or; recorded: the next result's place before it;
 * ad_plain_returned_, which was cleared then, says whether it has called one that is instrumented.
 * Then n pointers that it got, each with the size of what it points to, or 0; UINT64_MAX: it was
 * given by the function. */
void ad_plain_foreign_(void *function, const char *name, uint32_t active, uint64_t recorded,
                       uint32_t n, ...);
void ad_plain_foreign_(void *function, const char *name, uint32_t active, uint64_t recorded,
                       uint32_t n, ...)
{
    const bool recording = ad_statement_cursor_.result >> 32 != 0;
    const void *const object = object_of(function);
    const bool none = !plain_has_variables();
    bool found = active != 0;
    const bool may_read = recording && object && any_given_active(object);
    va_list list;
    va_start(list, n);
    for (uint32_t k = 0; k < n; k++) {
        const void *const at = va_arg(list, const void *);
        const uint64_t bytes = va_arg(list, uint64_t);
        const bool on_stack = is_on_stack(at);
        if (object)
            given_add(object, at);
        if (found || none || bytes == UINT64_MAX)
            continue;
        if (bytes > 0)
            found = plain_any_active(at, bytes < VARIABLE_BYTES ? bytes : VARIABLE_BYTES, true);
        else
            found = plain_any_active(at, on_stack ? LOOKED_BYTES : PAGE, !on_stack);
    }
    va_end(list);
    if (found && !active && is_within(function, of_cxx))
        return;
    Dl_info info;
    if (!name && dladdr(function, &info) != 0 && info.dli_saddr == function)
        name = info.dli_sname;
    if (found)
        foreign_lost("active values went into ", name, ": what it makes of them are constants",
                     PLAIN_HERE);
    else if (ad_plain_returned_ != 0 && ad_statement_cursor_.result != recorded &&
             recorded >> 32 != 0 && ad_statement_cursor_.result >> 32 == recorded >> 32)
        foreign_lost("", name,
                     " has called one that recorded: what it makes of its values are "
                     "constants",
                     PLAIN_HERE);
    else if (may_read)
        foreign_lost("", name,
                     " may read active values in memory that it, or one of the same file, was "
                     "given earlier or has given: what it makes of them are constants",
                     PLAIN_HERE);
    else if (recording && object && any_global_active())
        foreign_lost("", name,
                     " may read a global variable that is active: what it makes of it are "
                     "constants",
                     PLAIN_HERE);
}

/* A function gives an active value to one that is not instrumented. */
void ad_plain_returned_lost_(void);
void ad_plain_returned_lost_(void)
{
    ad_plain_lost_("an active value is the result of a function that was called by one that was "
                   "not compiled by `tapescope cc`: there it is a constant",
                   ad_plain_is_strict_, PLAIN_HERE);
}

/* ---- BLAS and LAPACK without a rule ---- */

static void greatest(uint64_t two[2], int64_t n)
{
    enum { GREATEST = 1 << 20 }; /* beyond it is no extent, but bits of something else */
    if (n < 1 || n > GREATEST)
        return;
    if ((uint64_t)n > two[0]) {
        two[1] = two[0];
        two[0] = (uint64_t)n;
    } else if ((uint64_t)n > two[1]) {
        two[1] = (uint64_t)n;
    }
}

/* Whether active values lie behind pointers of a call: the pointers, then the integers. A matrix is
 * as large as the two greatest integers say, which Fortran takes by pointers. */
uint32_t ad_plain_look_far_(uint32_t n_pointers, uint32_t n_numbers, ...);
uint32_t ad_plain_look_far_(uint32_t n_pointers, uint32_t n_numbers, ...)
{
    uint64_t two[2] = {1, 1};
    va_list list, again;
    va_start(list, n_numbers);
    va_copy(again, list);
    for (uint32_t k = 0; k < n_pointers; k++) {
        const void *at = va_arg(list, const void *);
        int32_t n;
        if (!plain_has_shadow(at) || (uintptr_t)at % sizeof n != 0)
            continue;
        memcpy(&n, at, sizeof n);
        greatest(two, n);
    }
    for (uint32_t k = 0; k < n_numbers; k++)
        greatest(two, va_arg(list, int64_t));
    va_end(list);
    bool found = false;
    for (uint32_t k = 0; k < n_pointers && !found; k++)
        found = plain_any_active(va_arg(again, const void *), 8 * two[0] * two[1], false);
    va_end(again);
    return found;
}

/* Such a function was called. */
void ad_plain_no_rule_(const void *function, const char *name, uint32_t active);
void ad_plain_no_rule_(const void *function, const char *name, uint32_t active)
{
    if (!active || ad_plain_returned_ == (uintptr_t)function)
        return;
    char why[160];
    snprintf(why, sizeof why,
             "active values went into %s, for which there is no rule: what it makes of them are "
             "constants",
             name);
    ad_plain_lost_(why, ad_plain_is_strict_, PLAIN_HERE);
}
