/* ad_handle.c: the table of slots behind the handles, and the checks of every op's operands.
 *
 * Slots are never unmapped and generations only grow, so that a stale handle is recognised without
 * following it.
 */
#include "ad_internal.h"

#include "tape_account.h"
#include "tape_call.h"
#include "tape_disk.h"
#include "tape_no_grad.h"
#include "tape_nonfinite.h"
#include "tape_poison.h"
#include "tape_release.h"
#include "tape_statement.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct ad_slot ad_slots[AD_SLOTS];
_Thread_local uint64_t ad_thread __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t free_slot, unused_slot = 1;

uint64_t ad_thread_number(void)
{
    static uint64_t last;
    if (!ad_thread)
        ad_thread = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return ad_thread;
}

uint32_t ad_slot_take(struct tape *t, uint64_t thread)
{
    pthread_mutex_lock(&lock);
    uint32_t i = free_slot;
    if (i)
        free_slot = ad_slots[i].next_free;
    else if (unused_slot < AD_SLOTS)
        i = unused_slot++;
    pthread_mutex_unlock(&lock);
    if (!i)
        return 0;
    struct ad_slot *s = &ad_slots[i];
    /* The thread comes last: a handle of the slot's former tape must not find it with the former
     * generation. Generation 0 is never live, so that a handle of zeros is none. */
    __atomic_add_fetch(&s->generation, s->generation + 1 == 0 ? 2 : 1, __ATOMIC_RELAXED);
    __atomic_store_n(&s->tape, t, __ATOMIC_RELAXED);
    __atomic_store_n(&s->foreign, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->tags, s->tags & ~(uint32_t)UINT16_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&s->thread, thread, __ATOMIC_RELEASE);
    return i;
}

void ad_slot_give(uint32_t i)
{
    __atomic_store_n(&ad_slots[i].tape, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&ad_slots[i].thread, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    ad_slots[i].next_free = free_slot;
    free_slot = i;
    pthread_mutex_unlock(&lock);
}

/* Arrays of so many bytes are looked at as a whole, by what option `check` says. */
static const uint64_t whole_bytes[] = {
    [AD_CHECK_DEFAULT] = 1 << 20, [AD_CHECK_SAMPLES] = 0, [AD_CHECK_ALL] = UINT64_MAX};

/* A failure of another thread becomes the tape's, if the tape still has what it was about: the slot
 * may have been another tape's. */
static __attribute__((noinline, cold)) void foreign_take(struct ad_slot *s, struct tape *t)
{
    const uint64_t foreign = __atomic_exchange_n(&s->foreign, 0, __ATOMIC_ACQUIRE);
    uint32_t first, end;
    if (tape_statement_tagged(t, (uint32_t)foreign, &first, &end))
        tape_poison_fail(t, 0, (uint32_t)(foreign >> 32));
}

static inline struct tape *owned(struct ad_slot *s)
{
    struct tape *t = __atomic_load_n(&s->tape, __ATOMIC_RELAXED);
    if (__builtin_expect(__atomic_load_n(&s->foreign, __ATOMIC_RELAXED) != 0, 0))
        foreign_take(s, t);
    return t;
}

/* The slot of the calling thread's tape behind a handle, or NULL. */
static inline struct ad_slot *find_slot(uint32_t slot, uint32_t generation)
{
    if (slot - 1 >= AD_SLOTS - 1)
        return NULL;
    struct ad_slot *s = &ad_slots[slot];
    if (__atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) != generation ||
        __atomic_load_n(&s->thread, __ATOMIC_RELAXED) != ad_thread || !ad_thread)
        return NULL;
    return s;
}

static inline struct tape *find(uint32_t slot, uint32_t generation)
{
    struct ad_slot *s = find_slot(slot, generation);
    return s ? owned(s) : NULL;
}

uint64_t ad_calls_begin(uint32_t slot)
{
    /* No other thread writes there. */
    const uint64_t owner = __atomic_load_n(&ad_slots[slot].thread, __ATOMIC_RELAXED);
    __atomic_store_n(&ad_slots[slot].thread, AD_THREAD_CALLED, __ATOMIC_RELAXED);
    return owner;
}

void ad_calls_end(uint32_t slot, uint64_t owner)
{
    __atomic_store_n(&ad_slots[slot].thread, owner, __ATOMIC_RELAXED);
}

struct tape *ad_tape_adopt(ad_tape tape)
{
    if (tape.slot - 1 >= AD_SLOTS - 1 || ad_log_telling())
        return NULL;
    struct ad_slot *s = &ad_slots[tape.slot];
    uint64_t none = AD_THREAD_NONE;
    if (__atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) != tape.generation ||
        !__atomic_compare_exchange_n(&s->thread, &none, ad_thread_number(), false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return NULL;
    /* Meanwhile it may have been destroyed, and the slot be another fork's. */
    if (__atomic_load_n(&s->generation, __ATOMIC_ACQUIRE) != tape.generation) {
        __atomic_store_n(&s->thread, AD_THREAD_NONE, __ATOMIC_RELEASE);
        return NULL;
    }
    struct tape *t = owned(s);
    tape_observe_adopt(t, true);
    return t;
}

void ad_tape_abandon(struct tape *t, uint32_t slot)
{
    tape_observe_adopt(t, false);
    __atomic_store_n(&ad_slots[slot].thread, AD_THREAD_NONE, __ATOMIC_RELEASE);
}

struct tape *ad_tape_behind(ad_tensor x)
{
    return find(x.tape, x.tape_generation);
}

/* Why there is no tape of the calling thread's behind a handle, as the end of a sentence. */
static const char *no_tape(uint32_t slot, uint32_t generation, ad_status *code)
{
    *code = AD_ERROR_HANDLE;
    if (slot == 0)
        return "the handle is zero: no tape";
    if (slot >= AD_SLOTS)
        return "not a handle of a tape";
    /* Who reads a thread and then the generation sees that of the thread's tape, or a later one. */
    uint64_t thread = __atomic_load_n(&ad_slots[slot].thread, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&ad_slots[slot].generation, __ATOMIC_ACQUIRE) != generation || !thread)
        return "the tape was destroyed";
    *code = AD_ERROR_STATE;
    if (thread == AD_THREAD_TOLD)
        return "not while the tape's error callback runs";
    if (thread == AD_THREAD_CALLED)
        return "not while a callback of one of its records runs";
    if (thread == AD_THREAD_NONE)
        return "the fork belongs to no thread: ad_tape_record_begin comes first";
    *code = AD_ERROR_THREAD;
    return "the tape belongs to another thread";
}

static __attribute__((noinline, cold)) struct tape *
not_found(uint32_t slot, uint32_t generation, const char *what, struct tape_site site)
{
    ad_status code = AD_ERROR_STATE;
    const char *why =
        ad_log_telling() ? "not while the log callback runs" : no_tape(slot, generation, &code);
    ad_fail(code, site, "%s: %s", what, why);
    ad_fail_about((ad_tape){slot, generation});
    return NULL;
}

/* What is rare is behind a tail call, so that the usual way saves no registers. */
static __attribute__((noinline, cold)) struct tape *
find_rarely(uint32_t slot, uint32_t generation, const char *what, struct tape_site site)
{
    struct tape *t = find(slot, generation);
    return t ? t : not_found(slot, generation, what, site);
}

struct tape *ad_tape_find(uint32_t slot, uint32_t generation, const char *what,
                          struct tape_site site)
{
    struct ad_slot *s = find_slot(slot, generation);
    if (__builtin_expect(!s || __atomic_load_n(&s->foreign, __ATOMIC_RELAXED) != 0, 0))
        return find_rarely(slot, generation, what, site);
    return __atomic_load_n(&s->tape, __ATOMIC_RELAXED);
}

ad_status ad_tape_create_site(ad_tape *tape, const ad_tape_options *options, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    if (!tape)
        return ad_fail(AD_ERROR_ARGUMENT, site, "tape_create: tape is a null pointer");
    *tape = (ad_tape){0, 0};
    if (ad_log_telling())
        return ad_fail(AD_ERROR_STATE, site, "tape_create: not while the log callback runs");
    struct tape_options o = {
        .describe = ad_describe, .locate = ad_locate, .whole_bytes = whole_bytes[AD_CHECK_DEFAULT]};
    struct tape_memory memory;
    if (options && options->allocator) {
        const ad_allocator *a = options->allocator;
        if (!a->reserve || !a->unreserve || !a->resize || !a->release)
            return ad_fail(AD_ERROR_ARGUMENT, site, "tape_create: the allocator lacks a function");
        memory = (struct tape_memory){.reserve = a->reserve,
                                      .unreserve = a->unreserve,
                                      .resize = a->resize,
                                      .release = a->release,
                                      .payload = a->payload};
        o.memory = &memory;
    }
    if (options) {
        o.budget_bytes = options->budget_bytes;
        o.reserve_bytes = options->reserve_bytes;
        o.no_huge_pages = options->no_huge_pages;
        if ((size_t)options->check >= sizeof whole_bytes / sizeof *whole_bytes)
            return ad_fail(AD_ERROR_ARGUMENT, site, "tape_create: %d is no ad_check",
                           (int)options->check);
        o.whole_bytes = whole_bytes[options->check];
    }
    if (options && options->spill && options->allocator)
        return ad_fail(AD_ERROR_ARGUMENT, site,
                       "tape_create: spill, and an allocator: only the system's memory can go to a "
                       "file");
    char why[256];
    if (ad_profile_linked && !ad_prime(why, sizeof why))
        return ad_fail(AD_ERROR_MEMORY, site, "tape_create: %s", why);
    struct tape *t = tape_create(&o);
    if (!t)
        return ad_fail(AD_ERROR_MEMORY, site, "tape_create: no memory for a tape");
    const int error = options && options->spill ? tape_disk_open(t, options->spill) : 0;
    if (error) {
        tape_destroy(t);
        return ad_fail(AD_ERROR_FILE, site, "tape_create: cannot make the tape's file in %s: %s",
                       options->spill, strerror(error));
    }
    uint32_t i = ad_slot_take(t, ad_thread_number());
    if (!i) {
        tape_destroy(t);
        return ad_fail(AD_ERROR_LIMIT, site, "tape_create: %d tapes exist already", AD_SLOTS - 1);
    }
    *tape = (ad_tape){i, ad_slots[i].generation};
    return AD_OK;
}

/* Says what the user may have missed of a tape that is about to be destroyed. */
static void last_words(struct tape *t)
{
    char text[TAPE_MESSAGE_BYTES + 64], where[TAPE_NO_GRAD_TEXT] = "";
    tape_nonfinite_settle(t);
    if (t->error.code != TAPE_OK && !t->error.heard) {
        (void)snprintf(text, sizeof text, "a tape is destroyed whose error nobody asked for: %s",
                       t->error.message);
        ad_log_say(AD_LOG_WARNING, text);
    }
    if (t->no_grad == 0)
        return;
    const struct tape_site site = tape_no_grad_site(t);
    if (site.pc || site.line)
        ad_describe(site, where, sizeof where);
    (void)snprintf(text, sizeof text, "a tape is destroyed while no_grad%s%s is open",
                   where[0] ? " begun at " : "", where);
    ad_log_say(AD_LOG_WARNING, text);
}

ad_status ad_tape_destroy_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_adopt(tape);
    if (!t)
        t = ad_tape_find(tape.slot, tape.generation, "tape_destroy", site);
    if (!t)
        return ad_failed();
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "tape_destroy", site);
    last_words(t);
    ad_real_forget(t);
    ad_slot_give(tape.slot);
    tape_destroy(t);
    return AD_OK;
}

/* "operand 2" of an op, or nothing for a function of one tensor. */
static const char *operand_name(int operand, char *buf, size_t n)
{
    if (operand > 0)
        snprintf(buf, n, "operand %d", operand);
    else
        snprintf(buf, n, "the tensor");
    return buf;
}

/* Why a handle of the tape names no value. */
static ad_status fail_stale(struct tape *t, ad_tensor x, const char *which, struct tape_site site)
{
    const struct tape_value *v = x.value < t->n_values ? &t->entries[x.value] : &t->entries[0];
    if (x.value == 0)
        tape_fail(t, TAPE_ERROR_HANDLE, site, "%s is the result of an op that failed", which);
    else if ((v->flags & TAPE_RELEASED) && v->retained == x.value_generation) {
        char how[240];
        tape_release_describe(t, v, how, sizeof how);
        tape_fail(t, TAPE_ERROR_HANDLE, site, "%s %s; the call is", which, how);
    } else {
        char at[AD_DROPPED_TEXT];
        tape_fail(t, TAPE_ERROR_HANDLE, site,
                  "%s was dropped by a reset or a rewind%s%s; the call is", which,
                  ad_dropped_at(t, at, sizeof at),
                  t->calls.made ? ", or was computed within a checkpoint" : "");
    }
    return AD_ERROR_HANDLE;
}

static bool is_live(const struct tape *t, ad_tensor x)
{
    return x.value - 1 < t->n_values - 1 && t->entries[x.value].generation == x.value_generation;
}

/* Why a handle names no value of tape t, which keeps the failure. A handle of zeros may be the
 * result of an earlier op that failed: the message then has that op's error as well. */
static void fail_operand(struct tape *t, ad_tensor x, const char *which, struct tape_site site)
{
    struct tape *other = find(x.tape, x.tape_generation);
    if (t->error.code != TAPE_OK)
        return;
    const char *before = x.value == 0 && !other ? ad_unread() : NULL;
    const char *then = before ? "; before that, " : "", *here = before ? "; the call is" : "";
    ad_status code;
    if (other == t) {
        fail_stale(t, x, which, site);
    } else if (other) {
        tape_fail(t, TAPE_ERROR_TAPE, site, "%s is of another tape", which);
    } else if (x.tape == 0) {
        tape_fail(t, TAPE_ERROR_HANDLE, site, "%s is a handle of zeros: no tensor%s%s%s", which,
                  then, before ? before : "", here);
    } else {
        const char *why = no_tape(x.tape, x.tape_generation, &code);
        tape_fail(t, (enum tape_status)code, site, "%s: %s%s%s%s", which, why, then,
                  before ? before : "", here);
    }
}

uint32_t ad_value_find(ad_tensor x, const char *what, int operand, struct tape_site site,
                       struct tape **tape, ad_status *status)
{
    char buf[64], which[32];
    operand_name(operand, which, sizeof which);
    snprintf(buf, sizeof buf, "%s: %s", what, which);
    if (x.tape == 0) {
        *tape = NULL;
        *status = ad_fail(AD_ERROR_HANDLE, site, "%s is a handle of zeros: no tensor", buf);
        return 0;
    }
    struct tape *t = *tape = find(x.tape, x.tape_generation);
    if (!t) {
        ad_tape_find(x.tape, x.tape_generation, buf, site);
        *status = ad_failed();
        return 0;
    }
    if (is_live(t, x)) {
        *status = AD_OK;
        tape_account_used(t, x.value);
        return x.value;
    }
    if (t->error.code == TAPE_OK)
        fail_stale(t, x, buf, site);
    *status = (ad_status)t->error.code;
    return 0;
}

uint32_t ad_value_on(struct tape *t, ad_tensor x, struct tape_site site, const char *format, ...)
{
    char which[96];
    va_list list;
    const struct tape *home = find(x.tape, x.tape_generation);
    if (home && home == t && is_live(home, x)) {
        tape_account_used(t, x.value);
        return x.value;
    }
    va_start(list, format);
    (void)vsnprintf(which, sizeof which, format, list);
    va_end(list);
    fail_operand(t, x, which, site);
    return 0;
}

uint32_t ad_value_live(const struct tape *t, ad_tensor x)
{
    return t && find(x.tape, x.tape_generation) == t && is_live(t, x) ? x.value : 0;
}

/* The failure of an op's operands, found again and named. */
static ad_tensor refuse(const struct kernel_op *op, int n_in, const ad_tensor *in,
                        struct tape_site site)
{
    struct tape *home = NULL; /* the first operand's, or the first that has one */
    int first = 0;
    for (int i = 0; i < n_in && !home; i++) {
        home = find(in[i].tape, in[i].tape_generation);
        first = home ? i : 0;
    }
    for (int i = 0; i < n_in && !home && !in[first].tape; i++)
        first = in[i].tape ? i : 0;
    const ad_tensor result = {in[first].tape, in[first].tape_generation, 0, 0};
    struct tape *t = NULL;
    ad_status status;
    if (!home) {
        ad_value_find(in[first], op->name, first + 1, site, &t, &status);
        return result;
    }
    for (int i = 0; i < n_in && home->error.code == TAPE_OK; i++) {
        if (find(in[i].tape, in[i].tape_generation) == home || i == first) {
            ad_value_find(in[i], op->name, i + 1, site, &t, &status);
        } else if (find(in[i].tape, in[i].tape_generation)) {
            tape_fail(home, TAPE_ERROR_TAPE, site,
                      "%s: operand %d is of another tape than operand %d", op->name, i + 1,
                      first + 1);
        } else {
            ad_value_on(home, in[i], site, "%s: operand %d (%s)", op->name, i + 1,
                        kernel_in_name(op, i));
        }
    }
    return result;
}

/* What every op on handles does. False: it failed, and *first is its result. */
static inline __attribute__((always_inline)) bool
apply(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr, const int64_t *attr,
      struct tape_site site, struct tape **tape, uint32_t *out, ad_tensor *first)
{
    struct tape *t = *tape = find(in[0].tape, in[0].tape_generation);
    uint32_t operand[TAPE_MAX_IN];
    if (__builtin_expect(!t || t->error.code != TAPE_OK, 0)) {
        *first = refuse(op, n_in, in, site);
        return false;
    }
    tape_account_enter(t, site, op->name);
    for (int i = 0; i < n_in; i++) {
        uint32_t v = in[i].value;
        if (__builtin_expect(
                in[i].tape != in[0].tape || in[i].tape_generation != in[0].tape_generation ||
                    v - 1 >= t->n_values - 1 || t->entries[v].generation != in[i].value_generation,
                0)) {
            t->entered.is = false;
            *first = refuse(op, n_in, in, site);
            return false;
        }
        operand[i] = v;
    }
    const uint32_t n_records = t->n_records;
    if (__builtin_expect(tape_apply(t, op, n_in, operand, n_attr, attr, site, out) != TAPE_OK, 0)) {
        *first = (ad_tensor){in[0].tape, in[0].tape_generation, 0, 0};
        return false;
    }
    if (__builtin_expect(op->n_out > kernel_results(op) && t->n_records == n_records, 0))
        tape_release_hidden(t, op, out);
    *first = ad_handle_of(t, in[0].tape, in[0].tape_generation, out[0]);
    return true;
}

ad_tensor ad_apply(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr,
                   const int64_t *attr, struct tape_site site)
{
    struct tape *t;
    uint32_t out[KERNEL_MAX_OUT];
    ad_tensor first;
    apply(op, n_in, in, n_attr, attr, site, &t, out, &first);
    return first;
}

ad_tensor ad_no_results(ad_tensor x, ad_tensor *const *more, int n)
{
    const ad_tensor none = {x.tape, x.tape_generation, 0, 0};
    for (int i = 0; i < n; i++)
        if (more[i])
            *more[i] = none;
    return none;
}

ad_tensor ad_apply_results(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr,
                           const int64_t *attr, struct tape_site site, ad_tensor *const *more)
{
    struct tape *t;
    uint32_t out[KERNEL_MAX_OUT];
    ad_tensor first;
    if (!apply(op, n_in, in, n_attr, attr, site, &t, out, &first)) {
        ad_no_results(first, more, kernel_results(op) - 1);
        return first;
    }
    for (int o = 1; o < kernel_results(op); o++)
        if (more[o - 1])
            *more[o - 1] = ad_handle_of(t, first.tape, first.tape_generation, out[o]);
    return first;
}

ad_tensor ad_apply_list(const struct kernel_op *op, int n_in, const ad_tensor *in, int n_attr,
                        const int64_t *attr, struct tape_site site)
{
    if (in && n_in >= op->n_in && n_in <= TAPE_MAX_IN)
        return ad_apply(op, n_in, in, n_attr, attr, site);
    if (!in || n_in <= 0) {
        /* No operand, no tape: the thread keeps the error. */
        if (!in)
            ad_fail(AD_ERROR_ARGUMENT, site, "%s: %s is a null pointer", op->name, op->in_names[0]);
        else
            ad_fail(AD_ERROR_ARGUMENT, site, "%s: %d operands, from %d to %d are possible",
                    op->name, n_in, op->n_in, (int)TAPE_MAX_IN);
        return (ad_tensor){0, 0, 0, 0};
    }
    struct tape *t;
    ad_status status;
    if (ad_value_find(in[0], op->name, 1, site, &t, &status) && t->error.code == TAPE_OK)
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %d operands, from %d to %d are possible",
                  op->name, n_in, op->n_in, (int)TAPE_MAX_IN);
    return (ad_tensor){in[0].tape, in[0].tape_generation, 0, 0};
}

bool ad_list_ok(const struct kernel_op *op, ad_tensor x, const char *name, const int64_t *list,
                int n, int max, struct tape_site site)
{
    if (n >= 0 && n <= max && (list || n == 0))
        return true;
    struct tape *t;
    ad_status status;
    if (!ad_value_find(x, op->name, 1, site, &t, &status) || t->error.code != TAPE_OK)
        return false;
    if (n < 0 || n > max)
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %d entries of %s, from 0 to %d are possible",
                  op->name, n, name, max);
    else
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s is a null pointer", op->name, name);
    return false;
}

/* "AD_CAUSAL | AD_UPPER"; bits without a name as a number. */
static const char *flag_names(unsigned flags, char *buf, size_t n)
{
    size_t used = 0;
    buf[0] = 0;
    for (unsigned i = 0; kernel_flags[i].name && used < n; i++)
        if (flags & 2U << i) {
            used += (size_t)snprintf(buf + used, n - used, "%sAD_%s", used ? " | " : "",
                                     kernel_flags[i].name);
            flags &= ~(2U << i);
        }
    if (flags && used < n)
        (void)snprintf(buf + used, n - used, "%s%#x", used ? " | " : "", flags);
    return buf;
}

bool ad_flags_ok(const struct kernel_op *op, ad_tensor x, unsigned flags, unsigned taken,
                 struct tape_site site)
{
    char wrong[160], right[160];
    struct tape *t;
    ad_status status;
    if (!(flags & ~taken))
        return true;
    if (ad_value_find(x, op->name, 1, site, &t, &status) && t->error.code == TAPE_OK)
        tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: flags has %s; it takes %s", op->name,
                  flag_names(flags & ~taken, wrong, sizeof wrong),
                  flag_names(taken, right, sizeof right));
    return false;
}
