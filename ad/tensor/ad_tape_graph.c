/* ad_tape_graph.c: a recording as a graph in Graphviz' language: a node for each record and for
 * each tensor that no record has made, an edge for each operand.
 *
 * Invariant: nothing is remembered of a record but which values it has made.
 */
#include "ad_internal.h"

#include "tape_fused_loop.h"
#include "tape_kind.h"
#include "tape_part.h"
#include "tape_statement_layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#if AD_LINE_MACROS
#undef ad_tape_write_graph
#endif

enum { GRAPH_TEXT = 160 };

struct tape_graph_file {
    struct tape *t;
    FILE *file;
    uint32_t *maker;  /* [n_values] records, UINT32_MAX: none */
    bool *drawn;      /* [n_values] a node that is no record */
    uint32_t numbers; /* the record of numbers behind this one, or UINT32_MAX */
};

/* A place as a label has it. */
static void label_place(const struct tape_graph_file *g, uint32_t row)
{
    char where[GRAPH_TEXT] = "?";
    const struct tape_site site = tape_row_site(g->t, row);
    if (site.pc || site.line)
        g->t->describe(site, where, sizeof where);
    for (char *c = where; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '_';
    fputs(where, g->file);
}

static void label_shape(const struct tape_graph_file *g, uint32_t value)
{
    char shape[GRAPH_TEXT];
    kernel_describe(&g->t->entries[value].array, shape, sizeof shape);
    fprintf(g->file, "v%u %s\\n", value, shape);
}

/* Leaves and constants are boxes. */
static void graph_value(const struct tape_graph_file *g, uint32_t value)
{
    const bool leaf = g->t->entries[value].flags & TAPE_LEAF;
    if (g->drawn[value])
        return;
    g->drawn[value] = true;
    fprintf(g->file, "  v%u [shape=box, label=\"%s\\n", value, leaf ? "leaf" : "constant");
    label_shape(g, value);
    label_place(g, g->t->entries[value].row);
    fputs("\"];\n", g->file);
}

/* Bold: the pullback reads it; grey: no gradient flows there. */
static void graph_operands(const struct tape_graph_file *g, uint32_t at, uint32_t first,
                           uint32_t last)
{
    struct tape_record *r = tape_record_at(g->t, at);
    uint64_t needs = 0;
    for (int i = 0; i < r->n_in && i < 64; i++)
        if (g->t->entries[tape_record_in(r)[i]].flags & TAPE_NEEDS_GRADIENT)
            needs |= UINT64_C(1) << i;
    const uint64_t reads = tape_record_kind(r) == &tape_op_kind ? kernel_reads(r->op, needs)
                                                                : tape_record_touches(g->t, r);
    for (int i = 0; i < r->n_in; i++) {
        const uint32_t value = tape_record_in(r)[i], maker = g->maker[value];
        const uint64_t bit = UINT64_C(1) << (i < 64 ? i : 63);
        if (maker == UINT32_MAX)
            graph_value(g, value);
        fprintf(g->file, "  ");
        if (maker == UINT32_MAX)
            fprintf(g->file, "v%u", value);
        else if (maker > first && maker < last)
            fprintf(g->file, "more");
        else
            fprintf(g->file, "r%u", maker);
        fprintf(g->file, " -> r%u%s%s;\n", at, needs & bit ? "" : " [color=grey]",
                reads & bit ? " [penwidth=2]" : "");
    }
}

/* Records of numbers may read whatever was computed before: they are a chain. */
static void graph_numbers(struct tape_graph_file *g, uint32_t at)
{
    struct tape_record *r = tape_record_at(g->t, at);
    if (tape_record_kind(r) == &tape_op_kind ||
        (!tape_record_kind(r)->is_run && r->n_in > 0 && r->n_out > 0))
        return;
    if (g->numbers != UINT32_MAX)
        fprintf(g->file, "  r%u -> r%u [style=dashed];\n", at, g->numbers);
    g->numbers = at;
}

static void graph_record(struct tape_graph_file *g, uint32_t at, uint32_t first, uint32_t last)
{
    struct tape_record *r = tape_record_at(g->t, at);
    if (tape_record_kind(r)->is_run) {
        const struct tape_run *run = tape_run_of(r);
        fprintf(g->file, "  r%u [shape=note, label=\"numbers %u to %u\"];\n", at, run->first,
                run->first + run->n - 1);
    } else {
        fprintf(g->file, "  r%u [label=\"%s\\n", at, tape_record_name(r));
        for (int o = 0; o < r->n_out; o++)
            label_shape(g, tape_record_out(r)[o]);
        label_place(g, r->row);
        fputs("\"];\n", g->file);
        graph_operands(g, at, first, last);
    }
    graph_numbers(g, at);
}

/* From the last record to the first; of more than 2 most the first and the last `most`. */
static void graph_write(struct tape_graph_file *g, int64_t most)
{
    struct tape *t = g->t;
    const uint32_t all = t->n_records;
    const uint32_t edge = most > 0 && most < all / 2 ? (uint32_t)most : all;
    uint32_t first = UINT32_MAX, last = UINT32_MAX, i = all;
    for (uint32_t r = t->last_record; r != UINT32_MAX; r = tape_record_at(t, r)->previous) {
        struct tape_record *record = tape_record_at(t, r);
        i--;
        for (int o = 0; o < record->n_out; o++)
            g->maker[tape_record_out(record)[o]] = r;
        first = edge < all && i == edge - 1 ? r : first;
        last = edge < all && i == all - edge ? r : last;
    }
    fprintf(g->file, "digraph tape {\n  rankdir=BT;\n  node [fontname=monospace];\n");
    if (edge < all)
        fprintf(g->file, "  more [shape=plaintext, label=\"%u records more\"];\n", all - 2 * edge);
    i = all;
    for (uint32_t r = t->last_record; r != UINT32_MAX; r = tape_record_at(t, r)->previous) {
        i--;
        if (edge == all || i < edge || i >= all - edge)
            graph_record(g, r, first, last);
    }
    fputs("}\n", g->file);
}

ad_status ad_tape_write_graph_site(FILE *file, ad_tape tape, int64_t most, unsigned ad_line_)
{
    static const char what[] = "tape_write_graph";
    const struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, what, site);
    if (!t)
        return ad_failed();
    if (!file || most < 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what,
                                    file ? "most is negative" : "file is a null pointer");
    tape_settle(t);
    const size_t n = t->n_values + 1;
    struct tape_graph_file g = {.t = t, .file = file, .numbers = UINT32_MAX};
    g.maker = t->memory->resize(NULL, n * (sizeof *g.maker + sizeof *g.drawn), t->memory->payload);
    if (!g.maker)
        return (ad_status)tape_fail(t, TAPE_ERROR_MEMORY, site, "%s: out of memory", what);
    g.drawn = (bool *)(g.maker + n);
    memset(g.maker, 0xff, n * sizeof *g.maker);
    memset(g.drawn, 0, n * sizeof *g.drawn);
    errno = 0;
    graph_write(&g, most);
    t->memory->release(g.maker, t->memory->payload);
    if (fflush(file) != 0 || ferror(file))
        return ad_fail(AD_ERROR_STATE, site, "%s: %s", what, strerror(errno ? errno : EIO));
    return AD_OK;
}
