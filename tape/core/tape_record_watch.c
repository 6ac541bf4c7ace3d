/* tape_record_watch.c: see tape_record_watch.h. */
#include "tape_record_watch.h"

#include "tape_kind.h"

#include <math.h>

static void watch_tell(struct tape *t, struct tape_watched w)
{
    t->record_watch->tell(t, &w);
}

void tape_watch_record(struct tape *t, struct tape_record *r, int n_out, struct tape_site site)
{
    if (tape_watches(t))
        watch_tell(t, (struct tape_watched){.op = tape_record_name(r),
                                            .site = site,
                                            .n_in = r->n_in,
                                            .n_out = n_out,
                                            .in = tape_record_in(r),
                                            .out = tape_record_out(r)});
}

void tape_watch_numbers(struct tape *t, const char *op, struct tape_site site, uint32_t first,
                        uint32_t n, double value)
{
    if (tape_watches(t))
        watch_tell(t, (struct tape_watched){
                          .op = op, .site = site, .index = first, .n_numbers = n, .value = value});
}

void tape_watch_pullback(struct tape *t, struct tape_record *r)
{
    if (tape_watches(t) && !tape_record_kind(r)->is_run)
        watch_tell(t, (struct tape_watched){.op = tape_record_name(r),
                                            .site = tape_row_site(t, r->row),
                                            .backward = true,
                                            .n_in = r->n_in,
                                            .n_out = r->n_out,
                                            .in = tape_record_in(r),
                                            .out = tape_record_out(r)});
}

void tape_watch_statement_pullback(struct tape *t, struct tape_site site, uint32_t index,
                                   double adjoint)
{
    if (tape_watches(t))
        watch_tell(t, (struct tape_watched){.op = "statement",
                                            .site = site,
                                            .backward = true,
                                            .index = index,
                                            .n_numbers = 1,
                                            .value = (double)NAN,
                                            .adjoint = adjoint});
}

void tape_watch_loop_pullback(struct tape *t, const char *op, struct tape_site site)
{
    if (tape_watches(t))
        watch_tell(t, (struct tape_watched){.op = op, .site = site, .backward = true});
}

static void record_watch_attach(struct tape *t, void *state)
{
    t->record_watch = state;
}

const struct tape_part tape_record_watch_part = {.bytes = sizeof(struct tape_record_watch),
                                                 .attach = record_watch_attach};
