/* ad_program_write.c: the adjoint of a program of numbers as a file of C.
 *
 * Each root of the nest (ad_program_nest.h) is a function that computes its values, and one that
 * goes back: its rounds from the last to the first; in each, values that derivatives name are
 * computed again, where they were not stored, and then adjoints from the last step to the first.
 * w[]: stored values, a[]: their adjoints, v and b with a number: variables. w and a are not
 * restrict: gcc 12 -O1 read other values then, where strides run against each other.
 */
#include <tapescope/ad_real.h>

#include "ad_internal.h"
#include "ad_program.h"
#include "ad_program_functions.h"
#include "ad_program_nest.h"
#include "ad_program_text.h"

#include "tape_account.h"
#include "tape_statement.h"
#include "tape_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ATOM_TEXT = 192, ROW_NUMBERS = 6 };

/* What is written of the steps. */
enum write_pass { PASS_VALUES, PASS_FORWARD, PASS_AGAIN, PASS_BACK };

struct program_writer {
    FILE *file;
    const char *name;
    struct tape *t;
    struct program_nest nest;
    const struct nest_wish *wish;
    const double *constant; /* [m] the values of y that are constants */
    enum write_pass pass;
    uint32_t root;
    int indent;
    char place[PLACE_TEXT]; /* that a comment has named last */
};

/* ---- places ---- */

static void line_begin(const struct program_writer *w)
{
    fprintf(w->file, "%*s", 4 * w->indent, "");
}

/* Ends a line, with the step's place if it is another than that of the line before. */
static void line_end(struct program_writer *w, const struct nest_item *s)
{
    char where[PLACE_TEXT];
    place_text(w->t, s->site, where);
    if (strcmp(where, w->place) != 0)
        fprintf(w->file, " /* %s */", where);
    memcpy(w->place, where, sizeof where);
    fputc('\n', w->file);
}

/* ---- operands ---- */

/* " + i * 3": the rounds of the loops that a step is in, each times its stride. */
static size_t terms_text(const struct program_writer *w, const struct nest_item *s,
                         const int64_t *stride, bool first, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (uint32_t d = 0; d < s->depth && n < size; d++) {
        if (stride[d] == 0 || nest_item(&w->nest, s->path[d])->rounds < 2)
            continue;
        const long long by = stride[d] < 0 ? -stride[d] : stride[d];
        const char *sign = stride[d] < 0 ? first ? "-" : " - " : first ? "" : " + ";
        n += (size_t)(by == 1 ? snprintf(text + n, size - n, "%s%c", sign, "ijkl"[d])
                              : snprintf(text + n, size - n, "%s%c * %lld", sign, "ijkl"[d], by));
        first = false;
    }
    return n;
}

static void index_text(const struct program_writer *w, const struct nest_item *s, uint32_t column,
                       const struct nest_address *a, char text[ATOM_TEXT])
{
    char terms[ATOM_TEXT / 2];
    const size_t n = terms_text(w, s, a->stride, !column && a->base == 0, terms, sizeof terms);
    if (column)
        snprintf(text, ATOM_TEXT, "c[%u]%s", column + 1, terms);
    else if (a->base == 0 && n > 0)
        snprintf(text, ATOM_TEXT, "%s", terms);
    else
        snprintf(text, ATOM_TEXT, "%lld%s", (long long)a->base, terms);
}

/* Where the value or adjoint is that an operand reads. */
static void position_text(const struct program_writer *w, char array, const struct nest_item *s,
                          const struct nest_operand *o, char text[ATOM_TEXT])
{
    char index[ATOM_TEXT], first[ATOM_TEXT];
    index_text(w, s, o->turn ? 0 : o->column, &o->address, index);
    if (o->turn) {
        index_text(w, s, o->column, &o->first, first);
        snprintf(text, ATOM_TEXT, "%c[%c ? %.80s : %.80s]", array, "ijkl"[o->turn], index, first);
    } else {
        snprintf(text, ATOM_TEXT, "%c[%.180s]", array, index);
    }
}

/* Where a step's own value or adjoint is. */
static void stored_text(const struct program_writer *w, char array, const struct nest_item *s,
                        char text[ATOM_TEXT])
{
    struct nest_address a = {s->position, {0}};
    char index[ATOM_TEXT];
    for (uint32_t d = 0; d < NEST_DEPTH; d++)
        a.stride[d] = s->hold[d];
    index_text(w, s, 0, &a, index);
    snprintf(text, ATOM_TEXT, "%c[%.180s]", array, index);
}

static void constant_text(const struct program_writer *w, const struct nest_item *s, uint32_t c,
                          char text[ATOM_TEXT])
{
    const struct nest_constant *of = &s->constant[c];
    char number[TEXT_NUMBER], terms[ATOM_TEXT / 2];
    int64_t stride[NEST_DEPTH];
    for (uint32_t d = 0; d < NEST_DEPTH; d++)
        stride[d] = of->stride[d];
    terms_text(w, s, stride, true, terms, sizeof terms);
    if (of->table)
        snprintf(text, ATOM_TEXT, "%s_k%u[%s]", w->name, of->table, terms);
    else
        snprintf(text, ATOM_TEXT, "%s", number_text(of->value, number));
}

/* A step's value: its variable where that is in reach. */
static void value_text(const struct program_writer *w, uint32_t number, char text[ATOM_TEXT])
{
    const struct nest_item *s = nest_item(&w->nest, number);
    const bool near = w->pass == PASS_BACK    ? nest_again(s) && s->depth == 1
                      : w->pass == PASS_AGAIN ? nest_again(s)
                                              : true;
    if (near)
        snprintf(text, ATOM_TEXT, "v%u", number - w->root);
    else
        stored_text(w, 'w', s, text);
}

static void operand_text(const struct program_writer *w, const struct nest_item *s, uint32_t k,
                         char text[ATOM_TEXT])
{
    const struct nest_operand *o = &s->operand[k];
    uint32_t constants = 0;
    if (o->direct)
        value_text(w, o->direct, text);
    else if (o->edge)
        position_text(w, 'w', s, o, text);
    else {
        for (uint32_t q = 0; q < k; q++)
            constants += s->operand[q].edge == 0;
        constant_text(w, s, constants, text);
    }
}

/* A formula with what its words stand for. */
static void formula_write(const struct program_writer *w, uint32_t number, const char *formula)
{
    const struct nest_item *s = nest_item(&w->nest, number);
    char text[ATOM_TEXT];
    for (const char *at = formula; *at;) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.");
        n = n ? n : 1;
        text[0] = 0;
        if (n == 1 && *at >= 'x' && *at <= 'z')
            operand_text(w, s, (uint32_t)(*at - 'x'), text);
        else if (n == 1 && *at == 'v')
            value_text(w, number, text);
        else if (n == strlen("ORDER") && memcmp(at, "ORDER", n) == 0) {
            fputs("(int)", w->file);
            constant_text(w, s, TAPE_STEP_CONSTANTS - 1, text);
        }
        /* The tables have products as a formatter takes them for pointers: "x *y". */
        const bool times = *at == '*' && at > formula && at[-1] == ' ' && at[1] != ' ';
        if (text[0])
            fputs(text, w->file);
        else
            fprintf(w->file, "%.*s%s", (int)n, at, times ? " " : "");
        at += n;
    }
}

/* ---- loops ---- */

static bool item_is_written(const struct nest_item *s, enum write_pass pass)
{
    return pass == PASS_VALUES    ? s->live
           : pass == PASS_FORWARD ? s->forward
           : pass == PASS_AGAIN   ? nest_again(s)
                                  : s->active;
}

/* Whether anything in a loop is. */
static bool loop_has_written(const struct program_nest *n, const struct nest_item *loop,
                             enum write_pass pass)
{
    for (uint32_t k = loop->first; k; k = nest_item(n, k)->next) {
        const struct nest_item *s = nest_item(n, k);
        if (s->rounds ? loop_has_written(n, s, pass) : item_is_written(s, pass))
            return true;
    }
    return false;
}

/* Opens the loop over the rounds of an item, back or not. */
static void loop_open(struct program_writer *w, const struct nest_item *loop, bool back)
{
    const char i = "ijkl"[loop->depth];
    if (loop->rounds < 2)
        return;
    line_begin(w);
    if (loop->n_columns) {
        if (back)
            fprintf(w->file, "for (long s = %u; s-- > 0;) {\n", loop->n_stretches);
        else
            fprintf(w->file, "for (long s = 0; s < %u; s++) {\n", loop->n_stretches);
        w->indent++;
        line_begin(w);
        fprintf(w->file, "const long *const c = %s_c%u[s];\n", w->name, w->root);
        line_begin(w);
        fprintf(w->file, back ? "for (long i = c[1]; i-- > c[0];) {\n"
                              : "for (long i = c[0]; i < c[1]; i++) {\n");
    } else if (back) {
        fprintf(w->file, "for (long %c = %u; %c-- > 0;) {\n", i, loop->rounds, i);
    } else {
        fprintf(w->file, "for (long %c = 0; %c < %u; %c++) {\n", i, i, loop->rounds, i);
    }
    w->indent++;
}

static void loop_close(struct program_writer *w, const struct nest_item *loop)
{
    if (loop->rounds < 2)
        return;
    for (int n = loop->n_columns ? 2 : 1; n > 0; n--) {
        w->indent--;
        line_begin(w);
        fputs("}\n", w->file);
    }
}

/* ---- values ---- */

static void value_write(struct program_writer *w, uint32_t number)
{
    const struct nest_item *s = nest_item(&w->nest, number);
    char text[ATOM_TEXT];
    line_begin(w);
    fprintf(w->file, "const double v%u = ", number - w->root);
    formula_write(w, number, function_text(s->op)->value);
    fputc(';', w->file);
    line_end(w, s);
    if (!s->stored && !(s->spilled && w->pass == PASS_AGAIN))
        return;
    stored_text(w, 'w', s, text);
    line_begin(w);
    fprintf(w->file, "%s = v%u;\n", text, number - w->root);
}

static void values_write(struct program_writer *w, const struct nest_item *loop)
{
    for (uint32_t k = loop->first; k; k = nest_item(&w->nest, k)->next) {
        const struct nest_item *s = nest_item(&w->nest, k);
        if (!s->rounds && item_is_written(s, w->pass)) {
            value_write(w, k);
        } else if (s->rounds && loop_has_written(&w->nest, s, w->pass)) {
            loop_open(w, s, false);
            values_write(w, s);
            loop_close(w, s);
        }
    }
}

/* ---- adjoints ---- */

/* Adds to the adjoint of what operand k reads. */
static void gift_write(struct program_writer *w, uint32_t number, uint32_t k)
{
    const struct nest_item *s = nest_item(&w->nest, number);
    const struct nest_operand *o = &s->operand[k];
    struct nest_item *of = nest_item(&w->nest, o->direct);
    const char *slope = function_text(s->op)->slope[k];
    const bool one = strcmp(slope, "1") == 0, minus = strcmp(slope, "-1") == 0;
    char to[ATOM_TEXT];
    if (o->direct && !of->stored)
        snprintf(to, sizeof to, "b%u", o->direct - w->root);
    else if (o->direct)
        stored_text(w, 'a', of, to);
    else
        position_text(w, 'a', s, o, to);
    const bool declares = o->direct && !of->stored && !of->begun;
    of->begun = of->begun || declares;
    line_begin(w);
    fprintf(w->file, "%s%s %s ", declares ? "double " : "", to,
            declares ? "="
            : minus  ? "-="
                     : "+=");
    if (one || minus) {
        fprintf(w->file, "%sb%u;", minus && declares ? "-" : "", number - w->root);
    } else {
        fprintf(w->file, "scaled(b%u, ", number - w->root);
        formula_write(w, number, slope);
        fputs(");", w->file);
    }
    line_end(w, s);
}

static void adjoint_write(struct program_writer *w, uint32_t number)
{
    const struct nest_item *s = nest_item(&w->nest, number);
    char from[ATOM_TEXT];
    if (s->stored) {
        stored_text(w, 'a', s, from);
        line_begin(w);
        fprintf(w->file, "const double b%u = %s;\n", number - w->root, from);
        if (!s->kept) {
            line_begin(w);
            fprintf(w->file, "%s = 0;\n", from);
        }
    }
    for (uint32_t k = 0; k < TAPE_STEP_OPERANDS; k++)
        if (nest_gives(&w->nest, s, k))
            gift_write(w, number, k);
}

static void adjoints_write(struct program_writer *w, const struct nest_item *loop)
{
    for (uint32_t k = loop->first; k; k = nest_item(&w->nest, k)->next) {
        struct nest_item *s = nest_item(&w->nest, k);
        if (s->rounds || !s->active || s->stored || !s->deep)
            continue;
        line_begin(w);
        fprintf(w->file, "double b%u = 0;\n", k - w->root);
        s->begun = true;
    }
    for (uint32_t k = loop->last; k; k = nest_item(&w->nest, k)->before) {
        const struct nest_item *s = nest_item(&w->nest, k);
        if (!s->rounds && s->active) {
            adjoint_write(w, k);
        } else if (s->rounds && loop_has_written(&w->nest, s, PASS_BACK)) {
            loop_open(w, s, true);
            adjoints_write(w, s);
            loop_close(w, s);
        }
    }
}

/* ---- functions of roots ---- */

static const char root_letter[] = {[PASS_VALUES] = 'f', [PASS_FORWARD] = 'g', [PASS_BACK] = 'b'};

/* What goes forward before the way back is often all there is. */
static bool forward_is_values(const struct program_nest *n, uint32_t root)
{
    for (uint32_t k = root + 1; k < n->items.n && nest_item(n, k)->depth; k++)
        if (!nest_item(n, k)->rounds && nest_item(n, k)->live != nest_item(n, k)->forward)
            return false;
    return true;
}

static bool root_goes_back(const struct program_nest *n, uint32_t root)
{
    return loop_has_written(n, nest_item(n, root), PASS_AGAIN) ||
           loop_has_written(n, nest_item(n, root), PASS_BACK);
}

static void root_begin(struct program_writer *w, const struct nest_item *root, enum write_pass pass)
{
    w->pass = pass;
    w->place[0] = 0;
    fprintf(w->file, "\nstatic void %s_%c%u(double *w%s)\n{\n", w->name, root_letter[pass], w->root,
            pass == PASS_BACK ? ", double *a" : "");
    w->indent = 1;
    if (pass == PASS_BACK)
        fputs("    (void)w, (void)a;\n", w->file);
    loop_open(w, root, pass == PASS_BACK);
}

static void root_end(struct program_writer *w, const struct nest_item *root)
{
    loop_close(w, root);
    fputs("}\n", w->file);
}

static void stretches_write(struct program_writer *w, const struct nest_item *root)
{
    const int64_t *row = (const int64_t *)w->nest.rows.at + root->stretch;
    fprintf(w->file,
            "\n/* Rounds from, to, and where operands are in round 0 of such a stretch. */\n"
            "static const long %s_c%u[][%u] = {\n",
            w->name, w->root, root->n_columns + 2);
    for (uint32_t s = 0; s < root->n_stretches; s++, row += root->n_columns + 2) {
        fputs("    {", w->file);
        for (uint32_t c = 0; c < root->n_columns + 2; c++)
            fprintf(w->file, "%s%lld", c ? ", " : "", (long long)row[c]);
        fputs("},\n", w->file);
    }
    fputs("};\n", w->file);
}

static void root_write(struct program_writer *w, uint32_t number)
{
    const struct nest_item *root = nest_item(&w->nest, number);
    w->root = number;
    if (root->n_columns && loop_has_written(&w->nest, root, PASS_VALUES))
        stretches_write(w, root);
    for (enum write_pass pass = PASS_VALUES; pass <= PASS_FORWARD; pass++) {
        if (!loop_has_written(&w->nest, root, pass) ||
            (pass == PASS_FORWARD && forward_is_values(&w->nest, number)))
            continue;
        root_begin(w, root, pass);
        values_write(w, root);
        root_end(w, root);
    }
    if (!root_goes_back(&w->nest, number))
        return;
    root_begin(w, root, PASS_BACK);
    w->pass = PASS_AGAIN;
    values_write(w, root);
    w->pass = PASS_BACK;
    adjoints_write(w, root);
    root_end(w, root);
}

/* ---- what the program's code asked of values ---- */

static const struct {
    const char *text;
    uint32_t op;
} asked[] = {
    {"is = x < y;", AD_PROGRAM_less_},
    {"is = x <= y;", AD_PROGRAM_less_equal_},
    {"is = x > y;", AD_PROGRAM_greater_},
    {"is = x >= y;", AD_PROGRAM_greater_equal_},
    {"is = x == y;", AD_PROGRAM_equal_},
    {"is = x != y;", AD_PROGRAM_not_equal_},
    {"is = floor(x);", AD_PROGRAM_floor_},
    {"is = ceil(x);", AD_PROGRAM_ceil_},
    {"is = trunc(x);", AD_PROGRAM_trunc_},
    {"is = round(x);", AD_PROGRAM_round_},
    {"is = rint(x);", AD_PROGRAM_rint_},
    {"is = nearbyint(x);", AD_PROGRAM_nearbyint_},
    {"is = logb(x);", AD_PROGRAM_logb_},
    {"is = ilogb(x);", AD_PROGRAM_ilogb_},
    {"is = x;", AD_PROGRAM_read_},
    {"modf(x, &is);", AD_PROGRAM_modf_},
    {"frexp(x, &whole), is = whole;", AD_PROGRAM_frexp_},
    {"remquo(x, y, &whole), is = whole;", AD_PROGRAM_remquo_},
};
enum { ASKED = sizeof asked / sizeof *asked };

/* Questions one after the other that go on evenly. */
struct asked_row {
    struct tape_question first;
    int64_t at[2], by[2];
    uint32_t n;
};

static bool row_takes(struct asked_row *r, const struct tape_question *q, const int64_t at[2])
{
    if (q->op != r->first.op || q->site.pc != r->first.site.pc ||
        q->site.line != r->first.site.line || !number_is(q->answer, r->first.answer))
        return false;
    for (int k = 0; k < 2; k++)
        if ((q->operand[k] == 0) != (r->first.operand[k] == 0) ||
            (q->operand[k] == 0 && !number_is(q->constant[k], r->first.constant[k])) ||
            (r->n > 1 && at[k] - r->at[k] != r->by[k] * r->n))
            return false;
    for (int k = 0; k < 2; k++)
        r->by[k] = (at[k] - r->at[k]) / r->n;
    r->n++;
    return true;
}

static void row_write(const struct program_writer *w, const struct asked_row *r, uint32_t place)
{
    char a[TEXT_NUMBER], b[TEXT_NUMBER], answer[TEXT_NUMBER];
    if (r->n == 0)
        return;
    fprintf(w->file, "    {%u, %u, %u, %lld, %lld, %lld, %lld, %s, %s, %s},\n", r->first.op, place,
            r->n, (long long)r->at[0], (long long)r->by[0], (long long)r->at[1],
            (long long)r->by[1], number_text(r->first.operand[0] ? 0 : r->first.constant[0], a),
            number_text(r->first.operand[1] ? 0 : r->first.constant[1], b),
            number_text(r->first.answer, answer));
}

static bool writer_counts(const struct program_writer *w, const struct tape_question *q)
{
    return w->wish->reads || q->op != AD_PROGRAM_read_;
}

/* The places of rows, or the rows; how many rows there are. */
static uint32_t asked_rows_write(const struct program_writer *w, bool places)
{
    const struct tape_program *p = w->nest.p;
    struct asked_row row = {.n = 0};
    struct tape_site last = {0, 0};
    uint32_t place = UINT32_MAX, rows = 0;
    for (uint32_t k = 0; k < p->n_questions; k++) {
        const struct tape_question *q = &p->question[k];
        int64_t at[2] = {-1, -1};
        if (!writer_counts(w, q))
            continue;
        for (int o = 0; o < 2; o++)
            if (q->operand[o])
                at[o] = nest_position(&w->nest, q->operand[o]);
        if (row.n && row_takes(&row, q, at))
            continue;
        if (!places)
            row_write(w, &row, place);
        if (place == UINT32_MAX || q->site.pc != last.pc || q->site.line != last.line) {
            place++;
            last = q->site;
            if (places) {
                char where[PLACE_TEXT];
                place_text(w->t, q->site, where);
                fprintf(w->file, "    \"%s\",\n", where);
            }
        }
        row = (struct asked_row){*q, {at[0], at[1]}, {0, 0}, 1};
        rows++;
    }
    if (!places)
        row_write(w, &row, place);
    return rows;
}

static bool writer_asks(const struct program_writer *w, uint32_t op)
{
    for (uint32_t k = 0; k < w->nest.p->n_questions; k++)
        if (writer_counts(w, &w->nest.p->question[k]) &&
            (op == AD_PROGRAM_NONE_ || w->nest.p->question[k].op == op))
            return true;
    return false;
}

static void check_write(const struct program_writer *w)
{
    if (!writer_asks(w, AD_PROGRAM_NONE_))
        return;
    fprintf(w->file, "\nstatic const char *const %s_place[] = {\n", w->name);
    asked_rows_write(w, true);
    fprintf(
        w->file,
        "};\n\n/* What was asked n times: operands x and y, at positions with strides, or (-1)\n"
        " * constants a and b; and the answer. */\n"
        "static const struct {\n    int op, place;\n    long n, x, by_x, y, by_y;\n"
        "    double a, b, answer;\n} %s_asked[] = {\n",
        w->name);
    const uint32_t rows = asked_rows_write(w, false);
    fprintf(
        w->file,
        "};\n\nstatic const char *%s_check(const double *w)\n{\n"
        "    for (long q = 0; q < %u; q++)\n        for (long i = 0; i < %s_asked[q].n; i++) {\n"
        "            const long at = %s_asked[q].x, to = %s_asked[q].y;\n"
        "            const double x = at < 0 ? %s_asked[q].a : w[at + i * %s_asked[q].by_x],\n"
        "                         y = to < 0 ? %s_asked[q].b : w[to + i * %s_asked[q].by_y];\n"
        "            double is = 0;\n            int whole = 0;\n"
        "            (void)x, (void)y, (void)whole;\n            switch (%s_asked[q].op) {\n",
        w->name, rows, w->name, w->name, w->name, w->name, w->name, w->name, w->name, w->name);
    for (int k = 0; k < ASKED; k++)
        if (writer_asks(w, asked[k].op))
            fprintf(w->file, "            case %u:\n                %s\n                break;\n",
                    asked[k].op, asked[k].text);
    fprintf(w->file,
            "            }\n            const double was = %s_asked[q].answer;\n"
            "            if (is != was && !(is != is && was != was))\n"
            "                return %s_place[%s_asked[q].place];\n        }\n"
            "    return NULL;\n}\n",
            w->name, w->name, w->name);
}

/* ---- the file ---- */

static bool has_formula(const struct program_nest *n, const char *word)
{
    for (uint32_t k = 1; k < n->items.n; k++) {
        const struct nest_item *s = nest_item(n, k);
        const struct function_text *text = function_text(s->op);
        if (s->rounds)
            continue;
        if (s->live && text_has(text->value, word))
            return true;
        for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && s->active; q++)
            if (nest_gives(n, s, q) && text_has(text->slope[q], word))
                return true;
    }
    return false;
}

static bool has_scaled(const struct program_nest *n)
{
    for (uint32_t k = 1; k < n->items.n; k++) {
        const struct nest_item *s = nest_item(n, k);
        for (uint32_t q = 0; q < TAPE_STEP_OPERANDS && s->active; q++)
            if (nest_gives(n, s, q) && strcmp(function_text(s->op)->slope[q], "1") != 0 &&
                strcmp(function_text(s->op)->slope[q], "-1") != 0)
                return true;
    }
    return false;
}

static void helpers_write(const struct program_writer *w)
{
    for (unsigned k = 0; k < program_helpers_n; k++) {
        bool needed = has_formula(&w->nest, program_helpers[k].name);
        /* The slope of a Bessel function calls it. */
        needed = needed || (strcmp(program_helpers[k].name, "ad_bessel_") == 0 &&
                            has_formula(&w->nest, "ad_bessel_slope_"));
        if (!needed)
            continue;
        fputc('\n', w->file);
        for (const char *const *line = program_helpers[k].line; *line; line++)
            fprintf(w->file, "%s\n", *line);
    }
    if (has_scaled(&w->nest))
        fputs("\n/* What is 0 gives 0, whatever it is multiplied with. */\n"
              "static inline double scaled(double b, double d)\n{\n"
              "    return b == 0 ? 0 : b * d;\n}\n",
              w->file);
}

static void head_write(const struct program_writer *w)
{
    const struct program_nest *n = &w->nest;
    const char *name = w->name;
    fprintf(
        w->file,
        "/* %s: %u steps that Tapescope has recorded (ad_tape_write_c), as C.\n *\n"
        " * %s: results y[%s_results] of x[%s_inputs].\n"
        " * %s_adjoint: x_bar[%s_inputs] = y_bar[%s_results]^T (dy/dx).\n"
        " * Both take work[%s_work], any numbers. They return NULL, or the source line where the\n"
        " * program asked something of a value that has another answer for this x; then the\n"
        " * results are NaN, since it would have gone another way.\n */\n",
        name, n->p->next - n->p->first, name, name, name, name, name, name, name);
    if (has_formula(n, "ad_bessel_") || has_formula(n, "ad_bessel_slope_"))
        fputs("#define _DEFAULT_SOURCE 1 /* jn, yn */\n", w->file);
    fputs("#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n", w->file);
    fprintf(w->file, "\nenum { %s_inputs = %u, %s_results = %lld, %s_work = %u };\n", name,
            n->n_inputs, name, (long long)w->wish->m, name, 2 * n->n_positions + n->n_spilled + 1);
    fprintf(w->file,
            "const char *%s(const double *x, double *y, double *work);\n"
            "const char *%s_adjoint(const double *x, const double *y_bar, double *x_bar,"
            " double *work);\n",
            name, name);
}

static void numbers_write(const struct program_writer *w, const char *suffix, uint32_t number,
                          const double *value, uint32_t n)
{
    char text[TEXT_NUMBER];
    fprintf(w->file, "\nstatic const double %s_%s%.0u[] = {", w->name, suffix, number);
    for (uint32_t i = 0; i < n; i++)
        fprintf(w->file, "%s%s,", i % ROW_NUMBERS ? " " : "\n    ", number_text(value[i], text));
    fputs("\n};\n", w->file);
}

static bool table_is_read(const struct program_nest *n, uint32_t table)
{
    for (uint32_t k = 1; k < n->items.n; k++)
        for (uint32_t c = 0; c < TAPE_STEP_CONSTANTS; c++)
            if (nest_item(n, k)->constant[c].table == table)
                return true;
    return false;
}

static void tables_write(const struct program_writer *w)
{
    const struct nest_table *table = w->nest.tables.at;
    for (uint32_t k = 0; k < w->nest.tables.n; k++)
        if (table_is_read(&w->nest, k + 1))
            numbers_write(w, "k", k + 1, table[k].value, table[k].n);
}

/* Inputs, and leaves that are none: as assignments. */
static void begin_write(const struct program_writer *w)
{
    const struct program_nest *n = &w->nest;
    char text[TEXT_NUMBER];
    fprintf(w->file,
            "\nstatic void %s_begin(const double *x, double *w)\n{\n"
            "    (void)x, (void)w;\n"
            "    for (long i = 0; i < %s_inputs; i++)\n        w[i] = x[i];\n",
            w->name, w->name);
    for (uint32_t i = 0; i < n->n_leaf; i++)
        if (n->leaf[i] != UINT32_MAX && n->leaf[i] >= n->n_inputs)
            fprintf(w->file, "    w[%u] = %s;\n", n->leaf[i],
                    number_text(tape_program_step(n->p, i)->value, text));
    fputs("}\n", w->file);
}

static void fail_write(const struct program_writer *w, const char *array, const char *count)
{
    if (!writer_asks(w, AD_PROGRAM_NONE_)) {
        fputs("    return NULL;\n}\n", w->file);
        return;
    }
    fprintf(w->file,
            "    const char *const turned = %s_check(work);\n"
            "    for (long i = 0; turned && i < %s_%s; i++)\n        %s[i] = NAN;\n"
            "    return turned;\n}\n",
            w->name, w->name, count, array);
}

/* Where y[i] is, or UINT32_MAX: it is a number that depends on nothing. */
static uint32_t result_position(const struct program_writer *w, int64_t i)
{
    return w->wish->y[i] ? nest_position(&w->nest, w->wish->y[i]) : UINT32_MAX;
}

static void values_main_write(const struct program_writer *w)
{
    const struct program_nest *n = &w->nest;
    const uint32_t *root = n->roots.at;
    char text[TEXT_NUMBER];
    fprintf(w->file,
            "\nconst char *%s(const double *x, double *y, double *work)\n{\n    (void)y;\n"
            "    %s_begin(x, work);\n",
            w->name, w->name);
    for (uint32_t k = 0; k < n->roots.n; k++)
        if (loop_has_written(n, nest_item(n, root[k]), PASS_VALUES))
            fprintf(w->file, "    %s_f%u(work);\n", w->name, root[k]);
    for (int64_t i = 0; i < w->wish->m; i++) {
        const uint32_t position = result_position(w, i);
        if (position == UINT32_MAX)
            fprintf(w->file, "    y[%lld] = %s;\n", (long long)i,
                    number_text(w->constant[i], text));
        else
            fprintf(w->file, "    y[%lld] = work[%u];\n", (long long)i, position);
    }
    fail_write(w, "y", "results");
}

static void adjoint_main_write(const struct program_writer *w)
{
    const struct program_nest *n = &w->nest;
    const uint32_t *root = n->roots.at;
    fprintf(w->file,
            "\nconst char *%s_adjoint(const double *x, const double *y_bar, double *x_bar,"
            " double *work)\n{\n    double *const a = work + %u;\n    (void)y_bar, (void)x_bar;\n"
            "    %s_begin(x, work);\n    for (long i = 0; i < %u; i++)\n        a[i] = 0;\n",
            w->name, n->n_positions + n->n_spilled, w->name, n->n_positions);
    for (uint32_t k = 0; k < n->roots.n; k++)
        if (loop_has_written(n, nest_item(n, root[k]), PASS_FORWARD))
            fprintf(w->file, "    %s_%c%u(work);\n", w->name,
                    root_letter[forward_is_values(n, root[k]) ? PASS_VALUES : PASS_FORWARD],
                    root[k]);
    for (int64_t i = 0; i < w->wish->m; i++)
        if (result_position(w, i) != UINT32_MAX)
            fprintf(w->file, "    a[%u] += y_bar[%lld];\n", result_position(w, i), (long long)i);
    for (uint32_t k = n->roots.n; k-- > 0;)
        if (root_goes_back(n, root[k]))
            fprintf(w->file, "    %s_b%u(work, a);\n", w->name, root[k]);
    fprintf(w->file, "    for (long i = 0; i < %s_inputs; i++)\n        x_bar[i] = a[i];\n",
            w->name);
    fail_write(w, "x_bar", "inputs");
}

static void file_write(struct program_writer *w)
{
    head_write(w);
    helpers_write(w);
    tables_write(w);
    begin_write(w);
    for (uint32_t k = 0; k < w->nest.roots.n; k++)
        root_write(w, ((const uint32_t *)w->nest.roots.at)[k]);
    check_write(w);
    values_main_write(w);
    adjoint_main_write(w);
}

/* ---- the call ---- */

/* Indices of y[m], of x[n], and values of y[m], in one buffer. */
struct write_room {
    uint32_t *y, *x;
    double *constant;
};

static bool room_make(struct tape *t, struct write_room *r, int64_t m, const ad_real *y, int64_t n,
                      const ad_real *x)
{
    const size_t numbers = (size_t)m + (size_t)n;
    r->constant = t->memory->resize(
        NULL, (size_t)m * sizeof *r->constant + (numbers + 1) * sizeof *r->y, t->memory->payload);
    if (!r->constant)
        return false;
    r->y = (uint32_t *)(void *)(r->constant + m);
    r->x = r->y + m;
    for (int64_t i = 0; i < m; i++) {
        r->y[i] = y[i].index;
        r->constant[i] = y[i].value;
    }
    for (int64_t i = 0; i < n; i++)
        r->x[i] = x[i].index;
    return true;
}

static ad_status write_run(struct program_writer *w, struct tape_site site)
{
    static const char what[] = "tape_write_c";
    struct tape *t = w->t;
    const bool made = nest_make(&w->nest, t, w->wish);
    if (w->nest.failed)
        return (ad_status)tape_fail_memory(t, site, what);
    if (w->nest.twice >= 0)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: x[%lld] is named twice",
                                    what, (long long)w->nest.twice);
    if (!made)
        return (ad_status)tape_fail(t, TAPE_ERROR_LIMIT, site,
                                    "%s: the program has too many values for one array", what);
    errno = 0;
    file_write(w);
    if (fflush(w->file) != 0 || ferror(w->file))
        return ad_fail(AD_ERROR_STATE, site, "%s: %s", what, strerror(errno ? errno : EIO));
    return AD_OK;
}

ad_status ad_tape_write_c_site(FILE *file, ad_tape tape, const char *name, int64_t m,
                               const ad_real *y, int64_t n, const ad_real *x, int flags,
                               unsigned ad_line_)
{
    static const char what[] = "tape_write_c";
    const struct tape_site site = AD_HERE;
    ad_status status;
    struct tape *t = ad_program_enter(tape, what, site, &status);
    if (!t)
        return status;
    if (!file || !name || !name_is_identifier(name))
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", what,
                                    !file   ? "file is a null pointer"
                                    : !name ? "name is a null pointer"
                                            : "name is no identifier of at most 63 letters");
    if (m < 0 || n < 0 || (m > 0 && !y) || (n > 0 && !x) || (flags & ~AD_REPLAY_READS))
        return ad_program_arguments(t, what, site);
    status = ad_program_numbers(t, what, true, n, x, site);
    if (status == AD_OK)
        status = ad_program_numbers(t, what, false, m, y, site);
    if (status != AD_OK)
        return status;
    struct write_room room;
    tape_observed(t);
    if (!ad_program_ready(t) || !room_make(t, &room, m, y, n, x))
        return (ad_status)tape_fail_memory(t, site, what);
    const struct nest_wish wish = {m, n, room.y, room.x, !(flags & AD_REPLAY_READS)};
    struct program_writer w = {
        .file = file, .name = name, .t = t, .wish = &wish, .constant = room.constant};
    status = write_run(&w, site);
    nest_drop(&w.nest);
    t->memory->release(room.constant, t->memory->payload);
    return status;
}
