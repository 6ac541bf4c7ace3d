/* ad_preaccumulate.c: sections of statements: begun, ended, their outputs named and replaced.
 *
 * Outputs lie in a row or apart: they are reached by a function of their number.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"

#include "tape_call.h"
#include "tape_poison.h"
#include "tape_preaccumulate.h"

/* Either y[m], or pointers to them. */
struct outputs {
    int64_t m;
    ad_real *y;
    ad_real *const *each;
};

static ad_real *output(const struct outputs *o, int64_t i)
{
    return o->each ? o->each[i] : &o->y[i];
}

ad_status ad_preaccumulate_begin_site(ad_tape tape, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "preaccumulate_begin", site);
    if (!t)
        return ad_failed();
    if (t->error.code != TAPE_OK)
        return (ad_status)t->error.code;
    if (!t->statements->cursor)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "preaccumulate_begin: the thread does not record on this tape");
    if (t->statements->calling)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "preaccumulate_begin: a callback of the tape recorded on runs");
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "preaccumulate_begin", site);
    return (ad_status)tape_section_begin(t, site);
}

static ad_status check(struct tape *t, const struct outputs *o, struct tape_site site)
{
    char at[AD_DROPPED_TEXT];
    if (t->sections->n == 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "preaccumulate_end: no section is recorded: none was begun, or "
                                    "a reset or a rewind%s has dropped it; the call is",
                                    ad_dropped_at(t, at, sizeof at));
    if (o->m < 0 || (o->m > 0 && !o->y && !o->each))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "preaccumulate_end: %s",
                                    o->m < 0 ? "m is negative" : "y is a null pointer");
    for (int64_t i = 0; i < o->m; i++) {
        const ad_real *y = output(o, i);
        if (!y)
            return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                        "preaccumulate_end: y[%lld] is a null pointer",
                                        (long long)i);
        if ((y->index | y->tag) != 0 && !tape_statement_holds(t, y->index, y->tag))
            return (ad_status)tape_statement_refuse(t, "preaccumulate_end", "y", i, y->index,
                                                    y->tag, site);
    }
    return AD_OK;
}

static ad_status end(ad_tape tape, const struct outputs *o, ad_preaccumulated *saved,
                     struct tape_site site)
{
    if (saved)
        *saved = (ad_preaccumulated){0};
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "preaccumulate_end", site);
    if (!t)
        return ad_failed();
    if (t->statements->calling)
        return (ad_status)tape_fail(t, TAPE_ERROR_STATE, site,
                                    "preaccumulate_end: a callback of the tape recorded on runs");
    if (t->calls.innermost)
        return (ad_status)tape_call_refuse(t, "preaccumulate_end", site);
    const ad_status status =
        t->error.code != TAPE_OK ? (ad_status)t->error.code : check(t, o, site);
    if (status != AD_OK) {
        if (t->sections->n > 0)
            tape_section_leave(t);
        return status;
    }
    const uint32_t first = tape_cursor_next(&t->sections->open[t->sections->n - 1].from.rest);
    uint32_t *index = tape_section_outputs(t, o->m, site);
    for (int64_t i = 0; i < o->m && index; i++)
        index[i] = output(o, i)->index;
    struct tape_section_report r;
    tape_section_end(t, o->m, index, site, &r);
    for (int64_t i = 0; i < o->m; i++) {
        ad_real *y = output(o, i);
        if (y->index < first)
            continue;
        if (index && !r.kept)
            y->index = index[i];
        y->tag = (uint32_t)(t->statements->rest.result >> 32);
    }
    tape_section_outputs_free(t);
    if (saved)
        *saved = (ad_preaccumulated){.statements_before = r.statements[0],
                                     .statements_after = r.statements[1],
                                     .bytes_before = r.bytes[0],
                                     .bytes_after = r.bytes[1],
                                     .jacobian_bytes = r.jacobian_bytes,
                                     .inputs = r.inputs,
                                     .replaced = !r.kept,
                                     .kept = r.kept};
    return (ad_status)t->error.code;
}

ad_status ad_preaccumulate_end_site(ad_tape tape, int64_t m, ad_real *y, ad_preaccumulated *saved,
                                    unsigned ad_line_)
{
    return end(tape, &(struct outputs){.m = m, .y = y}, saved, AD_HERE);
}

ad_status ad_preaccumulate_end_each_site(ad_tape tape, int64_t m, ad_real *const *y,
                                         ad_preaccumulated *saved, unsigned ad_line_)
{
    return end(tape, &(struct outputs){.m = m, .each = y}, saved, AD_HERE);
}
