/* tape_statement_tag.c: tags, which tell what is recorded from what was there under the same
 * indices.
 *
 * Invariant: tags[] is ordered by index; no two that values on the tape have are the same.
 */
#include "tape_statement.h"

#include "tape_bridge.h"
#include "tape_fork.h"
#include "tape_poison.h"
#include "tape_preaccumulate.h"
bool tape_statement_tagged(const struct tape *t, uint32_t tag, uint32_t *first, uint32_t *end)
{
    const struct tape_statements *s = t->statements;
    *end = tape_statement_next(t);
    for (uint32_t k = s->n_tags; k > 0; *end = *first) {
        *first = s->tags[--k].first;
        if (s->tags[k].tag == tag)
            return true;
    }
    return false;
}

bool tape_statement_holds(const struct tape *t, uint32_t index, uint32_t tag)
{
    uint32_t first, end;
    return tape_statement_tagged(t, tag, &first, &end) && index >= first && index < end;
}

enum tape_status tape_statement_refuse(struct tape *t, const char *what, const char *name,
                                       int64_t i, uint32_t index, uint32_t tag,
                                       struct tape_site site)
{
    if (!tape_poison_fail(t, index, tag))
        tape_fail(
            t, TAPE_ERROR_HANDLE, site,
            "%s: %s[%lld] is no value of this tape: it was dropped, never set, or is another's",
            what, name, (long long)i);
    return t->error.code;
}

enum tape_status tape_statement_check(struct tape *t, const char *what, const char *name, int64_t n,
                                      const struct tape_real *x, struct tape_site site,
                                      bool *active)
{
    uint32_t tag = 0, from = 1, end = 0; /* those of most are the same */
    for (int64_t i = 0; i < n; i++) {
        if (!x[i].index && !x[i].tag)
            continue;
        *active = true;
        if (x[i].tag != tag && !tape_statement_tagged(t, tag = x[i].tag, &from, &end))
            end = 0;
        if (x[i].index < from || x[i].index >= end)
            return tape_statement_refuse(t, what, name, i, x[i].index, x[i].tag, site);
    }
    return TAPE_OK;
}

uint32_t tape_statement_tag_of(const struct tape *t, uint32_t index)
{
    const struct tape_statements *s = t->statements;
    for (uint32_t k = s->n_tags; k > 0; k--)
        if (s->tags[k - 1].first <= index)
            return s->tags[k - 1].tag;
    return 0;
}

/* Tags since, up to the newest; some 65535 later it begins anew. */
static uint32_t age_of(uint32_t newest, uint32_t tag)
{
    const uint32_t epoch = tag & UINT16_MAX;
    return newest >= epoch ? newest - epoch : newest + UINT16_MAX - epoch;
}

static uint32_t tag_age(const struct tape_statements *s, uint32_t tag)
{
    return age_of(s->epoch, tag);
}

bool tape_statement_kept(const struct tape *t, uint32_t index, uint32_t tag)
{
    const struct tape_statements *s = t->statements;
    uint32_t first, end;
    if (tape_statement_tagged(t, tag, &first, &end))
        return index < end;
    if (tag >> 16 != s->slot || (s->section_tag && tag_age(s, tag) >= tag_age(s, s->section_tag)))
        return false;
    end = 0;
    for (uint32_t k = s->n_tags; k > 0 && s->tags[k - 1].tag >> 16 == s->slot &&
                                 tag_age(s, s->tags[k - 1].tag) < tag_age(s, tag);)
        end = s->tags[--k].first;
    return index < end;
}

static bool reserve_tags(struct tape *t, uint32_t n)
{
    struct tape_statements *s = t->statements;
    struct tape_tag *tags = tape_array_reserve(t->memory, s->tags, n, &s->tags_size, sizeof *tags);
    if (tags)
        s->tags = tags;
    return tags != NULL || n == 0;
}

/* A thread that finds a value with a new tag has been told of the tag before: who asks is plain C,
 * on a processor that keeps stores in order. */
static void tell_tags(const struct tape_statements *s)
{
    if (!s->told_tags)
        return;
    __atomic_store_n(s->told_tags, s->epoch << 16 | s->n_epochs, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
}

bool tape_statement_may_hold(const uint32_t *told, uint32_t tag)
{
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    const uint32_t tags = __atomic_load_n(told, __ATOMIC_RELAXED);
    return age_of(tags >> 16, tag) < (tags & UINT16_MAX);
}

/* The next tag that no value on the tape has: lower halves come again after 65535. */
static uint32_t fresh_tag(struct tape_statements *s)
{
    for (uint32_t tries = 0;; tries++) {
        if (++s->epoch > UINT16_MAX)
            s->epoch = 1;
        s->n_epochs += s->n_epochs < UINT16_MAX;
        const uint32_t tag = s->slot << 16 | s->epoch;
        uint32_t k = 0;
        while (k < s->n_tags && s->tags[k].tag != tag)
            k++;
        if (k == s->n_tags || tries == UINT16_MAX) {
            tell_tags(s);
            return tag;
        }
    }
}

bool tape_statement_reserve_tags(struct tape *t, uint32_t n)
{
    return reserve_tags(t, t->fork->parent_tags + n);
}

void tape_statement_retag(struct tape *t)
{
    struct tape_statements *s = t->statements;
    const uint32_t next = tape_cursor_next(&s->rest), tag = fresh_tag(s);
    /* Tags from before a section are needed at its end. */
    const uint32_t least = t->sections->n ? t->sections->open[t->sections->n - 1].n_tags : 0;
    s->rest.result = (uint64_t)tag << 32 | next;
    while (s->n_tags > least && s->tags[s->n_tags - 1].first >= next)
        s->n_tags--;
    /* Without memory the values before share the new tag's entry and are refused from now on. */
    if (s->n_tags > 0 && !reserve_tags(t, s->n_tags + 1))
        s->n_tags--;
    if (reserve_tags(t, s->n_tags + 1))
        s->tags[s->n_tags++] = (struct tape_tag){next, tag};
    tape_statement_shut(s);
}

void tape_statement_tag_begin(struct tape *t)
{
    struct tape_statements *s = t->statements;
    const uint32_t next = tape_cursor_next(&s->rest), tag = fresh_tag(s);
    s->rest.result = (uint64_t)tag << 32 | next;
    s->tags[s->n_tags++] = (struct tape_tag){next, tag};
    tape_statement_shut(s);
}

void tape_statement_tag_end(struct tape *t, uint32_t n_tags, uint32_t tag)
{
    struct tape_statements *s = t->statements;
    s->section_tag = s->slot << 16 | s->epoch;
    s->n_tags = n_tags;
    s->rest.result = (uint64_t)tag << 32 | tape_cursor_next(&s->rest);
    tape_statement_shut(s);
}

void tape_statement_name(struct tape *t, uint32_t slot, uint32_t *told)
{
    t->statements->slot = slot;
    t->statements->told_tags = told;
    t->statements->epoch = __atomic_load_n(told, __ATOMIC_RELAXED) >> 16;
    tape_statement_retag(t);
}
