/* ad_tensor_write.c: see ad_tensor_write.h. The file calls kernels.
 *
 *
 * The calls are those of ad_tensor_calls.h, each a statement, or a loop where a stretch repeats. x:
 * inputs, s: seeds, g: gradients of inputs, w: the workspace, in which all else is.
 */
#include <tapescope/ad_tensor_program.h>

#include "ad_internal.h"
#include "ad_program_text.h"
#include "ad_tensor_calls.h"
#include "ad_tensor_write.h"

#include "tape_account.h"
#include "tape_value.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#if AD_LINE_MACROS
#undef ad_tensor_write_c
#endif

enum {
    PART_CALLS = 100,       /* of a function: compilers take long for long ones */
    CALLS_MOST = 1 << 16,   /* written */
    NUMBERS_MOST = 1 << 20, /* written */
    NUMBERS_OF_A_ROW = 6,
    WORK_SPARE = 8 /* doubles, so that the workspace can begin at a line of the cache */
};

static const char write_op[] = "tensor_write_c";
static const char *const number_type[CALL_DTYPES] = {"float", "double", "int64_t"};
static const char *const number_suffix[CALL_DTYPES] = {"f32", "f64", "i64"};
static const char *const arguments = "const void *const *x, const void *const *s, void *const *g, "
                                     "char *w";

struct tensor_writer {
    FILE *file;
    const char *name;
    struct tape *t;
    struct tensor_calls calls;
    int parts[2];          /* functions that go forward, and back */
    struct tape_site site; /* that a comment has named last */
    const char *recorded;
    const struct call_place *next; /* of the round after, or NULL */
};

/* ---- layouts, calls, numbers ---- */

static void integer_write(FILE *file, int64_t x)
{
    if (x == INT64_MIN)
        fputs("(-INT64_C(9223372036854775807) - 1)", file);
    else if (x > INT_MAX || x < -INT_MAX)
        fprintf(file, "INT64_C(%" PRId64 ")", x);
    else
        fprintf(file, "%" PRId64, x);
}

static void integers_write(FILE *file, const int64_t *x, int n)
{
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "{", file);
        integer_write(file, x[i]);
    }
    fputs(n ? "}" : "{0}", file);
}

/* Of results that are moved as they are, the file needs no layout. */
static bool result_is_gathered(const struct tensor_writer *w, uint32_t k)
{
    const struct ad_kernel_array *a = calls_layout(&w->calls, w->calls.results + k);
    return !a->dense && a->size > 0;
}

static bool layout_is_read(const struct tensor_writer *w, uint32_t layout)
{
    const struct tensor_calls *c = &w->calls;
    const uint32_t *id = c->layout_ids.at;
    bool is = false;
    for (uint32_t k = 0; k < c->layout_ids.n && !is; k++)
        is = id[k] == layout &&
             (k < c->results || k >= c->results + c->m || result_is_gathered(w, k - c->results));
    return is;
}

static void layouts_write(const struct tensor_writer *w)
{
    const ad_kernel_array *a = w->calls.layouts.at;
    if (w->calls.layouts.n > 0)
        fputs("\n/* Layouts: elements, dense, dtype, axes, extents, strides. */\n", w->file);
    for (uint32_t k = 0; k < w->calls.layouts.n; k++) {
        if (!layout_is_read(w, k))
            continue;
        fprintf(w->file, "static const ad_kernel_array %s_l%u = {", w->name, k);
        integer_write(w->file, a[k].size);
        fprintf(w->file, ", %d, %d, %d, ", a[k].dense != 0, a[k].dtype, a[k].rank);
        integers_write(w->file, a[k].shape, a[k].rank);
        fputs(", ", w->file);
        integers_write(w->file, a[k].strides, a[k].rank);
        fputs("};\n", w->file);
    }
}

static void kinds_write(const struct tensor_writer *w)
{
    const struct tensor_calls *c = &w->calls;
    fputs("\n/* Calls: op, its place, results, operands, attributes, whether it adds, bytes of\n"
          " * workspace, layouts, attributes. */\n",
          w->file);
    for (uint32_t k = 0; k < c->kinds.n; k++) {
        const struct call_kind *kind = calls_kind(c, k);
        if (!kind->op)
            continue;
        fprintf(w->file,
                "static const ad_kernel_call %s_c%u = {\n    \"%s\", %d, %d, %d, %d, %d, %" PRIu64
                ",\n    (const ad_kernel_array *const[]){",
                w->name, k, kind->op->name, kernel_op_place(kind->op), kind->n_out, kind->n_in,
                kind->n_attr, kind->adds, kind->bytes);
        for (uint32_t a = 0; a < (uint32_t)kind->n_out + kind->n_in; a++)
            fprintf(w->file, "%s&%s_l%u", a ? ", " : "", w->name,
                    ((const uint32_t *)c->layout_ids.at)[kind->layout + a]);
        fputs("},\n    (const int64_t[])", w->file);
        integers_write(w->file, (const int64_t *)c->attrs.at + kind->attr, kind->n_attr);
        fputs("};\n", w->file);
    }
}

static void number_write(const struct tensor_writer *w, int dtype, const char *from)
{
    char text[TEXT_NUMBER];
    int64_t integer;
    double real;
    float single;
    if (dtype == KERNEL_I64) {
        memcpy(&integer, from, sizeof integer);
        integer_write(w->file, integer);
    } else if (dtype == KERNEL_F64) {
        memcpy(&real, from, sizeof real);
        fputs(number_text(real, text), w->file);
    } else {
        memcpy(&single, from, sizeof single);
        fputs(number_text((double)single, text), w->file);
    }
    fputc(',', w->file);
}

static void numbers_write(const struct tensor_writer *w)
{
    const struct tensor_calls *c = &w->calls;
    const struct call_outside *o = c->outside.at;
    for (int dtype = 0; dtype < CALL_DTYPES; dtype++) {
        const size_t bytes = kernel_dtype_bytes(dtype);
        uint64_t at = 0;
        if (c->numbers[dtype] == 0)
            continue;
        fprintf(w->file, "\n/* What is no input, as it was. */\nstatic const %s %s_%s[] = {",
                number_type[dtype], w->name, number_suffix[dtype]);
        while (at < c->numbers[dtype] * bytes)
            for (uint32_t k = 0; k < c->outside.n; k++) {
                if (!o[k].used || o[k].to.base != BASE_NUMBERS || (int)o[k].to.index != dtype ||
                    o[k].to.at != at || o[k].bytes == 0)
                    continue;
                const char *data = c->t->entries[o[k].x].array.data;
                for (uint64_t i = 0; i < o[k].bytes; i += bytes, at += bytes) {
                    fputs(at / bytes % NUMBERS_OF_A_ROW ? " " : "\n    ", w->file);
                    number_write(w, dtype, data + i);
                }
            }
        fputs("\n};\n", w->file);
    }
}

/* ---- statements ---- */

/* An array: its place in round 0, and by what it goes on. */
static void place_write(const struct tensor_writer *w, const struct call_place *p,
                        const struct call_place *next, bool result)
{
    const uint64_t each = p->base == BASE_NUMBERS ? kernel_dtype_bytes((int)p->index) : 1;
    const int64_t at = (int64_t)(p->at / each);
    const int64_t by = next ? (int64_t)(next->at - p->at) / (int64_t)each : 0;
    const char *const letter = p->base == BASE_INPUT ? "x" : p->base == BASE_SEED ? "s" : "g";
    const bool moves = at != 0 || by != 0;
    if (p->base == BASE_WORK)
        fputs("w", w->file);
    else if (p->base == BASE_NUMBERS)
        fprintf(w->file, "%s_%s", w->name, number_suffix[p->index]);
    else
        fprintf(w->file, "%s%s[%u]",
                !moves   ? ""
                : result ? "(char *)"
                         : "(const char *)",
                letter, p->index);
    if (at != 0 || (moves && by == 0))
        fprintf(w->file, " + %" PRId64, at);
    if (by != 0)
        fprintf(w->file, " %c %" PRId64 " * i", by < 0 ? '-' : '+', by < 0 ? -by : by);
}

static void places_write(const struct tensor_writer *w, const char *macro,
                         const struct call_place *p, const struct call_place *next, uint32_t n,
                         bool result)
{
    fprintf(w->file, "%s(", macro);
    for (uint32_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", w->file);
        place_write(w, p + i, next ? next + i : NULL, result);
    }
    fputs(")", w->file);
}

static void move_write(struct tensor_writer *w, const struct call_kind *kind,
                       const struct call_place *p, const struct call_place *next, const char *pad)
{
    fprintf(w->file, kind->n_in ? "%s    memcpy(" : "%s    memset(", pad);
    place_write(w, p, next, true);
    fputs(", ", w->file);
    if (kind->n_in)
        place_write(w, p + 1, next ? next + 1 : NULL, false);
    else
        fputs("0", w->file);
    fprintf(w->file, ", %" PRIu64 ");\n", kind->bytes);
}

/* The call of round 0, and of round 1 (NULL: there is none). */
static void call_write(struct tensor_writer *w, const struct call_told *told,
                       const struct call_told *after)
{
    const struct tensor_calls *c = &w->calls;
    const struct call_kind *kind = calls_kind(c, told->kind);
    const struct call_place *p = calls_place(c, told->place),
                            *next = after ? calls_place(c, after->place) : NULL;
    const char *const pad = after ? "    " : "";
    char where[PLACE_TEXT];
    place_text(w->t, kind->site, where);
    if (kind->site.pc != w->site.pc || kind->site.line != w->site.line ||
        kind->recorded != w->recorded)
        fprintf(w->file, "%s    /* %s: %s%s */\n", pad, where, kind->recorded,
                kind->back ? ", back" : "");
    w->site = kind->site;
    w->recorded = kind->recorded;
    if (!kind->op) {
        move_write(w, kind, p, next, pad);
        return;
    }
    fprintf(w->file, "%s    if (ad_kernel_run(&%s_c%u, ", pad, w->name, told->kind);
    places_write(w, "OUT", p, next, kind->n_out, true);
    fputs(", ", w->file);
    places_write(w, "IN", p + kind->n_out, next ? next + kind->n_out : NULL, kind->n_in, false);
    fputs(", ", w->file);
    if (kind->bytes > 0)
        place_write(w, p + kind->n_out + kind->n_in, next ? next + kind->n_out + kind->n_in : NULL,
                    true);
    else
        fputs("NULL", w->file);
    /* Braces: gcc 12 looks at the source once more for each `if` without them, and is quadratic. */
    fprintf(w->file, ")) {\n%s        return \"%s at %s\";\n%s    }\n", pad, kind->recorded, where,
            pad);
}

static void part_begin(struct tensor_writer *w, bool back)
{
    fprintf(w->file,
            "\nstatic const char *%s_%c%d(%s)\n{\n    (void)x, (void)s, (void)g, (void)w;\n",
            w->name, back ? 'b' : 'f', w->parts[back]++, arguments);
    w->recorded = NULL;
}

/* All stretches of one way, in functions of so many calls each. */
static void way_write(struct tensor_writer *w, uint32_t from, uint32_t to, bool back)
{
    const struct tensor_calls *c = &w->calls;
    uint32_t written = PART_CALLS;
    for (uint32_t k = from; k < to; k++) {
        const struct call_stretch s = ((const struct call_stretch *)c->stretches.at)[k];
        for (uint32_t i = 0; i < s.period; i++) {
            if (written >= PART_CALLS && (i == 0 || s.rounds == 1)) {
                if (w->parts[back] > 0)
                    fputs("    return NULL;\n}\n", w->file);
                part_begin(w, back);
                written = 0;
            }
            if (i == 0 && s.rounds > 1) {
                fprintf(w->file, "    for (long i = 0; i < %u; i++) {\n", s.rounds);
                w->recorded = NULL;
            }
            call_write(w, calls_told(c, s.first + i),
                       s.rounds > 1 ? calls_told(c, s.first + i + s.period) : NULL);
            written++;
        }
        if (s.rounds > 1) {
            fputs("    }\n", w->file);
            w->recorded = NULL;
        }
    }
    if (w->parts[back] > 0)
        fputs("    return NULL;\n}\n", w->file);
}

/* ---- the functions ---- */

static void parts_call(const struct tensor_writer *w, bool back)
{
    for (int k = 0; k < w->parts[back]; k++)
        fprintf(w->file, "    if (!bad)\n        bad = %s_%c%d(x, %s, w);\n", w->name,
                back ? 'b' : 'f', k, back ? "s, g" : "NULL, NULL");
}

static void open_write(const struct tensor_writer *w)
{
    fprintf(w->file,
            "    const char *bad = ad_kernels_ready(%d);\n"
            "    char *const w = (char *)work + (64 - (uintptr_t)work %% 64) %% 64;\n"
            "    (void)x, (void)w;\n",
            (int)AD_KERNELS_VERSION);
    parts_call(w, false);
}

static uint64_t bytes_of(const struct tensor_writer *w, uint32_t value)
{
    return tape_value_bytes(&w->t->entries[value]);
}

/* Of what is no array without gaps: a function that makes one. */
static void gather_write(const struct tensor_writer *w)
{
    bool needed = false;
    for (uint32_t k = 0; k < w->calls.m; k++)
        needed = needed || result_is_gathered(w, k);
    if (!needed)
        return;
    fprintf(w->file,
            "\n/* Copies it row by row. */\n"
            "static void %s_gather(char *to, const char *from, const ad_kernel_array *a,"
            " size_t each)\n{\n"
            "    int64_t index[AD_KERNEL_RANK] = {0};\n"
            "    for (int64_t i = 0; i < a->size; i++) {\n"
            "        int64_t at = 0;\n"
            "        for (int d = 0; d < a->rank; d++)\n"
            "            at += index[d] * a->strides[d];\n"
            "        memcpy(to + (size_t)i * each, from + (size_t)at * each, each);\n"
            "        for (int d = a->rank - 1; d >= 0 && ++index[d] == a->shape[d]; d--)\n"
            "            index[d] = 0;\n"
            "    }\n}\n",
            w->name);
}

static void results_write(const struct tensor_writer *w)
{
    const struct tensor_calls *c = &w->calls;
    gather_write(w);
    fprintf(w->file,
            "\nstatic void %s_give(const char *bad, const void *const *x, void *const *y,"
            " const char *w)\n{\n    (void)bad, (void)x, (void)y, (void)w;\n",
            w->name);
    for (uint32_t k = 0; k < c->m; k++) {
        const uint64_t bytes = bytes_of(w, c->y[k]);
        if (bytes == 0)
            continue;
        fprintf(w->file,
                "    if (bad)\n        memset(y[%u], 0xff, %" PRIu64 ");\n    else\n        ", k,
                bytes);
        if (!result_is_gathered(w, k))
            fprintf(w->file, "memcpy(y[%u], ", k);
        else
            fprintf(w->file, "%s_gather(y[%u], (const char *)(", w->name, k);
        place_write(w, calls_place(c, c->result + k), NULL, false);
        if (!result_is_gathered(w, k))
            fprintf(w->file, ", %" PRIu64 ");\n", bytes);
        else
            fprintf(w->file, "), &%s_l%u, %zu);\n", w->name,
                    ((const uint32_t *)c->layout_ids.at)[c->results + k],
                    kernel_dtype_bytes(w->t->entries[c->y[k]].array.dtype));
    }
    fputs("}\n", w->file);
}

static bool has_gradient(const struct tensor_writer *w, uint32_t k)
{
    return (w->t->entries[w->calls.x[k]].flags & TAPE_LEAF) != 0;
}

static void mains_write(const struct tensor_writer *w)
{
    const struct tensor_calls *c = &w->calls;
    fprintf(w->file, "\nconst char *%s(const void *const *x, void *const *y, double *work)\n{\n",
            w->name);
    open_write(w);
    fprintf(w->file, "    %s_give(bad, x, y, w);\n    return bad;\n}\n", w->name);
    fprintf(w->file,
            "\nconst char *%s_adjoint(const void *const *x, void *const *y,"
            " const void *const *s, void *const *g,\n    double *work)\n{\n",
            w->name);
    for (uint32_t k = 0; k < c->n; k++)
        if (has_gradient(w, k) && bytes_of(w, c->x[k]) > 0)
            fprintf(w->file, "    if (!g[%u])\n        return \"x_bar[%u] is NULL\";\n", k, k);
    open_write(w);
    fprintf(w->file, "    (void)s, (void)g;\n    if (y)\n        %s_give(bad, x, y, w);\n",
            w->name);
    parts_call(w, true);
    for (uint32_t k = 0; k < c->n; k++) {
        const uint64_t bytes = bytes_of(w, c->x[k]);
        if (!has_gradient(w, k) || bytes == 0)
            continue;
        if (c->reached[k])
            fprintf(w->file, "    if (bad)\n        memset(g[%u], 0xff, %" PRIu64 ");\n", k, bytes);
        else
            fprintf(w->file, "    memset(g[%u], bad ? 0xff : 0, %" PRIu64 ");\n", k, bytes);
    }
    fputs("    return bad;\n}\n", w->file);
}

static void arrays_describe(const struct tensor_writer *w, const char *of, const uint32_t *value,
                            uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct tape_value *v = &w->t->entries[value[k]];
        char where[PLACE_TEXT], shape[KERNEL_ERROR_BYTES];
        place_text(w->t, tape_row_site(w->t, v->row), where);
        fprintf(w->file, " *   %s[%u]: %s, of %s%s\n", of, k,
                kernel_describe(&v->array, shape, sizeof shape), where,
                of[0] == 'y'           ? v->flags & TAPE_NEEDS_GRADIENT ? "" : "; y_bar is not read"
                : v->flags & TAPE_LEAF ? ""
                                       : "; x_bar is not written");
    }
}

static void tensor_head_write(const struct tensor_writer *w)
{
    const struct tensor_calls *c = &w->calls;
    const char *name = w->name;
    fprintf(w->file,
            "/* %s: %u ops of tensors that Tapescope has recorded (ad_tensor_write_c), as C.\n *\n"
            " * %s: results y of inputs x, row-major arrays:\n",
            name, w->t->n_records, name);
    arrays_describe(w, "x", c->x, c->n);
    arrays_describe(w, "y", c->y, c->m);
    fprintf(
        w->file,
        " * %s_adjoint: also x_bar[k] = sum over l of y_bar[l]^T (dy[l]/dx[k]); y may be NULL.\n"
        " * Both take work[%s_work], any numbers. They return NULL; or what refuses these\n"
        " * numbers, and its source line, and all bits of the results are 1: NaN.\n"
        " * An x_bar[k] that is NULL but is written is named, and nothing is computed.\n"
        " * Results may share no memory with inputs. Threads: each with a work of its own.\n"
        " * Link with libtapescope.\n */\n",
        name, name);
    fputs("#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n", w->file);
    if (c->numbers[KERNEL_F32] + c->numbers[KERNEL_F64] > 0)
        fputs("#include <math.h>\n", w->file);
    fprintf(w->file,
            "\n#include <tapescope/ad_kernel.h>\n\n"
            "enum { %s_inputs = %u, %s_results = %u, %s_work = %" PRIu64 " };\n",
            name, c->n, name, c->m, name, (c->work + 7) / 8 + WORK_SPARE);
    fprintf(w->file,
            "const char *%s(const void *const *x, void *const *y, double *work);\n"
            "const char *%s_adjoint(const void *const *x, void *const *y,"
            " const void *const *y_bar,\n    void *const *x_bar, double *work);\n",
            name, name);
    fputs("\n#define OUT(...) ((void *const[]){__VA_ARGS__})\n"
          "#define IN(...) ((const void *const[]){__VA_ARGS__})\n",
          w->file);
}

static void tensor_file_write(struct tensor_writer *w)
{
    const struct tensor_calls *c = &w->calls;
    tensor_head_write(w);
    layouts_write(w);
    kinds_write(w);
    numbers_write(w);
    way_write(w, 0, c->n_forward_stretches, false);
    way_write(w, c->n_forward_stretches, c->stretches.n, true);
    results_write(w);
    mains_write(w);
}

/* ---- the call ---- */

static ad_status limits_check(const struct tensor_writer *w, struct tape_site site)
{
    const struct tensor_calls *c = &w->calls;
    const struct call_stretch *s = c->stretches.at;
    uint64_t calls = 0, numbers = 0;
    for (uint32_t k = 0; k < c->stretches.n; k++)
        calls += s[k].period;
    for (int dtype = 0; dtype < CALL_DTYPES; dtype++)
        numbers += c->numbers[dtype];
    if (calls > CALLS_MOST)
        return (ad_status)tape_fail(
            w->t, TAPE_ERROR_LIMIT, site,
            "%s: %llu calls are left after loops were found, %d is the most", write_op,
            (unsigned long long)calls, (int)CALLS_MOST);
    if (numbers > NUMBERS_MOST)
        return (ad_status)tape_fail(
            w->t, TAPE_ERROR_LIMIT, site,
            "%s: %llu numbers of leaves and constants that are not among x, %d is the most",
            write_op, (unsigned long long)numbers, (int)NUMBERS_MOST);
    if (c->work / 8 > INT_MAX - WORK_SPARE - 1)
        return (ad_status)tape_fail(w->t, TAPE_ERROR_LIMIT, site,
                                    "%s: a workspace of %llu bytes is too large", write_op,
                                    (unsigned long long)c->work);
    return AD_OK;
}

static ad_status tensor_write_run(struct tensor_writer *w, uint32_t m, const uint32_t *y,
                                  uint32_t n, const uint32_t *x, bool *reached,
                                  struct tape_site site)
{
    if (!calls_make(&w->calls, w->t, m, y, n, x, reached))
        return w->t->error.code != TAPE_OK ? (ad_status)w->t->error.code
                                           : (ad_status)tape_fail_memory(w->t, site, write_op);
    const ad_status status = limits_check(w, site);
    if (status != AD_OK)
        return status;
    errno = 0;
    tensor_file_write(w);
    if (fflush(w->file) != 0 || ferror(w->file))
        return ad_fail(AD_ERROR_STATE, site, "%s: %s", write_op, strerror(errno ? errno : EIO));
    return AD_OK;
}

ad_status ad_tensor_write(FILE *file, struct tape *t, const char *name, uint32_t m,
                          const uint32_t *y, uint32_t n, const uint32_t *x, struct tape_site site)
{
    struct tensor_writer *w = t->memory->resize(NULL, sizeof *w + n, t->memory->payload);
    if (!w)
        return (ad_status)tape_fail_memory(t, site, write_op);
    *w = (struct tensor_writer){.file = file, .name = name, .t = t};
    bool *const reached = (bool *)(w + 1);
    memset(reached, 0, n);
    tape_observed(t);
    const ad_status status = tensor_write_run(w, m, y, n, x, reached, site);
    calls_drop(&w->calls);
    t->memory->release(w, t->memory->payload);
    return status;
}

/* The values of tensors, which are different; inputs are leaves or constants. */
static ad_status values_find(struct tape *t, const char *of, int n, const ad_tensor *x,
                             uint32_t *value, struct tape_site site)
{
    for (int i = 0; i < n; i++) {
        value[i] = ad_value_on(t, x[i], site, "%s: %s[%d]", write_op, of, i);
        if (value[i] == 0)
            return (ad_status)t->error.code;
        const struct tape_value *v = &t->entries[value[i]];
        if (of[0] == 'x' && !(v->flags & TAPE_LEAF) &&
            (v->root != value[i] || (v->flags & (TAPE_OWNS_DATA | TAPE_FREED))))
            return (ad_status)tape_fail(t, TAPE_ERROR_HANDLE, site,
                                        "%s: x[%d] is neither a leaf nor a constant", write_op, i);
        for (int k = 0; k < i; k++)
            if (value[k] == value[i])
                return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                            "%s: %s[%d] is named twice", write_op, of, i);
    }
    return AD_OK;
}

static ad_status arguments_check(struct tape *t, FILE *file, const char *name, int m,
                                 const ad_tensor *y, int n, const ad_tensor *x,
                                 struct tape_site site)
{
    const char *const why = !file   ? "file is a null pointer"
                            : !name ? "name is a null pointer"
                            : !name_is_identifier(name)
                                ? "name is no identifier of at most 63 letters"
                            : m < 0 || n < 0                 ? "m or n is negative"
                            : (m > 0 && !y) || (n > 0 && !x) ? "y or x is a null pointer"
                                                             : NULL;
    return why ? (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site, "%s: %s", write_op, why)
               : AD_OK;
}

ad_status ad_tensor_write_c_site(FILE *file, ad_tape tape, const char *name, int m,
                                 const ad_tensor *y, int n, const ad_tensor *x, unsigned ad_line_)
{
    const struct tape_site site = AD_HERE;
    struct tape *t = ad_tape_find(tape.slot, tape.generation, write_op, site);
    if (!t || t->error.code != TAPE_OK)
        return t ? (ad_status)t->error.code : ad_failed();
    ad_status status = arguments_check(t, file, name, m, y, n, x, site);
    if (status == AD_OK)
        status = (ad_status)tape_replay_ready(t, write_op, site);
    if (status == AD_OK)
        status = (ad_status)tape_told_verify(t, write_op, site);
    if (status != AD_OK)
        return status;
    uint32_t *const value =
        t->memory->resize(NULL, ((size_t)m + (size_t)n + 1) * sizeof *value, t->memory->payload);
    if (!value)
        return (ad_status)tape_fail_memory(t, site, write_op);
    status = values_find(t, "y", m, y, value, site);
    if (status == AD_OK)
        status = values_find(t, "x", n, x, value + m, site);
    if (status == AD_OK)
        status = ad_tensor_write(file, t, name, (uint32_t)m, value, (uint32_t)n, value + m, site);
    t->memory->release(value, t->memory->payload);
    return status;
}
