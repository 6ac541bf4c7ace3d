/* generate.c: prints the public header of the ops, the functions behind it, the table for the docs,
 * or the header of formulas.
 *
 * Runs on the machine that builds. Everything printed comes from the op table, so that a new op is
 * declared, defined and documented by its row or file alone.
 */
#include "generate.h"

#include "kernel.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 98 };

/* A name's form: NAME, with every attribute; or the short form without axes and flags (all axes, no
 * flags). */
struct form {
    const struct kernel_op *op;
    bool attrs;
    char name[64];
};

static bool has_axes(const struct kernel_op *op)
{
    for (int i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].kind == KERNEL_ATTR_AXES)
            return true;
    return false;
}

static bool is_list(const struct kernel_attr_info *a)
{
    return a->kind == KERNEL_ATTR_AXES || a->kind == KERNEL_ATTR_SHAPE ||
           a->kind == KERNEL_ATTR_LIST;
}

/* A field of the op's options. */
static bool is_option(const struct kernel_attr_info *a)
{
    return a->kind == KERNEL_ATTR_OPTION || a->kind == KERNEL_ATTR_OPTION_ONE ||
           a->kind == KERNEL_ATTR_OPTION_KERNEL;
}

static bool has_options(const struct kernel_op *op)
{
    for (int i = 0; i < op->n_attrs; i++)
        if (is_option(&op->attrs[i]))
            return true;
    return false;
}

/* The bits of all flags that the op takes. */
static unsigned flags_of(const struct kernel_op *op)
{
    unsigned bits = 0;
    for (int i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].kind == KERNEL_ATTR_FLAG)
            bits |= kernel_flag_bit(op->attrs[i].name);
    return bits;
}

/* The form has its flags as a parameter of their own. */
static bool has_flags(const struct form *f)
{
    return f->attrs && flags_of(f->op) != 0 && !has_options(f->op);
}

/* "AD_CAUSAL | AD_KEEP_WEIGHTS", in the order of the bits. */
static void print_bits(unsigned bits)
{
    const char *before = "";
    for (unsigned i = 0; kernel_flags[i].name; i++)
        if (bits & 2U << i) {
            printf("%sAD_%s", before, kernel_flags[i].name);
            before = " | ";
        }
}

/* An attribute that is a parameter of the form. A short form has what no default can stand for. */
static bool is_shown(const struct form *f, const struct kernel_attr_info *a)
{
    if (a->kind == KERNEL_ATTR_FLAG || is_option(a))
        return false;
    return f->attrs || !is_list(a);
}

static const char *count_name(const struct kernel_attr_info *a)
{
    return a->kind == KERNEL_ATTR_SHAPE ? "rank" : a->kind == KERNEL_ATTR_LIST ? "n" : "n_axes";
}

static const char *type_of(const struct kernel_attr_info *a)
{
    return a->kind == KERNEL_ATTR_REAL    ? "double"
           : a->kind == KERNEL_ATTR_DTYPE ? "ad_dtype"
                                          : "int64_t";
}

/* "ad_tensor x, const int64_t *axes, int n_axes, unsigned flags", or the names alone. */
static void print_parameters(const struct form *f, bool types, const char *tensor)
{
    const struct kernel_op *op = f->op;
    if (op->variadic)
        printf(types ? "const %s*%s, int n" : "%.0s%s, n", tensor, op->in_names[0]);
    for (int i = 0; i < op->n_in && !op->variadic; i++)
        printf("%s%s%s", i ? ", " : "", types ? tensor : "", op->in_names[i]);
    for (int lists = 1; lists >= 0; lists--) {
        for (int i = 0; i < op->n_attrs; i++) {
            const struct kernel_attr_info *a = &op->attrs[i];
            if (is_list(a) != (lists != 0) || !is_shown(f, a))
                continue;
            if (is_list(a))
                printf(types ? ", const int64_t *%s, int %s" : ", %s, %s", a->name, count_name(a));
            else
                printf(", %s%s%s", types ? type_of(a) : "", types ? " " : "", a->name);
        }
    }
    if (has_flags(f))
        printf(", %sflags", types ? "unsigned " : "");
    if (has_options(op) && types)
        printf(", const ad_%s_options *options", op->name);
    else if (has_options(op))
        printf(", options");
    for (int i = 1; i < kernel_results(op); i++)
        printf(", %s%s", types ? "ad_tensor *" : "", op->result_names[i - 1]);
}

/* A paragraph of a comment, filled; returns the column that it ended in. */
static void print_filled(const char *label, const char *text)
{
    if (!text || !*text)
        return;
    int column = printf(" *  %s", label);
    const char *const end = text[strlen(text) - 1] == '.' ? "" : "."; /* else editors join lines */
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column + 1 + (int)n > COLUMNS)
            column = printf("\n *     ") - 1;
        column += printf(" %.*s", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
    printf("%s\n", end);
}

/* " *  flags: AD_CAUSAL: row i sees columns 0 to i alone; …." */
static void print_flags(const struct kernel_op *op)
{
    char text[512] = "";
    for (unsigned i = 0; kernel_flags[i].name; i++)
        if (flags_of(op) & 2U << i)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%sAD_%s: %s",
                     text[0] ? "; " : "", kernel_flags[i].name, kernel_flags[i].text);
    snprintf(text + strlen(text), sizeof text - strlen(text), "; 0: none.");
    print_filled("flags:", text);
}

/* What a 0 of the field stands for, as C text. */
static const char *option_default(const struct kernel_attr_info *a)
{
    static char kernel[64];
    if (a->kind == KERNEL_ATTR_OPTION_KERNEL) {
        snprintf(kernel, sizeof kernel, "kernel%s", a->name + strlen("stride"));
        return kernel;
    }
    return a->kind == KERNEL_ATTR_OPTION_ONE ? "1" : "0";
}

static void print_options(const struct kernel_op *op)
{
    printf("/* Options of ad_%s. A field of 0 stands for what is named beside it. */\n"
           "typedef struct ad_%s_options {\n",
           op->name, op->name);
    for (int i = 0; i < op->n_attrs; i++) {
        const struct kernel_attr_info *a = &op->attrs[i];
        if (is_option(a))
            printf("    int64_t %s; /* %s */\n", a->name, option_default(a));
    }
    if (flags_of(op)) {
        printf("    unsigned flags; /* ");
        print_bits(flags_of(op));
        printf(" */\n");
    }
    printf("} ad_%s_options;\n\n", op->name);
}

static void print_declaration(const struct form *f)
{
    const struct kernel_op *op = f->op;
    if (has_options(op))
        print_options(op);
    printf("/* %s\n", op->brief);
    print_filled("Shapes:", op->shapes);
    print_filled("Value:", op->formula);
    print_filled("Derivative:", op->derivative);
    print_filled("Edges:", op->edges);
    print_filled("Source:", op->source);
    if (has_axes(op))
        printf(f->attrs ? " *  axes [n_axes]: which axes, negative ones from the end; none: all.\n"
                        : " *  Over all axes; ad_%s_axes takes some.\n",
               op->name);
    if (flags_of(op) && (has_flags(f) || has_options(op)))
        print_flags(op);
    if (has_options(op))
        printf(" *  options: NULL stands for a struct of zeros.\n");
    if (op->variadic)
        printf(
            " *  n: without an operand there is no tape, and the error is the calling thread's.\n");
    for (int i = 1; i < kernel_results(op); i++)
        printf(" *  %s: receives a further result; may be a null pointer.\n",
               op->result_names[i - 1]);
    printf(" */\nAD_INLINE ad_tensor %s(", f->name);
    print_parameters(f, true, "ad_tensor ");
    printf(" AD_LINE_PARAMETER_);\nAD_SITED(ad_tensor, %s, (", f->name);
    print_parameters(f, true, "ad_tensor ");
    printf("), (");
    print_parameters(f, false, "");
    printf("))\n");
    printf("#if AD_LINE_MACROS\n#define %s(...) %s_at(__VA_ARGS__, __LINE__)\n#endif\n\n", f->name,
           f->name);
}

/* The word of an attribute that is no list. */
static void print_word(const struct form *f, const struct kernel_attr_info *a, int at)
{
    const char *const from = has_options(f->op) ? "ad_given_." : "";
    if (a->kind == KERNEL_ATTR_FLAG && (has_flags(f) || has_options(f->op))) {
        printf("    ad_attr_[%d] = (%sflags & ", at, from);
        print_bits(kernel_flag_bit(a->name));
        printf(") != 0;\n");
    } else if (a->kind == KERNEL_ATTR_OPTION) {
        printf("    ad_attr_[%d] = ad_given_.%s;\n", at, a->name);
    } else if (is_option(a)) {
        printf("    ad_attr_[%d] = ad_given_.%s ? ad_given_.%s : %s;\n", at, a->name, a->name,
               option_default(a));
    } else if (is_shown(f, a)) {
        printf(a->kind == KERNEL_ATTR_REAL    ? "    ad_attr_[%d] = kernel_attr_word(%s);\n"
               : a->kind == KERNEL_ATTR_DTYPE ? "    ad_attr_[%d] = (int)%s;\n"
                                              : "    ad_attr_[%d] = %s;\n",
               at, a->name);
    }
}

/* What refuses a call before its attributes are set: flags of other ops, lists of no length. */
static void print_checks(const struct form *f, const struct kernel_attr_info *list, int most)
{
    const struct kernel_op *op = f->op;
    const bool flags = flags_of(op) != 0 && (has_flags(f) || has_options(op));
    const char *const from = has_options(op) ? "ad_given_." : "";
    if (has_options(op))
        printf("    static const ad_%s_options ad_none_;\n"
               "    const ad_%s_options ad_given_ = options ? *options : ad_none_;\n",
               op->name, op->name);
    if (!flags && !list)
        return;
    printf("    if (");
    if (flags)
        printf("!ad_flags_ok(&kernel_op_%s, %s, %sflags, %uU, AD_HERE)", op->name, op->in_names[0],
               from, flags_of(op));
    if (list)
        printf("%s!ad_list_ok(&kernel_op_%s, %s, \"%s\", %s, %s, %d, AD_HERE)",
               flags ? " ||\n        " : "", op->name, op->in_names[0], list->name, list->name,
               count_name(list), most);
    printf(")\n        return ad_no_results(%s, %s);\n", op->in_names[0],
           kernel_results(op) > 1 ? "ad_more_, (int)(sizeof ad_more_ / sizeof *ad_more_)"
                                  : "NULL, 0");
}

static void print_definition(const struct form *f)
{
    const struct kernel_op *op = f->op;
    printf("ad_tensor %s_site(", f->name);
    print_parameters(f, true, "ad_tensor ");
    printf(", unsigned ad_line_)\n{\n");
    const int more = kernel_results(op) - 1;
    if (more > 0) {
        printf("    ad_tensor *const ad_more_[] = {");
        for (int i = 0; i < more; i++)
            printf("%s%s", i ? ", " : "", op->result_names[i]);
        printf("};\n");
    }
    char apply[128]; /* the call up to the attributes */
    snprintf(apply, sizeof apply, "ad_apply%s(&kernel_op_%s, %d, ad_in_", more ? "_results" : "",
             op->name, op->n_in);
    if (op->variadic)
        snprintf(apply, sizeof apply, "ad_apply_list(&kernel_op_%s, n, %s", op->name,
                 op->in_names[0]);
    for (int i = 0; i < op->n_in && !op->variadic; i++)
        printf("%s%s", i ? ", " : "    const ad_tensor ad_in_[] = {", op->in_names[i]);
    printf(op->variadic ? "" : "};\n");
    const char *end = more ? "AD_HERE, ad_more_" : "AD_HERE";
    int words = 0;
    const struct kernel_attr_info *list = NULL;
    for (int i = 0; i < op->n_attrs; i++) {
        if (is_list(&op->attrs[i]))
            list = &op->attrs[i];
        else
            words++;
    }
    if (op->n_attrs == 0) {
        printf("    return %s, 0, NULL, %s);\n}\n\n", apply, end);
        return;
    }
    const bool any = list && list->kind == KERNEL_ATTR_LIST;
    const int most = any ? KERNEL_MAX_ATTR - words : KERNEL_MAX_RANK;
    printf("    int64_t ad_attr_[%d] = {0};\n", words + most);
    print_checks(f, f->attrs ? list : NULL, most);
    for (int i = 0, at = 0; i < op->n_attrs; i++)
        if (!is_list(&op->attrs[i]))
            print_word(f, &op->attrs[i], at++);
    if (list && f->attrs) {
        printf("    if (%s)\n        memcpy(ad_attr_ + %d, %s, (size_t)%s * sizeof(int64_t));\n",
               count_name(list), words, list->name, count_name(list));
        printf("    return %s, %d + %s, ad_attr_, %s);\n}\n\n", apply, words, count_name(list),
               end);
        return;
    }
    printf("    return %s, %d, ad_attr_, %s);\n}\n\n", apply, words, end);
}

static void each(void (*print)(const struct form *))
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int i = 0; i < n; i++) {
        if (ops[i]->hidden)
            continue;
        struct form f = {ops[i], !has_axes(ops[i]), ""};
        snprintf(f.name, sizeof f.name, "ad_%s", ops[i]->name);
        print(&f);
        if (has_axes(ops[i])) {
            f.attrs = true;
            snprintf(f.name, sizeof f.name, "ad_%s_axes", ops[i]->name);
            print(&f);
        }
    }
}

static void print_cell(const char *text)
{
    printf("| ");
    for (; text && *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
    printf(" ");
}

/* The bound on a value's error: of f64, of f32 where that differs, and what multiplies both. */
static void print_error(const struct kernel_op *op)
{
    char text[160] = "";
    const double f32 = op->ulps[KERNEL_F32], f64 = op->ulps[KERNEL_F64];
    if (f64 > 0)
        snprintf(text, sizeof text, "%g", f64);
    if (f32 != f64)
        snprintf(text + strlen(text), sizeof text - strlen(text), " (f32: %g)", f32);
    if (op->ulps_times)
        snprintf(text + strlen(text), sizeof text - strlen(text), " times %s", op->ulps_times);
    print_cell(text);
}

static void print_docs(void)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    printf(
        "# The ops\n\nMade from the op table by `tapescope_generate docs`. y is the output, g its "
        "adjoint, x' the adjoint of x.\n\n"
        "| op | shapes | value | derivative | saved | edges | error, ulp | source |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < n; i++) {
        const struct kernel_op *op = ops[i];
        if (op->hidden)
            continue;
        char saved[128] = "";
        for (int k = 0; k < op->n_in; k++)
            if (op->saves_in >> k & 1)
                snprintf(saved + strlen(saved), sizeof saved - strlen(saved), "%s ",
                         op->in_names[k]);
        if (op->saves_out)
            snprintf(saved + strlen(saved), sizeof saved - strlen(saved), "output");
        printf("| `%s` ", op->name);
        print_cell(op->shapes);
        print_cell(op->formula);
        print_cell(op->derivative);
        print_cell(saved[0] ? saved : "nothing");
        print_cell(op->edges);
        print_error(op);
        print_cell(op->source);
        printf("|\n");
    }
}

/* The enum of flags. */
static void print_flag_bits(void)
{
    printf(
        "/* Flags of ops, joined by |. The comment of an op names those that it takes; another one "
        "is\n * AD_ERROR_ARGUMENT. None is 1, so that `true` is refused as well. */\n"
        "enum ad_flags {\n");
    for (unsigned i = 0; kernel_flags[i].name; i++)
        printf("    AD_%s = 1 << %u%s /* %s */\n", kernel_flags[i].name, i + 1,
               kernel_flags[i + 1].name ? "," : "", kernel_flags[i].text);
    printf("};\n\n");
}

/* A public op whose flag has no public name does not build. */
static bool all_flags_have_names(void)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ops[i]->n_attrs && !ops[i]->hidden; k++)
            if (ops[i]->attrs[k].kind == KERNEL_ATTR_FLAG &&
                !kernel_flag_bit(ops[i]->attrs[k].name)) {
                fprintf(stderr, "%s: the flag \"%s\" is not in KERNEL_FLAG_MAP\n", ops[i]->name,
                        ops[i]->attrs[k].name);
                return false;
            }
    return true;
}

/* Nothing is printed for an op that the gradient checks could not run: it does not build. */
static bool all_have_samples(void)
{
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    struct kernel_sample sample;
    for (int i = 0; i < n; i++)
        if (!ops[i]->sample || !ops[i]->sample(0, &sample)) {
            fprintf(stderr, "%s: the op has no sample\n", ops[i]->name);
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (!all_have_samples() || !all_flags_have_names())
        return 1;
    if (strcmp(what, "header") == 0) {
        printf(
            "/* ad_ops.h: the ops, printed from the op table by tapescope_generate; included by "
            "ad.h.\n"
            " *\n * Every op takes tensors of one tape and of one float dtype, unless its "
            "shapes say i64, and\n"
            " * returns a tensor of that tape. Errors (see ad.h) are kept in the tape: "
            "AD_ERROR_SHAPE,\n"
            " * AD_ERROR_DTYPE, AD_ERROR_VALUE, AD_ERROR_HANDLE, AD_ERROR_TAPE, "
            "AD_ERROR_THREAD, AD_ERROR_MEMORY.\n"
            " */\n#include <tapescope/ad.h> /* which includes this one where its types are there "
            "*/\n\n"
            "#ifndef TAPESCOPE_AD_OPS_H\n#define TAPESCOPE_AD_OPS_H\n\n");
        print_flag_bits();
        each(print_declaration);
        printf("#endif\n");
    } else if (strcmp(what, "source") == 0) {
        printf("/* Printed from the op table by tapescope_generate. An op has as many parameters "
               "as it "
               "has:\n * NOLINTBEGIN(readability-function-size) */\n#include \"ad_internal.h\"\n\n"
               "#include \"kernel_ops.h\"\n\n#include <string.h>\n\n");
        each(print_definition);
        printf("/* NOLINTEND(readability-function-size) */\n");
    } else if (strcmp(what, "docs") == 0) {
        print_docs();
    } else if (strcmp(what, "formulas") == 0) {
        generate_formulas();
    } else {
        fprintf(stderr, "usage: tapescope_generate header|source|docs|formulas\n");
        return 2;
    }
    return ferror(stdout) || fflush(stdout) != 0;
}
