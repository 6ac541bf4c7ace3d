/* ad_tape_print.c: a recording as text: its records in order, beside what their pullbacks do.
 *
 * Invariant: no line but one that names a place has more than WIDTH characters.
 */
#include "ad_internal.h"

#include "tape_fused_loop.h"
#include "tape_kind.h"
#include "tape_part.h"
#include "tape_statement_layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if AD_LINE_MACROS
#undef ad_tape_print
#endif

enum { WIDTH = 80, BESIDE = 40, NAMES = 3, SITES = 32, SITE_TEXT = 160 };

struct tape_print {
    struct tape *t;
    FILE *file;
    char where[SITE_TEXT]; /* the heading that the records stand under */
    bool failed;
};

/* Statements of one line in a run, or a fused loop. */
struct print_numbers {
    struct tape_site site;
    const char *name;
    uint64_t n, operands, bytes;
    uint32_t first, last; /* indices of results */
};

/* What does not fit ends in dots. */
__attribute__((format(printf, 3, 4))) static void line_write(char *text, size_t size,
                                                             const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, size, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= size)
        memcpy(text + size - 4, "...", 4);
}

static void print_heading(struct tape_print *p, struct tape_site site)
{
    char where[SITE_TEXT] = "?";
    if (site.pc || site.line)
        p->t->describe(site, where, sizeof where);
    if (strcmp(where, p->where) == 0)
        return;
    memcpy(p->where, where, sizeof where);
    p->failed = fprintf(p->file, "%s\n", where) < 0 || p->failed;
}

/* Forward to the left, backward to the right, or below where both are too long. */
static void print_beside(struct tape_print *p, const char *forward, const char *backward)
{
    const bool below = strlen(forward) + 2 >= BESIDE;
    int n = below ? fprintf(p->file, "  %s\n%*s%s\n", forward, 4, "", backward)
                  : fprintf(p->file, "  %-*s%s\n", BESIDE - 2, forward, backward);
    p->failed = n < 0 || p->failed;
}

/* "v1, v2, ... of 7": the values of a list whose bit in `of` is set. */
static void names_write(const uint32_t *list, int n, uint64_t of, char *text, size_t size)
{
    int shown = 0, all = 0;
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        if (i < 64 && !(of >> i & 1))
            continue;
        if (++all <= NAMES && at < size) {
            at += (size_t)snprintf(text + at, size - at, "%sv%u", shown ? ", " : "", list[i]);
            shown++;
        }
    }
    if (all > shown && at < size)
        snprintf(text + at, size - at, ", ... of %d", all);
}

static uint64_t list_bytes(const struct tape *t, const uint32_t *list, int n, uint64_t of)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        bool before = false;
        for (int k = 0; k < i; k++)
            before = before || ((k >= 64 || of >> k & 1) && list[k] == list[i]);
        if ((i >= 64 || of >> i & 1) && !before)
            bytes += tape_value_bytes(&t->entries[list[i]]);
    }
    return bytes;
}

static uint64_t operands_needing(const struct tape *t, struct tape_record *r)
{
    uint64_t needs = 0;
    for (int i = 0; i < r->n_in && i < 64; i++)
        if (t->entries[tape_record_in(r)[i]].flags & TAPE_NEEDS_GRADIENT)
            needs |= UINT64_C(1) << i;
    return needs;
}

/* ", 12 flops" of an op's forward, by its shapes; others do not say. */
static void flops_write(struct tape *t, struct tape_record *r, char *text, size_t size)
{
    kernel_ref in[TAPE_MAX_IN];
    struct kernel_array *out[KERNEL_MAX_OUT];
    if (tape_record_kind(r) != &tape_op_kind) {
        snprintf(text, size, ", - flops");
        return;
    }
    for (int i = 0; i < r->n_in; i++)
        in[i] = &t->entries[tape_record_in(r)[i]].array;
    for (int o = 0; o < r->n_out; o++)
        out[o] = &t->entries[tape_record_out(r)[o]].array;
    const struct kernel_call call = {.op = r->op,
                                     .in = in,
                                     .out = out,
                                     .attr = tape_record_attr(r),
                                     .n_in = r->n_in,
                                     .n_out = r->n_out,
                                     .n_attr = r->n_attr};
    snprintf(text, size, ", %llu flops", (unsigned long long)kernel_cost_of(&call).flops);
}

static void print_tensors(struct tape_print *p, struct tape_record *r)
{
    struct tape *t = p->t;
    char operands[64], to[64], reads[64], shape[40], flops[32], forward[WIDTH - 1],
        backward[WIDTH - 3];
    const uint64_t needs = operands_needing(t, r);
    const uint64_t in = tape_record_kind(r) == &tape_op_kind ? kernel_reads(r->op, needs)
                                                             : tape_record_touches(t, r);
    const uint64_t out = tape_record_saves_out(r);
    const uint64_t bytes = list_bytes(t, tape_record_in(r), r->n_in, in) +
                           list_bytes(t, tape_record_out(r), r->n_out, out);
    names_write(tape_record_in(r), r->n_in, UINT64_MAX, operands, sizeof operands);
    names_write(tape_record_in(r), r->n_in, needs, to, sizeof to);
    names_write(tape_record_in(r), r->n_in, in, reads, sizeof reads);
    flops_write(t, r, flops, sizeof flops);
    if (r->n_out > 0) {
        kernel_describe(&t->entries[tape_record_out(r)[0]].array, shape, sizeof shape);
        line_write(forward, sizeof forward, "v%u = %.24s(%s) %s", tape_record_out(r)[0],
                   tape_record_name(r), operands, shape);
    } else {
        line_write(forward, sizeof forward, "numbers = %.24s(%s)", tape_record_name(r), operands);
    }
    line_write(backward, sizeof backward, "-> %s; %llu bytes%s", to[0] ? to : "numbers",
               (unsigned long long)bytes, flops);
    print_heading(p, tape_row_site(t, r->row));
    print_beside(p, forward, backward);
    if (bytes > 0) {
        line_write(backward, sizeof backward, "   reads %s%s%s", reads, reads[0] && out ? ", " : "",
                   out ? "its result" : "");
        print_beside(p, "", backward);
    }
}

/* ---- numbers ---- */

static void numbers_add(struct print_numbers *lines, int *n, const struct print_numbers *one)
{
    for (int i = 0; i < *n; i++)
        if (lines[i].site.pc == one->site.pc && lines[i].name == one->name) {
            lines[i].n += one->n;
            lines[i].operands += one->operands;
            lines[i].bytes += one->bytes;
            lines[i].first = one->first; /* the walk goes back in time */
            return;
        }
    if (*n < SITES) {
        lines[(*n)++] = *one;
        return;
    }
    struct print_numbers *rest = &lines[SITES - 1];
    rest->site = (struct tape_site){0, 0};
    rest->name = "statements of more lines";
    rest->n += one->n;
    rest->operands += one->operands;
    rest->bytes += one->bytes;
    rest->first = one->first;
}

static void print_run(struct tape_print *p, const struct tape_run *run)
{
    struct print_numbers lines[SITES];
    char forward[WIDTH - 1], backward[WIDTH - 3];
    int n = 0;
    struct tape_run_part part = tape_run_last(run);
    do {
        uint32_t result = part.statements.first + part.statements.n;
        for (const uint32_t *w = part.statements.word_end, *next; w < part.statements.word_begin;
             w = next) {
            const struct tape_operands o = tape_statement_operands(w);
            next = o.index + o.n;
            result--;
            numbers_add(lines, &n,
                        &(struct print_numbers){.site = {tape_statement_site(w), 0},
                                                .name = "statement",
                                                .n = 1,
                                                .operands = o.n,
                                                .bytes = (uint64_t)(next - w) * sizeof *w +
                                                         o.general * sizeof(double),
                                                .first = result,
                                                .last = result});
        }
        const struct tape_fused_loop *s = part.fused_loop;
        if (s)
            numbers_add(
                lines, &n,
                &(struct print_numbers){.site = {s->site, tape_fused_loop_line(s)},
                                        .name = tape_fused_loop_name(s, run->partial_begin + s->at),
                                        .n = 1,
                                        .operands = tape_fused_loop_n_in(s),
                                        .bytes = tape_fused_loop_bytes(s),
                                        .first = s->first,
                                        .last = s->first + s->m - 1});
    } while (tape_run_previous(run, &part));
    while (n-- > 0) {
        struct print_numbers *l = &lines[n];
        if (l->site.pc)
            l->site.pc = p->t->locate((uint32_t)l->site.pc, run->near);
        print_heading(p, l->site);
        line_write(forward, sizeof forward, "%.24s x %llu: numbers %u to %u", l->name,
                   (unsigned long long)l->n, l->first, l->last);
        line_write(backward, sizeof backward, "-> %llu operands; %llu bytes, - flops",
                   (unsigned long long)l->operands, (unsigned long long)l->bytes);
        print_beside(p, forward, backward);
    }
}

/* ---- the whole ---- */

static void print_records(struct tape_print *p, const uint32_t *at, uint32_t n, uint32_t left_out)
{
    for (uint32_t i = 0; i < n; i++) {
        struct tape_record *r = tape_record_at(p->t, at[i]);
        if (i == n / 2 && left_out > 0) {
            p->where[0] = 0;
            p->failed = fprintf(p->file, "... %u records more ...\n", left_out) < 0 || p->failed;
        }
        if (tape_record_kind(r)->is_run)
            print_run(p, tape_run_of(r));
        else
            print_tensors(p, r);
    }
}

ad_status ad_tape_print_site(FILE *file, ad_tape tape, int64_t most, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, "tape_print", site);
    uint64_t statements, bytes;
    if (!t)
        return ad_failed();
    if (!file || most < 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "tape_print: %s",
                                    file ? "most is negative" : "file is a null pointer");
    tape_settle(t);
    const uint32_t all = t->n_records;
    const uint32_t edge = most > 0 && most < all / 2 ? (uint32_t)most : 0;
    const uint32_t n = edge ? 2 * edge : all;
    uint32_t *at = t->memory->resize(NULL, ((size_t)n + 1) * sizeof *at, t->memory->payload);
    if (!at)
        return (ad_status)tape_fail(t, TAPE_ERROR_MEMORY, site, "tape_print: out of memory");
    uint32_t i = all;
    for (uint32_t r = t->last_record; r != UINT32_MAX; r = tape_record_at(t, r)->previous) {
        i--;
        if (!edge || i < edge)
            at[i] = r;
        else if (i >= all - edge)
            at[i - (all - n)] = r;
    }
    struct tape_print p = {.t = t, .file = file};
    tape_statement_count(t, &statements, &bytes);
    p.failed = fprintf(file, "%u values, %u records, %llu statements\n", t->n_values - 1, all,
                       (unsigned long long)statements) < 0;
    print_records(&p, at, n, all - n);
    t->memory->release(at, t->memory->payload);
    if (p.failed)
        return ad_fail(AD_ERROR_STATE, site, "tape_print: %s", strerror(errno));
    return AD_OK;
}
